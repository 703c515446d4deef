//! Functions that a program calls often are lowered once; results and gradients are those of the inlined form.

use crate::support::on_each_device;
use tinyspec_core::{Error, Function, Spec, Tensor, grad, realize_all};
use tinyspec_ir::DType;

/// A function, and the same computation without it.
struct Both {
    name: &'static str,
    arguments: Vec<Vec<i64>>,
    compute: fn(&[Tensor]) -> Vec<Tensor>,
}

fn residual(inputs: &[Tensor]) -> Vec<Tensor> {
    let [x, a, b] = inputs else { unreachable!("three inputs") };
    let normal = (x - x.mean(1, true)) / ((x * x).mean(1, true) + 1.0).sqrt();
    vec![x + normal.matmul(a).gelu().matmul(b)]
}

fn attention(inputs: &[Tensor]) -> Vec<Tensor> {
    let [x, a, b] = inputs else { unreachable!("three inputs") };
    let (query, key) = (x.matmul(a), x.matmul(b));
    vec![x + (query.matmul(key.permute([1, 0])) * 0.2).softmax(-1).matmul(x)]
}

fn two_results(inputs: &[Tensor]) -> Vec<Tensor> {
    let [x, a, b] = inputs else { unreachable!("three inputs") };
    let hidden = x.matmul(a).tanh();
    vec![hidden.matmul(b), hidden.sum(1, true) + 1.0]
}

fn elementwise(inputs: &[Tensor]) -> Vec<Tensor> {
    let [x, a, b] = inputs else { unreachable!("three inputs") };
    vec![(x * 0.5).tanh() * a.sum(0, true).mean(1, true) + b.mean(0, true).mean(1, true)]
}

fn whole_and_part(inputs: &[Tensor]) -> Vec<Tensor> {
    let [x, a, b] = inputs else { unreachable!("three inputs") };
    let product = x.matmul(a).relu().matmul(b);
    vec![product.clone(), product, x.clone()]
}

const ROWS: i64 = 12;
const WIDTH: i64 = 16;

fn cases() -> Vec<Both> {
    let plain = || vec![vec![ROWS, WIDTH], vec![WIDTH, WIDTH], vec![WIDTH, WIDTH]];
    let case = |name, compute| Both { name, arguments: plain(), compute };
    vec![
        case("residual", residual),
        case("attention", attention),
        case("two results", two_results),
        case("elementwise", elementwise),
        case("whole and part", whole_and_part),
    ]
}

fn values(shape: &[i64], seed: i64) -> Tensor {
    let count: i64 = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|i| ((i * 37 + seed * 101) % 71) as f32 / 71.0 - 0.45).collect();
    Tensor::from_slice(&data, [count]).reshape(shape.to_vec())
}

impl Both {
    fn function(&self) -> Result<Function, Error> {
        let specs: Vec<Spec> = self.arguments.iter().map(|shape| Spec::new(DType::F32, shape.clone())).collect();
        Function::trace(&specs, self.compute)
    }
}

/// The weights of `depth` calls.
fn weights(depth: i64) -> Vec<[Tensor; 2]> {
    (0..depth).map(|layer| [1, 2].map(|seed| values(&[WIDTH, WIDTH], 2 * layer + seed))).collect()
}

#[track_caller]
fn assert_close(name: &str, found: &[Tensor], wanted: &[Tensor]) -> Result<(), Error> {
    realize_all(&found.iter().collect::<Vec<_>>())?;
    assert_eq!(found.len(), wanted.len(), "{name}");
    for (number, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let (found, wanted) = (found.to_vec::<f32>()?, wanted.to_vec::<f32>()?);
        assert_eq!(found.len(), wanted.len(), "{name}, {number}");
        let largest = wanted.iter().fold(1e-3f32, |most, one| most.max(one.abs()));
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!((found - wanted).abs() <= 2e-5 * largest, "{name}, {number}: {found} instead of {wanted}");
        }
    }
    Ok(())
}

/// One program in both forms: what it computes, and its gradients if it is differentiated.
fn compare(
    name: &str,
    program: impl Fn(&dyn Fn(&[Tensor]) -> Vec<Tensor>) -> Result<Vec<Tensor>, Error>,
    function: &Function,
    compute: fn(&[Tensor]) -> Vec<Tensor>,
) -> Result<(), Error> {
    let called = program(&|inputs| function.call(&inputs.iter().collect::<Vec<_>>()))?;
    let inlined = program(&|inputs| compute(inputs))?;
    assert_close(name, &called, &inlined)
}

