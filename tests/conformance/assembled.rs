//! NVIDIA's own assembler takes every kernel of the corpus as PTX, without a word of warning, without stack or spills, in as
//! many registers as a workgroup of its size may have.
//!
//! The assembler comes from PyPI, once, into the folder of tests; nothing of it is kept elsewhere. In CI a share of the cases
//! is assembled, on two chips; with `TINYSPEC_SHAPES=all` all of them, on four.

use crate::{corpus, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::backends::{BackendError, Gpu, Launch, Program, Runtime};
use tinyspec::{realize_all, with_default_device};

const PACKAGE: &str = "nvidia-cuda-nvcc-cu12==12.9.86";
/// Of so many cases one is assembled in CI.
const SHARE: usize = 8;
/// Chips of CI, and those of the long mode.
const CHIPS: [&str; 2] = ["sm_80", "sm_90"];
const MORE_CHIPS: [&str; 2] = ["sm_100", "sm_120"];
/// Registers of 32 bits that the threads of a workgroup have together.
const REGISTERS: usize = 65_536;

/// Remembers code, and runs nothing.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<BTreeMap<String, String>>>);

struct Recorded;

impl Program for Recorded {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

// SAFETY: memory is the trait's own, and nothing accesses it.
unsafe impl Runtime for Recorder {
    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        let text = String::from_utf8_lossy(code).trim_end_matches('\0').to_string();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(text, name.into());
        Ok(Arc::new(Recorded))
    }

    unsafe fn enqueue(&self, _: &[Launch], _: &[*mut u8]) -> Result<(), BackendError> {
        Ok(())
    }
}

/// The assembler, fetched if it is not there yet.
fn assembler() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace("==", "-"));
    let file = folder.join("nvidia/cuda_nvcc/bin/ptxas");
    if !file.exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"]);
        let output = pip.arg(&folder).arg(PACKAGE).output().map_err(|error| format!("python3: {error}"))?;
        if !output.status.success() {
            return Err(format!("pip: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
    }
    if file.exists() { Ok(file) } else { Err(format!("{PACKAGE} has no {}", file.display())) }
}

/// The distinct kernels of the corpus's cases that are taken.
fn kernels(
    chip: &str,
    is_taken: impl Fn(usize) -> bool,
) -> Result<BTreeMap<String, String>, Box<dyn std::error::Error>> {
    let (name, recorder) = (format!("assembled:{chip}"), Recorder::default());
    let target = Gpu::named(chip)?.target();
    tinyspec::register(&name, target, Arc::new(LlvmCompiler::new()?), Arc::new(recorder.clone()));
    let cases = corpus::read(&corpus::folder())?;
    for (_, case) in cases.iter().enumerate().filter(|(number, case)| is_taken(*number) && case.op != "promote") {
        // What is read is zeros: whatever a case makes of them, its kernels are made.
        let _ = with_default_device::<(), tinyspec::Error>(&name, || {
            let inputs = case.inputs.iter().map(|input| run::tensor(input, &name)).collect::<Result<Vec<_>, _>>();
            if let Ok(inputs) = inputs
                && let Ok(mut all) = run::outputs(case, &inputs)
            {
                let gradients = run::gradients(case, &name, &inputs, &all);
                all.extend(gradients.unwrap_or_default());
                let _ = realize_all(&all.iter().collect::<Vec<_>>());
            }
            Ok(())
        });
    }
    Ok(std::mem::take(&mut *recorder.0.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// What the assembler has against a kernel.
fn assemble(assembler: &Path, chip: &str, file: &Path, ptx: &str) -> Result<(), String> {
    std::fs::write(file, ptx).map_err(|error| error.to_string())?;
    let mut command = Command::new(assembler);
    command.args(["-v", "--warn-on-spills", "--warn-on-local-memory-usage", "-o", "/dev/null"]);
    let output = command.arg(format!("-arch={chip}")).arg(file).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || said.to_lowercase().contains("warning") {
        return Err(said);
    }
    let before = |word: &str| {
        let (text, _) = said.split_once(word)?;
        text.split_whitespace().last()?.parse::<usize>().ok()
    };
    let memory = [" bytes stack frame", " bytes spill stores", " bytes spill loads"].map(before);
    if memory != [Some(0); 3] {
        return Err(format!("it has a stack or spills: {said}"));
    }
    let threads = ptx.split_once(".reqntid").and_then(|(_, rest)| rest.lines().next());
    let threads =
        threads.map(|sizes| sizes.split(',').filter_map(|size| size.trim().parse::<usize>().ok()).product::<usize>());
    match (before(" registers"), threads) {
        (Some(registers), Some(threads)) if registers.next_multiple_of(8) * threads <= REGISTERS => Ok(()),
        (registers, threads) => Err(format!("{registers:?} registers for {threads:?} threads: {said}")),
    }
}

#[test]
fn the_assembler_takes_every_kernel() -> Result<(), Box<dyn std::error::Error>> {
    if corpus::read(&corpus::folder()).is_err() && std::env::var_os("TINYSPEC_CORPUS").is_none() {
        println!("skipped: no corpus");
        return Ok(());
    }
    let assembler = match assembler() {
        Ok(assembler) => assembler,
        Err(error) => {
            println!("skipped: no assembler of NVIDIA's: {error}");
            return Ok(());
        }
    };
    let takes_all = crate::takes_all_shapes();
    let chips = CHIPS.into_iter().chain(MORE_CHIPS.into_iter().filter(|_| takes_all));
    for (turn, chip) in chips.enumerate() {
        let kernels = match kernels(chip, |number| takes_all || number % SHARE == turn) {
            Ok(kernels) => kernels,
            Err(error) => {
                println!("skipped: code for GPUs: {error}");
                return Ok(());
            }
        };
        let (all, next, failures) = (kernels.iter().collect::<Vec<_>>(), AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for worker in 0..tinyspec::threads().unwrap_or(1) {
                let (all, next, failures, assembler) = (&all, &next, &failures, &assembler);
                scope.spawn(move || {
                    let name = format!("assembled-{chip}-{worker}-{}.ptx", std::process::id());
                    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
                    while let Some((ptx, name)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(reason) = assemble(assembler, chip, &file, ptx) {
                            failures
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .push(format!("{name}: {reason}\n{ptx}"));
                        }
                    }
                    let _ = std::fs::remove_file(&file);
                });
            }
        });
        let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!("{chip}: {} kernels, {} refused", all.len(), failures.len());
        assert!(failures.is_empty(), "{chip}: {}\n{}", failures.len(), failures[0]);
        assert!(all.len() > 50, "{chip}: of {} kernels", all.len());
    }
    Ok(())
}
