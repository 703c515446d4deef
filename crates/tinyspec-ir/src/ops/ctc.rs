//! The loss of connectionist temporal classification (Graves et al., 2006): the probability of all ways to spell the labels, with
//! blanks between them and repetitions.
//!
//! One kernel goes through the steps of all sequences. The states of a step are blank, label, blank, …, blank. What is before the
//! first state or does not occur has a logarithm that is finite, so that no difference of infinities is nan.

use super::arithmetic::{add, and, eq, lt, maximum, mul, ne, neg, sub, where_};
use super::creation::arange_dim;
use super::elementwise::{exp, scale};
use super::index::gather;
use super::loops::{Loops, Size};
use super::loss::reduced;
use super::movement::{cat, expand, flip, narrow, pad, permute, reshape, shrink};
use super::{cast, dtype_of, function, in_wide, like, reduce, shape_of};
use crate::dim::show;
use crate::kernel::WrittenKernel;
use crate::{AxisType, Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result};
use std::f64::consts::{LN_2, LOG2_E};

/// The logarithm of probability 0: finite, so that differences are not nan.
const NEVER: f64 = -1e30;
/// States per vector. As many unreachable states pad the front, so that a state can read the two before it.
const LANES: i64 = 8;

/// How many sequences, steps and states there are.
#[derive(Clone, Hash)]
struct Sizes {
    count: Dim,
    steps: Dim,
    states: i64,
}

impl Sizes {
    /// Those of scores inside a function, whose dims have names of their own.
    fn inside(&self, b: &mut dyn Builder, scores: NodeId) -> Sizes {
        match &shape_of(b, scores)[..] {
            [count, steps, _] => Sizes { count: count.clone(), steps: steps.clone(), states: self.states },
            _ => self.clone(),
        }
    }

    /// States in whole vectors.
    fn padded(&self) -> i64 {
        (self.states + LANES - 1) / LANES * LANES
    }
}

/// The loss of sequences of logarithms of probabilities, `[steps, batch, classes]`, and labels, `[batch, labels]`.
#[expect(clippy::too_many_arguments, reason = "those of the method")]
pub fn ctc_loss(
    b: &mut dyn Builder,
    log_probabilities: NodeId,
    target: NodeId,
    input_lengths: NodeId,
    target_lengths: NodeId,
    blank: i64,
    reduction: &str,
    zero_infinity: bool,
) -> Result<NodeId> {
    const OP: &str = "ctc_loss";
    let (shape, labels) = (shape_of(b, log_probabilities), shape_of(b, target));
    let wrong = |message: String, help: &str| Err(Error::new(ErrorKind::Shape, OP, message).help(help));
    let [steps, count, classes] = &shape[..] else {
        return wrong(
            show(&shape),
            "log probabilities of [steps, batch, classes]; `unsqueeze(1)` makes one sequence a batch",
        );
    };
    let longest = match &labels[..] {
        [batch, longest] if batch == count => longest.as_const(),
        _ => {
            return wrong(
                format!("{} for labels of {}", show(&shape), show(&labels)),
                "labels of [batch, labels]: those behind the length of each are skipped",
            );
        }
    };
    let Some(longest) = longest else {
        return wrong(format!("labels of {}", show(&labels)), "the number of labels must be known");
    };
    for lengths in [input_lengths, target_lengths] {
        let found = shape_of(b, lengths);
        if found[..] != [count.clone()] || !dtype_of(b, lengths).is_int() {
            return wrong(
                format!("lengths of {} {}", dtype_of(b, lengths), show(&found)),
                "a whole number for each sequence",
            );
        }
    }
    if !dtype_of(b, target).is_int() {
        return Err(
            Error::new(ErrorKind::DType, OP, format!("labels of {}", dtype_of(b, target))).help("class numbers")
        );
    }
    if blank < 0 || classes.as_const().is_some_and(|classes| blank >= classes) {
        return Err(Error::new(ErrorKind::Value, OP, format!("class {blank} of {}", show(&shape)))
            .help("the number of the class of blanks"));
    }
    let sizes = Sizes { count: count.clone(), steps: steps.clone(), states: 2 * longest + 1 };
    in_wide(b, log_probabilities, |b, x| {
        let (target, lengths) = (cast(b, target, DType::I32)?, cast(b, target_lengths, DType::I32)?);
        let states = spelled(b, &sizes, target, blank)?;
        let scores = scores(b, &sizes, x, states)?;
        let dtype = dtype_of(b, x);
        let inner = [sizes.count.clone(), Dim::from(1)];

        let running = arange_dim(b, &sizes.steps, DType::I32)?;
        let input_lengths = cast(b, input_lengths, DType::I32)?;
        let input_lengths = reshape(b, input_lengths, &inner)?;
        let is_inside = lt(b, running, input_lengths)?;
        let moves = cast(b, is_inside, dtype)?;

        let before = shrink(
            b,
            states,
            &[Dim::from(0), Dim::from(0)],
            &[sizes.count.clone(), Dim::from((sizes.states - 2).max(0))],
        )?;
        let before = pad(
            b,
            before,
            &[Dim::from(0), Dim::from(sizes.states.min(2))],
            &[sizes.count.clone(), Dim::from(sizes.states)],
            blank as f64,
        )?;
        let blank = b.constant(Const::int(DType::I32, blank.into()));
        let (is_label, is_other) = (ne(b, states, blank)?, ne(b, states, before)?);
        let may_skip = b.alu(Op::And, &[is_label, is_other])?;
        let skips = logarithm_of(b, may_skip, dtype)?;

        let numbers = arange_dim(b, &Dim::from(sizes.states), DType::I32)?;
        let last = add(b, lengths, lengths)?;
        let last = reshape(b, last, &inner)?;
        let is_last = eq(b, numbers, last)?;
        let ends = logarithm_of(b, is_last, dtype)?;

        let logarithm = probability(b, &sizes, [scores, moves, skips, ends])?;
        let bound = like(b, logarithm, 0.1 * NEVER);
        let none = b.alu(Op::CmpLt, &[logarithm, bound])?;
        let instead = like(b, logarithm, if zero_infinity { 0.0 } else { f64::INFINITY });
        let loss = neg(b, logarithm)?;
        let mut losses = where_(b, none, instead, loss)?;
        if reduction == "mean" {
            let one = b.constant(Const::int(DType::I32, 1));
            let lengths = maximum(b, lengths, one)?;
            let lengths = cast(b, lengths, dtype)?;
            losses = b.alu(Op::Div, &[losses, lengths])?;
        }
        reduced(b, OP, losses, reduction)
    })
    .map_err(|error| error.in_op(OP))
}

