//! Devices that interpret what is lowered for another machine, and also generate that machine's code for each kernel. GPU code must
//! use explicit address spaces for all accesses, must not use a stack, and must declare the kernel's launch bounds.

use std::sync::Arc;
use tinyspec::backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec::backends::interpreter::simt::{SimtCompiler, SimtRuntime};
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::backends::{BackendError, Compiler, Gpu, LinearKernel, Processor, Runtime, Target};

/// The names of these devices; behind the `/` stands the processor.
pub const RENDERED: [&str; 5] =
    ["rendered/sm_80", "rendered/gfx942", "rendered/gfx1100", "rendered/x86-64-v4", "rendered/neoverse-v2"];

/// Adds them.
pub fn register() -> Result<(), Box<dyn std::error::Error>> {
    for name in RENDERED {
        let processor = name.trim_start_matches("rendered/");
        match Processor::named(processor) {
            Ok(processor) => {
                let compiler = Rendering { llvm: LlvmCompiler::new()?, interpreter: Arc::new(InterpreterCompiler) };
                tinyspec::register(name, processor.target(2), Arc::new(compiler), Arc::new(InterpreterRuntime));
            }
            Err(_) => device(name, processor, Arc::new(SimtRuntime))?,
        }
    }
    Ok(())
}

/// Adds a device that looks through the code of a GPU, whatever runs its kernels.
pub fn device(name: &str, gpu: &str, runtime: Arc<dyn Runtime>) -> Result<(), Box<dyn std::error::Error>> {
    let compiler = Rendering { llvm: LlvmCompiler::new()?, interpreter: Arc::new(SimtCompiler) };
    tinyspec::register(name, Gpu::named(gpu)?.target(), Arc::new(compiler), runtime);
    Ok(())
}

struct Rendering {
    llvm: LlvmCompiler,
    interpreter: Arc<dyn Compiler>,
}

// SAFETY: what runs is the kernel itself, encoded.
unsafe impl Compiler for Rendering {
    fn fingerprint(&self) -> String {
        format!("rendered, {}", self.interpreter.fingerprint())
    }

    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        let assembly = self.llvm.assembly(kernel, target)?;
        check(&assembly, kernel, target).map_err(|reason| {
            BackendError::Compile(format!("the code of `{}` for {}: {reason}\n{assembly}", kernel.name, target.name))
        })?;
        self.interpreter.compile(kernel, target)
    }

    fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.llvm.source(kernel, target)
    }

    fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.llvm.assembly(kernel, target)
    }
}

fn check(assembly: &str, kernel: &LinearKernel, target: &Target) -> Result<(), String> {
    match &target.name {
        name if name.starts_with("sm_") => check_ptx(assembly, kernel),
        name if name.starts_with("gfx") => check_amd(assembly, kernel),
        _ => check_registers(assembly),
    }
}

/// The instructions of a text, without the predicate before one.
fn instructions(assembly: &str) -> impl Iterator<Item = &str> {
    let lines = assembly.lines().filter_map(|line| line.strip_prefix('\t'));
    lines.map(
        |line| if line.starts_with('@') { line.split_once(' ').map_or(line, |(_, rest)| rest.trim()) } else { line },
    )
}

/// `movmsk` cannot encode the vector registers 16 to 31, but LLVM 22 uses it for them.
fn check_registers(assembly: &str) -> Result<(), String> {
    let names = |instruction: &str| (16..32).any(|number| instruction.contains(&format!("mm{number}")));
    match instructions(assembly).find(|instruction| instruction.contains("movmsk") && names(instruction)) {
        Some(instruction) => Err(format!("a register that the instruction cannot name: {instruction}")),
        None => Ok(()),
    }
}

fn check_ptx(ptx: &str, kernel: &LinearKernel) -> Result<(), String> {
    let [x, y, z] = kernel.grid.threads;
    if !ptx.contains(&format!(".reqntid {x}, {y}, {z}\n")) {
        return Err("launch bounds are not the kernel's".into());
    }
    if ptx.contains(".local") || ptx.contains(".func") {
        return Err("it has a stack, or calls".into());
    }
    for instruction in instructions(ptx) {
        let mut parts = instruction.split(['.', ' ', '\t']);
        let is_access = matches!(parts.next(), Some("ld" | "st" | "atom" | "red"));
        let mut spaces = instruction.split(['.', ' ', '\t', ':']);
        if is_access && !spaces.any(|part| matches!(part, "global" | "shared" | "param")) {
            return Err(format!("an access of no memory: {instruction}"));
        }
        if instruction.starts_with("cvta") {
            return Err(format!("a generic address: {instruction}"));
        }
        // What lacks a rounding the assembler may fuse with its neighbours.
        let is_of_floats =
            instruction.split(['\t', ' ']).next().is_some_and(|word| word.ends_with(".f32") || word.ends_with(".f64"));
        let may_fuse = ["add.f", "sub.f", "mul.f"].iter().any(|start| instruction.starts_with(start));
        if is_of_floats && may_fuse {
            return Err(format!("it may be fused: {instruction}"));
        }
    }
    Ok(())
}

fn check_amd(assembly: &str, kernel: &LinearKernel) -> Result<(), String> {
    let number = |key: &str| {
        let line = assembly.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key));
        line.and_then(|rest| rest.trim_start_matches(':').trim().parse::<usize>().ok()).ok_or(format!("no `{key}`"))
    };
    let size = kernel.grid.size();
    if number(".max_flat_workgroup_size")? != size {
        return Err("launch bounds are not the kernel's".into());
    }
    if number(".group_segment_fixed_size")? != kernel.scratch_bytes {
        return Err("LOCAL memory is not the kernel's".into());
    }
    for key in [".private_segment_fixed_size", ".vgpr_spill_count", ".sgpr_spill_count"] {
        if number(key)? != 0 {
            return Err(format!("{key} is not 0"));
        }
    }
    let is_wrong = |instruction: &&str| {
        ["flat_", "scratch_", "buffer_load", "buffer_store", "s_swappc"]
            .iter()
            .any(|start| instruction.starts_with(start))
    };
    match instructions(assembly).find(is_wrong) {
        Some(instruction) => Err(format!("a stack, a call, or an access of no memory: {instruction}")),
        None => Ok(()),
    }
}
