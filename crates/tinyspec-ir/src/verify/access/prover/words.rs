//! Sums in messages: their extreme values, and their text.

use super::super::poly::{Monomial, Poly, Symbol};
use super::{BUDGET, Kind, Prover};
use crate::NodeId;

impl Prover<'_> {
    /// The greatest (or least) value at the bounds of all loops, which is a sum of dims if possible.
    pub fn extreme(&mut self, poly: &Poly, greatest: bool) -> Poly {
        let mut found = poly.clone();
        while let Some((factor, _, divisor, rest)) = self.remainder(&found) {
            let last = divisor.offset(-1);
            if !self.holds(&last) {
                break;
            }
            let is_at_end = greatest == (factor > 0);
            found = if is_at_end { rest.plus(&last.times(&Poly::constant(factor))) } else { rest };
        }
        if !greatest {
            found = found.negated();
        }
        let mut tried: Vec<Symbol> = Vec::new();
        // The bounds of inner loops may contain outer variables.
        while let Some(symbol) = found.symbols().into_iter().rev().find(|symbol| !tried.contains(symbol)) {
            tried.push(symbol);
            if self.is_divided(&found, symbol) {
                continue;
            }
            let Some(last) = self.last.get(&symbol).cloned() else { continue };
            let Some((coefficient, rest)) = found.linear_in(symbol) else { continue };
            self.budget = BUDGET;
            if self.prove(&coefficient, 0) {
                found = rest.plus(&coefficient.times(&last));
            } else if self.prove(&coefficient.negated(), 0) {
                found = rest;
            }
        }
        if greatest { found } else { found.negated() }
    }

    /// Whether the symbol also occurs inside a quotient, so that it cannot be eliminated separately.
    fn is_divided(&self, poly: &Poly, symbol: Symbol) -> bool {
        poly.symbols().into_iter().any(|other| match &self.kinds[other as usize] {
            Kind::Quotient(a, b) => {
                [a, b].iter().any(|part| part.symbols().contains(&symbol) || self.is_divided(part, symbol))
            }
            _ => false,
        })
    }

    /// `c`, `a`, `b` and the rest of a sum that contains `c * (a % b)`, as `c * (a - b * (a / b))`.
    pub(super) fn remainder(&self, poly: &Poly) -> Option<(i128, Poly, Poly, Poly)> {
        poly.symbols().into_iter().find_map(|symbol| {
            let Kind::Quotient(a, b) = &self.kinds[symbol as usize] else { return None };
            let (coefficient, rest) = poly.linear_in(symbol)?;
            let factor = match (coefficient.as_constant(), b.as_constant()) {
                (Some(coefficient), Some(b)) if b > 0 && coefficient % b == 0 => (coefficient / b).saturating_neg(),
                _ if coefficient == b.negated() => 1,
                _ if coefficient == *b => -1,
                _ => return None,
            };
            let others = rest.minus(&a.times(&Poly::constant(factor)));
            (others.0.len() < rest.0.len()).then(|| (factor, a.clone(), b.clone(), others))
        })
    }

    /// A sum as text; `name` gives the names of dims and Ranges.
    pub fn show(&self, poly: &Poly, name: &dyn Fn(NodeId) -> Option<String>) -> Option<String> {
        let part = |poly: &Poly| {
            let text = self.show(poly, name)?;
            Some(if text.contains(' ') { format!("({text})") } else { text })
        };
        if let Some((factor @ 1.., a, b, rest)) = self.remainder(poly) {
            let mut remainder = format!("{} % {}", part(&a)?, part(&b)?);
            if factor != 1 {
                remainder = format!("{factor} * ({remainder})");
            }
            let rest = self.show(&rest, name)?;
            return Some(match rest.strip_prefix('-') {
                _ if rest == "0" => remainder,
                Some(less) => format!("{remainder} - {less}"),
                None => format!("{remainder} + {rest}"),
            });
        }
        let mut text = String::new();
        let mut terms: Vec<(&Monomial, i128)> = poly.0.iter().map(|(monomial, &number)| (monomial, number)).collect();
        // Names first, the constant last.
        terms.sort_by_key(|(monomial, _)| (monomial.is_empty(), monomial.len()));
        for (monomial, number) in terms {
            let mut factors: Vec<String> = Vec::new();
            if number.abs() != 1 || monomial.is_empty() {
                factors.push(number.abs().to_string());
            }
            for &symbol in monomial {
                factors.push(match &self.kinds[symbol as usize] {
                    Kind::Node(node, _) => name(*node)?,
                    Kind::Quotient(a, b) => format!("({} / {})", part(a)?, part(b)?),
                    Kind::Choice { .. } => return None,
                });
            }
            let sign = match (text.is_empty(), number < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text += sign;
            text += &factors.join("*");
        }
        Some(if text.is_empty() { "0".into() } else { text })
    }
}
