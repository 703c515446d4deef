//! Programs of a size to choose; each is linear in it if the compiler is.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tinyspec::ir::encode::{decode, encode};
use tinyspec::ir::{Arg, Builder, DType, Graph, NodeId, Op};
use tinyspec::{Result, Tensor, grad, realize_all};

/// What grows, and how long one size of it takes.
pub struct Growth {
    /// What is counted.
    pub name: &'static str,
    /// The smallest size; it is doubled from there.
    pub from: usize,
    /// Runs one size; preparations are not timed.
    pub run: fn(usize) -> Result<Duration>,
}

/// Graph lengths, kernel counts and sizes.
pub const GROWTHS: [Growth; 12] = [
    Growth {
        name: "trace a chain of n ops",
        from: 5000,
        run: |n| {
            timed(|| {
                chain(n)?;
                Ok(())
            })
        },
    },
    Growth { name: "realize a chain of n ops", from: 5000, run: |n| realized(&[chain(n)?]) },
    Growth { name: "realize n ops on n inputs", from: 1250, run: |n| realized(&[fan_in(n)?]) },
    Growth { name: "realize n outputs of one input", from: 625, run: |n| realized(&outputs(n)?) },
    Growth { name: "realize n equal layers", from: 128, run: |n| realized(&[layers(n, |_| 32)?]) },
    Growth { name: "realize n different layers", from: 32, run: |n| realized(&[layers(n, |layer| 32 + layer)?]) },
    Growth { name: "a matrix product of side n", from: 64, run: |n| realized(&[product(n)?]) },
    Growth { name: "a running sum of n numbers", from: 1 << 18, run: |n| realized(&[input(&[n])?.cumsum(0)]) },
    Growth { name: "gradient of a chain of n ops", from: 2500, run: gradient },
    Growth { name: "realize a gradient of n layers", from: 32, run: layers_gradient },
    Growth { name: "n lazy calls in a loop", from: 1000, run: calls },
    Growth { name: "encode and decode n nodes", from: 10_000, run: decoding },
];

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn realized(results: &[Tensor]) -> Result<Duration> {
    let results: Vec<&Tensor> = results.iter().collect();
    timed(|| realize_all(&results))
}

fn input(shape: &[usize]) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let tensor = Tensor::from_vec(vec![0.5f32; count], shape);
    tensor.realize()?;
    Ok(tensor)
}

fn links(mut x: Tensor, n: usize) -> Tensor {
    for link in 0..n / 2 {
        x = &x * 0.5 + (link % 7) as f32;
    }
    x
}

fn chain(n: usize) -> Result<Tensor> {
    Ok(links(input(&[64])?, n))
}

fn fan_in(n: usize) -> Result<Tensor> {
    let inputs = (0..n).map(|_| input(&[64])).collect::<Result<Vec<_>>>()?;
    Ok(inputs.iter().skip(1).fold(inputs[0].clone(), |sum, input| sum + input))
}

fn outputs(n: usize) -> Result<Vec<Tensor>> {
    let x = input(&[64])?;
    Ok((0..n).map(|output| &x * output as f32 + 1.0).collect())
}

fn layers(n: usize, width: impl Fn(usize) -> usize) -> Result<Tensor> {
    let mut x = input(&[8, width(0)])?;
    for layer in 0..n {
        x = x.matmul(&input(&[width(layer), width(layer + 1)])?).relu();
    }
    Ok(x)
}

fn product(n: usize) -> Result<Tensor> {
    Ok(input(&[n, n])?.matmul(&input(&[n, n])?))
}

fn gradient(n: usize) -> Result<Duration> {
    let x = input(&[64])?;
    let loss = links(x.clone(), n).sum(.., false);
    timed(|| grad(&loss, &[&x]).map(drop))
}

fn layers_gradient(n: usize) -> Result<Duration> {
    let weights = (0..n).map(|_| input(&[32, 32])).collect::<Result<Vec<_>>>()?;
    let x = weights.iter().fold(input(&[8, 32])?, |x, weight| x.matmul(weight).relu());
    let gradients = grad(&x.sum(.., false), &weights.iter().collect::<Vec<_>>())?;
    realized(&gradients)
}

fn calls(n: usize) -> Result<Duration> {
    let mut x = input(&[64])?;
    let y = input(&[64])?;
    timed(|| {
        for _ in 0..n {
            x = &x * 0.5 + &y;
            x.realize()?;
        }
        Ok(())
    })
}

fn decoding(n: usize) -> Result<Duration> {
    let mut graph = Graph::new();
    let shape = graph.shape(&[64.into()])?;
    let arg = Arg::Param { slot: 0, dtype: DType::F32, device: None, addrspace: None };
    let mut node: NodeId = graph.add(Op::Param, &[shape], arg)?;
    let first = node;
    for link in 0..n {
        node = graph.add(if link % 2 == 0 { Op::Mul } else { Op::Add }, &[node, first], Arg::None)?;
    }
    timed(|| {
        black_box(decode(&encode(&graph, &[node]))?);
        Ok(())
    })
}
