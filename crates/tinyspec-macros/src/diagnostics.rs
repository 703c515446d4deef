//! Errors of the macros: all of them in one run, each at the user's tokens.

use crate::editor;
use crate::function::source::constant_near;
use proc_macro2::{Delimiter, Ident, LineColumn, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use tinyspec_ir::DType;

/// The source range that an error underlines.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The first token.
    pub start: Span,
    /// The last token.
    pub end: Span,
}

impl Place {
    /// All of `tokens`.
    pub fn of(tokens: &impl ToTokens) -> Place {
        let mut tokens = tokens.to_token_stream().into_iter();
        let start = tokens.next().map_or_else(Span::call_site, |token| token.span());
        let end = tokens.last().map_or(start, |token| token.span());
        Place { start, end }
    }

    /// From one token to another.
    pub fn between(start: Span, end: Span) -> Place {
        Place { start, end }
    }

    /// From here to the end of `other`.
    pub fn to(self, other: Place) -> Place {
        Place { start: self.start, end: other.end }
    }

    /// The key that identifies a place: lines and columns, or the debug text of the spans in an editor, which gives no
    /// lines.
    fn key(self) -> (usize, usize, usize, usize) {
        if editor::is_asking() {
            let hash =
                |span: Span| BuildHasherDefault::<DefaultHasher>::default().hash_one(format!("{span:?}")) as usize;
            return (hash(self.start), 0, hash(self.end), 0);
        }
        let (start, end) = (self.start.start(), self.end.end());
        (start.line, start.column, end.line, end.column)
    }
}

impl From<Span> for Place {
    fn from(span: Span) -> Place {
        Place { start: span, end: span }
    }
}

/// An identifier of this text, which may be raw (`r#type`).
pub fn ident(text: &str) -> Ident {
    match text.strip_prefix("r#") {
        Some(word) => Ident::new_raw(word, Span::call_site()),
        None => Ident::new(text, Span::call_site()),
    }
}

/// The errors found so far.
#[derive(Default)]
pub struct Diagnostics {
    errors: Vec<(Place, String)>,
    /// Expressions whose error is reported here; rustc would report them a second time.
    left_out: HashSet<(usize, usize, usize, usize)>,
    /// Expressions that the typed copy rewrites.
    adapted: HashMap<(usize, usize, usize, usize), Adaptation>,
}

/// How the typed copy rewrites an expression that is not plain Rust; the trace knows what it means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adaptation {
    /// `D as f32`, where `D` is a named dim: a tensor of shape `()`.
    SizeAs(DType),
    /// `D as usize`, where `D` is a named dim: the dim itself.
    Size,
    /// A list of this length that is destructured by an array pattern.
    Array(usize),
    /// A statement that changes a buffer of a model.
    State,
    /// A constant of some integer type, as an `i64`.
    Whole,
    /// A list of sizes of several types, as dims.
    Sizes,
    /// A number of any type as the left operand of a tensor.
    Left,
}

impl Diagnostics {
    /// Reports a mistake; each place gets one message.
    pub fn error(&mut self, place: impl Into<Place>, message: impl Into<String>) {
        let place = place.into();
        if self.errors.iter().all(|(other, _)| other.key() != place.key()) {
            self.errors.push((place, message.into()));
        }
    }

    /// Reports a mistake once, at the first mention of a name.
    pub fn error_once(&mut self, place: Place, message: String) {
        if self.errors.iter().all(|(_, other)| *other != message) {
            self.error(place, message);
        }
    }

    /// Reports a mistake in an expression that rustc would not accept either: the typed copy leaves it out.
    pub fn error_instead_of_rustc(&mut self, expression: &impl ToTokens, place: Place, message: impl Into<String>) {
        self.left_out.insert(Place::of(expression).key());
        self.error(place, message);
    }

    /// Leaves an expression with an invalid operand out of the typed copy.
    pub fn leave_out(&mut self, expression: &impl ToTokens) {
        self.left_out.insert(Place::of(expression).key());
    }

    /// The errors at places where `reported` has none.
    pub fn besides(&self, reported: &Diagnostics) -> Diagnostics {
        let is_new =
            |(place, _): &&(Place, String)| reported.errors.iter().all(|(other, _)| other.key() != place.key());
        Diagnostics { errors: self.errors.iter().filter(is_new).cloned().collect(), ..Diagnostics::default() }
    }

    /// Adds what another pass found.
    pub fn extend(&mut self, other: Diagnostics) {
        for (place, message) in other.errors {
            self.error(place, message);
        }
        self.left_out.extend(other.left_out);
        self.adapted.extend(other.adapted);
    }

    /// Records how the typed copy rewrites this expression.
    pub fn adapt(&mut self, expression: &impl ToTokens, adaptation: Adaptation) {
        self.adapted.insert(Place::of(expression).key(), adaptation);
    }

    /// How the typed copy rewrites this expression, if it does.
    pub fn adaptation(&self, expression: &impl ToTokens) -> Option<Adaptation> {
        if self.adapted.is_empty() { None } else { self.adapted.get(&Place::of(expression).key()).copied() }
    }

