//! Integer sums of products whose factors lie side by side in words of both operands: the words are read whole, and one instruction
//! multiplies and adds their elements.

use crate::lower::fold::identity;
use crate::lower::live::{next_range_id, trips};
use crate::lower::products::word_dtypes;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::rewrite::substitute;
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Dim, Graph, NodeId, Op, Result, Shape, words};

/// 128 in each byte: the difference between signed bytes and the unsigned ones that the instruction takes.
const BIAS: i128 = 0x8080_8080_u32 as i32 as i128;

/// Selects packed dot products where the target has them.
pub(crate) fn pack_dots(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let live = graph.reachable(&[sink]);
    let is_store = |node: &&NodeId| matches!(graph.op(**node), Op::Store | Op::AtomicAdd);
    let written: FxHashSet<NodeId> =
        live.iter().filter(is_store).filter_map(|&node| graph.memory(graph.source(node, 0))).collect();
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in live {
        if let Some(sum) = Sum::of(graph, node, &written, target) {
            let packed = sum.build(graph)?;
            new.insert(node, packed);
        }
    }
    if new.is_empty() { Ok(sink) } else { Ok(substitute(graph, &[sink], &new)?[0]) }
}

/// A sum of products that words are read for.
struct Sum {
    /// The loops around the words, outer ones first.
    ranges: SmallVec<[NodeId; 2]>,
    /// The loop along which the factors of a word lie.
    within: NodeId,
    factors: [Factor; 2],
    numbers: DType,
}

/// A factor, which is read from an input of the kernel.
struct Factor {
    param: NodeId,
    dtype: DType,
    index: Affine,
}

impl Sum {
    fn of(graph: &Graph, node: NodeId, written: &FxHashSet<NodeId>, target: &Target) -> Option<Sum> {
        let mut ranges: SmallVec<[NodeId; 2]> = SmallVec::new();
        let mut product = node;
        while let (Op::Reduce, Arg::Reduce { op: Op::Add, .. }, &[value, range]) =
            (graph.op(product), graph.arg(product), graph.sources(product))
        {
            ranges.push(range);
            product = value;
        }
        let &[a, b] = graph.sources(product) else { return None };
        if ranges.is_empty() || graph.op(product) != Op::Mul || graph.dtype(product) != DType::I32 {
            return None;
        }
        let factors = [Factor::of(graph, a, written)?, Factor::of(graph, b, written)?];
        let dtypes = word_dtypes(DType::I32, [factors[0].dtype, factors[1].dtype])?;
        let has_size = |numbers: &&DType| factors.iter().all(|factor| factor.dtype.size() == numbers.size());
        let numbers = *dtypes.iter().filter(has_size).find(|&&numbers| target.has_tensor_core(numbers))?;
        let count = words::count(numbers) as i64;
        let is_free = |range: NodeId| {
            let bounds: Vec<NodeId> = ranges.iter().map(|&range| graph.source(range, 0)).collect();
            !graph.reachable(&bounds).contains(&range)
        };
        let is_within = |&&range: &&NodeId| {
            is_free(range)
                && trips(graph, range).is_some_and(|trips| trips > 0 && trips % count == 0)
                && factors.iter().all(|factor| factor.lies_along(graph, range, count))
        };
        let within = *ranges.iter().find(is_within)?;
        // The instruction takes unsigned bytes first. Signed ones become unsigned, which is cheaper for those that all lanes share.
        let is_second = match factors.each_ref().map(|factor| factor.dtype) {
            [DType::U8, DType::I8] => false,
            [DType::I8, DType::U8] => true,
            _ => factors[0].is_contiguous(graph, count),
        };
        let [a, b] = factors;
        let factors = if is_second { [b, a] } else { [a, b] };
        ranges.retain(|range| *range != within);
        Some(Sum { ranges, within, factors, numbers })
    }

