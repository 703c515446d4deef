use tinyspec::prelude::*;

const DEEP: bool = true;

#[function]
fn flow<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    let mut y = x.relu();
    if x > 0.0 {
        y = y * 2.0;
    }
    while y.sum(.., false) > 1.0 {
        y = y * 0.5;
    }
    if DEEP {
        y = y + 1.0;
    }
    println!("{:?}", y);
    let z = y.to_vec::<f32>()?;
    for i in 0..4 {
        if i == 2 {
            break;
        }
    }
    let f = |t| t + 1.0;
    match 3 {
        _ => {}
    }
    if x.any(.., false) {
        y = y.exp();
    }
    return y.reluu().softmax(1, 2);
}

fn main() {}
