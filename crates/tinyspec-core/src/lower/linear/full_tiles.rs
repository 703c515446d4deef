//! Separates full tiles from partial ones. If an axis is padded, the last trip of its loop must not access elements beyond the
//! axis; if a window reaches over an edge, neither must the first trips. In all other trips the outcome of every gate is known, so
//! the body of the loop gets a version for them that has no masks. One comparison of scalars per axis chooses the version.

use super::Instructions;
use super::arithmetic::Arithmetic;
use super::versions::{Version, in_blocks};
use crate::lower::fold::truth;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::address::register;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::instructions::is_otherwise;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// The largest body that is worth a second version, in instructions.
const LARGEST: usize = 768;
/// Instructions per access that loses its gate; in a larger body the gates cost too little.
const MOST_BESIDE_A_GATE: usize = 32;
/// The most comparisons of a test.
const MOST_COMPARISONS: usize = 8;
/// The least share of trips that the version without gates must serve.
const LEAST_SHARE: f64 = 0.5;

/// Gives each innermost loop of mostly full tiles a version of its body for these.
///
/// # Errors
/// When [`tinyspec_ir::derive()`] rejects a node, which would be a bug in this pass.
pub fn full_tiles(graph: &mut Graph, linear: NodeId, target: &Target) -> Result<NodeId> {
    if target.workgroups.is_some() {
        return Ok(linear);
    }
    let list = graph.sources(linear).to_vec();
    let found: Vec<(usize, usize, Full)> = innermost(graph, &list)
        .into_iter()
        .filter_map(|(start, end)| Some((start, end, Full::of(graph, &list[start + 1..end])?)))
        .collect();
    if found.is_empty() {
        return Ok(linear);
    }
    let mut instructions = Instructions::default();
    let mut position = 0;
    for (start, end, full) in found {
        instructions.copy_all(graph, &list[position..=start])?;
        let effect = graph.source(list[end], 0);
        full.separate(graph, &mut instructions, &list[start + 1..end], effect)?;
        position = end;
    }
    instructions.copy_all(graph, &list[position..])?;
    instructions.linear(graph)
}

/// The positions of the Range and End of each innermost loop. A loop with several versions counts only with its first, since the
/// others rarely run.
fn innermost(graph: &Graph, list: &[NodeId]) -> Vec<(usize, usize)> {
    let (mut found, mut start, mut others) = (Vec::new(), None, Vec::new());
    for (position, &node) in list.iter().enumerate() {
        match graph.op(node) {
            Op::If => {
                others.push(position > 0 && is_otherwise(graph, list[position - 1], node));
                start = None;
            }
            Op::Endif => drop(others.pop()),
            Op::Range => start = Some(position).filter(|_| !others.contains(&true)),
            Op::End => found.extend(start.take().map(|start| (start, position))),
            _ => {}
        }
    }
    found
}

/// The instructions of a body, divided among its two versions, in order.
struct Parts {
    /// Instructions that both versions share, placed in front of them.
    ahead: Vec<NodeId>,
    /// The version for full tiles.
    full: Vec<NodeId>,
    /// The version for all others.
    partial: Vec<NodeId>,
}

/// The conditions under which a tile is full.
struct Full {
    /// The outcome of each condition of its gates.
    known: Vec<(NodeId, bool)>,
    /// Forms that are all positive exactly then.
    forms: Vec<Affine>,
}

impl Full {
    /// `None` if the body is not worth a second version.
    fn of(graph: &Graph, body: &[NodeId]) -> Option<Full> {
        if body.len() > LARGEST {
            return None;
        }
        let mut full = Full { known: Vec::new(), forms: Vec::new() };
        let mut shares: Vec<f64> = Vec::new();
        for gate in body.iter().filter_map(|&node| gate(graph, node)) {
            for condition in conditions(graph, gate) {
                if full.known.iter().any(|known| known.0 == condition) {
                    continue;
                }
                let Some((outcome, form, share)) = usual(graph, condition) else { continue };
                full.known.push((condition, outcome));
                match full.forms.iter().position(|other| other.terms() == form.terms()) {
                    Some(place) => {
                        shares[place] = share.min(shares[place]);
                        if form.constant() < full.forms[place].constant() {
                            full.forms[place] = form;
                        }
                    }
                    None => {
                        full.forms.push(form);
                        shares.push(share);
                    }
                }
            }
        }
        let version = Version { known: full.known.iter().copied().collect(), after: None };
        let outcome = |&node: &NodeId| Some((graph.op(node), version.is_open(graph, gate(graph, node)?)?));
        let decided: Vec<(Op, bool)> = body.iter().filter_map(outcome).collect();
        let is_cheap = full.forms.len() <= MOST_COMPARISONS && body.len() <= MOST_BESIDE_A_GATE * decided.len();
        let stores = decided.iter().all(|&(op, is_open)| op == Op::Load || is_open);
        (is_cheap && stores && shares.iter().product::<f64>() >= LEAST_SHARE).then_some(full)
    }

