//! A printed probe: a custom function that shows a value on its way through a program, where it is computed.
//!
//! `cargo run --release --example probe`

use tinyspec::function::Meta;
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, call_function, register_function};

/// It makes nothing and updates its argument, without changing it: so whatever reads the result waits for the print.
fn probe() -> CustomFunction {
    CustomFunction::new("probe", |_, _| Ok(vec![]))
        .updates(1)
        .host(|call| {
            let [Meta::Text(label)] = call.meta else { return Err("a probe takes a label".into()) };
            let values = call.outputs[0].as_slice::<f32>()?;
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            let least = values.iter().copied().fold(f32::INFINITY, f32::min);
            let greatest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            println!("{label:>8} {:?}: mean {mean:.3}, from {least:.3} to {greatest:.3}", call.outputs[0].shape());
            Ok(())
        })
        .gradient(|_, _, gradients| vec![Some(gradients[0].clone())])
}

fn probed(label: &str, x: &Tensor) -> Tensor {
    let [x] = call_function("probe", &[label.into()], &[x]);
    x
}

fn main() -> Result<()> {
    register_function(probe())?;
    set_seed(1);
    let (x, w) = (Tensor::randn([64, 32]), Tensor::randn([32, 10]));
    let hidden = probed("hidden", &x.matmul(&w).relu());
    let loss = probed("loss", &(&hidden * &hidden).mean(.., false));
    // The gradient passes through the probes.
    let gradient = grad(&loss, &[&w])?.remove(0);
    probed("gradient", &gradient).realize()?;
    Ok(())
}
