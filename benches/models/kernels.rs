//! Kernels that decide about models on a CPU: rows of a table, running sums, a few rows times a weight in both layouts.

use crate::blocks::block::{Block, Memory, below, blocks, linear, normal, pass, weight};

/// Rows that are multiplied by one weight.
const ROWS: [usize; 6] = [1, 2, 3, 4, 8, 16];

pub fn blocks() -> Vec<Block> {
    let mut all = blocks! {
        "embedding-4096x768" (table = normal([50_257, 768]), tokens = below(50_257, [4096]))
            ours tokens.embedding(table);
            torch "F.embedding(tokens, table)";
            work [pass(2 * 4096 * 768).by(Memory::Rows)];

        "cumsum-1M" (x = normal([1 << 20]))
            ours x.cumsum(0);
            torch "x.cumsum(0)";
            work [pass(2 << 20)];
    };
    for rows in ROWS {
        let mut both: Vec<Block> = blocks! {
            "x768x3072" (x = normal([rows, 768]), w = weight([768, 3072], 768))
                ours x.matmul(w);
                torch "x @ w";
                work [linear(rows, 768, 3072)];

            "x768x3072-by-outputs" (x = normal([rows, 768]), w = weight([3072, 768], 768))
                ours x.matmul(w.transpose(0, 1));
                torch "x @ w.t()";
                work [linear(rows, 768, 3072)];
        };
        both.iter_mut().for_each(|block| block.name.insert_str(0, &format!("rows-{rows}")));
        all.extend(both);
    }
    all
}
