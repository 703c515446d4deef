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

/// Which of those that a line produces in one program.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The only one: a `Tensor::scalar` is written by a line of its own.
    Only,
    /// The number or the part of this occurrence.
    Number(u32),
    /// The window of this occurrence, of those with a hash of its sizes: on one line, offsets may follow from lengths.
    Window(u64, u32),
}

type Line = (&'static Location<'static>, Place);

/// Places to remember at most; of more, windows are forgotten, since a line may have them in any number of sizes.
const MOST: usize = 1 << 14;

static LINES: LazyLock<Mutex<FxHashMap<Line, Option<Numbers>>>> = LazyLock::new(Mutex::default);

/// The line has written few numbers in this place of a program, and this is one of them.
pub(crate) fn is_one_of_few(line: &'static Location<'static>, place: Place, number: Const) -> bool {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() >= MOST {
        lines.retain(|(_, place), _| !matches!(place, Place::Window(..)));
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
