//! `|got - want| <= atol + rtol * |want|`, nan equals nan, infinities equal in sign; integers, dtypes, shapes exactly.

use crate::corpus::{Array, Tolerance};

/// Says what differs, if anything does.
pub fn compare(what: &str, got: &Array, want: &Array, tolerance: Option<Tolerance>) -> Result<(), String> {
    if (got.dtype, &got.shape) != (want.dtype, &want.shape) {
        return Err(format!("{what}: {} {:?} instead of {} {:?}", got.dtype, got.shape, want.dtype, want.shape));
    }
    if got.bytes == want.bytes {
        return Ok(());
    }
    let (got_values, want_values) = (got.to_f64(), want.to_f64());
    let Tolerance { relative, absolute } = tolerance.unwrap_or_default();
    for (index, (&g, &w)) in got_values.iter().zip(&want_values).enumerate() {
        let equal = if !want.dtype.is_float() {
            let size = want.dtype.size();
            got.bytes[index * size..][..size] == want.bytes[index * size..][..size]
        } else if w.is_nan() || w.is_infinite() {
            g.is_nan() && w.is_nan() || g == w
        } else {
            (g - w).abs() <= absolute + relative * w.abs()
        };
        if !equal {
            return Err(format!("{what}: element {index} is {g:?} instead of {w:?}"));
        }
    }
    Ok(())
}
