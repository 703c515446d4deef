//! `After(buf, Store(view of buf, v))`: the state of a buffer after its stores.

use super::Frame;
use crate::interpreter::array::{Array, apply, element_count, value_error};
use std::rc::Rc;
use tinyspec_ir::{Arg, Builder, Category, DType, NodeId, Op, Result};

impl Frame<'_> {
    pub(super) fn after(&self, node: NodeId) -> Result<Rc<Array>> {
        let view = self.graph.source(node, 0);
        let (base, leaf) = (self.base(view), self.leaf(view));
        let mut stores = Vec::new();
        let mut deps: Vec<NodeId> = self.graph.sources(node)[1..].iter().rev().copied().collect();
        while let Some(dep) = deps.pop() {
            match self.graph.op(dep) {
                Op::Store if self.leaf(self.graph.source(dep, 0)) == leaf => stores.push(dep),
                Op::Group => deps.extend(self.graph.sources(dep).iter().rev()),
                // Effects on other buffers are mere ordering.
                _ => {}
            }
        }
        if stores.is_empty() {
            return self.array(view);
        }
        let mut state = (*self.array(base)?).clone();
        for store in stores {
            let earlier = self.base(self.graph.source(store, 0));
            if self.graph.op(earlier) == Op::After && earlier != base {
                state = (*self.array(earlier)?).clone();
            }
            self.store(store, &mut state)?;
        }
        if view == base {
            return Ok(Rc::new(state));
        }
        let positions = self.positions(view)?;
        let places: Vec<Option<usize>> = positions.lanes().iter().map(|&position| Some(position as usize)).collect();
        Ok(Rc::new(state.gathered(positions.shape(), &places)?))
    }

    fn store(&self, store: NodeId, state: &mut Array) -> Result<()> {
        let sources = self.graph.sources(store);
        let positions = self.positions(sources[0])?;
        let value = self.array(sources[1])?.expanded(Op::Store, positions.shape())?;
        let gate = match sources.get(2) {
            Some(&gate) => Some(self.array(gate)?.expanded(Op::Store, positions.shape())?),
            None => None,
        };
        let is_open = |lane: usize| gate.as_ref().is_none_or(|gate| gate.lanes()[lane] != 0);
        let writes = positions.lanes().iter().zip(value.lanes()).enumerate();
        state.scatter(
            writes.filter(|(lane, _)| is_open(*lane)).map(|(_, (&position, &value))| (position as usize, value)),
        );
        Ok(())
    }

    /// Skips views, down to the buffer or an earlier state of it.
    fn base(&self, mut node: NodeId) -> NodeId {
        while self.graph.op(node).category() == Category::Movement && self.graph.op(node) != Op::Stack {
            node = self.graph.source(node, 0);
        }
        node
    }

    /// Skips views and states, down to the buffer.
    fn leaf(&self, mut node: NodeId) -> NodeId {
        loop {
            node = self.base(node);
            match self.graph.op(node) {
                Op::After => node = self.graph.source(node, 0),
                _ => return node,
            }
        }
    }

    /// The positions of a view's elements in its base: the same view of the numbers 0, 1, ….
    fn positions(&self, view: NodeId) -> Result<Array> {
        let base = self.base(view);
        let mut chain = Vec::new();
        let mut node = view;
        while node != base {
            chain.push(node);
            node = self.graph.source(node, 0);
        }
        let shape = self.array(base)?.shape().to_vec();
        // An Index out of bounds gives 0, so positions are counted from 1 until the end.
        let mut positions = Array::new(DType::U64, &shape, (1..=element_count(&shape)? as u64).collect())?;
        for node in chain.into_iter().rev() {
            let op = self.graph.op(node);
            let count = |node: NodeId| self.graph.props(node).element_count();
            let repeats = op == Op::Expand && count(node) != count(self.graph.source(node, 0));
            if repeats || matches!(op, Op::Bitcast | Op::Replicated) {
                return Err(value_error("store", format!("cannot write through {op}")));
            }
            let others = self.graph.sources(node)[1..].iter().map(|&source| self.array(source));
            let others = others.collect::<Result<Vec<_>>>()?;
            let sources: Vec<&Array> = std::iter::once(&positions).chain(others.iter().map(Rc::as_ref)).collect();
            positions = apply(op, self.graph.arg(node), DType::U64, &sources)?;
        }
        // 0 wraps to a position that no array has, so nothing is written there.
        apply(Op::Add, &Arg::None, DType::U64, &[&positions, &Array::scalar(tinyspec_ir::Const::int(DType::U64, -1))])
    }
}
