//! Values that a line of the program changes from run to run, such as a learning rate, a batch, or the offset of a
//! write: they become inputs of the compiled program instead of parts of it, so that one program serves all of them.

use super::moved::{Moved, Offsets};
use super::{Class, Node, Produced, Series, part};
use crate::Result;
use crate::device::{Device, Owner, Storage, device_of};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::dim::static_shape;
use tinyspec_ir::eval::to_storage;
use tinyspec_ir::{Const, ContentHash, DType, Op, Shape};

/// The largest part that is copied, in bytes: a larger copy would take longer than compiling another program.
const MOST_BYTES: usize = 16 << 20;

/// The replacement of a node in a compiled program.
#[derive(Clone)]
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

/// A value that a line may change from run to run.
enum Candidate {
    Number(Const),
    /// A part of a tensor in memory that starts at this byte.
    Part(Arc<Storage>, usize),
    Window(Offsets),
}

impl Candidate {
    fn of(node: &Arc<Node>, is_root: bool) -> Option<Candidate> {
        if is_root {
            return Offsets::of(node).filter(|_| node.op != Op::Const).map(Candidate::Window);
        }
        if let Some(number) = node.literal() {
            return Some(Candidate::Number(number));
        }
        match part(node).filter(|_| node.op == Op::Shrink) {
            Some((whole, start)) => Some(Candidate::Part(whole, start)),
            None => Offsets::of(node).map(Candidate::Window),
        }
    }

    /// The constant that is compared from run to run.
    fn number(&self) -> Const {
        match self {
            Candidate::Number(number) => *number,
            Candidate::Part(_, start) => Const::int(DType::Index, *start as i128),
            Candidate::Window(offsets) => offsets.number(),
        }
    }

    fn series(&self) -> Series {
        if let Candidate::Window(offsets) = self { Series::Windows(offsets.sizes()) } else { Series::Numbers }
    }
}

/// A value of each class, and its replacement.
type Known<'a> = (&'a Arc<Node>, Candidate, Change);

/// The numbers, parts and offsets that become data, because their line has produced too many different values to
/// compile a program for each.
pub(super) fn changing<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>, roots: &[Arc<Node>]) -> Result<Changing> {
    let mut produced = Produced::new();
    for node in nodes.filter(|node| matches!(node.op, Op::Const | Op::Shrink | Op::Pad) && !node.is_realized()) {
        let Some(line) = node.location else { continue };
        let Some(value) = Candidate::of(node, roots.iter().any(|root| root.hash == node.hash)) else { continue };
        produced.push(line, value.series(), value.number(), (node, value));
    }
    let device = device_of(roots.iter().map(|root| root.device()))?;
    let mut changing = Changing::default();
    let mut known: FxHashMap<Class, SmallVec<[Known; 1]>> = FxHashMap::default();
    for (class, (node, value)) in produced.changing() {
        let of_class = known.entry(class).or_default();
        let is_same = |(other, of_other, _): &&Known| match (&value, of_other) {
            // Parts of one class start at the same element.
            (Candidate::Part(whole, _), Candidate::Part(other_whole, _)) => {
                Arc::ptr_eq(whole, other_whole) && node.props.shape == other.props.shape
            }
            (value, of_other) => std::mem::discriminant(value) == std::mem::discriminant(of_other),
        };
        if let Some((_, _, change)) = of_class.iter().find(is_same) {
            changing.insert(node.hash, change.clone());
            continue;
        }
        let change = match &value {
            Candidate::Number(number) => Some(Change::Number(Arc::new(stored(*number, &device, &node.owner())?))),
            Candidate::Part(whole, start) => part_data(node, whole, *start)?,
            Candidate::Window(offsets) => Some(Change::Moved(offsets.moved(&device, class.line)?)),
        };
        if let Some(change) = change {
            of_class.push((node, value, change.clone()));
            changing.insert(node.hash, change);
        }
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

fn stored(number: Const, device: &Arc<Device>, owner: &Owner) -> Result<Storage> {
    let bytes = number.dtype.size();
    let data = Storage::allocate(device, bytes, owner)?;
    data.write(&to_storage(number.dtype, number.bits).to_le_bytes()[..bytes])?;
    Ok(data)
}

/// A number that is known to change, as data.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn number_as_data(
    number: Const,
    device: &Arc<Device>,
    line: &'static Location<'static>,
) -> Result<Arc<Node>> {
    let owner = Owner::tensor(number.dtype, &Shape::new(), Some(line));
    Ok(Node::literal_buffer(Arc::new(stored(number, device, &owner)?), number, line)?)
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
