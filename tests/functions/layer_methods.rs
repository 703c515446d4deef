//! Products, windows, picks, losses, normalisations and creation, each in a `#[function]` of its own name.

use tinyspec::function::EmbeddedFunction;
use tinyspec::prelude::*;

#[function]
fn matmul<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6, 4>) -> Tensor<f32, B, 4> {
    x.matmul(w)
}

#[function]
fn dot<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>) -> Tensor<f32, B> {
    x.dot(w)
}

#[function]
fn linear<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6, 4>, b: &Tensor<f32, 4>) -> Tensor<f32, B, 4> {
    x.linear(w, b)
}

#[function]
fn einsum<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6, 4>) -> Tensor<f32, 4, B> {
    Tensor::einsum("bi,io->ob", &[x, w])
}

#[function]
fn conv1d<B>(x: &Tensor<f32, B, 3, 8>, w: &Tensor<f32, 4, 3, 3>, b: &Tensor<f32, 4>) -> Tensor<f32, B, 4, 8> {
    x.conv1d(w, Some(b), Conv1d { padding: [1], ..default() })
}

#[function]
fn conv2d<B>(x: &Tensor<f32, B, 4, 8, 8>, w: &Tensor<f32, 4, 2, 3, 3>) -> Tensor<f32, B, 4, 3, 3> {
    x.conv2d(w, None, Conv2d { stride: [2, 2], groups: 2, ..default() })
}

#[function]
fn conv3d<B>(x: &Tensor<f32, B, 2, 4, 4, 4>, w: &Tensor<f32, 3, 2, 2, 2, 2>) -> Tensor<f32, B, 3, 3, 3, 3> {
    x.conv3d(w, None, default())
}

#[function]
fn conv_transpose1d<B>(x: &Tensor<f32, B, 3, 4>, w: &Tensor<f32, 3, 2, 3>) -> Tensor<f32, B, 2, 9> {
    x.conv_transpose1d(w, None, ConvTranspose1d { stride: [2], ..default() })
}

#[function]
fn conv_transpose2d<B>(x: &Tensor<f32, B, 3, 4, 4>, w: &Tensor<f32, 3, 2, 2, 2>) -> Tensor<f32, B, 2, 5, 5> {
    x.conv_transpose2d(w, None, default())
}

#[function]
fn conv_transpose3d<B>(x: &Tensor<f32, B, 3, 2, 2, 2>, w: &Tensor<f32, 3, 2, 2, 2, 2>) -> Tensor<f32, B, 2, 3, 3, 3> {
    x.conv_transpose3d(w, None, default())
}

#[function]
fn max_pool1d<B>(x: &Tensor<f32, B, 3, 8>) -> Tensor<f32, B, 3, 4> {
    x.max_pool1d([2], default())
}

#[function]
fn avg_pool1d<B>(x: &Tensor<f32, B, 3, 8>) -> Tensor<f32, B, 3, 4> {
    x.avg_pool1d([2], AvgPool1d { count_include_pad: false, ..default() })
}

#[function]
fn max_pool2d<B>(x: &Tensor<f32, B, 3, 8, 8>) -> Tensor<f32, B, 3, 4, 4> {
    x.max_pool2d([2, 2], default())
}

#[function]
fn avg_pool2d<B>(x: &Tensor<f32, B, 3, 8, 8>) -> Tensor<f32, B, 3, 4, 4> {
    x.avg_pool2d([2, 2], AvgPool2d { count_include_pad: false, ..default() })
}

#[function]
fn max_pool3d<B>(x: &Tensor<f32, B, 3, 4, 4, 4>) -> Tensor<f32, B, 3, 2, 2, 2> {
    x.max_pool3d([2, 2, 2], default())
}

#[function]
fn avg_pool3d<B>(x: &Tensor<f32, B, 3, 4, 4, 4>) -> Tensor<f32, B, 3, 2, 2, 2> {
    x.avg_pool3d([2, 2, 2], AvgPool3d { count_include_pad: false, ..default() })
}

#[function]
fn unfold<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 3, 2> {
    x.unfold(1, 2, 2)
}

#[function]
fn pad_mode<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 9> {
    x.pad_mode([1], [2], "reflect")
}

#[function]
fn interpolate<B>(x: &Tensor<f32, B, 3, 4>) -> Tensor<f32, B, 3, 8> {
    x.interpolate([8], "linear", false)
}

#[function]
fn one_hot<B>(i: &Tensor<i32, B>) -> Tensor<i32, B, 10> {
    i.one_hot(10)
}

#[function]
fn index0<B>(x: &Tensor<f32, 10, 4>, i: &Tensor<i32, B>) -> Tensor<f32, B, 4> {
    x.index0(i)
}

#[function]
fn embedding<B>(i: &Tensor<i32, B, 5>, x: &Tensor<f32, 10, 4>) -> Tensor<f32, B, 5, 4> {
    i.embedding(x)
}

#[function]
fn take<B>(x: &Tensor<f32, 10, 4>, i: &Tensor<i32, B>) -> Tensor<f32, B, 4> {
    x.take(i)
}

