//! Narrows stores that leave most elements unchanged: they store only what changes, and their loops run only where they
//! store.
//!
//! If a result shares the memory of an input, `Store(x[i], Where(c, v, x[i]))` is a Store of `v` under the gate `c`. If
//! the gate holds in few trips of a loop, it becomes the bounds of the loop.

use crate::lower::fold::{both, elementwise, truth};
use crate::lower::live;
use crate::lower::replace::replace_in_loop;
use crate::lower::terms::{Condition, conditions, constraints};
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, Constraint, Domain, Window, divided, less};
use tinyspec_ir::masks::conjuncts;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op, Result};

/// The longest chain of selects to follow, as of successive assignments to parts.
const CHOICES: usize = 16;

/// The kernel with `store` writing only elements that change; `old` says whether a scalar is the element's old value.
/// `None` if it may change any element.
pub(super) fn only_what_differs(
    graph: &mut Graph,
    sink: NodeId,
    store: NodeId,
    old: impl Fn(&Graph, NodeId) -> bool,
) -> Result<Option<NodeId>> {
    let &[place, stored] = graph.sources(store) else { return Ok(None) };
    // Bools are stored as bytes.
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

/// `a | b`, as the conditions that both require, and the rest: only the former can bound a loop, as when several parts
/// of a row are set.
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
        // If one of them requires nothing more, the disjunction of the rest is true.
        _ => None,
    };
    Ok(both(graph, all, either)?.unwrap_or_else(|| truth(graph, true)))
}

/// The conjunction of conditions, each with the outcome that it must have.
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

/// Shortens the loops of the outputs as far as the gates of all Stores allow.
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

/// The trips of a loop in which something is stored.
#[derive(Clone, PartialEq, Debug)]
enum Cut {
    /// `count` trips from `first` on, which is data, so some of them may be outside the loop.
    From { first: Affine, count: i64 },
    /// `count` trips from `first` on, every `step`-th.
    Steps { first: i64, step: i64, count: i64 },
}

fn cut(graph: &mut Graph, sink: NodeId, range: NodeId) -> Result<Option<NodeId>> {
    let Arg::Range { id, axis } = *graph.arg(range) else { return Ok(None) };
    let Some(trips) = live::trips(graph, range).filter(|&trips| trips > 1) else { return Ok(None) };
    let mut common: Option<Cut> = None;
    let mut stores = Vec::new();
    for store in graph.reachable(&[sink]) {
        if graph.op(store) != Op::Store {
            continue;
        }
        let &[_, _, gate] = graph.sources(store) else { return Ok(None) };
        let conditions = conditions(graph, gate, true)?;
        let Some((cut, said)) = Cut::of(graph, &conditions, range, trips) else { return Ok(None) };
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
    let trip = if count == 1 { Affine::number(0) } else { Affine::atom(shorter) };
    let mut sink = sink;
    let position = match cut {
        Cut::From { first, .. } => {
            let place = trip.plus(&first);
            let (above, below) =
                (less(graph, &Affine::number(-1), &place)?, less(graph, &place, &Affine::number(trips))?);
            for (store, conditions, said) in stores {
                let mut gate = both(graph, Some(above), Some(below))?;
                // One node may stand for several conditions: it is dropped if the new index implies all of them.
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
        Cut::Steps { first, step, .. } => trip.scale(step).offset(first),
    };
    let sink = replace_in_loop(graph, sink, range, &position)?;
    Ok(Some(substitute(graph, &[sink], &[(range, shorter)].into_iter().collect())?[0]))
}

impl Cut {
    /// The trips of a loop that conditions allow, if not all; and, if the bounds are data, the conditions that they
    /// come from.
    fn of(graph: &Graph, conditions: &[Condition], range: NodeId, trips: i64) -> Option<(Cut, SmallVec<[usize; 2]>)> {
        let domain = Domain::of(graph, range, constraints(conditions));
        let windows = domain.windows().filter(|window| (1..trips).contains(&window.count));
        if let Some(Window { first, count, said }) = windows.min_by_key(|window| window.count) {
            return Some((Cut::From { first: first.clone(), count }, SmallVec::from(said)));
        }
        let (low, high) = domain.numbers(trips);
        let steps = constraints(conditions).find_map(|(_, constraint)| steps(graph, constraint, range));
        let (offset, step) = steps.unwrap_or((0, 1));
        let first = low.checked_add(low.checked_add(offset)?.checked_neg()?.rem_euclid(step))?;
        let count = high.checked_sub(first)?.checked_div(step)?.checked_add(1)?;
        (first <= high && count < trips).then_some((Cut::Steps { first, step, count }, SmallVec::new()))
    }
}

/// The offset and the divisor of `(range + offset) mod divisor <= 0`.
fn steps(graph: &Graph, constraint: &Constraint, range: NodeId) -> Option<(i64, i64)> {
    let Constraint::NotNegative(form) = constraint else { return None };
    let (&[(atom, -1)], 0) = (form.terms(), form.constant()) else { return None };
    let (Op::Mod, inner, divisor) = divided(graph, atom)? else { return None };
    let inner = Affine::of(graph, inner);
    (inner.terms() == [(range, 1)]).then_some((inner.constant(), divisor))
}
