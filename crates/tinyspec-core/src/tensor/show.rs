//! Prints tensors. `Display` has NumPy's layout: aligned columns, few digits, the middle of large tensors omitted.
//! `Debug` is one line with all digits.

use super::Tensor;
use std::fmt;
use tinyspec_ir::{DType, float};

/// How much is shown.
struct Limits {
    /// Tensors of more elements are shortened.
    whole: usize,
    /// If shortened, longer axes show this many elements at both ends.
    ends: usize,
}

/// The limits of `Display`.
const PAGE: Limits = Limits { whole: 1000, ends: 3 };
/// The limits of `Debug`.
const LINE: Limits = Limits { whole: 0, ends: 3 };
/// Columns of a line, including the bracket or comma at its end.
const WIDTH: usize = 75;
/// The most digits after the point, unless the format says how many.
const DIGITS: usize = 8;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = match self.node() {
            Ok(node) => node,
            Err(error) => return write!(f, "Tensor({error})"),
        };
        write!(f, "Tensor<{}, {}>", node.props.dtype, tinyspec_ir::dim::show(&node.props.shape))?;
        match self.elements() {
            Ok((elements, sizes)) => {
                f.write_str(" ")?;
                let text = |position: usize| match &elements {
                    Elements::Floats(data) if self.dtype() == DType::F64 => format!("{:?}", data[position]),
                    Elements::Floats(data) => format!("{:?}", data[position] as f32),
                    Elements::Others(texts) => texts[position].clone(),
                };
                Layout { sizes: &sizes, limits: LINE, is_page: false, text: &text }.write(f)
            }
            Err(error) => write!(f, " ({error})"),
        }
    }
}

/// NumPy's format, with commas; `{:.3}` sets the number of digits after the point.
///
/// ```
/// # use tinyspec_core::Tensor;
/// let x = Tensor::from_slice(&[1f32, -0.5, 100.0, 0.25], [2, 2]);
/// assert_eq!(x.to_string(), "[[  1.  ,  -0.5 ],\n [100.  ,   0.25]]");
/// assert_eq!(format!("{x:.1}"), "[[  1.0,  -0.5],\n [100.0,   0.2]]");
/// assert_eq!(Tensor::arange(2000).to_string(), "[   0,    1,    2, ..., 1997, 1998, 1999]");
/// assert_eq!(Tensor::from_slice(&[true, false], [2]).to_string(), "[ True, False]");
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (elements, sizes) = match self.elements() {
            Ok(found) => found,
            Err(error) => return write!(f, "{error}"),
        };
        if sizes.contains(&0) {
            return f.write_str("[]");
        }
        let mut shown = vec![];
        visit(&sizes, &PAGE, 0, &mut |position| shown.push(position));
        let texts: Vec<String> = match &elements {
            Elements::Floats(data) => {
                let values: Vec<f64> = shown.iter().map(|&position| data[position]).collect();
                floats(&values, self.dtype(), f.precision())
            }
            Elements::Others(texts) => shown.iter().map(|&position| texts[position].clone()).collect(),
        };
        let is_bool = self.dtype() == DType::Bool;
        let texts = if is_bool { texts.iter().map(|text| capital(text)).collect() } else { texts };
        // Bools of an array are as wide as `False`, even if all are true.
        let least = if is_bool && !sizes.is_empty() { "False".len() } else { 0 };
        let width = texts.iter().map(|text| text.chars().count()).fold(least, usize::max);
        let text = |position: usize| {
            let text = shown.binary_search(&position).ok().and_then(|found| texts.get(found));
            format!("{:>width$}", text.map_or("", String::as_str))
        };
        Layout { sizes: &sizes, limits: PAGE, is_page: true, text: &text }.write(f)
    }
}

/// A word as NumPy writes it: `True`.
fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// The elements of a tensor, as they are shown.
enum Elements {
    /// Floats of every width.
    Floats(Vec<f64>),
    /// Numbers and bools as text.
    Others(Vec<String>),
}

