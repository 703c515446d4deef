//! Events in a stream.

use super::device::Shared;
use super::{Failure, Functions, Handle, NOT_READY, Vendor, flag};
use std::ptr;
use std::sync::PoisonError;
use std::time::Duration;

/// An event in the stream of a device, which happens when everything before it is done. Events are reused: they are
/// given back after waiting for them.
#[derive(Debug)]
pub(super) struct Event(usize);

impl<V: Vendor> Shared<V> {
    /// Records an event after everything enqueued so far.
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

    /// Whether it has happened.
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

    /// Lets everything enqueued here from now on wait for an event, possibly of another device.
    pub fn wait_in_stream(&self, functions: &Functions, event: &Event) -> Result<(), Failure> {
        // SAFETY: as above.
        self.driver.check(unsafe { functions.order(self.stream(), event.0 as Handle, 0) })
    }

    /// How long the device takes for what `work` enqueues, by its own clock.
    pub fn timed(&self, work: &mut dyn FnMut()) -> Result<Duration, Failure> {
        let functions = self.bind()?;
        let mut events = [ptr::null_mut(); 2];
        let made = events.iter_mut().try_for_each(|event| {
            // SAFETY: the event is written to a local variable.
            self.driver.check(unsafe { functions.new_event(event, flag::EVENT_WITH_TIME) })
        });
        // SAFETY: the event was made, and the stream lives as long as `self`.
        let record = |event| self.driver.check(unsafe { functions.record(event, self.stream()) });
        let mut milliseconds = 0f32;
        let measured = made.and_then(|()| record(events[0])).and_then(|()| {
            work();
            record(events[1])?;
            // SAFETY: as above; the time is written to a local variable.
            self.driver.check(unsafe { functions.wait_for_event(events[1]) })?;
            self.driver.check(unsafe { functions.between(&mut milliseconds, events[0], events[1]) })
        });
        for event in events.into_iter().filter(|event| !event.is_null()) {
            // SAFETY: the driver made it, and it is destroyed once.
            let _ = unsafe { functions.destroy_event(event) };
        }
        measured.map(|()| Duration::from_secs_f32(milliseconds.max(0.0) / 1e3))
    }

    pub fn give_event(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Called when nothing is enqueued any more.
    pub(super) fn destroy_events(&mut self, functions: &Functions) {
        for event in self.events.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: the driver made it, and it is destroyed once.
            let _ = unsafe { functions.destroy_event(event.0 as Handle) };
        }
    }
}
