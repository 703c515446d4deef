//! Functions made at run time: a body is traced once over placeholders and becomes a reusable graph
//! ("The @function Decorator").

mod body;
mod prepare;

pub use body::Body;
pub use prepare::Prepared;

use crate::lower::callify::Walk;
use crate::tensor::{Node, Sources, Tensor, apply_many};
use crate::{Error, Result};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::dim::Atom;
use tinyspec_ir::{Arg, Builder, Const, DType, Dim, ErrorKind, Op, Shape};

/// dtype and shape of an input of a [`Function`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Spec {
    /// Type of the elements.
    pub dtype: DType,
    /// The shape; dims made by [`named`] are bound when the function is called.
    pub shape: Shape,
}

impl Spec {
    /// An input of this dtype and shape.
    pub fn new(dtype: DType, shape: impl crate::IntoShape) -> Spec {
        Spec { dtype, shape: shape.into_shape() }
    }

    /// An input like this tensor.
    pub fn of(tensor: &Tensor) -> Spec {
        Spec { dtype: tensor.dtype(), shape: tensor.shape().into() }
    }
}

/// The named dim number `number` of a function, between 1 and `max`.
pub fn named(number: u32, max: i64) -> Dim {
    Dim::named(number, 1, max)
}

/// A graph over placeholders, called any number of times.
///
/// ```
/// # use tinyspec_core::{Function, Spec, Tensor};
/// # use tinyspec_ir::DType;
/// let double = Function::trace(&[Spec::new(DType::F32, [3])], |inputs| vec![&inputs[0] + &inputs[0]])?;
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Function {
    inputs: Arc<[Spec]>,
    /// Named dims by slot: they follow the tensors among the Function's arguments.
    dims: Arc<[u32]>,
    body: Arc<Body>,
    tuple: Arc<Node>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("inputs", &self.inputs).field("hash", &self.body.hash()).finish()
    }
}

