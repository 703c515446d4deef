//! The transforms that schedules are made of ("Kernel Optimizations (OptOps)"): one file each, one table.
//!
//! A file says what its transform requires of the axes, what it does to them, how it is written, and what the search tries
//! beside it. A kernel's schedule is a list of [`OptOp`]s, applied from left to right to its [`Space`]; printed, it can be read
//! again. To add a transform, write its file and name it in the table below.

mod block;
mod nolocals;
mod nontemporal;
mod padto;
mod partition;
mod pipeline;
mod scatter;
mod split;
mod stage;
mod swap;
mod tc;

pub use block::Block;
pub use nolocals::Nolocals;
pub use nontemporal::Nontemporal;
pub use padto::Padto;
pub use partition::Partition;
pub use pipeline::Pipeline;
pub use scatter::Scatter;
pub use split::Split;
pub use stage::{Copier, Stage};
pub use swap::Swap;
pub use tc::Tc;

use super::refusal::{Refusal, Refused};
use super::{Scheduler, Space};
use std::fmt;
use std::str::FromStr;
use tinyspec_ir::{Error, ErrorKind};

/// One transform of a kernel's loops.
trait Transform: Sized + Into<OptOp> {
    /// Its name in text.
    const NAME: &'static str;
    /// Its operands in text, as messages and documentation show them.
    const OPERANDS: &'static str;
    /// Its effect, in a sentence.
    const EFFECT: &'static str;
    /// Its requirements on the axes that it is applied to, in a sentence.
    const REQUIRES: &'static str;
    /// The constraint on its position in a schedule.
    const ORDER: Order = Order::Any;

    /// Reads the operands.
    fn parse(operands: &[&str]) -> Option<Self>;

    /// Writes the operands.
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Applies it to the axes, or says why it does not fit; the constraints between transforms are checked afterwards.
    fn apply(&self, space: &mut Space) -> Result<(), Refusal>;

    /// The ops that the search may add to a schedule which has led to these axes.
    fn additions(_: &Scheduler, _: &Space) -> Vec<Vec<OptOp>> {
        Vec::new()
    }

    /// The transforms that the search may replace it with, where the whole schedule leads to these axes; it may always leave it
    /// out, unless the transform is a schedule by itself.
    fn replacements(&self, _: &Space) -> Vec<Self> {
        Vec::new()
    }
}

/// Where in a schedule a transform may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// Before any that fixes the axes.
    Any,
    /// It needs the axes as they will be: no transform that changes them follows.
    FixesAxes,
    /// It changes no axis.
    KeepsAxes,
    /// It is the whole schedule.
    Alone,
}

/// A row of the table of transforms: how one is written, and what it means.
///
/// ```
/// use tinyspec_core::lower::optimize::transforms::TRANSFORMS;
/// let swap = TRANSFORMS.iter().find(|row| row.name == "swap").unwrap();
/// assert_eq!(format!("{}({})", swap.name, swap.operands), "swap(axis, axis)");
/// ```
pub struct TransformRow {
    /// The name in text.
    pub name: &'static str,
    /// The operands in text.
    pub operands: &'static str,
    /// Its effect.
    pub effect: &'static str,
    /// Its requirements on the axes that it is applied to.
    pub requires: &'static str,
    parse: fn(&[&str]) -> Option<OptOp>,
    additions: fn(&Scheduler, &Space) -> Vec<Vec<OptOp>>,
}

const fn row<T: Transform>() -> TransformRow {
    fn parse<T: Transform>(operands: &[&str]) -> Option<OptOp> {
        T::parse(operands).map(Into::into)
    }
    TransformRow {
        name: T::NAME,
        operands: T::OPERANDS,
        effect: T::EFFECT,
        requires: T::REQUIRES,
        parse: parse::<T>,
        additions: T::additions,
    }
}

