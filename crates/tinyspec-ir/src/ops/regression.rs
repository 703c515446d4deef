//! Losses between two tensors of one shape, and those of pairs and triples.

use super::arithmetic::{add, div, mul, neg, sub};
use super::elementwise::{abs, exp, log, scale, scale_given, shift, shift_given, square};
use super::loss::{loss_of, reduced, same_shape};
use super::{given, in_wide_of, like, reduce, shape_of};
use crate::{Builder, Error, ErrorKind, NodeId, Op, Result};

/// A loss between two operands of one shape.
fn of_pair(
    b: &mut dyn Builder,
    op: &str,
    [x, target]: [NodeId; 2],
    reduction: &str,
    losses: impl FnOnce(&mut dyn Builder, [NodeId; 2]) -> Result<NodeId>,
) -> Result<NodeId> {
    same_shape(b, op, x, target)?;
    loss_of(b, op, [x, target], reduction, losses)
}

/// `(x - target)²`.
pub fn mse_loss(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str) -> Result<NodeId> {
    of_pair(b, "mse_loss", [x, target], reduction, |b, [x, target]| {
        let difference = sub(b, x, target)?;
        square(b, difference)
    })
}

/// `|x - target|`.
pub fn l1_loss(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str) -> Result<NodeId> {
    of_pair(b, "l1_loss", [x, target], reduction, |b, [x, target]| {
        let difference = sub(b, x, target)?;
        abs(b, difference)
    })
}

/// `d²/2` for a difference `d` below `delta`, `delta (d - delta/2)` beyond (Huber, 1964).
pub fn huber_loss(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str, delta: f64) -> Result<NodeId> {
    positive("huber_loss", "delta", delta)?;
    of_pair(b, "huber_loss", [x, target], reduction, |b, [x, target]| huber(b, x, target, delta))
}

/// [`huber_loss`] over `beta`: slope 1 beyond `beta`; with `beta` 0 it is [`l1_loss`].
pub fn smooth_l1_loss(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str, beta: f64) -> Result<NodeId> {
    if beta == 0.0 {
        return l1_loss(b, x, target, reduction).map_err(|error| error.in_op("smooth_l1_loss"));
    }
    positive("smooth_l1_loss", "beta", beta)?;
    of_pair(b, "smooth_l1_loss", [x, target], reduction, |b, [x, target]| {
        let losses = huber(b, x, target, beta)?;
        scale_given(b, losses, 1.0 / beta)
    })
}

fn positive(op: &str, name: &str, value: f64) -> Result<()> {
    if value > 0.0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Value, op, format!("`{name}` is {value}")).help("it is greater than 0"))
}

fn huber(b: &mut dyn Builder, x: NodeId, target: NodeId, delta: f64) -> Result<NodeId> {
    let difference = sub(b, x, target)?;
    let distance = abs(b, difference)?;
    let bound = given(b, x, delta);
    let inside = b.alu(Op::CmpLt, &[distance, bound])?;
    let near = b.alu(Op::Where, &[inside, distance, bound])?;
    let squared = square(b, near)?;
    let inner = scale(b, squared, 0.5)?;
    let linear = scale_given(b, distance, delta)?;
    let outer = shift_given(b, linear, -delta * delta / 2.0)?;
    b.alu(Op::Where, &[inside, inner, outer])
}

/// `t (log t - x)` of log-probabilities `x`, which is 0 where `t` is 0; with `log_target` the target is `log t`.
/// `reduction` may also be `"batchmean"`, the sum over the length of axis 0.
pub fn kl_div(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str, log_target: bool) -> Result<NodeId> {
    const OP: &str = "kl_div";
    same_shape(b, OP, x, target)?;
    in_wide_of(b, OP, [x, target], |b, [x, target]| {
        let losses = if log_target {
            let (share, rest) = (exp(b, target)?, sub(b, target, x)?);
            mul(b, share, rest)?
        } else {
            let (entropy, cross) = (super::logarithm::xlogy(b, target, target)?, mul(b, target, x)?);
            sub(b, entropy, cross)?
        };
        if reduction != "batchmean" {
            return reduced(b, OP, losses, reduction);
        }
        let shape = shape_of(b, losses);
        let Some(batch) = shape.first() else {
            return Err(Error::new(ErrorKind::Rank, OP, "a scalar has no batch axis"));
        };
        let dtype = super::dtype_of(b, losses);
        let (total, batch) = (reduce::sum(b, losses, None, false)?, super::creation::size(b, batch, dtype)?);
        div(b, total, batch)
    })
}

/// `e^x - target x`, or of rates themselves (`log_input` false) `x - target log(x + eps)`.
pub fn poisson_nll_loss(
    b: &mut dyn Builder,
    x: NodeId,
    target: NodeId,
    reduction: &str,
    log_input: bool,
    eps: f64,
) -> Result<NodeId> {
    of_pair(b, "poisson_nll_loss", [x, target], reduction, |b, [x, target]| {
        let (rate, logarithm) = if log_input {
            (exp(b, x)?, x)
        } else {
            let shifted = shift_given(b, x, eps)?;
            (x, log(b, shifted)?)
        };
        let product = mul(b, target, logarithm)?;
        sub(b, rate, product)
    })
}

