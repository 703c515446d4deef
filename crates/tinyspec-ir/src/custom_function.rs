//! Custom functions: code from outside of the language, such as a decoder or a library's routine, behind a name.
//!
//! A call is `Call(CustomFunction[name](made, updated, meta…), buffers…)`: the buffers that it makes, then those that it
//! updates, then those that it only reads. `made` and `updated` say how many of each there are; `meta` are parameters that are
//! known when the graph is built. Results are `After(buffer, call, number)`, as those of a [kernel](crate::kernel) written by
//! hand: the buffer's value once the function has run. What the function computes is unknown to the language, so nothing is
//! fused with it, and a program that runs the graph finds the code by its name.
//!
//! ```
//! use tinyspec_ir::custom_function::{self, CustomFunction};
//! use tinyspec_ir::{Builder, DType, Graph, Shape, text, verify};
//! let function = CustomFunction { name: "decode".into(), made: 1, updated: 0, meta: vec![3.into()] };
//! let mut graph = Graph::new();
//! let bytes = graph.zeros_of(DType::U8, &Shape::from_iter([100.into()]))?;
//! let image = (DType::U8, Shape::from_iter([8.into(), 8.into(), 3.into()]));
//! let results = function.call(&mut graph, &[image], &[bytes])?;
//! assert_eq!(graph.dtype(results[0]), DType::U8);
//! verify::tensor(&graph, &results)?;
//! let printed = text::print(&graph, &results);
//! let (read, roots) = text::parse(&printed)?;
//! assert_eq!(custom_function::of_call(&read, read.source(roots[0], 1)), Some(function));
//! # trait Zeros { fn zeros_of(&mut self, dtype: DType, shape: &Shape) -> tinyspec_ir::Result<tinyspec_ir::NodeId>; }
//! # impl Zeros for Graph {
//! #     fn zeros_of(&mut self, dtype: DType, shape: &Shape) -> tinyspec_ir::Result<tinyspec_ir::NodeId> {
//! #         tinyspec_ir::ops::creation::zeros(self, shape, dtype)
//! #     }
//! # }
//! # Ok::<(), tinyspec_ir::Error>(())
//! ```

use crate::ops::creation;
use crate::{Arg, Builder, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result, Shape};
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// A parameter that is part of the graph.
#[derive(Clone, PartialEq, Debug)]
pub enum Meta {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(Arc<str>),
}

impl From<i64> for Meta {
    fn from(value: i64) -> Meta {
        Meta::Int(value)
    }
}

impl From<f64> for Meta {
    fn from(value: f64) -> Meta {
        Meta::Float(value)
    }
}

impl From<&str> for Meta {
    fn from(value: &str) -> Meta {
        Meta::Text(value.into())
    }
}

/// The first source of a Call.
#[derive(Clone, PartialEq, Debug)]
pub struct CustomFunction {
    /// The name under which its code is found.
    pub name: Arc<str>,
    /// How many buffers it makes: their contents before the call do not matter.
    pub made: usize,
    /// How many it updates in place.
    pub updated: usize,
    /// Parameters that are part of the graph.
    pub meta: Vec<Meta>,
}

impl CustomFunction {
    /// How many buffers it writes.
    pub fn written(&self) -> usize {
        self.made + self.updated
    }

    /// Adds a call. `made` are the dtypes and shapes of the buffers that it makes; the first of the `arguments` are those that
    /// it updates. Returns the values of the written buffers after it.
    ///
    /// # Errors
    /// When [`crate::derive()`] refuses the call, such as one with arguments on two devices.
    pub fn call(&self, b: &mut dyn Builder, made: &[(DType, Shape)], arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        if made.len() != self.made || arguments.len() < self.updated {
            let message = format!(
                "makes {} buffers and updates {}, found {} and {}",
                self.made,
                self.updated,
                made.len(),
                arguments.len()
            );
            return Err(Error::new(ErrorKind::Arity, &*self.name, message));
        }
        let mut sources = vec![self.node(b)?];
        for (dtype, shape) in made {
            sources.push(creation::zeros(b, shape, *dtype)?);
        }
        sources.extend(arguments);
        let call = b.add(Op::Call, &sources, Arg::None)?;
        (0..self.written()).map(|number| result(b, sources[1 + number], call, number)).collect()
    }

