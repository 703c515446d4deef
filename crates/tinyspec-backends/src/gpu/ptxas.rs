//! NVIDIA's assembler, if it is installed: its output loads at once, while the driver has to compile PTX in every
//! process. Without it, or if it refuses a kernel, the driver gets the PTX.
//!
//! The assembler's version is part of the key of the object cache. The assembler may spill registers to fit more
//! workgroups; a kernel that would get a stack, whether from ptxas or from the driver, is assembled again with more
//! registers per thread.

use crate::{BackendError, Compiler, LinearKernel, Target, settings};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Once, OnceLock};

/// The variable that names the assembler, or says `off`.
pub const VARIABLE: &str = "TINYSPEC_PTXAS";

/// A working assembler.
#[derive(Clone, Debug)]
pub struct Assembler {
    file: PathBuf,
    version: String,
}

impl Assembler {
    /// The assembler that [`VARIABLE`] names, else `ptxas` in `PATH`; it is the same throughout the process. Warns if
    /// the named one does not run.
    pub fn find() -> Option<&'static Assembler> {
        static FOUND: OnceLock<Option<Assembler>> = OnceLock::new();
        FOUND.get_or_init(look).as_ref()
    }

    /// The assembler in a file.
    ///
    /// # Errors
    /// When it does not run, or does not report its version; the error is a message.
    pub fn at(file: PathBuf) -> Result<Assembler, String> {
        let output = Command::new(&file).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        // `Cuda compilation tools, release 12.9, V12.9.86`
        let version = said.split_whitespace().find_map(|word| word.strip_prefix('V').filter(|rest| is_version(rest)));
        match version {
            Some(version) if output.status.success() => Ok(Assembler { version: version.into(), file }),
            _ => Err("it does not tell its version as `ptxas --version` does".into()),
        }
    }

    /// Its version, such as `12.9.86`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Assembles a cubin for a chip, again with more registers per thread if it would have a stack.
    ///
    /// # Errors
    /// The assembler's message.
    pub fn assemble(&self, chip: &str, ptx: &[u8]) -> Result<Cubin, String> {
        let text = String::from_utf8_lossy(ptx.split(|&byte| byte == 0).next().unwrap_or(ptx));
        let first = self.run(chip, &text)?;
        match stack(&first.report) {
            0 => Ok(first),
            _ => Ok(Cubin { is_roomy: true, ..self.run(chip, &roomy(&text))? }),
        }
    }

    fn run(&self, chip: &str, text: &str) -> Result<Cubin, String> {
        let mut command = Command::new(&self.file);
        command.arg("-v").arg(format!("-arch={chip}")).args(["/dev/stdin", "-o", "/dev/stdout"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let input = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // The assembler may exit before it has read all of it.
            scope.spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
            child.wait_with_output()
        });
        let output = output.map_err(|error| error.to_string())?;
        let report = String::from_utf8_lossy(&output.stderr).trim().to_string();
        match output.status.success() && output.stdout.starts_with(b"\x7fELF") {
            true => Ok(Cubin { code: output.stdout, report, is_roomy: false }),
            false => Err(report),
        }
    }
}

/// The output of an assembler.
#[derive(Clone, Debug)]
pub struct Cubin {
    /// An ELF file.
    pub code: Vec<u8>,
    /// Registers and memory of its kernels, in the assembler's words.
    pub report: String,
    /// Whether it was assembled with all registers for one workgroup, since it would have had a stack otherwise.
    pub is_roomy: bool,
}

/// The bytes of stack in a report.
fn stack(report: &str) -> usize {
    let before = |(text, _): (&str, &str)| text.split_whitespace().last().and_then(|bytes| bytes.parse().ok());
    report.lines().filter_map(|line| line.split_once(" bytes stack frame").and_then(before)).max().unwrap_or(0)
}

/// The text of a kernel that runs one workgroup per multiprocessor at a time. To raise occupancy, NVIDIA's assembler
/// may spill a few registers, as for some 1 in 1,000 of our kernels; this prevents that. Applied always, it would halve
/// the occupancy of many kernels.
pub(super) fn roomy(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        lines.push(line);
        if line.trim_start().starts_with(".reqntid") {
            lines.push(".minnctapersm 1");
        }
    }
    lines.join("\n")
}

fn is_version(text: &str) -> bool {
    text.contains('.') && text.split('.').all(|part| part.parse::<u32>().is_ok())
}

fn look() -> Option<Assembler> {
    // Text and code go through device files that other systems lack.
    if !cfg!(unix) {
        return None;
    }
    match settings::path(VARIABLE) {
        Some(named) if named.as_os_str() == "off" => None,
        Some(named) => match Assembler::at(named.clone()) {
            Ok(assembler) => Some(assembler),
            Err(reason) => {
                let file = named.display();
                crate::tell!(
                    "tinyspec: warning: {VARIABLE}={file}: {reason}; the driver compiles PTX instead\n\
                     help: name the file of `ptxas`, or say `off`"
                );
                None
            }
        },
        None => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            let file =
                std::env::split_paths(&folders).map(|folder| folder.join("ptxas")).find(|file| file.is_file())?;
            Assembler::at(file).ok()
        }
    }
}

/// A PTX compiler that assembles its kernels if there is an assembler.
#[derive(Debug, Default)]
pub struct Assembling<C> {
    compiler: C,
    /// Without one, it is searched for when the first kernel is compiled.
    chosen: Option<Assembler>,
}

impl<C: Compiler> Assembling<C> {
    /// Uses the assembler that is found.
    pub fn new(compiler: C) -> Assembling<C> {
        Assembling { compiler, chosen: None }
    }

    /// Uses this assembler.
    pub fn by(assembler: Assembler, compiler: C) -> Assembling<C> {
        Assembling { compiler, chosen: Some(assembler) }
    }

    fn assembler(&self) -> Option<&Assembler> {
        self.chosen.as_ref().or_else(|| Assembler::find())
    }

    fn assembled(&self, kernel: &LinearKernel, target: &Target, ptx: Vec<u8>) -> Vec<u8> {
        let Some(assembler) = self.assembler() else { return ptx };
        assembler.assemble(&target.name, &ptx).map(|cubin| cubin.code).unwrap_or_else(|reason| {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| {
                let (file, name) = (assembler.file.display(), &kernel.name);
                crate::tell!("tinyspec: warning: {file} refuses `{name}`, which the driver compiles instead: {reason}");
            });
            ptx
        })
    }
}

// SAFETY: the code is that of the wrapped compiler, assembled or not.
unsafe impl<C: Compiler> Compiler for Assembling<C> {
    fn fingerprint(&self) -> String {
        let own = self.compiler.fingerprint();
        self.assembler().map_or_else(|| own.clone(), |assembler| format!("{own}, ptxas {}", assembler.version))
    }

    fn generator(&self) -> Option<String> {
        self.compiler.generator()
    }

    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        Ok(self.assembled(kernel, target, self.compiler.compile(kernel, target)?))
    }

    fn compile_all(&self, kernels: &[&LinearKernel], target: &Target) -> Vec<Result<Vec<u8>, BackendError>> {
        let codes = self.compiler.compile_all(kernels, target);
        kernels.iter().zip(codes).map(|(kernel, code)| Ok(self.assembled(kernel, target, code?))).collect()
    }

    fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.compiler.source(kernel, target)
    }

    fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.compiler.assembly(kernel, target)
    }
}