/// `(log v + (x - target)² / v) / 2` with a variance `v` of at least `eps`.
pub fn gaussian_nll_loss(
    b: &mut dyn Builder,
    x: NodeId,
    target: NodeId,
    variance: NodeId,
    reduction: &str,
    eps: f64,
) -> Result<NodeId> {
    const OP: &str = "gaussian_nll_loss";
    same_shape(b, OP, x, target)?;
    loss_of(b, OP, [x, target, variance], reduction, |b, [x, target, variance]| {
        let difference = sub(b, x, target)?;
        let squared = square(b, difference)?;
        let least = given(b, variance, eps);
        let variance = super::arithmetic::maximum(b, variance, least)?;
        let ratio = div(b, squared, variance).map_err(|error| error.in_op(OP))?;
        let logarithm = log(b, variance)?;
        let sum = add(b, logarithm, ratio)?;
        scale(b, sum, 0.5)
    })
}

/// `max(x, 0)` of what a margin leaves.
fn hinge(b: &mut dyn Builder, x: NodeId, margin: f64) -> Result<NodeId> {
    let shifted = shift_given(b, x, margin)?;
    super::activation::relu(b, shifted)
}

/// `x` where the target is 1, `max(margin - x, 0)` where it is -1.
pub fn hinge_embedding_loss(
    b: &mut dyn Builder,
    x: NodeId,
    target: NodeId,
    reduction: &str,
    margin: f64,
) -> Result<NodeId> {
    of_pair(b, "hinge_embedding_loss", [x, target], reduction, |b, [x, target]| {
        let minus = neg(b, x)?;
        let apart = hinge(b, minus, margin)?;
        by_sign(b, target, x, apart)
    })
}

/// `same` where the target is greater than 0, `different` elsewhere.
fn by_sign(b: &mut dyn Builder, target: NodeId, same: NodeId, different: NodeId) -> Result<NodeId> {
    let zero = like(b, target, 0.0);
    let positive = b.alu(Op::CmpLt, &[zero, target])?;
    b.alu(Op::Where, &[positive, same, different])
}

/// `max(-target (x - other) + margin, 0)`: a target of 1 wants `x` above `other`, -1 below.
pub fn margin_ranking_loss(
    b: &mut dyn Builder,
    x: NodeId,
    other: NodeId,
    target: NodeId,
    reduction: &str,
    margin: f64,
) -> Result<NodeId> {
    const OP: &str = "margin_ranking_loss";
    same_shape(b, OP, x, other)?;
    same_shape(b, OP, x, target)?;
    loss_of(b, OP, [x, other, target], reduction, |b, [x, other, target]| {
        let difference = sub(b, other, x)?;
        let signed = mul(b, target, difference)?;
        hinge(b, signed, margin)
    })
}

/// `1 - cos` of the last axes where the target is 1, `max(cos - margin, 0)` where it is -1.
pub fn cosine_embedding_loss(
    b: &mut dyn Builder,
    x: NodeId,
    other: NodeId,
    target: NodeId,
    reduction: &str,
    margin: f64,
) -> Result<NodeId> {
    const OP: &str = "cosine_embedding_loss";
    same_shape(b, OP, x, other)?;
    loss_of(b, OP, [x, other, target], reduction, |b, [x, other, target]| {
        let cosine = super::distance::cosine_similarity(b, x, other, -1, 1e-8).map_err(|error| error.in_op(OP))?;
        same_shape(b, OP, cosine, target)?;
        let minus = neg(b, cosine)?;
        let (together, apart) = (shift(b, minus, 1.0)?, hinge(b, cosine, -margin)?);
        by_sign(b, target, together, apart)
    })
}

/// `max(d(x, positive) - d(x, negative) + margin, 0)` with the `p`-distances of the last axes.
pub fn triplet_margin_loss(
    b: &mut dyn Builder,
    x: NodeId,
    near: NodeId,
    far: NodeId,
    reduction: &str,
    margin: f64,
    p: f64,
) -> Result<NodeId> {
    const OP: &str = "triplet_margin_loss";
    same_shape(b, OP, x, near)?;
    same_shape(b, OP, x, far)?;
    loss_of(b, OP, [x, near, far], reduction, |b, [x, near, far]| {
        let mut distance = |other: NodeId| {
            let difference = sub(b, x, other)?;
            let difference = shift(b, difference, 1e-6)?;
            super::distance::norm(b, difference, p, Some(&[-1]), false).map_err(|error| error.in_op(OP))
        };
        let (near, far) = (distance(near)?, distance(far)?);
        let difference = sub(b, near, far)?;
        hinge(b, difference, margin)
    })
}
