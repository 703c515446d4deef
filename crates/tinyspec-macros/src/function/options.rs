//! The options of `#[function(…)]`.

use crate::diagnostics::{Diagnostics, Place, source_text};
use darling::FromMeta;
use darling::ast::NestedMeta;
use darling::util::PathList;
use proc_macro2::{Span, TokenStream};
use std::collections::HashMap;
use syn::punctuated::Punctuated;
use syn::{BinOp, Expr, ExprLit, ExprRange, FnArg, Ident, Lit, RangeLimits, Token};
use tinyspec_ir::rewrite::Permission;
use tinyspec_ir::signature::NamedDim;

/// The options of a function.
#[derive(Default)]
pub struct Options {
    /// As written.
    pub written: TokenStream,
    /// The option `grad`: the backward function is embedded too.
    pub grad: Option<Span>,
    /// The user's own gradient.
    pub gradient: Option<syn::Path>,
    /// The permitted changes of float results.
    pub fast_math: Vec<Permission>,
    /// Sums of products of bf16 are computed as written.
    pub strict: bool,
    /// The name under which the code of a function without a body is registered, unless it is its own.
    pub custom: Option<syn::LitStr>,
    /// The parameters that a function without a body updates.
    pub in_place: Vec<syn::Path>,
    /// The path of tinyspec, unless it is `::tinyspec`.
    pub root: Option<syn::Path>,
    /// Facts about named dims: `D % H == 0`.
    pub facts: Vec<Fact>,
    /// A fact could not be parsed, so what it implies is unknown.
    pub has_unread_facts: bool,
    /// Parameters that the body uses as a condition: each of their values has its own graph.
    pub flags: Vec<String>,
    /// Least and greatest values of named dims.
    pub bounds: HashMap<String, (i64, i64, Ident)>,
}

/// `D % H == 0`
#[derive(Clone)]
pub struct Fact {
    /// The dim.
    pub dim: Ident,
    /// Its divisor.
    pub by: Expr,
}

/// The options that are ordinary metas; `bounds` has its own syntax.
#[derive(FromMeta, Default)]
#[darling(default)]
struct Plain {
    grad: darling::util::Flag,
    gradient: Option<syn::Path>,
    fast_math: Option<PathList>,
    strict: darling::util::Flag,
    custom: Option<syn::LitStr>,
    in_place: Option<PathList>,
    #[darling(rename = "crate")]
    root: Option<syn::Path>,
}

/// `B: 1..=4096`
struct Bound {
    name: Ident,
    range: Expr,
}

impl syn::parse::Parse for Bound {
    fn parse(input: syn::parse::ParseStream) -> syn::Result<Bound> {
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        Ok(Bound { name, range: input.parse()? })
    }
}

impl Options {
    /// Adds the flags of a body.
    pub fn with_flags(mut self, inputs: &Punctuated<FnArg, Token![,]>, body: &syn::Block) -> Options {
        self.flags = super::flags::find(inputs, body);
        self
    }

    /// Whether a gradient is requested.
    pub fn has_gradient(&self) -> bool {
        self.grad.is_some() || self.gradient.is_some()
    }

    /// Whether an option is set that is allowed before a function but not before an `impl`.
    pub fn is_of_function(&self) -> bool {
        !self.facts.is_empty()
            || self.has_gradient()
            || !self.fast_math.is_empty()
            || self.strict
            || self.custom.is_some()
            || !self.in_place.is_empty()
            || !self.bounds.is_empty()
    }

