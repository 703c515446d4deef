//! Expressions of a kernel.

use super::dtype_of;
use super::mend::UNREADABLE;
use crate::diagnostics::{Diagnostics, Place as At};
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use tinyspec_ir::DType;

pub fn expression(expr: &syn::Expr, diagnostics: &mut Diagnostics) -> Option<Expr> {
    let at = At::of(expr);
    let boxed = |expr: &syn::Expr, diagnostics: &mut Diagnostics| expression(expr, diagnostics).map(Box::new);
    let kind = match expr {
        syn::Expr::Lit(literal) => self::literal(&literal.lit, at, diagnostics)?,
        syn::Expr::Path(path) => return self::path(&path.path),
        syn::Expr::Paren(inner) => return expression(&inner.expr, diagnostics),
        syn::Expr::Group(inner) => return expression(&inner.expr, diagnostics),
        syn::Expr::Block(inner) => return tail(&inner.block, diagnostics),
        syn::Expr::Unsafe(inner) => ExprKind::Unsafe(Box::new(tail(&inner.block, diagnostics)?)),
        // Reported by `mend`.
        syn::Expr::Macro(call) if call.mac.path.is_ident(UNREADABLE) => return None,
        syn::Expr::Index(index) => ExprKind::Element(element(index, diagnostics)?),
        syn::Expr::Unary(unary) => {
            // The sign belongs to the number: `-128i8` is valid, `128i8` is not.
            if let (syn::UnOp::Neg(_), syn::Expr::Lit(number)) = (&unary.op, &*unary.expr)
                && let syn::Lit::Int(_) | syn::Lit::Float(_) = &number.lit
            {
                let kind = match self::literal(&number.lit, at, diagnostics)? {
                    ExprKind::Int(number, dtype) => ExprKind::Int(-number, dtype),
                    ExprKind::Float(number, dtype) => ExprKind::Float(-number, dtype),
                    other => other,
                };
                return Some(Expr { kind, at });
            }
            let op = match unary.op {
                syn::UnOp::Neg(_) => UnaryOp::Neg,
                syn::UnOp::Not(_) => UnaryOp::Not,
                _ => {
                    return refuse(at, "nothing is dereferenced in a kernel: elements are read by `x[i]`", diagnostics);
                }
            };
            ExprKind::Unary(op, boxed(&unary.expr, diagnostics)?)
        }
        syn::Expr::Binary(binary) => {
            let (left, right) = (boxed(&binary.left, diagnostics), boxed(&binary.right, diagnostics));
            match binary_op(&binary.op) {
                Some((op, false)) => ExprKind::Binary(op, left?, right?),
                _ => return refuse(at, "an assignment is a statement of its own", diagnostics),
            }
        }
        syn::Expr::Cast(cast) => {
            let value = boxed(&cast.expr, diagnostics);
            match dtype_of(&cast.ty) {
                Some(dtype) => ExprKind::Cast(value?, dtype),
                None => {
                    return refuse(At::of(&cast.ty), "a value is cast to a dtype such as `f32` or `i32`", diagnostics);
                }
            }
        }
        syn::Expr::Call(call) => {
            let name = match &*call.func {
                syn::Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.clone()),
                _ => None,
            };
            let arguments: Option<Vec<Expr>> = call.args.iter().map(|value| expression(value, diagnostics)).collect();
            match name {
                Some(name) => ExprKind::Call(name, arguments?),
                None => {
                    return refuse(At::of(&call.func), "a function is called by its name: `max(a, b)`", diagnostics);
                }
            }
        }
        syn::Expr::MethodCall(call) if call.method == "get" => return get(call, at, diagnostics),
        syn::Expr::MethodCall(call) => {
            let receiver = expression(&call.receiver, diagnostics);
            let arguments: Option<Vec<Expr>> = call.args.iter().map(|value| expression(value, diagnostics)).collect();
            let arguments = std::iter::once(receiver?).chain(arguments?).collect();
            ExprKind::Call(call.method.clone(), arguments)
        }
        syn::Expr::If(branch) => {
            let condition = boxed(&branch.cond, diagnostics);
            let then = tail(&branch.then_branch, diagnostics);
            match &branch.else_branch {
                Some((_, other)) => {
                    let other = boxed(other, diagnostics);
                    ExprKind::If(condition?, Box::new(then?), other?)
                }
                None => return refuse(at, "an `if` that is a value needs an `else`", diagnostics),
            }
        }
        syn::Expr::Tuple(_) => return refuse(at, "a kernel has no tuples", diagnostics),
        syn::Expr::Reference(reference) => self::reference(reference, at, diagnostics)?,
        other => return refuse(at, refusal(other), diagnostics),
    };
    Some(Expr { kind, at })
}

