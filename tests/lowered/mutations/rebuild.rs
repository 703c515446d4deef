//! A copy of a graph in which one node is made differently.

use tinyspec::ir::{Builder, Graph, NodeId, Result};

/// Copies what `root` needs; `edit` gets the new graph and the new sources of `site`, and makes what takes its place.
pub fn rebuild(
    from: &Graph,
    root: NodeId,
    site: NodeId,
    edit: impl FnOnce(&mut Graph, &[NodeId]) -> Result<NodeId>,
) -> Result<(Graph, NodeId)> {
    let mut graph = Graph::new();
    let mut map = vec![NodeId(0); from.len()];
    let mut edit = Some(edit);
    for node in from.reachable(&[root]) {
        let sources: Vec<NodeId> = from.sources(node).iter().map(|source| map[source.index()]).collect();
        map[node.index()] = match edit.take_if(|_| node == site) {
            Some(edit) => edit(&mut graph, &sources)?,
            None => graph.add(from.op(node), &sources, from.arg(node).clone())?,
        };
    }
    Ok((graph, map[root.index()]))
}