/// 0 where it holds.
fn logarithm_of(b: &mut dyn Builder, holds: NodeId, dtype: DType) -> Result<NodeId> {
    let (zero, never) = (b.constant(Const::float(dtype, 0.0)), b.constant(Const::float(dtype, NEVER)));
    where_(b, holds, zero, never)
}

/// The classes of the states: blank, label, blank, …, blank.
fn spelled(b: &mut dyn Builder, sizes: &Sizes, target: NodeId, blank: i64) -> Result<NodeId> {
    let (count, labels) = (sizes.count.clone(), sizes.states / 2);
    let single = reshape(b, target, &[count.clone(), Dim::from(labels), Dim::from(1)])?;
    let pairs =
        pad(b, single, &[0, 0, 1].map(Dim::from), &[count.clone(), Dim::from(labels), Dim::from(2)], blank as f64)?;
    let row = reshape(b, pairs, &[count.clone(), Dim::from(2 * labels)])?;
    pad(b, row, &[0, 0].map(Dim::from), &[count, Dim::from(sizes.states)], blank as f64)
}

/// A sequence begins before its first state.
fn start(b: &mut dyn Builder, sizes: &Sizes, scores: NodeId) -> Result<NodeId> {
    let numbers = arange_dim(b, &Dim::from(sizes.states), DType::I32)?;
    let zero = b.constant(Const::int(DType::I32, 0));
    let is_first = eq(b, numbers, zero)?;
    let dtype = dtype_of(b, scores);
    let start = logarithm_of(b, is_first, dtype)?;
    let row = reshape(b, start, &[1, sizes.states].map(Dim::from))?;
    expand(b, row, &[sizes.count.clone(), Dim::from(sizes.states)])
}