impl Tensor {
    fn elements(&self) -> crate::Result<(Elements, Vec<usize>)> {
        macro_rules! by_dtype {
            ($($dtype:ident $type:ty),*) => { match self.dtype() {
                $(DType::$dtype => Elements::Others(self.to_vec::<$type>()?.iter().map(<$type>::to_string).collect()),)*
                DType::F64 => Elements::Floats(self.to_vec()?),
                // Narrow floats are shown as f32.
                _ => Elements::Floats(self.cast(DType::F32).to_vec::<f32>()?.into_iter().map(f64::from).collect()),
            } };
        }
        let elements = by_dtype!(Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
        Ok((elements, self.sizes()?))
    }
}

/// The decimal number of the fewest digits that rounds to the value.
fn shortest(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => value,
        DType::F32 => format!("{}", value as f32).parse().unwrap_or(value),
        // Whole numbers are shown in full, except for f16, for which NumPy has its own rule: 448 in f8e4m3 is not shown
        // as 450.
        dtype if dtype != DType::F16 && value.fract() == 0.0 => value,
        _ => {
            let bits = float::to_bits(dtype, value);
            let decimals = (0..8).filter_map(|digits| format!("{value:.digits$e}").parse().ok());
            decimals.into_iter().find(|&decimal| float::to_bits(dtype, decimal) == bits).unwrap_or(value)
        }
    }
}

/// A finite number in print.
struct Digits {
    whole: String,
    fraction: String,
    exponent: Option<String>,
}

impl Digits {
    fn of(value: f64, dtype: DType, scientific: bool, precision: Option<usize>) -> Digits {
        let brief = shortest(value, dtype);
        let text = match (precision, scientific) {
            (None, false) => format!("{brief}"),
            (None, true) => format!("{brief:e}"),
            (Some(digits), false) => format!("{value:.digits$}"),
            (Some(digits), true) => format!("{value:.digits$e}"),
        };
        let (mantissa, exponent) = text.split_once('e').map_or((text.as_str(), None), |(m, e)| (m, Some(e)));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if precision.is_none() && fraction.len() > DIGITS {
            let mut rounded = Digits::of(value, dtype, scientific, Some(DIGITS));
            rounded.fraction.truncate(rounded.fraction.trim_end_matches('0').len());
            return rounded;
        }
        Digits { whole: whole.to_string(), fraction: fraction.to_string(), exponent: exponent.map(str::to_string) }
    }
}

/// From this magnitude on, numbers have exponents: the largest power of ten, up to 1e8, that the dtype can distinguish
/// from its neighbours.
fn greatest_without_exponent(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e8,
        DType::F16 => 1e3,
        _ => 1e6,
    }
}

/// The number rounded to the dtype; small floats are shown as f32.
fn rounded(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => value,
        DType::F16 => float::from_bits(dtype, float::to_bits(dtype, value)),
        _ => f64::from(value as f32),
    }
}

/// Formats floats, all with as many digits as the one that needs most.
fn floats(values: &[f64], dtype: DType, precision: Option<usize>) -> Vec<String> {
    let magnitudes = values.iter().map(|value| value.abs()).filter(|value| value.is_finite() && *value != 0.0);
    let (least, greatest) = magnitudes
        .fold((f64::INFINITY, 0f64), |(least, greatest), magnitude| (least.min(magnitude), greatest.max(magnitude)));
    let scientific = greatest >= greatest_without_exponent(dtype)
        || greatest > 0.0 && (least < rounded(1e-4, dtype) || rounded(greatest / least, dtype) > 1e3);
    let finite = |&value: &f64| value.is_finite().then(|| Digits::of(value, dtype, scientific, precision));
    let mut digits: Vec<Option<Digits>> = values.iter().map(finite).collect();
    let width = |length: fn(&Digits) -> usize| digits.iter().flatten().map(length).max().unwrap_or(0);
    let fraction = width(|digits| digits.fraction.len());
    let exponent = width(|digits| digits.exponent.as_ref().map_or(0, |e| e.trim_start_matches('-').len())).max(2);
    if scientific {
        // All numbers get as many digits as the longest: their own further digits, not zeros.
        let finite = |&value: &f64| value.is_finite().then(|| Digits::of(value, dtype, true, Some(fraction)));
        digits = values.iter().map(finite).collect();
    }
    let text =
        |(value, digits): (&f64, &Option<Digits>)| match (digits, &digits.as_ref().and_then(|d| d.exponent.clone())) {
            (None, _) if value.is_nan() => "nan".to_string(),
            (None, _) => if *value > 0.0 { "inf" } else { "-inf" }.to_string(),
            (Some(digits), Some(power)) => {
                let (sign, power) = power.strip_prefix('-').map_or(('+', power.as_str()), |power| ('-', power));
                let point = if precision == Some(0) { "" } else { "." };
                format!("{}{point}{:0<fraction$}e{sign}{power:0>exponent$}", digits.whole, digits.fraction)
            }
            (Some(digits), None) if precision == Some(0) => digits.whole.clone(),
            // Aligns the decimal points of a column.
            (Some(digits), None) => format!("{}.{:<fraction$}", digits.whole, digits.fraction),
        };
    values.iter().zip(&digits).map(text).collect()
}