/// The message for a macro.
pub const NO_MACROS: &str =
    "a kernel calls no macros: write out what it stands for; values are read and printed outside";

/// The messages for Rust's other expressions.
fn refusal(expr: &syn::Expr) -> &'static str {
    match expr {
        syn::Expr::Match(_) => "a kernel has no `match`: write `if … { … } else { … }`",
        syn::Expr::ForLoop(_) | syn::Expr::While(_) | syn::Expr::Loop(_) => {
            "a loop has no value: declare a variable before it, `let mut s = 0.0;`, and assign to it in the loop"
        }
        syn::Expr::Closure(_) => "a kernel has no closures: write the code where it is called",
        syn::Expr::Range(_) => "a range is not a value: use it in a loop, `for i in serial(0..n)`",
        syn::Expr::Array(_) | syn::Expr::Repeat(_) => {
            "a kernel has no arrays as values: declare `let mut a: Reg<f32, 4>;`"
        }
        syn::Expr::Field(_) | syn::Expr::Struct(_) => "a kernel has no structs: pass each number of one as a parameter",
        syn::Expr::Macro(_) => NO_MACROS,
        syn::Expr::Let(_) => "a kernel has no patterns: a condition is a bool",
        syn::Expr::Assign(_) => "an assignment is a statement of its own",
        syn::Expr::Return(_) | syn::Expr::Break(_) | syn::Expr::Continue(_) => {
            "this has no value: it is a statement of its own"
        }
        _ => "this is not an expression of a kernel, which computes with numbers, variables and elements of buffers",
    }
}

fn refuse(at: At, message: &str, diagnostics: &mut Diagnostics) -> Option<Expr> {
    diagnostics.error(at, message);
    None
}

/// The value of a block that consists of one expression.
fn tail(block: &syn::Block, diagnostics: &mut Diagnostics) -> Option<Expr> {
    match block.stmts.as_slice() {
        [syn::Stmt::Expr(value, None)] => expression(value, diagnostics),
        _ => refuse(
            At::of(block),
            "a block that is a value is one expression: move its statements before it",
            diagnostics,
        ),
    }
}

pub fn path(path: &syn::Path) -> Option<Expr> {
    let at = At::of(path);
    let kind = match path.get_ident() {
        Some(name) => ExprKind::Name(name.clone()),
        None => ExprKind::Path(path.clone()),
    };
    Some(Expr { kind, at })
}

fn literal(literal: &syn::Lit, at: At, diagnostics: &mut Diagnostics) -> Option<ExprKind> {
    let dtype = |suffix: &str, diagnostics: &mut Diagnostics| match suffix {
        "" => Some(None),
        "usize" | "isize" => Some(Some(DType::Index)),
        _ => match DType::from_name(suffix) {
            Some(dtype) => Some(Some(dtype)),
            None => {
                diagnostics.error(at, format!("`{suffix}` is not a dtype"));
                None
            }
        },
    };
    match literal {
        syn::Lit::Int(number) => match (number.base10_parse::<i128>(), dtype(number.suffix(), diagnostics)?) {
            (Ok(value), Some(dtype)) if dtype.is_float() => Some(ExprKind::Float(value as f64, Some(dtype))),
            (Ok(value), dtype) => Some(ExprKind::Int(value, dtype)),
            (Err(error), _) => {
                diagnostics.error(at, error.to_string());
                None
            }
        },
        syn::Lit::Float(number) => match (number.base10_parse::<f64>(), dtype(number.suffix(), diagnostics)?) {
            (Ok(value), dtype) => Some(ExprKind::Float(value, dtype)),
            (Err(error), _) => {
                diagnostics.error(at, error.to_string());
                None
            }
        },
        syn::Lit::Bool(value) => Some(ExprKind::Bool(value.value)),
        syn::Lit::Str(text) => Some(ExprKind::Text(text.value())),
        _ => {
            diagnostics.error(at, "a kernel computes with numbers and bools");
            None
        }
    }
}

/// `x[i]`, `x[i, j]`.
pub fn element(index: &syn::ExprIndex, diagnostics: &mut Diagnostics) -> Option<Element> {
    let at = At::of(index);
    let indices = match &*index.index {
        syn::Expr::Tuple(tuple) => tuple.elems.iter().map(|index| expression(index, diagnostics)).collect(),
        one => expression(one, diagnostics).map(|one| vec![one]),
    };
    Some(Element { buffer: buffer(&index.expr, diagnostics)?, indices: indices?, at })
}

/// The message for `&` before anything but a buffer that is passed to a function.
pub const NO_REFERENCES: &str = "a kernel has no references to values";

