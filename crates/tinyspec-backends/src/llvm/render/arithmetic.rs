//! Elementwise ops, as `eval_op` defines them.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use llvm_sys::LLVMIntPredicate::{LLVMIntNE, LLVMIntSLT, LLVMIntULT};
use llvm_sys::LLVMOpcode::{
    self, LLVMAShr, LLVMAdd, LLVMAnd, LLVMFAdd, LLVMFDiv, LLVMFMul, LLVMFSub, LLVMLShr, LLVMMul, LLVMOr, LLVMShl,
    LLVMSub, LLVMXor,
};
use llvm_sys::LLVMRealPredicate::{LLVMRealOGT, LLVMRealOLT, LLVMRealULT, LLVMRealUNE};
use tinyspec_ir::{Builder, Const, DType, NodeId, Op};

impl Renderer<'_, '_> {
    pub(super) fn constant(&mut self, node: NodeId) -> Result<Value> {
        let Some(value) = self.graph.as_const(node) else { return Err(self.unsupported(node, "it has no value")) };
        Ok(self.literal(value, 1))
    }

    pub(super) fn literal(&self, value: Const, lanes: u32) -> Value {
        let kind = Kind::of(value.dtype);
        match value.as_float() {
            Some(float) if kind.is_float() => self.emit.float(kind, lanes, float),
            Some(float) => self.emit.int(kind, lanes, tinyspec_ir::float::to_bits(value.dtype, float) as i64),
            None => self.emit.int(kind, lanes, value.bits as i64),
        }
    }

    pub(super) fn elementwise(&mut self, node: NodeId) -> Result<Value> {
        let (op, lanes) = (self.graph.op(node), self.lanes(node)?);
        let sources = self.graph.sources(node);
        if op == Op::Where {
            // A scalar condition selects whole vectors.
            let mut condition = self.value(sources[0])?;
            let (a, b) = (self.value_in(sources[1], lanes)?, self.value_in(sources[2], lanes)?);
            // If only the first lane of a float comparison is demanded, LLVM 22 scalarises it. With AVX-512 it then drops a shuffle of
            // an operand and compares the wrong lane.
            if self.is_x86() && self.target.masked_access && lanes > 1 && self.emit.only_lane(condition) == Some(0) {
                condition = self.emit.first_lane(lanes)?;
            }
            return self.emit.select(condition, a, b);
        }
        let dtype = self.graph.dtype(sources[0]);
        if let Some(value) = self.negation(node, lanes)? {
            return Ok(value);
        }
        let mut operands = Vec::with_capacity(sources.len());
        for source in sources {
            operands.push(self.value_in(*source, lanes)?);
        }
        match dtype {
            // Small floats are computed in f32, which rounds to the same result.
            DType::F16 | DType::BF16 => {
                for operand in &mut operands {
                    *operand = self.convert(*operand, dtype, DType::F32)?;
                }
                let value = self.float(node, op, &operands)?;
                if value.kind == Kind::I1 { Ok(value) } else { self.convert(value, DType::F32, dtype) }
            }
            DType::F32 | DType::F64 => self.float(node, op, &operands),
            DType::F8E4M3 | DType::F8E5M2 => Err(self.unsupported(node, "8-bit floats are storage only")),
            _ => self.integer(node, op, dtype, &operands),
        }
    }

    /// The operands of a difference, which the language writes as `a + b * -1`.
    pub(super) fn difference(&self, node: NodeId) -> Option<[NodeId; 2]> {
        match (self.graph.op(node), self.graph.sources(node)) {
            (Op::Add, &[a, b]) => match (self.negated(a), self.negated(b)) {
                (_, Some(b)) => Some([a, b]),
                (Some(a), _) => Some([b, a]),
                _ => None,
            },
            _ => None,
        }
    }

    /// The operand of a negation, which the language writes as `a * -1`.
    fn negated(&self, node: NodeId) -> Option<NodeId> {
        let (graph, dtype) = (self.graph, self.graph.dtype(node));
        let narrow = dtype.is_float() && !matches!(dtype, DType::F32 | DType::F64);
        if graph.op(node) != Op::Mul || narrow || dtype == DType::Bool {
            return None;
        }
        let &[a, mut factor] = graph.sources(node) else { return None };
        while graph.op(factor) == Op::Expand {
            factor = graph.source(factor, 0);
        }
        let is_minus_one = |node: NodeId| graph.as_const(node) == Some(Const::int(dtype, -1));
        let lanes = graph.sources(factor);
        let splat = graph.op(factor) == Op::Stack && lanes.iter().all(|&lane| is_minus_one(lane));
        (is_minus_one(factor) || splat && !lanes.is_empty()).then_some(a)
    }

