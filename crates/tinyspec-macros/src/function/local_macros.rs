//! `macro_rules!` inside a body: its calls are expanded before the body is traced. Macros cannot see what is defined elsewhere.

use crate::diagnostics::{Diagnostics, Place};
use proc_macro2::{Delimiter, Group, Ident, Punct, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::HashMap;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::visit_mut::{VisitMut, visit_expr_mut};
use syn::{Block, Expr, Item, Macro, Stmt};

/// The deepest nesting of expansions.
const DEEPEST: usize = 32;

/// Expands the calls of macros that the body defines, and takes the definitions out.
pub fn expand(body: &mut Block, diagnostics: &mut Diagnostics) {
    Expander { known: vec![], depth: 0, expansions: 0, diagnostics }.visit_block_mut(body);
}

/// `(matcher) => { transcriber }`
struct Rule {
    matcher: Vec<Part>,
    transcriber: Vec<Part>,
}

/// A part of a matcher or a transcriber.
enum Part {
    Token(TokenTree),
    Group(Group, Vec<Part>),
    /// `$name:kind`, in a transcriber `$name`.
    Name(Ident, String),
    /// `$( … ) separator *`
    Repeat(Vec<Part>, Option<TokenTree>, char),
}

/// The binding of a name in a matcher.
#[derive(Clone)]
enum Bound {
    One(TokenStream),
    Many(Vec<Bound>),
}

type Bindings = HashMap<String, Bound>;

struct Expander<'a> {
    known: Vec<(Ident, std::rc::Rc<Vec<Rule>>)>,
    depth: usize,
    expansions: usize,
    diagnostics: &'a mut Diagnostics,
}

impl Expander<'_> {
    fn expansion(&mut self, call: &Macro) -> Option<TokenStream> {
        let rules = self.known.iter().rev().find(|(name, _)| call.path.is_ident(name))?.1.clone();
        if self.depth >= DEEPEST {
            self.diagnostics.error(Place::of(call), "this macro expands to itself endlessly");
            return None;
        }
        for rule in rules.iter() {
            let parser = |input: ParseStream| {
                let mut bindings = Bindings::new();
                matched(&rule.matcher, input, &mut bindings)?;
                Ok(bindings)
            };
            let Ok(bindings) = parser.parse2(call.tokens.clone()) else { continue };
            self.expansions += 1;
            let mut locals = vec![];
            locals_of(&rule.transcriber, &mut locals);
            let expansion = Transcription { locals, number: self.expansions };
            return expansion.transcribed(&rule.transcriber, &bindings, &[]);
        }
        let name = call.path.to_token_stream();
        self.diagnostics.error_instead_of_rustc(
            &Expr::Macro(syn::ExprMacro { attrs: vec![], mac: call.clone() }),
            Place::of(call),
            format!("no rule of `{name}!` takes this"),
        );
        None
    }

    /// Expands the calls inside an expansion.
    fn expand_inside(&mut self, visit: impl FnOnce(&mut Self)) {
        self.depth += 1;
        visit(self);
        self.depth -= 1;
    }
}

impl VisitMut for Expander<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let known = self.known.len();
        let mut statements = vec![];
        for mut statement in std::mem::take(&mut block.stmts) {
            match &mut statement {
                Stmt::Item(Item::Macro(item)) if item.mac.path.is_ident("macro_rules") && item.ident.is_some() => {
                    match (&item.ident, rules(item.mac.tokens.clone())) {
                        (Some(name), Some(rules)) => self.known.push((name.clone(), std::rc::Rc::new(rules))),
                        _ => statements.push(statement),
                    }
                }
                Stmt::Macro(call) => {
                    let expansion = self.expansion(&call.mac);
                    match expansion.and_then(|tokens| Block::parse_within.parse2(tokens).ok()) {
                        Some(mut expanded) => {
                            if let (Some(semicolon), Some(Stmt::Expr(_, end @ None))) =
                                (call.semi_token, expanded.last_mut())
                            {
                                *end = Some(semicolon);
                            }
                            let mut inner = Block { brace_token: block.brace_token, stmts: expanded };
                            self.expand_inside(|expander| expander.visit_block_mut(&mut inner));
                            statements.extend(inner.stmts);
                        }
                        None => statements.push(statement),
                    }
                }
                other => {
                    self.visit_stmt_mut(other);
                    statements.push(statement);
                }
            }
        }
        block.stmts = statements;
        self.known.truncate(known);
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        if let Expr::Macro(call) = expression
            && let Some(tokens) = self.expansion(&call.mac)
        {
            let parsed = syn::parse2::<Expr>(tokens.clone()).or_else(|_| {
                let stmts = Block::parse_within.parse2(tokens)?;
                Ok::<_, syn::Error>(Expr::Block(syn::ExprBlock {
                    attrs: vec![],
                    label: None,
                    block: Block { brace_token: Default::default(), stmts },
                }))
            });
            match parsed {
                Ok(mut expanded) => {
                    super::ungroup::expression(&mut expanded);
                    self.expand_inside(|expander| expander.visit_expr_mut(&mut expanded));
                    *expression = match expanded {
                        operand @ (Expr::Block(_)
                        | Expr::Path(_)
                        | Expr::Call(_)
                        | Expr::MethodCall(_)
                        | Expr::Lit(_)) => operand,
                        expr => Expr::Paren(syn::ExprParen {
                            attrs: vec![],
                            paren_token: Default::default(),
                            expr: Box::new(expr),
                        }),
                    };
                }
                Err(error) => self.diagnostics.syntax(error),
            }
            return;
        }
        visit_expr_mut(self, expression);
    }

    fn visit_macro_mut(&mut self, call: &mut Macro) {
        super::ungroup::visit_elements(call, |element| self.visit_expr_mut(element));
    }
}

