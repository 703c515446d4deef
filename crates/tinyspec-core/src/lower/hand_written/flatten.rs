//! Flattens buffers, so that each access has one index.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::{Arg, Builder, Dim, Error, ErrorKind, Graph, NodeId, Op, Result, Shape};

pub(super) fn flatten(graph: &Graph, sink: NodeId) -> Result<(Graph, NodeId)> {
    let mut flat = Graph::new();
    let mut new: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in graph.reachable(&[sink]) {
        let sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source]).collect();
        let made = match (graph.op(node), graph.arg(node)) {
            (op @ (Op::Param | Op::Buffer), arg) if graph.props(node).addrspace.is_some() => {
                let dims = sizes(graph, node)?;
                let is_register = graph.props(node).addrspace == Some(tinyspec_ir::AddrSpace::Reg);
                let shape: Shape = match is_register {
                    true => Shape::new(),
                    false => Shape::from_iter([Dim::from(dims.iter().product::<i64>())]),
                };
                let shape = flat.shape(&shape)?;
                flat.add(op, &[shape], arg.clone())?
            }
            (Op::Index, _) if graph.props(node).addrspace.is_some() => {
                let dims = sizes(graph, graph.source(node, 0))?;
                let mut position = Affine::number(0);
                let mut stride = 1i64;
                for (&index, &dim) in sources[1..].iter().zip(&dims).rev() {
                    position = position.plus(&Affine::of(&flat, index).scale(stride));
                    stride = stride.wrapping_mul(dim);
                }
                let position = position.emit(&mut flat)?;
                flat.add(Op::Index, &[sources[0], position], Arg::None)?
            }
            (op, arg) => flat.add(op, &sources, arg.clone())?,
        };
        new.insert(node, made);
    }
    Ok((flat, new[&sink]))
}

fn sizes(graph: &Graph, node: NodeId) -> Result<SmallVec<[i64; 4]>> {
    static_shape(&graph.props(node).shape)
        .ok_or_else(|| Error::new(ErrorKind::Shape, graph.op(node).name(), "a buffer of a kernel needs its dims"))
}
