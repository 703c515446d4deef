//! Losses of several classes by margins, and of rare classes.

use super::activation::{logsigmoid, relu, softplus};
use super::arithmetic::{mul, sub};
use super::elementwise::{pow_const, scale, scale_given, shift, shift_given};
use super::loss::{check_targets, equal_shape, is_class, loss_of, nan_unless, picked, reduced};
use super::{cast, in_wide, index, like, reduce, shape_of};
use crate::{Builder, DType, Error, ErrorKind, NodeId, Op, Result};

/// `log(1 + e^(-t x))` with targets of -1 and 1.
pub fn soft_margin_loss(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str) -> Result<NodeId> {
    const OP: &str = "soft_margin_loss";
    equal_shape(b, OP, x, target)?;
    loss_of(b, OP, [x, target], reduction, |b, [x, target]| {
        let product = mul(b, x, target)?;
        let minus = super::arithmetic::neg(b, product)?;
        softplus(b, minus)
    })
}

/// The mean over the last axis of [`binary_crossentropy_logits`](super::events::binary_crossentropy_logits).
pub fn multilabel_soft_margin_loss(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str) -> Result<NodeId> {
    const OP: &str = "multilabel_soft_margin_loss";
    equal_shape(b, OP, x, target)?;
    loss_of(b, OP, [x, target], reduction, |b, [x, target]| {
        let losses = super::events::binary_crossentropy_logits(b, x, target, "none")?;
        reduce::mean(b, losses, Some(&[-1]), false).map_err(|error| error.in_op(OP))
    })
}

/// `Σ max(margin - x[t] + x[j], 0)^p` over the classes j that are not t, by the number of all classes.
pub fn multi_margin_loss(
    b: &mut dyn Builder,
    x: NodeId,
    target: NodeId,
    reduction: &str,
    p: f64,
    margin: f64,
) -> Result<NodeId> {
    const OP: &str = "multi_margin_loss";
    check_targets(b, OP, x, target)?;
    in_wide(b, x, |b, x| {
        let [own, is_class] = picked(b, OP, x, target)?;
        let own = super::movement::unsqueeze(b, own, -1)?;
        let difference = sub(b, x, own)?;
        let rest = shift_given(b, difference, margin)?;
        let rest = relu(b, rest)?;
        let powers = pow_const(b, rest, p)?;
        let shape = shape_of(b, x);
        let classes = shape[shape.len() - 1].clone();
        let hit = index::one_hot_mask(b, OP, target, &classes)?;
        let zero = like(b, powers, 0.0);
        let others = b.alu(Op::Where, &[hit, zero, powers])?;
        let losses = reduce::mean(b, others, Some(&[-1]), false)?;
        let losses = nan_unless(b, is_class, losses)?;
        reduced(b, OP, losses, reduction)
    })
}

/// `Σ max(1 - (x[t] - x[j]), 0)` over the classes t that the targets name, up to the first negative one, and those j that
/// they do not, by the number of all classes; nan where one of these targets is not a class.
pub fn multilabel_margin_loss(b: &mut dyn Builder, x: NodeId, target: NodeId, reduction: &str) -> Result<NodeId> {
    const OP: &str = "multilabel_margin_loss";
    equal_shape(b, OP, x, target)?;
    index::require_int(b, OP, target)?;
    in_wide(b, x, |b, x| {
        let shape = shape_of(b, x);
        let Some(classes) = shape.last().cloned() else {
            return Err(Error::new(ErrorKind::Rank, OP, "a scalar has no classes").help("the last axis is the classes"));
        };
        // A negative one ends the list: from there on, the running count of negative ones is not 0.
        let target = index::wide(b, target)?;
        let zero = like(b, target, 0.0);
        let ends = b.alu(Op::CmpLt, &[target, zero])?;
        let ends = cast(b, ends, DType::I32)?;
        let ended = super::scan::cumsum(b, ends, -1)?;
        let none = like(b, ended, 0.0);
        let counts = super::arithmetic::eq(b, ended, none)?;
        let known = is_class(b, target, &classes)?;
        let unknown = super::arithmetic::logical_not(b, known)?;
        let unknown = b.alu(Op::And, &[unknown, counts])?;
        let unknown = reduce::any(b, unknown, Some(&[-1]), false)?;
        let hits = index::one_hot_mask(b, OP, target, &classes)?;
        let counted = super::movement::unsqueeze(b, counts, -1)?;
        let hits = b.alu(Op::And, &[hits, counted])?;
        let named = reduce::any(b, hits, Some(&[-2]), false)?;
        let (wanted, other) = (super::movement::unsqueeze(b, x, -1)?, super::movement::unsqueeze(b, x, -2)?);
        let difference = sub(b, other, wanted)?;
        let rest = shift(b, difference, 1.0)?;
        let rest = relu(b, rest)?;
        let is_wanted = super::movement::unsqueeze(b, named, -1)?;
        let unnamed = super::arithmetic::logical_not(b, named)?;
        let is_other = super::movement::unsqueeze(b, unnamed, -2)?;
        let pair = b.alu(Op::And, &[is_wanted, is_other])?;
        let zero = like(b, rest, 0.0);
        let rest = b.alu(Op::Where, &[pair, rest, zero])?;
        let total = reduce::sum(b, rest, Some(&[-2]), false)?;
        let losses = reduce::mean(b, total, Some(&[-1]), false)?;
        let known = super::arithmetic::logical_not(b, unknown)?;
        let losses = nan_unless(b, known, losses)?;
        reduced(b, OP, losses, reduction)
    })
}

/// `-α (1 - p)^γ log p` of the probability `p = σ(±x)` of what the target, 0 or 1, says; α stands for 1, `1 - α` for 0; a
/// negative α weighs both alike (Lin et al., 2017).
pub fn sigmoid_focal_loss(
    b: &mut dyn Builder,
    x: NodeId,
    target: NodeId,
    reduction: &str,
    alpha: f64,
    gamma: f64,
) -> Result<NodeId> {
    const OP: &str = "sigmoid_focal_loss";
    equal_shape(b, OP, x, target)?;
    loss_of(b, OP, [x, target], reduction, |b, [x, target]| {
        let losses = super::events::binary_crossentropy_logits(b, x, target, "none")?;
        // 1 - p = σ(-x) where the target is 1, σ(x) where it is 0; as a power of its logarithm it needs no care at 0.
        let sign = scale(b, target, -2.0)?;
        let sign = shift(b, sign, 1.0)?;
        let signed = mul(b, x, sign)?;
        let logarithm = logsigmoid(b, signed)?;
        let logarithm = scale_given(b, logarithm, gamma)?;
        let weight = super::elementwise::exp(b, logarithm)?;
        let mut losses = mul(b, losses, weight)?;
        if alpha >= 0.0 {
            let share = scale_given(b, target, 2.0 * alpha - 1.0)?;
            let share = shift_given(b, share, 1.0 - alpha)?;
            losses = mul(b, losses, share)?;
        }
        Ok(losses)
    })
}
