//! Facts from the source file of a `#[function]` or `#[model]` about names that macros cannot look up.
//!
//! A callee's signature comes from a macro of the same name; if there is none, rustc says that it "cannot find macro".
//! The file shows beforehand which callees are plain functions of the same module, which fields are plain structs, and
//! by which path a name is imported. For a name in a shape it shows whether anything could define it. If it is not
//! conclusive, the message is left to rustc.

use super::STD_MACROS;
use crate::editor;
use quote::ToTokens;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ImplItem, Item, Type, UseTree};

/// Attributes that do not change an item.
const INERT: &[&str] =
    &["allow", "cold", "deny", "deprecated", "doc", "expect", "inline", "must_use", "track_caller", "warn"];

/// Attributes that cannot define a constant.
const WITHOUT_CONSTANTS: &[&str] = &[
    "cfg",
    "cfg_attr",
    "default",
    "derive",
    "function",
    "ignore",
    "macro_export",
    "macro_use",
    "model",
    "non_exhaustive",
    "path",
    "repr",
    "should_panic",
    "test",
];

/// The crate whose prelude a file imports.
const TINYSPEC: &str = "tinyspec";

/// The names of one module, or of one block.
#[derive(Default)]
struct Module {
    /// Every function, method and type.
    defined: HashSet<String>,
    /// Functions and types that no attribute macro transforms.
    plain: HashSet<String>,
    /// Imported names and their paths. As text: tokens do not outlive the expansion that made them.
    imports: HashMap<String, String>,
    /// Functions that constants may call.
    constant: HashSet<String>,
    /// The first method of each `#[function] impl` of a struct.
    blocks: HashMap<String, Vec<String>>,
}

/// A file.
#[derive(Default)]
struct File {
    modules: Vec<Module>,
    /// Structs with `#[model]`, and whether the attribute says `functions`.
    models: HashMap<String, bool>,
    /// Names of all constants, statics and imports in the file, and whether every one of that name is an array.
    values: HashMap<String, bool>,
    /// A macro or an import of everything may define more.
    is_open: bool,
    /// It imports from tinyspec itself. A file that does not may be `include!`d and see the names of another one.
    is_module: bool,
}

/// Whether `name` is a plain function or type of the module in which `owner` is defined.
pub fn is_plain(owner: &Ident, name: &Ident) -> bool {
    module_of(owner, |module| module.plain.contains(&name.to_string())).unwrap_or_default()
}

/// Whether `name` is a `const fn` of the module in which `owner` is defined: called on constants, it returns a
/// constant.
pub fn is_const_function(owner: &Ident, name: &Ident) -> bool {
    module_of(owner, |module| module.constant.contains(&name.to_string())).unwrap_or_default()
}

/// Whether another `#[function] impl` of `model` precedes the one that begins with the method `first`.
pub fn is_second_block(model: &Ident, first: &Ident) -> bool {
    let Some(file) = file_around(model) else { return false };
    let blocks = file.modules.iter().filter_map(|module| module.blocks.get(&model.to_string()));
    // Its span does not tell which module it is in, so a block that may be the first of its module counts as the first.
    let mut places = blocks.filter_map(|blocks| blocks.iter().position(|method| first == method)).peekable();
    places.peek().is_some() && places.all(|place| place > 0)
}

/// The path by which the module in which `owner` is defined imports `name`.
pub fn import_of(owner: &Ident, name: &Ident) -> Option<syn::Path> {
    let name = name.to_string();
    let path =
        module_of(owner, |module| module.imports.get(&name).filter(|_| !module.defined.contains(&name)).cloned())?;
    syn::parse_str(&path?).ok()
}

/// Whether `name` is a `#[model]` of this file that does not say `functions`.
pub fn is_without_functions(name: &Ident) -> bool {
    file_around(name).is_some_and(|file| file.models.get(&name.to_string()) == Some(&false))
}

/// Whether some struct of this name in its file is a `#[model]`.
pub fn is_model(name: &Ident) -> bool {
    file_around(name).is_some_and(|file| file.models.contains_key(&name.to_string()))
}

/// Whether nothing in the file around `name` defines a constant of this name.
pub fn is_undefined(name: &Ident) -> bool {
    let text = name.to_string();
    file_around(name).is_some_and(|file| file.is_module && !file.is_open && !file.values.contains_key(&text))
}

/// Whether every constant of this name in the file around it is an array.
pub fn is_list(name: &Ident) -> bool {
    file_around(name).is_some_and(|file| file.values.get(&name.to_string()) == Some(&true))
}

/// The constant of the file that a misspelt name may mean.
pub fn constant_near(name: &Ident) -> Option<String> {
    let (file, text) = (file_around(name)?, name.to_string());
    tinyspec_ir::ops::nearest_of(&text, file.values.keys().map(String::as_str)).map(str::to_string)
}

fn module_of<T: PartialEq>(owner: &Ident, of: impl Fn(&Module) -> T) -> Option<T> {
    let file = file_around(owner)?;
    let owner = owner.to_string();
    // Several owners may have this name, and the span does not show which one is meant, so all must agree.
    let mut told = file.modules.iter().filter(|module| module.defined.contains(&owner)).map(of);
    let first = told.next()?;
    told.all(|other| other == first).then_some(first)
}

/// The file that contains a name, if it is known to be what is compiled. Each file is read once.
fn file_around(name: &Ident) -> Option<Rc<File>> {
    thread_local! {
        static FILES: RefCell<HashMap<PathBuf, Option<Rc<File>>>> = RefCell::default();
    }
    // In an editor the text is newer than the file, and the server outlives many versions of the file.
    if editor::is_asking() {
        return None;
    }
    let path = name.span().local_file()?;
    FILES.with_borrow_mut(|files| {
        let read = |path: &PathBuf| {
            let parsed = syn::parse_file(&std::fs::read_to_string(path).ok()?).ok()?;
            let mut file = File::default();
            file.visit_file(&parsed);
            Some(Rc::new(file))
        };
        files.entry(path).or_insert_with_key(read).clone()
    })
}

