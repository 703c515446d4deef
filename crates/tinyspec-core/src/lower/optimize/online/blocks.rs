//! The loops: strips of lanes outside, blocks of the streamed Range inside.

use super::blocking::{Blocking, Lengths, Piece, pieces};
use super::bodies::{Nest, Places, Run};
use super::form::{Form, Greatest};
use super::hidden::{self, Rest};
use crate::lower::live;
use crate::lower::loops::{closed, grouped};
use crate::lower::optimize::local::Local;
use crate::lower::optimize::{bounds, nans};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::{Arg, AxisType, Builder, Const, Graph, NodeId, Op, Result};

/// The Ranges of a block of the streamed axis. Those of tiles come before the lane's, so that vectors lie along that.
struct Segment {
    piece: Piece,
    /// Streamed Ranges around the last one, and the loop over blocks.
    around: Vec<NodeId>,
    /// Position of the block.
    start: Affine,
    scores: Run,
    greatest: Run,
    powers: Run,
    /// For each sum, and each run of its rows, their Ranges and those of their terms: a loop of its own, since a tile of
    /// one sum takes all registers.
    sums: Vec<Vec<(Run, Run)>>,
    /// For each sum, the loops over the terms of skipped blocks.
    hidden: Vec<SmallVec<[Hidden; 2]>>,
}

/// The remaining values of the matrices in skipped blocks, the first term of these blocks, and their number of terms.
type LeftOut<'a> = (&'a [Rest], Affine, Affine);

/// A loop over masked-off terms.
#[derive(Clone)]
struct Hidden {
    /// The remaining value of the matrix.
    rest: Rest,
    /// The rows of the sum.
    rows: Run,
    /// The Range over the terms, and its position along the streamed axis.
    terms: NodeId,
    at: Affine,
}

struct Blocks<'a, 'f> {
    nest: Nest<'a>,
    form: &'f Form,
    places: Places,
    lane: NodeId,
    /// The lanes' factors of the products.
    packed: Vec<Local>,
    /// Scores, and then their powers.
    scores: Option<Local>,
    matrices: Vec<Option<Local>>,
    /// The running maximum.
    greatest: Option<Local>,
    /// Whether the maximum may drop nans, which is cheaper than propagating them.
    loses_nans: bool,
    target: &'a Target,
    sums: Vec<Local>,
}

