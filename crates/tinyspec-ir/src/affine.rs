//! Affine expressions over nodes, `Σ coefficient · atom + constant`: the normal form of index arithmetic.
//!
//! Two indices are equal if their forms are; the coefficient of a Range is the stride of its loop, and a stride of 1 is
//! contiguous. An atom is any node that the form treats as opaque. Forms are built in time linear in the nodes visited,
//! and all other operations are linear in the number of terms, which is small for an index.
//!
//! An `index` is a mathematical integer, so sums of indices are always expanded. Machine integers wrap: their sums are
//! expanded only if the intervals show that they are exact ([`Affine::of`]). Coefficients are i64. Arithmetic on forms
//! wraps like that of the machine, so a value that fits in i64 is right even if an intermediate result did not.
//!
//! * [`Affine::quotient`], [`Affine::remainder`]: simplified unless a carry prevents it.
//! * [`Constraint`], [`Domain`]: comparisons as `form >= 0` or `form == 0`, and the values of a Range that they allow.
//! * [`Footprint`]: the elements that a form covers while its Ranges run.

mod constraint;
mod divide;
mod footprint;

pub use constraint::{Constraint, Domain, Limit, Window, less};
pub use divide::{divided, gcd};
pub use footprint::Footprint;

use crate::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};
use smallvec::{SmallVec, smallvec};

/// Atoms, ascending, and their coefficients, none of which is 0.
pub type Terms = SmallVec<[(NodeId, i64); 4]>;

/// `Σ coefficient · atom + constant`. An atom of a bool counts as 1 where the bool holds.
///
/// ```
/// use tinyspec_ir::{AxisType, Builder, Graph, Op, affine::Affine};
/// let mut graph = Graph::new();
/// let trips = graph.index(4);
/// let (i, j) = (graph.range(trips, 0, AxisType::Loop)?, graph.range(trips, 1, AxisType::Loop)?);
/// let row = Affine::atom(i).scale(8);
/// let place = row.plus(&Affine::atom(j).scale(2)).offset(1);
/// assert_eq!(place.bounds(&graph), (1, 31));
/// let node = place.emit(&mut graph)?;
/// assert_eq!(Affine::of(&graph, node), place);
/// assert_eq!(place.quotient(&mut graph, 8)?, Affine::atom(i));
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Affine {
    terms: Terms,
    constant: i64,
}

impl Affine {
    /// A number.
    pub fn number(constant: i64) -> Affine {
        Affine { terms: Terms::new(), constant }
    }

    /// A node as an opaque atom.
    pub fn atom(node: NodeId) -> Affine {
        Affine { terms: smallvec![(node, 1)], constant: 0 }
    }

    /// The sum of some terms, in any order, and a constant.
    pub fn sum(terms: impl IntoIterator<Item = (NodeId, i64)>, constant: i64) -> Affine {
        let mut terms: Terms = terms.into_iter().collect();
        terms.sort_unstable_by_key(|term| term.0);
        terms.dedup_by(|(atom, more), (kept, coefficient)| {
            let is_same = atom == kept;
            *coefficient = coefficient.wrapping_add(if is_same { *more } else { 0 });
            is_same
        });
        terms.retain(|term| term.1 != 0);
        Affine { terms, constant }
    }

    /// A node as an atom, or as the only number it can be.
    pub fn leaf(graph: &Graph, node: NodeId) -> Affine {
        let only = graph.props(node).interval.single().and_then(|number| i64::try_from(number).ok());
        only.map_or_else(|| Affine::atom(node), Affine::number)
    }

    /// The form of an integer scalar, or of a tile of indices.
    ///
    /// It expands sums, products with a number, broadcasts, casts of machine integers, and selects between two constant
    /// machine integers, which are multiples of their condition. Anything that may wrap is an atom.
    pub fn of(graph: &Graph, node: NodeId) -> Affine {
        Affine::read(graph, node).unwrap_or_else(|| Affine::atom(node))
    }

