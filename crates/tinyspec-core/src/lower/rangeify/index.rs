//! Index arithmetic: every index is emitted from its normal form, so that equal addresses are one node and the div and
//! mod of a Reshape cancel wherever possible.

mod symbolic;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use symbolic::Symbols;
pub(super) use symbolic::dim_of;
use tinyspec_ir::affine::{Affine, divided};
use tinyspec_ir::dim::floor_div;
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Dim, Graph, NodeId, Op, Result, Shape};

/// Slots from here on belong to placeholders rather than named dims.
const PLACEHOLDERS: u32 = 1 << 31;

/// The demand whose value the placeholder stands for.
pub(super) fn placeholder_of(arg: &Arg) -> Option<u32> {
    match *arg {
        Arg::Param { slot, addrspace: None, .. } => slot.checked_sub(PLACEHOLDERS),
        _ => None,
    }
}

/// One index scalar per dim.
pub(super) type Tuple = SmallVec<[NodeId; 4]>;

/// Ranges (and placeholders resolved to the Ranges behind them) that an index depends on, ascending.
pub(super) type Ranges = SmallVec<[NodeId; 4]>;

/// The fact that `inner / divisor` is `quotient`.
#[derive(Clone, Copy)]
pub(super) struct KnownQuotient {
    inner: NodeId,
    divisor: i64,
    quotient: i64,
}

/// The graph of scalars that all kernels of one schedule are first built in.
#[derive(Default)]
pub(super) struct Indices {
    pub(super) graph: Graph,
    ranges: FxHashMap<NodeId, Ranges>,
    next_range: u32,
    symbols: Symbols,
    /// Positions that a Reshape split into indices along some dims, by those indices.
    split: FxHashMap<Tuple, (Shape, NodeId)>,
}

impl Indices {
    /// An index constant.
    pub(super) fn number(&mut self, value: i64) -> NodeId {
        self.graph.index(value)
    }

