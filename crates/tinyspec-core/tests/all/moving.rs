//! Loops whose gradients flow through windows at moving places and changing numbers, with values that are read before, against
//! derivatives by dual numbers.

use proptest::prelude::*;
use tinyspec_core::{Error, Tensor, grad_or_zeros};

/// Length of the weight, and of the windows of it.
const WHOLE: usize = 9;
const PART: usize = 4;
/// Of the differences that second derivatives are compared with.
const STEP: f64 = 1e-5;

/// What is done with the state, a vector of `PART` elements. The numbers are places that move by as much in each step.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Adds a window of the weight.
    Window(usize),
    /// Multiplies by a window of a window.
    Nested(usize, usize),
    /// Takes a window of the state within zeros, times the weight.
    Padded(usize, usize),
    /// Multiplies by a number.
    Scaled(usize),
    Sine,
    /// Subtracts the maximum.
    Maximum,
    /// Reads the state.
    Read,
    /// Adds the state without its gradient.
    Detached,
}

fn change() -> impl Strategy<Value = Change> {
    let place = 0..WHOLE;
    prop_oneof![
        3 => place.clone().prop_map(Change::Window),
        1 => (place.clone(), place.clone()).prop_map(|(a, b)| Change::Nested(a, b)),
        1 => (place.clone(), place.clone()).prop_map(|(a, b)| Change::Padded(a, b)),
        1 => place.prop_map(Change::Scaled),
        1 => Just(Change::Sine),
        1 => Just(Change::Maximum),
        2 => Just(Change::Read),
        1 => Just(Change::Detached),
    ]
}

/// The offset of a window of `part` elements in this step.
fn place(first: usize, step: usize, whole: usize, part: usize) -> usize {
    (first + step) % (whole - part + 1)
}

fn number(first: usize, step: usize) -> f64 {
    0.5 + (first + step) as f64 / 16.0
}

fn by_tensors(changes: &[Change], step: usize, w: &Tensor) -> Result<Tensor, Error> {
    let window = |x: &Tensor, whole: usize, part: usize, first: usize| {
        let start = place(first, step, whole, part) as i64;
        x.at((start..start + part as i64,))
    };
    let mut state = Tensor::from_slice(&[0.5f64, -0.25, 1.0, 0.75], [PART]);
    for &change in changes {
        state = match change {
            Change::Window(first) => state + window(w, WHOLE, PART, first),
            Change::Nested(outer, inner) => state * window(&window(w, WHOLE, PART + 2, outer), PART + 2, PART, inner),
            Change::Padded(before, part) => {
                let start = place(before, step, WHOLE, PART) as i64;
                let padded = state.pad([start], [WHOLE as i64], 0.0) * w;
                window(&padded, WHOLE, PART, part)
            }
            Change::Scaled(first) => state * number(first, step),
            Change::Sine => state.sin(),
            Change::Maximum => &state - state.max(.., true),
            Change::Read => {
                state.to_vec::<f64>()?;
                state
            }
            Change::Detached => &state + state.detach(),
        };
    }
    Ok(state.square().sum(.., false))
}

/// A value and its derivative.
type Dual = (f64, f64);

fn by_duals(changes: &[Change], step: usize, w: &[Dual]) -> Dual {
    let times = |(a, da): Dual, (b, db): Dual| (a * b, a * db + da * b);
    let mut state: Vec<Dual> = [0.5, -0.25, 1.0, 0.75].map(|x| (x, 0.0)).into();
    for &change in changes {
        match change {
            Change::Window(first) => {
                let part = &w[place(first, step, WHOLE, PART)..];
                state.iter_mut().zip(part).for_each(|(x, w)| *x = (x.0 + w.0, x.1 + w.1));
            }
            Change::Nested(outer, inner) => {
                let part = &w[place(outer, step, WHOLE, PART + 2) + place(inner, step, PART + 2, PART)..];
                state.iter_mut().zip(part).for_each(|(x, &w)| *x = times(*x, w));
            }
            Change::Padded(before, part) => {
                let mut padded = [(0.0, 0.0); WHOLE];
                padded[place(before, step, WHOLE, PART)..][..PART].copy_from_slice(&state);
                let start = place(part, step, WHOLE, PART);
                state = padded.iter().zip(w).map(|(&x, &w)| times(x, w)).skip(start).take(PART).collect();
            }
            Change::Scaled(first) => state.iter_mut().for_each(|x| *x = times(*x, (number(first, step), 0.0))),
            Change::Sine => state.iter_mut().for_each(|x| *x = (x.0.sin(), x.0.cos() * x.1)),
            Change::Maximum => {
                let largest = state.iter().map(|x| x.0).fold(f64::NEG_INFINITY, f64::max);
                let equal: Vec<f64> = state.iter().filter(|x| x.0 == largest).map(|x| x.1).collect();
                let slope = equal.iter().sum::<f64>() / equal.len() as f64;
                state.iter_mut().for_each(|x| *x = (x.0 - largest, x.1 - slope));
            }
            Change::Read => {}
            Change::Detached => state.iter_mut().for_each(|x| *x = (2.0 * x.0, x.1)),
        }
    }
    state.into_iter().map(|x| times(x, x)).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}

fn constant(w: &[f64]) -> Vec<Dual> {
    w.iter().map(|&x| (x, 0.0)).collect()
}

fn slopes(changes: &[Change], step: usize, w: &[f64]) -> Vec<f64> {
    let slope = |of: usize| {
        let mut duals = constant(w);
        duals[of].1 = 1.0;
        by_duals(changes, step, &duals).1
    };
    (0..WHOLE).map(slope).collect()
}

fn are_close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * (1.0 + expected.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 12 } else { 60 }))]

    #[test]
    fn gradients_are_those_of_the_step(
        changes in prop::collection::vec(change(), 1..9),
        reads in any::<bool>(),
        length in 5..8usize,
    ) {
        let mut data: Vec<f64> = (0..WHOLE).map(|i| 0.9 - i as f64 * 0.17).collect();
        for step in 0..length {
            let w = Tensor::from_slice(&data, [WHOLE]);
            let loss = by_tensors(&changes, step, &w).unwrap();
            let (value, expected) = (by_duals(&changes, step, &constant(&data)).0, slopes(&changes, step, &data));
            if reads {
                let found = loss.item::<f64>().unwrap();
                prop_assert!(are_close(found, value, 1e-9), "loss {found} for {value} in step {step}");
            }
            let gradient = &grad_or_zeros(&loss, &[&w]).unwrap()[0];
            let second = &grad_or_zeros(&gradient.square().sum(.., false), &[&w]).unwrap()[0];
            let (found, second) = (gradient.to_vec::<f64>().unwrap(), second.to_vec::<f64>().unwrap());
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!(are_close(*found, *expected, 1e-9), "gradient {found} for {expected} in step {step}");
            }
            // To the second gradient a detached value is a constant, which these differences do not know.
            if !changes.iter().any(|change| matches!(change, Change::Detached | Change::Maximum)) {
                for (at, second) in second.iter().enumerate() {
                    let squares = |by: f64| -> f64 {
                        let mut moved = data.clone();
                        moved[at] += by;
                        slopes(&changes, step, &moved).iter().map(|slope| slope * slope).sum()
                    };
                    let expected = (squares(STEP) - squares(-STEP)) / (2.0 * STEP);
                    prop_assert!(are_close(*second, expected, 1e-5), "second {second} for {expected} in step {step}");
                }
            }
            data.iter_mut().zip(&found).for_each(|(x, slope)| *x -= 0.01 * slope.clamp(-1.0, 1.0));
        }
    }
}
