//! Dims: integers, or polynomials over named dims in a normal form, so that equality is provable equality.

mod operators;
mod show;

pub use show::with_names;

use crate::affine::gcd;
use smallvec::SmallVec;
use std::sync::Arc;

/// The most maxima and quotients of a sum that its bounds expand, since each may double the work.
const CASES: u32 = 4;

/// The shape of a node.
pub type Shape = SmallVec<[Dim; 4]>;

/// One dim of a shape: a number, or an expression over named dims ("Shapes" in the semantics).
///
/// ```
/// use tinyspec_ir::Dim;
/// let n = Dim::named(0, 1, 4096);
/// assert_eq!(n.clone() * Dim::from(2) + n.clone(), n * Dim::from(3));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dim(Repr);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Repr {
    Number(i64),
    Sum(Arc<Sum>),
}

/// Terms with a nonzero coefficient, sorted by their atoms. The constant is the term without atoms.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
struct Sum {
    terms: Vec<(Vec<Atom>, i64)>,
    /// The number of terms and atoms, including those inside atoms.
    weight: u32,
}

impl Sum {
    fn new(terms: Vec<(Vec<Atom>, i64)>) -> Arc<Sum> {
        let atoms = |atoms: &[Atom]| atoms.iter().fold(1u32, |sum, atom| sum.saturating_add(atom.weight()));
        let weight = terms.iter().fold(0u32, |sum, (factors, _)| sum.saturating_add(atoms(factors)));
        Arc::new(Sum { terms, weight })
    }
}

/// A factor that is opaque to the normal form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Atom {
    /// A named dim: slot and bounds.
    Named {
        /// Slot of the Param.
        slot: u32,
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// Floored quotient.
    Idiv(Dim, Dim),
    /// Floored remainder.
    Mod(Dim, Dim),
    /// The larger one.
    Max(Dim, Dim),
}

/// A named dim: its slot and bounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Name {
    /// Slot of the Param.
    pub slot: u32,
    /// Least value.
    pub min: i64,
    /// Greatest value.
    pub max: i64,
}

impl Dim {
    /// A named dim, bound at call.
    pub fn named(slot: u32, min: i64, max: i64) -> Dim {
        Dim::atom(Atom::Named { slot, min, max })
    }

    fn atom(atom: Atom) -> Dim {
        Dim(Repr::Sum(Sum::new(vec![(vec![atom], 1)])))
    }

    /// The number, if it is one.
    pub fn as_const(&self) -> Option<i64> {
        match self.0 {
            Repr::Number(number) => Some(number),
            Repr::Sum(_) => None,
        }
    }

    /// The size of the expression. Whatever traverses dims takes time and stack in proportion to it, so `derive` limits
    /// it.
    pub fn weight(&self) -> u32 {
        match &self.0 {
            Repr::Number(_) => 1,
            Repr::Sum(sum) => sum.weight,
        }
    }

    /// Whether it is exactly this number.
    pub fn is(&self, number: i64) -> bool {
        self.as_const() == Some(number)
    }

    /// The only atom, if the dim is one.
    pub fn as_atom(&self) -> Option<&Atom> {
        match &self.0 {
            Repr::Sum(sum) => match sum.terms.as_slice() {
                [(atoms, 1)] => match atoms.as_slice() {
                    [atom] => Some(atom),
                    _ => None,
                },
                _ => None,
            },
            Repr::Number(_) => None,
        }
    }

    /// The terms of the normal form: products of atoms and their coefficients.
    pub fn terms(&self) -> Vec<(Vec<Atom>, i64)> {
        match &self.0 {
            Repr::Number(0) => vec![],
            Repr::Number(number) => vec![(vec![], *number)],
            Repr::Sum(sum) => sum.terms.clone(),
        }
    }

    /// One term of a normal form.
    pub fn product(atoms: &[Atom], coefficient: i64) -> Dim {
        Dim::from_terms(vec![(atoms.to_vec(), coefficient)])
    }

    fn from_terms(mut terms: Vec<(Vec<Atom>, i64)>) -> Dim {
        terms.sort();
        let mut merged: Vec<(Vec<Atom>, i64)> = Vec::with_capacity(terms.len());
        for (atoms, coefficient) in terms {
            match merged.last_mut() {
                Some((last, sum)) if *last == atoms => *sum = sum.saturating_add(coefficient),
                _ => merged.push((atoms, coefficient)),
            }
        }
        merged.retain(|(_, coefficient)| *coefficient != 0);
        match merged.as_slice() {
            [] => Dim::from(0),
            [(atoms, number)] if atoms.is_empty() => Dim::from(*number),
            _ => Dim(Repr::Sum(Sum::new(merged))),
        }
    }

