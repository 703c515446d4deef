//! Lowers Loads and Stores to contiguous, gathered or scalar accesses.

use super::address::Address;
use super::gate::Lane;
use super::shift::Read;
use super::stride::{Strided, is_near};
use super::{Cut, New, dims, extract, gathered, lanes, malformed, splat};
use crate::lower::select::tile::{Dims, Layout, Parts};
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

impl Cut {
    pub(super) fn load(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let sources: SmallVec<[NodeId; 3]> = graph.sources(node).into();
        let arg = graph.arg(node).clone();
        let (Op::Index, [buffer, index]) = (graph.op(sources[0]), graph.sources(sources[0])) else {
            // A register tile.
            let mut value = self.parts(graph, sources[0])?.clone();
            for part in &mut value.parts {
                *part = graph.add(Op::Load, &[*part], arg.clone())?;
            }
            return Ok(New::Value(value));
        };
        let (buffer, index) = (*buffer, *index);
        let layout = self.layout(self.access_dims(graph, &sources, index)?);
        let buffer = self.memory(graph, buffer)?;
        let sum = self.sum(index);
        let gated = sources.get(1).copied().zip(sources.get(2).copied());
        let read = Read { buffer, index: &sum, layout: &layout, gated, arg: &arg };
        if let Some(parts) = self.load_turned(graph, read)? {
            return Ok(New::Value(Parts { layout, parts }));
        }
        if let Some(parts) = self.load_interleaved(graph, read)? {
            return Ok(New::Value(Parts { layout, parts }));
        }
        if let Some(parts) = self.load_overlapping(graph, read)? {
            return Ok(New::Value(Parts { layout, parts }));
        }
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let Address { base, stride, rest } = self.address(graph, &sum, &layout, &at)?;
            let mut gate = match sources.get(2) {
                Some(&gate) => Some(self.part(graph, gate, &layout, &at)?),
                None => None,
            };
            let alt = match sources.get(1) {
                Some(&alt) => Some(self.part(graph, alt, &layout, &at)?),
                None => None,
            };
            match gate.and_then(|gate| graph.as_int(gate)) {
                Some(0) => {
                    parts.push(alt.ok_or_else(|| malformed(graph, node))?);
                    continue;
                }
                Some(_) => gate = None,
                None => {}
            }
            let gate_lanes = gate.map_or(1, |gate| lanes(graph, gate));
            if let (Some(alt), Some(gate), 0) = (alt, gate, stride)
                && rest.is_empty()
                && gate_lanes > 1
                && is_inside(graph, &sum, buffer)
            {
                // One address that is always valid: loaded once, and selected lane by lane.
                let offset = self.scalar_sum(graph, &base)?;
                let place = graph.add(Op::Index, &[buffer, offset], Arg::None)?;
                let value = graph.add(Op::Load, &[place], arg.clone())?;
                let (value, alt) = (splat(graph, value, gate_lanes)?, splat(graph, alt, gate_lanes)?);
                parts.push(graph.alu(Op::Where, &[gate, value, alt])?);
                continue;
            }
            let is_near = match gate_lanes {
                1 => is_near(stride, layout.width),
                _ => self.is_near_under_gates(stride, layout.width, graph.dtype(buffer)),
            };
            if rest.is_empty() && is_near {
                let strided = Strided { buffer, index: &sum, base: &base, stride, width: layout.width };
                parts.push(self.load_near(graph, &strided, alt.zip(gate), &arg)?);
                continue;
            }
            let (place, width) = if stride == 1 && rest.is_empty() {
                (self.contiguous(graph, buffer, &base, layout.width)?, layout.width)
            } else if stride == 0 && rest.is_empty() && gate_lanes == 1 {
                let offset = self.scalar_sum(graph, &base)?;
                (graph.add(Op::Index, &[buffer, offset], Arg::None)?, 1)
            } else {
                let offset = self.index_part(graph, index, &layout, &at)?;
                let offset = splat(graph, offset, layout.width)?;
                (graph.add(Op::Index, &[buffer, offset], Arg::None)?, layout.width)
            };
            let mut operands: SmallVec<[NodeId; 3]> = SmallVec::from_iter([place]);
            if let (Some(alt), Some(gate)) = (alt, gate) {
                operands.push(splat(graph, alt, width)?);
                operands.push(gate);
            }
            parts.push(graph.add(Op::Load, &operands, arg.clone())?);
        }
        Ok(New::Value(Parts { layout, parts }))
    }

    /// The tile that an access spans: that of its index, gate and value together.
    fn access_dims(&self, graph: &Graph, sources: &[NodeId], index: NodeId) -> Result<Dims> {
        let mut all = dims(graph, index)?;
        for &source in &sources[1..] {
            let dims = dims(graph, source)?;
            if all.is_empty() {
                all = dims;
            } else if dims.len() == all.len() {
                all.iter_mut().zip(dims).for_each(|(size, other)| *size = (*size).max(other));
            }
        }
        Ok(all)
    }

    pub(super) fn store(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let sources: SmallVec<[NodeId; 3]> = graph.sources(node).into();
        let (op, arg) = (graph.op(node), graph.arg(node).clone());
        let (Op::Index, [buffer, index]) = (graph.op(sources[0]), graph.sources(sources[0])) else {
            return self.store_register(graph, &sources);
        };
        let (buffer, index) = (*buffer, *index);
        let layout = self.layout(self.access_dims(graph, &sources, index)?);
        let buffer = self.memory(graph, buffer)?;
        let sum = self.sum(index);
        if op == Op::Store {
            let (place, stored) = ((buffer, &sum), (sources[1], sources.get(2).copied()));
            let effects = match self.store_interleaved(graph, place, &layout, stored, &arg)? {
                None => self.store_turned(graph, place, &layout, stored, &arg)?,
                interleaved => interleaved,
            };
            if let Some(effects) = effects {
                return Ok(New::Effects(effects));
            }
        }
        // Non-temporal and ordinary stores must not alternate: all parts or none.
        let starts = layout.starts();
        let first: Option<Vec<i64>> = sources
            .get(2)
            .and_then(|&gate| starts.iter().map(|at| self.first_open(graph, gate, &layout, at)).collect());
        let mut effects = Vec::with_capacity(layout.count());
        for (part, at) in starts.into_iter().enumerate() {
            let Address { base, stride, rest } = self.address(graph, &sum, &layout, &at)?;
            let value = self.part(graph, sources[1], &layout, &at)?;
            let first = first.as_ref().and_then(|first| first.get(part).copied());
            let gate = match sources.get(2).filter(|_| first != Some(layout.width)) {
                Some(&gate) => Some(self.part(graph, gate, &layout, &at)?),
                None => None,
            };
            let Some(gate) = undecided(graph, gate).filter(|_| first != Some(0)) else { continue };
            if layout.width > 1 && stride == 1 && rest.is_empty() && op == Op::Store {
                if let Some(count) = first.filter(|count| (2..layout.width).contains(count) && count.count_ones() == 1)
                {
                    let place = self.contiguous(graph, buffer, &base, count)?;
                    let value = splat(graph, value, layout.width)?;
                    let lanes: SmallVec<[(NodeId, i64); 16]> = (0..count).map(|lane| (value, lane)).collect();
                    let value = gathered(graph, &lanes)?;
                    effects.push(graph.add(op, &[place, value], arg.clone())?);
                    continue;
                }
                let place = self.contiguous(graph, buffer, &base, layout.width)?;
                let value = splat(graph, value, layout.width)?;
                effects.push(store(graph, op, place, value, gate, arg.clone())?);
                continue;
            }
            for lane in 0..layout.width {
                let mut offset = base.offset(stride.wrapping_mul(lane));
                for &(vector, factor) in &rest {
                    let element = extract(graph, vector, lane)?;
                    offset = offset.plus(&Affine::atom(element).scale(factor));
                }
                let offset = self.scalar_sum(graph, &offset)?;
                let place = graph.add(Op::Index, &[buffer, offset], Arg::None)?;
                let value = extract(graph, value, lane)?;
                let gate = match gate {
                    Some(gate) => Some(extract(graph, gate, lane)?),
                    None => None,
                };
                effects.push(store(graph, op, place, value, gate, arg.clone())?);
            }
        }
        Ok(New::Effects(effects))
    }

    /// How many lanes of a vector a gate opens, if these are known to be the first ones.
    fn first_open(&self, graph: &Graph, gate: NodeId, layout: &Layout, at: &[i64]) -> Option<i64> {
        let axis = layout.lane?;
        let mut open: SmallVec<[bool; 16]> = SmallVec::new();
        for lane in 0..layout.width {
            let mut at: Dims = at.into();
            at[axis] += lane;
            match self.lane_of(graph, gate, &at)? {
                Lane::Closed => open.push(false),
                Lane::Open(conditions) if conditions.is_empty() => open.push(true),
                Lane::Open(_) => return None,
            }
        }
        let count = open.iter().filter(|open| **open).count();
        open[..count].iter().all(|open| *open).then_some(count as i64)
    }

    fn store_register(&mut self, graph: &mut Graph, sources: &[NodeId]) -> Result<New> {
        let register = self.parts(graph, sources[0])?.clone();
        let width = register.layout.width;
        let mut effects = Vec::with_capacity(register.parts.len());
        for (place, at) in register.parts.iter().zip(register.layout.starts()) {
            let value = self.part(graph, sources[1], &register.layout, &at)?;
            let value = splat(graph, value, width)?;
            effects.push(graph.add(Op::Store, &[*place, value], Arg::None)?);
        }
        Ok(New::Effects(effects))
    }
}

/// The gate of a store, unless it is always open; the outer `None` if it is never open, so that nothing is stored.
pub(super) fn undecided(graph: &Graph, gate: Option<NodeId>) -> Option<Option<NodeId>> {
    match gate.map(|gate| (gate, graph.as_int(gate))) {
        Some((_, Some(0))) => None,
        Some((gate, None)) => Some(Some(gate)),
        _ => Some(None),
    }
}

pub(super) fn store(
    graph: &mut Graph,
    op: Op,
    place: NodeId,
    value: NodeId,
    gate: Option<NodeId>,
    arg: Arg,
) -> Result<NodeId> {
    match gate {
        Some(gate) => graph.add(op, &[place, value, gate], arg),
        None => graph.add(op, &[place, value], arg),
    }
}

/// Whether every value of an index lies in the buffer.
fn is_inside(graph: &Graph, index: &Affine, buffer: NodeId) -> bool {
    let length = graph.props(buffer).shape.first().and_then(|dim| dim.as_const()).unwrap_or(0);
    index.is_within(graph, length)
}
