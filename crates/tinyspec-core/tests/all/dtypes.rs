//! Every basic method in every dtype it takes: the devices agree, and small floats are rounded once.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::{DType, float};

const FLOATS: [DType; 6] = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64];
const INTS: [DType; 8] = [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

type Function = fn(&Tensor, &Tensor) -> Tensor;

/// Small whole numbers are the same in every dtype; `y` has no 0.
fn operands(dtype: DType) -> (Tensor, Tensor) {
    let of = |data: [i32; 8]| Tensor::from_slice(&data, [2, 4]).cast(dtype).contiguous();
    (of([3, 0, 5, 1, 7, 2, 6, 4]), of([2, 1, 3, 5, 1, 4, 2, 7]))
}

fn on(device: &str, dtype: DType, function: Function) -> Result<(DType, Vec<f64>), Error> {
    with_default_device::<_, Error>(device, || {
        let (x, y) = operands(dtype);
        let result = function(&x, &y);
        Ok((result.dtype(), result.cast(DType::F64).to_vec::<f64>()?))
    })
}

fn agree(dtypes: &[DType], functions: &[(&str, Function)], places: f64) {
    for (name, function) in functions {
        for &dtype in dtypes {
            let of = |device| {
                on(device, dtype, *function).unwrap_or_else(|error| panic!("{name} {dtype} {device}: {error}"))
            };
            let ((given, cpu), (same, interpreter)) = (of("cpu"), of("interpreter"));
            assert_eq!(given, same, "{name} {dtype}");
            for (cpu, interpreter) in cpu.iter().zip(&interpreter) {
                let near = (cpu - interpreter).abs() <= places * epsilon(given) * interpreter.abs();
                let same = cpu == interpreter || cpu.is_nan() && interpreter.is_nan();
                assert!(same || near, "{name} {dtype}: {cpu} on the cpu, {interpreter} on the interpreter");
            }
        }
    }
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F8E4M3 => 0.125,
        DType::F8E5M2 => 0.25,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 => 2f64.powi(-23),
        _ => 2f64.powi(-52),
    }
}

macro_rules! functions {
    ($($name:ident: |$x:pat_param, $y:pat_param| $body:expr;)*) => {
        &[$((stringify!($name), |$x: &Tensor, $y: &Tensor| $body)),*]
    };
}

#[test]
fn numbers_of_every_dtype_give_the_same_on_every_device() {
    let every: Vec<DType> = FLOATS.into_iter().chain(INTS).collect();
    agree(
        &every,
        functions! {
            add: |x, y| x + y;  sub: |x, y| (x + 8) - y;  mul: |x, y| x * y;  maximum: |x, y| x.maximum(y);
            minimum: |x, y| x.minimum(y);  modulo: |x, y| x.modulo(y);  fmod: |x, y| x.fmod(y);  lt: |x, y| x.lt(y);
            ge: |x, y| x.ge(y);  eq: |x, y| x.eq(y);  where_: |x, y| x.gt(y).where_(x, y);  sum: |x, _| x.sum(1, false);
            prod: |x, _| (x + 1).at((.., 0..2)).prod(1, false);  max: |x, _| x.max(1, false);  min: |x, _| x.min(0, false);
            cumsum: |x, _| x.cumsum(1);  cummax: |x, _| x.cummax(1);  argmax: |x, _| x.argmax(1);  argmin: |x, _| x.argmin(1);
            sort: |x, _| x.sort(1, false)[0].clone();  argsort: |x, _| x.argsort(1, true);  topk: |x, _| x.topk(2, 1, true)[0].clone();
            matmul: |x, y| x.matmul(y.transpose(0, 1));  gather: |x, _| x.gather(Tensor::from_slice(&[0i32, 3, 2, 1], [2, 2]), 1);
            scatter_add: |x, y| x.scatter_add(Tensor::from_slice(&[0i32, 0, 2, 1], [2, 2]), y.at((.., 1..3)), 1);
            index: |x, _| x.at(Tensor::from_slice(&[1i32, -1, 0], [3]));  slice: |x, _| x.at((.., -1)).clone();
            cat: |x, y| Tensor::cat(&[x, y], 0);  stack: |x, y| Tensor::stack(&[x, y], 1);  flip: |x, _| x.flip([0, 1]);
            pad: |x, _| x.pad([0, 1], [3, 6], 1.0);  triu: |x, _| x.triu(0);  roll: |x, _| x.roll([1], [1]);
            any: |x, _| x.any(1, false);  all: |x, _| x.all(1, false);  abs: |x, _| x.abs();  sign: |x, _| x.sign();
            mean: |x, _| x.mean(1, false);  div: |x, y| x / y;  one_hot: |x, _| x.cast(DType::I32).one_hot(8);
            median: |x, _| x.median(1, false);  diff: |x, _| x.cumsum(1).diff(1, 1);  unfold: |x, _| x.unfold(1, 2, 1);
            max_pool: |x, _| x.max_pool1d([2], tinyspec_ir::ops::default());  kron: |x, y| x.at(0).kron(y.at(1));
            masked_fill: |x, y| x.masked_fill(x.gt(y), 1);  count_nonzero: |x, _| x.count_nonzero(1, false);
            to_f16: |x, _| x.cast(DType::F16);  to_i8: |x, _| x.cast(DType::I8);  to_bool: |x, _| x.cast(DType::Bool);
            to_e4m3: |x, _| x.cast(DType::F8E4M3);  to_u64: |x, _| x.cast(DType::U64);  bits: |x, _| x.bitcast(DType::U8);
            set: |x, y| { let mut z = x.clone(); z.set((.., 1..3), y.at((.., 0..2))); z };
        },
        0.0,
    );
}

