//! The index of errors in the docs has every message, and no message that nobody says.

use std::path::Path;
use syn::visit::Visit;
use tinyspec::ir::ops::METHODS;

/// Where `…` stands in an entry, anything may stand in a message; `op: ` is the name of a method. Code marks do not count.
fn matches(entry: &str, message: &str) -> bool {
    let message = message.replace('`', "");
    let (mut rest, mut entry) = (message.as_str(), entry);
    if let Some(refusal) = entry.strip_prefix("op: ") {
        let Some((op, what)) = message.split_once(": ") else { return false };
        if METHODS.iter().all(|row| row.name != op) {
            return false;
        }
        (rest, entry) = (what, refusal);
    }
    let Some((first, parts)) = entry.split_once('…') else { return entry == rest };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    let (between, last) = parts.rsplit_once('…').unwrap_or(("", parts));
    for part in between.split('…') {
        match rest.find(part) {
            Some(position) => rest = &rest[position + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn entries() -> Vec<String> {
    let index = std::fs::read_to_string("../docs/errors.md").unwrap();
    let entry = |line: &str| Some(line.strip_prefix("> `")?.strip_suffix('`')?.to_string());
    index.lines().filter_map(entry).collect()
}

/// What rustc says without a number, as the macros do: of code that is no Rust, mostly.
const SYNTAX: &[&str] = &[
    "expected one of",
    "expected type",
    "expected an expression",
    "expected identifier",
    "expected `;`",
    "unexpected token",
    "unexpected end of input",
    "negative integers cannot",
];

/// First lines of the macros' own errors in the blessed cases.
fn blessed() -> Vec<String> {
    let mut messages = vec![];
    for folder in std::fs::read_dir("ui").unwrap().map(|folder| folder.unwrap().path()) {
        if !folder.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "stderr") {
                let text = std::fs::read_to_string(file).unwrap();
                let first = |line: &str| {
                    let own = line.strip_prefix("error: ");
                    own.or(line.strip_prefix("error[E0080]: evaluation panicked: ")).map(str::to_string)
                };
                messages.extend(
                    text.lines().filter_map(first).filter(|line| !SYNTAX.iter().any(|start| line.starts_with(start))),
                );
            }
        }
    }
    messages
}

/// The literals that the macros make their messages of: arguments of what reports, and what is bound to `message`.
#[derive(Default)]
struct Literals {
    found: Vec<String>,
    /// Parts of messages too.
    all: Vec<String>,
    is_message: bool,
}

impl Literals {
    fn inside(&mut self, visit: impl FnOnce(&mut Literals)) {
        let outer = std::mem::replace(&mut self.is_message, true);
        visit(self);
        self.is_message = outer;
    }

    fn add(&mut self, message: &str) {
        // The first line is the message.
        let message = message.split('\n').next().unwrap_or_default();
        if message.matches(' ').count() >= 3 {
            self.all.push(message.to_string());
            if self.is_message {
                self.found.push(message.to_string());
            }
        }
    }

    /// A hole is whatever stands there.
    fn add_format(&mut self, text: &str) {
        let line = text.replace("{{", "\u{1}").replace("}}", "\u{2}");
        let mut message = String::new();
        for (number, part) in line.split('{').enumerate() {
            match part.split_once('}') {
                Some((_, rest)) if number > 0 => message += &format!("…{rest}"),
                _ => message += part,
            }
        }
        self.add(&message.replace('\u{1}', "{").replace('\u{2}', "}"));
    }
}

impl<'ast> Visit<'ast> for Literals {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if ["error", "error_instead_of_rustc", "refuse"].iter().any(|name| call.method == name) {
            self.inside(|literals| syn::visit::visit_expr_method_call(literals, call));
        } else {
            syn::visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        struct Names(bool);
        impl<'ast> Visit<'ast> for Names {
            fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
                self.0 |= pattern.ident == "message";
            }
        }
        let mut names = Names(false);
        names.visit_pat(&local.pat);
        if names.0 {
            self.inside(|literals| syn::visit::visit_local(literals, local));
        } else {
            syn::visit::visit_local(self, local);
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.add(&literal.value());
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        if mac.path.is_ident("format")
            && let Ok(text) = mac.parse_body_with(|input: syn::parse::ParseStream| {
                let text: syn::LitStr = input.parse()?;
                input.parse::<proc_macro2::TokenStream>()?;
                Ok(text)
            })
        {
            self.add_format(&text.value());
        }
    }
}

fn literals(folder: &Path, found: &mut Literals) {
    for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        if file.is_dir() {
            literals(&file, found);
        } else {
            let source = std::fs::read_to_string(&file).unwrap();
            found.visit_file(&syn::parse_file(&source).unwrap());
        }
    }
}

#[test]
fn every_message_is_in_the_index() {
    let entries = entries();
    let is_known = |message: &String| entries.iter().any(|entry| matches(entry, message));
    let mut sources = Literals::default();
    for folder in ["function", "kernel", "model"] {
        literals(&Path::new("../crates/tinyspec-macros/src").join(folder), &mut sources);
    }
    let missing: Vec<String> = sources.found.iter().filter(|message| !is_known(message)).cloned().collect();
    assert!(missing.is_empty(), "docs/errors.md lacks\n{}", missing.join("\n"));
    let (said, blessed) = (sources.all, blessed());
    let missing: Vec<&String> = blessed.iter().filter(|message| !is_known(message)).collect();
    assert!(missing.is_empty(), "docs/errors.md lacks {missing:#?}");
    let is_said = |entry: &&String| said.iter().chain(&blessed).any(|message| matches(entry, message));
    let stale: Vec<&String> = entries.iter().filter(|entry| !is_said(entry)).collect();
    assert!(stale.is_empty(), "nobody says what docs/errors.md explains: {stale:#?}");
}
