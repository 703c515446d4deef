//! f32: round to nearest by the host's own arithmetic, which is IEEE; approximate functions give the nearest f32 of the exact
//! value, where hardware is a few units off ([`approximate`] says by how much at the most).

use super::{Long, Mode, Shape, WARP, Word};

/// The nan of every f32 result.
const NAN: u32 = 0x7fff_ffff;

#[inline(always)]
fn flushed<const FLUSH: bool>(bits: u32) -> u32 {
    if FLUSH && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

#[inline(always)]
fn operand<const FLUSH: bool>(bits: u32) -> f32 {
    f32::from_bits(flushed::<FLUSH>(bits))
}

#[inline(always)]
fn result<const FLUSH: bool, const SATURATE: bool>(value: f32) -> u32 {
    if SATURATE {
        // nan becomes 0.
        let low = if value > 0.0 { value } else { 0.0 };
        let value = if low < 1.0 { low } else { 1.0 };
        return flushed::<FLUSH>(value.to_bits());
    }
    if value.is_nan() { NAN } else { flushed::<FLUSH>(value.to_bits()) }
}

macro_rules! by_mode {
    ($shape:ident, $lanes:ident, $of:ty, $mode:expr) => {
        match ($mode.flush, $mode.saturate) {
            (false, false) => Shape::$shape($lanes::<$of, false, false>),
            (false, true) => Shape::$shape($lanes::<$of, false, true>),
            (true, false) => Shape::$shape($lanes::<$of, true, false>),
            (true, true) => Shape::$shape($lanes::<$of, true, true>),
        }
    };
}

trait One {
    fn of(a: f32) -> f32;
}

trait Two {
    fn of(a: f32, b: f32) -> f32;
}

fn one_lanes<O: One, const FLUSH: bool, const SATURATE: bool>(a: &Word, out: &mut Word) {
    for lane in 0..WARP {
        out[lane] = result::<FLUSH, SATURATE>(O::of(operand::<FLUSH>(a[lane])));
    }
}

fn two_lanes<O: Two, const FLUSH: bool, const SATURATE: bool>(a: &Word, b: &Word, out: &mut Word) {
    for lane in 0..WARP {
        out[lane] = result::<FLUSH, SATURATE>(O::of(operand::<FLUSH>(a[lane]), operand::<FLUSH>(b[lane])));
    }
}

#[inline(always)]
fn fused_lanes<const FLUSH: bool, const SATURATE: bool>(a: &Word, b: &Word, c: &Word, out: &mut Word) {
    for lane in 0..WARP {
        let [a, b, c] = [a[lane], b[lane], c[lane]].map(operand::<FLUSH>);
        out[lane] = result::<FLUSH, SATURATE>(a.mul_add(b, c));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fused_by_hardware<const FLUSH: bool, const SATURATE: bool>(a: &Word, b: &Word, c: &Word, out: &mut Word) {
    fused_lanes::<FLUSH, SATURATE>(a, b, c, out);
}

fn fused<const FLUSH: bool, const SATURATE: bool>() -> Shape {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has both.
        return Shape::WWWW(|a, b, c, out| unsafe { fused_by_hardware::<FLUSH, SATURATE>(a, b, c, out) });
    }
    Shape::WWWW(fused_lanes::<FLUSH, SATURATE>)
}

macro_rules! functions {
    ($kind:ident: $($name:ident($($operand:ident),*) $value:expr;)*) => {
        $(struct $name;
        impl $kind for $name {
            #[inline(always)]
            fn of($($operand: f32),*) -> f32 {
                $value
            }
        })*
    };
}

functions! { Two:
    Add(a, b) a + b;
    Subtract(a, b) a - b;
    Multiply(a, b) a * b;
    Divide(a, b) a / b;
    Minimum(a, b) if a.is_nan() { b } else if b.is_nan() || lies_below(a, b) { a } else { b };
    Maximum(a, b) if a.is_nan() { b } else if b.is_nan() || !lies_below(a, b) { a } else { b };
    MinimumNan(a, b) if a.is_nan() || b.is_nan() { f32::NAN } else if lies_below(a, b) { a } else { b };
    MaximumNan(a, b) if a.is_nan() || b.is_nan() { f32::NAN } else if lies_below(a, b) { b } else { a };
    DivideFast(a, b) divided_by_reciprocal(a, b);
}

functions! { One:
    Root(a) a.sqrt();
    Reciprocal(a) 1.0 / a;
    ReciprocalRoot(a) (1.0 / f64::from(a).sqrt()) as f32;
    Exponential(a) f64::from(a).exp2() as f32;
    Logarithm(a) f64::from(a).log2() as f32;
    Sine(a) f64::from(a).sin() as f32;
    Cosine(a) f64::from(a).cos() as f32;
    HyperbolicTangent(a) f64::from(a).tanh() as f32;
}

/// -0 lies below +0.
#[inline(always)]
fn lies_below(a: f32, b: f32) -> bool {
    a < b || (a == b && a.is_sign_negative())
}

/// `div.approx` multiplies by the reciprocal: for divisors from 2^126 on that is 0, or nan where infinity is divided.
fn divided_by_reciprocal(a: f32, b: f32) -> f32 {
    if b.abs() > f32::from_bits(0x7e80_0000) && b.is_finite() {
        return a * (0.0f32).copysign(b);
    }
    a / b
}

/// add, sub, mul, min, max of f32.
pub(in super::super) fn two(name: &str, mode: Mode) -> Option<Shape> {
    Some(match name {
        "add" => by_mode!(WWW, two_lanes, Add, mode),
        "sub" => by_mode!(WWW, two_lanes, Subtract, mode),
        "mul" => by_mode!(WWW, two_lanes, Multiply, mode),
        "div" if mode.approximate => by_mode!(WWW, two_lanes, DivideFast, mode),
        "div" => by_mode!(WWW, two_lanes, Divide, mode),
        "min" if mode.nan => by_mode!(WWW, two_lanes, MinimumNan, mode),
        "max" if mode.nan => by_mode!(WWW, two_lanes, MaximumNan, mode),
        "min" => by_mode!(WWW, two_lanes, Minimum, mode),
        "max" => by_mode!(WWW, two_lanes, Maximum, mode),
        _ => return None,
    })
}

/// fma of f32.
pub(in super::super) fn multiply_add(mode: Mode) -> Shape {
    match (mode.flush, mode.saturate) {
        (false, false) => fused::<false, false>(),
        (false, true) => fused::<false, true>(),
        (true, false) => fused::<true, false>(),
        (true, true) => fused::<true, true>(),
    }
}

/// On both halves of a register of 64 bits, rounded to nearest.
fn both(of: impl Fn(f32, f32, f32) -> f32, operands: [u64; 3]) -> u64 {
    let half = |shift: u32| {
        let [a, b, c] = operands.map(|bits| f32::from_bits((bits >> shift) as u32));
        u64::from(result::<false, false>(of(a, b, c)))
    };
    half(0) | half(32) << 32
}

fn both_lanes<O: Two>(a: &Long, b: &Long, out: &mut Long) {
    for lane in 0..WARP {
        out[lane] = both(|a, b, _| O::of(a, b), [a[lane], b[lane], 0]);
    }
}

/// Instructions of two f32 in each register.
pub(in super::super) fn pair(name: &str) -> Option<Shape> {
    Some(match name {
        "add" => Shape::LLL(both_lanes::<Add>),
        "sub" => Shape::LLL(both_lanes::<Subtract>),
        "mul" => Shape::LLL(both_lanes::<Multiply>),
        "fma" => Shape::LLLL(|a, b, c, out| {
            for lane in 0..WARP {
                out[lane] = both(f32::mul_add, [a[lane], b[lane], c[lane]]);
            }
        }),
        _ => return None,
    })
}

/// sqrt and rcp rounded to nearest.
pub(in super::super) fn one(name: &str, mode: Mode) -> Option<Shape> {
    Some(match name {
        "sqrt" => by_mode!(WW, one_lanes, Root, mode),
        "rcp" => by_mode!(WW, one_lanes, Reciprocal, mode),
        _ => return None,
    })
}

/// Approximate functions. Hardware errs, by the ISA document, at the most by: rcp 1 ulp, sqrt and rsqrt 2^-22 relative (2^-22.9
/// for rsqrt), ex2 2^-22 relative, lg2 2^-22 absolute around 1 and relative elsewhere, sin and cos 2^-20.5 absolute within
/// [-π, π], tanh 2^-11 relative. Here each is the nearest f32.
pub(in super::super) fn approximate(name: &str, mode: Mode) -> Option<Shape> {
    Some(match name {
        "rcp" => by_mode!(WW, one_lanes, Reciprocal, mode),
        "sqrt" => by_mode!(WW, one_lanes, Root, mode),
        "rsqrt" => by_mode!(WW, one_lanes, ReciprocalRoot, mode),
        "ex2" => by_mode!(WW, one_lanes, Exponential, mode),
        "lg2" => by_mode!(WW, one_lanes, Logarithm, mode),
        "sin" => by_mode!(WW, one_lanes, Sine, mode),
        "cos" => by_mode!(WW, one_lanes, Cosine, mode),
        "tanh" => by_mode!(WW, one_lanes, HyperbolicTangent, mode),
        _ => return None,
    })
}

/// abs, neg: of the sign bit alone.
pub(in super::super) fn sign(name: &str, mode: Mode) -> Option<Shape> {
    Some(match (name, mode.flush) {
        ("abs", false) => Shape::WW(|a, out| each(a, out, |a| a & 0x7fff_ffff)),
        ("abs", true) => Shape::WW(|a, out| each(a, out, |a| flushed::<true>(a) & 0x7fff_ffff)),
        ("neg", false) => Shape::WW(|a, out| each(a, out, |a| a ^ 0x8000_0000)),
        ("neg", true) => Shape::WW(|a, out| each(a, out, |a| flushed::<true>(a) ^ 0x8000_0000)),
        _ => return None,
    })
}

#[inline(always)]
fn each(a: &Word, out: &mut Word, of: impl Fn(u32) -> u32) {
    for lane in 0..WARP {
        out[lane] = of(a[lane]);
    }
}

/// `copysign`: the sign of the first operand, the value of the second.
pub(in super::super) fn copy_sign() -> Shape {
    Shape::WWW(|a, b, out| {
        for lane in 0..WARP {
            out[lane] = (a[lane] & 0x8000_0000) | (b[lane] & 0x7fff_ffff);
        }
    })
}