/// `&x`, `&mut x`, `&x[i, ..]`.
fn reference(reference: &syn::ExprReference, at: At, diagnostics: &mut Diagnostics) -> Option<ExprKind> {
    let mutable = reference.mutability.is_some();
    let (whole, part) = match &*reference.expr {
        syn::Expr::Index(index) => (&*index.expr, Some(&*index.index)),
        whole => (whole, None),
    };
    let buffer = match whole {
        syn::Expr::Path(path) => path.path.get_ident().cloned(),
        _ => None,
    };
    let Some(buffer) = buffer else {
        diagnostics.error(at, NO_REFERENCES);
        return None;
    };
    let axis = |index: &syn::Expr, diagnostics: &mut Diagnostics| match index {
        syn::Expr::Range(all) if all.start.is_none() && all.end.is_none() => Some(None),
        syn::Expr::Range(_) => {
            diagnostics.error(At::of(index), "a part of a buffer has an index or `..` for each axis: `&x[i, ..]`");
            None
        }
        index => expression(index, diagnostics).map(Some),
    };
    let part = match part {
        None => None,
        Some(syn::Expr::Tuple(tuple)) => {
            let axes: Vec<Option<Option<Expr>>> = tuple.elems.iter().map(|index| axis(index, diagnostics)).collect();
            Some(axes.into_iter().collect::<Option<Vec<_>>>()?)
        }
        Some(one) => Some(vec![axis(one, diagnostics)?]),
    };
    Some(ExprKind::Reference { buffer, mutable, part })
}

fn buffer(expr: &syn::Expr, diagnostics: &mut Diagnostics) -> Option<Ident> {
    let name = match expr {
        syn::Expr::Path(path) => path.path.get_ident().cloned(),
        syn::Expr::Index(_) => {
            diagnostics.error(At::of(expr), "write all indices in one pair of brackets: `x[i, j]`");
            return None;
        }
        _ => None,
    };
    if name.is_none() {
        diagnostics.error(At::of(expr), "only buffers have elements");
    }
    name
}

/// `x.get([i, j], default)`.
fn get(call: &syn::ExprMethodCall, at: At, diagnostics: &mut Diagnostics) -> Option<Expr> {
    let (Some(indices), Some(default), 2) = (call.args.first(), call.args.get(1), call.args.len()) else {
        return refuse(at, "`x.get([i, j], default)` takes the indices and what is read outside", diagnostics);
    };
    let indices = match indices {
        syn::Expr::Array(list) => list.elems.iter().map(|index| expression(index, diagnostics)).collect(),
        one => expression(one, diagnostics).map(|one| vec![one]),
    };
    let default = expression(default, diagnostics);
    let element = Element { buffer: buffer(&call.receiver, diagnostics)?, indices: indices?, at };
    Some(Expr { kind: ExprKind::Get(element, Box::new(default?)), at })
}

/// The operator, and whether it assigns.
pub fn binary_op(op: &syn::BinOp) -> Option<(BinaryOp, bool)> {
    use BinaryOp::*;
    Some(match op {
        syn::BinOp::Add(_) => (Add, false),
        syn::BinOp::Sub(_) => (Sub, false),
        syn::BinOp::Mul(_) => (Mul, false),
        syn::BinOp::Div(_) => (Div, false),
        syn::BinOp::Rem(_) => (Rem, false),
        syn::BinOp::And(_) => (And, false),
        syn::BinOp::Or(_) => (Or, false),
        syn::BinOp::BitXor(_) => (BitXor, false),
        syn::BinOp::BitAnd(_) => (BitAnd, false),
        syn::BinOp::BitOr(_) => (BitOr, false),
        syn::BinOp::Shl(_) => (Shl, false),
        syn::BinOp::Shr(_) => (Shr, false),
        syn::BinOp::Eq(_) => (Eq, false),
        syn::BinOp::Lt(_) => (Lt, false),
        syn::BinOp::Le(_) => (Le, false),
        syn::BinOp::Ne(_) => (Ne, false),
        syn::BinOp::Ge(_) => (Ge, false),
        syn::BinOp::Gt(_) => (Gt, false),
        syn::BinOp::AddAssign(_) => (Add, true),
        syn::BinOp::SubAssign(_) => (Sub, true),
        syn::BinOp::MulAssign(_) => (Mul, true),
        syn::BinOp::DivAssign(_) => (Div, true),
        syn::BinOp::RemAssign(_) => (Rem, true),
        syn::BinOp::BitXorAssign(_) => (BitXor, true),
        syn::BinOp::BitAndAssign(_) => (BitAnd, true),
        syn::BinOp::BitOrAssign(_) => (BitOr, true),
        syn::BinOp::ShlAssign(_) => (Shl, true),
        syn::BinOp::ShrAssign(_) => (Shr, true),
        _ => return None,
    })
}
