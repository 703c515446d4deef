//! Stores that leave most places as they are: what they write, and their loops cut down to where they write.
//!
//! Where the memory of a result is that of an input, `Store(x[i], Where(c, v, x[i]))` is a Store of `v` under the gate
//! `c`; a gate that keeps few trips of a loop bounds the loop.

use crate::lower::fold::{both, elementwise, less, truth};
use crate::lower::live;
use crate::lower::optimize::windows::solved;
use crate::lower::replace::replace_in_loop;
use crate::lower::sum::Sum;
use crate::lower::terms::{Condition, Relation, Sums, conditions};
use smallvec::{SmallVec, smallvec};
use tinyspec_ir::masks::conjuncts;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// Longest chain of choices that is looked through: assignments to parts, one after the other.
const CHOICES: usize = 16;

/// The kernel with `store` writing only what differs from `old`, which says whether a scalar is what the place holds.
/// `None` where it may write anything anywhere.
pub(super) fn only_what_differs(
    graph: &mut Graph,
    sink: NodeId,
    store: NodeId,
    old: impl Fn(&Graph, NodeId) -> bool,
) -> Result<Option<NodeId>> {
    let &[place, stored] = graph.sources(store) else { return Ok(None) };
    // Bools lie in memory as bytes.
    let cast = (graph.op(stored) == Op::Cast).then(|| graph.arg(stored).clone());
    let mut value = if cast.is_some() { graph.source(stored, 0) } else { stored };
    let mut choices = Vec::new();
    let (mut gate, mut new) = loop {
        let &[condition, yes, no] = graph.sources(value) else { return Ok(None) };
        if graph.op(value) != Op::Where || choices.len() == CHOICES {
            return Ok(None);
        }
        match graph.as_int(condition) {
            Some(0) => value = no,
            Some(_) => value = yes,
            None if old(graph, no) => break (condition, yes),
            None if old(graph, yes) => {
                let truth = truth(graph, true);
                break (elementwise(graph, Op::Xor, &[condition, truth], Arg::None)?, no);
            }
            None => {
                choices.push((condition, yes));
                value = no;
            }
        }
    };
    for (condition, yes) in choices.into_iter().rev() {
        gate = either(graph, condition, gate)?;
        new = graph.alu(Op::Where, &[condition, yes, new])?;
    }
    if let Some(arg) = cast {
        new = graph.add(Op::Cast, &[new], arg)?;
    }
    let gated = graph.add(Op::Store, &[place, new, gate], Arg::None)?;
    let sink = substitute(graph, &[sink], &[(store, gated)].into_iter().collect())?[0];
    narrow(graph, sink).map(Some)
}

/// `a | b`, as what both require and the rest: only the former can bound a loop, as where several parts of a row are set.
fn either(graph: &mut Graph, a: NodeId, b: NodeId) -> Result<NodeId> {
    let terms = |graph: &Graph, gate| -> Vec<(NodeId, bool)> {
        conjuncts(graph, gate, true).into_iter().filter(|&term| !is_true(graph, term)).collect()
    };
    let (left, right) = (terms(graph, a), terms(graph, b));
    let (common, left): (Vec<_>, Vec<_>) = left.into_iter().partition(|term| right.contains(term));
    let right: Vec<_> = right.into_iter().filter(|term| !common.contains(term)).collect();
    let all = every(graph, &common)?;
    let either = match (every(graph, &left)?, every(graph, &right)?) {
        (Some(left), Some(right)) => Some(graph.alu(Op::Or, &[left, right])?),
        // Where one of them requires no more, the other adds nothing.
        _ => None,
    };
    Ok(both(graph, all, either)?.unwrap_or_else(|| truth(graph, true)))
}

