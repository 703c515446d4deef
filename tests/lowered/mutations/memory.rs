//! Contents of a kernel's buffers.

use tinyspec::DType;
use tinyspec::backends::interpreter::array::Array;
use tinyspec::ir::dim::static_shape;
use tinyspec::ir::{Arg, Builder, Const, Graph, NodeId, Op};

/// An array a slot.
pub type Contents = Vec<Array>;

/// Several sets of values: small whole numbers, fractions, negative ones, large ones, ascending, descending, ties, fractions of large
/// numbers, and with nan, -0 and infinities among them.
pub fn of(graph: &Graph, sink: NodeId) -> Vec<Contents> {
    (0..12).map(|filling| filled(graph, sink, filling)).collect()
}

fn filled(graph: &Graph, sink: NodeId, filling: u64) -> Contents {
    let mut dice = fastrand::Rng::with_seed(filling);
    let mut slots: Vec<Array> = Vec::new();
    let mut params: Vec<(u32, NodeId)> = Vec::new();
    for node in graph.reachable(&[sink]) {
        if let (Op::Param, Arg::Param { slot, dtype, .. }) = (graph.op(node), graph.arg(node))
            && *dtype != DType::Index
        {
            params.push((*slot, node));
        }
    }
    params.sort_unstable();
    for (slot, node) in params {
        while slots.len() < slot as usize {
            slots.push(Array::scalar(Const::int(DType::F32, 0)));
        }
        let dtype = graph.dtype(node);
        let count = static_shape(&graph.props(node).shape).map_or(0, |dims| dims.iter().product::<i64>()) as usize;
        let mut value = |position: usize| match filling {
            0 => Const::int(dtype, dice.i128(0..7)),
            1 => Const::float(dtype, (dice.f64() - 0.5) * 4.0),
            2 => Const::float(dtype, -dice.f64() * 3.0 - 0.5),
            3 => Const::float(dtype, dice.f64() * 3.0 + 0.5),
            4 => Const::float(dtype, position as f64 * 0.25),
            5 => Const::float(dtype, (count - position) as f64 * 0.25),
            6 if dtype.is_float() => {
                Const::float(dtype, [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY, 0.0, 1.0, -1.0][dice.usize(..7)])
            }
            8 => Const::int(dtype, dice.i128(0..2)),
            9 => Const::float(dtype, (dice.f64() - 0.5) * 1e4),
            // Close to overflow and to underflow.
            10 if dtype.is_float() => Const::float(dtype, [3e38, -3e38, 6e4, -6e4, 1e-40, -1e-7, 1.0][dice.usize(..7)]),
            // Ties of fractions.
            11 => Const::float(dtype, dice.i128(-4..5) as f64 * 0.5),
            _ => Const::int(dtype, dice.i128(-300..300)),
        };
        let lanes = (0..count).map(|position| value(position).bits).collect();
        slots.extend(Array::new(dtype, &[count], lanes));
    }
    slots
}

/// Equal bit for bit, any nan like any other.
pub fn same(a: &Contents, b: &Contents) -> bool {
    let equal = |a: &Array, b: &Array| {
        a.dtype() == b.dtype()
            && a.lanes().len() == b.lanes().len()
            && a.constants().zip(b.constants()).all(|(a, b)| {
                a == b || matches!((a.as_float(), b.as_float()), (Some(a), Some(b)) if a.is_nan() && b.is_nan())
            })
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
}