pub(super) fn build<'a>(
    graph: &'a mut Graph,
    form: &Form,
    lengths: &Lengths,
    target: &'a Target,
    blocking: Blocking,
) -> Result<NodeId> {
    let Blocking { vectors, rows: height, tiles } = lengths.fitted(blocking);
    let &Lengths { lanes, lane: length, rows, terms, .. } = lengths;
    let width = vectors * lanes;
    let trips = |graph: &Graph, range: NodeId| live::trips(graph, range).unwrap_or(1);
    let row = form.row;
    let others = form.streamed.split_last().map_or(&[][..], |(_, others)| others);
    let mut nest = Nest::new(graph, width);

    // Threads share strips, those of one set of keys after each other.
    let strips = (length + width - 1) / width;
    let batch: Vec<(NodeId, i64)> = form.batch.iter().map(|&range| (range, trips(nest.graph, range))).collect();
    let all = batch.iter().fold(strips, |all, (_, trips)| all * trips);
    if all > 1 {
        nest.shared = Some(nest.range(all, AxisType::Thread)?);
    }
    let number = nest.shared.map_or(Affine::number(0), Affine::atom);
    let mut known = FxHashMap::default();
    let mut step = all;
    for &(range, trips) in &batch {
        step /= trips;
        let whole = number.quotient(nest.graph, step)?;
        let at = whole.remainder(nest.graph, trips)?.emit(nest.graph)?;
        known.insert(range, at);
    }
    let strip = number.remainder(nest.graph, strips)?;

    // The Ranges of tiles.
    let power = |trips: i64| (trips & trips.wrapping_neg()).min(lanes);
    // Lanes under a gate are gathered, so a tile of several steps would take as many gathers.
    let is_whole = length % width == 0;
    let mut packing: Vec<(Vec<NodeId>, Affine, FxHashMap<NodeId, NodeId>)> = Vec::new();
    for product in &form.products {
        let (mut ranges, mut at, mut steps) = (Vec::new(), Affine::number(0), known.clone());
        for (position, &range) in product.inner.iter().enumerate() {
            let trips = trips(nest.graph, range);
            let tile = if position + 1 == product.inner.len() && is_whole { power(trips) } else { 1 };
            let run = nest.run(&Affine::number(0), (trips / tile, AxisType::Loop), (tile, AxisType::Upcast))?;
            at = at.scale(trips).plus(&run.at);
            steps.insert(range, run.at.emit(nest.graph)?);
            ranges.extend(run.ranges);
        }
        packing.push((ranges, at, steps));
    }
    let row_pieces = pieces(rows, height, rows);
    let rows_of = |nest: &mut Nest| -> Result<Vec<Run>> {
        let run = |nest: &mut Nest, piece: &Piece| {
            let (tiles, height) = ((piece.tiles * piece.blocks, AxisType::Loop), (piece.height, AxisType::Upcast));
            nest.run(&Affine::number(piece.start), tiles, height)
        };
        row_pieces.iter().map(|piece| run(nest, piece)).collect()
    };
    let starts = rows_of(&mut nest)?;
    // The terms that at least one lane of a strip does not mask off.
    let bounds = match lengths.hidden {
        0 => None,
        _ => hidden::bounds(nest.graph, form, |graph: &Graph, atom: NodeId, coefficient: i64| {
            if atom == form.lane {
                let (at, end) = (strip.scale(width * coefficient), coefficient * (width - 1));
                return Some((at.offset(end.min(0)), at.offset(end.max(0))));
            }
            let below = graph.reachable(&[atom]);
            let term = match known.get(&atom) {
                Some(&node) => Affine::leaf(graph, node),
                None if below.iter().any(|node| *node == form.lane || known.contains_key(node)) => return None,
                None => Affine::atom(atom),
            };
            Some((term.scale(coefficient), term.scale(coefficient)))
        })?,
    };
    let seen = bounds.as_ref().map(|bounds| bounds.trips(nest.graph)).transpose()?;
    let mut segments = Vec::new();
    for piece in pieces(terms, height, tiles) {
        let mut around = Vec::new();
        for &range in others {
            let trips = trips(nest.graph, range);
            around.push(nest.range(trips, AxisType::Loop)?);
        }
        let (start, mut left_out) = (Affine::number(piece.start), SmallVec::<[LeftOut; 2]>::new());
        let start = match &seen {
            _ if piece.blocks == 1 => start,
            None => {
                let block = nest.range(piece.blocks, AxisType::Loop)?;
                around.push(block);
                start.plus(&Affine::atom(block).scale(piece.rows()))
            }
            Some((low, high)) => {
                let (first, end) = piece.blocks_of(nest.graph, low, high)?;
                let trips = end.minus(&first).emit(nest.graph)?;
                let block = nest.range_to(trips, AxisType::Loop)?;
                around.push(block);
                let behind = start.plus(&end.scale(piece.rows()));
                let sides = bounds.iter().flat_map(|bounds| [&bounds.low, &bounds.high]);
                let within = [(start.clone(), first.clone()), (behind, Affine::number(piece.blocks).minus(&end))];
                for (side, (at, blocks)) in sides.zip(within) {
                    left_out
                        .extend(side.iter().map(|(_, values)| (&values[..], at.clone(), blocks.scale(piece.rows()))));
                }
                left_out.retain(|(_, _, terms)| terms.bounds(nest.graph).1 > 0);
                start.plus(&first.plus(&Affine::atom(block)).scale(piece.rows()))
            }
        };
        let zero = Affine::number(0);
        let scores = nest.run(&zero, (piece.tiles, AxisType::Loop), (piece.height, AxisType::Upcast))?;
        let unrolled = power(piece.rows()).min(4);
        let greatest = nest.run(&zero, (piece.rows() / unrolled, AxisType::Reduce), (unrolled, AxisType::Unroll))?;
        let powers = nest.run(&zero, (piece.rows(), AxisType::Reduce), (1, AxisType::Reduce))?;
        let mut sums = vec![Vec::new(); form.sums.len()];
        for (runs, _) in sums.iter_mut().zip(&form.sums).filter(|(_, sum)| sum.weight.is_some()) {
            for rows in rows_of(&mut nest)? {
                runs.push((rows, nest.run(&zero, (piece.rows(), AxisType::Reduce), (1, AxisType::Reduce))?));
            }
        }
        let mut hidden = vec![SmallVec::new(); form.sums.len()];
        for (loops, sum) in hidden.iter_mut().zip(&form.sums) {
            let (rows, tile) = if sum.weight.is_some() { (rows, power(rows)) } else { (1, 1) };
            for (values, first, trips) in &left_out {
                let rest = values[sum.matrix];
                let is_zero = |value: NodeId| nest.graph.as_const(value).and_then(Const::as_float) == Some(0.0);
                if sum.weight.is_some() || !matches!(rest, Rest::Terms(value) if is_zero(value)) {
                    let rows = nest.run(&zero, (rows / tile, AxisType::Loop), (tile, AxisType::Upcast))?;
                    let trips = trips.emit(nest.graph)?;
                    let terms = nest.range_to(trips, AxisType::Reduce)?;
                    loops.push(Hidden { rest, rows, terms, at: first.plus(&Affine::atom(terms)) });
                }
            }
        }
        segments.push(Segment { piece, around, start, scores, greatest, powers, sums, hidden });
    }
    let lane = nest.range(width, AxisType::Upcast)?;
    let stored = match row {
        Some(_) => {
            let tile = power(rows);
            Some(nest.run(&Affine::number(0), (rows / tile, AxisType::Loop), (tile, AxisType::Upcast))?)
        }
        None => None,
    };

    let position = strip.scale(width).plus(&Affine::atom(lane));
    let inside = match is_whole {
        true => None,
        false => Some(less(nest.graph, &position, &Affine::number(length))?),
    };
    let places = Places { known, lane: (form.lane, position), inside };
    let greatest = match &form.greatest {
        Some(_) => Some(nest.local(1)?),
        None => None,
    };
    let block = segments.iter().map(|segment| segment.piece.rows()).max().unwrap_or(1);
    let scores = match &form.greatest {
        Some(_) => Some(nest.local(block)?),
        None => None,
    };
    let mut matrices = Vec::new();
    for matrix in &form.matrices {
        matrices.push(match matrix {
            Some(_) => Some(nest.local(block)?),
            None => None,
        });
    }
    let order = nest.graph.reachable(&form.stores);
    let may_drop = |greatest: &Greatest| nans::may_drop(nest.graph, &order, greatest.node, target);
    let loses_nans = form.greatest.as_ref().is_some_and(may_drop);
    let (packed, sums) = (Vec::new(), Vec::new());
    let mut blocks = Blocks { nest, form, places, lane, packed, scores, matrices, greatest, loses_nans, target, sums };
    for ((ranges, at, known), product) in packing.into_iter().zip(&form.products) {
        let size = product.inner.iter().map(|&range| trips(blocks.nest.graph, range)).product();
        let places = Places { known, ..blocks.places.clone() };
        let value = places.value(blocks.nest.graph, product.lanes)?;
        blocks.pack(&ranges, &at, value, size)?;
    }
    blocks.start(&starts, rows)?;
    for segment in &segments {
        blocks.segment(segment)?;
        blocks.hidden(segment)?;
    }
    let mut effect = blocks.stores(row, stored.as_ref())?;
    let nest = &mut blocks.nest;
    effect = closed(nest.graph, effect, &[lane])?;
    if let Some(shared) = nest.shared {
        effect = closed(nest.graph, effect, &[shared])?;
    }
    nest.graph.add(Op::Sink, &[effect], Arg::None)
}

