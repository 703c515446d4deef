//! How far elementary functions are from what is right, in units of the last place: `docs/accuracy.md` says so, and this
//! holds it to that. All inputs of the narrow floats are tried, of f32 and f64 patterns spread over the whole format.
//!
//! `TINYSPEC_ULP=exp,sin` tries all 2³² inputs of f32 of these functions (minutes each); with `TINYSPEC_BLESS=1` the table is
//! written anew.

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::{DType, float};

struct Function {
    name: &'static str,
    method: fn(&Tensor) -> Tensor,
    /// In f64, where the standard library is right to the last place but one.
    reference: fn(f64) -> f64,
}

macro_rules! functions {
    ($($name:ident: $reference:expr;)*) => {
        &[$(Function { name: stringify!($name), method: |x| x.$name(), reference: $reference }),*]
    };
}

/// `e^(-x²)`, the exponent in two parts: its rounding would count.
fn bell(x: f64) -> f64 {
    let coarse = (x * 16.0).floor() / 16.0;
    (-coarse * coarse).exp() * (-(x - coarse) * (x + coarse)).exp()
}

/// By its series of positive terms, and one less a continued fraction.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() || x == 0.0 {
        return x;
    }
    if a >= 1.0 {
        let fraction = (1..400).rev().fold(a, |rest, k| a + f64::from(k) / 2.0 / rest);
        let rest = if a > 28.0 { 0.0 } else { bell(a) / fraction / std::f64::consts::PI.sqrt() };
        return (1.0 - rest).copysign(x);
    }
    let (mut sum, mut term, mut n) = (0.0, a, 1.0);
    while term > 1e-20 * a {
        sum += term;
        n += 2.0;
        term *= 2.0 * a * a / n;
    }
    (sum * bell(a) * std::f64::consts::FRAC_2_SQRT_PI).copysign(x)
}

/// Below one half as the rest of [`erf`], above it by the continued fraction.
fn erfc(x: f64) -> f64 {
    match x {
        x if x > 28.0 => 0.0,
        x if x >= 0.75 => {
            let fraction = (1..400).rev().fold(x, |rest, k| x + f64::from(k) / 2.0 / rest);
            bell(x) / fraction / std::f64::consts::PI.sqrt()
        }
        x => 1.0 - erf(x),
    }
}

/// By Newton's steps, which square the distance each.
fn erfinv(y: f64) -> f64 {
    let a = y.abs();
    if !(1e-4..1.0).contains(&a) {
        let series = y * std::f64::consts::PI.sqrt() / 2.0 * (1.0 + std::f64::consts::PI * y * y / 12.0);
        return match a {
            a if a < 1e-4 => series,
            1.0 => f64::INFINITY.copysign(y),
            _ => f64::NAN,
        };
    }
    // Winitzki's guess.
    let logarithm = (-a * a).ln_1p();
    let middle = 2.0 / (std::f64::consts::PI * 0.147) + logarithm / 2.0;
    let mut x = ((middle * middle - logarithm / 0.147).sqrt() - middle).sqrt();
    for _ in 0..3 {
        let distance = if x < 0.75 { erf(x) - a } else { (1.0 - a) - erfc(x) };
        x -= distance * std::f64::consts::PI.sqrt() / 2.0 * (x * x).exp();
    }
    x.copysign(y)
}

/// The sum of `(x/2)^2k / k!²`, and beyond what that is short of, its asymptotic series.
fn i0(x: f64) -> f64 {
    let a = x.abs();
    if a.is_infinite() {
        return a;
    }
    let (mut sum, mut term) = (1.0, 1.0);
    if a < 30.0 {
        for k in 1..90 {
            let k = f64::from(k);
            term *= (a / 2.0 / k) * (a / 2.0 / k);
            sum += term;
        }
        return sum;
    }
    for k in 1..20 {
        let odd = f64::from(2 * k - 1);
        term *= odd * odd / (8.0 * f64::from(k) * a);
        sum += term;
    }
    let half = (a / 2.0).exp();
    half * (sum / (2.0 * std::f64::consts::PI * a).sqrt()) * half
}

