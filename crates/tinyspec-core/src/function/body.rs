//! The body of a Function: a closed graph over Params.

use std::sync::Arc;
use tinyspec_ir::function::{function_values, inline, own_gradient};
use tinyspec_ir::{Arg, Builder, ContentHash, Graph, NodeId, Op, Result};

/// A closed graph: it refers to Params only.
#[derive(Debug)]
pub struct Body {
    graph: Graph,
    outputs: Vec<NodeId>,
    /// The function's own gradient: over its inputs, a cotangent for each float result, and the named dims.
    gradient: Option<Arc<Body>>,
    hash: ContentHash,
}

impl Body {
    /// A body whose results are `outputs`.
    pub fn new(graph: Graph, outputs: Vec<NodeId>) -> Body {
        let hash = graph.content_hash(&outputs);
        Body { graph, outputs, gradient: None, hash }
    }

    /// The same values with a gradient of their own.
    pub fn with_gradient(mut self, gradient: Arc<Body>) -> Body {
        self.hash = ContentHash::of(&(self.hash, gradient.hash));
        self.gradient = Some(gradient);
        self
    }

    /// The body of a Function in a graph, with the gradient that it brings.
    ///
    /// # Errors
    /// None for a graph that [`tinyspec_ir::derive()`] has accepted.
    pub(crate) fn of_function(graph: &Graph, function: NodeId) -> Result<Body> {
        let part = |outputs: &[NodeId]| -> Result<Body> {
            let mut part = Graph::new();
            let outputs = part.import(graph, outputs, |_, _| Ok(None))?;
            Ok(Body::new(part, outputs))
        };
        let body = part(&function_values(graph, function))?;
        Ok(match own_gradient(graph, function) {
            Some(gradient) => body.with_gradient(Arc::new(part(&gradient)?)),
            None => body,
        })
    }

    /// The gradient of its own.
    pub(crate) fn gradient(&self) -> Option<&Arc<Body>> {
        self.gradient.as_ref()
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

    /// The results in another graph, with each Param replaced by an argument. With a gradient of its own the body stays a
    /// Function, so that whoever takes the gradient finds it; [`tinyspec_ir::function::inline_all`] opens it.
    ///
    /// # Errors
    /// What derive refuses of the arguments.
    pub fn inline(&self, graph: &mut Graph, arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        let Some(gradient) = &self.gradient else { return inline(graph, &self.graph, &self.outputs, arguments) };
        let mut elements = graph.import(&self.graph, &self.outputs, |_, _| Ok(None))?;
        let gradients = graph.import(&gradient.graph, &gradient.outputs, |_, _| Ok(None))?;
        elements.push(graph.add(Op::Tuple, &gradients, Arg::None)?);
        let tuple = graph.add(Op::Tuple, &elements, Arg::None)?;
        let function = graph.add(Op::Function, &[&[tuple], arguments].concat(), Arg::None)?;
        (0..self.outputs.len() as u32).map(|number| graph.add(Op::GetTuple, &[function], Arg::Number(number))).collect()
    }
}