/// All of some conditions, each with whether it holds.
fn every(graph: &mut Graph, terms: &[(NodeId, bool)]) -> Result<Option<NodeId>> {
    let mut all = None;
    for &(node, holds) in terms {
        let term = match holds {
            true => node,
            false => {
                let truth = truth(graph, true);
                elementwise(graph, Op::Xor, &[node, truth], Arg::None)?
            }
        };
        all = both(graph, all, Some(term))?;
    }
    Ok(all)
}

fn is_true(graph: &Graph, (node, holds): (NodeId, bool)) -> bool {
    graph.as_int(node).is_some_and(|value| (value != 0) == holds)
}

/// Loops of the outputs, each as short as the gates of all Stores allow.
fn narrow(graph: &mut Graph, mut sink: NodeId) -> Result<NodeId> {
    'again: loop {
        for node in graph.reachable(&[sink]) {
            if graph.op(node) == Op::End
                && let Some(shorter) = cut(graph, sink, graph.source(node, 1))?
            {
                sink = shorter;
                continue 'again;
            }
        }
        return Ok(sink);
    }
}

/// The trips of a loop in which something is written.
#[derive(Clone, PartialEq, Debug)]
enum Cut {
    /// `count` trips from `first` on, which is data: some of them may be outside of the loop.
    From { first: Sum, count: i64 },
    /// So many from the first on, so far apart.
    Steps { first: i64, apart: i64, count: i64 },
}

fn cut(graph: &mut Graph, sink: NodeId, range: NodeId) -> Result<Option<NodeId>> {
    let Arg::Range { id, axis } = *graph.arg(range) else { return Ok(None) };
    let Some(trips) = live::trips(graph, range).filter(|&trips| trips > 1) else { return Ok(None) };
    let mut sums = Sums::default();
    let mut common: Option<Cut> = None;
    let mut stores = Vec::new();
    for store in graph.reachable(&[sink]) {
        if graph.op(store) != Op::Store {
            continue;
        }
        let &[_, _, gate] = graph.sources(store) else { return Ok(None) };
        let conditions = conditions(graph, &mut sums, gate)?;
        let Some((cut, said)) = Cut::of(graph, &mut sums, &conditions, range, trips) else { return Ok(None) };
        if common.as_ref().is_some_and(|other| *other != cut) {
            return Ok(None);
        }
        common = Some(cut);
        stores.push((store, conditions, said));
    }
    let Some(cut) = common else { return Ok(None) };
    let (Cut::From { count, .. } | Cut::Steps { count, .. }) = cut;
    let bound = graph.index(count);
    let shorter = graph.range(bound, id, axis)?;
    let trip = if count == 1 { Sum::constant(0) } else { Sum::atom(shorter) };
    let mut sink = sink;
    let position = match cut {
        Cut::From { first, .. } => {
            let place = trip.plus(&first);
            let (above, below) =
                (less(graph, &Sum::constant(-1), &place)?, less(graph, &place, &Sum::constant(trips))?);
            for (store, conditions, said) in stores {
                let mut gate = both(graph, Some(above), Some(below))?;
                // One node may be several conditions: it is left out where the new place implies all of them.
                let is_implied = |node: NodeId| {
                    conditions.iter().enumerate().all(|(number, other)| other.node != node || said.contains(&number))
                };
                for (number, condition) in conditions.iter().enumerate() {
                    let is_repeated = conditions[..number].iter().any(|other| other.node == condition.node);
                    if !is_repeated && !is_implied(condition.node) {
                        let condition = condition.emit(graph)?;
                        gate = both(graph, gate, Some(condition))?;
                    }
                }
                let &[to, value, _] = graph.sources(store) else { continue };
                let gated: Vec<NodeId> = [to, value].into_iter().chain(gate).collect();
                let gated = graph.add(Op::Store, &gated, Arg::None)?;
                sink = substitute(graph, &[sink], &[(store, gated)].into_iter().collect())?[0];
            }
            place
        }
        Cut::Steps { first, apart, .. } => trip.scale(apart).plus(&Sum::constant(first)),
    };
    let sink = replace_in_loop(graph, sink, range, &position)?;
    Ok(Some(substitute(graph, &[sink], &[(range, shorter)].into_iter().collect())?[0]))
}

