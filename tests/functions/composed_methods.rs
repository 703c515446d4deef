//! Every other method of the table in a `#[function]` of its own name: indexing, statistics, distances, draws and what else
//! is composed of the basic methods.

use tinyspec::function::EmbeddedFunction;
use tinyspec::prelude::*;

#[function]
fn log1p<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.log1p()
}

#[function]
fn expm1<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.expm1()
}

#[function]
fn exp10<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.exp10()
}

#[function]
fn deg2rad<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.deg2rad()
}

#[function]
fn rad2deg<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.rad2deg()
}

#[function]
fn sinc<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.sinc()
}

#[function]
fn frac<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.frac()
}

#[function]
fn erfc<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.erfc()
}

#[function]
fn gelu_erf<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.gelu_erf()
}

#[function]
fn tanhshrink<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.tanhshrink()
}

#[function]
fn atan2<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.atan2(y)
}

#[function]
fn hypot<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.hypot(y)
}

#[function]
fn xlogy<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.xlogy(y)
}

#[function]
fn heaviside<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.heaviside(y)
}

#[function]
fn isclose<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.isclose(y, 0.00001, 0.00000001)
}

#[function]
fn logit<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.logit(0.001)
}

#[function]
fn hardtanh<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.hardtanh(-1.0, 1.0)
}

#[function]
fn threshold<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.threshold(0.1, 20.0)
}

#[function]
fn hardshrink<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.hardshrink(0.5)
}

#[function]
fn softshrink<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.softshrink(0.5)
}

#[function]
fn prelu<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.prelu(w)
}

#[function]
fn glu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 3> {
    x.glu(-1)
}

#[function]
fn nan_to_num<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.nan_to_num(0.0, 1000.0, -1000.0)
}

#[function]
fn slice<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 3> {
    x.slice(-1, 0, 6, 2)
}

#[function]
fn slice_scatter<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.slice_scatter(y, 1, 1, 6, 2)
}

#[function]
fn select<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.select(1, -1)
}

#[function]
fn select_scatter<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B>) -> Tensor<f32, B, 6> {
    x.select_scatter(y, 1, 2)
}

#[function]
fn unbind<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.unbind(1)[5].clone()
}

#[function]
fn masked_fill<B>(x: &Tensor<f32, B, 6>, m: &Tensor<bool, B, 6>) -> Tensor<f32, B, 6> {
    x.masked_fill(m, 0.5)
}

#[function]
fn movedim<B>(x: &Tensor<f32, B, 2, 3>) -> Tensor<f32, 2, 3, B> {
    x.movedim(0, -1)
}

#[function]
fn meshgrid<B>(x: &Tensor<f32, B>, y: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    Tensor::meshgrid(&[x, y], "ij")[1].clone()
}

#[function]
fn diag<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.matmul(w.diag(0))
}

#[function]
fn diag_embed<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 7, 7> {
    x.diag_embed(-1)
}

#[function]
fn count_nonzero<B>(x: &Tensor<f32, B, 6>) -> Tensor<i32, B> {
    x.count_nonzero(1, false)
}

#[function]
fn nansum<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.nansum(1, false)
}

#[function]
fn nanmean<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.nanmean(1, false)
}

#[function]
fn median<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.median(1, false)
}

#[function]
fn kthvalue<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.kthvalue(2, 1, false)
}

#[function]
fn mode<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.mode(1, false)
}

#[function]
fn quantile<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.quantile(0.3, 1, false)
}

#[function]
fn diff<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 4> {
    x.diff(2, 1)
}

#[function]
fn trapezoid<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.trapezoid(0.5, 1)
}

#[function]
fn bincount<B>(i: &Tensor<i32, B, 6>) -> Tensor<i32, 9> {
    i.bincount(9)
}

#[function]
fn histc<B>(x: &Tensor<f32, B, 6>) -> Tensor<i32, 4> {
    x.histc(4, -1.0, 1.0)
}

