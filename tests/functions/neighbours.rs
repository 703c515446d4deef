//! Methods beside the common ones, each in a `#[function]` of its own name.

use tinyspec::function::EmbeddedFunction;
use tinyspec::prelude::*;

#[function]
fn erfinv<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.erfinv()
}

#[function]
fn ndtr<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.ndtr()
}

#[function]
fn ndtri<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.ndtri()
}

#[function]
fn lgamma<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.lgamma()
}

#[function]
fn digamma<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.digamma()
}

#[function]
fn i0<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.i0()
}

#[function]
fn i0e<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.i0e()
}

#[function]
fn entr<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.entr()
}

#[function]
fn logaddexp2<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.logaddexp2(y)
}

#[function]
fn xlog1py<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.xlog1py(y)
}

#[function]
fn fmax<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.fmax(y)
}

#[function]
fn fmin<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.fmin(y)
}

#[function]
fn logical_and<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.logical_and(y)
}

#[function]
fn logical_or<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.logical_or(y)
}

#[function]
fn logical_xor<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.logical_xor(y)
}

#[function]
fn signbit<B>(x: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.signbit()
}

#[function]
fn isin<B>(x: &Tensor<f32, B, 6>, values: &Tensor<f32, 4>) -> Tensor<bool, B, 6> {
    x.isin(values)
}

#[function]
fn addcmul<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.addcmul(y, x, 0.5)
}

#[function]
fn addcdiv<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.addcdiv(y, x, 0.5)
}

#[function]
fn ldexp<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 6>) -> Tensor<f32, B, 6> {
    x.ldexp(i)
}

#[function]
fn rot90<B>(x: &Tensor<f32, B, 2, 3>) -> Tensor<f32, B, 3, 2> {
    x.rot90(1, 1, 2)
}

#[function]
fn masked_scatter(x: &Tensor<f32, 2, 6>, m: &Tensor<bool, 2, 6>, source: &Tensor<f32, 12>) -> Tensor<f32, 2, 6> {
    x.masked_scatter(m, source)
}

#[function]
fn diagonal_scatter<B>(x: &Tensor<f32, B, 3, 4>, value: &Tensor<f32, B, 3>) -> Tensor<f32, B, 3, 4> {
    x.diagonal_scatter(value, 1)
}

#[function]
fn cartesian_prod(x: &Tensor<f32, 3>, y: &Tensor<f32, 2>) -> Tensor<f32, 6, 2> {
    Tensor::cartesian_prod(&[x, y])
}

#[function]
fn block_diag(x: &Tensor<f32, 3, 2>, y: &Tensor<f32, 2, 2>) -> Tensor<f32, 5, 4> {
    Tensor::block_diag(&[x, y])
}

#[function]
fn vander(x: &Tensor<f32, 6>) -> Tensor<f32, 6, 4> {
    x.vander(4, true)
}

#[function]
fn var_mean<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B>, Tensor<f32, B>) {
    let parts = x.var_mean(1, 1, false);
    (parts[0].clone(), parts[1].clone())
}

#[function]
fn std_mean<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B>, Tensor<f32, B>) {
    let parts = x.std_mean(1, 1, false);
    (parts[0].clone(), parts[1].clone())
}

#[function]
fn aminmax<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B>, Tensor<f32, B>) {
    let parts = x.aminmax(1, false);
    (parts[0].clone(), parts[1].clone())
}

#[function]
fn cov<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, B> {
    x.cov(1)
}

#[function]
fn corrcoef<N>(x: &Tensor<f32, N, 6>) -> Tensor<f32, N, N> {
    x.corrcoef()
}

#[function]
fn nanmedian<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.nanmedian(1, false)
}

#[function]
fn cumulative_trapezoid<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 5> {
    x.cumulative_trapezoid(0.5, 1)
}

#[function]
fn bucketize<B>(x: &Tensor<f32, B, 6>, bounds: &Tensor<f32, 4>) -> Tensor<i32, B, 6> {
    x.bucketize(bounds, true)
}

#[function]
fn renorm<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.renorm(2.0, 0, 1.0)
}

