//! Comparisons of forms, and the values of a Range that a set of them allows.

use super::{Affine, divided};
use crate::{Builder, Const, DType, Graph, NodeId, Op, Result};
use smallvec::SmallVec;

/// A comparison of integers, as a form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Constraint {
    /// The form is at least 0.
    NotNegative(Affine),
    /// The form is 0.
    Zero(Affine),
}

/// The limit on a Range whose coefficient in a constraint is 1 or -1; the form does not depend on the Range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The Range is at least the form.
    Least(Affine),
    /// The Range is at most the form.
    Greatest(Affine),
    /// The Range equals the form.
    Only(Affine),
}

impl Constraint {
    /// The constraint that `a < b` (CmpLt) or `a != b` (CmpNe) must hold, or must not; `None` for `a != b`.
    pub fn comparison(op: Op, holds: bool, a: &Affine, b: &Affine) -> Option<Constraint> {
        match (op, holds) {
            (Op::CmpLt, true) => Some(Constraint::NotNegative(b.minus(a).offset(-1))),
            (Op::CmpLt, false) => Some(Constraint::NotNegative(a.minus(b))),
            (Op::CmpNe, false) => Some(Constraint::Zero(a.minus(b))),
            _ => None,
        }
    }

    /// The limit on a Range, which may be within a quotient by a number.
    pub fn limit(&self, graph: &Graph, range: NodeId) -> Option<Limit> {
        let (factor, rest) = self.isolate(graph, range)?;
        match (factor, self) {
            (1, Constraint::NotNegative(_)) => Some(Limit::Least(rest.scale(-1))),
            (-1, Constraint::NotNegative(_)) => Some(Limit::Greatest(rest)),
            (1 | -1, Constraint::Zero(_)) => Some(Limit::Only(rest.scale(-factor))),
            _ => None,
        }
    }

    /// The coefficient of a Range, which may be within a quotient, and the rest of the form; `None` if an atom of the rest depends
    /// on the Range.
    pub fn isolate(&self, graph: &Graph, range: NodeId) -> Option<(i64, Affine)> {
        let mut constraint = self.clone();
        loop {
            let (Constraint::NotNegative(form) | Constraint::Zero(form)) = &constraint;
            match form.isolate(graph, range) {
                Some(isolated) => return Some(isolated),
                None => constraint = constraint.multiplied_out(graph, range)?,
            }
        }
    }

    /// The congruence of a Range whose coefficient is 1 or -1 in a form that must be a multiple of a number.
    pub fn congruence(&self, graph: &Graph, range: NodeId) -> Option<Congruence> {
        let (Constraint::NotNegative(form) | Constraint::Zero(form)) = self;
        let (&[(atom, factor)], 0) = (form.terms(), form.constant()) else { return None };
        let (Op::Mod, inner, step) = divided(graph, atom)? else { return None };
        if factor != -1 && !matches!(self, Constraint::Zero(_)) {
            return None;
        }
        match Affine::of(graph, inner).isolate(graph, range)? {
            (factor @ (1 | -1), rest) => Some(Congruence { start: rest.scale(-factor), step }),
            _ => None,
        }
    }

    /// Eliminates the quotient that depends on the Range: `x / d >= k` is `x >= d·k`, and `x / d <= k` is `x <= d·k + d - 1`.
    fn multiplied_out(&self, graph: &Graph, range: NodeId) -> Option<Constraint> {
        let Constraint::NotNegative(form) = self else { return None };
        let depends = |&&(atom, _): &&(NodeId, i64)| graph.reachable(&[atom]).contains(&range);
        let &(atom, factor) = form.terms().iter().find(depends)?;
        let (Op::Idiv, inner, divisor) = divided(graph, atom)? else { return None };
        let (inner, others) = (Affine::of(graph, inner), form.filter(|other| other != atom));
        let fits = |number: i64| number.checked_mul(divisor).is_some();
        if !fits(others.constant()) || !others.terms().iter().all(|term| fits(term.1)) {
            return None;
        }
        let bound = others.scale(divisor);
        match factor {
            1 => Some(Constraint::NotNegative(inner.plus(&bound))),
            -1 => Some(Constraint::NotNegative(bound.minus(&inner).offset(divisor - 1))),
            _ => None,
        }
    }
}

/// A Range that is `start` plus a multiple of `step`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Congruence {
    /// One of its values, possibly beyond its ends.
    pub start: Affine,
    /// The distance from one value to the next.
    pub step: i64,
}

/// The limits of a Range under constraints, each with the number of its constraint. An equation gives two.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// The Range is at least these.
    pub lows: SmallVec<[(Affine, usize); 2]>,
    /// The Range is at most these.
    pub highs: SmallVec<[(Affine, usize); 2]>,
}

/// Limits between which a Range has a constant number of values, wherever they begin.
pub struct Window<'a> {
    /// The first value.
    pub first: &'a Affine,
    /// The number of values; there are none if it is not positive.
    pub count: i64,
    /// The numbers of the two constraints.
    pub said: [usize; 2],
}

impl Domain {
    /// The domain under numbered constraints; those that do not limit the Range are ignored.
    pub fn of<'a>(
        graph: &Graph,
        range: NodeId,
        constraints: impl IntoIterator<Item = (usize, &'a Constraint)>,
    ) -> Domain {
        let mut domain = Domain::default();
        for (number, constraint) in constraints {
            match constraint.limit(graph, range) {
                Some(Limit::Least(low)) => domain.lows.push((low, number)),
                Some(Limit::Greatest(high)) => domain.highs.push((high, number)),
                Some(Limit::Only(only)) => {
                    domain.lows.push((only.clone(), number));
                    domain.highs.push((only, number));
                }
                None => {}
            }
        }
        domain
    }

    /// The least and the greatest value in `0..trips` under the constant limits.
    pub fn numbers(&self, trips: i64) -> (i64, i64) {
        let low = self.lows.iter().filter_map(|(low, _)| low.as_number()).fold(0, i64::max);
        let high = self.highs.iter().filter_map(|(high, _)| high.as_number()).fold(trips - 1, i64::min);
        (low, high)
    }

    /// The windows whose first value is not constant.
    pub fn windows(&self) -> impl Iterator<Item = Window<'_>> {
        let lows = self.lows.iter().filter(|(low, _)| low.as_number().is_none());
        let pairs = lows.flat_map(|low| self.highs.iter().map(move |high| (low, high)));
        pairs.filter_map(|((first, below), (last, above))| {
            let count = last.minus(first).as_number()?.saturating_add(1);
            Some(Window { first, count, said: [*below, *above] })
        })
    }
}

/// `a < b` as a bool scalar: a constant if the bounds decide it.
///
/// # Errors
/// As [`Affine::emit`].
pub fn less(graph: &mut Graph, a: &Affine, b: &Affine) -> Result<NodeId> {
    let decided = match b.minus(a).bounds(graph) {
        (low, _) if low > 0 => Some(true),
        (_, high) if high <= 0 => Some(false),
        _ => None,
    };
    if let Some(holds) = decided {
        return Ok(graph.constant(Const::int(DType::Bool, holds.into())));
    }
    let (a, b) = (a.emit(graph)?, b.emit(graph)?);
    graph.alu(Op::CmpLt, &[a, b])
}
