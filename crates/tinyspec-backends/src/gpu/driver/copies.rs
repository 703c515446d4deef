//! Copies to a device, from it, and between two.
//!
//! Copies between the host and a device go through pinned memory (`staging`). Copies between two devices of one driver
//! are direct, and both streams wait for each other's events.

use super::device::Shared;
use super::events::Event;
use super::staging::CHUNK;
use super::{Failure, Vendor};

impl<V: Vendor> Shared<V> {
    /// Copies host bytes, which the caller may change once this returns.
    ///
    /// # Safety
    /// `to` is the address of so many bytes of this device's memory.
    pub unsafe fn write(&self, to: u64, data: &[u8]) -> Result<(), Failure> {
        let (functions, mut staging) = (self.bind()?, self.staging());
        for (number, chunk) in data.chunks(CHUNK).enumerate() {
            let to = to + (number * CHUNK) as u64;
            let Some((memory, piece)) = self.piece(functions, &mut staging, chunk.len())? else {
                // SAFETY: as the caller promises; the chunk outlives the copy, which is waited for.
                self.driver
                    .check(unsafe { functions.upload(to, chunk.as_ptr().cast(), chunk.len(), self.stream()) })?;
                self.wait(functions)?;
                continue;
            };
            // SAFETY: the piece is as long as the chunk, and no transfer uses it until this one is done.
            unsafe {
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), memory, chunk.len());
                self.driver.check(functions.upload(to, memory.cast(), chunk.len(), self.stream()))?;
            }
            self.in_transit(functions, &mut staging, piece)?;
        }
        Ok(())
    }

    /// Copies to the host, after everything enqueued.
    ///
    /// # Safety
    /// `from` is the address of so many bytes of this device's memory.
    pub unsafe fn read(&self, from: u64, data: &mut [u8]) -> Result<(), Failure> {
        let (functions, mut staging) = (self.bind()?, self.staging());
        let mut before: Option<(*mut u8, &mut [u8])> = None;
        for (number, chunk) in data.chunks_mut(CHUNK).enumerate() {
            let (from, length) = (from + (number * CHUNK) as u64, chunk.len());
            let Some((memory, piece)) = self.piece(functions, &mut staging, length)? else {
                // SAFETY: as in `write`.
                self.driver
                    .check(unsafe { functions.download(chunk.as_mut_ptr().cast(), from, length, self.stream()) })?;
                self.wait(functions)?;
                continue;
            };
            // SAFETY: as in `write`.
            self.driver.check(unsafe { functions.download(memory.cast(), from, length, self.stream()) })?;
            self.in_transit(functions, &mut staging, piece)?;
            // Two pieces are in use at a time. The ring holds four, so neither is overwritten.
            if let Some((memory, chunk)) = before.replace((memory, chunk)) {
                self.arrive(functions, &staging, 1)?;
                // SAFETY: the transfer to this piece, which is as long, is done, and no other has begun.
                unsafe { std::ptr::copy_nonoverlapping(memory, chunk.as_mut_ptr(), chunk.len()) };
            }
        }
        if let Some((memory, chunk)) = before {
            self.arrive(functions, &staging, 0)?;
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(memory, chunk.as_mut_ptr(), chunk.len()) };
        }
        self.land(functions)
    }

    /// Enqueues a copy within this device's memory.
    ///
    /// # Safety
    /// There are so many bytes at both addresses.
    pub unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), Failure> {
        let functions = self.bind()?;
        // SAFETY: as the caller promises.
        self.driver.check(unsafe { functions.copy(to, from, bytes, self.stream()) })
    }

    /// Enqueues a copy from another device's memory, after the work enqueued there. Returns the event that the other
    /// device must wait for before it reuses the memory.
    ///
    /// # Safety
    /// There are so many bytes at both addresses.
    pub unsafe fn copy_from(
        &self,
        to: u64,
        (other, from): (&Shared<V>, u64),
        bytes: usize,
        ready: &Event,
    ) -> Result<Event, Failure> {
        let functions = self.bind()?;
        self.wait_in_stream(functions, ready)?;
        let (to, from) = ((self.place, to), (other.place, from));
        // SAFETY: as the caller promises.
        self.driver.check(unsafe { self.driver.vendor.copy_from(to, from, bytes, self.stream()) })?;
        self.mark(functions)
    }
}
