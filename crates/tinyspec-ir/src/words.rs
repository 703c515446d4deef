//! Words of several numbers, which one instruction multiplies and adds to a sum (Wmma).

use crate::{DType, Graph, NodeId, Op};

/// What words of this dtype hold, where the products are added to a sum of that one: two I16, two BF16, or four bytes. Of these
/// the first word's are U8, the second word's I8; U8 stands for both.
///
/// ```
/// use tinyspec_ir::{DType, words::numbers};
/// assert_eq!(numbers(DType::U32, DType::F32), Some(DType::BF16));
/// assert_eq!(numbers(DType::I32, DType::I32), Some(DType::U8));
/// assert_eq!(numbers(DType::I32, DType::F32), None);
/// ```
pub const fn numbers(word: DType, sum: DType) -> Option<DType> {
    match (word, sum) {
        (DType::U32, DType::I32) => Some(DType::I16),
        (DType::U32, DType::F32) => Some(DType::BF16),
        (DType::I32, DType::I32) => Some(DType::U8),
        _ => None,
    }
}

/// What the words of a Wmma hold; none of another op.
pub fn of(graph: &Graph, node: NodeId) -> Option<DType> {
    let (Op::Wmma, &[word, _, sum]) = (graph.op(node), graph.sources(node)) else { return None };
    numbers(graph.dtype(word), graph.dtype(sum))
}
