//! Sums of products by an equation of labels. Of more than two tensors the pair goes first whose product frees the most
//! memory (the greedy order of opt_einsum: Smith and Gray, 2018), so that a chain of matrices is a chain of products.

use super::movement::{permute, reshape};
use super::{cast, dtype_of, shape_of, with_bias};
use crate::dim::show;
use crate::{Builder, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// A tensor whose axes have labels, no two the same.
struct Labelled {
    x: NodeId,
    labels: Vec<char>,
}

/// The labels of each term, and those of the result.
struct Equation {
    terms: Vec<Vec<char>>,
    output: Vec<char>,
}

/// Sum of products by an equation such as `"bij,bjk->bik"`; `...` stands for leading axes that broadcast.
pub fn einsum(b: &mut dyn Builder, equation: &str, tensors: &[NodeId]) -> Result<NodeId> {
    affine(b, equation, tensors, None)
}

/// [`einsum`] plus a bias if there is one: rounded once.
pub(super) fn affine(b: &mut dyn Builder, equation: &str, tensors: &[NodeId], bias: Option<NodeId>) -> Result<NodeId> {
    let Equation { terms, output } = Equation::of(b, equation, tensors)?;
    let is_sum = terms.iter().flatten().any(|label| !output.contains(label));
    // Narrow dtypes are also multiplied in the accumulator's dtype.
    let of_sum = |dtype: DType| if is_sum { dtype.accumulator() } else { dtype };
    let mut narrow: Option<DType> = None;
    let mut operands = Vec::new();
    for (labels, &x) in terms.into_iter().zip(tensors) {
        let dtype = dtype_of(b, x);
        narrow = Some(narrow.map_or(dtype, |other| other.promote(dtype).unwrap_or(dtype)));
        let x = cast(b, x, of_sum(dtype))?;
        operands.push(diagonals(b, Labelled { x, labels })?);
    }
    // Without a sum there is nothing to do early.
    while is_sum && operands.len() > 2 {
        let [first, second] = cheapest(b, &operands, &output);
        let (second, first) = (operands.remove(second), operands.remove(first));
        let kept = |label| is_needed(label, &operands, &output);
        let product = contracted(b, [&first, &second], kept)?;
        operands.push(product);
    }
    let total = contracted(b, &operands, |label| output.contains(&label))?;
    let place = |label: &char| total.labels.iter().position(|other| other == label).map(|axis| axis as i64);
    let order: Option<Vec<i64>> = output.iter().map(place).collect();
    let sum = permute(b, total.x, &order.unwrap_or_default())?;
    let dtype = narrow.unwrap_or_else(|| dtype_of(b, sum));
    with_bias(b, "einsum", sum, dtype, bias)
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Value, "einsum", message).help("an equation reads like `ij,jk->ik`, one term a tensor")
}

fn mismatch(message: String, help: &str) -> Error {
    Error::new(ErrorKind::Shape, "einsum", message).help(help)
}

