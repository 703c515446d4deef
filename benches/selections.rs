//! Running Reduces, reads and writes at numbers that are data: compositions over all pairs, which become linear. Sizes
//! quadruple from row to row, so the share of the limit shows how the cost grows.

use tinyspec::{DType, Tensor};
use tinyspec_benches::limits::{ROW, Resource, TABLE_ROWS};

use crate::kernels::Workload;

/// Rows of the table of embeddings, and their length.
const WORDS: usize = TABLE_ROWS;
const WIDTH: usize = ROW;

pub fn workloads() -> Vec<Workload> {
    let mut all = Vec::new();
    for (name, elements) in [("64K", 64 << 10), ("256K", 256 << 10), ("1M", 1 << 20), ("4M", 4 << 20)] {
        all.push(Workload::bytes(
            &format!("cumsum/f32/{name}"),
            2 * elements,
            Resource::Copy(elements),
            &[&[elements]],
            |inputs| vec![inputs[0].cumsum(0)],
        ));
    }
    let (rows, columns) = (1024, 1024);
    let square = |name: &str, body: fn(&[Tensor]) -> Vec<Tensor>| {
        Workload::bytes(name, 2 * rows * columns, Resource::Copy(rows * columns), &[&[rows, columns]], body)
    };
    all.extend([
        square("cumsum/f32/1024x1024/rows", |inputs| vec![inputs[0].cumsum(1)]),
        square("cumsum/f32/1024x1024/columns", |inputs| vec![inputs[0].cumsum(0)]),
        square("cumsum/f32/1024x1024/reverse", |inputs| vec![inputs[0].flip([1]).cumsum(1).flip([1])]),
        square("cummax/f32/1024x1024/rows", |inputs| vec![inputs[0].cummax(1)]),
    ]);
    for tokens in [1024, 4096, 16384] {
        let (read, written) = (&[WORDS, WIDTH], &[tokens]);
        let moved = tokens * WIDTH;
        all.extend([
            Workload::bytes(
                &format!("embedding/f32/{tokens}x{WIDTH}"),
                2 * moved,
                Resource::Rows(tokens),
                &[read, written],
                |inputs| vec![numbers(&inputs[1]).embedding(&inputs[0])],
            ),
            // The one-hot composition, as the spec writes it.
            Workload::bytes(
                &format!("one_hot_gather/f32/{tokens}x{WIDTH}"),
                2 * moved,
                Resource::Rows(tokens),
                &[read, written],
                |inputs| {
                    let hot = numbers(&inputs[1]).unsqueeze(-1).eq(Tensor::arange(WORDS as i64)).unsqueeze(-1);
                    vec![hot.where_(inputs[0].unsqueeze(0), 0.0).sum(1, false)]
                },
            ),
        ]);
    }
    all
}

/// Numbers of words, far from each other: those of [`tinyspec_benches::limits::place`].
fn numbers(data: &Tensor) -> Tensor {
    let count = data.shape()[0].as_const().unwrap_or(1);
    let scattered = ((data + 0.5) * 251.0).round().cast(DType::I32) * 200;
    (scattered + Tensor::arange(count) % 200).contiguous()
}
