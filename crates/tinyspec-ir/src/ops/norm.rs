//! Normalisations.

use super::arithmetic::{add, mul, sub};
use super::elementwise::{rsqrt, square};
use super::{axis_of, cast, dtype_of, given, in_wide, in_wide_of, reduce, shape_of, to_float};
use crate::dim::show;
use crate::{Builder, Dim, Error, ErrorKind, NodeId, Result, Shape};

/// `(x - mean) / sqrt(var + eps)` along axes.
fn normalize(b: &mut dyn Builder, x: NodeId, axes: &[i64], eps: f64) -> Result<NodeId> {
    in_wide(b, x, |b, x| {
        let center = reduce::mean(b, x, Some(axes), true)?;
        let deviation = sub(b, x, center)?;
        let squared = square(b, deviation)?;
        let variance = reduce::mean(b, squared, Some(axes), true)?;
        let eps = given(b, x, eps);
        let sum = add(b, variance, eps)?;
        let scale = rsqrt(b, sum)?;
        mul(b, deviation, scale)
    })
}

/// Layer normalisation over the last `axes` axes (Ba et al., 2016), with scale and shift.
pub fn layer_norm(b: &mut dyn Builder, x: NodeId, weight: NodeId, bias: NodeId, axes: i64, eps: f64) -> Result<NodeId> {
    let rank = shape_of(b, x).len() as i64;
    if axes < 1 || axes > rank {
        return Err(Error::new(ErrorKind::Axis, "layer_norm", format!("the last {axes} of {rank} axes"))
            .help("how many of the last axes are one row: from 1 to all of them"));
    }
    let axes: Vec<i64> = (-axes..0).collect();
    fits(b, "layer_norm", x, "weight", weight)?;
    fits(b, "layer_norm", x, "bias", bias)?;
    in_wide_of(b, "layer_norm", [x, weight, bias], |b, [x, weight, bias]| {
        let normal = normalize(b, x, &axes, eps)?;
        let scaled = mul(b, normal, weight).map_err(|error| error.in_op("layer_norm"))?;
        add(b, scaled, bias).map_err(|error| error.in_op("layer_norm"))
    })
}

/// `x / sqrt(mean(x²) + eps) * weight` along the last axis (Zhang and Sennrich, 2019).
pub fn rms_norm(b: &mut dyn Builder, x: NodeId, weight: NodeId, eps: f64) -> Result<NodeId> {
    axis_of("rms_norm", -1, &shape_of(b, x))?;
    fits(b, "rms_norm", x, "weight", weight)?;
    in_wide_of(b, "rms_norm", [x, weight], |b, [x, weight]| {
        let squared = square(b, x)?;
        let mean = reduce::mean(b, squared, Some(&[-1]), true)?;
        let eps = given(b, x, eps);
        let sum = add(b, mean, eps)?;
        let scale = rsqrt(b, sum)?;
        let normal = mul(b, x, scale)?;
        mul(b, normal, weight).map_err(|error| error.in_op("rms_norm"))
    })
}

/// Refuses a parameter that does not broadcast to the shape of `x`.
fn fits(b: &dyn Builder, op: &str, x: NodeId, name: &str, parameter: NodeId) -> Result<()> {
    let (shape, found) = (shape_of(b, x), shape_of(b, parameter));
    if crate::dim::broadcast(&shape, &found).is_some_and(|both| both == shape) {
        return Ok(());
    }
    let message = format!("`{name}` of shape {} for rows of {}", show(&found), show(&shape));
    Err(Error::new(ErrorKind::Shape, op, message)
        .help(format!("`{name}` has the sizes of the axes that are normalised")))
}

/// A vector over the channels (axis 1) of a tensor of `rank` axes.
fn per_channel(b: &mut dyn Builder, vector: NodeId, rank: usize) -> Result<NodeId> {
    let mut shape = shape_of(b, vector);
    shape.extend(std::iter::repeat_n(Dim::from(1), rank.saturating_sub(2)));
    super::movement::reshape(b, vector, &shape)
}

