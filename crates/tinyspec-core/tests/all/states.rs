//! States that a function takes and gives back with a part replaced, such as the caches of a language model: values as of a
//! program that copies, memory as of one that does not.

use tinyspec_core::execute::{Device, register};
use tinyspec_core::function::{Prepare, Prepared};
use tinyspec_core::{Error, Function, Spec, Tensor, realize_all};

use std::sync::Arc;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};

const ROWS: usize = 3000;
const ROW_BYTES: u64 = 8 * 4;

/// A device of the test's own, so that nobody else moves bytes on it.
fn device(name: &str) -> Arc<Device> {
    let interpreter = tinyspec_core::execute::device("interpreter").unwrap();
    register(name, interpreter.target().clone(), Arc::new(InterpreterCompiler), Arc::new(InterpreterRuntime))
}

fn on(device: &Device, data: Vec<f32>, shape: &[usize]) -> Result<Tensor, Error> {
    let tensor = Tensor::from_vec(data, shape).to(device.name());
    tensor.realize()?;
    Ok(tensor)
}

fn cache(device: &Device, start: f32) -> Result<Tensor, Error> {
    on(device, (0..ROWS * 8).map(|i| start + (i % 97) as f32).collect(), &[ROWS, 8])
}

fn place(device: &Device, at: usize) -> Result<Tensor, Error> {
    let at = Tensor::from_slice(&[at as i32], [1]).to(device.name());
    at.realize()?;
    Ok(at)
}

/// Both caches with a row replaced, and what the row is multiplied with one of them.
fn step(keys: &Tensor, values: &Tensor, at: &Tensor, row: &Tensor) -> (Tensor, Tensor, Tensor) {
    let (mut keys, mut values) = (keys.clone(), values.clone());
    keys.set(at, row);
    values.set(at, row * 2.0);
    (row.matmul(keys.transpose(0, 1)), keys, values)
}

/// What the caches are after rows were replaced.
fn expected(start: f32, rows: &[(usize, f32)]) -> Vec<f32> {
    let mut data: Vec<f32> = (0..ROWS * 8).map(|i| start + (i % 97) as f32).collect();
    for &(at, value) in rows {
        data[at * 8..at * 8 + 8].fill(value);
    }
    data
}

#[test]
fn a_lazy_call_writes_the_replaced_part_only() -> Result<(), Error> {
    let device = device("lazy states");
    let specs = [Spec::of(&cache(&device, 0.0)?), Spec::of(&cache(&device, 0.0)?)];
    let specs = [specs, [Spec::of(&place(&device, 0)?), Spec::of(&on(&device, vec![1.0; 8], &[1, 8])?)]].concat();
    let function = Function::trace(&specs, |inputs| {
        let (scores, keys, values) = step(&inputs[0], &inputs[1], &inputs[2], &inputs[3]);
        vec![scores, keys, values]
    })?;
    let (mut keys, mut values) = (cache(&device, 0.0)?, cache(&device, 5.0)?);
    let row = on(&device, vec![1.0; 8], &[1, 8])?;
    for (number, at) in [7, 2999, 0].into_iter().enumerate() {
        let before = device.moved();
        let at = place(&device, at)?;
        let results = function.call(&[&keys, &values, &at, &row]);
        (keys, values) = (results[1].clone(), results[2].clone());
        realize_all(&[&results[0], &keys, &values])?;
        // The keys are read once.
        assert!(device.moved() - before < 2 * ROWS as u64 * ROW_BYTES, "step {number}");
    }
    assert_eq!(keys.to_vec::<f32>()?, expected(0.0, &[(7, 1.0), (2999, 1.0), (0, 1.0)]));
    assert_eq!(values.to_vec::<f32>()?, expected(5.0, &[(7, 2.0), (2999, 2.0), (0, 2.0)]));
    // Who keeps a state sees it as it was.
    let kept = keys.clone();
    let results = function.call(&[&keys, &values, &place(&device, 9)?, &row]);
    keys = results[1].clone();
    realize_all(&[&keys, &results[2]])?;
    assert_eq!(kept.to_vec::<f32>()?, expected(0.0, &[(7, 1.0), (2999, 1.0), (0, 1.0)]));
    assert_eq!(keys.to_vec::<f32>()?, expected(0.0, &[(7, 1.0), (2999, 1.0), (0, 1.0), (9, 1.0)]));
    Ok(())
}