#[test]
fn layers_compute_what_their_inlined_form_computes() {
    on_each_device(|| {
        for both in cases() {
            let function = both.function()?;
            for depth in [3, 4, 7] {
                let weights = weights(depth);
                let forward = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
                    let mut x = values(&[ROWS, WIDTH], 0);
                    for [a, b] in &weights {
                        x = call(&[x, a.clone(), b.clone()]).swap_remove(0);
                    }
                    Ok(vec![x])
                };
                compare(both.name, forward, &function, both.compute)?;
            }
        }
        Ok(())
    });
}

#[test]
fn gradients_are_those_of_the_inlined_form() {
    on_each_device(|| {
        for both in cases() {
            let function = both.function()?;
            let weights = weights(6);
            let trained = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
                let first = values(&[ROWS, WIDTH], 0);
                let mut x = first.clone();
                for [a, b] in &weights {
                    x = call(&[x, a.clone(), b.clone()]).swap_remove(0);
                }
                let loss = (&x * &x).mean(.., false);
                let mut wanted: Vec<&Tensor> = weights.iter().flatten().collect();
                wanted.push(&first);
                let mut found = grad(&loss, &wanted)?;
                found.push(loss);
                Ok(found)
            };
            compare(both.name, trained, &function, both.compute)?;
        }
        Ok(())
    });
}

/// Arguments that are constants, one tensor twice, views, and results that nobody or somebody else needs.
#[test]
fn arguments_and_results_may_be_anything() -> Result<(), Error> {
    let weights = weights(5);
    let stacked = values(&[5, WIDTH, WIDTH], 9);
    for both in cases() {
        let function = both.function()?;
        let constant = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let mut x = values(&[ROWS, WIDTH], 0);
            for [a, _] in &weights {
                x = call(&[x, a.clone(), Tensor::ones([WIDTH, WIDTH]) * 0.01]).swap_remove(0);
            }
            Ok(vec![x])
        };
        compare("constant", constant, &function, both.compute)?;
        let twice = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let mut x = values(&[ROWS, WIDTH], 0);
            for [a, _] in &weights {
                x = call(&[x, a.clone(), a.clone()]).swap_remove(0);
            }
            Ok(vec![x])
        };
        compare("twice", twice, &function, both.compute)?;
        let views = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let mut x = values(&[ROWS, WIDTH], 0);
            for layer in 0..5 {
                let one = stacked.select(0, layer);
                x = call(&[x, one.permute([1, 0]), one]).swap_remove(0).flip([0]);
            }
            Ok(vec![x])
        };
        compare("views", views, &function, both.compute)?;
        let results = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let mut x = values(&[ROWS, WIDTH], 0);
            let mut all = vec![];
            for [a, b] in &weights {
                let mut found = call(&[x, a.clone(), b.clone()]);
                all.extend(found.pop());
                x = found.pop().unwrap_or_else(|| values(&[ROWS, WIDTH], 3)) + values(&[ROWS, WIDTH], 4);
            }
            all.push(x);
            Ok(all)
        };
        compare("results", results, &function, both.compute)?;
        let parallel = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let inputs = (0..6).map(|seed| values(&[ROWS, WIDTH], seed));
            let sums = inputs.map(|x| call(&[x, weights[0][0].clone(), weights[0][1].clone()]).swap_remove(0));
            Ok(sums.reduce(|sum, one| sum + one).into_iter().collect())
        };
        compare("parallel", parallel, &function, both.compute)?;
    }
    Ok(())
}

/// A cell whose weights all steps share; second derivatives; and a gradient after the loss was read.
#[test]
fn gradients_of_other_programs() -> Result<(), Error> {
    for both in cases() {
        let function = both.function()?;
        let [a, b] = [1, 2].map(|seed| values(&[WIDTH, WIDTH], seed));
        let recurrent = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let mut x = values(&[ROWS, WIDTH], 0);
            for _ in 0..9 {
                x = call(&[x, a.clone(), b.clone()]).swap_remove(0);
            }
            grad(&x.sum(.., false), &[&a, &b])
        };
        compare("recurrent", recurrent, &function, both.compute)?;
        let weights = weights(5);
        let second = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let mut x = values(&[ROWS, WIDTH], 0);
            for [a, b] in &weights {
                x = call(&[x, a.clone(), b.clone()]).swap_remove(0);
            }
            let loss = (&x * &x).mean(.., false);
            let wanted: Vec<&Tensor> = weights.iter().map(|[a, _]| a).collect();
            let first = grad(&loss, &wanted)?;
            let norm = first.iter().map(|one| (one * one).sum(.., false)).reduce(|sum, one| sum + one);
            grad(&norm.unwrap_or_else(|| loss.clone()), &wanted)
        };
        compare("second", second, &function, both.compute)?;
        let read = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let mut x = values(&[ROWS, WIDTH], 0);
            for [a, b] in &weights {
                x = call(&[x, a.clone(), b.clone()]).swap_remove(0);
            }
            let loss = (&x * &x).mean(.., false);
            loss.item::<f32>()?;
            grad(&loss, &weights.iter().flatten().collect::<Vec<_>>())
        };
        compare("read", read, &function, both.compute)?;
    }
    Ok(())
}

