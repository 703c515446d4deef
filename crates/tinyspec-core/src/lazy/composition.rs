//! Compositions as Functions: a method that is composed of many ops is one call of a body ("Common Ops as Compositions"), made once for
//! operands of the same shapes and dtypes. Building, hashing and walking a program then take time for each method, not for each op.

use super::callify::Walk;
use super::node::{Node, Sources};
use super::{Body, LazyBuilder};
use crate::kept::Kept;
use smallvec::SmallVec;
use std::hash::Hash;
use std::sync::{Arc, LazyLock};
use tinyspec_ir::{Arg, Builder, Const, ContentHash, ContentHasher, Device, NodeId, Op, Result};

/// Results of a method.
pub(crate) type Results = SmallVec<[NodeId; 2]>;

/// A method of no more nodes is made of them: a call needs a Function and a GetTuple itself.
const FEW: usize = 6;
/// The most operands: each is compared with all others.
const MANY: usize = 32;

/// By method and operands; none for methods of few nodes.
static COMPOSITIONS: LazyLock<Kept<ContentHash, Option<Arc<Composition>>>> = LazyLock::new(|| Kept::new(16));

/// What a method call is, but for its operands.
#[derive(Clone)]
pub(crate) struct Method {
    hasher: ContentHasher,
    /// Windows may follow from whole numbers among its parameters, which a loop may change in each step.
    has_sizes: bool,
}

impl Method {
    pub fn new(name: &'static str) -> Method {
        let mut hasher = ContentHasher::default();
        name.hash(&mut hasher);
        Method { hasher, has_sizes: false }
    }

    /// A parameter that is no tensor; `is_size` of whole numbers other than axes.
    pub fn parameter(&mut self, parameter: &(impl Hash + ?Sized), is_size: bool) {
        parameter.hash(&mut self.hasher);
        self.has_sizes |= is_size;
    }

    /// The method for operands like these, the same ones of which are one; none for operands that bodies are not made for.
    fn key(&self, operands: &[Arc<Node>]) -> Option<ContentHash> {
        if operands.len() > MANY {
            return None;
        }
        let mut hasher = self.hasher.clone();
        for operand in operands {
            let props = &operand.props;
            let is_plain = props.shape.iter().all(|dim| dim.as_const().is_some())
                && props.elements.is_none()
                && props.value.is_none()
                && !matches!(props.device, Some(Device::Many(_)));
            if !is_plain {
                return None;
            }
            let first = operands.iter().position(|other| Arc::ptr_eq(other, operand));
            (first, props.dtype, &props.shape, &props.device).hash(&mut hasher);
        }
        Some(hasher.content_hash())
    }
}

/// A call of a body, for operands that are still to be named.
struct Composition {
    tuple: Arc<Node>,
    arguments: SmallVec<[Argument; 4]>,
    results: u32,
}

enum Argument {
    /// Its place among the operands.
    Operand(u32),
    /// A number of the program: not a part of the body, so that it may change.
    Number(Const),
}

impl Composition {
    /// The nodes that a method has made of its operands, as a body; none if nodes serve as well.
    fn of(method: &Method, operands: &[Arc<Node>], results: &[Arc<Node>]) -> Result<Option<Composition>> {
        let walk = Walk::of_method(results, operands);
        if walk.nodes().len() <= walk.leaf_nodes().count() + FEW {
            return Ok(None);
        }
        if walk.nodes().any(|node| node.op == Op::Load) || walk.has_placeholder {
            return Ok(None);
        }
        let mut arguments: SmallVec<[Argument; 4]> = SmallVec::new();
        for leaf in walk.leaf_nodes() {
            arguments.push(match (operands.iter().position(|operand| Arc::ptr_eq(operand, leaf)), leaf.literal()) {
                (Some(place), _) => Argument::Operand(place as u32),
                (None, Some(number)) => Argument::Number(number),
                // Data that the method holds itself.
                (None, None) => return Ok(None),
            });
        }
        let has_windows = walk.nodes().any(|node| matches!(node.op, Op::Shrink | Op::Pad));
        let has_numbers = arguments.iter().any(|argument| matches!(argument, Argument::Number(_)));
        // A run may take the offsets of windows as inputs, and has to see which numbers it had better not.
        if method.has_sizes && (has_windows || has_numbers) {
            return Ok(None);
        }
        let callified = walk.build()?;
        let tuple = Node::tuple(Arc::new(Body::new(callified.graph, callified.outputs)))?;
        Ok(Some(Composition { tuple, arguments, results: results.len() as u32 }))
    }

    /// Bytes that it needs, about.
    fn bytes(&self) -> u64 {
        self.tuple.body().map_or(0, |body| body.graph().bytes() as u64)
    }

    fn call(&self, builder: &mut LazyBuilder) -> Result<Results> {
        let mut sources: SmallVec<[NodeId; 6]> = SmallVec::new();
        sources.push(builder.import(self.tuple.clone()));
        for argument in &self.arguments {
            sources.push(match *argument {
                Argument::Operand(place) => NodeId(place),
                Argument::Number(number) => builder.number(number),
            });
        }
        let function = builder.add(Op::Function, &sources, Arg::None)?;
        (0..self.results).map(|number| builder.add(Op::GetTuple, &[function], Arg::Number(number))).collect()
    }
}

impl LazyBuilder {
    /// The results of a method over the nodes that were imported, all of which are its operands.
    pub(crate) fn compose(
        &mut self,
        method: &Method,
        build: impl FnOnce(&mut LazyBuilder) -> Result<Results>,
    ) -> Result<Results> {
        let count = self.nodes().len();
        let Some(key) = method.key(self.nodes()) else { return build(self) };
        if let Some(known) = COMPOSITIONS.get(&key) {
            return match known {
                Some(composition) => composition.call(self),
                None => build(self),
            };
        }
        let nodes = build(self)?;
        let results: Sources = nodes.iter().map(|&result| self.node(result)).collect();
        let composition = Composition::of(method, &self.nodes()[..count], &results)?.map(Arc::new);
        let bytes = composition.as_ref().map_or(0, |composition| composition.bytes());
        // A limit that is no size is refused where plans are kept.
        let _ = COMPOSITIONS.insert(key, composition.clone(), bytes);
        match composition {
            Some(composition) => composition.call(self),
            None => Ok(nodes),
        }
    }
}
