//! Known schedules, in memory and in one file. It has a line per kernel, so that it can be read, merged and shipped.
//!
//! ```text
//! # tinyspec schedules 2
//! <kernel> TAB <name> TAB <seconds searched>[ done] TAB <ns of the heuristics> TAB <ns> <op>; <op>; … TAB <ns> <op>; …
//! ```
//!
//! A damaged line, such as the last one of a process that was stopped, affects its own kernel only, and gives one
//! warning. A file that begins with anything else is not ours, and is neither read nor written.

use super::beam::Found;
use crate::lower::optimize::{OptOp, Scheduler};
use crate::{Error, Result, cache};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::{self, File};
use std::hash::Hash;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tinyspec_backends::{Target, settings};
use tinyspec_ir::{ContentHash, ContentHasher, ErrorKind};

const HEADER: &str = "# tinyspec schedules 2";

/// The key of a schedule: a kernel, on processors that lowering does not distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(u128);

impl Key {
    pub fn of(scheduler: &Scheduler) -> Key {
        let (graph, target) = (scheduler.graph(), scheduler.target());
        let mut hasher = ContentHasher::default();
        graph.content_hash(&[scheduler.kernel().sink]).hash(&mut hasher);
        // Everything that schedules depend on, which excludes the number of threads, beyond one or several, and the
        // machine that found them.
        let threads = target.threads.min(2);
        let shape = Target { fingerprint: String::new(), isa: None, threads, ..target.clone() };
        (target.isa.as_ref().map(|isa| isa.architecture), shape).hash(&mut hasher);
        let ContentHash(key) = hasher.content_hash();
        Key(key)
    }
}

/// The state of the search for a kernel.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Record {
    pub name: String,
    /// Time searched so far.
    pub searched: Duration,
    /// Whether the search is finished.
    pub is_done: bool,
    /// Nanoseconds with the schedule of the heuristics.
    pub heuristics: f64,
    /// The best schedules, best first.
    pub beam: Vec<Found>,
}

type Records = FxHashMap<Key, Record>;

fn records() -> Result<&'static Mutex<Records>> {
    static RECORDS: OnceLock<std::result::Result<Mutex<Records>, Error>> = OnceLock::new();
    let read = || {
        let Some(file) = file() else { return Ok(Mutex::default()) };
        match fs::read_to_string(&file) {
            Ok(text) if text.is_empty() => Ok(Mutex::default()),
            Ok(text) => {
                let file = file.display().to_string();
                let (records, damaged) = parse(&text).map_err(|message| wrong(&file, &message))?;
                if let Some(first) = damaged.first() {
                    let count = damaged.len();
                    tinyspec_backends::tell!(
                        "tinyspec: {file}: {first}; lines left out: {count}, whose kernels have no schedule here"
                    );
                }
                Ok(Mutex::new(records))
            }
            // The first search creates it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Mutex::default()),
            Err(error) => Err(unusable(&file, &error)),
        }
    };
    RECORDS.get_or_init(read).as_ref().map_err(Error::clone)
}

fn wrong(file: &str, message: &str) -> Error {
    let error = tinyspec_ir::Error::new(ErrorKind::Value, "schedules", format!("{file}: {message}"));
    Error::Graph(error.help("remove the file, or the line, and search again with TINYSPEC_BEAM"))
}

/// The error for a file that can be neither read nor written.
fn unusable(file: &Path, error: &std::io::Error) -> Error {
    let (reason, help) = match file.is_dir() {
        true => {
            let inside = file.join("schedules");
            ("it is a folder".to_string(), format!("name a file, as in TINYSPEC_SCHEDULES={}", inside.display()))
        }
        false => (error.to_string(), "name a file in TINYSPEC_SCHEDULES that can be read and written".to_string()),
    };
    let error = tinyspec_ir::Error::new(ErrorKind::Value, "schedules", format!("{}: {reason}", file.display()));
    Error::Graph(error.help(help))
}

/// `TINYSPEC_SCHEDULES`, or else a file in the cache folder if searches are enabled.
fn file() -> Option<PathBuf> {
    match settings::path("TINYSPEC_SCHEDULES") {
        Some(file) => Some(file),
        None => super::is_asked_for().then(|| Some(cache::folder()?.join("schedules")))?,
    }
}

/// Whether there may be any schedules.
pub(super) fn is_used() -> Result<bool> {
    Ok(!records()?.lock().unwrap_or_else(PoisonError::into_inner).is_empty())
}

pub(super) fn find(key: Key) -> Result<Option<Record>> {
    Ok(records()?.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned())
}

/// Warns once that the known schedule of a kernel does not fit it.
pub(super) fn warn_of_misfit(key: Key, name: &str, error: &tinyspec_ir::Error) {
    static SEEN: OnceLock<Mutex<FxHashSet<Key>>> = OnceLock::new();
    if SEEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
        tinyspec_backends::tell!(
            "tinyspec: warning: the known schedule of kernel {name} does not fit it and is not used: {error}"
        );
    }
}

