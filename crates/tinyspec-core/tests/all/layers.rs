//! Folders of the crate form layers: each imports only what stands before it. Tests stand outside of the libraries.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The modules of the crate, the lowest layer first.
const CRATE: &[&str] = &[
    "error",
    "threads",
    "file",
    "compare",
    "profile",
    "lower",
    "device",
    "custom_function",
    "kept",
    "cache",
    "search",
    "lazy",
    "compile",
    "execute",
    "tensor",
    "nn",
    "function",
];

/// The modules of `lower`, the lowest layer first.
const LOWER: &[&str] = &[
    "pass",
    "live",
    "fold",
    "terms",
    "replace",
    "loops",
    "products",
    "traffic",
    "expand",
    "select",
    "linearize",
    "linear",
    "plan",
    "special",
    "hand_written",
    "optimize",
    "rangeify",
    "functions",
    "passes",
    "kernel",
    "multiversion",
];

#[test]
fn imports_of_the_crate_point_down() {
    assert_layers("src", "crate::", CRATE);
}

#[test]
fn imports_of_lower_point_down() {
    assert_layers("src/lower", "crate::lower::", LOWER);
}

/// The libraries are built without a test harness, so a test inside one of them would never run. The crate of macros keeps its
/// harness: a proc-macro crate exports nothing but macros, so its functions can be tested only from inside.
#[test]
fn tests_stand_outside_of_libraries() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for library in fs::read_dir(crates).expect("the crates are there").flatten().map(|entry| entry.path()) {
        if library.ends_with("tinyspec-macros") {
            continue;
        }
        let mut files = Vec::new();
        collect(&library.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file is text");
            assert!(!text.contains("#[test]"), "{}: tests stand in tests/all", file.display());
        }
    }
}

/// Every module of `folder` is among the layers and imports, by `path` or by `super`, only those before it.
fn assert_layers(folder: &str, path: &str, layers: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let rank: BTreeMap<&str, usize> = layers.iter().copied().zip(0..).collect();
    let mut files = Vec::new();
    collect(&root, &mut files);
    for file in &files {
        let relative = file.strip_prefix(&root).expect("files are below the root").with_extension("");
        let mut names: Vec<&str> = relative.iter().filter_map(|name| name.to_str()).collect();
        names.retain(|name| *name != "mod");
        let Some(&module) = names.first().filter(|name| **name != "lib") else { continue };
        let own = rank.get(module).unwrap_or_else(|| panic!("`{module}` of {folder} is in no layer"));
        let text = fs::read_to_string(file).expect("a source file is text");
        let up = "super::".repeat(names.len());
        for prefix in [path, &up] {
            for imported in imports(&text, prefix) {
                let Some(rank) = rank.get(imported) else { continue };
                assert!(rank <= own, "{}: `{module}` imports `{imported}`, which stands above it", file.display());
            }
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The names that follow a prefix, those in braces too; not in comments.
fn imports<'t>(text: &'t str, prefix: &'t str) -> impl Iterator<Item = &'t str> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(move |line| {
        line.match_indices(prefix).filter(|(at, _)| !line[..*at].ends_with("::")).flat_map(move |(at, _)| {
            let rest = &line[at + prefix.len()..];
            let list = rest.strip_prefix('{').map_or(rest, |list| list.split('}').next().unwrap_or(list));
            let is_list = rest.starts_with('{');
            list.split(',').take(if is_list { usize::MAX } else { 1 }).map(|name| {
                let name = name.trim();
                name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
            })
        })
    })
}
