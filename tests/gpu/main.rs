//! `gpu-check`: tries a GPU and writes a report. `scripts/gpu-check` builds it and calls it.

use argh::FromArgs;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tinyspec::backends::Gpu;
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec_gpu_check::facts;
use tinyspec_gpu_check::programs::{Size, agree, digits};
use tinyspec_gpu_check::rates::{self, Limits, ROWS};
use tinyspec_gpu_check::recorder::Recorder;
use tinyspec_gpu_check::{Outcome, numbers};

/// Tries a GPU: facts that only a GPU shows, the conformance corpus, programs, rates.
#[derive(FromArgs)]
struct Options {
    /// the device: cuda, cuda:1, amd, …
    #[argh(option, default = "\"cuda\".into()")]
    device: String,
    /// the GPU is simulated: small programs, and rates that mean nothing
    #[argh(switch)]
    mock: bool,
    /// the folder of the corpus, the digits and the test program `conformance`, else the current one
    #[argh(option, default = "\".\".into()")]
    folder: PathBuf,
    /// where the report is written, beside the output
    #[argh(option)]
    report: Option<PathBuf>,
    /// only makes the code of the programs for a chip, such as sm_90a, for the cache
    #[argh(option)]
    compile: Option<String>,
    /// take all code from the cache, and skip checks that would have to compile
    #[argh(switch)]
    packed: bool,
    /// only prints the chips that code is made for
    #[argh(switch)]
    chips: bool,
    /// only the kernel that leaves its memory
    #[argh(switch)]
    fault: bool,
}

/// All of it takes no longer, with what comes last left out.
const TIME: Duration = Duration::from_secs(8 * 60);
/// The programs that are timed and nothing else have this at least.
const FOR_RATES: Duration = Duration::from_secs(90);

fn main() {
    let options: Options = argh::from_env();
    if options.chips {
        return Gpu::names().for_each(|chip| println!("{chip}"));
    }
    if let Some(chip) = &options.compile {
        if let Err(error) = compile(chip, &options.folder) {
            eprintln!("{chip}: {error}");
            std::process::exit(1);
        }
        return;
    }
    if options.fault {
        let outcome = tinyspec::device(&options.device).map_err(Into::into).and_then(|device| facts::fault(&device));
        match outcome {
            Ok(words) => return println!("{words}"),
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(1);
            }
        }
    }
    let file = options.report.as_deref().map(|path| {
        File::create(path).unwrap_or_else(|error| {
            eprintln!("{}: {error}", path.display());
            std::process::exit(1);
        })
    });
    let mut report = Report { start: Instant::now(), file, failed: 0 };
    if options.packed {
        let chips = std::env::var("TINYSPEC_GPU").unwrap_or_default();
        let script = if options.device.starts_with("amd") { "amd-check" } else { "gpu-check" };
        report.line(&format!(
            "A pack with code for {chips}; `scripts/{script} --pack FOLDER --chips …` makes one for others"
        ));
    }
    if let Err(error) = check(&options, &mut report) {
        report.wrong("the check ends early", &error.to_string());
    }
    let (seconds, failed) = (report.start.elapsed().as_secs(), report.failed);
    report.line(&format!("{failed} of what was tried failed; {seconds} s"));
    std::process::exit(i32::from(failed > 0));
}

/// Makes all code that a check of this chip needs, and the CPU's beside it; the cache keeps it.
fn compile(chip: &str, folder: &Path) -> Outcome {
    let name = format!("recorded:{chip}");
    Recorder::register(&name, chip, Arc::new(LlvmCompiler::new()?))?;
    ROWS.iter().try_for_each(|row| row.time(&name, rates::REAL).map(drop))?;
    rates::operations(tinyspec::device(&name)?.as_ref(), rates::REAL)?;
    // Nothing runs there, so nothing agrees, and no fact is one.
    if chip.starts_with("gfx") {
        let device = tinyspec::device(&name)?;
        facts::of(chip).iter().for_each(|fact| drop((fact.check)(&device)));
        let _ = facts::amd::fault(&device);
    }
    let _ = (agree(&name, Size::REAL, 64), numbers::threefry(&name), numbers::conversions(&name, |_, _| true));
    let _ = numbers::extremes(&name);
    let data = folder.join("digits.csv.gz");
    let _ = digits(&name, &data, 1);
    digits("cpu", &data, 1).map(drop)
}

struct Report {
    start: Instant,
    /// It has each line at once: a GPU may end this process, or never answer.
    file: Option<File>,
    failed: usize,
}

