//! Statements of a kernel.

use super::at_most::AT_MOST;
use super::expression::{NO_MACROS, binary_op, element, expression};
use super::{buffer_type, dtype_of};
use crate::diagnostics::{Diagnostics, Place as At};
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use syn::visit::Visit;

/// Refuses attributes, which would have no effect; lints are allowed.
struct Attributes<'a>(&'a mut Diagnostics);

impl Visit<'_> for Attributes<'_> {
    fn visit_attribute(&mut self, attribute: &syn::Attribute) {
        refuse_attribute(attribute, self.0);
    }
}

/// Refuses an attribute unless it is documentation or a lint: any other was meant to have an effect.
pub fn refuse_attribute(attribute: &syn::Attribute, diagnostics: &mut Diagnostics) {
    if ["doc", "allow", "expect"].iter().all(|name| !attribute.path().is_ident(name)) {
        let message = "an attribute inside a kernel has no effect: `#[cfg(…)]` stands before a whole kernel";
        diagnostics.error(At::of(attribute), message);
    }
}

/// The body of a kernel.
pub fn body(list: &[syn::Stmt], diagnostics: &mut Diagnostics) -> Vec<Statement> {
    list.iter().for_each(|statement| Attributes(diagnostics).visit_stmt(statement));
    statements(list, diagnostics)
}

fn statements(list: &[syn::Stmt], diagnostics: &mut Diagnostics) -> Vec<Statement> {
    let read = |statement: &syn::Stmt, diagnostics: &mut Diagnostics| {
        let read = self::statement(statement, diagnostics);
        let is_function = matches!(statement, syn::Stmt::Item(syn::Item::Fn(_)));
        if read.is_none() && !is_function && diagnostics.is_empty() {
            // Leaving a statement out changes what the kernel does, so it is always reported.
            diagnostics.error(At::of(statement), "a kernel has no such statement");
        }
        read
    };
    list.iter().filter_map(|statement| read(statement, diagnostics)).collect()
}

pub fn block(block: &syn::Block, diagnostics: &mut Diagnostics) -> Block {
    Block { statements: statements(&block.stmts, diagnostics), at: At::of(block) }
}

fn statement(statement: &syn::Stmt, diagnostics: &mut Diagnostics) -> Option<Statement> {
    match statement {
        syn::Stmt::Local(local) => binding(local, diagnostics).or_else(|| refused(local)),
        syn::Stmt::Expr(expr, _) => effect(expr, diagnostics),
        syn::Stmt::Macro(call) => {
            diagnostics.error(At::of(call), NO_MACROS);
            None
        }
        // `helper` has read it.
        syn::Stmt::Item(syn::Item::Fn(_)) => None,
        syn::Stmt::Item(item) => {
            diagnostics.error(At::of(item), "a kernel has no items inside: move it out of the kernel");
            None
        }
    }
}

/// A `let` that could not be parsed, for its names.
fn refused(local: &syn::Local) -> Option<Statement> {
    let names = crate::function::trace::names_of(&local.pat);
    (!names.is_empty()).then_some(Statement::Refused(names))
}

fn binding(local: &syn::Local, diagnostics: &mut Diagnostics) -> Option<Statement> {
    let (pattern, written) = match &local.pat {
        syn::Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
        other => (other, None),
    };
    let syn::Pat::Ident(pattern) = pattern else {
        diagnostics.error(At::of(pattern), "`let` binds one name");
        return None;
    };
    let (name, mutable) = (pattern.ident.clone(), pattern.mutability.is_some());
    if let Some(initial) = &local.init {
        if let Some((word, _)) = &initial.diverge {
            diagnostics.error(At::of(word), "`let … else` has no meaning in a kernel");
        }
        let value = expression(&initial.expr, diagnostics)?;
        let dtype = match written {
            Some(written) => match dtype_of(written) {
                Some(dtype) => Some(dtype),
                None => {
                    diagnostics.error(At::of(written), "a variable is a scalar: its type is a dtype such as `f32`");
                    return None;
                }
            },
            None => None,
        };
        return Some(Statement::Let { name, mutable, dtype, value });
    }
    let Some(written) = written else {
        let message = format!("`{name}` needs a value, or a buffer type: `let mut {name}: Local<f32, 32>;`");
        diagnostics.error(At::of(&pattern), message);
        return None;
    };
    match buffer_type(written, diagnostics)? {
        ("Global", ..) => {
            diagnostics
                .error(At::of(written), "`Global` buffers are parameters; inside a kernel there are `Local` and `Reg`");
            None
        }
        (space, dtype, dims) => {
            Some(Statement::Declare { name, local: space == "Local", dtype, dims, at: At::of(written) })
        }
    }
}

