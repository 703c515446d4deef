//! Decides whether two iterations that access the same element must be the same iteration.
//!
//! The equations are solved axis by axis, as in mixed radix: if `c·(a - b)` and a rest smaller than `c` add up to 0,
//! `a` and `b` are equal. The remaining equations may still be impossible: a sum of even numbers that is odd, or
//! contradictory conditions.

use super::poly::{Poly, Symbol};
use super::prover::Prover;
use crate::NodeId;

/// The facts about two iterations that access the same element.
pub(super) struct Meeting<'g> {
    pub prover: Prover<'g>,
    /// Sums that are 0.
    pub zeros: Vec<Poly>,
}

impl Meeting<'_> {
    /// A loop among `parallel` whose iterations may differ; `None` if they must be the same, or cannot access the same
    /// element.
    pub fn differing_loop(mut self, parallel: &[NodeId]) -> Option<NodeId> {
        let mut differing: Vec<NodeId> = parallel.to_vec();
        self.solve_quotients();
        loop {
            if (0..self.zeros.len()).any(|zero| self.is_impossible(zero)) {
                return None;
            }
            // A gate such as `i == 0` leaves one iteration.
            for &range in parallel {
                let (mine, other) = self.iterations(range);
                let gap = Poly::symbol(mine).minus(&Poly::symbol(other));
                if mine != other && self.prover.holds(&gap) && self.prover.holds(&gap.negated()) {
                    self.merge(mine, other);
                }
            }
            differing.retain(|&range| {
                let (mine, other) = self.iterations(range);
                mine != other
            });
            if differing.is_empty() {
                return None;
            }
            let Some((kept, gone)) = self.equal_pair() else { break };
            self.merge(kept, gone);
        }
        if self.contradicts() { None } else { differing.first().copied() }
    }

    /// The symbols of a loop's variable in both iterations, after merging equal ones.
    fn iterations(&mut self, range: NodeId) -> (Symbol, Symbol) {
        let (mine, other) = (self.prover.range(range, false), self.prover.range(range, true));
        (self.prover.representative(mine), self.prover.representative(other))
    }

    /// Substitutes quotients that one axis determines in the others.
    fn solve_quotients(&mut self) {
        for position in 0..self.zeros.len() {
            let Some((symbol, value)) = self.prover.solve(&self.zeros[position]) else { continue };
            for (other, zero) in self.zeros.iter_mut().enumerate() {
                if other != position {
                    *zero = zero.substitute(symbol, &value);
                }
            }
        }
    }

    /// Two symbols that an equation forces to be equal: `c·(a - b) + rest = 0` with `|rest| < |c|`.
    fn equal_pair(&mut self) -> Option<(Symbol, Symbol)> {
        for zero in self.zeros.clone() {
            let symbols = zero.symbols();
            for (position, &a) in symbols.iter().enumerate() {
                let Some((coefficient, rest)) = zero.linear_in(a) else { continue };
                for &b in &symbols[position + 1..] {
                    if !self.prover.are_alike(a, b) {
                        continue;
                    }
                    let Some((opposite, rest)) = rest.linear_in(b) else { continue };
                    let is_pair = !coefficient.0.is_empty() && coefficient.plus(&opposite) == Poly::default();
                    if is_pair
                        && [coefficient.clone(), coefficient.negated()].iter().any(|size| self.is_within(&rest, size))
                    {
                        return Some((a, b));
                    }
                }
            }
        }
        None
    }

    /// `|rest| < size`.
    fn is_within(&mut self, rest: &Poly, size: &Poly) -> bool {
        let room = size.offset(-1);
        self.prover.holds(&room) && self.prover.holds(&room.minus(rest)) && self.prover.holds(&room.plus(rest))
    }

    fn merge(&mut self, kept: Symbol, gone: Symbol) {
        let mut pending = vec![(kept, gone)];
        while let Some((kept, gone)) = pending.pop() {
            let value = Poly::symbol(kept);
            for zero in &mut self.zeros {
                *zero = zero.substitute(gone, &value);
            }
            pending.extend(self.prover.merge(kept, gone));
        }
    }

    /// Whether a sum is never 0: always above, always below, or not divisible by the common divisor of its terms.
    fn is_impossible(&mut self, zero: usize) -> bool {
        let zero = self.zeros[zero].clone();
        is_indivisible(&zero) || self.prover.holds(&zero.offset(-1)) || self.prover.holds(&zero.negated().offset(-1))
    }

    /// Whether the equations, also solved for loop variables, make the conditions contradictory.
    fn contradicts(&mut self) -> bool {
        let mut zeros = self.zeros.clone();
        let mut facts = self.prover.facts.clone();
        facts.extend(self.prover.bounds());
        for _ in 0..zeros.len() {
            let solved = zeros.iter().enumerate().find_map(|(position, zero)| {
                let symbols = zero.symbols().into_iter();
                let mut unit = symbols.filter_map(|symbol| {
                    let (coefficient, rest) = zero.linear_in(symbol)?;
                    match coefficient.as_constant()? {
                        1 => Some((symbol, rest.negated())),
                        -1 => Some((symbol, rest)),
                        _ => None,
                    }
                });
                Some((position, unit.next()?))
            });
            let Some((position, (symbol, value))) = solved else { break };
            zeros.swap_remove(position);
            for poly in zeros.iter_mut().chain(&mut facts) {
                *poly = poly.substitute(symbol, &value);
            }
            let is_negative = |poly: &Poly| poly.as_constant().is_some_and(|number| number < 0);
            let exclude = || {
                facts.iter().enumerate().any(|(position, a)| facts[..position].iter().any(|b| is_negative(&a.plus(b))))
            };
            if zeros.iter().any(is_indivisible) || facts.iter().any(is_negative) || exclude() {
                return true;
            }
        }
        false
    }
}

/// Whether the constant is not divisible by the common divisor of all other coefficients.
fn is_indivisible(zero: &Poly) -> bool {
    let constant = zero.0.iter().find(|(monomial, _)| monomial.is_empty()).map_or(0, |(_, &number)| number);
    let others = zero.0.iter().filter(|(monomial, _)| !monomial.is_empty());
    match others.fold(0, |divisor, (_, &coefficient)| gcd(divisor, coefficient)) {
        0 => constant != 0,
        divisor => constant % divisor != 0,
    }
}

/// The greatest common divisor; of 0 and a number, the number.
pub fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i128
}
