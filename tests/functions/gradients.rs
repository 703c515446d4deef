//! Backward functions: derived at compile time, derived at run time, and the user's own.

use tinyspec::prelude::*;

#[function(grad)]
fn loss<B>(x: &Tensor<f32, B, 8>, w: &Tensor<f32, 8, 4>, labels: &Tensor<i32, B>) -> Tensor<f32> {
    x.matmul(w).tanh().cross_entropy(labels, "mean", 0.0, -100)
}

#[function]
fn layer<N, I, O>(x: &Tensor<f32, N, I>, w: &Tensor<f32, I, O>) -> Tensor<f32, N, O> {
    x.matmul(w).relu() + x.sum(1, true)
}

/// Calls feed calls, a result is used twice, and one input nowhere.
#[function(grad)]
fn deep<B>(
    x: &Tensor<f32, B, 6>,
    w: &Tensor<f32, 6, 6>,
    _unused: &Tensor<f32, 3>,
    scale: f32,
) -> (Tensor<f32, B, 6>, Tensor<f32>) {
    let h = layer(x, w);
    let g = layer(&(&h * scale), w);
    (&h * &g, g.sum(.., false))
}

/// Straight through: the gradient of rounding is that of nothing.
#[function(gradient = straight)]
fn rounded<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    x.round()
}

#[function]
fn straight<M>(x: &Tensor<f32, M>, cotangent: &Tensor<f32, M>) -> Tensor<f32, M> {
    cotangent * 10.0 + x * 0.0
}

#[function(grad)]
fn through<N>(x: &Tensor<f32, N>) -> Tensor<f32> {
    (rounded(&(x * 2.0)) * x).sum(.., false)
}

fn data(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>();
    let values: Vec<f32> = (0..count).map(|i| ((i * 7 + 3) % 11) as f32 * 0.1 - 0.45).collect();
    Tensor::from_slice(&values, shape)
}

fn close(a: &Tensor, b: &Tensor) {
    let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{a} {b}");
    }
}

#[test]
fn the_embedded_gradient_is_that_of_the_run_time() -> Result<()> {
    let (x, w) = (data(&[3, 8]), data(&[8, 4]));
    let labels = Tensor::from_slice(&[1i32, 3, 0], [3]);
    let [dx, dw] = loss::grad(&x, &w, &labels);
    let expected = grad(&loss(&x, &w, &labels), &[&x, &w])?;
    close(&dx, &expected[0]);
    close(&dw, &expected[1]);
    let derived = loss::FUNCTION.get()?.backward()?;
    assert_eq!(derived.body().hash(), loss::FUNCTION.gradient()?.body().hash());
    Ok(())
}

#[test]
fn calls_have_gradients() -> Result<()> {
    let (x, w, unused) = (data(&[5, 6]), data(&[6, 6]), data(&[3]));
    let scale = Tensor::scalar(0.5f32);
    let (first, second) = deep(&x, &w, &unused, &scale);
    let cotangent = data(&[5, 6]) + 1.0;
    let total = (&first * &cotangent).sum(.., false) + &second * 3.0;
    let expected = grad(&total, &[&x, &w, &scale])?;
    let [dx, dw, dunused, dscale] = deep::backward(&x, &w, &unused, &scale, &cotangent, &Tensor::full((), 3.0f32));
    close(&dx, &expected[0]);
    close(&dw, &expected[1]);
    close(&dscale, &expected[2]);
    assert_eq!(dunused.to_vec::<f32>()?, [0.0; 3]);
    Ok(())
}

#[test]
fn a_gradient_of_ones_own_is_used_everywhere() -> Result<()> {
    let x = Tensor::from_slice(&[0.3f32, -1.7, 2.2], [3]);
    // d/dx sum(round(2x) x) with round' = 10: 20 x + round(2x).
    let expected: Vec<f32> = [0.3f32, -1.7, 2.2].map(|x| 20.0 * x + (2.0 * x).round_ties_even()).to_vec();
    let expected = Tensor::from_slice(&expected, [3]);
    close(&through::grad(&x)[0], &expected);
    close(&grad(&through(&x), &[&x])?[0], &expected);
    close(&grad(&(rounded(&(&x * 2.0)) * &x).sum(.., false), &[&x])?[0], &expected);
    let value = through(&x);
    assert!((value.item::<f32>()? - (0.3 + 1.7 * 3.0 + 2.2 * 4.0)).abs() < 1e-5);
    assert_eq!(rounded::FUNCTION.prepare(&[&x])?.outputs()?.len(), 1);
    Ok(())
}

