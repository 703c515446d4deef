//! Index arithmetic: sums of atoms with integer coefficients, in one normal form, so that equal addresses are one
//! node and the div and mod of a Reshape vanish wherever they can.

mod symbolic;

use crate::lower::sum::factor_without_carry;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use symbolic::Symbols;
pub(super) use symbolic::dim_of;
use tinyspec_ir::dim::{floor_div, floor_mod};
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Dim, Graph, NodeId, Op, Result, Shape};

/// Slots from here on are those of placeholders, which are no named dims.
const PLACEHOLDERS: u32 = 1 << 31;

/// The demand whose value the placeholder stands for.
pub(super) fn placeholder_of(arg: &Arg) -> Option<u32> {
    match *arg {
        Arg::Param { slot, addrspace: None, .. } => slot.checked_sub(PLACEHOLDERS),
        _ => None,
    }
}

/// One index scalar a dim.
pub(super) type Tuple = SmallVec<[NodeId; 4]>;

/// Ranges (and placeholders resolved to the Ranges behind them) that an index depends on, ascending.
pub(super) type Ranges = SmallVec<[NodeId; 4]>;

/// `constant + Σ coefficient · atom`, atoms ascending.
#[derive(Clone, Debug, Default, PartialEq)]
struct Linear {
    terms: SmallVec<[(NodeId, i64); 4]>,
    constant: i64,
}

/// That `inner / divisor` is `quotient`.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    inner: NodeId,
    divisor: i64,
    quotient: i64,
}

/// The graph of scalars that all kernels of one schedule are first built in.
#[derive(Default)]
pub(super) struct Indices {
    pub(super) graph: Graph,
    linear: FxHashMap<NodeId, Linear>,
    ranges: FxHashMap<NodeId, Ranges>,
    next_range: u32,
    symbols: Symbols,
    /// Positions that a Reshape took apart into indices along some dims, by those indices.
    apart: FxHashMap<Tuple, (Shape, NodeId)>,
}

impl Indices {
    /// An index constant.
    pub(super) fn number(&mut self, value: i64) -> NodeId {
        self.graph.index(value)
    }

    /// A Range that no other kernel or Reduce has.
    pub(super) fn fresh_range(&mut self, extent: &Dim, axis: AxisType) -> Result<NodeId> {
        let bound = self.graph.dim(extent)?;
        let range = self.graph.range(bound, self.next_range, axis)?;
        self.next_range += 1;
        self.ranges.insert(range, Ranges::from_slice(&[range]));
        Ok(range)
    }

    /// An index that stands for a value which is only known once the kernel's values are built.
    pub(super) fn placeholder(&mut self, demand: u32, (low, high): (i64, i64), ranges: Ranges) -> Result<NodeId> {
        let sources = [self.graph.shape(&[])?, self.graph.index(low), self.graph.index(high)];
        let slot = PLACEHOLDERS + demand;
        let arg = Arg::Param { slot, dtype: DType::Index, device: None, addrspace: None };
        let node = self.graph.add(Op::Param, &sources, arg)?;
        self.ranges.insert(node, ranges);
        Ok(node)
    }