/// The positions along an axis that are shown; `None` stands for those omitted.
fn shown_of(size: usize, total: usize, limits: &Limits) -> Vec<Option<usize>> {
    if total <= limits.whole || size <= 2 * limits.ends + usize::from(limits.whole == 0) * 2 {
        return (0..size).map(Some).collect();
    }
    (0..limits.ends).map(Some).chain([None]).chain((size - limits.ends..size).map(Some)).collect()
}

/// Visits every position that is shown, in ascending order.
fn visit(sizes: &[usize], limits: &Limits, start: usize, found: &mut impl FnMut(usize)) {
    let total = sizes.iter().product();
    walk(sizes, total, limits, start, found);
}

fn walk(sizes: &[usize], total: usize, limits: &Limits, start: usize, found: &mut impl FnMut(usize)) {
    let Some((&size, inner)) = sizes.split_first() else { return found(start) };
    let stride: usize = inner.iter().product();
    for position in shown_of(size, total, limits).into_iter().flatten() {
        walk(inner, total, limits, start + position * stride, found);
    }
}

/// Brackets, separators and lines around the texts of the elements.
struct Layout<'a> {
    sizes: &'a [usize],
    limits: Limits,
    /// Whether it spans several lines.
    is_page: bool,
    text: &'a dyn Fn(usize) -> String,
}

impl Layout<'_> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.axis(f, 0, 0)
    }

    fn axis(&self, f: &mut fmt::Formatter<'_>, depth: usize, start: usize) -> fmt::Result {
        let Some((&size, inner)) = self.sizes[depth..].split_first() else { return f.write_str(&(self.text)(start)) };
        let stride: usize = inner.iter().product();
        let total = self.sizes.iter().product();
        f.write_str("[")?;
        // Columns of the line so far.
        let mut column = depth + 1;
        for (number, position) in shown_of(size, total, &self.limits).into_iter().enumerate() {
            let text = match position {
                Some(position) if inner.is_empty() => (self.text)(start + position * stride),
                Some(_) => String::new(),
                None if self.is_page => "...".to_string(),
                None => "…".to_string(),
            };
            let width = text.chars().count();
            if number > 0 {
                if self.is_page && !inner.is_empty() {
                    // One blank line between matrices, more between tensors of higher rank.
                    write!(f, ",{}{:indent$}", "\n".repeat(inner.len()), "", indent = depth + 1)?;
                } else if self.is_page && column + width > WIDTH - 1 - depth.min(WIDTH / 2) {
                    write!(f, ",\n{:indent$}", "", indent = depth + 1)?;
                    column = depth + 1;
                } else {
                    f.write_str(", ")?;
                }
            }
            column += width + 2;
            match position {
                Some(position) if !inner.is_empty() => self.axis(f, depth + 1, start + position * stride)?,
                _ => f.write_str(&text)?,
            }
        }
        f.write_str("]")
    }
}
