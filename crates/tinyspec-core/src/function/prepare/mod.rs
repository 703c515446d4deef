//! Prepared calls: everything is compiled, so a call builds no graph. On one device it fills a table of addresses and runs
//! ([`single`]); on a tuple of devices it is several such calls and moves between them ([`tuple`]).

mod single;
mod tuple;

pub(super) use single::{RangedCommands, Sizing};

use super::Function;
use crate::Result;
use crate::device::Device;
use crate::tensor::Tensor;
use single::Single;
use smallvec::SmallVec;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::Device::Many;
use tinyspec_ir::{DType, Error, ErrorKind, Shape};
use tuple::OnTuple;

/// A [`Function`] planned for arguments like those that it was prepared with: on their device, or on their tuple of devices. Shapes
/// are fixed; where dims have bounds, a call on one device takes all sizes within these.
pub struct Prepared(Call);

enum Call {
    Single(Box<Single>),
    Tuple(Box<OnTuple>),
}

/// A result that is the new state of an argument. The argument is not passed.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub result: usize,
    pub argument: usize,
}

impl State {
    /// Checks that results and arguments exist, are named once, and are alike; `show` describes one.
    fn check<R: PartialEq>(
        states: &[State],
        results: &[R],
        arguments: &[R],
        show: impl Fn(&R) -> String,
    ) -> tinyspec_ir::Result<()> {
        let refused = |kind, message: String| Error::new(kind, "in_place", message);
        for (number, &State { result, argument }) in states.iter().enumerate() {
            let (Some(new), Some(old)) = (results.get(result), arguments.get(argument)) else {
                let (results, arguments) = (results.len(), arguments.len());
                let message = format!(
                    "result {result} as the new state of argument {argument}, of {results} results and {arguments} arguments"
                );
                return Err(refused(ErrorKind::Arity, message));
            };
            if states[..number].iter().any(|other| other.result == result || other.argument == argument) {
                let message = format!("result {result} or argument {argument} is named twice");
                return Err(refused(ErrorKind::Arity, message));
            }
            if new != old {
                let message = format!("result {result} is {}, argument {argument} {}", show(new), show(old));
                return Err(refused(ErrorKind::Shape, message).help("a new state is like the old one"));
            }
        }
        Ok(())
    }

    /// Checks the numbers of tensors that a call takes and gives.
    fn check_counts(
        states: &[State],
        (inputs, outputs): (usize, usize),
        (arguments, out): (usize, usize),
    ) -> tinyspec_ir::Result<()> {
        let passed = inputs - states.len();
        if arguments == passed && out == outputs {
            return Ok(());
        }
        let message = format!("takes {passed} tensors and gives {outputs}, found {arguments} and {out}");
        let error = Error::new(ErrorKind::Arity, "call", message);
        Err(match states.first() {
            Some(State { result, argument }) if arguments > passed => error.help(format!(
                "argument {argument} is a state since `in_place`: it is not passed among the arguments but in `out`, as result {result}"
            )),
            _ => error,
        })
    }

    /// All arguments, including states from `out`.
    fn with<'a>(states: &[State], out: &'a [Tensor], arguments: &[&'a Tensor]) -> SmallVec<[&'a Tensor; 16]> {
        let mut rest = arguments.iter();
        let all = (0..arguments.len() + states.len()).filter_map(|slot| {
            match states.iter().find(|state| state.argument == slot) {
                Some(state) => out.get(state.result),
                None => rest.next().copied(),
            }
        });
        all.collect()
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Prepared");
        match &self.0 {
            Call::Single(call) => {
                let sizing = call.last();
                shown.field("inputs", &sizing.inputs).field("outputs", &sizing.outputs)
            }
            Call::Tuple(call) => {
                let [inputs, outputs] = call.show();
                shown.field("inputs", &inputs).field("outputs", &outputs)
            }
        }
        .finish()
    }
}

impl Prepared {
    pub(super) fn new(
        function: &Function,
        arguments: &[&Tensor],
        location: &'static Location<'static>,
    ) -> Result<Prepared> {
        let tuple = arguments.iter().find_map(|argument| match argument.device() {
            Some(Many(names)) => Some(names.clone()),
            _ => None,
        });
        Ok(Prepared(match tuple {
            Some(names) => Call::Tuple(Box::new(OnTuple::new(function, arguments, &names, location)?)),
            None => Call::Single(Box::new(Single::new(function, arguments, location)?)),
        }))
    }

