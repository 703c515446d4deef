//! Products of matrices, as a broadcast Mul and a Reduce-Add (the spec's gemm).

use super::movement::{permute, reshape, transpose};
use super::{cast, dtype_of, promote, shape_of};
use crate::dim::show;
use crate::{Arg, Axes, Builder, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Matrix product with numpy's rules: vectors are rows or columns, leading axes broadcast.
pub fn matmul(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let (x, y) = promote(b, "matmul", x, y)?;
    let (x_shape, y_shape) = (shape_of(b, x), shape_of(b, y));
    let scalar = |shape: &Shape| {
        Error::new(ErrorKind::Rank, "matmul", format!("needs at least one axis, found {}", show(shape)))
            .help("`*` multiplies by a number")
    };
    let x_inner = x_shape.last().ok_or_else(|| scalar(&x_shape))?.clone();
    let y_inner_axis = y_shape.len().saturating_sub(2);
    let y_inner = y_shape.get(y_inner_axis).ok_or_else(|| scalar(&y_shape))?.clone();
    if x_inner != y_inner {
        return Err(Error::new(
            ErrorKind::Shape,
            "matmul",
            format!("inner dimensions differ: {x_inner} and {y_inner} (of {} and {})", show(&x_shape), show(&y_shape)),
        )
        .help("transpose one side with `.transpose(-1, -2)`, or check the order of the operands"));
    }
    // (…, M, 1, K) * (…, 1, N, K): the reduced axis last.
    let mut left = x_shape.clone();
    let y_is_vector = y_shape.len() == 1;
    let x_is_vector = x_shape.len() == 1;
    if !y_is_vector && !x_is_vector {
        left.insert(x_shape.len() - 1, Dim::from(1));
    }
    let x = reshape(b, x, &left)?;
    let y = if y_is_vector {
        y
    } else {
        let turned = transpose(b, y, -1, -2)?;
        let mut right = shape_of(b, turned);
        if !x_is_vector {
            right.insert(right.len() - 2, Dim::from(1));
        }
        reshape(b, turned, &right)?
    };
    let dtype = b.props(x).dtype;
    // Small numbers are multiplied, too, in what they are summed in.
    let (x, y) = (cast(b, x, dtype.accumulator())?, cast(b, y, dtype.accumulator())?);
    let products = b.alu(Op::Mul, &[x, y]).map_err(|error| match error.kind() {
        ErrorKind::Shape => {
            let message = format!("leading axes do not broadcast: {} and {}", show(&x_shape), show(&y_shape));
            Error::new(ErrorKind::Shape, "matmul", message)
        }
        _ => error.in_op("matmul"),
    })?;
    let last = shape_of(b, products).len() - 1;
    let sum = b.add(Op::Reduce, &[products], Arg::Reduce { op: Op::Add, axes: Axes::from_iter([last as u32]) })?;
    let mut shape = shape_of(b, sum);
    shape.pop();
    let product = reshape(b, sum, &shape)?;
    if dtype.is_float() { cast(b, product, dtype) } else { Ok(product) }
}

/// Inner product along the last axes: [`matmul`] under its other name.
pub fn dot(b: &mut dyn Builder, x: NodeId, y: NodeId) -> Result<NodeId> {
    matmul(b, x, y).map_err(|error| error.in_op("dot"))
}

/// `x @ w + bias`.
pub fn linear(b: &mut dyn Builder, x: NodeId, w: NodeId, bias: NodeId) -> Result<NodeId> {
    let product = matmul(b, x, w).map_err(|error| error.in_op("linear"))?;
    super::arithmetic::add(b, product, bias).map_err(|error| error.in_op("linear"))
}

/// Sum of products by an equation such as `"bij,bjk->bik"`; `...` stands for leading axes that broadcast.
pub fn einsum(b: &mut dyn Builder, equation: &str, tensors: &[NodeId]) -> Result<NodeId> {
    let wrong = |message: String| {
        Error::new(ErrorKind::Value, "einsum", message).help("an equation reads like `ij,jk->ik`, one term a tensor")
    };
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs.to_string(), Some(output.to_string())),
        None => (equation.clone(), None),
    };
    let terms: Vec<&str> = inputs.split(',').collect();
    if terms.len() != tensors.len() {
        return Err(wrong(format!("`{equation}` has {} terms for {} tensors", terms.len(), tensors.len())));
    }
    for term in terms.iter().copied().chain(output.as_deref()) {
        if !term.replacen("...", "", 1).chars().all(|label| label.is_ascii_alphabetic()) {
            return Err(wrong(format!("`{term}` in `{equation}` is not made of letters and one `...`")));
        }
    }
    // Axes hidden in `...` get names of their own, no letters, right-aligned.
    let mut ellipsis = 0;
    for (term, &x) in terms.iter().zip(tensors) {
        if term.contains("...") {
            ellipsis = ellipsis.max((shape_of(b, x).len() + 3).saturating_sub(term.len()));
        }
    }
    if ellipsis > 32 {
        return Err(wrong(format!("`...` stands for {ellipsis} axes in `{equation}`, at most 32")));
    }
    let hidden = |count: usize| (ellipsis - count..ellipsis).map(|axis| char::from(axis as u8));
    let expand_term = |term: &str, rank: usize| -> Vec<char> {
        match term.split_once("...") {
            Some((before, after)) => {
                let count = rank.saturating_sub(before.len() + after.len()).min(ellipsis);
                before.chars().chain(hidden(count)).chain(after.chars()).collect()
            }
            None => term.chars().collect(),
        }
    };
    let labels: Vec<Vec<char>> =
        terms.iter().zip(tensors).map(|(term, &x)| expand_term(term, shape_of(b, x).len())).collect();
    let mut order: Vec<char> = labels.iter().flatten().copied().collect();
    order.sort_unstable();
    order.dedup();
    let output: Vec<char> = match output {
        Some(output) => expand_term(&output, usize::MAX),
        None => {
            let seen = |label: &char| labels.iter().flatten().filter(|other| *other == label).count();
            order.iter().copied().filter(|label| label.is_ascii_control() || seen(label) == 1).collect()
        }
    };
    if let Some(label) = output.iter().find(|label| !order.contains(label)) {
        return Err(wrong(format!("`{label}` of the result is in no term of `{equation}`")));
    }
    let repeated = output.iter().enumerate().find(|(position, label)| output[..*position].contains(label));
    if let Some((_, label)) = repeated {
        return Err(wrong(format!("the result of `{equation}` has `{label}` twice")));
    }
    let summed: Vec<i64> =
        (0..order.len()).filter(|&axis| !output.contains(&order[axis])).map(|axis| axis as i64).collect();
    // Small numbers are multiplied, too, in what they are summed in.
    let of_sum = |dtype: DType| if summed.is_empty() { dtype } else { dtype.accumulator() };
    let mut narrow: Option<DType> = None;
    let mut product: Option<NodeId> = None;
    for (term, &x) in labels.iter().zip(tensors) {
        let dtype = dtype_of(b, x);
        narrow = Some(narrow.map_or(dtype, |other| other.promote(dtype).unwrap_or(dtype)));
        let x = cast(b, x, of_sum(dtype))?;
        let shape = shape_of(b, x);
        if term.len() != shape.len() {
            return Err(wrong(format!("a term of {} axes for {}", term.len(), show(&shape))));
        }
        let (x, term) = diagonals(b, x, term.clone())?;
        let mut sorted: Vec<(char, i64)> = term.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let x = permute(b, x, &sorted.iter().map(|&(_, axis)| axis).collect::<Vec<_>>())?;
        let shape = shape_of(b, x);
        let mut dims = shape.iter();
        let full: Shape = order
            .iter()
            .map(|label| if term.contains(label) { dims.next().cloned().unwrap_or(Dim::from(1)) } else { Dim::from(1) })
            .collect();
        let x = reshape(b, x, &full)?;
        product = Some(match product {
            Some(product) => super::arithmetic::mul(b, product, x).map_err(|error| error.in_op("einsum"))?,
            None => x,
        });
    }
    let product = product.ok_or_else(|| wrong("no tensors".to_string()))?;
    let total = super::reduce::sum(b, product, Some(&summed), false)?;
    let total = match narrow.filter(|narrow| narrow.is_float()) {
        Some(narrow) => cast(b, total, narrow)?,
        None => total,
    };
    let kept: Vec<char> = order.into_iter().filter(|label| output.contains(label)).collect();
    let positions: Option<Vec<i64>> =
        output.iter().map(|label| kept.iter().position(|other| other == label).map(|axis| axis as i64)).collect();
    permute(b, total, &positions.unwrap_or_default())
}

/// Axes that share a label become their diagonal: all but where the positions agree is masked, then summed.
fn diagonals(b: &mut dyn Builder, mut x: NodeId, mut labels: Vec<char>) -> Result<(NodeId, Vec<char>)> {
    while let Some((first, second)) = (0..labels.len())
        .flat_map(|i| (i + 1..labels.len()).map(move |j| (i, j)))
        .find(|&(i, j)| labels[i] == labels[j])
    {
        let shape = shape_of(b, x);
        let mut positions = [NodeId(0); 2];
        for (position, axis) in positions.iter_mut().zip([first, second]) {
            let range = super::creation::arange_dim(b, &shape[axis], DType::I32)?;
            let mut wide: Shape = std::iter::repeat_n(Dim::from(1), shape.len()).collect();
            wide[axis] = shape[axis].clone();
            *position = reshape(b, range, &wide)?;
        }
        let same = super::arithmetic::eq(b, positions[0], positions[1])?;
        let zero = super::like(b, x, 0.0);
        let masked = b.alu(Op::Where, &[same, x, zero])?;
        x = super::reduce::sum(b, masked, Some(&[second as i64]), false)?;
        labels.remove(second);
    }
    Ok((x, labels))
}
