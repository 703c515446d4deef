//! Gradients of the methods against differences, and gradients of those gradients.

use tinyspec_core::execute::{device, with_default_device};
use tinyspec_core::lower::rangeify::{Reason, rangeify};
use tinyspec_core::{Error, GradcheckOptions, Spec, Tensor, grad, gradcheck, realize_all, stepped};
use tinyspec_ir::DType;
use tinyspec_ir::ops::options::{Attention, AvgPool2d, Conv2d, default};

type Function = fn(&[Tensor]) -> Tensor;

/// No ties, no zeros, and both signs: 2×3, another one, and a positive one.
fn inputs() -> [Tensor; 3] {
    let of = |data: [f64; 6]| Tensor::from_slice(&data, [2, 3]);
    [
        of([0.31, -0.74, 0.12, 0.88, -0.27, 0.53]),
        of([-0.45, 0.62, 0.91, -0.18, 0.36, -0.83]),
        of([0.42, 1.7, 0.9, 2.3, 0.15, 1.1]),
    ]
}

/// The function, and, if it is smooth, the sum of its weighed gradients as a function.
fn check(name: &str, function: Function) -> Result<(), Error> {
    let inputs = inputs();
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    fn named<T>(order: &str, name: &str, error: Error) -> T {
        panic!("{order} gradient of {name}: {error}")
    }
    gradcheck(function, &inputs, GradcheckOptions::default()).unwrap_or_else(|error| named("first", name, error));
    let first = |inputs: &[Tensor]| {
        let result = function(inputs);
        let loss = (&result * &result + &result).sum(.., false);
        let wanted: Vec<&Tensor> = inputs.iter().collect();
        match tinyspec_core::grad_or_zeros(&loss, &wanted) {
            Ok(gradients) => Tensor::cat(&gradients.iter().collect::<Vec<_>>(), 0),
            Err(error) => named("second", name, error),
        }
    };
    gradcheck(first, &inputs, GradcheckOptions::default()).unwrap_or_else(|error| named("second", name, error));
    Ok(())
}

macro_rules! functions {
    ($($name:ident: |$x:ident, $y:ident, $p:ident| $body:expr;)*) => {
        &[$((stringify!($name), |inputs: &[Tensor]| {
            let [$x, $y, $p] = inputs else { unreachable!("three inputs") };
            let _ = ($x, $y, $p);
            $body
        })),*]
    };
}