impl File {
    fn value(&mut self, name: String, is_list: bool) {
        *self.values.entry(name).or_insert(true) &= is_list;
    }

    fn add<'a>(&mut self, items: impl Iterator<Item = &'a Item>) {
        let mut module = Module::default();
        let is = |attribute: &Attribute, names: &[&str]| {
            let name = attribute.path().segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
            names.contains(&name.as_str())
        };
        for item in items {
            let attributes = attributes_of(item);
            self.is_open |=
                !attributes.iter().all(|attribute| is(attribute, INERT) || is(attribute, WITHOUT_CONSTANTS));
            let is_inert = attributes.iter().all(|attribute| is(attribute, INERT));
            let is_struct =
                attributes.iter().all(|attribute| is(attribute, INERT) || is(attribute, &["derive", "repr"]));
            let mut define = |name: &Ident, is_plain: bool| {
                if is_plain {
                    module.plain.insert(name.to_string());
                }
                module.defined.insert(name.to_string());
            };
            match item {
                // Constants of a body may be made by a `const fn`.
                Item::Fn(function) => {
                    define(&function.sig.ident, function.sig.constness.is_none() && is_inert);
                    if function.sig.constness.is_some() && is_inert {
                        module.constant.insert(function.sig.ident.to_string());
                    }
                }
                Item::Struct(item) => {
                    define(&item.ident, is_struct);
                    if let Some(attribute) = item.attrs.iter().find(|attribute| is(attribute, &["model"])) {
                        let says = attribute.meta.to_token_stream().to_string().contains("functions");
                        // Of several structs with this name, one that says it is enough.
                        *self.models.entry(item.ident.to_string()).or_default() |= says;
                    }
                }
                Item::Enum(item) => define(&item.ident, is_struct),
                Item::Impl(block) => {
                    let mut methods = vec![];
                    for item in &block.items {
                        if let ImplItem::Fn(method) = item {
                            define(&method.sig.ident, false);
                            methods.push(method.sig.ident.to_string());
                        }
                    }
                    // The only block may be one under a `cfg`.
                    let is_ours =
                        block.attrs.iter().all(|attribute| is(attribute, INERT) || is(attribute, &["function"]));
                    if let (Type::Path(path), Some(first), false, true) =
                        (&*block.self_ty, methods.into_iter().next(), is_inert, is_ours)
                        && let Some(last) = path.path.segments.last()
                    {
                        module.blocks.entry(last.ident.to_string()).or_default().push(first);
                    }
                }
                Item::Use(import) => {
                    let mut imports = vec![];
                    self.is_open |= !imported(&import.tree, &mut vec![], &mut imports);
                    self.is_module |= matches!(&import.tree, UseTree::Path(path) if path.ident == TINYSPEC);
                    imports.iter().for_each(|(name, _)| self.value(name.clone(), false));
                    // An import under an attribute may be one of several.
                    if import.attrs.is_empty() {
                        let colons = if import.leading_colon.is_some() { "::" } else { "" };
                        module
                            .imports
                            .extend(imports.into_iter().map(|(name, path)| (name, format!("{colons}{path}"))));
                    }
                }
                Item::Const(item) => self.value(item.ident.to_string(), matches!(&*item.ty, Type::Array(_))),
                Item::Static(item) => self.value(item.ident.to_string(), matches!(&*item.ty, Type::Array(_))),
                // The body of a macro is expanded elsewhere, where other names may be visible.
                Item::Macro(item) => self.is_open |= item.ident.is_some() || may_define(&item.mac),
                _ => {}
            }
        }
        self.modules.push(module);
    }
}

/// The names that `tree` imports, with their paths; `false` if there may be more.
fn imported(tree: &UseTree, path: &mut Vec<Ident>, found: &mut Vec<(String, String)>) -> bool {
    let mut add = |name: &Ident, last: &Ident, path: &[Ident]| {
        let last = (last != "self").then_some(last);
        let segments: Vec<String> = path.iter().chain(last).map(ToString::to_string).collect();
        found.push((name.to_string(), segments.join("::")));
    };
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.clone());
            let is_closed = imported(&inner.tree, path, found);
            path.pop();
            is_closed
        }
        UseTree::Name(name) => {
            let shown = if name.ident == "self" { path.last().unwrap_or(&name.ident) } else { &name.ident };
            add(shown, &name.ident, path);
            true
        }
        UseTree::Rename(rename) => {
            add(&rename.rename, &rename.ident, path);
            true
        }
        // tinyspec's own prelude has no constants.
        UseTree::Glob(_) => {
            matches!(&path[..], [first, last] if first == TINYSPEC && last == "prelude")
        }
        UseTree::Group(group) => {
            group.items.iter().fold(true, |is_closed, tree| imported(tree, path, found) & is_closed)
        }
    }
}

/// Whether a macro may define constants.
fn may_define(call: &syn::Macro) -> bool {
    let name = call.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    name == "include" || name != "uop" && !STD_MACROS.contains(&name.as_str())
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for File {
    fn visit_file(&mut self, file: &'ast syn::File) {
        self.add(file.items.iter());
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.add(module.content.iter().flat_map(|(_, items)| items));
        visit::visit_item_mod(self, module);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let items = block.stmts.iter().filter_map(|statement| match statement {
            syn::Stmt::Item(item) => Some(item),
            _ => None,
        });
        self.add(items);
        visit::visit_block(self, block);
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        self.is_open |= may_define(&statement.mac);
    }
}
