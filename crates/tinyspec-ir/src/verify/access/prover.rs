//! Proves facts about index arithmetic, under the bounds of loops and the conditions of gates.
//!
//! A sum of products has its minimum where each loop variable is at one of its bounds; conditions are subtracted from
//! it as long as that makes it simpler. What cannot be proved within a budget counts as false.

mod machine;
mod words;

use super::poly::{Poly, Symbol, without};
use crate::{Builder, DType, Graph, NodeId, Op};
use rustc_hash::{FxHashMap, FxHashSet};

/// The meaning of a symbol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Kind {
    /// A dim, a Range, or an opaque value. The flag says whether it is that of the other iteration.
    Node(NodeId, bool),
    /// The floored quotient of two sums.
    Quotient(Poly, Poly),
    /// The first sum if the condition holds (all of `if_yes` are at least 0), else the second. The node identifies the
    /// condition, as in `Node`: if it is not a comparison of integers, nothing else is known about it.
    Choice { by: NodeId, other: bool, yes: Poly, if_yes: Vec<Poly>, no: Poly, if_no: Vec<Poly> },
}

/// The most proof attempts per query.
const BUDGET: u32 = 1_000;
/// The most conditions to combine in one proof.
const DEPTH: u32 = 3;
pub(super) struct Prover<'a> {
    graph: &'a Graph,
    /// Ranges whose value differs in the other iteration.
    copied: FxHashSet<NodeId>,
    kinds: Vec<Kind>,
    numbers: FxHashMap<Kind, Symbol>,
    /// Least value of a symbol, if it is not negative.
    least: FxHashMap<Symbol, i128>,
    /// Greatest value of a loop variable.
    last: FxHashMap<Symbol, Poly>,
    /// Positive divisors of quotients.
    divisors: FxHashMap<Symbol, Poly>,
    /// Facts: sums that are at least 0.
    pub facts: Vec<Poly>,
    budget: u32,
    /// Whether a node's value may differ in the other iteration.
    ranges_of: FxHashMap<NodeId, bool>,
    /// Symbols that were proved equal to others.
    merged: FxHashMap<Symbol, Symbol>,
    /// A cache of [`Prover::machine`].
    machines: FxHashMap<(NodeId, bool), Poly>,
}

impl<'a> Prover<'a> {
    pub fn new(graph: &'a Graph, copied: impl IntoIterator<Item = NodeId>) -> Prover<'a> {
        Prover {
            graph,
            copied: copied.into_iter().collect(),
            kinds: Vec::new(),
            numbers: FxHashMap::default(),
            least: FxHashMap::default(),
            last: FxHashMap::default(),
            divisors: FxHashMap::default(),
            facts: Vec::new(),
            budget: 0,
            ranges_of: FxHashMap::default(),
            merged: FxHashMap::default(),
            machines: FxHashMap::default(),
        }
    }

    fn intern(&mut self, kind: Kind) -> (Symbol, bool) {
        if let Some(&known) = self.numbers.get(&kind) {
            return (known, false);
        }
        let symbol = self.kinds.len() as Symbol;
        self.kinds.push(kind.clone());
        self.numbers.insert(kind, symbol);
        (symbol, true)
    }

    /// Whether a node depends on a copied Range, or on memory that changes.
    fn is_copied(&mut self, node: NodeId) -> bool {
        if let Some(&known) = self.ranges_of.get(&node) {
            return known;
        }
        let below = self.graph.reachable(&[node]);
        let depends = below.iter().any(|&below| self.copied.contains(&below) || self.graph.op(below) == Op::After);
        self.ranges_of.insert(node, depends);
        depends
    }

    /// The value of an index scalar as a mathematical sum; with `other`, in the other iteration. Sums and products wrap
    /// at 64 bits, so a final value within a buffer is right whatever the intermediate results; comparisons and
    /// divisions use [`Prover::machine`].
    pub fn poly(&mut self, node: NodeId, other: bool) -> Poly {
        let mut polys: FxHashMap<NodeId, Poly> = FxHashMap::default();
        for below in self.arithmetic_below(node) {
            let poly = self.poly_of(below, other, &polys);
            let poly = if poly.is_small() { poly } else { self.opaque(below, other) };
            polys.insert(below, poly);
        }
        polys.remove(&node).unwrap_or_default()
    }

    /// Nodes of index arithmetic, sources first, down to opaque nodes.
    fn arithmetic_below(&self, node: NodeId) -> Vec<NodeId> {
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if !seen.insert(node) {
                continue;
            }
            match self.graph.op(node) {
                Op::Add | Op::Mul | Op::Idiv | Op::Mod | Op::Max if self.graph.dtype(node) == DType::Index => {
                    stack.extend(self.graph.sources(node));
                }
                Op::Where if self.graph.dtype(node) == DType::Index => stack.extend(&self.graph.sources(node)[1..]),
                Op::Cast => stack.extend(self.graph.sources(node)),
                _ => {}
            }
        }
        let mut nodes: Vec<NodeId> = seen.into_iter().collect();
        nodes.sort_unstable();
        nodes
    }

