//! The rule of each op, from the cotangent of a node to the contributions to its sources.

use crate::masks::repeated;
use crate::ops::{self, arithmetic, creation, elementwise, movement, slope, trigonometry};
use crate::views::{self, View};
use crate::{AddrSpace, Arg, Axes, Builder, Const, DType, Dim, Error, ErrorKind, Graph, NodeId, Op, Result, Shape};
use smallvec::{SmallVec, smallvec};
use std::f64::consts::LN_2;

type Contributions = SmallVec<[(NodeId, NodeId); 3]>;

/// Contributions to those sources of `node` that are floats and connected to wanted nodes.
pub(super) fn apply(
    graph: &mut Graph,
    node: NodeId,
    g: NodeId,
    connected: &[bool],
    wanted: &[NodeId],
) -> Result<Contributions> {
    let sources: SmallVec<[NodeId; 4]> = graph.sources(node).into();
    let needs = |graph: &Graph, source: NodeId| connected[source.index()] && graph.dtype(source).is_float();
    if let Some(x) = trigonometry::cosine_of(graph, node) {
        let sine = graph.alu(Op::Sin, &[x])?;
        let slope = arithmetic::neg(graph, sine)?;
        return Ok(smallvec![(x, mul(graph, g, slope)?)]);
    }
    if let Some((x, slope)) = slope::slope_of(graph, node, wanted) {
        return Ok(smallvec![(x, mul(graph, g, slope)?)]);
    }
    if let Some((x, contribution)) = super::scan::contribution(graph, node, g, wanted)? {
        return Ok(smallvec![(x, contribution)]);
    }
    let arg = graph.arg(node).clone();
    let mut contributions: Contributions = match (graph.op(node), sources.as_slice()) {
        (Op::Add, &[a, b]) => smallvec![(a, g), (b, g)],
        (Op::Mul, &[a, b]) => smallvec![(a, mul(graph, g, b)?), (b, mul(graph, g, a)?)],
        (Op::Mulacc, &[a, b, c]) => smallvec![(a, mul(graph, g, b)?), (b, mul(graph, g, a)?), (c, g)],
        (Op::Max, &[a, b]) => {
            let (left, right) = max(graph, a, b, g)?;
            smallvec![(a, left), (b, right)]
        }
        (Op::Where, &[condition, a, b]) => {
            let zero = scalar(graph, g, 0.0);
            let left = graph.alu(Op::Where, &[condition, g, zero])?;
            let right = graph.alu(Op::Where, &[condition, zero, g])?;
            smallvec![(a, left), (b, right)]
        }
        (Op::Div, &[a, b]) => {
            let left = graph.alu(Op::Div, &[g, b])?;
            let ratio = mul(graph, left, node)?;
            smallvec![(a, left), (b, arithmetic::neg(graph, ratio)?)]
        }
        (Op::Recip, &[x]) => {
            let squared = mul(graph, node, node)?;
            let product = mul(graph, g, squared)?;
            smallvec![(x, arithmetic::neg(graph, product)?)]
        }
        (Op::Sqrt, &[x]) => {
            let half = scalar(graph, g, 0.5);
            let halved = mul(graph, g, half)?;
            smallvec![(x, graph.alu(Op::Div, &[halved, node])?)]
        }
        (Op::Exp2, &[x]) => {
            let slope = scaled(graph, node, LN_2)?;
            smallvec![(x, mul(graph, g, slope)?)]
        }
        (Op::Log2, &[x]) => {
            let base = scaled(graph, x, LN_2)?;
            smallvec![(x, graph.alu(Op::Div, &[g, base])?)]
        }
        (Op::Sin, &[x]) => {
            let cosine = trigonometry::cos(graph, x)?;
            smallvec![(x, mul(graph, g, cosine)?)]
        }
        (Op::Pow, &[a, b]) => {
            let mut pair = Contributions::new();
            if needs(graph, a) {
                pair.push((a, pow_base(graph, a, b, g)?));
            }
            if needs(graph, b) {
                pair.push((b, pow_exponent(graph, node, a, g)?));
            }
            pair
        }
        (Op::Mod, &[a, b]) => {
            let ratio = graph.alu(Op::Div, &[a, b])?;
            let quotient = elementwise::floor(graph, ratio)?;
            let product = mul(graph, g, quotient)?;
            smallvec![(a, g), (b, arithmetic::neg(graph, product)?)]
        }
        // A step function is connected, with slope 0.
        (Op::Trunc | Op::Idiv, inputs) => {
            let zero = scalar(graph, g, 0.0);
            let shape = graph.props(g).shape.clone();
            let zeros = movement::expand(graph, zero, &shape)?;
            inputs.iter().map(|&input| (input, zeros)).collect()
        }
        (Op::Cast, &[x]) => smallvec![(x, {
            let dtype = graph.dtype(x);
            if dtype.is_float() { ops::cast(graph, g, dtype)? } else { g }
        })],
        (Op::Contiguous, &[x]) | (Op::Custom, &[x, ..]) => smallvec![(x, g)],
        (Op::Load, &[x]) => smallvec![(x, moved_back(graph, x, g)?)],
        (Op::Replicated, &[x]) => smallvec![(x, first_shard(graph, x, &arg, g)?)],
        (Op::ContiguousBackward, &[x]) => smallvec![(x, graph.alu(Op::Contiguous, &[g])?)],
        (Op::Reshape, &[x, _]) => {
            let shape = graph.props(x).shape.clone();
            smallvec![(x, movement::reshape(graph, g, &shape)?)]
        }
        // The caller sums over broadcast axes.
        (Op::Expand, &[x, _]) => smallvec![(x, g)],
        (Op::Permute, &[x]) => smallvec![(x, inverse_permute(graph, g, &arg)?)],
        (Op::Flip, &[x]) => smallvec![(x, graph.add(Op::Flip, &[g], arg)?)],
        (Op::Pad, &[x, offset, _]) => {
            let shape = graph.props(x).shape.clone();
            let shape = graph.shape(&shape)?;
            smallvec![(x, graph.alu(Op::Shrink, &[g, offset, shape])?)]
        }
        (Op::Shrink, &[x, offset, _]) => {
            let shape = graph.props(x).shape.clone();
            let shape = graph.shape(&shape)?;
            smallvec![(x, graph.alu(Op::Pad, &[g, offset, shape])?)]
        }
        (Op::Stack, items) => stack(graph, items, g)?,
        (Op::Index, [x, indices @ ..]) => smallvec![(*x, scatter(graph, *x, indices, g)?)],
        (Op::Reduce, &[x]) => smallvec![(x, reduce(graph, node, x, &arg, g)?)],
        (Op::After, &[_, call, _]) if crate::kernel::code(graph, call).is_some() => {
            let name = crate::kernel::name(graph, call).unwrap_or_default();
            let message = "a kernel written by hand has no gradient of its own".to_string();
            return Err(Error::new(ErrorKind::Gradient, name, message)
                .help("name one: `#[gradient(path)]` before its `fn`, with the path of a #[function]"));
        }
        // Its Call is differentiated once for all of its results.
        (Op::After, &[_, call, _]) if crate::custom_function::of_call(graph, call).is_some() => smallvec![],
        (Op::After, _) => assigned(graph, node, g)?,
        (Op::GetTuple, &[tuple]) => match (graph.op(tuple), &arg) {
            (Op::Tuple, Arg::Number(number)) => {
                graph.sources(tuple).get(*number as usize).map(|&element| (element, g)).into_iter().collect()
            }
            _ => return refuse(Op::Function, "inline Functions before taking a gradient"),
        },
        (Op::Detach, _) => smallvec![],
        (op, _) => return refuse(op, "no rule gives its gradient"),
    };
    contributions.retain(|(source, _)| needs(graph, *source));
    Ok(contributions)
}

