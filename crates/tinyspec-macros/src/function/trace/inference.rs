//! Types of numbers, inferred as in rustc: a literal without a suffix takes the type of the other operand, or defaults
//! to `i32` or `f64`.
//!
//! A literal without a suffix has a type variable. If the graph depends on a default that later code contradicts, the
//! body is traced again.

use crate::diagnostics::Place;
use std::collections::{HashMap, HashSet};
use tinyspec_ir::DType;

macro_rules! number_types {
    ($($name:ident $text:literal $bits:literal $is_signed:literal $is_float:literal;)*) => {
        /// A number type; the 128-bit ones are not supported.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum NumberType { $($name),* }

        impl NumberType {
            /// The type with this Rust name.
            pub fn from_name(name: &str) -> Option<NumberType> {
                match name { $($text => Some(NumberType::$name),)* _ => None }
            }

            /// Its name in Rust.
            pub fn name(self) -> &'static str {
                match self { $(NumberType::$name => $text),* }
            }

            /// Its width in bits; `usize` has the width of the machine that rustc runs on.
            pub fn bits(self) -> u32 {
                match self { $(NumberType::$name => $bits),* }
            }

            /// Whether it has negative values.
            pub fn is_signed(self) -> bool {
                match self { $(NumberType::$name => $is_signed),* }
            }

            /// `f32`, `f64`
            pub fn is_float(self) -> bool {
                match self { $(NumberType::$name => $is_float),* }
            }
        }
    };
}
number_types! {
    I8 "i8" 8 true false; I16 "i16" 16 true false; I32 "i32" 32 true false; I64 "i64" 64 true false;
    U8 "u8" 8 false false; U16 "u16" 16 false false; U32 "u32" 32 false false; U64 "u64" 64 false false;
    Isize "isize" 64 true false; Usize "usize" 64 false false;
    F32 "f32" 32 true true; F64 "f64" 64 true true;
}

impl NumberType {
    /// Least and greatest value of an integer type.
    pub fn range(self) -> (i128, i128) {
        let values = 1i128 << self.bits();
        if self.is_signed() { (-values / 2, values / 2 - 1) } else { (0, values - 1) }
    }

    /// Whether the type has this value.
    pub fn holds(self, value: i128) -> bool {
        let (least, greatest) = self.range();
        (least..=greatest).contains(&value)
    }

    /// The result of `as` on an integer.
    pub fn wrapped(self, value: i128) -> i128 {
        let (least, _) = self.range();
        (value - least).rem_euclid(1i128 << self.bits()) + least
    }

    /// The result of `as` on a float.
    pub fn saturated(self, value: f64) -> i128 {
        let (least, greatest) = self.range();
        (value as i128).clamp(least, greatest)
    }

    /// The dtype of the same name; `usize` has none.
    pub fn dtype(self) -> Option<DType> {
        DType::from_name(self.name())
    }
}

/// The type of a number, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Written or inferred.
    Known(NumberType),
    /// The type variable of a literal without a suffix.
    Open(u32),
}

/// A float: its value in each type that it may have.
#[derive(Clone, Copy, Debug)]
pub struct Float {
    /// As an `f64`.
    pub wide: f64,
    /// As an `f32`.
    pub narrow: f32,
    /// Its type.
    pub kind: Kind,
}

impl Float {
    /// An `f64`.
    pub fn wide(value: f64) -> Float {
        Float { wide: value, narrow: value as f32, kind: Kind::Known(NumberType::F64) }
    }

    /// An `f32`.
    pub fn narrow(value: f32) -> Float {
        Float { wide: value.into(), narrow: value, kind: Kind::Known(NumberType::F32) }
    }
}

/// The location of a literal: in a loop it is the same literal in every iteration.
type Literal = (usize, usize);