#[function]
fn pairwise_distance<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.pairwise_distance(y, 2.0, 0.000001)
}

#[function]
fn bilinear<B>(
    x: &Tensor<f32, B, 3>,
    y: &Tensor<f32, B, 2>,
    w: &Tensor<f32, 4, 3, 2>,
    bias: &Tensor<f32, 4>,
) -> Tensor<f32, B, 4> {
    x.bilinear(y, w, Some(bias))
}

#[function]
fn lp_pool1d<B>(x: &Tensor<f32, B, 3, 8>) -> Tensor<f32, B, 3, 4> {
    x.lp_pool1d(2.0, [2], default())
}

#[function]
fn lp_pool2d<B>(x: &Tensor<f32, B, 3, 8, 8>) -> Tensor<f32, B, 3, 4, 4> {
    x.lp_pool2d(3.0, [2, 2], AvgPool2d { stride: Some([2, 2]), ..default() })
}

#[function]
fn channel_shuffle<B>(x: &Tensor<f32, B, 6, 2>) -> Tensor<f32, B, 6, 2> {
    x.channel_shuffle(3)
}

#[function]
fn affine_grid<B>(theta: &Tensor<f32, B, 2, 3>) -> Tensor<f32, B, 4, 5, 2> {
    theta.affine_grid([4, 5], false)
}

#[function]
fn grid_sample<B>(x: &Tensor<f32, B, 3, 4, 5>, grid: &Tensor<f32, B, 2, 2, 2>) -> Tensor<f32, B, 3, 2, 2> {
    x.grid_sample(grid, "bilinear", "reflection", false)
}

#[function]
fn index_add(x: &Tensor<f32, 3, 6>, index: &Tensor<i32, 2>, value: &Tensor<f32, 2, 6>) -> Tensor<f32, 3, 6> {
    x.index_add(0, index, value)
}

#[function]
fn index_copy(x: &Tensor<f32, 3, 6>, index: &Tensor<i32, 2>, value: &Tensor<f32, 2, 6>) -> Tensor<f32, 3, 6> {
    x.index_copy(0, index, value)
}

#[function]
fn index_fill<B>(x: &Tensor<f32, B, 6>, index: &Tensor<i32, 2>) -> Tensor<f32, B, 6> {
    x.index_fill(1, index, 0.5)
}

#[function]
fn soft_margin_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.soft_margin_loss(y, "mean")
}

#[function]
fn multi_margin_loss<B>(x: &Tensor<f32, B, 6>, labels: &Tensor<i32, B>) -> Tensor<f32> {
    x.multi_margin_loss(labels, "mean", 1.0, 1.0)
}

#[function]
fn multilabel_soft_margin_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.multilabel_soft_margin_loss(y, "none")
}

#[function]
fn multilabel_margin_loss<B>(x: &Tensor<f32, B, 6>, labels: &Tensor<i32, B, 6>) -> Tensor<f32> {
    x.multilabel_margin_loss(labels, "sum")
}

#[function]
fn sigmoid_focal_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.sigmoid_focal_loss(y, "mean", 0.25, 2.0)
}

#[function]
fn rnn_cell<B>(
    x: &Tensor<f32, B, 3>,
    h: &Tensor<f32, B, 4>,
    w: &Tensor<f32, 3, 4>,
    u: &Tensor<f32, 4, 4>,
) -> Tensor<f32, B, 4> {
    x.rnn_cell(h, w, u, None, None)
}

#[function]
fn lstm_cell<B>(
    x: &Tensor<f32, B, 3>,
    h: &Tensor<f32, B, 4>,
    c: &Tensor<f32, B, 4>,
    w: &Tensor<f32, 3, 16>,
    u: &Tensor<f32, 4, 16>,
    bias: &Tensor<f32, 16>,
) -> (Tensor<f32, B, 4>, Tensor<f32, B, 4>) {
    let state = x.lstm_cell(h, c, w, u, Some(bias), None);
    (state[0].clone(), state[1].clone())
}

