//! One program on every device, beside the oracle.

use crate::launch::{SHAPES, takes_all_shapes};
use crate::program::{Family, Input, Program};
use crate::simulators::{self, SIMULATED};
use std::panic::AssertUnwindSafe;
use tinyspec::backends::interpreter::{array::Array, tensor};
use tinyspec::collectives::broadcast;
use tinyspec::ir::Const;
use tinyspec::{DType, Dim, Function, Spec, Tensor, grad_or_zeros, realize_all, with_default_device};

/// The inputs and the steps, to be read.
pub fn describe(program: &Program) -> String {
    let mut text = String::new();
    let data = program.data();
    let specs: Vec<Spec> = data.iter().map(spec).collect();
    for (index, input) in data.iter().enumerate() {
        text += &format!(
            "  v{index}: {} {:?} {:?}\n",
            input.dtype,
            input.shape,
            &input.values[..input.values.len().min(12)]
        );
    }
    let mut log = Vec::new();
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let _ = Function::trace(&specs, |inputs| program.run(inputs, false, &mut log));
    }));
    for line in log {
        text += &format!("  {line}\n");
    }
    text
}

/// Whether every device agrees with the oracle.
pub fn check(program: &Program) -> Result<(), String> {
    guarded(|| on_devices(program))
}

/// What `check` says; a panic is said too.
pub fn guarded(check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    match std::panic::catch_unwind(AssertUnwindSafe(check)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
                .unwrap_or_default();
            Err(format!("PANIC {text}"))
        }
    }
}

fn spec(input: &Input) -> Spec {
    Spec::new(input.dtype, input.shape.iter().map(|&dim| Dim::from(dim)).collect::<Vec<Dim>>().as_slice())
}

fn array(input: &Input) -> Array {
    let sizes: Vec<usize> = input.shape.iter().map(|&dim| dim as usize).collect();
    let lanes = input.values.iter().map(|&value| Const::float(input.dtype, value).bits).collect();
    Array::new(input.dtype, &sizes, lanes).expect("a sound array")
}

/// The results and, for floats, the gradients of a weighted sum of them.
fn results(program: &Program, inputs: &[Tensor], reads: bool, log: &mut Vec<String>) -> Result<Vec<Tensor>, String> {
    let mut outputs = program.run(inputs, reads, log);
    let last = outputs.last().cloned().ok_or("no output")?;
    if let Some(error) = outputs.iter().find_map(|output| output.error()) {
        return Err(format!("REFUSED {error}"));
    }
    let floats: Vec<&Tensor> = inputs.iter().filter(|input| input.dtype().is_float()).collect();
    if last.dtype().is_float() && !floats.is_empty() {
        let shape = last.sizes().map_err(|error| error.to_string())?;
        let count: usize = shape.iter().product();
        // The oracle makes a ramp in n² steps.
        let weight = if count < 300 { Tensor::arange(count).modulo(3).add(1) } else { Tensor::full([count], 1) };
        let weight = weight.cast(last.dtype()).reshape(shape.iter().map(|&size| size as i64).collect::<Vec<_>>());
        let loss = last.mul(weight).sum(.., false);
        let gradients = grad_or_zeros(&loss, &floats).map_err(|error| format!("GRAD REFUSED {error}"))?;
        outputs.push(loss);
        outputs.extend(gradients);
    }
    Ok(outputs)
}