/// The rules of a definition; `None` if rustc refuses it.
fn rules(tokens: TokenStream) -> Option<Vec<Rule>> {
    let mut tokens = tokens.into_iter();
    let mut rules = vec![];
    while let Some(token) = tokens.next() {
        let TokenTree::Group(matcher) = token else { return None };
        let (Some(TokenTree::Punct(_)), Some(TokenTree::Punct(_)), Some(TokenTree::Group(body))) =
            (tokens.next(), tokens.next(), tokens.next())
        else {
            return None;
        };
        rules.push(Rule { matcher: parts(matcher.stream(), true)?, transcriber: parts(body.stream(), false)? });
        tokens.next();
    }
    Some(rules)
}

fn parts(tokens: TokenStream, is_matcher: bool) -> Option<Vec<Part>> {
    let mut tokens = tokens.into_iter().peekable();
    let mut parts = vec![];
    let is_dollar = |punct: &Punct| punct.as_char() == '$';
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if is_dollar(&punct) => match tokens.next()? {
                TokenTree::Group(group) => {
                    let inner = self::parts(group.stream(), is_matcher)?;
                    let first = tokens.next()?;
                    let op = |token: &TokenTree| match token {
                        TokenTree::Punct(punct) => Some(punct.as_char()).filter(|c| matches!(c, '*' | '+' | '?')),
                        _ => None,
                    };
                    match op(&first) {
                        Some(op) => parts.push(Part::Repeat(inner, None, op)),
                        None => parts.push(Part::Repeat(inner, Some(first), op(&tokens.next()?)?)),
                    }
                }
                TokenTree::Ident(name) if is_matcher => {
                    let (Some(TokenTree::Punct(_)), Some(TokenTree::Ident(kind))) = (tokens.next(), tokens.next())
                    else {
                        return None;
                    };
                    parts.push(Part::Name(name, kind.to_string()));
                }
                TokenTree::Ident(name) => parts.push(Part::Name(name, String::new())),
                _ => return None,
            },
            TokenTree::Group(group) => {
                let inner = self::parts(group.stream(), is_matcher)?;
                parts.push(Part::Group(group, inner));
            }
            other => parts.push(Part::Token(other)),
        }
    }
    Some(parts)
}

fn matched(parts: &[Part], input: ParseStream, bindings: &mut Bindings) -> syn::Result<()> {
    for part in parts {
        match part {
            Part::Token(wanted) => {
                let found: TokenTree = input.parse()?;
                if found.to_string() != wanted.to_string() {
                    return Err(syn::Error::new(found.span(), "another token"));
                }
            }
            Part::Group(wanted, inner) => {
                let found: Group = input.parse()?;
                if found.delimiter() != wanted.delimiter() {
                    return Err(syn::Error::new(found.span(), "another bracket"));
                }
                (|input: ParseStream| matched(inner, input, bindings)).parse2(found.stream())?;
            }
            Part::Name(name, kind) => {
                let found = fragment(kind, input)?;
                bindings.insert(name.to_string(), Bound::One(found));
            }
            Part::Repeat(inner, separator, op) => {
                let mut names = vec![];
                names_of(inner, &mut names);
                let mut rounds: Vec<Bindings> = vec![];
                while !input.is_empty() && (*op != '?' || rounds.is_empty()) {
                    let ahead = input.fork();
                    if let (Some(separator), false) = (separator, rounds.is_empty()) {
                        match ahead.parse::<TokenTree>() {
                            Ok(found) if found.to_string() == separator.to_string() => {}
                            _ => break,
                        }
                    }
                    let mut round = Bindings::new();
                    if matched(inner, &ahead, &mut round).is_err() {
                        break;
                    }
                    input.advance_to(&ahead);
                    rounds.push(round);
                }
                if *op == '+' && rounds.is_empty() {
                    return Err(input.error("nothing to repeat"));
                }
                for name in names {
                    let all = rounds.iter().filter_map(|round| round.get(&name).cloned()).collect();
                    bindings.insert(name, Bound::Many(all));
                }
            }
        }
    }
    Ok(())
}

