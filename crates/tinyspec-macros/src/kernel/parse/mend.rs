//! Bodies with statements that are not Rust: each is reported and left out, so that it does not hide mistakes in the
//! others.

use crate::diagnostics::Diagnostics;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::parse::Parser;

/// The placeholder for a value that could not be parsed.
pub const UNREADABLE: &str = "__tinyspec_unreadable";

/// The statements of a body that parse, and `let`s with placeholders for the names of the others.
pub fn statements(body: &Group, diagnostics: &mut Diagnostics) -> Vec<syn::Stmt> {
    let mended = readable(body.stream(), body.span_close(), diagnostics);
    syn::Block::parse_within.parse2(mended).unwrap_or_default()
}

fn readable(body: TokenStream, end: Span, diagnostics: &mut Diagnostics) -> TokenStream {
    if syn::Block::parse_within.parse2(body.clone()).is_ok() {
        return body;
    }
    pieces(body).into_iter().map(|piece| piece_of(piece, end, diagnostics)).collect()
}

/// One statement, keeping what parses of the blocks inside; if that does not help, its error.
fn piece_of(piece: Vec<TokenTree>, end: Span, diagnostics: &mut Diagnostics) -> TokenStream {
    let tokens: TokenStream = piece.iter().cloned().collect();
    if syn::Block::parse_within.parse2(tokens.clone()).is_ok() {
        return tokens;
    }
    let mended: TokenStream = piece.iter().map(|token| with_readable_blocks(token, diagnostics)).collect();
    let Err(error) = syn::Block::parse_within.parse2(mended.clone()) else { return mended };
    // A token missing at the end has no location.
    let (span, everything) = (error.span(), Span::call_site());
    let is_end = (span.start(), span.end()) == (everything.start(), everything.end());
    diagnostics.error(if is_end { end } else { span }, error.to_string());
    let unreadable = format_ident!("{UNREADABLE}");
    bound(&piece).into_iter().map(|name| quote!(let #name = #unreadable!();)).collect()
}

fn with_readable_blocks(token: &TokenTree, diagnostics: &mut Diagnostics) -> TokenTree {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let inside = readable(group.stream(), group.span_close(), diagnostics);
            let mut mended = Group::new(Delimiter::Brace, inside);
            mended.set_span(group.span());
            TokenTree::Group(mended)
        }
        other => other.clone(),
    }
}

/// Splits statements by tokens alone: up to a `;`, or to the braces of a loop, an `if` or a block.
fn pieces(body: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut pieces: Vec<Vec<TokenTree>> = vec![vec![]];
    let mut tokens = body.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_end = match &token {
            TokenTree::Punct(mark) => mark.as_char() == ';',
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let starts = ["for", "if", "while", "loop", "unsafe"];
                let first = pieces.last().and_then(|piece| piece.first());
                let is_block = match first {
                    None => true,
                    Some(TokenTree::Ident(word)) => starts.iter().any(|start| word == start),
                    Some(_) => false,
                };
                is_block && !matches!(tokens.peek(), Some(TokenTree::Ident(word)) if word == "else")
            }
            _ => false,
        };
        if let Some(piece) = pieces.last_mut() {
            piece.push(token);
        }
        if is_end {
            pieces.push(vec![]);
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The names that `let` would have bound.
fn bound(piece: &[TokenTree]) -> Vec<Ident> {
    let words = piece.iter().enumerate().filter_map(|(position, token)| match token {
        TokenTree::Ident(word) if word == "let" => piece[position + 1..].iter().find_map(|token| match token {
            TokenTree::Ident(name) if name != "mut" => Some(name.clone()),
            _ => None,
        }),
        _ => None,
    });
    words.collect()
}
