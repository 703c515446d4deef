//! `serial(n[i], at most N)` and `while x < y, at most N { … }` are not Rust; they are parsed as `serial(n[i], at_most(N))`
//! and `while at_most(x < y, N) { … }`, with the same spans.

use super::split::{is_group, is_mark, is_word};
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// The name of the call that the words are read as.
pub const AT_MOST: &str = "at_most";

pub fn read(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().map(inside).collect();
    let mut read = Vec::with_capacity(tokens.len());
    let mut position = 0;
    while let Some(token) = tokens.get(position) {
        position += 1;
        read.push(token.clone());
        let rest = &tokens[position..];
        if !is_word(Some(token), &["while"]) {
            continue;
        }
        let Some((words, body)) = bounded(rest) else { continue };
        let mut arguments: Vec<TokenTree> = rest[..words].to_vec();
        arguments.push(rest[words].clone());
        arguments.extend(rest[words + 3..body].iter().cloned());
        read.push(name(&rest[words + 1]));
        read.push(list(arguments, &rest[words + 1]));
        position += body;
    }
    read.into_iter().collect()
}

/// The comma before `at most`, and the body behind it.
fn bounded(tokens: &[TokenTree]) -> Option<(usize, usize)> {
    let end = tokens.iter().position(|token| is_mark(Some(token), ';')).unwrap_or(tokens.len());
    let words = (0..end).find(|&at| starts(&tokens[at..]))?;
    let body = (words..end).find(|&at| is_group(tokens.get(at), Delimiter::Brace))?;
    Some((words, body))
}

/// `, at most`
fn starts(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [comma, at, most, ..]
        if is_mark(Some(comma), ',') && is_word(Some(at), &["at"]) && is_word(Some(most), &["most"]))
}

/// Arguments that end in `, at most N`.
fn inside(token: TokenTree) -> TokenTree {
    let TokenTree::Group(group) = token else { return token };
    let mut tokens: Vec<TokenTree> = read(group.stream()).into_iter().collect();
    let words = (0..tokens.len()).find(|&at| starts(&tokens[at..]));
    if let Some(words) = words.filter(|_| group.delimiter() == Delimiter::Parenthesis) {
        let rest = tokens.split_off(words + 1);
        tokens.push(name(&rest[0]));
        tokens.push(list(rest[2..].to_vec(), &rest[0]));
    }
    let mut made = Group::new(group.delimiter(), tokens.into_iter().collect());
    made.set_span(group.span());
    TokenTree::Group(made)
}

fn name(at: &TokenTree) -> TokenTree {
    Ident::new(AT_MOST, at.span()).into()
}

fn list(tokens: Vec<TokenTree>, at: &TokenTree) -> TokenTree {
    let mut list = Group::new(Delimiter::Parenthesis, tokens.into_iter().collect());
    list.set_span(at.span());
    list.into()
}
