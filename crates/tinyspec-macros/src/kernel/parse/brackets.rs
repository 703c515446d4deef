//! `x[i, j]` is not Rust; it is parsed as `x[(i, j)]`, with the same spans.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

pub fn join(tokens: TokenStream) -> TokenStream {
    let mut is_operand = false;
    tokens
        .into_iter()
        .map(|token| {
            let after_operand = is_operand;
            is_operand = match &token {
                TokenTree::Ident(name) => {
                    !matches!(name.to_string().as_str(), "in" | "mut" | "return" | "as" | "if" | "else")
                }
                TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
                _ => false,
            };
            match token {
                TokenTree::Group(group) => {
                    let mut inner = join(group.stream());
                    if group.delimiter() == Delimiter::Bracket && after_operand && has_comma(&inner) {
                        let mut tuple = Group::new(Delimiter::Parenthesis, inner);
                        tuple.set_span(group.span());
                        inner = TokenTree::Group(tuple).into();
                    }
                    let mut joined = Group::new(group.delimiter(), inner);
                    joined.set_span(group.span());
                    TokenTree::Group(joined)
                }
                other => other,
            }
        })
        .collect()
}

fn has_comma(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ','))
}