/// The program as a Function, and its inputs.
pub fn traced(program: &Program) -> Result<(Function, Vec<Array>), String> {
    let data = program.data();
    let specs: Vec<Spec> = data.iter().map(spec).collect();
    let mut failure = None;
    let mut log = Vec::new();
    let function = Function::trace(&specs, |inputs| match results(program, inputs, false, &mut log) {
        Ok(outputs) => outputs,
        Err(error) => {
            failure = Some(error);
            vec![]
        }
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let function = function.map_err(|error| format!("TRACE {error}"))?;
    Ok((function, data.iter().map(array).collect()))
}

/// A number that decides which of several devices are this program's turn.
fn turn(program: &Program) -> usize {
    program.steps.iter().flatten().fold(0, |sum, &word| sum + usize::from(word))
}

/// The shape of a processor that is this program's turn, or all of them.
pub fn shapes(program: &Program) -> impl Iterator<Item = &'static str> {
    let turn = turn(program) % SHAPES.len();
    let is_taken = move |number: usize| takes_all_shapes() || number == turn;
    SHAPES.into_iter().enumerate().filter(move |(number, _)| is_taken(*number)).map(|(_, shape)| shape)
}

/// One program in so many runs on a simulated GPU; fewer of the long mode's, since it takes as long as on all other devices.
const SIMULATED_SHARE: [usize; 2] = [4, 16];

fn simulated(program: &Program) -> Option<&'static str> {
    let (turn, all) = (turn(program), takes_all_shapes());
    let share = SIMULATED_SHARE[usize::from(std::env::var_os("TINYSPEC_LONG").is_some())];
    let is_taken = (all || turn % share == 0) && simulators::register().is_ok();
    is_taken.then(|| SIMULATED[turn / share % SIMULATED.len()])
}

/// The devices that `TINYSPEC_DEVICES` names, single ones and tuples. If it is set, programs run on these alone.
pub fn named() -> Option<Vec<Vec<String>>> {
    let names = std::env::var("TINYSPEC_DEVICES").ok()?;
    Some(names.split_whitespace().map(|tuple| tuple.split(',').map(str::to_string).collect()).collect())
}

fn on_devices(program: &Program) -> Result<(), String> {
    let data = program.data();
    let specs: Vec<Spec> = data.iter().map(spec).collect();
    let (function, arrays) = traced(program)?;
    let body = function.body();
    let want = tensor::evaluate(body.graph(), body.outputs(), &arrays).map_err(|error| format!("ORACLE {error}"))?;
    let forward = program.steps.len();
    if program.family == Family::Smooth && want.len() > forward {
        finite_differences(program, &specs, &arrays, &want, forward)?;
    }
    let count = 2 + program.steps.len() % 3;
    let tuple = |kind: &str| (0..count).map(|number| format!("{kind}:{number}")).collect::<Vec<_>>();
    let all = match named() {
        Some(named) => named,
        None => {
            let alone = ["interpreter", "simt", "cpu"].into_iter().chain(shapes(program)).chain(simulated(program));
            let alone = alone.map(|name| vec![name.to_string()]);
            alone.chain(["interpreter", "cpu"].map(tuple)).collect::<Vec<_>>()
        }
    };
    for places in all {
        let device = places.join(", ");
        if let Err(error) = tinyspec::device(&places[0]) {
            if named().is_some() {
                return Err(format!("device {device}: {error}"));
            }
            println!("skipped: device {device}: {error}");
            continue;
        }
        // Of an equal program with other tensors, bodies and gradients are known.
        let times = if places.len() == 1 && places[0] == "cpu" { 2 } else { 1 };
        let run = || -> Result<Vec<Tensor>, tinyspec::Error> {
            let inputs: Vec<Tensor> = data
                .iter()
                .zip(&arrays)
                .map(|(input, array)| {
                    placed(input, Tensor::from_bytes(input.dtype, &array.to_bytes(), &input.shape), &places)
                })
                .collect();
            let outputs = results(program, &inputs, true, &mut Vec::new()).unwrap_or_default();
            realize_all(&outputs.iter().collect::<Vec<_>>())?;
            Ok(outputs)
        };
        for _ in 0..times {
            let got = with_default_device(&places[0], run).map_err(|error| format!("ERROR on {device}: {error}"))?;
            are_equal(program, &device, &got, &want, forward)?;
        }
    }
    Ok(())
}

/// Whether what a device has computed is what the oracle has; the first `forward` are results, the others a loss and gradients.
fn are_equal(program: &Program, device: &str, got: &[Tensor], want: &[Array], forward: usize) -> Result<(), String> {
    if got.len() != want.len() {
        return Err(format!("{} results on {device}, {} from the oracle", got.len(), want.len()));
    }
    for (index, (got, want)) in got.iter().zip(want).enumerate() {
        let bytes = got.to_bytes().map_err(|error| format!("ERROR on {device}: {error}"))?;
        let sizes = got.sizes().map_err(|error| error.to_string())?;
        let got = Array::from_bytes(got.dtype(), &sizes, &bytes).map_err(|error| error.to_string())?;
        let what = if index < forward { "result" } else { "loss or gradient" };
        compare(program.family, index >= forward, &got, want)
            .map_err(|error| format!("WRONG on {device}: {what} {index}: {error}"))?;
    }
    Ok(())
}

