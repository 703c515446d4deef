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

/// A line of the program, and which of those that it writes in one program.
type Line = (&'static Location<'static>, u32);

static LINES: LazyLock<Mutex<FxHashMap<Line, Option<Numbers>>>> = LazyLock::new(Mutex::default);

/// The line has written few numbers in this place of a program, and this is one of them.
pub(crate) fn is_one_of_few(line: &'static Location<'static>, place: u32, number: Const) -> bool {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
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
