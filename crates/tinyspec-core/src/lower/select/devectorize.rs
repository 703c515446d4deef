//! Tiles are cut into machine vectors, index arithmetic becomes machine integers, and accesses become contiguous,
//! gathered, or scalar ones, by the coefficient of the lane axis in their index.

use super::tile::{Dims, Layout, Parts};
use crate::lower::fold;
use crate::lower::sum::{self, Sum};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::dim::{shape, static_shape};
use tinyspec_ir::{AddrSpace, Arg, Axes, Builder, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

pub(super) fn devectorize(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let mut cut = Cut {
        sums: FxHashMap::default(),
        axes: FxHashMap::default(),
        lanes: SmallVec::new(),
        greatest: 1,
        new: vec![None; graph.len()],
        next_register: 0,
    };
    let dtypes = order.iter().filter(|&&node| matches!(graph.op(node), Op::Load | Op::Store));
    let dtypes = dtypes.map(|&node| graph.dtype(graph.source(node, 0)));
    cut.greatest = crate::lower::lanes(target, dtypes) as i64;
    for &node in &order {
        cut.index_sum(graph, node)?;
    }
    cut.choose_lanes(graph, &order);
    for &node in &order {
        let new = cut.node(graph, node)?;
        cut.new[node.index()] = new;
    }
    match &cut.new[sink.index()] {
        Some(New::Effects(effects)) if effects.len() == 1 => Ok(effects[0]),
        _ => Err(malformed(graph, sink)),
    }
}

/// What a node became.
#[derive(Clone, Debug)]
enum New {
    /// A value, in parts.
    Value(Parts),
    /// Effects: one a part of what a Store wrote, or one for all.
    Effects(Vec<NodeId>),
    /// The loop variable.
    Range(NodeId),
}

struct Cut {
    /// Normal form of index arithmetic, over tile axes and other atoms.
    sums: FxHashMap<NodeId, Sum>,
    /// Tile axes: the node that counts along one.
    axes: FxHashMap<NodeId, usize>,
    /// Which tile axes vectors may lie along.
    lanes: SmallVec<[bool; 4]>,
    greatest: i64,
    new: Vec<Option<New>>,
    next_register: u32,
}

fn malformed(graph: &Graph, node: NodeId) -> Error {
    Error::new(ErrorKind::Verify, graph.op(node).name(), "is not in the form that instruction selection takes")
}

fn dims(graph: &Graph, node: NodeId) -> Result<Dims> {
    static_shape(&graph.props(node).shape).ok_or_else(|| malformed(graph, node))
}

impl Cut {
    fn index_sum(&mut self, graph: &mut Graph, node: NodeId) -> Result<()> {
        if graph.dtype(node) != DType::Index {
            return Ok(());
        }
        let op = graph.op(node);
        let sum = match op {
            Op::Stack => return Ok(()),
            Op::Reshape => {
                let dims = dims(graph, node)?;
                let Some(axis) = dims.iter().position(|&size| size > 1) else { return Err(malformed(graph, node)) };
                self.axes.insert(node, axis);
                Sum::atom(node)
            }
            Op::Add | Op::Mul | Op::Idiv | Op::Mod => {
                let sources: SmallVec<[Sum; 2]> = graph.sources(node).iter().map(|source| self.sum(*source)).collect();
                self.affine(graph, node, op, &sources)
            }
            _ => sum::as_sum(graph, node),
        };
        self.sums.insert(node, sum);
        Ok(())
    }

    fn sum(&self, node: NodeId) -> Sum {
        self.sums.get(&node).cloned().unwrap_or_else(|| Sum::atom(node))
    }

    /// Only what stays affine: quotients were folded before, and are computed lane by lane here.
    fn affine(&self, graph: &Graph, node: NodeId, op: Op, sources: &[Sum]) -> Sum {
        match (op, sources) {
            (Op::Add, [a, b]) => a.plus(b),
            (Op::Mul, [a, b]) => match (a.as_constant(), b.as_constant()) {
                (_, Some(factor)) => a.scale(factor),
                (Some(factor), _) => b.scale(factor),
                _ => Sum::atom(node),
            },
            _ => sum::as_sum(graph, node),
        }
    }

    /// Vectors lie along the axes that some access is contiguous in.
    fn choose_lanes(&mut self, graph: &Graph, order: &[NodeId]) {
        let rank = order.iter().map(|&node| graph.props(node).rank()).max().unwrap_or(0);
        self.lanes = SmallVec::from_elem(false, rank);
        for &node in order {
            let (Op::Index, [_, index]) = (graph.op(node), graph.sources(node)) else { continue };
            let sum = self.sum(*index);
            for (atom, axis) in &self.axes {
                if let (1, Some(lane)) = (sum.coefficient(*atom), self.lanes.get_mut(*axis)) {
                    *lane = true;
                }
            }
        }
        // A reduction without a contiguous access still has lanes to add up.
        if !self.lanes.contains(&true)
            && let Some(last) = self.lanes.last_mut()
        {
            *last = true;
        }
    }

    fn layout(&self, dims: Dims) -> Layout {
        Layout::new(dims, &self.lanes, self.greatest)
    }

    fn node(&mut self, graph: &mut Graph, node: NodeId) -> Result<Option<New>> {
        let op = graph.op(node);
        if graph.dtype(node) == DType::Index && op != Op::Range && op != Op::Param {
            return match op {
                Op::Cast | Op::Idiv | Op::Mod | Op::Max | Op::Where | Op::Mul | Op::Shl | Op::Shr | Op::And
                    if self.sum(node) == Sum::atom(node) =>
                {
                    self.elementwise(graph, node).map(Some)
                }
                // Sums are computed where they are used.
                _ => Ok(None),
            };
        }
        Ok(Some(match op {
            Op::Const => New::Value(self.scalar(node)),
            Op::Range => New::Range(node),
            Op::Param => New::Value(self.scalar(node)),
            Op::Buffer => self.buffer(graph, node)?,
            Op::Index | Op::Stack => return Ok(None),
            Op::After => self.after(graph, node)?,
            Op::Load => self.load(graph, node)?,
            Op::Store | Op::AtomicAdd => self.store(graph, node)?,
            Op::Reduce => self.reduce(graph, node)?,
            Op::Expand | Op::Reshape => self.broadcast(graph, node)?,
            Op::End => {
                let sources: SmallVec<[NodeId; 2]> = graph.sources(node).into();
                let body = self.effects(graph, sources[0])?;
                let body = group(graph, &body)?;
                New::Effects(vec![graph.add(Op::End, &[body, sources[1]], Arg::None)?])
            }
            Op::Group | Op::Sink | Op::Barrier => {
                let mut effects = Vec::new();
                for source in SmallVec::<[NodeId; 4]>::from(graph.sources(node)) {
                    effects.extend(self.effects(graph, source)?);
                }
                match op {
                    Op::Group => New::Effects(effects),
                    _ => New::Effects(vec![graph.add(op, &effects, Arg::None)?]),
                }
            }
            _ if op.is_elementwise() || op == Op::Bitcast => self.elementwise(graph, node)?,
            _ => return Err(malformed(graph, node)),
        }))
    }

    fn scalar(&self, node: NodeId) -> Parts {
        Parts { layout: self.layout(Dims::new()), parts: vec![node] }
    }

    fn effects(&self, graph: &Graph, node: NodeId) -> Result<Vec<NodeId>> {
        match &self.new[node.index()] {
            Some(New::Effects(effects)) => Ok(effects.clone()),
            _ => Err(malformed(graph, node)),
        }
    }

    fn parts(&self, graph: &Graph, node: NodeId) -> Result<&Parts> {
        match &self.new[node.index()] {
            Some(New::Value(parts)) => Ok(parts),
            _ => Err(malformed(graph, node)),
        }
    }

    /// A REG buffer has one register a part; memory stays whole.
    fn buffer(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let Arg::Buffer { dtype, addrspace: AddrSpace::Reg, .. } = *graph.arg(node) else {
            return Ok(New::Value(self.scalar(node)));
        };
        let layout = self.layout(dims(graph, node)?);
        let dims = if layout.lane.is_some() { shape(&[layout.width]) } else { shape(&[]) };
        let dims = graph.shape(&dims)?;
        let mut parts = Vec::with_capacity(layout.count());
        for _ in 0..layout.count() {
            let slot = self.next_register;
            self.next_register += 1;
            let arg = Arg::Buffer { slot, dtype, device: None, addrspace: AddrSpace::Reg };
            parts.push(graph.add(Op::Buffer, &[dims], arg)?);
        }
        Ok(New::Value(Parts { layout, parts }))
    }

    fn after(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        let mut value = self.parts(graph, sources[0])?.clone();
        let mut after: Vec<SmallVec<[NodeId; 4]>> =
            value.parts.iter().map(|&part| SmallVec::from_iter([part])).collect();
        for &dependency in &sources[1..] {
            let effects = match &self.new[dependency.index()] {
                Some(New::Effects(effects)) => effects.clone(),
                Some(New::Range(range)) => vec![*range],
                // A value that must have been read before.
                Some(New::Value(value)) => value.parts.clone(),
                _ => return Err(malformed(graph, node)),
            };
            for (part, after) in after.iter_mut().enumerate() {
                // A part of a register tile waits for its own Store only.
                match effects.get(part) {
                    Some(&effect) if effects.len() == value.parts.len() => after.push(effect),
                    _ => after.extend(effects.iter().copied()),
                }
            }
        }
        for (part, sources) in value.parts.iter_mut().zip(&after) {
            *part = graph.add(Op::After, sources, Arg::None)?;
        }
        Ok(New::Value(value))
    }

    /// The machine value of `node` for the part of `layout` that starts at `at`: a vector or scalar, as it comes.
    fn part(&mut self, graph: &mut Graph, node: NodeId, layout: &Layout, at: &[i64]) -> Result<NodeId> {
        if graph.dtype(node) == DType::Index && !self.has_parts(node) {
            return self.index_part(graph, node, layout, at);
        }
        let value = self.parts(graph, node)?;
        let (part, lane) = value.layout.find(at);
        let found = *value.parts.get(part).ok_or_else(|| malformed(graph, node))?;
        let same_axis = value.layout.lane == layout.lane;
        if value.layout.lane.is_none() || same_axis || graph.props(found).shape.is_empty() {
            return Ok(found);
        }
        extract(graph, found, lane)
    }

    fn has_parts(&self, node: NodeId) -> bool {
        matches!(self.new.get(node.index()), Some(Some(New::Value(_))))
    }

    fn elementwise(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let (op, arg) = (graph.op(node), machine_arg(graph.arg(node)));
        let layout = self.layout(dims(graph, node)?);
        let sources: SmallVec<[NodeId; 3]> = graph.sources(node).into();
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let mut operands: SmallVec<[NodeId; 3]> = SmallVec::new();
            for &source in &sources {
                operands.push(self.part(graph, source, &layout, &at)?);
            }
            unify_integers(graph, op, &mut operands)?;
            let width = operands.iter().map(|&operand| lanes(graph, operand)).max().unwrap_or(1);
            for operand in &mut operands {
                *operand = splat(graph, *operand, width)?;
            }
            parts.push(fold::elementwise(graph, op, &operands, arg.clone())?);
        }
        Ok(New::Value(Parts { layout, parts }))
    }

    fn broadcast(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let layout = self.layout(dims(graph, node)?);
        let source = graph.source(node, 0);
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            parts.push(self.part(graph, source, &layout, &at)?);
        }
        Ok(New::Value(Parts { layout, parts }))
    }

    /// An index scalar or tile as machine integers: i64 scalars, and vectors as narrow as their values allow.
    fn index_part(&mut self, graph: &mut Graph, node: NodeId, layout: &Layout, at: &[i64]) -> Result<NodeId> {
        let sum = self.sum(node);
        let (base, stride, rest) = self.address(graph, &sum, layout, at)?;
        if stride == 0 && rest.is_empty() {
            return scalar_sum(graph, &base);
        }
        let bounds = sum.bounds(graph);
        let narrow = bounds.is_some_and(|(low, high)| low >= i32::MIN as i128 && high <= i32::MAX as i128);
        let dtype = if narrow { DType::I32 } else { DType::I64 };
        // What differs from lane to lane is a constant vector, together with the constant of the sum.
        let steps: SmallVec<[NodeId; 16]> = (0..layout.width)
            .map(|lane| lane.wrapping_mul(stride).wrapping_add(base.constant))
            .map(|number| graph.constant(Const::int(dtype, number as i128)))
            .collect();
        let mut total = graph.add(Op::Stack, &steps, Arg::None)?;
        if !base.terms.is_empty() {
            let base = scalar_sum(graph, &Sum { constant: 0, ..base })?;
            let base = cast(graph, base, dtype)?;
            let base = splat(graph, base, layout.width)?;
            total = graph.alu(Op::Add, &[base, total])?;
        }
        for (vector, factor) in rest {
            let vector = cast(graph, vector, dtype)?;
            let factor = graph.constant(Const::int(dtype, factor as i128));
            let factor = splat(graph, factor, layout.width)?;
            let term = graph.alu(Op::Mul, &[vector, factor])?;
            total = graph.alu(Op::Add, &[total, term])?;
        }
        Ok(total)
    }

    /// A sum at the first lane of a part, what a lane adds, and the atoms that differ irregularly from lane to lane.
    #[allow(clippy::type_complexity)]
    fn address(
        &mut self,
        graph: &mut Graph,
        sum: &Sum,
        layout: &Layout,
        at: &[i64],
    ) -> Result<(Sum, i64, SmallVec<[(NodeId, i64); 2]>)> {
        let (mut base, mut stride, mut rest) = (Sum::constant(sum.constant), 0i64, SmallVec::new());
        for &(atom, coefficient) in &sum.terms {
            if let Some(&axis) = self.axes.get(&atom) {
                base.constant = base.constant.wrapping_add(coefficient.wrapping_mul(at[axis]));
                if Some(axis) == layout.lane {
                    stride = stride.wrapping_add(coefficient);
                }
            } else if self.has_parts(atom) {
                let part = self.part(graph, atom, layout, at)?;
                if graph.props(part).shape.is_empty() {
                    base = base.plus(&Sum::atom(part).scale(coefficient));
                } else {
                    rest.push((part, coefficient));
                }
            } else {
                base = base.plus(&Sum::atom(atom).scale(coefficient));
            }
        }
        Ok((base, stride, rest))
    }

    fn load(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
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
        let buffer = self.parts(graph, buffer)?.parts[0];
        let sum = self.sum(index);
        let mut parts = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let (base, stride, rest) = self.address(graph, &sum, &layout, &at)?;
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
            let (place, width) = if stride == 1 && rest.is_empty() {
                (contiguous(graph, buffer, &base, layout.width)?, layout.width)
            } else if stride == 0 && rest.is_empty() && gate_lanes == 1 {
                let offset = scalar_sum(graph, &base)?;
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

    fn store(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let sources: SmallVec<[NodeId; 3]> = graph.sources(node).into();
        let (op, arg) = (graph.op(node), graph.arg(node).clone());
        let (Op::Index, [buffer, index]) = (graph.op(sources[0]), graph.sources(sources[0])) else {
            return self.store_register(graph, &sources);
        };
        let (buffer, index) = (*buffer, *index);
        let layout = self.layout(self.access_dims(graph, &sources, index)?);
        let buffer = self.parts(graph, buffer)?.parts[0];
        let sum = self.sum(index);
        let mut effects = Vec::with_capacity(layout.count());
        for at in layout.starts() {
            let (base, stride, rest) = self.address(graph, &sum, &layout, &at)?;
            let value = self.part(graph, sources[1], &layout, &at)?;
            let gate = match sources.get(2) {
                Some(&gate) => Some(self.part(graph, gate, &layout, &at)?),
                None => None,
            };
            let gate = match gate.map(|gate| (gate, graph.as_int(gate))) {
                Some((_, Some(0))) => continue,
                Some((gate, None)) => Some(gate),
                _ => None,
            };
            if layout.width > 1 && stride == 1 && rest.is_empty() && op == Op::Store {
                let place = contiguous(graph, buffer, &base, layout.width)?;
                let value = splat(graph, value, layout.width)?;
                effects.push(store(graph, op, place, value, gate, arg.clone())?);
                continue;
            }
            for lane in 0..layout.width {
                let mut offset = base.clone();
                offset.constant = offset.constant.wrapping_add(stride.wrapping_mul(lane));
                for &(vector, factor) in &rest {
                    let element = extract(graph, vector, lane)?;
                    offset = offset.plus(&Sum::atom(element).scale(factor));
                }
                let offset = scalar_sum(graph, &offset)?;
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

    /// Across tile axes: parts first, pairwise; the lanes of what is left come last.
    fn reduce(&mut self, graph: &mut Graph, node: NodeId) -> Result<New> {
        let Arg::Reduce { op, axes } = graph.arg(node).clone() else { return Err(malformed(graph, node)) };
        let source = graph.source(node, 0);
        let from = self.layout(dims(graph, source)?);
        let to = self.layout(dims(graph, node)?);
        let across_lanes = from.lane.is_some_and(|lane| axes.contains(&(lane as u32)));
        // Results are numbered by where their first lane starts.
        let mut gathered: FxHashMap<Dims, Vec<NodeId>> = FxHashMap::default();
        for at in from.starts() {
            let part = self.part(graph, source, &from, &at)?;
            let part = splat(graph, part, from.width)?;
            let mut kept = at.clone();
            axes.iter().for_each(|&axis| kept[axis as usize] = 0);
            gathered.entry(kept).or_default().push(part);
        }
        let mut results: FxHashMap<Dims, NodeId> = FxHashMap::default();
        for (at, parts) in gathered {
            let mut total = pairwise(graph, op, parts)?;
            if across_lanes {
                let arg = Arg::Reduce { op, axes: Axes::from_iter([0]) };
                let single = graph.add(Op::Reduce, &[total], arg)?;
                total = extract(graph, single, 0)?;
            }
            results.insert(at, total);
        }
        let mut parts = Vec::with_capacity(to.count());
        for at in to.starts() {
            // The result may lie along another axis than the source did: build its vectors lane by lane.
            let lane_of = |lane: i64| {
                let mut at = at.clone();
                if let Some(axis) = to.lane {
                    at[axis] += lane;
                }
                results.get(&at).copied()
            };
            let part = match (lane_of(0), to.lane) {
                (Some(part), Some(lane)) if from.lane != Some(lane) => {
                    let _ = part;
                    let elements: Option<SmallVec<[NodeId; 16]>> = (0..to.width).map(lane_of).collect();
                    elements.map(|elements| graph.add(Op::Stack, &elements, Arg::None)).transpose()?
                }
                (part, _) => part,
            };
            parts.push(part.ok_or_else(|| malformed(graph, node))?);
        }
        Ok(New::Value(Parts { layout: to, parts }))
    }
}

/// The same node for casts to `index`, which has become i64.
fn machine_arg(arg: &Arg) -> Arg {
    match arg {
        Arg::DType(DType::Index) => Arg::DType(DType::I64),
        other => other.clone(),
    }
}

fn group(graph: &mut Graph, effects: &[NodeId]) -> Result<NodeId> {
    match effects {
        [effect] => Ok(*effect),
        _ => graph.add(Op::Group, effects, Arg::None),
    }
}

/// Lanes of a machine value.
fn lanes(graph: &Graph, node: NodeId) -> i64 {
    graph.props(node).shape.first().and_then(|dim| dim.as_const()).unwrap_or(1)
}

fn splat(graph: &mut Graph, value: NodeId, width: i64) -> Result<NodeId> {
    if width == 1 || !graph.props(value).shape.is_empty() {
        return Ok(value);
    }
    let dims = graph.shape(&shape(&[width]))?;
    graph.add(Op::Expand, &[value, dims], Arg::None)
}

fn extract(graph: &mut Graph, value: NodeId, lane: i64) -> Result<NodeId> {
    if graph.props(value).shape.is_empty() {
        return Ok(value);
    }
    let lane = graph.index(lane);
    graph.add(Op::Index, &[value, lane], Arg::None)
}

fn cast(graph: &mut Graph, value: NodeId, dtype: DType) -> Result<NodeId> {
    if graph.dtype(value) == dtype {
        return Ok(value);
    }
    if let Some(number) = graph.as_int(value) {
        return Ok(graph.constant(Const::int(dtype, number)));
    }
    graph.add(Op::Cast, &[value], Arg::DType(dtype))
}

/// Index operands may have come out as i32 vectors beside i64 scalars: one type that holds all of them.
fn unify_integers(graph: &mut Graph, op: Op, operands: &mut [NodeId]) -> Result<()> {
    let values = if op == Op::Where { 1.. } else { 0.. };
    let Some(values) = operands.get_mut(values) else { return Ok(()) };
    let mixed = values.windows(2).any(|pair| graph.dtype(pair[0]) != graph.dtype(pair[1]));
    if mixed && values.iter().all(|&value| matches!(graph.dtype(value), DType::I32 | DType::I64)) {
        let narrow = |&value: &NodeId| {
            let bounds = graph.props(value).interval.int();
            bounds.is_some_and(|(low, high)| low >= i32::MIN as i128 && high <= i32::MAX as i128)
        };
        let dtype = if values.iter().all(narrow) { DType::I32 } else { DType::I64 };
        for value in values {
            *value = cast(graph, *value, dtype)?;
        }
    }
    Ok(())
}

/// A sum of machine integers and Ranges, as i64.
fn scalar_sum(graph: &mut Graph, sum: &Sum) -> Result<NodeId> {
    let mut total: Option<NodeId> = None;
    for &(atom, coefficient) in &sum.terms {
        let atom = cast(graph, atom, DType::I64)?;
        let term = match coefficient {
            1 => atom,
            _ => {
                let factor = graph.constant(Const::int(DType::I64, coefficient as i128));
                graph.alu(Op::Mul, &[atom, factor])?
            }
        };
        total = Some(match total {
            Some(total) => graph.alu(Op::Add, &[total, term])?,
            None => term,
        });
    }
    let constant = graph.constant(Const::int(DType::I64, sum.constant as i128));
    match total {
        Some(total) if sum.constant != 0 => graph.alu(Op::Add, &[total, constant]),
        Some(total) => Ok(total),
        None => Ok(constant),
    }
}

/// The address of `width` consecutive elements.
fn contiguous(graph: &mut Graph, buffer: NodeId, base: &Sum, width: i64) -> Result<NodeId> {
    let offset = scalar_sum(graph, base)?;
    if width == 1 {
        return graph.add(Op::Index, &[buffer, offset], Arg::None);
    }
    let offset = graph.add(Op::Stack, &[offset], Arg::None)?;
    let dims = graph.shape(&shape(&[width]))?;
    graph.add(Op::Shrink, &[buffer, offset, dims], Arg::None)
}

fn store(graph: &mut Graph, op: Op, place: NodeId, value: NodeId, gate: Option<NodeId>, arg: Arg) -> Result<NodeId> {
    match gate {
        Some(gate) => graph.add(op, &[place, value, gate], arg),
        None => graph.add(op, &[place, value], arg),
    }
}

/// A balanced tree, for the sake of latency and rounding.
fn pairwise(graph: &mut Graph, op: Op, mut values: Vec<NodeId>) -> Result<NodeId> {
    while values.len() > 1 {
        let mut next = Vec::with_capacity(values.len().div_ceil(2));
        for pair in values.chunks(2) {
            next.push(match *pair {
                [a, b] => graph.alu(op, &[a, b])?,
                [a] => a,
                _ => continue,
            });
        }
        values = next;
    }
    values.first().copied().ok_or_else(|| Error::new(ErrorKind::Verify, op.name(), "a reduction of nothing"))
}
