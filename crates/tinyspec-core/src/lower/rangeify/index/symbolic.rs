//! Index arithmetic with dims that have no number yet. An index times a dim is an atom whose factor is remembered, so that
//! quotients by the dim cancel; what a sum can be at most is a dim, and compared as one.

use super::{Indices, Linear, PLACEHOLDERS, normalise};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Builder, Dim, Graph, NodeId, Op, Result};

/// What is known of atoms that contain named dims.
#[derive(Default)]
pub(super) struct Symbols {
    /// A product: an index and a dim of one term.
    products: FxHashMap<NodeId, (NodeId, Dim)>,
    /// A remainder: of what, by what.
    remainders: FxHashMap<NodeId, (NodeId, Dim)>,
}

impl Indices {
    /// The dim as an index.
    pub(in super::super) fn dim(&mut self, dim: &Dim) -> Result<NodeId> {
        match dim.as_const() {
            Some(number) => Ok(self.number(number)),
            None => {
                let linear = self.linear_of(dim)?;
                self.build(linear)
            }
        }
    }

    /// `a + dim`.
    pub(in super::super) fn move_by(&mut self, a: NodeId, dim: &Dim) -> Result<NodeId> {
        match dim.as_const() {
            Some(number) => self.offset(a, number),
            None => {
                let dim = self.dim(dim)?;
                self.add(a, dim)
            }
        }
    }

    /// `a · factor`.
    pub(in super::super) fn scale_by(&mut self, a: NodeId, factor: &Dim) -> Result<NodeId> {
        match factor.as_const() {
            Some(number) => self.scale(a, number),
            None => {
                let product = self.times(&self.parts(a), factor)?;
                self.build(product)
            }
        }
    }

    /// Floored `a / divisor` for a positive divisor.
    pub(in super::super) fn divide_by(&mut self, a: NodeId, divisor: &Dim) -> Result<NodeId> {
        if let Some(number) = divisor.as_const() {
            return self.divide(a, number);
        }
        let (quotient, rest) = self.cancel(&self.parts(a), divisor)?;
        if self.lies_below(&rest, divisor) {
            return self.build(quotient);
        }
        let (rest, number) = (self.build(rest)?, self.dim(divisor)?);
        let atom = self.graph.alu(Op::Idiv, &[rest, number])?;
        let quotient = self.build(quotient)?;
        self.add(quotient, atom)
    }

    /// Floored remainder of `a` by a positive divisor.
    pub(in super::super) fn remainder_by(&mut self, a: NodeId, divisor: &Dim) -> Result<NodeId> {
        if let Some(number) = divisor.as_const() {
            return self.remainder(a, number);
        }
        let (_, rest) = self.cancel(&self.parts(a), divisor)?;
        let is_below = self.lies_below(&rest, divisor);
        let rest = self.build(rest)?;
        if is_below {
            return Ok(rest);
        }
        let number = self.dim(divisor)?;
        let atom = self.graph.alu(Op::Mod, &[rest, number])?;
        self.symbols.remainders.insert(atom, (rest, divisor.clone()));
        Ok(atom)
    }

    /// `0 <= a < high`, or `None` where that always holds.
    pub(in super::super) fn within_dim(&mut self, a: NodeId, high: &Dim) -> Result<Option<NodeId>> {
        if let Some(high) = high.as_const() {
            return self.within(a, 0, high);
        }
        let (least, greatest) = self.ends(&self.parts(a));
        let mut gate = None;
        if least.is_none_or(|least| least.bounds().0 < 0) {
            let bound = self.number(-1);
            gate = Some(self.graph.alu(Op::CmpLt, &[bound, a])?);
        }
        if greatest.is_none_or(|greatest| (high.clone() - greatest).bounds().0 < 1) {
            let bound = self.dim(high)?;
            let below = self.graph.alu(Op::CmpLt, &[a, bound])?;
            gate = self.both(gate, Some(below))?;
        }
        Ok(gate)
    }

    /// `k·D·(y / D) + k·(y mod D)` is `k·y`, for a remainder by a dim that is a term of the sum.
    pub(super) fn recombine_by(&mut self, linear: &mut Linear, (atom, coefficient): (NodeId, i64)) -> Result<bool> {
        let Some((inner, divisor)) = self.symbols.remainders.get(&atom).cloned() else { return Ok(false) };
        let quotient = self.divide_by(inner, &divisor)?;
        let whole = self.times(&self.parts(quotient), &(divisor * Dim::from(coefficient)))?;
        if whole.constant != 0 || !whole.terms.iter().all(|term| linear.terms.contains(term)) {
            return Ok(false);
        }
        linear.terms.retain(|term| *term != (atom, coefficient) && !whole.terms.contains(term));
        let inner = self.scale(inner, coefficient)?;
        let inner = self.parts(inner);
        linear.constant = linear.constant.wrapping_add(inner.constant);
        linear.terms.extend(inner.terms);
        normalise(linear);
        Ok(true)
    }

    fn linear_of(&mut self, dim: &Dim) -> Result<Linear> {
        let mut linear = Linear::default();
        for (atoms, coefficient) in dim.terms() {
            if atoms.is_empty() {
                linear.constant = coefficient;
            } else {
                linear.terms.push((self.graph.dim(&Dim::product(&atoms, 1))?, coefficient));
            }
        }
        Ok(linear)
    }

