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

/// Numbers, and parts that lie together in a tensor, where a line of the program has had others before in this place of a
/// program. Of several that it has in one program, such as those of a loop, each has a place: they are as many each time.
pub(super) fn changing<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>) -> Result<Changing> {
    let mut places: FxHashMap<&'static Location<'static>, u32> = FxHashMap::default();
    let mut changing = Changing::default();
    for node in nodes.filter(|node| matches!(node.op, Op::Const | Op::Shrink) && !node.is_realized()) {
        let what = match (node.literal(), part(node)) {
            (Some(number), _) => number,
            (None, Some((_, start))) => Const::int(DType::Index, start as i128),
            (None, None) => continue,
        };
        let (Some(line), Some(dims)) = (node.location, static_shape(&node.props.shape)) else { continue };
        let place = places.entry(line).or_default();
        *place += 1;
        let bytes = dims.iter().product::<i64>() as usize * node.props.dtype.size();
        if bytes == 0 || bytes > MOST_BYTES || is_one_of_few(line, *place, what) {
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