/// The log probability of all paths to each state: a row for the start, then one for each step.
fn ways(b: &mut dyn Builder, sizes: &Sizes, [scores, moves, skips, start]: [NodeId; 4]) -> Result<NodeId> {
    let Sizes { count, steps, .. } = sizes.clone();
    let width = LANES + sizes.padded();
    let offset = [0, 0, LANES].map(Dim::from);
    let start = reshape(b, start, &[count.clone(), Dim::from(1), Dim::from(sizes.states)])?;
    let start = pad(b, start, &offset, &[count.clone(), Dim::from(1), Dim::from(width)], NEVER)?;
    let scores = pad(b, scores, &offset, &[count.clone(), steps.clone(), Dim::from(width)], NEVER)?;
    let rows = cat(b, &[start, scores], 1)?;
    let rows = reshape(b, rows, &[count.clone(), (steps.clone() + Dim::from(1)) * Dim::from(width)])?;
    let skips = pad(b, skips, &[0, 0].map(Dim::from), &[count.clone(), Dim::from(sizes.padded())], NEVER)?;
    let (trips, number) = (b.dim(&steps)?, b.dim(&count)?);
    let dtype = dtype_of(b, rows);
    let result = kernel(sizes.padded(), dtype)?.call(b, &[rows, moves, skips, number, trips])?[0];
    reshape(b, result, &[count, steps + Dim::from(1), Dim::from(width)])
}

/// The rows after the initial one, without padding.
fn behind_start(b: &mut dyn Builder, sizes: &Sizes, ways: NodeId) -> Result<NodeId> {
    let shape = [sizes.count.clone(), sizes.steps.clone(), Dim::from(sizes.states)];
    shrink(b, ways, &[0, 1, LANES].map(Dim::from), &shape)
}

/// The log probability of all paths that end in the last label or in the blank after it.
fn at_end(b: &mut dyn Builder, sizes: &Sizes, ways: NodeId, ends: NodeId) -> Result<NodeId> {
    let Sizes { count, steps, states } = sizes.clone();
    let shape = [count.clone(), Dim::from(1), Dim::from(states)];
    let last = shrink(b, ways, &[Dim::from(0), steps, Dim::from(LANES)], &shape)?;
    let last = reshape(b, last, &[count.clone(), Dim::from(states)])?;
    let label = narrow(b, ends, 1, 1, states - 1)?;
    let label = pad(b, label, &[0, 0].map(Dim::from), &[count, Dim::from(states)], NEVER)?;
    let ends = maximum(b, ends, label)?;
    let last = add(b, last, ends)?;
    reduce::logsumexp(b, last, Some(&[1]), false)
}

/// The kernel: each step of a sequence from the one before, a vector of states at once.
fn kernel(states: i64, dtype: DType) -> Result<WrittenKernel> {
    let width = LANES + states;
    let rows = [Size::With(width, width)];
    let inputs: [(&str, DType, &[Size]); 2] =
        [("moves", dtype, &[Size::With(0, 1)]), ("skips", dtype, &[Size::Number(states)])];
    let (mut w, memories) = Loops::new(&[("ways", dtype, &rows)], &inputs)?;
    let (ways, moves, skips) = (memories[0], memories[1], memories[2]);
    let row = w.open(w.count, AxisType::Global)?;
    let step = w.serial(w.groups)?;
    let is_inside = w.load(moves, &[row, step], None)?;
    let trips = w.graph.index(states / LANES);
    let group = w.serial(trips)?;
    let lane = w.lanes(LANES)?;
    let place = |w: &mut Loops, constant: i64| w.sum(&[(width, step), (LANES, group), (1, lane)], constant);
    let (own, label, skipped) = (place(&mut w, LANES)?, place(&mut w, LANES - 1)?, place(&mut w, LANES - 2)?);
    let next = place(&mut w, width + LANES)?;
    let state = w.sum(&[(LANES, group), (1, lane)], 0)?;
    let own = w.load(ways, &[row, own], None)?;
    let label = w.load(ways, &[row, label], None)?;
    let skipped = w.load(ways, &[row, skipped], None)?;
    let skip = w.load(skips, &[row, state], None)?;
    let score = w.load(ways, &[row, next], None)?;
    let b = &mut w.graph;
    let skipped = b.alu(Op::Add, &[skipped, skip])?;
    let most = b.alu(Op::Max, &[own, label])?;
    let most = b.alu(Op::Max, &[most, skipped])?;
    let mut sum = None;
    for way in [own, label, skipped] {
        let less = sub(b, way, most)?;
        let scaled = scale(b, less, LOG2_E)?;
        let power = b.alu(Op::Exp2, &[scaled])?;
        sum = Some(match sum {
            Some(sum) => b.alu(Op::Add, &[sum, power])?,
            None => power,
        });
    }
    let sum = sum.unwrap_or(most);
    let logarithm = b.alu(Op::Log2, &[sum])?;
    let logarithm = scale(b, logarithm, LN_2)?;
    let all = b.alu(Op::Add, &[most, logarithm])?;
    let all = b.alu(Op::Add, &[all, score])?;
    // Behind the end of a sequence everything stays as it is.
    let zero = like(b, is_inside, 0.0);
    let moves = b.alu(Op::CmpLt, &[zero, is_inside])?;
    let value = b.alu(Op::Where, &[moves, all, own])?;
    w.store(ways, &[row, next], value, None)?;
    w.close(4)?;
    w.finish("ctc")
}

