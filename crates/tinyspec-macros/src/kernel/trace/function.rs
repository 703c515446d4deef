//! Elementwise functions.

use super::value::written;
use super::{Binding, Tracer, Value};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use tinyspec_ir::ops::{self, MethodArg};
use tinyspec_ir::{Arg, Builder, DType, Op};

/// Functions of the language: the elementwise rows of the method table, and their numbers of arguments.
const FUNCTIONS: &[(&str, &str, usize)] = &[
    ("exp", "exp", 1),
    ("exp2", "exp2", 1),
    ("log", "log", 1),
    ("ln", "log", 1),
    ("log2", "log2", 1),
    ("log10", "log10", 1),
    ("sqrt", "sqrt", 1),
    ("rsqrt", "rsqrt", 1),
    ("recip", "reciprocal", 1),
    ("sin", "sin", 1),
    ("cos", "cos", 1),
    ("tan", "tan", 1),
    ("tanh", "tanh", 1),
    ("sigmoid", "sigmoid", 1),
    ("relu", "relu", 1),
    ("silu", "silu", 1),
    ("gelu", "gelu", 1),
    ("abs", "abs", 1),
    ("sign", "sign", 1),
    ("floor", "floor", 1),
    ("ceil", "ceil", 1),
    ("round", "round", 1),
    ("trunc", "trunc", 1),
    ("square", "square", 1),
    ("isnan", "isnan", 1),
    ("isinf", "isinf", 1),
    ("pow", "pow", 2),
    ("max", "maximum", 2),
    ("min", "minimum", 2),
    ("maximum", "maximum", 2),
    ("minimum", "minimum", 2),
];

/// Those that need a float.
const OF_FLOATS: &[&str] = &[
    "exp", "exp2", "log", "ln", "log2", "log10", "sqrt", "rsqrt", "recip", "sin", "cos", "tan", "tanh", "sigmoid",
    "silu", "gelu", "floor", "ceil", "round", "trunc", "isnan", "isinf", "pow",
];

/// Whether every kernel has this function.
pub fn is_known(name: &str) -> bool {
    let own = ["where_", "select", "barrier", "atomic_add", "custom", "len", "shape"];
    own.contains(&name) || FUNCTIONS.iter().any(|(known, ..)| *known == name)
}

