//! The exact remainder of two floats.
//!
//! If the rounded quotient is below 2^(p-1), where p is the precision, truncating it gives the exact integer quotient or one more. One
//! fused multiply-add then gives the exact remainder, or the remainder minus the divisor. Larger quotients go to `frem`, which is a
//! call for each lane.

use super::Renderer;
use super::custom::instance;
use super::emit::{Kind, Result, Value};
use llvm_sys::LLVMOpcode::LLVMFRem;
use tinyspec_ir::NodeId;

/// The remainder of `%0` by `%1`, with the sign of `%0`. `%2` is the upper bound of quotients for the fused path; `{all}` reduces
/// `%small` to `%all`.
const REMAINDER: &str = "
entry:
  %x = call {r} @llvm.fabs.{r.name}({r} %0)
  %y = call {r} @llvm.fabs.{r.name}({r} %1)
  %quotient = fdiv {r} %x, %y
  %small = fcmp olt {r} %quotient, %2
  {all}
  br i1 %all, label %fused, label %slow
fused:
  %whole = call {r} @llvm.trunc.{r.name}({r} %quotient)
  %minus = fneg {r} %whole
  %rest = call {r} @llvm.fma.{r.name}({r} %minus, {r} %y, {r} %x)
  %below = fcmp olt {r} %rest, zeroinitializer
  %more = fadd {r} %rest, %y
  %exact = select {b} %below, {r} %more, {r} %rest
  %less = fcmp olt {r} %x, %y
  %magnitude = select {b} %less, {r} %x, {r} %exact
  %signed = call {r} @llvm.copysign.{r.name}({r} %magnitude, {r} %0)
  br label %done
slow:
  %called = frem {r} %0, %1
  br label %done
done:
  %value = phi {r} [ %signed, %fused ], [ %called, %slow ]
  ret {r} %value";

impl Renderer<'_, '_> {
    /// The remainder of a division that truncates.
    pub(super) fn float_remainder(&mut self, node: NodeId, a: Value, b: Value) -> Result<Value> {
        if self.is_gpu() {
            return self.remainder_by_words(node, a, b);
        }
        let limit = match a.kind {
            Kind::Float => (1u64 << 23) as f64,
            Kind::Double => (1u64 << 52) as f64,
            _ => 0.0,
        };
        if limit == 0.0 || !self.target.fused_multiply_add {
            return self.quotient(LLVMFRem, a, b);
        }
        let (b_type, all) = match a.lanes {
            1 => ("i1".into(), "%all = and i1 %small, %small".into()),
            n => {
                let bits = format!("%bits = bitcast <{n} x i1> %small to i{n}");
                (format!("<{n} x i1>"), format!("{bits}\n  %all = icmp eq i{n} %bits, -1"))
            }
        };
        let of = (a.kind, a.lanes);
        let code = instance(&REMAINDER.replace("{b}", &b_type).replace("{all}", &all), of, &[]);
        let function = self.custom_function(node, &code, of, &[of; 3])?;
        let limit = self.emit.float(a.kind, a.lanes, limit);
        let b = self.fenced(b)?;
        self.emit.call_named(&function, &[a, b, limit], a.kind, a.lanes)
    }
}
