//! Contains LLVM's fatal errors. LLVM ends the process when it cannot select an instruction, such as an intrinsic of
//! another processor, so code that may trigger this is generated on a separate thread. On a fatal error that thread is parked
//! forever, because nothing it holds may be dropped, and its caller gets LLVM's message. Otherwise the thread is reused together
//! with its code generators: creating one for a GPU takes as long as compiling a small kernel.

use super::LlvmError;
use crate::BackendError;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, MutexGuard, TryLockError};
use tinyspec_ir::ContentHash;

/// LLVM's passes recurse, so this is as large as the stack of a main thread.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    /// Sends a fatal error's message to the caller whose code this thread generates.
    static WAITING: RefCell<Option<Sender<String>>> = const { RefCell::new(None) };
}

type Work = Box<dyn FnOnce() + Send>;

/// Idle threads, and the process they belong to: the child of a `fork` inherits none of its parent's threads.
struct Idle {
    process: u32,
    threads: Vec<Sender<Work>>,
}

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, threads: Vec::new() });

/// Locks, unless another thread holds the lock: briefly, or forever if the process forked at that time.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Changes the list of idle threads, unless another thread holds its lock.
fn idle<T>(change: impl FnOnce(&mut Vec<Sender<Work>>) -> T) -> Option<T> {
    let mut idle = try_lock(&IDLE)?;
    let process = std::process::id();
    if idle.process != process {
        // The parent's threads do not exist here, so their channels are leaked rather than closed.
        std::mem::forget(std::mem::replace(&mut *idle, Idle { process, threads: Vec::new() }));
    }
    Some(change(&mut idle.threads))
}

/// Starts a thread that runs jobs until its sender is dropped.
fn start() -> std::io::Result<Sender<Work>> {
    let (sender, receiver) = channel::<Work>();
    let thread = std::thread::Builder::new().name("codegen".into()).stack_size(STACK_BYTES);
    thread.spawn(move || receiver.into_iter().for_each(|work| work()))?;
    Ok(sender)
}

/// Kernels for a target that LLVM has refused, with its messages. They are not tried again, since each attempt leaks a thread.
static REFUSED: LazyLock<Mutex<FxHashMap<ContentHash, String>>> = LazyLock::new(Mutex::default);

/// Runs `work` on a thread where a fatal error of LLVM does not end the process. `key` identifies the kernel and its
/// target; it is computed only once there has been such an error.
///
/// # Errors
/// The error of `work`, or LLVM's message after a fatal error; the thread and its module are leaked then.
pub(super) fn contained<T: Send + 'static>(
    name: &str,
    key: impl Fn() -> ContentHash,
    work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
) -> Result<T, BackendError> {
    let error = |reason: String| BackendError::from(LlvmError::Module { name: name.into(), reason });
    if let Some(refused) = try_lock(&REFUSED).filter(|refused| !refused.is_empty())
        && let Some(reason) = refused.get(&key())
    {
        return Err(error(reason.clone()));
    }
    let thread = idle(Vec::pop).flatten().map_or_else(start, Ok);
    let thread = thread.map_err(|refused| error(format!("no thread to compile on: {refused}")))?;
    let (gives_up, reason) = channel();
    let (gives, outcome) = channel();
    let work: Work = Box::new(move || {
        WAITING.set(Some(gives_up));
        let _ = gives.send(catch_unwind(AssertUnwindSafe(work)));
        WAITING.take();
    });
    // If the thread is gone, both channels are closed and the receives below fail.
    let _ = thread.send(work);
    if let Ok(reason) = reason.recv() {
        if let Some(mut refused) = try_lock(&REFUSED) {
            refused.insert(key(), reason.clone());
        }
        return Err(error(reason));
    }
    let outcome = outcome.recv().map_err(|_| error("the thread that compiles is gone".into()))?;
    idle(|threads| threads.push(thread));
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Installs the handler that LLVM calls before it ends the process.
pub(super) fn listen() {
    // SAFETY: the handler is a function that lives as long as the process; LLVM calls it without holding a lock.
    unsafe { llvm_sys::error_handling::LLVMInstallFatalErrorHandler(Some(give_up)) }
}

extern "C" fn give_up(reason: *const c_char) {
    // SAFETY: LLVM hands over text that ends with 0.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    match WAITING.take() {
        Some(waiting) if waiting.send(reason.clone()).is_ok() => {
            // LLVM ends the process if this returns.
            loop {
                std::thread::park();
            }
        }
        _ => eprintln!("LLVM ERROR: {reason}"),
    }
}
