//! Convolutions: windows, a broadcast Mul and a Reduce-Add, which Rangeify fuses to one kernel that reads the input by
//! index arithmetic.

use super::movement::{flip, permute, reshape, squeeze, transpose, unsqueeze};
use super::options::{Conv, ConvTranspose};
use super::window::{Window, check, folded, pad_ends, padding_ends, windows};
use super::{cast, promote, shape_of, with_bias};
use crate::dim::show;
use crate::{Arg, Axes, Builder, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

fn ones(count: usize) -> impl Iterator<Item = Dim> {
    std::iter::repeat_n(Dim::from(1), count)
}

/// `(batch, channels, …)` and weights of `(channels out, channels in, …)`, as far as `N` axes and `groups` ask.
fn check_operands<const N: usize>(
    b: &dyn Builder,
    op: &str,
    x: NodeId,
    weight: NodeId,
    groups: i64,
) -> Result<(Shape, Shape, [i64; N])> {
    let (shape, kernel) = (shape_of(b, x), shape_of(b, weight));
    for (name, shape) in [("input", &shape), ("weight", &kernel)] {
        if shape.len() != N + 2 {
            let message = format!("the {name} must have {} axes, found {}", N + 2, show(shape));
            return Err(Error::new(ErrorKind::Rank, op, message).help(
                "an input is (batch, channels, …) or (channels, …), a weight one filter for each pair of channels",
            ));
        }
    }
    if groups < 1 {
        return Err(Error::new(ErrorKind::Value, op, format!("{groups} groups")).help("there is at least 1"));
    }
    let sizes: Option<Vec<i64>> = kernel[2..].iter().map(Dim::as_const).collect();
    let Some(Ok(sizes)) = sizes.map(<[i64; N]>::try_from) else {
        let message = format!("the sizes of the windows in {} must be numbers", show(&kernel));
        return Err(Error::new(ErrorKind::Unsupported, op, message));
    };
    Ok((shape, kernel, sizes))
}

fn wrong_channels(op: &str, shape: &[Dim], kernel: &[Dim], groups: i64) -> Error {
    let message = format!("channels of {} and {} do not fit in {groups} groups", show(shape), show(kernel));
    Error::new(ErrorKind::Shape, op, message)
}

/// Convolution over N axes: `out[b, o, p] = bias[o] + Σ x[b, c, p * stride + k * dilation] * weight[o, c, k]`.
pub fn conv<const N: usize>(
    b: &mut dyn Builder,
    x: NodeId,
    weight: NodeId,
    bias: Option<NodeId>,
    options: Conv<N>,
) -> Result<NodeId> {
    let op = format!("conv{N}d");
    let ends = if options.same {
        same::<N>(b, &op, weight, options)?
    } else {
        padding_ends(&op, options.padding, options.padding_end)?
    };
    with_a_batch::<N>(b, x, |b, x| convolve(b, &op, x, weight, bias, options, ends))
}

/// The zeros before and after each axis that let it keep its length.
fn same<const N: usize>(b: &dyn Builder, op: &str, weight: NodeId, options: Conv<N>) -> Result<[[i64; 2]; N]> {
    let Conv { stride, padding, padding_end, dilation, .. } = options;
    if padding != [0; N] || padding_end.is_some() || stride != [1; N] {
        let message = format!("a padding of {padding:?} and a stride of {stride:?} where axes keep their lengths");
        return Err(
            Error::new(ErrorKind::Value, op, message).help("with `same` windows are 1 apart, and nothing else pads")
        );
    }
    let kernel = shape_of(b, weight);
    let size = |axis: usize| kernel.get(axis + 2).and_then(Dim::as_const).unwrap_or(1);
    Ok(std::array::from_fn(|axis| {
        let total = dilation[axis].saturating_mul(size(axis) - 1).max(0);
        [total / 2, total - total / 2]
    }))
}

/// The result of `make` for inputs `(batch, channels, …)`; an input `(channels, …)` is a batch of one.
fn with_a_batch<const N: usize>(
    b: &mut dyn Builder,
    x: NodeId,
    make: impl FnOnce(&mut dyn Builder, NodeId) -> Result<NodeId>,
) -> Result<NodeId> {
    if shape_of(b, x).len() != N + 1 {
        return make(b, x);
    }
    let batch = unsqueeze(b, x, 0)?;
    let made = make(b, batch)?;
    squeeze(b, made, Some(&[0]))
}

/// [`conv`] with the padding before and after each axis apart.
fn convolve<const N: usize>(
    b: &mut dyn Builder,
    op: &str,
    x: NodeId,
    weight: NodeId,
    bias: Option<NodeId>,
    options: Conv<N>,
    padding: [[i64; 2]; N],
) -> Result<NodeId> {
    let (x, weight) = promote(b, op, x, weight)?;
    let dtype = super::dtype_of(b, x);
    let groups = options.groups;
    let (shape, kernel, sizes) = check_operands::<N>(b, op, x, weight, groups)?;
    let (batch, channels) = (shape[0].clone(), kernel[1].clone());
    let outputs = kernel[0].idiv(&Dim::from(groups));
    if channels.clone() * Dim::from(groups) != shape[1] || outputs.clone() * Dim::from(groups) != kernel[0] {
        return Err(wrong_channels(op, &shape, &kernel, groups).help(
            "the weight's second axis is the input's channels over the groups, its first a multiple of the groups",
        ));
    }
    let axes: Vec<Window> = (0..N)
        .map(|axis| Window { size: sizes[axis], stride: options.stride[axis], dilation: options.dilation[axis] })
        .collect();
    check(op, &axes)?;
    let padded = pad_ends(b, x, &padding.map(|ends| ends[0]), &padding.map(|ends| ends[1]), 0.0)?;
    let views = windows(b, op, padded, &axes)?;
    let positions: Shape = shape_of(b, views)[2..2 + N].into();
    let group = Dim::from(groups);
    // (batch, group, output, positions…, channel, elements…), the summed axes last.
    let split: Shape = [batch.clone(), group.clone(), Dim::from(1), channels.clone()]
        .into_iter()
        .chain(shape_of(b, views)[2..].iter().cloned())
        .collect();
    let views = reshape(b, views, &split)?;
    let order: Vec<i64> = (0..3).chain(4..4 + N as i64).chain([3]).chain(4 + N as i64..4 + 2 * N as i64).collect();
    let views = permute(b, views, &order)?;
    let filters: Shape = [Dim::from(1), group, outputs]
        .into_iter()
        .chain(ones(N))
        .chain([channels])
        .chain(kernel[2..].iter().cloned())
        .collect();
    let filters = reshape(b, weight, &filters)?;
    // Narrow dtypes are also multiplied in the accumulator's dtype.
    let (views, filters) = (cast(b, views, dtype.accumulator())?, cast(b, filters, dtype.accumulator())?);
    let products = b.alu(Op::Mul, &[views, filters])?;
    let summed: Axes = (3 + N as u32..4 + 2 * N as u32).collect();
    let sum = b.add(Op::Reduce, &[products], Arg::Reduce { op: Op::Add, axes: summed })?;
    let target: Shape = [batch, kernel[0].clone()].into_iter().chain(positions).collect();
    let sum = reshape(b, sum, &target)?;
    with_channel_bias(b, op, sum, dtype, bias, &kernel[..1])
}

/// `sum` plus a bias of as many `channels`, rounded to `dtype`.
fn with_channel_bias(
    b: &mut dyn Builder,
    op: &str,
    sum: NodeId,
    dtype: DType,
    bias: Option<NodeId>,
    channels: &[Dim],
) -> Result<NodeId> {
    let Some(bias) = bias else { return with_bias(b, op, sum, dtype, None) };
    let (bias_shape, axes) = (shape_of(b, bias), shape_of(b, sum).len() - 2);
    if bias_shape.as_slice() != channels {
        let message = format!("a bias of {} for {} channels", show(&bias_shape), channels[0]);
        return Err(
            Error::new(ErrorKind::Shape, op, message).help("a vector with a number for each channel of the result")
        );
    }
    let wide: Shape = bias_shape.iter().cloned().chain(ones(axes)).collect();
    let bias = reshape(b, bias, &wide)?;
    with_bias(b, op, sum, dtype, Some(bias))
}

/// The gradient of a convolution, as a layer: each input element adds its filter into the result. The
/// weight is `(channels in, channels out / groups, …)`.
pub fn conv_transpose<const N: usize>(
    b: &mut dyn Builder,
    x: NodeId,
    weight: NodeId,
    bias: Option<NodeId>,
    options: ConvTranspose<N>,
) -> Result<NodeId> {
    let op = format!("conv_transpose{N}d");
    with_a_batch::<N>(b, x, |b, x| transposed(b, &op, x, weight, bias, options))
}

fn transposed<const N: usize>(
    b: &mut dyn Builder,
    op: &str,
    x: NodeId,
    weight: NodeId,
    bias: Option<NodeId>,
    options: ConvTranspose<N>,
) -> Result<NodeId> {
    let ConvTranspose { stride, padding, padding_end, output_padding, dilation, groups } = options;
    let (shape, kernel, sizes) = check_operands::<N>(b, op, x, weight, groups)?;
    let inputs = kernel[0].idiv(&Dim::from(groups));
    if kernel[0] != shape[1] || inputs.clone() * Dim::from(groups) != kernel[0] {
        return Err(wrong_channels(op, &shape, &kernel, groups)
            .help("the weight's first axis is the input's channels, a multiple of the groups"));
    }
    let ends = padding_ends(op, padding, padding_end)?;
    let window = |axis: usize| Window { size: sizes[axis], stride: stride[axis], dilation: dilation[axis] };
    let axes: [Window; N] = std::array::from_fn(window);
    check(op, &axes)?;
    if (0..N).any(|axis| !(0..stride[axis].max(dilation[axis])).contains(&output_padding[axis])) {
        let message = format!("an output padding of {output_padding:?}");
        return Err(Error::new(ErrorKind::Value, op, message).help("it is less than the stride or the dilation"));
    }
    if stride.iter().any(|&stride| stride > 1) {
        let padded = |axis: usize| {
            let reach = (shape[2 + axis].clone() - Dim::from(1)) * Dim::from(stride[axis]);
            reach + Dim::from(axes[axis].span() + output_padding[axis])
        };
        let lengths: [Dim; N] = std::array::from_fn(padded);
        return add_filters(b, op, x, weight, bias, (&axes, &lengths, ends), groups);
    }
    // Filters read backwards, with outputs and inputs swapped in each group.
    let grouped: Shape =
        [Dim::from(groups), inputs, kernel[1].clone()].into_iter().chain(kernel[2..].iter().cloned()).collect();
    let filters = reshape(b, weight, &grouped)?;
    let filters = transpose(b, filters, 1, 2)?;
    let backwards: Vec<i64> = (3..3 + N as i64).collect();
    let filters = flip(b, filters, &backwards)?;
    let swapped = shape_of(b, filters);
    let merged: Shape =
        [swapped[0].clone() * swapped[1].clone()].into_iter().chain(swapped[2..].iter().cloned()).collect();
    let filters = reshape(b, filters, &merged)?;
    let ends = std::array::from_fn(|axis| {
        let [before, after] = ends[axis].map(|padding| axes[axis].span() - 1 - padding);
        [before, after + output_padding[axis]]
    });
    convolve(b, op, x, filters, bias, Conv { dilation, groups, ..Conv::default() }, ends)
}

/// Each input element's filter, as a window of what is `lengths` long before the `ends` are cut off, and all windows
/// added up: of strides greater than 1 a convolution over the elements with zeros between them would be zeros for the most part.
fn add_filters<const N: usize>(
    b: &mut dyn Builder,
    op: &str,
    x: NodeId,
    weight: NodeId,
    bias: Option<NodeId>,
    (axes, lengths, ends): (&[Window; N], &[Dim; N], [[i64; 2]; N]),
    groups: i64,
) -> Result<NodeId> {
    let cut_off = |axis: usize| ends[axis].iter().sum::<i64>();
    if let Some(axis) = (0..N).find(|&axis| (&lengths[axis] - cut_off(axis)).bounds().1 < 1) {
        let message = format!("a padding of {:?} leaves nothing of axis {}", ends[axis], axis + 2);
        return Err(Error::new(ErrorKind::Shape, op, message).help("a transposed convolution cuts the padding off"));
    }
    let (x, weight) = promote(b, op, x, weight)?;
    let dtype = super::dtype_of(b, x);
    // Narrow dtypes are also multiplied in the accumulator's dtype.
    let (x, weight) = (cast(b, x, dtype.accumulator())?, cast(b, weight, dtype.accumulator())?);
    let (shape, kernel) = (shape_of(b, x), shape_of(b, weight));
    let (group, inputs, outputs) = (Dim::from(groups), kernel[0].idiv(&Dim::from(groups)), kernel[1].clone());
    // (batch, group, input, positions…, output, elements…)
    let elements: Shape = [shape[0].clone(), group.clone(), inputs.clone()]
        .into_iter()
        .chain(shape[2..].iter().cloned())
        .chain(ones(N + 1))
        .collect();
    let filters: Shape =
        [Dim::from(1), group.clone(), inputs].into_iter().chain(ones(N)).chain(kernel[1..].iter().cloned()).collect();
    let (elements, filters) = (reshape(b, x, &elements)?, reshape(b, weight, &filters)?);
    let products = b.alu(Op::Mul, &[elements, filters])?;
    let sum = b.add(Op::Reduce, &[products], Arg::Reduce { op: Op::Add, axes: Axes::from_iter([2]) })?;
    let order: Vec<i64> =
        (0..3).chain([3 + N as i64]).chain(3..3 + N as i64).chain(4 + N as i64..4 + 2 * N as i64).collect();
    let windows = permute(b, sum, &order)?;
    let channels = group * outputs;
    let merged: Shape = [shape[0].clone(), channels.clone()]
        .into_iter()
        .chain(shape[2..].iter().cloned())
        .chain(kernel[2..].iter().cloned())
        .collect();
    let windows = reshape(b, windows, &merged)?;
    let whole = folded(b, windows, axes, lengths)?;
    let kept = pad_ends(b, whole, &ends.map(|[before, _]| -before), &ends.map(|[_, after]| -after), 0.0)?;
    with_channel_bias(b, op, kept, dtype, bias, &[channels])
}