#[function(grad, fast_math(contract, approx))]
fn fast<N>(x: &Tensor<f32, N>, scale: f32) -> Tensor<f32, N> {
    x * 0.1 + scale / 3.0
}

#[function(grad)]
fn strict<N>(x: &Tensor<f32, N>, scale: f32) -> Tensor<f32, N> {
    x * 0.1 + scale / 3.0
}

#[test]
fn permissions_are_those_of_the_run_time() -> Result<()> {
    let permissions = [tinyspec::Permission::Contract, tinyspec::Permission::Approx];
    let wanted = strict::FUNCTION.get()?.fast_math(&permissions)?;
    assert_eq!(fast::FUNCTION.get()?.body().hash(), wanted.body().hash());
    assert_ne!(fast::FUNCTION.get()?.body().hash(), strict::FUNCTION.get()?.body().hash());
    assert_eq!(fast::FUNCTION.retrace()?.body().hash(), wanted.body().hash());
    let wanted = strict::FUNCTION.gradient()?.fast_math(&permissions)?;
    assert_eq!(fast::FUNCTION.gradient()?.body().hash(), wanted.body().hash());
    let x = data(&[5]);
    close(&fast(&x, 0.5), &strict(&x, 0.5));
    Ok(())
}

#[function(grad, strict)]
fn product_as_written<N>(x: &Tensor<bf16, N, 8>, w: &Tensor<bf16, 8, 4>) -> Tensor<bf16, N, 4> {
    x.matmul(w)
}

#[function(grad)]
fn product_by_default<N>(x: &Tensor<bf16, N, 8>, w: &Tensor<bf16, 8, 4>) -> Tensor<bf16, N, 4> {
    x.matmul(w)
}

#[test]
fn strict_functions_are_those_of_the_run_time() -> Result<()> {
    let by_default = product_by_default::FUNCTION.get()?;
    let strict = product_as_written::FUNCTION.get()?;
    assert_eq!(strict.body().hash(), by_default.strict()?.body().hash());
    assert_ne!(strict.body().hash(), by_default.body().hash());
    assert_eq!(product_as_written::FUNCTION.retrace()?.body().hash(), strict.body().hash());
    let wanted = product_by_default::FUNCTION.gradient()?.strict()?;
    assert_eq!(product_as_written::FUNCTION.gradient()?.body().hash(), wanted.body().hash());
    Ok(())
}

#[function(grad)]
fn spread<N>(x: &Tensor<f32, N, 2>) -> Tensor<f32> {
    x.std(1, 1, false).sum(.., false)
}

#[test]
fn deviations_have_gradients_through_functions_that_were_read() -> Result<()> {
    let x = Tensor::from_slice(&[2f32, 2.0, 3.0, 1.0], [2, 2]);
    let root = 0.5f32.sqrt();
    // Equal elements have slope 0.
    let expected = Tensor::from_slice(&[0.0, 0.0, root, -root], [2, 2]);
    close(&spread::grad(&x)[0], &expected);
    let x = Tensor::from_slice(&[2f32; 4], [2, 2]);
    for is_read in [false, true] {
        let (wide, own) = (spread(&x), (rounded(&x.flatten(0, -1)) * 3.0).sum(.., false));
        if is_read {
            assert_eq!((wide.item::<f32>()?, own.item::<f32>()?), (0.0, 24.0));
        }
        close(&grad(&wide, &[&x])?[0], &Tensor::zeros([2, 2]));
        close(&grad(&own, &[&x])?[0], &Tensor::full([2, 2], 30.0f32));
    }
    Ok(())
}

#[function]
fn scaled<N>(x: &Tensor<f32, N>, by: f32) -> Tensor<f32, N> {
    x * by
}

#[test]
fn a_loss_that_was_read_knows_the_numbers_it_was_made_of() -> Result<()> {
    let w = data(&[5]);
    let loss = scaled(&w.square(), 0.5).sum(.., false);
    loss.item::<f32>()?;
    close(&grad(&loss, &[&w])?[0], &w);
    // A result of a function whose number was read, by a function that is called with another one.
    let (h, g) = deep(&data(&[2, 6]), &data(&[6, 6]), &data(&[3]), 0.25);
    h.to_vec::<f32>()?;
    g.item::<f32>()?;
    Ok(())
}