    /// Reads the options and reports mistakes at their tokens.
    pub fn parse(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Options {
        let mut options = Options { written: tokens.clone(), ..Options::default() };
        let mut plain = vec![];
        match NestedMeta::parse_meta_list(bounds_as_list(tokens, &mut options, diagnostics)) {
            Ok(metas) => {
                for meta in metas {
                    let is_known = matches!(&meta, NestedMeta::Meta(meta) if ["grad", "gradient", "fast_math", "strict", "custom", "in_place", "crate"].iter().any(|name| meta.path().is_ident(name)));
                    options.has_unread_facts |=
                        matches!(&meta, NestedMeta::Meta(meta) if meta.path().is_ident("where"));
                    if let Some(message) = misused(&meta) {
                        diagnostics.error(Place::of(&meta), message);
                    } else if is_known {
                        plain.push(meta);
                    } else {
                        let shown = match &meta {
                            NestedMeta::Meta(meta) => source_text(meta.path()),
                            other => source_text(other),
                        };
                        let message = format!(
                            "`{shown}` is not an option: the options are `grad`, `gradient = path`, `fast_math(contract)`, `strict`, `bounds(B: 1..=4096)`, `where(D % H == 0)`, `custom = \"name\"`, `in_place(y)` and `crate = path`"
                        );
                        diagnostics.error(Place::of(&meta), message);
                    }
                }
            }
            Err(error) => diagnostics.syntax(error),
        }
        match Plain::from_list(&plain) {
            Ok(Plain { grad, gradient, fast_math, strict, custom, in_place, root }) => {
                options.custom = custom;
                options.in_place = in_place.iter().flat_map(|list| list.iter()).cloned().collect();
                options.strict = strict.is_present();
                options.grad = grad.is_present().then(|| grad.span());
                options.gradient = gradient;
                options.root = root;
                let permissions = fast_math.iter().flat_map(|list| list.iter());
                options.fast_math = permissions.filter_map(|name| permission(name, diagnostics)).collect();
            }
            Err(error) => {
                for error in error.flatten() {
                    let span = error.span();
                    let message = match error.to_string() {
                        text if text.starts_with("Duplicate") => "this option is given twice".to_string(),
                        text if text.contains("non-word") => FAST_MATH.to_string(),
                        text => format!(
                            "{text}; the options are `grad`, `gradient = path`, `fast_math(contract)`, `strict`, `bounds(B: 1..=4096)`, `where(D % H == 0)`, `custom = \"name\"`, `in_place(y)` and `crate = path`"
                        ),
                    };
                    diagnostics.error(Place::between(span, span), message);
                }
            }
        }
        options
    }
}

/// `contract`, `approx`
fn permission(name: &syn::Path, diagnostics: &mut Diagnostics) -> Option<Permission> {
    let text = source_text(name);
    let permission = Permission::from_name(&text);
    if permission.is_none() {
        let known = Permission::ALL.map(|permission| format!("`{}`", permission.name())).join(", ");
        diagnostics.error(
            Place::of(name),
            format!("`{text}` is not a permission of `fast_math`: the permissions are {known}"),
        );
    }
    permission
}

const FAST_MATH: &str = "`fast_math` lists what it permits: `fast_math(contract, approx)`";

/// The correct spelling of a known option that is misused.
fn misused(meta: &NestedMeta) -> Option<&'static str> {
    use syn::Meta;
    let NestedMeta::Meta(meta) = meta else { return None };
    let name = meta.path().get_ident()?.to_string();
    match (name.as_str(), meta) {
        ("grad", Meta::NameValue(_) | Meta::List(_)) => Some("`grad` stands alone: `#[function(grad)]`"),
        ("strict", Meta::NameValue(_) | Meta::List(_)) => Some("`strict` stands alone: `#[function(strict)]`"),
        ("gradient", Meta::Path(_) | Meta::List(_)) => {
            Some("`gradient` names the #[function] that computes it: `gradient = my_gradient`")
        }
        ("fast_math", Meta::Path(_) | Meta::NameValue(_)) => Some(FAST_MATH),
        ("crate", Meta::Path(_) | Meta::List(_)) => {
            Some("`crate` says where tinyspec is found: `crate = my_name_of_tinyspec`")
        }
        ("custom", Meta::Path(_) | Meta::List(_)) => {
            Some("`custom` is the name under which the function's code is registered: `custom = \"my_crate::gemm\"`")
        }
        ("in_place", Meta::Path(_) | Meta::NameValue(_)) => Some(IN_PLACE),
        ("in_place", Meta::List(list)) if !are_names(&list.tokens) => Some(IN_PLACE),
        ("where", _) => Some(WHERE),
        ("bounds", _) => Some("`bounds` says which sizes dims may have: `bounds(B: 1..=4096)`"),
        _ => None,
    }
}