    /// A new Range, which no other kernel or Reduce has.
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
        let sum = self.form(a).plus(&self.form(b));
        self.build(sum)
    }

    /// `a + number`.
    pub(super) fn offset(&mut self, a: NodeId, number: i64) -> Result<NodeId> {
        let sum = self.form(a).offset(number);
        self.build(sum)
    }

    /// `a · factor`.
    pub(super) fn scale(&mut self, a: NodeId, factor: i64) -> Result<NodeId> {
        let product = self.form(a).scale(factor);
        self.build(product)
    }

    /// The row-major position of `tuple` in `dims`. Indices that were split from a position are recombined to it.
    pub(super) fn flat(&mut self, tuple: &[NodeId], dims: &[Dim]) -> Result<NodeId> {
        let mut total = self.number(0);
        let mut stride = Dim::from(1);
        let mut end = tuple.len().min(dims.len());
        while end > 0 {
            let whole = (0..end - 1).find_map(|start| {
                let (of, position) = self.split.get(&tuple[start..end])?;
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

    /// Remembers that `tuple` was split from `position` along `dims`.
    pub(super) fn remember(&mut self, tuple: Tuple, dims: Shape, position: NodeId) {
        if tuple.len() > 1 {
            self.split.insert(tuple, (dims, position));
        }
    }

    /// Floored `a / divisor` for a positive divisor.
    pub(super) fn divide(&mut self, a: NodeId, divisor: i64) -> Result<NodeId> {
        let quotient = self.form(a).quotient(&mut self.graph, divisor)?;
        self.build(quotient)
    }

    /// Floored remainder of `a` by a positive divisor.
    pub(super) fn remainder(&mut self, a: NodeId, divisor: i64) -> Result<NodeId> {
        let remainder = self.form(a).remainder(&mut self.graph, divisor)?;
        self.build(remainder)
    }

    /// `low <= a < high`, or `None` where that always holds.
    pub(super) fn within(&mut self, a: NodeId, low: i64, high: i64) -> Result<Option<NodeId>> {
        let (least, greatest) = self.form(a).bounds(&self.graph);
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
        let difference = self.form(a).minus(&self.form(b));
        let difference = self.recombined(difference)?;
        let ((low, high), (least, greatest)) = (difference.bounds(&self.graph), self.ends(&difference));
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

    /// An index, clamped to `0..size` if it depends on data that may lie outside. Quotients of it then fit in 32 bits.
    pub(super) fn clamped_data(&mut self, a: NodeId, size: i64) -> Result<NodeId> {
        let form = self.form(a);
        let (least, greatest) = form.bounds(&self.graph);
        let is_data = form.atoms().any(|atom| placeholder_of(self.graph.arg(atom)).is_some());
        if !is_data || least >= 0 && greatest < size.into() || size < 1 {
            return Ok(a);
        }
        let [first, last] = [0, size - 1].map(|number| self.number(number));
        let a = self.maximum(a, first)?;
        self.minimum(a, last)
    }

    /// `a` as `sign · range + rest` with a sign of 1 or -1 and a rest that does not depend on the Range.
    pub(super) fn without(&mut self, a: NodeId, range: NodeId) -> Result<Option<(i64, NodeId)>> {
        let form = self.form(a);
        let sign @ (1 | -1) = form.coefficient(range) else { return Ok(None) };
        let rest = self.build(form.filter(|atom| atom != range))?;
        let depends = self.ranges_of([rest]).contains(&range);
        Ok((!depends).then_some((sign, rest)))
    }

    /// The Range that `a` steps along, up or down.
    pub(super) fn walked(&self, a: NodeId) -> Option<NodeId> {
        match self.form(a).terms() {
            &[(range, 1 | -1)] if self.graph.op(range) == Op::Range => Some(range),
            _ => None,
        }
    }

    /// Whether an index has a quotient of a sum of Ranges. Quotients of one Range are digits of it, which loops of their own can walk.
    pub(super) fn has_quotient(&mut self, a: NodeId) -> bool {
        let form = self.form(a);
        let quotients = form.atoms().filter(|&atom| matches!(self.graph.op(atom), Op::Idiv | Op::Mod));
        let quotients: SmallVec<[NodeId; 2]> = quotients.collect();
        quotients.into_iter().any(|atom| self.ranges_of([atom]).len() > 1)
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

    /// Whether the gate is always false.
    pub(super) fn is_never(&self, gate: NodeId) -> bool {
        self.graph.as_const(gate).is_some_and(|value| value.bits == 0)
    }

    fn truth(&mut self, value: bool) -> NodeId {
        self.graph.constant(Const::int(DType::Bool, value as i128))
    }

    /// The gate `low <= a < high` for a remainder `a`, if only one quotient is compatible with it; and that quotient.
    pub(super) fn within_turn(
        &mut self,
        a: NodeId,
        low: i64,
        high: i64,
    ) -> Result<Option<(Option<NodeId>, KnownQuotient)>> {
        let form = self.form(a);
        let &[(atom, 1)] = form.terms() else { return Ok(None) };
        let Some((Op::Mod, inner, divisor)) = divided(&self.graph, atom) else { return Ok(None) };
        let (least, greatest) = self.form(inner).bounds(&self.graph);
        let (Ok(least), Ok(greatest)) = (i64::try_from(least), i64::try_from(greatest)) else { return Ok(None) };
        let (low, high) = ((low - form.constant()).max(0), (high - form.constant()).min(divisor));
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
        Ok(Some((gate, KnownQuotient { inner, divisor, quotient })))
    }

    /// `a` simplified by the quotient of a turn.
    pub(super) fn in_turn(&mut self, a: NodeId, turn: KnownQuotient) -> Result<NodeId> {
        let form = self.form(a);
        let known = form.substitute(|atom| match divided(&self.graph, atom) {
            Some((Op::Idiv, inner, by)) if (inner, by) == (turn.inner, turn.divisor) => Affine::number(turn.quotient),
            Some((Op::Mod, inner, by)) if (inner, by) == (turn.inner, turn.divisor) => {
                self.form(inner).offset(-turn.quotient * turn.divisor)
            }
            _ => Affine::atom(atom),
        });
        if known == form { Ok(a) } else { self.build(known) }
    }

    fn form(&self, node: NodeId) -> Affine {
        Affine::of(&self.graph, node)
    }

    /// The node of a form.
    fn build(&mut self, form: Affine) -> Result<NodeId> {
        self.recombined(form)?.emit(&mut self.graph)
    }

    /// `k·d·(y / d) + k·(y mod d)` is `k·y`.
    fn recombined(&mut self, mut form: Affine) -> Result<Affine> {
        let mut open: SmallVec<[(NodeId, i64); 4]> = form.terms().into();
        while let Some((atom, coefficient)) = open.pop() {
            let (inner, whole) = match divided(&self.graph, atom) {
                Some((Op::Mod, inner, divisor)) => {
                    let inner = self.form(inner);
                    let quotient = inner.quotient(&mut self.graph, divisor)?;
                    (inner, quotient.scale(coefficient.wrapping_mul(divisor)))
                }
                _ => match self.remainder_of(atom) {
                    Some((inner, divisor)) => {
                        let quotient = self.divide_by(inner, &divisor)?;
                        let whole = self.times(&self.form(quotient), &(divisor * Dim::from(coefficient)))?;
                        (self.form(inner), whole)
                    }
                    None => continue,
                },
            };
            let is_there = !whole.terms().is_empty() && whole.terms().iter().all(|term| form.terms().contains(term));
            if is_there && whole.constant() == 0 {
                let remainder = Affine::sum([(atom, coefficient)], 0);
                form = form.minus(&whole).minus(&remainder).plus(&inner.scale(coefficient));
                open = form.terms().into();
            }
        }
        Ok(form)
    }
}
