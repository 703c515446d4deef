//! Sums taken apart and put together.

use super::pattern::{alu, int};
use crate::{Graph, NodeId, Op};

/// About `most` terms of a sum, each with its coefficient; what is left of a longer sum is a term of its own.
pub(super) fn terms(graph: &Graph, x: NodeId, most: usize) -> Vec<(NodeId, i128)> {
    let mut found = Vec::new();
    let mut stack = vec![x];
    while let Some(node) = stack.pop() {
        match graph.op(node) {
            Op::Add if found.len() + stack.len() < most => stack.extend(graph.sources(node)),
            Op::Mul => match graph.as_int(graph.source(node, 1)) {
                Some(factor) => found.push((graph.source(node, 0), factor)),
                None => found.push((node, 1)),
            },
            _ => found.push((node, 1)),
        }
    }
    found
}

/// `Σ coefficient · term`; constants are terms of their own.
pub(super) fn sum(graph: &mut Graph, terms: &[(NodeId, i128)], like: NodeId) -> Option<NodeId> {
    let mut total: Option<NodeId> = None;
    let mut constant = 0i128;
    for &(term, coefficient) in terms {
        if let Some(value) = graph.as_int(term) {
            constant += value.checked_mul(coefficient)?;
            continue;
        }
        let part = match coefficient {
            0 => continue,
            1 => term,
            _ => {
                let coefficient = int(graph, term, coefficient);
                alu(graph, Op::Mul, term, coefficient)?
            }
        };
        total = Some(match total {
            Some(total) => alu(graph, Op::Add, total, part)?,
            None => part,
        });
    }
    match (total, constant) {
        (Some(total), 0) => Some(total),
        (Some(total), constant) => {
            let constant = int(graph, like, constant);
            alu(graph, Op::Add, total, constant)
        }
        (None, constant) => Some(int(graph, like, constant)),
    }
}
