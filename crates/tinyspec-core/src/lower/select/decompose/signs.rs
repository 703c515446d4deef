//! Infers the signs of floats: from the conditions of selects, and for squares and powers.

use tinyspec_ir::masks::repeated;
use tinyspec_ir::ops::arithmetic::negated;
use tinyspec_ir::{Builder, Const, Graph, Interval, NodeId, Op};

/// The greatest depth of the search.
const DEPTH: u32 = 8;

/// Whether a value is never above 0, and whether it is never below. Zeros of both signs count as both, and so does nan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sides {
    pub below: bool,
    pub above: bool,
}

impl Sides {
    const UNKNOWN: Sides = Sides { below: false, above: false };

    pub(super) fn of(graph: &Graph, value: NodeId) -> Sides {
        Sides::within(graph, value, DEPTH)
    }

    fn of_number(number: f64) -> Sides {
        Sides { below: number <= 0.0, above: number >= 0.0 }
    }

    fn within(graph: &Graph, value: NodeId, depth: u32) -> Sides {
        let Some(depth) = depth.checked_sub(1) else { return Sides::UNKNOWN };
        let of = |node: NodeId| Sides::within(graph, node, depth);
        match (graph.op(value), graph.sources(value)) {
            (Op::Exp2, _) => Sides { below: false, above: true },
            (Op::Expand, sources) => of(sources[0]),
            (Op::Add, &[a, b]) => of(a).and(of(b)),
            (Op::Mul, &[a, b]) if a == b => Sides { below: false, above: true },
            (Op::Mul, &[a, b]) => of(a).times(of(b)),
            (Op::Mulacc, &[a, b, c]) => of(a).times(of(b)).and(of(c)),
            (Op::Where, &[condition, yes, no]) => {
                let yes = of(yes).or(known(graph, condition, true, yes));
                yes.and(of(no).or(known(graph, condition, false, no)))
            }
            _ => match graph.props(value).interval {
                Interval::Float(floats) => Sides { below: floats.high <= 0.0, above: floats.low >= 0.0 },
                _ => Sides::UNKNOWN,
            },
        }
    }

    fn and(self, other: Sides) -> Sides {
        Sides { below: self.below && other.below, above: self.above && other.above }
    }

    fn or(self, other: Sides) -> Sides {
        Sides { below: self.below || other.below, above: self.above || other.above }
    }

    fn times(self, other: Sides) -> Sides {
        Sides {
            below: self.below && other.above || self.above && other.below,
            above: self.below && other.below || self.above && other.above,
        }
    }
}

/// The sign information about a value that the outcome of a condition implies.
fn known(graph: &Graph, condition: NodeId, holds: bool, value: NodeId) -> Sides {
    let (Op::CmpLt, &[a, b]) = (graph.op(condition), graph.sources(condition)) else { return Sides::UNKNOWN };
    // If the comparison fails, the order is reversed, unless the value is nan, which counts as both signs.
    let (less, more) = if holds { (a, b) } else { (b, a) };
    let plain = |value: NodeId| Sides {
        below: value == less && number(graph, more).is_some_and(|more| more <= 0.0),
        above: value == more && number(graph, less).is_some_and(|less| less >= 0.0),
    };
    match negated(graph, value) {
        Some(x) => plain(x).times(Sides::of_number(-1.0)),
        None => plain(value),
    }
}

fn number(graph: &Graph, node: NodeId) -> Option<f64> {
    graph.as_const(repeated(graph, node)).and_then(Const::as_float)
}