fn refuse<T>(op: Op, why: &str) -> Result<T> {
    Err(Error::new(ErrorKind::Gradient, op.name(), format!("has no gradient: {why}"))
        .help("`.detach()` stops it there"))
}

fn mul(graph: &mut Graph, a: NodeId, b: NodeId) -> Result<NodeId> {
    graph.alu(Op::Mul, &[a, b])
}

fn scalar(graph: &mut Graph, like: NodeId, value: f64) -> NodeId {
    let dtype = graph.dtype(like);
    graph.constant(Const::float(dtype, value))
}

fn scaled(graph: &mut Graph, x: NodeId, factor: f64) -> Result<NodeId> {
    let factor = scalar(graph, x, factor);
    mul(graph, x, factor)
}

/// Ties share the gradient equally.
fn max(graph: &mut Graph, a: NodeId, b: NodeId, g: NodeId) -> Result<(NodeId, NodeId)> {
    let (zero, half) = (scalar(graph, g, 0.0), scaled(graph, g, 0.5)?);
    let (less, greater) = (graph.alu(Op::CmpLt, &[a, b])?, graph.alu(Op::CmpLt, &[b, a])?);
    let not_less = graph.alu(Op::Where, &[less, zero, half])?;
    let left = graph.alu(Op::Where, &[greater, g, not_less])?;
    let not_greater = graph.alu(Op::Where, &[greater, zero, half])?;
    let right = graph.alu(Op::Where, &[less, g, not_greater])?;
    Ok((left, right))
}