    fn node(&self, b: &mut dyn Builder) -> Result<NodeId> {
        let mut sources = vec![b.index(self.made as i64), b.index(self.updated as i64)];
        for meta in &self.meta {
            sources.push(match meta {
                Meta::Int(value) => b.index(*value),
                Meta::Float(value) => b.constant(Const::float(DType::F64, *value)),
                Meta::Text(text) => b.add(Op::Binary, &[], Arg::Bytes(text.as_bytes().into()))?,
            });
        }
        b.add(Op::CustomFunction, &sources, Arg::Text((*self.name).into()))
    }
}

/// The value of the written buffer `number` after a call; `before` is the argument.
fn result(b: &mut dyn Builder, before: NodeId, call: NodeId, number: usize) -> Result<NodeId> {
    // Two results may be updates of equal values; the number distinguishes them.
    let number = b.index(number as i64);
    b.add(Op::After, &[before, call, number], Arg::None)
}

/// The custom function that a node is; `None` for other nodes, and for kernels written by hand, which have a body.
pub fn of(graph: &Graph, node: NodeId) -> Option<CustomFunction> {
    let (Op::CustomFunction, Arg::Text(name)) = (graph.op(node), graph.arg(node)) else { return None };
    let [made, updated, meta @ ..] = graph.sources(node) else { return None };
    let count = |node: NodeId| usize::try_from(graph.as_int(node)?).ok().filter(|_| graph.dtype(node) == DType::Index);
    let meta = meta.iter().map(|&node| match graph.arg(node) {
        Arg::Bytes(bytes) => Some(Meta::Text(std::str::from_utf8(bytes).ok()?.into())),
        Arg::Const(value) if value.dtype == DType::F64 => Some(Meta::Float(value.as_float()?)),
        _ => Some(Meta::Int(i64::try_from(graph.as_int(node)?).ok()?)),
    });
    let name = name.to_string().into();
    Some(CustomFunction { name, made: count(*made)?, updated: count(*updated)?, meta: meta.collect::<Option<_>>()? })
}

/// The custom function that a Call calls, if it is one of these and has the arguments for it.
pub fn of_call(graph: &Graph, call: NodeId) -> Option<CustomFunction> {
    let (&function, arguments) = graph.sources(call).split_first().filter(|_| graph.op(call) == Op::Call)?;
    of(graph, function).filter(|function| {
        let are_values = arguments.iter().all(|&argument| !matches!(graph.dtype(argument), DType::Index | DType::Void));
        function.written() <= arguments.len() && are_values
    })
}

/// A call to differentiate.
pub struct Differentiated<'a> {
    /// The function.
    pub function: &'a CustomFunction,
    /// The arguments of the call, without the buffers that it makes.
    pub arguments: &'a [NodeId],
    /// Its results.
    pub results: &'a [NodeId],
    /// The gradient of each result; `None` if it is not a float.
    pub gradients: &'a [Option<NodeId>],
}

/// Builds the gradient of each argument of a call; `None` where the argument has no gradient.
pub type GradientRule = dyn Fn(&mut Graph, &Differentiated) -> Result<Vec<Option<NodeId>>> + Send + Sync;

static GRADIENTS: LazyLock<RwLock<FxHashMap<Arc<str>, Arc<GradientRule>>>> = LazyLock::new(RwLock::default);

/// Makes the gradient of the custom functions of this name known to this process.
pub fn set_gradient(name: &str, rule: Arc<GradientRule>) {
    GRADIENTS.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), rule);
}

