//! Tracks whether a function body is being traced on this thread. Literals in such a body become constants of its graph.

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A body is traced while this lives.
pub(crate) struct Tracing(());

impl Tracing {
    pub fn begin() -> Tracing {
        DEPTH.set(DEPTH.get() + 1);
        Tracing(())
    }

    /// Whether a body is being traced on this thread.
    pub fn is_under_way() -> bool {
        DEPTH.get() > 0
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
