//! Decomposes ops that the target lacks into those it has. Rules are data, one per line.

mod emit;
mod exponential;
mod magnitude;
mod packed_dot;
mod power;
mod rotations;
mod signs;
mod sine;
mod small_floats;

pub(super) use emit::Emit;
use rustc_hash::FxHashMap;
use small_floats::{convert, is_eight_bit};
use smallvec::SmallVec;
use std::sync::OnceLock;
use tinyspec_backends::Target;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::ops::elementwise::{Exponent, exponent_of};
use tinyspec_ir::ops::trigonometry::cosine_of;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result, words};

/// A decomposition: `build` computes the value of an op from its sources, or from what was recognised in them.
struct Rule<Build = fn(&mut Emit, &[NodeId]) -> Result<NodeId>> {
    op: Op,
    /// The dtype of the value; of a Wmma, that of the numbers in its words.
    dtype: DType,
    /// Instructions that the target must have.
    needs: &'static [Instruction],
    build: Build,
}

macro_rules! rules {
    ($($op:ident $dtype:ident $(by $($needs:ident)*)? => $build:path;)*) => {
        &[$(Rule {
            op: Op::$op,
            dtype: DType::$dtype,
            needs: &[$($(Instruction::$needs),*)?],
            build: $build,
        }),*]
    };
}

/// Decompositions of ops that the target may lack: the first whose instructions it has is applied.
const RULES: &[Rule] = rules! {
    Exp2 F32 by Nearest Scale => exponential::exp2_by_scale;
    Exp2 F32 => exponential::exp2_f32;
    Exp2 F64 => exponential::exp2_f64;
    Log2 F32 => exponential::log2_f32;
    Log2 F64 => exponential::log2_f64;
    Pow F32 => power::pow_f32;
    Pow F64 => power::pow_f64;
    Sin F32 => sine::sin_f32;
    Sin F64 => sine::sin_f64;
    Threefry U64 => rotations::threefry;
    Wmma U8 => packed_dot::wmma_u8;
    Wmma I16 => packed_dot::wmma_i16;
    Wmma BF16 => packed_dot::wmma_bf16;
};

/// Shorter forms for compositions of a missing op, `op`.
const COSINES: &[Rule] = rules! {
    Sin F32 => sine::cos_f32;
    Sin F64 => sine::cos_f64;
};

/// Emits an exponential.
type Exponential = fn(&mut Emit, Exponent) -> Result<NodeId>;

/// Powers with a product as exponent, which need not be rounded.
const EXPONENTIALS: &[Rule<Exponential>] = rules! {
    Exp2 F32 by Nearest Scale Nearer => exponential::exp_by_scale;
    Exp2 F32 => exponential::exp_f32;
    Exp2 F64 => exponential::exp_f64;
};

/// Whether this is a power with a constant exponent that a few multiplications compute.
pub fn is_product(graph: &Graph, node: NodeId) -> bool {
    power::exponent_of_product(graph, node).is_some()
}

/// The number of nodes that each op is decomposed into.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizes(Vec<(Op, DType, usize)>);

impl Sizes {
    /// Those of the ops that a target lacks.
    pub fn of(target: &Target) -> Sizes {
        static ALL: OnceLock<Vec<usize>> = OnceLock::new();
        let sizes = ALL.get_or_init(|| RULES.iter().map(|rule| rule.size().unwrap_or(1)).collect());
        let lacking = RULES.iter().zip(sizes).filter(|(rule, _)| rule.fits(target));
        Sizes(lacking.map(|(rule, &size)| (rule.op, rule.dtype, size)).collect())
    }

    /// The size of a node; small floats are computed in f32.
    pub fn size(&self, graph: &Graph, node: NodeId) -> usize {
        let (op, dtype) = (graph.op(node), graph.dtype(node));
        if is_product(graph, node) {
            return power::FEW;
        }
        self.of_op(op, if dtype.is_float() { dtype.accumulator() } else { dtype })
    }

    /// The size of an op on elements of a type.
    pub fn of_op(&self, op: Op, dtype: DType) -> usize {
        self.0.iter().find(|(known, of, _)| *known == op && *of == dtype).map_or(1, |(_, _, size)| *size)
    }
}

impl<Build> Rule<Build> {
    fn fits(&self, target: &Target) -> bool {
        let is_native = match self.op {
            Op::Wmma => target.has_tensor_core(self.dtype),
            op => target.is_native(op),
        };
        !is_native && self.needs.iter().all(|needed| target.instructions.contains(needed))
    }
}

