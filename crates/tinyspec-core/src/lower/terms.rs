//! What a Reduce adds up: a value where some conditions hold, and nothing elsewhere. Gates of reads and choices of the
//! identity are conditions; those on indices are read as inequalities and equations of sums.

use super::fold;
use super::sum::{self, Sum};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::eval::{self, eval_op};
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result, masks};

/// The terms of a Reduce.
pub(crate) struct Terms {
    /// What is added up where all conditions hold.
    pub value: NodeId,
    pub conditions: SmallVec<[Condition; 2]>,
}

/// A bool scalar that must be `holds`.
#[derive(Clone)]
pub(crate) struct Condition {
    pub node: NodeId,
    pub holds: bool,
    pub relation: Relation,
}

/// A condition as index arithmetic.
#[derive(Clone)]
pub(crate) enum Relation {
    /// The sum is at least 0.
    NotNegative(Sum),
    /// The sum is 0.
    Zero(Sum),
    /// Something else.
    Other,
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
    pub fn of(graph: &mut Graph, sums: &mut Sums, op: Op, value: NodeId) -> Result<Terms> {
        let mut terms = Terms { value, conditions: SmallVec::new() };
        // Casts on the way, outermost first: a constant below them counts as what they make of it.
        let mut casts: SmallVec<[DType; 2]> = SmallVec::new();
        let dtype = graph.dtype(value);
        loop {
            let node = terms.value;
            let is_nothing = |graph: &Graph, node: NodeId| {
                graph.as_const(node).is_some_and(|value| vanishes(op, dtype, &casts, value))
            };
            match (graph.op(node), graph.sources(node)) {
                // As many ones as conditions that hold. A read may have a gate, which is looked for below.
                (Op::Cast, &[inner])
                    if graph.dtype(inner) == DType::Bool
                        && op == Op::Add
                        && graph.op(inner) != Op::Load
                        && graph.props(node).shape.is_empty() =>
                {
                    terms.value = graph.constant(Const::int(graph.dtype(node), 1));
                    terms.require(graph, sums, inner, true)?;
                    break;
                }
                (Op::Cast, &[inner]) if graph.dtype(inner) != DType::Index => {
                    casts.push(graph.dtype(node));
                    terms.value = inner;
                }
                (Op::Where, &[condition, yes, no]) if is_nothing(graph, no) => {
                    terms.value = yes;
                    terms.require(graph, sums, condition, true)?;
                }
                (Op::Where, &[condition, yes, no]) if is_nothing(graph, yes) => {
                    terms.value = no;
                    terms.require(graph, sums, condition, false)?;
                }
                (Op::Load, &[_, alternative, gate]) if is_nothing(graph, alternative) => {
                    terms.require(graph, sums, gate, true)?;
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

    fn require(&mut self, graph: &mut Graph, sums: &mut Sums, node: NodeId, holds: bool) -> Result<()> {
        require(graph, sums, &mut self.conditions, node, holds)
    }

    /// The value under all conditions but those at `without`, as a Reduce by `op` takes it.
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

/// The conditions that a gate is made of.
pub(crate) fn conditions(graph: &mut Graph, sums: &mut Sums, gate: NodeId) -> Result<SmallVec<[Condition; 2]>> {
    let mut conditions = SmallVec::new();
    require(graph, sums, &mut conditions, gate, true)?;
    Ok(conditions)
}

fn require(
    graph: &mut Graph,
    sums: &mut Sums,
    conditions: &mut SmallVec<[Condition; 2]>,
    node: NodeId,
    holds: bool,
) -> Result<()> {
    for (node, holds) in masks::conjuncts(graph, node, holds) {
        let relation = relation(graph, sums, node, holds)?;
        // What follows stands beside the condition, which stays.
        if let (Relation::Other, false) = (&relation, holds)
            && let Some(sum) = whole(graph, sums, node)?
        {
            conditions.push(Condition { node, holds, relation: Relation::Zero(sum) });
        }
        for sum in [at_most(graph, sums, node, holds)?, around(graph, sums, node, holds)?].into_iter().flatten() {
            conditions.push(Condition { node, holds, relation: Relation::NotNegative(sum) });
        }
        conditions.push(Condition { node, holds, relation });
    }
    Ok(())
}

/// The value where the gate holds, else nothing that a Reduce by `op` would count.
pub(crate) fn under(graph: &mut Graph, op: Op, value: NodeId, gate: Option<NodeId>) -> Result<NodeId> {
    let Some(gate) = gate else { return Ok(value) };
    let nothing = fold::identity(graph, op, graph.dtype(value));
    // A read under this gate gives as much outside of it.
    if graph.op(value) == Op::Load && graph.sources(value).get(1..) == Some(&[nothing, gate]) {
        return Ok(value);
    }
    fold::elementwise(graph, Op::Where, &[gate, value, nothing], Arg::None)
}

/// The constant, cast, is what leaves a Reduce as it is. A zero of either sign is.
pub(crate) fn vanishes(op: Op, dtype: DType, casts: &[DType], value: Const) -> bool {
    let cast = casts.iter().rev().try_fold(value, |value, &to| eval_op(Op::Cast, to, &[value]).ok());
    let nothing = eval::identity(op, dtype);
    let is_zero = |value: Const| op == Op::Add && value.as_float() == Some(0.0);
    cast.is_some_and(|value| value == nothing || is_zero(value))
}

fn relation(graph: &mut Graph, sums: &mut Sums, node: NodeId, holds: bool) -> Result<Relation> {
    let (op, sources) = (graph.op(node), SmallVec::<[NodeId; 3]>::from(graph.sources(node)));
    let &[a, b] = sources.as_slice() else { return Ok(Relation::Other) };
    let is_equation = op == Op::CmpNe && !holds;
    if !is_equation && op != Op::CmpLt {
        return Ok(Relation::Other);
    }
    let float = Some(graph.dtype(a)).filter(|dtype| dtype.is_float());
    let (Some((a, is_a_exact)), Some((b, is_b_exact))) =
        (sums.integer(graph, a, is_equation)?, sums.integer(graph, b, is_equation)?)
    else {
        return Ok(Relation::Other);
    };
    // What is rounded to the float lies on the same side of a number within its whole ones as before. The small floats
    // have no infinity to round to.
    let is_within = |sum: &Sum| {
        let float = float.filter(|dtype| dtype.size() > 1);
        let whole = float.and_then(DType::whole_range).zip(sum.bounds(graph));
        whole.is_some_and(|((low, high), (least, greatest))| low < least && greatest < high)
    };
    if !(is_a_exact || is_within(&b)) || !(is_b_exact || is_within(&a)) {
        return Ok(Relation::Other);
    }
    Ok(match (op, holds) {
        (Op::CmpNe, _) => Relation::Zero(a.plus(&b.scale(-1))),
        (_, true) => Relation::NotNegative(b.plus(&a.scale(-1)).plus(&Sum::constant(-1))),
        (_, false) => Relation::NotNegative(a.plus(&b.scale(-1))),
    })
}

/// A float that equals a whole number is that number: the equation which follows from one of floats.
fn whole(graph: &mut Graph, sums: &mut Sums, node: NodeId) -> Result<Option<Sum>> {
    let (Op::CmpNe, &[a, b]) = (graph.op(node), graph.sources(node)) else { return Ok(None) };
    if !graph.dtype(a).is_float() || !graph.props(node).shape.is_empty() {
        return Ok(None);
    }
    for (number, data) in [(a, b), (b, a)] {
        if let (Some((sum, true)), None) = (sums.integer(graph, number, true)?, sums.integer(graph, data, true)?)
            && sum.as_constant().is_none()
        {
            let index = graph.add(Op::Cast, &[data], Arg::DType(DType::Index))?;
            return Ok(Some(sum.plus(&Sum::atom(index).scale(-1))));
        }
    }
    Ok(None)
}

/// Where a maximum, such as a distance, is at most a number, so are both that it is of.
fn at_most(graph: &mut Graph, sums: &mut Sums, node: NodeId, holds: bool) -> Result<SmallVec<[Sum; 2]>> {
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
    if let Some((limit, true)) = sums.integer(graph, limit, false)? {
        for side in sides {
            if let Some((side, true)) = sums.integer(graph, side, false)? {
                found.push(limit.plus(&side.scale(-1)).plus(&Sum::constant(-below)));
            }
        }
    }
    Ok(found)
}

/// Where one of two equations holds that are a number apart, both say between which numbers their sum is.
fn around(graph: &mut Graph, sums: &mut Sums, node: NodeId, holds: bool) -> Result<SmallVec<[Sum; 2]>> {
    let sides: SmallVec<[NodeId; 3]> = match (graph.op(node), holds) {
        (Op::And, false) | (Op::Or, true) => graph.sources(node).into(),
        _ => return Ok(SmallVec::new()),
    };
    let mut equations: SmallVec<[Sum; 2]> = SmallVec::new();
    for side in sides {
        let [(node, holds)] = masks::conjuncts(graph, side, holds)[..] else { return Ok(SmallVec::new()) };
        let Relation::Zero(sum) = relation(graph, sums, node, holds)? else { return Ok(SmallVec::new()) };
        equations.push(sum);
    }
    let [first, second] = &equations[..] else { return Ok(SmallVec::new()) };
    let apart = [1, -1].into_iter().find_map(|sign| second.plus(&first.scale(-sign)).as_constant().map(|by| by * sign));
    // The first sum is 0, or -apart where the second is.
    Ok(apart.map_or_else(SmallVec::new, |apart| {
        let (low, high) = (0.min(-apart), 0.max(-apart));
        SmallVec::from_iter([first.plus(&Sum::constant(-low)), first.scale(-1).plus(&Sum::constant(high))])
    }))
}

/// A Cast of a whole number to `dtype` is the same number, and so is what becomes of that.
pub(crate) fn holds(graph: &Graph, dtype: DType, whole: NodeId) -> bool {
    let bounds = graph.props(whole).interval.int().zip(dtype.whole_range().filter(|_| dtype != DType::Bool));
    bounds.is_some_and(|((least, greatest), (low, high))| low <= least && greatest <= high)
}

/// Normal forms of index scalars and tiles, made when they are asked for.
#[derive(Default)]
pub(crate) struct Sums {
    known: FxHashMap<NodeId, Sum>,
}

impl Sums {
    /// The sum that an index is. Index expressions are built bottom-up and stay shallow.
    pub fn of(&mut self, graph: &Graph, node: NodeId) -> Sum {
        if let Some(sum) = self.known.get(&node) {
            return sum.clone();
        }
        let sum = match (graph.op(node), graph.sources(node)) {
            (Op::Add, &[a, b]) => self.of(graph, a).plus(&self.of(graph, b)),
            (Op::Mul, &[a, b]) => {
                let (left, right) = (self.of(graph, a), self.of(graph, b));
                match (left.as_constant(), right.as_constant()) {
                    (_, Some(factor)) => left.scale(factor),
                    (Some(factor), _) => right.scale(factor),
                    _ => Sum::atom(node),
                }
            }
            // The same along more axes of a tile.
            (Op::Expand, &[source, _]) => self.of(graph, source),
            _ => sum::as_sum(graph, node),
        };
        self.known.insert(node, sum.clone());
        sum
    }

    /// A whole number of any dtype as an index, and whether it is that exactly: what is cast to a float may be rounded.
    fn integer(&mut self, graph: &mut Graph, node: NodeId, is_equation: bool) -> Result<Option<(Sum, bool)>> {
        let dtype = graph.dtype(node);
        if dtype == DType::Index {
            return Ok(Some((self.of(graph, node), true)));
        }
        if dtype == DType::Bool || !graph.props(node).shape.is_empty() {
            return Ok(None);
        }
        if let Some(number) = graph.as_const(node).and_then(Const::as_whole) {
            return Ok(Some((Sum::constant(number), true)));
        }
        let inner = graph.sources(node).first().copied().filter(|_| graph.op(node) == Op::Cast);
        let fits = inner.is_some_and(|inner| holds(graph, dtype, inner));
        match inner {
            Some(inner) if graph.dtype(inner) == DType::Index => {
                return Ok((fits || dtype.is_float()).then(|| (self.of(graph, inner), fits)));
            }
            // A u64 as an index is not what it is as a float.
            Some(inner)
                if graph.dtype(inner).is_int() && graph.dtype(inner) != DType::U64 && (fits || dtype.is_float()) =>
            {
                let whole = self.integer(graph, inner, is_equation)?;
                return Ok(whole.map(|(sum, is_exact)| (sum, is_exact && fits)));
            }
            _ if !dtype.is_int() => return Ok(None),
            _ => {}
        }
        // A u64 beyond i64 becomes a negative index: it differs from all positions, but it is not above them.
        if dtype == DType::U64 && !is_equation {
            return Ok(None);
        }
        let index = graph.add(Op::Cast, &[node], Arg::DType(DType::Index))?;
        Ok(Some((Sum::atom(index), true)))
    }
}
