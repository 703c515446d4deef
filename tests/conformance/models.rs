//! Models and optimisers of the corpus: written as a user would write them.

use tinyspec::nn::{Adam, Optimizer, Sgd, SgdOptions};
use tinyspec::{Tensor, grad};

/// The last state of a long short-term memory over `(batch, time, features)`.
pub fn lstm(x: &Tensor, input: &Tensor, state: &Tensor, bias: &Tensor) -> Tensor {
    let (Ok(sizes), Ok(widths)) = (x.sizes(), state.sizes()) else { return x.clone() };
    let shape = [sizes[0] as i64, widths[0] as i64];
    let (mut hidden, mut cell) = (Tensor::zeros(shape), Tensor::zeros(shape));
    for time in 0..sizes[1] as i64 {
        let now = x.narrow(1, time, 1).squeeze(1);
        let gates = now.matmul(input) + hidden.matmul(state) + bias;
        let gate = |number: i64| gates.narrow(-1, number * shape[1], shape[1]);
        let (write, keep, value, read) = (gate(0).sigmoid(), gate(1).sigmoid(), gate(2).tanh(), gate(3).sigmoid());
        cell = keep * cell + write * value;
        hidden = read * cell.tanh();
    }
    hidden
}

/// Causal attention and a layer of gelus, each after a normalisation and beside a path around it.
pub fn transformer_block(
    x: &Tensor,
    projections: &Tensor,
    output: &Tensor,
    [up, down]: [&Tensor; 2],
    heads: i64,
) -> Tensor {
    let Ok([batch, time, width]) = x.sizes().map(|sizes| [0, 1, 2].map(|axis| sizes[axis] as i64)) else {
        return x.clone();
    };
    let normalized = |x: &Tensor| x.layer_norm(Tensor::ones([width]), Tensor::zeros([width]), 1, 1e-5);
    let projected = normalized(x).matmul(projections);
    let head = |number: i64| {
        let part = projected.narrow(-1, number * width, width);
        part.reshape([batch, time, heads, width / heads]).transpose(1, 2)
    };
    let attended = head(0).sdpa(head(1), head(2), true).transpose(1, 2).reshape([batch, time, width]);
    let x = x + attended.matmul(output);
    &x + normalized(&x).matmul(up).gelu().matmul(down)
}

/// The optimiser that a case names.
pub fn optimizer(name: &str) -> Option<Box<dyn Optimizer>> {
    Some(match name {
        "optim_sgd" => Box::new(Sgd::new(0.05)),
        "optim_sgd_momentum" => Box::new(Sgd::with_momentum(0.05, 0.9)),
        "optim_sgd_nesterov_wd" => {
            let options = SgdOptions { momentum: 0.9, nesterov: true, weight_decay: 0.01 };
            Box::new(Sgd::with_options(0.05, options))
        }
        "optim_adam" => Box::new(Adam::new(0.01)),
        "optim_adamw" => Box::new(Adam::with_weight_decay(0.01, 0.1)),
        _ => return None,
    })
}

/// The weight after some steps towards `x @ weight = target`.
pub fn fit(
    optimizer: &mut dyn Optimizer,
    x: &Tensor,
    target: &Tensor,
    weight: &Tensor,
    steps: i64,
) -> Result<Tensor, String> {
    let mut weight = weight.clone();
    for _ in 0..steps {
        let loss = (x.matmul(&weight) - target).square().mean(.., false);
        let gradients = grad(&loss, &[&weight]).map_err(|error| error.to_string())?;
        optimizer.step(&mut [&mut weight], &gradients).map_err(|error| error.to_string())?;
    }
    Ok(weight)
}
