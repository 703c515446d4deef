//! Numbers that are easy to get wrong: conversions of all 8- and 16-bit values and of ties between them, minima and maxima of
//! integers, random bits.

use crate::Outcome;
use tinyspec::{DType, Tensor};

/// Dtypes of 8 and of 16 bits.
const SMALL: [DType; 8] =
    [DType::I8, DType::U8, DType::F8E4M3, DType::F8E5M2, DType::I16, DType::U16, DType::F16, DType::BF16];
const ALL: [DType; 14] = [
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

/// Every number of a dtype of 8 or 16 bits.
fn every(dtype: DType) -> Vec<u8> {
    match dtype.size() {
        1 => (0..=u8::MAX).collect(),
        _ => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
    }
}

/// A number of f32 for each number of a small float dtype, those halfway to the next, and the nearest to these; beyond the
/// greatest, and what is none.
fn around(dtype: DType) -> Outcome<Vec<f32>> {
    let bytes = every(dtype);
    let count = bytes.len() / dtype.size();
    let mut values =
        Tensor::from_bytes(dtype, &bytes, &[count as i64]).to("interpreter").cast(DType::F32).to_vec::<f32>()?;
    values.retain(|value| value.is_finite());
    values.sort_by(f32::total_cmp);
    let mut all =
        vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45, -1e-45];
    for pair in values.windows(2) {
        let middle = ((f64::from(pair[0]) + f64::from(pair[1])) / 2.0) as f32;
        all.extend([pair[0], middle.next_down(), middle, middle.next_up()]);
    }
    let greatest = values.last().copied().unwrap_or(0.0);
    all.extend([0.0, 0.01, 0.03125, 0.0625, 0.125, 0.5].map(|more| greatest * (1.0 + more)));
    Ok(all)
}

/// Converts on a device and on the interpreter.
fn convert(device: &str, from: DType, bytes: &[u8], to: DType) -> Outcome {
    let count = bytes.len() / from.size();
    let on = |device: &str| {
        let converted = Tensor::from_bytes(from, bytes, &[count as i64]).to(device).cast(to).contiguous();
        // What is not a number has many forms.
        let is_nan = match to.is_float() {
            true => converted.cast(DType::F32).isnan().cast(DType::U8).to_bytes(),
            false => Ok(vec![0; count]),
        };
        converted.to_bytes().and_then(|bytes| Ok((bytes, is_nan?)))
    };
    let ((found, nans), (expected, expected_nans)) = (on(device)?, on("interpreter")?);
    let size = to.size();
    for element in 0..count {
        let at = element * size..(element + 1) * size;
        let is_same = match expected_nans[element] {
            0 => nans[element] == 0 && found[at.clone()] == expected[at.clone()],
            _ => nans[element] != 0,
        };
        if !is_same {
            let what = &bytes[element * from.size()..(element + 1) * from.size()];
            let (found, expected) = (&found[at.clone()], &expected[at]);
            return Err(
                format!("{from} {what:02x?} to {to} on {device}: {found:02x?} instead of {expected:02x?}").into()
            );
        }
    }
    Ok(())
}

/// Whether every conversion of 8- and 16-bit numbers is exact, and those of f32 to small floats round as they must.
///
/// # Errors
/// The first that is not.
pub fn conversions(device: &str, is_taken: impl Fn(DType, DType) -> bool) -> Outcome {
    // All of them, also where one is wrong: so all code is made.
    let mut first = Ok(());
    for from in SMALL {
        let bytes = every(from);
        for to in ALL.into_iter().filter(|&to| to != from && is_taken(from, to)) {
            first = first.and(convert(device, from, &bytes, to));
        }
    }
    for to in SMALL.into_iter().filter(|dtype| dtype.is_float()) {
        let bytes: Vec<u8> = around(to)?.into_iter().flat_map(f32::to_le_bytes).collect();
        first = first.and(convert(device, DType::F32, &bytes, to));
    }
    first
}

/// Minima and maxima in forms that assemblers fuse into one instruction: of three operands, of a negated one, compared with an
/// operand.
type Form = fn([&Tensor; 3]) -> Tensor;

const FORMS: [(&str, Form); 8] = [
    ("max(max(a, -b), c)", |[a, b, c]| a.maximum(b.neg()).maximum(c)),
    ("min(min(a, -b), c)", |[a, b, c]| a.minimum(b.neg()).minimum(c)),
    ("max(a + b, -c)", |[a, b, c]| (a + b).maximum(c.neg())),
    ("min(max(|a|, b), c)", |[a, b, c]| a.abs().maximum(b).minimum(c)),
    ("max(a, 0) == 0", |[a, _, _]| a.maximum(0).eq(0)),
    ("min(a, 5) != 5", |[a, _, _]| a.minimum(5).ne(5)),
    ("max(a, b) == b", |[a, b, _]| a.maximum(b).eq(b)),
    ("the least so far of a != 0", |[a, _, _]| a.reshape([-1, 8]).ne(0).cummin(1)),
];

/// Whether minima and maxima of integers are what the interpreter gives.
///
/// # Errors
/// The first that is not.
pub fn extremes(device: &str) -> Outcome {
    let mut first = Ok(());
    for dtype in ALL.into_iter().filter(|dtype| dtype.is_int()) {
        let inputs = |seed: i64| {
            let numbers: Vec<i64> =
                (0..512).map(|i| (i * 37 + seed * 11) % 23 - if dtype.is_unsigned() { 0 } else { 11 }).collect();
            Tensor::from_slice(&numbers, [512]).cast(dtype)
        };
        let all = [1, 2, 5].map(inputs);
        for (name, form) in FORMS {
            let on = |device: &str| {
                let [a, b, c] = all.each_ref().map(|input| input.to(device));
                form([&a, &b, &c]).cast(DType::I32).to_vec::<i32>()
            };
            let (found, expected) = (on(device)?, on("interpreter")?);
            if let Some(at) = found.iter().zip(&expected).position(|(found, expected)| found != expected) {
                let reason =
                    format!("{name} of {dtype} on {device}: element {at} is {}, not {}", found[at], expected[at]);
                first = first.and(Err(reason.into()));
            }
        }
    }
    first
}

/// Whether Threefry gives the published words: threefry2x32 with 20 rounds.
///
/// # Errors
/// What it gives instead.
pub fn threefry(device: &str) -> Outcome {
    let counters = [0u64, u64::MAX, 0x85a3_08d3_243f_6a88];
    let keys = [0u64, u64::MAX, 0x0370_7344_1319_8a2e];
    let expected = [0x99ba_4efe_6b20_0159, 0xbb00_2be7_1cb9_96fc, 0x483d_f7a0_c492_3a9c];
    let of = |words: &[u64]| Tensor::from_slice(words, [words.len()]).to(device);
    let found = of(&counters).threefry(of(&keys)).to_vec::<u64>()?;
    if found == expected { Ok(()) } else { Err(format!("threefry on {device}: {found:x?}").into()) }
}
