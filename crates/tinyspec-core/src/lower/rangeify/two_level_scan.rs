//! Two-level scans, for running Reduces that a single thread would otherwise compute: scans within rows, in parallel,
//! and one over the totals of the rows.

use super::movement::dims;
use super::passes::simplify;
use super::split_reduce::replaced;
use tinyspec_backends::Target;
use tinyspec_ir::dim::shape;
use tinyspec_ir::ops::scan;
use tinyspec_ir::{Arg, Axes, Builder, Dim, Graph, NodeId, Op, Result};

/// When a second level pays for its extra kernels, and how it is built.
#[derive(Clone, Copy)]
struct Levels {
    /// The least length.
    long: i64,
    /// Independent running Reduces that keep all threads busy by themselves.
    busy: i64,
    /// The running Reduces of the rows are stored, and combined with what precedes each row afterwards. Otherwise the rows are
    /// reduced first, and each row is combined while it is scanned.
    keeps_rows: bool,
}

impl Levels {
    fn of(target: &Target) -> Option<Levels> {
        match (target.workgroups.is_some(), target.threads) {
            (true, _) => Some(Levels { long: 1024, busy: 4096, keeps_rows: true }),
            // Reading a row twice costs a core less than reading and writing it twice.
            (false, 2..) => Some(Levels { long: 1 << 17, busy: target.threads as i64, keeps_rows: false }),
            (false, _) => None,
        }
    }

    /// Elements of a row.
    fn row(self, length: i64) -> Option<i64> {
        if self.keeps_rows {
            return (1..).map(|bits| 1i64 << bits).find(|row| row * row >= length);
        }
        // A row length that does not divide the axis would need padding, and with it a copy of the result.
        (1 << 12..=1 << 14).rev().step_by(16).find(|row| length % row == 0)
    }
}

/// The graph with its long running Reduces in two levels, and its outputs; `None` if there are none.
pub(in super::super) fn two_level_scans(
    graph: &Graph,
    outputs: &[NodeId],
    target: &Target,
) -> Result<Option<(Graph, Vec<NodeId>)>> {
    let Some(kind) = Levels::of(target) else { return Ok(None) };
    let live = graph.reachable_outside_bodies(outputs);
    let mut scratch = graph.clone();
    if !live.iter().any(|&node| is_long(&mut scratch, node, kind).is_some()) {
        return Ok(None);
    }
    let replace = |result: &mut Graph, node: NodeId, new: &[NodeId]| match is_long(&mut scratch, node, kind) {
        Some((op, x, rows)) => levels(result, op, new[x.index()], rows, kind).map(Some),
        None => Ok(None),
    };
    replaced(graph, outputs, &live, replace).map(Some)
}

/// The op of a long running Reduce, its terms, and the number and length of its rows.
fn is_long(graph: &mut Graph, node: NodeId, kind: Levels) -> Option<(Op, NodeId, [i64; 2])> {
    let &Arg::Reduce { op, .. } = graph.arg(node) else { return None };
    let &[value] = graph.sources(node) else { return None };
    let &[_, wide, _] = graph.sources(value) else { return None };
    let (Op::Where, Op::Reshape) = (graph.op(value), graph.op(wide)) else { return None };
    let x = graph.source(wide, 0);
    let dims = dims(graph, x).ok()?;
    let (&length, others) = dims.split_last()?;
    let others: i64 = others.iter().product();
    if length < kind.long || others >= kind.busy || others == 0 {
        return None;
    }
    // Once simplified, equal compositions have the same form.
    let terms = scan::terms(graph, op, x).ok()?;
    if !graph.is_equal(terms, value) {
        let simple = simplify(graph, &[terms]).ok()?;
        if !graph.is_equal(simple[0], value) {
            return None;
        }
    }
    let row = kind.row(length)?;
    Some((op, x, [(length + row - 1) / row, row]))
}

/// A running Reduce along the last axis; the result has an additional axis of size 1.
fn levels(graph: &mut Graph, op: Op, x: NodeId, [count, row]: [i64; 2], kind: Levels) -> Result<NodeId> {
    use tinyspec_ir::ops::movement::{narrow, pad, reshape};
    let scan = |graph: &mut Graph, x: NodeId| match op {
        Op::Max => scan::cummax(graph, x, -1),
        Op::Mul => scan::cumprod(graph, x, -1),
        _ => scan::cumsum(graph, x, -1),
    };
    let nothing = match op {
        Op::Max => f64::NEG_INFINITY,
        Op::Mul => 1.0,
        _ => 0.0,
    };
    let of = |graph: &Graph, node: NodeId| dims(graph, node).map(|dims| dims.to_vec());
    let padded = |graph: &mut Graph, x: NodeId, offset: i64, length: i64| {
        let (mut offsets, mut size) = (vec![0; of(graph, x)?.len()], of(graph, x)?);
        if let (Some(first), Some(last)) = (offsets.last_mut(), size.last_mut()) {
            (*first, *last) = (offset, length);
        }
        pad(graph, x, &shape(&offsets), &shape(&size), nothing)
    };
    let whole = of(graph, x)?;
    let length = whole.last().copied().unwrap_or(0);
    let lead = &whole[..whole.len().saturating_sub(1)];
    let rows = padded(graph, x, 0, count * row)?;
    let rows = reshape(graph, rows, &shape(&[lead, &[count, row]].concat()))?;
    let mut within = scan(graph, rows)?;
    let totals = if kind.keeps_rows {
        // Stored before the scan over the rows.
        within = graph.add(Op::Contiguous, &[within], Arg::Stored)?;
        narrow(graph, within, -1, row - 1, 1)?
    } else {
        let axes = Axes::from_iter([lead.len() as u32 + 1]);
        let totals = graph.add(Op::Reduce, &[rows], Arg::Reduce { op, axes })?;
        graph.add(Op::Contiguous, &[totals], Arg::Stored)?
    };
    let totals = reshape(graph, totals, &shape(&[lead, &[count]].concat()))?;
    let totals = scan(graph, totals)?;
    let totals = graph.add(Op::Contiguous, &[totals], Arg::Stored)?;
    let before = narrow(graph, totals, -1, 0, count - 1)?;
    let before = padded(graph, before, 1, count)?;
    let before = reshape(graph, before, &shape(&[lead, &[count, 1]].concat()))?;
    let mut all = graph.alu(op, &[before, within])?;
    if !kind.keeps_rows {
        // Stored in rows, so that the kernel has a loop over rows and the combination is its epilogue.
        all = graph.add(Op::Contiguous, &[all], Arg::Stored)?;
    }
    let all = reshape(graph, all, &shape(&[lead, &[count * row]].concat()))?;
    let all = narrow(graph, all, -1, 0, length)?;
    let kept: Vec<Dim> = whole.iter().map(|&size| Dim::from(size)).chain([Dim::from(1)]).collect();
    reshape(graph, all, &kept)
}
