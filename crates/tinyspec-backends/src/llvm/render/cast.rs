//! Conversions between dtypes: integers wrap, floats saturate into integers, everything rounds once.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use llvm_sys::LLVMIntPredicate::LLVMIntNE;
use llvm_sys::LLVMOpcode::{
    LLVMAdd, LLVMAnd, LLVMBitCast, LLVMFPExt, LLVMFPToSI, LLVMFPToUI, LLVMFPTrunc, LLVMLShr, LLVMOr, LLVMSExt,
    LLVMSIToFP, LLVMShl, LLVMSub, LLVMTrunc, LLVMUIToFP, LLVMZExt,
};
use llvm_sys::LLVMRealPredicate::{LLVMRealOGE, LLVMRealOGT, LLVMRealOLT, LLVMRealUNE, LLVMRealUNO};
use tinyspec_ir::{DType, NodeId};

impl Renderer<'_, '_> {
    pub(super) fn cast(&mut self, node: NodeId) -> Result<Value> {
        let source = self.graph.source(node, 0);
        let lanes = self.lanes(node)?;
        let value = self.value_in(source, lanes)?;
        let (from, to) = (self.graph.dtype(source), self.graph.dtype(node));
        let storage_only = |dtype| matches!(dtype, DType::F8E4M3 | DType::F8E5M2 | DType::Void);
        if from != to && (storage_only(from) || storage_only(to)) {
            return Err(self.unsupported(node, "8-bit floats are storage only"));
        }
        self.convert(value, from, to)
    }

    /// Converts a value of dtype `from` to `to`.
    pub(super) fn convert(&self, value: Value, from: DType, to: DType) -> Result<Value> {
        if from == to {
            return Ok(value);
        }
        let (source, target, lanes) = (Kind::of(from), Kind::of(to), value.lanes);
        match (from, to) {
            // bf16 is the upper half of an f32.
            (DType::BF16, DType::F32) => {
                let wide = self.emit.convert(LLVMZExt, value, Kind::I32)?;
                let bits = self.emit.binary(LLVMShl, wide, self.emit.int(Kind::I32, lanes, 16))?;
                self.emit.convert(LLVMBitCast, bits, Kind::Float)
            }
            (DType::BF16, _) => self.convert(self.convert(value, from, DType::F32)?, DType::F32, to),
            (DType::F32, DType::BF16) => self.narrow_to_bf16(value),
            (DType::F64, DType::BF16) => self.narrow_to_bf16(self.narrow_to_odd(value)?),
            (_, DType::BF16) if from.is_float() => self.convert(self.convert(value, from, DType::F32)?, DType::F32, to),
            // f32 represents these integers exactly; 8-bit ones fit in its upper half.
            (_, DType::BF16) if source.bits() <= 8 => {
                let single = self.convert(value, from, DType::F32)?;
                let bits = self.emit.convert(LLVMBitCast, single, Kind::I32)?;
                let upper = self.emit.binary(LLVMLShr, bits, self.emit.int(Kind::I32, lanes, 16))?;
                self.emit.convert(LLVMTrunc, upper, Kind::I16)
            }
            (_, DType::BF16) if source.bits() <= 16 => self.narrow_to_bf16(self.convert(value, from, DType::F32)?),
            (_, DType::BF16) => self.convert(self.convert(value, from, DType::F64)?, DType::F64, to),
            (_, DType::Bool) if source.is_float() => {
                let zero = self.emit.float(source, lanes, 0.0);
                self.emit.compare_floats(LLVMRealUNE, value, zero)
            }
            (_, DType::Bool) => {
                let zero = self.emit.int(source, lanes, 0);
                self.emit.compare_ints(LLVMIntNE, value, zero)
            }
            // Processors only convert vectors from f32.
            (DType::F64, DType::F16) => self.convert(self.narrow_to_odd(value)?, DType::F32, to),
            // Integers that an f32 cannot represent exactly are beyond the range of f16 anyway.
            (_, DType::F16) if source.is_int() => self.convert(self.convert(value, from, DType::F32)?, DType::F32, to),
            (DType::F16, _) if target.is_int() => self.convert(self.convert(value, from, DType::F32)?, DType::F32, to),
            _ if source.is_int() && target.is_int() => {
                if source.bits() == target.bits() {
                    Ok(value)
                } else if source.bits() > target.bits() {
                    self.emit.convert(LLVMTrunc, value, target)
                } else {
                    self.emit.convert(if from.is_unsigned() { LLVMZExt } else { LLVMSExt }, value, target)
                }
            }
            _ if source.is_int() => {
                self.emit.convert(if from.is_unsigned() { LLVMUIToFP } else { LLVMSIToFP }, value, target)
            }
            _ if target.is_int() => self.saturate(value, to),
            _ if source.bits() > target.bits() => self.emit.convert(LLVMFPTrunc, value, target),
            _ => self.emit.convert(LLVMFPExt, value, target),
        }
    }

