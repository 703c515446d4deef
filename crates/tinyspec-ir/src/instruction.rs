//! Single machine instructions ("Ins"), which passes emit if a target lists them. Their semantics are defined here and
//! used by the interpreters.

use crate::{Arg, Graph, NodeId, Op};

/// A single machine instruction on lanes of f32, or a hint without a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Instruction {
    /// Rounds to the nearest integer, ties to even.
    Nearest,
    /// `a · 2^⌊n⌋`, rounded once.
    Scale,
    /// The greater of two, with -0 below +0; nan is ignored if the other is a number.
    Greater,
    /// The one of lesser magnitude, the negative one if equal; nan is ignored if the other is a number.
    Nearer,
    /// Prefetches the line of an address into all caches. The address may be out of bounds.
    Prefetch,
    /// The same, but not into the first cache.
    PrefetchSecond,
    /// No instruction is scheduled across it. Its source is the effect that it follows.
    SchedulingBarrier,
}

impl Instruction {
    /// All instructions.
    pub const ALL: [Instruction; 7] = [
        Instruction::Nearest,
        Instruction::Scale,
        Instruction::Greater,
        Instruction::Nearer,
        Instruction::Prefetch,
        Instruction::PrefetchSecond,
        Instruction::SchedulingBarrier,
    ];

    /// The hints, which have no value.
    pub const HINTS: [Instruction; 3] =
        [Instruction::Prefetch, Instruction::PrefetchSecond, Instruction::SchedulingBarrier];

    /// The text that an Ins names it by.
    ///
    /// ```
    /// use tinyspec_ir::instruction::Instruction;
    /// assert_eq!(Instruction::Scale.name(), "scale");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Instruction::Nearest => "nearest",
            Instruction::Scale => "scale",
            Instruction::Greater => "greater",
            Instruction::Nearer => "nearer",
            Instruction::Prefetch => "prefetch",
            Instruction::PrefetchSecond => "prefetch_second",
            Instruction::SchedulingBarrier => "scheduling_barrier",
        }
    }

    /// The number of sources.
    pub const fn arity(self) -> usize {
        match self {
            Instruction::Nearest
            | Instruction::Prefetch
            | Instruction::PrefetchSecond
            | Instruction::SchedulingBarrier => 1,
            Instruction::Scale | Instruction::Greater | Instruction::Nearer => 2,
        }
    }

    /// The instruction of an Ins; `None` if its name is unknown.
    pub fn of(graph: &Graph, node: NodeId) -> Option<Instruction> {
        if graph.op(node) == Op::Ins { Self::named(graph.arg(node)) } else { None }
    }

    /// The instruction that the argument of an Ins names.
    pub(crate) fn named(arg: &Arg) -> Option<Instruction> {
        match arg {
            Arg::Text(name) => Self::ALL.into_iter().find(|known| known.name() == &**name),
            _ => None,
        }
    }

    /// The hint that an Ins is, if it is one.
    pub fn hint_of(graph: &Graph, node: NodeId) -> Option<Instruction> {
        Instruction::of(graph, node).filter(|instruction| instruction.is_hint())
    }

    /// Whether it is a hint.
    pub fn is_hint(self) -> bool {
        Self::HINTS.contains(&self)
    }

    /// Its value.
    ///
    /// ```
    /// use tinyspec_ir::instruction::Instruction;
    /// assert_eq!(Instruction::Nearest.eval(&[2.5]), Some(2.0));
    /// // 1.5 · 2^-149 lies between two subnormal numbers; the even one has the bits 2.
    /// assert_eq!(Instruction::Scale.eval(&[1.5, -149.0]), Some(f32::from_bits(2)));
    /// assert_eq!(Instruction::Greater.eval(&[f32::NAN, 1.0]), Some(1.0));
    /// assert_eq!(Instruction::Nearer.eval(&[-0.25, 1.0]), Some(-0.25));
    /// ```
    pub fn eval(self, sources: &[f32]) -> Option<f32> {
        match (self, sources) {
            (Instruction::Nearest, [x]) => Some(x.round_ties_even()),
            (Instruction::Scale, [a, n]) => Some(scale(*a, *n)),
            (Instruction::Greater, [a, b]) => Some(greater(*a, *b)),
            (Instruction::Nearer, [a, b]) => Some(nearer(*a, *b)),
            _ => None,
        }
    }
}

/// The product is exact in f64, so it is rounded once. An infinite n overrides nan, as in processors.
fn scale(a: f32, n: f32) -> f32 {
    if a.is_nan() && n.is_infinite() {
        return n.exp2();
    }
    let n = if n.is_finite() { n.floor().clamp(-400.0, 400.0) } else { n };
    (a as f64 * (n as f64).exp2()) as f32
}

fn greater(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a.total_cmp(&b).is_lt() => b,
        _ => a,
    }
}

fn nearer(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a.abs().total_cmp(&b.abs()).then(a.total_cmp(&b)).is_lt() => a,
        _ => b,
    }
}
