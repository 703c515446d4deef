//! Instructions of processors beyond the ops ("Ins"): passes choose them where a target lists them. What each computes
//! is defined here; an interpreter runs them by this definition.

use crate::{Arg, Graph, NodeId, Op};

/// A single machine instruction on lanes of f32, or a hint that computes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Instruction {
    /// The nearest integer, the even one of two.
    Nearest,
    /// `a · 2^⌊n⌋`, rounded once.
    Scale,
    /// The greater of two, -0 being less than +0; of a nan and a number the number.
    Greater,
    /// That of the lesser magnitude, of equal ones the negative; of a nan and a number the number.
    Nearer,
    /// Fetches the line of a place into all caches. The place may lie outside of its buffer.
    Prefetch,
    /// The same, but not into the first cache.
    PrefetchSecond,
    /// No instruction is scheduled across it. Its source is the effect that it follows.
    SchedulingBarrier,
}

impl Instruction {
    /// All there are.
    pub const ALL: [Instruction; 7] = [
        Instruction::Nearest,
        Instruction::Scale,
        Instruction::Greater,
        Instruction::Nearer,
        Instruction::Prefetch,
        Instruction::PrefetchSecond,
        Instruction::SchedulingBarrier,
    ];

    /// Those that compute nothing.
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

    /// How many sources it takes.
    pub const fn arity(self) -> usize {
        match self {
            Instruction::Nearest
            | Instruction::Prefetch
            | Instruction::PrefetchSecond
            | Instruction::SchedulingBarrier => 1,
            Instruction::Scale | Instruction::Greater | Instruction::Nearer => 2,
        }
    }

    /// The instruction that an Ins is; none where its name is not known.
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

    /// Whether it computes nothing.
    pub fn is_hint(self) -> bool {
        Self::HINTS.contains(&self)
    }

    /// What it computes.
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

/// In f64 the product is exact, so that it is rounded once. An infinite n overrules a nan, as processors have it.
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
