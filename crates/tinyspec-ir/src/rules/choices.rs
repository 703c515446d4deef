//! Numbers that are one of two constants: casts of bools, selects of constants, and arithmetic with constants on them.
//! Comparing such a number with a constant gives a condition.

use super::boolean::and;
use super::pattern::{folded, is_index, not, repeated};
use crate::eval::eval_op;
use crate::{Arg, Builder, Const, DType, Dim, Graph, NodeId, Op};
use smallvec::SmallVec;

rules! {
    /// Selects of constants.
    CHOICES (Exact, "choices", g, node) {
        ne_choice: (CmpNe a b) => either(g, node)?;
        lt_choice: (CmpLt a b) => either(g, node)?;
        add_choice: (Add a b) if !is_index(g, a) => either(g, node)?;
        mul_choice: (Mul a b) if !is_index(g, a) => either(g, node)?;
        where_choice: (Where c x y) => joined(g, node)?;

        where_where: (Where c (Where d x y) z) if y == z => both(g, (c, true), (d, true), x, z)?;
        where_where_else: (Where c (Where d y x) z) if y == z => both(g, (c, true), (d, false), x, z)?;
        where_else_where: (Where c z (Where d x y)) if y == z => both(g, (c, false), (d, true), x, z)?;
        where_else_where_else: (Where c z (Where d y x)) if y == z => both(g, (c, false), (d, false), x, z)?;
    }
}

/// A number that is `yes` where a condition holds, and `no` elsewhere.
pub(super) struct Choice {
    pub condition: NodeId,
    pub yes: Const,
    pub no: Const,
}

/// The most views, casts and selects to look through.
const STEPS: usize = 32;

impl Choice {
    /// A number as a choice. The condition has its shape, and is a comparison if possible.
    pub fn of(graph: &mut Graph, number: NodeId) -> Option<Choice> {
        Choice::within(graph, number, STEPS)
    }

    fn within(graph: &mut Graph, number: NodeId, steps: usize) -> Option<Choice> {
        let steps = steps.checked_sub(1)?;
        let (op, dtype) = (graph.op(number), graph.dtype(number));
        match (op, graph.sources(number)) {
            (op, &[source, ..]) if op.is_view() => {
                let choice = Choice::within(graph, source, steps)?;
                // A Pad adds zeros around it.
                let fits = op != Op::Pad || choice.no == Const::int(dtype, 0);
                let condition = viewed(graph, choice.condition, number).filter(|_| fits)?;
                Some(Choice { condition, ..choice })
            }
            _ if dtype == DType::Bool => {
                let [yes, no] = [1, 0].map(|truth| Const::int(dtype, truth));
                Some(Choice { condition: number, yes, no })
            }
            (Op::Cast, &[source]) if graph.dtype(source) != DType::Index => {
                let Choice { condition, yes, no } = Choice::within(graph, source, steps)?;
                let cast = |number: Const| eval_op(op, dtype, &[number]).ok();
                Some(Choice { condition, yes: cast(yes)?, no: cast(no)? })
            }
            (Op::Where, &[condition, yes, no]) => {
                let condition = Choice::within(graph, condition, steps)?.condition;
                let choice = match (constant(graph, yes), constant(graph, no)) {
                    (Some(yes), Some(no)) => Choice { condition, yes, no },
                    (None, Some(no)) => Choice::within(graph, yes, steps)?.beside(graph, condition, no)?,
                    (Some(yes), None) => {
                        let fails = not(graph, condition)?;
                        Choice::within(graph, no, steps)?.beside(graph, fails, yes)?
                    }
                    (None, None) => return None,
                };
                let shape = graph.props(number).shape.clone();
                Some(Choice { condition: expanded(graph, choice.condition, &shape)?, ..choice })
            }
            _ => None,
        }
    }

    /// The choice where a condition holds, and elsewhere one of its two constants, as a choice.
    fn beside(self, graph: &mut Graph, condition: NodeId, other: Const) -> Option<Choice> {
        let (own, yes) = match (self.no == other, self.yes == other) {
            (true, _) => (self.condition, self.yes),
            (_, true) => (not(graph, self.condition)?, self.no),
            _ => return None,
        };
        Some(Choice { condition: and(graph, condition, own)?, yes, no: other })
    }
}

