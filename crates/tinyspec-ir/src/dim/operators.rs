//! Numbers as dims, and `+ - * / %` of dims, references and numbers.

use super::{Atom, Dim, Repr};

impl From<i64> for Dim {
    fn from(number: i64) -> Dim {
        Dim(Repr::Number(number))
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Dim {
        dim.clone()
    }
}

impl From<usize> for Dim {
    fn from(number: usize) -> Dim {
        // Saturates, so that the error is that the size is too large, not that it is negative.
        Dim(Repr::Number(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

impl From<i32> for Dim {
    fn from(number: i32) -> Dim {
        Dim(Repr::Number(number as i64))
    }
}

macro_rules! mixed {
    ($($trait:ident $method:ident $path:path;)*) => { $(
        impl std::ops::$trait for &Dim {
            type Output = Dim;
            fn $method(self, other: &Dim) -> Dim {
                $path(self.clone(), other.clone())
            }
        }
        impl std::ops::$trait<&Dim> for Dim {
            type Output = Dim;
            fn $method(self, other: &Dim) -> Dim {
                $path(self, other.clone())
            }
        }
        impl std::ops::$trait<Dim> for &Dim {
            type Output = Dim;
            fn $method(self, other: Dim) -> Dim {
                $path(self.clone(), other)
            }
        }
        mixed!(@number $trait $method $path: i32 i64 usize);
    )* };
    (@number $trait:ident $method:ident $path:path: $($type:ty)*) => { $(
        impl std::ops::$trait<$type> for &Dim {
            type Output = Dim;
            fn $method(self, other: $type) -> Dim {
                $path(self.clone(), Dim::from(other))
            }
        }
        impl std::ops::$trait<$type> for Dim {
            type Output = Dim;
            fn $method(self, other: $type) -> Dim {
                $path(self, Dim::from(other))
            }
        }
        impl std::ops::$trait<&Dim> for $type {
            type Output = Dim;
            fn $method(self, other: &Dim) -> Dim {
                $path(Dim::from(self), other.clone())
            }
        }
        impl std::ops::$trait<Dim> for $type {
            type Output = Dim;
            fn $method(self, other: Dim) -> Dim {
                $path(Dim::from(self), other)
            }
        }
    )* };
}
mixed! {
    Add add std::ops::Add::add;
    Sub sub std::ops::Sub::sub;
    Mul mul std::ops::Mul::mul;
    Div div Dim::quotient;
    Rem rem Dim::remainder;
}

impl std::ops::Add for Dim {
    type Output = Dim;
    fn add(self, other: Dim) -> Dim {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return Dim::from(a.saturating_add(b));
        }
        let mut terms = self.terms();
        terms.extend(other.terms());
        Dim::from_terms(terms)
    }
}

impl std::ops::Mul for Dim {
    type Output = Dim;
    fn mul(self, other: Dim) -> Dim {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return Dim::from(a.saturating_mul(b));
        }
        let mut terms = Vec::new();
        for (atoms, coefficient) in self.terms() {
            for (other_atoms, other_coefficient) in other.terms() {
                let mut product: Vec<Atom> = atoms.iter().chain(&other_atoms).cloned().collect();
                product.sort();
                terms.push((product, coefficient.saturating_mul(other_coefficient)));
            }
        }
        Dim::from_terms(terms)
    }
}

impl std::ops::Sub for Dim {
    type Output = Dim;
    fn sub(self, other: Dim) -> Dim {
        self + other * Dim::from(-1)
    }
}

impl std::ops::Div for Dim {
    type Output = Dim;
    fn div(self, other: Dim) -> Dim {
        self.quotient(other)
    }
}

impl std::ops::Rem for Dim {
    type Output = Dim;
    fn rem(self, other: Dim) -> Dim {
        self.remainder(other)
    }
}
