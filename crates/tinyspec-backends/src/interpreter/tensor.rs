//! Evaluates a tensor graph on arrays: the oracle that every lowering is compared with.

mod assign;

use super::array::{Array, apply, value_error};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use tinyspec_ir::{Arg, Builder, Const, DType, Error, ErrorKind, Graph, NodeId, Op, Result, dim};

/// The values of `roots`, with `params` for the Params by slot. A Buffer starts as zeros.
///
/// ```
/// use tinyspec_backends::interpreter::{array::Array, tensor::evaluate};
/// use tinyspec_ir::{Arg, Builder, Const, DType, Dim, Graph, Op};
/// let mut graph = Graph::new();
/// let shape = graph.shape(&[Dim::from(3)])?;
/// let x = graph.add(Op::Param, &[shape], Arg::Param { slot: 0, dtype: DType::F32, device: None, addrspace: None })?;
/// let sum = graph.add(Op::Reduce, &[x], Arg::Reduce { op: Op::Add, axes: [0].as_slice().into() })?;
/// let values = evaluate(&graph, &[sum], &[Array::from_floats(DType::F32, &[3], &[1.0, 2.0, 4.0])?])?;
/// assert_eq!(values[0].to_floats(), [7.0]);
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
///
/// # Errors
/// When a Param has no array or one of another dtype or shape, when dims known only at run time do not fit, or for
/// nodes that are not tensors.
pub fn evaluate(graph: &Graph, roots: &[NodeId], params: &[Array]) -> Result<Vec<Array>> {
    let params = params.iter().cloned().map(Rc::new).collect();
    let mut frames = vec![Frame::new(graph, roots, None, params)];
    // Functions are nested in an explicit stack of frames, so that deep calls cannot overflow the stack.
    loop {
        let Some(frame) = frames.last_mut() else { return Ok(Vec::new()) };
        let Some(&node) = frame.order.get(frame.position) else {
            let Some(function) = frame.function else {
                return roots.iter().map(|&root| frame.array(root).map(|array| (*array).clone())).collect();
            };
            let result = frame.values.remove(&graph.source(function, 0)).unwrap_or(Value::Void);
            frames.pop();
            if let Some(caller) = frames.last_mut() {
                caller.values.insert(function, result);
            }
            continue;
        };
        frame.position += 1;
        if graph.op(node) == Op::Function {
            let arguments = graph.sources(node)[1..].iter().map(|&argument| frame.array(argument));
            let arguments = arguments.collect::<Result<Vec<_>>>()?;
            frames.push(Frame::new(graph, &[graph.source(node, 0)], Some(node), arguments));
        } else {
            let value = frame.evaluate(node).map_err(|error| graph.located(node, error))?;
            frame.values.insert(node, value);
        }
    }
}

#[derive(Clone)]
enum Value {
    Array(Rc<Array>),
    Tuple(Rc<[Rc<Array>]>),
    Void,
}

/// The graph outside Functions, or the body of one.
struct Frame<'a> {
    graph: &'a Graph,
    /// The Function whose body this is.
    function: Option<NodeId>,
    order: Vec<NodeId>,
    position: usize,
    values: FxHashMap<NodeId, Value>,
    params: Vec<Rc<Array>>,
}

impl<'a> Frame<'a> {
    fn new(graph: &'a Graph, roots: &[NodeId], function: Option<NodeId>, params: Vec<Rc<Array>>) -> Frame<'a> {
        let order = graph.reachable_outside_bodies(roots);
        Frame { graph, function, order, position: 0, values: FxHashMap::default(), params }
    }

    fn array(&self, node: NodeId) -> Result<Rc<Array>> {
        match self.values.get(&node) {
            Some(Value::Array(array)) => Ok(array.clone()),
            _ => Err(Error::new(ErrorKind::Unsupported, self.graph.op(node).name(), "is not a tensor")),
        }
    }

    fn evaluate(&self, node: NodeId) -> Result<Value> {
        let (graph, sources) = (self.graph, self.graph.sources(node));
        let array = match (graph.op(node), graph.arg(node)) {
            (Op::Tuple, _) => {
                let elements = sources.iter().map(|&source| self.array(source)).collect::<Result<Vec<_>>>()?;
                return Ok(Value::Tuple(elements.into()));
            }
            (Op::Store | Op::Group | Op::Sink, _) => return Ok(Value::Void),
            (Op::GetTuple, Arg::Number(number)) => match self.values.get(&sources[0]) {
                Some(Value::Tuple(elements)) if (*number as usize) < elements.len() => {
                    return Ok(Value::Array(elements[*number as usize].clone()));
                }
                _ => return Err(value_error("get_tuple", format!("there is no element {number}"))),
            },
            (Op::Param, Arg::Param { slot, dtype, .. }) => return Ok(Value::Array(self.param(node, *slot, *dtype)?)),
            (Op::Buffer, Arg::Buffer { dtype, .. }) => {
                Array::filled(&self.array(sources[0])?.sizes(Op::Buffer)?, Const::int(*dtype, 0))?
            }
            (Op::Load, _) => match *sources {
                [value, alternative, gate] => {
                    let (value, alternative, gate) = (self.array(value)?, self.array(alternative)?, self.array(gate)?);
                    apply(Op::Where, &Arg::None, value.dtype(), &[&gate, &value, &alternative])?
                }
                _ => return Ok(Value::Array(self.array(sources[0])?)),
            },
            (Op::After, _) => return Ok(Value::Array(self.after(node)?)),
            (op, arg) => {
                let arrays = sources.iter().map(|&source| self.array(source)).collect::<Result<Vec<_>>>()?;
                let arrays: Vec<&Array> = arrays.iter().map(Rc::as_ref).collect();
                apply(op, arg, graph.dtype(node), &arrays)?
            }
        };
        Ok(Value::Array(Rc::new(array)))
    }

    fn param(&self, node: NodeId, slot: u32, dtype: DType) -> Result<Rc<Array>> {
        let Some(array) = self.params.get(slot as usize) else {
            return Err(value_error("param", format!("no array for slot {slot}")));
        };
        // A named dim has bounds of its own, and the shape of a scalar.
        let shape = self.array(self.graph.source(node, 0))?.sizes(Op::Param)?;
        if array.dtype() != dtype || array.shape() != shape {
            let declared = dim::show(&self.graph.props(node).shape);
            return Err(value_error(
                "param",
                format!("slot {slot} is {dtype} {declared}, found {} {:?}", array.dtype(), array.shape()),
            ));
        }
        Ok(array.clone())
    }
}