    /// Floored quotient; exact if every term is divisible, x / 0 = 0. Multiples of the divisor leave the numerator, so that sizes
    /// that are equal for all values of their names compare equal.
    ///
    /// ```
    /// use tinyspec_ir::Dim;
    /// let n = Dim::named(0, 1, 9);
    /// assert_eq!((&n - 1) / 2 + 1, (n + 1) / 2);
    /// ```
    pub fn idiv(&self, divisor: &Dim) -> Dim {
        if let (Some(a), Some(b)) = (self.as_const(), divisor.as_const()) {
            return Dim::from(floor_div(a, b));
        }
        if divisor.is(1) {
            return self.clone();
        }
        self.divide_exactly(divisor).unwrap_or_else(|| {
            let (whole, rest) = self.by(divisor);
            whole + Dim::atom(Atom::Idiv(rest, divisor.clone()))
        })
    }

    /// Floored remainder, x mod 0 = x.
    pub fn modulo(&self, divisor: &Dim) -> Dim {
        if let (Some(a), Some(b)) = (self.as_const(), divisor.as_const()) {
            return Dim::from(floor_mod(a, b));
        }
        if divisor.as_const() != Some(0) && self.divide_exactly(divisor).is_some() {
            return Dim::from(0);
        }
        Dim::atom(Atom::Mod(self.by(divisor).1, divisor.clone()))
    }

    /// The multiples of a constant divisor in a numerator, `whole`, and the `rest`: `self = whole · divisor + rest`.
    fn by(&self, divisor: &Dim) -> (Dim, Dim) {
        let Some(number) = divisor.as_const().filter(|&number| number > 0) else { return (Dim::from(0), self.clone()) };
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for (atoms, coefficient) in self.terms() {
            match coefficient % number {
                0 => whole.push((atoms, coefficient / number)),
                _ if atoms.is_empty() => {
                    whole.push((atoms.clone(), floor_div(coefficient, number)));
                    rest.push((atoms, floor_mod(coefficient, number)));
                }
                _ => rest.push((atoms, coefficient)),
            }
        }
        (Dim::from_terms(whole), Dim::from_terms(rest))
    }

    fn quotient(self, divisor: Dim) -> Dim {
        self.idiv(&divisor)
    }

    fn remainder(self, divisor: Dim) -> Dim {
        self.modulo(&divisor)
    }

    /// The larger of both.
    pub fn maximum(&self, other: &Dim) -> Dim {
        let (low, high) = (self.clone() - other.clone()).bounds();
        if low >= 0 {
            self.clone()
        } else if high <= 0 {
            other.clone()
        } else {
            let (a, b) = if self <= other { (self, other) } else { (other, self) };
            Dim::atom(Atom::Max(a.clone(), b.clone()))
        }
    }

    /// The smaller of both.
    ///
    /// ```
    /// use tinyspec_ir::Dim;
    /// let n = Dim::named(0, 1, 9);
    /// let first = n.minimum(&Dim::from(3));
    /// assert_eq!(first.bounds(), (1, 3));
    /// assert_eq!((n - first).bounds(), (0, 6));
    /// ```
    pub fn minimum(&self, other: &Dim) -> Dim {
        let (low, high) = (self.clone() - other.clone()).bounds();
        if low >= 0 {
            other.clone()
        } else if high <= 0 {
            self.clone()
        } else {
            self.clone() + other.clone() - self.maximum(other)
        }
    }

    /// The quotient by a divisor of one term, if every term of `self` has it as a factor.
    fn divide_exactly(&self, divisor: &Dim) -> Option<Dim> {
        let divisor_terms = divisor.terms();
        let [(divisor_atoms, divisor_coefficient)] = divisor_terms.as_slice() else { return None };
        // A named dim that may be 0 must not cancel: x / 0 is 0.
        if divisor.bounds().0 < 1 {
            return None;
        }
        let mut quotient = Vec::new();
        for (mut atoms, coefficient) in self.terms() {
            if coefficient % divisor_coefficient != 0 {
                return None;
            }
            for atom in divisor_atoms {
                let position = atoms.iter().position(|other| other == atom)?;
                atoms.remove(position);
            }
            quotient.push((atoms, coefficient / divisor_coefficient));
        }
        Some(Dim::from_terms(quotient))
    }