const IN_PLACE: &str = "`in_place` lists the first parameters, which the function updates: `in_place(y)`";

fn are_names(tokens: &TokenStream) -> bool {
    let parser = Punctuated::<Ident, Token![,]>::parse_terminated;
    syn::parse::Parser::parse2(parser, tokens.clone()).is_ok_and(|names| !names.is_empty())
}

/// Takes `bounds(…)` and `where(…)` out of the list: their contents are not metas.
fn bounds_as_list(tokens: TokenStream, options: &mut Options, diagnostics: &mut Diagnostics) -> TokenStream {
    use proc_macro2::TokenTree;
    let mut rest = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match (&token, tokens.peek()) {
            (TokenTree::Ident(name), Some(TokenTree::Group(group))) if name == "bounds" || name == "where" => {
                if name == "where" {
                    read_facts(group, options, diagnostics);
                } else {
                    read_bounds(group.stream(), options, diagnostics);
                }
                tokens.next();
                // The comma that follows.
                tokens.next_if(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','));
            }
            _ => rest.extend([token]),
        }
    }
    rest
}

const WHERE: &str = "`where` says what divides a dim: `where(D % H == 0)`";

fn read_facts(group: &proc_macro2::Group, options: &mut Options, diagnostics: &mut Diagnostics) {
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    let facts = match syn::parse::Parser::parse2(parser, group.stream()) {
        Ok(facts) if !facts.is_empty() => facts,
        _ => {
            options.has_unread_facts = true;
            return diagnostics.error(Place::of(group), WHERE);
        }
    };
    for written in facts {
        match fact(&written) {
            Some(fact) => options.facts.push(fact),
            None => {
                options.has_unread_facts = true;
                diagnostics.error(Place::of(&written), WHERE);
            }
        }
    }
}

/// `D % H == 0`
fn fact(written: &Expr) -> Option<Fact> {
    let Expr::Binary(equality) = written else { return None };
    let is_zero = |expression: &Expr| matches!(expression, Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) if number.base10_digits() == "0");
    let (BinOp::Eq(_), true) = (&equality.op, is_zero(&equality.right)) else { return None };
    let mut rest = &*equality.left;
    while let Expr::Paren(inner) = rest {
        rest = &inner.expr;
    }
    let Expr::Binary(rest) = rest else { return None };
    match (&*rest.left, &rest.op) {
        (Expr::Path(path), BinOp::Rem(_)) => {
            Some(Fact { dim: path.path.get_ident()?.clone(), by: (*rest.right).clone() })
        }
        _ => None,
    }
}

fn read_bounds(tokens: TokenStream, options: &mut Options, diagnostics: &mut Diagnostics) {
    let parser = syn::punctuated::Punctuated::<Bound, Token![,]>::parse_terminated;
    let bounds = match syn::parse::Parser::parse2(parser, tokens) {
        Ok(bounds) => bounds,
        Err(error) => {
            return diagnostics.error(error.span(), "`bounds` says which sizes dims may have: `bounds(B: 1..=4096)`");
        }
    };
    for Bound { name, range } in bounds {
        match literal_range(&range) {
            Some((low, high)) if 0 <= low && low <= high && (1..=NamedDim::MAX).contains(&high) => {
                if options.bounds.insert(name.to_string(), (low, high, name.clone())).is_some() {
                    diagnostics.error(Place::of(&name), format!("`{name}` has bounds already"));
                }
            }
            _ => diagnostics.error(
                Place::of(&range),
                format!(
                    "the bounds of `{name}` must be a range of numbers up to {}, not of 0 alone, such as `1..=4096`",
                    NamedDim::MAX
                ),
            ),
        }
    }
}

/// First and last value of `a..b` or `a..=b` with literals.
pub fn literal_range(range: &Expr) -> Option<(i64, i64)> {
    let Expr::Range(ExprRange { start: Some(start), limits, end: Some(end), .. }) = range else { return None };
    let number = |expression: &Expr| match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse::<i64>().ok(),
        _ => None,
    };
    let last = number(end)?;
    Some((number(start)?, if matches!(limits, RangeLimits::Closed(_)) { last } else { last - 1 }))
}