#[function]
fn gather<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>) -> Tensor<f32, B, 3> {
    x.gather(i, 1)
}

#[function]
fn scatter_add<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>, v: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.scatter_add(i, v, 1)
}

#[function]
fn scatter_multiply<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>, v: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.scatter_multiply(i, v, 1)
}

#[function]
fn scatter<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>, v: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.scatter(i, v, 1)
}

#[function]
fn scatter_reduce<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>, v: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.scatter_reduce(i, v, 1, "amax", true)
}

#[function]
fn sort<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B, 6>, Tensor<i32, B, 6>) {
    let sorted = x.sort(1, true);
    (sorted[0].clone(), sorted[1].clone())
}

#[function]
fn argsort<B>(x: &Tensor<f32, B, 6>) -> Tensor<i32, B, 6> {
    x.argsort(1, false)
}

#[function]
fn topk<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B, 2>, Tensor<i32, B, 2>) {
    let best = x.topk(2, 1, true);
    (best[0].clone(), best[1].clone())
}

#[function]
fn cross_entropy<B>(x: &Tensor<f32, B, 6>, t: &Tensor<i32, B>) -> Tensor<f32> {
    x.cross_entropy(t, "mean", 0.1, -1)
}

#[function]
fn cross_entropy_prob<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.cross_entropy_prob(y, "sum")
}

#[function]
fn ctc_loss<B>(
    x: &Tensor<f32, 5, B, 6>,
    t: &Tensor<i32, B, 2>,
    steps: &Tensor<i32, B>,
    labels: &Tensor<i32, B>,
) -> Tensor<f32> {
    x.ctc_loss(t, steps, labels, 0, "sum", true)
}

#[function]
fn nll_loss<B>(x: &Tensor<f32, B, 6>, t: &Tensor<i32, B>) -> Tensor<f32, B> {
    x.nll_loss(t, "none")
}

#[function]
fn nll_loss_weight<B>(x: &Tensor<f32, B, 6>, t: &Tensor<i32, B>, w: &Tensor<f32, 6>) -> Tensor<f32> {
    x.nll_loss_weight(t, w, "mean")
}

#[function]
fn binary_crossentropy<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.binary_crossentropy(y, "mean")
}

#[function]
fn binary_crossentropy_logits<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.binary_crossentropy_logits(y, "mean")
}

#[function]
fn layer_norm<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>, b: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.layer_norm(w, b, 1, 0.00001)
}

#[function]
fn rms_norm<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.rms_norm(w, 0.00001)
}

#[function]
fn group_norm<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>, b: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.group_norm(w, b, 2, 0.00001)
}

#[function]
fn batch_norm_train<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>, b: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.batch_norm_train(w, b, 0.00001)
}

#[function]
fn batch_norm_eval<B>(
    x: &Tensor<f32, B, 6>,
    w: &Tensor<f32, 6>,
    b: &Tensor<f32, 6>,
    mean: &Tensor<f32, 6>,
    variance: &Tensor<f32, 6>,
) -> Tensor<f32, B, 6> {
    x.batch_norm_eval(w, b, mean, variance, 0.00001)
}

#[function]
fn sdpa<B>(
    q: &Tensor<f32, B, 2, 5, 4>,
    k: &Tensor<f32, B, 2, 5, 4>,
    v: &Tensor<f32, B, 2, 5, 4>,
) -> Tensor<f32, B, 2, 5, 4> {
    q.sdpa(k, v, true)
}

#[function]
fn sdpa_mask<B>(
    q: &Tensor<f32, B, 2, 5, 4>,
    k: &Tensor<f32, B, 2, 5, 4>,
    v: &Tensor<f32, B, 2, 5, 4>,
    m: &Tensor<bool, 5, 5>,
) -> Tensor<f32, B, 2, 5, 4> {
    q.sdpa_mask(k, v, m)
}

#[function]
fn full<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::full([B, 6], 0.5)
}

#[function]
fn zeros<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::zeros([B, 6])
}

#[function]
fn ones<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::ones([B, 6])
}

#[function]
fn arange<B>(i: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i + Tensor::arange(6)
}

#[function]
fn arange_of<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::arange_of(1.0, 4.0, 0.5, DType::F32)
}

#[function]
fn linspace<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::linspace(0.0, 1.0, 6, DType::F32)
}

#[function]
fn eye<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    Tensor::eye(B, B, DType::F32).matmul(x.matmul(Tensor::eye(6, 6, DType::F32)))
}

pub const FUNCTIONS: &[&EmbeddedFunction] = functions! {
    matmul dot linear einsum conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d avg_pool1d max_pool2d avg_pool2d max_pool3d avg_pool3d unfold pad_mode interpolate one_hot index0 embedding take gather scatter_add scatter_multiply scatter scatter_reduce sort argsort topk cross_entropy cross_entropy_prob ctc_loss nll_loss nll_loss_weight binary_crossentropy binary_crossentropy_logits layer_norm rms_norm group_norm batch_norm_train batch_norm_eval sdpa sdpa_mask full zeros ones arange arange_of linspace eye
};