#[function]
fn gru_cell<B>(
    x: &Tensor<f32, B, 3>,
    h: &Tensor<f32, B, 4>,
    w: &Tensor<f32, 3, 12>,
    u: &Tensor<f32, 4, 12>,
    bias: &Tensor<f32, 12>,
) -> Tensor<f32, B, 4> {
    x.gru_cell(h, w, u, Some(bias), Some(bias))
}

#[function]
fn rnn<B>(
    x: &Tensor<f32, 5, B, 3>,
    h: &Tensor<f32, B, 4>,
    w: &Tensor<f32, 3, 4>,
    u: &Tensor<f32, 4, 4>,
) -> Tensor<f32, 5, B, 4> {
    let found = x.rnn(h, w, u, None, None);
    found[0].clone()
}

#[function]
fn lstm<B>(
    x: &Tensor<f32, 5, B, 3>,
    h: &Tensor<f32, B, 4>,
    c: &Tensor<f32, B, 4>,
    w: &Tensor<f32, 3, 16>,
    u: &Tensor<f32, 4, 16>,
) -> (Tensor<f32, 5, B, 4>, Tensor<f32, B, 4>) {
    let found = x.lstm(h, c, w, u, None, None);
    (found[0].clone(), found[2].clone())
}

#[function]
fn gru<B>(
    x: &Tensor<f32, 5, B, 3>,
    h: &Tensor<f32, B, 4>,
    w: &Tensor<f32, 3, 12>,
    u: &Tensor<f32, 4, 12>,
) -> Tensor<f32, 5, B, 4> {
    let found = x.gru(h, w, u, None, None);
    found[0].clone()
}

#[function]
fn logspace<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::logspace(0.0, 1.0, 6, 10.0, DType::F32)
}

#[function]
fn tril_indices(i: &Tensor<i32, 2, 6>) -> Tensor<i32, 2, 6> {
    i + Tensor::tril_indices(3, 3, 0)
}

#[function]
fn triu_indices(i: &Tensor<i32, 2, 6>) -> Tensor<i32, 2, 6> {
    i + Tensor::triu_indices(3, 3, 0)
}

#[function]
fn hann_window<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x * Tensor::hann_window(6, true)
}

#[function]
fn hamming_window<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x * Tensor::hamming_window(6, false)
}

#[function]
fn blackman_window<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x * Tensor::blackman_window(6, false)
}

#[function]
fn exponential_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x + key.exponential_with([B, 6], 1.5, DType::F32)
}

#[function]
fn gumbel_softmax_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x.gumbel_softmax_with(key, 0.5, true, -1)
}

#[function]
fn isposinf<B>(x: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.isposinf()
}

#[function]
fn isneginf<B>(x: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.isneginf()
}

#[function]
fn gcd(x: &Tensor<i32, 2, 6>, y: &Tensor<i32, 6>) -> Tensor<i32, 2, 6> {
    x.gcd(y)
}

#[function]
fn lcm(x: &Tensor<i32, 2, 6>) -> Tensor<i32, 2, 6> {
    x.lcm(4)
}

#[function]
fn nextafter<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.nextafter(2.0)
}

#[function]
fn frexp<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    let parts = x.frexp();
    &parts[0] * parts[1].cast(DType::F32)
}

#[function]
fn cross_entropy_weight<B>(x: &Tensor<f32, B, 6>, labels: &Tensor<i32, B>, w: &Tensor<f32, 6>) -> Tensor<f32> {
    x.cross_entropy_weight(labels, w, "mean", 0.1, -100)
}

#[function]
fn binary_crossentropy_weight<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>) -> Tensor<f32> {
    x.binary_crossentropy_weight(y, w, "mean")
}

#[function]
fn binary_crossentropy_logits_weight<B>(
    x: &Tensor<f32, B, 6>,
    y: &Tensor<f32, B, 6>,
    positive: &Tensor<f32, 6>,
) -> Tensor<f32> {
    x.binary_crossentropy_logits_weight(y, None, Some(positive), "mean")
}