    /// Float to integer: nan becomes 0, and values out of range saturate. The conversion itself only gets values in
    /// range.
    fn saturate(&self, value: Value, to: DType) -> Result<Value> {
        let (least, greatest) = to.int_range().unwrap_or((0, 1));
        let lanes = value.lanes;
        let kind = Kind::of(to);
        // A power of two (or 0), so exact.
        let low = self.emit.float(value.kind, lanes, least as f64);
        let nan = self.emit.compare_floats(LLVMRealUNO, value, value)?;
        let to_int = |inside: Value| match kind.bits() {
            // Machines only convert to 32 and 64 bits.
            ..32 => self.emit.convert(LLVMTrunc, self.emit.convert(LLVMFPToSI, inside, Kind::I32)?, kind),
            _ => self.emit.convert(if to.is_unsigned() { LLVMFPToUI } else { LLVMFPToSI }, inside, kind),
        };
        if kind.bits() * 2 <= value.kind.bits() {
            // Both bounds are exact in the float type: clamp to them.
            let high = self.emit.float(value.kind, lanes, greatest as f64);
            let is_below = self.emit.compare_floats(LLVMRealOLT, value, high)?;
            let bounded = self.emit.select(is_below, value, high)?;
            let is_above = self.emit.compare_floats(LLVMRealOGT, bounded, low)?;
            let converted = to_int(self.emit.select(is_above, bounded, low)?)?;
            return self.emit.select(nan, self.emit.int(kind, lanes, 0), converted);
        }
        // The first number beyond the range is a power of two.
        let high = self.emit.float(value.kind, lanes, (greatest + 1) as f64);
        let above = self.emit.compare_floats(LLVMRealOGE, value, high)?;
        let below = self.emit.compare_floats(LLVMRealOLT, value, low)?;
        let outside = self.emit.binary(LLVMOr, self.emit.binary(LLVMOr, above, below)?, nan)?;
        let inside = self.emit.select(outside, self.emit.float(value.kind, lanes, 0.0), value)?;
        let converted = to_int(inside)?;
        let upper = self.emit.select(above, self.emit.int(kind, lanes, greatest as i64), converted)?;
        if least == 0 {
            return Ok(upper);
        }
        self.emit.select(below, self.emit.int(kind, lanes, least as i64), upper)
    }

    /// Rounds to nearest, ties to even, by integer arithmetic, because LLVM's conversion differs between processors.
    fn narrow_to_bf16(&self, value: Value) -> Result<Value> {
        let int = |number| self.emit.int(Kind::I32, value.lanes, number);
        let bits = self.emit.convert(LLVMBitCast, value, Kind::I32)?;
        let upper = self.emit.binary(LLVMLShr, bits, int(16))?;
        let even = self.emit.binary(LLVMAnd, upper, int(1))?;
        let half = self.emit.binary(LLVMAdd, even, int(0x7fff))?;
        let rounded = self.emit.binary(LLVMLShr, self.emit.binary(LLVMAdd, bits, half)?, int(16))?;
        let quiet = self.emit.binary(LLVMOr, upper, int(0x40))?;
        let nan = self.emit.compare_floats(LLVMRealUNO, value, value)?;
        self.emit.convert(LLVMTrunc, self.emit.select(nan, quiet, rounded)?, Kind::I16)
    }

    /// f64 to f32 rounded to odd, so that a second rounding gives the correctly rounded result.
    fn narrow_to_odd(&self, value: Value) -> Result<Value> {
        let int = |number| self.emit.int(Kind::I32, value.lanes, number);
        let nearest = self.emit.convert(LLVMFPTrunc, value, Kind::Float)?;
        let back = self.emit.convert(LLVMFPExt, nearest, Kind::Double)?;
        let inexact = self.emit.compare_floats(LLVMRealUNE, back, value)?;
        let (larger, magnitude) = (self.emit.call("llvm.fabs", &[back])?, self.emit.call("llvm.fabs", &[value])?);
        let away = self.emit.compare_floats(LLVMRealOGT, larger, magnitude)?;
        let bits = self.emit.convert(LLVMBitCast, nearest, Kind::I32)?;
        let toward_zero = self.emit.binary(LLVMSub, bits, self.emit.convert(LLVMZExt, away, Kind::I32)?)?;
        let odd = self.emit.binary(LLVMOr, toward_zero, int(1))?;
        self.emit.convert(LLVMBitCast, self.emit.select(inexact, odd, bits)?, Kind::Float)
    }

    pub(super) fn bitcast(&mut self, node: NodeId) -> Result<Value> {
        let source = self.graph.source(node, 0);
        let (value, kind, lanes) = (self.value(source)?, self.kind(node), self.lanes(node)?);
        match (value.kind, kind) {
            (Kind::I1, Kind::I1) => Ok(value),
            // In memory a bool is a byte.
            (Kind::I1, _) => self.emit.reinterpret(self.emit.convert(LLVMZExt, value, Kind::I8)?, kind, lanes),
            (_, Kind::I1) => {
                let bytes = self.emit.reinterpret(value, Kind::I8, lanes)?;
                self.emit.compare_ints(LLVMIntNE, bytes, self.emit.int(Kind::I8, lanes, 0))
            }
            _ => self.emit.reinterpret(value, kind, lanes),
        }
    }
}
