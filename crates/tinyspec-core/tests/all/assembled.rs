//! Stacks of many results: kernels of a few of them each, so that what is compiled grows with their number and no faster.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Program, Tensor, grad, realize_all};
use tinyspec_ir::DType;

type Of = fn(&Tensor, usize) -> Tensor;

/// What is made of row `i` of `[count, 100]`.
const RESULTS: &[(&str, Of)] = &[
    ("mean of squares", |x, i| x.at(i as i64).square().mean(.., false)),
    ("largest", |x, i| x.at(i as i64).max(.., false)),
    ("scaled by its number", |x, i| (x.at(0) * i as f32).sum(.., false)),
    ("element", |x, i| x.at((i as i64, 3)) + i as f32),
    ("three sums", |x, i| x.at((i as i64, 0..99)).reshape([3, 33]).sum(1, false)),
    ("whole row", |x, i| x.at(i as i64) + 1.0),
];

fn rows(count: usize) -> Tensor {
    let data: Vec<f32> = (0..count * 100).map(|i| ((i * 7919) % 97) as f32 - 40.0).collect();
    Tensor::from_vec(data, [count, 100])
}

fn stacked(x: &Tensor, count: usize, result: Of) -> Tensor {
    let results: Vec<Tensor> = (0..count).map(|i| result(x, i)).collect();
    Tensor::stack(&results.iter().collect::<Vec<_>>(), 0)
}

#[test]
fn many_small_results_are_compiled_a_few_at_a_time() -> Result<(), Error> {
    for (name, result) in RESULTS {
        // Nodes of the largest kernel, and kernels.
        let size = |count: usize| {
            with_default_device::<_, Error>("interpreter/x86-64-v3", || {
                let programs = Program::of(&[&stacked(&rows(count), count, *result).mean(.., false)])?;
                let nodes = |program: &Program| program.graph().reachable(&[program.root()]).len();
                Ok((programs.iter().map(nodes).max().unwrap_or(0), programs.len()))
            })
        };
        let ((few, _), (many, kernels)) = (size(192)?, size(576)?);
        assert!(many <= few + few / 2, "{name}: {many} nodes in a kernel of 576, {few} in one of 192");
        assert!(kernels <= 576 / 8, "{name}: {kernels} kernels");
    }
    Ok(())
}

#[test]
fn every_result_is_where_it_belongs() -> Result<(), Error> {
    for device in ["interpreter", "interpreter/x86-64-v3", "cpu"] {
        with_default_device::<_, Error>(device, || {
            for count in [31, 32, 33, 48, 70] {
                for (name, result) in RESULTS {
                    let x = rows(count);
                    let stack = stacked(&x, count, *result);
                    let alone: Vec<Tensor> = (0..count).map(|i| result(&x, i)).collect();
                    realize_all(&alone.iter().collect::<Vec<_>>())?;
                    let mut expected = Vec::new();
                    for one in &alone {
                        expected.extend(one.to_vec::<f32>()?);
                    }
                    assert_eq!(stack.to_vec::<f32>()?, expected, "{count} of {name} on {device}");
                    for dtype in [DType::I8, DType::F16, DType::F64, DType::Bool] {
                        let (found, expected) =
                            (stacked(&x, count, *result).cast(dtype), Tensor::from_slice(&expected, [expected.len()]));
                        let found = found.cast(DType::F32).to_vec::<f32>()?;
                        assert_eq!(found, expected.cast(dtype).cast(DType::F32).to_vec::<f32>()?, "{name} as {dtype}");
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Numbers among the results, one result several times, and what follows along either axis.
#[test]
fn results_may_be_numbers_and_come_again() -> Result<(), Error> {
    let x = rows(40);
    let sums: Vec<Tensor> = (0..40)
        .map(|i| match i % 4 {
            0 => Tensor::zeros([0i64; 0]),
            1 => x.at(1).sum(.., false),
            _ => x.at(i).sum(.., false),
        })
        .collect();
    let stack = Tensor::stack(&sums.iter().collect::<Vec<_>>(), 0);
    let each = x.sum(1, false).to_vec::<f32>()?;
    let expected: Vec<f32> = (0..40)
        .map(|i| match i % 4 {
            0 => 0.0,
            1 => each[1],
            _ => each[i],
        })
        .collect();
    assert_eq!(stack.to_vec::<f32>()?, expected);
    let columns: Vec<Tensor> = (0..40).map(|i| x.at(i) * 2.0).collect();
    let columns = Tensor::stack(&columns.iter().collect::<Vec<_>>(), 1);
    assert_eq!(columns.to_vec::<f32>()?, (x.permute([1, 0]) * 2.0).to_vec::<f32>()?);
    let losses: Vec<Tensor> = (0..40).map(|i| x.at(i).square().sum(.., false)).collect();
    let loss = Tensor::stack(&losses.iter().collect::<Vec<_>>(), 0).sum(.., false);
    assert_eq!(grad(&loss, &[&x])?[0].to_vec::<f32>()?, (&x * 2.0).to_vec::<f32>()?);
    Ok(())
}
