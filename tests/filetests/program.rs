//! Programs of method calls, as users write them. Callify makes graphs of them.
//!
//! ```text
//! function double: %0 f32 [3]            a Function: its inputs, then its lines
//!   %1 = add(%0, %0)
//!   return %1
//! program: %0 f32 [3], %1 f32 [3]
//!   %2 = double(%0)
//!   return %2
//! ```
//!
//! Operands are earlier values, numbers, `[lists]`, dtypes, `true`, `false`, `"words"`, `none` and `{options=1; by=[name]}`.
//! `grad(%3, %0)` is the gradient of the sum of `%3` for `%0`.

use std::collections::HashMap;
use tinyspec::ir::{Graph, NodeId};
use tinyspec::{Argument, DType, Function, Spec, Tensor};

type Error = Box<dyn std::error::Error>;

/// The graph of the section `program`.
pub fn graph(text: &str) -> Result<(Graph, Vec<NodeId>), Error> {
    let mut functions: HashMap<&str, Function> = HashMap::new();
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with(';')).peekable();
    while let Some(head) = lines.next() {
        let (name, inputs) = head.split_once(':').ok_or(format!("`{head}` begins no function"))?;
        let name = name.strip_prefix("function ").unwrap_or(name);
        let inputs = inputs.split("],").map(spec).collect::<Result<Vec<_>, _>>()?;
        let mut body: Vec<&str> = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            body.push(line.trim());
        }
        let mut failure = None;
        let traced = Function::trace(&inputs, |placeholders| {
            run(&body, placeholders, &functions).unwrap_or_else(|error| {
                failure = Some(error);
                vec![]
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        functions.insert(name, traced?);
    }
    let body = functions.get("program").ok_or("no section `program:`")?.body();
    Ok((body.graph().clone(), body.outputs().to_vec()))
}

/// `%0 f32 [2 3]`, without its last bracket where a comma followed.
fn spec(text: &str) -> Result<Spec, Error> {
    let (front, shape) = text.split_once('[').ok_or(format!("`{text}` is not `%0 f32 [2 3]`"))?;
    let dtype = front.split_whitespace().nth(1).and_then(DType::from_name).ok_or(format!("`{text}` has no dtype"))?;
    let shape = numbers(shape.trim_end_matches(']'))?;
    Ok(Spec::new(dtype, &shape[..]))
}

fn numbers(text: &str) -> Result<Vec<i64>, Error> {
    Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

fn run(lines: &[&str], inputs: &[Tensor], functions: &HashMap<&str, Function>) -> Result<Vec<Tensor>, Error> {
    let mut values: HashMap<String, Tensor> = HashMap::new();
    for (number, input) in inputs.iter().enumerate() {
        values.insert(format!("%{number}"), input.clone());
    }
    let value = |values: &HashMap<String, Tensor>, name: &str| {
        values.get(name.trim()).cloned().ok_or(format!("`{name}` is not defined above"))
    };
    for line in lines {
        if let Some(results) = line.strip_prefix("return ") {
            return Ok(results.split(',').map(|name| value(&values, name)).collect::<Result<_, _>>()?);
        }
        let wrong = || format!("`{line}` is not `%2 = method(operands)`");
        let (names, call) = line.split_once(" = ").ok_or_else(wrong)?;
        let (method, operands) = call.strip_suffix(')').and_then(|call| call.split_once('(')).ok_or_else(wrong)?;
        let operands = operands.split(',').map(str::trim).filter(|operand| !operand.is_empty());
        let results = match functions.get(method) {
            Some(function) => {
                let arguments = operands.map(|operand| value(&values, operand)).collect::<Result<Vec<_>, _>>()?;
                function.call(&arguments.iter().collect::<Vec<_>>())
            }
            None if method == "grad" => {
                let operands = operands.map(|operand| value(&values, operand)).collect::<Result<Vec<_>, _>>()?;
                let [result, wanted] = &operands[..] else { return Err(wrong().into()) };
                tinyspec::grad(&result.sum(.., false), &[wanted])?
            }
            None => {
                let operands = operands.map(|operand| argument(operand, &values)).collect::<Result<Vec<_>, _>>()?;
                Tensor::call(method, &operands)?
            }
        };
        for (name, result) in names.split(',').zip(results) {
            values.insert(name.trim().into(), result);
        }
    }
    Err("no line `return %…`".into())
}

fn argument(text: &str, values: &HashMap<String, Tensor>) -> Result<Argument, Error> {
    if text.starts_with('%') {
        return Ok(Argument::Tensor(values.get(text).cloned().ok_or(format!("`{text}` is not defined above"))?));
    }
    if let Some(list) = text.strip_prefix('[') {
        return Ok(Argument::Ints(numbers(list.trim_end_matches(']'))?));
    }
    if let Some(fields) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        let field = |field: &str| -> Result<(String, Argument), Error> {
            let (name, value) = field.split_once('=').ok_or(format!("`{field}` is not `name=value`"))?;
            Ok((name.trim().into(), argument(value.trim(), values)?))
        };
        return Ok(Argument::Options(fields.split(';').map(field).collect::<Result<_, _>>()?));
    }
    if text == "none" {
        return Ok(Argument::Nothing);
    }
    if let Some(dtype) = DType::from_name(text) {
        return Ok(Argument::DType(dtype));
    }
    if let Some(word) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return Ok(Argument::Text(word.into()));
    }
    match (text, text.parse::<i64>(), text.parse::<f64>()) {
        ("true" | "false", ..) => Ok(Argument::Flag(text == "true")),
        (_, Ok(number), _) => Ok(Argument::Int(number)),
        (_, _, Ok(number)) => Ok(Argument::Float(number)),
        _ => Err(format!("`{text}` is not an operand").into()),
    }
}