    /// The Ranges of some index scalars and gates together.
    pub(super) fn ranges_of(&mut self, nodes: impl IntoIterator<Item = NodeId>) -> Ranges {
        let mut all = Ranges::new();
        for node in nodes {
            if self.graph.op(node) == Op::Const {
                continue;
            }
            if !self.ranges.contains_key(&node) {
                // Index expressions are built bottom-up and stay shallow.
                let sources: SmallVec<[NodeId; 4]> = self.graph.sources(node).into();
                let ranges = self.ranges_of(sources);
                self.ranges.insert(node, ranges);
            }
            all.extend(self.ranges[&node].iter().copied());
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// `a + b`.
    pub(super) fn add(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        let mut sum = self.parts(a);
        let other = self.parts(b);
        sum.constant = sum.constant.wrapping_add(other.constant);
        sum.terms.extend(other.terms);
        self.build(sum)
    }

    /// `a + number`.
    pub(super) fn offset(&mut self, a: NodeId, number: i64) -> Result<NodeId> {
        let mut sum = self.parts(a);
        sum.constant = sum.constant.wrapping_add(number);
        self.build(sum)
    }

    /// `a · factor`.
    pub(super) fn scale(&mut self, a: NodeId, factor: i64) -> Result<NodeId> {
        let mut product = self.parts(a);
        product.constant = product.constant.wrapping_mul(factor);
        for (_, coefficient) in &mut product.terms {
            *coefficient = coefficient.wrapping_mul(factor);
        }
        self.build(product)
    }

    /// The row-major position of `tuple` in `dims`. What was taken apart along some of them is put together as it was.
    pub(super) fn flat(&mut self, tuple: &[NodeId], dims: &[Dim]) -> Result<NodeId> {
        let mut total = self.number(0);
        let mut stride = Dim::from(1);
        let mut end = tuple.len().min(dims.len());
        while end > 0 {
            let whole = (0..end - 1).find_map(|start| {
                let (of, position) = self.apart.get(&tuple[start..end])?;
                (of[..] == dims[start..end]).then_some((start, *position))
            });
            let (start, position) = whole.unwrap_or((end - 1, tuple[end - 1]));
            let step = self.scale_by(position, &stride)?;
            total = self.add(total, step)?;
            stride = dims[start..end].iter().fold(stride, |stride, dim| stride * dim.clone());
            end = start;
        }
        Ok(total)
    }

    /// Remembers that `tuple` is `position` in `dims`, taken apart.
    pub(super) fn remember(&mut self, tuple: Tuple, dims: Shape, position: NodeId) {
        if tuple.len() > 1 {
            self.apart.insert(tuple, (dims, position));
        }
    }

    /// Floored `a / divisor` for a positive divisor.
    pub(super) fn divide(&mut self, a: NodeId, divisor: i64) -> Result<NodeId> {
        let parts = self.parts(a);
        let (mut quotient, rest) = self.split(parts, divisor);
        if let Some(value) = self.constant_quotient(&rest, divisor) {
            quotient.constant = quotient.constant.wrapping_add(value);
            return self.build(quotient);
        }
        let common = self.factor_without_carry(&rest, divisor);
        let (smaller, divisor) = shrink(rest, common, divisor);
        let atom = match self.single(&smaller) {
            // (y / d) / e = y / (d·e)
            Some((Op::Idiv, inner, step)) => self.divide(inner, step.wrapping_mul(divisor))?,
            _ if divisor == 1 => self.build(smaller)?,
            _ => self.atom(Op::Idiv, smaller, divisor)?,
        };
        let quotient = self.build(quotient)?;
        self.add(quotient, atom)
    }

    /// Floored remainder of `a` by a positive divisor.
    pub(super) fn remainder(&mut self, a: NodeId, divisor: i64) -> Result<NodeId> {
        let parts = self.parts(a);
        let (_, mut rest) = self.split(parts, divisor);
        if let Some(value) = self.constant_quotient(&rest, divisor) {
            rest.constant = rest.constant.wrapping_sub(value.wrapping_mul(divisor));
            return self.build(rest);
        }
        let common = self.factor_without_carry(&rest, divisor);
        let low = below(&rest, common);
        let (smaller, divisor) = shrink(rest, common, divisor);
        let atom = match self.single(&smaller) {
            // (y mod d) mod e = y mod e where e divides d
            Some((Op::Mod, inner, step)) if step % divisor == 0 => self.remainder(inner, divisor)?,
            _ if divisor == 1 => self.number(0),
            _ => {
                let node = self.build(smaller.clone())?;
                match self.constant_quotient(&smaller, divisor) {
                    Some(_) => self.remainder(node, divisor)?,
                    None => self.atom(Op::Mod, smaller, divisor)?,
                }
            }
        };
        let (scaled, low) = (self.scale(atom, common)?, self.build(low)?);
        self.add(scaled, low)
    }

    /// `low <= a < high`, or `None` where that always holds.
    pub(super) fn within(&mut self, a: NodeId, low: i64, high: i64) -> Result<Option<NodeId>> {
        let (least, greatest) = self.bounds(&self.parts(a));
        let mut gate = None;
        if low as i128 > least {
            let bound = self.number(low.wrapping_sub(1));
            gate = Some(self.graph.alu(Op::CmpLt, &[bound, a])?);
        }
        if (high as i128) <= greatest {
            let bound = self.number(high);
            let below = self.graph.alu(Op::CmpLt, &[a, bound])?;
            gate = self.both(gate, Some(below))?;
        }
        match gate {
            Some(_) if greatest < low as i128 || least >= high as i128 => Ok(Some(self.truth(false))),
            _ => Ok(gate),
        }
    }

    /// The larger of both.
    pub(super) fn maximum(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        let minus = self.scale(b, -1)?;
        let difference = self.add(a, minus)?;
        let difference = self.parts(difference);
        let ((low, high), (least, greatest)) = (self.bounds(&difference), self.ends(&difference));
        let is_less = high <= 0 || greatest.is_some_and(|greatest| greatest.bounds().1 <= 0);
        match (low >= 0 || least.is_some_and(|least| least.bounds().0 >= 0), is_less) {
            (true, _) => Ok(a),
            (_, true) => Ok(b),
            _ => self.graph.alu(Op::Max, &[a, b]),
        }
    }

    /// The smaller of both.
    pub(super) fn minimum(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        let (a, b) = (self.scale(a, -1)?, self.scale(b, -1)?);
        let larger = self.maximum(a, b)?;
        self.scale(larger, -1)
    }

    /// `a` as `sign · range + rest` with a sign of 1 or -1 and a rest that does not depend on the Range.
    pub(super) fn without(&mut self, a: NodeId, range: NodeId) -> Result<Option<(i64, NodeId)>> {
        let mut rest = self.parts(a);
        let Some(position) = rest.terms.iter().position(|&(atom, _)| atom == range) else { return Ok(None) };
        let (_, sign) = rest.terms.remove(position);
        let rest = self.build(rest)?;
        let depends = self.ranges_of([rest]).contains(&range);
        Ok((sign.abs() == 1 && !depends).then_some((sign, rest)))
    }

    /// The Range that `a` counts with, up or down.
    pub(super) fn walked(&self, a: NodeId) -> Option<NodeId> {
        match self.parts(a).terms.as_slice() {
            &[(range, 1 | -1)] if self.graph.op(range) == Op::Range => Some(range),
            _ => None,
        }
    }

    /// Both gates together.
    pub(super) fn both(&mut self, a: Option<NodeId>, b: Option<NodeId>) -> Result<Option<NodeId>> {
        Ok(match (a, b) {
            (Some(a), Some(b)) if a == b || self.is_never(a) => Some(a),
            (Some(_), Some(b)) if self.is_never(b) => Some(b),
            (Some(a), Some(b)) => Some(self.graph.alu(Op::And, &[a.min(b), a.max(b)])?),
            (a, b) => a.or(b),
        })
    }

    /// The gate is false whatever the Ranges are.
    pub(super) fn is_never(&self, gate: NodeId) -> bool {
        self.graph.as_const(gate).is_some_and(|value| value.bits == 0)
    }

    fn truth(&mut self, value: bool) -> NodeId {
        self.graph.constant(Const::int(DType::Bool, value as i128))
    }

    /// `parts` as a multiple of `divisor` and a rest that has as few values as possible: a window's gradient walks
    /// `58·k + i` in rows of 59, which is row `k` at `i - k`.
    fn split(&self, parts: Linear, divisor: i64) -> (Linear, Linear) {
        let width = |rest: &Linear| {
            let (low, high) = self.bounds(rest);
            high - low
        };
        let (floored, nearest) = (split(&parts, divisor, false), split(&parts, divisor, true));
        if width(&nearest.1) < width(&floored.1) { nearest } else { floored }
    }

    /// `low <= a < high` for an `a` that is a remainder, where only one quotient allows that: what it then is.
    pub(super) fn within_turn(&mut self, a: NodeId, low: i64, high: i64) -> Result<Option<(Option<NodeId>, Turn)>> {
        let parts = self.parts(a);
        let &[(atom, 1)] = parts.terms.as_slice() else { return Ok(None) };
        let Some((Op::Mod, inner, divisor)) = self.quotient(atom) else { return Ok(None) };
        let (least, greatest) = self.bounds(&self.parts(inner));
        let (Ok(least), Ok(greatest)) = (i64::try_from(least), i64::try_from(greatest)) else { return Ok(None) };
        let (low, high) = ((low - parts.constant).max(0), (high - parts.constant).min(divisor));
        let quotients = floor_div(least, divisor)..=floor_div(greatest, divisor);
        if quotients.end() - quotients.start() > 3 {
            return Ok(None);
        }
        let is_possible = |quotient: &i64| {
            let start = quotient * divisor;
            low.max(least - start) < high.min(greatest - start + 1)
        };
        let mut possible = quotients.filter(is_possible);
        let (Some(quotient), None) = (possible.next(), possible.next()) else { return Ok(None) };
        let gate = self.within(inner, quotient * divisor + low, quotient * divisor + high)?;
        Ok(Some((gate, Turn { inner, divisor, quotient })))
    }

    /// `a` where the quotient of a turn is known.
    pub(super) fn in_turn(&mut self, a: NodeId, turn: Turn) -> Result<NodeId> {
        let parts = self.parts(a);
        let (mut total, mut changed) = (Linear { terms: SmallVec::new(), constant: parts.constant }, false);
        for &(atom, coefficient) in &parts.terms {
            let value = match self.quotient(atom) {
                Some((op, inner, divisor)) if (inner, divisor) == (turn.inner, turn.divisor) => match op {
                    Op::Idiv => Linear { terms: SmallVec::new(), constant: turn.quotient },
                    _ => {
                        let mut rest = self.parts(inner);
                        rest.constant -= turn.quotient * divisor;
                        rest
                    }
                },
                _ => {
                    total.terms.push((atom, coefficient));
                    continue;
                }
            };
            changed = true;
            total.constant += value.constant * coefficient;
            total.terms.extend(value.terms.iter().map(|&(atom, inner)| (atom, inner * coefficient)));
        }
        if changed { self.build(total) } else { Ok(a) }
    }

    fn parts(&self, node: NodeId) -> Linear {
        if let Some(value) = self.graph.as_int(node) {
            return Linear { terms: SmallVec::new(), constant: value as i64 };
        }
        match self.linear.get(&node) {
            Some(linear) => linear.clone(),
            None => Linear { terms: SmallVec::from_slice(&[(node, 1)]), constant: 0 },
        }
    }

    fn bounds(&self, linear: &Linear) -> (i128, i128) {
        let mut total = (linear.constant as i128, linear.constant as i128);
        for &(atom, coefficient) in &linear.terms {
            let (low, high) = self.graph.props(atom).interval.int().unwrap_or((i64::MIN as i128, i64::MAX as i128));
            let ends = [low * coefficient as i128, high * coefficient as i128];
            total = (total.0 + ends[0].min(ends[1]), total.1 + ends[0].max(ends[1]));
        }
        total
    }

    fn constant_quotient(&self, rest: &Linear, divisor: i64) -> Option<i64> {
        let (low, high) = self.bounds(rest);
        let ends = (i64::try_from(low).ok()?, i64::try_from(high).ok()?);
        let value = floor_div(ends.0, divisor);
        (value == floor_div(ends.1, divisor)).then_some(value)
    }

    fn factor_without_carry(&self, rest: &Linear, divisor: i64) -> i64 {
        let coefficients = rest.terms.iter().map(|&(_, coefficient)| coefficient);
        factor_without_carry(divisor, coefficients, |factor| Some(self.bounds(&below(rest, factor))))
    }

    /// The only atom of `linear` as `(op, inner, number)`, if it is a quotient or remainder by a number.
    fn single(&self, linear: &Linear) -> Option<(Op, NodeId, i64)> {
        match linear.terms.as_slice() {
            &[(atom, 1)] if linear.constant == 0 => self.quotient(atom),
            _ => None,
        }
    }

    fn quotient(&self, atom: NodeId) -> Option<(Op, NodeId, i64)> {
        let op = self.graph.op(atom);
        let number = self.graph.as_int(*self.graph.sources(atom).get(1)?)? as i64;
        matches!(op, Op::Idiv | Op::Mod).then_some((op, self.graph.source(atom, 0), number))
    }

    fn atom(&mut self, op: Op, linear: Linear, number: i64) -> Result<NodeId> {
        let (inner, number) = (self.build(linear)?, self.number(number));
        self.graph.alu(op, &[inner, number])
    }

    /// The node of a normal form.
    fn build(&mut self, mut linear: Linear) -> Result<NodeId> {
        normalise(&mut linear);
        self.recombine(&mut linear)?;
        let mut total: Option<NodeId> = None;
        for &(atom, coefficient) in &linear.terms {
            let term = match coefficient {
                1 => atom,
                _ => {
                    let factor = self.number(coefficient);
                    self.graph.alu(Op::Mul, &[atom, factor])?
                }
            };
            total = Some(match total {
                Some(total) => self.graph.alu(Op::Add, &[total, term])?,
                None => term,
            });
        }
        let node = match total {
            None => self.number(linear.constant),
            Some(total) if linear.constant == 0 => total,
            Some(total) => {
                let constant = self.number(linear.constant);
                self.graph.alu(Op::Add, &[total, constant])?
            }
        };
        if !linear.terms.is_empty() {
            self.linear.insert(node, linear);
        }
        Ok(node)
    }

    /// `k·d·(y / d) + k·(y mod d)` is `k·y`.
    fn recombine(&mut self, linear: &mut Linear) -> Result<()> {
        for position in 0..linear.terms.len() {
            let (atom, coefficient) = linear.terms[position];
            let Some((Op::Mod, inner, number)) = self.quotient(atom) else {
                if self.recombine_by(linear, (atom, coefficient))? {
                    return self.recombine(linear);
                }
                continue;
            };
            let quotient = self.divide(inner, number)?;
            let wanted = (quotient, coefficient.wrapping_mul(number));
            let Some(partner) = linear.terms.iter().position(|&term| term == wanted) else { continue };
            linear.terms.retain(|term| *term != (atom, coefficient) && *term != wanted);
            debug_assert_ne!(partner, position);
            let whole = self.scale(inner, coefficient)?;
            let whole = self.parts(whole);
            linear.constant = linear.constant.wrapping_add(whole.constant);
            linear.terms.extend(whole.terms);
            normalise(linear);
            return self.recombine(linear);
        }
        Ok(())
    }
}

fn normalise(linear: &mut Linear) {
    linear.terms.sort_unstable();
    let mut merged: SmallVec<[(NodeId, i64); 4]> = SmallVec::new();
    for &(atom, coefficient) in &linear.terms {
        match merged.last_mut() {
            Some((last, sum)) if *last == atom => *sum = sum.wrapping_add(coefficient),
            _ => merged.push((atom, coefficient)),
        }
    }
    merged.retain(|(_, coefficient)| *coefficient != 0);
    linear.terms = merged;
}

/// The part that `divisor` divides, already divided, and the rest; its constant is in `0..divisor`. Multiples are cut
/// off towards 0, or to the nearest.
fn split(parts: &Linear, divisor: i64, nearest: bool) -> (Linear, Linear) {
    let (mut quotient, mut rest) = (Linear::default(), Linear::default());
    for &(atom, coefficient) in &parts.terms {
        let (mut whole, mut part) = (coefficient / divisor, coefficient % divisor);
        if nearest && part.unsigned_abs() > divisor.unsigned_abs() / 2 {
            (whole, part) = (whole + part.signum(), part - part.signum() * divisor);
        }
        if whole != 0 {
            quotient.terms.push((atom, whole));
        }
        if part != 0 {
            rest.terms.push((atom, part));
        }
    }
    quotient.constant = floor_div(parts.constant, divisor);
    rest.constant = floor_mod(parts.constant, divisor);
    (quotient, rest)
}

/// The terms that `factor` does not divide, and the constant's remainder.
fn below(rest: &Linear, factor: i64) -> Linear {
    let terms = rest.terms.iter().copied().filter(|&(_, coefficient)| coefficient % factor != 0).collect();
    Linear { terms, constant: floor_mod(rest.constant, factor) }
}

/// `rest` and `divisor` without a common factor: `(g·m + k) / (g·n)` is `(m + k / g) / n`, for a `k` that never carries.
fn shrink(mut rest: Linear, common: i64, divisor: i64) -> (Linear, i64) {
    rest.terms.retain(|(_, coefficient)| *coefficient % common == 0);
    for (_, coefficient) in &mut rest.terms {
        *coefficient /= common;
    }
    rest.constant = floor_div(rest.constant, common);
    (rest, divisor / common)
}
