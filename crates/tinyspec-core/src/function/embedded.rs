//! Functions that `#[function]` traced at compile time: bytes in the binary, decoded once.

use super::{Body, Function, Prepared};
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::cell::Cell;

use std::sync::{Arc, OnceLock};
use tinyspec_ir::function::Traced;
use tinyspec_ir::signature::NamedDim;
use tinyspec_ir::{Builder, Const, DType, Dim, Graph, NodeId, Shape};

/// A function in the binary: what `#[function]` makes of a body, under the name `FUNCTION` of the function's type.
///
/// It is decoded when it is first used; what the macro could not see (callees, constants) is filled in then.
pub struct EmbeddedFunction {
    name: &'static str,
    bytes: &'static [u8],
    file: &'static str,
    callees: &'static [&'static EmbeddedFunction],
    constants: fn() -> Vec<Const>,
    decoded: OnceLock<Result<Function>>,
}

impl std::fmt::Debug for EmbeddedFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedFunction").field("name", &self.name).field("file", &self.file).finish_non_exhaustive()
    }
}

thread_local! {
    /// The function whose typed copy runs next instead of its graph.
    static TRACING: Cell<Option<*const EmbeddedFunction>> = const { Cell::new(None) };
}

impl EmbeddedFunction {
    /// What the macro emits.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        bytes: &'static [u8],
        file: &'static str,
        callees: &'static [&'static EmbeddedFunction],
        constants: fn() -> Vec<Const>,
    ) -> EmbeddedFunction {
        EmbeddedFunction { name, bytes, file, callees, constants, decoded: OnceLock::new() }
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The function, ready to be called.
    ///
    /// # Errors
    /// When the bytes are damaged, or the values of outer constants do not fit (a shape that only they decide).
    pub fn get(&self) -> Result<&Function> {
        self.decoded.get_or_init(|| self.decode()).as_ref().map_err(Error::clone)
    }

    fn decode(&self) -> Result<Function> {
        let traced = Traced::decode(self.bytes, self.file)?;
        let (graph, outputs) = traced.resolve(&(self.constants)(), |graph, callee, arguments| {
            let missing = || tinyspec_ir::Error::new(tinyspec_ir::ErrorKind::Verify, self.name, "a callee is missing");
            let callee = self.callees.get(callee as usize).ok_or_else(missing)?;
            let graph_error = |error: Error| match error {
                Error::Graph(error) => error,
                other => tinyspec_ir::Error::new(tinyspec_ir::ErrorKind::Value, callee.name, other.to_string()),
            };
            let callee = callee.get().map_err(graph_error)?;
            callee.inline(graph, arguments)
        })?;
        Ok(Function::new(traced.signature, Arc::new(Body::new(graph, outputs)))?)
    }

    /// The results on these arguments, lazily, as many as the function has; errors are carried by the results.
    #[track_caller]
    pub fn call(&self, arguments: &[&Tensor]) -> Vec<Tensor> {
        match self.get() {
            Ok(function) => function.call(arguments),
            Err(error) => vec![Tensor::failed(error)],
        }
    }

    /// Plans the function for arguments like these; see [`Function::prepare`].
    ///
    /// # Errors
    /// As [`Function::prepare`].
    #[track_caller]
    pub fn prepare(&self, arguments: &[&Tensor]) -> Result<Prepared> {
        self.get()?.prepare(arguments)
    }

    /// Runs the function's Rust code over placeholders at run time: the graph must be the embedded one, node for node.
    ///
    /// `call` calls the function on the tensors that it is given. This is how the macro is tested.
    ///
    /// # Errors
    /// As [`Function::trace`].
    #[track_caller]
    pub fn retrace(&self, call: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Result<Function> {
        let function = self.get()?;
        Function::trace_signature(function.signature().clone(), |inputs| {
            TRACING.set(Some(self));
            let results = call(inputs);
            TRACING.set(None);
            results
        })
    }
}

/// What a `#[function]` returns: one tensor, or a tuple of them.
pub trait Results: Sized {
    /// How many tensors.
    const COUNT: usize;

    /// From as many tensors.
    fn from_tensors(tensors: Vec<Tensor>) -> Self;

    /// As a list.
    fn into_tensors(self) -> Vec<Tensor>;
}

impl Results for Tensor {
    const COUNT: usize = 1;

    fn from_tensors(mut tensors: Vec<Tensor>) -> Tensor {
        tensors.pop().unwrap_or_else(|| unreachable!("the count was checked"))
    }

    fn into_tensors(self) -> Vec<Tensor> {
        vec![self]
    }
}

macro_rules! tuples {
    ($($count:literal: $($name:ident)*;)*) => { $(
        impl<$($name: Results),*> Results for ($($name,)*) {
            const COUNT: usize = 0 $(+ $name::COUNT)*;

            fn from_tensors(tensors: Vec<Tensor>) -> Self {
                let mut tensors = tensors.into_iter();
                ($($name::from_tensors(tensors.by_ref().take($name::COUNT).collect()),)*)
            }

            #[allow(non_snake_case, reason = "a variable for each type")]
            fn into_tensors(self) -> Vec<Tensor> {
                let ($($name,)*) = self;
                let mut tensors = Vec::with_capacity(Self::COUNT);
                $(tensors.extend($name.into_tensors());)*
                tensors
            }
        }
    )* };
}
tuples! {
    1: A; 2: A B; 3: A B C; 4: A B C D; 5: A B C D E; 6: A B C D E F; 7: A B C D E F G; 8: A B C D E F G H;
    9: A B C D E F G H I; 10: A B C D E F G H I J; 11: A B C D E F G H I J K; 12: A B C D E F G H I J K L;
}

/// The body of every function that `#[function]` emits: the embedded graph, or the typed copy while it is traced again.
#[doc(hidden)]
#[track_caller]
pub fn call_embedded<R: Results>(
    function: &'static EmbeddedFunction,
    arguments: &[&Tensor],
    typed: impl FnOnce(&[Dim]) -> R,
) -> R {
    if TRACING.get() == Some(std::ptr::from_ref(function)) {
        TRACING.set(None);
        // Placeholders have the signature's dims behind their own slots.
        let count = arguments.len() as u32;
        let dims = function.get().map(|function| function.signature().dims.clone()).unwrap_or_default();
        let dims: Vec<Dim> =
            (count..).zip(&dims).map(|(slot, NamedDim { min, max, .. })| Dim::named(slot, *min, *max)).collect();
        return typed(&dims);
    }
    let results = function.call(arguments);
    match <[Tensor; 1]>::try_from(results) {
        // An error stands for all results.
        Ok([one]) if R::COUNT != 1 => R::from_tensors(vec![one; R::COUNT]),
        Ok([one]) => R::from_tensors(vec![one]),
        Err(results) => R::from_tensors(results),
    }
}

impl Function {
    /// The results in `graph` on nodes of it.
    pub(crate) fn inline(&self, graph: &mut Graph, arguments: &[NodeId]) -> tinyspec_ir::Result<Vec<NodeId>> {
        let found: Vec<(DType, Shape)> =
            arguments.iter().map(|&node| (graph.dtype(node), graph.props(node).shape.clone())).collect();
        let dims = self.signature().bind(&found).map_err(super::first)?;
        let mut nodes = arguments.to_vec();
        for dim in &dims {
            nodes.push(graph.dim(dim)?);
        }
        self.body().inline(graph, &nodes)
    }
}
