//! Losses.

use super::arithmetic::{add, logical_not, mul, ne, neg};
use super::{cast, dtype_of, given, in_wide, in_wide_of, index, like, reduce, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};

pub(super) fn reduced(b: &mut dyn Builder, op: &str, losses: NodeId, reduction: &str) -> Result<NodeId> {
    match reduction {
        "mean" => reduce::mean(b, losses, None, false),
        "sum" => reduce::sum(b, losses, None, false),
        "none" => Ok(losses),
        _ => Err(Error::new(ErrorKind::Value, op, format!("reduction `{reduction}` is unknown"))
            .help("`mean`, `sum` or `none`")),
    }
}

/// Two operands of one shape: that they merely broadcast is nearly always a mistake.
pub(super) fn equal_shape(b: &dyn Builder, op: &str, x: NodeId, target: NodeId) -> Result<()> {
    let (left, right) = (shape_of(b, x), shape_of(b, target));
    if left == right {
        return Ok(());
    }
    let message = format!("predictions of {} and targets of {}", show(&left), show(&right));
    Err(Error::new(ErrorKind::Shape, op, message).help("reshape one side: a loss does not broadcast"))
}

/// The frame of a loss: `losses` of the operands in at least f32, reduced, and rounded once.
pub(super) fn loss_of<const N: usize>(
    b: &mut dyn Builder,
    op: &str,
    operands: [NodeId; N],
    reduction: &str,
    losses: impl FnOnce(&mut dyn Builder, [NodeId; N]) -> Result<NodeId>,
) -> Result<NodeId> {
    in_wide_of(b, op, operands, |b, operands| {
        let losses = losses(b, operands)?;
        reduced(b, op, losses, reduction)
    })
}

/// [`equal_shape`], or a number, which fits all.
pub(super) fn same_shape(b: &dyn Builder, op: &str, x: NodeId, target: NodeId) -> Result<()> {
    if shape_of(b, target).is_empty() { Ok(()) } else { equal_shape(b, op, x, target) }
}

/// Cross entropy of `logits` (classes in the last axis) against class numbers. `label_smoothing` spreads that share
/// over all classes; targets equal to `ignore_index` count neither in the sum nor in the mean. The loss of any other target
/// that is not a class is nan, as is its gradient.
pub fn cross_entropy(
    b: &mut dyn Builder,
    logits: NodeId,
    target: NodeId,
    reduction: &str,
    label_smoothing: f64,
    ignore_index: i64,
) -> Result<NodeId> {
    const OP: &str = "cross_entropy";
    check_targets(b, OP, logits, target)?;
    in_wide(b, logits, |b, logits| entropy(b, OP, logits, target, None, reduction, label_smoothing, ignore_index))
}

/// [`cross_entropy`] with a weight per class, which weighs the share that smoothing gives to it too; the mean is over the
/// weights of the targets.
pub fn cross_entropy_weight(
    b: &mut dyn Builder,
    logits: NodeId,
    target: NodeId,
    weight: NodeId,
    reduction: &str,
    label_smoothing: f64,
    ignore_index: i64,
) -> Result<NodeId> {
    const OP: &str = "cross_entropy_weight";
    check_targets(b, OP, logits, target)?;
    in_wide_of(b, OP, [logits, weight], |b, [logits, weight]| {
        entropy(b, OP, logits, target, Some(weight), reduction, label_smoothing, ignore_index)
    })
}

#[allow(clippy::too_many_arguments, reason = "a loss has as many options")]
fn entropy(
    b: &mut dyn Builder,
    op: &str,
    logits: NodeId,
    target: NodeId,
    weight: Option<NodeId>,
    reduction: &str,
    label_smoothing: f64,
    ignore_index: i64,
) -> Result<NodeId> {
    if !(0.0..=1.0).contains(&label_smoothing) {
        let message = format!("label_smoothing {label_smoothing} is not between 0 and 1");
        return Err(Error::new(ErrorKind::Value, op, message).help("0.0 leaves the labels as they are"));
    }
    let log_probabilities = reduce::log_softmax(b, logits, -1).map_err(|error| error.in_op(op))?;
    if label_smoothing == 0.0 {
        return nll(b, op, log_probabilities, target, weight, reduction, ignore_index);
    }
    let [picked, is_class] = picked(b, op, log_probabilities, target)?;
    let weights = weight.map(|weight| of_target(b, op, log_probabilities, target, weight)).transpose()?;
    let (picked, all) = match (weight, weights) {
        (Some(weight), Some(weights)) => (mul(b, picked, weights)?, mul(b, log_probabilities, weight)?),
        _ => (picked, log_probabilities),
    };
    let uniform = reduce::mean(b, all, Some(&[-1]), false)?;
    let (own, spread) = (given(b, picked, 1.0 - label_smoothing), given(b, uniform, label_smoothing));
    let (own, spread) = (mul(b, picked, own)?, mul(b, uniform, spread)?);
    let sum = add(b, own, spread)?;
    let losses = neg(b, sum)?;
    let counted = counted(b, target, ignore_index)?;
    weighted(b, op, losses, [is_class, counted], weights, reduction)
}

