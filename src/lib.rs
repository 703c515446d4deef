//! A tensor compiler in one dialect, UOp: lazy tensors on the host, machine code for what they compute.
//!
//! ```
//! use tinyspec::prelude::*;
//!
//! fn main() -> Result<()> {
//!     let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]);
//!     let y = (x.matmul(x.transpose(0, 1)) + 1.0).relu();
//!     assert_eq!(y.to_vec::<f32>()?, [6.0, 12.0, 12.0, 26.0]);
//!     Ok(())
//! }
//! ```
//!
//! A wrong operation needs no `?`: the tensor carries its error, with the caller's line, until it is read.
//!
//! ```
//! # use tinyspec::prelude::*;
//! let wrong = Tensor::ones([2, 3]).matmul(Tensor::ones([4, 5])) * 2.0;
//! let error = wrong.to_vec::<f32>().unwrap_err();
//! assert!(error.to_string().contains("matmul"));
//! ```
//!
//! Environment: `TINYSPEC_DEVICE` (`cpu`, `interpreter`, `simt`, `cuda`, `amd`), `TINYSPEC_DEBUG` (2 a table of kernels, 3 their
//! schedules and why, 4 their code, 5 the UOps of every stage), `TINYSPEC_BEAM` (seconds to search each kernel's schedule
//! for), `TINYSPEC_SCHEDULES` (the file of schedules found), `TINYSPEC_VERIFY=1`, `TINYSPEC_FALLBACK=off` (a kernel that
//! cannot be lowered as planned is an error), `TINYSPEC_LLVM` (a libLLVM or its folder), `TINYSPEC_CUDA` (a libcuda or its
//! folder), `TINYSPEC_CACHE` (a folder, or `off`), `TINYSPEC_MEMORY` (the most that a device may hold, such as `2GB`),
//! `TINYSPEC_PLANS` (the most that is kept of what was compiled, such as `16MB`), `TINYSPEC_THREADS` (how many threads
//! compute and compile).

pub use tinyspec_backends as backends;
pub use tinyspec_core::execute::{Device, default_device, device, register, set_default_device, with_default_device};
pub use tinyspec_core::function::named;
pub use tinyspec_core::tensor::collectives;
pub use tinyspec_core::{
    Argument, Element, Error, F8E4M3, F8E5M2, Function, GradcheckOptions, IntoAxes, IntoDevice, IntoPick, IntoPicks,
    IntoShape, NewAxis, Operand, Permission, Pick, Prepared, Program, Rest, Result, Scalar, Spec, Tensor, grad,
    grad_or_zeros, gradcheck, random_state, realize_all, set_random_state, set_seed, set_threads, stepped, threads,
};
pub use tinyspec_core::{execute, function, nn, profile, search};
pub use tinyspec_ir as ir;
pub use tinyspec_ir::ops::options;
pub use tinyspec_ir::{DType, Dim, ErrorKind};