    /// The mistakes found so far.
    pub fn errors(&self) -> impl Iterator<Item = (Place, &str)> {
        self.errors.iter().map(|(place, message)| (*place, message.as_str()))
    }

    /// Only the adaptations, without the errors.
    pub fn adaptations(&self) -> Diagnostics {
        Diagnostics { adapted: self.adapted.clone(), ..Diagnostics::default() }
    }

    /// The mistakes that all of the others have too.
    pub fn shared_with<'a>(&self, others: impl Iterator<Item = &'a Diagnostics>) -> Diagnostics {
        let mut shared = self.errors.clone();
        for other in others {
            let has = |(place, message): &(Place, String)| {
                other.errors.iter().any(|(at, text)| at.key() == place.key() && text == message)
            };
            shared.retain(has);
        }
        Diagnostics { errors: shared, ..Diagnostics::default() }
    }

    /// Only the omissions and adaptations, without the errors.
    pub fn without_errors(&self) -> Diagnostics {
        Diagnostics { errors: vec![], left_out: self.left_out.clone(), adapted: self.adapted.clone() }
    }

    /// The number of mistakes.
    pub fn count(&self) -> usize {
        self.errors.len()
    }

    /// Whether the typed copy leaves this expression out.
    pub fn is_left_out(&self, expression: &impl ToTokens) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&Place::of(expression).key())
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds an error of syn or darling.
    pub fn syntax(&mut self, error: syn::Error) {
        for error in error {
            let span = error.span();
            self.error(Place::between(span, span), error.to_string());
        }
    }

    /// One `compile_error!` for each.
    pub fn to_tokens(&self) -> TokenStream {
        self.errors
            .iter()
            .map(|(place, message)| {
                let path = quote_spanned!(place.start=> ::core::compile_error);
                quote_spanned!(place.end=> #path ! { #message })
            })
            .collect()
    }
}

/// The source of some tokens as the user wrote it, on one line: spans of several tokens cannot be joined on stable Rust.
pub fn source_text(tokens: &impl ToTokens) -> String {
    let mut text = String::new();
    let mut end = None;
    write_tokens(tokens.to_token_stream(), &mut text, &mut end);
    text
}

fn write_tokens(tokens: TokenStream, text: &mut String, end: &mut Option<LineColumn>) {
    let mut write = |word: &str, span: Span, text: &mut String| {
        let start = span.start();
        match *end {
            Some(last) if last.line == start.line => {
                text.extend(std::iter::repeat_n(' ', start.column.saturating_sub(last.column).min(1)));
            }
            Some(_) if text.ends_with(|c: char| c.is_alphanumeric()) && word.starts_with(char::is_alphanumeric) => {
                text.push(' ');
            }
            _ => {}
        }
        text.push_str(word);
        *end = Some(span.end());
    };
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                write(open, group.span_open(), text);
                let mut inner = Some(group.span_open().end());
                write_tokens(group.stream(), text, &mut inner);
                // The inner tokens end where the group ends.
                let gap = inner.is_some_and(|inner| {
                    let close = group.span_close().start();
                    inner.line == close.line && inner.column < close.column
                });
                if gap {
                    text.push(' ');
                }
                text.push_str(close);
                write("", group.span_close(), &mut String::new());
            }
            other => write(&other.to_string(), other.span(), text),
        }
    }
}

/// The message for a size that nothing defines; `owner` is what declares dims, `fn dense` or `struct Dense`.
pub fn undefined_size(name: &Ident, owner: &str, declared: &[String]) -> String {
    let dims: Vec<&str> = declared.iter().map(String::as_str).collect();
    let dims = [dims.as_slice(), &[&name.to_string()]].concat().join(", ");
    let near = constant_near(name).map_or(String::new(), |near| format!(" (is it `{near}`?)"));
    format!(
        "nothing here is called `{name}`{near}: a dim of a tensor is declared, `{owner}<{dims}>`; another size is a number or a `const`"
    )
}

/// The message for a constant of a model with generics.
pub fn constant_of_self(constant: &syn::Path) -> String {
    format!(
        "`{}` may differ with the sizes of the model: write it as an expression over them, or make it a `const` outside the `impl`",
        source_text(constant)
    )
}

/// The message for a dim that no argument determines.
pub fn unbound_dim(dim: &proc_macro2::Ident) -> String {
    format!(
        "nothing binds the dim `{dim}`\nit must be an axis of some parameter, or all that is unknown of one, such as \
         `{{ 2 * {dim} }}`"
    )
}

/// The same for a generic of a model.
pub fn unbound_generic(dim: &proc_macro2::Ident) -> String {
    format!(
        "no tensor of this model has an axis of `{dim}`, and a graph knows sizes only from its tensors\nname it in a field, as in \
         `query: Tensor<f32, D, {dim}, K>`, or write a number or a `const` instead of the generic"
    )
}
