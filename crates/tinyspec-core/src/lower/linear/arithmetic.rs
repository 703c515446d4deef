//! Emits index arithmetic.

use super::Instructions;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// Index arithmetic in i64.
pub(super) struct Arithmetic<'a> {
    pub graph: &'a mut Graph,
    pub instructions: &'a mut Instructions,
}

impl Arithmetic<'_> {
    /// A constant.
    pub fn number(&mut self, number: i64) -> NodeId {
        self.graph.constant(Const::int(DType::I64, number.into()))
    }

    /// The value of a form over old nodes.
    pub fn sum(&mut self, form: &Affine) -> Result<NodeId> {
        let mut sum = self.number(form.constant());
        for &(node, factor) in form.terms() {
            let term = self.scaled(self.instructions.now(node), factor)?;
            sum = self.binary(Op::Add, sum, term)?;
        }
        Ok(sum)
    }

    /// A node in 64 bits.
    pub fn wide(&mut self, node: NodeId) -> Result<NodeId> {
        match self.graph.dtype(node) {
            DType::I64 => Ok(node),
            _ => self.instructions.push(self.graph, Op::Cast, &[node], Arg::DType(DType::I64)),
        }
    }

    /// A multiple of a node; of a bool, the factor where it holds.
    pub fn scaled(&mut self, node: NodeId, factor: i64) -> Result<NodeId> {
        let number = self.number(factor);
        if self.graph.dtype(node) == DType::Bool {
            let nothing = self.number(0);
            return self.instructions.push(self.graph, Op::Where, &[node, number, nothing], Arg::None);
        }
        let node = self.wide(node)?;
        self.binary(Op::Mul, node, number)
    }

    /// The result of an op.
    pub fn binary(&mut self, op: Op, a: NodeId, b: NodeId) -> Result<NodeId> {
        match (op, self.graph.as_int(a), self.graph.as_int(b)) {
            (Op::Add, Some(0), _) => Ok(b),
            (Op::Add, _, Some(0)) | (Op::Mul | Op::Idiv, _, Some(1)) => Ok(a),
            _ => self.instructions.push(self.graph, op, &[a, b], Arg::None),
        }
    }
}