/// An input where the program runs: of several devices each has a part, or all where they cannot share it.
fn placed(input: &Input, tensor: Tensor, places: &[String]) -> Tensor {
    match (places, input.shape.first()) {
        ([_], _) => tensor,
        (_, Some(length)) if length % places.len() as i64 == 0 => tensor.to(places),
        _ => broadcast(&tensor, places),
    }
}

/// Bit for bit where the family is exact, but for gradients; else within a tolerance.
pub fn compare(family: Family, gradient: bool, got: &Array, want: &Array) -> Result<(), String> {
    if got.dtype() != want.dtype() || got.shape() != want.shape() {
        return Err(format!("{} {:?} instead of {} {:?}", got.dtype(), got.shape(), want.dtype(), want.shape()));
    }
    let exact = matches!(family, Family::Exact | Family::Special) && !gradient;
    let tolerance = match (exact, got.dtype()) {
        (true, _) => 0.0,
        (_, DType::F64) => 1e-9,
        _ if family == Family::Attention => 1e-4,
        _ => 2e-5,
    };
    let (got, want) = (got.to_floats(), want.to_floats());
    let scale = want.iter().filter(|x| x.is_finite()).fold(1.0f64, |scale, x| scale.max(x.abs()));
    for (index, (&g, &w)) in got.iter().zip(&want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance * scale;
        if !same {
            return Err(format!("element {index} is {g:?} instead of {w:?}"));
        }
    }
    Ok(())
}

/// The gradients beside differences of the oracle's own forward pass.
fn finite_differences(
    program: &Program,
    specs: &[Spec],
    arrays: &[Array],
    want: &[Array],
    forward: usize,
) -> Result<(), String> {
    let function = Function::trace(specs, |inputs| {
        let mut outputs = results(program, inputs, false, &mut Vec::new()).unwrap_or_default();
        outputs.truncate(forward + 1);
        outputs.split_off(forward)
    })
    .map_err(|error| error.to_string())?;
    let body = function.body();
    let loss = |arrays: &[Array]| -> Result<f64, String> {
        let values = tensor::evaluate(body.graph(), body.outputs(), arrays).map_err(|error| error.to_string())?;
        Ok(values[0].to_floats()[0])
    };
    for (index, array) in arrays.iter().enumerate() {
        let gradient = want[forward + 1 + index].to_floats();
        let values = array.to_floats();
        for position in [0, values.len() / 2, values.len().saturating_sub(1)] {
            if position >= values.len() {
                continue;
            }
            let moved = |step: f64| -> Result<f64, String> {
                let mut values = values.clone();
                values[position] += step;
                let mut moved = arrays.to_vec();
                moved[index] = Array::from_floats(array.dtype(), array.shape(), &values).map_err(|e| e.to_string())?;
                loss(&moved)
            };
            let difference = |step: f64| -> Result<f64, String> { Ok((moved(step)? - moved(-step)?) / (2.0 * step)) };
            let (coarse, fine) = (difference(1e-4)?, difference(1e-5)?);
            // At a kink, or near one, these disagree: no judgement.
            let here = moved(0.0)?;
            let (left, right) = ((here - moved(-1e-5)?) / 1e-5, (moved(1e-5)? - here) / 1e-5);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-3 * (1.0 + fine.abs());
            if !(near(coarse, fine) && near(left, right)) {
                continue;
            }
            let got = gradient[position];
            if got.is_nan() || (got - fine).abs() > 1e-3 * (1.0 + fine.abs()) {
                return Err(format!(
                    "GRADIENT of v{index}[{position}] is {got:?}, differences give {fine:?} ({coarse:?})"
                ));
            }
        }
    }
    Ok(())
}
