//! min_max, and the values of index scalars.

use super::cut;
use crate::dim::{floor_div, floor_mod};
use crate::op::IntervalRule;
use crate::{Arg, DType, Dim, Floats, Interval, Op, Props, Shape};

/// The greatest weight of expressions over named dims; heavier ones are left to run time.
const HEAVIEST: u32 = 256;
/// The most terms of the product of a shape's dims.
const MOST_TERMS: u32 = 1 << 16;

/// The value of an index scalar or a Stack of index scalars, if it does not depend on Ranges or data.
pub(super) fn index_value(op: Op, arg: &Arg, sources: &[&Props]) -> Option<Shape> {
    let value = index_expression(op, arg, sources)?;
    let terms = value.iter().fold(1u32, |product, dim| product.saturating_mul(dim.weight()));
    (value.iter().all(|dim| dim.weight() <= HEAVIEST) && terms <= MOST_TERMS).then_some(value)
}

fn index_expression(op: Op, arg: &Arg, sources: &[&Props]) -> Option<Shape> {
    let one = |dim: Dim| Some(Shape::from_iter([dim]));
    let scalar = |index: usize| -> Option<&Dim> {
        let source = sources.get(index)?;
        (source.dtype == DType::Index && source.shape.is_empty()).then_some(())?;
        source.value.as_ref()?.first()
    };
    match (op, arg) {
        (Op::Const, Arg::Const(value)) if value.dtype == DType::Index => one(Dim::from(value.bits as i64)),
        (Op::Param, Arg::Param { slot, dtype: DType::Index, addrspace: None, .. })
            if sources[0].value.as_ref()?.is_empty() =>
        {
            let bound = |index: usize, default: i64| scalar(index).and_then(Dim::as_const).unwrap_or(default);
            one(Dim::named(*slot, bound(1, i64::MIN), bound(2, i64::MAX)))
        }
        (Op::Stack, _) => (0..sources.len()).map(|index| scalar(index).cloned()).collect(),
        (Op::Add, _) => one(scalar(0)?.clone() + scalar(1)?.clone()),
        (Op::Mul, _) => one(scalar(0)?.clone() * scalar(1)?.clone()),
        (Op::Idiv, _) => one(scalar(0)?.idiv(scalar(1)?)),
        (Op::Mod, _) => one(scalar(0)?.modulo(scalar(1)?)),
        (Op::Max, _) => one(scalar(0)?.maximum(scalar(1)?)),
        (Op::After | Op::Detach | Op::Contiguous | Op::ContiguousBackward, _) => one(scalar(0)?.clone()),
        _ => None,
    }
}

pub(super) fn derive(op: Op, arg: &Arg, sources: &[&Props], dtype: DType, value: Option<&[Dim]>) -> Interval {
    match op.info().interval {
        IntervalRule::DType => Interval::of(dtype),
        IntervalRule::Source(index) => sources.get(index as usize).map_or(Interval::None, |source| source.interval),
        IntervalRule::None => Interval::None,
        IntervalRule::Own => own(op, arg, sources, dtype, value),
    }
}

