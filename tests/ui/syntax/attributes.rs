//! Attributes inside a function: rustc would look at them after the trace.

use tinyspec::prelude::*;

#[function]
fn conditional<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    let mut y = x * 2.0;
    #[cfg(any())]
    {
        y = y * 100.0;
    }
    #[cfg_attr(all(), cfg(any()))]
    let y = y + 1.0;
    y
}

#[function]
fn parameters<B>(x: &Tensor<f32, B>, #[cfg(any())] y: &Tensor<f32, B>) -> Tensor<f32, B> {
    x * 2.0
}

#[function]
fn others<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    #[cfg(all())]
    const STEPS: i64 = 2;
    #[inline]
    let y = x * 2.0;
    let list = [#[cfg(any())] x, x];
    let more = vec![#[cfg(any())] x, x];
    y + list[0] + more[0]
}

#[function]
fn harmless<B>(#[allow(unused)] x: &Tensor<f32, B>) -> Tensor<f32, B> {
    #[allow(unused)]
    let y = x * 2.0;
    #[rustfmt::skip]
    let z = x  *  2.0;
    z
}

#[model(functions)]
struct Field {
    #[cfg(any())]
    w: Tensor<f32, 3>,
    b: Tensor<f32, 3>,
}

#[function]
impl Field {
    #[cfg(any())]
    fn gone(&self) -> Tensor<f32, 3> {
        &self.b * 2.0
    }
    fn body(&self) -> Tensor<f32, 3> {
        #[cfg(any())]
        let b = 3.0;
        &self.b * 2.0
    }
}

fn main() {}