impl Report {
    fn line(&mut self, line: &str) {
        println!("{line}");
        if let Some(Err(error)) = self.file.as_mut().map(|file| writeln!(file, "{line}")) {
            self.file = None;
            eprintln!("the report is cut off here: {error}");
        }
    }

    fn wrong(&mut self, what: &str, why: &str) {
        self.failed += 1;
        self.line(&format!("FAILED  {what}: {why}"));
    }

    fn note<T>(&mut self, what: &str, outcome: Outcome<T>, show: impl FnOnce(T) -> String) {
        let start = self.start.elapsed().as_secs();
        match outcome {
            Ok(value) => {
                let words = show(value);
                self.line(&format!("ok      {what}{words}"));
            }
            Err(error) => self.wrong(what, &format!("{error} (after {start} s)")),
        }
    }

    fn has_time(&self, for_it: Duration) -> bool {
        self.start.elapsed() + for_it < TIME
    }
}

fn check(options: &Options, report: &mut Report) -> Outcome {
    let name = &options.device;
    let device = tinyspec::device(name)?;
    let chip = device.target().name.clone();
    report.line(&format!("# {name}: code for {chip}"));
    if options.mock {
        report.line("NO GPU: a mock of the driver, whose GPU is simulated. This shows nothing of a GPU, only that the check runs.");
    }

    report.line("\n## Facts that only a GPU shows");
    let capability = chip.strip_prefix("sm_").and_then(|chip| chip.trim_end_matches('a').parse::<u32>().ok());
    for fact in facts::of(&chip) {
        if capability.is_some_and(|capability| fact.least > capability) {
            report.line(&format!("-       {}: needs sm_{}", fact.claim, fact.least));
            continue;
        }
        match (fact.check)(&device) {
            // The simulator knows the instructions of today's kernels alone.
            Err(error) if options.mock && error.to_string().contains("not simulated") => {
                report.line(&format!("-       {}: not simulated", fact.claim));
            }
            outcome => report.note(fact.claim, outcome, |seen| format!(": {}", seen.replace('\n', " "))),
        }
    }
    let own = std::env::current_exe()?;
    let fault = output(Command::new(own).args(["--fault", "--device", name]), Duration::from_secs(60));
    let outcome = fault.and_then(|fault| {
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if fault.status.success() { Ok(said(&fault.stdout)) } else { Err(said(&fault.stderr).into()) }
    });
    report.note("a kernel that leaves its memory is named", outcome, |said| format!(": {}", said.trim()));
    programs(options, report, &device)
}

fn programs(options: &Options, report: &mut Report, device: &tinyspec::Device) -> Outcome {
    let name = &options.device;
    report.line("\n## The conformance corpus");
    conformance(options, report)?;
    report.note("random bits are the published ones", numbers::threefry(name), |()| String::new());
    let some = |from: tinyspec::DType, to: tinyspec::DType| !options.mock || from.size() == 1 && to.size() <= 2;
    report.note("small numbers are converted exactly", numbers::conversions(name, some), |()| String::new());

    report.note("the greatest and the least of whole numbers are right", numbers::extremes(name), |()| String::new());

    report.line("\n## Programs");
    let (size, steps, epochs) = if options.mock { (Size::SMALL, 6, 1) } else { (Size::REAL, 64, 10) };
    let agreed = agree(name, size, steps);
    report
        .note("a layer of MiniLM, a block of ResNet and decoding give what the CPU gives", agreed, |()| String::new());
    let data = options.folder.join("digits.csv.gz");
    let both = digits(name, &data, epochs).and_then(|there| Ok((there, digits("cpu", &data, epochs)?)));
    let both = both.and_then(|(there, here)| match (there - here).abs() <= 1.5 {
        true => Ok((there, here)),
        false => Err(format!("{there:.1} %, on the CPU {here:.1} %").into()),
    });
    report.note("digits are learned", both, |(there, here)| format!(": {there:.1} %, on the CPU {here:.1} %"));

    report.line("\n## Rates");
    if !report.has_time(FOR_RATES) {
        report.line("left out: no time is left");
        return Ok(());
    }
    let n = if options.mock { rates::SMALL } else { rates::REAL };
    let limits = Limits::of(device, n)?;
    if !options.mock {
        report.line(&format!("n = {n}; a copy by the driver {:.1} GB/s, read and written", limits.bytes / 1e9));
        let operations = limits.operations.map_or("unknown".into(), |of| format!("{:.3} TFLOP/s", of / 1e12));
        report.line(&format!("multiply and add in f32 {operations}"));
    }
    for row in ROWS {
        if !report.has_time(Duration::from_secs(20)) {
            report.line(&format!("left out: {}", row.name));
            continue;
        }
        let time = row.time(name, n);
        match options.mock {
            true => report.note(row.name, time, |_| ": it runs".into()),
            false => report.note("", time, |time| row.describe(time, n, &limits)),
        }
    }
    if !options.mock {
        report.line(&torch(n).unwrap_or_else(|| "torch is not there, or sees no GPU".into()));
    }
    Ok(())
}