/// The results of the calls among some nodes, each with its number. A graph may hold a result more than once.
pub(crate) fn results(graph: &Graph, nodes: &[NodeId]) -> FxHashMap<NodeId, Vec<(usize, NodeId)>> {
    let mut results: FxHashMap<NodeId, Vec<(usize, NodeId)>> = FxHashMap::default();
    for &node in nodes.iter().filter(|&&node| graph.op(node) == Op::After) {
        if let &[_, call, number] = graph.sources(node)
            && let Some(number) = graph.as_int(number).and_then(|number| usize::try_from(number).ok())
            && of_call(graph, call).is_some()
        {
            results.entry(call).or_default().push((number, node));
        }
    }
    results
}

/// The gradients of a call's arguments, each with the argument; none if no gradient of its `results` is known. `gradient_of` is
/// that of a node, as far as it is known.
pub(crate) fn differentiate(
    graph: &mut Graph,
    call: NodeId,
    function: &CustomFunction,
    found: &[(usize, NodeId)],
    mut gradient_of: impl FnMut(&mut Graph, NodeId) -> Result<Option<NodeId>>,
) -> Result<Vec<(NodeId, NodeId)>> {
    let buffers = graph.sources(call)[1..].to_vec();
    let (mut results, mut gradients, mut is_needed) = (Vec::new(), Vec::new(), false);
    for (number, &buffer) in buffers[..function.written()].iter().enumerate() {
        let (dtype, shape) = (graph.dtype(buffer), graph.props(buffer).shape.clone());
        let mut of_result = None;
        let equal: Vec<NodeId> = found.iter().filter(|(own, _)| *own == number).map(|&(_, node)| node).collect();
        for &node in equal.iter().filter(|_| dtype.is_float()) {
            of_result = match (of_result, gradient_of(graph, node)?) {
                (Some(sum), Some(one)) => Some(graph.alu(Op::Add, &[sum, one])?),
                (sum, one) => sum.or(one),
            };
        }
        results.push(match equal.first() {
            Some(&result) => result,
            None => result(graph, buffer, call, number)?,
        });
        is_needed |= of_result.is_some();
        gradients.push(match of_result {
            None if dtype.is_float() => Some(creation::zeros(graph, &shape, dtype)?),
            of_result => of_result,
        });
    }
    if !is_needed {
        return Ok(Vec::new());
    }
    let refuse = |kind, message: String, help: &str| Err(Error::new(kind, &*function.name, message).help(help));
    let rule = GRADIENTS.read().unwrap_or_else(PoisonError::into_inner).get(&function.name).cloned();
    let Some(rule) = rule else {
        return refuse(
            ErrorKind::Gradient,
            "a custom function has no gradient of its own".into(),
            "give one where it is registered, `CustomFunction::gradient`; where it is declared, `#[function(gradient = path)]` names a #[function]",
        );
    };
    let arguments = &buffers[function.made..];
    let found = rule(graph, &Differentiated { function, arguments, results: &results, gradients: &gradients })?;
    if found.len() != arguments.len() {
        let message = format!("its gradient gives {} values for {} arguments", found.len(), arguments.len());
        return refuse(ErrorKind::Arity, message, "it gives one for each argument, `None` for one without");
    }
    let mut pairs = Vec::with_capacity(found.len());
    for (number, (&argument, gradient)) in arguments.iter().zip(found).enumerate() {
        let Some(gradient) = gradient else { continue };
        let (have, want) = (graph.props(gradient), graph.props(argument));
        if have.dtype != want.dtype || have.shape != want.shape {
            let show = |props: &crate::Props| format!("{} {}", props.dtype, crate::dim::show(&props.shape));
            let message = format!("its gradient of argument {number} is {}, the argument {}", show(have), show(want));
            return refuse(ErrorKind::Shape, message, "a gradient is like its argument");
        }
        pairs.push((argument, gradient));
    }
    Ok(pairs)
}
