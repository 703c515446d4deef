//! Index arithmetic in normal form: a sum of atoms times constants, plus a constant.
//!
//! Splitting a range substitutes it by such a sum; contiguity is a coefficient of 1. One look at the terms folds the
//! quotients and remainders that reshapes leave behind, so no pass iterates to a fixed point.

use smallvec::SmallVec;
use tinyspec_ir::dim::{floor_div, floor_mod};
use tinyspec_ir::{Arg, Builder, Graph, Interval, NodeId, Op, Result};

/// `Σ coefficient · atom + constant`; atoms ascend, coefficients are not 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    pub terms: SmallVec<[(NodeId, i64); 4]>,
    pub constant: i64,
}

impl Sum {
    pub fn constant(constant: i64) -> Sum {
        Sum { terms: SmallVec::new(), constant }
    }

    pub fn atom(node: NodeId) -> Sum {
        Sum { terms: SmallVec::from_iter([(node, 1)]), constant: 0 }
    }

    /// The number, where no atom is left.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// What the atom is multiplied by.
    pub fn coefficient(&self, atom: NodeId) -> i64 {
        self.terms.iter().find(|term| term.0 == atom).map_or(0, |term| term.1)
    }

    pub fn scale(&self, factor: i64) -> Sum {
        if factor == 0 {
            return Sum::default();
        }
        Sum {
            terms: self.terms.iter().map(|&(atom, coefficient)| (atom, coefficient.wrapping_mul(factor))).collect(),
            constant: self.constant.wrapping_mul(factor),
        }
    }

    pub fn plus(&self, other: &Sum) -> Sum {
        let mut sum = Sum::constant(self.constant.wrapping_add(other.constant));
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let term = match (left.peek(), right.peek()) {
                (Some(&&(a, x)), Some(&&(b, y))) if a == b => {
                    left.next();
                    right.next();
                    (a, x.wrapping_add(y))
                }
                (Some(&&(a, x)), Some(&&(b, _))) if a < b => {
                    left.next();
                    (a, x)
                }
                (Some(&&term), None) => {
                    left.next();
                    term
                }
                (_, Some(&&term)) => {
                    right.next();
                    term
                }
                (None, None) => return sum,
            };
            if term.1 != 0 {
                sum.terms.push(term);
            }
        }
    }

    /// Least and greatest value.
    pub fn bounds(&self, graph: &Graph) -> Option<(i128, i128)> {
        let start = (self.constant as i128, self.constant as i128);
        self.terms.iter().try_fold(start, |(low, high), &(atom, coefficient)| {
            let Interval::Int(least, greatest) = graph.props(atom).interval else { return None };
            let (a, b) = (least.saturating_mul(coefficient as i128), greatest.saturating_mul(coefficient as i128));
            Some((low.saturating_add(a.min(b)), high.saturating_add(a.max(b))))
        })
    }

    /// The terms divisible by `divisor`, already divided, and the rest (with a constant in `0..divisor`).
    fn divide(&self, divisor: i64) -> (Sum, Sum) {
        let quotient = floor_div(self.constant, divisor);
        let (mut whole, mut rest) = (Sum::constant(quotient), Sum::constant(self.constant - quotient * divisor));
        for &(atom, coefficient) in &self.terms {
            if coefficient % divisor == 0 {
                whole.terms.push((atom, coefficient / divisor));
            } else {
                rest.terms.push((atom, coefficient));
            }
        }
        (whole, rest)
    }

    /// As an index scalar. Outer ranges come first and the constant last: so what a loop does not change is one node,
    /// and neighbours differ by a displacement.
    pub fn emit(&self, graph: &mut Graph) -> Result<NodeId> {
        let mut total: Option<NodeId> = None;
        for &(atom, coefficient) in &self.terms {
            let term = match coefficient {
                1 => atom,
                _ => {
                    let factor = graph.index(coefficient);
                    graph.alu(Op::Mul, &[atom, factor])?
                }
            };
            total = Some(match total {
                Some(total) => graph.alu(Op::Add, &[total, term])?,
                None => term,
            });
        }
        let constant = (self.constant != 0 || total.is_none()).then(|| graph.index(self.constant));
        match (total, constant) {
            (Some(total), Some(constant)) => graph.alu(Op::Add, &[total, constant]),
            (Some(node), None) | (None, Some(node)) => Ok(node),
            (None, None) => Ok(graph.index(0)),
        }
    }
}

/// The sum that the index op `(op, sources)` computes.
pub(crate) fn combine(graph: &mut Graph, op: Op, sources: &[Sum]) -> Result<Sum> {
    match (op, sources) {
        (Op::Add, [a, b]) => return Ok(a.plus(b)),
        (Op::Mul, [a, b]) => {
            if let Some(factor) = b.as_constant() {
                return Ok(a.scale(factor));
            }
            if let Some(factor) = a.as_constant() {
                return Ok(b.scale(factor));
            }
        }
        (Op::Idiv, [a, b]) => {
            if let Some(divisor) = b.as_constant().filter(|&divisor| divisor > 0) {
                return quotient(graph, a, divisor);
            }
        }
        (Op::Mod, [a, b]) => {
            if let Some(divisor) = b.as_constant().filter(|&divisor| divisor > 0) {
                return remainder(graph, a, divisor);
            }
        }
        _ => {}
    }
    opaque(graph, op, sources)
}

