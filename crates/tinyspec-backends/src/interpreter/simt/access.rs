//! Loads and Stores of the threads of a workgroup. Each is checked for bounds, uninitialised memory and races.

use super::super::linear::instruction::{Address, Register, Space};
use super::super::linear::memory::View;
use super::super::linear::races::Touch;
use super::machine::Machine;
use super::races::{Clash, Moment};
use crate::{BackendError, Memory};
use tinyspec_ir::Op;
use tinyspec_ir::eval::eval_lanes;

impl Machine<'_> {
    pub(super) fn load(
        &mut self,
        address: &Address,
        alternative: Option<Register>,
        gate: Option<Register>,
        target: Register,
    ) -> Result<(), BackendError> {
        let view = self.view(address)?;
        for lane in 0..target.lanes {
            for thread in 0..self.size {
                if !self.takes(thread) {
                    continue;
                }
                let mut value = [0];
                if self.is_open(gate, lane, thread) {
                    let element = self.element(address, lane, thread, "reads")?;
                    self.touch(address, element, thread, Touch::Read)?;
                    // SAFETY: the element is inside the buffer.
                    unsafe { view.load(element, &mut value) }
                } else if let Some(alternative) = alternative {
                    value = [self.lane(alternative, lane, thread)];
                }
                let at = self.at(target, lane, thread);
                self.file[at] = value[0];
            }
        }
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        address: &Address,
        source: Register,
        gate: Option<Register>,
    ) -> Result<(), BackendError> {
        self.change(address, gate, ("writes", Touch::Write), |machine, view, element, lane, thread| {
            // SAFETY: the element is inside the buffer.
            unsafe { view.store(element, &[machine.lane(source, lane, thread)]) }
            Ok(())
        })
    }

    pub(super) fn accumulate(
        &mut self,
        address: &Address,
        source: Register,
        gate: Option<Register>,
    ) -> Result<(), BackendError> {
        let dtype = address.dtype;
        self.change(address, gate, ("adds to", Touch::Add), |machine, view, element, lane, thread| {
            let (mut old, mut sum) = ([0], [0]);
            let value = [machine.lane(source, lane, thread)];
            // SAFETY: the element is inside the buffer.
            unsafe { view.load(element, &mut old) }
            eval_lanes(Op::Add, dtype, dtype, &[&old, &value], &mut sum)?;
            // SAFETY: as above.
            unsafe { view.store(element, &sum) }
            Ok(())
        })
    }

    /// Visits the elements that the threads change, after a bounds check: `change` gets element, lane and thread.
    fn change(
        &mut self,
        address: &Address,
        gate: Option<Register>,
        (verb, touch): (&str, Touch),
        change: impl Fn(&Self, View, usize, u32, usize) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let view = self.view(address)?;
        for lane in 0..address.lanes {
            for thread in 0..self.size {
                if !self.takes(thread) || !self.is_open(gate, lane, thread) {
                    continue;
                }
                let element = self.element(address, lane, thread, verb)?;
                self.touch(address, element, thread, touch)?;
                change(self, view, element, lane, thread)?;
            }
        }
        Ok(())
    }

    fn view(&self, address: &Address) -> Result<View, BackendError> {
        let start = match address.space {
            Space::Param(slot) => self.params[slot as usize],
            Space::Local(offset) => self.local.address().wrapping_add(offset),
        };
        if start.is_null() && self.bound.length(address.length) > 0 {
            return Err(self.code.failure(format!("{} has no memory", self.name(address))));
        }
        Ok(View { start, dtype: address.dtype })
    }

    /// Records an access to an element that some instruction may write.
    fn touch(&mut self, address: &Address, element: usize, thread: usize, touch: Touch) -> Result<(), BackendError> {
        let here = Moment { group: self.group, thread: thread as u32, phase: self.phase };
        let clash = match address.space {
            Space::Param(slot) => {
                let marks = self.marks.get_mut(slot as usize).and_then(Option::as_mut);
                marks.and_then(|marks| marks.touch(element, touch, here))
            }
            Space::Local(offset) => self.local_marks.touch(offset + element * address.dtype.size(), touch, here),
        };
        let Some(clash) = clash else { return Ok(()) };
        let does = match touch {
            Touch::Read => "reads",
            Touch::Write => "writes",
            Touch::Add => "adds to",
        };
        let (me, memory) = (self.who(here), self.name(address));
        Err(match clash {
            Clash::Meets(other, did) => {
                let other = self.who(other);
                let reason =
                    format!("{me} {does} element {element} of {memory}, which {other} {did}, with no Barrier between");
                self.code.race(reason)
            }
            Clash::Unwritten => BackendError::Uninitialised {
                name: self.code.name.clone(),
                reason: format!("{me} reads element {element} of {memory}, which nobody has written"),
            },
        })
    }

    fn name(&self, address: &Address) -> String {
        match address.space {
            Space::Param(slot) => self.code.buffer(slot),
            Space::Local(offset) => format!("the LOCAL buffer at {offset}"),
        }
    }

    /// The position of an element, which is checked to be inside the buffer.
    fn element(&self, address: &Address, lane: u32, thread: usize, verb: &str) -> Result<usize, BackendError> {
        let position = if address.is_run() {
            (self.lane(address.index, 0, thread) as i64).wrapping_add(lane as i64)
        } else {
            self.lane(address.index, lane, thread) as i64
        };
        match usize::try_from(position) {
            Ok(position) if position < self.bound.length(address.length) => Ok(position),
            _ => Err(self.code.failure(format!(
                "{} {verb} element {position} of {}, which has {} of {}",
                self.who(Moment { group: self.group, thread: thread as u32, phase: self.phase }),
                self.name(address),
                self.bound.length(address.length),
                address.dtype
            ))),
        }
    }
}
