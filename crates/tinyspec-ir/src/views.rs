//! Views that can be written through: each of their elements is one element of the tensor behind them.

use crate::ops::movement;
use crate::{Arg, Builder, Category, Const, DType, Graph, NodeId, Op, Result, Shape};

/// Movement ops from a tensor to a view of it, in order.
pub(crate) struct View {
    /// The tensor: a buffer, or a state of one.
    pub base: NodeId,
    ops: Vec<NodeId>,
}

/// The tensor that a node is a view of, if it is one.
pub(crate) fn base(graph: &Graph, mut node: NodeId) -> NodeId {
    while graph.op(node).category() == Category::Movement && graph.op(node) != Op::Stack {
        node = graph.source(node, 0);
    }
    node
}

/// The buffer behind views and states.
pub(crate) fn leaf(graph: &Graph, node: NodeId) -> NodeId {
    let mut node = base(graph, node);
    while graph.op(node) == Op::After {
        node = base(graph, graph.source(node, 0));
    }
    node
}

/// The stores that an After waits for, in order, if it waits for nothing else. Stores to other buffers are left out.
pub(crate) fn stores(graph: &Graph, after: NodeId) -> Option<Vec<NodeId>> {
    let (&buffer, deps) = graph.sources(after).split_first()?;
    let leaf_of = |node: NodeId| leaf(graph, node);
    let mut open: Vec<NodeId> = deps.iter().rev().copied().collect();
    let mut stores = Vec::new();
    while let Some(dep) = open.pop() {
        match graph.op(dep) {
            Op::Store if leaf_of(graph.source(dep, 0)) == leaf_of(buffer) => stores.push(dep),
            Op::Store => {}
            Op::Group => open.extend(graph.sources(dep).iter().rev()),
            _ => return None,
        }
    }
    Some(stores)
}

impl View {
    /// The view that `node` is.
    ///
    /// # Errors
    /// The op that cannot be written through.
    pub fn of(graph: &Graph, mut node: NodeId) -> std::result::Result<View, NodeId> {
        let mut ops = Vec::new();
        while graph.op(node).category() == Category::Movement && graph.op(node) != Op::Stack {
            let source = graph.source(node, 0);
            let count = |node: NodeId| graph.props(node).element_count();
            match graph.op(node) {
                Op::Reshape | Op::Permute | Op::Flip | Op::Shrink | Op::Pad => {}
                Op::Expand if count(node) == count(source) => {}
                _ => return Err(node),
            }
            ops.push(node);
            node = source;
        }
        ops.reverse();
        Ok(View { base: node, ops })
    }

    /// Whether it is the tensor itself.
    pub fn is_whole(&self) -> bool {
        self.ops.is_empty()
    }

    /// The state that a store to this view changes, where the one before it in an After has left `state` of `base`.
    pub fn state(&self, graph: &Graph, base: NodeId, state: NodeId) -> NodeId {
        let is_earlier = graph.op(self.base) == Op::After && self.base != base;
        if is_earlier { self.base } else { state }
    }

    /// The same view of another tensor.
    pub fn read(&self, graph: &mut Graph, tensor: NodeId) -> Result<NodeId> {
        Ok(*self.steps(graph, tensor)?.last().unwrap_or(&tensor))
    }

    /// `tensor` after `value` is written to this view of it. Padding takes no values.
    pub fn written(&self, graph: &mut Graph, tensor: NodeId, value: NodeId) -> Result<NodeId> {
        let steps = self.steps(graph, tensor)?;
        let shape = |graph: &Graph, node: NodeId| -> Shape { graph.props(node).shape.clone() };
        let whole = shape(graph, steps[steps.len() - 1]);
        let mut value = match graph.props(value).shape == whole {
            true => value,
            false => movement::expand(graph, value, &whole)?,
        };
        for (&op, &before) in self.ops.iter().zip(&steps).rev() {
            let to = shape(graph, before);
            value = match (graph.op(op), graph.arg(op).clone()) {
                (Op::Permute, Arg::Axes(order)) => {
                    let mut back: Vec<i64> = vec![0; order.len()];
                    for (to, &from) in (0..).zip(&order) {
                        back[from as usize] = to;
                    }
                    movement::permute(graph, value, &back)?
                }
                (Op::Flip, arg) => graph.add(Op::Flip, &[value], arg)?,
                (Op::Pad, _) => {
                    let (offset, to) = (graph.source(op, 1), graph.shape(&to)?);
                    graph.add(Op::Shrink, &[value, offset, to], Arg::None)?
                }
                (Op::Shrink, _) => {
                    let (offset, inner, to) = (graph.source(op, 1), shape(graph, value), graph.shape(&to)?);
                    let padded = graph.add(Op::Pad, &[value, offset, to], Arg::None)?;
                    let inside = graph.constant(Const::int(DType::Bool, 1));
                    let inside = movement::expand(graph, inside, &inner)?;
                    let inside = graph.add(Op::Pad, &[inside, offset, to], Arg::None)?;
                    graph.alu(Op::Where, &[inside, padded, before])?
                }
                _ => movement::reshape(graph, value, &to)?,
            };
        }
        Ok(value)
    }

    /// `tensor`, and what each op makes of it.
    fn steps(&self, graph: &mut Graph, tensor: NodeId) -> Result<Vec<NodeId>> {
        let mut steps = vec![tensor];
        for &op in &self.ops {
            let mut sources = graph.sources(op).to_vec();
            sources[0] = steps[steps.len() - 1];
            let arg = graph.arg(op).clone();
            steps.push(graph.add(graph.op(op), &sources, arg)?);
        }
        Ok(steps)
    }
}
