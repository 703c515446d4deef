//! The terms of a Reduce: a value where some conditions hold, and the identity elsewhere. Conditions come from gates of
//! loads and from selects of the identity; conditions on indices are constraints.

use super::fold;
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, Constraint};
use tinyspec_ir::eval::{self, eval_op};
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result, masks};

/// The terms of a Reduce.
pub(crate) struct Terms {
    /// The value of the terms where all conditions hold.
    pub value: NodeId,
    pub conditions: SmallVec<[Condition; 2]>,
}

/// A bool scalar that must be `holds`.
#[derive(Clone)]
pub(crate) struct Condition {
    pub node: NodeId,
    pub holds: bool,
    /// A constraint on indices that the condition implies, if any.
    pub constraint: Option<Constraint>,
    /// Whether the constraint also implies the condition.
    pub is_equivalent: bool,
}

impl Condition {
    /// The condition as a bool.
    pub fn emit(&self, graph: &mut Graph) -> Result<NodeId> {
        if self.holds {
            return Ok(self.node);
        }
        let truth = fold::truth(graph, true);
        fold::elementwise(graph, Op::Xor, &[self.node, truth], Arg::None)
    }
}

impl Terms {
    /// The terms of a Reduce by `op` of `value`.
    pub fn of(graph: &mut Graph, op: Op, value: NodeId) -> Result<Terms> {
        let mut terms = Terms { value, conditions: SmallVec::new() };
        // Casts on the way, outermost first: they apply to a constant below them.
        let mut casts: SmallVec<[DType; 2]> = SmallVec::new();
        let dtype = graph.dtype(value);
        loop {
            let node = terms.value;
            let is_nothing = |graph: &Graph, node: NodeId| {
                graph.as_const(node).is_some_and(|value| vanishes(op, dtype, &casts, value))
            };
            match (graph.op(node), graph.sources(node)) {
                // A bool cast to a number is 1 where the condition holds. The gate of a load is found below.
                (Op::Cast, &[inner])
                    if graph.dtype(inner) == DType::Bool
                        && op == Op::Add
                        && graph.op(inner) != Op::Load
                        && graph.props(node).shape.is_empty() =>
                {
                    terms.value = graph.constant(Const::int(graph.dtype(node), 1));
                    terms.require(graph, inner, true)?;
                    break;
                }
                (Op::Cast, &[inner]) if graph.dtype(inner) != DType::Index => {
                    casts.push(graph.dtype(node));
                    terms.value = inner;
                }
                (Op::Where, &[condition, yes, no]) if is_nothing(graph, no) => {
                    terms.value = yes;
                    terms.require(graph, condition, true)?;
                }
                (Op::Where, &[condition, yes, no]) if is_nothing(graph, yes) => {
                    terms.value = no;
                    terms.require(graph, condition, false)?;
                }
                (Op::Load, &[_, alternative, gate]) if is_nothing(graph, alternative) => {
                    terms.require(graph, gate, true)?;
                    break;
                }
                _ => break,
            }
        }
        for &dtype in casts.iter().rev() {
            terms.value = match graph.as_const(terms.value) {
                Some(value) => graph.constant(eval_op(Op::Cast, dtype, &[value])?),
                None => graph.add(Op::Cast, &[terms.value], Arg::DType(dtype))?,
            };
        }
        Ok(terms)
    }

    fn require(&mut self, graph: &mut Graph, node: NodeId, holds: bool) -> Result<()> {
        require(graph, &mut self.conditions, node, holds)
    }

    /// The terms of a Reduce by `op` under all conditions but those at `without`.
    pub fn emit(&self, graph: &mut Graph, op: Op, without: &[usize]) -> Result<NodeId> {
        let mut gate = None;
        for (position, condition) in self.conditions.iter().enumerate() {
            if !without.contains(&position) {
                let condition = condition.emit(graph)?;
                gate = fold::both(graph, gate, Some(condition))?;
            }
        }
        under(graph, op, self.value, gate)
    }
}

/// The conditions that are constraints, with their positions.
pub(crate) fn constraints(conditions: &[Condition]) -> impl Iterator<Item = (usize, &Constraint)> {
    conditions.iter().enumerate().filter_map(|(number, condition)| Some((number, condition.constraint.as_ref()?)))
}

/// The conditions for a gate to be open, or closed.
pub(crate) fn conditions(graph: &mut Graph, gate: NodeId, is_open: bool) -> Result<SmallVec<[Condition; 2]>> {
    let mut conditions = SmallVec::new();
    require(graph, &mut conditions, gate, is_open)?;
    Ok(conditions)
}

