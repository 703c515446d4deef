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
//! Operations need no `?`: if one fails, its result carries the error, with the caller's line, until it is read.
//!
//! ```
//! # use tinyspec::prelude::*;
//! let wrong = Tensor::ones([2, 3]).matmul(Tensor::ones([4, 5])) * 2.0;
//! let error = wrong.to_vec::<f32>().unwrap_err();
//! assert!(error.to_string().contains("matmul"));
//! ```
//!
//! Environment variables, all of which [docs/settings.md] explains: `TINYSPEC_DEVICE` (`cpu`, `interpreter`, `simt`, `cuda`,
//! `amd`), `TINYSPEC_DEBUG` (2 lists the kernels, 3 adds their schedules and the reasons for them, 4 their code, 5 the UOps of
//! every stage), `TINYSPEC_BEAM` (seconds to search for each kernel's schedule), `TINYSPEC_SCHEDULES` (the file of schedules
//! found), `TINYSPEC_VERIFY=1`, `TINYSPEC_FALLBACK=off` (a kernel that cannot be lowered as planned is an error),
//! `TINYSPEC_LLVM` (a libLLVM or its folder), `TINYSPEC_CUDA` (a libcuda or its folder), `TINYSPEC_CACHE` (a folder, or `off`),
//! `TINYSPEC_MEMORY` (the memory that a device may use, such as `2GB`), `TINYSPEC_PLANS` (the memory for compiled programs,
//! such as `16MB`), `TINYSPEC_THREADS` (the number of threads that compute and compile).
//!
//! [docs/settings.md]: https://github.com/tinyspec/tinyspec/blob/main/docs/settings.md

pub use tinyspec_backends as backends;
pub use tinyspec_core::execute::{Device, default_device, device, register, set_default_device, with_default_device};
pub use tinyspec_core::function::{CustomFunction, call_function, named, register_function};
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

/// Traces a Rust function over tensors while rustc compiles it. Its graph is embedded in the binary, and mistakes in it are
/// errors from rustc, at the tokens that caused them.
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
/// **Types.** A parameter is `&Tensor<dtype, dims…>`, or a number (`f32`, `i64`, …), which is a tensor of shape `()` in the body.
/// A dim is a literal; a name declared in `<…>`, which each call binds and checks for agreement between its arguments; a `const`
/// of the scope around the function; a constant that Rust computes (`{ SHAPE[0] }`, `{ CONFIG.width }`, a `const fn`); or
/// `{ an expression }` over these. The result is a tensor or a tuple of tensors. A call with a size of 0 runs the body as plain
/// Rust: sums over nothing are 0, and taking a first row is refused. At run time the shape of a [`Tensor`] is a value, so the
/// function itself takes and returns plain `Tensor`s.
///
/// **Body.** A body may use `let`, operators, methods of [`Tensor`], tuples, arrays, blocks, `for` over ranges and lists (unrolled),
/// `if` and `match` on values known at compile time, its own `macro_rules!`, `.cast::<bf16>()` as well as `.cast(DType::BF16)`, and
/// calls of other `#[function]`s, however they are imported. `D as f32` is a size as a tensor of shape `()`. Each mistake is
/// reported with what was found, what was expected and where the dims come from; all mistakes of a body are reported together.
///
/// ```compile_fail
/// # use tinyspec::prelude::*;
/// #[function]
/// fn mlp<B, H>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, H, 10>) -> Tensor<f32, B, 10> {
///     x.matmul(w) // error: matmul: inner dimensions differ: 64 and H
/// }
/// ```
///
/// **Constants and flags decide.** A `const` of the scope around the function may end a loop (whose iterations then must keep the
/// types of the variables they change), name an axis, give a small number such as a stride, a pad or a window size, or choose in an
/// `if` or a `match`. So may a parameter of type `bool`, a flag, unless the body uses it as a tensor. All alternatives are checked at
/// compile time; the graph itself is made when the function is first used, one for each value of the flags
/// ([`function::EmbeddedFunction::with_flags`]).
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
/// **Options.** `#[function(where(D % H == 0))]` declares that `H` divides `D`, so that `x.reshape([B, T, H, D / H])` is known to keep
/// all elements; each call is checked. `#[function(grad)]` derives the backward function at compile time: `loss::grad(…)` for a loss
/// of shape `()`, and `f::backward(…, cotangents…)` for any result, both with a gradient for each float parameter.
/// `#[function(gradient = path)]` names another `#[function]` as the gradient; it takes the parameters and a cotangent for each float
/// result, and [`grad`] uses it too. `#[function(bounds(B: 1..=4096))]` bounds a dim: the function is compiled once for all sizes
/// within the bounds (and once more for size 0, if they begin there). `#[function(fast_math(contract, approx))]` grants these
/// permissions, as [`Function::fast_math`] does; `#[function(strict)]` computes sums of products of bf16 in f32 as written, as
/// [`Function::strict`] does.
///
/// **Without a body** a function is declared: `#[function] fn decode<B, N>(files: &Tensor<u8, B, N>) -> Tensor<u8, B, 32, 32, 3>;` is
/// the [`CustomFunction`] that the program registers under this name, or under that of `#[function(custom = "my_crate::decode")]`.
/// `#[function(in_place(y))]` lets it update its first parameters, whose new values are its last results.
///
/// ```
/// # use tinyspec::prelude::*;
/// # use tinyspec::{CustomFunction, register_function};
/// #[function]
/// fn reversed<N>(x: &Tensor<f32, N>) -> Tensor<f32, N>;
///
/// #[function]
/// fn palindrome<N>(x: &Tensor<f32, N>) -> Tensor<f32, N> {
///     x + reversed(x)
/// }
///
/// register_function(CustomFunction::new("reversed", |arguments, _| Ok(vec![arguments[0].clone()])).host(|mut call| {
///     let x = call.inputs[0].as_slice::<f32>()?.iter().rev();
///     call.outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x).for_each(|(y, x)| *y = *x);
///     Ok(())
/// }))?;
/// assert_eq!(palindrome(&Tensor::from_slice(&[1f32, 2.0, 4.0], [3])).to_vec::<f32>()?, [5.0, 4.0, 5.0]);
/// # Ok::<(), tinyspec::Error>(())
/// ```
///
/// `#[function(crate = path)]` gives the path of tinyspec where it is not `::tinyspec`: a renamed dependency, or a re-export of
/// another library. (`extern crate ts as tinyspec;` at the root of a crate does the same for the whole crate.)
///
/// **What is embedded.** `f::FUNCTION` is the graph ([`function::EmbeddedFunction`]), decoded when it is first used. It is, node for
/// node, the graph that running the body over placeholders builds.
pub use tinyspec_macros::function;

