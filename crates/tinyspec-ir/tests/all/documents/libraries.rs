//! `docs/pytorch.md`: what it says is here is here, every method is named, and no name stands in two lists.

use super::{read, root};
use std::collections::BTreeSet;
use tinyspec_ir::ops::METHODS;

/// The part of the page between two marks.
fn part<'p>(page: &'p str, name: &str) -> &'p str {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let rest = page.split_once(&start).unwrap_or_else(|| panic!("the list `{name}` begins")).1;
    rest.split_once(&end).unwrap_or_else(|| panic!("the list `{name}` ends")).0
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The cells of a table's rows.
fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.lines().skip(2).filter_map(|row| row.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
}

/// A cell of names only.
fn names(cell: &str) -> Vec<&str> {
    let other: String = cell.split('`').step_by(2).collect();
    if other.trim_matches([',', ' ', '…']).is_empty() { quoted(cell).collect() } else { vec![] }
}

/// Names of public functions and types of the run time.
fn of_run_time() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let folders = ["tensor", "tensor/grad", "nn", "function", "execute"]
        .map(|folder| root().join("crates/tinyspec-core/src").join(folder));
    for folder in folders {
        for entry in std::fs::read_dir(folder).expect("a folder of the crate") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(path).expect("a source");
            for line in text.lines() {
                let line = line.trim_start();
                let line = line.strip_prefix("pub ").unwrap_or(line);
                for keyword in ["fn ", "struct ", "enum ", "trait "] {
                    if let Some(rest) = line.strip_prefix(keyword) {
                        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                        found.insert(rest[..end].to_string());
                    }
                }
                // Optimisers that a macro declares.
                if let Some((name, _)) = line.split_once(" {").filter(|(_, rest)| rest.contains("} = ")) {
                    found.insert(name.to_string());
                }
            }
        }
    }
    found
}

#[test]
fn the_page_of_other_libraries_is_true() {
    let page = read("docs/pytorch.md");
    let run_time = of_run_time();
    let exists = |name: &str| {
        let name = name.rsplit("::").next().unwrap_or(name);
        METHODS.iter().any(|method| method.name == name)
            || run_time.contains(name)
            || ["Rest", "NewAxis"].contains(&name)
    };
    let is_name = |text: &&str| text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    for name in quoted(part(&page, "same")) {
        assert!(exists(name), "`{name}` is said to be here");
    }
    for (_, here) in rows(part(&page, "other")) {
        for name in quoted(here).filter(is_name).filter(|name| {
            !["reflect", "replicate", "circular", "linalg", "collectives", "padding", "padding_end"].contains(name)
        }) {
            assert!(exists(name), "`{name}` is said to be here");
        }
    }
    for (there, why) in rows(part(&page, "missing")) {
        assert!(why.ends_with('.'), "no reason for {there}");
        for name in names(there) {
            assert!(METHODS.iter().all(|method| method.name != name), "`{name}` is here");
        }
    }
    let mut seen = BTreeSet::new();
    let there = ["other", "composed", "missing"].into_iter().flat_map(|list| rows(part(&page, list)));
    for name in quoted(part(&page, "same")).chain(there.flat_map(|(there, _)| names(there))) {
        assert!(seen.insert(name), "`{name}` stands there twice");
    }
    let mentioned: BTreeSet<&str> =
        quoted(&page).flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_')).collect();
    let forgotten: Vec<&str> =
        METHODS.iter().map(|method| method.name).filter(|name| !mentioned.contains(name)).collect();
    assert!(forgotten.is_empty(), "not on the page: {forgotten:?}");
}