fn require(graph: &mut Graph, conditions: &mut SmallVec<[Condition; 2]>, node: NodeId, holds: bool) -> Result<()> {
    for (node, holds) in masks::conjuncts(graph, node, holds) {
        let constraint = constraint(graph, node, holds)?;
        // An implied condition is added to the original one.
        if constraint.is_none()
            && !holds
            && let Some(form) = whole(graph, node)?
        {
            conditions.push(Condition { node, holds, constraint: Some(Constraint::Zero(form)), is_equivalent: false });
        }
        for form in [at_most(graph, node, holds)?, around(graph, node, holds)?].into_iter().flatten() {
            let constraint = Some(Constraint::NotNegative(form));
            conditions.push(Condition { node, holds, constraint, is_equivalent: false });
        }
        conditions.push(Condition { node, holds, is_equivalent: constraint.is_some(), constraint });
    }
    Ok(())
}

/// The value where the gate holds, else the identity of `op`.
pub(crate) fn under(graph: &mut Graph, op: Op, value: NodeId, gate: Option<NodeId>) -> Result<NodeId> {
    let Some(gate) = gate else { return Ok(value) };
    let nothing = fold::identity(graph, op, graph.dtype(value));
    // A load under this gate already gives the identity outside it.
    if graph.op(value) == Op::Load && graph.sources(value).get(1..) == Some(&[nothing, gate]) {
        return Ok(value);
    }
    fold::elementwise(graph, Op::Where, &[gate, value, nothing], Arg::None)
}

/// Whether the constant, after the casts, is the identity of a Reduce. A zero of either sign counts.
pub(crate) fn vanishes(op: Op, dtype: DType, casts: &[DType], value: Const) -> bool {
    let cast = casts.iter().rev().try_fold(value, |value, &to| eval_op(Op::Cast, to, &[value]).ok());
    let nothing = eval::identity(op, dtype);
    let is_zero = |value: Const| op == Op::Add && value.as_float() == Some(0.0);
    cast.is_some_and(|value| value == nothing || is_zero(value))
}

fn constraint(graph: &mut Graph, node: NodeId, holds: bool) -> Result<Option<Constraint>> {
    let (op, sources) = (graph.op(node), SmallVec::<[NodeId; 3]>::from(graph.sources(node)));
    let &[a, b] = sources.as_slice() else { return Ok(None) };
    let is_equation = op == Op::CmpNe && !holds;
    if !is_equation && op != Op::CmpLt {
        return Ok(None);
    }
    let float = Some(graph.dtype(a)).filter(|dtype| dtype.is_float());
    let (Some((a, is_a_exact)), Some((b, is_b_exact))) =
        (integer(graph, a, is_equation)?, integer(graph, b, is_equation)?)
    else {
        return Ok(None);
    };
    // Rounding to a float preserves the order with numbers among the integers that it represents exactly. Small floats
    // are excluded: they have no infinity to round to.
    let is_within = |form: &Affine| {
        let whole = float.filter(|dtype| dtype.size() > 1).and_then(DType::whole_range);
        let (least, greatest) = form.bounds(graph);
        whole.is_some_and(|(low, high)| low < least && greatest < high)
    };
    let is_same = (is_a_exact || is_within(&b)) && (is_b_exact || is_within(&a));
    Ok(if is_same { Constraint::comparison(op, holds, &a, &b) } else { None })
}

/// A float that equals an integer is that integer: derives an equation of indices from one of floats.
fn whole(graph: &mut Graph, node: NodeId) -> Result<Option<Affine>> {
    let (Op::CmpNe, &[a, b]) = (graph.op(node), graph.sources(node)) else { return Ok(None) };
    if !graph.dtype(a).is_float() || !graph.props(node).shape.is_empty() {
        return Ok(None);
    }
    for (number, data) in [(a, b), (b, a)] {
        if let (Some((sum, true)), None) = (integer(graph, number, true)?, integer(graph, data, true)?)
            && sum.as_number().is_none()
        {
            let index = graph.add(Op::Cast, &[data], Arg::DType(DType::Index))?;
            return Ok(Some(sum.minus(&Affine::atom(index))));
        }
    }
    Ok(None)
}

