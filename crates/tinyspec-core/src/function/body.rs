//! The body of a Function: a closed graph over Params.

use tinyspec_ir::{Arg, Builder, ContentHash, Graph, NodeId, Op, Result};

/// A closed graph: it refers to Params only.
#[derive(Debug)]
pub struct Body {
    graph: Graph,
    outputs: Vec<NodeId>,
    hash: ContentHash,
}

impl Body {
    /// A body whose results are `outputs`.
    pub fn new(graph: Graph, outputs: Vec<NodeId>) -> Body {
        let hash = graph.content_hash(&outputs);
        Body { graph, outputs, hash }
    }

    /// The nodes.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The results.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    /// Equal for equal bodies.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// The results in another graph, with each Param replaced by an argument.
    ///
    /// # Errors
    /// What derive refuses of the arguments.
    pub fn inline(&self, graph: &mut Graph, arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        graph.import(&self.graph, &self.outputs, |graph, node| match (self.graph.op(node), self.graph.arg(node)) {
            (Op::Param, Arg::Param { slot, .. }) => Ok(arguments.get(*slot as usize).copied()),
            // An equal node of the caller keeps one number.
            (Op::Const, arg) => graph.add(Op::Const, &[], arg.clone()).map(Some),
            _ => Ok(None),
        })
    }
}