    fn negation(&mut self, node: NodeId, lanes: u32) -> Result<Option<Value>> {
        if let Some(operands) = self.difference(node) {
            let [a, b] = [self.value_in(operands[0], lanes)?, self.value_in(operands[1], lanes)?];
            let opcode = if a.kind.is_float() { LLVMFSub } else { LLVMSub };
            return self.emit.binary(opcode, a, b).map(Some);
        }
        let Some(a) = self.negated(node) else { return Ok(None) };
        let a = self.value_in(a, lanes)?;
        if a.kind.is_float() {
            return self.emit.negate_float(a).map(Some);
        }
        let zero = self.emit.int(a.kind, lanes, 0);
        self.emit.binary(LLVMSub, zero, a).map(Some)
    }

    fn float(&mut self, node: NodeId, op: Op, operands: &[Value]) -> Result<Value> {
        match (op, operands) {
            (Op::Add, &[a, b]) => self.emit.binary(LLVMFAdd, a, b),
            (Op::Mul, &[a, b]) => self.emit.binary(LLVMFMul, a, b),
            (Op::Div, &[a, b]) => self.quotient(LLVMFDiv, a, b),
            (Op::Recip, &[a]) => {
                let one = self.emit.float(a.kind, a.lanes, 1.0);
                self.emit.binary(LLVMFDiv, one, a)
            }
            (Op::Max, &[a, b]) => match self.constant_operand(node) {
                // Two instructions instead of six: the order of operands decides between zeros and propagates nan.
                Some((constant, true)) if !constant.is_nan() && constant.to_bits() != (-0.0f64).to_bits() => {
                    self.maximum_with(a, b, constant)
                }
                Some((constant, false)) if !constant.is_nan() && constant.to_bits() != (-0.0f64).to_bits() => {
                    self.maximum_with(b, a, constant)
                }
                _ => self.emit.call("llvm.maximum", &[a, b]),
            },
            (Op::Sqrt, &[a]) => self.emit.call("llvm.sqrt", &[a]),
            (Op::Trunc, &[a]) => self.emit.call("llvm.trunc", &[a]),
            (Op::CmpLt, &[a, b]) => self.emit.compare_floats(LLVMRealOLT, a, b),
            (Op::CmpNe, &[a, b]) => self.emit.compare_floats(LLVMRealUNE, a, b),
            (Op::Mulacc, &[a, b, c]) if self.target.fused_multiply_add => self.emit.call("llvm.fma", &[a, b, c]),
            (Op::Mulacc, &[a, b, c]) => {
                let product = self.emit.binary(LLVMFMul, a, b)?;
                self.emit.binary(LLVMFAdd, product, c)
            }
            (Op::Idiv, &[a, b]) => self.float_floor_division(a, b),
            (Op::Mod, &[a, b]) => self.float_modulo(node, a, b),
            _ => Err(self.unsupported(node, "Instruction Selection has to decompose it for this target")),
        }
    }

    /// Emits a division or a remainder.
    pub(super) fn quotient(&self, opcode: LLVMOpcode, a: Value, b: Value) -> Result<Value> {
        self.emit.binary(opcode, a, self.fenced(b)?)
    }

    /// The divisor behind a fence that hides its lanes from LLVM. If both operands of a lane are known to be 0, LLVM 22 folds 0 / 0 to 0
    /// and drops the select that masks the lane (`SimplifyDemandedVectorElts`). The fence emits no instruction.
    pub(super) fn fenced(&self, divisor: Value) -> Result<Value> {
        let hides = divisor.lanes > 1 && !self.is_gpu() && !self.emit.is_constant(divisor);
        if hides { self.emit.call("llvm.arithmetic.fence", &[divisor]) } else { Ok(divisor) }
    }

    /// The value of a constant operand of a binary node, and whether it is the second one.
    fn constant_operand(&self, node: NodeId) -> Option<(f64, bool)> {
        let [a, b] = *self.graph.sources(node) else { return None };
        // A splat of a constant counts, too.
        let value = |node: NodeId| {
            let scalar = if self.graph.op(node) == Op::Expand { self.graph.source(node, 0) } else { node };
            self.graph.as_const(scalar)?.as_float()
        };
        value(b).map(|b| (b, true)).or_else(|| value(a).map(|a| (a, false)))
    }

    /// The larger of `a` and a constant that is neither nan nor -0; nan if `a` is.
    fn maximum_with(&self, a: Value, constant: Value, number: f64) -> Result<Value> {
        if number == 0.0 {
            let larger = self.emit.compare_floats(LLVMRealULT, constant, a)?;
            return self.emit.select(larger, a, constant);
        }
        let smaller = self.emit.compare_floats(LLVMRealOGT, constant, a)?;
        self.emit.select(smaller, constant, a)
    }