impl Function {
    /// Runs `body` once over placeholders and keeps the graph it builds.
    ///
    /// # Errors
    /// The first error among the results, or that the body uses a tensor that is no input.
    #[track_caller]
    pub fn trace(inputs: &[Spec], body: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Result<Function> {
        let location = Location::caller();
        let dims = named_dims(inputs);
        // Arguments are positional: the tensors, then the named dims.
        let slot_of = |name: u32| dims.iter().position(|&other| other == name).map(|at| (inputs.len() + at) as u32);
        let rename = |dim: &Dim| rename_dim(dim, &slot_of);
        let placeholders = inputs
            .iter()
            .enumerate()
            .map(|(slot, spec)| {
                apply_many(location, &[], |builder, _| {
                    let shape: Shape = spec.shape.iter().map(rename).collect();
                    let shape = builder.shape(&shape)?;
                    let arg = Arg::Param { slot: slot as u32, dtype: spec.dtype, device: None, addrspace: None };
                    Ok(vec![builder.add(Op::Param, &[shape], arg)?])
                })
            })
            .collect::<Result<Vec<_>>>()?
            .concat();
        let results = body(&placeholders);
        let roots = results.iter().map(|result| result.node().cloned()).collect::<Result<Vec<_>>>()?;
        let walk = Walk::of(&roots);
        if !walk.leaves.is_empty() {
            return Err(tinyspec_ir::Error::new(
                ErrorKind::Unsupported,
                "function",
                "the body uses a computed tensor that is not one of its inputs",
            )
            .help("pass it as an input")
            .at(location)
            .into());
        }
        let callified = walk.build()?;
        let body = Arc::new(Body::new(callified.graph, callified.outputs));
        Ok(Function { inputs: inputs.into(), dims: dims.into(), tuple: Node::tuple(body.clone())?, body })
    }

    /// The inputs.
    pub fn inputs(&self) -> &[Spec] {
        &self.inputs
    }

    /// The graph over Params.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The results on these arguments, lazily. A mistake in the arguments is carried by every result.
    #[track_caller]
    pub fn call(&self, arguments: &[&Tensor]) -> Vec<Tensor> {
        let location = Location::caller();
        match self.try_call(location, arguments) {
            Ok(results) => results,
            Err(error) => {
                let error = match error {
                    Error::Graph(error) => Error::Graph(error.at(location)),
                    other => other,
                };
                self.body.outputs().iter().map(|_| Tensor::failed(error.clone())).collect()
            }
        }
    }

    fn try_call(&self, location: &'static Location<'static>, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        let bound = self.bind(arguments)?;
        let mut sources: Sources = Sources::new();
        sources.push(self.tuple.clone());
        for argument in arguments {
            sources.push(argument.node()?.clone());
        }
        for value in bound {
            let value = Const::int(DType::Index, value as i128);
            sources.push(Node::lazy(Op::Const, Sources::new(), Arg::Const(value), None)?);
        }
        let call = Node::lazy(Op::Function, sources, Arg::None, Some(location))?;
        (0..self.body.outputs().len() as u32)
            .map(|number| {
                let sources = Sources::from_iter([call.clone()]);
                Ok(Tensor::from_node(Node::lazy(Op::GetTuple, sources, Arg::Number(number), Some(location))?))
            })
            .collect()
    }

    /// Plans the function for arguments like these: calls of the result neither allocate nor build a graph.
    ///
    /// # Errors
    /// When the arguments do not fit, or a kernel cannot be compiled.
    #[track_caller]
    pub fn prepare(&self, arguments: &[&Tensor]) -> Result<Prepared> {
        Prepared::new(self, arguments, Location::caller())
    }

    /// Values of the named dims, checked for agreement between arguments.
    fn bind(&self, arguments: &[&Tensor]) -> Result<Vec<i64>> {
        let refuse = |kind, message: String| Err(Error::refused(kind, "function", message));
        if arguments.len() != self.inputs.len() {
            return refuse(ErrorKind::Arity, format!("takes {} tensors, found {}", self.inputs.len(), arguments.len()));
        }
        let mut bound: Vec<Option<(i64, usize)>> = vec![None; self.dims.len()];
        for (position, (argument, spec)) in arguments.iter().zip(&*self.inputs).enumerate() {
            let found = argument.node()?;
            let mismatch = || {
                let show = tinyspec_ir::dim::show;
                format!(
                    "argument {position} is {} {}, the function takes {} {}",
                    found.props.dtype,
                    show(&found.props.shape),
                    spec.dtype,
                    show(&spec.shape)
                )
            };
            if found.props.dtype != spec.dtype {
                return refuse(ErrorKind::DType, mismatch());
            }
            if found.props.shape.len() != spec.shape.len() {
                return refuse(ErrorKind::Rank, mismatch());
            }
            for (found, expected) in found.props.shape.iter().zip(&spec.shape) {
                let name = match expected.as_atom() {
                    Some(Atom::Named { slot, min, max }) => Some((*slot, *min, *max)),
                    _ => None,
                };
                let place = name.and_then(|(name, ..)| self.dims.iter().position(|&other| other == name));
                match (name, place, found.as_const()) {
                    (Some((_, min, max)), Some(place), Some(size)) if (min..=max).contains(&size) => {
                        match bound[place] {
                            Some((other, first)) if other != size => {
                                return refuse(
                                    ErrorKind::Shape,
                                    format!(
                                        "d{} is {other} in argument {first} and {size} in argument {position}",
                                        self.dims[place]
                                    ),
                                );
                            }
                            _ => bound[place] = Some((size, position)),
                        }
                    }
                    _ if found == expected => {}
                    _ => return refuse(ErrorKind::Shape, mismatch()),
                }
            }
        }
        let unbound = |name: u32| {
            Error::refused(ErrorKind::Shape, "function", format!("no argument has the named dim d{name} as an axis"))
        };
        bound.iter().zip(&*self.dims).map(|(value, &name)| Ok(value.ok_or_else(|| unbound(name))?.0)).collect()
    }
}

/// Names in the inputs' shapes, in order of appearance.
fn named_dims(inputs: &[Spec]) -> Vec<u32> {
    let mut names: Vec<u32> = Vec::new();
    for dim in inputs.iter().flat_map(|spec| &spec.shape) {
        // Substituting visits every name.
        let visited = std::cell::RefCell::new(Vec::new());
        let _ = dim.substitute(&|name| {
            visited.borrow_mut().push(name);
            None
        });
        for name in visited.into_inner() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn rename_dim(dim: &Dim, slot_of: &impl Fn(u32) -> Option<u32>) -> Dim {
    let bounds = std::cell::RefCell::new(rustc_hash::FxHashMap::default());
    for (atoms, _) in dim.terms() {
        for atom in atoms {
            if let Atom::Named { slot, min, max } = atom {
                bounds.borrow_mut().insert(slot, (min, max));
            }
        }
    }
    dim.substitute(&|name| {
        let (min, max) = bounds.borrow().get(&name).copied().unwrap_or((0, i64::MAX));
        slot_of(name).map(|slot| Dim::named(slot, min, max))
    })
}
