//! Scaled dot-product attention.

use super::arithmetic::{add, mul};
use super::movement::{expand, reshape, transpose, tril, unsqueeze};
use super::options::Attention;
use super::{cast, dtype_of, like, reduce, shape_of};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Scaled dot-product attention: `softmax(q kᵀ / √d) v`; `causal` hides later keys. A query to which all keys are hidden
/// gets 0. Small floats are computed with in f32.
pub fn sdpa(b: &mut dyn Builder, q: NodeId, k: NodeId, v: NodeId, causal: bool) -> Result<NodeId> {
    attend(b, "sdpa", [q, k, v], None, None, Attention { causal, ..Attention::default() })
}

/// [`sdpa`] with a mask: a bool one keeps where true, a float one is added to the scores.
pub fn sdpa_mask(b: &mut dyn Builder, q: NodeId, k: NodeId, v: NodeId, mask: NodeId) -> Result<NodeId> {
    attend(b, "sdpa_mask", [q, k, v], Some(mask), None, Attention::default())
}

/// [`sdpa`] with a mask as [`sdpa_mask`] has it, and with options; `key` draws what dropout takes away.
pub fn sdpa_with(
    b: &mut dyn Builder,
    q: NodeId,
    k: NodeId,
    v: NodeId,
    mask: Option<NodeId>,
    key: Option<NodeId>,
    options: Attention,
) -> Result<NodeId> {
    attend(b, "sdpa_with", [q, k, v], mask, key, options)
}

/// The sum of the values by the weights that scores give; of the dtype that the inputs have in common.
fn attend(
    b: &mut dyn Builder,
    op: &str,
    [q, k, v]: [NodeId; 3],
    mask: Option<NodeId>,
    key: Option<NodeId>,
    options: Attention,
) -> Result<NodeId> {
    let dtype = dtype_of(b, q).promote(dtype_of(b, k)).and_then(|dtype| dtype.promote(dtype_of(b, v)));
    let queries = shape_of(b, q);
    let ([q, k, v], mask) = if options.grouped { grouped(b, op, [q, k, v], mask)? } else { ([q, k, v], mask) };
    let mut scores = scores(b, op, q, k, options.scale)?;
    if let Some(mask) = mask {
        let masked = if dtype_of(b, mask) == DType::Bool {
            let hidden = like(b, scores, f64::NEG_INFINITY);
            b.alu(Op::Where, &[mask, scores, hidden])
        } else {
            add(b, scores, mask)
        };
        scores = masked.map_err(|error| match error.kind() {
            ErrorKind::Shape => {
                let message =
                    format!("a mask of {} for scores of {}", show(&shape_of(b, mask)), show(&shape_of(b, scores)));
                Error::new(ErrorKind::Shape, op, message).help("it broadcasts to (…, queries, keys)")
            }
            _ => error.in_op(op),
        })?;
    }
    if options.causal {
        let zero_one = b.constant(Const::int(DType::Bool, 1));
        let shape = shape_of(b, scores);
        let all = expand(b, zero_one, &shape[shape.len() - 2..])?;
        let keep = tril(b, all, 0)?;
        let hidden = like(b, scores, f64::NEG_INFINITY);
        scores = b.alu(Op::Where, &[keep, scores, hidden])?;
    }
    let mut weights = reduce::weights(b, scores)?;
    if options.dropout != 0.0 {
        let Some(key) = key else {
            let error = Error::new(ErrorKind::Value, op, format!("a dropout of {} without a key", options.dropout));
            return Err(error.help("`Some(&Tensor::random_key())` draws what it takes away"));
        };
        weights = super::draw::dropout(b, weights, key, options.dropout).map_err(|error| error.in_op(op))?;
    }
    let (keys, values) = (shape_of(b, k), shape_of(b, v));
    if values.len() < 2 || keys[keys.len() - 2] != values[values.len() - 2] {
        let message = format!("keys of {} and values of {} differ in number", show(&keys), show(&values));
        return Err(Error::new(ErrorKind::Shape, op, message).help("a value for each key, axis -2"));
    }
    let v = wide(b, v)?;
    let value = super::matmul::matmul(b, weights, v).map_err(|error| error.in_op(op))?;
    let value = match dtype {
        Some(dtype) if dtype.is_float() => cast(b, value, dtype)?,
        _ => value,
    };
    if !options.grouped {
        return Ok(value);
    }
    // The heads of a group beside each other again.
    let mut shape = shape_of(b, value);
    let last = shape.len();
    shape.remove(last - 3);
    shape[last - 4] = queries[queries.len() - 3].clone();
    reshape(b, value, &shape)
}