    /// `self / divisor` without the factors that both have, as far as each is one product. A factor that may be 0 stays.
    ///
    /// ```
    /// use tinyspec_ir::Dim;
    /// let (n, m) = (Dim::named(0, 1, 9), Dim::named(1, 1, 9));
    /// assert_eq!((n.clone() * m.clone() * Dim::from(6)).ratio(&(n * Dim::from(4))), (m * Dim::from(3), Dim::from(2)));
    /// ```
    pub fn ratio(&self, divisor: &Dim) -> (Dim, Dim) {
        let (terms, divisors) = (self.terms(), divisor.terms());
        let ([(atoms, number)], [(by, divided)]) = (terms.as_slice(), divisors.as_slice()) else {
            return (self.clone(), divisor.clone());
        };
        let (mut atoms, mut by) = (atoms.clone(), by.clone());
        by.retain(|atom| {
            let place = atoms.iter().position(|other| other == atom).filter(|_| atom.bounds().0 >= 1);
            place.map(|place| atoms.remove(place)).is_none()
        });
        let common = gcd(*number, *divided).max(1);
        (Dim::product(&atoms, number / common), Dim::product(&by, divided / common))
    }

    /// Sound bounds.
    pub fn bounds(&self) -> (i64, i64) {
        match self.as_const() {
            Some(number) => (number, number),
            None => self.bounds_within(CASES),
        }
    }

    /// Bounds from those of each term; and again with quotients and maxima expanded, since other terms often contain
    /// the same dims.
    fn bounds_within(&self, cases: u32) -> (i64, i64) {
        let plain = self.bounds_of_terms();
        let Repr::Sum(sum) = &self.0 else { return plain };
        let is_known = |(atoms, coefficient): &&(Vec<Atom>, i64)| match atoms.as_slice() {
            [Atom::Max(..)] => true,
            [Atom::Idiv(_, by)] => by.as_const().is_some_and(|by| by > 0 && coefficient % by == 0),
            _ => false,
        };
        let Some((atoms, coefficient)) = sum.terms.iter().find(is_known).filter(|_| cases > 0) else { return plain };
        let rest = self.clone() - Dim::product(atoms, *coefficient);
        let instead =
            |dim: &Dim, factor: i64| (rest.clone() + dim.clone() * Dim::from(factor)).bounds_within(cases - 1);
        let (low, high) = match &atoms[0] {
            Atom::Max(a, b) => {
                let ((a_low, a_high), (b_low, b_high)) = (instead(a, *coefficient), instead(b, *coefficient));
                match *coefficient > 0 {
                    true => (a_low.max(b_low), a_high.max(b_high)),
                    false => (a_low.min(b_low), a_high.min(b_high)),
                }
            }
            // by · (a / by) is above a - by, and at most a.
            Atom::Idiv(a, by) => {
                let by = by.as_const().unwrap_or(1);
                let (low, high) = instead(a, coefficient / by);
                let short = (coefficient / by).saturating_mul(by - 1);
                (low.saturating_sub(short.max(0)), high.saturating_sub(short.min(0)))
            }
            _ => plain,
        };
        (low.max(plain.0), high.min(plain.1))
    }

    fn bounds_of_terms(&self) -> (i64, i64) {
        let mut total = (0i128, 0i128);
        for (atoms, coefficient) in self.terms() {
            let mut product = (coefficient as i128, coefficient as i128);
            for atom in &atoms {
                let (low, high) = atom.bounds();
                let candidates = [
                    product.0.saturating_mul(low as i128),
                    product.0.saturating_mul(high as i128),
                    product.1.saturating_mul(low as i128),
                    product.1.saturating_mul(high as i128),
                ];
                product = candidates.iter().fold((i128::MAX, i128::MIN), |(a, b), &c| (a.min(c), b.max(c)));
            }
            total = (total.0.saturating_add(product.0), total.1.saturating_add(product.1));
        }
        let clamp = |value: i128| value.clamp(i64::MIN as i128, i64::MAX as i128) as i64;
        (clamp(total.0), clamp(total.1))
    }

    /// The named dims that it depends on, each once, in order of appearance.
    pub fn names(&self) -> Vec<Name> {
        let mut names = vec![];
        self.collect_names(&mut names);
        names
    }

