//! Dtype parameters: `<N, T: f32 | f16> fn scale(x: &Global<T, N>) …` stands for a kernel of each dtype, and is expanded to
//! these by tokens alone.

use super::split::{is_group, is_mark, is_word, mentions};
use crate::diagnostics::Diagnostics;
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use tinyspec_ir::DType;

/// The most kernels that one stands for.
const MOST: usize = 64;

/// A kernel with a dtype for each of its dtype parameters.
pub struct Variant {
    pub tokens: TokenStream,
    /// The parameters and their dtypes.
    pub dtypes: Vec<(Ident, DType)>,
}

/// `T: f32 | f16`.
struct Parameter {
    name: Ident,
    dtypes: Vec<Ident>,
}

/// All kernels, or functions, that these tokens stand for: at least one.
pub fn variants(tokens: TokenStream, diagnostics: &mut Diagnostics) -> Vec<Variant> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let Some((open, close)) = list(&tokens) else {
        return vec![Variant { tokens: tokens.into_iter().collect(), dtypes: vec![] }];
    };
    let (parameters, dims) = parameters(&tokens[open + 1..close], diagnostics);
    let before = &tokens[..=open];
    let behind = &tokens[close..];
    for parameter in parameters.iter().filter(|parameter| !is_taken(behind, &parameter.name)) {
        let name = &parameter.name;
        diagnostics.error(name.span(), format!("nothing binds the dtype `{name}`: it must be that of some parameter"));
    }
    let count = parameters.iter().map(|parameter| parameter.dtypes.len()).fold(1usize, usize::saturating_mul);
    if count > MOST {
        let message = format!("these are {count} kernels, more than {MOST}: name fewer dtypes");
        diagnostics.error(parameters[0].name.span(), message);
    }
    let mut variants = vec![Vec::new()];
    for parameter in &parameters {
        let with = |chosen: &Vec<(Ident, Ident)>, dtype: &Ident| {
            let mut chosen = chosen.clone();
            chosen.push((parameter.name.clone(), dtype.clone()));
            chosen
        };
        let all = variants.iter().flat_map(|chosen| parameter.dtypes.iter().map(move |dtype| with(chosen, dtype)));
        variants = all.take(MOST).collect();
    }
    let variant = |chosen: Vec<(Ident, Ident)>| {
        let rest = behind.iter().cloned().collect();
        let tokens = before.iter().chain(&dims).cloned().chain(replaced(rest, &chosen)).collect();
        let dtype = |(name, dtype): (Ident, Ident)| Some((name, DType::from_name(&dtype.to_string())?));
        Variant { tokens, dtypes: chosen.into_iter().filter_map(dtype).collect() }
    };
    variants.into_iter().map(variant).collect()
}

/// A kernel's head with its dtype parameters: `<N, T: f32 | f16> fn …`.
pub fn head(tokens: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (open, close) = list(&tokens)?;
    let (parameters, dims) = parameters(&tokens[open + 1..close], &mut Diagnostics::default());
    let tokens = tokens[..=open].iter().chain(&dims).chain(&tokens[close..]).cloned().collect();
    let written = super::kernel(tokens, &mut Diagnostics::default())?.written;
    let of_one = |Parameter { name, dtypes }: &Parameter| {
        let dtypes: Vec<String> = dtypes.iter().map(ToString::to_string).collect();
        format!("{name}: {}", dtypes.join(" | "))
    };
    let all = parameters.iter().map(of_one).collect::<Vec<_>>().join(", ");
    Some(match written.split_once("> fn ") {
        Some((dims, rest)) if dims.starts_with('<') => format!("{dims}, {all}> fn {rest}"),
        _ => format!("<{all}> {written}"),
    })
}

/// The `<…>` before `fn`, if it has a dtype parameter.
fn list(tokens: &[TokenTree]) -> Option<(usize, usize)> {
    let function = tokens.iter().position(|token| is_word(Some(token), &["fn"]))?;
    let open = tokens[..function].iter().position(|token| is_mark(Some(token), '<'))?;
    let close = open + tokens[open..function].iter().position(|token| is_mark(Some(token), '>'))?;
    tokens[open..close].iter().any(|token| is_mark(Some(token), ':')).then_some((open, close))
}

/// The dtype parameters, and the tokens of the dims.
fn parameters(list: &[TokenTree], diagnostics: &mut Diagnostics) -> (Vec<Parameter>, Vec<TokenTree>) {
    let (mut parameters, mut dims) = (Vec::new(), Vec::new());
    for part in list.split(|token| is_mark(Some(token), ',')) {
        let [TokenTree::Ident(name), colon, dtypes @ ..] = part else {
            dims.extend(part.iter().cloned());
            dims.extend(comma());
            continue;
        };
        if !is_mark(Some(colon), ':') {
            dims.extend(part.iter().cloned());
            dims.extend(comma());
            continue;
        }
        let mut known: Vec<Ident> = Vec::new();
        for dtype in dtypes.split(|token| is_mark(Some(token), '|')) {
            match dtype {
                [TokenTree::Ident(dtype)] if is_dtype(dtype) => {
                    if known.iter().all(|other| other != dtype) {
                        known.push(dtype.clone());
                    }
                }
                [first, ..] => {
                    let names: Vec<&str> = DType::ALL[2..].iter().map(|dtype| dtype.name()).collect();
                    let found: TokenStream = dtype.iter().cloned().collect();
                    let message = format!("`{found}` is not a dtype; the dtypes are {}", names.join(", "));
                    diagnostics.error(first.span(), message);
                }
                [] => diagnostics.error(name.span(), "a dtype parameter names its dtypes: `T: f32 | f16`"),
            }
        }
        if known.is_empty() {
            known.push(Ident::new("f32", name.span()));
        }
        parameters.push(Parameter { name: name.clone(), dtypes: known });
    }
    (parameters, dims)
}

/// Whether the parameters of the function mention this name.
fn is_taken(tokens: &[TokenTree], name: &Ident) -> bool {
    let function = tokens.iter().position(|token| is_word(Some(token), &["fn"])).unwrap_or(0);
    let list = tokens[function..].iter().find(|token| is_group(Some(token), Delimiter::Parenthesis));
    list.is_none_or(|list| mentions(list, &name.to_string()))
}

fn comma() -> [TokenTree; 1] {
    [proc_macro2::Punct::new(',', proc_macro2::Spacing::Alone).into()]
}

fn is_dtype(name: &Ident) -> bool {
    DType::from_name(&name.to_string()).is_some_and(|dtype| !matches!(dtype, DType::Index | DType::Void))
}

/// The tokens with a dtype in place of each parameter, at the place of the parameter.
fn replaced(tokens: TokenStream, chosen: &[(Ident, Ident)]) -> TokenStream {
    let replace = |token: TokenTree| match token {
        TokenTree::Ident(name) => match chosen.iter().find(|(parameter, _)| *parameter == name) {
            Some((_, dtype)) => TokenTree::Ident(Ident::new(&dtype.to_string(), name.span())),
            None => TokenTree::Ident(name),
        },
        TokenTree::Group(group) => {
            let mut inside = Group::new(group.delimiter(), replaced(group.stream(), chosen));
            inside.set_span(group.span());
            TokenTree::Group(inside)
        }
        other => other,
    };
    tokens.into_iter().map(replace).collect()
}
