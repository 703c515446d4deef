//! Fatal errors of LLVM: it ends the process where it cannot select an instruction, such as an intrinsic of another
//! processor. Code that may meet one is generated on a thread of its own. When LLVM gives up, that thread never returns
//! (nothing of what it holds may be dropped then) and whoever waits for it gets LLVM's words.

use super::LlvmError;
use crate::BackendError;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::sync::mpsc::{Sender, channel};

/// LLVM's passes recurse; this is as much as a main thread has.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    /// Who waits for the code that this thread generates.
    static WAITING: RefCell<Option<Sender<String>>> = const { RefCell::new(None) };
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
    let (sender, reason) = channel();
    let worker = std::thread::Builder::new().name("codegen".into()).stack_size(STACK_BYTES).spawn(move || {
        WAITING.set(Some(sender));
        let result = work();
        WAITING.take();
        result
    });
    let worker = worker.map_err(|refused| error(format!("no thread to compile on: {refused}")))?;
    match reason.recv() {
        Ok(reason) => Err(error(reason)),
        // The sender is gone: the work is done, or it panicked.
        Err(_) => worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
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
