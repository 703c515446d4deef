//! The mistakes: where each can be made, and how.

use super::rebuild::rebuild;
use tinyspec::DType;
use tinyspec::ir::{AddrSpace, Arg, AxisType, Builder, Const, Graph, NodeId, Op, Result};

/// The form that a mistake is made in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Schedule,
    Ranges,
    Machine,
    /// Machine form, on a GPU.
    Threads,
}

macro_rules! kinds {
    ($($kind:ident)*) => {
        /// A mistake.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Kind {
            $($kind),*
        }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$($kind),*];
        }
    };
}

kinds! {
    DroppedGate
    WrongBound
    SwappedOperands
    WrongAxisType
    MissingAfter
    MissingBarrier
    ForgottenWait
    WrongIndex
    UnclosedRange
    UseBeforeStore
    WrongOffset
    WrongIdentity
    WrongCast
    DuplicatedStore
    DroppedStore
    WrongConstant
    WrongOp
    WrongReduce
}

use Kind::*;

impl Kind {
    pub fn levels(self) -> &'static [Level] {
        match self {
            MissingAfter => &[Level::Schedule, Level::Ranges, Level::Machine, Level::Threads],
            WrongIdentity => &[Level::Machine],
            MissingBarrier => &[Level::Ranges, Level::Threads],
            ForgottenWait | WrongIndex => &[Level::Threads],
            DroppedGate | WrongOffset | UseBeforeStore | DroppedStore | WrongBound => {
                &[Level::Ranges, Level::Machine, Level::Threads]
            }
            WrongReduce => &[Level::Ranges],
            _ => &[Level::Ranges, Level::Machine],
        }
    }

    /// The nodes at which it can be made.
    pub fn sites(self, level: Level, graph: &Graph, root: NodeId) -> Vec<NodeId> {
        let live = match level {
            Level::Schedule => graph.reachable_outside_bodies(&[root]),
            _ => graph.reachable(&[root]),
        };
        live.into_iter().filter(|&node| self.fits(level, graph, node)).collect()
    }

    fn fits(self, level: Level, graph: &Graph, node: NodeId) -> bool {
        let (op, sources) = (graph.op(node), graph.sources(node));
        let is_access = matches!(op, Op::Load | Op::Store | Op::AtomicAdd);
        match self {
            DroppedGate => is_access && sources.len() == 3,
            WrongBound => op == Op::Range && graph.as_int(sources[0]).is_some_and(|bound| bound > 1),
            SwappedOperands => match op {
                Op::CmpLt | Op::Idiv | Op::Mod | Op::Div | Op::Shl | Op::Shr | Op::Pow => sources[0] != sources[1],
                Op::Where => sources[1] != sources[2],
                _ => false,
            },
            WrongAxisType => op == Op::Range,
            // A dependence on a loop only places the node.
            MissingAfter => {
                let waits = |&source: &NodeId| !matches!(graph.op(source), Op::Range | Op::Special);
                op == Op::After && sources[1..].iter().any(waits) && (level != Level::Schedule || is_state(graph, node))
            }
            MissingBarrier => op == Op::Barrier,
            ForgottenWait => op == Op::Barrier && sources.len() > 1,
            WrongIndex => op == Op::Special && other_index(graph, node).is_some(),
            // A loop of one trip is none.
            UnclosedRange => op == Op::End && graph.as_int(graph.source(sources[1], 0)) != Some(1),
            UseBeforeStore | WrongIdentity => {
                let is_own = op == Op::Store && graph.props(sources[0]).addrspace != Some(AddrSpace::Global);
                is_own && (self == UseBeforeStore || graph.as_const(sources[1]).is_some())
            }
            WrongOffset => op == Op::Index && sources.len() == 2 && graph.props(node).addrspace.is_some(),
            // A cast of small counters changes nothing.
            WrongCast => {
                let is_data = |node: NodeId| graph.dtype(node).is_float() || graph.dtype(node) == DType::Bool;
                op == Op::Cast && (is_data(node) || is_data(sources[0]))
            }
            DuplicatedStore | DroppedStore => op == Op::Store,
            WrongConstant => op.is_elementwise() && sources.iter().any(|&source| graph.as_const(source).is_some()),
            WrongOp => matches!(op, Op::Add | Op::Mul | Op::Max | Op::And | Op::Or | Op::CmpLt),
            WrongReduce => op == Op::Reduce,
        }
    }

    /// The graph with the mistake, unless `derive` refuses it already.
    pub fn apply(
        self,
        level: Level,
        graph: &Graph,
        root: NodeId,
        site: NodeId,
        dice: &mut fastrand::Rng,
    ) -> Result<(Graph, NodeId)> {
        let (op, arg) = (graph.op(site), graph.arg(site).clone());
        let is_gated = graph.reachable(&[root]).into_iter().any(|node| DroppedGate.fits(Level::Ranges, graph, node));
        rebuild(graph, root, site, |new, sources| match self {
            DroppedGate if op == Op::Load => new.add(op, &sources[..1], arg),
            DroppedGate => new.add(op, &sources[..2], arg),
            WrongBound => {
                let bound = new.as_int(sources[0]).unwrap_or(0) as i64;
                // Behind gates one more iteration does nothing.
                let bound = new.index(if dice.bool() && !is_gated { bound + 1 } else { bound - 1 });
                new.add(op, &[bound], arg)
            }
            SwappedOperands if op == Op::Where => new.add(op, &[sources[0], sources[2], sources[1]], arg),
            SwappedOperands => new.add(op, &[sources[1], sources[0]], arg),
            WrongAxisType => {
                let Arg::Range { id, axis } = arg else { return new.add(op, sources, arg) };
                let others = match (axis, level) {
                    (AxisType::Loop, Level::Ranges) => [AxisType::Reduce, AxisType::Unroll],
                    (axis, Level::Ranges) if axis.is_reduce() => [AxisType::Loop, AxisType::Upcast],
                    (_, Level::Ranges) => [AxisType::Reduce, AxisType::Unroll],
                    (AxisType::Reduce, _) => [AxisType::Global, AxisType::Upcast],
                    _ => [AxisType::Unroll, AxisType::Upcast],
                };
                let axis = others[dice.usize(..2)];
                new.add(op, sources, Arg::Range { id, axis })
            }
            MissingAfter | UnclosedRange => Ok(sources[0]),
            MissingBarrier => new.add(Op::Group, sources, Arg::None),
            ForgottenWait => {
                let forgotten = dice.usize(..sources.len());
                let waits: Vec<NodeId> =
                    (0..sources.len()).filter(|&at| at != forgotten).map(|at| sources[at]).collect();
                new.add(op, &waits, arg)
            }
            WrongIndex => {
                let Some(other) = other_index(graph, site) else { return new.add(op, sources, arg) };
                let bound = new.index(graph.as_int(graph.source(other, 0)).unwrap_or(0) as i64);
                new.add(op, &[bound], graph.arg(other).clone())
            }
            UseBeforeStore | DroppedStore => new.add(Op::Group, &[], Arg::None),
            WrongOffset => {
                let one = new.constant(Const::int(new.dtype(sources[1]), 1));
                let index = new.alu(Op::Add, &[sources[1], one])?;
                new.add(op, &[sources[0], index], arg)
            }
            WrongIdentity => {
                let value = new.as_const(sources[1]).map_or(sources[1], |value| {
                    let greatest = match value.dtype.int_range() {
                        Some((_, greatest)) => Const::int(value.dtype, greatest),
                        None => Const::float(value.dtype, f64::INFINITY),
                    };
                    let one = Const::int(value.dtype, 1);
                    let next = if value == one { Const::int(value.dtype, 0) } else { one };
                    new.constant(if dice.bool() { greatest } else { next })
                });
                new.add(op, &[&[sources[0], value], &sources[2..]].concat(), arg)
            }
            WrongCast => {
                let (from, to) = (new.dtype(sources[0]), graph.dtype(site));
                if dice.bool() || to == DType::Bool || from == DType::Bool {
                    return new.add(op, sources, Arg::DType(neighbour(to)));
                }
                let narrow = if from.is_float() && to.is_float() { DType::F8E5M2 } else { DType::Bool };
                let narrow = new.add(op, sources, Arg::DType(narrow))?;
                new.add(op, &[narrow], arg)
            }
            DuplicatedStore => {
                let first = new.add(op, sources, arg.clone())?;
                let dtype = new.dtype(sources[1]);
                let one = new.constant(Const::int(dtype, 1));
                let other = new.alu(if dtype == DType::Bool { Op::Xor } else { Op::Add }, &[sources[1], one])?;
                let second = new.add(op, &[&[sources[0], other], &sources[2..]].concat(), arg)?;
                new.add(Op::Group, &[first, second], Arg::None)
            }
            WrongConstant => {
                let mut sources = sources.to_vec();
                let constants: Vec<usize> =
                    (0..sources.len()).filter(|&at| new.as_const(sources[at]).is_some()).collect();
                let at = constants[dice.usize(..constants.len())];
                if let Some(value) = new.as_const(sources[at]) {
                    let other = match value.as_float() {
                        Some(float) if float.is_finite() => Const::float(value.dtype, float * 1.5 + 1.0),
                        Some(_) => Const::float(value.dtype, 1.0),
                        None if value.dtype == DType::Bool => Const::int(value.dtype, 1 - value.bits as i128),
                        None => Const::int(value.dtype, value.as_int().unwrap_or(0) + 1),
                    };
                    sources[at] = new.constant(other);
                }
                new.add(op, &sources, arg)
            }
            WrongOp => {
                let other = match op {
                    Op::Add => Op::Mul,
                    Op::Mul => Op::Add,
                    Op::Max => Op::Add,
                    Op::And => Op::Or,
                    Op::Or => Op::And,
                    _ => Op::CmpNe,
                };
                new.add(other, sources, arg)
            }
            WrongReduce => {
                let Arg::Reduce { op: reduce, axes } = arg else { return new.add(op, sources, arg) };
                let other = if reduce == Op::Max { Op::Add } else { Op::Max };
                new.add(op, sources, Arg::Reduce { op: other, axes })
            }
        })
    }
}

/// Another index of the launch.
fn other_index(graph: &Graph, special: NodeId) -> Option<NodeId> {
    graph.nodes().find(|&node| graph.op(node) == Op::Special && graph.arg(node) != graph.arg(special))
}

/// The state of a buffer after a Call, as opposed to a result of a kernel written by hand.
fn is_state(graph: &Graph, node: NodeId) -> bool {
    graph.sources(node)[1..].iter().any(|&source| graph.op(source) == Op::Call)
}

/// A dtype that is easily taken for this one.
fn neighbour(dtype: DType) -> DType {
    match dtype {
        DType::F32 => DType::F16,
        DType::F64 | DType::F16 | DType::BF16 => DType::F32,
        DType::I32 => DType::I16,
        DType::I64 | DType::Index => DType::I32,
        DType::U8 => DType::I8,
        DType::I8 => DType::U8,
        DType::Bool => DType::U8,
        _ => DType::I32,
    }
}