macro_rules! transforms {
    ($($transform:ident),* $(,)?) => {
        /// One optimization of a kernel ("OptOps"). Axes have [names](super::AxisName) that last.
        ///
        /// ```
        /// use tinyspec_core::lower::optimize::AxisName;
        /// use tinyspec_core::lower::optimize::transforms::{OptOp, Swap};
        /// assert_eq!("swap(a, b)".parse::<OptOp>()?, Swap(AxisName::new(0, 0), AxisName::new(1, 0)).into());
        /// # Ok::<(), tinyspec_ir::Error>(())
        /// ```
        #[derive(Clone, PartialEq, Eq, Debug, Hash)]
        pub enum OptOp {
            $(
                #[doc = concat!("See [`", stringify!($transform), "`].")]
                $transform($transform),
            )*
        }

        $(
            impl From<$transform> for OptOp {
                fn from(transform: $transform) -> OptOp {
                    OptOp::$transform(transform)
                }
            }
        )*

        /// All transforms, by name.
        pub const TRANSFORMS: &[TransformRow] = &[$(row::<$transform>()),*];

        impl fmt::Display for OptOp {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(OptOp::$transform(transform) => {
                        write!(f, "{}(", $transform::NAME)?;
                        transform.print(f)?;
                    })*
                }
                f.write_str(")")
            }
        }

        impl OptOp {
            /// Where in a schedule it may stand.
            pub(super) fn order(&self) -> Order {
                match self {
                    $(OptOp::$transform(_) => $transform::ORDER,)*
                }
            }

            fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
                match self {
                    $(OptOp::$transform(transform) => transform.apply(space),)*
                }
            }

            /// The ops that the search may replace it with, where the whole schedule leads to these axes.
            pub(super) fn replacements(&self, space: &Space) -> Vec<OptOp> {
                match self {
                    $(OptOp::$transform(transform) => transform.replacements(space).into_iter().map(Into::into).collect(),)*
                }
            }
        }
    };
}

transforms!(Split, Swap, Padto, Nolocals, Stage, Tc, Pipeline, Partition, Nontemporal, Scatter, Block);

impl FromStr for OptOp {
    type Err = Error;

    /// Reads an op as it is printed.
    fn from_str(text: &str) -> Result<OptOp, Error> {
        let parsed =
            text.trim().strip_suffix(')').and_then(|text| text.split_once('(')).and_then(|(name, operands)| {
                let operands: Vec<&str> = operands.split([',', ' ']).filter(|word| !word.is_empty()).collect();
                let row = TRANSFORMS.iter().find(|row| row.name == name)?;
                (row.parse)(&operands)
            });
        parsed.ok_or_else(|| {
            let forms: Vec<String> = TRANSFORMS.iter().map(|row| format!("{}({})", row.name, row.operands)).collect();
            Error::new(ErrorKind::Value, "schedule", format!("`{text}` is not a schedule op"))
                .help(format!("there are {}", forms.join(", ")))
        })
    }
}

impl Space {
    /// Applies one op to the axes. A kernel with an accepted op computes the same as before, on every device; a refused op
    /// leaves the axes unchanged.
    ///
    /// # Errors
    /// When the op does not fit the axes: says why.
    pub fn apply(&mut self, op: &OptOp) -> Result<(), Refused> {
        let mut after = self.clone();
        let applied = after.admits(op.order()).and_then(|()| op.apply(&mut after)).and_then(|()| after.check());
        applied.map_err(|reason| Refused { op: op.clone(), reason })?;
        *self = after;
        Ok(())
    }

    /// Checks that a transform of this order may follow.
    fn admits(&self, order: Order) -> Result<(), Refusal> {
        match order {
            _ if self.has_own_loops() => Err(Refusal::AfterAlone),
            Order::KeepsAxes => Ok(()),
            _ if self.pipelined.is_some() || self.partitioned.is_some() => Err(Refusal::FixedAxes),
            Order::Alone if !self.is_whole() => Err(Refusal::NotAlone),
            _ => Ok(()),
        }
    }
}

/// The ops that the search may add to a schedule which has led to these axes.
pub(super) fn additions(scheduler: &Scheduler, space: &Space) -> impl Iterator<Item = Vec<OptOp>> {
    TRANSFORMS.iter().flat_map(|row| (row.additions)(scheduler, space))
}

/// Verifies that a schedule, printed and read again, is the same: the kernel it was chosen for and its text say all that is done to
/// the kernel.
///
/// # Errors
/// Names the first op that is read as another one.
pub(crate) fn verify(ops: &[OptOp]) -> Result<(), Error> {
    for op in ops {
        let text = op.to_string();
        if text.parse::<OptOp>()? != *op {
            return Err(Error::new(ErrorKind::Verify, "schedule", format!("`{text}` is read as another op")));
        }
    }
    Ok(())
}

/// Reads a number or an axis among the operands.
fn operand<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}
