//! What a line of the program produces anew in each run, such as a learning rate, a batch, or the place that is written: these
//! are inputs of the compiled program instead of parts of it, so that one program serves all of them.

use super::moved::{Moved, Offsets};
use super::{Node, Place, is_one_of_few, part};
use crate::Result;
use crate::device::{Device, Storage, device_of};
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::eval::to_storage;
use tinyspec_ir::{Const, ContentHash, DType, Op};

/// Bytes of a part that may be copied: more take longer than a compilation.
const MOST_BYTES: usize = 16 << 20;

/// What replaces a node in a compiled program.
pub(crate) enum Change {
    /// Memory that holds the value of a number.
    Number(Arc<Storage>),
    /// A copy of a part of a tensor.
    Part(Arc<Storage>),
    /// The same window of its source, at offsets that are data.
    Moved(Moved),
}

/// The nodes that are inputs of a compiled program instead of parts of it, by hash.
pub(crate) type Changing = FxHashMap<ContentHash, Change>;

/// The numbers, parts and places of which their line has produced too many different ones to compile each.
pub(super) fn changing<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>, roots: &[Arc<Node>]) -> Result<Changing> {
    // A line may produce several in one program, as in an unrolled loop, and each of them is counted by itself.
    let mut occurrences: FxHashMap<(&'static Location<'static>, Option<u64>), u32> = FxHashMap::default();
    let mut changing = Changing::default();
    let device = device_of(roots.iter().map(|root| root.device()))?;
    for node in nodes.filter(|node| matches!(node.op, Op::Const | Op::Shrink | Op::Pad) && !node.is_realized()) {
        let Some(line) = node.location else { continue };
        // Counts the node; true once its line has produced too many different ones.
        let mut changes = |sizes: Option<u64>, number: Const| {
            let occurrence = occurrences.entry((line, sizes)).or_default();
            *occurrence += 1;
            let place = match sizes {
                Some(sizes) => Place::Window(sizes, *occurrence),
                None => Place::Number(*occurrence),
            };
            !is_one_of_few(line, place, number)
        };
        let is_root = roots.iter().any(|root| root.hash == node.hash);
        let change = if let Some(number) = node.literal().filter(|_| !is_root) {
            if changes(None, number) { number_data(node, number, &device)? } else { None }
        } else if let Some((whole, start)) = part(node).filter(|_| node.op == Op::Shrink && !is_root) {
            let is_other = changes(None, Const::int(DType::Index, start as i128));
            if is_other { part_data(node, &whole, start)? } else { None }
        } else if let Some(offsets) = Offsets::of(node) {
            if changes(Some(offsets.sizes()), offsets.number()) {
                Some(Change::Moved(offsets.moved(&device, line)?))
            } else {
                None
            }
        } else {
            None
        };
        changing.extend(change.map(|change| (node.hash, change)));
    }
    Ok(changing)
}

/// The windows between a part and the whole tensor, with their offsets as data.
///
/// # Errors
/// When there is no memory for the offsets.
pub(super) fn moved_windows(part: &Arc<Node>) -> Result<Changing> {
    let device = device_of([part.device()].into_iter())?;
    let (mut node, mut windows) = (part.clone(), Changing::default());
    while !node.is_realized() && matches!(node.op, Op::Reshape | Op::Shrink) {
        if let (Op::Shrink, Some(line), Some(offsets)) = (node.op, node.location, Offsets::of(&node)) {
            windows.insert(node.hash, Change::Moved(offsets.moved(&device, line)?));
        }
        let Some(source) = node.sources().into_iter().next() else { break };
        node = source;
    }
    Ok(windows)
}

fn number_data(node: &Arc<Node>, number: Const, device: &Arc<Device>) -> Result<Option<Change>> {
    let bytes = number.dtype.size();
    let data = Storage::allocate(device, bytes, &node.owner())?;
    data.write(&to_storage(number.dtype, number.bits).to_le_bytes()[..bytes])?;
    Ok(Some(Change::Number(Arc::new(data))))
}

fn part_data(node: &Arc<Node>, whole: &Arc<Storage>, start: usize) -> Result<Option<Change>> {
    let Some(dims) = static_shape(&node.props.shape) else { return Ok(None) };
    let bytes = dims.iter().product::<i64>() as usize * node.props.dtype.size();
    if bytes == 0 || bytes > MOST_BYTES {
        return Ok(None);
    }
    let copy = Storage::allocate(whole.device(), bytes, &node.owner())?;
    copy.copy(whole, start)?;
    Ok(Some(Change::Part(Arc::new(copy))))
}
