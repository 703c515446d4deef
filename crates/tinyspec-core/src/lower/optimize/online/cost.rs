//! The cost of loops over blocks: the model of other schedules (`optimize/cost`), for loops that are known beforehand.

use super::blocking::{Blocking, Lengths, Piece, pieces};
use super::form::Form;
use crate::lower::optimize::cost::{Core, Estimate, threads};
use crate::lower::select::decompose::Sizes;
use tinyspec_backends::Target;
use tinyspec_ir::{DType, Op};

/// Bytes of a number, all of which are f32.
const BYTES: f64 = 4.0;

pub(super) fn estimate(form: &Form, lengths: &Lengths, blocking: Blocking, target: &Target) -> Estimate {
    let Blocking { vectors, rows, tiles } = lengths.fitted(blocking);
    let width = vectors * lengths.lanes;
    let strips = (lengths.batch * ((lengths.lane + width - 1) / width)) as f64;
    let blocks = pieces(lengths.terms, rows, tiles);
    let height = |pieces: &[Piece]| pieces.first().map_or(1.0, |piece| piece.height as f64);
    let high = height(&blocks);
    let results = pieces(lengths.rows, rows, lengths.rows);
    let block = blocks.iter().map(Piece::rows).max().unwrap_or(1) as f64;
    // Of one strip.
    // A block and a strip of which only a part is hidden are computed as a whole.
    let hidden = (lengths.hidden as f64 - (block + width as f64) / 2.0).max(0.0);
    let terms = (lengths.terms as f64 - hidden) * lengths.around as f64;
    let vectors = vectors as f64;
    let weighted = form.sums.iter().filter(|sum| sum.weight.is_some()).count() as f64;
    let (values, steps) = (lengths.rows as f64, lengths.inner.iter().sum::<i64>() as f64);
    let power = match form.greatest {
        Some(_) => Sizes::of(target).of_op(Op::Exp2, DType::F32) as f64 + 3.0,
        None => 0.0,
    };
    let tiles_of = |high: f64| 1.0 / vectors + 1.0 / high;
    let products = terms * vectors * steps;
    let sums = terms * vectors * values * weighted;
    let each = terms * vectors * (power + form.matrices.len() as f64);
    // Sums so far are scaled, and stored again, with each block.
    let again = terms / block * vectors * values * weighted;
    let core = Core::of(target);
    let mut estimate = Estimate { threads: threads(strips, target.threads), ..Estimate::on(&core) };
    estimate.arithmetic = (products + sums) / core.multiply_adds + (each + 2.0 * again) / core.arithmetic;
    // A tile's step reads a number for each of its rows and the vectors of its lanes.
    let loads = products * tiles_of(high) + sums * tiles_of(height(&results)) + 3.0 * terms * vectors + again;
    estimate.accesses = loads / core.loads + (2.0 * terms * vectors + again) / core.stores;
    // Every accumulator of a tile waits for its own last sum.
    let waits = |products: f64, high: f64| {
        let accumulators = vectors * high;
        products * (core.latency / accumulators).max(1.0 / core.multiply_adds)
    };
    estimate.latency = waits(products, high) + waits(sums, height(&results)) + each / core.arithmetic;
    let trips = products / (vectors * high) + sums / (vectors * height(&results)) + 2.0 * terms;
    estimate.instructions = (products + sums + each + 2.0 * again + loads + 3.0 * trips) / core.instructions;
    estimate.code = blocks.len() as f64 * vectors * (high + power) + results.len() as f64 * vectors * high;
    // Each strip reads all keys and values, besides its own block, sums and factors.
    let matrices = form.matrices.iter().flatten().count() as f64 + f64::from(form.greatest.is_some());
    let own = width as f64 * BYTES * (block * matrices + values * weighted + steps);
    let streamed = terms * (steps + values * weighted) * BYTES;
    let passes = own * terms / block;
    let [first, second, last] = core.caches;
    estimate.second_level = (streamed + if own > first { passes } else { 0.0 }) / core.bytes[0];
    let missed = |cache: f64| if streamed + own > cache { streamed } else { 0.0 };
    estimate.memory = core.beyond_second_level(missed(second), missed(last));
    estimate.times(strips)
}
