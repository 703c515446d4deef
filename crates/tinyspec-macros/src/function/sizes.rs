//! Checks sizes that are computed from constants, such as `{ WIDTH - 7 }`: `const` evaluation rejects one without a
//! valid value, such as a negative length, at the user's own tokens.

use super::signature::mentions;
use crate::diagnostics::{Place, source_text};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, GenericArgument};

/// Emits constants whose evaluation fails unless every size in the types of a signature has a value. `dims` have none here.
pub fn checks(dims: &[String], visit: impl FnOnce(&mut Sizes)) -> TokenStream {
    let mut sizes = Sizes { dims, checks: TokenStream::new() };
    visit(&mut sizes);
    sizes.checks
}

/// Visits the sizes that types name.
pub struct Sizes<'a> {
    dims: &'a [String],
    checks: TokenStream,
}

impl Sizes<'_> {
    fn size(&mut self, size: &Expr) {
        match size {
            Expr::Paren(inner) => self.size(&inner.expr),
            Expr::Group(inner) => self.size(&inner.expr),
            Expr::Block(block) => {
                if let [syn::Stmt::Expr(inner, None)] = block.block.stmts.as_slice() {
                    self.size(inner);
                }
            }
            Expr::Binary(binary) if self.is_constant(size) => {
                // rustc's error shows the operands' values.
                self.checks.extend(quote!(#[allow(clippy::all)] const _: () = { let _ = #binary; };));
            }
            Expr::Binary(binary) => self.open(binary),
            _ => {}
        }
    }

    /// A size that contains dims: its constant parts can be checked, and so can a constant divisor.
    fn open(&mut self, binary: &ExprBinary) {
        self.size(&binary.left);
        self.size(&binary.right);
        let divisor = &binary.right;
        if let (BinOp::Div(_) | BinOp::Rem(_), true) = (&binary.op, self.is_constant(divisor)) {
            let message =
                format!("`{}` is 0 in `{}`, and a dim is divided by it", source_text(divisor), source_text(binary));
            let place = Place::of(divisor);
            let refuse = quote_spanned!(place.start=> ::tinyspec::__private::refuse);
            self.checks.extend(
                quote_spanned!(place.end=> #[allow(clippy::all)] const _: () = if #divisor == 0 { #refuse(#message) };),
            );
        }
    }

    /// Whether only `const` evaluation knows the value: the macro itself has checked arithmetic on literals.
    fn is_constant(&self, size: &Expr) -> bool {
        struct Paths(bool);
        impl<'ast> Visit<'ast> for Paths {
            fn visit_path(&mut self, _: &'ast syn::Path) {
                self.0 = true;
            }
        }
        let mut paths = Paths(false);
        paths.visit_expr(size);
        paths.0 && !self.dims.iter().any(|dim| mentions(size, dim))
    }
}

impl<'ast> Visit<'ast> for Sizes<'_> {
    fn visit_generic_argument(&mut self, argument: &'ast GenericArgument) {
        match argument {
            GenericArgument::Const(size) => self.size(size),
            other => visit::visit_generic_argument(self, other),
        }
    }
}