/// Group normalisation of the channels in axis 1 (Wu and He, 2018).
pub fn group_norm(
    b: &mut dyn Builder,
    x: NodeId,
    weight: NodeId,
    bias: NodeId,
    groups: i64,
    eps: f64,
) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let [batch, channels, ..] = &shape[..] else {
        return Err(Error::new(ErrorKind::Rank, "group_norm", "needs a batch and a channel axis")
            .help("axis 0 is the batch, axis 1 the channels: `unsqueeze(0)` makes a batch of one"));
    };
    if groups < 1 || !channels.modulo(&Dim::from(groups)).is(0) {
        return Err(Error::new(ErrorKind::Shape, "group_norm", format!("{channels} channels in {groups} groups"))
            .help("the channels, axis 1, are a multiple of the groups, of which there is at least 1"));
    }
    let grouped: Shape = Shape::from_iter([batch.clone(), Dim::from(groups), Dim::from(-1)]);
    in_wide_of(b, "group_norm", [x, weight, bias], |b, [x, weight, bias]| {
        let split = super::movement::reshape(b, x, &grouped)?;
        let normal = normalize(b, split, &[-1], eps)?;
        let normal = super::movement::reshape(b, normal, &shape)?;
        affine(b, "group_norm", normal, weight, bias)
    })
}

fn affine(b: &mut dyn Builder, op: &str, x: NodeId, weight: NodeId, bias: NodeId) -> Result<NodeId> {
    let rank = shape_of(b, x).len();
    let (weight, bias) = (per_channel(b, weight, rank)?, per_channel(b, bias, rank)?);
    let scaled = mul(b, x, weight).map_err(|error| of_channels(b, op, x, weight, error))?;
    add(b, scaled, bias).map_err(|error| of_channels(b, op, x, bias, error))
}

/// The error of an operand that is not a number for each channel, in words of channels.
fn of_channels(b: &dyn Builder, op: &str, x: NodeId, operand: NodeId, error: Error) -> Error {
    let (shape, found) = (shape_of(b, x), shape_of(b, operand));
    match (error.kind(), shape.get(1)) {
        (ErrorKind::Shape, Some(channels)) => {
            let count = found.iter().fold(Dim::from(1), |count, dim| count * dim.clone());
            let message = format!("{count} numbers for the {channels} channels of {}", crate::dim::show(&shape));
            Error::new(ErrorKind::Shape, op, message)
                .help("weights, biases and statistics have one for each channel, axis 1")
        }
        _ => error.in_op(op),
    }
}

/// Batch normalisation with the statistics of the batch itself (Ioffe and Szegedy, 2015).
pub fn batch_norm_train(b: &mut dyn Builder, x: NodeId, weight: NodeId, bias: NodeId, eps: f64) -> Result<NodeId> {
    let rank = shape_of(b, x).len() as i64;
    let axes: Vec<i64> = (0..rank).filter(|&axis| axis != 1).collect();
    in_wide_of(b, "batch_norm_train", [x, weight, bias], |b, [x, weight, bias]| {
        let normal = normalize(b, x, &axes, eps)?;
        affine(b, "batch_norm_train", normal, weight, bias)
    })
}

/// Batch normalisation with given statistics.
pub fn batch_norm_eval(
    b: &mut dyn Builder,
    x: NodeId,
    weight: NodeId,
    bias: NodeId,
    mean: NodeId,
    variance: NodeId,
    eps: f64,
) -> Result<NodeId> {
    let operands = [x, weight, bias, mean, variance];
    in_wide_of(b, "batch_norm_eval", operands, |b, [x, weight, bias, mean, variance]| {
        let rank = shape_of(b, x).len();
        let (mean, variance) = (per_channel(b, mean, rank)?, per_channel(b, variance, rank)?);
        let deviation = sub(b, x, mean).map_err(|error| of_channels(b, "batch_norm_eval", x, mean, error))?;
        let eps = given(b, variance, eps);
        let sum = add(b, variance, eps)?;
        let scale = rsqrt(b, sum)?;
        let normal = mul(b, deviation, scale)?;
        affine(b, "batch_norm_eval", normal, weight, bias)
    })
}

