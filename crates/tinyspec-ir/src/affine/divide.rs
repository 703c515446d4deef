//! Floored quotients and remainders of forms by positive numbers.
//!
//! A form is split into a multiple of the divisor and a remainder. If the remainder is known to be below the divisor, the multiple
//! is the quotient.
//! Otherwise the greatest factor is cancelled above which the terms that it does not divide never carry: `(1024·a + b) / 4096` is
//! `a / 4` for a `b` below 1024. What cannot be simplified further becomes an atom. One pass over the terms thus folds reshapes,
//! splits and merges of Ranges.

use super::{Affine, Terms};
use crate::dim::{floor_div, floor_mod};
use crate::{Arg, Builder, Graph, NodeId, Op, Result};
use smallvec::SmallVec;

impl Affine {
    /// Applies an op to forms: a sum, a multiple, a quotient or a remainder; otherwise the result is an atom.
    ///
    /// # Errors
    /// When [`crate::derive()`] refuses a node.
    pub fn combine(graph: &mut Graph, op: Op, sources: &[Affine]) -> Result<Affine> {
        let divisor = sources.get(1).and_then(Affine::as_number).filter(|&divisor| divisor > 0);
        match (op, divisor) {
            (Op::Idiv, Some(divisor)) => sources[0].quotient(graph, divisor),
            (Op::Mod, Some(divisor)) => sources[0].remainder(graph, divisor),
            _ => match Affine::linear(op, sources) {
                Some(form) => Ok(form),
                None => opaque(graph, op, sources),
            },
        }
    }

