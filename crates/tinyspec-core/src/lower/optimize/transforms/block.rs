//! Block: online-softmax tiling.

use super::{Order, Transform, operand};
use crate::lower::optimize::space::OwnLoops;
use crate::lower::optimize::{Blocking, Refusal, Space};
use std::fmt;

/// Sums over a matrix of products, as in attention: strips of lanes, and blocks of the matrix that are never in memory.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Block(
    /// How large strips and blocks are.
    pub Blocking,
);

/// Vectors of the strips that the search tries, rows of their tiles, and tiles of their blocks.
const STRIPS: [i64; 5] = [1, 2, 3, 4, 6];
const ROWS: [i64; 8] = [2, 3, 4, 6, 8, 10, 12, 14];
const IN_A_BLOCK: [i64; 6] = [2, 4, 8, 16, 32, 64];

impl Transform for Block {
    const NAME: &'static str = "block";
    const OPERANDS: &'static str = "vectors, rows, tiles";
    const EFFECT: &'static str = "computes sums over a matrix of products, as in attention, a strip of vectors at a time over blocks of the matrix that are \
         never in memory";
    const REQUIRES: &'static str =
        "all results are such sums, the device has no workgroups, and the schedule has no other op";
    const ORDER: Order = Order::Alone;

    fn parse(operands: &[&str]) -> Option<Block> {
        let &[vectors, rows, tiles] = operands else { return None };
        Some(Block(Blocking { vectors: operand(vectors)?, rows: operand(rows)?, tiles: operand(tiles)? }))
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blocking { vectors, rows, tiles } = self.0;
        write!(f, "{vectors}, {rows}, {tiles}")
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        let lengths = space.facts.lengths.as_ref().ok_or(Refusal::NoBlocks)?;
        space.own_loops = Some(OwnLoops::Blocks(lengths.fitted(self.0)));
        Ok(())
    }

    fn replacements(&self, _: &Space) -> Vec<Block> {
        let strips = STRIPS.map(|vectors| Blocking { vectors, ..self.0 }).into_iter();
        let rows = ROWS.map(|rows| Blocking { rows, ..self.0 });
        let blocks = IN_A_BLOCK.map(|tiles| Blocking { tiles, ..self.0 });
        strips.chain(rows).chain(blocks).map(Block).collect()
    }
}
