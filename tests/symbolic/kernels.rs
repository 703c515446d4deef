//! How many kernels are compiled.

use tinyspec::function::named;
use tinyspec::prelude::function;
use tinyspec::{DType, Dim, Error, Function, Spec, Tensor, grad, profile};

#[test]
fn one_compilation_serves_every_batch() -> Result<(), Error> {
    let _alone = crate::alone();
    let batch = named(0, 4096);
    let specs = [
        Spec::new(DType::F32, [batch, Dim::from(64)]),
        Spec::new(DType::F32, [64, 32]),
        Spec::new(DType::F32, [32, 10]),
    ];
    let mlp = Function::trace(&specs, |x| vec![x[0].matmul(&x[1]).relu().matmul(&x[2]).softmax(-1)])?;
    let (w1, w2) = (Tensor::full([64, 32], 0.01).contiguous(), Tensor::full([32, 10], 0.5).contiguous());
    let mut kernels = None;
    for rows in [1, 2, 7, 64, 100, 1000] {
        let x = Tensor::from_slice(&vec![1f32; rows * 64], [rows, 64]);
        let y = mlp.call(&[&x, &w1, &w2])[0].to_vec::<f32>()?;
        assert_eq!(y.len(), rows * 10);
        assert!(y.iter().all(|y| (y - 0.1).abs() < 1e-6), "{y:?}");
        let now = profile::counters().kernels;
        assert_eq!(now, *kernels.get_or_insert(now), "{rows} rows are compiled again");
    }
    Ok(())
}

#[function(bounds(T: 1..=512))]
fn attend<T>(q: &Tensor<f32, 4, 16>, k: &Tensor<f32, T, 16>, v: &Tensor<f32, T, 16>) -> Tensor<f32, 4, 16> {
    (q.matmul(k.transpose(0, 1)) * 0.25).softmax(-1).matmul(v)
}

#[test]
fn a_cache_grows_without_new_kernels() -> Result<(), Error> {
    let _alone = crate::alone();
    let row = |seed: usize| -> Vec<f32> { (0..16).map(|place| ((seed * 7 + place * 3) % 13) as f32 - 6.0).collect() };
    let all: Vec<f32> = (0..512).flat_map(row).collect();
    let (keys, values) =
        (Tensor::from_slice(&all, [512, 16]), Tensor::from_slice(&all, [512, 16]).mul(0.5).contiguous());
    let q = Tensor::from_slice(&[row(1), row(5), row(8), row(2)].concat(), [4, 16]);
    values.realize()?;
    let mut kernels = None;
    for length in [1usize, 2, 3, 17, 64, 65, 200, 511, 512] {
        let got = attend(&q, &keys.at(..length), &values.at(..length)).to_vec::<f32>()?;
        let now = profile::counters().kernels;
        assert_eq!(now, *kernels.get_or_insert(now), "length {length} is compiled again");
        let rows = &all[..length * 16];
        let scores: Vec<Vec<f64>> = [1, 5, 8, 2]
            .map(|seed| {
                let dot = |key: &[f32]| row(seed).iter().zip(key).map(|(a, b)| f64::from(a * b)).sum::<f64>() * 0.25;
                rows.chunks(16).map(dot).collect::<Vec<f64>>()
            })
            .into();
        for (line, scores) in got.chunks(16).zip(&scores) {
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (place, got) in line.iter().enumerate() {
                let want: f64 =
                    weights.iter().zip(rows.chunks(16)).map(|(w, row)| w * f64::from(row[place]) * 0.5).sum();
                assert!((f64::from(*got) - want / total).abs() < 1e-4, "length {length}: {got}, not {}", want / total);
            }
        }
    }
    Ok(())
}

#[test]
fn parts_that_lie_together_are_read_where_they_are() -> Result<(), Error> {
    let _alone = crate::alone();
    let sums = Function::trace(&[Spec::new(DType::F32, [named(0, 64), Dim::from(16)])], |x| vec![x[0].sum(.., false)])?;
    let x = Tensor::from_vec((0..1024).map(|place| place as f32).collect::<Vec<_>>(), [64, 16]);
    sums.call(&[&x])[0].realize()?;
    let kernels = profile::counters().kernels;
    for rows in 1..=64 {
        let count = rows * 16;
        let want = (count * (count - 1) / 2) as f32;
        assert_eq!(sums.call(&[&x.at(..rows)])[0].item::<f32>()?, want, "{rows} rows");
        let want = (64 - rows..64).map(|row| (row * 256 + 120) as f32).sum::<f32>();
        assert_eq!(sums.call(&[&x.at(64 - rows..)])[0].item::<f32>()?, want, "the last {rows} rows");
    }
    assert_eq!(profile::counters().kernels, kernels, "a part is copied by a kernel of its own");
    let weight = Tensor::from_slice(&[2f32; 1024], [64, 16]);
    let y = sums.call(&[&weight.at(..3)])[0].clone();
    y.realize()?;
    let gradient = grad(&(&y * &y), &[&weight])?[0].to_vec::<f32>()?;
    assert_eq!(gradient[..48], [192.0; 48], "the gradient of a part goes to the whole");
    assert_eq!(gradient[48..], [0.0; 976]);
    Ok(())
}
