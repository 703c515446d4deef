//! Simulators as devices: memory, programs, command lists.

mod buffers;
mod linear;

use crate::lanes::launch::{Given, Run};
use crate::{Launch, SimulatorError, amd, ptx};
use buffers::Buffer;
use memmap2::{MmapMut, MmapOptions};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_backends::{BackendError, CommandBuffer, Compiler, Gpu, LinearKernel, Memory, Program, Runtime, Target};
use tinyspec_core::execute::{Device, register};

/// Where buffers are, and their bytes.
type Ranges = Arc<Mutex<BTreeMap<usize, usize>>>;

/// Memory of a simulated device: addresses of this process, which take memory where they are touched. So a buffer may be
/// larger than the machine's memory.
pub(crate) struct SparseMemory {
    pages: MmapMut,
    bytes: usize,
    ranges: Option<Ranges>,
}

impl SparseMemory {
    pub fn new(bytes: usize) -> Result<SparseMemory, BackendError> {
        let mapped = MmapOptions::new().len(bytes.max(1)).no_reserve_swap().map_anon();
        let exhausted = |error| BackendError::Memory(format!("cannot map {bytes} bytes: {error}"));
        Ok(SparseMemory { pages: mapped.map_err(exhausted)?, bytes, ranges: None })
    }
}

impl std::fmt::Debug for SparseMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseMemory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drop for SparseMemory {
    fn drop(&mut self) {
        if let Some(ranges) = &self.ranges {
            ranges.lock().unwrap_or_else(PoisonError::into_inner).remove(&(self.address() as usize));
        }
    }
}

// SAFETY: it owns its pages until it is dropped, and never moves them.
unsafe impl Memory for SparseMemory {
    fn len(&self) -> usize {
        self.bytes
    }

    fn address(&self) -> *mut u8 {
        self.pages.as_ptr().cast_mut()
    }

    fn is_on_host(&self) -> bool {
        true
    }
}

/// The common part of the runtimes.
#[derive(Debug)]
struct Simulated {
    gpu: Gpu,
    ranges: Ranges,
    seed: u64,
}

impl Simulated {
    fn new(gpu: &Gpu) -> Simulated {
        Simulated { gpu: gpu.clone(), ranges: Ranges::default(), seed: 0 }
    }

    /// Refuses code that the chip does not run.
    fn admit(&self, name: &str, made_for: &str) -> Result<(), BackendError> {
        let chip = self.gpu.name;
        if self.gpu.runs(made_for) {
            return Ok(());
        }
        let reason = format!("it is for {made_for}, and the device is a {chip}\nhelp: compile it for {chip}");
        Err(BackendError::Load { name: name.into(), reason })
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        let mut memory = SparseMemory::new(bytes)?;
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        ranges.insert(memory.address() as usize, bytes);
        memory.ranges = Some(self.ranges.clone());
        Ok(Arc::new(memory))
    }

    /// The bytes from an address to the end of its buffer.
    fn bytes_from(&self, address: *mut u8) -> usize {
        let ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let before = ranges.range(..=address as usize).next_back();
        before.map_or(0, |(start, bytes)| (start + bytes).saturating_sub(address as usize))
    }

