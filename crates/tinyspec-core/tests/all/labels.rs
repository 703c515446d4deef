//! The loss of sequences of labels against sums over all ways to spell them.

use crate::support::on_each_device;
use tinyspec_core::{Error, GradcheckOptions, Tensor, grad, gradcheck};
use tinyspec_ir::DType;

const STEPS: i64 = 5;
const CLASSES: i64 = 4;
const BLANK: i64 = 2;

/// What a way through the classes spells.
fn spelled(way: &[i64]) -> Vec<i64> {
    let mut labels = way.to_vec();
    labels.dedup();
    labels.retain(|&class| class != BLANK);
    labels
}

/// `-log` of the probability of `labels` in the first steps of a sequence, and its slopes.
fn reference(x: &[f64], steps: i64, labels: &[i64]) -> (f64, Vec<f64>) {
    let (mut total, mut slopes) = (0.0, vec![0.0; x.len()]);
    for number in 0..CLASSES.pow(steps as u32) {
        let way: Vec<i64> = (0..steps).map(|step| number / CLASSES.pow(step as u32) % CLASSES).collect();
        if spelled(&way) == labels {
            let places: Vec<usize> =
                way.iter().zip(0..).map(|(class, step)| (step * CLASSES + class) as usize).collect();
            let probability = places.iter().map(|&place| x[place]).sum::<f64>().exp();
            total += probability;
            places.iter().for_each(|&place| slopes[place] -= probability);
        }
    }
    slopes.iter_mut().for_each(|slope| *slope /= total);
    (-f64::ln(total), slopes)
}

/// Sequences with a repetition, without labels, with as many steps as it takes, and with fewer steps than there are.
const CASES: [(i64, &[i64]); 5] = [(5, &[0, 0, 3]), (4, &[]), (3, &[1, 1]), (4, &[3, 1, 0]), (5, &[1])];

/// Data of all sequences in the form of the method: logarithms, labels, lengths.
fn data() -> (Vec<f64>, [Tensor; 4]) {
    let count = CASES.len() as i64;
    let logits = Tensor::from_slice(
        &(0..STEPS * count * CLASSES).map(|n| f64::from((n * n * 13 % 29) as i32) / 9.0).collect::<Vec<_>>(),
        [STEPS, count, CLASSES],
    );
    let x = logits.log_softmax(-1).detach();
    let labels: Vec<i32> =
        CASES.iter().flat_map(|(_, labels)| (0..3).map(|n| labels.get(n).map_or(0, |&label| label as i32))).collect();
    let steps: Vec<i32> = CASES.iter().map(|(steps, _)| *steps as i32).collect();
    let lengths: Vec<i64> = CASES.iter().map(|(_, labels)| labels.len() as i64).collect();
    let inputs = [
        x.clone(),
        Tensor::from_slice(&labels, [count, 3]),
        Tensor::from_slice(&steps, [count]),
        Tensor::from_slice(&lengths, [count]),
    ];
    (x.to_vec::<f64>().unwrap_or_else(|error| panic!("{error}")), inputs)
}

fn loss(inputs: &[Tensor; 4], x: &Tensor, reduction: &str, zero_infinity: bool) -> Tensor {
    let [_, labels, steps, lengths] = inputs;
    x.ctc_loss(labels, steps, lengths, BLANK, reduction, zero_infinity)
}

