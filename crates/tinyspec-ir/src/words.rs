//! Words of packed numbers, the operands of a packed dot product (Wmma).

use crate::{DType, Graph, NodeId, Op};

/// The numbers packed into a word, given the dtypes of the word and of the sum: two I16, two BF16, or four bytes. Bytes are unsigned in
/// the first operand and signed in the second; the result U8 stands for this pair.
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

/// The number of such numbers in a word.
pub const fn count(numbers: DType) -> usize {
    size_of::<u32>() / numbers.size()
}

/// The dtype of the numbers packed into the words of a Wmma; `None` for another op.
pub fn of(graph: &Graph, node: NodeId) -> Option<DType> {
    let (Op::Wmma, &[word, _, sum]) = (graph.op(node), graph.sources(node)) else { return None };
    numbers(graph.dtype(word), graph.dtype(sum))
}