/// `b * a^(b-1)`, and 0 where b is 0 (so that 0^0 is flat).
fn pow_base(graph: &mut Graph, a: NodeId, b: NodeId, g: NodeId) -> Result<NodeId> {
    if graph.as_const(repeated(graph, b)).and_then(Const::as_float) == Some(0.0) {
        let (zero, shape) = (scalar(graph, g, 0.0), graph.props(g).shape.clone());
        return movement::expand(graph, zero, &shape);
    }
    let (zero, minus) = (scalar(graph, b, 0.0), scalar(graph, b, -1.0));
    let lower = graph.alu(Op::Add, &[b, minus])?;
    let power = graph.alu(Op::Pow, &[a, lower])?;
    let slope = mul(graph, b, power)?;
    let flat = arithmetic::eq(graph, b, zero)?;
    let slope = graph.alu(Op::Where, &[flat, zero, slope])?;
    mul(graph, g, slope)
}

/// `a^b * ln a`, and 0 where a is 0.
fn pow_exponent(graph: &mut Graph, power: NodeId, a: NodeId, g: NodeId) -> Result<NodeId> {
    let zero = scalar(graph, a, 0.0);
    let log = elementwise::log(graph, a)?;
    let slope = mul(graph, power, log)?;
    let at_zero = arithmetic::eq(graph, a, zero)?;
    let slope = graph.alu(Op::Where, &[at_zero, zero, slope])?;
    mul(graph, g, slope)
}

fn inverse_permute(graph: &mut Graph, g: NodeId, arg: &Arg) -> Result<NodeId> {
    let Arg::Axes(order) = arg else { return Ok(g) };
    let mut inverse: Axes = order.clone();
    for (to, &from) in order.iter().enumerate() {
        inverse[from as usize] = to as u32;
    }
    graph.add(Op::Permute, &[g], Arg::Axes(inverse))
}

fn stack(graph: &mut Graph, items: &[NodeId], g: NodeId) -> Result<Contributions> {
    let mut contributions = Contributions::new();
    for (position, &item) in items.iter().enumerate() {
        let piece = movement::narrow(graph, g, 0, position as i64, 1)?;
        let shape = graph.props(item).shape.clone();
        contributions.push((item, movement::reshape(graph, piece, &shape)?));
    }
    Ok(contributions)
}

/// Scatters the cotangent to the indices, one indexed axis after the other, the last one first.
fn scatter(graph: &mut Graph, x: NodeId, indices: &[NodeId], g: NodeId) -> Result<NodeId> {
    let shape = graph.props(x).shape.clone();
    let mut g = g;
    for (axis, &index) in indices.iter().enumerate().rev() {
        let before: usize = indices[..axis].iter().map(|&index| graph.props(index).rank()).sum();
        g = scatter_axis(graph, g, index, &shape[axis], before)?;
    }
    Ok(g)
}

/// From `before + S + after` to `before + (length) + after`, where S is the shape of `index`.
fn scatter_axis(graph: &mut Graph, g: NodeId, index: NodeId, length: &Dim, before: usize) -> Result<NodeId> {
    let (g_shape, index_shape) = (graph.props(g).shape.clone(), graph.props(index).shape.clone());
    let mut wide = g_shape.clone();
    wide.insert(before, Dim::from(1));
    let wide_g = movement::reshape(graph, g, &wide)?;
    let after = g_shape.len() - before - index_shape.len();
    let ones = |count: usize| std::iter::repeat_n(Dim::from(1), count);
    let index = ops::index::wide(graph, index)?;
    let dtype = graph.dtype(index);
    let wide_index: Shape = ones(1).chain(index_shape.iter().cloned()).chain(ones(after)).collect();
    let index = movement::reshape(graph, index, &wide_index)?;
    // Each term has an index of its own: a mask shared by many terms would be stored, with all positions times all
    // indices.
    let index = movement::expand(graph, index, &wide)?;
    let positions = creation::arange_dim(graph, length, dtype)?;
    let wide_positions: Shape = [length.clone()].into_iter().chain(ones(index_shape.len() + after)).collect();
    let positions = movement::reshape(graph, positions, &wide_positions)?;
    let hit = arithmetic::eq(graph, index, positions)?;
    let zero = scalar(graph, g, 0.0);
    let spread = graph.alu(Op::Where, &[hit, wide_g, zero])?;
    let axes: Vec<i64> = (0..index_shape.len()).map(|axis| (before + 1 + axis) as i64).collect();
    ops::reduce::sum(graph, spread, Some(&axes), false)
}

