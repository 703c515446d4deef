//! `TINYSPEC_VALIDATE=1`: every kernel runs a second time, on a reference device and the same inputs. So whatever goes
//! wrong later, the kernel that caused it is named.

use super::run::CustomSteps;
use crate::compare::{self, Difference, difference};
use crate::compile::{Compared, ComparedBuffer, Place, Plan};
use crate::device::{Owner, Storage};
use crate::error::Mismatch;
use crate::{Error, Result};
use std::ops::Range;

/// Runs a plan call by call, and compares the results of each.
///
/// # Safety
/// As for [`super::run::run`], whose table it is.
pub(super) unsafe fn run(plan: &Plan, compared: &Compared, table: &[*mut u8]) -> Result<()> {
    let (runtime, reference) = (plan.device.runtime(), &compared.reference);
    let arena = Storage::allocate(&reference.device, reference.arena_bytes, &Owner::trial())?;
    let mut other: Vec<*mut u8> = (reference.table.iter())
        .map(|place| match *place {
            // SAFETY: the plan's offsets lie inside the arena.
            Place::Arena(offset) => unsafe { arena.address().add(offset) },
            Place::Constant(number) => reference.constants[number as usize].address(),
            // An argument of some call, which gets memory of its own below.
            _ => std::ptr::null_mut(),
        })
        .collect();
    let mut custom = CustomSteps::of(plan);
    for call in &compared.calls {
        // SAFETY: as the caller promises.
        unsafe { custom.run_until(call.launches.start, table)? };
        let launches = plan.commands.only(call.launches.clone());
        let (mut copies, mut before) = (Vec::new(), Vec::new());
        for buffer in call.buffers.iter().filter(|_| !call.reference.is_empty()) {
            let mut data = vec![0; buffer.bytes];
            // SAFETY: the table's buffers are as long as the plan says.
            unsafe { runtime.read_at(table[buffer.here as usize], &mut data)? };
            let copy = Storage::allocate(&reference.device, buffer.bytes, &Owner::trial())?;
            copy.write(&data)?;
            other[buffer.there as usize] = copy.address();
            copies.push(copy);
            before.push(data);
        }
        // SAFETY: as the caller promises.
        unsafe { runtime.enqueue(&launches, table)? };
        if call.reference.is_empty() {
            continue;
        }
        // The results of the reference on the copies.
        let results = || -> Result<Vec<Vec<u8>>> {
            let launches = reference.commands.only(call.reference.clone());
            // SAFETY: the copies are ours alone, and as large as the buffers; so is the arena.
            unsafe { reference.device.runtime().enqueue(&launches, &other)? };
            let read = |copy: &Storage| {
                let mut data = vec![0; copy.bytes()];
                copy.read(0, &mut data)?;
                Ok(data)
            };
            copies.iter().map(read).collect()
        };
        let expected = results()?;
        let mut nearby: Option<Vec<Vec<u8>>> = None;
        let (is_tied, tolerance) = (call.tolerance.ties, call.tolerance.floats);
        let is_compared = |buffer: &ComparedBuffer| {
            buffer.is_output && !is_tied && (buffer.dtype.is_float() || !call.tolerance.integers)
        };
        for (number, buffer) in call.buffers.iter().enumerate().filter(|(_, buffer)| is_compared(buffer)) {
            let mut found = vec![0; buffer.bytes];
            // SAFETY: as above.
            unsafe { runtime.read_at(table[buffer.here as usize], &mut found)? };
            let (before_it, expected) = (&before[number], &expected[number]);
            let is_written =
                |at: Range<usize>| found[at.clone()] != before_it[at.clone()] || expected[at.clone()] != before_it[at];
            if difference(buffer.dtype, tolerance, expected, &found, is_written).is_none() {
                continue;
            }
            // Terms may cancel. Then a difference is acceptable if perturbing the inputs causes one of the same size.
            if nearby.is_none() {
                for (copy, (buffer, data)) in copies.iter().zip(call.buffers.iter().zip(&before)) {
                    copy.write(&compare::moved(buffer.dtype, tolerance, data))?;
                }
                nearby = Some(results()?);
            }
            let second = nearby.as_ref().map_or(expected, |nearby| &nearby[number]);
            let different = compare::difference_beyond(buffer.dtype, tolerance, [expected, second], &found, is_written);
            let Some(different) = different else { continue };
            let Difference { element, expected, found, count } = different;
            let step = plan.steps[call.launches.clone()].last();
            return Err(Error::Mismatch(Box::new(Mismatch {
                kernel: step.map(|step| step.kernel.name.clone()).unwrap_or_default(),
                line: step.map(|step| step.location.clone()).unwrap_or_default(),
                device: plan.device.name().into(),
                reference: reference.device.name().into(),
                buffer: number,
                dtype: buffer.dtype,
                element,
                elements: buffer.bytes / buffer.dtype.size(),
                count,
                found,
                expected,
            })));
        }
    }
    Ok(())
}
