//! Delinearization: a Range of which a Load reads the digits, `r / b` and `r % b`, becomes a Range for each digit.
//!
//! A reshape that merges axes leaves such a Range where their elements are not adjacent: repeated rows, channels that become pixels,
//! heads that become one row. Vectors and register tiles need indices that are affine in the Ranges. If the base does not
//! divide the trip count, because only part of a reshape is read, the outer trip count is rounded up and accesses past the end are gated.

use crate::lower::live::next_range_id;
use crate::lower::loops::closed;
use crate::lower::replace::Replacement;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::{Arg, AxisType, Builder, Graph, NodeId, Op, Result};

/// A Range, the base of its last digit, and its trips.
struct Digits {
    range: NodeId,
    base: i64,
    trips: i64,
}

/// The kernel with a Range for each digit that a Load reads.
pub(in super::super) fn delinearize(graph: &mut Graph, sink: NodeId) -> Result<NodeId> {
    let mut sink = sink;
    while let Some(digits) = find(graph, sink) {
        sink = split(graph, sink, &digits)?;
    }
    Ok(sink)
}

/// A kernel of more loops keeps them: how many lowering can tell apart is limited.
const MOST_LOOPS: usize = 24;
/// The shortest last digit that gets a Range of its own outside of sums of products, whose tiles may span several digits: a shorter
/// one is interleaved.
const SHORTEST: i64 = 9;
/// The fewest outer trips of which the last may be partial: with fewer, gated-off iterations would take too large a share of the time.
const LEAST_ROUNDS: i64 = 3;

fn find(graph: &Graph, sink: NodeId) -> Option<Digits> {
    let order = graph.reachable(&[sink]);
    if order.iter().filter(|&&node| graph.op(node) == Op::Range).count() > MOST_LOOPS {
        return None;
    }
    let is_product = |&node: &NodeId| match graph.arg(node) {
        Arg::Reduce { op: Op::Add, .. } => graph.op(graph.source(node, 0)) == Op::Mul,
        _ => false,
    };
    let is_load = |&node: &NodeId| graph.op(node) == Op::Load;
    let has_atomics = order.iter().any(|&node| graph.op(node) == Op::AtomicAdd);
    let is_whole = |digits: &Digits| digits.trips % digits.base == 0;
    let is_long = |digits: &Digits| {
        let is_output = matches!(graph.arg(digits.range), Arg::Range { axis: AxisType::Loop, .. });
        let may_be_partial = !has_atomics && digits.trips >= LEAST_ROUNDS * digits.base;
        is_output && digits.base >= SHORTEST && (is_whole(digits) || may_be_partial)
    };
    let least = |digits: &mut dyn Iterator<Item = Digits>| {
        let all = digits.filter(|digits| is_all_digits(graph, &order, digits));
        all.min_by_key(|digits| (digits.range, digits.base))
    };
    least(&mut digits_of(graph, order.iter().filter(|node| is_product(node))).filter(is_whole))
        .or_else(|| least(&mut digits_of(graph, order.iter().filter(|node| is_load(node))).filter(is_long)))
}

/// The digits that the first sources of these nodes are made of.
fn digits_of<'a>(graph: &Graph, readers: impl Iterator<Item = &'a NodeId>) -> impl Iterator<Item = Digits> {
    let read: SmallVec<[NodeId; 4]> = readers.map(|&node| graph.source(node, 0)).collect();
    graph.reachable(&read).into_iter().filter_map(|node| digit(graph, node))
}

/// `r / b` or `r % b`, where r takes more than one round of b.
fn digit(graph: &Graph, node: NodeId) -> Option<Digits> {
    let (Op::Idiv | Op::Mod, [range, base]) = (graph.op(node), graph.sources(node)) else { return None };
    let number = |node: NodeId| graph.as_int(node).and_then(|number| i64::try_from(number).ok());
    let base = number(*base)?;
    // The one THREAD Range stays whole.
    let Arg::Range { axis: AxisType::Loop | AxisType::Reduce, .. } = graph.arg(*range) else { return None };
    let trips = number(graph.source(*range, 0))?;
    (base > 1 && base < trips).then_some(Digits { range: *range, base, trips })
}

/// Wherever the Range is divided, it is divided at this place or at one above, or one of its digits is.
fn is_all_digits(graph: &Graph, order: &[NodeId], digits: &Digits) -> bool {
    let is_digit = |node: NodeId| {
        digit(graph, node).is_some_and(|other| other.range == digits.range && other.base % digits.base == 0)
    };
    let divided = order.iter().copied().filter(|&node| matches!(graph.op(node), Op::Idiv | Op::Mod) && !is_digit(node));
    let divided: SmallVec<[NodeId; 8]> = divided.map(|node| graph.source(node, 0)).collect();
    !graph.reachable_until(&divided, is_digit).contains(&digits.range)
}

/// `r` as `outer · base + inner`, two loops.
fn split(graph: &mut Graph, sink: NodeId, digits: &Digits) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let next = next_range_id(graph, order.iter().copied());
    let Arg::Range { axis, .. } = *graph.arg(digits.range) else { return Ok(sink) };
    let mut range = |trips: i64, id: u32, axis: AxisType| {
        let bound = graph.index(trips);
        graph.range(bound, id, axis)
    };
    let rounds = (digits.trips + digits.base - 1) / digits.base;
    let (outer, inner) = (range(rounds, next, axis)?, range(digits.base, next + 1, axis)?);
    let position = Affine::atom(outer).scale(digits.base).plus(&Affine::atom(inner));
    let inside = match digits.trips % digits.base {
        0 => None,
        _ => Some(less(graph, &position, &Affine::number(digits.trips))?),
    };
    let mut replacement = Replacement::new(digits.range, &position, inside);
    for node in order {
        let is_loop = matches!(graph.op(node), Op::End | Op::Reduce);
        if !is_loop || !graph.sources(node)[1..].contains(&digits.range) {
            replacement.node(graph, node)?;
            continue;
        }
        let old: SmallVec<[NodeId; 4]> = graph.sources(node).into();
        let mut loops: SmallVec<[NodeId; 4]> = SmallVec::new();
        for &source in &old[1..] {
            match source == digits.range {
                true => loops.extend([outer, inner]),
                false => loops.push(source),
            }
        }
        let value = replacement.value(graph, old[0])?;
        let new = if graph.op(node) == Op::End {
            closed(graph, value, &loops)?
        } else {
            let sources: SmallVec<[NodeId; 4]> = std::iter::once(value).chain(loops).collect();
            let arg = graph.arg(node).clone();
            graph.add(Op::Reduce, &sources, arg)?
        };
        replacement.insert(node, new);
    }
    replacement.value(graph, sink)
}
