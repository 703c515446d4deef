//! Values that lines of the program produce: numbers, offsets of windows, parameters of methods. Values that repeat
//! become part of the compiled program, values that change become data.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::Hash;
use std::panic::Location;
use std::sync::{LazyLock, Mutex, PoisonError};
use tinyspec_ir::{Const, ContentHasher, DType};

/// The most values of one place to compile programs for; beyond that, they become data.
const FEW: usize = 3;
/// The same for parameters of a method; beyond that, its numbers and windows are counted instead.
const FEW_PARAMETERS: usize = 2;
/// The same for sequences of values, since places with few values each can have many combinations.
const FEW_SEQUENCES: usize = 16;

type Line = &'static Location<'static>;
type Values = SmallVec<[Const; FEW]>;

/// Kinds of values that one line may produce several times in a program, as in an unrolled loop. Offsets of windows are
/// counted separately for each size of window, given by a hash, since they may follow from lengths.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Series {
    /// Numbers, and the starts of parts of tensors in memory.
    Numbers,
    Windows(u64),
    /// Windows that gradients flow through.
    Flowing(u64),
}

/// Identifies one of the values that a line produces in a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The only number of its line, a `Tensor::scalar`.
    Only,
    /// Parameters of a method, given by the hash of the method and of the kinds of its operands.
    Method(u64),
    /// The n-th of a series, and the length of the series, since other lengths belong to other programs.
    Nth(Series, u32, u32),
    /// The whole of a series of so many.
    All(Series, u32),
}

impl Place {
    /// The most values to compile programs for.
    fn few(self) -> usize {
        match self {
            Place::All(..) => FEW_SEQUENCES,
            Place::Method(_) => FEW_PARAMETERS,
            _ => FEW,
        }
    }

    fn has_sizes(self) -> bool {
        !matches!(self, Place::Only | Place::Nth(Series::Numbers, ..) | Place::All(Series::Numbers, _))
    }
}

type Lines = Mutex<FxHashMap<(Line, Place), Option<Values>>>;

static LINES: LazyLock<Lines> = LazyLock::new(Mutex::default);
/// The same for places that depend on sizes.
static SIZED: LazyLock<Lines> = LazyLock::new(Mutex::default);

/// The most of these to remember, since a line may meet any number of sizes.
const MOST: usize = 1 << 14;

/// Whether the line has produced few values in this place of a program, and this is one of them. Values other than
/// numbers are given by a hash.
pub(crate) fn is_one_of_few(line: Line, place: Place, value: Const) -> bool {
    let lines = if place.has_sizes() { &SIZED } else { &LINES };
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    if place.has_sizes() && lines.len() >= MOST {
        lines.clear();
    }
    let values = lines.entry((line, place)).or_insert_with(|| Some(Values::new()));
    if let Some(known) = values {
        if known.contains(&value) {
            return true;
        }
        if known.len() < place.few() {
            known.push(value);
            return true;
        }
    }
    *values = None;
    false
}

/// A value that a program produces, with its number in the series of its line.
struct Entry<T> {
    line: Line,
    series: Series,
    number: u32,
    value: Const,
    of: T,
}

/// The values of one program, each with what it belongs to.
pub(crate) struct Produced<T> {
    values: SmallVec<[Entry<T>; 8]>,
    /// The length of each series so far.
    counts: FxHashMap<(Line, Series), u32>,
}

impl<T> Produced<T> {
    pub fn new() -> Produced<T> {
        Produced { values: SmallVec::new(), counts: FxHashMap::default() }
    }

    /// The next value of a series, in the order of the program.
    pub fn push(&mut self, line: Line, series: Series, value: Const, of: T) {
        let count = self.counts.entry((line, series)).or_default();
        *count += 1;
        self.values.push(Entry { line, series, number: *count, value, of });
    }

    /// The values that become data, because their line has produced too many different ones in their place, or too many
    /// different sequences of them. Values that have been equal in all programs so far are in one class.
    pub fn changing(self) -> impl Iterator<Item = (Class, T)> {
        let mut rests: FxHashMap<(Line, Series), ContentHasher> = FxHashMap::default();
        let mut all: FxHashMap<(Line, Series), Values> = FxHashMap::default();
        let mut is_changing: SmallVec<[bool; 8]> = SmallVec::with_capacity(self.values.len());
        for &Entry { line, series, number, value, .. } in &self.values {
            let count = self.counts[&(line, series)];
            let place = Place::Nth(series, number, count);
            let is_one_of_few = is_one_of_few(line, place, value);
            is_changing.push(!is_one_of_few);
            if count > 1 {
                all.entry((line, series)).or_default().push(value);
                if is_one_of_few {
                    (place, value).hash(rests.entry((line, series)).or_default());
                }
            }
        }
        let is_many = |&((line, series), ref rest): &((Line, Series), ContentHasher)| {
            let rest = Const { dtype: DType::U64, bits: rest.content_hash().0 as u64 };
            !is_one_of_few(line, Place::All(series, self.counts[&(line, series)]), rest)
        };
        let many: FxHashSet<(Line, Series)> = rests.into_iter().filter(is_many).map(|(series, _)| series).collect();
        let classes: FxHashMap<(Line, Series), Classes> =
            all.into_iter().map(|((line, series), values)| ((line, series), classes(line, series, &values))).collect();
        self.values.into_iter().zip(is_changing).filter_map(
            move |(Entry { line, series, number, of, .. }, is_changing)| {
                let number = classes.get(&(line, series)).and_then(|classes| classes.get(number as usize - 1)).copied();
                let class = Class { line, series, number: number.unwrap_or_default() };
                (is_changing || many.contains(&(line, series))).then_some((class, of))
            },
        )
    }
}

/// Values of a line that have been equal in every run so far, such as a learning rate that is used several times. They share one input. Values
/// that differed once are never merged again, even if they are equal by chance.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    pub line: Line,
    series: Series,
    number: u32,
}

/// The class of each value of a series.
type Classes = SmallVec<[u32; 8]>;

/// Splits the classes that series of this length had so far where `values` differ.
fn classes(line: Line, series: Series, values: &[Const]) -> Classes {
    type Known = FxHashMap<(Line, Series, usize), Classes>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MOST {
        known.clear();
    }
    let classes = known.entry((line, series, values.len())).or_insert_with(|| SmallVec::from_elem(0, values.len()));
    let mut split: FxHashMap<(u32, Const), u32> = FxHashMap::default();
    for (class, &value) in classes.iter_mut().zip(values) {
        let next = split.len() as u32;
        *class = *split.entry((*class, value)).or_insert(next);
    }
    classes.clone()
}