    fn build(self, graph: &mut Graph) -> Result<NodeId> {
        let count = words::count(self.numbers) as i64;
        let mut ranges = self.ranges;
        let mut place = Affine::number(0);
        let trips = trips(graph, self.within).unwrap_or(count) / count;
        if trips > 1 {
            let bound = graph.index(trips);
            let id = next_range_id(graph, graph.nodes());
            let range = graph.range(bound, id, AxisType::Reduce)?;
            place = Affine::atom(range);
            ranges.push(range);
        }
        let word = if self.numbers == DType::U8 { DType::I32 } else { DType::U32 };
        let mut operands: SmallVec<[NodeId; 2]> = SmallVec::new();
        for factor in &self.factors {
            operands.push(factor.words(graph, self.within, &place, (word, count))?);
        }
        let arg = Arg::Text(self.numbers.name().into());
        let zero = identity(graph, Op::Add, DType::I32);
        let is_biased = self.numbers == DType::U8 && self.factors.iter().all(|factor| factor.dtype == DType::I8);
        if !is_biased {
            let product = graph.add(Op::Wmma, &[operands[0], operands[1], zero], arg)?;
            return summed(graph, product, &ranges);
        }
        let bias = graph.constant(Const::int(DType::I32, BIAS));
        let unsigned = graph.alu(Op::Xor, &[operands[0], bias])?;
        let product = graph.add(Op::Wmma, &[unsigned, operands[1], zero], arg.clone())?;
        let excess = graph.add(Op::Wmma, &[bias, operands[1], zero], arg)?;
        let [product, excess] = [summed(graph, product, &ranges)?, summed(graph, excess, &ranges)?];
        let minus = graph.constant(Const::int(DType::I32, -1));
        let excess = graph.alu(Op::Mul, &[excess, minus])?;
        graph.alu(Op::Add, &[product, excess])
    }
}

/// The sum over loops, outer ones first.
fn summed(graph: &mut Graph, value: NodeId, ranges: &[NodeId]) -> Result<NodeId> {
    let arg = Arg::Reduce { op: Op::Add, axes: Default::default() };
    ranges.iter().rev().try_fold(value, |value, &range| graph.add(Op::Reduce, &[value, range], arg.clone()))
}

impl Factor {
    /// A widened element of an input.
    fn of(graph: &Graph, cast: NodeId, written: &FxHashSet<NodeId>) -> Option<Factor> {
        let load = *graph.sources(cast).first().filter(|_| graph.op(cast) == Op::Cast)?;
        let &[place] = graph.sources(load) else { return None };
        let &[param, index] = graph.sources(place) else { return None };
        let is_read = graph.op(load) == Op::Load && graph.op(place) == Op::Index && graph.op(param) == Op::Param;
        let index = Affine::of(graph, index);
        let factor = Factor { param, dtype: graph.dtype(param), index };
        (is_read && !written.contains(&param)).then_some(factor)
    }

    /// Whether trips of a loop are numbers of words that begin at multiples of their size.
    fn lies_along(&self, graph: &Graph, range: NodeId, count: i64) -> bool {
        let rest = self.index.isolate(graph, range);
        rest.is_some_and(|(step, rest)| {
            step == 1 && rest.constant() % count == 0 && rest.terms().iter().all(|&(_, factor)| factor % count == 0)
        })
    }

    /// Whether iterations of a parallel loop read words that are side by side.
    fn is_contiguous(&self, graph: &Graph, count: i64) -> bool {
        let is_parallel = |range: NodeId| matches!(graph.arg(range), Arg::Range { axis, .. } if axis.is_parallel() || *axis == AxisType::Local);
        self.index.terms().iter().any(|&(atom, factor)| factor == count && is_parallel(atom))
    }

    /// The words that begin with each number along `within`, at `place`.
    fn words(&self, graph: &mut Graph, within: NodeId, place: &Affine, of: (DType, i64)) -> Result<NodeId> {
        let (dtype, count) = of;
        let rest = self.index.filter(|atom| atom != within);
        let terms = rest.terms().iter().map(|&(atom, factor)| (atom, factor / count));
        let index = Affine::sum(terms, rest.constant() / count).plus(place).emit(graph)?;
        let size = graph.props(self.param).element_count().as_const().unwrap_or(0) / count;
        let shape = graph.shape(&Shape::from_iter([Dim::from(size)]))?;
        let arg = match graph.arg(self.param) {
            Arg::Param { slot, device, addrspace, .. } => {
                Arg::Param { slot: *slot, dtype, device: device.clone(), addrspace: *addrspace }
            }
            other => other.clone(),
        };
        let param = graph.add(Op::Param, &[shape], arg)?;
        let place = graph.add(Op::Index, &[param, index], Arg::None)?;
        graph.add(Op::Load, &[place], Arg::Load { device: None, addrspace: tinyspec_ir::AddrSpace::Reg })
    }
}