/// Kernels written by hand in the same dialect: checked and traced while rustc compiles, lowered by the same compiler.
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
/// **Parameters.** `&Global<dtype, dims…>` is read, and `&mut Global<…>` is updated (a [`Tensor`] stays a value: other handles
/// keep what they saw). A scalar such as `f32` is passed by value. `-> Global<…> as y`, or several of them in parentheses, are
/// results. A dim is a number, a name from `<…>` (up to 2³¹ - 1), an outer `const` in capitals, or `{ an expression }`.
/// A buffer that a kernel overwrites completely is not copied first. A kernel whose only outputs are results can be called from a
/// [`function`](macro@function).
///
/// **Dtype parameters** stand beside the dims, with the dtypes that they may be: `<N, T: f32 | f16> fn scale(x: &Global<T, N>, …)`. There is a
/// kernel for each dtype, and a call takes that of its arguments. A number has one type, `a: f32`, which is cast by `a as T`. A
/// [`function`](macro@function) calls only kernels without dtype parameters.
///
/// **Loops** name their kind. `global(n)` runs in parallel and is outermost. `local(n)` runs on the members of a workgroup, which
/// share `let mut tile: Local<f32, 32, 33>;` and wait for each other at `barrier();`, at the end of the loop, and where a loop
/// or block that contains a barrier begins and ends. `serial(n)` runs in order. `reduce(n)` runs in any order, so it may only
/// accumulate (`+=`, `-=`, `*=`, `v = max(v, …)`, `min`). `unroll(4)` repeats its body. All of them also take `start..end`.
/// The bounds of `serial` and `reduce` may depend on data under a declared maximum: `serial(starts[i]..starts[i + 1], at most N)` has no more
/// than `N` trips, and none if its end is not above its start. `break` leaves a `serial` loop, `continue` ends a trip of any loop, and
/// `while x < y, at most n { … }` is a `serial` loop of at most `n` trips. A loop that was left takes hardly more time.
///
/// **Values.** `x[i, j]` is an element, `x.get([i, j], 0.0)` an element with a default outside the buffer. There are `let`,
/// `let mut`, `if` as a statement and as a value, and `as`. Indices are 64-bit integers with floored `/` and `%`, and an index that
/// overflows counts as outside; data used as an index first wraps in its own dtype. Functions, also callable as methods, are `exp`,
/// `exp2`, `log`, `log2`, `sqrt`, `rsqrt`, `sin`, `cos`, `tanh`, `abs`, `max`, `min`, `pow`, `floor`, `round`, … and
/// `where_(c, a, b)`. `atomic_add(&mut h[i], v)` adds from all iterations, for every numeric dtype.
/// `let mut r: Reg<f32, 2, 4>;` declares registers, indexed by numbers and `unroll` variables.
/// `unsafe { custom("%r = fneg {r} %0\n ret {r} %r", -x, x) }` is a value, here `-x`, computed by LLVM IR of your own where the device
/// compiles that (see [`Tensor::custom`]).
///
/// **Helper functions** are defined beside a kernel in its `uop!`, or in its body. They return a number or nothing, and take numbers and
/// buffers: whole buffers, or slices in which an index fixes some axes. Its dims and dtype parameters are those of what it is given.
///
/// ```
/// # use tinyspec::prelude::*;
/// uop! {
///     <K> fn dot(a: &Global<f32, K>, b: &Global<f32, K>) -> f32 {
///         let mut sum = 0.0f32;
///         for k in reduce(K) { sum += a[k] * b[k]; }
///         sum
///     }
///
///     <M, N, K> fn product(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
///         for i in global(M) {
///             for j in local(N) { c[i, j] = dot(&a[i, ..], &b[.., j]); }
///         }
///     }
/// }
/// # fn main() -> Result<()> {
/// let (a, b) = (Tensor::from_slice(&[1f32, 2.0], [1, 2]), Tensor::from_slice(&[3f32, 4.0], [2, 1]));
/// assert_eq!(product(&a, &b).to_vec::<f32>()?, [11.0]);
/// # Ok(()) }
/// ```
///
/// The code of a function stands wherever it is called, so that everything is proved there; it cannot call itself, and its loops are `serial`,
/// `reduce` and `unroll`.
///
/// **Speed** follows from the loops, which stay in your order. The innermost parallel loop whose accesses are contiguous becomes vectors, or
/// else a reduce loop. Sums of a `reduce` loop and `Reg` elements in such a loop are tiles of vectors, so eight rows of a product, kept in
/// `Reg<f32, 8>`, share what is read of the columns. A sum of products in a `reduce` loop is contracted to multiply-adds, one in a `serial` loop
/// is rounded twice as written, and one of `i8` whose factors lie side by side is a packed dot product. `reduce(i + 1)` in a local loop over `i`
/// is a prefix sum. What many iterations read should lie side by side: copy it to a `Local` buffer first. `benches/hand_written.rs` has a
/// product, attention, a prefix sum and others that take about as long as the tensor ops.
///
/// **What is checked**, for all sizes at once: names, ranks and dtypes; that every access is inside its buffer, by the bounds
/// of loops and the conditions of `if`; and that no two iterations of a parallel loop store to the same element or read what the
/// other stores, unless a barrier is between them.
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
/// This holds for sizes of at least 1. A call with a dim of 0 is proved when it is made, and fails where an access might be outside.
///
/// Code that cannot be proved goes into `unsafe { … }`, around statements or a value: there an access outside of its buffer reads 0
/// or stores nothing, and the author vouches that iterations do not race. The device `interpreter` watches such a kernel while it
/// runs and names the iterations that race.
///
/// **Gradients.** `#[gradient(path)]` before the `fn` names a [`function`](macro@function) that takes the inputs and a
/// cotangent for each float result, and returns a gradient for each float input. Without it, [`grad`] fails and names the kernel.
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
/// of them. `#[model(skip)]` leaves a field out of the model; it starts as its `Default`. Sizes of tensors are expressions over the
/// generics and the `const`s of the scope around the struct. Sizes of nested models are names and numbers (`Block<H, F>`), because
/// Rust has no arithmetic on generics. Matrices start uniform within Xavier's bounds and vectors at zero, unless
/// `#[model(init = zeros | ones | xavier | he | normal(0.02))]` says otherwise.
///
/// **Buffers.** `#[model(buffer)]` makes a field a state that is not trained: running statistics, a counter, a cache, a moving
/// average of another model. It is saved, loaded and moved with the rest, but it is not one of the
/// [`parameters`](nn::Model::parameters), and no gradient is taken for it or flows through what is assigned to it. A function changes
/// the buffers of a model that it takes by `&mut`: with `self.mean = …`, `+=`, `assign` or `set`, or through the functions that it
/// calls.
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
/// A prepared call, `Net::LOSS.prepare(…)`, takes [`state`](nn::Model::state) for the model and changes the buffers in
/// place ([`function::Prepared::in_place`]).
///
/// **Methods.** A struct marked `#[model(functions)]` has one `#[function] impl`; its methods take `&self`, or `&mut self` where they
/// change buffers. `Linear::<8, 3>::FORWARD` is the graph of `forward`. Options stand before each method: `#[function(grad)]` adds
/// `linear.forward_backward(…, cotangents…)` and, for a loss of shape `()`, `model.loss_grad(…)`, which return a gradient for each
/// float parameter of the model in order, then for each float input; they change no buffers. Other methods go into a separate `impl`.
/// In bodies, fields, literal indices, `for` over arrays and `if let Some(…)` are resolved while tracing.
///
/// **At run time** a model is a plain struct of tensors with the methods of [`nn::Model`]: names, counts, files (loading lists
/// every tensor that is missing, unexpected or of another shape), devices, and [training steps](nn::Model::train_step).
pub use tinyspec_macros::model;

/// What the macros expand to.
#[doc(hidden)]
pub mod __private {
    pub use crate::__tinyspec_hop as hop;
    pub use tinyspec_core::function::{
        Buffer, EmbeddedFunction, HasFunction, HasGradient, Left, NO_FUNCTION, NoFunctions, array, call, call_gradient,
        call_updating, check_equal, check_functions, check_size, constant, field_size, gradients, method, method_size,
        next_input, push_buffers, push_model, refuse, size, size_as, update, whole, wrong, wrong_results,
    };
    pub use tinyspec_core::function::{call_kernel, call_kernel_of, kernel_constant};
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
