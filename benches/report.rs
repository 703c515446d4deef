//! The rows of a run: one table to read, the same as JSON to compare.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Serialize;

/// The file of a run, in cargo's target folder.
pub const FILE_NAME: &str = "tinyspec-bench.json";

/// What one iteration of a benchmark does, and so the unit it is judged in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// So many floating-point operations.
    Flops(f64),
    /// So many bytes read and written.
    Bytes(f64),
    /// So many results of a function.
    Elements(f64),
    /// So many things whose own time counts.
    Times(f64),
}

impl Measure {
    /// The unit of [`Measure::value`].
    pub fn unit(self) -> &'static str {
        match self {
            Self::Flops(_) => "GFLOP/s",
            Self::Bytes(_) => "GB/s",
            Self::Elements(_) => "G/s",
            Self::Times(_) => "µs",
        }
    }

    /// How much of it an iteration does.
    pub fn amount(self) -> f64 {
        let (Self::Flops(amount) | Self::Bytes(amount) | Self::Elements(amount) | Self::Times(amount)) = self;
        amount
    }

    /// What an iteration of so many seconds comes to.
    pub fn value(self, seconds: f64) -> f64 {
        match self {
            Self::Flops(amount) | Self::Bytes(amount) | Self::Elements(amount) => amount / seconds / 1e9,
            Self::Times(count) => seconds / count * 1e6,
        }
    }
}

/// The outcome of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Family, dtype, size and threads: `gemm/f32/1024/1t`.
    pub name: String,
    /// The median over the samples.
    pub median: f64,
    /// The unit of `median`, `limit` and `peer`.
    pub unit: &'static str,
    /// What the machine can do at most, measured in the same run; none where only a time counts.
    pub limit: Option<f64>,
    /// The median as a share of the limit.
    pub share: Option<f64>,
    /// The median of another library that does the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<f64>,
}

impl Row {
    /// A row that stands alone.
    pub fn new(name: &str, measure: Measure, median: f64) -> Self {
        Self { name: name.to_owned(), median, unit: measure.unit(), limit: None, share: None, peer: None }
    }

    /// The same beside its limit.
    pub fn with_limit(self, limit: f64) -> Self {
        Self { limit: Some(limit), share: Some(self.median / limit), ..self }
    }

    /// The same beside another library.
    pub fn with_peer(self, peer: f64) -> Self {
        Self { peer: Some(peer), ..self }
    }

    fn cells(&self) -> [String; 6] {
        let number = |value: Option<f64>| value.map_or(String::from("–"), |value| format!("{value:.1}"));
        [
            self.name.clone(),
            number(Some(self.median)),
            self.unit.to_owned(),
            number(self.limit),
            self.share.map_or(String::from("–"), |share| format!("{:.1} %", share * 100.0)),
            number(self.peer),
        ]
    }
}

const HEADINGS: [&str; 6] = ["name", "median", "unit", "limit", "share", "peer"];
/// Numbers align on the right, words on the left.
const LEFT: [bool; 6] = [true, false, true, false, false, false];

/// The rows as one aligned table, a line each.
pub fn table(rows: &[Row]) -> String {
    let headings = HEADINGS.map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(headings).chain(rows.iter().map(Row::cells)).collect();
    let mut widths = [0; 6];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
            .zip(LEFT)
            .map(|((cell, width), left)| if left { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
        if index == 0 {
            text.push_str(&widths.map(|width| "─".repeat(width)).join("──"));
            text.push('\n');
        }
    }
    text
}

/// The rows as a JSON array, an object each.
pub fn json(rows: &[Row]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(rows).map(|text| text + "\n")
}

/// Prints the table and writes the JSON to cargo's target folder; returns where.
pub fn publish(rows: &[Row]) -> io::Result<PathBuf> {
    let folder = target_folder();
    fs::create_dir_all(&folder)?;
    let path = folder.join(FILE_NAME);
    fs::write(&path, json(rows)?)?;
    let mut out = io::stdout().lock();
    write!(out, "\n{}", table(rows))?;
    out.flush()?;
    Ok(path)
}

/// Cargo's target folder: of the environment, else the one this program lies in, else the workspace's own.
pub fn target_folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if let Some(folder) = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
        // Cargo runs a benchmark in its package's folder, but reads a relative path in the workspace's.
        return workspace.join(folder);
    }
    let program = env::current_exe().unwrap_or_default();
    // Cargo marks the folder with this file, wherever a configuration has put it.
    let marked = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    marked.map_or(workspace.join("target"), Path::to_path_buf)
}
