//! The rewrite rules, one file per topic. Every set states what its rules preserve.
//!
//! A rule reads `name: (Op pattern…) if condition => result`. In a pattern a name binds a node, `#name` an integer
//! constant, a number stands for itself, and `(Op …)` for a node of that op. Constants are on the right of commutative
//! ops, which `canonical_order` ensures.

#[macro_use]
mod pattern;
mod boolean;
mod choices;
mod division;
mod float;
mod gates;
mod integer;
mod masks;
mod permitted;
mod reduce;
mod strict;
mod terms;

pub use boolean::BOOLEAN;
pub use choices::CHOICES;
pub use division::DIVISION;
pub use float::FLOAT;
pub use gates::GATES;
pub use integer::INTEGER;
pub use masks::{FINITE, MASKS, SUMS_OF_MASKED};
pub use permitted::{APPROX, CONTRACT};
pub use reduce::REDUCE;
pub use strict::{STRICT, widened_as_written};

use crate::rewrite::{Permission, Rewriter, RuleSet};
use crate::{Graph, NodeId, Result};

/// All rules that keep every value bit for bit.
pub const EXACT: &[&RuleSet] = &[&INTEGER, &DIVISION, &BOOLEAN, &FLOAT, &CHOICES, &MASKS, &GATES];

/// Rules that only reorder a Reduce. SEMANTICS leaves that order open, so they need no permission.
pub const REASSOC: &[&RuleSet] = &[&REDUCE, &SUMS_OF_MASKED];

/// The rules of a permission.
pub const fn permitted(permission: Permission) -> &'static RuleSet {
    match permission {
        Permission::Contract => &CONTRACT,
        Permission::Approx => &APPROX,
        Permission::Finite => &FINITE,
    }
}

/// `roots` simplified by all exact rules.
///
/// ```
/// use tinyspec_ir::{Builder, Graph, Op, rules::simplify};
/// let mut graph = Graph::new();
/// let (six, seven) = (graph.index(6), graph.index(7));
/// let product = graph.alu(Op::Mul, &[six, seven])?;
/// assert_eq!(simplify(&mut graph, &[product])?, [graph.index(42)]);
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
///
/// # Errors
/// As [`Rewriter::rewrite`].
pub fn simplify(graph: &mut Graph, roots: &[NodeId]) -> Result<Vec<NodeId>> {
    Rewriter::new(EXACT).rewrite(graph, roots)
}
