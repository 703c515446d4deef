//! `crate = …`: paths in the expansion begin with `::tinyspec`, unless the user's crate knows tinyspec by another name.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;

/// `tokens` with `path` in place of every leading `::tinyspec`.
pub fn under(path: Option<impl ToTokens>, tokens: TokenStream) -> TokenStream {
    match path {
        Some(path) => replaced(&path.to_token_stream(), tokens),
        None => tokens,
    }
}

fn replaced(path: &TokenStream, tokens: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut result = TokenStream::new();
    let mut position = 0;
    while let Some(token) = tokens.get(position) {
        match (token, tokens.get(position + 1), tokens.get(position + 2)) {
            (TokenTree::Punct(first), Some(TokenTree::Punct(second)), Some(TokenTree::Ident(name)))
                if first.as_char() == ':'
                    && second.as_char() == ':'
                    && name == "tinyspec"
                    && !ends_with_segment(&tokens[..position]) =>
            {
                result.extend(path.clone().into_iter().map(|token| located_at(token, name.span())));
                position += 3;
            }
            (TokenTree::Group(group), ..) => {
                let mut inner = Group::new(group.delimiter(), replaced(path, group.stream()));
                inner.set_span(group.span());
                result.extend([TokenTree::Group(inner)]);
                position += 1;
            }
            (token, ..) => {
                result.extend([token.clone()]);
                position += 1;
            }
        }
    }
    result
}

/// Whether a `::` after these tokens continues a path.
fn ends_with_segment(before: &[TokenTree]) -> bool {
    match before {
        // A lifetime.
        [.., TokenTree::Punct(quote), TokenTree::Ident(_)] if quote.as_char() == '\'' => false,
        [.., TokenTree::Ident(ident)] => {
            let is_path_word = matches!(ident.to_string().as_str(), "crate" | "self" | "super" | "Self" | "$crate");
            is_path_word || syn::parse2::<Ident>(ident.to_token_stream()).is_ok()
        }
        _ => false,
    }
}

/// Errors point at the replaced name; the hygiene of the path (`$crate`) is kept.
fn located_at(mut token: TokenTree, place: Span) -> TokenTree {
    token.set_span(token.span().located_at(place));
    token
}
