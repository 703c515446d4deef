//! Cases that are more than one method call: written as a user would write them.

use crate::corpus::Case;
use crate::models;
use crate::run::numbers;
use serde_json::Value;
use tinyspec::{DType, Tensor};

/// The outputs, if a program bears the op's name.
pub fn run(case: &Case, inputs: &[Tensor]) -> Option<Result<Vec<Tensor>, String>> {
    let arg = |name: &str| case.args.get(name);
    let one = |tensor: Tensor| Some(Ok(vec![tensor]));
    match (case.op.as_str(), inputs) {
        ("embedding", [table, tokens]) => one(tokens.embedding(table)),
        ("mul_const", [x]) => one(x.mul(arg("value")?.as_f64()?)),
        ("self_div", [x]) => one(x.div(x)),
        ("mul_div_cancel", [x, y]) => one(x.mul(y).div(y)),
        ("exp2_log2_roundtrip", [x]) => one(x.log2().exp2().log2()),
        ("neg_zero_add", [x]) => one(x.ones_like().copysign(x.add(0.0))),
        ("linear_bias_relu", [x, w, bias]) => one(x.matmul(w.transpose(0, 1)).add(bias).relu()),
        ("global_avg_pool2d", [x]) => one(x.mean([-2i64, -1], false)),
        ("repeat_interleave", [x]) if arg("axis").is_none_or(Value::is_null) => {
            one(x.flatten(0, -1).repeat_interleave(arg("repeats")?.as_i64()?, 0))
        }
        ("pad_mode", [x]) => {
            let ends = numbers(arg("pad_last_first"));
            let end =
                |which: usize| ends.chunks(2).rev().filter_map(|pair| pair.get(which).copied()).collect::<Vec<_>>();
            one(x.pad_mode(end(0), end(1), arg("mode")?.as_str()?))
        }
        ("masked_select", [x, mask]) => one(x.masked_select(mask)),
        ("nonzero", [x]) => one(x.nonzero()),
        ("lstm", [x, input, state, bias]) => one(models::lstm(x, input, state, bias)),
        ("transformer_block", [x, projections, output, up, down]) => {
            one(models::transformer_block(x, projections, output, [up, down], arg("heads")?.as_i64()?))
        }
        (name, [x, target, weight]) if name.starts_with("optim_") => {
            let mut optimizer = models::optimizer(name)?;
            let steps = arg("steps")?.as_i64()?;
            Some(models::fit(&mut *optimizer, x, target, weight, steps).map(|weight| vec![weight]))
        }
        ("split", [x]) => {
            let axis = arg("axis")?.as_i64()?;
            Some(Ok(match arg("sizes")? {
                Value::Array(_) => x.split_sizes(numbers(arg("sizes")), axis),
                size => x.split(size.as_i64()?, axis),
            }))
        }
        ("flip", [x]) => {
            let flags = arg("flags")?.as_array()?;
            let axes: Vec<i64> =
                (0..).zip(flags).filter(|(_, flag)| flag.as_bool() == Some(true)).map(|(axis, _)| axis).collect();
            one(x.flip(axes))
        }
        ("cast_f32_bf16_bits", [x]) => one(x.cast(DType::BF16).bitcast(DType::U16)),
        ("cast_f32_f8e4m3_bits", [x]) => one(x.cast(DType::F8E4M3).bitcast(DType::U8)),
        ("decode_f8e4m3", [x]) => one(x.bitcast(DType::F8E4M3).cast(DType::F32)),
        ("round_trip_f32_bf16", [x]) => one(x.cast(DType::BF16).cast(DType::F32)),
        ("round_trip_f32_f8e5m2", [x]) => one(x.cast(DType::F8E5M2).cast(DType::F32)),
        ("slice", [x]) => Some(slice(x, arg("index")?.as_str()?).map(|tensor| vec![tensor])),
        ("chain", [x]) => {
            let steps = arg("steps")?.as_array()?;
            Some(steps.iter().try_fold(x.clone(), |x, step| chain(&x, step)).map(|tensor| vec![tensor]))
        }
        ("index01", [x, rows, columns]) => {
            let (rows, columns) = (rows.cast(DType::I64), columns.cast(DType::I64));
            let flat = x.reshape([-1i64]);
            let [height, width] = *x.sizes().ok()?.as_slice() else { return None };
            let wrap = |index: &Tensor, length: usize| index.modulo(length as i64);
            one(flat.take(wrap(&rows, height).mul(width as i64).add(wrap(&columns, width))))
        }
        _ => None,
    }
}