/// The tokens that `$name:kind` matches. Expressions and types remain single operands wherever they are inserted.
fn fragment(kind: &str, input: ParseStream) -> syn::Result<TokenStream> {
    let grouped = |tokens: TokenStream| {
        let group = Group::new(Delimiter::None, tokens);
        TokenStream::from(TokenTree::Group(group))
    };
    Ok(match kind {
        "expr" | "expr_2021" => grouped(input.parse::<Expr>()?.into_token_stream()),
        "ident" => input.parse::<Ident>()?.into_token_stream(),
        "literal" => {
            let minus: Option<syn::Token![-]> = input.parse()?;
            let literal: syn::Lit = input.parse()?;
            quote::quote!(#minus #literal)
        }
        "ty" => grouped(input.parse::<syn::Type>()?.into_token_stream()),
        "path" => input.parse::<syn::Path>()?.into_token_stream(),
        "block" => input.parse::<Block>()?.into_token_stream(),
        "pat" | "pat_param" => syn::Pat::parse_multi(input)?.into_token_stream(),
        "stmt" => input.parse::<Stmt>()?.into_token_stream(),
        "lifetime" => input.parse::<syn::Lifetime>()?.into_token_stream(),
        _ => input.parse::<TokenTree>()?.into(),
    })
}

fn names_of(parts: &[Part], names: &mut Vec<String>) {
    for part in parts {
        match part {
            Part::Name(name, _) => names.push(name.to_string()),
            Part::Group(_, inner) | Part::Repeat(inner, ..) => names_of(inner, names),
            Part::Token(_) => {}
        }
    }
}

/// Names that the code of a macro binds: hygiene keeps them apart from names around the call.
fn locals_of(parts: &[Part], locals: &mut Vec<String>) {
    let mut in_pattern = false;
    for part in parts {
        match part {
            Part::Token(TokenTree::Ident(word)) if word == "let" => in_pattern = true,
            Part::Token(TokenTree::Ident(word)) if in_pattern && word != "mut" && word != "ref" => {
                locals.push(word.to_string())
            }
            Part::Token(TokenTree::Punct(punct)) if matches!(punct.as_char(), '=' | ':' | ';') => in_pattern = false,
            Part::Token(_) | Part::Name(..) => {}
            Part::Group(_, inner) if in_pattern => {
                inner.iter().for_each(|part| {
                    if let Part::Token(TokenTree::Ident(word)) = part
                        && word != "mut"
                    {
                        locals.push(word.to_string());
                    }
                });
            }
            Part::Group(_, inner) | Part::Repeat(inner, ..) => locals_of(inner, locals),
        }
    }
}

struct Transcription {
    locals: Vec<String>,
    number: usize,
}

impl Transcription {
    /// The code of a rule, in one iteration of each enclosing repetition.
    fn transcribed(&self, parts: &[Part], bindings: &Bindings, rounds: &[usize]) -> Option<TokenStream> {
        let mut tokens = TokenStream::new();
        for part in parts {
            match part {
                Part::Token(TokenTree::Ident(word)) if self.locals.iter().any(|local| word == local) => {
                    let own = Ident::new(&format!("{word}_{}", self.number), word.span());
                    tokens.extend([TokenTree::Ident(own)]);
                }
                Part::Token(token) => tokens.extend([token.clone()]),
                Part::Group(group, inner) => {
                    let mut new = Group::new(group.delimiter(), self.transcribed(inner, bindings, rounds)?);
                    new.set_span(group.span());
                    tokens.extend([TokenTree::Group(new)]);
                }
                Part::Name(name, _) => match bindings.get(&name.to_string()) {
                    Some(bound) => tokens.extend(one_of(bound, rounds)?),
                    // `$crate`
                    None => tokens.extend([TokenTree::Ident(name.clone())]),
                },
                Part::Repeat(inner, separator, _) => {
                    let mut names = vec![];
                    names_of(inner, &mut names);
                    let counts = names.iter().filter_map(|name| count_of(bindings.get(name)?, rounds));
                    for round in 0..counts.max()? {
                        if let (Some(separator), true) = (separator, round > 0) {
                            tokens.extend([separator.clone()]);
                        }
                        let rounds: Vec<usize> = rounds.iter().copied().chain([round]).collect();
                        tokens.extend(self.transcribed(inner, bindings, &rounds)?);
                    }
                }
            }
        }
        Some(tokens)
    }
}

fn one_of(bound: &Bound, rounds: &[usize]) -> Option<TokenStream> {
    match (bound, rounds) {
        (Bound::One(tokens), _) => Some(tokens.clone()),
        (Bound::Many(all), [round, rest @ ..]) => one_of(all.get(*round)?, rest),
        (Bound::Many(_), []) => None,
    }
}

/// The number of iterations of a repetition, in one iteration of the enclosing ones.
fn count_of(bound: &Bound, rounds: &[usize]) -> Option<usize> {
    match (bound, rounds) {
        (Bound::Many(all), []) => Some(all.len()),
        (Bound::Many(all), [round, rest @ ..]) => count_of(all.get(*round)?, rest),
        (Bound::One(_), _) => None,
    }
}
