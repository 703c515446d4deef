//! Calls that are equal to earlier ones in everything but what the key of a cache must tell apart.

use tinyspec_core::{Error, Tensor, grad, grad_or_zeros};
use tinyspec_ir::DType;

/// A method of two tensors of shape (4, 4).
type Method = fn(&Tensor, &Tensor) -> Tensor;

const METHODS: [(&str, Method); 8] = [
    ("attention", |x, y| x.sdpa(x, y, false)),
    ("attention by y", |x, y| y.sdpa(x, y, true)),
    ("cosine_similarity", |x, y| x.cosine_similarity(y, 1, 1e-8)),
    ("cdist", |x, y| x.cdist(y, 2.0)),
    ("solve", |x, y| (x + Tensor::eye(4, 4, DType::F64) * 4.0).solve(y)),
    ("layer_norm", |x, y| x.layer_norm(y.select(0, 0), y.select(0, 1), 1, 1e-5)),
    ("logaddexp", |x, y| x.logaddexp(y)),
    ("kl_div", |x, y| x.log_softmax(-1).kl_div(y.softmax(-1), "sum", false)),
];

fn matrix(seed: usize) -> Tensor {
    let data: Vec<f64> = (0..16).map(|i| ((i * 7 + seed * 5) % 11) as f64 / 7.0 - 0.6).collect();
    Tensor::from_slice(&data, [4, 4])
}

fn are_close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + a.abs()))
}

/// The same tensor twice, two equal ones and different ones take turns.
#[test]
fn operands_may_be_one_tensor() -> Result<(), Error> {
    for (name, method) in METHODS {
        let first = |x: &Tensor, y: &Tensor| method(x, y).to_vec::<f64>();
        for round in 0..2 {
            let (x, y) = (matrix(round), matrix(round + 3));
            let same = first(&x, &x)?;
            assert!(are_close(&same, &first(&x, &matrix(round))?), "{name}: a tensor, and an equal one");
            let one = first(&x, &y)?;
            assert!(are_close(&one, &first(&matrix(round), &y)?), "{name}: after the same method of other tensors");
            assert!(!are_close(&one, &same), "{name}: of different tensors, after one");
        }
    }
    Ok(())
}

/// Numbers among the parameters of a method change at one line.
#[test]
fn parameters_may_change() -> Result<(), Error> {
    let data = [-2.0f64, -0.5, 0.25, 3.0];
    let x = Tensor::from_slice(&data, [4]);
    for step in 0..12i64 {
        let alpha = 0.5 + step as f64 / 8.0;
        let elu = x.elu(alpha).to_vec::<f64>()?;
        let norm = x.normalize(1.0 + step as f64, 0, 1e-12).to_vec::<f64>()?;
        let rolled = x.roll([step], [0]).to_vec::<f64>()?;
        let p = 1.0 + step as f64;
        let length = data.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p);
        for (i, &x) in data.iter().enumerate() {
            let expected = if x > 0.0 { x } else { alpha * x.exp_m1() };
            assert!((elu[i] - expected).abs() < 1e-12, "elu({x}, {alpha}): {} rather than {expected}", elu[i]);
            assert!((norm[i] - x / length).abs() < 1e-9, "normalize({p}): {} rather than {}", norm[i], x / length);
            assert_eq!(rolled[(i + step as usize) % 4], x, "roll({step})");
        }
    }
    Ok(())
}

/// What a gradient is asked for of.
type Loss = fn(a: &Tensor, b: &Tensor) -> Tensor;

const LOSSES: [(&str, Loss); 7] = [
    ("of products", |a, b| (a * b * b).sum(.., false)),
    ("of a product of matrices", |a, b| (a.matmul(b).tanh() * a).sum(.., false)),
    ("of a softmax", |a, b| (a.softmax(-1) * b.log_softmax(0)).sum(.., false)),
    ("of a maximum", |a, b| (a.max(1, true) * b).sum(.., false)),
    ("of windows", |a, b| (a.at((1..3,)) * b.at((0..2,))).square().sum(.., false)),
    ("of one of them", |a, _| a.sin().mean(.., false)),
    ("of a running sum", |a, b| (a.cumsum(0) * b).logsumexp(.., false)),
];

/// Central differences of a loss with respect to both tensors; one for both if they are one.
fn differences(loss: Loss, [a, b]: [&[f64]; 2], is_one: bool) -> Result<[Vec<f64>; 2], Error> {
    const STEP: f64 = 1e-5;
    let value = |a: &[f64], b: &[f64]| {
        let (a, b) = (Tensor::from_slice(a, [4, 4]), Tensor::from_slice(b, [4, 4]));
        if is_one { loss(&a, &a) } else { loss(&a, &b) }.item::<f64>()
    };
    let mut found = [vec![], vec![]];
    for (which, found) in found.iter_mut().enumerate() {
        for place in 0..16 {
            let at = |step: f64| {
                let mut data = [a.to_vec(), b.to_vec()];
                data[which][place] += step;
                value(&data[0], &data[1])
            };
            found.push((at(STEP)? - at(-STEP)?) / (2.0 * STEP));
        }
    }
    Ok(found)
}