/// Opens the file for appending; creates its folder if necessary.
fn opened(file: &Path) -> std::io::Result<File> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::OpenOptions::new().create(true).read(true).append(true).open(file)
}

/// Whether what a search finds can be kept.
pub(super) fn check_writing() -> Result<()> {
    let Some(file) = file() else { return Ok(()) };
    opened(&file).map(drop).map_err(|error| unusable(&file, &error))
}

/// Appends the result of a search; the last line of a kernel counts.
pub(super) fn keep(key: Key, record: &Record) -> Result<()> {
    records()?.lock().unwrap_or_else(PoisonError::into_inner).insert(key, record.clone());
    let Some(file) = file() else { return Ok(()) };
    let write = || {
        let mut out = opened(&file)?;
        let before = match out.metadata()?.len() {
            0 => format!("{HEADER}\n"),
            _ => {
                let mut last = [0];
                out.seek(SeekFrom::End(-1))?;
                out.read_exact(&mut last)?;
                // The last line was truncated.
                if last == *b"\n" { String::new() } else { "\n".into() }
            }
        };
        // One write, so that lines of several processes do not mix.
        out.write_all(format!("{before}{}\n", line(key, record)).as_bytes())
    };
    write().map_err(|error| unusable(&file, &error))
}

/// Adds schedules that an earlier search has written, such as those that a program ships with
/// (`include_str!("schedules")`). They apply to kernels compiled from now on, on processors with the same vectors.
///
/// ```
/// # fn main() -> Result<(), tinyspec_core::Error> {
/// assert_eq!(tinyspec_core::search::add_schedules("# tinyspec schedules 2\n")?, 0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the text is not such a file; the error names the line.
pub fn add_schedules(text: &str) -> Result<usize> {
    let (new, damaged) = parse(text).map_err(|message| wrong("the schedules given", &message))?;
    if let Some(message) = damaged.first() {
        return Err(wrong("the schedules given", message));
    }
    let count = new.len();
    let mut records = records()?.lock().unwrap_or_else(PoisonError::into_inner);
    for (key, record) in new {
        records.entry(key).or_insert(record);
    }
    Ok(count)
}

fn line(key: Key, record: &Record) -> String {
    let done = if record.is_done { " done" } else { "" };
    let mut line = format!(
        "{:032x}\t{}\t{:.3}{done}\t{:.0}",
        key.0,
        record.name,
        record.searched.as_secs_f64(),
        record.heuristics
    );
    for found in &record.beam {
        let ops: Vec<String> = found.ops.iter().map(OptOp::to_string).collect();
        line += &format!("\t{:.0} {}", found.nanoseconds, ops.join("; "));
    }
    line
}

/// The records of the lines, and what is wrong with damaged ones.
fn parse(text: &str) -> std::result::Result<(Records, Vec<String>), String> {
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, line)| line) != Some(HEADER) {
        return Err(format!("line 1 is not `{HEADER}`"));
    }
    let (mut records, mut damaged) = (Records::default(), Vec::new());
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        match parse_line(line) {
            Ok((key, record)) => drop(records.insert(key, record)),
            Err(message) => damaged.push(format!("line {}: {message}", number + 1)),
        }
    }
    Ok((records, damaged))
}

fn parse_line(line: &str) -> std::result::Result<(Key, Record), String> {
    let mut fields = line.split('\t');
    let mut field = |what: &str| fields.next().ok_or(format!("{what} is missing"));
    let key = field("the kernel")?;
    let key = u128::from_str_radix(key, 16).map_err(|_| format!("`{key}` is not the number of a kernel"))?;
    let name = field("the name")?.to_string();
    let searched = field("the time searched")?;
    let (seconds, is_done) = searched.strip_suffix(" done").map_or((searched, false), |seconds| (seconds, true));
    let time = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0);
        number.ok_or(format!("`{text}` is not a time"))
    };
    let searched = Duration::try_from_secs_f64(time(seconds)?).map_err(|error| error.to_string())?;
    let heuristics = time(field("the time of the heuristics")?)?;
    let found = |text: &str| {
        let (nanoseconds, ops) = text.split_once(' ').unwrap_or((text, ""));
        let ops = ops.split("; ").filter(|op| !op.is_empty());
        let ops = ops.map(|op| op.parse().map_err(|error: tinyspec_ir::Error| error.to_string()));
        Ok(Found { nanoseconds: time(nanoseconds)?, ops: ops.collect::<std::result::Result<_, String>>()? })
    };
    let beam = fields.map(found).collect::<std::result::Result<_, String>>()?;
    Ok((Key(key), Record { name, searched, is_done, heuristics, beam }))
}