fn effect(expr: &syn::Expr, diagnostics: &mut Diagnostics) -> Option<Statement> {
    let at = At::of(expr);
    match expr {
        syn::Expr::Assign(assign) => {
            let (place, value) = (place(&assign.left, diagnostics), expression(&assign.right, diagnostics));
            Some(Statement::Assign { place: place?, op: None, value: value?, at })
        }
        syn::Expr::Binary(binary) => match binary_op(&binary.op) {
            Some((op, true)) => {
                let (place, value) = (place(&binary.left, diagnostics), expression(&binary.right, diagnostics));
                Some(Statement::Assign { place: place?, op: Some(op), value: value?, at })
            }
            _ => refuse(at, NOT_USED, diagnostics),
        },
        syn::Expr::ForLoop(each) => self::each(each, diagnostics),
        syn::Expr::If(branch) => {
            let condition = expression(&branch.cond, diagnostics);
            let then = block(&branch.then_branch, diagnostics);
            let otherwise = branch.else_branch.as_ref().map(|(_, other)| match &**other {
                syn::Expr::Block(other) => block(&other.block, diagnostics),
                other => Block { statements: effect(other, diagnostics).into_iter().collect(), at: At::of(other) },
            });
            Some(Statement::If { condition: condition?, then, otherwise })
        }
        syn::Expr::Unsafe(inner) => Some(Statement::Unsafe(block(&inner.block, diagnostics))),
        syn::Expr::Block(inner) => Some(Statement::Block(block(&inner.block, diagnostics))),
        syn::Expr::Call(call) => {
            let name = match &*call.func {
                syn::Expr::Path(path) => path.path.get_ident().map(Ident::to_string),
                _ => None,
            };
            match (name.as_deref(), call.args.len()) {
                (Some("barrier"), 0) => Some(Statement::Barrier(at)),
                (Some("barrier"), _) => refuse(at, "`barrier()` takes nothing", diagnostics),
                (Some("atomic_add"), 2) => {
                    let target = match &call.args[0] {
                        syn::Expr::Reference(target) if target.mutability.is_some() => &*target.expr,
                        other => {
                            let message = "an element is passed to be changed: `atomic_add(&mut h[i], 1)`";
                            return refuse(At::of(other), message, diagnostics);
                        }
                    };
                    let (place, value) = (place(target, diagnostics), expression(&call.args[1], diagnostics));
                    Some(Statement::AtomicAdd { place: place?, value: value?, at })
                }
                (Some("atomic_add"), _) => {
                    refuse(at, "`atomic_add(&mut h[i], value)` takes a place and a value", diagnostics)
                }
                _ => expression(expr, diagnostics).map(Statement::Call),
            }
        }
        syn::Expr::MethodCall(_) => expression(expr, diagnostics).map(Statement::Call),
        syn::Expr::While(each) => self::each_while(each, at, diagnostics),
        syn::Expr::Loop(_) => {
            let message = "a loop of a kernel has a declared maximum: `while x < y, at most n { … }`, or `for i in serial(n)` with `break`";
            refuse(at, message, diagnostics)
        }
        syn::Expr::Break(exit) if exit.label.is_none() && exit.expr.is_none() => Some(Statement::Break(at)),
        syn::Expr::Continue(exit) if exit.label.is_none() => Some(Statement::Continue(at)),
        syn::Expr::Break(_) | syn::Expr::Continue(_) => {
            refuse(at, "`break` and `continue` stand alone, and mean the innermost loop", diagnostics)
        }
        syn::Expr::Return(_) => refuse(
            at,
            "a kernel runs to its end: put what should not run into an `if`, or leave a loop with `break`",
            diagnostics,
        ),
        syn::Expr::Match(_) => refuse(at, "a kernel has no `match`: write `if … { … } else { … }`", diagnostics),
        syn::Expr::Macro(_) => refuse(at, NO_MACROS, diagnostics),
        _ => refuse(at, NOT_USED, diagnostics),
    }
}

/// The message for a value used as a statement.
pub const NOT_USED: &str = "this value is not used: store it or give it a name with `let`";

fn refuse(at: At, message: &str, diagnostics: &mut Diagnostics) -> Option<Statement> {
    diagnostics.error(at, message);
    None
}