impl Rule {
    /// The number of nodes of the decomposition. If it branches, the shorter side counts, which is the common one.
    fn size(&self) -> Result<usize> {
        let mut graph = Graph::new();
        let scalar = graph.shape(&[])?;
        let mut sources: SmallVec<[NodeId; 2]> = SmallVec::new();
        for slot in 0..2 {
            let arg = Arg::Param { slot, dtype: self.dtype, device: None, addrspace: None };
            sources.push(graph.add(Op::Param, &[scalar], arg)?);
        }
        let value = (self.build)(&mut Emit { graph: &mut graph, fused: true }, &sources)?;
        let size = |nodes: &[NodeId]| graph.reachable(nodes).len();
        Ok(match (graph.op(value), graph.sources(value)) {
            (Op::Where, &[condition, yes, no]) => size(&[condition, yes]).min(size(&[condition, no])),
            _ => size(&[value]),
        })
    }
}

pub(in super::super) fn decompose(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let rule =
        |op: Op, dtype: DType| RULES.iter().find(|rule| rule.op == op && rule.dtype == dtype && rule.fits(target));
    let cosine = |graph: &mut Graph, node: NodeId| {
        let x = cosine_of(graph, node)?;
        let dtype = graph.dtype(node);
        let rule = COSINES.iter().find(|rule| rule.dtype == dtype && rule.fits(target))?;
        Some((rule, x))
    };
    let exponential = |graph: &Graph, node: NodeId| {
        // Without a fused multiply-add, rounding the product cannot be avoided.
        let exponent = target.fused_multiply_add.then(|| exponent_of(graph, node))??;
        let dtype = graph.dtype(node);
        let rule = EXPONENTIALS.iter().find(|rule| rule.dtype == dtype && rule.fits(target))?;
        Some((rule, exponent))
    };
    let is_stored_only = |dtype: DType| dtype.is_float() && !target.arithmetic.contains(&dtype);
    let is_converted = |dtype: DType| is_eight_bit(dtype) && is_stored_only(dtype);
    let converts = |graph: &Graph, node: NodeId| {
        graph.op(node) == Op::Cast
            && (is_converted(graph.dtype(node)) || is_converted(graph.dtype(graph.source(node, 0))))
    };
    let concerns = |graph: &Graph, node: NodeId| {
        let op = graph.op(node);
        converts(graph, node)
            || magnitude::of(graph, node).is_some()
            || rule(op, words::of(graph, node).unwrap_or(graph.dtype(node))).is_some()
            || computes(op) && graph.sources(node).iter().any(|&source| is_stored_only(graph.dtype(source)))
    };
    if !order.iter().any(|&node| concerns(graph, node)) {
        return Ok(sink);
    }
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in order {
        let op = graph.op(node);
        let mut sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source]).collect();
        let mut dtype = graph.dtype(node);
        let concerned = concerns(graph, node);
        let magnitude = magnitude::of(graph, node);
        let found = cosine(graph, node);
        let power = exponential(graph, node);
        let mut emit = Emit { graph, fused: target.fused_multiply_add };
        let value = if let Some(x) = magnitude {
            magnitude::magnitude(&mut emit, new[&x])?
        } else if let Some((rule, x)) = found {
            (rule.build)(&mut emit, &[new[&x]])?
        } else if let Some((rule, exponent)) = power {
            (rule.build)(&mut emit, Exponent { x: new[&exponent.x], ..exponent })?
        } else if converts(emit.graph, node) {
            convert(&mut emit, sources[0], dtype)?
        } else if concerned {
            // Small floats are computed in f32 and rounded once.
            for source in &mut sources {
                if is_stored_only(emit.graph.dtype(*source)) {
                    *source = convert(&mut emit, *source, DType::F32)?;
                }
            }
            let narrow = is_stored_only(dtype).then_some(dtype);
            if narrow.is_some() {
                dtype = DType::F32;
            }
            let exponent = power::exponent_of_product(emit.graph, node);
            let value = match (rule(op, words::of(emit.graph, node).unwrap_or(dtype)), exponent) {
                (Some(_), Some(exponent)) => power::by_products(&mut emit, sources[0], exponent)?,
                (Some(rule), None) => (rule.build)(&mut emit, &sources)?,
                (None, _) => emit.graph.add(op, &sources, Arg::None)?,
            };
            match narrow {
                Some(narrow) => convert(&mut emit, value, narrow)?,
                None => value,
            }
        } else {
            let arg = emit.graph.arg(node).clone();
            emit.graph.add(op, &sources, arg)?
        };
        new.insert(node, value);
    }
    Ok(new[&sink])
}

/// Whether an elementwise op needs arithmetic in its operands' dtype. Ops that only move or convert values do not, nor
/// does custom code, whose operands have the dtypes it was written for.
fn computes(op: Op) -> bool {
    op.is_elementwise() && !matches!(op, Op::Cast | Op::Where | Op::Custom)
}
