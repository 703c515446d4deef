//! The table of transforms: its page, and its text.

use tinyspec_core::lower::optimize::transforms::{OptOp, TRANSFORMS};
use tinyspec_ir::AxisType;

/// `TINYSPEC_BLESS=1` writes the table.
#[test]
fn the_page_of_schedules_is_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedules.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (start, end) = ("<!-- transforms -->\n", "<!-- end of transforms -->");
    let (from, to) = (page.find(start).unwrap() + start.len(), page.find(end).unwrap());
    let mut table = "| transform | effect | requires |\n|---|---|---|\n".to_string();
    for row in TRANSFORMS {
        let operands = row.operands.replace('|', "\\|");
        table += &format!("| `{}({operands})` | {} | {} |\n", row.name, row.effect, row.requires);
    }
    let expected = format!("{}{table}{}", &page[..from], &page[to..]);
    if std::env::var_os("TINYSPEC_BLESS").is_some() {
        std::fs::write(path, &expected).unwrap();
    } else {
        assert!(page == expected, "docs/schedules.md is out of date: run this test with TINYSPEC_BLESS=1");
    }
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for axis in AxisType::ALL {
        let name = format!("{axis:?}").to_lowercase();
        let letter = format!("`{}` ", axis.letter());
        let is_named = |part: &str| part.to_lowercase().replace('_', "").contains(&name);
        assert!(words.split(&letter).skip(1).any(is_named), "the page does not say that {letter}is {name}");
    }
}

#[test]
fn what_is_no_schedule_op_is_refused_with_those_there_are() {
    for text in [
        "",
        "split",
        "split(a)",
        "split(a, 4 z)",
        "split(a, 4 u bottom)",
        "swap(0, 1)",
        "swap(a, b, c)",
        "stage(%x, at a)",
        "stage(%0, at 0)",
        "split(a01, 2 u)",
        "stage()",
    ] {
        let error = text.parse::<OptOp>().unwrap_err();
        let help = error.suggestion().unwrap_or_default();
        assert!(TRANSFORMS.iter().all(|row| help.contains(row.name)), "{text}: {error}");
    }
}