fn scores(b: &mut dyn Builder, op: &str, q: NodeId, k: NodeId, scale: Option<f64>) -> Result<NodeId> {
    let shape = shape_of(b, q);
    if let Some(vector) = [&shape, &shape_of(b, k)].into_iter().find(|shape| shape.len() < 2) {
        let message = format!("needs (…, positions, width), found {}", show(vector));
        return Err(Error::new(ErrorKind::Rank, op, message).help("`unsqueeze(0)` makes a vector one position"));
    }
    let key = shape_of(b, k);
    if shape.last() != key.last() {
        let message = format!("queries of {} and keys of {} differ in width", show(&shape), show(&key));
        return Err(Error::new(ErrorKind::Shape, op, message).help("their last axes are equal"));
    }
    let (q, k) = (wide(b, q)?, wide(b, k)?);
    let turned = transpose(b, k, -1, -2)?;
    let product = super::matmul::matmul(b, q, turned).map_err(|error| error.in_op(op))?;
    let dtype = dtype_of(b, product);
    let scale = match scale {
        Some(scale) => super::given(b, product, scale),
        None => inverse_root(b, &shape[shape.len() - 1], dtype)?,
    };
    mul(b, product, scale)
}

/// `1 / √size`, of a size that has a name as exactly as of a number.
fn inverse_root(b: &mut dyn Builder, size: &Dim, dtype: DType) -> Result<NodeId> {
    if let Some(size) = size.as_const() {
        return Ok(b.number(Const::float(dtype, 1.0 / (size as f64).sqrt())));
    }
    let size = super::creation::size(b, size, DType::F64)?;
    let root = super::elementwise::sqrt(b, size)?;
    let inverse = super::elementwise::reciprocal(b, root)?;
    cast(b, inverse, dtype)
}

/// Heads of queries that share a head of keys and values, in an axis of their own behind the heads that all have: nothing is
/// copied.
fn grouped(
    b: &mut dyn Builder,
    op: &str,
    [q, k, v]: [NodeId; 3],
    mask: Option<NodeId>,
) -> Result<([NodeId; 3], Option<NodeId>)> {
    let shapes = [q, k, v].map(|x| shape_of(b, x));
    if let Some(flat) = shapes.iter().find(|shape| shape.len() < 3) {
        let message = format!("groups need (…, heads, positions, width), found {}", show(flat));
        return Err(Error::new(ErrorKind::Rank, op, message));
    }
    let [many, few, values] = shapes.each_ref().map(|shape| shape[shape.len() - 3].clone());
    let size = if few.bounds().0 > 0 { many.idiv(&few) } else { Dim::from(0) };
    if few != values || size.clone() * few.clone() != many {
        let message = format!("{many} heads of queries share {few} of keys and {values} of values");
        return Err(Error::new(ErrorKind::Shape, op, message)
            .help("keys and values have as many heads, queries a multiple of them"));
    }
    let split = |shape: &Shape| -> Shape {
        let (lead, rest) = shape.split_at(shape.len() - 3);
        lead.iter().chain([&few, &size]).chain(&rest[1..]).cloned().collect()
    };
    let q = reshape(b, q, &split(&shapes[0]))?;
    let (k, v) = (unsqueeze(b, k, -3)?, unsqueeze(b, v, -3)?);
    let mask = match mask {
        Some(mask) => {
            let shape = shape_of(b, mask);
            Some(match shape.len().checked_sub(3).map(|axis| &shape[axis]) {
                None => mask,
                Some(heads) if heads.is(1) => unsqueeze(b, mask, -3)?,
                Some(heads) if *heads == many => reshape(b, mask, &split(&shape))?,
                Some(heads) => {
                    let message = format!("a mask of {heads} heads for {many} heads of queries");
                    return Err(Error::new(ErrorKind::Shape, op, message));
                }
            })
        }
        None => None,
    };
    Ok(([q, k, v], mask))
}

/// A float in the type that sums of it have.
fn wide(b: &mut dyn Builder, x: NodeId) -> Result<NodeId> {
    let dtype = dtype_of(b, x);
    if dtype.is_float() { cast(b, x, dtype.accumulator()) } else { Ok(x) }
}