    /// `None` if a coefficient does not fit.
    fn read(graph: &Graph, node: NodeId) -> Option<Affine> {
        let number = |node: NodeId| graph.props(node).interval.single();
        let (mut terms, mut constant) = (Terms::new(), 0i128);
        // Sources have smaller numbers than their users: the factor of the greatest pending node is complete.
        let mut pending: SmallVec<[(NodeId, i128); 8]> = smallvec![(node, 1)];
        while let Some((node, factor)) = pending.pop() {
            let mut add = |node: NodeId, factor: i128| {
                match pending.binary_search_by_key(&node, |other| other.0) {
                    Ok(place) => pending[place].1 = pending[place].1.checked_add(factor)?,
                    Err(place) => pending.insert(place, (node, factor)),
                }
                Some(())
            };
            match (graph.op(node), graph.sources(node)) {
                _ if let Some(number) = number(node) => {
                    constant = constant.checked_add(factor.checked_mul(number)?)?;
                }
                (Op::Add, &[a, b]) if is_exact(graph, node) => {
                    add(a, factor)?;
                    add(b, factor)?;
                }
                (Op::Mul, &[a, b])
                    if is_exact(graph, node)
                        && let Some(number) = number(b) =>
                {
                    add(a, factor.checked_mul(number)?)?;
                }
                (Op::Mul, &[a, b])
                    if is_exact(graph, node)
                        && let Some(number) = number(a) =>
                {
                    add(b, factor.checked_mul(number)?)?;
                }
                (Op::Expand, &[source, _]) => add(source, factor)?,
                (Op::Cast, &[source]) if is_exact(graph, node) => add(source, factor)?,
                (Op::Where, &[condition, yes, no])
                    if graph.dtype(node) != DType::Index
                        && graph.props(condition).shape.is_empty()
                        && let (Some(yes), Some(no)) = (number(yes), number(no)) =>
                {
                    constant = constant.checked_add(factor.checked_mul(no)?)?;
                    add(condition, factor.checked_mul(yes - no)?)?;
                }
                _ if factor == 0 => {}
                _ => terms.push((node, i64::try_from(factor).ok()?)),
            }
        }
        terms.reverse();
        Some(Affine { terms, constant: i64::try_from(constant).ok()? })
    }

    /// The terms, ascending by atom.
    pub fn terms(&self) -> &[(NodeId, i64)] {
        &self.terms
    }

    /// The atoms, ascending.
    pub fn atoms(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.terms.iter().map(|term| term.0)
    }

    /// The constant term.
    pub fn constant(&self) -> i64 {
        self.constant
    }

    /// The number, if there is no atom.
    pub fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The coefficient of an atom; 0 if it does not occur.
    pub fn coefficient(&self, atom: NodeId) -> i64 {
        self.terms.binary_search_by_key(&atom, |term| term.0).map_or(0, |place| self.terms[place].1)
    }

    /// This plus a number.
    #[must_use]
    pub fn offset(&self, number: i64) -> Affine {
        Affine { terms: self.terms.clone(), constant: self.constant.wrapping_add(number) }
    }

    /// The terms alone.
    #[must_use]
    pub fn without_constant(&self) -> Affine {
        Affine { terms: self.terms.clone(), constant: 0 }
    }

    /// This times a number.
    #[must_use]
    pub fn scale(&self, factor: i64) -> Affine {
        let terms = self.terms.iter().map(|&(atom, coefficient)| (atom, coefficient.wrapping_mul(factor)));
        Affine { terms: terms.filter(|term| term.1 != 0).collect(), constant: self.constant.wrapping_mul(factor) }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Affine) -> Affine {
        self.combined(other, 1)
    }

    /// The difference of both.
    #[must_use]
    pub fn minus(&self, other: &Affine) -> Affine {
        self.combined(other, -1)
    }