#[test]
fn losses_and_slopes_are_those_of_all_ways() {
    on_each_device(|| {
        let (values, inputs) = data();
        for (dtype, bound) in [(DType::F64, 1e-13), (DType::F32, 3e-6)] {
            let x = inputs[0].cast(dtype);
            let losses = loss(&inputs, &x, "none", false);
            let slopes = grad(&losses.sum(.., false), &[&x])?[0].cast(DType::F64).to_vec::<f64>()?;
            let losses = losses.cast(DType::F64).to_vec::<f64>()?;
            let row = CASES.len() * CLASSES as usize;
            for (number, (steps, labels)) in CASES.into_iter().enumerate() {
                let own = |data: &[f64]| -> Vec<f64> {
                    let first = number * CLASSES as usize;
                    data.chunks(row).flat_map(|step| step[first..first + CLASSES as usize].to_vec()).collect()
                };
                let (expected, expected_slopes) = reference(&own(&values), steps, labels);
                assert!((losses[number] - expected).abs() <= bound * expected, "{}: {expected}", losses[number]);
                for (found, expected) in own(&slopes).iter().zip(&expected_slopes) {
                    assert!((found - expected).abs() <= 4.0 * bound, "{dtype}, case {number}: {found} {expected}");
                }
            }
            let by_label = losses.iter().zip(CASES).map(|(loss, (_, labels))| loss / labels.len().max(1) as f64);
            let mean = loss(&inputs, &x, "mean", false).cast(DType::F64).item::<f64>()?;
            assert!((mean - by_label.sum::<f64>() / CASES.len() as f64).abs() < 20.0 * bound);
            let sum = loss(&inputs, &x, "sum", false).cast(DType::F64).item::<f64>()?;
            assert!((sum - losses.iter().sum::<f64>()).abs() < 50.0 * bound);
        }
        Ok(())
    });
}

#[test]
fn slopes_go_on_to_the_logits() -> Result<(), Error> {
    let (_, inputs) = data();
    let logits = inputs[0].square();
    let function = |x: &[Tensor]| loss(&inputs, &x[0].log_softmax(-1), "mean", false);
    gradcheck(function, &[&logits], GradcheckOptions::default())
}

#[test]
fn what_cannot_be_spelled_has_no_slope() {
    on_each_device(|| {
        let x = Tensor::full([2, 2, 3], 1.0f32 / 3.0).log();
        let labels = Tensor::from_slice(&[1i32, 1, 1, 2], [2, 2]);
        let lengths = Tensor::from_slice(&[2i32, 2], [2]);
        let loss = |zero| x.ctc_loss(&labels, &lengths, &lengths, 0, "none", zero);
        let losses = loss(false).to_vec::<f32>()?;
        assert!(losses[0] == f32::INFINITY && (losses[1] - 2.0 * 3f32.ln()).abs() < 1e-6, "{losses:?}");
        assert_eq!(loss(true).to_vec::<f32>()?[0], 0.0);
        let slopes = grad(&loss(true).sum(.., false), &[&x])?[0].to_vec::<f32>()?;
        let expected = [0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0];
        assert!(slopes.iter().zip(expected).all(|(slope, expected)| (slope - expected).abs() < 1e-6), "{slopes:?}");
        // A class that does not occur.
        let none = x.masked_fill(Tensor::from_slice(&[false, true, false], [3]), f32::NEG_INFINITY);
        assert_eq!(none.ctc_loss(&labels, &lengths, &lengths, 0, "none", false).to_vec::<f32>()?, [f32::INFINITY; 2]);
        Ok(())
    });
}

#[test]
fn wrong_shapes_are_named() {
    let x = Tensor::zeros([4, 2, 3]);
    let (labels, lengths) = (Tensor::zeros([2, 2]).cast(DType::I32), Tensor::ones([2]).cast(DType::I32));
    let refused = |loss: Tensor, expected: &str| {
        let error = loss.error().map(ToString::to_string).unwrap_or_default();
        assert!(error.starts_with("ctc_loss: ") && error.contains(expected), "{error}");
    };
    refused(x.at(0).ctc_loss(&labels, &lengths, &lengths, 0, "mean", false), "[steps, batch, classes]");
    refused(x.ctc_loss(&lengths, &lengths, &lengths, 0, "mean", false), "labels of [batch, labels]");
    refused(x.ctc_loss(&labels, x.at((0, 0)), &lengths, 0, "mean", false), "a whole number for each sequence");
    refused(x.ctc_loss(&labels, &lengths, &lengths, 3, "mean", false), "class 3 of [4, 2, 3]");
    refused(x.ctc_loss(&labels, &lengths, &lengths, 0, "all", false), "reduction `all` is unknown");
}
