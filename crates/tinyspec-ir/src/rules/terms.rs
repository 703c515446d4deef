//! Expands sums into terms, and rebuilds them.

use super::pattern::{alu, exact};
use crate::{Graph, NodeId, Op};

/// About `most` terms of a sum, each with its coefficient; the rest of a longer sum is one term.
pub(super) fn terms(graph: &Graph, x: NodeId, most: usize) -> Vec<(NodeId, i128)> {
    let mut found = Vec::new();
    let mut stack = vec![(x, 1i128)];
    while let Some((node, factor)) = stack.pop() {
        match graph.op(node) {
            Op::Add if found.len() + stack.len() < most => {
                stack.extend(graph.sources(node).iter().map(|&source| (source, factor)));
            }
            Op::Mul => match graph.as_int(graph.source(node, 1)).and_then(|number| factor.checked_mul(number)) {
                // A product of a sum is a sum of products.
                Some(product) if graph.op(graph.source(node, 0)) == Op::Add => {
                    stack.push((graph.source(node, 0), product));
                }
                Some(product) => found.push((graph.source(node, 0), product)),
                None => found.push((node, factor)),
            },
            _ => found.push((node, factor)),
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
            constant = constant.checked_add(value.checked_mul(coefficient)?)?;
            continue;
        }
        let part = match coefficient {
            0 => continue,
            1 => term,
            _ => {
                let coefficient = exact(graph, term, coefficient)?;
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
            let constant = exact(graph, like, constant)?;
            alu(graph, Op::Add, total, constant)
        }
        (None, constant) => exact(graph, like, constant),
    }
}
