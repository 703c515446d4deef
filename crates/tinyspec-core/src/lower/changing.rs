//! Values that a line of the program produces anew in each run, such as a learning rate or a batch: they are inputs of the
//! compiled program instead of parts of it, so that one program serves all of them.

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

/// The memory of nodes that are inputs, though the graph says how they are made; by the nodes' hashes.
pub(super) type Changing = FxHashMap<ContentHash, Arc<Storage>>;

/// Numbers, and contiguous parts of a tensor, of which this line of the program has produced too many others. A line may
/// produce several in one program, as in an unrolled loop: each occurrence is counted by itself.
pub(super) fn changing<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>, roots: &[Arc<Node>]) -> Result<Changing> {
    let mut occurrences: FxHashMap<&'static Location<'static>, u32> = FxHashMap::default();
    let mut changing = Changing::default();
    for node in nodes.filter(|node| matches!(node.op, Op::Const | Op::Shrink) && !node.is_realized()) {
        if roots.iter().any(|root| root.hash == node.hash) {
            continue;
        }
        let number = node.literal();
        let part = if number.is_none() { part(node) } else { None };
        let Some(value) = number.or_else(|| Some(Const::int(DType::Index, part.as_ref()?.1 as i128))) else { continue };
        let (Some(line), Some(dims)) = (node.location, static_shape(&node.props.shape)) else { continue };
        let occurrence = occurrences.entry(line).or_default();
        *occurrence += 1;
        let bytes = dims.iter().product::<i64>() as usize * node.props.dtype.size();
        if bytes == 0 || bytes > MOST_BYTES || is_one_of_few(line, *occurrence, value) {
            continue;
        }
        let owner = Owner::node(node);
        let data = match part {
            Some((whole, start)) => {
                let copy = Storage::allocate(whole.device(), bytes, &owner)?;
                copy.copy(&whole, start)?;
                copy
            }
            None => {
                let data = Storage::allocate(&default_device()?, bytes, &owner)?;
                data.write(&to_storage(value.dtype, value.bits).to_le_bytes()[..bytes])?;
                data
            }
        };
        changing.insert(node.hash, Arc::new(data));
    }
    Ok(changing)
}