fn constant(graph: &Graph, node: NodeId) -> Option<Const> {
    graph.as_const(repeated(graph, node))
}

/// Folds an op on a choice and a constant for both values of the choice.
fn either(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let &[a, b] = graph.sources(node) else { return None };
    let (number, constants) = match [constant(graph, a), constant(graph, b)] {
        constants @ [None, Some(_)] => (a, constants),
        constants @ [Some(_), None] => (b, constants),
        _ => return None,
    };
    let Choice { condition, yes, no } = Choice::of(graph, number)?;
    let (op, dtype) = (graph.op(node), graph.dtype(node));
    let made = |number: Const| eval_op(op, dtype, &constants.map(|constant| constant.unwrap_or(number))).ok();
    let (yes, no) = (made(yes)?, made(no)?);
    if yes == no {
        return folded(graph, node, yes);
    }
    let shape = graph.props(node).shape.clone();
    let condition = expanded(graph, condition, &shape)?;
    if dtype == DType::Bool {
        return if yes.as_int() == Some(0) { not(graph, condition) } else { Some(condition) };
    }
    let [yes, no] = [yes, no].map(|number| graph.constant(number));
    graph.alu(Op::Where, &[condition, yes, no]).ok()
}

/// Merges a select between a choice and one of its constants.
fn joined(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let &[_, yes, no] = graph.sources(node) else { return None };
    let number = match (constant(graph, yes), constant(graph, no)) {
        (None, Some(_)) => yes,
        (Some(_), None) => no,
        _ => return None,
    };
    // A broadcast or repeated value, as in a running sum, stays a view.
    if graph.op(number).is_view() || graph.dtype(number) == DType::Bool {
        return None;
    }
    let Choice { condition, yes, no } = Choice::of(graph, node)?;
    let [yes, no] = [yes, no].map(|number| graph.constant(number));
    graph.alu(Op::Where, &[condition, yes, no]).ok()
}

/// `x` where two conditions hold, or fail, else `otherwise`.
fn both(graph: &mut Graph, c: (NodeId, bool), d: (NodeId, bool), x: NodeId, otherwise: NodeId) -> Option<NodeId> {
    let mut side = |(condition, holds)| if holds { Some(condition) } else { not(graph, condition) };
    let (c, d) = (side(c)?, side(d)?);
    let both = and(graph, c, d)?;
    graph.alu(Op::Where, &[both, x, otherwise]).ok()
}

pub(super) fn expanded(graph: &mut Graph, node: NodeId, shape: &[Dim]) -> Option<NodeId> {
    if graph.props(node).shape[..] == *shape {
        return Some(node);
    }
    let shape = graph.shape(shape).ok()?;
    graph.add(Op::Expand, &[node, shape], Arg::None).ok()
}

/// Moves a view of a mask to the operands of its comparison, so that later stages see the comparison.
fn viewed(graph: &mut Graph, mask: NodeId, view: NodeId) -> Option<NodeId> {
    let sources: SmallVec<[NodeId; 3]> = graph.sources(mask).into();
    let is_inside = matches!(graph.op(mask), Op::And | Op::Or | Op::Xor | Op::CmpNe | Op::CmpLt);
    // The padding of a mask is not the comparison of padded operands.
    if !is_inside || graph.op(view) == Op::Pad {
        return seen(graph, mask, view);
    }
    let shape = graph.props(mask).shape.clone();
    let mut operands: SmallVec<[NodeId; 3]> = SmallVec::new();
    for source in sources {
        let constant = repeated(graph, source);
        if graph.op(constant) == Op::Const {
            operands.push(constant);
            continue;
        }
        let source = expanded(graph, source, &shape)?;
        operands.push(match graph.dtype(source) {
            DType::Bool => viewed(graph, source, view)?,
            _ => seen(graph, source, view)?,
        });
    }
    let inside = graph.alu(graph.op(mask), &operands).ok()?;
    if graph.props(inside).shape == graph.props(view).shape { Some(inside) } else { seen(graph, mask, view) }
}

/// The same view of another node.
fn seen(graph: &mut Graph, node: NodeId, view: NodeId) -> Option<NodeId> {
    let mut sources = graph.sources(view).to_vec();
    sources[0] = node;
    graph.add(graph.op(view), &sources, graph.arg(view).clone()).ok()
}
