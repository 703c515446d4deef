//! Fatal errors of LLVM: it ends the process where it cannot select an instruction, such as an intrinsic of another
//! processor. Code that may meet one is generated on a thread of its own. When LLVM gives up, that thread never returns
//! (nothing of what it holds may be dropped then) and whoever waits for it gets LLVM's words. Others wait for the next work,
//! with their code generators: one for a GPU takes as long to make as a small kernel.

use super::LlvmError;
use crate::BackendError;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, TryLockError};

/// LLVM's passes recurse; this is as much as a main thread has.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    /// Who waits for the code that this thread generates.
    static WAITING: RefCell<Option<Sender<String>>> = const { RefCell::new(None) };
}

type Work = Box<dyn FnOnce() + Send>;

/// Threads without work, and the process that they are of: the child of a `fork` has none of its parent's.
struct Idle {
    process: u32,
    threads: Vec<Sender<Work>>,
}

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, threads: Vec::new() });

/// Takes a thread from those without work, or adds one; not while another thread does.
fn idle<T>(change: impl FnOnce(&mut Vec<Sender<Work>>) -> T) -> Option<T> {
    let mut idle = match IDLE.try_lock() {
        Ok(idle) => idle,
        Err(TryLockError::Poisoned(idle)) => idle.into_inner(),
        // Held for an instant, or for ever: by a thread that a fork has left behind.
        Err(TryLockError::WouldBlock) => return None,
    };
    let process = std::process::id();
    if idle.process != process {
        // Nobody is left who could hear that the parent's end.
        std::mem::forget(std::mem::replace(&mut *idle, Idle { process, threads: Vec::new() }));
    }
    Some(change(&mut idle.threads))
}

/// A thread that does one work after the other, for as long as there is a sender.
fn start() -> std::io::Result<Sender<Work>> {
    let (sender, receiver) = channel::<Work>();
    let thread = std::thread::Builder::new().name("codegen".into()).stack_size(STACK_BYTES);
    thread.spawn(move || receiver.into_iter().for_each(|work| work()))?;
    Ok(sender)
}

/// Runs `work` where a fatal error of LLVM ends only it.
///
/// # Errors
/// What `work` reports; LLVM's words where it gave up, and then a thread and the module it worked on stay in memory.
pub(super) fn contained<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
) -> Result<T, BackendError> {
    let error = |reason: String| BackendError::from(LlvmError::Module { name: name.into(), reason });
    let thread = idle(Vec::pop).flatten().map_or_else(start, Ok);
    let thread = thread.map_err(|refused| error(format!("no thread to compile on: {refused}")))?;
    let (gives_up, reason) = channel();
    let (gives, outcome) = channel();
    let work: Work = Box::new(move || {
        WAITING.set(Some(gives_up));
        let _ = gives.send(catch_unwind(AssertUnwindSafe(work)));
        WAITING.take();
    });
    // Were the thread gone, nobody would answer below.
    let _ = thread.send(work);
    if let Ok(reason) = reason.recv() {
        return Err(error(reason));
    }
    let outcome = outcome.recv().map_err(|_| error("the thread that compiles is gone".into()))?;
    idle(|threads| threads.push(thread));
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Asks LLVM to tell us before it ends the process.
pub(super) fn listen() {
    // SAFETY: the handler is a function that lives as long as the process; LLVM calls it without holding a lock.
    unsafe { llvm_sys::error_handling::LLVMInstallFatalErrorHandler(Some(give_up)) }
}

extern "C" fn give_up(reason: *const c_char) {
    // SAFETY: LLVM hands over text that ends with 0.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    match WAITING.take() {
        Some(waiting) if waiting.send(reason.clone()).is_ok() => {
            // Where this returns, LLVM ends the process.
            loop {
                std::thread::park();
            }
        }
        _ => eprintln!("LLVM ERROR: {reason}"),
    }
}