    fn poly_of(&mut self, node: NodeId, other: bool, polys: &FxHashMap<NodeId, Poly>) -> Poly {
        let graph = self.graph;
        if let Some(number) = graph.as_int(node) {
            return Poly::constant(number);
        }
        let source = |position: usize| polys.get(&graph.source(node, position)).cloned().unwrap_or_default();
        let is_index = graph.dtype(node) == DType::Index;
        match graph.op(node) {
            Op::Add if is_index => source(0).plus(&source(1)),
            Op::Mul if is_index => source(0).times(&source(1)),
            Op::Idiv if is_index => {
                let [a, b] = self.both(node, other);
                self.quotient(a, b).unwrap_or_else(|| self.opaque(node, other))
            }
            Op::Mod if is_index => {
                let [a, b] = self.both(node, other);
                match self.quotient(a.clone(), b.clone()) {
                    Some(quotient) => a.minus(&b.times(&quotient)),
                    None => self.opaque(node, other),
                }
            }
            Op::Max if is_index => {
                let [a, b] = self.both(node, other);
                let (if_yes, if_no) = (vec![a.minus(&b)], vec![b.minus(&a)]);
                self.choice((node, other), (a, if_yes), (b, if_no))
            }
            Op::Where if is_index => {
                let condition = graph.source(node, 0);
                let (mut if_yes, mut if_no) = (Vec::new(), Vec::new());
                self.conditions(condition, true, other, &mut if_yes);
                self.conditions(condition, false, other, &mut if_no);
                self.choice((condition, other), (source(1), if_yes), (source(2), if_no))
            }
            // An integer cast to an index, or an index cast to an integer type that holds all of its values.
            Op::Cast if is_index && graph.dtype(graph.source(node, 0)).is_int() => source(0),
            Op::Cast if graph.dtype(graph.source(node, 0)) == DType::Index => {
                match (graph.dtype(node).int_range(), graph.props(graph.source(node, 0)).interval.int()) {
                    (Some((low, high)), Some((least, greatest))) if low <= least && greatest <= high => source(0),
                    _ => self.opaque(node, other),
                }
            }
            _ => self.opaque(node, other),
        }
    }

    /// A symbol for an opaque node, with the facts of its interval.
    fn opaque(&mut self, node: NodeId, other: bool) -> Poly {
        let other = other && self.is_copied(node);
        let (symbol, is_new) = self.intern(Kind::Node(node, other));
        if is_new {
            if self.graph.op(node) == Op::Range {
                let last = self.poly(self.graph.source(node, 0), other).offset(-1);
                self.least.insert(symbol, 0);
                if last.as_constant().is_none() {
                    self.facts.push(last.clone());
                }
                self.last.insert(symbol, last);
            } else if let Some((low, high)) = self.graph.props(node).interval.int() {
                if low >= 0 {
                    self.least.insert(symbol, low);
                } else {
                    self.facts.push(Poly::symbol(symbol).offset(-low));
                }
                self.facts.push(Poly::constant(high).minus(&Poly::symbol(symbol)));
            }
        }
        Poly::symbol(symbol)
    }

    /// `a / b`, if `b` is not negative. Division by 0 gives 0.
    fn quotient(&mut self, a: Poly, b: Poly) -> Option<Poly> {
        if !self.holds(&b) {
            return None;
        }
        let is_divisor = self.holds(&b.offset(-1));
        let (whole, rest) =
            if is_divisor { a.divide(&b).unwrap_or((Poly::default(), a)) } else { (Poly::default(), a) };
        if is_divisor && self.holds(&rest) && self.holds(&b.offset(-1).minus(&rest)) {
            return Some(whole);
        }
        let is_positive = self.holds(&rest);
        let (symbol, is_new) = self.intern(Kind::Quotient(rest.clone(), b.clone()));
        if is_new {
            let product = b.times(&Poly::symbol(symbol));
            let remainder = rest.minus(&product);
            if is_divisor || is_positive {
                self.facts.push(remainder.clone());
            }
            if is_divisor {
                self.facts.push(b.offset(-1).minus(&remainder));
                self.divisors.insert(symbol, b);
            }
            if is_positive {
                self.least.insert(symbol, 0);
            }
        }
        Some(whole.plus(&Poly::symbol(symbol)))
    }

    fn choice(
        &mut self,
        (by, other): (NodeId, bool),
        (yes, if_yes): (Poly, Vec<Poly>),
        (no, if_no): (Poly, Vec<Poly>),
    ) -> Poly {
        if yes == no {
            return yes;
        }
        let other = other && self.is_copied(by);
        let (symbol, _) = self.intern(Kind::Choice { by, other, yes, if_yes, no, if_no });
        Poly::symbol(symbol)
    }