impl Equation {
    fn of(b: &dyn Builder, text: &str, tensors: &[NodeId]) -> Result<Equation> {
        let equation: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (inputs, output) = match equation.split_once("->") {
            Some((inputs, output)) => (inputs.to_string(), Some(output.to_string())),
            None => (equation.clone(), None),
        };
        let texts: Vec<&str> = inputs.split(',').collect();
        if texts.len() != tensors.len() {
            return Err(wrong(format!("`{equation}` has {} terms for {} tensors", texts.len(), tensors.len())));
        }
        for term in texts.iter().copied().chain(output.as_deref()) {
            if !term.replacen("...", "", 1).chars().all(|label| label.is_ascii_alphabetic()) {
                return Err(wrong(format!("`{term}` in `{equation}` is not made of letters and one `...`")));
            }
        }
        // Axes hidden in `...` get names of their own, no letters, right-aligned.
        let mut ellipsis = 0;
        for (term, &x) in texts.iter().zip(tensors) {
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
        let terms: Vec<Vec<char>> =
            texts.iter().zip(tensors).map(|(term, &x)| expand_term(term, shape_of(b, x).len())).collect();
        for ((text, labels), &x) in texts.iter().zip(&terms).zip(tensors) {
            let shape = shape_of(b, x);
            if labels.len() != shape.len() {
                let count = labels.len();
                let message = format!("`{text}` in `{equation}` has {count} axes, but the tensor is {}", show(&shape));
                return Err(mismatch(message, "a term has a letter for each axis, or `...` for those that are left"));
            }
        }
        let order = sorted(terms.iter().flatten());
        for label in order.iter().filter(|label| label.is_ascii_alphabetic()) {
            let mut lengths = terms.iter().zip(tensors).flat_map(|(term, &x)| {
                let lengths = term.iter().zip(shape_of(b, x));
                lengths
                    .filter(|(other, length)| *other == label && !length.is(1))
                    .map(|(_, length)| length)
                    .collect::<Vec<_>>()
            });
            if let Some(first) = lengths.next()
                && let Some(other) = lengths.find(|length| *length != first)
            {
                let message = format!("`{label}` of `{equation}` is an axis of {first} and one of {other}");
                return Err(mismatch(message, "axes of the same letter have the same size"));
            }
        }
        let output: Vec<char> = match output {
            Some(output) => expand_term(&output, usize::MAX),
            None => {
                let seen = |label: &char| terms.iter().flatten().filter(|other| *other == label).count();
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
        Ok(Equation { terms, output })
    }
}

fn sorted<'a>(labels: impl Iterator<Item = &'a char>) -> Vec<char> {
    let mut order: Vec<char> = labels.copied().collect();
    order.sort_unstable();
    order.dedup();
    order
}

fn is_needed(label: char, others: &[Labelled], output: &[char]) -> bool {
    output.contains(&label) || others.iter().any(|other| other.labels.contains(&label))
}

/// The two operands, in their order, whose product takes the least memory beyond theirs; those that share no label come
/// last.
fn cheapest(b: &dyn Builder, operands: &[Labelled], output: &[char]) -> [usize; 2] {
    /// The assumed length of a dim that is not a number.
    const TYPICAL: i64 = 1024;
    let mut lengths = [1.0f64; 128];
    for operand in operands {
        for (&label, dim) in operand.labels.iter().zip(&b.props(operand.x).shape) {
            let length = dim.as_const().unwrap_or(TYPICAL) as f64;
            lengths[label as usize] = lengths[label as usize].max(length);
        }
    }
    let size = |labels: &[char]| labels.iter().map(|&label| lengths[label as usize]).product::<f64>();
    let mut best = ([0, 1], (true, f64::INFINITY));
    for second in 1..operands.len() {
        for first in 0..second {
            let (one, two) = (&operands[first].labels, &operands[second].labels);
            let is_apart = !one.iter().any(|label| two.contains(label));
            let stays = |label: &char| {
                let other = |(number, operand): (usize, &Labelled)| {
                    number != first && number != second && operand.labels.contains(label)
                };
                output.contains(label) || operands.iter().enumerate().any(other)
            };
            let product: Vec<char> = sorted(one.iter().chain(two)).into_iter().filter(stays).collect();
            let cost = (is_apart, size(&product) - size(one) - size(two));
            if cost < best.1 {
                best = ([first, second], cost);
            }
        }
    }
    best.0
}

/// The product of all, summed over the labels that are not kept; its labels ascend.
fn contracted<'a>(
    b: &mut dyn Builder,
    operands: impl IntoIterator<Item = &'a Labelled> + Copy,
    kept: impl Fn(char) -> bool,
) -> Result<Labelled> {
    let order = sorted(operands.into_iter().flat_map(|operand| &operand.labels));
    let mut product: Option<NodeId> = None;
    for Labelled { x, labels } in operands {
        let mut axes: Vec<(char, i64)> = labels.iter().copied().zip(0..).collect();
        axes.sort_unstable();
        let x = permute(b, *x, &axes.iter().map(|&(_, axis)| axis).collect::<Vec<_>>())?;
        let shape = shape_of(b, x);
        let mut dims = shape.iter();
        let mut dim = |label: &char| match labels.contains(label) {
            true => dims.next().cloned().unwrap_or(Dim::from(1)),
            false => Dim::from(1),
        };
        let full: Shape = order.iter().map(&mut dim).collect();
        let x = reshape(b, x, &full)?;
        product = Some(match product {
            Some(product) => super::arithmetic::mul(b, product, x).map_err(|error| error.in_op("einsum"))?,
            None => x,
        });
    }
    let product = product.ok_or_else(|| wrong("no tensors".to_string()))?;
    let summed: Vec<i64> = (0..order.len()).filter(|&axis| !kept(order[axis])).map(|axis| axis as i64).collect();
    let x = super::reduce::sum(b, product, Some(&summed), false)?;
    Ok(Labelled { x, labels: order.into_iter().filter(|&label| kept(label)).collect() })
}

/// Axes that share a label become their diagonal: all but where the positions agree is masked, then summed.
fn diagonals(b: &mut dyn Builder, operand: Labelled) -> Result<Labelled> {
    let Labelled { mut x, mut labels } = operand;
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
    Ok(Labelled { x, labels })
}
