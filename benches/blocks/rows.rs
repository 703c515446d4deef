//! The rows of the blocks: a line each while they run, a file that later runs add to, and the tables of `docs/blocks.md`.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tinyspec_benches::report;

/// The file of the last measurement of each row, in cargo's target folder.
pub const FILE_NAME: &str = "tinyspec-blocks.json";

const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- end of figures -->";

/// A row that takes so many times as long as PyTorch stands out.
const SLOWER: f64 = 1.3;
/// Seconds of a first call that stands out.
const FIRST: f64 = 0.12;

/// What was measured of a block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Family, name, and whether it is a training step.
    pub name: String,
    /// Seconds of a call.
    pub ours: f64,
    /// The same in PyTorch, if it is there.
    pub torch: Option<f64>,
    /// Seconds it takes at least.
    pub limit: f64,
    /// Seconds until the first result, with nothing compiled.
    pub first: f64,
    /// Kernels compiled for it.
    pub kernels: u64,
    /// The greatest difference from PyTorch's values, by the greatest value.
    pub error: Option<f32>,
    /// Why it is not a result.
    pub failure: Option<String>,
}

/// Above the lines of rows.
pub const HEADING: &str = "block                                           ours ms   torch ms  ours/torch   limit ms  of limit  first ms  kernels";

impl Row {
    /// A block that could not be run.
    pub fn failed(name: &str, failure: &str) -> Self {
        Self {
            name: name.into(),
            ours: f64::NAN,
            torch: None,
            limit: f64::NAN,
            first: f64::NAN,
            kernels: 0,
            error: None,
            failure: Some(failure.into()),
        }
    }

    /// Blocks are named by family, all on one thread.
    fn short(&self) -> &str {
        self.name.strip_prefix("blocks/").and_then(|name| name.strip_suffix("/1t")).unwrap_or(&self.name)
    }

    /// How many times as long as PyTorch's it takes.
    fn ratio(&self) -> Option<f64> {
        Some(self.ours / self.torch?)
    }

    fn cells(&self) -> [String; 7] {
        let dash = || String::from("–");
        [
            milliseconds(self.ours),
            self.torch.map_or_else(dash, milliseconds),
            self.ratio().map_or_else(dash, |ratio| format!("{ratio:.2}")),
            milliseconds(self.limit),
            format!("{:.0} %", 100.0 * self.limit / self.ours),
            format!("{:.0}", self.first * 1e3),
            self.kernels.to_string(),
        ]
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.short();
        if let (Some(failure), true) = (&self.failure, self.ours.is_nan()) {
            return write!(f, "{name:44} {failure}");
        }
        let [ours, torch, ratio, limit, share, first, kernels] = self.cells();
        write!(f, "{name:44} {ours:>10} {torch:>10} {ratio:>11} {limit:>10} {share:>9} {first:>9} {kernels:>8}")?;
        self.failure.as_ref().map_or(Ok(()), |failure| write!(f, "  {failure}"))
    }
}

/// How many rows are how far.
pub fn summary(rows: &[Row]) -> String {
    let count = |holds: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| holds(row)).count();
    let slower = |than: f64| count(&|row| row.ratio().is_some_and(|ratio| ratio > than));
    let compared = count(&|row| row.ratio().is_some());
    let mut ratios: Vec<f64> = rows.iter().filter_map(Row::ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}"));
    format!(
        "{} rows, {compared} beside PyTorch: {} at least as fast, {} more than {SLOWER} × slower, median {median}; \
         {} first calls above {:.0} ms; {} failed",
        rows.len(),
        compared - slower(1.0),
        slower(SLOWER),
        count(&|row| row.first > FIRST),
        FIRST * 1e3,
        count(&|row| row.failure.is_some()),
    )
}

/// Writes the rows to the file, over earlier ones of the same names.
///
/// # Errors
/// When the file cannot be written.
pub fn keep(rows: Vec<Row>) -> Result<(), Box<dyn Error>> {
    let folder = report::target_folder();
    fs::create_dir_all(&folder)?;
    let path = folder.join(FILE_NAME);
    let mut all: Vec<Row> =
        fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    for row in rows.into_iter().filter(|row| !row.ours.is_nan()) {
        match all.iter_mut().find(|other| other.name == row.name) {
            Some(other) => *other = row,
            None => all.push(row),
        }
    }
    fs::write(path, serde_json::to_string_pretty(&all)? + "\n")?;
    Ok(())
}

/// Draws the tables of `docs/blocks.md` and `docs/models.md` from the file; without one there is nothing to draw.
///
/// # Errors
/// When a page cannot be written, or has no place for a table.
pub fn draw() -> Result<(), Box<dyn Error>> {
    let Ok(text) = fs::read_to_string(report::target_folder().join(FILE_NAME)) else { return Ok(()) };
    let all: Vec<Row> = serde_json::from_str(&text)?;
    for part in ["blocks", "models"] {
        let rows: Vec<&Row> = all.iter().filter(|row| row.name.starts_with(part)).collect();
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/{part}.md"));
        let text = fs::read_to_string(&page)?;
        let marked = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
        let (before, after) = marked.ok_or_else(|| format!("docs/{part}.md has no marks to write between"))?;
        fs::write(&page, format!("{before}{BEGIN}\n{}\n{END}{after}", tables(&rows)))?;
    }
    Ok(())
}

/// A sentence that counts, and a table for each family.
fn tables(rows: &[&Row]) -> String {
    let mut text = summary(&rows.iter().map(|row| (*row).clone()).collect::<Vec<_>>()) + ".\n";
    let mut last = "";
    for row in rows {
        let (family, name) = row.short().split_once('/').unwrap_or(("", row.short()));
        if family != last {
            last = family;
            text += &format!(
                "\n### {family}\n\n| {} | ms | PyTorch | ratio | limit | share | first call | kernels |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
                if family == "models" { "model" } else { "block" }
            );
        }
        text += &format!("| `{name}` | {} |\n", row.cells().join(" | "));
    }
    text
}

fn milliseconds(seconds: f64) -> String {
    match seconds * 1e3 {
        time @ 100.0.. => format!("{time:.0}"),
        time @ 10.0.. => format!("{time:.1}"),
        time @ 1.0.. => format!("{time:.2}"),
        time => format!("{time:.3}"),
    }
}