#[test]
fn functions_of_floats_agree_within_places() {
    agree(
        &FLOATS,
        functions! {
            exp: |x, _| x.exp();  exp2: |x, _| x.exp2();  log: |_, y| y.log();  log10: |_, y| y.log10();  sqrt: |x, _| x.sqrt();
            rsqrt: |_, y| y.rsqrt();  reciprocal: |_, y| y.reciprocal();  sin: |x, _| x.sin();  tanh: |x, _| x.tanh();
            erf: |x, _| x.erf();  pow: |x, y| x.pow(y);  sigmoid: |x, _| x.sigmoid();  gelu: |x, _| x.gelu();
            gelu_erf: |x, _| x.gelu_erf();  softmax: |x, _| x.softmax(1);  log_softmax: |x, _| x.log_softmax(1);
            logsumexp: |x, _| x.logsumexp(1, false);  var: |x, _| x.var(1, 1, false);  std: |x, _| x.std(1, 1, false);
            layer_norm: |x, y| x.layer_norm(y.at(0), y.at(1), 1, 1e-3);  norm: |x, _| x.norm(2.0, 1, false);
            interpolate: |x, _| x.interpolate([6], "linear", false);  sdpa: |x, y| x.sdpa(y, x, false);
            mse_loss: |x, y| x.mse_loss(y, "mean");  atan2: |x, y| x.atan2(y);  log1p: |x, _| x.log1p();
        },
        // The interpreter rounds the exponent of e^6, 3.2 places of f64; the CPU does not.
        4.0,
    );
}

#[test]
fn integers_have_bits() {
    agree(
        &INTS,
        functions! {
            and: |x, y| x & y;  or: |x, y| x | y;  xor: |x, y| x ^ y;  not: |x, _| x.not();  shl: |x, y| x << y;  shr: |x, y| x >> y;
            idiv: |x, y| x.idiv(y, "floor");  imod: |x, y| x.imod(y, "trunc");  bincount: |x, _| x.bincount(8);
            zero_divided: |x, y| x.idiv(y - y, "floor");  embedding: |x, y| x.embedding(y.flatten(0, -1));
        },
        0.0,
    );
    agree(
        &[DType::Bool],
        functions! {
            and: |x, y| x & y;  or: |x, y| x | y;  xor: |x, y| x ^ y;  not: |x, _| x.not();  sum: |x, _| x.sum(1, false);
            max: |x, _| x.max(1, false);  cat: |x, y| Tensor::cat(&[x, y], 0);  sort: |x, _| x.sort(1, false)[0].clone();
            cumsum: |x, _| x.cumsum(1);  mul: |x, y| x * y;  at: |x, _| x.at((0, 1..3));  mean: |x, _| x.mean(1, false);
            argmax: |x, _| x.argmax(1);  where_: |x, y| x.where_(y, x);  matmul: |x, y| x.matmul(y.transpose(0, 1));
        },
        0.0,
    );
}

/// What PyTorch does too: computed in f32, rounded to the dtype at the end.
#[test]
fn small_floats_are_rounded_once() -> Result<(), Error> {
    let values = [-7.25f32, -1.25, 0.5, 3.25, 4.75, 0.125];
    type Unary = fn(&Tensor) -> Tensor;
    let functions: [(&str, Unary); 7] = [
        ("exp", |x| x.exp()),
        ("log", |x| x.abs().log()),
        ("log10", |x| x.abs().log10()),
        ("rsqrt", |x| x.abs().rsqrt()),
        ("softmax", |x| x.softmax(0)),
        ("log_softmax", |x| x.log_softmax(0)),
        ("var", |x| x.var(0, 1, false)),
    ];
    for dtype in [DType::F16, DType::BF16] {
        let x = Tensor::from_slice(&values, [values.len()]).cast(dtype);
        for (name, function) in functions {
            let got = function(&x).cast(DType::F64).to_vec::<f64>()?;
            let wide = function(&x.cast(DType::F32)).to_vec::<f32>()?;
            let round = |value: &f32| float::from_bits(dtype, float::to_bits(dtype, f64::from(*value)));
            assert_eq!(got, wide.iter().map(round).collect::<Vec<_>>(), "{name} {dtype}");
        }
    }
    Ok(())
}