fn reduce(graph: &mut Graph, node: NodeId, x: NodeId, arg: &Arg, g: NodeId) -> Result<NodeId> {
    let Arg::Reduce { op, axes } = arg else { return refuse(Op::Reduce, "it reduces Ranges") };
    let shape = graph.props(x).shape.clone();
    let positions: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    match op {
        Op::Add => movement::expand(graph, g, &shape),
        // All elements that equal the maximum share the gradient.
        Op::Max => {
            // The masked value may be recomputed and round differently while its terms are in memory, so the terms are
            // compared.
            let hit = arithmetic::eq(graph, x, node)?;
            let (mask, _) = chosen(graph, *op, x);
            let hit = both(graph, mask, hit)?;
            let (zero, one) = (scalar(graph, x, 0.0), scalar(graph, x, 1.0));
            let hits = graph.alu(Op::Where, &[hit, one, zero])?;
            let count = ops::reduce::sum(graph, hits, Some(&positions), true)?;
            let count = if mask.is_some() { arithmetic::maximum(graph, count, one)? } else { count };
            let share = graph.alu(Op::Div, &[g, count])?;
            mul(graph, hits, share)
        }
        _ => {
            let slope = match chosen(graph, *op, x).0 {
                None => super::scan::products_of_others(graph, x, &positions)?,
                Some(_) => None,
            };
            let slope = slope.map_or_else(|| product_slope(graph, x, &positions), Ok)?;
            mul(graph, g, slope)
        }
    }
}

/// The product of the other elements where running products are not available, without dividing by 0: nonzero elements
/// are divided out of the product of all nonzero elements, and the other zeros are multiplied. For up to two zeros this
/// product is written with sums of powers, `((Σz)² - Σz²) / 2`, so that zeros have slopes, too: third derivatives are
/// exact.
fn product_slope(graph: &mut Graph, x: NodeId, axes: &[i64]) -> Result<NodeId> {
    let (mask, value) = chosen(graph, Op::Mul, x);
    let (zero, one) = (scalar(graph, x, 0.0), scalar(graph, x, 1.0));
    let is_zero = arithmetic::eq(graph, value, zero)?;
    let is_zero = both(graph, mask, is_zero)?;
    let differs = graph.alu(Op::CmpNe, &[value, zero])?;
    let is_factor = both(graph, mask, differs)?;
    let factors = graph.alu(Op::Where, &[is_factor, value, one])?;
    let product = ops::reduce::prod(graph, factors, Some(axes), true)?;
    let without = graph.alu(Op::Div, &[product, factors])?;
    let zeros = graph.alu(Op::Where, &[is_zero, value, zero])?;
    let flags = graph.alu(Op::Where, &[is_zero, one, zero])?;
    let squares = mul(graph, zeros, zeros)?;
    let mut others = |terms: NodeId| -> Result<NodeId> {
        let total = ops::reduce::sum(graph, terms, Some(axes), true)?;
        arithmetic::sub(graph, total, terms)
    };
    let (count, sum, squares) = (others(flags)?, others(zeros)?, others(squares)?);
    let two = scalar(graph, x, 2.0);
    let squared = mul(graph, sum, sum)?;
    let twice = arithmetic::sub(graph, squared, squares)?;
    let pair = graph.alu(Op::Div, &[twice, two])?;
    let [none, single, double] = [zero, one, two].map(|number| arithmetic::eq(graph, count, number));
    let rest = graph.alu(Op::Where, &[double?, pair, zero])?;
    let rest = graph.alu(Op::Where, &[single?, sum, rest])?;
    // An overflowing product times 0 counts as 0.
    let is_finite = elementwise::isfinite(graph, without)?;
    let bounded = graph.alu(Op::Where, &[is_finite, without, zero])?;
    let rest = mul(graph, bounded, rest)?;
    graph.alu(Op::Where, &[none?, without, rest])
}

