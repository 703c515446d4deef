//! Texts for messages about methods: kinds of arguments, and examples.

use super::Value;
use super::expression::text_of;
use syn::Expr;
use tinyspec_ir::DType;
use tinyspec_ir::ops::ParamKind;

const VALUES: &str =
    "takes values, which exist while the program runs: pass the tensor, or build it of `arange`, `full` and `eye`";

/// Methods on data that only exists at run time, and what to use instead.
pub(super) const AT_RUN_TIME: &[(&str, &str)] = &[
    ("to_vec", "reads values, which exist only when the function is called: call it on the result, outside"),
    ("item", "reads a value, which exists only when the function is called: call it on the result, outside"),
    ("from_slice", VALUES),
    ("from_vec", VALUES),
    ("from_bytes", VALUES),
    ("from_ndarray", VALUES),
    ("load_npy", VALUES),
    ("realize", "computes now; a #[function] is computed when its result is read"),
    ("to", "moves to a device, which the caller chooses: move the arguments or the result, outside"),
    ("sizes", "reads a shape as numbers; dims are symbols here: name them in the signature"),
    ("backward", "computes gradients now: `grad(&loss, &[…])` outside, or `#[function(grad)]`"),
    ("backprop", "computes gradients now: `grad(&loss, &[…])` outside, or `#[function(grad)]`"),
    ("requires_grad", "is not needed: gradients exist for whatever `grad(&loss, &[…])` is asked for"),
    ("error", "looks for a run-time error; here mistakes are compile errors"),
    ("unwrap", "is not needed: mistakes are reported here, so methods return tensors, not `Result`s"),
    ("expect", "is not needed: mistakes are reported here, so methods return tensors, not `Result`s"),
    ("tolist", "reads values, which exist only when the function is called: call `to_vec` on the result, outside"),
    ("numpy", "reads values, which exist only when the function is called: call `to_vec` on the result, outside"),
    ("dropout", "draws new numbers: draw the mask outside, and pass it, `x * mask`"),
    ("masked_select", "finds as many elements as data decide, and a graph has a known shape: call it outside"),
    ("nonzero", "finds as many elements as data decide, and a graph has a known shape: call it outside"),
    ("is_realized", "asks about run time"),
    ("device", "asks about run time"),
];

/// `1 argument (`axis`: an integer)`
pub(super) fn arguments_of(params: &[(&str, ParamKind)]) -> String {
    let shown: Vec<String> = params.iter().map(|(name, kind)| format!("`{name}`: {}", kind_text(*kind))).collect();
    match shown.as_slice() {
        [] => "no arguments".to_string(),
        [one] => format!("1 argument ({one})"),
        more => format!("{} arguments ({})", more.len(), more.join(", ")),
    }
}

/// The kind of a parameter in words.
pub(super) fn kind_text(kind: ParamKind) -> String {
    let text = match kind {
        ParamKind::tensor => "a tensor or a number",
        ParamKind::tensors => "tensors, as in `&[&a, &b]`",
        ParamKind::int => "an integer",
        ParamKind::ints => "integers, as in `[0, 1]`",
        ParamKind::float => "a float",
        ParamKind::flag => "`true` or `false`",
        ParamKind::dtype => "a dtype, as in `DType::F32`",
        ParamKind::shape => "a shape, as in `[B, 64]`",
        ParamKind::size => "a size, as in `64` or `B`",
        ParamKind::axes => "an axis, axes as in `[0, 1]`, or `..` for all",
        ParamKind::text => "a string",
        ParamKind::optional => "`None`, or `Some(&tensor)`",
        options => {
            return format!("options, `default()` or as in `{options:?} {{ {}, ..default() }}`", first_option(options));
        }
    };
    text.to_string()
}

fn first_option(kind: ParamKind) -> &'static str {
    let axes = format!("{kind:?}").chars().find_map(|c| c.to_digit(10));
    match axes {
        None => "causal: true",
        Some(1) => "stride: [2]",
        Some(3) => "stride: [2, 2, 2]",
        _ => "stride: [2, 2]",
    }
}

/// The usual argument for a parameter of this name, since users may copy an example.
pub(super) fn usual(parameter: &str) -> Option<&'static str> {
    Some(match parameter {
        "eps" => "1e-5",
        "label_smoothing" => "0.0",
        "ignore_index" => "-100",
        "reduction" => "\"mean\"",
        _ => return None,
    })
}

/// An argument of this kind in an example.
pub(super) fn sample(kind: ParamKind) -> String {
    let text = match kind {
        ParamKind::tensor => "&y",
        ParamKind::tensors => "&[&a, &b]",
        ParamKind::int => "1",
        ParamKind::ints => "[0, 1]",
        ParamKind::float => "1.0",
        ParamKind::flag => "false",
        ParamKind::dtype => "DType::F32",
        ParamKind::shape => "[B, 64]",
        ParamKind::size => "64",
        ParamKind::axes => "..",
        ParamKind::text => "\"…\"",
        ParamKind::optional => "None",
        _ => "default()",
    };
    text.to_string()
}