/// Traces a Rust function over tensors while rustc compiles it: its graph is in the binary, and what is wrong in it is an
/// error from rustc, at the user's tokens.
///
/// ```
/// use tinyspec::prelude::*;
///
/// #[function]
/// fn dense<B, I, O>(x: &Tensor<f32, B, I>, w: &Tensor<f32, I, O>, b: &Tensor<f32, O>) -> Tensor<f32, B, O> {
///     x.matmul(w) + b
/// }
///
/// #[function(grad)]
/// fn loss<B>(x: &Tensor<f32, B, 2>, w: &Tensor<f32, 2, 3>, b: &Tensor<f32, 3>, scale: f32) -> Tensor<f32> {
///     (dense(x, w, b).relu() * scale).sum(.., false)
/// }
///
/// fn main() -> Result<()> {
///     let (x, w, b) = (Tensor::ones([4, 2]), Tensor::ones([2, 3]), Tensor::zeros([3]));
///     assert_eq!(loss(&x, &w, &b, 0.5).item::<f32>()?, 12.0);
///     let [dx, dw, db, dscale] = loss::grad(&x, &w, &b, 0.5);
///     assert_eq!(db.to_vec::<f32>()?, [2.0, 2.0, 2.0]);
///     # let _ = (dx, dw, dscale);
///     let run = dense.prepare(&[&x, &w, &b])?; // no graph and no allocation from here on
///     let mut out = run.outputs()?;
///     run.call(&mut out, &[&x, &w, &b])?;
///     Ok(())
/// }
/// ```
///
/// **Types.** A parameter is `&Tensor<dtype, dims…>` or a number (`f32`, `i64`, …), which is a tensor of shape `()` inside.
/// A dim is a literal, a name declared in `<…>` (bound at each call, checked for agreement between arguments), a `const`
/// of the scope around the function, what Rust computes of constants (`{ SHAPE[0] }`, `{ CONFIG.width }`, a `const fn`), or
/// `{ an expression }` over them. The result is a tensor or a tuple of tensors.
/// For a size of 0 the body is run as plain Rust: sums of nothing are 0, and a first row is refused.
/// At run time a [`Tensor`] has its shape as a value, so the function that is left takes and returns plain `Tensor`s.
///
/// **Body.** `let`, operators, methods of [`Tensor`], tuples, arrays, blocks, `for` over ranges and over lists
/// (unrolled), `if` and `match` on what is known, `macro_rules!` of its own, `.cast::<bf16>()` beside `.cast(DType::BF16)`, and calls of
/// other `#[function]`s, however they are imported. `D as f32` is a size as a tensor of shape `()`. A mistake is
/// reported with what was found, what was expected and where the dims come from; all mistakes of a body come in one run.
///
/// ```compile_fail
/// # use tinyspec::prelude::*;
/// #[function]
/// fn mlp<B, H>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, H, 10>) -> Tensor<f32, B, 10> {
///     x.matmul(w) // error: matmul: inner dimensions differ: 64 and H
/// }
/// ```
///
/// **Constants and flags decide.** A `const` of the scope around the function may end a loop, whose rounds then keep the types of what they
/// change, name an axis, be a small number such as a stride, a pad or the size of a window, or choose in an `if` or a `match`; so may a parameter of the type `bool`, a flag, unless the body uses
/// it as a tensor. All ways are checked at compile time; the graph is made when the function is first used, one for each
/// value of the flags ([`function::EmbeddedFunction::with_flags`]).
///
/// ```
/// # use tinyspec::prelude::*;
/// const LAYERS: usize = 3;
///
/// #[function]
/// fn deep<B>(x: &Tensor<f32, B, 4>, w: &Tensor<f32, 4, 4>, residual: bool) -> Tensor<f32, B, 4> {
///     let mut y = x.clone();
///     for _ in 0..LAYERS {
///         let z = y.matmul(w).relu();
///         y = if residual { y + z } else { z };
///     }
///     y
/// }
/// # assert_eq!(deep(&Tensor::ones([1, 4]), &Tensor::ones([4, 4]), false).to_vec::<f32>()?, [64.0; 4]);
/// # assert_eq!(deep(&Tensor::ones([1, 4]), &Tensor::ones([4, 4]), true).to_vec::<f32>()?, [125.0; 4]);
/// # Ok::<(), tinyspec::Error>(())
/// ```
///
/// **Options.** `#[function(where(D % H == 0))]` says what divides a dim, so that `x.reshape([B, T, H, D / H])` keeps all elements;
/// each call is checked. `#[function(grad)]` derives the backward function at compile time: `loss::grad(…)` for a loss of shape `()`,
/// `f::backward(…, cotangents…)` for any result, both with a gradient for each float parameter.
/// `#[function(gradient = path)]` takes another `#[function]` for it, over the parameters and a cotangent for each float
/// result; [`grad`] uses it too. `#[function(bounds(B: 1..=4096))]` bounds a dim: the
/// function is compiled once, by itself, for all sizes within (that of 0, where bounds begin there, by itself again). `#[function(fast_math(contract, approx))]`
/// permits what the names say to the values of floats, as [`Function::fast_math`] does; `#[function(strict)]` computes sums of
/// products of bf16 in f32 as written, as [`Function::strict`] does.
///
/// `#[function(crate = path)]` says where tinyspec is found, if it is not `::tinyspec`: a dependency of another name, or what
/// another library exports. (`extern crate ts as tinyspec;` at the root of a crate says it for all of the crate.)
///
/// **What is embedded.** `f::FUNCTION` is the graph ([`function::EmbeddedFunction`]); its parts are decoded when it is first
/// used. It is, node for node, what running the body over placeholders builds.
pub use tinyspec_macros::function;