/// Moves `x` up to 16 or more, by `take` for each number on the way; then the start and the terms of Stirling's series.
fn stirling(x: f64, mut take: impl FnMut(f64), terms: [f64; 7]) -> (f64, f64) {
    let mut x = x;
    while x < 16.0 {
        take(x);
        x += 1.0;
    }
    (x, terms.iter().rev().fold(0.0, |sum, term| sum / (x * x) + term))
}

fn digamma(x: f64) -> f64 {
    if x < 0.5 {
        let rest = x - x.round();
        return if x == 0.0 {
            -1.0 / x
        } else if rest == 0.0 {
            f64::NAN
        } else {
            digamma(1.0 - x) - std::f64::consts::PI / (std::f64::consts::PI * rest).tan()
        };
    }
    let mut less = 0.0;
    let terms = [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32_760.0, 1.0 / 12.0];
    let (x, series) = stirling(x, |x| less += 1.0 / x, terms);
    x.ln() - 0.5 / x - series / (x * x) - less
}

/// `ζ(k)` for k from 2 on: sums to the twentieth term, and what is left of them (Euler and Maclaurin).
fn zeta() -> &'static [f64] {
    static VALUES: std::sync::OnceLock<Vec<f64>> = std::sync::OnceLock::new();
    VALUES.get_or_init(|| {
        let of = |k: i32| {
            let (end, power) = (20f64, f64::from(k));
            let rest = end.powi(1 - k) / (power - 1.0) - end.powi(-k) / 2.0 + power * end.powi(-k - 1) / 12.0
                - power * (power + 1.0) * (power + 2.0) * end.powi(-k - 3) / 720.0;
            (1..=20).rev().map(|n| f64::from(n).powi(-k)).sum::<f64>() + rest
        };
        (2..62).map(of).collect()
    })
}

/// Near its roots 1 and 2 by its series there, elsewhere by Stirling's, to the left by reflection.
fn lgamma(x: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    match x {
        x if x.is_nan() => x,
        x if x.is_infinite() => f64::INFINITY,
        x if x < 0.5 => {
            let sine = (std::f64::consts::PI * (x - x.round())).sin().abs();
            let near = if x.abs() < 1e-300 { return -x.abs().ln() } else { std::f64::consts::PI.ln() - sine.ln() };
            near - lgamma(1.0 - x)
        }
        x if x < 1.5 => {
            let z = x - 1.0;
            let terms = (2..62).zip(zeta()).rev();
            terms.fold(0.0, |sum, (k, zeta)| {
                (sum + if k % 2 == 0 { zeta / f64::from(k) } else { -zeta / f64::from(k) }) * z
            }) * z
                - EULER * z
        }
        x if x < 2.5 => lgamma(x - 1.0) + (x - 2.0).ln_1p(),
        x => {
            let terms =
                [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0, 1.0 / 156.0];
            let mut product = 1.0;
            let (large, series) = stirling(x, |x| product *= x, terms);
            let main = (large - 0.5) * (large.ln() - 1.0) + (2.0 * std::f64::consts::PI).ln() / 2.0 - 0.5;
            main + series / large - f64::ln(product)
        }
    }
}

/// What is measured against a series that is right to some places of f64: what narrower floats are off by shows, not what f64 is.
const BY_SERIES: &[Function] = functions! {
    erfc: erfc;
    ndtr: |x| erfc(-x * std::f64::consts::FRAC_1_SQRT_2) / 2.0;
    erfinv: erfinv;
    i0: i0;
    digamma: digamma;
    lgamma: lgamma;
};

const FUNCTIONS: &[Function] = functions! {
    reciprocal: f64::recip;
    sqrt: f64::sqrt;
    rsqrt: |x| 1.0 / x.sqrt();
    exp2: f64::exp2;
    exp: f64::exp;
    exp10: |x| 10f64.powf(x);
    expm1: f64::exp_m1;
    log2: f64::log2;
    log: f64::ln;
    log10: f64::log10;
    log1p: f64::ln_1p;
    sin: f64::sin;
    cos: f64::cos;
    tan: f64::tan;
    asin: f64::asin;
    acos: f64::acos;
    atan: f64::atan;
    sinh: f64::sinh;
    cosh: f64::cosh;
    tanh: f64::tanh;
    asinh: |x| if x.abs() < 1e150 { x.asinh() } else { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) };
    acosh: |x| match x {
        x if x < 1.0 => f64::NAN,
        x if x < 1e150 => (x - 1.0 + ((x - 1.0) * (x + 1.0)).sqrt()).ln_1p(),
        x => x.ln() + std::f64::consts::LN_2,
    };
    atanh: |x| x.abs().atanh().copysign(x);
    erf: erf;
    sigmoid: |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    softplus: |x| x.max(0.0) + (-x.abs()).exp().ln_1p();
};