#[function]
fn searchsorted<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>) -> Tensor<i32, B, 6> {
    w.searchsorted(x, true)
}

#[function]
fn norm<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.norm(2.0, 1, false)
}

#[function]
fn normalize<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.normalize(3.0, 1, 0.000001)
}

#[function]
fn outer<B>(x: &Tensor<f32, B>, y: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.outer(y)
}

#[function]
fn tensordot<B>(x: &Tensor<f32, B, 6, 4>, y: &Tensor<f32, 4, 6, 5>) -> Tensor<f32, B, 5> {
    x.tensordot(y, [1, 2], [1, 0])
}

#[function]
fn kron<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, 2, 3>) -> Tensor<f32, { 2 * B }, 18> {
    x.kron(y)
}

#[function]
fn trace<B>(x: &Tensor<f32, B, 6, 6>) -> Tensor<f32, B> {
    x.trace()
}

#[function]
fn cross<B>(x: &Tensor<f32, B, 3>, y: &Tensor<f32, B, 3>) -> Tensor<f32, B, 3> {
    x.cross(y, 1)
}

#[function]
fn cosine_similarity<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B> {
    x.cosine_similarity(y, 1, 0.00000001)
}

#[function]
fn cdist<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, 5, 6>) -> Tensor<f32, B, 5> {
    x.cdist(y, 2.0)
}

#[function]
fn adaptive_avg_pool1d<B>(x: &Tensor<f32, B, 2, 7>) -> Tensor<f32, B, 2, 3> {
    x.adaptive_avg_pool1d([3])
}

#[function]
fn adaptive_max_pool1d<B>(x: &Tensor<f32, B, 2, 7>) -> Tensor<f32, B, 2, 3> {
    x.adaptive_max_pool1d([3])
}

#[function]
fn adaptive_avg_pool2d<B>(x: &Tensor<f32, B, 2, 7, 6>) -> Tensor<f32, B, 2, 3, 3> {
    x.adaptive_avg_pool2d([3, 3])
}

#[function]
fn adaptive_max_pool2d<B>(x: &Tensor<f32, B, 2, 7, 6>) -> Tensor<f32, B, 2, 3, 3> {
    x.adaptive_max_pool2d([3, 3])
}

#[function]
fn adaptive_avg_pool3d<B>(x: &Tensor<f32, B, 2, 7, 6, 5>) -> Tensor<f32, B, 2, 3, 3, 3> {
    x.adaptive_avg_pool3d([3, 3, 3])
}

#[function]
fn adaptive_max_pool3d<B>(x: &Tensor<f32, B, 2, 7, 6, 5>) -> Tensor<f32, B, 2, 3, 3, 3> {
    x.adaptive_max_pool3d([3, 3, 3])
}

#[function]
fn fold<B>(x: &Tensor<f32, B, 3, 4>) -> Tensor<f32, B, 9> {
    x.fold(1, 9, 2)
}

#[function]
fn pixel_shuffle<B>(x: &Tensor<f32, B, 8, 3, 3>) -> Tensor<f32, B, 2, 6, 6> {
    x.pixel_shuffle(2)
}

#[function]
fn pixel_unshuffle<B>(x: &Tensor<f32, B, 2, 6, 6>) -> Tensor<f32, B, 8, 3, 3> {
    x.pixel_unshuffle(2)
}

#[function]
fn center_crop<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 4> {
    x.center_crop([4])
}

#[function]
fn index_select<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, 3>) -> Tensor<f32, B, 3> {
    x.index_select(1, i)
}

#[function]
fn index_pairs<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, 3>, j: &Tensor<i32, 3>) -> Tensor<f32, 3> {
    x.index_pairs(i, j)
}

#[function]
fn mse_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.mse_loss(y, "mean")
}

#[function]
fn l1_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.l1_loss(y, "mean")
}

#[function]
fn smooth_l1_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.smooth_l1_loss(y, "mean", 0.5)
}

#[function]
fn huber_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.huber_loss(y, "mean", 0.5)
}

