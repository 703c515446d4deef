//! Helpers for emitting decompositions.

use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

pub(in crate::lower::select) struct Emit<'g> {
    pub graph: &'g mut Graph,
    /// Whether the target has a fused multiply-add.
    pub fused: bool,
}

impl Emit<'_> {
    pub fn float(&mut self, dtype: DType, value: f64) -> NodeId {
        self.graph.constant(Const::float(dtype, value))
    }

    pub fn int(&mut self, dtype: DType, value: i128) -> NodeId {
        self.graph.constant(Const::int(dtype, value))
    }

    /// A constant of the dtype of `like`.
    pub fn number(&mut self, like: NodeId, value: f64) -> NodeId {
        let dtype = self.graph.dtype(like);
        self.float(dtype, value)
    }

    /// An integer constant of the dtype of `like`.
    pub fn integer(&mut self, like: NodeId, value: i128) -> NodeId {
        let dtype = self.graph.dtype(like);
        self.int(dtype, value)
    }

    pub fn op(&mut self, op: Op, a: NodeId, b: NodeId) -> Result<NodeId> {
        self.graph.alu(op, &[a, b])
    }

    pub fn add(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        self.op(Op::Add, a, b)
    }

    pub fn mul(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        self.op(Op::Mul, a, b)
    }

    /// `a - b`, exact up to its one rounding.
    pub fn sub(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        let minus = match self.graph.dtype(a).is_float() {
            true => self.number(a, -1.0),
            false => self.integer(a, -1),
        };
        let negative = self.mul(b, minus)?;
        self.add(a, negative)
    }

    /// `a·b + c`, with one rounding where the target can.
    pub fn fma(&mut self, a: NodeId, b: NodeId, c: NodeId) -> Result<NodeId> {
        if self.fused {
            return self.graph.alu(Op::Mulacc, &[a, b, c]);
        }
        let product = self.mul(a, b)?;
        self.add(product, c)
    }

    pub fn select(&mut self, condition: NodeId, yes: NodeId, no: NodeId) -> Result<NodeId> {
        self.graph.alu(Op::Where, &[condition, yes, no])
    }

    pub fn less(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        self.op(Op::CmpLt, a, b)
    }

    pub fn differs(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        self.op(Op::CmpNe, a, b)
    }

    pub fn is_nan(&mut self, a: NodeId) -> Result<NodeId> {
        self.differs(a, a)
    }

    pub fn cast(&mut self, a: NodeId, dtype: DType) -> Result<NodeId> {
        if self.graph.dtype(a) == dtype { Ok(a) } else { self.graph.add(Op::Cast, &[a], Arg::DType(dtype)) }
    }

    pub fn bitcast(&mut self, a: NodeId, dtype: DType) -> Result<NodeId> {
        self.graph.add(Op::Bitcast, &[a], Arg::DType(dtype))
    }

    pub fn instruction(&mut self, instruction: Instruction, sources: &[NodeId]) -> Result<NodeId> {
        self.graph.add(Op::Ins, sources, Arg::Text(instruction.name().into()))
    }

    pub fn shift_left(&mut self, a: NodeId, count: i128) -> Result<NodeId> {
        let count = self.integer(a, count);
        self.op(Op::Shl, a, count)
    }

    pub fn shift_right(&mut self, a: NodeId, count: i128) -> Result<NodeId> {
        let count = self.integer(a, count);
        self.op(Op::Shr, a, count)
    }

    pub fn mask(&mut self, a: NodeId, bits: i128) -> Result<NodeId> {
        let bits = self.integer(a, bits);
        self.op(Op::And, a, bits)
    }

    /// `Σ coefficients[i] · x^i`.
    pub fn polynomial(&mut self, x: NodeId, coefficients: &[f64]) -> Result<NodeId> {
        let mut total: Option<NodeId> = None;
        for &coefficient in coefficients.iter().rev() {
            let coefficient = self.number(x, coefficient);
            total = Some(match total {
                Some(total) => self.fma(total, x, coefficient)?,
                None => coefficient,
            });
        }
        Ok(total.unwrap_or(x))
    }
}
