//! Attention in one kernel, its gradients in a few, none of which has the scores in memory.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor};

/// What hides keys from queries.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mask {
    None,
    Causal,
    /// Of bools, with queries to which every key is hidden.
    Bool,
    /// Added to the scores; the first keys are hidden from all.
    Float,
}

const MASKS: [Mask; 4] = [Mask::None, Mask::Causal, Mask::Bool, Mask::Float];

/// Queries, keys, width, width of the values.
type Size = [usize; 4];

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| (((i * 7919 + seed * 104_729) % 10_007) as f32 / 10_007.0 - 0.5) * 4.0).collect()
}

fn is_shown(mask: Mask, i: usize, j: usize) -> bool {
    match mask {
        Mask::None => true,
        Mask::Causal => j <= i,
        Mask::Bool => i % 5 != 3 && (i * 31 + j * 17) % 4 != 0,
        Mask::Float => j >= 20,
    }
}

fn bias(i: usize, j: usize) -> f32 {
    ((i * 13 + j * 29) % 23) as f32 / 10.0 - 1.0
}

/// By the definition, in f64.
fn expected(batch: usize, [n, m, d, e]: Size, mask: Mask, [q, k, v]: &[Vec<f32>; 3]) -> Vec<f64> {
    let mut out = Vec::with_capacity(batch * n * e);
    for b in 0..batch {
        for i in 0..n {
            let score = |j: usize| {
                let dot: f64 =
                    (0..d).map(|h| f64::from(q[(b * n + i) * d + h]) * f64::from(k[(b * m + j) * d + h])).sum();
                let added = if mask == Mask::Float { f64::from(bias(i, j)) } else { 0.0 };
                if is_shown(mask, i, j) { dot / (d as f64).sqrt() + added } else { f64::NEG_INFINITY }
            };
            let scores: Vec<f64> = (0..m).map(score).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> =
                scores.iter().map(|s| if *s == f64::NEG_INFINITY { 0.0 } else { (s - most).exp() }).collect();
            let total: f64 = powers.iter().sum();
            for c in 0..e {
                let sum: f64 = powers.iter().enumerate().map(|(j, p)| p * f64::from(v[(b * m + j) * e + c])).sum();
                out.push(if total == 0.0 { 0.0 } else { sum / total });
            }
        }
    }
    out
}

fn attend([n, m, ..]: Size, mask: Mask, [q, k, v]: &[Tensor; 3]) -> Tensor {
    match mask {
        Mask::None | Mask::Causal => q.sdpa(k, v, mask == Mask::Causal),
        Mask::Bool => {
            let shown: Vec<bool> = (0..n * m).map(|at| is_shown(mask, at / m, at % m)).collect();
            q.sdpa_mask(k, v, Tensor::from_slice(&shown, [n, m]))
        }
        Mask::Float => {
            let added =
                |at: usize| if is_shown(mask, at / m, at % m) { bias(at / m, at % m) } else { f32::NEG_INFINITY };
            q.sdpa_mask(k, v, Tensor::from_slice(&(0..n * m).map(added).collect::<Vec<f32>>(), [n, m]))
        }
    }
}

fn inputs(batch: usize, [n, m, d, e]: Size) -> ([Vec<f32>; 3], [Tensor; 3]) {
    let shapes = [[batch, n, d], [batch, m, d], [batch, m, e]];
    let data = [0, 1, 2].map(|input| numbers(shapes[input].iter().product(), input));
    let tensors = [0, 1, 2].map(|input| Tensor::from_slice(&data[input], shapes[input]));
    (data, tensors)
}

fn check(batch: usize, size: Size, mask: Mask) -> Result<(), Error> {
    let (data, tensors) = inputs(batch, size);
    let found = attend(size, mask, &tensors).to_vec::<f32>()?;
    for (at, (found, expected)) in found.iter().zip(expected(batch, size, mask, &data)).enumerate() {
        let difference = (f64::from(*found) - expected).abs();
        assert!(difference <= 2e-5, "{batch} x {size:?} {mask:?}: {found} rather than {expected} at {at}");
    }
    Ok(())
}

#[test]
fn it_is_what_its_definition_says() -> Result<(), Error> {
    for mask in MASKS {
        for size in [
            [64, 64, 16, 16],
            [100, 90, 24, 20],
            [33, 130, 64, 64],
            [257, 300, 8, 40],
            [70, 61, 80, 33],
            [5, 1000, 16, 16],
        ] {
            check(2, size, mask)?;
        }
    }
    with_default_device::<_, Error>("interpreter", || check(1, [70, 61, 8, 16], Mask::Bool))
}
