//! Indices whose arithmetic may overflow an i64, such as `at[i] as usize * STRIDE`. In exact arithmetic they are out of
//! bounds, but machine code wraps, so the condition of the access has to exclude them.

use std::collections::{HashMap, HashSet};
use tinyspec_ir::{Builder, Const, DType, Graph, NodeId, Op};

/// A bound for sums, so that the sum of two of them does not wrap.
const FAR: i128 = 1 << 62;
/// The magnitude of every i64 is within this.
const ANY: i128 = 1 << 63;
/// No axis is longer.
const LONGEST: i128 = 1 << 48;

/// Conditions under which this index equals the result of exact arithmetic or is out of bounds; empty if bounds prove
/// it.
pub(super) fn conditions(graph: &mut Graph, index: NodeId) -> Vec<NodeId> {
    let mut search = Search { graph, bounds: HashMap::new(), seen: HashSet::new(), conditions: Vec::new() };
    search.compared(index);
    search.conditions
}

struct Search<'g> {
    graph: &'g mut Graph,
    bounds: HashMap<NodeId, (i128, i128)>,
    seen: HashSet<(NodeId, i128)>,
    conditions: Vec<NodeId>,
}

impl Search<'_> {
    /// The index is compared with the ends of an axis: a sum that exceeds an i64 by little wraps to a value outside
    /// every axis.
    fn compared(&mut self, index: NodeId) {
        let mut terms = self.terms(index);
        terms.sort_by_key(|&term| self.magnitude(term));
        let Some((&greatest, rest)) = terms.split_last() else { return };
        let little: i128 = rest.iter().map(|&term| self.magnitude(term)).fold(0, i128::saturating_add);
        let wraps_far = self.graph.op(greatest) != Op::Mul && (rest.is_empty() || !self.is_u64(greatest));
        if !wraps_far || little > FAR {
            return self.within(index, FAR);
        }
        for &term in rest {
            self.within(term, ANY);
        }
        if !self.is_u64(greatest) {
            self.within(greatest, ANY);
        }
    }

    /// Demands that the index is computed without overflow and its magnitude is at most `limit`.
    fn within(&mut self, index: NodeId, limit: i128) {
        if self.graph.dtype(index) != DType::Index || !self.seen.insert((index, limit)) {
            return;
        }
        match self.graph.op(index) {
            Op::Add => self.sum_within(index, limit.min(FAR)),
            Op::Mul => self.product_within(index, limit.min(FAR)),
            _ => self.value_within(index, limit),
        }
    }

    fn sum_within(&mut self, sum: NodeId, limit: i128) {
        let terms = self.terms(sum);
        let total = terms.iter().map(|&term| self.magnitude(term)).fold(0, i128::saturating_add);
        let each = if total <= limit { ANY } else { limit / terms.len() as i128 };
        for term in terms {
            self.within(term, each);
        }
    }

    fn product_within(&mut self, product: NodeId, limit: i128) {
        let [mut a, mut b] = self.graph.sources(product)[..] else { return };
        if self.magnitude(a) < self.magnitude(b) {
            (a, b) = (b, a);
        }
        if self.magnitude(a).saturating_mul(self.magnitude(b)) <= limit {
            self.within(a, ANY);
            return self.within(b, ANY);
        }
        for (value, factor) in [(a, b), (b, a)] {
            if let Some(factor) = self.graph.as_int(factor).filter(|&factor| factor != 0) {
                return self.within(value, limit / factor.abs());
            }
        }
        self.within(a, ANY);
        self.within(b, FAR);
        let most = self.quotient(limit, b);
        let most = most.and_then(|most| Some((self.times(most, -1)?, most)));
        let Some((least, most)) = most else { return };
        self.not_less(a, least);
        self.not_less(most, a);
    }

    fn value_within(&mut self, value: NodeId, limit: i128) {
        for source in self.graph.sources(value).to_vec() {
            self.within(source, ANY);
        }
        if self.is_u64(value) {
            let number = self.graph.sources(value)[0];
            let end = self.graph.constant(Const::int(DType::U64, ANY));
            self.conditions.extend(self.graph.alu(Op::CmpLt, &[number, end]).ok());
        }
        let (low, high) = self.bounds(value);
        if low < -limit {
            let least = self.graph.index(-limit as i64);
            self.not_less(value, least);
        }
        if high > limit && limit < ANY {
            let most = self.graph.index(limit as i64);
            self.not_less(most, value);
        }
    }

    /// `limit / |b|`, with a `b` of 0 treated as 1.
    fn quotient(&mut self, limit: i128, b: NodeId) -> Option<NodeId> {
        let size = match self.bounds(b).0 {
            0.. => b,
            _ => {
                let minus = self.times(b, -1)?;
                self.graph.alu(Op::Max, &[b, minus]).ok()?
            }
        };
        let one = self.graph.index(1);
        let size = self.graph.alu(Op::Max, &[size, one]).ok()?;
        let limit = self.graph.index(limit as i64);
        self.graph.alu(Op::Idiv, &[limit, size]).ok()
    }

    fn times(&mut self, value: NodeId, factor: i64) -> Option<NodeId> {
        let factor = self.graph.index(factor);
        self.graph.alu(Op::Mul, &[value, factor]).ok()
    }

    /// Demands `a >= b`.
    fn not_less(&mut self, a: NodeId, b: NodeId) {
        let yes = self.graph.constant(Const::int(DType::Bool, 1));
        let less = self.graph.alu(Op::CmpLt, &[a, b]);
        self.conditions.extend(less.and_then(|less| self.graph.alu(Op::Xor, &[less, yes])).ok());
    }

    fn terms(&self, sum: NodeId) -> Vec<NodeId> {
        let (mut terms, mut open) = (Vec::new(), vec![sum]);
        while let Some(node) = open.pop() {
            match self.graph.op(node) {
                Op::Add => open.extend_from_slice(self.graph.sources(node)),
                _ => terms.push(node),
            }
        }
        terms
    }

    /// Whether the value is a u64, whose upper half is negative as an index.
    fn is_u64(&self, value: NodeId) -> bool {
        let is_cast = self.graph.op(value) == Op::Cast;
        is_cast && self.graph.props(self.graph.sources(value)[0]).interval.int().is_some_and(|(_, high)| high >= ANY)
    }

    fn magnitude(&mut self, value: NodeId) -> i128 {
        let (low, high) = self.bounds(value);
        low.saturating_abs().max(high.saturating_abs())
    }

    /// Bounds of the exact value.
    fn bounds(&mut self, value: NodeId) -> (i128, i128) {
        if let Some(&known) = self.bounds.get(&value) {
            return known;
        }
        let known = self.graph.props(value).interval.int().unwrap_or((-ANY, ANY - 1));
        let bounds = match (self.graph.op(value), &self.graph.sources(value).to_vec()[..]) {
            (Op::Add, &[a, b]) => {
                let (a, b) = (self.bounds(a), self.bounds(b));
                (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
            }
            (Op::Mul, &[a, b]) => {
                let (a, b) = (self.bounds(a), self.bounds(b));
                let ends = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| a.saturating_mul(b));
                (ends.into_iter().min().unwrap_or(0), ends.into_iter().max().unwrap_or(0))
            }
            (Op::Range, &[bound, ..]) => (0, (self.bounds(bound).1 - 1).max(0)),
            (Op::Param, _) => (known.0.max(-LONGEST), known.1.min(LONGEST)),
            (Op::Idiv, &[a, b]) => match (self.bounds(a), self.graph.as_int(b)) {
                ((low, high), Some(divisor @ 1..)) => (low.div_euclid(divisor), high.div_euclid(divisor)),
                _ => known,
            },
            _ => known,
        };
        self.bounds.insert(value, bounds);
        bounds
    }
}
