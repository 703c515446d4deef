//! Partial selection sort: each pass over a row finds the successor of the last element found. One kernel, with vectorised passes,
//! serves all lengths.

use crate::kernel::WrittenKernel;
use crate::ops::arithmetic::eq;
use crate::ops::creation::zeros;
use crate::ops::loops::{Loops, Memory, Size};
use crate::ops::sort::Words;
use crate::ops::{dtype_of, like, shape_of};
use crate::{Arg, AxisType, Builder, Const, DType, Dim, NodeId, Op, Result};

/// Columns (rows, k) of the first `k` of the words (rows, length), in order (i32).
pub(super) fn columns(b: &mut dyn Builder, words: &Words, k: i64) -> Result<NodeId> {
    // The greatest of the complements is the first of the words.
    let complements = words.map(|word| {
        let ones = like(b, word, -1.0);
        b.alu(Op::Xor, &[word, ones])
    })?;
    let shape = shape_of(b, complements.parts()[0]);
    let columns = zeros(b, &[shape[0].clone(), Dim::from(k)], DType::I32)?;
    let (rows, length) = (b.dim(&shape[0])?, b.dim(&shape[1])?);
    let dtypes: Vec<DType> = complements.parts().iter().map(|&word| dtype_of(b, word)).collect();
    let sources = [&[columns], complements.parts(), &[rows, length]].concat();
    Ok(kernel(&dtypes, k)?.call(b, &sources)?[0])
}

/// The kernel for words whose parts have these dtypes. LOCAL memory holds the complement of the last word found.
fn kernel(dtypes: &[DType], k: i64) -> Result<WrittenKernel> {
    let (row, found) = ([Size::With(0, 1)], [Size::Number(k)]);
    let inputs: Vec<_> =
        ["first", "second"].into_iter().zip(dtypes).map(|(name, &dtype)| (name, dtype, &row[..])).collect();
    let (mut w, memories) = Loops::new(&[("columns", DType::I32, &found)], &inputs)?;
    let (columns, words) = (memories[0], &memories[1..]);
    let last = dtypes.iter().map(|&dtype| w.local(dtype, &[1])).collect::<Result<Vec<Memory>>>()?;
    let row = w.open(w.count, AxisType::Global)?;
    let (zero, one) = (w.graph.index(0), w.graph.index(1));
    for (&last, &dtype) in last.iter().zip(dtypes) {
        let none = w.graph.constant(Const::int(dtype, 0));
        w.store(last, &[zero], none, None)?;
    }
    let trips = w.graph.index(k);
    let number = w.serial(trips)?;
    let is_first = w.less(number, one)?;
    let before = last.iter().map(|&last| w.load(last, &[zero], None)).collect::<Result<Vec<NodeId>>>()?;
    let mut best: Vec<NodeId> = Vec::new();
    while best.len() < words.len() {
        let element = w.terms(w.groups, AxisType::Reduce)?;
        let own = words.iter().map(|&word| w.load(word, &[row, element], None)).collect::<Result<Vec<NodeId>>>()?;
        // Candidates come after the last element found, and equal the best in the parts that are known.
        let mut follows = w.less(own[own.len() - 1], before[own.len() - 1])?;
        for (&own, &before) in own.iter().zip(&before).rev().skip(1) {
            let (is_after, is_same) = (w.less(own, before)?, eq(&mut w.graph, own, before)?);
            let tie = w.graph.alu(Op::And, &[is_same, follows])?;
            follows = w.graph.alu(Op::Or, &[is_after, tie])?;
        }
        let mut counts = w.graph.alu(Op::Or, &[is_first, follows])?;
        for (&own, &best) in own.iter().zip(&best) {
            let is_best = eq(&mut w.graph, own, best)?;
            counts = w.graph.alu(Op::And, &[counts, is_best])?;
        }
        let own = own[best.len()];
        let least = like(&mut w.graph, own, f64::NEG_INFINITY);
        let value = w.graph.alu(Op::Where, &[counts, own, least])?;
        best.push(w.reduce(Op::Max, value, &[element])?);
    }
    for (&last, &best) in last.iter().zip(&best) {
        w.store(last, &[zero], best, None)?;
    }
    let complement = best[best.len() - 1];
    let ones = like(&mut w.graph, complement, -1.0);
    let word = w.graph.alu(Op::Xor, &[complement, ones])?;
    // The low half is the column.
    let column = w.graph.add(Op::Cast, &[word], Arg::DType(DType::I32))?;
    w.store(columns, &[row, number], column, None)?;
    w.close(2)?;
    w.finish("first")
}
