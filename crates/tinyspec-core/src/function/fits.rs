//! What a body asks of its named dims beyond their bounds: parts must lie inside of what they are parts of. Kernels for all
//! sizes rely on it, so each call is asked; where each size has kernels of its own, a call is refused in the words of the
//! function instead of its ops.

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
    /// What must not be negative, and is for some sizes.
    ends: Vec<Dim>,
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
                let ends = [offset.clone(), part.clone(), whole - offset - part];
                let ends: Vec<Dim> = ends.into_iter().filter(|end| end.bounds().0 < 0).collect();
                if ends.is_empty() {
                    continue;
                }
                let (offset, part, whole) = (offset.clone(), part.clone(), whole.clone());
                let location = graph.locations(node).first().cloned();
                open.push(Fit { op, axis, offset, part, whole, ends, location });
            }
        }
        open
    }

    /// # Errors
    /// When it does not fit where the signature's dims have these sizes.
    pub fn check(&self, signature: &Signature, sizes: &[Dim]) -> Result<()> {
        let first = signature.inputs.len() as u32;
        let size = |slot: u32| sizes.get(slot.checked_sub(first)? as usize).cloned();
        let is_wrong = |end: &Dim| end.substitute(&size).as_const().is_some_and(|end| end < 0);
        if !self.ends.iter().any(is_wrong) {
            return Ok(());
        }
        let names: Vec<(u32, String)> = (first..).zip(signature.dims.iter().map(|dim| dim.name.clone())).collect();
        let parts = [&self.offset, &self.part, &self.whole];
        let used: Vec<u32> = parts.into_iter().flat_map(Dim::names).map(|name| name.slot).collect();
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
        let bounded = signature.dims.iter().zip(first..).find(|(_, slot)| used.contains(slot));
        let bounded = bounded.map_or("N", |(dim, _)| &dim.name);
        let place = match &self.location {
            Some(location) if !location.file.is_empty() => format!(", at {location}"),
            _ => String::new(),
        };
        Err(Error::new(ErrorKind::Shape, &signature.name, message + &place)
            .help(format!("pass another size; `#[function(bounds({bounded}: 1..=64))]` says which sizes there are")))
    }
}
