//! Attention in one kernel, its gradients in a few, none of which has the scores in memory.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad, realize_all};
use tinyspec_ir::DType;

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
        Mask::Bool => i % 5 != 3 && !(i * 31 + j * 17).is_multiple_of(4),
        Mask::Float => j >= 20,
    }
}

fn bias(i: usize, j: usize) -> f32 {
    ((i * 13 + j * 29) % 23) as f32 / 10.0 - 1.0
}

/// The score of a key for a query, in f64.
fn score([n, m, d, _]: Size, mask: Mask, q: &[f32], k: &[f32], b: usize, (i, j): (usize, usize)) -> f64 {
    if !is_shown(mask, i, j) {
        return f64::NEG_INFINITY;
    }
    let dot: f64 = (0..d).map(|h| f64::from(q[(b * n + i) * d + h]) * f64::from(k[(b * m + j) * d + h])).sum();
    let added = if mask == Mask::Float { f64::from(bias(i, j)) } else { 0.0 };
    dot / (d as f64).sqrt() + added
}

/// By the definition, in f64.
fn expected(batch: usize, [n, m, d, e]: Size, mask: Mask, [q, k, v]: &[Vec<f32>; 3]) -> Vec<f64> {
    let mut out = Vec::with_capacity(batch * n * e);
    for b in 0..batch {
        for i in 0..n {
            let score = |j: usize| score([n, m, d, e], mask, q, k, b, (i, j));
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
            // A rest of two rows after full tiles.
            [40, 106, 8, 8],
            [40, 122, 2, 64],
        ] {
            check(2, size, mask)?;
        }
    }
    with_default_device::<_, Error>("interpreter", || check(1, [70, 61, 8, 16], Mask::Bool))
}

/// The gradients of `Σ seed · attention`, by the definition, in f64.
fn expected_gradients(
    batch: usize,
    [n, m, d, e]: Size,
    mask: Mask,
    [q, k, v]: &[Vec<f32>; 3],
    seed: &[f32],
) -> [Vec<f64>; 3] {
    let mut gradients = [vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
    let scale = 1.0 / (d as f64).sqrt();
    for b in 0..batch {
        for i in 0..n {
            let score = |j: usize| score([n, m, d, e], mask, q, k, b, (i, j));
            let scores: Vec<f64> = (0..m).map(score).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if most == f64::NEG_INFINITY {
                continue;
            }
            let powers: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
            let total: f64 = powers.iter().sum();
            let row = &seed[(b * n + i) * e..][..e];
            let slopes: Vec<f64> = (0..m)
                .map(|j| (0..e).map(|c| f64::from(row[c]) * f64::from(v[(b * m + j) * e + c])).sum::<f64>())
                .collect();
            let mean: f64 = powers.iter().zip(&slopes).map(|(p, s)| p / total * s).sum();
            for j in 0..m {
                let weight = powers[j] / total;
                let slope = weight * (slopes[j] - mean) * scale;
                for h in 0..d {
                    gradients[0][(b * n + i) * d + h] += slope * f64::from(k[(b * m + j) * d + h]);
                    gradients[1][(b * m + j) * d + h] += slope * f64::from(q[(b * n + i) * d + h]);
                }
                for c in 0..e {
                    gradients[2][(b * m + j) * e + c] += weight * f64::from(row[c]);
                }
            }
        }
    }
    gradients
}

/// Of scores that are larger than a cache, which are made anew in each kernel.
#[test]
fn its_gradients_are_what_their_definition_says() -> Result<(), Error> {
    for (mask, (batch, size)) in MASKS.into_iter().zip([
        (8, [512, 512, 16, 16]),
        (3, [700, 700, 24, 20]),
        (2, [1000, 600, 8, 40]),
        (5, [333, 900, 16, 33]),
    ]) {
        let [n, m, _, e] = size;
        let (data, tensors) = inputs(batch, size);
        let seed = numbers(batch * n * e, 3);
        let loss = (attend(size, mask, &tensors) * Tensor::from_slice(&seed, [batch, n, e])).sum(.., false);
        let found = grad(&loss, &tensors.each_ref())?;
        let expected = expected_gradients(batch, size, mask, &data, &seed);
        for (input, (found, expected)) in found.iter().zip(expected).enumerate() {
            for (at, (found, expected)) in found.to_vec::<f32>()?.iter().zip(expected).enumerate() {
                let difference = (f64::from(*found) - expected).abs();
                let what = format!("{batch} x {size:?} (keys {m}) {mask:?}, input {input}");
                assert!(difference <= 1e-4 * (1.0 + expected.abs()), "{what}: {found} rather than {expected} at {at}");
            }
        }
    }
    Ok(())
}

/// What a loss makes of attention and its inputs.
type Loss = fn(y: &Tensor, inputs: &[Tensor; 3]) -> Tensor;

/// Losses whose own derivative needs the result of attention, or its inputs, once more.
const LOSSES: [(&str, Loss); 8] = [
    ("y²", |y, _| y.square()),
    ("y·q", |y, [q, ..]| y * q),
    ("(y + q)²", |y, [q, ..]| (y + q).square()),
    ("y·sigmoid(q)", |y, [q, ..]| y * q.sigmoid()),
    ("y·k", |y, [_, k, _]| y * k),
    ("y·v", |y, [_, _, v]| y * v),
    ("gelu(y)", |y, _| y.gelu()),
    ("tanh(y)·exp(y)", |y, _| y.tanh() * y.exp()),
];

/// Of each loss, against the interpreter: its gradients by queries, keys and values that are one tensor, or three. The
/// scores are larger than a cache.
#[test]
fn losses_use_the_result_again() -> Result<(), Error> {
    let size @ [n, _, d, _] = [520, 520, 4, 4];
    for (number, (name, loss)) in LOSSES.into_iter().enumerate() {
        let (mask, is_one) = (MASKS[number % 2 * 2 + number / 2 % 2], number % 3 == 0);
        let gradients = || -> Result<Vec<Vec<f32>>, Error> {
            let (data, mut tensors) = inputs(1, size);
            if is_one {
                let x = Tensor::from_slice(&data[0], [1, n, d]);
                tensors = [x.clone(), x.clone(), x];
            }
            let y = attend(size, mask, &tensors);
            let wanted: Vec<&Tensor> = tensors[..if is_one { 1 } else { 3 }].iter().collect();
            let found = grad(&loss(&y, &tensors).sum(.., false), &wanted)?;
            realize_all(&found.iter().collect::<Vec<_>>())?;
            found.iter().map(Tensor::to_vec::<f32>).collect()
        };
        let what = format!("{name} {mask:?}, one tensor: {is_one}");
        let found = gradients().unwrap_or_else(|error| panic!("{what}: {error}"));
        let expected = with_default_device("interpreter", gradients)?;
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            let difference = (found - expected).abs();
            assert!(difference <= 1e-4 * (1.0 + expected.abs()), "{what}: {found} rather than {expected}");
        }
    }
    Ok(())
}

