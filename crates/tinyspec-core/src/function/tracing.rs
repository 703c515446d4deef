//! Whether a body is being traced on this thread: then a number passed to a function is part of the graph, not data.

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A body is traced while this lives.
pub(super) struct Tracing(());

impl Tracing {
    pub(super) fn begin() -> Tracing {
        DEPTH.set(DEPTH.get() + 1);
        Tracing(())
    }

    /// Whether a body is being traced on this thread.
    pub(super) fn is_under_way() -> bool {
        DEPTH.get() > 0
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