impl Tracer<'_> {
    fn unknown_function(&mut self, name: &Ident) {
        let text = name.to_string();
        let near = ops::nearest_of(&text, FUNCTIONS.iter().map(|(known, ..)| *known));
        let help = match (near, ops::nearest(&text)) {
            (Some(near), _) => format!("; is it `{near}`?"),
            (None, Some(near)) => format!(
                "; `{near}` is a method of tensors, and a kernel computes with elements: write a loop, such as `for i in reduce(n)`, or call it in a #[function]"
            ),
            (None, None) => format!("; define it in the same `uop!`, `fn {text}(…) -> f32 {{ … }}`"),
        };
        self.error(name.span(), format!("`{text}` is not a function that kernels have{help}"));
    }

    pub fn call(&mut self, name: &Ident, arguments: &[Expr], at: At) -> Option<Value> {
        let text = name.to_string();
        if text == "custom" {
            return self.custom(arguments, at);
        }
        if let ("len" | "shape", [Expr { kind: ExprKind::Name(buffer), .. }]) = (text.as_str(), arguments)
            && self.view(buffer).is_some()
        {
            self.error(at, format!("the sizes of `{buffer}` are the dims of its type: write their names, such as `N`"));
            return None;
        }
        if let Some(helper) = self.helper(name, arguments) {
            return self.inlined(helper, arguments, at);
        }
        let is_refused = matches!(self.lookup(&text), Some(Binding::Wrong));
        let is_own = matches!(text.as_str(), "where_" | "select" | "barrier" | "atomic_add");
        let known = FUNCTIONS.iter().find(|(known, ..)| *known == text);
        if known.is_none() && !is_own && !is_refused {
            self.unknown_function(name);
            // A buffer is not a value, but that is not the mistake here.
            let is_buffer = |expr: &&Expr| {
                let ExprKind::Name(name) = &expr.kind else { return false };
                matches!(
                    self.lookup(&name.to_string()),
                    Some(Binding::Memory(_) | Binding::View(_) | Binding::Registers { .. })
                )
            };
            let values: Vec<&Expr> = arguments.iter().filter(|argument| !is_buffer(argument)).collect();
            self.look_at(values);
            return None;
        }
        let values: Vec<Value> = arguments.iter().map(|argument| self.expression(argument)).collect();
        if matches!(text.as_str(), "where_" | "select") {
            let ([condition, yes, no], [c_at, y_at, n_at]) = (values.as_slice(), arguments) else {
                self.error(at, format!("`{text}(condition, a, b)` takes 3 values, found {}", values.len()));
                return None;
            };
            let condition = self.condition(*condition, c_at.at)?;
            let (yes, no) = self.unify(*yes, y_at.at, *no, n_at.at, &format!("`{text}`"), at)?;
            return Some(Value::Node(self.graph.alu(Op::Where, &[condition, yes, no]).ok()?));
        }
        if matches!(text.as_str(), "barrier" | "atomic_add") {
            self.error(at, format!("`{text}` has no value: it is a statement"));
            return None;
        }
        if is_refused {
            return Some(Value::Wrong);
        }
        let &(_, method, count) = known?;
        if values.len() != count {
            let plural = if count == 1 { "value" } else { "values" };
            self.error(at, format!("`{text}` takes {count} {plural}, found {}", values.len()));
            return None;
        }
        let mut nodes = Vec::new();
        match (values.as_slice(), arguments) {
            (&[a, b], [x, y]) => {
                if let (Value::Int(a), Value::Int(b), "maximum" | "minimum") = (a, b, method) {
                    return Some(Value::Int(if method == "maximum" { a.max(b) } else { a.min(b) }));
                }
                let (a, b) = self.unify(a, x.at, b, y.at, &format!("`{text}`"), at)?;
                nodes.extend([a, b]);
            }
            (&[a], [_]) => nodes.push(self.node(a)?),
            _ => {}
        }
        let dtype = self.graph.dtype(*nodes.first()?);
        if OF_FLOATS.contains(&text.as_str()) && !dtype.is_float() {
            let found = written(dtype);
            self.error(arguments[0].at, format!("`{text}` needs a float, found {found}: cast it with `as f32`"));
            return None;
        }
        if dtype == DType::Index {
            // Indices keep the form that verification understands.
            let node = match (method, nodes.as_slice()) {
                ("maximum", &[a, b]) => self.graph.alu(Op::Max, &[a, b]).ok()?,
                ("minimum", &[a, b]) => {
                    let less = self.graph.alu(Op::CmpLt, &[a, b]).ok()?;
                    self.graph.alu(Op::Where, &[less, a, b]).ok()?
                }
                _ => {
                    self.error(arguments[0].at, format!("`{text}` has no meaning for indices: cast with `as i32`"));
                    return None;
                }
            };
            return Some(Value::Node(node));
        }
        let arguments: Vec<MethodArg> = nodes.into_iter().map(MethodArg::Tensor).collect();
        let made = ops::call(method, &mut self.graph, &arguments);
        let made = made.map(|nodes| nodes.first().copied());
        match made {
            Ok(node) => node.map(Value::Node),
            Err(error) => {
                self.made(at, Err(error));
                None
            }
        }
    }

    /// `custom("code", value, a, b)`: a value computed by code in the language of the device's compiler.
    fn custom(&mut self, arguments: &[Expr], at: At) -> Option<Value> {
        let (code, values) = match arguments {
            [Expr { kind: ExprKind::Text(code), .. }, values @ ..] if !values.is_empty() => (code, values),
            _ => {
                self.error(at, "`custom(\"code\", value, a, b)` takes code, the value it stands for, and its operands");
                self.look_at(arguments.iter().filter(|argument| !matches!(argument.kind, ExprKind::Text(_))));
                return None;
            }
        };
        if self.unsafe_depth == 0 {
            self.error(at, "`custom` code is not checked: vouch for it with `unsafe { custom(…) }`");
        }
        let mut nodes = Vec::with_capacity(values.len());
        for argument in values {
            let value = self.expression(argument);
            let node = self.node(value)?;
            if self.graph.dtype(node) == DType::Index {
                self.error(argument.at, "an index has no machine type here: cast it with `as i32`");
                return None;
            }
            nodes.push(node);
        }
        let made = self.graph.add(Op::Custom, &nodes, Arg::Text(code.as_str().into()));
        match made {
            Ok(node) => Some(Value::Node(node)),
            Err(error) => {
                self.made(at, Err(error));
                None
            }
        }
    }
}