    fn integer(&mut self, node: NodeId, op: Op, dtype: DType, operands: &[Value]) -> Result<Value> {
        let is_bool = dtype == DType::Bool;
        match (op, operands) {
            (Op::Add | Op::Max, &[a, b]) if is_bool => self.emit.binary(LLVMOr, a, b),
            (Op::Mul, &[a, b]) if is_bool => self.emit.binary(LLVMAnd, a, b),
            (Op::Add, &[a, b]) => self.emit.binary(LLVMAdd, a, b),
            (Op::Mul, &[a, b]) => self.emit.binary(LLVMMul, a, b),
            (Op::Max, &[a, b]) => self.emit.call(if dtype.is_unsigned() { "llvm.umax" } else { "llvm.smax" }, &[a, b]),
            (Op::Xor, &[a, b]) => self.emit.binary(LLVMXor, a, b),
            (Op::Or, &[a, b]) => self.emit.binary(LLVMOr, a, b),
            (Op::And, &[a, b]) => match self.range_check(node) {
                Some((index, limit)) => {
                    let (index, limit) = (self.value(index)?, self.value(limit)?);
                    self.emit.compare_ints(LLVMIntULT, index, limit)
                }
                None => self.emit.binary(LLVMAnd, a, b),
            },
            (Op::Trunc, &[a]) => Ok(a),
            (Op::CmpNe, &[a, b]) => self.emit.compare_ints(LLVMIntNE, a, b),
            (Op::CmpLt, &[a, b]) => {
                let predicate = if dtype.is_unsigned() { LLVMIntULT } else { LLVMIntSLT };
                self.emit.compare_ints(predicate, a, b)
            }
            (Op::Mulacc, &[a, b, c]) => {
                let product = self.emit.binary(LLVMMul, a, b)?;
                self.emit.binary(LLVMAdd, product, c)
            }
            (Op::Shl | Op::Shr, &[a, count]) => self.shift(node, op, dtype, a, count),
            (Op::Idiv | Op::Mod, &[a, b]) => self.divide(node, op, dtype, a, b),
            _ => Err(self.unsupported(node, "Instruction Selection has to decompose it for this target")),
        }
    }

    /// The operands of a bounds check `-1 < index & index < limit` of scalars, which is one unsigned comparison if the
    /// limit is not negative.
    ///
    /// Indices from data are gated this way. Two `setcc` would each write one byte of a register, and the false
    /// dependence on its other bytes would make each trip of a loop wait for the previous one.
    fn range_check(&self, node: NodeId) -> Option<(NodeId, NodeId)> {
        let graph = self.graph;
        let compared = |node: NodeId| match (graph.op(node), graph.sources(node)) {
            (Op::CmpLt, &[a, b]) => {
                let is_scalar = graph.props(node).shape.is_empty();
                (is_scalar && matches!(graph.dtype(a), DType::I32 | DType::I64)).then_some((a, b))
            }
            _ => None,
        };
        let &[a, b] = graph.sources(node) else { return None };
        let (a, b) = (compared(a)?, compared(b)?);
        [(a, b), (b, a)].into_iter().find_map(|((least, index), (same, limit))| {
            let is_length = graph.props(limit).interval.int().is_some_and(|(low, _)| low >= 0);
            (graph.as_int(least) == Some(-1) && index == same && is_length).then_some((index, limit))
        })
    }

    /// A shift by at least the width gives 0; the machine instruction would be undefined.
    fn shift(&mut self, node: NodeId, op: Op, dtype: DType, a: Value, count: Value) -> Result<Value> {
        let width = i64::from(a.kind.bits());
        let bounds = self.graph.props(self.graph.source(node, 1)).interval.int();
        let known = bounds.is_some_and(|(low, high)| low >= 0 && high < i128::from(width));
        let arithmetic = op == Op::Shr && !dtype.is_unsigned();
        let opcode = match (op, arithmetic) {
            (Op::Shl, _) => LLVMShl,
            (_, true) => LLVMAShr,
            _ => LLVMLShr,
        };
        if known {
            return self.emit.binary(opcode, a, count);
        }
        let limit = self.emit.int(count.kind, count.lanes, width);
        // Unsigned: a negative count is a large one.
        let inside = self.emit.compare_ints(LLVMIntULT, count, limit)?;
        let zero = self.emit.int(a.kind, a.lanes, 0);
        if arithmetic {
            let last = self.emit.int(count.kind, count.lanes, width - 1);
            let count = self.emit.select(inside, count, last)?;
            return self.emit.binary(opcode, a, count);
        }
        let count = self.emit.select(inside, count, zero)?;
        let shifted = self.emit.binary(opcode, a, count)?;
        self.emit.select(inside, shifted, zero)
    }
}