/// Kernels written by hand, in the same dialect: checked and traced while rustc compiles, run by the same compiler.
///
/// ```
/// use tinyspec::prelude::*;
///
/// uop! { <N>                                             // named dims, bound when it is called
///     pub fn saxpy(y: &mut Global<f32, N>, x: &Global<f32, N>, a: f32) {
///         for i in global(N) { y[i] = a * x[i] + y[i]; }
///     }
/// }
///
/// uop! { <M, N>                                          // a result is allocated by its shape; it starts as zeros
///     fn softmax(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
///         for i in global(M) {
///             let mut greatest = -1e30f32;
///             for j in reduce(N) { greatest = max(greatest, x[i, j]); }
///             let mut total = 0.0f32;
///             for j in reduce(N) { total += exp(x[i, j] - greatest); }
///             for j in local(N) { y[i, j] = exp(x[i, j] - greatest) / total; }
///         }
///     }
/// }
///
/// fn main() -> Result<()> {
///     let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]);
///     let mut y = Tensor::ones([3]);
///     saxpy(&mut y, &x, 2.0);                            // lazy; `y` is a new state, its clones keep what they saw
///     assert_eq!(y.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
///     assert_eq!(softmax(&x.reshape([1, 3])).shape()[1], 3.into());
///     Ok(())
/// }
/// ```
///
/// **Parameters.** `&Global<dtype, dims…>` is read, `&mut Global<…>` is updated (a [`Tensor`] stays a value: other handles
/// do not see it), a scalar such as `f32` is passed as it is, and `-> Global<…> as y`, or several in parentheses, are
/// results. A dim is a number, a name from `<…>` (from 1 to 2³¹ - 1), an outer `const` in capitals, or `{ an expression }`.
/// What a kernel overwrites completely costs no copy. Kernels with results alone can be called from a [`function`](macro@function).
///
/// **Loops** say how they run: `global(n)` in parallel and outermost; `local(n)` by the members of a workgroup, which
/// share `let mut tile: Local<f32, 32, 33>;` and wait for each other at `barrier();` and at the loop's end (and where a loop
/// or block with a barrier inside begins and ends, each trip); `serial(n)` in order; `reduce(n)` in any order, so it only
/// accumulates (`+=`, `-=`, `*=`, `v = max(v, …)`, `min`); `unroll(4)` as copies of its body. All take `start..end` too.
///
/// **Values.** `x[i, j]`; `x.get([i, j], 0.0)` with what is read outside; `let`, `let mut`, `if` as statement and as
/// value, `as` casts; indices are whole numbers of 64 bits with floored `/` and `%`, and one that overflows is outside; data
/// wraps in its own dtype before it is an index. Functions: `exp`, `exp2`, `log`, `log2`, `sqrt`,
/// `rsqrt`, `sin`, `cos`, `tanh`, `abs`, `max`, `min`, `pow`, `floor`, `round`, … also as methods, and
/// `where_(c, a, b)`. `atomic_add(&mut h[i], v)` adds from all iterations, on every dtype of numbers.
/// `let mut r: Reg<f32, 2, 4>;` are registers, indexed by numbers and `unroll` variables.
/// `unsafe { custom("%r = fneg {r} %0\n ret {r} %r", -x, x) }` is a value, here `-x`, by LLVM IR of one's own where that is what the
/// device compiles (see [`Tensor::custom`]).
///
/// **What is checked**, for all dims at once: names, ranks and dtypes; that every access is inside its buffer, by the bounds
/// of loops and the conditions of `if`; that no two iterations of a parallel loop store to one element, and none reads
/// what another stores, unless a barrier is between.
///
/// ```compile_fail
/// # use tinyspec::prelude::*;
/// uop! { <N>
///     fn shift(y: &mut Global<f32, N>, x: &Global<f32, N>) {
///         for i in global(N) { y[i] = x[i + 1]; } // error: this index goes up to N, but axis 0 of `x` has N elements
///     }
/// }
/// ```
///
/// What cannot be shown is written in `unsafe { … }`, around statements or a value: there an access outside reads 0 and stores nothing, and that
/// iterations do not meet is the author's word. The device `interpreter` looks while such a kernel runs and names the
/// iterations that meet.
///
/// **Gradients.** `#[gradient(path)]` before the `fn` names a [`function`](macro@function) that takes the inputs and a
/// cotangent for each float result, and returns a gradient for each float input. Without it [`grad`] says what is missing.
#[macro_export]
macro_rules! uop {
    ($($kernel:tt)*) => { $crate::__private::uop! { [$crate] $($kernel)* } };
}