fn within(sum: &Sum, divisor: i64, graph: &Graph) -> bool {
    sum.bounds(graph).is_some_and(|(low, high)| low >= 0 && high < divisor as i128)
}

fn quotient(graph: &mut Graph, sum: &Sum, divisor: i64) -> Result<Sum> {
    let (whole, rest) = sum.divide(divisor);
    if within(&rest, divisor, graph) {
        return Ok(whole);
    }
    // A common factor of the divisor and of all terms that can carry is cancelled.
    let (common, reduced, _) = digits(graph, &rest, divisor);
    let inner = match nested_quotient(graph, &reduced, divisor / common) {
        Some((numerator, divisor)) => opaque(graph, Op::Idiv, &[Sum::atom(numerator), Sum::constant(divisor)])?,
        None if divisor == common => reduced,
        None => opaque(graph, Op::Idiv, &[reduced, Sum::constant(divisor / common)])?,
    };
    Ok(whole.plus(&inner))
}

/// `(x / a) / b` is `x / (a·b)`.
fn nested_quotient(graph: &Graph, sum: &Sum, divisor: i64) -> Option<(NodeId, i64)> {
    let ([(atom, 1)], 0) = (sum.terms.as_slice(), sum.constant) else { return None };
    let (Op::Idiv, [numerator, inner]) = (graph.op(*atom), graph.sources(*atom)) else { return None };
    let inner = i64::try_from(graph.as_int(*inner)?).ok().filter(|&inner| inner > 0)?;
    Some((*numerator, inner.checked_mul(divisor)?))
}

fn remainder(graph: &mut Graph, sum: &Sum, divisor: i64) -> Result<Sum> {
    let (_, rest) = sum.divide(divisor);
    if within(&rest, divisor, graph) {
        return Ok(rest);
    }
    let (common, high, low) = digits(graph, &rest, divisor);
    if low.terms.is_empty() {
        return opaque(graph, Op::Mod, &[rest, Sum::constant(divisor)]);
    }
    let high = remainder(graph, &high, divisor / common)?;
    Ok(high.scale(common).plus(&low))
}

/// The greatest factor of a divisor above which the terms that it does not divide, together with the constant, never carry:
/// `(1024·a + b) / 4096` is `a / 4` for a `b` below 1024. `bounds` are those of the terms that a factor does not divide.
pub(crate) fn factor_without_carry(
    divisor: i64,
    coefficients: impl Iterator<Item = i64> + Clone,
    bounds: impl Fn(i64) -> Option<(i128, i128)>,
) -> i64 {
    // The constant alone never carries.
    let common = coefficients.clone().fold(divisor, gcd);
    let never_carries =
        |&factor: &i64| factor > common && bounds(factor).is_some_and(|(low, high)| low >= 0 && high < factor as i128);
    coefficients.map(|coefficient| gcd(divisor, coefficient)).filter(never_carries).max().unwrap_or(common)
}

/// `factor · high + low`, where `low` never carries.
fn digits(graph: &Graph, sum: &Sum, divisor: i64) -> (i64, Sum, Sum) {
    let low = |factor: i64| Sum {
        terms: sum.terms.iter().copied().filter(|term| term.1 % factor != 0).collect(),
        constant: floor_mod(sum.constant, factor),
    };
    let coefficients = sum.terms.iter().map(|term| term.1);
    let factor = factor_without_carry(divisor, coefficients, |factor| low(factor).bounds(graph));
    let whole = sum.terms.iter().filter(|term| term.1 % factor == 0);
    let high = Sum {
        terms: whole.map(|&(atom, coefficient)| (atom, coefficient / factor)).collect(),
        constant: floor_div(sum.constant, factor),
    };
    (factor, high, low(factor))
}

/// The greatest common divisor; of 0 and a number, the number's size.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

/// An atom of its own, unless its interval is one number.
fn opaque(graph: &mut Graph, op: Op, sources: &[Sum]) -> Result<Sum> {
    let mut nodes: SmallVec<[NodeId; 3]> = SmallVec::new();
    for source in sources {
        nodes.push(source.emit(graph)?);
    }
    let node = graph.add(op, &nodes, Arg::None)?;
    Ok(as_sum(graph, node))
}

/// A node as an atom, or as the only number it can be.
pub(crate) fn as_sum(graph: &Graph, node: NodeId) -> Sum {
    match graph.props(node).interval.single().and_then(|number| i64::try_from(number).ok()) {
        Some(number) => Sum::constant(number),
        None => Sum::atom(node),
    }
}
