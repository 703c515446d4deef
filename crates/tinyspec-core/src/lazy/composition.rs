//! Methods as Functions. A method that is composed of many ops ("Common Ops as Compositions") becomes one call of a cached body, which
//! operands of the same shapes and dtypes share. Building, hashing and walking a program then cost time per method rather than per op.

use super::callify::Walk;
use super::node::{Node, Sources};
use super::{Body, LazyBuilder, Results};
use crate::kept::Kept;
use smallvec::SmallVec;
use std::hash::Hash;
use std::sync::{Arc, LazyLock};
use tinyspec_ir::{Builder, Const, ContentHash, ContentHasher, Device, NodeId, Op, Result};

/// A method of at most this many nodes is not worth a call, which takes a Function and a GetTuple.
const FEW: usize = 6;
/// The most operands of a composition. Each one is compared with all others.
const MANY: usize = 32;

/// Compositions by [`Method::key`]; `None` for methods that stay nodes.
static COMPOSITIONS: LazyLock<Kept<ContentHash, Option<Arc<Composition>>>> = LazyLock::new(|| Kept::new(16));

/// A method with its parameters, without its operands.
#[derive(Clone)]
pub(crate) struct Method {
    hasher: ContentHasher,
    /// Some parameters are integers that windows may be derived from and that a loop may change in each step.
    has_sizes: bool,
}

impl Method {
    pub fn new(name: &'static str) -> Method {
        let mut hasher = ContentHasher::default();
        name.hash(&mut hasher);
        Method { hasher, has_sizes: false }
    }

    /// Adds a non-tensor parameter. `is_size` is set for integers other than axes.
    pub fn parameter(&mut self, parameter: &(impl Hash + ?Sized), is_size: bool) {
        parameter.hash(&mut self.hasher);
        self.has_sizes |= is_size;
    }

    /// The key of the method for operands of these dtypes, shapes and devices, where the same ones are identical. `None` if the operands
    /// rule out a body.
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

/// A body, and how a call passes its arguments.
struct Composition {
    tuple: Arc<Node>,
    arguments: SmallVec<[Argument; 4]>,
}

enum Argument {
    /// The operand at this position.
    Operand(u32),
    /// A number that the program writes. It is not part of the body, since it may change.
    Number(Const),
}

impl Composition {
    /// The composition of a method that computed `results` from `operands`, or `None` if the method should stay nodes.
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
                // Data that the method created.
                (None, None) => return Ok(None),
            });
        }
        let has_windows = walk.nodes().any(|node| matches!(node.op, Op::Shrink | Op::Pad));
        let has_numbers = arguments.iter().any(|argument| matches!(argument, Argument::Number(_)));
        // A run may turn these offsets and numbers into inputs, so they have to stay visible as nodes.
        if method.has_sizes && (has_windows || has_numbers) {
            return Ok(None);
        }
        let callified = walk.build()?;
        let tuple = Node::tuple(Arc::new(Body::new(callified.graph, callified.outputs)))?;
        Ok(Some(Composition { tuple, arguments }))
    }

    /// Approximate size in bytes.
    fn bytes(&self) -> u64 {
        self.tuple.body().map_or(0, |body| body.graph().bytes() as u64)
    }

    fn call(&self, builder: &mut LazyBuilder) -> Result<Results> {
        let argument = |argument: &Argument| match *argument {
            Argument::Operand(place) => NodeId(place),
            Argument::Number(number) => builder.number(number),
        };
        let arguments: SmallVec<[NodeId; 4]> = self.arguments.iter().map(argument).collect();
        builder.call(&self.tuple, &arguments)
    }
}

impl LazyBuilder {
    /// Builds a method. The nodes imported so far are its operands.
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
        // An invalid TINYSPEC_PLANS is reported when the plan is cached.
        let _ = COMPOSITIONS.insert(key, composition.clone(), bytes);
        match composition {
            Some(composition) => composition.call(self),
            None => Ok(nodes),
        }
    }
}