impl Blocks<'_, '_> {
    /// The lanes' factor of a product, in vectors for every step of it.
    fn pack(&mut self, ranges: &[NodeId], at: &Affine, value: NodeId, size: i64) -> Result<()> {
        let mut local = self.nest.local(size)?;
        let store = self.nest.store(&local, at, self.lane, value)?;
        let filled = closed(self.nest.graph, store, ranges)?;
        self.nest.after(&mut local, filled)?;
        self.packed.push(local);
        Ok(())
    }

    /// Nothing is summed yet.
    fn start(&mut self, runs: &[Run], rows: i64) -> Result<()> {
        let nest = &mut self.nest;
        let (zero, least) = (nest.number(0.0), nest.number(f64::NEG_INFINITY));
        for sum in &self.form.sums {
            let mut local = nest.local(if sum.weight.is_some() { rows } else { 1 })?;
            if sum.weight.is_none() {
                let start = nest.store(&local, &Affine::number(0), self.lane, zero)?;
                nest.after(&mut local, start)?;
            }
            self.sums.push(local);
        }
        let weighted = self.form.sums.iter().zip(&mut self.sums).filter(|(sum, _)| sum.weight.is_some());
        let mut locals: Vec<&mut Local> = weighted.map(|(_, local)| local).collect();
        if !locals.is_empty() {
            let mut starts = Vec::new();
            for run in runs {
                let store = |local: &&mut Local| nest.store(local, &run.at, self.lane, zero);
                let stores = locals.iter().map(store).collect::<Result<Vec<_>>>()?;
                let stores = grouped(nest.graph, &stores)?;
                starts.push(closed(nest.graph, stores, &run.ranges)?);
            }
            let starts = grouped(nest.graph, &starts)?;
            for local in &mut locals {
                nest.after(local, starts)?;
            }
        }
        if let Some(greatest) = &mut self.greatest {
            let start = nest.store(greatest, &Affine::number(0), self.lane, least)?;
            nest.after(greatest, start)?;
        }
        Ok(())
    }

