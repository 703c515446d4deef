//! Reduces over the same Ranges are made by one loop, unless one of them needs another, be it through other loops.

use tinyspec_backends::interpreter::array::Array;
use tinyspec_backends::interpreter::tensor;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Function, Spec, Tensor, grad, realize_all};
use tinyspec_ir::{DType, Dim};

type Step = (&'static str, fn(&Tensor) -> Tensor);

/// What sums, scans and walks rows and columns again.
const STEPS: [Step; 12] = [
    ("logcumsumexp(1)", |x| x.logcumsumexp(1)),
    ("cumsum(0)", |x| x.cumsum(0)),
    ("normalize(2, 1)", |x| x.normalize(2.0, 1, 1e-6)),
    ("maximum(x, x)", |x| x.maximum(x)),
    ("softmax(0)", |x| x.softmax(0)),
    ("std(0)", |x| x.std([0], 0, true)),
    ("log_softmax(1)", |x| x.log_softmax(1)),
    ("x - mean(0)", |x| x.sub(x.mean(0, true))),
    ("cumsum(1)", |x| x.cumsum(1)),
    ("softmax(1)", |x| x.softmax(1)),
    ("x / var(1)", |x| x.div(x.var(1, 0, true).add(0.5))),
    ("normalize(2, 0)", |x| x.normalize(2.0, 0, 1e-6)),
];

/// All values of a chain of steps, and the gradient of their sum, as the definition has it.
fn check(dtype: DType, shape: [i64; 2], chain: &[Step]) -> Result<(), Error> {
    let run = |x: &Tensor| -> Result<Vec<Tensor>, Error> {
        let mut values = vec![x.clone()];
        for (_, step) in chain {
            values.push(step(&values[values.len() - 1]));
        }
        let sums = values[1..].iter().map(|value| value.sum(.., false));
        let loss = sums.reduce(|a, b| a.add(b)).unwrap();
        values.extend(grad(&loss, &[x])?);
        Ok(values)
    };
    let count = shape[0] * shape[1];
    let numbers: Vec<f64> = (0..count).map(|at| ((at * 7919 % 1009) as f64 / 336.0 - 1.5) * 0.7).collect();
    let sizes = shape.map(|size| size as usize);
    let input = Array::from_floats(dtype, &sizes, &numbers).unwrap();
    let spec = Spec::new(dtype, shape.map(Dim::from).as_slice());
    let function = Function::trace(&[spec], |inputs| run(&inputs[0]).unwrap())?;
    let body = function.body();
    let expected = tensor::evaluate(body.graph(), body.outputs(), std::slice::from_ref(&input))?;
    let names: Vec<&str> = chain.iter().map(|step| step.0).collect();
    let within = if dtype == DType::F64 { 1e-9 } else { 2e-4 };
    for device in ["cpu", "simt"] {
        let found = with_default_device::<_, Error>(device, || {
            let outputs = run(&Tensor::from_bytes(dtype, &input.to_bytes(), shape.as_slice()))?;
            realize_all(&outputs.iter().collect::<Vec<_>>())?;
            outputs.iter().map(|output| output.cast(DType::F64).to_vec::<f64>()).collect::<Result<Vec<_>, Error>>()
        })
        .unwrap_or_else(|error| panic!("{names:?} of {shape:?} on {device}: {error}"));
        for (expected, found) in expected.iter().zip(found) {
            let expected = expected.to_floats();
            let scale = expected.iter().fold(1f64, |scale, value| scale.max(value.abs()));
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= within * scale;
            assert!(expected.iter().zip(&found).all(near), "{names:?} of {shape:?} on {device}");
        }
    }
    Ok(())
}

#[test]
fn loops_of_scans_and_softmaxes_do_not_wait_for_each_other() -> Result<(), Error> {
    for dtype in [DType::F32, DType::F64] {
        check(dtype, [33, 3], &STEPS[..6])?;
    }
    Ok(())
}

/// As when the gradients of many parameters are clipped: no kernel has as many loops.
#[test]
fn sums_of_hundreds_of_sizes_are_several_kernels() -> Result<(), Error> {
    for count in [40, 130, 300usize] {
        let tensor = |number: usize| Tensor::from_slice(&vec![number as f32 % 5.0; 2 * number + 4], [2, number + 2]);
        let sums = |axes: usize| {
            let sum = move |x: Tensor| if axes == 2 { x.sum(.., false) } else { x.sum(1, false) };
            (0..count).map(|number| sum(tensor(number))).reduce(|a, b| a.add(b)).unwrap()
        };
        let total: usize = (0..count).map(|number| number % 5 * (number + 2)).sum();
        assert_eq!(sums(1).to_vec::<f32>()?, [total as f32; 2]);
        assert_eq!(sums(2).item::<f32>()?, 2.0 * total as f32);
        let many: Vec<Tensor> = (0..count).map(|number| tensor(number).sum(1, false)).collect();
        realize_all(&many.iter().collect::<Vec<_>>())?;
        for (number, sum) in many.iter().enumerate() {
            assert_eq!(sum.to_vec::<f32>()?, [(number % 5 * (number + 2)) as f32; 2]);
        }
    }
    Ok(())
}

/// Its neighbours: other steps, other orders, other sizes.
#[test]
fn no_chain_of_sums_is_beyond_lowering() -> Result<(), Error> {
    let mut state = 7u64;
    let mut next = |count: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % count
    };
    for _ in 0..20 {
        let shape = [[33, 3], [3, 33], [17, 5], [8, 8], [4, 64]][next(5)];
        let chain: Vec<Step> = (0..2 + next(5)).map(|_| STEPS[next(STEPS.len())]).collect();
        check([DType::F32, DType::F64][next(2)], shape, &chain)?;
    }
    Ok(())
}
