//! The values of expressions during a trace.

use super::inference::{Float, Kind};
use crate::model::types::ModelType;
use proc_macro2::TokenStream;
use std::rc::Rc;
use tinyspec_ir::ops::LiteralKind;
use tinyspec_ir::{DType, Dim, NodeId};

/// The value of an expression.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor: a node of the graph.
    Tensor(NodeId),
    /// A buffer of a model, by its number, so that every alias, such as one in a loop over layers, sees its current
    /// value.
    Buffer(usize),
    /// An array, a slice, or the results of a method with several.
    List(Vec<Value>),
    /// A tuple; `()` too.
    Tuple(Vec<Value>),
    /// A struct of tensors.
    Model(Rc<ModelValue>),
    /// An integer.
    Int(i128, Kind),
    /// A float.
    Float(Float),
    /// True or false.
    Bool(bool),
    /// A string.
    Text(String),
    /// A dtype.
    DType(DType),
    /// A size.
    Dim(Dim),
    /// A constant of the scope around the function.
    Constant {
        /// As written.
        text: String,
        /// How it is reached from here.
        path: TokenStream,
        /// The kind of number, from a cast or from its parts.
        kind: Option<LiteralKind>,
        /// Its value as a size, if it is made of others.
        size: Option<Dim>,
    },
    /// `a..b`.
    Range(i128, i128, Kind),
    /// `0..LAYERS`: a range whose length depends on constants outside the function.
    OpenRange {
        /// The ends as written.
        text: String,
        /// Its length as a Rust expression of type `i128`.
        count: TokenStream,
    },
    /// `Some(…)` or `None`.
    Optional(Option<Box<Value>>),
    /// Options as a struct literal: the struct's name and the fields given.
    Options(String, Vec<(String, Value)>),
    /// `default()`
    Default,
    /// `..`: all axes.
    All,
    /// A model, or a part of one, that is only known in the next expansion.
    Unseen,
    /// Something whose type only rustc knows, or which rustc refuses: a call whose signature is not known yet, a name
    /// that does not exist.
    Unknown,
    /// The value after a reported mistake: it gets no further messages, and the typed copy leaves it out.
    Wrong,
}

/// A model and its path.
pub struct ModelValue {
    /// Its type.
    pub model: Rc<ModelType>,
    /// The values of its fields.
    pub fields: Vec<(String, Value)>,
    /// The type of the parameter that it belongs to.
    pub root: Rc<TokenStream>,
    /// The path from there: fields of `model`.
    pub access: TokenStream,
}

impl std::fmt::Debug for ModelValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelValue").field("model", &self.model.name).finish_non_exhaustive()
    }
}

impl Value {
    /// `()`.
    pub const UNIT: Value = Value::Tuple(vec![]);

    /// The value of an expression if one of these parts has none.
    pub fn without_value<'a>(parts: impl IntoIterator<Item = &'a Value>) -> Option<Value> {
        let mut found = None;
        for part in parts {
            match part {
                Value::Wrong => return Some(Value::Wrong),
                Value::Unknown | Value::Unseen => found = Some(Value::Unknown),
                Value::Optional(Some(inner)) => found = Value::without_value([&**inner]).or(found),
                Value::List(parts) | Value::Tuple(parts) => found = Value::without_value(parts).or(found),
                _ => {}
            }
        }
        found
    }

    /// Its kind, for messages.
    pub fn describe(&self) -> &'static str {
        match self {
            Value::Tensor(_) | Value::Buffer(_) => "a tensor",
            Value::List(_) => "a list",
            Value::Tuple(elements) if elements.is_empty() => "()",
            Value::Tuple(_) => "a tuple",
            Value::Model(_) => "a model",
            Value::Int(..) => "an integer",
            Value::Float(_) => "a float",
            Value::Bool(_) => "a bool",
            Value::Text(_) => "a string",
            Value::DType(_) => "a dtype",
            Value::Dim(_) => "a dim",
            Value::Constant { .. } => "a constant whose value macros cannot see",
            Value::Optional(_) => "an Option",
            Value::Options(..) | Value::Default => "a struct of options",
            Value::Range(..) | Value::OpenRange { .. } | Value::All => "a range",
            Value::Unseen | Value::Unknown | Value::Wrong => "unknown",
        }
    }
}