#[function]
fn kl_div<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.kl_div(y, "mean", false)
}

#[function]
fn poisson_nll_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.poisson_nll_loss(y, "mean", true, 0.00000001)
}

#[function]
fn hinge_embedding_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.hinge_embedding_loss(y, "mean", 1.0)
}

#[function]
fn gaussian_nll_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>, v: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.gaussian_nll_loss(y, v, "sum", 0.000001)
}

#[function]
fn margin_ranking_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>, t: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.margin_ranking_loss(y, t, "mean", 0.1)
}

#[function]
fn cosine_embedding_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>, t: &Tensor<f32, B>) -> Tensor<f32, B> {
    x.cosine_embedding_loss(y, t, "none", 0.1)
}

#[function]
fn triplet_margin_loss<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>, z: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.triplet_margin_loss(y, z, "mean", 1.0, 2.0)
}

#[function]
fn batch_norm_running<B>(
    x: &Tensor<f32, B, 6>,
    mean: &Tensor<f32, 6>,
    variance: &Tensor<f32, 6>,
) -> (Tensor<f32, 6>, Tensor<f32, 6>) {
    let running = x.batch_norm_running(mean, variance, 0.1);
    (running[0].clone(), running[1].clone())
}

#[function]
fn instance_norm<B>(x: &Tensor<f32, B, 2, 5>, w: &Tensor<f32, 2>, b: &Tensor<f32, 2>) -> Tensor<f32, B, 2, 5> {
    x.instance_norm(w, b, 0.00001)
}

#[function]
fn local_response_norm<B>(x: &Tensor<f32, B, 6, 2>) -> Tensor<f32, B, 6, 2> {
    x.local_response_norm(3, 0.0001, 0.75, 1.0)
}

#[function]
fn randint_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x + key.randint_with([B, 6], 0, 10, DType::I32)
}

#[function]
fn uniform_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x + key.uniform_with([B, 6], 0.0, 1.0, DType::F32)
}

#[function]
fn normal_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x + key.normal_with([B, 6], 0.0, 1.0, DType::F32)
}

#[function]
fn permutation_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x + key.permutation_with(6)
}

#[function]
fn bernoulli_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x.bernoulli_with(key)
}

#[function]
fn multinomial_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<i32, B, 3> {
    x.multinomial_with(key, 3, false)
}

#[function]
fn threefry<B>(counter: &Tensor<u64, B, 6>, key: &Tensor<u64>) -> Tensor<u64, B, 6> {
    counter.threefry(key)
}

#[function]
fn shuffle_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x.shuffle_with(key, 1)
}

#[function]
fn dropout_with<B>(x: &Tensor<f32, B, 6>, key: &Tensor<u64>) -> Tensor<f32, B, 6> {
    x.dropout_with(key, 0.5)
}

pub const FUNCTIONS: &[&EmbeddedFunction] = functions! {
    log1p expm1 exp10 deg2rad rad2deg sinc frac erfc gelu_erf tanhshrink atan2 hypot xlogy heaviside isclose logit hardtanh threshold hardshrink softshrink prelu glu nan_to_num slice slice_scatter select select_scatter unbind masked_fill movedim meshgrid diag diag_embed count_nonzero nansum nanmean median kthvalue mode quantile diff trapezoid bincount histc searchsorted norm normalize outer tensordot kron trace cross cosine_similarity cdist adaptive_avg_pool1d adaptive_max_pool1d adaptive_avg_pool2d adaptive_max_pool2d adaptive_avg_pool3d adaptive_max_pool3d fold pixel_shuffle pixel_unshuffle center_crop index_select index_pairs mse_loss l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss hinge_embedding_loss gaussian_nll_loss margin_ranking_loss cosine_embedding_loss triplet_margin_loss instance_norm batch_norm_running local_response_norm randint_with uniform_with normal_with permutation_with bernoulli_with multinomial_with threefry shuffle_with dropout_with
};