    /// The sum of two forms, or a multiple of one.
    pub fn linear(op: Op, sources: &[Affine]) -> Option<Affine> {
        match (op, sources) {
            (Op::Add, [a, b]) => Some(a.plus(b)),
            (Op::Mul, [a, b]) => match (a.as_number(), b.as_number()) {
                (_, Some(factor)) => Some(a.scale(factor)),
                (Some(factor), _) => Some(b.scale(factor)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The floored quotient by a positive number.
    ///
    /// # Errors
    /// When [`crate::derive()`] refuses a node.
    pub fn quotient(&self, graph: &mut Graph, divisor: i64) -> Result<Affine> {
        let (whole, rest) = self.split(graph, divisor);
        if let Some(quotient) = rest.only_quotient(graph, divisor) {
            return Ok(whole.offset(quotient));
        }
        let (factor, high, _) = rest.digits(graph, divisor);
        let divisor = divisor / factor;
        // `(y / d) / e` is `y / (d·e)`.
        let nested = high.only_atom().and_then(|atom| match divided(graph, atom)? {
            (Op::Idiv, inner, step) => Some((inner, step.checked_mul(divisor)?)),
            _ => None,
        });
        let high = match nested {
            Some((inner, divisor)) => Affine::of(graph, inner).quotient(graph, divisor)?,
            None if divisor == 1 => high,
            None => opaque(graph, Op::Idiv, &[high, Affine::number(divisor)])?,
        };
        Ok(whole.plus(&high))
    }

    /// The floored remainder by a positive number.
    ///
    /// # Errors
    /// When [`crate::derive()`] refuses a node.
    pub fn remainder(&self, graph: &mut Graph, divisor: i64) -> Result<Affine> {
        let (_, rest) = self.split(graph, divisor);
        if let Some(quotient) = rest.only_quotient(graph, divisor) {
            return Ok(rest.offset(quotient.wrapping_mul(divisor).wrapping_neg()));
        }
        let (factor, high, low) = rest.digits(graph, divisor);
        let divisor = divisor / factor;
        // `(y mod d) mod e` is `y mod e` where e divides d.
        let nested = high.only_atom().and_then(|atom| match divided(graph, atom)? {
            (Op::Mod, inner, step) if step % divisor == 0 => Some(inner),
            _ => None,
        });
        let high = match nested {
            Some(inner) => Affine::of(graph, inner).remainder(graph, divisor)?,
            None if divisor == 1 => Affine::default(),
            None => match high.only_quotient(graph, divisor) {
                Some(quotient) => high.offset(quotient.wrapping_mul(divisor).wrapping_neg()),
                None => opaque(graph, Op::Mod, &[high, Affine::number(divisor)])?,
            },
        };
        Ok(high.scale(factor).plus(&low))
    }

    /// Splits the form into `divisor · whole + rest`, where the rest has as few values as possible: coefficients are
    /// rounded down or to the nearest multiple. The gradient of a window has indices such as `58·k + i` in rows of 59,
    /// which is row `k` at `i - k`.
    fn split(&self, graph: &Graph, divisor: i64) -> (Affine, Affine) {
        let width = |rest: &Affine| {
            let (low, high) = rest.bounds(graph);
            high.saturating_sub(low)
        };
        let (cut, nearest) = (self.split_by(divisor, false), self.split_by(divisor, true));
        if width(&nearest.1) < width(&cut.1) { nearest } else { cut }
    }

    fn split_by(&self, divisor: i64, nearest: bool) -> (Affine, Affine) {
        let (mut whole, mut rest) = (Terms::new(), Terms::new());
        for &(atom, coefficient) in &self.terms {
            let (mut quotient, mut left) = (coefficient / divisor, coefficient % divisor);
            if nearest && left.unsigned_abs() > divisor.unsigned_abs() / 2 {
                (quotient, left) = (quotient + left.signum(), left - left.signum() * divisor);
            }
            whole.extend((quotient != 0).then_some((atom, quotient)));
            rest.extend((left != 0).then_some((atom, left)));
        }
        let (quotient, left) = (floor_div(self.constant, divisor), floor_mod(self.constant, divisor));
        (Affine { terms: whole, constant: quotient }, Affine { terms: rest, constant: left })
    }

    /// The quotient, if it is the same for all values.
    fn only_quotient(&self, graph: &Graph, divisor: i64) -> Option<i64> {
        let (low, high) = self.bounds(graph);
        let quotient = floor_div(i64::try_from(low).ok()?, divisor);
        (quotient == floor_div(i64::try_from(high).ok()?, divisor)).then_some(quotient)
    }

    /// `factor · high + low`, by the greatest factor of the divisor for which `low` never carries.
    fn digits(&self, graph: &Graph, divisor: i64) -> (i64, Affine, Affine) {
        // A factor common to all terms: the constant alone never carries.
        let common = self.terms.iter().fold(divisor, |common, term| gcd(common, term.1));
        let candidates = self.terms.iter().map(|term| gcd(divisor, term.1));
        let factor = candidates.filter(|&factor| factor > common && self.below(factor).is_within(graph, factor)).max();
        let factor = factor.unwrap_or(common);
        let whole = self.terms.iter().filter(|term| term.1 % factor == 0);
        let high = whole.map(|&(atom, coefficient)| (atom, coefficient / factor)).collect();
        (factor, Affine { terms: high, constant: floor_div(self.constant, factor) }, self.below(factor))
    }

    /// The terms that a factor does not divide, and the remainder of the constant.
    fn below(&self, factor: i64) -> Affine {
        let terms = self.terms.iter().copied().filter(|term| term.1 % factor != 0).collect();
        Affine { terms, constant: floor_mod(self.constant, factor) }
    }

    /// The atom, if the form is nothing else.
    fn only_atom(&self) -> Option<NodeId> {
        match (self.terms.as_slice(), self.constant) {
            (&[(atom, 1)], 0) => Some(atom),
            _ => None,
        }
    }
}

/// The op, the dividend and the divisor of a quotient or remainder by a positive constant.
pub fn divided(graph: &Graph, atom: NodeId) -> Option<(Op, NodeId, i64)> {
    let (op @ (Op::Idiv | Op::Mod), &[inner, divisor]) = (graph.op(atom), graph.sources(atom)) else { return None };
    let divisor = i64::try_from(graph.as_int(divisor)?).ok().filter(|&divisor| divisor > 0)?;
    Some((op, inner, divisor))
}

/// An atom, unless it can only have one value.
fn opaque(graph: &mut Graph, op: Op, sources: &[Affine]) -> Result<Affine> {
    let mut nodes: SmallVec<[NodeId; 3]> = SmallVec::new();
    for source in sources {
        nodes.push(source.emit(graph)?);
    }
    let node = graph.add(op, &nodes, Arg::None)?;
    Ok(Affine::leaf(graph, node))
}

/// The greatest common divisor; of 0 and a number, its magnitude.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    // For MIN and 0, or MIN twice, the result does not fit in i64.
    i64::try_from(a).unwrap_or(1 << 62)
}
