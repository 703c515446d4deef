//! NVIDIA's own assembler takes every kernel of the corpus as PTX, without a word of warning, without stack or spills, in as
//! many registers as a workgroup of its size may have.
//!
//! The assembler comes from PyPI, once, into the folder of tests; nothing of it is kept elsewhere. In CI a share of the cases
//! is assembled, on two chips; with `TINYSPEC_SHAPES=all` all of them, on four.

use crate::corpus;
use crate::recorded::{each, kernels};
use crate::recorder::Recorder;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tinyspec::Tensor;
use tinyspec::backends::gpu::ptxas::{Assembler, Assembling, Cubin};
use tinyspec::backends::llvm::LlvmCompiler;

const PACKAGE: Package = Package { name: "nvidia-cuda-nvcc-cu12==12.9.86", folder: "nvidia/cuda_nvcc/bin" };
/// Of the long mode, too.
const NEWER: Package = Package { name: "nvidia-cuda-nvcc==13.5.37", folder: "nvidia/cu13/bin" };

struct Package {
    name: &'static str,
    folder: &'static str,
}

/// Of so many cases one is assembled in CI.
const SHARE: usize = 8;
/// Chips of CI, and those of the long mode.
const CHIPS: [&str; 2] = ["sm_80", "sm_90"];
const MORE_CHIPS: [&str; 2] = ["sm_100", "sm_120"];
/// Registers of 32 bits that the threads of a workgroup have together.
const REGISTERS: usize = 65_536;

/// The assembler, fetched if it is not there yet.
fn assembler(package: &Package) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package.name.replace("==", "-"));
    let file = folder.join(package.folder).join("ptxas");
    if !file.exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"]);
        let output = pip.arg(&folder).arg(package.name).output().map_err(|error| format!("python3: {error}"))?;
        if !output.status.success() {
            return Err(format!("pip: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
    }
    if file.exists() { Ok(file) } else { Err(format!("{} has no {}", package.name, file.display())) }
}

/// What the assembler has against a kernel, or whether it had to be told to give it more registers.
fn assemble(assembler: &Assembler, chip: &str, ptx: &str) -> Result<bool, String> {
    let Cubin { report: said, is_roomy, .. } = assembler.assemble(chip, ptx.as_bytes())?;
    if said.to_lowercase().contains("warning") {
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
        (Some(registers), Some(threads)) if registers.next_multiple_of(8) * threads <= REGISTERS => Ok(is_roomy),
        (registers, threads) => Err(format!("{registers:?} registers for {threads:?} threads: {said}")),
    }
}

#[test]
fn the_assembler_takes_every_kernel() -> Result<(), Box<dyn std::error::Error>> {
    if corpus::read(&corpus::folder()).is_err() && std::env::var_os("TINYSPEC_CORPUS").is_none() {
        println!("skipped: no corpus");
        return Ok(());
    }
    let packages = [PACKAGE, NEWER].into_iter().take(if crate::takes_all_shapes() { 2 } else { 1 });
    let mut assemblers = Vec::new();
    for package in packages {
        match assembler(&package).and_then(Assembler::at) {
            Ok(assembler) => assemblers.push((package.name, assembler)),
            Err(error) => println!("skipped: no assembler of NVIDIA's: {error}"),
        }
    }
    if assemblers.is_empty() {
        return Ok(());
    }
    let mut refused = Vec::new();
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
        let all: Vec<(&Vec<u8>, &String)> = kernels.iter().collect();
        for (package, assembler) in &assemblers {
            let roomy = AtomicUsize::new(0);
            let failures = each(&all, |_, ptx, name| {
                let ptx = String::from_utf8_lossy(ptx);
                let assembled = assemble(assembler, chip, ptx.trim_end_matches('\0'));
                roomy.fetch_add(usize::from(assembled == Ok(true)), Ordering::Relaxed);
                assembled.map(drop).map_err(|reason| format!("{name}: {reason}\n{ptx}"))
            });
            let (count, roomy) = (all.len(), roomy.into_inner());
            println!("{package}, {chip}: {count} kernels, {} refused, {roomy} with more registers", failures.len());
            assert!(roomy <= 1 + count / 100, "{package}, {chip}: {roomy} of {count} kernels would have a stack");
            refused.extend(failures.into_iter().map(|reason| format!("{package}, {chip}: {reason}")));
        }
        assert!(all.len() > 50, "{chip}: of {} kernels", all.len());
    }
    assert!(refused.is_empty(), "{} refused\n{}", refused.len(), refused.join("\n"));
    Ok(())
}

/// A device of NVIDIA's gets what its assembler makes.
#[test]
fn kernels_become_cubins() -> Result<(), Box<dyn std::error::Error>> {
    let assembler = match assembler(&PACKAGE).and_then(Assembler::at) {
        Ok(assembler) => assembler,
        Err(error) => {
            println!("skipped: no assembler of NVIDIA's: {error}");
            return Ok(());
        }
    };
    if let Err(error) = LlvmCompiler::new() {
        println!("skipped: code for GPUs: {error}");
        return Ok(());
    }
    assert_eq!(assembler.version(), "12.9.86");
    assert!(assembler.assemble("sm_80", b".version 7.0\n.target sm_80\nfrob").is_err());
    for chip in ["sm_80", "sm_90a"] {
        let name = format!("cubins:{chip}");
        let compiler = Arc::new(Assembling::by(assembler.clone(), LlvmCompiler::new()?));
        let recorder = Recorder::register(&name, chip, compiler)?;
        let x = Tensor::from_slice(&[1f32; 64], [8, 8]).to(name.as_str());
        x.matmul(&x).softmax(-1).realize()?;
        let kernels = recorder.take();
        assert!(!kernels.is_empty());
        for (code, kernel) in kernels {
            const CUDA: [u8; 2] = [190, 0];
            assert!(code.starts_with(b"\x7fELF") && code[18..20] == CUDA, "{kernel} for {chip}");
            assert!(code.windows(6).any(|bytes| bytes == b".text."), "{kernel} for {chip}");
        }
    }
    Ok(())
}
