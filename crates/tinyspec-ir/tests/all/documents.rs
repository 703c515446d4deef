//! The pages about the language say what is so: tables are generated, examples parse. `TINYSPEC_BLESS=1` writes the tables.

mod libraries;
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use table::{ROWS, devices};
use tinyspec_ir::op::ArgKind;
use tinyspec_ir::{Op, text};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The generated part of a page must be this.
fn check(path: &str, generated: &str) {
    let page = read(path);
    let (start, end) = ("<!-- ops -->\n", "<!-- end of ops -->");
    let (Some(from), Some(to)) = (page.find(start), page.find(end)) else { panic!("{path} has no place for the ops") };
    let expected = format!("{}{generated}{}", &page[..from + start.len()], &page[to..]);
    if std::env::var_os("TINYSPEC_BLESS").is_some() {
        std::fs::write(root().join(path), &expected).unwrap();
    } else {
        assert!(page == expected, "{path} is out of date: run this test with TINYSPEC_BLESS=1");
    }
}

#[test]
fn the_table_of_ops_is_true() {
    let mut page = "| op | semantics | devices | files | tests |\n|---|---|---|---|---|\n".to_string();
    for &op in Op::ALL {
        let row = ROWS.iter().find(|row| row.0.contains(&op)).unwrap_or_else(|| panic!("no row for {op:?}"));
        assert_eq!(ROWS.iter().filter(|row| row.0.contains(&op)).count(), 1, "two rows for {op:?}");
        let (_, files, tests) = row;
        for file in *files {
            assert!(read(file).contains(&format!("{op:?}")), "{file} does not speak of {op:?}");
        }
        let name = |test: &str| test.rsplit_once("::").map(|(file, name)| (file.to_string(), name.to_string()));
        let tests = tests.iter().map(|test| name(test).unwrap_or_else(|| panic!("{test} names no test")));
        let mut shown = Vec::new();
        for (file, name) in tests {
            assert!(read(&file).contains(&format!("fn {name}")), "{file} has no test {name}");
            shown.push(format!("`{name}` in `{file}`"));
        }
        shown.push("`every_op_runs`".to_string());
        // That test reads which devices the page names, and runs a program with the op on each.
        assert!(read("tests/ops/rows.rs").contains(&format!("{op:?}")), "no program runs {op:?}");
        let devices = devices(op);
        let files: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
        let doc = op.info().doc.replace('|', "\\|");
        page += &format!("| {op:?} | {doc} | {devices} | {} | {} |\n", files.join(", "), shown.join(", "));
    }
    check("docs/ops.md", &page);
}

#[test]
fn the_text_form_is_documented() {
    let mut table = "| op | argument | sources | semantics |\n|---|---|---|---|\n".to_string();
    for &op in Op::ALL {
        let info = op.info();
        let argument = match info.arg {
            ArgKind::None => String::new(),
            kind => format!("{kind:?}").to_lowercase(),
        };
        let sources = match info.sources {
            (least, usize::MAX) => format!("{least} or more"),
            (least, greatest) if least == greatest => least.to_string(),
            (least, greatest) => format!("{least} to {greatest}"),
        };
        table += &format!("| `{op}` | {argument} | {sources} | {} |\n", info.doc.replace('|', "\\|"));
    }
    check("docs/text-form.md", &table);

    let page = read("docs/text-form.md");
    let mut seen: BTreeSet<Op> = BTreeSet::new();
    for example in page.split("```text\n").skip(1).filter_map(|rest| rest.split_once("```")) {
        let (graph, roots) = text::parse(example.0).unwrap_or_else(|error| panic!("{error}"));
        let (again, same) = text::parse(&text::print(&graph, &roots)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(graph.content_hash(&roots), again.content_hash(&same));
        seen.extend(graph.reachable(&roots).into_iter().map(|node| graph.op(node)));
    }
    let missing: Vec<&Op> = Op::ALL.iter().filter(|op| !seen.contains(op)).collect();
    assert!(missing.is_empty(), "no example has {missing:?}");
    for &op in Op::ALL {
        let kind = format!("{:?}", op.info().arg).to_lowercase();
        assert!(kind == "none" || page.contains(&format!("| `{kind}` |")), "the argument `{kind}` is not explained");
    }
}

/// Every file of Rust below a folder.
fn sources(folder: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn no_message_names_a_method_that_is_not_there() {
    let mut files = Vec::new();
    for name in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        sources(&name.path().join("src"), &mut files);
    }
    // Methods of the table are rows, the others are functions.
    let is_there = |name: &str| {
        let (function, row) = (format!("fn {name}"), format!("        {name}("));
        let ends = |rest: &str| rest.starts_with(['(', '<']);
        // What a derive makes stands nowhere.
        name == "clone" || files.iter().any(|file| file.contains(&row) || file.split(&function).skip(1).any(ends))
    };
    let mut missing = BTreeSet::new();
    for file in &files {
        for line in file.lines().filter(|line| !line.trim_start().starts_with("//")) {
            // In a literal, what stands between backticks and after a dot is called.
            for quoted in line.split('`').skip(1).step_by(2).filter(|_| line.contains('"')) {
                for call in quoted.split('.').skip(1) {
                    let name: String = call.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                    if !name.is_empty() && call[name.len()..].starts_with('(') && !is_there(&name) {
                        missing.insert(name);
                    }
                }
            }
        }
    }
    assert!(missing.is_empty(), "messages name methods that are not there: {missing:?}");
}