#[doc = include_str!("../docs/errors.md")]
pub mod errors {}

/// The programs of the README are compiled and run with the examples of these docs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}

/// The programs of the guide are compiled and run with the examples of these docs.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

/// A struct of tensors and other models: declared shapes, named parameters, and methods that are graphs.
///
/// ```
/// use tinyspec::prelude::*;
///
/// #[model(functions)]                                    // a `#[function] impl` follows
/// pub struct Linear<I, O> {                              // generics are sizes
///     #[model(init = he)]
///     weight: Tensor<f32, I, O>,
///     bias: Tensor<f32, O>,
/// }
///
/// #[function]
/// impl<I, O> Linear<I, O> {
///     pub fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O> {
///         x.matmul(&self.weight) + &self.bias
///     }
/// }
///
/// #[model]
/// struct Mlp {
///     layers: [Linear<8, 8>; 2],
///     last: Linear<8, 3>,
/// }
///
/// #[function]
/// fn loss<B>(mlp: &Mlp, x: &Tensor<f32, B, 8>, labels: &Tensor<i32, B>) -> Tensor<f32> {
///     let mut h = x.clone();
///     for layer in &mlp.layers {
///         h = layer.forward(&h).relu();                  // inferred: no annotation, no import of `Linear`
///     }
///     mlp.last.forward(&h).cross_entropy(labels, "mean", 0.0, -100)
/// }
///
/// fn main() -> Result<()> {
///     let (mut mlp, mut optimizer) = (Mlp::init(), Sgd::new(0.1));
///     assert_eq!(mlp.named_parameters()[1].0, "layers.0.bias");
///     let (x, labels) = (Tensor::ones([4, 8]), Tensor::from_slice(&[0i32, 1, 2, 0], [4]));
///     let loss = loss(&mlp, &x, &labels);                // lazy
///     mlp.train_step(&loss, &mut optimizer)?;            // gradients and update, computed with the loss as one plan
///     println!("{}", loss.item::<f32>()?);
///     Ok(())
/// }
/// ```
///
/// **Fields** are tensors, models, and arrays, `Vec`s (`#[model(len = 6)]`) and `Option`s (`#[model(none)]` where it is `None`)
/// of them; `#[model(skip)]` leaves a field out, it starts as its `Default`. Sizes of tensors are expressions over the
/// generics and the `const`s of the scope around the struct; those of nested models are names and numbers, for Rust computes no generics (`Block<H, F>`). Parameters start with Xavier's bounds, vectors
/// with zeros, or as `#[model(init = zeros | ones | xavier | he | normal(0.02))]` says.
///
/// **Buffers.** `#[model(buffer)]` makes a field a state that is not trained: running statistics, a counter, a cache, a model that
/// follows another. It is saved, loaded and moved with the rest, but is none of the [`parameters`](nn::Model::parameters), and no
/// gradient is taken for it or flows through what is assigned to it. A function changes the buffers of a model that it takes
/// by `&mut`: `self.mean = …`, `+=`, `assign`, `set`, also through the functions that it calls.
///
/// ```
/// # use tinyspec::prelude::*;
/// #[model(functions)]
/// struct BatchNorm<C> {
///     #[model(init = ones)]
///     weight: Tensor<f32, C>,
///     bias: Tensor<f32, C>,
///     #[model(buffer)]
///     mean: Tensor<f32, C>,
///     #[model(buffer, init = ones)]
///     variance: Tensor<f32, C>,
///     #[model(buffer)]
///     batches: Tensor<i64>,
/// }
///
/// #[function]
/// impl<C> BatchNorm<C> {
///     fn train<B, H, W>(&mut self, x: &Tensor<f32, B, C, H, W>) -> Tensor<f32, B, C, H, W> {
///         let [mean, variance] = x.batch_norm_running(&self.mean, &self.variance, 0.1);
///         self.mean = mean;
///         self.variance = variance;
///         self.batches += 1;
///         x.batch_norm_train(&self.weight, &self.bias, 1e-5)
///     }
///
///     fn eval<B, H, W>(&self, x: &Tensor<f32, B, C, H, W>) -> Tensor<f32, B, C, H, W> {
///         x.batch_norm_eval(&self.weight, &self.bias, &self.mean, &self.variance, 1e-5)
///     }
/// }
///
/// #[model(functions)]
/// struct Net {
///     filters: Tensor<f32, 8, 1, 3, 3>,
///     norm: BatchNorm<8>,
///     head: Tensor<f32, 8, 3>,
/// }
///
/// #[function]
/// impl Net {
///     fn loss<B, H, W>(&mut self, x: &Tensor<f32, B, 1, H, W>, labels: &Tensor<i32, B>) -> Tensor<f32> {
///         let features = x.conv2d(&self.filters, None, Conv2d { padding: [1, 1], ..default() });
///         let pooled = self.norm.train(&features).relu().mean([2, 3], false);
///         pooled.matmul(&self.head).cross_entropy(labels, "mean", 0.0, -100)
///     }
/// }
///
/// let (mut net, mut optimizer) = (Net::init(), Adam::new(1e-3));
/// for _ in 0..2 {
///     let (x, labels) = (Tensor::randn([4, 1, 6, 6]), Tensor::from_slice(&[0i32, 1, 2, 0], [4]));
///     let loss = net.loss(&x, &labels);
///     net.train_step(&loss, &mut optimizer)?;            // the statistics too
/// }
/// assert_eq!(net.norm.batches.item::<i64>()?, 2);
/// assert_eq!((net.parameters().len(), net.state().len()), (4, 7));
/// # Ok::<(), tinyspec::Error>(())
/// ```
///
/// A call that is prepared, `Net::LOSS.prepare(…)`, takes [`state`](nn::Model::state) for the model and changes the buffers in
/// place ([`function::Prepared::in_place`]).
///
/// **Methods.** One `#[function] impl` stands beside a struct that says `#[model(functions)]`; its methods take `&self`, or `&mut self`
/// where they change buffers.
/// `Linear::<8, 3>::FORWARD` is the graph of `forward`. Options stand before each: with `#[function(grad)]` there are
/// `linear.forward_backward(…, cotangents…)` and, for a loss of shape `()`, `model.loss_grad(…)`, which give a gradient for each
/// float parameter of the model in its order, then for each float input; they change no buffers. Other methods stand in an `impl` of their own. In bodies, fields,
/// indices of literals, `for` over arrays and `if let Some(…)` are decided while tracing.
///
/// **At run time** a model is a plain struct of tensors with the methods of [`nn::Model`]: names, counts, files (strict: what
/// is missing, unexpected or of another shape is listed), devices, [steps of a training](nn::Model::train_step).
pub use tinyspec_macros::model;

