//! The pattern language of rules.

/// A named set of rules; see [`crate::rules`] for how a line reads.
macro_rules! rules {
    ($(#[$meta:meta])* $set:ident ($keeps:ident $(($permission:ident))?, $topic:literal, $g:ident, $node:ident) {
        $($name:ident: ($op:ident $($pattern:tt)*) $(if $condition:expr)? => $result:expr;)*
    }) => {
        $(#[$meta])*
        pub const $set: $crate::rewrite::RuleSet = $crate::rewrite::RuleSet {
            name: $topic,
            keeps: $crate::rewrite::Keeps::$keeps $(($crate::rewrite::Permission::$permission))?,
            rules: &[$($crate::rewrite::Rule {
                name: stringify!($name),
                ops: &[$crate::Op::$op],
                apply: {
                    #[allow(unused_variables)]
                    fn $name($g: &mut $crate::Graph, $node: $crate::NodeId) -> Option<$crate::NodeId> {
                        bind!($g, $node, ($op $($pattern)*));
                        $(if !$condition { return None; })?
                        Some($result)
                    }
                    $name
                },
            },)*],
        };
    };
}

/// Binds the names of a pattern, or returns from the rule.
macro_rules! bind {
    ($g:ident, $node:expr, (Const)) => {};
    ($g:ident, $node:expr, ($op:ident $($pattern:tt)*)) => {
        if $g.op($node) != $crate::Op::$op { return None; }
        bind!(@sources $g, $node, 0, $($pattern)*);
    };
    (@sources $g:ident, $node:expr, $index:expr,) => {};
    (@sources $g:ident, $node:expr, $index:expr, # $name:ident $($rest:tt)*) => {
        let $name = $g.as_int(*$g.sources($node).get($index)?)?;
        bind!(@sources $g, $node, $index + 1, $($rest)*);
    };
    (@sources $g:ident, $node:expr, $index:expr, $name:ident $($rest:tt)*) => {
        let $name = *$g.sources($node).get($index)?;
        bind!(@sources $g, $node, $index + 1, $($rest)*);
    };
    (@sources $g:ident, $node:expr, $index:expr, $number:literal $($rest:tt)*) => {
        if $g.as_int(*$g.sources($node).get($index)?) != Some($number) { return None; }
        bind!(@sources $g, $node, $index + 1, $($rest)*);
    };
    (@sources $g:ident, $node:expr, $index:expr, ($($pattern:tt)*) $($rest:tt)*) => {
        let inner = *$g.sources($node).get($index)?;
        bind!($g, inner, ($($pattern)*));
        bind!(@sources $g, $node, $index + 1, $($rest)*);
    };
}

use crate::eval::eval_op;
pub(super) use crate::masks::repeated;
use crate::{Arg, Builder, Const, DType, Graph, NodeId, Op};

/// A binary node; the dtypes fit by construction of the rules.
pub(super) fn alu(graph: &mut Graph, op: Op, a: NodeId, b: NodeId) -> Option<NodeId> {
    graph.alu(op, &[a, b]).ok()
}

/// An integer constant of the dtype of `like`.
pub(super) fn int(graph: &mut Graph, like: NodeId, value: i128) -> NodeId {
    let dtype = graph.dtype(like);
    graph.constant(Const::int(dtype, value))
}

/// `value` as a constant of the dtype of `like`, which wraps; `None` for an index out of range, which may not wrap.
pub(super) fn exact(graph: &mut Graph, like: NodeId, value: i128) -> Option<NodeId> {
    let is_lost = graph.dtype(like) == DType::Index && i64::try_from(value).is_err();
    (!is_lost).then(|| int(graph, like, value))
}

/// Bounds of an integer node.
pub(super) fn bounds(graph: &Graph, node: NodeId) -> Option<(i128, i128)> {
    graph.props(node).interval.int()
}

/// Whether it is an integer, not a bool: ring laws hold for it.
pub(super) fn is_int(graph: &Graph, node: NodeId) -> bool {
    graph.dtype(node).is_int()
}

/// Whether it is a mathematical integer: division laws require that nothing wraps.
pub(super) fn is_index(graph: &Graph, node: NodeId) -> bool {
    graph.dtype(node) == DType::Index
}

/// The opposite of a condition.
pub(super) fn not(graph: &mut Graph, condition: NodeId) -> Option<NodeId> {
    let truth = graph.constant(Const::int(DType::Bool, 1));
    alu(graph, Op::Xor, condition, truth)
}

/// `constant` in every element of the shape of `node`.
pub(super) fn folded(graph: &mut Graph, node: NodeId, constant: Const) -> Option<NodeId> {
    let value = graph.constant(constant);
    if graph.props(node).shape.is_empty() {
        return Some(value);
    }
    let shape = graph.props(node).shape.clone();
    let shape = graph.shape(&shape).ok()?;
    graph.add(Op::Expand, &[value, shape], Arg::None).ok()
}

/// Folds a node whose sources are all constants.
pub(super) fn fold(graph: &mut Graph, node: NodeId) -> Option<NodeId> {
    let constant = |&source: &NodeId| graph.as_const(repeated(graph, source));
    let operands: Option<Vec<Const>> = graph.sources(node).iter().map(constant).collect();
    let value = eval_op(graph.op(node), graph.dtype(node), &operands?).ok()?;
    folded(graph, node, value)
}
