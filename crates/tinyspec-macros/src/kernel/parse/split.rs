//! Finds where kernels, parameters and bodies begin and end by tokens alone, so that a mistake in one does not hide
//! others.

use super::{at_most, brackets};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

pub fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(found)) if found.as_char() == mark)
}

pub fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

pub fn is_word(token: Option<&TokenTree>, words: &[&str]) -> bool {
    matches!(token, Some(TokenTree::Ident(word)) if words.iter().any(|known| word == known))
}

/// The tokens of each kernel of a `uop!`, which begins with what precedes its `fn`.
pub fn kernels(tokens: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = at_most::read(brackets::join(tokens)).into_iter().collect();
    let is_function = |at: &usize| is_word(tokens.get(*at), &["fn"]);
    let mut starts: Vec<usize> = (0..tokens.len()).filter(is_function).map(|at| start(&tokens, at)).collect();
    match starts.first_mut() {
        Some(first) => *first = 0,
        None if !tokens.is_empty() => starts.push(0),
        None => {}
    }
    let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(&start, end)| tokens.get(start..end))
        .map(|kernel| kernel.iter().cloned().collect())
        .collect()
}

/// Whether this is a function for kernels, `fn square(x: f32) -> f32 { … }`, and not a kernel: its result is no buffer,
/// and it has no loop that a kernel starts with.
pub fn is_helper(tokens: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let arrow = tokens.windows(2).position(|pair| is_mark(pair.first(), '-') && is_mark(pair.last(), '>'));
    let Some(rest) = arrow.and_then(|arrow| tokens.get(arrow + 2..)) else { return false };
    let Some(body) = body_of(rest) else { return false };
    let (result, body) = rest.split_at(body);
    let is_number = match result {
        [TokenTree::Ident(dtype)] => dtype != "Global",
        [TokenTree::Group(nothing)] => nothing.delimiter() == Delimiter::Parenthesis && nothing.stream().is_empty(),
        _ => false,
    };
    is_number && !body.first().is_some_and(|body| mentions(body, "global"))
}

pub fn mentions(token: &TokenTree, word: &str) -> bool {
    match token {
        TokenTree::Ident(found) => found == word,
        TokenTree::Group(group) => group.stream().into_iter().any(|token| mentions(&token, word)),
        _ => false,
    }
}

/// From a `fn` back over its visibility, dims and attributes.
fn start(tokens: &[TokenTree], function: usize) -> usize {
    let mut start = function;
    loop {
        let before = |count: usize| start.checked_sub(count).and_then(|at| tokens.get(at));
        start = if is_word(before(1), &["pub", "unsafe", "const", "async", "extern"]) {
            start - 1
        } else if is_group(before(1), Delimiter::Parenthesis) && is_word(before(2), &["pub"])
            || is_group(before(1), Delimiter::Bracket) && is_mark(before(2), '#')
        {
            start - 2
        } else if let Some(open) = dims(&tokens[..start]) {
            open
        } else {
            return start;
        };
    }
}

/// The start of the `<…>` at the end, unless it belongs to a type.
fn dims(tokens: &[TokenTree]) -> Option<usize> {
    let open = tokens.iter().rposition(|token| is_mark(Some(token), '<')).filter(|_| is_mark(tokens.last(), '>'))?;
    let is_type = matches!(open.checked_sub(1).and_then(|at| tokens.get(at)), Some(TokenTree::Ident(_)));
    let is_plain = tokens[open..].iter().all(|token| !matches!(token, TokenTree::Group(_)));
    (is_plain && !is_type).then_some(open)
}

/// The number of open `<` after each token.
fn depths(tokens: &[TokenTree]) -> Vec<usize> {
    let mut depth = 0usize;
    let mut depths = Vec::new();
    for (position, token) in tokens.iter().enumerate() {
        let is_arrow = is_mark(position.checked_sub(1).and_then(|before| tokens.get(before)), '-');
        if is_mark(Some(token), '<') {
            depth += 1;
        } else if is_mark(Some(token), '>') && !is_arrow {
            depth = depth.saturating_sub(1);
        }
        depths.push(depth);
    }
    depths
}

/// The parts between commas.
pub fn at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut parts = vec![TokenStream::new()];
    for (token, depth) in tokens.iter().zip(depths(&tokens)) {
        match parts.last_mut() {
            Some(part) if depth > 0 || !is_mark(Some(token), ',') => part.extend([token.clone()]),
            _ => parts.push(TokenStream::new()),
        }
    }
    if parts.last().is_some_and(TokenStream::is_empty) {
        parts.pop();
    }
    parts
}

/// The braces of a kernel, after its parameters: the first ones that are not a dim such as `{N + 1}`.
pub fn body_of(tokens: &[TokenTree]) -> Option<usize> {
    let depths = depths(tokens);
    let is_brace = |at: &usize| is_group(tokens.get(*at), Delimiter::Brace);
    let outside = (0..tokens.len()).filter(is_brace).find(|&at| depths[at] == 0);
    // A `<` that is never closed.
    outside.or_else(|| (0..tokens.len()).rfind(is_brace).filter(|&at| at + 1 == tokens.len()))
}