const DTYPES: [DType; 6] = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64];

/// Every function, and the dtypes that it is measured in.
fn all_functions() -> impl Iterator<Item = (&'static Function, &'static [DType])> {
    let narrow = &DTYPES[..DTYPES.len() - 1];
    FUNCTIONS
        .iter()
        .map(|function| (function, &DTYPES[..]))
        .chain(BY_SERIES.iter().map(move |function| (function, narrow)))
}

/// Digits after the point, the exponents of the least and of the greatest finite number, and that number.
fn format(dtype: DType) -> (i32, i32, f64) {
    match dtype {
        DType::F8E4M3 => (3, -9, 448.0),
        DType::F8E5M2 => (2, -16, 57344.0),
        DType::F16 => (10, -24, 65504.0),
        DType::BF16 => (7, -133, f64::from(f32::from_bits(0x7f7f_0000))),
        DType::F32 => (23, -149, f64::from(f32::MAX)),
        _ => (52, -1074, f64::MAX),
    }
}

/// Distance in units of the last place of `want`. Beyond the greatest number is one place more than it; what the format has
/// no number for must be what the language makes of it.
fn ulps(dtype: DType, got: f64, want: f64) -> f64 {
    if got == want {
        return 0.0;
    }
    let (digits, least, greatest) = format(dtype);
    let place = |value: f64| power_of_two((((value.to_bits() >> 52) & 0x7ff) as i32 - 1023 - digits).max(least));
    let end = greatest + place(greatest);
    let end = if end.is_finite() { end } else { greatest };
    if !got.is_finite() || want.is_nan() || want.abs() > greatest {
        let rounded = float::from_bits(dtype, float::to_bits(dtype, want));
        if rounded.is_nan() || got.is_nan() {
            return if rounded.is_nan() == got.is_nan() { 0.0 } else { f64::INFINITY };
        }
    }
    let (got, want) = (got.clamp(-end, end), want.clamp(-end, end));
    (got - want).abs() / if want == 0.0 { power_of_two(least) } else { place(want) }
}

fn power_of_two(exponent: i32) -> f64 {
    if exponent < -1022 { f64::from(exponent).exp2() } else { f64::from_bits(((exponent + 1023) as u64) << 52) }
}

/// The greatest distance of these inputs, and where it is.
fn worst(function: &Function, dtype: DType, bytes: &[u8], count: usize) -> Result<(f64, f64), Error> {
    let x = Tensor::from_bytes(dtype, bytes, &[count as i64]);
    let read = |tensor: Tensor| -> Result<Vec<f64>, Error> {
        Ok(match dtype {
            DType::F64 => tensor.to_vec::<f64>()?,
            _ => tensor.cast(DType::F32).to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        })
    };
    let got = read((function.method)(&x))?;
    let mut worst = (0.0, 0.0);
    for (x, got) in read(x)?.into_iter().zip(got) {
        let distance = ulps(dtype, got, (function.reference)(x));
        if distance > worst.0 {
            worst = (distance, x);
        }
    }
    Ok(worst)
}

/// Where `tanh`, `softplus`, `expm1` and `cosh` are furthest off, of all inputs: the patterns miss it.
const WORST: [f32; 3] = [0.498_123_74, -86.643_94, 88.029_3];