    /// The arguments for the kernel's parameters: the buffers in their order, and behind them the values of the named dims. A launch may
    /// be given buffers that this kernel has no parameter for.
    fn given<'a>(
        &self,
        program: &'a Loaded,
        launch: &tinyspec_backends::Launch,
        buffers: &[*mut u8],
    ) -> Result<Vec<Given<'a>>, BackendError> {
        let count = program.kernel.parameters().len();
        let mut given = Vec::with_capacity(count);
        for (slot, &index) in launch.buffers.iter().enumerate().take(count.saturating_sub(launch.dims.len())) {
            let address = buffers.get(index as usize).copied();
            let address = address.ok_or_else(|| BackendError::Memory(format!("buffer {index} is missing")))?;
            let known = program.buffers.get(slot);
            let most = known.and_then(|buffer| buffer.bytes).unwrap_or(usize::MAX);
            let name = known.and_then(|buffer| buffer.name.as_deref());
            given.push(Given::Memory { start: address, bytes: self.bytes_from(address).min(most), name });
        }
        given.extend(launch.dims.iter().map(|&dim| Given::Value(dim as u64)));
        Ok(given)
    }

    /// # Safety
    /// As [`Runtime::enqueue`].
    unsafe fn launch(&self, launch: &tinyspec_backends::Launch, buffers: &[*mut u8]) -> Result<(), BackendError> {
        let Some(program) = launch.program.as_any().downcast_ref::<Loaded>() else {
            let reason = "it was compiled for another device".into();
            return Err(BackendError::Load { name: "kernel".into(), reason });
        };
        let given = self.given(program, launch, buffers)?;
        let sizes = |sizes: [usize; 3], what: &str| -> Result<[u32; 3], BackendError> {
            let mut all = [0; 3];
            for (to, size) in all.iter_mut().zip(sizes) {
                let reason = || format!("{sizes:?} {what} are more than can be launched");
                *to = u32::try_from(size).map_err(|_| program.refuse(reason()))?;
            }
            Ok(all)
        };
        let (limits, grid) = (program.most_groups, launch.grid);
        if grid.groups.iter().zip(limits).any(|(&groups, limit)| groups > limit) {
            return Err(program.refuse(format!("{:?} workgroups, at most {limits:?}", grid.groups)));
        }
        let mut made = Launch::grid(sizes(grid.groups, "workgroups")?, sizes(grid.threads, "threads")?);
        made.seed = self.seed;
        if program.kernel.takes_local() {
            made.local_bytes = launch.scratch_bytes;
        }
        if grid.count() == 0 {
            return Ok(());
        }
        // SAFETY: the caller vouches for the buffers.
        match unsafe { program.kernel.run(&made, &given) } {
            Ok(_) => Ok(()),
            // The code knows the kernel by its symbol.
            Err(SimulatorError::Fault(fault)) => {
                let origin = fault.source_line.and_then(|line| program.linear.get(line.get() as usize - 1));
                Err(fault.of_kernel(program.name.clone(), origin.map(String::as_str)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// # Safety
    /// As [`Runtime::enqueue`].
    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        for launch in commands.launches() {
            // SAFETY: the caller's promise holds for each launch.
            unsafe { self.launch(launch, table) }.map_err(|error| error.at(&launch.line))?;
        }
        Ok(())
    }
}

/// A kernel of one of the instruction sets.
struct Loaded {
    name: String,
    kernel: Box<dyn Run + Send + Sync>,
    buffers: Vec<Buffer>,
    /// Its Linear form, by lines.
    linear: Vec<String>,
    most_groups: [usize; 3],
}

impl Loaded {
    fn new(name: &str, code: &[u8], kernel: impl Run + Send + Sync + 'static, most_groups: [usize; 3]) -> Arc<Loaded> {
        let (buffers, linear) = (buffers::read(code), linear::read(code));
        Arc::new(Loaded { name: name.into(), kernel: Box::new(kernel), buffers, linear, most_groups })
    }

    fn refuse(&self, reason: String) -> BackendError {
        SimulatorError::Launch { kernel: self.name.clone(), reason }.into()
    }
}

impl Program for Loaded {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The name of a module's only kernel.
fn only<'a>(name: &str, mut kernels: impl Iterator<Item = &'a str>) -> Result<&'a str, BackendError> {
    match (kernels.next(), kernels.next()) {
        (Some(entry), None) => Ok(entry),
        _ => Err(BackendError::Load { name: name.into(), reason: "it holds no kernel, or several".into() }),
    }
}

/// Runs PTX. A kernel's code is the text of a module with one entry, whose parameters are the addresses of its buffers.
#[derive(Debug)]
pub struct PtxRuntime(Simulated);

impl PtxRuntime {
    /// A GPU of NVIDIA.
    pub fn new(gpu: &Gpu) -> PtxRuntime {
        PtxRuntime(Simulated::new(gpu))
    }

    /// The same, whose launches run their workgroups, warps and lanes in an order that the seed decides.
    pub fn seeded(self, seed: u64) -> PtxRuntime {
        PtxRuntime(Simulated { seed, ..self.0 })
    }
}

// SAFETY: memory is its own; every access is checked before it is made.
unsafe impl Runtime for PtxRuntime {
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        self.0.allocate(bytes)
    }

    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        let failed = |reason: String| BackendError::Load { name: name.into(), reason };
        let text = std::str::from_utf8(code).map_err(|_| failed("it is no text".into()))?;
        let module = ptx::Module::parse(text).map_err(|error| failed(error.to_string()))?;
        self.0.admit(name, module.target())?;
        let kernel = module.kernel(only(name, module.kernels())?).map_err(|error| failed(error.to_string()))?;
        Ok(Loaded::new(name, code, kernel, [i32::MAX as usize, 65_535, 65_535]))
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        // SAFETY: as the caller promises.
        unsafe { self.0.enqueue(commands, table) }
    }
}

