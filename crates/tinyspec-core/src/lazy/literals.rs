//! Numbers that a program writes, of values and of positions: what a line of it makes again and again is part of the program,
//! what changes is data.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{LazyLock, Mutex, PoisonError};
use tinyspec_ir::Const;

/// Numbers of one line for which programs are compiled; with the next they are data.
const FEW: usize = 3;

type Numbers = SmallVec<[Const; FEW]>;

/// Identifies one of the numbers, windows and parameters that a line produces in a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The only number of its line, a `Tensor::scalar`.
    Only,
    /// The n-th window of these sizes, given by their hash, that gradients flow through.
    Flow(u64, u32),
    /// Parameters of a method, given by the hash of the method and of the kinds of its operands.
    Method(u64),
    /// The n-th number or part.
    Number(u32),
    /// The n-th window of these sizes, given by their hash: on one line, offsets may follow from lengths.
    Window(u64, u32),
}

type Lines = Mutex<FxHashMap<(&'static Location<'static>, Place), Option<Numbers>>>;

static LINES: LazyLock<Lines> = LazyLock::new(Mutex::default);
/// Of places that depend on sizes.
static SIZED: LazyLock<Lines> = LazyLock::new(Mutex::default);

/// The most of these to remember: a line may meet any number of sizes.
const MOST: usize = 1 << 14;

/// The line has written few numbers in this place of a program, and this is one of them.
pub(crate) fn is_one_of_few(line: &'static Location<'static>, place: Place, number: Const) -> bool {
    let has_sizes = matches!(place, Place::Window(..) | Place::Flow(..) | Place::Method(..));
    let lines = if has_sizes { &SIZED } else { &LINES };
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    if has_sizes && lines.len() >= MOST {
        lines.clear();
    }
    let numbers = lines.entry((line, place)).or_insert_with(|| Some(Numbers::new()));
    if let Some(known) = numbers {
        if known.contains(&number) {
            return true;
        }
        if known.len() < FEW {
            known.push(number);
            return true;
        }
    }
    *numbers = None;
    false
}