/// Bit patterns over the whole format: all of them, or as many as that.
fn inputs(dtype: DType) -> (Vec<u8>, usize) {
    match dtype {
        DType::F8E4M3 | DType::F8E5M2 => ((0..=255).collect(), 256),
        DType::F16 | DType::BF16 => ((0..=u16::MAX).flat_map(u16::to_le_bytes).collect(), 1 << 16),
        DType::F32 => {
            let patterns: Vec<u32> = (0..=u32::MAX).step_by(8191).chain(WORST.map(f32::to_bits)).collect();
            (patterns.iter().flat_map(|pattern| pattern.to_le_bytes()).collect(), patterns.len())
        }
        _ => {
            // Of each exponent the same number, but more of those that functions change in.
            let mut state = 9u64;
            let mut values: Vec<f64> = vec![];
            for round in 0..200_000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let value = f64::from_bits(state ^ state >> 29);
                let share = (state >> 11) as f64 / (1u64 << 53) as f64;
                values.push(match round % 4 {
                    0 => value,
                    1 => share * 40.0 - 20.0,
                    2 => share * 2.0 - 1.0,
                    _ => share * 1500.0 - 750.0,
                });
            }
            (values.iter().flat_map(|value| value.to_le_bytes()).collect(), values.len())
        }
    }
}

const PAGE: &str = "../../docs/accuracy.md";
const ENDS: [&str; 2] = ["<!-- ulps -->\n", "<!-- end of ulps -->"];

fn page() -> (String, String, String) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).expect("the page is there");
    let (before, rest) = text.split_once(ENDS[0]).expect("the table begins");
    let (table, after) = rest.split_once(ENDS[1]).expect("the table ends");
    (before.to_string(), table.to_string(), after.to_string())
}

/// What the page says of a function, a dtype after the other.
fn stated(table: &str, name: &str) -> Option<Vec<f64>> {
    let row = table.lines().find(|line| line.starts_with(&format!("| `{name}` |")))?;
    row.split('|').skip(2).map_while(|cell| cell.trim().parse().ok()).map(Some).collect()
}

/// A little more than was found: the inputs of the wide formats are not all.
fn bound(dtype: DType, found: f64) -> f64 {
    let step = if matches!(dtype, DType::F32 | DType::F64) { 2.0 } else { 100.0 };
    (found * step).ceil() / step
}

#[test]
fn the_table_of_distances_is_true() -> Result<(), Error> {
    let (before, table, after) = page();
    let blessed = std::env::var_os("TINYSPEC_BLESS").is_some();
    let mut new = format!("| function | {} |\n|---|", DTYPES.map(|dtype| dtype.name()).join(" | "));
    new += &"---|".repeat(DTYPES.len());
    new.push('\n');
    for (function, dtypes) in all_functions() {
        let mut found = vec![];
        for &dtype in dtypes {
            let (bytes, count) = inputs(dtype);
            let worst = with_default_device::<_, Error>("cpu", || worst(function, dtype, &bytes, count))?;
            println!("{} {dtype}: {:.3} at {:e}", function.name, worst.0, worst.1);
            found.push(worst);
        }
        let bounds = dtypes.iter().zip(&found).map(|(&dtype, (found, _))| bound(dtype, *found).to_string());
        let mut cells: Vec<String> = bounds.collect();
        cells.resize(DTYPES.len(), String::new());
        let _ = writeln!(new, "| `{}` | {} |", function.name, cells.join(" | "));
        if !blessed {
            let stated = stated(&table, function.name).unwrap_or_else(|| panic!("no row for {}", function.name));
            assert_eq!(stated.len(), dtypes.len(), "the row of {}", function.name);
            for ((dtype, (distance, x)), stated) in dtypes.iter().zip(found).zip(stated) {
                let name = function.name;
                assert!(distance <= stated, "{name}({x:e}) of {dtype} is {distance} ulp off, the page says {stated}");
                assert!(distance > 0.0 || stated == 0.0, "{name} of {dtype} is exact, the page says {stated}");
            }
        }
    }
    if blessed {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
        std::fs::write(path, [&before, ENDS[0], &new, ENDS[1], &after].concat()).expect("written");
    }
    Ok(())
}

