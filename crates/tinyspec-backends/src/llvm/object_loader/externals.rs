//! The functions that kernels may call: only those that LLVM itself generates calls to.
//!
//! They are not looked up in the process, since a program that does not use such a function may not contain it.

use tinyspec_ir::{DType, float};

extern "C" fn fmodf(a: f32, b: f32) -> f32 {
    a % b
}

extern "C" fn fmod(a: f64, b: f64) -> f64 {
    a % b
}

// f16 values are passed in the low bits of a float register, on both x86-64 and AArch64; Rust's stable types for such a
// register are f32 and f64.

extern "C" fn narrow_f32(value: f32) -> f32 {
    narrow_f64(value.into())
}

extern "C" fn narrow_f64(value: f64) -> f32 {
    f32::from_bits(float::to_bits(DType::F16, value) as u32)
}

extern "C" fn widen_f32(value: f32) -> f32 {
    float::from_bits(DType::F16, value.to_bits() as u16 as u64) as f32
}

extern "C" fn narrow_bf16(value: f32) -> f32 {
    f32::from_bits(float::to_bits(DType::BF16, value.into()) as u32)
}

unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise is that of C's memcpy.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    to
}

unsafe extern "C" fn memset(to: *mut u8, value: i32, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise is that of C's memset.
    unsafe { std::ptr::write_bytes(to, value as u8, bytes) };
    to
}

macro_rules! float_functions {
    ($($name:ident $type:ty: $method:ident($($more:ident),*);)*) => {
        $(extern "C" fn $name(x: $type $(, $more: $type)*) -> $type { x.$method($($more),*) })*
    };
}

// Processors before SSE 4.1 have no instruction for most of these, and those before FMA none for `fma`; none has
// `round`, or a minimum and maximum that ignore nan. The kernels' own ops need only the first six.
float_functions! {
    truncf f32: trunc(); trunc f64: trunc();
    floorf f32: floor(); floor f64: floor();
    roundevenf f32: round_ties_even(); roundeven f64: round_ties_even();
    ceilf f32: ceil(); ceil f64: ceil();
    // In the current rounding mode, which is always to nearest.
    rintf f32: round_ties_even(); rint f64: round_ties_even();
    roundf f32: round(); round f64: round();
    fminf f32: min(y); fmin f64: min(y);
    fmaxf f32: max(y); fmax f64: max(y);
    fmaf f32: mul_add(y, z); fma f64: mul_add(y, z);
}

/// Address of an external function.
pub(super) fn address(name: &[u8]) -> Option<u64> {
    let function = match name {
        b"fmodf" => fmodf as *const (),
        b"fmod" => fmod as *const (),
        b"truncf" => truncf as *const (),
        b"trunc" => trunc as *const (),
        b"floorf" => floorf as *const (),
        b"floor" => floor as *const (),
        b"roundevenf" => roundevenf as *const (),
        b"roundeven" => roundeven as *const (),
        b"ceilf" => ceilf as *const (),
        b"ceil" => ceil as *const (),
        b"rintf" => rintf as *const (),
        b"rint" => rint as *const (),
        b"roundf" => roundf as *const (),
        b"round" => round as *const (),
        b"fminf" => fminf as *const (),
        b"fmin" => fmin as *const (),
        b"fmaxf" => fmaxf as *const (),
        b"fmax" => fmax as *const (),
        b"fmaf" => fmaf as *const (),
        b"fma" => fma as *const (),
        b"nearbyintf" => rintf as *const (),
        b"nearbyint" => rint as *const (),
        b"memcpy" => memcpy as *const (),
        b"memset" => memset as *const (),
        b"__truncsfhf2" => narrow_f32 as *const (),
        b"__truncdfhf2" => narrow_f64 as *const (),
        b"__extendhfsf2" => widen_f32 as *const (),
        b"__truncsfbf2" => narrow_bf16 as *const (),
        _ => return None,
    };
    Some(function as u64)
}