/// A gradient is derived for each device.
#[test]
fn calls_of_one_function_on_two_devices_have_gradients() -> Result<(), Error> {
    for both in cases() {
        let function = both.function()?;
        let weights = weights(8);
        let pipeline = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
            let first = values(&[ROWS, WIDTH], 0).to("interpreter:0");
            let mut x = first.clone();
            for (layer, [a, b]) in weights.iter().enumerate() {
                let device = if layer < 4 { "interpreter:0" } else { "interpreter:1" };
                x = call(&[x.to(device), a.to(device), b.to(device)]).swap_remove(0);
            }
            let loss = (&x * &x).mean(.., false);
            let mut wanted: Vec<&Tensor> = weights.iter().flatten().collect();
            wanted.push(&first);
            grad(&loss, &wanted)
        };
        compare(both.name, pipeline, &function, both.compute)?;
    }
    Ok(())
}

/// Intermediate values that the program returns and gradients also read. Many calls, so that both ends of the chain weigh little.
#[test]
fn gradients_of_intermediate_values() {
    on_each_device(|| {
        for both in cases().into_iter().filter(|both| both.name == "residual") {
            let function = both.function()?;
            let weights = weights(32);
            let kept = |call: &dyn Fn(&[Tensor]) -> Vec<Tensor>| {
                let mut inputs = vec![values(&[ROWS, WIDTH], 0)];
                for [a, b] in &weights {
                    let x = call(&[inputs[inputs.len() - 1].clone(), a.clone(), b.clone()]).swap_remove(0);
                    inputs.push(x);
                }
                let last = &inputs[inputs.len() - 1];
                let loss = (last * last).mean(.., false);
                let mut found = grad(&loss, &[&inputs[3], &inputs[0], &inputs[30], &weights[1][0]])?;
                found.extend([inputs[4].clone(), loss]);
                Ok(found)
            };
            compare(both.name, kept, &function, both.compute)?;
        }
        Ok(())
    });
}

/// Functions whose arguments begin with those of the one before are parts of one body, with a hole between each two.
#[test]
fn a_body_may_have_several_holes() -> Result<(), Error> {
    type Compute = fn(&[Tensor]) -> Vec<Tensor>;
    // The products have to be long, or else they are fused into what reads them.
    const LENGTH: i64 = 64;
    let parts: [Compute; 3] = [
        |of| vec![of[0].matmul(&of[1]) * 0.3 + &of[2]],
        |of| vec![of[3].matmul(&of[2]) * 0.3 + &of[0] + &of[1]],
        |of| vec![of[4].matmul(&of[2]) * 0.3 + &of[0] - &of[1] + &of[3]],
    ];
    let traced = |(compute, count): (Compute, usize)| {
        Function::trace(&vec![Spec::new(DType::F32, [LENGTH, LENGTH]); count], compute)
    };
    let functions: Vec<Function> = parts.into_iter().zip(3..).map(traced).collect::<Result<_, _>>()?;
    on_each_device(|| {
        let program = |call: &dyn Fn(usize, &[Tensor]) -> Vec<Tensor>| {
            let mut x = values(&[LENGTH, LENGTH], 0);
            for layer in 0..6 {
                let [a, b] = [1, 2].map(|seed| values(&[LENGTH, LENGTH], 2 * layer + seed));
                let mut passed = vec![x, a, b];
                for part in 0..3 {
                    let found = call(part, &passed);
                    passed.extend(found);
                }
                x = passed.swap_remove(5);
            }
            vec![x]
        };
        let called = program(&|part, inputs| functions[part].call(&inputs.iter().collect::<Vec<_>>()));
        assert_close("holes", &called, &program(&|part, inputs| parts[part](inputs)))
    });
    Ok(())
}
