//! Attributes inside a function: rustc applies them after the body has been traced, so only attributes that change
//! nothing are allowed.

use crate::diagnostics::{Diagnostics, Place, source_text};
use syn::punctuated::Punctuated;
use syn::visit::{Visit, visit_item};
use syn::{Attribute, Block, FnArg, Item, Token};

/// Whether the attribute changes nothing: a lint or documentation.
pub fn is_harmless(attribute: &Attribute) -> bool {
    let path = attribute.path();
    let is_word = path.get_ident().is_some_and(|name| {
        ["allow", "expect", "warn", "deny", "forbid", "doc"].iter().any(|harmless| name == harmless)
    });
    let is_of_a_tool = path.segments.len() > 1 && path.segments[0].ident == "rustfmt";
    is_word || is_of_a_tool
}

/// Whether the attribute decides if an item is compiled at all.
pub fn is_conditional(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr")
}

/// Refuses all others, in the parameters and in the body.
pub fn check(inputs: &Punctuated<FnArg, Token![,]>, body: &Block, diagnostics: &mut Diagnostics) {
    let mut checker = Checker(diagnostics);
    inputs.iter().for_each(|input| checker.visit_fn_arg(input));
    checker.visit_block(body);
}

/// Refuses those of an expression inside a macro call.
pub fn check_expression(expression: &syn::Expr, diagnostics: &mut Diagnostics) {
    Checker(diagnostics).visit_expr(expression);
}

struct Checker<'a>(&'a mut Diagnostics);

impl<'ast> Visit<'ast> for Checker<'_> {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if is_harmless(attribute) {
            return;
        }
        let name = source_text(attribute.path());
        let message = if is_conditional(attribute) {
            format!(
                "`#[{name}(…)]` would change what rustc compiles, not what is traced: put it before a whole function, one for each case"
            )
        } else {
            format!(
                "`#[{name}]` is not seen by the trace: inside a #[function] only `#[allow(…)]`, `#[rustfmt::skip]` and comments stand"
            )
        };
        self.0.error(Place::of(attribute), message);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        // Only rustc reads imports.
        if !matches!(item, Item::Use(_)) {
            visit_item(self, item);
        }
    }
}