fn all(functions: &[(&str, Function)]) {
    with_default_device::<_, Error>("cpu", || functions.iter().try_for_each(|(name, function)| check(name, *function)))
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn of_functions_of_one_number() {
    all(functions! {
        exp: |x, y, p| x.exp();  exp2: |x, y, p| x.exp2();  exp10: |x, y, p| x.exp10();  expm1: |x, y, p| x.expm1();
        log: |x, y, p| p.log();  log2: |x, y, p| p.log2();  log10: |x, y, p| p.log10();  log1p: |x, y, p| p.log1p();
        sqrt: |x, y, p| p.sqrt();  rsqrt: |x, y, p| p.rsqrt();  reciprocal: |x, y, p| p.reciprocal();
        sin: |x, y, p| x.sin();  cos: |x, y, p| x.cos();  tan: |x, y, p| x.tan();  sinc: |x, y, p| x.sinc();
        asin: |x, y, p| x.asin();  acos: |x, y, p| x.acos();  atan: |x, y, p| x.atan();
        sinh: |x, y, p| x.sinh();  cosh: |x, y, p| x.cosh();  tanh: |x, y, p| x.tanh();
        asinh: |x, y, p| x.asinh();  acosh: |x, y, p| (p + 1.0).acosh();  atanh: |x, y, p| x.atanh();
        erf: |x, y, p| x.erf();  erfc: |x, y, p| x.erfc();  logit: |x, y, p| (p / 3.0).logit(0.0);
        abs: |x, y, p| x.abs();  square: |x, y, p| x.square();  pow_const: |x, y, p| p.pow_const(1.7);
        const_pow: |x, y, p| x.const_pow(3.0);  relu: |x, y, p| x.relu();  relu6: |x, y, p| x.relu6();
        sigmoid: |x, y, p| x.sigmoid();  silu: |x, y, p| x.silu();  gelu: |x, y, p| x.gelu();  gelu_erf: |x, y, p| x.gelu_erf();
        quick_gelu: |x, y, p| x.quick_gelu();  softplus: |x, y, p| x.softplus();  logsigmoid: |x, y, p| x.logsigmoid();
        softsign: |x, y, p| x.softsign();  mish: |x, y, p| x.mish();  hardsigmoid: |x, y, p| x.hardsigmoid();
        hardswish: |x, y, p| x.hardswish();  leaky_relu: |x, y, p| x.leaky_relu(0.1);  elu: |x, y, p| x.elu(0.7);
        celu: |x, y, p| x.celu(0.7);  selu: |x, y, p| x.selu();  hardtanh: |x, y, p| x.hardtanh(-0.5, 0.5);
        hardshrink: |x, y, p| x.hardshrink(0.4);  softshrink: |x, y, p| x.softshrink(0.4);
        tanhshrink: |x, y, p| x.tanhshrink();  clip: |x, y, p| x.clip(-0.5, 0.5);  glu: |x, y, p| x.glu(0);
    });
}

#[test]
fn of_functions_of_two_tensors() {
    all(functions! {
        add: |x, y, p| x + y.at(0);  sub: |x, y, p| x - y;  mul: |x, y, p| x * y;  div: |x, y, p| x / p;
        pow: |x, y, p| p.pow(x);  maximum: |x, y, p| x.maximum(y);  minimum: |x, y, p| x.minimum(y);
        fmod: |x, y, p| (x * 3.0).fmod(p);  modulo: |x, y, p| (x * 3.0).modulo(p);  lerp: |x, y, p| x.lerp(y, p);
        copysign: |x, y, p| x.copysign(y);  logaddexp: |x, y, p| x.logaddexp(y);  atan2: |x, y, p| x.atan2(y);
        hypot: |x, y, p| x.hypot(y);  xlogy: |x, y, p| x.xlogy(p);  where_: |x, y, p| x.gt(y).where_(x * y, p);
        matmul: |x, y, p| x.matmul(y.transpose(0, 1));  outer: |x, y, p| x.at(0).outer(y.at(1));
        kron: |x, y, p| x.kron(y);  tensordot: |x, y, p| x.tensordot(y, [1], [1]);  cross: |x, y, p| x.cross(y, 1);
        einsum: |x, y, p| Tensor::einsum("ij,kj,ij->ik", &[x, y, p]);  cdist: |x, y, p| x.cdist(y, 2.0);
        cosine_similarity: |x, y, p| x.cosine_similarity(y, 1, 1e-8);  prelu: |x, y, p| x.prelu(y.at((0, 0)));
        conv1d: |x, y, p| x.reshape([1, 2, 3]).conv1d(y.reshape([3, 2, 1]), None, default());
        conv_transpose1d: |x, y, p| x.reshape([1, 2, 3]).conv_transpose1d(y.reshape([2, 1, 3]), None, default());
    });
}

#[test]
fn of_reductions_and_orders() {
    all(functions! {
        sum: |x, y, p| x.sum(1, false);  prod: |x, y, p| x.prod(1, false);  max: |x, y, p| x.max(1, false);
        min: |x, y, p| x.min(0, false);  mean: |x, y, p| x.mean(1, true);  var: |x, y, p| x.var(1, 1, false);
        std: |x, y, p| x.std(1, 0, false);  logsumexp: |x, y, p| x.logsumexp(1, false);  softmax: |x, y, p| x.softmax(-1);
        log_softmax: |x, y, p| x.log_softmax(-1);  softmin: |x, y, p| x.softmin(0);  cumsum: |x, y, p| x.cumsum(1);
        cumprod: |x, y, p| x.cumprod(1);  cummax: |x, y, p| x.cummax(1);  logcumsumexp: |x, y, p| x.logcumsumexp(1);
        nanmean: |x, y, p| x.nanmean(1, false);  norm1: |x, y, p| x.norm(1.0, 1, false);  norm2: |x, y, p| x.norm(2.0, 1, false);
        norm3: |x, y, p| x.norm(3.0, 1, false);  normalize: |x, y, p| x.normalize(2.0, 1, 1e-9);
        sort: |x, y, p| x.sort(1, true)[0].clone();  topk: |x, y, p| x.topk(2, 1, true)[0].clone();
        median: |x, y, p| x.median(1, false);  quantile: |x, y, p| x.quantile(0.3, 1, false);
        trapezoid: |x, y, p| x.trapezoid(0.5, 1);  diff: |x, y, p| x.diff(1, 1);  trace: |x, y, p| x.trace();
        layer_norm: |x, y, p| x.layer_norm(y.at(0), y.at(1), 1, 1e-3);  rms_norm: |x, y, p| x.rms_norm(y.at(0), 1e-3);
        batch_norm: |x, y, p| x.batch_norm_train(y.at(0), y.at(1), 1e-3);
        group_norm: |x, y, p| x.reshape([1, 2, 3]).group_norm(y.at((.., 0)), y.at((.., 1)), 1, 1e-3);
        local_response_norm: |x, y, p| x.local_response_norm(2, 0.5, 0.75, 1.0);
        sdpa: |x, y, p| x.sdpa(y, p, true);
        sdpa_with: |x, y, p| Tensor::stack(&[x, y, p, x], 0).sdpa_with(Tensor::stack(&[y, p], 0), Tensor::stack(&[p, x], 0), None, None, Attention { scale: Some(0.7), grouped: true, ..default() });
    });
}

#[test]
fn of_factors_of_matrices() {
    fn square(x: &Tensor) -> Tensor {
        x.matmul(x.transpose(0, 1)) + Tensor::eye(2, 2, DType::F64)
    }
    all(functions! {
        inverse: |x, y, p| square(x).inverse();  det: |x, y, p| square(x).det();  logdet: |x, y, p| square(x).logdet();
        slogdet: |x, y, p| square(x).slogdet()[1].clone();  solve: |x, y, p| square(x).solve(y);
        solve_triangular: |x, y, p| square(x).solve_triangular(y, true, false);  lstsq: |x, y, p| x.transpose(0, 1).lstsq(p.transpose(0, 1));
        matrix_power: |x, y, p| square(x).matrix_power(3);  cholesky: |x, y, p| square(x).cholesky(false);
        cholesky_solve: |x, y, p| y.cholesky_solve(square(x).cholesky(false), false);
        lower: |x, y, p| square(x).lu()[1].clone();  upper: |x, y, p| square(x).lu()[2].clone();
        orthonormal: |x, y, p| x.transpose(0, 1).qr()[0].clone();  triangle: |x, y, p| x.transpose(0, 1).qr()[1].clone();
    });
}

#[test]
fn of_recurrent_layers() {
    all(functions! {
        rnn_cell: |x, y, p| x.rnn_cell(y, p.at(0).outer(x.at(1)), y.transpose(0, 1).matmul(p), Some(&y.at(0)), None);
        lstm: |x, y, p| x.unsqueeze(2).lstm(x.at((0..1, 0..1)).expand([3, 1]), y.at((0..1, 0..1)).expand([3, 1]), y.reshape([1, 6]).narrow(1, 0, 4), p.reshape([1, 6]).narrow(1, 2, 4), None, None)[0].clone();
        gru: |x, y, p| x.unsqueeze(2).gru(x.at((0..1, 0..1)).expand([3, 1]), y.at(0..1), p.at(0..1), Some(&y.at(1)), Some(&p.at(1)))[0].clone();
        layers: |x, y, p| Tensor::cat(&x.unsqueeze(2).rnn_layers(y.reshape([2, 3, 1]), &[&p.at((0..1, 0..1)), &p.at((1..2, 0..1)), &p.at((0..1, 1..2)), &p.at((1..2, 1..2))], true).iter().map(|part| part.flatten(0, -1)).collect::<Vec<_>>().iter().collect::<Vec<_>>(), 0);
    });
}

#[test]
fn of_indexing_windows_and_assignments() {
    all(functions! {
        slice: |x, y, p| x.at((stepped(.., -1), stepped(.., 2)));  slice_scatter: |x, y, p| x.slice_scatter(y.at((.., 0..2)), 1, 0, 3, 2);
        index: |x, y, p| x.at((Tensor::from_slice(&[1i32, 0, 1], [3]), Tensor::from_slice(&[2i32, 0, 2], [3])));
        gather: |x, y, p| x.gather(Tensor::from_slice(&[0i32, 2, 2, 1], [2, 2]), 1);
        index_select: |x, y, p| x.index_select(1, Tensor::from_slice(&[2i32, 2], [2]));
        embedding: |x, y, p| Tensor::from_slice(&[1i32, 1, 0], [3]).embedding(x);
        scatter: |x, y, p| x.scatter(Tensor::from_slice(&[0i32, 0, 2, 1], [2, 2]), y.at((.., 1..)), 1);
        scatter_add: |x, y, p| x.scatter_add(Tensor::from_slice(&[0i32, 0, 2, 1], [2, 2]), y.at((.., 1..)), 1);
        scatter_mean: |x, y, p| x.scatter_reduce(Tensor::from_slice(&[0i32, 0, 2, 1], [2, 2]), y.at((.., 1..)), 1, "mean", true);
        scatter_prod: |x, y, p| x.scatter_reduce(Tensor::from_slice(&[0i32, 0, 2, 1], [2, 2]), y.at((.., 1..)), 1, "prod", true);
        masked_fill: |x, y, p| x.masked_fill(y.gt(0.0), 0.5);  cat: |x, y, p| Tensor::cat(&[x, y], 1);
        stack: |x, y, p| Tensor::stack(&[x, y], 2);  flip: |x, y, p| x.flip([1]);  roll: |x, y, p| x.roll([1], [1]);
        pad: |x, y, p| x.pad_mode([1], [1], "reflect");  repeat: |x, y, p| x.repeat([2, 2]);  tril: |x, y, p| x.tril(0);
        diag_embed: |x, y, p| x.diag_embed(1);  unfold: |x, y, p| x.unfold(1, 2, 1);  fold: |x, y, p| x.fold(0, 4, 1);
        max_pool: |x, y, p| x.max_pool1d([2], default());  avg_pool: |x, y, p| x.avg_pool1d([2], default());
        adaptive: |x, y, p| x.adaptive_avg_pool1d([2]);  adaptive_max: |x, y, p| x.adaptive_max_pool1d([2]);
        linear: |x, y, p| x.interpolate([5], "linear", false);  cubic: |x, y, p| x.interpolate([5], "cubic", false);
        dropout: |x, y, p| x.dropout_with(Tensor::scalar(5u64), 0.4);
        assign: |x, y, p| { let mut z = x * 2.0; z.assign(&(&z * y)); z * p };
        set: |x, y, p| { let mut z = x * 2.0; z.set((.., 1), y.at((.., 0)) * z.at((.., 2))); z.set(0, z.at(1)); z * p };
        set_rows: |x, y, p| { let mut z = x * p; z.set(Tensor::from_slice(&[1i32, 1], [2]), y); z };
    });
}

#[test]
fn of_losses() {
    all(functions! {
        mse: |x, y, p| x.mse_loss(y, "mean");  l1: |x, y, p| x.l1_loss(y, "sum");  huber: |x, y, p| x.huber_loss(y, "none", 0.9);
        smooth_l1: |x, y, p| x.smooth_l1_loss(y, "mean", 0.9);  kl_div: |x, y, p| x.kl_div(p, "batchmean", false);
        poisson: |x, y, p| x.poisson_nll_loss(p, "mean", true, 1e-8);  gaussian: |x, y, p| x.gaussian_nll_loss(y, p, "sum", 1e-6);
        hinge: |x, y, p| x.hinge_embedding_loss(y.sign(), "none", 1.0);
        margin: |x, y, p| x.margin_ranking_loss(y, p.sign(), "none", 0.2);
        cosine: |x, y, p| x.cosine_embedding_loss(y, Tensor::from_slice(&[1f64, -1.0], [2]), "none", -0.5);
        triplet: |x, y, p| x.triplet_margin_loss(y, p, "none", 3.0, 2.0);
        cross_entropy: |x, y, p| x.cross_entropy(Tensor::from_slice(&[2i32, 0], [2]), "mean", 0.1, -100);
        bce: |x, y, p| x.sigmoid().binary_crossentropy(y.sigmoid(), "mean");
        cross_entropy_weight: |x, y, p| x.cross_entropy_weight(Tensor::from_slice(&[2i32, 0], [2]), p.at(0), "mean", 0.1, -100);
        bce_weight: |x, y, p| x.sigmoid().binary_crossentropy_weight(y.sigmoid(), p, "mean");
        bce_logits_weight: |x, y, p| x.binary_crossentropy_logits_weight(y.sigmoid(), Some(p), Some(&p.at(1)), "none");
        bce_logits: |x, y, p| x.binary_crossentropy_logits(y.sigmoid(), "none");
    });
}

#[test]
fn of_methods_beside_the_common_ones() {
    all(functions! {
        addcmul: |x, y, p| x.addcmul(y, p, 0.3);  addcdiv: |x, y, p| x.addcdiv(y, p, 0.3);  frac: |x, y, p| p.frac();
        logaddexp2: |x, y, p| x.logaddexp2(y);  xlog1py: |x, y, p| x.xlog1py(p);  fmax: |x, y, p| x.fmax(y);
        fmin: |x, y, p| x.fmin(y);  deg2rad: |x, y, p| x.deg2rad();  threshold: |x, y, p| x.threshold(0.2, -1.0);
        erfinv: |x, y, p| (x * 0.9).erfinv();  ndtr: |x, y, p| x.ndtr();  entr: |x, y, p| p.entr();
        lgamma: |x, y, p| p.lgamma();  nan_to_num: |x, y, p| x.nan_to_num(0.0, 1.0, -1.0);
        cummin: |x, y, p| x.cummin(1);  cumprod_down: |x, y, p| x.cumprod(0);  logcumsumexp_down: |x, y, p| x.logcumsumexp(-2);
        running: |x, y, p| Tensor::cat(&[x, y, p], 1).cumprod(1) + Tensor::cat(&[y, x, p], 1).logcumsumexp(1);
        nansum: |x, y, p| x.nansum(1, false);  nanmedian: |x, y, p| x.nanmedian(1, false);
        kthvalue: |x, y, p| x.kthvalue(2, 1, false);  cumulative_trapezoid: |x, y, p| x.cumulative_trapezoid(0.5, 1);
        cov: |x, y, p| x.cov(1);  corrcoef: |x, y, p| x.corrcoef();  vander: |x, y, p| x.at(0).vander(4, true);
        var_mean: |x, y, p| Tensor::stack(&x.var_mean(1, 1, false).iter().collect::<Vec<_>>(), 0);
        aminmax: |x, y, p| Tensor::stack(&x.aminmax(1, false).iter().collect::<Vec<_>>(), 0);
        max_with_place: |x, y, p| { let [values, places] = x.max_with_place(1, true); values * y.gather(&places, 1) };
        min_with_place: |x, y, p| x.min_with_place(0, false)[0].clone();
        renorm: |x, y, p| x.renorm(2.0, 0, 0.5);  pairwise_distance: |x, y, p| x.pairwise_distance(y, 2.0, 1e-6);
        linear: |x, y, p| x.linear(y.transpose(0, 1), p.at((.., 0)));  bilinear: |x, y, p| x.bilinear(y, p.reshape([2, 3, 1]) * y.reshape([2, 1, 3]), None);
        conv2d: |x, y, p| x.reshape([1, 1, 2, 3]).conv2d(y.reshape([1, 1, 2, 3]), None, Conv2d { padding: [1, 1], ..default() });
        conv_transpose2d: |x, y, p| x.reshape([1, 1, 2, 3]).conv_transpose2d(y.reshape([1, 1, 2, 3]), None, default());
        conv3d: |x, y, p| x.reshape([1, 1, 1, 2, 3]).conv3d(y.at((.., 0)).reshape([1, 1, 1, 2, 1]), None, default());
        max_pool2d: |x, y, p| x.reshape([1, 1, 2, 3]).max_pool2d([2, 2], default());
        avg_pool2d: |x, y, p| x.reshape([1, 1, 2, 3]).avg_pool2d([2, 2], default());
        lp_pool: |x, y, p| p.reshape([1, 2, 3]).lp_pool1d(2.0, [2], default());
        adaptive_avg_pool2d: |x, y, p| x.reshape([1, 1, 2, 3]).adaptive_avg_pool2d([1, 2]);
        grid_sample: |x, y, p| x.reshape([1, 1, 2, 3]).grid_sample((y * 0.7).reshape([1, 1, 3, 2]), "bilinear", "zeros", false);
        repeat_interleave: |x, y, p| x.repeat_interleave(2, 1);  rot90: |x, y, p| x.rot90(1, 0, 1);  diag: |x, y, p| x.at(0).diag(0);
        diagonal: |x, y, p| x.diagonal(1);  triu: |x, y, p| x.triu(1);  block_diag: |x, y, p| Tensor::block_diag(&[x, y]);
        select_scatter: |x, y, p| x.select_scatter(y.at((.., 0)), 1, 2);  diagonal_scatter: |x, y, p| x.diagonal_scatter(y.at((0, 0..2)), 0);
        masked_scatter: |x, y, p| x.masked_scatter(y.gt(0.0), p);  take: |x, y, p| x.take(Tensor::from_slice(&[5i32, 0, 5], [3]));
        scatter_multiply: |x, y, p| x.scatter_multiply(Tensor::from_slice(&[0i32, 0, 2, 1], [2, 2]), y.at((.., 1..)), 1);
        index_add: |x, y, p| x.index_add(1, Tensor::from_slice(&[2i32, 2], [2]), y.at((.., 1..)));
        index_copy: |x, y, p| x.index_copy(1, Tensor::from_slice(&[2i32, 0], [2]), y.at((.., 1..)));
        pixel_shuffle: |x, y, p| Tensor::cat(&[x, y], 0).reshape([1, 4, 1, 3]).pixel_shuffle(2);
        cross_entropy_prob: |x, y, p| x.cross_entropy_prob(p.softmax(1), "mean");
        soft_margin: |x, y, p| x.soft_margin_loss(y.sign(), "mean");  focal: |x, y, p| x.sigmoid_focal_loss(y.sigmoid(), "mean", 0.25, 2.0);
        multilabel: |x, y, p| x.multilabel_soft_margin_loss(y.sigmoid(), "mean");
        batch_norm_eval: |x, y, p| x.batch_norm_eval(y.at(0), y.at(1), x.at(1), p.at(0), 1e-3);
        instance_norm: |x, y, p| x.reshape([1, 2, 3]).instance_norm(y.at((.., 0)), y.at((.., 1)), 1e-3);
    });
}

/// Functions in functions, and states that are assigned between.
#[test]
fn of_traced_functions_indexing_and_assignments_together() -> Result<(), Error> {
    let body = |inputs: &[Tensor]| {
        let mut state = inputs[0].cumprod(1);
        state.set((.., 0), inputs[1].at((.., 2)) * state.at((.., 1)));
        let mut other = state.logcumsumexp(0);
        other.assign(&(&other * inputs[1].at((.., stepped(.., -1)))));
        vec![other.at((stepped(.., -1), 1..))]
    };
    let function =
        tinyspec_core::Function::trace(&[Spec::new(DType::F64, [2, 3]), Spec::new(DType::F64, [2, 3])], body)?;
    with_default_device::<_, Error>("cpu", || {
        let inputs = inputs();
        let inputs: Vec<&Tensor> = inputs[..2].iter().collect();
        let first = |inputs: &[Tensor]| function.call(&inputs.iter().collect::<Vec<_>>()).remove(0);
        gradcheck(first, &inputs, GradcheckOptions::default())?;
        let second = |inputs: &[Tensor]| {
            let result = first(inputs);
            let slopes = grad(&(&result * &result).sum(.., false), &inputs.iter().collect::<Vec<_>>()).expect("slopes");
            Tensor::cat(&slopes.iter().collect::<Vec<_>>(), 0)
        };
        gradcheck(second, &inputs, GradcheckOptions::default())
    })
}

#[test]
fn third_derivatives_are_exact_where_powers_are() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1f64, 2.0, -3.0], [3]);
    let mut y = x.square().square() * &x;
    for _ in 0..4 {
        y = grad(&y.sum(.., false), &[&x])?.remove(0);
    }
    assert_eq!(y.to_vec::<f64>()?, [120.0, 240.0, -360.0]);
    Ok(())
}