impl Cut {
    /// What conditions leave of a loop, if that is less than all; and, where the bounds are data, the conditions that give them.
    fn of(
        graph: &Graph,
        sums: &mut Sums,
        conditions: &[Condition],
        range: NodeId,
        trips: i64,
    ) -> Option<(Cut, SmallVec<[usize; 2]>)> {
        let (mut low, mut high) = (0, trips - 1);
        // Bounds that are data, and the conditions that give them.
        let mut lows: Vec<(Sum, usize)> = vec![];
        let mut highs: Vec<(Sum, usize)> = vec![];
        let mut steps: Option<(i64, i64)> = None;
        for (number, condition) in conditions.iter().enumerate() {
            match &condition.relation {
                Relation::Zero(sum) => {
                    let Some((factor, rest)) = solved(graph, sum, range) else { continue };
                    let place = rest.scale(-factor);
                    match place.as_constant() {
                        Some(only) => (low, high) = (low.max(only), high.min(only)),
                        None => return Some((Cut::From { first: place, count: 1 }, smallvec![number])),
                    }
                }
                Relation::NotNegative(sum) => {
                    if let Some((factor, rest)) = solved(graph, sum, range) {
                        let limit = rest.scale(-factor);
                        match limit.as_constant() {
                            Some(limit) if factor == 1 => low = low.max(limit),
                            Some(limit) => high = high.min(limit),
                            None if factor == 1 => lows.push((limit, number)),
                            None => highs.push((limit, number)),
                        }
                        continue;
                    }
                    let &[(atom, factor)] = sum.terms.as_slice() else { continue };
                    let Some((offset, divisor)) = divided(graph, sums, atom, range) else { continue };
                    match (graph.op(atom), factor) {
                        // (range + offset) mod divisor <= 0
                        (Op::Mod, -1) if sum.constant == 0 => steps = Some((offset, divisor)),
                        // (range + offset) / divisor >= -constant
                        (Op::Idiv, 1) => low = low.max(sum.constant.checked_mul(-divisor)?.checked_sub(offset)?),
                        // (range + offset) / divisor <= constant
                        (Op::Idiv, -1) => {
                            let end = sum.constant.checked_add(1)?.checked_mul(divisor)?;
                            high = high.min(end.checked_sub(offset)?.checked_sub(1)?);
                        }
                        _ => {}
                    }
                }
                Relation::Other => {}
            }
        }
        for ((first, says_first), (last, says_last)) in
            lows.iter().flat_map(|low| highs.iter().map(move |high| (low, high)))
        {
            let distance = last.plus(&first.scale(-1)).as_constant();
            if let Some(count) =
                distance.map(|distance| distance.saturating_add(1)).filter(|count| (1..trips).contains(count))
            {
                return Some((Cut::From { first: first.clone(), count }, smallvec![*says_first, *says_last]));
            }
        }
        let (offset, apart) = steps.unwrap_or((0, 1));
        let first = low.checked_add(low.checked_add(offset)?.checked_neg()?.rem_euclid(apart))?;
        let count = high.checked_sub(first)?.checked_div(apart)?.checked_add(1)?;
        (first <= high && count < trips).then_some((Cut::Steps { first, apart, count }, SmallVec::new()))
    }
}

/// The offset and the divisor of `(range + offset) / divisor`, or the remainder of that.
fn divided(graph: &Graph, sums: &mut Sums, node: NodeId, range: NodeId) -> Option<(i64, i64)> {
    let &[sum, divisor] = graph.sources(node) else { return None };
    let divisor =
        graph.as_int(divisor).and_then(|divisor| i64::try_from(divisor).ok()).filter(|&divisor| divisor > 0)?;
    let sum = sums.of(graph, sum);
    (sum.terms.as_slice() == [(range, 1)]).then_some((sum.constant, divisor))
}
