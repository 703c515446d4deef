//! Custom code in the language of the device's compiler, within a kernel.

use super::{Tensor, apply};
use std::panic::Location;
use tinyspec_ir::{Arg, Builder, Op};

impl Tensor {
    /// This value, computed by custom code if the device's compiler has a language for it (the spec's Custom).
    ///
    /// On the CPU the code is the body of a function in LLVM IR over the operands `%0`, `%1`, …, which broadcast to one
    /// shape. `{r}` stands for the type of the result and `{0}`, `{1}`, … for those of the operands; `{r.name}` and
    /// `{0.name}`, … stand for their suffixes in the names of intrinsics. Code with these placeholders works on whole
    /// vectors, code without them on one element. bf16 and 8-bit floats are integers of their bits, bool is `i1`.
    ///
    /// Devices without such a language, and gradients, use the value itself.
    ///
    /// ```
    /// # use tinyspec_core::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1f32, -2.0], [2]), Tensor::from_slice(&[3f32, -4.0], [2]));
    /// let code = "%larger = call {r} @llvm.maxnum.{r.name}({0} %0, {1} %1)\n ret {r} %larger";
    /// // SAFETY: the code computes the greater one, as `maximum` does for these numbers.
    /// let z = unsafe { x.maximum(&y).custom(code, &[&x, &y]) };
    /// assert_eq!(z.to_vec::<f32>()?, [3.0, -2.0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// Invalid code is an error when the kernel is compiled, with the compiler's message.
    ///
    /// # Safety
    /// The code becomes part of the kernel: it must compute this value from the operands, and do nothing else.
    #[track_caller]
    pub unsafe fn custom(&self, code: &str, operands: &[&Tensor]) -> Tensor {
        let inputs: Vec<&Tensor> = std::iter::once(self).chain(operands.iter().copied()).collect();
        apply(Location::caller(), &inputs, |builder, nodes| builder.add(Op::Custom, nodes, Arg::Text(code.into())))
    }
}
