//! The CPU's runtime: runs compiled kernels in host memory, with a team of threads that share the THREAD Range.

mod team;

pub use self::team::{Team, TeamOfProcess};

use crate::host_memory::HostMemory;
use crate::llvm::LoadedObject;
use crate::{BackendError, CommandBuffer, Launch, Memory, Program, Runtime, Target};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

/// `buffers[slot]` is the memory of the Param with this slot, followed by the scratch; the THREAD Range runs from
/// `begin` to `end`.
type Kernel = unsafe extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64);

/// Below this many nanoseconds, handing a part to threads that are awake costs more than they save.
const WORTH_SPLITTING: u64 = 10_000;

/// Below this many nanoseconds, waking threads costs more than they save.
const WORTH_WAKING: u64 = 50_000;

/// The least size of a unit that threads claim, in nanoseconds.
const UNIT: u64 = 2_000;

/// The most units per thread.
const UNITS: u32 = 32;

/// Runs kernels synchronously. A launch while the team works for another caller runs on the caller's thread alone.
#[derive(Debug)]
pub struct CpuRuntime {
    threads: usize,
    /// Why code for its target cannot run here.
    refusal: Option<BackendError>,
    team: TeamOfProcess,
}

struct CpuProgram {
    function: Kernel,
    /// Owns the code that `function` points into.
    object: LoadedObject,
}

impl Program for CpuProgram {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn bytes(&self) -> usize {
        self.object.bytes()
    }
}

thread_local! {
    /// LOCAL memory of this thread, kept between launches.
    static SCRATCH: RefCell<Option<HostMemory>> = const { RefCell::new(None) };
    /// Whether kernels that this thread launches run on it alone.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` with all kernels that it launches on this thread alone, because the other threads are busy.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    /// Restores the flag even if `work` panics.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(true));
    work()
}

impl CpuRuntime {
    /// A runtime that shares large kernels among this many threads.
    pub fn new(threads: usize) -> CpuRuntime {
        CpuRuntime { threads: threads.max(1), refusal: None, team: TeamOfProcess::new() }
    }

    /// A runtime for code of this target, with its number of threads. If the host cannot run such code, loading fails
    /// ([`BackendError::Processor`]); compiling still works.
    pub fn of(target: &Target) -> CpuRuntime {
        let refusal = target
            .isa
            .as_ref()
            .and_then(|isa| Some(BackendError::Processor { name: isa.cpu.clone(), reason: isa.missing_on_host()? }));
        CpuRuntime { refusal, ..CpuRuntime::new(target.threads) }
    }

    /// The number of units that the THREAD Range is divided into.
    fn units(&self, launch: &Launch) -> u32 {
        let trips = u32::try_from(launch.trips.len()).unwrap_or(u32::MAX);
        let threads = self.threads as u32;
        let most = match launch.has_prologue {
            true => threads,
            false => (launch.nanoseconds / UNIT).clamp(threads.into(), (UNITS * threads).into()) as u32,
        };
        most.min(trips)
    }

    /// # Safety
    /// As [`Runtime::enqueue`].
    unsafe fn launch(&self, launch: &Launch, buffers: &[*mut u8]) -> Result<(), BackendError> {
        let Some(program) = launch.program.as_any().downcast_ref::<CpuProgram>() else {
            return Err(BackendError::Load {
                name: "kernel".into(),
                reason: "it was compiled for another device".into(),
            });
        };
        let mut addresses: SmallVec<[Address; 16]> = SmallVec::new();
        for &index in &launch.buffers {
            let address = buffers.get(index as usize).copied();
            addresses.push(Address(address.ok_or_else(|| BackendError::Memory(format!("buffer {index} is missing")))?));
        }
        let (first, trips) = (launch.trips.start as i64, launch.trips.len() as i64);
        if self.threads > 1
            && trips > 1
            && launch.nanoseconds >= WORTH_SPLITTING
            && !ALONE.get()
            && let Some(team) = self.team.get(self.threads)
            && (launch.nanoseconds >= WORTH_WAKING || team.is_awake())
        {
            let units = self.units(launch);
            let trip = |unit: u32| first + (trips as i128 * i128::from(unit) / i128::from(units)) as i64;
            let failure = Mutex::new(None);
            let is_done = team.run(units, &|claim| {
                let (begin, end) = (trip(claim.start), trip(claim.end));
                // SAFETY: the caller vouches for the addresses; parts of a THREAD Range write disjoint memory.
                let result = unsafe { run(program, &addresses, launch.scratch_bytes, begin, end) };
                if let (Err(error), Ok(mut failure)) = (result, failure.lock()) {
                    failure.get_or_insert(error);
                }
            });
            if is_done {
                return failure.into_inner().ok().flatten().map_or(Ok(()), Err);
            }
        }
        // SAFETY: the caller vouches for the addresses.
        unsafe { run(program, &addresses, launch.scratch_bytes, first, first + trips) }
    }
}

/// An address that threads may share: the kernel's contract rules out races.
#[derive(Clone, Copy)]
struct Address(*mut u8);

// SAFETY: it is only a number here; kernels that use it run under the contract of `Runtime::enqueue`.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// # Safety
/// The addresses must be valid for what the kernel does in `begin..end`.
unsafe fn run(
    program: &CpuProgram,
    addresses: &[Address],
    scratch: usize,
    begin: i64,
    end: i64,
) -> Result<(), BackendError> {
    if begin >= end {
        return Ok(());
    }
    let mut table: SmallVec<[*mut u8; 17]> = addresses.iter().map(|address| address.0).collect();
    if scratch == 0 {
        // SAFETY: vouched for by the caller.
        unsafe { (program.function)(table.as_ptr(), begin, end) };
        return Ok(());
    }
    SCRATCH.with_borrow_mut(|memory| {
        if memory.as_ref().is_none_or(|memory| memory.len() < scratch) {
            *memory = Some(HostMemory::new(scratch)?);
        }
        table.extend(memory.as_ref().map(|memory| memory.address()));
        // SAFETY: vouched for by the caller; the scratch is this thread's own and large enough.
        unsafe { (program.function)(table.as_ptr(), begin, end) };
        Ok(())
    })
}

// SAFETY: allocation is the trait's default; a kernel gets the buffers of its launch.
unsafe impl Runtime for CpuRuntime {
    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let failed = |reason: String| BackendError::Load { name: name.into(), reason };
        let object = LoadedObject::load(code).map_err(|error| failed(error.to_string()))?;
        // An object holds one kernel, whose symbol the compiler chose.
        let function = object.functions().next().and_then(|symbol| object.function(symbol));
        let function = function.ok_or_else(|| failed("it holds no function".into()))?;
        // SAFETY: the compiler gives every kernel this signature, and the cache has checked the object's checksum.
        let function = unsafe { std::mem::transmute::<*const u8, Kernel>(function) };
        Ok(Arc::new(CpuProgram { function, object }))
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        for launch in commands.launches() {
            // SAFETY: the caller's promise holds for each launch.
            unsafe { self.launch(launch, table)? };
        }
        Ok(())
    }
}