/// One step of a chain of movements.
fn chain(x: &Tensor, step: &Value) -> Result<Tensor, String> {
    let ints = |index: usize| numbers(step.get(index));
    let name = step[0].as_str().unwrap_or_default();
    Ok(match name {
        "pad" => x.pad(ints(1), ints(2), step[3].as_f64().unwrap_or(0.0)),
        "reshape" => x.reshape(ints(1)),
        "shrink" => x.shrink(ints(1), ints(2)),
        "permute" => x.permute(ints(1)),
        "expand" => x.expand(ints(1)),
        "flip" => {
            let flags = step[1].as_array().cloned().unwrap_or_default();
            let axes: Vec<i64> =
                (0..).zip(&flags).filter(|(_, flag)| flag.as_bool() == Some(true)).map(|(axis, _)| axis).collect();
            x.flip(axes)
        }
        "sum" => x.sum(ints(1).as_slice(), false),
        "max" => x.max(ints(1).as_slice(), false),
        "exp" => x.exp(),
        "softmax" => x.softmax(step[1].as_i64().unwrap_or(-1)),
        other => return Err(format!("a chain has the step `{other}`")),
    })
}

/// Python's index notation: numbers, `a:b:c`, `None` and `...`.
fn slice(x: &Tensor, index: &str) -> Result<Tensor, String> {
    let items: Vec<&str> = index.split(',').map(str::trim).collect();
    let consumed = items.iter().filter(|item| !matches!(**item, "None" | "...")).count();
    let mut x = x.clone();
    let mut axis = 0i64;
    for item in items {
        match item {
            "None" => {
                x = x.unsqueeze(axis);
                axis += 1;
            }
            "..." => axis += x.rank() as i64 - axis - consumed as i64 + axis.min(0),
            _ => {
                let length =
                    *x.sizes().map_err(|error| error.to_string())?.get(axis as usize).ok_or("too many indices")? as i64;
                match item.split_once(':') {
                    None => {
                        let position: i64 = item.parse().map_err(|_| format!("`{item}` is not an index"))?;
                        let position = if position < 0 { position + length } else { position };
                        x = x.narrow(axis, position, 1).squeeze(axis);
                    }
                    Some(_) => {
                        x = strided(&x, axis, length, item)?;
                        axis += 1;
                    }
                }
            }
        }
    }
    Ok(x)
}

/// `start:stop:step` of one axis, by narrow, flip, pad and reshape.
fn strided(x: &Tensor, axis: i64, length: i64, item: &str) -> Result<Tensor, String> {
    let parts: Vec<Option<i64>> = item.split(':').map(|part| part.trim().parse().ok()).collect();
    let part = |index: usize| parts.get(index).copied().flatten();
    let step = part(2).unwrap_or(1);
    let place = |value: i64, low: i64, high: i64| (if value < 0 { value + length } else { value }).clamp(low, high);
    let (start, stop) = if step > 0 {
        (part(0).map_or(0, |v| place(v, 0, length)), part(1).map_or(length, |v| place(v, 0, length)))
    } else {
        (part(0).map_or(length - 1, |v| place(v, -1, length - 1)), part(1).map_or(-1, |v| place(v, -1, length - 1)))
    };
    let count = if step > 0 { (stop - start + step - 1) / step } else { (start - stop - step - 1) / -step }.max(0);
    if count == 0 {
        return Ok(x.narrow(axis, 0, 0));
    }
    let width = (count - 1) * step.abs() + 1;
    let window =
        if step > 0 { x.narrow(axis, start, width) } else { x.narrow(axis, start - width + 1, width).flip([axis]) };
    if step.abs() == 1 {
        return Ok(window);
    }
    // Padded to whole steps, cut into rows of one step, of which the first column is kept.
    let mut shape: Vec<i64> =
        window.sizes().map_err(|error| error.to_string())?.iter().map(|&size| size as i64).collect();
    shape[axis as usize] = count * step.abs();
    let padded = window.pad(vec![0; shape.len()], shape, 0.0);
    Ok(padded.unflatten(axis, [count, step.abs()]).narrow(axis + 1, 0, 1).squeeze(axis + 1))
}
