//! `cargo bench -- figures`: the rows of the last run as tables in `docs/performance.md`; of several runs, if their files are
//! named: `cargo bench -- figures one.json two.json`. Those of blocks and models go to pages of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;
use tinyspec_benches::report;

const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- end of figures -->";

/// Does the command line ask for it?
pub fn selected() -> bool {
    env::args().skip(1).any(|argument| argument == "figures")
}

/// A row of a report.
struct Figure {
    median: f64,
    unit: String,
    limit: Option<f64>,
    peer: Option<f64>,
}

/// The rows with a limit of their own, in the order of the runs, by name without threads; and by threads.
#[derive(Default)]
struct Figures {
    names: Vec<String>,
    rows: BTreeMap<(String, usize), Figure>,
    threads: BTreeSet<usize>,
}

/// Writes the tables.
///
/// # Errors
/// When a report cannot be read, or the page has no place for them.
pub fn run() -> Result<(), Box<dyn Error>> {
    crate::blocks::rows::draw()?;
    let mut files: Vec<PathBuf> =
        env::args().skip(1).filter(|name| name.ends_with(".json")).map(PathBuf::from).collect();
    if files.is_empty() {
        files.push(report::target_folder().join(report::FILE_NAME));
    }
    let mut figures = Figures::default();
    for file in files {
        figures.add(&fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?)?;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
    let text = fs::read_to_string(&page)?;
    let marked = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = marked.ok_or("docs/performance.md has no marks to write between")?;
    fs::write(&page, format!("{before}{BEGIN}{}{END}{after}", figures.tables()?))?;
    Ok(())
}

impl Figures {
    fn add(&mut self, report: &str) -> Result<(), Box<dyn Error>> {
        let rows: Vec<Value> = serde_json::from_str(report)?;
        for row in &rows {
            let number = |key: &str| row.get(key).and_then(Value::as_f64);
            let text = |key: &str| row.get(key).and_then(Value::as_str);
            let (Some(name), Some(unit), Some(median)) = (text("name"), text("unit"), number("median")) else {
                continue;
            };
            let threads = name.rsplit_once('/').and_then(|(name, threads)| Some((name, threads.strip_suffix('t')?)));
            let Some((name, threads)) = threads else { continue };
            let Ok(threads) = threads.parse() else { continue };
            if !self.names.iter().any(|other| other == name) {
                self.names.push(name.into());
            }
            self.threads.insert(threads);
            let figure = Figure { median, unit: unit.into(), limit: number("limit"), peer: number("peer") };
            self.rows.insert((name.into(), threads), figure);
        }
        Ok(())
    }

    fn tables(&self) -> Result<String, std::fmt::Error> {
        let is_limit = |name: &str| name.starts_with("limit/");
        let is_bound_by = |name: &str, products: bool| {
            let is_product = ["gemm/", "conv", "attention/"].iter().any(|family| name.starts_with(family));
            !is_limit(name) && is_product == products
        };
        let mut text = String::new();
        let shares = |figure: &Figure| {
            let share = figure.limit.map_or("–".into(), |limit| format!("{:.0} %", 100.0 * figure.median / limit));
            vec![digits(figure.median), share]
        };
        self.table(&mut text, "What memory bounds", "of the limit", &|name| is_bound_by(name, false), &shares)?;
        self.table(&mut text, "What multiply-adds bound", "of the limit", &|name| is_bound_by(name, true), &shares)?;
        let peers = |figure: &Figure| {
            let [peer, ratio] = figure
                .peer
                .map_or(["–".into(), "–".into()], |peer| [digits(peer), format!("{:.2}", figure.median / peer)]);
            vec![peer, ratio]
        };
        let has_peer = |name: &str| self.rows.iter().any(|((row, _), figure)| row == name && figure.peer.is_some());
        self.table(&mut text, "The crate `gemm`", "we beside it", &has_peer, &peers)?;
        let limits = |figure: &Figure| vec![digits(figure.median)];
        self.table(&mut text, "The limits themselves", "", &is_limit, &limits)?;
        writeln!(text)?;
        Ok(text)
    }

    /// A table of some rows; a thread count has as many columns as `cells` gives, the second under `heading`.
    fn table(
        &self,
        text: &mut String,
        title: &str,
        heading: &str,
        holds: &dyn Fn(&str) -> bool,
        cells: &dyn Fn(&Figure) -> Vec<String>,
    ) -> std::fmt::Result {
        let second = if heading.is_empty() { String::new() } else { format!(" {heading} |") };
        let plural = |threads: usize| if threads == 1 { "" } else { "s" };
        let heads = self.threads.iter().map(|&threads| format!(" {threads} thread{} |{second}", plural(threads)));
        let heads: String = heads.collect();
        writeln!(
            text,
            "\n### {title}\n\n| row | unit |{heads}\n|---|---|{}",
            "---:|".repeat(heads.matches('|').count())
        )?;
        for name in self.names.iter().filter(|name| holds(name)) {
            let of = |threads: &usize| self.rows.get(&(name.clone(), *threads));
            let Some(unit) = self.threads.iter().find_map(of).map(|figure| &figure.unit) else { continue };
            write!(text, "| `{}` | {unit} |", name.trim_start_matches("limit/"))?;
            for threads in &self.threads {
                let columns = heads.matches('|').count() / self.threads.len();
                let cells = of(threads).map_or(vec![String::from("–"); columns], cells);
                write!(text, " {} |", cells.join(" | "))?;
            }
            writeln!(text)?;
        }
        Ok(())
    }
}

/// Three digits.
fn digits(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
