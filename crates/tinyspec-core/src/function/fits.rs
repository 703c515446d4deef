//! What a body asks of its named dims beyond their bounds: parts must lie inside of what they are parts of. Kernels for all
//! sizes rely on it, so each call is asked.

use tinyspec_ir::signature::Signature;
use tinyspec_ir::{Builder, Dim, Error, ErrorKind, Graph, Location, NodeId, Op, Result, dim};

/// A part of a longer axis, whose place and lengths some size within the bounds makes wrong.
#[derive(Debug)]
pub(super) struct Fit {
    op: Op,
    axis: usize,
    offset: Dim,
    part: Dim,
    whole: Dim,
    location: Option<Location>,
}

impl Fit {
    /// What is open in a body.
    pub fn all(graph: &Graph, outputs: &[NodeId]) -> Vec<Fit> {
        let mut open = Vec::new();
        for node in graph.reachable_outside_bodies(outputs) {
            let op = graph.op(node);
            let (&[inner, offset, _], Op::Pad | Op::Shrink) = (graph.sources(node), op) else { continue };
            let Some(offsets) = graph.props(offset).value.as_deref() else { continue };
            let (inner, outer) = (&graph.props(inner).shape, &graph.props(node).shape);
            for (axis, offset) in offsets.iter().enumerate() {
                let (part, whole) =
                    if op == Op::Pad { (&inner[axis], &outer[axis]) } else { (&outer[axis], &inner[axis]) };
                let fit = Fit {
                    op,
                    axis,
                    offset: offset.clone(),
                    part: part.clone(),
                    whole: whole.clone(),
                    location: graph.locations(node).first().cloned(),
                };
                if fit.ends().iter().any(|end| end.bounds().0 < 0) {
                    open.push(fit);
                }
            }
        }
        open
    }

    /// What must not be negative.
    fn ends(&self) -> [Dim; 3] {
        [self.offset.clone(), self.part.clone(), &self.whole - &self.offset - &self.part]
    }

    /// # Errors
    /// When it does not fit where the signature's dims have these sizes.
    pub fn check(&self, signature: &Signature, sizes: &[Dim]) -> Result<()> {
        let first = signature.inputs.len() as u32;
        let size = |slot: u32| sizes.get(slot.checked_sub(first)? as usize).cloned();
        let is_wrong = |end: Dim| end.substitute(&size).as_const().is_some_and(|end| end < 0);
        if !self.ends().into_iter().any(is_wrong) {
            return Ok(());
        }
        let names: Vec<(u32, String)> = (first..).zip(signature.dims.iter().map(|dim| dim.name.clone())).collect();
        let used = self.ends().iter().flat_map(Dim::names).map(|name| name.slot).collect::<Vec<_>>();
        let given: Vec<String> = (names.iter().zip(sizes))
            .filter(|((slot, _), _)| used.contains(slot))
            .map(|((_, name), size)| format!("`{name}` is {size}"))
            .collect();
        let Fit { op, axis, offset, part, whole, .. } = self;
        let (verb, end) = match op {
            Op::Pad => ("places", "among"),
            _ => ("takes", "of"),
        };
        let message = dim::with_names(&names, || {
            let (given, op) = (given.join(", "), op.name());
            format!(
                "{given} in this call: {op} {verb} {part} elements from {offset} on {end} the {whole} of axis {axis}"
            )
        });
        let place = match &self.location {
            Some(location) if !location.file.is_empty() => format!(", at {location}"),
            _ => String::new(),
        };
        Err(Error::new(ErrorKind::Shape, &signature.name, message + &place)
            .help("give the dim bounds that leave such sizes out, as in `bounds(N: 4..=4096)`"))
    }
}