/// What the macros expand to.
#[doc(hidden)]
pub mod __private {
    pub use crate::__tinyspec_hop as hop;
    pub use tinyspec_core::function::{
        Buffer, EmbeddedFunction, HasFunction, HasGradient, NO_FUNCTION, NoFunctions, array, call, call_gradient,
        call_updating, check_equal, check_functions, check_size, constant, field_size, gradients, method, method_size,
        next_input, push_buffers, refuse, size, size_as, update, whole, wrong, wrong_results,
    };
    pub use tinyspec_core::function::{call_kernel, kernel_constant};
    pub use tinyspec_core::nn::{Made, NoPart, NotMade, Part};
    pub use tinyspec_macros::{companion, model_companion, trace, uop};
}

/// Visits the companion of the next callee, or, when all are known, goes on to the trace.
#[doc(hidden)]
#[macro_export]
macro_rules! __tinyspec_hop {
    ({ $($signature:tt)* } [[$($next:tt)*] $($rest:tt)*] [$($known:tt)*] $last:tt $state:tt) => {
        $($next)* ! { @tinyspec1 [$crate::__private::hop] [$($rest)*] [$($known)* { $($signature)* }] $last $state }
    };
    ({ $($signature:tt)* } [] [$($known:tt)*] [$($last:tt)*] $state:tt) => {
        $($last)* ! { [$($known)* { $($signature)* }] $state }
    };
}

/// What most programs need: `use tinyspec::prelude::*`.
pub mod prelude {
    pub use crate::function::Prepare;
    pub use crate::nn::{Adam, Model, Optimizer, Sgd, SgdOptions};
    pub use crate::options::{
        Attention, AvgPool1d, AvgPool2d, AvgPool3d, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d,
        ConvTranspose3d, MaxPool1d, MaxPool2d, MaxPool3d, default,
    };
    pub use crate::{
        DType, Dim, Error, Function, NewAxis, Rest, Result, Spec, Tensor, function, grad, model, named, realize_all,
        set_seed, stepped, uop,
    };
}