/// The score that each state of each step adds, `[count, steps, states]`.
fn scores(b: &mut dyn Builder, sizes: &Sizes, x: NodeId, states: NodeId) -> Result<NodeId> {
    let Sizes { count, steps, states: width } = sizes.clone();
    let rows = permute(b, x, &[1, 0, 2])?;
    let states = reshape(b, states, &[count.clone(), Dim::from(1), Dim::from(width)])?;
    let states = expand(b, states, &[count, steps, Dim::from(width)])?;
    let scores = gather(b, rows, states, 2)?;
    let never = like(b, scores, NEVER);
    maximum(b, scores, never)
}

/// The log probability of each sequence. Its derivative by a score is the probability of being in this state at this step, from the
/// forward and the backward variables; the latter are the same kernel's result for the reversed sequence.
fn probability(b: &mut dyn Builder, sizes: &Sizes, inputs: [NodeId; 4]) -> Result<NodeId> {
    let results = function::with_gradient(
        b,
        ("ctc", sizes),
        &inputs,
        &|b, inputs| {
            let [scores, moves, skips, ends] = parts(inputs)?;
            let sizes = &sizes.inside(b, scores);
            let start = start(b, sizes, scores)?;
            let all = ways(b, sizes, [scores, moves, skips, start])?;
            Ok(vec![at_end(b, sizes, all, ends)?])
        },
        &|b, inputs, cotangents| {
            let [scores, moves, skips, ends] = parts(inputs)?;
            let sizes = &sizes.inside(b, scores);
            let start = start(b, sizes, scores)?;
            let before = ways(b, sizes, [scores, moves, skips, start])?;
            let total = at_end(b, sizes, before, ends)?;
            let next = narrow(b, skips, 1, sizes.states.min(2), (sizes.states - 2).max(0))?;
            let next = pad(b, next, &[0, 0].map(Dim::from), &[sizes.count.clone(), Dim::from(sizes.states)], NEVER)?;
            let backwards =
                [flip(b, scores, &[1, 2])?, flip(b, moves, &[1])?, flip(b, next, &[1])?, flip(b, ends, &[1])?];
            let after = ways(b, sizes, backwards)?;
            let (before, after) = (behind_start(b, sizes, before)?, behind_start(b, sizes, after)?);
            let after = flip(b, after, &[1, 2])?;
            // Both have the score.
            let ways = add(b, before, after)?;
            let ways = sub(b, ways, scores)?;
            let column = [sizes.count.clone(), Dim::from(1), Dim::from(1)];
            let total = reshape(b, total, &column)?;
            let share = sub(b, ways, total)?;
            let share = exp(b, share)?;
            let steps = reshape(b, moves, &[sizes.count.clone(), sizes.steps.clone(), Dim::from(1)])?;
            let (zero, bound) = (like(b, share, 0.0), like(b, total, 0.1 * NEVER));
            let (is_possible, is_inside) = (lt(b, bound, total)?, lt(b, zero, steps)?);
            let counts = and(b, is_possible, is_inside)?;
            let share = where_(b, counts, share, zero)?;
            let cotangent = reshape(b, cotangents[0], &column)?;
            Ok(vec![mul(b, share, cotangent)?, scale(b, moves, 0.0)?, scale(b, skips, 0.0)?, scale(b, ends, 0.0)?])
        },
    )?;
    Ok(results[0])
}

fn parts(inputs: &[NodeId]) -> Result<[NodeId; 4]> {
    inputs.try_into().map_err(|_| Error::new(ErrorKind::Arity, "ctc_loss", "scores, moves, skips and ends"))
}