    fn collect_names(&self, names: &mut Vec<Name>) {
        let Repr::Sum(sum) = &self.0 else { return };
        for atom in sum.terms.iter().flat_map(|(atoms, _)| atoms) {
            match atom {
                &Atom::Named { slot, min, max } => {
                    if names.iter().all(|name| name.slot != slot) {
                        names.push(Name { slot, min, max });
                    }
                }
                Atom::Idiv(a, b) | Atom::Mod(a, b) | Atom::Max(a, b) => {
                    a.collect_names(names);
                    b.collect_names(names);
                }
            }
        }
    }

    /// The dim with named dims replaced.
    pub fn substitute(&self, named: &impl Fn(u32) -> Option<Dim>) -> Dim {
        let Repr::Sum(sum) = &self.0 else { return self.clone() };
        let mut total = Dim::from(0);
        for (atoms, coefficient) in &sum.terms {
            let mut product = Dim::from(*coefficient);
            for atom in atoms {
                product = product
                    * match atom {
                        Atom::Named { slot, .. } => named(*slot).unwrap_or_else(|| Dim::atom(atom.clone())),
                        Atom::Idiv(a, b) => a.substitute(named).idiv(&b.substitute(named)),
                        Atom::Mod(a, b) => a.substitute(named).modulo(&b.substitute(named)),
                        Atom::Max(a, b) => a.substitute(named).maximum(&b.substitute(named)),
                    };
            }
            total = total + product;
        }
        total
    }
}

impl From<Name> for Dim {
    fn from(Name { slot, min, max }: Name) -> Dim {
        Dim::named(slot, min, max)
    }
}

impl Atom {
    fn weight(&self) -> u32 {
        match self {
            Atom::Named { .. } => 1,
            Atom::Idiv(a, b) | Atom::Mod(a, b) | Atom::Max(a, b) => a.weight().saturating_add(b.weight()),
        }
    }

    fn bounds(&self) -> (i64, i64) {
        match self {
            Atom::Named { min, max, .. } => (*min, *max),
            Atom::Idiv(a, b) => match (a.bounds(), b.bounds()) {
                ((low, high), (least, greatest)) if least >= 1 => {
                    let corners =
                        [(low, least), (low, greatest), (high, least), (high, greatest)].map(|(a, b)| floor_div(a, b));
                    (corners.into_iter().min().unwrap_or(i64::MIN), corners.into_iter().max().unwrap_or(i64::MAX))
                }
                _ => (i64::MIN, i64::MAX),
            },
            Atom::Mod(_, b) => match b.bounds() {
                (least, greatest) if least >= 1 => (0, greatest - 1),
                _ => (i64::MIN, i64::MAX),
            },
            Atom::Max(a, b) => {
                let ((a_low, a_high), (b_low, b_high)) = (a.bounds(), b.bounds());
                (a_low.max(b_low), a_high.max(b_high))
            }
        }
    }
}

/// Floored quotient, total: x / 0 = 0, and MIN / -1 wraps.
pub fn floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let quotient = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// Floored remainder, total: x mod 0 = x.
pub fn floor_mod(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { a.wrapping_sub(floor_div(a, b).wrapping_mul(b)) }
}

/// A shape of plain numbers.
pub fn shape(numbers: &[i64]) -> Shape {
    numbers.iter().map(|&number| Dim::from(number)).collect()
}

/// The dims as numbers, if all of them are.
pub fn static_shape(shape: &[Dim]) -> Option<SmallVec<[i64; 4]>> {
    shape.iter().map(Dim::as_const).collect()
}

/// A shape in messages: `[2, 3]`.
pub fn show(shape: &[Dim]) -> String {
    format!("[{}]", list(shape))
}

/// Dims in a tensor's type: `2, 3`.
pub fn list(shape: &[Dim]) -> String {
    let dims: Vec<String> = shape.iter().map(Dim::to_string).collect();
    dims.join(", ")
}

/// Right-aligned broadcast of two shapes; `None` if an axis is neither equal nor 1.
pub fn broadcast(a: &[Dim], b: &[Dim]) -> Option<Shape> {
    let rank = a.len().max(b.len());
    let one = Dim::from(1);
    let dim = |shape: &[Dim], axis: usize| -> Dim {
        (axis + shape.len()).checked_sub(rank).and_then(|axis| shape.get(axis)).unwrap_or(&one).clone()
    };
    (0..rank)
        .map(|axis| match (dim(a, axis), dim(b, axis)) {
            (x, y) if x == y || y.is(1) => Some(x),
            (x, y) if x.is(1) => Some(y),
            _ => None,
        })
        .collect()
}
