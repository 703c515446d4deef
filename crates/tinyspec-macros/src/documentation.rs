//! The documentation of an item in `cargo doc` and editors. The emitted Rust has no dims and dtypes, so it quotes
//! the signature as it was written.

use crate::editor;
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Field, FnArg, ItemStruct, Lit, Meta, PatType, Signature, Visibility};

/// The longest line of a signature.
const WIDTH: usize = 100;

/// The attributes of an item, with `written` and `more` added to its documentation after the first paragraph, which
/// lists of items show. Ordinary compilation does not see the addition, so lints on missing documentation work as
/// before.
pub fn with(attributes: &[Attribute], written: &str, more: &str) -> TokenStream {
    let text = format!("```text\n{written}\n```{more}");
    // Documentation comments begin with a space.
    let lines: String = text.lines().map(|line| format!(" {line}\n")).collect();
    let lines = format!("\n{lines}");
    let section = if editor::is_asking() { quote!(#[doc = #lines]) } else { quote!(#[cfg_attr(doc, doc = #lines)]) };
    let (before, behind) = attributes.split_at(end_of_first_paragraph(attributes));
    quote!(#(#before)* #section #(#behind)*)
}

/// The number of attributes up to the end of the documentation's first paragraph.
fn end_of_first_paragraph(attributes: &[Attribute]) -> usize {
    let (mut has_text, mut in_code) = (false, false);
    for (position, attribute) in attributes.iter().enumerate() {
        let Some(text) = doc_text(attribute) else { continue };
        for line in text.lines().map(str::trim) {
            in_code ^= line.starts_with("```");
        }
        if text.trim().is_empty() && has_text && !in_code {
            return position;
        }
        has_text |= !text.trim().is_empty();
    }
    attributes.len()
}

/// The text of `/// …`.
fn doc_text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            // `include_str!(…)`
            _ => Some("…".to_string()),
        },
        _ => None,
    }
}