    /// Emits both versions of the body, in blocks of opposite conditions. The loop's End waits for `effect`.
    fn separate(
        &self,
        graph: &mut Graph,
        instructions: &mut Instructions,
        body: &[NodeId],
        effect: NodeId,
    ) -> Result<()> {
        let Parts { ahead, full, partial } = self.parts(graph, body);
        instructions.copy_all(graph, &ahead)?;
        let holds = self.test(graph, instructions)?;
        let after = in_blocks(graph, instructions, holds, &[true, false], |graph, instructions, outcome, after| {
            let mut version = Version { known: FxHashMap::default(), after };
            if outcome {
                for &(condition, outcome) in &self.known {
                    let constant = truth(graph, outcome);
                    let shape = graph.props(condition).shape.clone();
                    let shape = graph.shape(&shape)?;
                    let constant = instructions.push(graph, Op::Expand, &[constant, shape], Arg::None)?;
                    instructions.replace(condition, constant);
                }
                version.known = self.known.iter().copied().collect();
            }
            version.emit_body(graph, instructions, if outcome { &full } else { &partial })?;
            Ok(instructions.now(effect))
        })?;
        let Some(after) = after else { return Ok(()) };
        // Whatever depends on an effect of the body now depends on both versions.
        instructions.replace_effects(graph, body, after);
        Ok(())
    }

    /// Divides the body into these parts.
    fn parts(&self, graph: &Graph, body: &[NodeId]) -> Parts {
        let known: FxHashSet<NodeId> = self.known.iter().map(|known| known.0).collect();
        // Everything except values that only the known conditions use.
        let mut needed: FxHashSet<NodeId> = FxHashSet::default();
        for &node in body.iter().rev() {
            let is_needed = needed.contains(&node) || graph.dtype(node) == DType::Void || graph.op(node) == Op::Load;
            if is_needed && !known.contains(&node) {
                needed.insert(node);
                needed.extend(graph.sources(node));
            }
        }
        let mut differ: FxHashSet<NodeId> = known.clone();
        let (mut ahead, mut full, mut partial) = (Vec::new(), Vec::new(), Vec::new());
        for &node in body {
            if known.contains(&node) || !needed.contains(&node) {
                partial.push(node);
                continue;
            }
            let is_effect = graph.dtype(node) == DType::Void || graph.op(node) == Op::Load;
            if !is_effect && !graph.sources(node).iter().any(|source| differ.contains(source)) {
                ahead.push(node);
                continue;
            }
            differ.insert(node);
            full.push(node);
            partial.push(node);
        }
        Parts { ahead, full, partial }
    }

    /// Emits the test that a tile is full.
    fn test(&self, graph: &mut Graph, instructions: &mut Instructions) -> Result<NodeId> {
        let mut all = None;
        for form in &self.forms {
            let (below, sum) = (form.constant().saturating_neg(), form.without_constant());
            let mut arithmetic = Arithmetic { graph, instructions };
            let (below, sum) = (arithmetic.number(below), arithmetic.sum(&sum)?);
            let holds = arithmetic.binary(Op::CmpLt, below, sum)?;
            all = Some(match all {
                Some(all) => arithmetic.binary(Op::And, all, holds)?,
                None => holds,
            });
        }
        Ok(all.unwrap_or_else(|| truth(graph, true)))
    }
}

/// The gate of an access to memory, unless it is a constant.
fn gate(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let is_access = matches!(graph.op(node), Op::Load | Op::Store | Op::AtomicAdd);
    let gate = graph.sources(node).get(2).copied().filter(|&gate| is_access && graph.as_const(gate).is_none())?;
    register(graph, graph.source(node, 0)).is_none().then_some(gate)
}

/// The conditions of a gate; for a lane of a gate, those of all its lanes.
fn conditions(graph: &Graph, gate: NodeId) -> Vec<NodeId> {
    let (mut found, mut pending) = (Vec::new(), vec![gate]);
    while let Some(gate) = pending.pop() {
        match graph.op(gate) {
            Op::And => pending.extend(graph.sources(gate)),
            Op::Expand | Op::After | Op::Index => pending.push(graph.source(gate, 0)),
            _ => found.push(gate),
        }
    }
    found
}

/// The more frequent outcome of an index comparison in all lanes, the form that is positive in trips with it, and their
/// share.
fn usual(graph: &Graph, condition: NodeId) -> Option<(bool, Affine, f64)> {
    let (Op::CmpLt, &[a, b]) = (graph.op(condition), graph.sources(condition)) else { return None };
    if !graph.dtype(a).is_int() {
        return None;
    }
    let difference = Affine::of(graph, b).minus(&Affine::of(graph, a));
    let is_scalar = |atom: NodeId| graph.props(atom).shape.is_empty();
    let is_counted = |atom: NodeId| graph.op(atom) == Op::Range;
    let is_constant = |atom: NodeId| {
        graph.op(atom) == Op::Stack && graph.sources(atom).iter().all(|&lane| graph.as_const(lane).is_some())
    };
    if !difference.atoms().all(|atom| if is_scalar(atom) { is_counted(atom) } else { is_constant(atom) }) {
        return None;
    }
    let form = difference.filter(is_scalar);
    let lanes = difference.filter(|atom| !is_scalar(atom)).without_constant();
    let (least, greatest) = lanes.bounds(graph);
    let (low, high) = form.bounds(graph);
    // How many values of the form open all lanes, and how many close them.
    let (open, closed) = (high + least, 1 - greatest - low);
    let (count, form) = match open >= closed {
        true => (open, form.offset(i64::try_from(least).ok()?)),
        false => (closed, Affine::number(1).minus(&form).offset(i64::try_from(-greatest).ok()?)),
    };
    let all = high - low + 1;
    (count > 0).then(|| (open >= closed, form, count.min(all) as f64 / all as f64))
}
