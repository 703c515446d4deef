//! Polynomials over symbols with integer coefficients: index arithmetic in normal form.

use smallvec::SmallVec;
use std::collections::BTreeMap;

/// A symbol of a [`super::prover::Prover`], by number.
pub(super) type Symbol = u32;

/// A product of symbols, ascending; empty for the constant.
pub(super) type Monomial = SmallVec<[Symbol; 3]>;

/// A sum of monomials with coefficients that are not 0.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct Poly(pub BTreeMap<Monomial, i128>);

impl Poly {
    pub fn constant(number: i128) -> Poly {
        Poly::term(Monomial::new(), number)
    }

    pub fn symbol(symbol: Symbol) -> Poly {
        Poly::term(Monomial::from_slice(&[symbol]), 1)
    }

    pub fn term(monomial: Monomial, coefficient: i128) -> Poly {
        let mut poly = Poly::default();
        if coefficient != 0 {
            poly.0.insert(monomial, coefficient);
        }
        poly
    }

    pub fn as_constant(&self) -> Option<i128> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Monomial::new()).copied(),
            _ => None,
        }
    }

    /// Whether coefficients are so small that sums and products of a few such polynomials cannot overflow. Those of
    /// indices are.
    pub fn is_small(&self) -> bool {
        self.0.values().all(|coefficient| coefficient.unsigned_abs() < 1 << 40)
    }

    pub fn plus(&self, other: &Poly) -> Poly {
        let mut sum = self.clone();
        for (monomial, &coefficient) in &other.0 {
            let total = sum.0.entry(monomial.clone()).or_insert(0);
            *total = total.saturating_add(coefficient);
            if *total == 0 {
                sum.0.remove(monomial);
            }
        }
        sum
    }

    pub fn minus(&self, other: &Poly) -> Poly {
        self.plus(&other.times(&Poly::constant(-1)))
    }

    pub fn offset(&self, number: i128) -> Poly {
        self.plus(&Poly::constant(number))
    }

    pub fn negated(&self) -> Poly {
        self.times(&Poly::constant(-1))
    }

    pub fn times(&self, other: &Poly) -> Poly {
        let mut product = Poly::default();
        for (a, &x) in &self.0 {
            for (b, &y) in &other.0 {
                let mut monomial = a.clone();
                monomial.extend_from_slice(b);
                monomial.sort_unstable();
                product = product.plus(&Poly::term(monomial, x.saturating_mul(y)));
            }
        }
        product
    }

    /// Every symbol in it, ascending.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = self.0.keys().flatten().copied().collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }

    /// `coefficient · symbol + rest`, where the symbol has no higher power.
    pub fn linear_in(&self, symbol: Symbol) -> Option<(Poly, Poly)> {
        let (mut coefficient, mut rest) = (Poly::default(), Poly::default());
        for (monomial, &number) in &self.0 {
            match monomial.iter().filter(|&&other| other == symbol).count() {
                0 => rest.0.insert(monomial.clone(), number),
                1 => {
                    let others = monomial.iter().copied().filter(|&other| other != symbol).collect();
                    coefficient.0.insert(others, number)
                }
                _ => return None,
            };
        }
        Some((coefficient, rest))
    }

    pub fn substitute(&self, symbol: Symbol, value: &Poly) -> Poly {
        let mut result = Poly::default();
        for (monomial, &number) in &self.0 {
            let power = monomial.iter().filter(|&&other| other == symbol).count();
            let others = monomial.iter().copied().filter(|&other| other != symbol).collect();
            let mut term = Poly::term(others, number);
            for _ in 0..power {
                term = term.times(value);
            }
            result = result.plus(&term);
        }
        result
    }

    /// The terms that `divisor` (one monomial) divides, divided, and the others.
    pub fn divide(&self, divisor: &Poly) -> Option<(Poly, Poly)> {
        let (by, &number) = divisor.0.iter().next().filter(|_| divisor.0.len() == 1)?;
        let (mut whole, mut rest) = (Poly::default(), Poly::default());
        for (monomial, &coefficient) in &self.0 {
            match without(monomial, by).filter(|_| coefficient % number == 0) {
                Some(others) => whole.0.insert(others, coefficient / number),
                None => rest.0.insert(monomial.clone(), coefficient),
            };
        }
        // The constant contributes its quotient.
        let constant = rest.0.remove(&Monomial::new()).unwrap_or(0);
        if by.is_empty() {
            whole = whole.offset(constant.div_euclid(number));
            rest = rest.offset(constant.rem_euclid(number));
        } else {
            rest = rest.offset(constant);
        }
        Some((whole, rest))
    }
}

/// The quotient of two products of symbols, if it exists.
pub(super) fn without(monomial: &Monomial, by: &Monomial) -> Option<Monomial> {
    let mut left = monomial.clone();
    for symbol in by {
        let position = left.iter().position(|other| other == symbol)?;
        left.remove(position);
    }
    Some(left)
}
