//! Plain functions that a body calls by a bare name.
//!
//! A callee's signature comes from a macro of its name, and where there is none rustc says that it "cannot find macro". The file
//! around the call tells beforehand which callees are plain functions of the same module.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use syn::visit::{Visit, visit_block, visit_file, visit_item_mod};
use syn::{Ident, ImplItem, Item};

/// Attributes that leave a function what it is.
const INERT: &[&str] =
    &["allow", "cfg", "cold", "deny", "deprecated", "doc", "expect", "inline", "must_use", "track_caller", "warn"];

/// The functions of one module, or of one block.
#[derive(Default)]
struct Functions {
    /// All of them, and the methods.
    defined: Vec<String>,
    /// Those that no macro has made anything of.
    plain: Vec<String>,
}

/// The modules of a file, unless it cannot be read.
type Modules = Option<Rc<Vec<Functions>>>;

/// Whether `callee` is a plain function of the module in which the function or method `caller` is defined.
pub fn is_plain(caller: &Ident, callee: &Ident) -> bool {
    let Some(modules) = modules_around(caller) else { return false };
    let (caller, callee) = (caller.to_string(), callee.to_string());
    let mut around = modules.iter().filter(|module| module.defined.contains(&caller));
    // Of several callers of one name nobody knows which one this is.
    around.next().is_some_and(|module| module.plain.contains(&callee)) && around.next().is_none()
}

/// The modules of the file in which a name stands, if it is known. Each file is read once.
fn modules_around(name: &Ident) -> Modules {
    thread_local! {
        static FILES: RefCell<HashMap<PathBuf, Modules>> = RefCell::default();
    }
    let path = name.span().local_file()?;
    FILES.with_borrow_mut(|files| {
        let read = |path: &PathBuf| {
            let file = syn::parse_file(&std::fs::read_to_string(path).ok()?).ok()?;
            let mut modules = Reader::default();
            modules.visit_file(&file);
            Some(Rc::new(modules.0))
        };
        files.entry(path).or_insert_with_key(read).clone()
    })
}

#[derive(Default)]
struct Reader(Vec<Functions>);

impl Reader {
    fn add<'a>(&mut self, items: impl Iterator<Item = &'a Item>) {
        let mut functions = Functions::default();
        for item in items {
            match item {
                Item::Fn(function) => {
                    let name = function.sig.ident.to_string();
                    let is_inert =
                        |attribute: &syn::Attribute| INERT.iter().any(|inert| attribute.path().is_ident(inert));
                    // Constants of a body may be made by a `const fn`.
                    if function.sig.constness.is_none() && function.attrs.iter().all(is_inert) {
                        functions.plain.push(name.clone());
                    }
                    functions.defined.push(name);
                }
                Item::Impl(block) => {
                    let methods = block.items.iter().filter_map(|item| match item {
                        ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
                        _ => None,
                    });
                    functions.defined.extend(methods);
                }
                _ => {}
            }
        }
        self.0.push(functions);
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_file(&mut self, file: &'ast syn::File) {
        self.add(file.items.iter());
        visit_file(self, file);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.add(module.content.iter().flat_map(|(_, items)| items));
        visit_item_mod(self, module);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let items = block.stmts.iter().filter_map(|statement| match statement {
            syn::Stmt::Item(item) => Some(item),
            _ => None,
        });
        self.add(items);
        visit_block(self, block);
    }
}