    /// A call whose command buffer was read from text.
    pub(super) fn read(
        device: Arc<Device>,
        commands: RangedCommands,
        states: SmallVec<[State; 2]>,
    ) -> Result<Prepared> {
        Ok(Prepared(Call::Single(Box::new(Single::read(device, commands, states)?))))
    }

    /// Writes its command buffer by `print`, which is told the plan and the arguments, or those of each device.
    pub(super) fn print(
        &self,
        f: &mut fmt::Formatter<'_>,
        print: impl Fn(&Sizing, &[(DType, Shape)]) -> std::result::Result<String, fmt::Error>,
    ) -> fmt::Result {
        match &self.0 {
            Call::Single(call) => f.write_str(&print(&call.last(), &call.inputs())?),
            Call::Tuple(call) => call.print(f, print),
        }
    }

    /// Vouches for a call that was read from text, so that it may run.
    ///
    /// # Safety
    /// Its kernels must stay within their buffers.
    #[must_use]
    pub unsafe fn vouched(self) -> Prepared {
        match self.0 {
            // SAFETY: as the caller promises.
            Call::Single(call) => Prepared(Call::Single(Box::new(unsafe { call.vouched() }))),
            // It was compiled here.
            tuple @ Call::Tuple(_) => Prepared(tuple),
        }
    }

    /// The same call with results that are the new states of arguments: for each `(result, argument)` the argument is no longer
    /// passed to [`Prepared::call`], which takes it from `out` and leaves the new state there. Where the function
    /// replaces a part of a state, such as a row of a cache, only that part is written. On a tuple of devices a state has two
    /// memories, which take turns.
    ///
    /// ```
    /// # use tinyspec_core::{Tensor, function::Prepare};
    /// fn push(cache: &Tensor, at: &Tensor, row: &Tensor) -> Tensor {
    ///     let mut next = cache.clone();
    ///     next.set(at, row);
    ///     next
    /// }
    /// let (cache, row) = (Tensor::zeros([3, 2]), Tensor::ones([1, 2]));
    /// let at = |row: i32| Tensor::from_slice(&[row], [1]);
    /// let run = push.prepare(&[&cache, &at(0), &row])?.in_place(&[(0, 0)])?;
    /// let mut out = [cache];
    /// run.call(&mut out, &[&at(0), &row])?;
    /// run.call(&mut out, &[&at(2), &row])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such result or argument, one is named twice, or they differ in dtype, shape or how they are cut; when dims of the function
    /// have bounds, or the call was read from text.
    #[track_caller]
    pub fn in_place(self, states: &[(usize, usize)]) -> Result<Prepared> {
        let location = Location::caller();
        let states: Vec<State> = states.iter().map(|&(result, argument)| State { result, argument }).collect();
        Ok(Prepared(match self.0 {
            Call::Single(call) => Call::Single(Box::new(call.in_place(&states, location)?)),
            Call::Tuple(call) => Call::Tuple(Box::new(call.in_place(&states, location)?)),
        }))
    }

    /// New tensors that fit the results; their contents are undefined until a call fills them.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn outputs(&self) -> Result<Vec<Tensor>> {
        match &self.0 {
            Call::Single(call) => call.outputs(),
            Call::Tuple(call) => call.outputs(),
        }
    }

    /// Runs on `arguments` and puts the results into `out`.
    ///
    /// Unshared memory of `out` is written in place; if a clone or a lazy tensor still refers to it, that one keeps its
    /// value and `out` gets new memory.
    ///
    /// # Errors
    /// When arguments differ from those it was prepared for, nobody [vouches](Prepared::vouched) for it, or a kernel fails: then the
    /// contents of `out` are undefined.
    #[track_caller]
    pub fn call(&self, out: &mut [Tensor], arguments: &[&Tensor]) -> Result<()> {
        let location = Location::caller();
        match &self.0 {
            Call::Single(call) => call.call(out, arguments, location),
            Call::Tuple(call) => call.call(out, arguments, location),
        }
    }
}