    /// `self + sign · other`.
    fn combined(&self, other: &Affine, sign: i64) -> Affine {
        let constant = self.constant.wrapping_add(other.constant.wrapping_mul(sign));
        let mut sum = Affine { terms: Terms::new(), constant };
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let next = left.peek().map(|term| term.0).into_iter().chain(right.peek().map(|term| term.0)).min();
            let Some(atom) = next else { return sum };
            let own = left.next_if(|term| term.0 == atom).map_or(0, |term| term.1);
            let others = right.next_if(|term| term.0 == atom).map_or(0, |term| term.1);
            let coefficient = own.wrapping_add(others.wrapping_mul(sign));
            if coefficient != 0 {
                sum.terms.push((atom, coefficient));
            }
        }
    }

    /// Each atom replaced by a form.
    #[must_use]
    pub fn substitute(&self, mut form: impl FnMut(NodeId) -> Affine) -> Affine {
        let constant = Affine::number(self.constant);
        self.terms.iter().fold(constant, |sum, &(atom, coefficient)| sum.plus(&form(atom).scale(coefficient)))
    }

    /// With all bools true: the address of a speculative load while its gate is open.
    #[must_use]
    pub fn where_all_hold(&self, graph: &Graph) -> Affine {
        self.substitute(|atom| match graph.dtype(atom) {
            DType::Bool => Affine::number(1),
            _ => Affine::atom(atom),
        })
    }

    /// Only the terms with a wanted atom, and the constant.
    #[must_use]
    pub fn filter(&self, mut wanted: impl FnMut(NodeId) -> bool) -> Affine {
        let terms = self.terms.iter().copied().filter(|term| wanted(term.0)).collect();
        Affine { terms, constant: self.constant }
    }

    /// The coefficient of a Range, and the rest; `None` if an atom of the rest depends on the Range.
    pub fn isolate(&self, graph: &Graph, range: NodeId) -> Option<(i64, Affine)> {
        let rest = self.filter(|atom| atom != range);
        let depends = |&(atom, _): &(NodeId, i64)| atom > range && graph.reachable(&[atom]).contains(&range);
        (!rest.terms.iter().any(depends)).then(|| (self.coefficient(range), rest))
    }

    /// Least and greatest value.
    pub fn bounds(&self, graph: &Graph) -> (i128, i128) {
        let start = (i128::from(self.constant), i128::from(self.constant));
        self.terms.iter().fold(start, |(low, high), &(atom, coefficient)| {
            let (least, greatest) = graph.props(atom).interval.int().unwrap_or((i64::MIN.into(), i64::MAX.into()));
            let ends = [least, greatest].map(|end| end.saturating_mul(coefficient.into()));
            (low.saturating_add(ends[0].min(ends[1])), high.saturating_add(ends[0].max(ends[1])))
        })
    }

    /// Whether it lies in `0..length`, whatever its atoms are.
    pub fn is_within(&self, graph: &Graph, length: i64) -> bool {
        let (low, high) = self.bounds(graph);
        low >= 0 && high < length.into()
    }

    /// Emits an index scalar. Outer Ranges come first and the constant last, so that loop-invariant parts are one node,
    /// and neighbours differ by a displacement.
    ///
    /// # Errors
    /// If an atom is not a scalar integer.
    pub fn emit(&self, graph: &mut Graph) -> Result<NodeId> {
        self.emit_as(graph, DType::Index)
    }

    /// Like [`Affine::emit`], but in another dtype, to which atoms are cast.
    ///
    /// # Errors
    /// As [`Affine::emit`].
    pub fn emit_as(&self, graph: &mut Graph, dtype: DType) -> Result<NodeId> {
        let number = |graph: &mut Graph, number: i64| graph.constant(Const::int(dtype, number.into()));
        let mut total: Option<NodeId> = None;
        for &(atom, coefficient) in &self.terms {
            let mut term = match graph.dtype(atom) == dtype {
                true => atom,
                false => graph.add(Op::Cast, &[atom], Arg::DType(dtype))?,
            };
            if coefficient != 1 {
                let factor = number(graph, coefficient);
                term = graph.alu(Op::Mul, &[term, factor])?;
            }
            total = Some(match total {
                Some(total) => graph.alu(Op::Add, &[total, term])?,
                None => term,
            });
        }
        match total {
            Some(total) if self.constant == 0 => Ok(total),
            Some(total) => {
                let constant = number(graph, self.constant);
                graph.alu(Op::Add, &[total, constant])
            }
            None => Ok(number(graph, self.constant)),
        }
    }
}

/// Whether the value is the mathematical result of its op. Indices always are.
fn is_exact(graph: &Graph, node: NodeId) -> bool {
    let bounds = |node: NodeId| graph.props(node).interval.int();
    let (low, high) = match (graph.op(node), graph.sources(node)) {
        (Op::Add | Op::Mul, _) if graph.dtype(node) == DType::Index => return true,
        (Op::Add, &[a, b]) => match (bounds(a), bounds(b)) {
            (Some((a, b)), Some((c, d))) => (a.saturating_add(c), b.saturating_add(d)),
            _ => return false,
        },
        (Op::Mul, &[a, b]) => match (bounds(a), bounds(b)) {
            (Some((a, b)), Some((c, d))) => {
                let corners = [a.saturating_mul(c), a.saturating_mul(d), b.saturating_mul(c), b.saturating_mul(d)];
                corners.into_iter().fold((i128::MAX, i128::MIN), |(low, high), end| (low.min(end), high.max(end)))
            }
            _ => return false,
        },
        // A cast of data to an index is opaque.
        (Op::Cast, &[a]) if graph.dtype(a) != DType::Bool && graph.dtype(node) != DType::Index => match bounds(a) {
            Some(bounds) => bounds,
            None => return false,
        },
        _ => return false,
    };
    graph.dtype(node).int_range().is_some_and(|(least, greatest)| least <= low && high <= greatest)
}