/// Three heads of queries share the keys and values of one.
#[test]
fn heads_share_keys() -> Result<(), Error> {
    let size @ [n, m, d, e] = [70, 90, 16, 24];
    let ([q, k, v], [keys, values]) = {
        let (data, [_, k, v]) = inputs(2, size);
        (data, [k.reshape([2, 1, m as i64, d as i64]), v.reshape([2, 1, m as i64, e as i64])])
    };
    let queries = numbers(6 * n * d, 5);
    let found = Tensor::from_slice(&queries, [2, 3, n, d]).sdpa(&keys, &values, true).to_vec::<f32>()?;
    assert_eq!(q.len() * 3, queries.len());
    for head in 0..6 {
        let batch = head / 3;
        let own = [
            queries[head * n * d..][..n * d].to_vec(),
            k[batch * m * d..][..m * d].to_vec(),
            v[batch * m * e..][..m * e].to_vec(),
        ];
        for (found, expected) in found[head * n * e..].iter().zip(expected(1, size, Mask::Causal, &own)) {
            assert!((f64::from(*found) - expected).abs() <= 2e-5, "head {head}: {found} rather than {expected}");
        }
    }
    Ok(())
}

/// Small floats are only stored as such: the result is rounded once.
#[test]
fn small_floats_are_computed_with_in_f32() -> Result<(), Error> {
    let size = [70, 90, 16, 24];
    for (dtype, precision) in [(DType::F16, 1e-3), (DType::BF16, 1e-2)] {
        let (_, tensors) = inputs(2, size);
        let small = tensors.map(|tensor| tensor.cast(dtype));
        let rounded = small.clone().map(|tensor| tensor.cast(DType::F32));
        let data = [rounded[0].to_vec()?, rounded[1].to_vec()?, rounded[2].to_vec()?];
        let out = attend(size, Mask::Causal, &small);
        assert_eq!(out.dtype(), dtype);
        for (found, expected) in
            out.cast(DType::F32).to_vec::<f32>()?.iter().zip(expected(2, size, Mask::Causal, &data))
        {
            let difference = (f64::from(*found) - expected).abs();
            assert!(difference <= precision * (1.0 + expected.abs()), "{dtype}: {found} rather than {expected}");
        }
    }
    Ok(())
}