fn place(expr: &syn::Expr, diagnostics: &mut Diagnostics) -> Option<Place> {
    match expr {
        syn::Expr::Index(index) => element(index, diagnostics).map(Place::Element),
        syn::Expr::Path(path) if path.path.get_ident().is_some() => path.path.get_ident().cloned().map(Place::Variable),
        _ => {
            diagnostics.error(At::of(expr), "only variables and elements of buffers can be assigned: `y[i] = …`");
            None
        }
    }
}

fn each(each: &syn::ExprForLoop, diagnostics: &mut Diagnostics) -> Option<Statement> {
    let body = block(&each.body, diagnostics);
    let variable = match &*each.pat {
        syn::Pat::Ident(pattern) => pattern.ident.clone(),
        syn::Pat::Wild(wild) => Ident::new("_", wild.underscore_token.span),
        other => {
            diagnostics.error(At::of(other), "a loop has one variable");
            return None;
        }
    };
    let at = At::of(&each.expr);
    let kinds = "global, local, serial, reduce or unroll";
    let (name, argument, most) = match &*each.expr {
        syn::Expr::Call(call) if call.args.len() == 1 || most(call).is_some() => match &*call.func {
            syn::Expr::Path(path) if path.path.get_ident().is_some() => {
                (path.path.get_ident().cloned()?, &call.args[0], most(call))
            }
            _ => {
                diagnostics.error(at, format!("a loop needs its kind: {kinds}, as in `serial(n)`"));
                return None;
            }
        },
        syn::Expr::Range(_) => {
            diagnostics.error(at, format!("a loop needs its kind, {kinds}: `for i in serial(0..n)`"));
            return None;
        }
        _ => {
            diagnostics.error(at, format!("a loop needs its kind: {kinds}, as in `serial(n)`"));
            return None;
        }
    };
    let Some(&(_, kind)) = LoopKind::ALL.iter().find(|(known, _)| name == known) else {
        diagnostics.error(name.span(), format!("`{name}` is not a kind of loop; the kinds are {kinds}"));
        return None;
    };
    let (start, end) = match argument {
        syn::Expr::Range(range) => {
            if let syn::RangeLimits::Closed(limits) = &range.limits {
                diagnostics.error(At::of(limits), "loops end before their bound: `0..n`");
            }
            let Some(end) = &range.end else {
                diagnostics.error(At::of(range), "the loop needs an end: `0..n`");
                return None;
            };
            let start = match &range.start {
                Some(start) => Some(expression(start, diagnostics)?),
                None => None,
            };
            (start, expression(end, diagnostics)?)
        }
        other => (None, expression(other, diagnostics)?),
    };
    let most = match most {
        Some(most) => Some(expression(most, diagnostics)?),
        None => None,
    };
    Some(Statement::For { variable, kind, trips: Box::new(Trips { start, end, most }), body, at })
}

/// `while condition, at most n { … }`: a serial loop that a `break` ends where the condition is false.
fn each_while(each: &syn::ExprWhile, at: At, diagnostics: &mut Diagnostics) -> Option<Statement> {
    let body = block(&each.body, diagnostics);
    let (condition, most) = match &*each.cond {
        syn::Expr::Call(call) if call.args.len() == 2 && is_at_most(&call.func) => (&call.args[0], &call.args[1]),
        _ => {
            let at = At::of(&each.while_token).to(At::of(&each.cond));
            return refuse(
                at,
                "a loop of a kernel has a declared maximum: `while x < y, at most n { … }`",
                diagnostics,
            );
        }
    };
    let (condition, most) = (expression(condition, diagnostics), expression(most, diagnostics));
    let otherwise = Some(Block { statements: vec![Statement::Break(at)], at });
    let inside =
        Block { at: body.at, statements: vec![Statement::If { condition: condition?, then: body, otherwise }] };
    let most = most?;
    let trips = Box::new(Trips { start: None, end: most.clone(), most: Some(most) });
    let variable = Ident::new("_", each.while_token.span);
    Some(Statement::For { variable, kind: LoopKind::Serial, trips, body: inside, at: At::of(&each.while_token) })
}

fn is_at_most(function: &syn::Expr) -> bool {
    matches!(function, syn::Expr::Path(path) if path.path.is_ident(AT_MOST))
}

/// The `N` of `serial(n, at most N)`.
fn most(call: &syn::ExprCall) -> Option<&syn::Expr> {
    let [_, syn::Expr::Call(bound)] = call.args.iter().collect::<Vec<_>>()[..] else { return None };
    bound.args.first().filter(|_| is_at_most(&bound.func) && bound.args.len() == 1)
}
