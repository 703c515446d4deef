//! Marks in a stream.

use super::device::Shared;
use super::{Failure, Functions, Handle, NOT_READY, Vendor, flag};
use std::ptr;
use std::sync::PoisonError;

/// A mark in the stream of a device, which happens when all before it is done. It is used again: whoever has waited for it,
/// or made others wait, gives it back.
#[derive(Debug)]
pub(super) struct Event(usize);

impl<V: Vendor> Shared<V> {
    /// Marks what is enqueued up to now.
    pub fn mark(&self, functions: &Functions) -> Result<Event, Failure> {
        let known = self.events.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let event = match known {
            Some(event) => event,
            None => {
                let mut event = ptr::null_mut();
                // SAFETY: the event is written to a local variable.
                self.driver.check(unsafe { functions.new_event(&mut event, flag::EVENT_WITHOUT_TIME) })?;
                Event(event as usize)
            }
        };
        // SAFETY: both live as long as `self`.
        let recorded = self.driver.check(unsafe { functions.record(event.0 as Handle, self.stream()) });
        match recorded {
            Ok(()) => Ok(event),
            Err(failure) => {
                self.give_event(event);
                Err(failure)
            }
        }
    }

    /// Has it happened?
    pub fn has_happened(&self, functions: &Functions, event: &Event) -> Result<bool, Failure> {
        // SAFETY: an event lives as long as `self`.
        let called = unsafe { functions.ask(event.0 as Handle) };
        if called.status == NOT_READY { Ok(false) } else { self.driver.check(called).map(|()| true) }
    }

    /// Waits until it happens.
    pub fn wait_for(&self, functions: &Functions, event: &Event) -> Result<(), Failure> {
        // SAFETY: as above.
        self.driver.check(unsafe { functions.wait_for_event(event.0 as Handle) })
    }

    /// What is enqueued here from now on waits for an event, maybe of another device.
    pub fn wait_in_stream(&self, functions: &Functions, event: &Event) -> Result<(), Failure> {
        // SAFETY: as above.
        self.driver.check(unsafe { functions.order(self.stream(), event.0 as Handle, 0) })
    }

    pub fn give_event(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Nothing is enqueued any more.
    pub(super) fn destroy_events(&mut self, functions: &Functions) {
        for event in self.events.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: the driver made it, and it is destroyed once.
            let _ = unsafe { functions.destroy_event(event.0 as Handle) };
        }
    }
}
