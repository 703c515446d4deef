//! `cargo bench -- check`: the limits beside those of an independent program, `limits/check.c`, measured by turns.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use tinyspec_benches::limits::{LARGE, Limit, Machine, Resource, Words};

/// Turns of each.
const TURNS: usize = 9;
/// Time of a turn.
const TURN: std::time::Duration = std::time::Duration::from_millis(60);

type Error = Box<dyn std::error::Error>;

/// Does the command line ask for it?
pub fn selected() -> bool {
    env::args().skip(1).any(|argument| argument == "check")
}

/// Compiles the program, and prints a line for each limit.
///
/// # Errors
/// When there is no C compiler, or the program fails.
pub fn run() -> Result<(), Error> {
    let program = compile()?;
    let mut machine = Machine::new();
    println!("{:<20}{:>10}{:>10}{:>10}", "limit", "benches", "check.c", "ratio");
    let sizes = [768 * 3072, 4096 * 1024, LARGE];
    let memory = sizes.into_iter().flat_map(|elements| [Resource::Copy(elements), Resource::Read(elements)]);
    let words = [Words::I16, Words::Bf16].into_iter().filter(|words| words.are_there()).map(Resource::Words);
    let arithmetic = [Resource::Fma, Resource::Exponentials].into_iter().chain(words);
    let mut resources: Vec<Resource> = arithmetic.chain(memory).collect();
    resources.push(Resource::Rows(4096));
    for threads in machine.thread_counts() {
        for &resource in &resources {
            let limit = Limit { resource, threads };
            let iterations = machine.iterations(limit, TURN);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                ours.push(limit.measure().value(machine.seconds(limit, iterations)));
                theirs.push(measured_by(&program, limit)?);
            }
            let (ours, theirs) = (median(ours), median(theirs));
            println!("{:<20}{ours:>10.1}{theirs:>10.1}{:>10.3}", limit.to_string(), ours / theirs);
        }
    }
    Ok(())
}

fn compile() -> Result<PathBuf, Error> {
    let folder = env::temp_dir().join(format!("tinyspec-check-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let (source, program) = (folder.join("check.c"), folder.join("check"));
    fs::write(&source, include_str!("limits/check.c"))?;
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let done = Command::new(compiler)
        .args(["-O3", "-march=native", "-pthread"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status()?;
    if done.success() { Ok(program) } else { Err("the C compiler refuses limits/check.c".into()) }
}

fn measured_by(program: &PathBuf, limit: Limit) -> Result<f64, Error> {
    let (name, elements) = match limit.resource {
        Resource::Fma => ("fma", 0),
        Resource::Words(words) => (words.name(), 0),
        Resource::Exponentials => ("exp", 0),
        Resource::Copy(elements) => ("copy", elements),
        Resource::Read(elements) => ("read", elements),
        Resource::Rows(rows) => ("rows", rows),
    };
    let output = Command::new(program).args([name, &elements.to_string(), &limit.threads.to_string()]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