fn prepared(device: &Device) -> Result<Prepared, Error> {
    let (state, at, row) = (cache(device, 0.0)?, place(device, 0)?, on(device, vec![1.0; 8], &[1, 8])?);
    step.prepare(&[&state, &state, &at, &row])?.in_place(&[(1, 0), (2, 1)])
}

#[test]
fn a_prepared_call_writes_the_replaced_part_only() -> Result<(), Error> {
    let device = device("prepared states");
    let run = prepared(&device)?;
    let row = on(&device, vec![1.0; 8], &[1, 8])?;
    let mut out = run.outputs()?;
    (out[1], out[2]) = (cache(&device, 0.0)?, cache(&device, 5.0)?);
    for at in [7, 2999, 0] {
        let before = device.moved();
        run.call(&mut out, &[&place(&device, at)?, &row])?;
        assert!(device.moved() - before < 2 * ROWS as u64 * ROW_BYTES, "row {at}");
    }
    assert_eq!(out[1].to_vec::<f32>()?, expected(0.0, &[(7, 1.0), (2999, 1.0), (0, 1.0)]));
    assert_eq!(out[2].to_vec::<f32>()?, expected(5.0, &[(7, 2.0), (2999, 2.0), (0, 2.0)]));
    let kept = out[2].clone();
    run.call(&mut out, &[&place(&device, 9)?, &row])?;
    assert_eq!(kept.to_vec::<f32>()?, expected(5.0, &[(7, 2.0), (2999, 2.0), (0, 2.0)]));
    assert_eq!(out[2].to_vec::<f32>()?, expected(5.0, &[(7, 2.0), (2999, 2.0), (0, 2.0), (9, 2.0)]));
    Ok(())
}

/// A state that cannot be written over itself gets new memory.
#[test]
fn any_function_may_replace_its_state() -> Result<(), Error> {
    let x = Tensor::from_vec((0..12).map(|i| i as f32).collect::<Vec<_>>(), [3, 4]);
    let turn = |x: &Tensor, by: &Tensor| (x.flip([0, 1]) + by, x.sum(.., false));
    let by = Tensor::ones([1]);
    let run = turn.prepare(&[&x, &by])?.in_place(&[(0, 0)])?;
    let mut out = [x.clone(), Tensor::zeros(())];
    run.call(&mut out, &[&by])?;
    run.call(&mut out, &[&by])?;
    assert_eq!(out[0].to_vec::<f32>()?, (0..12).map(|i| i as f32 + 2.0).collect::<Vec<_>>());
    assert_eq!(out[1].item::<f32>()?, 66.0 + 12.0);
    assert_eq!(x.to_vec::<f32>()?[0], 0.0);
    Ok(())
}

#[test]
fn states_that_do_not_fit_are_refused() -> Result<(), Error> {
    let (x, y) = (Tensor::ones([2, 3]), Tensor::ones([3]));
    let both = |x: &Tensor, y: &Tensor| (x + y, x.sum(0, false));
    let refused = |states: &[(usize, usize)]| -> Result<String, Error> {
        let run = both.prepare(&[&x, &y])?;
        Ok(run.in_place(states).err().map(|error| error.to_string()).unwrap_or_default())
    };
    assert!(refused(&[(0, 1)])?.contains("result 0 is f32 [2, 3], argument 1 f32 [3]"));
    assert!(refused(&[(2, 0)])?.contains("of 2 results and 2 arguments"));
    assert!(refused(&[(0, 0), (0, 0)])?.contains("named twice"));
    assert_eq!(refused(&[(0, 0), (1, 1)])?, "");
    let run = both.prepare(&[&x, &y])?.in_place(&[(0, 0)])?;
    let mut out = run.outputs()?;
    let error = run.call(&mut out, &[&x, &y]).unwrap_err().to_string();
    assert!(error.contains("takes 1 tensors"), "{error}");
    let says = "argument 0 is a state since `in_place`: it is not passed among the arguments but in `out`, as result 0";
    assert!(error.contains(says), "{error}");
    let error = run.call(&mut out, &[]).unwrap_err().to_string();
    assert!(error.contains("takes 1 tensors") && !error.contains("in_place"), "{error}");
    Ok(())
}