/// If a mask selects the terms of a Reduce and the others are its identity, the mask and the selected value. A gradient
/// computed under the same mask can become a scatter, like the Reduce itself.
fn chosen(graph: &Graph, op: Op, x: NodeId) -> (Option<NodeId>, NodeId) {
    let nothing = crate::eval::identity(op, graph.dtype(x));
    match (graph.op(x), graph.sources(x)) {
        (Op::Where, &[mask, value, other]) if graph.as_const(other) == Some(nothing) => (Some(mask), value),
        _ => (None, x),
    }
}

fn both(graph: &mut Graph, mask: Option<NodeId>, condition: NodeId) -> Result<NodeId> {
    match mask {
        Some(mask) => graph.alu(Op::And, &[mask, condition]),
        None => Ok(condition),
    }
}

/// The gradient goes to the stored values, that of the last store first, and to the buffer's old contents only where
/// gates and views leave them.
fn assigned(graph: &mut Graph, node: NodeId, g: NodeId) -> Result<Contributions> {
    let view = |graph: &Graph, node: NodeId| {
        View::of(graph, node).or_else(|op| refuse(Op::Store, &format!("cannot write through {}", graph.op(op))))
    };
    let stores = views::stores(graph, node).unwrap_or_default();
    let seen = view(graph, graph.source(node, 0))?;
    let zero = scalar(graph, g, 0.0);
    let mut left = g;
    if !seen.is_whole() {
        let shape = graph.props(seen.base).shape.clone();
        let zeros = movement::expand(graph, zero, &shape)?;
        left = seen.written(graph, zeros, g)?;
    }
    let mut contributions = Contributions::new();
    for store in stores.into_iter().rev() {
        let target = view(graph, graph.source(store, 0))?;
        let stored = target.read(graph, left)?;
        match *graph.sources(store) {
            [_, value, gate] => {
                contributions.push((value, graph.alu(Op::Where, &[gate, stored, zero])?));
                let kept = graph.alu(Op::Where, &[gate, zero, stored])?;
                left = target.written(graph, left, kept)?;
            }
            _ => {
                contributions.push((graph.source(store, 1), stored));
                if target.is_whole() {
                    return Ok(contributions);
                }
                left = target.written(graph, left, zero)?;
            }
        }
        // An earlier state takes the rest.
        if target.state(graph, seen.base, seen.base) != seen.base {
            contributions.push((target.base, left));
            return Ok(contributions);
        }
    }
    contributions.push((seen.base, left));
    Ok(contributions)
}

/// The cotangent of a move, moved back to the source's device.
fn moved_back(graph: &mut Graph, x: NodeId, g: NodeId) -> Result<NodeId> {
    let device = graph.props(x).device.clone();
    if device.is_none() || device == graph.props(g).device {
        return Ok(g);
    }
    graph.add(Op::Load, &[g], Arg::Load { device, addrspace: AddrSpace::Global })
}

/// All shards are equal, so the first one alone gets the cotangent.
fn first_shard(graph: &mut Graph, x: NodeId, arg: &Arg, g: NodeId) -> Result<NodeId> {
    let Arg::Number(axis) = arg else { return Ok(g) };
    let shape = graph.props(x).shape.clone();
    let count = shape[*axis as usize].clone();
    let g = movement::unsqueeze(graph, g, (*axis).into())?;
    let g = movement::expand(graph, g, &shape)?;
    let number = match count.as_const() {
        Some(count) => ops::creation::arange(graph, 0.0, count as f64, 1.0, DType::I32)?,
        None => return Err(Error::new(ErrorKind::Gradient, "replicated", "the number of shards is not known")),
    };
    let mut column: Shape = std::iter::repeat_n(Dim::from(1), shape.len()).collect();
    column[*axis as usize] = count;
    let number = movement::reshape(graph, number, &column)?;
    let number = movement::expand(graph, number, &shape)?;
    let one = ops::like(graph, number, 1.0);
    let is_first = graph.alu(Op::CmpLt, &[number, one])?;
    let zero = ops::like(graph, g, 0.0);
    graph.alu(Op::Where, &[is_first, g, zero])
}
