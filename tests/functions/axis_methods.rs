//! Methods that move, join or reduce axes, each in a `#[function]` of its own name.

use tinyspec::function::EmbeddedFunction;
use tinyspec::prelude::*;

#[function]
fn reshape<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, { B * 2 }, 3> {
    x.reshape([B * 2, 3])
}

#[function]
fn permute<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, 6, B> {
    x.permute([1, 0])
}

#[function]
fn transpose<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, 6, B> {
    x.transpose(0, 1)
}

#[function]
fn expand<B>(x: &Tensor<f32, B, 1>) -> Tensor<f32, B, 6> {
    x.expand([B, 6])
}

#[function]
fn flip<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.flip([1])
}

#[function]
fn pad<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, { B + 1 }, 8> {
    x.pad([1, 2], [B + 1, 8], 0.5)
}

#[function]
fn shrink<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 4> {
    x.shrink([0, 1], [B, 4])
}

#[function]
fn narrow<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 3> {
    x.narrow(1, 2, 3)
}

#[function]
fn unsqueeze<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1, 6> {
    x.unsqueeze(1)
}

#[function]
fn squeeze<B>(x: &Tensor<f32, B, 1, 6>) -> Tensor<f32, B, 6> {
    x.squeeze(1)
}

#[function]
fn flatten<B>(x: &Tensor<f32, B, 2, 3>) -> Tensor<f32, B, 6> {
    x.flatten(1, 2)
}

#[function]
fn unflatten<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 2, 3> {
    x.unflatten(1, [2, 3])
}

#[function]
fn cat<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, { B * 2 }, 6> {
    Tensor::cat(&[x, y], 0)
}

#[function]
fn stack<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 2, 6> {
    Tensor::stack(&[x, y], 1)
}

#[function]
fn split<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 3> {
    let parts = x.split(3, 1);
    &parts[0] + &parts[1]
}

#[function]
fn split_sizes<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B, 2>, Tensor<f32, B, 4>) {
    let parts = x.split_sizes([2, 4], 1);
    (parts[0].clone(), parts[1].clone())
}

#[function]
fn chunk<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 2> {
    let parts = x.chunk(3, 1);
    &parts[0] * &parts[2]
}

#[function]
fn repeat<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 12> {
    x.repeat([1, 2])
}

#[function]
fn repeat_interleave<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 12> {
    x.repeat_interleave(2, 1)
}

#[function]
fn diagonal<B>(x: &Tensor<f32, B, 4, 4>) -> Tensor<f32, B, 4> {
    x.diagonal(0)
}

#[function]
fn roll<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.roll([2], [1])
}

#[function]
fn triu<B>(x: &Tensor<f32, B, 4, 4>) -> Tensor<f32, B, 4, 4> {
    x.triu(1)
}

#[function]
fn tril<B>(x: &Tensor<f32, B, 4, 4>) -> Tensor<f32, B, 4, 4> {
    x.tril(0)
}

#[function]
fn sum<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.sum(1, true)
}

#[function]
fn prod<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.prod(1, true)
}

#[function]
fn max<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.max(1, true)
}

#[function]
fn min<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.min(1, true)
}

#[function]
fn mean<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.mean(1, true)
}

#[function]
fn logsumexp<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.logsumexp(1, true)
}

#[function]
fn var<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.var(.., 1, false)
}

#[function]
fn std<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.std(.., 1, false)
}

#[function]
fn any<B>(m: &Tensor<bool, B, 6>) -> Tensor<bool, B> {
    m.any([1], false)
}

#[function]
fn all<B>(m: &Tensor<bool, B, 6>) -> Tensor<bool, B> {
    m.all([1], false)
}

#[function]
fn softmax<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.softmax(1)
}

#[function]
fn softmin<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.softmin(1)
}

#[function]
fn log_softmax<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.log_softmax(1)
}

#[function]
fn cumsum<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cumsum(1)
}

#[function]
fn cumprod<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cumprod(1)
}

#[function]
fn cummax<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cummax(1)
}

#[function]
fn cummin<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cummin(1)
}

#[function]
fn logcumsumexp<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.logcumsumexp(1)
}

#[function]
fn argmax<B>(x: &Tensor<f32, B, 6>) -> Tensor<i32, B> {
    x.argmax(-1)
}

#[function]
fn max_with_place<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B>, Tensor<i32, B>) {
    let found = x.max_with_place(1, false);
    (found[0].clone(), found[1].clone())
}

#[function]
fn min_with_place<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B, 1>, Tensor<i32, B, 1>) {
    let found = x.min_with_place(-1, true);
    (found[0].clone(), found[1].clone())
}

#[function]
fn argmin<B>(x: &Tensor<f32, B, 6>) -> Tensor<i32, B> {
    x.argmin(-1)
}

pub const FUNCTIONS: &[&EmbeddedFunction] = functions! {
    reshape permute transpose expand flip pad shrink narrow unsqueeze squeeze flatten unflatten cat stack split split_sizes chunk repeat repeat_interleave diagonal roll triu tril sum prod max min mean logsumexp var std any all softmax softmin log_softmax cumsum cumprod cummax cummin logcumsumexp argmax max_with_place min_with_place argmin
};