fn own(op: Op, arg: &Arg, sources: &[&Props], dtype: DType, value: Option<&[Dim]>) -> Interval {
    let source = |index: usize| sources.get(index).map_or(Interval::None, |source| source.interval);
    match (op, arg) {
        // The values that a kernel writes to a buffer are independent of its old contents.
        (Op::After, _) if sources.len() == cut::AFTER_KERNEL && dtype != DType::Index => Interval::of(dtype),
        (Op::After, _) => source(0),
        (Op::Const, Arg::Const(value)) => match (value.as_int(), value.as_float()) {
            (Some(value), _) => Interval::Int(value, value),
            (_, Some(value)) => Interval::Float(Floats::only(value)),
            _ => Interval::of(dtype),
        },
        (Op::Param, _) => match value {
            Some([dim]) => {
                let (low, high) = dim.bounds();
                Interval::Int(low as i128, high as i128)
            }
            _ => Interval::of(dtype),
        },
        (Op::Pad, _) => with_zero(source(0)),
        (Op::Index, _) if reads_inside(sources) => source(0),
        (Op::Index, _) => with_zero(source(0)),
        (Op::Stack, _) => (1..sources.len())
            .map(source)
            .fold(if sources.is_empty() { Interval::Int(0, 0) } else { source(0) }, Interval::hull),
        (Op::Range | Op::Special, _) => match source(0) {
            Interval::Int(_, high) => Interval::Int(0, (high - 1).max(0)),
            _ => Interval::of(dtype),
        },
        (Op::Load, _) => match sources.len() {
            1 => source(0),
            _ => source(0).hull(source(1)),
        },
        (Op::Cast, _) => match source(0) {
            Interval::Int(low, high) if dtype.is_float() => {
                // To f32 in one rounding, as the values themselves.
                let end = |value: i128| if dtype == DType::F32 { f64::from(value as f32) } else { value as f64 };
                Interval::Float(Floats::rounded(dtype, end(low), end(high), false))
            }
            Interval::Float(floats) if dtype.is_float() => Interval::Float(floats.cast(dtype)),
            Interval::Float(floats) if dtype == DType::Bool => {
                let (certainly, possibly) = floats.differs(Floats::only(0.0));
                Interval::Int(certainly as i128, possibly as i128)
            }
            Interval::Float(floats) => match dtype.int_range() {
                Some(range) => {
                    let (low, high) = floats.saturated(range);
                    Interval::Int(low, high)
                }
                None => Interval::of(dtype),
            },
            Interval::Int(low, high) if dtype == DType::Bool => {
                Interval::Int((low > 0 || high < 0) as i128, (low != 0 || high != 0) as i128)
            }
            Interval::Int(low, high) => Interval::checked(dtype, low, high),
            _ => Interval::of(dtype),
        },
        (Op::Trunc, _) => match source(0) {
            Interval::Float(floats) => Interval::Float(floats.trunc()),
            whole => whole,
        },
        (Op::Where, _) => match source(0).single() {
            Some(0) => source(2),
            Some(_) => source(1),
            None => source(1).hull(source(2)),
        },
        (Op::Reduce, Arg::Reduce { op: reduce, .. }) => reduce_interval(*reduce, sources, dtype),
        (Op::CmpLt, _) => match (source(0), source(1)) {
            (Interval::Int(a, a_high), Interval::Int(b, b_high)) => {
                Interval::Int((a_high < b) as i128, (a < b_high) as i128)
            }
            (Interval::Float(a), Interval::Float(b)) => {
                let (certainly, possibly) = a.less(b);
                Interval::Int(certainly as i128, possibly as i128)
            }
            _ => Interval::Int(0, 1),
        },
        (Op::CmpNe, _) => match (source(0), source(1)) {
            (Interval::Int(a, a_high), Interval::Int(b, b_high)) => {
                let apart = a_high < b || b_high < a;
                let same = a == a_high && b == b_high && a == b;
                Interval::Int(apart as i128, !same as i128)
            }
            (Interval::Float(a), Interval::Float(b)) => {
                let (certainly, possibly) = a.differs(b);
                Interval::Int(certainly as i128, possibly as i128)
            }
            _ => Interval::Int(0, 1),
        },
        (Op::Mulacc, _) => match (source(0), source(1), source(2)) {
            (Interval::Int(a, b), Interval::Int(c, d), Interval::Int(e, f)) => {
                let (low, high) = corners((a, b), (c, d), i128::saturating_mul);
                Interval::checked(dtype, low.saturating_add(e), high.saturating_add(f))
            }
            _ => Interval::of(dtype),
        },
        _ => match (source(0), source(1)) {
            (Interval::Int(a, b), Interval::Int(c, d)) => binary(op, (a, b), (c, d), dtype),
            (Interval::Float(a), Interval::Float(b)) => match op {
                Op::Add => Interval::Float(a.add(b, dtype)),
                Op::Mul => Interval::Float(a.mul(b, dtype)),
                Op::Max => Interval::Float(a.max(b)),
                _ => Interval::of(dtype),
            },
            _ => Interval::of(dtype),
        },
    }
}