/// Whether an expression looks like an argument of this kind.
pub(super) fn may_be(argument: &Expr, kind: ParamKind) -> bool {
    let is_call_of = |name: &str| match argument {
        Expr::Call(call) => matches!(&*call.func, Expr::Path(path) if path.path.is_ident(name)),
        Expr::Path(path) => path.path.is_ident(name),
        _ => false,
    };
    let is_options = matches!(argument, Expr::Struct(_)) || is_call_of("default");
    let is_option = is_call_of("Some") || is_call_of("None");
    match kind {
        _ if is_options => kind.fields().is_some(),
        _ if is_option => kind == ParamKind::optional,
        _ if kind.fields().is_some() || kind == ParamKind::optional => false,
        kind => match argument {
            Expr::Array(array) if array.elems.iter().any(|element| matches!(element, Expr::Array(_))) => false,
            Expr::Array(_) => matches!(kind, ParamKind::ints | ParamKind::shape | ParamKind::axes | ParamKind::tensors),
            Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Bool(_) => kind == ParamKind::flag,
                syn::Lit::Str(_) => kind == ParamKind::text,
                syn::Lit::Float(_) => matches!(kind, ParamKind::tensor | ParamKind::float),
                _ => !matches!(kind, ParamKind::flag | ParamKind::text | ParamKind::dtype | ParamKind::tensors),
            },
            Expr::Reference(_) => matches!(kind, ParamKind::tensor | ParamKind::tensors),
            _ => true,
        },
    }
}

/// The text for a value found where an argument of this kind should be.
pub(super) fn found_text(kind: ParamKind, value: &Value) -> String {
    match (kind, value) {
        (ParamKind::tensors, Value::List(values)) => {
            let other = values.iter().find(|value| !matches!(value, Value::Tensor(_)));
            other.map_or("a list".to_string(), |other| format!("a list with {} in it", other.describe()))
        }
        (ParamKind::shape, Value::List(values)) => {
            let is_size = |value: &&Value| matches!(value, Value::Int(..) | Value::Dim(_) | Value::Constant { .. });
            let other = values.iter().find(|value| !is_size(value));
            other.map_or("a list".to_string(), |other| format!("a list with {} in it", other.describe()))
        }
        (ParamKind::dtype, Value::Constant { text, .. }) => format!("`{text}`"),
        (_, value) => value.describe().to_string(),
    }
}

/// A suggested replacement, if one is known.
pub(super) fn instead(method: &str, kind: ParamKind, value: &Value, expression: &Expr) -> String {
    let Some(text) = text_of(expression) else { return String::new() };
    let dtype = |name: &str| DType::from_name(name).map(|dtype| format!("DType::{}", dtype.name().to_uppercase()));
    let written = match (kind, value) {
        (ParamKind::float, Value::Int(number, _)) => Some(format!("{number}.0")),
        (ParamKind::int, Value::Float(number)) if number.wide.fract() == 0.0 => Some(format!("{:.0}", number.wide)),
        (ParamKind::flag, Value::Int(number @ 0..=1, _)) => Some((*number == 1).to_string()),
        (ParamKind::shape, Value::Tuple(_)) => Some(format!("[{}]", text.trim_matches(['(', ')']))),
        (ParamKind::shape, Value::Tensor(_)) => Some(format!("{text}.shape()")),
        (ParamKind::ints, Value::Int(number, _)) => Some(format!("[{number}]")),
        (ParamKind::tensors, Value::Tuple(_)) => Some(format!("&[{}]", text.trim_matches(['(', ')']))),
        (ParamKind::optional, Value::Tensor(_)) => Some(format!("Some(&{text})")),
        (ParamKind::dtype, Value::Text(name)) => dtype(name),
        (ParamKind::dtype, Value::Constant { text, .. }) => dtype(text),
        _ => None,
    };
    match (written, method, value) {
        (Some(written), ..) => format!("; write `{written}`"),
        (None, "narrow", Value::Dim(_)) => "; `.shrink(offset, shape)` and `.at((.., ..D))` take dims".to_string(),
        (None, "one_hot", Value::Dim(dim)) => {
            format!("; with a dim it is written `.unsqueeze(-1).eq(Tensor::arange({dim}))`")
        }
        (None, "repeat_interleave", Value::Dim(_)) => {
            "; `.unsqueeze(axis)`, `.expand(shape)` and `.reshape(shape)` take dims".to_string()
        }
        (None, "gather", Value::Tensor(_)) => "; the positions come first, `.gather(&positions, axis)`".to_string(),
        _ => String::new(),
    }
}

/// The arguments of `Tensor` functions that are not in the method table.
pub(super) fn usage(name: &str) -> &'static str {
    match name {
        "zeros" | "ones" => "a shape, as in `Tensor::zeros([B, 64])`",
        "full" => "a shape and a number, as in `Tensor::full([B, 64], 0.5)`",
        "full_of" => "a shape, a number and a dtype, as in `Tensor::full_of([B, 64], 1, DType::I64)`",
        "full_like" => "a number",
        "arange" => "the number of elements, as in `Tensor::arange(T)`",
        _ => "nothing",
    }
}