    /// A loop over blocks.
    fn segment(&mut self, segment: &Segment) -> Result<()> {
        let outside = (self.scores, self.matrices.clone(), self.greatest, self.sums.clone());
        for &range in &segment.around {
            self.every(range)?;
        }
        let mut places = self.places.clone();
        let others = self.form.streamed.split_last().map_or(&[][..], |(_, others)| others);
        places.known.extend(others.iter().copied().zip(segment.around.iter().copied()));
        self.scores(segment, &places)?;
        let mut effects: SmallVec<[NodeId; 4]> = SmallVec::new();
        let scale = match &self.form.greatest {
            Some(greatest) => Some(self.rescale(segment, greatest, &mut effects)?),
            None => None,
        };
        self.add(segment, &places, scale, &mut effects)?;
        let body = grouped(self.nest.graph, &effects)?;
        let over = closed(self.nest.graph, body, &segment.around)?;
        (self.scores, self.matrices, self.greatest, self.sums) = outside;
        self.every(over)
    }

    /// All buffers after an event.
    fn every(&mut self, event: NodeId) -> Result<()> {
        let matrices = self.matrices.iter_mut().flatten().chain(&mut self.scores);
        for local in matrices.chain(&mut self.greatest).chain(&mut self.sums) {
            self.nest.after(local, event)?;
        }
        Ok(())
    }

    /// A block of each matrix; of scores, where those are to be rescaled.
    fn scores(&mut self, segment: &Segment, places: &Places) -> Result<()> {
        let Some(&streamed) = self.form.streamed.last() else { return Ok(()) };
        let position = segment.start.plus(&segment.scores.at);
        let mut places = places.with(self.nest.graph, streamed, &position)?;
        for (product, packed) in self.form.products.iter().zip(&self.packed) {
            let (mut ranges, mut at) = (SmallVec::<[NodeId; 2]>::new(), Affine::number(0));
            let mut inside = places.clone();
            for &range in &product.inner {
                let trips = live::trips(self.nest.graph, range).unwrap_or(1);
                let step = self.nest.range(trips, AxisType::Reduce)?;
                at = at.scale(trips).plus(&Affine::atom(step));
                inside.known.insert(range, step);
                ranges.push(step);
            }
            let rows = inside.value(self.nest.graph, product.rows)?;
            let lanes = self.nest.load(packed, &at, self.lane)?;
            let term = self.nest.graph.alu(Op::Mul, &[rows, lanes])?;
            let total = self.nest.reduce(Op::Add, term, &ranges)?;
            places.known.insert(product.node, total);
        }
        let scores = self.form.greatest.iter().map(|greatest| greatest.score);
        let wanted: Vec<NodeId> = scores.chain(self.form.matrices.iter().copied().flatten()).collect();
        let values = places.values(self.nest.graph, &wanted)?;
        let mut stores = Vec::new();
        for (&value, local) in values.iter().zip(self.scores.iter().chain(self.matrices.iter().flatten())) {
            stores.push(self.nest.store(local, &segment.scores.at, self.lane, value)?);
        }
        let stores = grouped(self.nest.graph, &stores)?;
        let made = closed(self.nest.graph, stores, &segment.scores.ranges)?;
        for local in self.scores.iter_mut().chain(self.matrices.iter_mut().flatten()) {
            self.nest.after(local, made)?;
        }
        Ok(())
    }

