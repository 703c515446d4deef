//! Index arithmetic with named dims. An index times a dim is an atom whose factors are remembered, so that quotients by
//! the dim cancel; bounds of a sum are dims, and compared as dims.

use super::{Indices, PLACEHOLDERS};
use rustc_hash::FxHashMap;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Builder, Dim, Graph, NodeId, Op, Result};

/// The structure of atoms that contain named dims.
#[derive(Default)]
pub(super) struct Symbols {
    /// A product: an index and a dim of one term.
    products: FxHashMap<NodeId, (NodeId, Dim)>,
    /// A remainder: the dividend and the divisor.
    remainders: FxHashMap<NodeId, (NodeId, Dim)>,
}

impl Indices {
    /// The dim as an index.
    pub(in super::super) fn dim(&mut self, dim: &Dim) -> Result<NodeId> {
        match dim.as_const() {
            Some(number) => Ok(self.number(number)),
            None => {
                let form = self.form_of(dim)?;
                self.build(form)
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
                let product = self.times(&self.form(a), factor)?;
                self.build(product)
            }
        }
    }

    /// Floored `a / divisor` for a positive divisor.
    pub(in super::super) fn divide_by(&mut self, a: NodeId, divisor: &Dim) -> Result<NodeId> {
        if let Some(number) = divisor.as_const() {
            return self.divide(a, number);
        }
        let (quotient, rest) = self.cancel(&self.form(a), divisor)?;
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
        let (_, rest) = self.cancel(&self.form(a), divisor)?;
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
        let (least, greatest) = self.ends(&self.form(a));
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

    /// The dividend of a remainder by a dim, and the dim.
    pub(super) fn remainder_of(&self, atom: NodeId) -> Option<(NodeId, Dim)> {
        self.symbols.remainders.get(&atom).cloned()
    }

    fn form_of(&mut self, dim: &Dim) -> Result<Affine> {
        let mut form = Affine::default();
        for (atoms, coefficient) in dim.terms() {
            form = form.plus(&match atoms.is_empty() {
                true => Affine::number(coefficient),
                false => Affine::atom(self.graph.dim(&Dim::product(&atoms, 1))?).scale(coefficient),
            });
        }
        Ok(form)
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
    fn scaled(&mut self, index: Option<NodeId>, factor: &Dim) -> Result<Affine> {
        let Some(index) = index else { return self.form_of(factor) };
        let mut form = Affine::default();
        for (atoms, coefficient) in factor.terms() {
            let mut atom = index;
            if !atoms.is_empty() {
                let factor = Dim::product(&atoms, 1);
                let node = self.graph.dim(&factor)?;
                atom = self.graph.alu(Op::Mul, &[index, node])?;
                self.symbols.products.insert(atom, (index, factor));
            }
            form = form.plus(&Affine::atom(atom).scale(coefficient));
        }
        Ok(form)
    }

    /// The products whose sum a form is: each an index, absent for a dim, and its factor.
    fn products(&self, form: &Affine) -> Vec<(Option<NodeId>, Dim)> {
        let product = |&(atom, coefficient): &(NodeId, i64)| {
            let (index, factor) = self.factors(atom);
            (index, factor * Dim::from(coefficient))
        };
        let constant = (form.constant() != 0).then(|| (None, Dim::from(form.constant())));
        form.terms().iter().map(product).chain(constant).collect()
    }

    pub(super) fn times(&mut self, form: &Affine, factor: &Dim) -> Result<Affine> {
        let mut all = Affine::default();
        for (index, own) in self.products(form) {
            all = all.plus(&self.scaled(index, &(own * factor.clone()))?);
        }
        Ok(all)
    }

    /// The terms that the divisor's leading term divides, already divided, and the rest.
    fn cancel(&mut self, form: &Affine, divisor: &Dim) -> Result<(Affine, Affine)> {
        let Some((atoms, coefficient)) = divisor.terms().into_iter().max_by_key(|(atoms, _)| atoms.len()) else {
            return Ok((Affine::default(), form.clone()));
        };
        let leading = Dim::product(&atoms, coefficient);
        let (mut quotient, mut rest) = (Affine::default(), Affine::default());
        for (index, mut factor) in self.products(form) {
            let ratio = factor.idiv(&leading);
            if factor.as_const().is_none() && ratio.clone() * leading.clone() == factor {
                quotient = quotient.plus(&self.scaled(index, &ratio)?);
                factor = factor - ratio * divisor.clone();
            }
            rest = rest.plus(&self.scaled(index, &factor)?);
        }
        Ok((quotient, rest))
    }

    fn lies_below(&self, form: &Affine, divisor: &Dim) -> bool {
        let (least, greatest) = self.ends(form);
        least.is_some_and(|least| least.bounds().0 >= 0)
            && greatest.is_some_and(|greatest| (divisor.clone() - greatest).bounds().0 >= 1)
    }

    /// The bounds of a sum, as dims.
    pub(super) fn ends(&self, form: &Affine) -> (Option<Dim>, Option<Dim>) {
        let (mut least, mut greatest) = (Some(Dim::from(form.constant())), Some(Dim::from(form.constant())));
        for &(atom, coefficient) in form.terms() {
            let (index, factor) = self.factors(atom);
            let (low, high) = match index {
                Some(index) => self.ends_of(index),
                None => (Some(Dim::from(1)), Some(Dim::from(1))),
            };
            // Only a factor of one sign preserves the order.
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
