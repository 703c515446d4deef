//! Cross entropies of one event, by its probability or by its logit.

use super::arithmetic::{add, mul, neg, sub};
use super::loss::{loss_of, same_shape};
use super::{like, shape_of};
use crate::dim::show;
use crate::{Builder, Error, ErrorKind, NodeId, Op, Result};

/// `-(t log p + (1 - t) log(1 - p))`, where a logarithm is at least -100.
pub fn binary_crossentropy(
    b: &mut dyn Builder,
    probability: NodeId,
    target: NodeId,
    reduction: &str,
) -> Result<NodeId> {
    const OP: &str = "binary_crossentropy";
    same_shape(b, OP, probability, target)?;
    loss_of(b, OP, [probability, target], reduction, |b, [probability, target]| losses(b, probability, target))
}

/// [`binary_crossentropy`] with a weight for each element; a mean is over their number.
pub fn binary_crossentropy_weight(
    b: &mut dyn Builder,
    probability: NodeId,
    target: NodeId,
    weight: NodeId,
    reduction: &str,
) -> Result<NodeId> {
    const OP: &str = "binary_crossentropy_weight";
    same_shape(b, OP, probability, target)?;
    loss_of(b, OP, [probability, target, weight], reduction, |b, [probability, target, weight]| {
        let losses = losses(b, probability, target)?;
        weighed(b, OP, probability, losses, weight)
    })
}

fn losses(b: &mut dyn Builder, probability: NodeId, target: NodeId) -> Result<NodeId> {
    let one = like(b, probability, 1.0);
    let (rest, rest_target) = (sub(b, one, probability)?, sub(b, one, target)?);
    let (own, rest) = (bounded_log(b, probability)?, bounded_log(b, rest)?);
    let (own, rest) = (mul(b, target, own)?, mul(b, rest_target, rest)?);
    let sum = add(b, own, rest)?;
    neg(b, sum)
}

/// Values times weights, which broadcast to the predictions `x`.
fn weighed(b: &mut dyn Builder, op: &str, x: NodeId, values: NodeId, weight: NodeId) -> Result<NodeId> {
    let (shape, found) = (shape_of(b, x), shape_of(b, weight));
    if crate::dim::broadcast(&shape, &found).is_none_or(|both| both != shape) {
        let message = format!("weights of {} for predictions of {}", show(&found), show(&shape));
        return Err(Error::new(ErrorKind::Shape, op, message).help("weights broadcast to the predictions"));
    }
    mul(b, values, weight)
}

/// `log p`, at least -100, which it is of 0 with slope 0.
fn bounded_log(b: &mut dyn Builder, p: NodeId) -> Result<NodeId> {
    let (zero, one, least) = (like(b, p, 0.0), like(b, p, 1.0), like(b, p, -100.0));
    let none = super::arithmetic::eq(b, p, zero)?;
    let p = b.alu(Op::Where, &[none, one, p])?;
    let log = super::elementwise::log(b, p)?;
    let log = b.alu(Op::Max, &[log, least])?;
    b.alu(Op::Where, &[none, least, log])
}

/// [`binary_crossentropy`] of `sigmoid(x)`, without overflow: `softplus(x) - t x`.
pub fn binary_crossentropy_logits(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str) -> Result<NodeId> {
    const OP: &str = "binary_crossentropy_logits";
    same_shape(b, OP, x, target)?;
    loss_of(b, OP, [x, target], reduction, |b, [x, target]| {
        let plus = super::activation::softplus(b, x)?;
        let product = mul(b, target, x)?;
        sub(b, plus, product)
    })
}

/// [`binary_crossentropy_logits`] with a weight for each element, and one for what is true beside what is false: with
/// `softplus(-x) = softplus(x) - x` it is `(1 - t) x + (1 + (p - 1) t) softplus(-x)`.
pub fn binary_crossentropy_logits_weight(
    b: &mut dyn Builder,
    x: NodeId,
    target: NodeId,
    weight: Option<NodeId>,
    positive: Option<NodeId>,
    reduction: &str,
) -> Result<NodeId> {
    const OP: &str = "binary_crossentropy_logits_weight";
    same_shape(b, OP, x, target)?;
    // A weight that is left out is 1.
    let (given, unit) = (weight, like(b, x, 1.0));
    let [weight, factor] = [weight, positive].map(|weight| weight.unwrap_or(unit));
    loss_of(b, OP, [x, target, weight, factor], reduction, |b, [x, target, weight, factor]| {
        let one = like(b, x, 1.0);
        let (minus, rest) = (neg(b, x)?, sub(b, one, target)?);
        let (plus, linear) = (super::activation::softplus(b, minus)?, mul(b, rest, x)?);
        let more = sub(b, factor, one)?;
        let more = weighed(b, OP, x, target, more)?;
        let share = add(b, more, one)?;
        let curved = mul(b, share, plus)?;
        let losses = add(b, linear, curved)?;
        if given.is_some() { weighed(b, OP, x, losses, weight) } else { Ok(losses) }
    })
}
