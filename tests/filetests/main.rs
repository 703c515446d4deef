//! File tests: what a stage makes of a graph, in text. The files are also the quickest way to see what a stage does.
//!
//! A file `tests/filetests/*.txt` holds one or more cases, with a line `====` between them:
//!
//! ```text
//! ; What the case shows.
//! test optimize from tensors
//! target vector_bytes=32 threads=2
//! schedule split(0, 4 u)
//!
//! %0 = …                       the graph that goes in, in the text form of `tinyspec_ir::text`
//! return %9
//! ----
//! %0 = …                       what comes out
//! ```
//!
//! * `test` names the stage: `simplify` (rules, and which of them fired), `callify`, `functions` (opaque Calls, and why), `rangeify`, `optimize`, `schedule` (only the
//!   OptOps that Optimize chose, a kernel a line),
//!   `special` (what a GPU's threads do), `expand`, `select`, `linearize`, `loops`, `plan` (offsets in a kernel's scratch) and `plan-schedule` (offsets in the arena of
//!   a schedule; what goes in are lines `first last bytes`). The name of one of their passes stands for it alone (`tinyspec_core::lower::passes`).
//! * `from` is the form of what goes in, where it is not what the stage itself takes: `program` (method calls, see
//!   `program.rs`; what `callify` takes), `tensors`, `ranges` (what Rangeify leaves), `scheduled` (Optimize), `threads` (Special), `tiles`
//!   (Expand), `machine` (Select), `linear` (Linearize). The stages between run first; of several kernels each is printed.
//! * `rules` names the tables that `simplify` applies: `exact` (which it does without the line), `reassoc`, or a permission
//!   such as `contract`. Other stages apply them before Rangeify, if the line is there.
//! * `target` changes facts of the target, which has vectors of 16 bytes; `processor=` and `gpu=` make it one of the tables; `native=` lists ops beyond the primitives,
//!   `workgroups=` makes it a GPU with so many threads in a workgroup.
//! * `donate` says which results may take the memory of an input, as `result/slot`, where `rangeify` allows it.
//! * `schedule` gives Optimize its ops, as they are printed, with `;` between them; without it the heuristics choose.
//!
//! What comes out is checked by the verifier of its stage; a refusal is printed as `error: …`. `TINYSPEC_BLESS=1 cargo test -p tinyspec-tests --test filetests`
//! writes what was found into the files; read the difference before you commit it.

mod case;
mod passes;
mod program;

use case::Case;
use std::fs;
use std::path::{Path, PathBuf};

const BETWEEN: &str = "\n====\n";

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "txt")).collect();
    files.sort();
    files
}

#[test]
fn stages_make_of_graphs_what_the_files_say() {
    let bless = std::env::var("TINYSPEC_BLESS").is_ok_and(|text| text == "1");
    let files = files();
    assert!(!files.is_empty());
    let mut wrong = String::new();
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let mut blessed = Vec::new();
        for (number, text) in text.split(BETWEEN).enumerate() {
            let case = Case::parse(text).unwrap_or_else(|error| panic!("{name}, case {number}: {error}"));
            let found = passes::result(&case);
            if found.trim_end() != case.expected.trim() {
                wrong += &format!("── {name}, case {number}\n{}", difference(case.expected.trim(), &found));
            }
            blessed.push(format!("{}\n{}", case.given, found.trim_end()));
        }
        let blessed = blessed.join(BETWEEN) + "\n";
        if bless && blessed != text {
            fs::write(&path, blessed).unwrap();
        }
    }
    assert!(bless || wrong.is_empty(), "{wrong}\nTINYSPEC_BLESS=1 accepts what was found");
}

/// The lines between what both have in common at their start and end.
fn difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let start = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
    let ends = expected[start..].iter().rev().zip(found[start..].iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let lines = |mark: char, lines: &[&str]| -> String {
        lines[start..lines.len() - end].iter().map(|line| format!("{mark} {line}\n")).collect()
    };
    lines('-', &expected) + &lines('+', &found)
}

/// A changed file fails, and says where it differs.
#[test]
fn differences_are_what_changed() {
    assert_eq!(difference("a\nb\nc\n", "a\nx\ny\nc\n"), "- b\n+ x\n+ y\n");
    assert_eq!(difference("", "a\n"), "+ a\n");
}