/// Running mean and variance of the channels in axis 1 after a batch: `momentum` of each is the batch's, whose variance
/// is that of a sample; of a single value, which only a named batch can turn out to have, it is 0. Both are data: no gradient follows them.
pub fn batch_norm_running(
    b: &mut dyn Builder,
    x: NodeId,
    mean: NodeId,
    variance: NodeId,
    momentum: f64,
) -> Result<Vec<NodeId>> {
    const OP: &str = "batch_norm_running";
    let shape = shape_of(b, x);
    if shape.len() < 2 {
        let message = format!("needs a batch and a channel axis, found {}", crate::dim::show(&shape));
        return Err(Error::new(ErrorKind::Rank, OP, message)
            .help("axis 0 is the batch, axis 1 the channels: `unsqueeze(0)` makes a batch of one"));
    }
    let others = shape.iter().enumerate().filter(|(axis, _)| *axis != 1);
    let count = others.clone().fold(Dim::from(1), |count, (_, dim)| count * dim.clone());
    if count.as_const().is_some_and(|count| count < 2) {
        let message = format!("one value a channel in {} has no variance", crate::dim::show(&shape));
        return Err(Error::new(ErrorKind::Value, OP, message).help("a larger batch, or `batch_norm_eval`"));
    }
    let axes: Vec<i64> = others.map(|(axis, _)| axis as i64).collect();
    let x = super::elementwise::detach(b, x)?;
    let x = to_float(b, x)?;
    let wide = dtype_of(b, x).accumulator();
    let x = cast(b, x, wide)?;
    let found = [reduce::mean(b, x, Some(&axes), false)?, reduce::sample_variance(b, x, &axes)?];
    let mut after = Vec::with_capacity(2);
    for (before, found) in [mean, variance].into_iter().zip(found) {
        let before = super::elementwise::detach(b, before)?;
        let dtype = dtype_of(b, before);
        let wide = dtype.accumulator();
        let (before, found) = (cast(b, before, wide)?, cast(b, found, wide)?);
        let share = given(b, before, momentum);
        let moved = super::arithmetic::lerp(b, before, found, share).map_err(|error| error.in_op(OP))?;
        after.push(cast(b, moved, dtype)?);
    }
    Ok(after)
}

/// Normalisation of each channel of each sample over the axes from 2 on (Ulyanov et al., 2016).
pub fn instance_norm(b: &mut dyn Builder, x: NodeId, weight: NodeId, bias: NodeId, eps: f64) -> Result<NodeId> {
    let rank = shape_of(b, x).len() as i64;
    if rank < 3 {
        let message = format!("needs a batch, a channel and other axes, found {rank} axes");
        return Err(Error::new(ErrorKind::Rank, "instance_norm", message)
            .help("`layer_norm` normalises the last axes of any tensor"));
    }
    let axes: Vec<i64> = (2..rank).collect();
    in_wide_of(b, "instance_norm", [x, weight, bias], |b, [x, weight, bias]| {
        let normal = normalize(b, x, &axes, eps)?;
        affine(b, "instance_norm", normal, weight, bias)
    })
}

/// `x / (k + alpha mean(x²))^beta` with the mean over `size` neighbouring channels, zeros beyond the ends (Krizhevsky et
/// al., 2012).
pub fn local_response_norm(b: &mut dyn Builder, x: NodeId, size: i64, alpha: f64, beta: f64, k: f64) -> Result<NodeId> {
    const OP: &str = "local_response_norm";
    let rank = shape_of(b, x).len() as i64;
    if rank < 2 || !(1..1 << 20).contains(&size) {
        let message = format!("{size} channels of {rank} axes");
        return Err(Error::new(ErrorKind::Value, OP, message).help("a channel axis, and at least 1 channel"));
    }
    in_wide(b, x, |b, x| {
        let squared = square(b, x)?;
        let last = super::movement::transpose(b, squared, 1, -1)?;
        let padded = super::window::pad_ends(b, last, &[size / 2], &[(size - 1) / 2], 0.0)?;
        let windows = super::window::unfold(b, padded, -1, size, 1).map_err(|error| error.in_op(OP))?;
        let mean = reduce::mean(b, windows, Some(&[-1]), false)?;
        let mean = super::movement::transpose(b, mean, 1, -1)?;
        let scaled = super::elementwise::scale_given(b, mean, alpha)?;
        let sum = super::elementwise::shift_given(b, scaled, k)?;
        let power = super::elementwise::pow_const(b, sum, beta)?;
        super::arithmetic::div(b, x, power)
    })
}
