//! Constraints of a body on its named dims beyond their bounds: sizes are not negative, and parts lie within the whole. Kernels
//! for all sizes rely on it, so every call is checked. Where each size has its own kernels, the check lets an error name the
//! function instead of its ops.

use tinyspec_ir::signature::Signature;
use tinyspec_ir::{Builder, Dim, Error, ErrorKind, Graph, Location, NodeId, Op, Result, dim};

/// An axis, or a part of a longer one, whose offset or length is invalid for some size within the bounds.
#[derive(Debug)]
pub(super) struct Fit {
    op: Op,
    axis: usize,
    part: Dim,
    /// Its offset, and the length of the longer axis.
    within: Option<(Dim, Dim)>,
    /// Dims that must not be negative, but are for some sizes.
    ends: Vec<Dim>,
    location: Option<Location>,
}

impl Fit {
    /// The checks that a body needs at run time.
    pub fn all(graph: &Graph, outputs: &[NodeId]) -> Vec<Fit> {
        let mut open = Vec::new();
        for node in graph.reachable_outside_bodies(outputs) {
            let (op, outer, sources) = (graph.op(node), &graph.props(node).shape, graph.sources(node));
            let mut fit = |axis: usize, part: &Dim, within: Option<(Dim, Dim)>| {
                let around = within.iter().flat_map(|(offset, whole)| [offset.clone(), whole - offset - part]);
                let ends: Vec<Dim> = around.chain([part.clone()]).filter(|end| end.bounds().0 < 0).collect();
                if !ends.is_empty() {
                    let location = graph.locations(node).first().cloned();
                    open.push(Fit { op, axis, part: part.clone(), within, ends, location });
                }
            };
            match (op, sources) {
                (Op::Expand | Op::Reshape, _) => {
                    outer.iter().enumerate().for_each(|(axis, length)| fit(axis, length, None));
                }
                (Op::Pad | Op::Shrink, &[inner, offset, _]) => {
                    let Some(offsets) = graph.props(offset).value.as_deref() else { continue };
                    let inner = &graph.props(inner).shape;
                    for (axis, offset) in offsets.iter().enumerate() {
                        let (part, whole) = match op {
                            Op::Pad => (&inner[axis], &outer[axis]),
                            _ => (&outer[axis], &inner[axis]),
                        };
                        fit(axis, part, Some((offset.clone(), whole.clone())));
                    }
                }
                _ => {}
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
        let around = self.within.iter().flat_map(|(offset, whole)| [offset, whole]);
        let used: Vec<u32> = around.chain([&self.part]).flat_map(Dim::names).map(|name| name.slot).collect();
        let given: Vec<String> = (names.iter().zip(sizes))
            .filter(|((slot, _), _)| used.contains(slot))
            .map(|((_, name), size)| format!("`{name}` is {size}"))
            .collect();
        let Fit { op, axis, part, within, .. } = self;
        let message = dim::with_names(&names, || {
            let (given, name) = (given.join(", "), op.name());
            let what = match (op, within) {
                (_, None) => format!("makes axis {axis} of {part} elements"),
                (Op::Pad, Some((offset, whole))) => {
                    format!("places {part} elements from {offset} on among the {whole} of axis {axis}")
                }
                (_, Some((offset, whole))) => {
                    format!("takes {part} elements from {offset} on of the {whole} of axis {axis}")
                }
            };
            format!("{given} in this call: {name} {what}")
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