/// `fn dense<B, I, O>(x: &Tensor<f32, B, I>, …) -> Tensor<f32, B, O>` below `#[function(where(I % 2 == 0))]`, if there are options.
pub fn of_function(options: &TokenStream, signature: &Signature) -> String {
    let (name, generics, output) = (&signature.ident, &signature.generics, &signature.output);
    let parameters = signature.inputs.iter().map(|input| match input {
        FnArg::Typed(PatType { pat, ty, .. }) => shown(&quote!(#pat: #ty)),
        receiver => shown(&receiver.to_token_stream()),
    });
    let parameters: Vec<String> = parameters.collect();
    let list = in_lines(&format!("fn {name}{}(", shown(&quote!(#generics))), &parameters, &tail(&quote!(#output)));
    match shown_options(options) {
        options if options.is_empty() => list,
        options => format!("#[function({options})]\n{list}"),
    }
}

fn tail(output: &TokenStream) -> String {
    format!("){}", shown(output))
}

/// On one line if it fits, else with each part on a line of its own.
fn in_lines(head: &str, parts: &[String], tail: &str) -> String {
    let line = format!("{head}{}{tail}", parts.join(", "));
    if line.len() <= WIDTH {
        return line;
    }
    let parts: String = parts.iter().map(|part| format!("    {part},\n")).collect();
    format!("{head}\n{parts}{tail}")
}

/// The options that concern callers: all but the path of tinyspec.
fn shown_options(options: &TokenStream) -> String {
    let mut list: Vec<Vec<TokenTree>> = vec![vec![]];
    for token in options.clone() {
        match (&token, list.last_mut()) {
            (TokenTree::Punct(comma), _) if comma.as_char() == ',' => list.push(vec![]),
            (_, Some(last)) => last.push(token),
            _ => {}
        }
    }
    let is_root = |option: &[TokenTree]| matches!(option.first(), Some(TokenTree::Ident(word)) if word == "crate");
    let list = list.iter().filter(|option| !option.is_empty() && !is_root(option));
    list.map(|option| shown(&option.iter().cloned().collect())).collect::<Vec<_>>().join(", ")
}

/// `<M, N> fn softmax(x: &Global<f32, M, N>) -> Global<f32, M, N> as y`
pub fn of_kernel(
    dims: &[proc_macro2::Ident],
    name: &proc_macro2::Ident,
    inputs: &[TokenStream],
    output: &TokenStream,
) -> String {
    let dims = if dims.is_empty() { String::new() } else { format!("{} ", shown(&quote!(<#(#dims),*>))) };
    let inputs: Vec<String> = inputs.iter().map(shown).collect();
    in_lines(&format!("{dims}fn {name}("), &inputs, &tail(output))
}

/// `struct Linear<I, O> { weight: Tensor<f32, I, O>, … }`: the fields that others can see; editors get all of them.
pub fn of_struct(item: &ItemStruct) -> String {
    let (name, generics) = (&item.ident, &item.generics);
    let is_private = |visibility: &Visibility| matches!(visibility, Visibility::Inherited);
    let shows_all = is_private(&item.vis) || editor::is_asking();
    let (mut lines, mut is_whole) = (String::new(), true);
    for field in &item.fields {
        if !shows_all && is_private(&field.vis) {
            is_whole = false;
            continue;
        }
        for option in field.attrs.iter().filter(|attribute| attribute.path().is_ident("model")) {
            lines += &format!("    {}\n", shown(&option.to_token_stream()));
        }
        let visibility = &field.vis;
        let visibility =
            if is_private(visibility) { String::new() } else { format!("{} ", shown(&quote!(#visibility))) };
        lines += &format!("    {visibility}{},\n", of_field(field));
    }
    if !is_whole {
        lines += "    /* private fields */\n";
    }
    format!("struct {name}{} {{\n{lines}}}", shown(&quote!(#generics)))
}

/// `weight: Tensor<f32, I, O>`
pub fn of_field(field: &Field) -> String {
    let (name, ty) = (&field.ident, &field.ty);
    shown(&quote!(#name: #ty))
}

/// Tokens of a signature, spaced as rustfmt would; only rustc knows their original spacing.
fn shown(tokens: &TokenStream) -> String {
    let mut shown = Shown::default();
    shown.write(tokens.clone());
    shown.text
}

#[derive(Default)]
struct Shown {
    text: String,
    /// The last token was a number, a name or a `)`, so an operator that follows is binary.
    behind_operand: bool,
}

impl Shown {
    fn write(&mut self, tokens: TokenStream) {
        let mut operator = String::new();
        for token in tokens {
            match token {
                TokenTree::Punct(punct) => {
                    operator.push(punct.as_char());
                    if punct.spacing() == Spacing::Alone || punct.as_char() == '\'' {
                        self.operators(&std::mem::take(&mut operator));
                    }
                }
                TokenTree::Group(group) => self.group(&group),
                word => self.word(&word.to_string()),
            }
        }
        // A part of a list has lost its comma, so its last operator still looks joint.
        self.operators(&operator);
    }

    fn word(&mut self, word: &str) {
        if self.behind_operand {
            self.text.push(' ');
        }
        self.text += word;
        self.behind_operand = true;
    }

    /// Adjacent operator characters, split into operators.
    fn operators(&mut self, mut text: &str) {
        while !text.is_empty() {
            let long = ["->", "=>", "==", "..=", "..", "::"].into_iter().find(|long| text.starts_with(long));
            let (operator, rest) = text.split_at(long.map_or(1, str::len));
            self.operator(operator);
            text = rest;
        }
    }

    fn operator(&mut self, operator: &str) {
        let is_two_sided = match operator {
            "->" | "=>" | "=" | "==" | "+" | "/" | "%" | "|" => true,
            "-" | "*" => self.behind_operand,
            _ => false,
        };
        match operator {
            _ if is_two_sided => self.text += &format!(" {operator} "),
            "," | ":" | ";" => self.text += &format!("{operator} "),
            _ => self.text += operator,
        }
        self.behind_operand = operator == ">";
    }

    fn group(&mut self, group: &proc_macro2::Group) {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{ ", " }"),
            Delimiter::None => ("", ""),
        };
        self.text += open;
        self.behind_operand = false;
        self.write(group.stream());
        self.text += close;
        self.behind_operand = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(text: &str) -> String {
        let item: syn::ItemFn = syn::parse_str(&format!("{text} {{}}")).expect("a function");
        of_function(&TokenStream::new(), &item.sig)
    }

    #[test]
    fn signatures_are_shown_as_rustfmt_leaves_them() {
        for text in [
            "fn dense<B, I, O>(x: &Tensor<f32, B, I>, w: &Tensor<f32, I, O>) -> Tensor<f32, B, O>",
            "fn f(x: &Tensor<f32, { 2 * B }, WIDTH>, y: &mut Tensor<bf16, { H * -1 }>) -> (Tensor<f32>, Mask)",
            "fn f(&self, layer: &layers::Linear<8, { D - 1 }>, list: [Mlp; 3], r#in: bool) -> Tensor<f32>",
            "fn f(x: &Tensor<f32, { (A + B) / 2 % C }>) -> Vec<Option<Tensor<f32>>>",
        ] {
            assert_eq!(function(text), text);
        }
    }

    #[test]
    fn kernels_are_shown_as_they_are_written() {
        let text =
            "<M, N> fn sums(x: &Global<f32, M, { N + 1 }>, a: f32) -> (Global<f32, M> as y, Global<i32, M> as z)";
        let (written, mut diagnostics) = (format!("{text} {{}}"), crate::diagnostics::Diagnostics::default());
        let kernel = crate::kernel::parse::kernel(written.parse().expect("tokens"), &mut diagnostics);
        assert_eq!(kernel.expect("a kernel").written, text);
    }

    #[test]
    fn a_long_one_has_a_line_for_each_parameter() {
        let text = "fn attention<B, T, D>(queries: &Tensor<f32, B, T, D>, keys: &Tensor<f32, B, T, D>, values: &Tensor<f32, B, T, D>) -> Tensor<f32>";
        let expected = "fn attention<B, T, D>(\n    queries: &Tensor<f32, B, T, D>,\n    keys: &Tensor<f32, B, T, D>,\n    values: &Tensor<f32, B, T, D>,\n) -> Tensor<f32>";
        assert_eq!(function(text), expected);
    }

    #[test]
    fn options_are_shown_that_callers_should_know() {
        let options = quote!(crate = ts, grad, where(D % H == 0), bounds(B: 1..=4096, T: 2..9));
        assert_eq!(shown_options(&options), "grad, where(D % H == 0), bounds(B: 1..=4096, T: 2..9)");
        assert_eq!(shown_options(&quote!(crate = ::a::b)), "");
    }

    #[test]
    fn the_signature_follows_the_first_paragraph() {
        let place = |text: &str| {
            let item: syn::ItemFn = syn::parse_str(&format!("{text}\nfn f() {{}}")).expect("a function");
            end_of_first_paragraph(&item.attrs)
        };
        assert_eq!(place(""), 0);
        assert_eq!(place("/// One\n/// paragraph.\n///\n/// And another."), 2);
        assert_eq!(place("/// One.\n#[inline]"), 2);
        assert_eq!(place("#[inline]\n///\n/// One.\n///\n/// More"), 3);
        assert_eq!(place("/// ```\n/// code\n///\n/// code\n/// ```\n///\n/// More"), 5);
    }
}