/// Runs a process and returns its output. It is killed after a time, since a kernel on a GPU may never end.
fn output(command: &mut Command, most: Duration) -> Outcome<Output> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let read = |from: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            from.map_or(Ok(0), |mut from| from.read_to_end(&mut bytes)).map(|_| bytes)
        })
    };
    let stdout = read(child.stdout.take().map(|from| Box::new(from) as _));
    let stderr = read(child.stderr.take().map(|from| Box::new(from) as _));
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if start.elapsed() < most => std::thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill()?;
                return Err(format!("no answer in {} s", most.as_secs()).into());
            }
        }
    };
    let joined = |thread: JoinHandle<std::io::Result<Vec<u8>>>| thread.join().map_err(|_| "reading failed");
    Ok(Output { status, stdout: joined(stdout)??, stderr: joined(stderr)?? })
}

/// The corpus runs in a process of its own, which says what failed.
fn conformance(options: &Options, report: &mut Report) -> Outcome {
    let program = options.folder.join("conformance");
    if !program.exists() {
        report.line(&format!("left out: there is no {}", program.display()));
        return Ok(());
    }
    const SYMBOLIC: &str = "symbolic::the_symbolic_corpus_passes_on_every_device";
    for test in ["the_corpus_passes_on_every_device", SYMBOLIC] {
        if options.packed && test == SYMBOLIC {
            let cases = std::fs::read_to_string(options.folder.join("corpus/symbolic.jsonl"))
                .unwrap_or_default()
                .lines()
                .count();
            report.line(&format!(
                "-       {cases} symbolic cases: they are compiled as they run, and a pack has no code generator"
            ));
            continue;
        }
        let mut command = Command::new(&program);
        command.args(["--exact", test, "--nocapture"]).env("TINYSPEC_DEVICES", &options.device);
        command.env("TINYSPEC_CORPUS", options.folder.join("corpus"));
        // The device is a shape among others, of which usually a share runs.
        if !options.mock {
            command.env("TINYSPEC_SHAPES", "all");
        }
        let output = match output(&mut command, TIME.saturating_sub(report.start.elapsed() + FOR_RATES)) {
            Ok(output) => output,
            Err(error) => {
                report.wrong(test, &error.to_string());
                continue;
            }
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let of_device = |line: &&str| line.starts_with(options.device.as_str());
        let lines: Vec<&str> = text.lines().filter(of_device).collect();
        let last = lines.last().copied().unwrap_or(test).to_string();
        match output.status.success() {
            true => report.line(&format!("ok      {last}")),
            false => {
                lines.iter().take(20).for_each(|line| report.line(&format!("        {line}")));
                let end: String = String::from_utf8_lossy(&output.stderr).chars().rev().take(500).collect();
                report.wrong(&last, &end.chars().rev().collect::<String>());
            }
        }
    }
    Ok(())
}

/// The same programs by torch, where it is installed.
fn torch(n: i64) -> Option<String> {
    const SCRIPT: &str = r#"
import sys, time, torch
n = int(sys.argv[1]); d = "cuda"; assert torch.cuda.is_available()
def rows():
    x = torch.rand(n, n, device=d) - 0.5
    yield "add one", lambda: x + 1
    yield "sum of rows", lambda: x.sum(1)
    yield "softmax of rows", lambda: x.softmax(-1)
    for t in (torch.float32, torch.bfloat16):
        a, b = (torch.rand(n // 2, n // 2, device=d).sub(0.5).to(t) for _ in range(2))
        yield f"product {t}", lambda: a @ b
    q, k, v = (torch.rand(8, n // 4, 64, device=d) for _ in range(3))
    yield "attention f32", lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
print("torch", torch.__version__, "tf32", torch.backends.cuda.matmul.allow_tf32)
for name, run in rows():
    best = 1e9
    for _ in range(4):
        torch.cuda.synchronize(); start = time.perf_counter()
        for _ in range(10): run()
        torch.cuda.synchronize(); best = min(best, (time.perf_counter() - start) / 10)
    print(f"        {name:32} {best * 1e6:10.1f} µs")
"#;
    let output = output(Command::new("python3").args(["-c", SCRIPT, &n.to_string()]), Duration::from_secs(60)).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_string())
}