#[test]
fn all_inputs_of_what_is_asked_for() -> Result<(), Error> {
    let Ok(names) = std::env::var("TINYSPEC_ULP") else { return Ok(()) };
    let (_, table, _) = page();
    for name in names.split(',') {
        let function = all_functions().map(|(function, _)| function).find(|function| function.name == name);
        let function = function.expect("a function of the table");
        let stated = stated(&table, name).expect("a row of the table")[4];
        const PART: u64 = 1 << 22;
        let (next, worst_of_all) = (AtomicU64::new(0), Mutex::new((0.0, 0.0)));
        let work = || -> Result<(), Error> {
            loop {
                let first = next.fetch_add(PART, Ordering::Relaxed);
                if first >> 32 != 0 {
                    return Ok(());
                }
                let bytes: Vec<u8> = (first..first + PART).flat_map(|pattern| (pattern as u32).to_le_bytes()).collect();
                let found =
                    with_default_device::<_, Error>("cpu", || worst(function, DType::F32, &bytes, PART as usize))?;
                let mut worst_of_all = worst_of_all.lock().expect("no thread panics");
                if found.0 > worst_of_all.0 {
                    *worst_of_all = found;
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            all.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        let worst_of_all = worst_of_all.into_inner().expect("no thread panics");
        println!("{name}, all 2^32 inputs: {:.3} ulp at {:e}", worst_of_all.0, worst_of_all.1);
        assert!(worst_of_all.0 <= stated, "{name}({:e}) is {} ulp off", worst_of_all.1, worst_of_all.0);
    }
    Ok(())
}

/// Of two operands: quotients are rounded once, powers are not.
#[test]
fn quotients_and_powers() -> Result<(), Error> {
    let mut state = 5u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state ^ state >> 29) as u32
    };
    let pairs: Vec<[f32; 2]> = (0..400_000).map(|_| [f32::from_bits(next()), f32::from_bits(next())]).collect();
    let bases: Vec<[f32; 2]> = (0..400_000).map(|_| [next() as f32 / 1e8, next() as f32 / 4e8 - 5.0]).collect();
    let far: Vec<[f32; 2]> = (0..400_000).map(|_| [next() as f32 / 1e8, next() as f32 / 1e8 - 21.0]).collect();
    type Case<'c> = (&'c str, fn(&Tensor, &Tensor) -> Tensor, fn(f64, f64) -> f64, &'c [[f32; 2]], f64);
    let cases: [Case; 5] = [
        ("div", |x, y| x.div(y), |x, y| x / y, &pairs, 0.5),
        ("pow", |x, y| x.pow(y), f64::powf, &bases, 1.5),
        ("pow", |x, y| x.pow(y), f64::powf, &far, 1.5),
        ("atan2", |x, y| x.atan2(y), f64::atan2, &pairs, 3.0),
        ("hypot", |x, y| x.hypot(y), f64::hypot, &pairs, 2.0),
    ];
    for (name, method, reference, pairs, bound) in cases {
        let (x, y): (Vec<f32>, Vec<f32>) = pairs.iter().map(|pair| (pair[0], pair[1])).unzip();
        let (left, right) = (Tensor::from_slice(&x, [x.len()]), Tensor::from_slice(&y, [y.len()]));
        let got = with_default_device::<_, Error>("cpu", || method(&left, &right).to_vec::<f32>())?;
        let distances = got
            .iter()
            .zip(x.iter().zip(&y))
            .map(|(&got, (&x, &y))| (ulps(DType::F32, got.into(), reference(x.into(), y.into())), x, y));
        let worst = distances.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are pairs");
        println!("{name}: {:.3} at {:e}, {:e}", worst.0, worst.1, worst.2);
        assert!(worst.0 <= bound, "{name}({:e}, {:e}) is {} ulp off", worst.1, worst.2, worst.0);
    }
    Ok(())
}

/// Conversions to narrow floats are those of the language, of f32 patterns all over the format.
#[test]
fn conversions_round_once() -> Result<(), Error> {
    let patterns: Vec<u32> = (0..=u32::MAX).step_by(4093).collect();
    let values: Vec<f32> = patterns.iter().map(|&pattern| f32::from_bits(pattern)).collect();
    let x = Tensor::from_slice(&values, [values.len()]);
    for dtype in [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2] {
        let back = with_default_device::<_, Error>("cpu", || x.cast(dtype).cast(DType::F32).to_vec::<f32>())?;
        for (&value, got) in values.iter().zip(back) {
            let want = float::from_bits(dtype, float::to_bits(dtype, f64::from(value))) as f32;
            assert!(got == want || got.is_nan() && want.is_nan(), "{value:e} as {dtype}: {got:e} {want:e}");
        }
    }
    Ok(())
}