    /// Replaces the scores by powers. Returns the factor that rescales the sums so far.
    fn rescale(&mut self, segment: &Segment, rule: &Greatest, effects: &mut SmallVec<[NodeId; 4]>) -> Result<NodeId> {
        let (Some(greatest), Some(scores)) = (&mut self.greatest, &mut self.scores) else {
            return Ok(rule.factor);
        };
        let (nest, lane, first, target) = (&mut self.nest, self.lane, Affine::number(0), self.target);
        let mut value = nest.load(scores, &segment.greatest.at, lane)?;
        // A nan among the scores can be ignored here: its power is nan.
        if self.loses_nans {
            value = nans::dropped(nest.graph, value, self.target)?;
        }
        let most = nest.reduce(Op::Max, value, &segment.greatest.ranges)?;
        let before = nest.load(greatest, &first, lane)?;
        let rises = nest.graph.alu(Op::CmpLt, &[before, most])?;
        let now = nest.graph.alu(Op::Where, &[rises, most, before])?;
        effects.push(nest.store(greatest, &first, lane, now)?);
        // Nothing but -inf so far: there is no shift.
        let (least, zero, minus) = (nest.number(f64::NEG_INFINITY), nest.number(0.0), nest.number(-1.0));
        let subnormal = nest.number(f64::from(f32::MIN_EXP - 1));
        let is_some = nest.graph.alu(Op::CmpNe, &[now, least])?;
        let shift = nest.graph.alu(Op::Where, &[is_some, now, zero])?;
        let minus = nest.graph.alu(Op::Mul, &[shift, minus])?;
        let power = |nest: &mut Nest, score: NodeId| -> Result<NodeId> {
            let mut shifted = nest.graph.alu(Op::Add, &[score, minus])?;
            if bounds::are_used(target) {
                shifted = bounds::at_most_zero(nest.graph, shifted)?;
            }
            let exponent = nest.graph.alu(Op::Mul, &[shifted, rule.factor])?;
            let power = nest.graph.alu(Op::Exp2, &[exponent])?;
            // The largest power is 1, so subnormal ones are negligible; but multiplying by them can be a hundred times slower.
            let is_subnormal = nest.graph.alu(Op::CmpLt, &[exponent, subnormal])?;
            nest.graph.alu(Op::Where, &[is_subnormal, zero, power])
        };
        let scale = power(nest, before)?;
        let score = nest.load(scores, &segment.powers.at, lane)?;
        let value = power(nest, score)?;
        let mut values = Vec::new();
        for matrix in &self.matrices {
            values.push(match matrix {
                Some(local) => {
                    let factor = nest.load(local, &segment.powers.at, lane)?;
                    nest.graph.alu(Op::Mul, &[value, factor])?
                }
                None => value,
            });
        }
        for (sum, local) in self.form.sums.iter().zip(&self.sums).filter(|(sum, _)| sum.weight.is_none()) {
            let total = nest.reduce(Op::Add, values[sum.matrix], &segment.powers.ranges)?;
            let so_far = nest.load(local, &first, lane)?;
            let scaled = nest.graph.alu(Op::Mul, &[so_far, scale])?;
            let total = nest.graph.alu(Op::Add, &[scaled, total])?;
            effects.push(nest.store(local, &first, lane, total)?);
        }
        // All in one loop: the powers overwrite the scores that all values are computed from.
        let is_needed = |number: &usize| self.form.sums.iter().any(|sum| sum.matrix == *number && sum.weight.is_some());
        let needed: SmallVec<[usize; 2]> = (0..values.len()).filter(is_needed).collect();
        let mut stores: SmallVec<[NodeId; 2]> = SmallVec::new();
        for &number in &needed {
            let local = self.matrices[number].as_ref().unwrap_or(scores);
            stores.push(nest.store(local, &segment.powers.at, lane, values[number])?);
        }
        if !stores.is_empty() {
            let stores = grouped(nest.graph, &stores)?;
            let kept = closed(nest.graph, stores, &segment.powers.ranges)?;
            for number in needed {
                nest.after(self.matrices[number].as_mut().unwrap_or(scores), kept)?;
            }
        }
        Ok(scale)
    }

