//! Items whose parts are not valid Rust yet. rustc has reported that, so it is not reported again: a body that cannot
//! be parsed is left out, and the rest stays for callers and editors.

use crate::function::ungroup::{self, Item};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::parse::Parser;

/// Parses an item that an earlier expansion passed on, without what cannot be parsed: an editor repairs the body for
/// the attribute, but not for later expansions.
pub fn parse<T: Item>(item: TokenStream) -> syn::Result<T> {
    ungroup::parse(item.clone()).or_else(|_| ungroup::parse(without_bodies(item)))
}

/// A function or an `impl` block without the bodies that cannot be parsed.
pub fn without_bodies(item: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let is_block = tokens.iter().any(|token| matches!(token, TokenTree::Ident(word) if word == "impl"))
        && tokens.iter().all(|token| !matches!(token, TokenTree::Ident(word) if word == "fn"));
    if let Some(TokenTree::Group(body)) = tokens.last_mut()
        && body.delimiter() == Delimiter::Brace
    {
        let inside = if is_block { mended_bodies(body.stream()) } else { mended_body(body) };
        replace(body, inside);
    }
    tokens.into_iter().collect()
}

fn mended_bodies(block: TokenStream) -> TokenStream {
    let tokens = block.into_iter().map(|token| match token {
        TokenTree::Group(mut body) if body.delimiter() == Delimiter::Brace => {
            let inside = mended_body(&body);
            replace(&mut body, inside);
            TokenTree::Group(body)
        }
        other => other,
    });
    tokens.collect()
}

fn mended_body(body: &Group) -> TokenStream {
    match syn::Block::parse_within.parse2(body.stream()) {
        Ok(_) => body.stream(),
        Err(_) => quote!(::tinyspec::__private::wrong_results()),
    }
}

/// A struct without the fields that cannot be parsed.
pub fn without_fields(item: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    if let Some(TokenTree::Group(body)) = tokens.last_mut()
        && body.delimiter() == Delimiter::Brace
    {
        let fields = fields(body.stream());
        let fields = fields.into_iter().filter(|field| syn::Field::parse_named.parse2(field.clone()).is_ok());
        let inside = quote!(#(#fields),*);
        replace(body, inside);
    }
    tokens.into_iter().collect()
}

/// The parts between commas outside `<…>`.
fn fields(body: TokenStream) -> Vec<TokenStream> {
    let (mut fields, mut depth) = (vec![TokenStream::new()], 0i32);
    for token in body {
        if let TokenTree::Punct(punct) = &token {
            match punct.as_char() {
                '<' => depth += 1,
                '>' => depth -= 1,
                ',' if depth <= 0 => {
                    fields.push(TokenStream::new());
                    depth = 0;
                    continue;
                }
                _ => {}
            }
        }
        if let Some(field) = fields.last_mut() {
            field.extend([token]);
        }
    }
    fields
}

fn replace(group: &mut Group, inside: TokenStream) {
    let mut new = Group::new(group.delimiter(), inside);
    new.set_span(group.span());
    *group = new;
}