/// Runs machine code of AMD's GPUs. A kernel's code is a code object with one kernel, as ROCm loads it.
#[derive(Debug)]
pub struct AmdRuntime(Simulated);

impl AmdRuntime {
    /// A GPU of AMD.
    pub fn new(gpu: &Gpu) -> AmdRuntime {
        AmdRuntime(Simulated::new(gpu))
    }

    /// The same, whose launches run their workgroups, waves and lanes in an order that the seed decides.
    pub fn seeded(self, seed: u64) -> AmdRuntime {
        AmdRuntime(Simulated { seed, ..self.0 })
    }
}

// SAFETY: as above.
unsafe impl Runtime for AmdRuntime {
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        self.0.allocate(bytes)
    }

    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        let failed = |reason: String| BackendError::Load { name: name.into(), reason };
        let module = amd::Module::read(code).map_err(|error| failed(error.to_string()))?;
        self.0.admit(name, module.target())?;
        let kernel = module.kernel(only(name, module.kernels())?).map_err(|error| failed(error.to_string()))?;
        Ok(Loaded::new(name, code, kernel, [u32::MAX as usize; 3]))
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        // SAFETY: as the caller promises.
        unsafe { self.0.enqueue(commands, table) }
    }
}

/// Adds a device such as `ptxsim:sm_80`, whose kernels the compiler makes as PTX. Errors name what an instruction is for where
/// code says so: [`LlvmCompiler::located`](tinyspec_backends::llvm::LlvmCompiler::located).
pub fn register_ptx(name: &str, gpu: &Gpu, compiler: Arc<dyn Compiler>) -> Arc<Device> {
    register(name, gpu.target(), Arc::new(WithKernel { compiler, is_text: true }), Arc::new(PtxRuntime::new(gpu)))
}

/// Adds a device such as `amdsim:gfx942`, whose kernels the compiler makes as code objects; else as [`register_ptx`].
pub fn register_amd(name: &str, gpu: &Gpu, compiler: Arc<dyn Compiler>) -> Arc<Device> {
    register(name, gpu.target(), Arc::new(WithKernel { compiler, is_text: false }), Arc::new(AmdRuntime::new(gpu)))
}

/// A compiler that keeps behind the code what errors say of a kernel.
struct WithKernel {
    compiler: Arc<dyn Compiler>,
    /// Of PTX, which ends with a NUL.
    is_text: bool,
}

impl WithKernel {
    fn add(&self, kernel: &LinearKernel, mut code: Vec<u8>) -> Vec<u8> {
        while self.is_text && code.last() == Some(&0) {
            code.pop();
        }
        buffers::add(kernel, linear::add(kernel, code))
    }
}

// SAFETY: the code is that of the compiler behind it.
unsafe impl Compiler for WithKernel {
    fn fingerprint(&self) -> String {
        format!("{}, kernel", self.compiler.fingerprint())
    }

    fn generator(&self) -> Option<String> {
        self.compiler.generator()
    }

    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        Ok(self.add(kernel, self.compiler.compile(kernel, target)?))
    }

    fn compile_all(&self, kernels: &[&LinearKernel], target: &Target) -> Vec<Result<Vec<u8>, BackendError>> {
        let codes = self.compiler.compile_all(kernels, target);
        kernels.iter().zip(codes).map(|(kernel, code)| Ok(self.add(kernel, code?))).collect()
    }

    fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.compiler.source(kernel, target)
    }

    fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.compiler.assembly(kernel, target)
    }
}