    /// The facts implied by a condition being `truth`.
    pub fn conditions(&mut self, condition: NodeId, truth: bool, other: bool, facts: &mut Vec<Poly>) {
        let mut pending = vec![(condition, truth)];
        while let Some((node, truth)) = pending.pop() {
            let sources = self.graph.sources(node);
            match (self.graph.op(node), truth) {
                (Op::And, true) | (Op::Or, false) => pending.extend(sources.iter().map(|&source| (source, truth))),
                (Op::Xor, _) if self.graph.as_int(sources[1]) == Some(1) => pending.push((sources[0], !truth)),
                (Op::Const, _) if self.graph.as_int(node) != Some(truth.into()) => facts.push(Poly::constant(-1)),
                (Op::CmpLt, _) if self.is_whole(sources[0]) => {
                    let [a, b] = self.both(node, other);
                    facts.push(if truth { b.minus(&a).offset(-1) } else { a.minus(&b) });
                }
                // Unequal, and ordered: at least 1 apart.
                (Op::CmpNe, true) if self.is_whole(sources[0]) => {
                    let [a, b] = self.both(node, other);
                    let difference = a.minus(&b);
                    for side in [difference.negated(), difference] {
                        if self.holds(&side) {
                            facts.push(side.offset(-1));
                        }
                    }
                }
                (Op::CmpNe, false) if self.is_whole(sources[0]) => {
                    let [a, b] = self.both(node, other);
                    let difference = a.minus(&b);
                    facts.push(difference.negated());
                    facts.push(difference);
                }
                _ => {}
            }
        }
    }

    fn is_whole(&self, node: NodeId) -> bool {
        self.graph.dtype(node).is_int()
    }

    /// Whether the sum is always at least 0.
    pub fn holds(&mut self, poly: &Poly) -> bool {
        self.budget = BUDGET;
        self.is_impossible() || self.prove(poly, DEPTH)
    }

    /// Whether a fact is false: in an unrolled loop a condition may be constant, and code under a false one is never
    /// executed.
    fn is_impossible(&self) -> bool {
        self.facts.iter().any(|fact| fact.as_constant().is_some_and(|number| number < 0))
    }

    fn prove(&mut self, poly: &Poly, depth: u32) -> bool {
        if let Some(number) = poly.as_constant() {
            return number >= 0;
        }
        if self.is_plain(poly) {
            return true;
        }
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        if let Some((factor, _, divisor, rest)) = self.remainder(poly)
            && self.prove(&divisor.offset(-1), 0)
        {
            // Each remainder is between 0 and its divisor.
            let least = if factor < 0 { rest.plus(&divisor.offset(-1).times(&Poly::constant(factor))) } else { rest };
            if self.prove(&least, depth.min(1)) {
                return true;
            }
        }
        let symbols = poly.symbols();
        if let Some((symbol, kind)) = symbols
            .iter()
            .map(|&symbol| (symbol, self.kinds[symbol as usize].clone()))
            .find(|(_, kind)| matches!(kind, Kind::Choice { .. }))
            && let Kind::Choice { yes, if_yes, no, if_no, .. } = kind
        {
            return self.under(&if_yes, |prover| prover.prove(&poly.substitute(symbol, &yes), depth))
                && self.under(&if_no, |prover| prover.prove(&poly.substitute(symbol, &no), depth));
        }
        // Inner loops have later symbols: their bounds may contain outer variables.
        for &symbol in symbols.iter().rev() {
            let Some(last) = self.last.get(&symbol).cloned() else { continue };
            let Some((coefficient, rest)) = poly.linear_in(symbol) else { continue };
            let least = if self.prove(&coefficient, 0) {
                rest
            } else if self.prove(&coefficient.negated(), 0) {
                rest.plus(&coefficient.times(&last))
            } else {
                continue;
            };
            if self.prove(&least, depth) {
                return true;
            }
            break;
        }
        if depth == 0 {
            return false;
        }
        // An integer above -1 is not negative: b·e > -b proves e >= 0.
        for symbol in &symbols {
            let Some(divisor) = self.divisors.get(symbol).cloned() else { continue };
            if self.prove(&poly.times(&divisor).plus(&divisor).offset(-1), depth - 1) {
                return true;
            }
        }
        for position in 0..self.facts.len() {
            let fact = self.facts[position].clone();
            for factor in self.factors(poly, &fact) {
                if self.prove(&poly.minus(&fact.times(&factor)), depth - 1) {
                    return true;
                }
            }
        }
        false
    }

    /// Proves something under additional facts.
    fn under(&mut self, facts: &[Poly], prove: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.facts.len();
        self.facts.extend_from_slice(facts);
        let result = prove(self);
        self.facts.drain(before..before + facts.len());
        result
    }