/// If a maximum, such as a distance, is at most a number, so are both of its operands.
fn at_most(graph: &mut Graph, node: NodeId, holds: bool) -> Result<SmallVec<[Affine; 2]>> {
    let is_greatest = |node: NodeId| graph.op(node) == Op::Max && graph.dtype(node).is_int();
    let (greatest, limit, below) = match (graph.op(node), graph.sources(node), holds) {
        (Op::CmpLt, &[a, b], true) if is_greatest(a) => (a, b, 1),
        (Op::CmpLt, &[a, b], false) if is_greatest(b) => (b, a, 0),
        (Op::CmpNe, &[a, b], false) if is_greatest(a) => (a, b, 0),
        (Op::CmpNe, &[a, b], false) if is_greatest(b) => (b, a, 0),
        _ => return Ok(SmallVec::new()),
    };
    let sides: SmallVec<[NodeId; 3]> = graph.sources(greatest).into();
    let mut found = SmallVec::new();
    if let Some((limit, true)) = integer(graph, limit, false)? {
        for side in sides {
            if let Some((side, true)) = integer(graph, side, false)? {
                found.push(limit.minus(&side).offset(-below));
            }
        }
    }
    Ok(found)
}

/// If one of two equations that differ by a constant holds, the sum lies between the two solutions.
fn around(graph: &mut Graph, node: NodeId, holds: bool) -> Result<SmallVec<[Affine; 2]>> {
    let sides: SmallVec<[NodeId; 3]> = match (graph.op(node), holds) {
        (Op::And, false) | (Op::Or, true) => graph.sources(node).into(),
        _ => return Ok(SmallVec::new()),
    };
    let mut equations: SmallVec<[Affine; 2]> = SmallVec::new();
    for side in sides {
        let [(node, holds)] = masks::conjuncts(graph, side, holds)[..] else { return Ok(SmallVec::new()) };
        let Some(Constraint::Zero(form)) = constraint(graph, node, holds)? else { return Ok(SmallVec::new()) };
        equations.push(form);
    }
    let [first, second] = &equations[..] else { return Ok(SmallVec::new()) };
    let apart = [1, -1].into_iter().find_map(|sign| second.plus(&first.scale(-sign)).as_number().map(|by| by * sign));
    // The first sum is 0, or -apart if the second is 0.
    Ok(apart.map_or_else(SmallVec::new, |apart| {
        let (low, high) = (0.min(-apart), 0.max(-apart));
        SmallVec::from_iter([first.offset(-low), first.scale(-1).offset(high)])
    }))
}

/// Whether a Cast of an integer to `dtype` preserves its value.
pub(crate) fn holds(graph: &Graph, dtype: DType, whole: NodeId) -> bool {
    let bounds = graph.props(whole).interval.int().zip(dtype.whole_range().filter(|_| dtype != DType::Bool));
    bounds.is_some_and(|((least, greatest), (low, high))| low <= least && greatest <= high)
}

/// An integer of any dtype as an index, and whether it is exact: a cast to a float may round.
fn integer(graph: &mut Graph, node: NodeId, is_equation: bool) -> Result<Option<(Affine, bool)>> {
    let dtype = graph.dtype(node);
    if dtype == DType::Index {
        return Ok(Some((Affine::of(graph, node), true)));
    }
    if dtype == DType::Bool || !graph.props(node).shape.is_empty() {
        return Ok(None);
    }
    if let Some(number) = graph.as_const(node).and_then(Const::as_whole) {
        return Ok(Some((Affine::number(number), true)));
    }
    let inner = graph.sources(node).first().copied().filter(|_| graph.op(node) == Op::Cast);
    let fits = inner.is_some_and(|inner| holds(graph, dtype, inner));
    match inner {
        Some(inner) if graph.dtype(inner) == DType::Index => {
            return Ok((fits || dtype.is_float()).then(|| (Affine::of(graph, inner), fits)));
        }
        // A u64 has different values as an index and as a float.
        Some(inner)
            if graph.dtype(inner).is_int() && graph.dtype(inner) != DType::U64 && (fits || dtype.is_float()) =>
        {
            let whole = integer(graph, inner, is_equation)?;
            return Ok(whole.map(|(sum, is_exact)| (sum, is_exact && fits)));
        }
        _ if !dtype.is_int() => return Ok(None),
        _ => {}
    }
    // A u64 beyond i64 becomes a negative index: still unequal to all positions, but no longer above them.
    if dtype == DType::U64 && !is_equation {
        return Ok(None);
    }
    let index = graph.add(Op::Cast, &[node], Arg::DType(DType::Index))?;
    Ok(Some((Affine::atom(index), true)))
}