/// A nan stays in its row.
#[test]
fn a_nan_is_seen() -> Result<(), Error> {
    let size @ [n, _, d, e] = [70, 90, 16, 16];
    let ([mut q, ..], [_, k, v]) = inputs(1, size);
    q[40 * d + 3] = f32::NAN;
    let found = attend(size, Mask::None, &[Tensor::from_slice(&q, [1, n, d]), k, v]).to_vec::<f32>()?;
    for (at, found) in found.iter().enumerate() {
        assert_eq!(found.is_nan(), at / e == 40, "row {}", at / e);
    }
    Ok(())
}

/// With a scale, a mask and groups of heads, by other methods.
#[test]
fn options_are_what_they_are_composed_of() -> Result<(), Error> {
    use tinyspec_ir::ops::options::{Attention, default};
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, || {
            let of = |shape: [i64; 4], seed| {
                Tensor::from_slice(&numbers(shape.iter().product::<i64>() as usize, seed), shape)
            };
            let (q, k, v) = (of([2, 6, 20, 8], 0), of([2, 2, 24, 8], 1), of([2, 2, 24, 5], 2));
            let (wide_k, wide_v) = (k.repeat_interleave(3, 1), v.repeat_interleave(3, 1));
            let shown = Tensor::from_slice(&(0..480).map(|i| i % 7 != 0).collect::<Vec<bool>>(), [20, 24]);
            let by_head = of([2, 6, 20, 24], 3);
            let by_head = by_head.gt(-1.0);
            let grouped = Attention { scale: Some(0.3), grouped: true, ..default() };
            let alone = Attention { grouped: false, ..grouped };
            let near = |found: Tensor, want: Tensor| -> Result<(), Error> {
                assert_eq!(found.sizes()?, want.sizes()?);
                let (found, want) = (found.to_vec::<f32>()?, want.to_vec::<f32>()?);
                assert!(found.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-5), "{device}: {found:?} {want:?}");
                Ok(())
            };
            let direct = (q.matmul(wide_k.transpose(-1, -2)) * 0.3).softmax(-1).matmul(&wide_v);
            near(q.sdpa_with(&wide_k, &wide_v, None, None, alone), direct)?;
            for mask in [None, Some(&shown), Some(&by_head)] {
                for causal in [false, true] {
                    let (one, other) = (Attention { causal, ..grouped }, Attention { causal, ..alone });
                    near(q.sdpa_with(&k, &v, mask, None, one), q.sdpa_with(&wide_k, &wide_v, mask, None, other))?;
                }
            }
            near(q.sdpa_with(&wide_k, &wide_v, Some(&shown), None, default()), q.sdpa_mask(&wide_k, &wide_v, &shown))?;
            // Dropout takes weights away, by the key alone, and makes up for them.
            let key = Tensor::scalar(7u64);
            let dropped = Attention { dropout: 0.5, ..default() };
            let ones = Tensor::ones([1, 1, 1000, 1]);
            let shares = Tensor::zeros([1, 1, 1, 1]).sdpa_with(
                &ones,
                Tensor::eye(1000, 1000, DType::F32).unsqueeze(0).unsqueeze(0),
                None,
                Some(&key),
                dropped,
            );
            let shares = (shares * 1000.0).to_vec::<f32>()?;
            assert!(shares.iter().all(|share| *share == 0.0 || (share - 2.0).abs() < 1e-4), "{shares:?}");
            let kept = shares.iter().filter(|share| **share > 0.0).count();
            assert!((400..600).contains(&kept), "{kept}");
            Ok(())
        })?;
    }
    let x = Tensor::ones([1, 4, 3, 8]);
    let refused = |tensor: Tensor, words: &str| {
        let error = tensor.error().map(ToString::to_string).unwrap_or_default();
        assert!(error.contains(words), "{error}");
    };
    let few = Tensor::ones([1, 3, 3, 8]);
    refused(
        x.sdpa_with(&few, &few, None, None, Attention { grouped: true, ..default() }),
        "4 heads of queries share 3 of keys",
    );
    refused(
        x.sdpa_with(&x, &x, None, None, Attention { dropout: 0.1, ..default() }),
        "sdpa_with: a dropout of 0.1 without a key",
    );
    Ok(())
}