#[function]
fn sdpa_with<B>(
    q: &Tensor<f32, B, 4, 6, 8>,
    k: &Tensor<f32, B, 2, 5, 8>,
    mask: &Tensor<bool, 6, 5>,
    key: &Tensor<u64>,
) -> Tensor<f32, B, 4, 6, 8> {
    const DROPPED: f64 = 0.25;
    let options = Attention { scale: Some(0.5), dropout: DROPPED, grouped: true, ..default() };
    q.sdpa_with(k, k, Some(mask), Some(key), options)
}

#[function]
fn interpolate_scale(x: &Tensor<f32, 1, 2, 6>) -> Tensor<f32, 1, 2, 9> {
    x.interpolate_scale(1.5, "linear", false)
}

#[function]
fn rnn_layers<B>(
    x: &Tensor<f32, 3, B, 4>,
    h: &Tensor<f32, 2, B, 5>,
    w: &Tensor<f32, 4, 5>,
    u: &Tensor<f32, 5, 5>,
) -> Tensor<f32, 3, B, 10> {
    let states = x.rnn_layers(h, &[w, u, w, u], true);
    states[0].clone()
}

#[function]
fn lstm_layers<B>(
    x: &Tensor<f32, 3, B, 4>,
    h: &Tensor<f32, 2, B, 4>,
    w: &Tensor<f32, 4, 16>,
    b: &Tensor<f32, 16>,
) -> Tensor<f32, 2, B, 4> {
    let states = x.lstm_layers(h, h, &[w, w, b, b, w, w, b, b], false);
    states[2].clone()
}

#[function]
fn gru_layers<B>(x: &Tensor<f32, 3, B, 4>, h: &Tensor<f32, 1, B, 4>, w: &Tensor<f32, 4, 12>) -> Tensor<f32, 1, B, 4> {
    let states = x.gru_layers(h, &[w, w], false);
    states[1].clone()
}

#[function]
fn rnn_layers_with<B>(
    x: &Tensor<f32, 3, B, 4>,
    h: &Tensor<f32, 2, B, 4>,
    w: &Tensor<f32, 4, 4>,
    key: &Tensor<u64>,
) -> Tensor<f32, 3, B, 4> {
    const DROPPED: f64 = 0.25;
    let states = x.rnn_layers_with(h, &[w, w, w, w], false, key, DROPPED);
    states[0].clone()
}

#[function]
fn lstm_layers_with<B>(
    x: &Tensor<f32, 3, B, 4>,
    h: &Tensor<f32, 2, B, 4>,
    w: &Tensor<f32, 4, 16>,
    key: &Tensor<u64>,
) -> Tensor<f32, 2, B, 4> {
    let states = x.lstm_layers_with(h, h, &[w, w, w, w], false, key, 0.5);
    states[2].clone()
}

#[function]
fn gru_layers_with<B>(
    x: &Tensor<f32, 3, B, 4>,
    h: &Tensor<f32, 2, B, 4>,
    w: &Tensor<f32, 4, 12>,
    key: &Tensor<u64>,
) -> Tensor<f32, 2, B, 4> {
    let states = x.gru_layers_with(h, &[w, w, w, w], false, key, 0.5);
    states[1].clone()
}

pub const FUNCTIONS: &[&EmbeddedFunction] = functions! {
    erfinv ndtr ndtri lgamma digamma i0 i0e entr logaddexp2 xlog1py fmax fmin logical_and logical_or logical_xor signbit isin addcmul addcdiv ldexp rot90 masked_scatter diagonal_scatter cartesian_prod block_diag vander var_mean std_mean aminmax cov corrcoef nanmedian cumulative_trapezoid bucketize renorm pairwise_distance bilinear lp_pool1d lp_pool2d channel_shuffle affine_grid grid_sample index_add index_copy index_fill soft_margin_loss multi_margin_loss multilabel_soft_margin_loss multilabel_margin_loss sigmoid_focal_loss rnn_cell lstm_cell gru_cell rnn lstm gru logspace tril_indices triu_indices hann_window hamming_window blackman_window exponential_with gumbel_softmax_with isposinf isneginf gcd lcm nextafter frexp cross_entropy_weight binary_crossentropy_weight binary_crossentropy_logits_weight sdpa_with interpolate_scale rnn_layers lstm_layers gru_layers rnn_layers_with lstm_layers_with gru_layers_with
};