/// Elements out of bounds read as 0.
fn with_zero(interval: Interval) -> Interval {
    match interval {
        Interval::Int(low, high) => Interval::Int(low.min(0), high.max(0)),
        Interval::Float(floats) => Interval::Float(floats.hull(Floats::only(0.0))),
        Interval::None => Interval::None,
    }
}

/// Whether all indices are known to be in bounds.
fn reads_inside(sources: &[&Props]) -> bool {
    let axes = &sources[0].shape;
    sources[1..].iter().zip(axes.iter()).all(|(index, size)| match index.interval {
        Interval::Int(low, high) => low >= 0 && high < i128::from(size.bounds().0),
        _ => false,
    })
}

type Bounds = (i128, i128);

fn corners(a: Bounds, b: Bounds, f: impl Fn(i128, i128) -> i128) -> Bounds {
    let values = [f(a.0, b.0), f(a.0, b.1), f(a.1, b.0), f(a.1, b.1)];
    values.into_iter().fold((i128::MAX, i128::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

fn binary(op: Op, a: Bounds, b: Bounds, dtype: DType) -> Interval {
    let fits = |bounds: Bounds| i64::try_from(bounds.0).is_ok() && i64::try_from(bounds.1).is_ok();
    match op {
        Op::Add => Interval::checked(dtype, a.0 + b.0, a.1 + b.1),
        Op::Mul => {
            let (low, high) = corners(a, b, i128::saturating_mul);
            Interval::checked(dtype, low, high)
        }
        Op::Max => Interval::Int(a.0.max(b.0), a.1.max(b.1)),
        Op::Idiv if a.0 >= 0 && b.0 >= 1 => Interval::Int(a.0 / b.1, a.1 / b.0),
        Op::Idiv if fits(a) && fits(b) => {
            // The quotient is monotone for divisors on each side of 0: the corners are the bounds and ±1; x / 0 is 0.
            let mut divisors: Vec<i128> =
                [b.0, b.1, -1, 1].into_iter().filter(|&d| d != 0 && b.0 <= d && d <= b.1).collect();
            divisors.sort_unstable();
            divisors.dedup();
            let mut bounds: Option<Bounds> = (b.0 <= 0 && 0 <= b.1).then_some((0, 0));
            for divisor in divisors {
                for dividend in [a.0, a.1] {
                    if divisor == -1 && dividend == i64::MIN as i128 {
                        return Interval::of(dtype);
                    }
                    let value = floor_div(dividend as i64, divisor as i64) as i128;
                    bounds = Some(bounds.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
                }
            }
            bounds.map_or(Interval::of(dtype), |(low, high)| Interval::checked(dtype, low, high))
        }
        Op::Mod if fits(a) && fits(b) => modulo(a, b),
        Op::And if dtype == DType::Bool => Interval::Int(a.0.min(b.0), a.1.min(b.1)),
        Op::Or if dtype == DType::Bool => Interval::Int(a.0.max(b.0), a.1.max(b.1)),
        Op::And if a.0 >= 0 && b.0 >= 0 => Interval::Int(0, a.1.min(b.1)),
        Op::And if b.0 >= 0 => Interval::Int(0, b.1),
        Op::And if a.0 >= 0 => Interval::Int(0, a.1),
        Op::Or | Op::Xor if a.0 >= 0 && b.0 >= 0 => {
            let bits = 128 - (a.1 | b.1).leading_zeros();
            Interval::checked(dtype, 0, (1i128 << bits) - 1)
        }
        Op::Shr if b.0 >= 0 => {
            let width = dtype.size() as i128 * 8;
            let shift =
                |value: i128, count: i128| value >> count.min(if dtype.is_unsigned() { width } else { width - 1 });
            let (low, high) = corners(a, b, shift);
            Interval::Int(low, high)
        }
        Op::Shl if b.0 >= 0 && b.1 < 63 && b.1 < dtype.size() as i128 * 8 => {
            let (low, high) = corners(a, b, |value, count| value.saturating_mul(1i128 << count));
            Interval::checked(dtype, low, high)
        }
        _ => Interval::of(dtype),
    }
}

/// The floored remainder has the divisor's sign; it is exact if the whole dividend is within one multiple of the
/// divisor.
fn modulo(a: Bounds, b: Bounds) -> Interval {
    if b.0 == b.1 && b.0 != 0 {
        let divisor = b.0 as i64;
        if floor_div(a.0 as i64, divisor) == floor_div(a.1 as i64, divisor) {
            return Interval::Int(floor_mod(a.0 as i64, divisor) as i128, floor_mod(a.1 as i64, divisor) as i128);
        }
    }
    let mut bounds: Option<Bounds> = None;
    let mut add = |low: i128, high: i128| {
        bounds = Some(bounds.map_or((low, high), |(a, b)| (a.min(low), b.max(high))));
    };
    if b.1 > 0 {
        // A dividend between 0 and the divisor is unchanged.
        let least = b.0.max(1);
        if a.0 >= 0 && a.1 < least { add(a.0, a.1) } else { add(0, if a.0 >= 0 { a.1.min(b.1 - 1) } else { b.1 - 1 }) }
    }
    if b.0 < 0 {
        let greatest = b.1.min(-1);
        if a.1 <= 0 && a.0 > greatest {
            add(a.0, a.1)
        } else {
            add(if a.1 <= 0 { a.0.max(b.0 + 1) } else { b.0 + 1 }, 0)
        }
    }
    if b.0 <= 0 && b.1 >= 0 {
        add(a.0, a.1);
    }
    let (low, high) = bounds.unwrap_or(a);
    Interval::Int(low, high)
}

/// A Reduce over Ranges of known size, so that sums of indices stay bounded.
fn reduce_interval(reduce: Op, sources: &[&Props], dtype: DType) -> Interval {
    let (low, high) = match sources[0].interval {
        Interval::Int(low, high) => (low, high),
        Interval::Float(terms) => return Interval::Float(reduced_floats(reduce, terms, dtype)),
        Interval::None => return Interval::of(dtype),
    };
    match reduce {
        Op::Add if sources.len() > 1 => {
            let trips = sources[1..].iter().try_fold(1i128, |product, range| match range.interval {
                Interval::Int(_, last) => product.checked_mul(last + 1),
                _ => None,
            });
            match trips {
                Some(trips) => {
                    Interval::checked(dtype, low.saturating_mul(trips).min(0), high.saturating_mul(trips).max(0))
                }
                None => Interval::of(dtype),
            }
        }
        // The result of an empty Reduce is the identity, the least value of the dtype.
        Op::Max => Interval::of(dtype).hull(Interval::Int(low, high)),
        _ => Interval::of(dtype),
    }
}

/// A sum of terms of one sign keeps it: infinities of different signs, whose sum is nan, cannot meet, whatever the order.
fn reduced_floats(reduce: Op, terms: Floats, dtype: DType) -> Floats {
    let range = Floats::of(dtype);
    // Where nothing is infinite, too much is nan.
    let nan = terms.nan || range.high.is_finite();
    match reduce {
        Op::Add if terms.low >= 0.0 => Floats { low: -0.0, nan, ..range },
        Op::Add if terms.high <= 0.0 => Floats { high: 0.0, nan, ..range },
        Op::Max => Floats { nan, ..range },
        _ => range,
    }
}