/// Gradients of equal programs: of other data, of one tensor for two, of equal ones, of fewer of them, after a read.
#[test]
fn gradients_of_equal_programs_are_those_of_their_tensors() -> Result<(), Error> {
    let close = |found: &[f64], expected: &[f64], what: &str| {
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
                "{what}: {found} rather than {expected}"
            );
        }
    };
    for (name, loss) in LOSSES {
        for round in 0..5 {
            let (a, b) = (matrix(round), matrix(if round == 1 { round } else { round + 2 }));
            let data = [a.to_vec::<f64>()?, b.to_vec::<f64>()?];
            let [by_a, by_b] = differences(loss, [&data[0], &data[1]], false)?;
            let what = |kind: &str| format!("{name}, {kind}, round {round}");
            let both = grad_or_zeros(&loss(&a, &b), &[&a, &b])?;
            close(&both[0].to_vec::<f64>()?, &by_a, &what("both"));
            close(&both[1].to_vec::<f64>()?, &by_b, &what("both, exchanged"));
            let exchanged = grad_or_zeros(&loss(&a, &b), &[&b, &a])?;
            close(&exchanged[0].to_vec::<f64>()?, &by_b, &what("exchanged"));
            close(&exchanged[1].to_vec::<f64>()?, &by_a, &what("exchanged"));
            let read = loss(&a, &b);
            read.item::<f64>()?;
            close(&grad(&read, &[&a])?[0].to_vec::<f64>()?, &by_a, &what("read before"));
            let [by_one, _] = differences(loss, [&data[0], &data[0]], true)?;
            close(&grad(&loss(&a, &a), &[&a])?[0].to_vec::<f64>()?, &by_one, &what("one tensor"));
        }
    }
    Ok(())
}

/// Second derivatives of equal programs, and a detached value among them.
#[test]
fn gradients_of_gradients_are_those_of_their_tensors() -> Result<(), Error> {
    for round in 0..4 {
        let data = [0.3 + round as f64, -1.2, 2.0];
        let x = Tensor::from_slice(&data, [3]);
        let first = &grad(&(x.sin() * x.square()).sum(.., false), &[&x])?[0];
        let second = grad(&first.square().sum(.., false), &[&x])?[0].to_vec::<f64>()?;
        let detached = grad(&(x.sin().detach() * &x).square().sum(.., false), &[&x])?[0].to_vec::<f64>()?;
        for (place, x) in data.into_iter().enumerate() {
            let (sin, cos) = (x.sin(), x.cos());
            let slope = cos * x * x + 2.0 * x * sin;
            let curvature = -sin * x * x + 4.0 * x * cos + 2.0 * sin;
            assert!((second[place] - 2.0 * slope * curvature).abs() < 1e-9, "{second:?} of {data:?}");
            assert!((detached[place] - 2.0 * sin * sin * x).abs() < 1e-9, "{detached:?} of {data:?}");
        }
    }
    Ok(())
}

/// Slices and numbers that one line produces and that change from call to call: several in one program, equal by chance, of different lengths.
#[test]
fn values_of_one_line_may_be_equal_by_chance() -> Result<(), Error> {
    let data: Vec<f64> = (0..12).map(|number| f64::from(number) / 4.0).collect();
    let x = Tensor::from_slice(&data, [12]);
    let parts = |starts: [usize; 3]| [2, 5, 3].into_iter().zip(starts);
    for step in 0..40usize {
        let starts = [step % 7, step % 7, if step % 3 == 0 { step % 7 } else { step % 5 }];
        let numbers = [1.0 + (step % 9) as f64, 1.0 + (step % 9) as f64, 1.0 + (step % 4) as f64];
        let mut sum = Tensor::zeros([1]).cast(DType::F64);
        for ((length, start), number) in parts(starts).zip(numbers) {
            sum += (x.at(start..start + length) * number).sum(0, true);
        }
        let expected: f64 = parts(starts)
            .zip(numbers)
            .map(|((length, start), number)| number * data[start..start + length].iter().sum::<f64>())
            .sum();
        let slopes = grad(&sum.square().sum(.., false), &[&x])?;
        assert!((sum.to_vec::<f64>()?[0] - expected).abs() < 1e-9, "step {step}: {sum:?} rather than {expected}");
        for (place, slope) in slopes[0].to_vec::<f64>()?.into_iter().enumerate() {
            let covers = |((length, start), number): ((usize, usize), f64)| {
                if (start..start + length).contains(&place) { number } else { 0.0 }
            };
            let wanted = 2.0 * expected * parts(starts).zip(numbers).map(covers).sum::<f64>();
            assert!((slope - wanted).abs() < 1e-9, "step {step}, place {place}: {slope} rather than {wanted}");
        }
    }
    Ok(())
}

/// A window of a weight that is assigned in each step: longer than runs are remembered.
#[test]
fn windows_of_an_assigned_weight_have_gradients_for_ever() -> Result<(), Error> {
    let mut weight = Tensor::ones([16, 8]);
    weight.realize()?;
    for step in 0..150i64 {
        let row = step % 7;
        let loss = weight.at(row..row + 9).square().sum(.., false);
        assert!(loss.item::<f32>()? > 0.0);
        let gradient = grad(&loss, &[&weight])?.remove(0);
        weight.assign(&(&weight - &gradient * 0.001));
        weight.realize()?;
        assert_eq!(gradient.to_vec::<f32>()?.iter().filter(|slope| **slope > 0.0).count(), 72, "step {step}");
    }
    Ok(())
}