/// Negative log likelihood of class numbers, from log-probabilities; -100 is ignored, and the loss of any other target that
/// is not a class is nan, as is its gradient.
pub fn nll_loss(b: &mut dyn Builder, log_probabilities: NodeId, target: NodeId, reduction: &str) -> Result<NodeId> {
    const OP: &str = "nll_loss";
    check_targets(b, OP, log_probabilities, target)?;
    in_wide(b, log_probabilities, |b, x| nll(b, OP, x, target, None, reduction, -100))
}

/// [`nll_loss`] with a weight per class; the mean is over the weights.
pub fn nll_loss_weight(
    b: &mut dyn Builder,
    log_probabilities: NodeId,
    target: NodeId,
    weight: NodeId,
    reduction: &str,
) -> Result<NodeId> {
    const OP: &str = "nll_loss_weight";
    check_targets(b, OP, log_probabilities, target)?;
    in_wide_of(b, OP, [log_probabilities, weight], |b, [x, weight]| {
        nll(b, OP, x, target, Some(weight), reduction, -100)
    })
}

/// Targets are class numbers, one for each vector of predictions.
pub(super) fn check_targets(b: &dyn Builder, op: &str, predictions: NodeId, target: NodeId) -> Result<()> {
    let (shape, target_shape) = (shape_of(b, predictions), shape_of(b, target));
    let (dtype, target_dtype) = (dtype_of(b, predictions), dtype_of(b, target));
    let fits = |shape: &[Dim], target: &[Dim]| shape.split_last().is_some_and(|(_, rows)| rows == target);
    let found = || {
        let (shape, target_shape) = (show(&shape), show(&target_shape));
        format!("targets of {target_dtype} {target_shape} for predictions of {dtype} {shape}")
    };
    if !dtype.is_float() && target_dtype.is_float() || fits(&target_shape, &shape) {
        return Err(Error::new(ErrorKind::DType, op, format!("{}: they are swapped", found()))
            .help(format!("`predictions.{op}(&targets, …)`")));
    }
    if target_dtype.is_float() && shape == target_shape {
        return Err(Error::new(ErrorKind::DType, op, format!("{}, not of class numbers", found()))
            .help("`cross_entropy_prob` takes a probability for each class, `.argmax(-1)` picks the likeliest class"));
    }
    index::require_int(b, op, target)?;
    if !fits(&shape, &target_shape) {
        return Err(Error::new(ErrorKind::Shape, op, found())
            .help("targets have the shape of the predictions without the last axis, the classes"));
    }
    Ok(())
}

/// The prediction for each target that [`check_targets`] has accepted, and whether the target is a class; the prediction for class 0
/// if it is not.
pub(super) fn picked(b: &mut dyn Builder, op: &str, predictions: NodeId, target: NodeId) -> Result<[NodeId; 2]> {
    let shape = shape_of(b, predictions);
    let is_class = is_class(b, target, &shape[shape.len() - 1])?;
    let zero = like(b, target, 0.0);
    let class = b.alu(Op::Where, &[is_class, target, zero])?;
    let index = super::movement::unsqueeze(b, class, -1)?;
    let picked = index::gather(b, predictions, index, -1).map_err(|error| error.in_op(op))?;
    Ok([super::movement::squeeze(b, picked, Some(&[-1]))?, is_class])
}

