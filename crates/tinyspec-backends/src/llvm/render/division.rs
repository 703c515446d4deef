//! Floored, total division: x / 0 = 0, x mod 0 = x, MIN / -1 wraps. Guards are omitted if min_max shows that they are
//! unnecessary.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use llvm_sys::LLVMIntPredicate::{LLVMIntEQ, LLVMIntNE, LLVMIntSLT};
use llvm_sys::LLVMOpcode::{
    LLVMAShr, LLVMAdd, LLVMAnd, LLVMFAdd, LLVMFDiv, LLVMFPExt, LLVMFPTrunc, LLVMLShr, LLVMMul, LLVMSDiv, LLVMSub,
    LLVMUDiv, LLVMXor,
};
use llvm_sys::LLVMRealPredicate::{LLVMRealOEQ, LLVMRealOLT, LLVMRealUNE};
use tinyspec_ir::{Builder, DType, NodeId, Op};

impl Renderer<'_, '_> {
    pub(super) fn divide(&mut self, node: NodeId, op: Op, dtype: DType, a: Value, b: Value) -> Result<Value> {
        let bounds = |node: NodeId| self.graph.props(node).interval.int().unwrap_or((i128::MIN, i128::MAX));
        let (low, high) = bounds(self.graph.source(node, 1));
        let unsigned = dtype.is_unsigned();
        let constant = |number: i64| self.emit.int(a.kind, a.lanes, number);
        if low == high && low > 0 && (low as u64).is_power_of_two() {
            // Arithmetic shifts and masks already floor.
            let power = constant(i64::from((low as u64).trailing_zeros()));
            return match op {
                Op::Idiv => self.emit.binary(if unsigned { LLVMLShr } else { LLVMAShr }, a, power),
                _ => self.emit.binary(LLVMAnd, a, constant((low as u64 - 1) as i64)),
            };
        }
        let least = bounds(self.graph.source(node, 0)).0;
        let (zero, one, minus_one) = (constant(0), constant(1), constant(-1));
        let may_be_zero = low <= 0 && high >= 0;
        let may_be_minus_one = !unsigned && low <= -1 && high >= -1;
        let is_zero = if may_be_zero { Some(self.emit.compare_ints(LLVMIntEQ, b, zero)?) } else { None };
        let mut divisor = b;
        if let Some(is_zero) = is_zero {
            divisor = self.emit.select(is_zero, one, divisor)?;
        }
        let is_minus_one = if may_be_minus_one { Some(self.emit.compare_ints(LLVMIntEQ, b, minus_one)?) } else { None };
        if let Some(is_minus_one) = is_minus_one {
            divisor = self.emit.select(is_minus_one, one, divisor)?;
        }
        let mut quotient = self.emit.binary(if unsigned { LLVMUDiv } else { LLVMSDiv }, a, divisor)?;
        if let Some(is_minus_one) = is_minus_one {
            let negated = self.emit.binary(LLVMSub, zero, a)?;
            quotient = self.emit.select(is_minus_one, negated, quotient)?;
        }
        if !unsigned && (least < 0 || low < 0) {
            // Division truncates: subtract one if the remainder and the divisor differ in sign.
            let product = self.emit.binary(LLVMMul, quotient, b)?;
            let remainder = self.emit.binary(LLVMSub, a, product)?;
            let signs = self.emit.binary(LLVMXor, remainder, b)?;
            let differ = self.emit.compare_ints(LLVMIntSLT, signs, zero)?;
            let some = self.emit.compare_ints(LLVMIntNE, remainder, zero)?;
            let less = self.emit.binary(LLVMAnd, differ, some)?;
            let floored = self.emit.binary(LLVMAdd, quotient, minus_one)?;
            quotient = self.emit.select(less, floored, quotient)?;
        }
        if let Some(is_zero) = is_zero {
            quotient = self.emit.select(is_zero, zero, quotient)?;
        }
        if op == Op::Idiv {
            return Ok(quotient);
        }
        let product = self.emit.binary(LLVMMul, quotient, b)?;
        self.emit.binary(LLVMSub, a, product)
    }

    /// The floor of the exact quotient: rounding to f32 may have reached the next integer, or 0.
    pub(super) fn float_floor_division(&mut self, a: Value, b: Value) -> Result<Value> {
        let narrow = a.kind == Kind::Float;
        let widen = |value| if narrow { self.emit.convert(LLVMFPExt, value, Kind::Double) } else { Ok(value) };
        let (a, b) = (widen(a)?, widen(b)?);
        let zero = self.emit.float(b.kind, b.lanes, 0.0);
        let quotient = self.quotient(LLVMFDiv, a, b)?;
        let quotient = self.emit.call("llvm.floor", &[quotient])?;
        let defined = self.emit.compare_floats(LLVMRealUNE, b, zero)?;
        let value = self.emit.select(defined, quotient, zero)?;
        if narrow { self.emit.convert(LLVMFPTrunc, value, Kind::Float) } else { Ok(value) }
    }

    pub(super) fn float_modulo(&mut self, node: NodeId, a: Value, b: Value) -> Result<Value> {
        let zero = self.emit.float(a.kind, a.lanes, 0.0);
        let remainder = self.float_remainder(node, a, b)?;
        let some = self.emit.compare_floats(LLVMRealUNE, remainder, zero)?;
        let negative = self.emit.compare_floats(LLVMRealOLT, remainder, zero)?;
        let downwards = self.emit.compare_floats(LLVMRealOLT, b, zero)?;
        let differ = self.emit.binary(LLVMXor, negative, downwards)?;
        let moved = self.emit.binary(LLVMAnd, some, differ)?;
        let sum = self.emit.binary(LLVMFAdd, remainder, b)?;
        let value = self.emit.select(moved, sum, remainder)?;
        let undivided = self.emit.compare_floats(LLVMRealOEQ, b, zero)?;
        self.emit.select(undivided, a, value)
    }
}
