//! Random programs that assign tensors: what a program reads, and when, does not affect any value.

use tinyspec::prelude::*;

/// The number of assigned tensors: matrices of whole numbers, so that sums are exact in any order.
const STATES: usize = 4;

/// Numbers that decide a step.
pub type Step = [u16; 5];

/// The part of a matrix that a step sets.
fn columns(size: usize, from: u16, count: u16) -> (usize, usize) {
    let first = from as usize % size;
    (first, first + 1 + count as usize % (size - first))
}

/// Values modulo 128, which stay exact.
fn small(x: &Tensor) -> Tensor {
    x - (x / 128.0).floor() * 128.0
}

fn starts(size: usize) -> Vec<Tensor> {
    let of = |state: usize| -> Vec<f32> { (0..size * size).map(|i| ((i * 7 + state * 5) % 13) as f32).collect() };
    (0..STATES).map(|state| Tensor::from_vec(of(state), [size, size])).collect()
}

/// A run of a program.
struct Run {
    states: Vec<Tensor>,
    /// Values computed from states on the way, read at the end.
    kept: Vec<Tensor>,
}

impl Run {
    fn step(&mut self, &[op, to, a, b, part]: &Step) {
        let [to, first, second] = [to, a, b].map(|state| state as usize % STATES);
        let (x, y) = (self.states[first].clone(), self.states[second].clone());
        let size = x.shape()[0].as_const().unwrap_or(1) as usize;
        let row = part as usize % size;
        let (low, high) = columns(size, a, part);
        let state = &mut self.states[to];
        match op % 12 {
            0 => state.assign(&small(&(&x + &y))),
            1 => state.assign(&small(&(&x * 2.0 + y.transpose(0, 1)))),
            2 => state.assign(&small(&(&x + y.sum(0, true)))),
            3 => state.assign(&small(&(&y + x.max(1, true)))),
            4 => state.assign(&small(&(&x - y.flip([1])))),
            5 => state.set(row, small(&(x.at(row) + 1.0))),
            6 => state.set((.., low..high), x.at((.., low..high))),
            7 => state.set(row, f32::from(b % 8)),
            8 => *state = small(&(&*state * 3.0 + &x)),
            9 => self.states.swap(first, second),
            10 => self.kept.push(x),
            _ => self.kept.push((&x * &y).cast(DType::F64).sum(.., false)),
        }
    }

    /// Realizes the states and kept tensors that the low bits of `which` select, in reverse order if its top bit is set.
    fn read(&self, which: u16) -> Result<()> {
        let named = |number: usize| which >> (number % 15) & 1 == 1;
        let all = self.states.iter().chain(&self.kept).enumerate();
        let mut some: Vec<&Tensor> = all.filter(|(number, _)| named(*number)).map(|(_, tensor)| tensor).collect();
        if which >> 15 == 1 {
            some.reverse();
        }
        realize_all(&some)
    }

    fn values(&self) -> Result<Vec<Vec<f64>>> {
        self.states.iter().chain(&self.kept).map(|tensor| tensor.cast(DType::F64).to_vec::<f64>()).collect()
    }
}

/// Runs a program lazily, with reads after some steps, and eagerly, with everything realized after each step and no memory reused.
pub fn check(size: usize, steps: &[(Step, Option<u16>)]) -> Result<(), String> {
    let message = |error: Error| format!("{error}\n{steps:?}");
    let mut lazy = Run { states: starts(size), kept: vec![] };
    let mut eager = Run { states: starts(size), kept: vec![] };
    let mut held = vec![];
    for (step, read) in steps {
        lazy.step(step);
        if let Some(which) = read {
            lazy.read(*which).map_err(message)?;
        }
        eager.step(step);
        eager.read(0x7fff).map_err(message)?;
        held.extend(eager.states.iter().cloned());
    }
    let (found, wanted) = (lazy.values().map_err(message)?, eager.values().map_err(message)?);
    match found.iter().zip(&wanted).position(|(found, wanted)| found != wanted) {
        None => Ok(()),
        Some(tensor) => Err(format!("tensor {tensor}: {:?}, eagerly {:?}\n{steps:?}", found[tensor], wanted[tensor])),
    }
}