/// Of a product, by one index, by two and by more: the products of the others.
#[test]
fn products_have_their_derivatives_at_zeros() -> Result<(), Error> {
    let rows = [[0.0, 2.0, 3.0, 5.0], [0.0, 2.0, 0.0, 5.0], [0.0, 0.0, 0.0, 7.0], [2.0, 3.0, 5.0, 7.0], [0.0; 4]];
    let others = |x: &[f64; 4], taken: &[usize]| -> f64 {
        (0..4).filter(|place| !taken.contains(place)).map(|place| x[place]).product()
    };
    let pairs = |place: usize| (0..4).filter(move |&other| other != place);
    let second = |x: &[f64; 4], i: usize| -> f64 { pairs(i).map(|j| others(x, &[i, j])).sum() };
    let third = |x: &[f64; 4], i: usize| -> f64 {
        pairs(i)
            .flat_map(|j| pairs(i).filter(move |&k| k != j).map(move |k| [i, j, k]))
            .map(|taken| others(x, &taken))
            .sum()
    };
    // By all four in each order of the three others; and there is no fifth.
    let fourth = |_: &[f64; 4], _: usize| 6.0;
    let fifth = |_: &[f64; 4], _: usize| 0.0;
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, || {
            for x in &rows {
                let tensor = Tensor::from_slice(x, [2, 2]);
                let mut slopes = tensor.prod(.., false);
                let first = |x: &[f64; 4], i: usize| others(x, &[i]);
                type Slope<'a> = &'a dyn Fn(&[f64; 4], usize) -> f64;
                let orders: [Slope; 5] = [&first, &second, &third, &fourth, &fifth];
                for (order, of) in orders.into_iter().enumerate() {
                    slopes = grad(&slopes.sum(.., false), &[&tensor])?.remove(0);
                    let want: Vec<f64> = (0..4).map(|place| of(x, place)).collect();
                    let got = slopes.to_vec::<f64>()?;
                    let near = got.iter().zip(&want).all(|(got, want)| (got - want).abs() <= 1e-14 * want.abs());
                    assert!(near, "{device}: derivative {} of {x:?}: {got:?} {want:?}", order + 1);
                }
            }
            // What overflows times a zero is a zero.
            let x = Tensor::from_slice(&[1e30f32, 0.0, 1e30], [3]);
            let slopes = grad(&x.prod(.., false), &[&x])?.remove(0);
            assert_eq!(slopes.to_vec::<f32>()?, [0.0, f32::INFINITY, 0.0]);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_wrong_gradient_is_found_and_named() {
    let x = Tensor::from_slice(&[0.5f64, 2.0], [2]);
    // Half of the derivative is cut off.
    let wrong = |x: &[Tensor]| &x[0] * x[0].detach();
    let error = gradcheck(wrong, &[&x], GradcheckOptions::default()).expect_err("differs").to_string();
    assert!(error.contains("input 0, element 0: the gradient is"), "{error}");
    let error = gradcheck(|x| x[0].clone(), &[&Tensor::ones([1])], GradcheckOptions::default()).expect_err("f32");
    assert!(error.to_string().contains("input 0 is f32"), "{error}");
}

#[test]
fn contiguous_backward_is_the_value_and_puts_its_gradient_into_memory() -> Result<(), Error> {
    let loss = |x: &[Tensor], is_marked: bool| {
        let y = x[0].sin();
        let y = if is_marked { y.contiguous_backward() } else { y };
        (y.permute([1, 0]) * x[1].exp()).sum(.., false)
    };
    let spec = Spec::new(DType::F32, [4, 3]);
    let other = Spec::new(DType::F32, [3, 4]);
    let target = device("cpu")?.target().clone();
    let asked_for = |is_marked: bool, is_backward: bool| -> Result<usize, Error> {
        let traced = tinyspec_core::Function::trace(&[spec.clone(), other.clone()], |x| {
            let loss = loss(x, is_marked);
            if is_backward { grad(&loss, &[&x[0]]).unwrap_or_else(|error| panic!("{error}")) } else { vec![loss] }
        })?;
        let schedule = rangeify(traced.body().graph(), traced.body().outputs(), &target)?;
        Ok(schedule.decisions.iter().filter(|decision| decision.reason == Reason::Contiguous).count())
    };
    assert_eq!((asked_for(false, false)?, asked_for(false, true)?), (0, 0));
    assert_eq!((asked_for(true, false)?, asked_for(true, true)?), (0, 1));
    for device in ["interpreter", "cpu", "simt"] {
        with_default_device::<_, Error>(device, || {
            let x = [Tensor::arange(12).reshape([4, 3]).cast(DType::F32), Tensor::full([3, 4], 0.5f32)];
            let value = |is_marked| loss(&x, is_marked).item::<f32>();
            assert_eq!(value(true)?, value(false)?, "{device}");
            let slope = |is_marked| grad(&loss(&x, is_marked), &[&x[0]])?.remove(0).to_vec::<f32>();
            assert_eq!(slope(true)?, slope(false)?, "{device}");
            Ok(())
        })?;
    }
    check("contiguous_backward", |x| (x[0].sin().contiguous_backward() * &x[1]).contiguous_backward())
}

#[test]
fn of_a_deviation_of_equal_elements() -> Result<(), Error> {
    let x = Tensor::from_slice(&[2f32, 2.0, 2.0, 1.0], [2, 2]);
    let [spread, _] = &x.std_mean(1, 1, false)[..] else { panic!("two results") };
    for spread in [&x.std(1, 1, false), spread] {
        let slope = grad(&spread.sum(.., false), &[&x])?.remove(0).to_vec::<f32>()?;
        let half = 0.5f32.sqrt();
        for (found, wanted) in slope.iter().zip([0.0, 0.0, half, -half]) {
            assert!((found - wanted).abs() < 1e-6, "{slope:?}");
        }
    }
    // Narrow ones too, all at once, and the slope's slope.
    let slope = grad(&Tensor::std(&x.cast(DType::F16), .., 0, false), &[&x])?.remove(0);
    assert!(slope.to_vec::<f32>()?.iter().all(|slope| slope.is_finite()));
    let same = Tensor::from_slice(&[3f32; 4], [4]);
    let slope = grad(&same.std(.., 1, false), &[&same])?.remove(0);
    assert_eq!(slope.to_vec::<f32>()?, [0.0; 4]);
    assert_eq!(same.std(.., 1, false).item::<f32>()?, 0.0);
    assert_eq!(grad(&(&slope * &slope).sum(.., false), &[&same])?[0].to_vec::<f32>()?, [0.0; 4]);
    Ok(())
}

/// LLVM folded 0 / 0 to 0 in the lanes outside of the image and dropped their mask.
#[test]
fn means_of_windows_without_their_padding_have_finite_gradients() -> Result<(), Error> {
    let x = Tensor::ones([1, 1, 20, 20]).contiguous();
    let weights = Tensor::ones([1, 1, 20, 20]).contiguous();
    realize_all(&[&x, &weights])?;
    let options = AvgPool2d { stride: Some([1, 1]), padding: [1, 1], count_include_pad: false, ..default() };
    let loss = (x.avg_pool2d([3, 3], options) * &weights).sum(.., false);
    let slopes = grad(&loss, &[&x])?[0].to_vec::<f32>()?;
    assert!((slopes.iter().sum::<f32>() - 400.0).abs() < 0.1, "{slopes:?}");
    Ok(())
}

/// The first of equal elements is the one that is found, and has the gradient; nan is the greatest and the least.
#[test]
fn of_values_with_their_places() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1f32, 5.0, 5.0, f32::NAN, 2.0, f32::NAN], [2, 3]);
    for [values, places] in [x.max_with_place(-1, true), x.min_with_place(-1, true)] {
        assert_eq!(values.sizes()?, [2, 1]);
        assert_eq!(places.to_vec::<i32>()?[1], 0);
        assert!(values.to_vec::<f32>()?[1].is_nan());
    }
    let row = x.at(0);
    let [values, places] = row.max_with_place(0, false);
    assert_eq!((values.item::<f32>()?, places.item::<i32>()?), (5.0, 1));
    assert_eq!(grad(&values, &[&row])?[0].to_vec::<f32>()?, [0.0, 1.0, 0.0]);
    Ok(())
}