/// `losses` where `valid` holds, nan elsewhere: by a product, so that the gradient is nan as well.
pub(super) fn nan_unless(b: &mut dyn Builder, valid: NodeId, losses: NodeId) -> Result<NodeId> {
    let (one, nan) = (like(b, losses, 1.0), like(b, losses, f64::NAN));
    let factor = b.alu(Op::Where, &[valid, one, nan])?;
    mul(b, losses, factor)
}

/// `[0 <= target < classes]`.
pub(super) fn is_class(b: &mut dyn Builder, target: NodeId, classes: &Dim) -> Result<NodeId> {
    let target = index::wide(b, target)?;
    let dtype = dtype_of(b, target);
    let classes = super::creation::size(b, classes, dtype)?;
    let below = b.alu(Op::CmpLt, &[target, classes])?;
    if dtype.is_unsigned() {
        return Ok(below);
    }
    let least = like(b, target, -1.0);
    let not_negative = b.alu(Op::CmpLt, &[least, target])?;
    b.alu(Op::And, &[not_negative, below])
}

fn counted(b: &mut dyn Builder, target: NodeId, ignore_index: i64) -> Result<NodeId> {
    // A narrow label would wrap the number around.
    let target = cast(b, target, DType::I64)?;
    let ignored = b.number(Const::int(DType::I64, ignore_index.into()));
    ne(b, target, ignored)
}

fn nll(
    b: &mut dyn Builder,
    op: &str,
    log_probabilities: NodeId,
    target: NodeId,
    weight: Option<NodeId>,
    reduction: &str,
    ignore_index: i64,
) -> Result<NodeId> {
    let [picked, is_class] = picked(b, op, log_probabilities, target)?;
    let losses = neg(b, picked)?;
    let counted = counted(b, target, ignore_index)?;
    let Some(weight) = weight else { return weighted(b, op, losses, [is_class, counted], None, reduction) };
    let weights = of_target(b, op, log_probabilities, target, weight)?;
    let losses = mul(b, losses, weights)?;
    weighted(b, op, losses, [is_class, counted], Some(weights), reduction)
}

/// The weight of each target's class.
fn of_target(b: &mut dyn Builder, op: &str, predictions: NodeId, target: NodeId, weight: NodeId) -> Result<NodeId> {
    let (shape, weight_shape) = (shape_of(b, predictions), shape_of(b, weight));
    if weight_shape.as_slice() != &shape[shape.len() - 1..] {
        let message = format!("weights of shape {} for predictions of shape {}", show(&weight_shape), show(&shape));
        return Err(Error::new(ErrorKind::Shape, op, message).help("one weight a class"));
    }
    index::take(b, weight, target)
}

/// The reduction over the losses that count; a mean is over their weights, which are 1 where nothing else is said.
fn weighted(
    b: &mut dyn Builder,
    op: &str,
    losses: NodeId,
    [is_class, counted]: [NodeId; 2],
    weights: Option<NodeId>,
    reduction: &str,
) -> Result<NodeId> {
    let ignored = logical_not(b, counted)?;
    let valid = b.alu(Op::Or, &[is_class, ignored])?;
    let losses = nan_unless(b, valid, losses)?;
    let zero = like(b, losses, 0.0);
    let losses = b.alu(Op::Where, &[counted, losses, zero])?;
    if reduction != "mean" {
        return reduced(b, op, losses, reduction);
    }
    let weights = match weights {
        Some(weights) => b.alu(Op::Where, &[counted, weights, zero])?,
        None => {
            let dtype = dtype_of(b, losses);
            cast(b, counted, dtype)?
        }
    };
    let (total, weights) = (reduce::sum(b, losses, None, false)?, reduce::sum(b, weights, None, false)?);
    super::arithmetic::div(b, total, weights)
}

/// Cross entropy against probabilities (in the last axis).
pub fn cross_entropy_prob(b: &mut dyn Builder, logits: NodeId, target: NodeId, reduction: &str) -> Result<NodeId> {
    const OP: &str = "cross_entropy_prob";
    same_shape(b, OP, logits, target)?;
    loss_of(b, OP, [logits, target], reduction, |b, [logits, target]| {
        let log_probabilities = reduce::log_softmax(b, logits, -1).map_err(|error| error.in_op(OP))?;
        let products = mul(b, log_probabilities, target)?;
        let total = reduce::sum(b, products, Some(&[-1]), false)?;
        neg(b, total)
    })
}
