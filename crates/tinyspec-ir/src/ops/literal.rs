//! Literals beside tensors: weak in their dtype, exact in their value.

use super::DEFAULT_FLOAT;
use crate::{Const, DType, Error, ErrorKind, Result};

/// Literals are weak: they take the other operand's dtype, if it can hold their kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LiteralKind {
    /// `true`, `false`.
    Bool,
    /// Whole numbers.
    Int,
    /// Floats.
    Float,
}

impl LiteralKind {
    /// The dtype of such a literal beside a tensor of `like`; `void` stands for no tensor at all.
    pub fn beside(self, like: DType) -> DType {
        match (self, like) {
            (LiteralKind::Float, like) if !like.is_float() => DEFAULT_FLOAT,
            (LiteralKind::Int, DType::Bool | DType::Void) => DType::I32,
            (LiteralKind::Bool, DType::Void) => DType::Bool,
            (_, like) => like,
        }
    }
}

/// A literal with its value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Literal {
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A float.
    Float(f64),
}

impl Literal {
    /// Its kind.
    pub fn kind(self) -> LiteralKind {
        match self {
            Literal::Bool(_) => LiteralKind::Bool,
            Literal::Int(_) => LiteralKind::Int,
            Literal::Float(_) => LiteralKind::Float,
        }
    }

    /// The constant beside a tensor of `like`; see [`LiteralKind::beside`].
    ///
    /// # Errors
    /// As [`Literal::constant`].
    pub fn beside(self, like: DType) -> Result<Const> {
        self.constant(self.kind().beside(like))
    }

    /// The constant of `dtype`: floats round, whole numbers stay what they are.
    ///
    /// # Errors
    /// When `dtype` cannot represent the value.
    pub fn constant(self, dtype: DType) -> Result<Const> {
        let constant = match self {
            Literal::Bool(value) => Const::int(dtype, value.into()),
            Literal::Int(value) => Const::int(dtype, value),
            Literal::Float(value) => Const::float(dtype, value),
        };
        if self.is_held(constant) {
            return Ok(constant);
        }
        Err(self.refused(dtype).help(match self.least_dtype(dtype) {
            Some(wider) => format!("`.cast(DType::{})` the tensor first", wider.name().to_uppercase()),
            None => format!("write a value of {dtype}, or `.cast(…)` the tensor to a dtype that has this one"),
        }))
    }

    /// Those of [`Literal::constant`], if the user named the dtype.
    ///
    /// # Errors
    /// When `dtype` cannot represent the value.
    pub fn constant_of(self, dtype: DType) -> Result<Const> {
        self.constant(dtype).map_err(|_| {
            self.refused(dtype).help(match self.least_dtype(dtype) {
                Some(wider) => format!("DType::{} holds it", wider.name().to_uppercase()),
                None => format!("write a value of {dtype}, or ask for a dtype that has this one"),
            })
        })
    }

    fn refused(self, dtype: DType) -> Error {
        Error::new(ErrorKind::Value, "literal", format!("{self} is not a value of {dtype}, {}", range(dtype)))
    }

    fn is_held(self, constant: Const) -> bool {
        match (self, constant.dtype.int_range()) {
            (Literal::Int(value), Some((least, greatest))) if constant.dtype != DType::Bool => {
                (least..=greatest).contains(&value)
            }
            // The greatest i64 and u64 are not floats, but their successors are.
            (Literal::Float(value), Some((least, greatest))) if constant.dtype != DType::Bool => {
                value.trunc() == value && value >= least as f64 && value < (greatest + 1) as f64
            }
            (Literal::Int(_), _) => constant.as_float().is_none_or(f64::is_finite),
            (Literal::Float(value), _) => constant.as_float().is_none_or(|held| held.is_finite() || !value.is_finite()),
            (Literal::Bool(_), _) => true,
        }
    }

    /// The least dtype that `from` promotes to and that holds the value.
    fn least_dtype(self, from: DType) -> Option<DType> {
        let holds = |dtype: &DType| {
            let constant = match self {
                Literal::Int(value) => Const::int(*dtype, value),
                Literal::Float(value) => Const::float(*dtype, value),
                Literal::Bool(_) => return false,
            };
            from.promote(*dtype) == Some(*dtype) && dtype.is_float() == from.is_float() && self.is_held(constant)
        };
        DType::ALL.iter().copied().find(holds)
    }
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Int(value) => write!(f, "{value}"),
            Literal::Float(value) => write!(f, "{value:?}"),
        }
    }
}

fn range(dtype: DType) -> String {
    match dtype.int_range() {
        Some((least, greatest)) => format!("which goes from {least} to {greatest}"),
        None => "which does not reach so far".to_string(),
    }
}