    /// Adds the terms of a block to the sums.
    fn add(
        &mut self,
        segment: &Segment,
        places: &Places,
        scale: Option<NodeId>,
        effects: &mut SmallVec<[NodeId; 4]>,
    ) -> Result<()> {
        let Some(&streamed) = self.form.streamed.last() else { return Ok(()) };
        for ((sum, local), runs) in self.form.sums.iter().zip(&self.sums).zip(&segment.sums) {
            let Some(matrix) = self.matrices[sum.matrix].as_ref().or(self.scores.as_ref()) else { continue };
            let nest = &mut self.nest;
            let Some((weight, row)) = sum.weight else {
                if scale.is_none() {
                    let value = nest.load(matrix, &segment.powers.at, self.lane)?;
                    let total = nest.reduce(Op::Add, value, &segment.powers.ranges)?;
                    let so_far = nest.load(local, &Affine::number(0), self.lane)?;
                    let total = nest.graph.alu(Op::Add, &[so_far, total])?;
                    effects.push(nest.store(local, &Affine::number(0), self.lane, total)?);
                }
                continue;
            };
            let mut local = *local;
            for (rows, terms) in runs {
                let at = segment.start.plus(&terms.at);
                let places = places.with(nest.graph, streamed, &at)?.with(nest.graph, row, &rows.at)?;
                let weight = places.value(nest.graph, weight)?;
                let value = nest.load(matrix, &terms.at, self.lane)?;
                let term = nest.graph.alu(Op::Mul, &[weight, value])?;
                let total = nest.reduce(Op::Add, term, &terms.ranges)?;
                effects.push(nest.accumulate(&mut local, rows, self.lane, (total, scale))?);
            }
        }
        Ok(())
    }

    /// Adds the terms of skipped blocks to the sums.
    fn hidden(&mut self, segment: &Segment) -> Result<()> {
        let Some(&streamed) = self.form.streamed.last() else { return Ok(()) };
        for ((sum, local), loops) in self.form.sums.iter().zip(&mut self.sums).zip(&segment.hidden) {
            for Hidden { rest, rows, terms, at } in loops {
                let nest = &mut self.nest;
                let mut places = self.places.with(nest.graph, streamed, at)?;
                if let Some((_, row)) = sum.weight {
                    places = places.with(nest.graph, row, &rows.at)?;
                }
                let mut term = match *rest {
                    Rest::Terms(value) => places.value(nest.graph, value)?,
                    Rest::Lanes(_) => nest.number(0.0),
                };
                if let Some((weight, _)) = sum.weight {
                    let weight = places.value(nest.graph, weight)?;
                    term = nest.graph.alu(Op::Mul, &[weight, term])?;
                }
                let mut total = nest.reduce(Op::Add, term, &[*terms])?;
                if let Rest::Lanes(value) = *rest {
                    let value = self.places.value(nest.graph, value)?;
                    total = nest.graph.alu(Op::Mul, &[total, value])?;
                }
                nest.accumulate(local, rows, self.lane, (total, None))?;
            }
        }
        Ok(())
    }

    /// The Stores of the kernel, computed from the final sums.
    fn stores(&mut self, row: Option<NodeId>, run: Option<&Run>) -> Result<NodeId> {
        let (graph, first) = (&mut *self.nest.graph, Affine::number(0));
        let mut places = self.places.clone();
        if let (Some(row), Some(run)) = (row, run) {
            places = places.with(graph, row, &run.at)?;
        }
        if let (Some(local), Some(greatest)) = (&self.greatest, &self.form.greatest) {
            let value = self.nest.load(local, &first, self.lane)?;
            places.known.insert(greatest.node, value);
        }
        // The divisor of a sum may be an earlier sum.
        for (sum, local) in self.form.sums.iter().zip(&self.sums) {
            let at = match (sum.weight, run) {
                (Some(_), Some(run)) => &run.at,
                _ => &first,
            };
            let mut value = self.nest.load(local, at, self.lane)?;
            for &(op, operand) in &sum.after {
                let operand = places.value(self.nest.graph, operand)?;
                value = self.nest.graph.alu(op, &[value, operand])?;
            }
            places.known.insert(sum.node, value);
        }
        // Stores that depend on the row share one loop over it.
        let (mut in_rows, mut effects) = (Vec::new(), Vec::new());
        for &store in &self.form.stores {
            let graph = &mut *self.nest.graph;
            let (place, value) = (graph.source(store, 0), graph.source(store, 1));
            let (buffer, index) = (graph.source(place, 0), graph.source(place, 1));
            let moved = places.values(graph, &[index, value])?;
            let place = graph.add(Op::Index, &[buffer, moved[0]], Arg::None)?;
            let sources: SmallVec<[NodeId; 3]> = [place, moved[1]].into_iter().chain(places.inside).collect();
            let stored = graph.add(Op::Store, &sources, Arg::None)?;
            let has_row = row.is_some_and(|row| graph.reachable(&[index]).contains(&row));
            if has_row {
                in_rows.push(stored)
            } else {
                effects.push(stored)
            };
        }
        if let (Some(run), false) = (run, in_rows.is_empty()) {
            let stores = grouped(self.nest.graph, &in_rows)?;
            effects.push(closed(self.nest.graph, stores, &run.ranges)?);
        }
        grouped(self.nest.graph, &effects)
    }
}
