//! Substitution of a Function's Params by its arguments.
//!
//! A function with a gradient of its own stays a `Function` in graphs until lowering: its Tuple ends with a Tuple of
//! gradients, which are functions of the inputs, a cotangent for each float result, and the named dims. So does one that
//! occurs often, which is lowered once. [`inline_all`] inlines the remaining ones.

use crate::{Arg, Builder, Graph, NodeId, Op, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The results of a closed body in another graph, with each Param replaced by an argument.
///
/// Bodies of Functions inside the body are closed, too, with Params of their own.
///
/// # Errors
/// When [`crate::derive()`] refuses the arguments.
pub fn inline(graph: &mut Graph, body: &Graph, outputs: &[NodeId], arguments: &[NodeId]) -> Result<Vec<NodeId>> {
    import_params(graph, body, outputs, |_, node| match body.arg(node) {
        Arg::Param { slot, .. } => Ok(arguments.get(*slot as usize).copied()),
        _ => Ok(None),
    })
}

/// As [`inline`], where some nodes of the body, including all Params that are reached, are already `known` in the
/// graph, and nodes that are `is_distinct` are not merged with equal ones. Returns the new node of each node that was
/// reached.
///
/// # Errors
/// As [`inline`].
pub fn inline_known(
    graph: &mut Graph,
    body: &Graph,
    outputs: &[NodeId],
    known: &FxHashMap<NodeId, NodeId>,
    is_distinct: impl Fn(NodeId) -> bool,
) -> Result<Vec<Option<NodeId>>> {
    let order = body.reachable_until(outputs, |node| known.contains_key(&node));
    copy(graph, body, order, |_, node| Ok(known.get(&node).copied()), is_distinct)
}

/// Copies `roots` from `body`; `replace` may give another node for a Param, except in nested bodies.
pub(super) fn import_params(
    graph: &mut Graph,
    body: &Graph,
    roots: &[NodeId],
    mut replace: impl FnMut(&mut Graph, NodeId) -> Result<Option<NodeId>>,
) -> Result<Vec<NodeId>> {
    let order = body.reachable_outside_bodies(roots);
    let replace = |graph: &mut Graph, node| match body.op(node) {
        Op::Param => replace(graph, node),
        _ => Ok(None),
    };
    let map = copy(graph, body, order, replace, |_| false)?;
    Ok(roots.iter().filter_map(|root| map[root.index()]).collect())
}

/// Copies the nodes `order`, sources first, except those that `replace` replaces.
fn copy(
    graph: &mut Graph,
    body: &Graph,
    order: Vec<NodeId>,
    mut replace: impl FnMut(&mut Graph, NodeId) -> Result<Option<NodeId>>,
    is_distinct: impl Fn(NodeId) -> bool,
) -> Result<Vec<Option<NodeId>>> {
    let mut map: Vec<Option<NodeId>> = vec![None; body.len()];
    for node in order {
        let new = match replace(graph, node)? {
            Some(new) => new,
            None => {
                if let (Op::Function | Op::Call, &[closed, ..]) = (body.op(node), body.sources(node))
                    && map[closed.index()].is_none()
                {
                    map[closed.index()] = Some(graph.import(body, &[closed], |_, _| Ok(None))?[0]);
                }
                let sources: SmallVec<[NodeId; 4]> =
                    body.sources(node).iter().filter_map(|source| map[source.index()]).collect();
                match is_distinct(node) {
                    true => graph.add_unmerged(body.op(node), &sources, body.arg(node).clone())?,
                    false => graph.add(body.op(node), &sources, body.arg(node).clone())?,
                }
            }
        };
        for location in body.locations(node) {
            graph.locate(new, location.clone());
        }
        map[node.index()] = Some(new);
    }
    Ok(map)
}

/// Inlines all Functions below `roots`, even those with a gradient of their own.
///
/// # Errors
/// As [`inline`].
pub fn inline_all(graph: Graph, roots: Vec<NodeId>) -> Result<(Graph, Vec<NodeId>)> {
    let (mut graph, mut roots) = (graph, roots);
    // A body may contain Functions: each round inlines one level.
    while graph.reachable_outside_bodies(&roots).iter().any(|&node| graph.op(node) == Op::Function) {
        (graph, roots) = replace_functions(&graph, &roots, |opened, node, arguments| {
            inline(opened, &graph, &function_values(&graph, node), arguments).map(Some)
        })?;
    }
    Ok((graph, roots))
}

/// Replaces Functions below `roots`: `replace` gets the new graph, a Function of the old one and its new arguments, and gives the new
/// results, or `None` if the Function stays.
///
/// # Errors
/// Those of `replace`, with the line of the call, and those of [`crate::derive()`] after a replacement.
pub fn replace_functions(
    graph: &Graph,
    roots: &[NodeId],
    mut replace: impl FnMut(&mut Graph, NodeId, &[NodeId]) -> Result<Option<Vec<NodeId>>>,
) -> Result<(Graph, Vec<NodeId>)> {
    let mut opened = Graph::new();
    let mut map: Vec<Option<NodeId>> = vec![None; graph.len()];
    let mut results: Vec<Option<Vec<NodeId>>> = vec![None; graph.len()];
    let mut bodies: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in graph.reachable_outside_bodies(roots) {
        let sources: Vec<NodeId> = graph.sources(node).iter().filter_map(|source| map[source.index()]).collect();
        if graph.op(node) == Op::Function {
            // An error inside the body is due to the arguments, so it gets the line of the call.
            let replaced = replace(&mut opened, node, &sources).map_err(|error| graph.located(node, error))?;
            results[node.index()] = replaced;
        }
        let new = match (graph.op(node), graph.arg(node)) {
            // Only GetTuple refers to it, which is replaced by the result.
            (Op::Function, _) if results[node.index()].is_some() => opened.index(0),
            (Op::GetTuple, Arg::Number(number)) if let Some(results) = &results[graph.source(node, 0).index()] => {
                *results.get(*number as usize).unwrap_or_else(|| unreachable!("derive checks the number"))
            }
            (op @ (Op::Function | Op::Call), arg) => {
                let body = graph.source(node, 0);
                let body = match bodies.get(&body) {
                    Some(&known) => known,
                    // A body is closed.
                    None => *bodies.entry(body).or_insert(opened.import(graph, &[body], |_, _| Ok(None))?[0]),
                };
                let call = opened.add(op, &[&[body], &sources[..]].concat(), arg.clone());
                call.map_err(|error| graph.located(node, error))?
            }
            (op, arg) => opened.add(op, &sources, arg.clone()).map_err(|error| graph.located(node, error))?,
        };
        for location in graph.locations(node) {
            opened.locate(new, location.clone());
        }
        map[node.index()] = Some(new);
    }
    let roots = roots.iter().filter_map(|root| map[root.index()]).collect();
    Ok((opened, roots))
}

/// The values of a Function's Tuple, which may be followed by a Tuple with its own gradient.
pub fn function_values(graph: &Graph, function: NodeId) -> Vec<NodeId> {
    let tuple = graph.source(function, 0);
    graph.sources(tuple).iter().copied().filter(|&element| graph.op(element) != Op::Tuple).collect()
}

/// A Function's own gradients, over its arguments and a cotangent for each float value.
pub fn own_gradient(graph: &Graph, function: NodeId) -> Option<Vec<NodeId>> {
    let tuple = *graph.sources(function).first()?;
    let last = *graph.sources(tuple).last()?;
    (graph.op(last) == Op::Tuple).then(|| graph.sources(last).to_vec())
}
