//! Vectors: build, splat, extract, and reduce across lanes.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use llvm_sys::LLVMOpcode::{LLVMAdd, LLVMAnd, LLVMFAdd, LLVMFMul, LLVMMul, LLVMOr};
use tinyspec_ir::{Arg, DType, NodeId, Op};

/// The deepest chain of shuffles that LLVM sees. It tries to combine each shuffle with all those before it, but a
/// transpose consists of up to 64 shuffles that are already single instructions.
const DEEPEST: u32 = 2;

impl Renderer<'_, '_> {
    pub(super) fn stack(&mut self, node: NodeId) -> Result<Value> {
        let (sources, lanes) = (self.graph.sources(node), self.lanes(node)?);
        let Some(first) = sources.first().filter(|_| sources.len() == lanes as usize) else {
            return Err(self.unsupported(node, "machine vectors have one axis"));
        };
        if sources.iter().all(|source| source == first) {
            return self.value_in(*first, lanes);
        }
        if let Some((vectors, mask)) = self.lanes_of_two(sources, lanes) {
            let (a, b) = (self.value(vectors[0])?, self.value(vectors[1])?);
            let shuffled = self.emit.shuffle(a, b, &mask)?;
            let before = vectors.iter().filter_map(|vector| self.shuffles.get(vector)).max();
            let depth = 1 + before.copied().unwrap_or(0);
            if depth < DEEPEST || self.is_gpu() || !matches!(shuffled.kind, Kind::Float | Kind::Double) {
                self.shuffles.insert(node, depth);
                return Ok(shuffled);
            }
            return self.emit.call("llvm.arithmetic.fence", &[shuffled]);
        }
        let elements = sources.iter().map(|source| self.value(*source)).collect::<Result<Vec<_>>>()?;
        if let Some(constants) = self.emit.constants(&elements) {
            return Ok(constants);
        }
        let mut vector = self.emit.undefined(self.kind(node), lanes);
        for (lane, element) in (0..).zip(elements) {
            vector = self.emit.insert(vector, element, lane)?;
        }
        Ok(vector)
    }

    /// If all lanes come from one or two vectors of this length: the vectors, and the position of each lane in both
    /// together.
    fn lanes_of_two(&self, sources: &[NodeId], lanes: u32) -> Option<([NodeId; 2], Vec<u32>)> {
        let mut vectors: [Option<NodeId>; 2] = [None; 2];
        let mut mask = Vec::with_capacity(sources.len());
        for &source in sources {
            let [vector, lane] = *self.graph.sources(source) else { return None };
            if self.graph.op(source) != Op::Index || self.lanes(vector).ok()? != lanes || self.is_place(vector) {
                return None;
            }
            let lane = u32::try_from(self.graph.as_int(lane)?).ok()?;
            let position = vectors.iter().position(|known| known.is_none_or(|known| known == vector))?;
            vectors[position] = Some(vector);
            mask.push(lane + position as u32 * lanes);
        }
        Some(([vectors[0]?, vectors[1].or(vectors[0])?], mask))
    }

    pub(super) fn expand(&mut self, node: NodeId) -> Result<Value> {
        let lanes = self.lanes(node)?;
        self.value_in(self.graph.source(node, 0), lanes)
    }

    /// Extracts a lane of a vector, or several lanes in another order.
    pub(super) fn extract(&mut self, node: NodeId) -> Result<Value> {
        let [vector, lane] = *self.graph.sources(node) else {
            return Err(self.unsupported(node, "machine vectors have one axis"));
        };
        let value = self.value(vector)?;
        if self.graph.op(lane) == Op::Stack {
            let lanes = self.graph.sources(lane).iter();
            let lanes = lanes.map(|&lane| self.graph.as_int(lane).and_then(|lane| u32::try_from(lane).ok()));
            let Some(lanes) = lanes.collect::<Option<Vec<u32>>>() else {
                return Err(self.unsupported(node, "the lanes are not constants"));
            };
            return self.emit.shuffle(value, value, &lanes);
        }
        match self.graph.as_int(lane).and_then(|lane| u32::try_from(lane).ok()) {
            Some(lane) => self.emit.extract(value, lane),
            None => Err(self.unsupported(node, "the lane is not a constant")),
        }
    }

    /// Combines halves, so the order is fixed: ((0+4)+(2+6))+((1+5)+(3+7)) for eight lanes.
    pub(super) fn reduce(&mut self, node: NodeId) -> Result<Value> {
        let Arg::Reduce { op, .. } = self.graph.arg(node) else {
            return Err(self.unsupported(node, "it does not say what to reduce by"));
        };
        let source = self.graph.source(node, 0);
        if self.graph.sources(node).len() > 1 {
            return Err(self.unsupported(node, "only lanes of a vector are left to reduce"));
        }
        let (op, dtype) = (*op, self.graph.dtype(source));
        let mut vector = self.value(source)?;
        // Exact in any order, and single instructions on masks.
        match (op, vector.kind) {
            (Op::Mul, Kind::I1) => return self.joined("llvm.vector.reduce.and", vector),
            (Op::Add | Op::Max, Kind::I1) => return self.joined("llvm.vector.reduce.or", vector),
            _ => {}
        }
        while vector.lanes > 1 {
            let half = vector.lanes / 2;
            if vector.lanes % 2 == 1 {
                // Rare: no machine vector has an odd number of lanes.
                let mut total = self.emit.extract(vector, 0)?;
                for lane in 1..vector.lanes {
                    let element = self.emit.extract(vector, lane)?;
                    total = self.combine(node, op, dtype, total, element)?;
                }
                return Ok(total);
            }
            let lower: Vec<u32> = (0..half).collect();
            let upper: Vec<u32> = (half..vector.lanes).collect();
            let (low, high) = if half == 1 {
                (self.emit.extract(vector, 0)?, self.emit.extract(vector, 1)?)
            } else {
                (self.emit.shuffle(vector, vector, &lower)?, self.emit.shuffle(vector, vector, &upper)?)
            };
            vector = self.combine(node, op, dtype, low, high)?;
        }
        Ok(vector)
    }

    fn combine(&self, node: NodeId, op: Op, dtype: DType, a: Value, b: Value) -> Result<Value> {
        let float = matches!(dtype, DType::F32 | DType::F64);
        match (op, a.kind) {
            (Op::Add | Op::Max, Kind::I1) => self.emit.binary(LLVMOr, a, b),
            (Op::Mul, Kind::I1) => self.emit.binary(LLVMAnd, a, b),
            (Op::Add, _) if float => self.emit.binary(LLVMFAdd, a, b),
            (Op::Mul, _) if float => self.emit.binary(LLVMFMul, a, b),
            (Op::Max, _) if float => self.emit.call("llvm.maximum", &[a, b]),
            (Op::Add, _) if !dtype.is_float() => self.emit.binary(LLVMAdd, a, b),
            (Op::Mul, _) if !dtype.is_float() => self.emit.binary(LLVMMul, a, b),
            (Op::Max, _) if !dtype.is_float() => {
                self.emit.call(if dtype.is_unsigned() { "llvm.umax" } else { "llvm.smax" }, &[a, b])
            }
            _ => Err(self.unsupported(node, "small floats accumulate in f32")),
        }
    }
}