    /// The index and the dim that an atom is the product of.
    fn factors(&self, atom: NodeId) -> (Option<NodeId>, Dim) {
        match (self.symbols.products.get(&atom), dim_of(&self.graph, atom)) {
            (Some((index, factor)), _) => (Some(*index), factor.clone()),
            (None, Some(dim)) => (None, dim),
            (None, None) => (Some(atom), Dim::from(1)),
        }
    }

    /// `index · factor`, the factor being of any number of terms.
    fn scaled(&mut self, index: Option<NodeId>, factor: &Dim, sum: &mut Linear) -> Result<()> {
        let Some(index) = index else {
            let dim = self.linear_of(factor)?;
            sum.terms.extend(dim.terms);
            sum.constant = sum.constant.wrapping_add(dim.constant);
            return Ok(());
        };
        for (atoms, coefficient) in factor.terms() {
            if atoms.is_empty() {
                sum.terms.push((index, coefficient));
                continue;
            }
            let factor = Dim::product(&atoms, 1);
            let node = self.graph.dim(&factor)?;
            let product = self.graph.alu(Op::Mul, &[index, node])?;
            self.symbols.products.insert(product, (index, factor));
            sum.terms.push((product, coefficient));
        }
        Ok(())
    }

    fn times(&mut self, linear: &Linear, factor: &Dim) -> Result<Linear> {
        let mut product = Linear::default();
        self.scaled(None, &(factor.clone() * Dim::from(linear.constant)), &mut product)?;
        for &(atom, coefficient) in &linear.terms {
            let (index, own) = self.factors(atom);
            self.scaled(index, &(own * factor.clone() * Dim::from(coefficient)), &mut product)?;
        }
        normalise(&mut product);
        Ok(product)
    }

    /// What the divisor's leading term cancels in, already divided, and the rest.
    fn cancel(&mut self, linear: &Linear, divisor: &Dim) -> Result<(Linear, Linear)> {
        let Some((atoms, coefficient)) = divisor.terms().into_iter().max_by_key(|(atoms, _)| atoms.len()) else {
            return Ok((Linear::default(), linear.clone()));
        };
        let leading = Dim::product(&atoms, coefficient);
        let (mut quotient, mut rest) = (Linear::default(), Linear::default());
        let constant = (linear.constant != 0).then(|| (None, Dim::from(linear.constant)));
        let terms: SmallVec<[(Option<NodeId>, Dim); 8]> = linear
            .terms
            .iter()
            .map(|&(atom, coefficient)| {
                let (index, factor) = self.factors(atom);
                (index, factor * Dim::from(coefficient))
            })
            .chain(constant)
            .collect();
        for (index, factor) in terms {
            let ratio = factor.idiv(&leading);
            if factor.as_const().is_none() && ratio.clone() * leading.clone() == factor {
                self.scaled(index, &ratio, &mut quotient)?;
                self.scaled(index, &(factor - ratio * divisor.clone()), &mut rest)?;
            } else {
                self.scaled(index, &factor, &mut rest)?;
            }
        }
        normalise(&mut quotient);
        normalise(&mut rest);
        Ok((quotient, rest))
    }

    fn lies_below(&self, linear: &Linear, divisor: &Dim) -> bool {
        let (least, greatest) = self.ends(linear);
        least.is_some_and(|least| least.bounds().0 >= 0)
            && greatest.is_some_and(|greatest| (divisor.clone() - greatest).bounds().0 >= 1)
    }

    /// Least and greatest value of a sum, as dims.
    pub(super) fn ends(&self, linear: &Linear) -> (Option<Dim>, Option<Dim>) {
        let (mut least, mut greatest) = (Some(Dim::from(linear.constant)), Some(Dim::from(linear.constant)));
        for &(atom, coefficient) in &linear.terms {
            let (index, factor) = self.factors(atom);
            let (low, high) = match index {
                Some(index) => self.ends_of(index),
                None => (Some(Dim::from(1)), Some(Dim::from(1))),
            };
            // Only what does not change the sign keeps the order.
            let known = |end: Option<Dim>| {
                let is_plain = index.is_none() || factor.bounds().0 >= 0;
                end.filter(|_| is_plain).map(|end| end * factor.clone() * Dim::from(coefficient))
            };
            let (low, high) = if coefficient < 0 { (known(high), known(low)) } else { (known(low), known(high)) };
            least = least.zip(low).map(|(sum, low)| sum + low);
            greatest = greatest.zip(high).map(|(sum, high)| sum + high);
        }
        (least, greatest)
    }

    fn ends_of(&self, index: NodeId) -> (Option<Dim>, Option<Dim>) {
        if let Some((_, divisor)) = self.symbols.remainders.get(&index) {
            return (Some(Dim::from(0)), Some(divisor.clone() - Dim::from(1)));
        }
        if self.graph.op(index) == Op::Range
            && let Some(bound) = dim_of(&self.graph, self.graph.source(index, 0))
        {
            return (Some(Dim::from(0)), Some(bound - Dim::from(1)));
        }
        let number = |end: i128| i64::try_from(end).ok().map(Dim::from);
        match self.graph.props(index).interval.int() {
            Some((low, high)) => (number(low), number(high)),
            None => (None, None),
        }
    }
}

/// The dim that an index scalar is, if it depends on nothing else.
pub(in super::super) fn dim_of(graph: &Graph, node: NodeId) -> Option<Dim> {
    match graph.props(node).value.as_deref() {
        Some([dim]) if graph.props(node).shape.is_empty() => {
            let is_data = dim.as_const().is_none() && dim.names().iter().any(|name| name.slot >= PLACEHOLDERS);
            (!is_data).then(|| dim.clone())
        }
        _ => None,
    }
}