/// The known types of literals.
#[derive(Default)]
pub struct Inference {
    /// Union-find: for each variable another one of the same type, or itself.
    parents: Vec<u32>,
    /// For each root variable, its type.
    types: Vec<Option<NumberType>>,
    literals: HashMap<Literal, u32>,
    /// The types that an earlier trace of the same body found.
    learned: HashMap<Literal, NumberType>,
    /// Variables whose default the graph already depends on.
    used: HashSet<u32>,
    /// Integers that may overflow their type: the variable, the place and the value.
    results: Vec<(u32, Place, i128)>,
    /// Variables that a method gives a type which only rustc knows.
    passed: HashSet<u32>,
    is_wrong: bool,
}

impl Inference {
    /// The start of another trace of the same body.
    pub fn retraced(self) -> Inference {
        let mut learned = self.learned.clone();
        for (&literal, &variable) in &self.literals {
            learned.extend(self.types[self.root(variable) as usize].map(|ty| (literal, ty)));
        }
        Inference { learned, ..Inference::default() }
    }

    /// Whether the graph depends on a default that was wrong.
    pub fn is_wrong(&self) -> bool {
        self.is_wrong
    }

    /// The type of a literal without a suffix.
    pub fn literal(&mut self, place: Place) -> Kind {
        let start = place.start.start();
        let literal = (start.line, start.column);
        if let Some(&ty) = self.learned.get(&literal) {
            return Kind::Known(ty);
        }
        let next = self.parents.len() as u32;
        let variable = *self.literals.entry(literal).or_insert(next);
        if variable == next {
            self.parents.push(next);
            self.types.push(None);
        }
        Kind::Open(variable)
    }

    fn root(&self, mut variable: u32) -> u32 {
        while self.parents[variable as usize] != variable {
            variable = self.parents[variable as usize];
        }
        variable
    }

    /// The type, if it is known.
    pub fn known(&self, kind: Kind) -> Option<NumberType> {
        match kind {
            Kind::Known(ty) => Some(ty),
            Kind::Open(variable) => self.types[self.root(variable) as usize],
        }
    }

    /// The type for a use that the graph depends on: if it turns out to be another one, the body is traced again.
    pub fn used(&mut self, kind: Kind, default: NumberType) -> NumberType {
        self.known(kind).unwrap_or_else(|| {
            if let Kind::Open(variable) = kind {
                self.used.insert(self.root(variable));
            }
            default
        })
    }

    /// Unifies the types of two numbers; `None` if they differ.
    pub fn unify(&mut self, one: Kind, other: Kind) -> Option<Kind> {
        match (self.known(one), self.known(other), one, other) {
            (Some(one), Some(other), ..) => (one == other).then_some(Kind::Known(one)),
            (Some(known), None, _, Kind::Open(variable)) | (None, Some(known), Kind::Open(variable), _) => {
                let root = self.root(variable);
                self.types[root as usize] = Some(known);
                self.is_wrong |= self.used.contains(&root);
                Some(Kind::Known(known))
            }
            (None, None, Kind::Open(one), Kind::Open(other)) => {
                let (one, other) = (self.root(one), self.root(other));
                self.parents[one as usize] = other;
                if self.used.contains(&one) {
                    self.used.insert(other);
                }
                if self.passed.contains(&one) {
                    self.passed.insert(other);
                }
                Some(Kind::Open(other))
            }
            _ => None,
        }
    }

    /// Records that a method determines this type.
    pub fn pass(&mut self, kind: Kind) {
        if let Kind::Open(variable) = kind {
            self.passed.insert(self.root(variable));
        }
    }

    /// Checks a result once its type is known.
    pub fn check_later(&mut self, kind: Kind, place: Place, value: i128) {
        if let Kind::Open(variable) = kind
            && !(0..=i128::from(i8::MAX)).contains(&value)
        {
            self.results.push((variable, place, value));
        }
    }

    /// Results that overflow their types.
    pub fn overflows(&self) -> Vec<(Place, i128, NumberType)> {
        let results = self.results.iter().filter_map(|&(variable, place, value)| {
            let root = self.root(variable);
            let default = (!self.passed.contains(&root)).then_some(NumberType::I32);
            let ty = self.types[root as usize].or(default)?;
            (!ty.holds(value)).then_some((place, value, ty))
        });
        results.collect()
    }
}
