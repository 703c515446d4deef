//! Sums of products that packed dot products compute.

use tinyspec_ir::DType;

/// The element dtypes of packed words for a sum of dtype `sum` over products of `factors`, narrowest first.
pub(crate) fn word_dtypes(sum: DType, factors: [DType; 2]) -> Option<&'static [DType]> {
    let narrow = |dtype: DType| matches!(dtype, DType::I8 | DType::U8 | DType::I16);
    match (sum, factors) {
        (DType::I32, [DType::I8, DType::I8 | DType::U8] | [DType::U8, DType::I8]) => Some(&[DType::U8, DType::I16]),
        (DType::I32, [a, b]) if narrow(a) && narrow(b) => Some(&[DType::I16]),
        (DType::F32, [DType::BF16, DType::BF16]) => Some(&[DType::BF16]),
        _ => None,
    }
}
