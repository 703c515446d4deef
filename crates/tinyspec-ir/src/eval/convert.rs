//! Cast and Bitcast. int → int wraps, float → int saturates with nan to 0, to bool is `!= 0`.

use super::unary;
use crate::DType;

pub(super) fn cast(from: DType, to: DType, sources: &[&[u64]], result: &mut [u64]) -> bool {
    if from.is_float() {
        from_float(to, sources, result)
    } else if from == DType::U64 && to.is_float() {
        to_float(to, sources, result, |lane| lane as f32, |lane| lane as f64)
    } else if from != DType::Void && to.is_float() {
        to_float(to, sources, result, |lane| lane as i64 as f32, |lane| lane as i64 as f64)
    } else if from != DType::Void {
        let of: fn(u64) -> u64 = match to {
            DType::Bool => |lane| (lane != 0) as u64,
            _ => match extend(to) {
                Some(extend) => extend,
                None => return false,
            },
        };
        unary(sources, result, of)
    } else {
        false
    }
}

fn to_float(
    to: DType,
    sources: &[&[u64]],
    result: &mut [u64],
    single: impl Fn(u64) -> f32,
    double: impl Fn(u64) -> f64,
) -> bool {
    match to {
        // Via f64, a large integer would be rounded twice.
        DType::F32 => unary(sources, result, |lane| (single(lane) as f64).to_bits()),
        DType::F64 => unary(sources, result, |lane| double(lane).to_bits()),
        _ => unary(sources, result, |lane| crate::float::round(to, double(lane)).to_bits()),
    }
}

fn from_float(to: DType, sources: &[&[u64]], result: &mut [u64]) -> bool {
    let of = f64::from_bits;
    match to {
        DType::Void => false,
        DType::Bool => unary(sources, result, |lane| (of(lane) != 0.0) as u64),
        DType::I8 => unary(sources, result, |lane| of(lane) as i8 as i64 as u64),
        DType::I16 => unary(sources, result, |lane| of(lane) as i16 as i64 as u64),
        DType::I32 => unary(sources, result, |lane| of(lane) as i32 as i64 as u64),
        DType::I64 | DType::Index => unary(sources, result, |lane| of(lane) as i64 as u64),
        DType::U8 => unary(sources, result, |lane| of(lane) as u8 as u64),
        DType::U16 => unary(sources, result, |lane| of(lane) as u16 as u64),
        DType::U32 => unary(sources, result, |lane| of(lane) as u32 as u64),
        DType::U64 => unary(sources, result, |lane| of(lane) as u64),
        DType::F32 => unary(sources, result, |lane| (of(lane) as f32 as f64).to_bits()),
        DType::F64 => unary(sources, result, |lane| lane),
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 => {
            unary(sources, result, |lane| crate::float::round(to, of(lane)).to_bits())
        }
    }
}

/// Between types of the same size; otherwise lanes are not whole elements.
pub(super) fn bitcast(from: DType, to: DType, sources: &[&[u64]], result: &mut [u64]) -> bool {
    if from.size() != to.size() || from.size() == 0 {
        return false;
    }
    unary(sources, result, |lane| from_storage(to, to_storage(from, lane)))
}

/// The lane of a value that is stored as `bits` (in the low bytes).
pub fn from_storage(dtype: DType, bits: u64) -> u64 {
    match dtype {
        DType::Bool => (bits as u8 != 0) as u64,
        _ if dtype.is_float() => crate::float::from_bits(dtype, bits).to_bits(),
        _ => extend(dtype).map_or(0, |extend| extend(bits)),
    }
}

/// The bits that store a lane, in the low bytes.
pub fn to_storage(dtype: DType, lane: u64) -> u64 {
    if dtype.is_float() { crate::float::to_bits(dtype, f64::from_bits(lane)) } else { lane }
}

/// Sign- or zero-extension of an integer's low bytes to 64 bits.
fn extend(dtype: DType) -> Option<fn(u64) -> u64> {
    Some(match dtype {
        DType::I8 => |bits| bits as i8 as i64 as u64,
        DType::I16 => |bits| bits as i16 as i64 as u64,
        DType::I32 => |bits| bits as i32 as i64 as u64,
        DType::U8 => |bits| bits as u8 as u64,
        DType::U16 => |bits| bits as u16 as u64,
        DType::U32 => |bits| bits as u32 as u64,
        DType::I64 | DType::U64 | DType::Index => |bits| bits,
        _ => return None,
    })
}