    /// Whether no coefficient is negative once every symbol is offset by its least value.
    fn is_plain(&self, poly: &Poly) -> bool {
        let mut shifted = poly.clone();
        for symbol in poly.symbols() {
            match self.least.get(&symbol) {
                Some(0) => {}
                Some(&least) => shifted = shifted.substitute(symbol, &Poly::symbol(symbol).offset(least)),
                None => return false,
            }
        }
        shifted.0.values().all(|&coefficient| coefficient >= 0)
    }

    /// The nonnegative factors by which a fact can cancel a term of the sum.
    fn factors(&self, poly: &Poly, fact: &Poly) -> Vec<Poly> {
        let mut factors: Vec<Poly> = Vec::new();
        for (monomial, &number) in fact.0.iter().filter(|(monomial, _)| !monomial.is_empty()) {
            for (term, &coefficient) in &poly.0 {
                let Some(others) = without(term, monomial) else { continue };
                if coefficient.signum() != number.signum() || coefficient % number != 0 {
                    continue;
                }
                if others.iter().any(|symbol| !self.least.contains_key(symbol)) {
                    continue;
                }
                let factor = Poly::term(others, coefficient / number);
                if !factors.contains(&factor) {
                    factors.push(factor);
                }
            }
        }
        factors
    }

    /// A sum that is 0, solved for a symbol that is not a loop variable.
    pub fn solve(&self, zero: &Poly) -> Option<(Symbol, Poly)> {
        let is_free = |symbol: &Symbol| !matches!(self.kinds[*symbol as usize], Kind::Node(..));
        zero.symbols().into_iter().filter(is_free).find_map(|symbol| {
            let (coefficient, rest) = zero.linear_in(symbol)?;
            match coefficient.as_constant()? {
                1 => Some((symbol, rest.negated())),
                -1 => Some((symbol, rest)),
                _ => None,
            }
        })
    }

    /// Sums that are 0 according to the facts.
    pub fn equalities(&self) -> Vec<Poly> {
        let opposite = |(position, fact): &(usize, &Poly)| self.facts[..*position].contains(&fact.negated());
        self.facts.iter().enumerate().filter(opposite).map(|(_, fact)| fact.clone()).collect()
    }

    /// The bounds of loop variables, as facts.
    pub fn bounds(&self) -> Vec<Poly> {
        let least = self.least.iter().map(|(&symbol, &least)| Poly::symbol(symbol).offset(-least));
        least.chain(self.last.iter().map(|(&symbol, last)| last.minus(&Poly::symbol(symbol)))).collect()
    }

    /// Whether two symbols may turn out equal: both are quotients, or the same loop's variable in both iterations.
    pub fn are_alike(&self, a: Symbol, b: Symbol) -> bool {
        match (&self.kinds[a as usize], &self.kinds[b as usize]) {
            (Kind::Node(a, _), Kind::Node(b, _)) => a == b,
            (Kind::Quotient(..), Kind::Quotient(..)) => true,
            _ => false,
        }
    }

    /// The representative of a symbol after merging.
    pub fn representative(&self, mut symbol: Symbol) -> Symbol {
        while let Some(&other) = self.merged.get(&symbol) {
            symbol = other;
        }
        symbol
    }

    /// Merges two equal symbols; returns the equalities that follow.
    pub fn merge(&mut self, kept: Symbol, gone: Symbol) -> Vec<(Symbol, Symbol)> {
        let value = Poly::symbol(kept);
        self.merged.insert(gone, kept);
        for poly in self.facts.iter_mut().chain(self.last.values_mut()).chain(self.divisors.values_mut()) {
            *poly = poly.substitute(gone, &value);
        }
        // Quotients whose operands have become equal.
        let mut equal = Vec::new();
        for symbol in 0..self.kinds.len() as Symbol {
            let Kind::Quotient(a, b) = &self.kinds[symbol as usize] else { continue };
            if !a.symbols().contains(&gone) && !b.symbols().contains(&gone) || self.merged.contains_key(&symbol) {
                continue;
            }
            let kind = Kind::Quotient(a.substitute(gone, &value), b.substitute(gone, &value));
            match self.numbers.get(&kind).map(|&other| self.representative(other)) {
                Some(other) if other != symbol => equal.push((other, symbol)),
                _ => {
                    self.numbers.insert(kind.clone(), symbol);
                    self.kinds[symbol as usize] = kind;
                }
            }
        }
        equal
    }

    /// A symbol for a Range, if it occurs.
    pub fn range(&mut self, range: NodeId, other: bool) -> Symbol {
        let _ = self.opaque(range, other);
        let other = other && self.is_copied(range);
        self.intern(Kind::Node(range, other)).0
    }
}
