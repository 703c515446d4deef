//! From a case to tensors: a row of the method table where one bears the op's name, a short program otherwise.

use crate::corpus::{Array, Case};
use crate::programs;
use serde_json::Value;
use tinyspec::ir::ops::table::{ParamKind, method};
use tinyspec::{Argument, DType, Tensor, grad};

/// Why a case gave no result.
pub enum Failure {
    /// No method and no program bears this name.
    NotBuilt,
    /// Something went wrong.
    Wrong(String),
}

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Wrong(error.to_string())
    }
}

/// Outputs of a case on `device`.
pub fn outputs(case: &Case, inputs: &[Tensor]) -> Result<Vec<Tensor>, Failure> {
    match programs::run(case, inputs) {
        Some(outputs) => Ok(outputs?),
        None => by_name(case, method_name(&case.op), inputs),
    }
}

/// Gradients of `sum_j sum(out_j * cot_j)`.
pub fn gradients(case: &Case, device: &str, inputs: &[Tensor], outputs: &[Tensor]) -> Result<Vec<Tensor>, Failure> {
    let mut loss: Option<Tensor> = None;
    for (output, cotangent) in outputs.iter().zip(&case.cotangents) {
        let Some(cotangent) = cotangent else { continue };
        let term = output.mul(tensor(cotangent, device)?).sum(.., false);
        loss = Some(match loss {
            Some(loss) => loss.add(term),
            None => term,
        });
    }
    let loss = loss.ok_or("no cotangent")?;
    let wanted: Vec<&Tensor> = case.gradients.iter().filter_map(|(index, _)| inputs.get(*index)).collect();
    Ok(grad(&loss, &wanted)?)
}

/// An input on the device.
pub fn tensor(array: &Array, device: &str) -> Result<Tensor, Failure> {
    Ok(Tensor::from_bytes(array.dtype, &array.bytes, &array.shape).to(device))
}

/// A result as the corpus writes it.
pub fn array(tensor: &Tensor) -> Result<Array, Failure> {
    let shape = tensor.sizes()?.iter().map(|&size| size as i64).collect();
    Ok(Array { dtype: tensor.dtype(), shape, bytes: tensor.to_bytes()? })
}

/// Ops whose method has another name in Rust.
fn method_name(op: &str) -> &str {
    match op {
        "where" => "where_",
        "mod" => "modulo",
        "gelu_tanh" => "gelu",
        "take_gather_1d" | "gather_with_inf" => "take",
        "sigmoid_of_inf" => "sigmoid",
        "relu_nan" => "relu",
        "pow_half" => "pow_const",
        other => other,
    }
}

/// Tensors first in the order of the case, other parameters by name.
fn by_name(case: &Case, name: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, Failure> {
    let row = method(name).ok_or(Failure::NotBuilt)?;
    let mut tensors = inputs.iter();
    let mut arguments = Vec::new();
    for &(param, kind) in row.params {
        let value = case.args.get(param);
        arguments.push(match kind {
            ParamKind::tensor => match (tensors.next(), value.and_then(Value::as_f64)) {
                (Some(tensor), _) => Argument::Tensor(tensor.clone()),
                (None, Some(number)) => Argument::Tensor(Tensor::full(Vec::<i64>::new(), number as f32)),
                (None, None) => return Err(Failure::Wrong(format!("no input for `{param}`"))),
            },
            ParamKind::tensors => Argument::Tensors(tensors.by_ref().cloned().collect()),
            ParamKind::int | ParamKind::size => {
                Argument::Int(value.and_then(Value::as_i64).unwrap_or(default_int(param)))
            }
            ParamKind::ints | ParamKind::shape => Argument::Ints(numbers(value)),
            ParamKind::float => Argument::Float(value.and_then(Value::as_f64).unwrap_or(default_float(param))),
            ParamKind::flag => Argument::Flag(value.and_then(Value::as_bool).unwrap_or(false)),
            ParamKind::dtype => Argument::DType(dtype(case, value)?),
            ParamKind::axes => match value {
                None | Some(Value::Null) => Argument::AllAxes,
                some => Argument::Ints(numbers(some)),
            },
            ParamKind::text => Argument::Text(value.and_then(Value::as_str).unwrap_or(default_text(param)).to_string()),
            ParamKind::optional => tensors.next().map_or(Argument::Nothing, |tensor| Argument::Tensor(tensor.clone())),
            options => {
                let given = options
                    .fields()
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|&field| Some((field.to_string(), option(case.args.get(field)?)?)));
                Argument::Options(given.collect())
            }
        });
    }
    Ok(Tensor::call(name, &arguments)?)
}

/// A field of a struct of options.
fn option(value: &Value) -> Option<Argument> {
    match value {
        Value::Number(number) => number.as_i64().map(Argument::Int),
        Value::Bool(flag) => Some(Argument::Flag(*flag)),
        Value::Array(_) => Some(Argument::Ints(numbers(Some(value)))),
        _ => None,
    }
}

pub fn numbers(value: Option<&Value>) -> Vec<i64> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_i64).collect(),
        Some(value) => value.as_i64().into_iter().collect(),
        None => vec![],
    }
}

fn dtype(case: &Case, value: Option<&Value>) -> Result<DType, Failure> {
    let named = value.and_then(Value::as_str).and_then(DType::from_name);
    named.or(case.outputs.first().map(|output| output.dtype)).ok_or(Failure::NotBuilt)
}

fn default_int(param: &str) -> i64 {
    match param {
        "ignore_index" => -100,
        "correction" => 1,
        "axis" => -1,
        _ => 0,
    }
}

fn default_float(param: &str) -> f64 {
    match param {
        "step" => 1.0,
        "min" => f64::NEG_INFINITY,
        "max" => f64::INFINITY,
        _ => 0.0,
    }
}

fn default_text(param: &str) -> &'static str {
    match param {
        "rounding" => "floor",
        "reduction" => "mean",
        _ => "",
    }
}
