//! Methods as Functions. A method that is composed of many ops ("Common Ops as Compositions") becomes one call of a cached body, which
//! operands of the same shapes and dtypes share. Building, hashing and walking a program then cost time per method rather than per op.

use super::callify::Walk;
use super::node::{Node, Sources};
use super::{Body, LazyBuilder, Place, Results, is_one_of_few};
use crate::kept::Kept;
use smallvec::SmallVec;
use std::hash::Hash;
use std::sync::{Arc, LazyLock};
use tinyspec_ir::{Builder, Const, ContentHash, ContentHasher, DType, Device, NodeId, Op, Result, Shape};

/// A method of at most this many nodes stays nodes: a call costs two itself, a Function and a GetTuple. Constants and shapes are not counted,
/// since all methods share them.
const FEW: usize = 4;
/// The most operands of a composition. Each one is compared with all others.
const MANY: usize = 256;

/// Compositions by the hash of the method, its parameters and the kinds of its operands; `None` for methods that stay nodes.
static COMPOSITIONS: LazyLock<Kept<ContentHash, Option<Arc<Composition>>>> = LazyLock::new(|| Kept::new(16));

/// A method with its parameters, without its operands.
#[derive(Clone)]
pub(crate) struct Method {
    name: &'static str,
    parameters: ContentHasher,
    /// Some parameters may be different in each step of a loop.
    may_change: bool,
}

impl Method {
    pub fn new(name: &'static str) -> Method {
        Method { name, parameters: ContentHasher::default(), may_change: false }
    }

    /// Adds a non-tensor parameter. `may_change` is set for values that a loop may change in each step.
    pub fn parameter(&mut self, parameter: &(impl Hash + ?Sized), may_change: bool) {
        parameter.hash(&mut self.parameters);
        self.may_change |= may_change;
    }

    /// A hash of the method without its parameters, for operands of these dtypes, shapes and devices, where the same ones are identical.
    /// `None` if the operands rule out a body.
    fn kind(&self, operands: &[Arc<Node>]) -> Option<ContentHash> {
        if operands.len() > MANY {
            return None;
        }
        let mut hasher = ContentHasher::default();
        self.name.hash(&mut hasher);
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
    fn of(operands: &[Arc<Node>], results: &[Arc<Node>]) -> Result<Option<Composition>> {
        let walk = Walk::of_method(results, operands);
        let computes = |node: &&Arc<Node>| node.op != Op::Const && node.props.value.is_none();
        if walk.nodes().filter(computes).count() <= walk.leaf_nodes().filter(computes).count() + FEW {
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
        let callified = walk.build_inlined()?;
        let tuple = Node::tuple(Arc::new(Body::new(callified.graph, callified.outputs).of_method()))?;
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
        let Some(kind) = method.kind(self.nodes()) else { return build(self) };
        let key = ContentHash::of(&(kind, method.parameters.content_hash()));
        if let Some(known) = COMPOSITIONS.get(&key) {
            return match known {
                Some(composition) => composition.call(self),
                None => build(self),
            };
        }
        let nodes = build(self)?;
        let results: Sources = nodes.iter().map(|&result| self.node(result)).collect();
        // A run may turn numbers and windows that change into inputs, so they have to stay visible as nodes. Parameters that change the
        // shapes of the results change the program in any case.
        let shapes = || results.iter().map(|result| &result.props.shape).collect::<SmallVec<[&Shape; 4]>>();
        if method.may_change && !self.is_one_of_few(ContentHash::of(&(kind, shapes())), key) {
            return Ok(nodes);
        }
        let composition = Composition::of(&self.nodes()[..count], &results)?.map(Arc::new);
        let bytes = composition.as_ref().map_or(0, |composition| composition.bytes());
        // An invalid TINYSPEC_PLANS is reported when the plan is cached.
        let _ = COMPOSITIONS.insert(key, composition.clone(), bytes);
        match composition {
            Some(composition) => composition.call(self),
            None => Ok(nodes),
        }
    }

    /// Whether the line has called the method with few different parameters on such operands, these among them.
    fn is_one_of_few(&self, kind: ContentHash, key: ContentHash) -> bool {
        let number = Const { dtype: DType::U64, bits: key.0 as u64 };
        self.location().is_some_and(|line| is_one_of_few(line, Place::Method(kind.0 as u64), number))
    }
}
