//! `cargo bench -- check`: the limits beside those of an independent program, `limits/check.c`, measured by turns.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs};

use tinyspec_benches::limits::{LARGE, Limit, Machine, Resource, Words};

/// Rounds, each with memory of its own: where in the machine it lies changes what it gives by a tenth.
const ROUNDS: usize = 15;
/// Turns of each in a round.
const TURNS: usize = 3;
/// Time of a turn: short, so that both meet the same neighbours.
const TURN: std::time::Duration = std::time::Duration::from_millis(10);

type Error = Box<dyn std::error::Error>;

/// Does the command line ask for it? Words beside `check` choose limits that hold one of them.
pub fn selected() -> bool {
    env::args().skip(1).any(|argument| argument == "check")
}

/// Compiles the program, and prints a line for each limit.
///
/// # Errors
/// When there is no C compiler, or the program fails.
pub fn run() -> Result<(), Error> {
    let sizes = [768 * 3072, 4096 * 1024, LARGE];
    let memory = sizes.into_iter().flat_map(|elements| [Resource::Copy(elements), Resource::Read(elements)]);
    let words = [Words::Bytes, Words::Bf16].into_iter().filter(|words| words.are_there()).map(Resource::Words);
    let arithmetic = [Resource::Fma, Resource::Exponentials].into_iter().chain(words);
    let resources: Vec<Resource> = arithmetic.chain(memory).chain([Resource::Rows(4096)]).collect();
    let chosen: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-') && word != "check").collect();
    let is_chosen = |limit: &Limit| {
        let name = limit.to_string();
        chosen.is_empty() || chosen.iter().any(|word| name.contains(word.as_str()))
    };
    let compiled = compile()?;
    let mut rates: BTreeMap<Limit, [Vec<f64>; 2]> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for threads in Machine::new().thread_counts() {
            let _core = Core::keep(threads);
            let (mut machine, mut program) = (Machine::new(), Program::start(&compiled)?);
            for limit in resources.iter().map(|&resource| Limit { resource, threads }).filter(is_chosen) {
                let iterations = machine.iterations(limit, TURN);
                let [ours, theirs] = rates.entry(limit).or_default();
                for _ in 0..TURNS {
                    ours.push(limit.measure().value(machine.seconds(limit, iterations)));
                    theirs.push(program.rate(limit, iterations)?);
                }
            }
        }
    }
    println!("{:<20}{:>10}{:>10}{:>10}", "limit", "benches", "check.c", "ratio");
    for (limit, [ours, theirs]) in rates {
        let (ours, theirs) = (median(ours), median(theirs));
        println!("{:<20}{ours:>10.1}{theirs:>10.1}{:>10.3}", limit.to_string(), ours / theirs);
    }
    Ok(())
}

/// One thread is measured on one core, in this process and in those it starts: not every core is equally far from memory.
struct Core(#[cfg(target_os = "linux")] libc::cpu_set_t);

#[cfg(target_os = "linux")]
impl Core {
    /// Stays on this core until it is dropped, if there is just one thread.
    fn keep(threads: usize) -> Option<Self> {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: a set is plain bits; the calls read or write so many bytes of the set that they are given.
        unsafe {
            let (mut all, mut one): (libc::cpu_set_t, libc::cpu_set_t) = (std::mem::zeroed(), std::mem::zeroed());
            let core = usize::try_from(libc::sched_getcpu()).ok().filter(|_| threads == 1)?;
            libc::CPU_SET(core, &mut one);
            let kept = libc::sched_getaffinity(0, size, &mut all) == 0 && libc::sched_setaffinity(0, size, &one) == 0;
            kept.then_some(Self(all))
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &self.0) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Core {
    fn keep(_: usize) -> Option<Self> {
        None
    }
}

/// The compiled program, which answers a line with a line: both keep their arrays from turn to turn.
struct Program {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Program {
    fn start(compiled: &Path) -> Result<Self, Error> {
        let mut child = Command::new(compiled).arg("answer").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("limits/check.c has no input or output".into());
        };
        Ok(Self { child, questions, answers: BufReader::new(answers) })
    }

    fn rate(&mut self, limit: Limit, iterations: u64) -> Result<f64, Error> {
        let (name, elements) = match limit.resource {
            Resource::Fma => ("fma", 0),
            Resource::Words(words) => (words.name(), 0),
            Resource::Exponentials => ("exp", 0),
            Resource::Copy(elements) => ("copy", elements),
            Resource::Read(elements) => ("read", elements),
            Resource::Rows(rows) => ("rows", rows),
        };
        writeln!(self.questions, "{name} {elements} {} {iterations}", limit.threads)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer.trim().parse()?)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It ends by itself with its input; by then there is nobody to tell of a failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
