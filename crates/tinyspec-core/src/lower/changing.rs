//! What a line of the program has another of each time: it is data, so that one program serves all.

use crate::Result;
use crate::execute::{Owner, Storage, default_device, part};
use crate::tensor::{Node, is_one_of_few};
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::eval::to_storage;
use tinyspec_ir::{Const, ContentHash, DType, Op};

/// Bytes of a part that may be copied: more take longer than a compilation.
const MOST_BYTES: usize = 16 << 20;

/// What is data though the graph says more of it, by the nodes' hashes.
pub(super) type Changing = FxHashMap<ContentHash, Arc<Storage>>;

/// Numbers, and parts that lie together in a tensor, where a line of the program has one of them, and has had others before.
/// Of several that it has at once each is a part of the program: it has as many each time.
pub(super) fn changing<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>) -> Result<Changing> {
    let mut lines: FxHashMap<_, Option<(&Arc<Node>, Const)>> = FxHashMap::default();
    let mut meet = |node: &'a Arc<Node>, what: Const| {
        if let Some(line) = node.location {
            lines.entry((line as *const Location, node.op)).and_modify(|one| *one = None).or_insert(Some((node, what)));
        }
    };
    for node in nodes.filter(|node| matches!(node.op, Op::Const | Op::Shrink) && !node.is_realized()) {
        match (node.literal(), part(node)) {
            (Some(number), _) => meet(node, number),
            (None, Some((_, start))) => meet(node, Const::int(DType::Index, start as i128)),
            (None, None) => {}
        }
    }
    let mut changing = Changing::default();
    for (node, what) in lines.into_values().flatten() {
        let (Some(line), Some(dims)) = (node.location, static_shape(&node.props.shape)) else { continue };
        let bytes = dims.iter().product::<i64>() as usize * node.props.dtype.size();
        if bytes == 0 || bytes > MOST_BYTES || is_one_of_few(line, what) {
            continue;
        }
        let owner = Owner::node(node);
        let data = match part(node) {
            Some((whole, start)) => {
                let copy = Storage::allocate(whole.device(), bytes, &owner)?;
                copy.copy(&whole, start)?;
                copy
            }
            None => {
                let number = Storage::allocate(&default_device()?, bytes, &owner)?;
                number.write(&to_storage(what.dtype, what.bits).to_le_bytes()[..bytes])?;
                number
            }
        };
        changing.insert(node.hash, Arc::new(data));
    }
    Ok(changing)
}
