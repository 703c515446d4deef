//! The programs, and which ops they are there for.

use crate::WORDS;
use tinyspec::collectives::{broadcast, gather};
use tinyspec::ir::Op::{self, *};
use tinyspec::prelude::*;

/// The form of a program that an op is seen in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The traced graph.
    Tensor,
    /// Calls of kernels.
    Schedule,
    /// A kernel, after any stage from Rangeify on.
    Kernel,
    /// A kernel in the order of its instructions.
    Linear,
    /// A kernel that is compiled.
    Program,
}

/// Ops, and a program that has them.
pub struct Row {
    pub ops: &'static [Op],
    pub form: Form,
    pub devices: &'static [&'static str],
    pub inputs: fn() -> Vec<Tensor>,
    pub program: fn(&[Tensor]) -> Vec<Tensor>,
    pub expected: fn() -> Vec<f64>,
}

/// The devices of docs/ops.md.
pub const ALL: &[&str] = &["interpreter", "cpu", "simt", "ptxsim:sm_80", "amdsim:gfx942"];

/// Those among them with workgroups.
const GPUS: &[&str] = &["simt", "ptxsim:sm_80", "amdsim:gfx942"];

const X: [f32; 6] = [1.5, -2.0, 3.0, -4.5, 5.0, -6.0];
const Y: [f32; 6] = [2.0, 0.5, -1.0, 4.0, 0.25, -3.0];
const A: [i32; 6] = [7, -3, 0, 100, -8, 5];
const B: [i32; 6] = [2, 2, 5, -7, 3, -1];

/// Two tensors of floats, 2×3.
fn floats() -> Vec<Tensor> {
    vec![Tensor::from_slice(&X, [2, 3]), Tensor::from_slice(&Y, [2, 3])]
}

fn integers() -> Vec<Tensor> {
    vec![Tensor::from_slice(&A, [6]), Tensor::from_slice(&B, [6])]
}

/// So many small whole numbers, as a dtype.
fn many(count: usize, dtype: DType) -> Tensor {
    let data: Vec<i32> = (0..count as i32).map(|i| i * 7 % 11 - 5).collect();
    Tensor::from_slice(&data, [count]).cast(dtype).realize().cloned().unwrap_or_else(|error| panic!("{error}"))
}

/// Of each pair of numbers.
fn each<T: Copy, U: Into<f64>>(a: [T; 6], b: [T; 6], f: impl Fn(T, T) -> U) -> Vec<f64> {
    a.into_iter().zip(b).map(|(a, b)| f(a, b).into()).collect()
}

#[function]
fn slopes<N>(_x: &Tensor<f32, 2, N>, g: &Tensor<f32, 2, N>, h: &Tensor<f32, N>) -> Tensor<f32, 2, N> {
    g * 2.0 + h
}

/// With a gradient of its own it stays a Function in graphs.
#[function(gradient = slopes)]
fn doubled<N>(x: &Tensor<f32, 2, N>) -> (Tensor<f32, 2, N>, Tensor<f32, N>) {
    (x * 2.0, x.sum(0, false))
}

uop! { <N>
    fn squared(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i] * x[i]; }
    }

    <N, K>
    fn counted(x: &Global<i32, N>, counts: &mut Global<i32, K>) {
        for i in global(N) {
            if x[i] >= 0 && x[i] < K as i32 { atomic_add(&mut counts[x[i]], 1); }
        }
    }

    <N>
    fn where_positive(x: &Global<f32, N>) -> (Global<f32, N> as y, Global<f32, N> as z) {
        for i in global(N) {
            y[i] = 0.0;
            z[i] = 0.0;
            if x[i] > 0.0 {
                y[i] = x[i] + 1.0;
                z[i] = x[i] * 2.0;
            }
        }
    }

    <N>
    fn reversed(x: &Global<f32, N, 8>) -> Global<f32, N, 8> as y {
        for i in global(N) {
            let mut s: Local<f32, 8>;
            for j in local(8) {
                s[j] = x[i, j];
                barrier();
                y[i, j] = s[7 - j];
            }
        }
    }

    <N>
    fn negated(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = unsafe { custom("%n = fneg {r} %0\n ret {r} %n", -x[i], x[i]) }; }
    }
}

pub const ROWS: &[Row] = &[
    Row {
        ops: &[Param, Const, Add, Mul],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| vec![&x[0] * 2.0 + &x[1]],
        expected: || each(X, Y, |x, y| x * 2.0 + y),
    },
    Row {
        ops: &[Permute, Flip, Reshape, Expand, Pad, Shrink],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| {
            let turned = x[0].permute([1, 0]).flip([0]).reshape([2, 3]);
            let part = turned.pad([1, 0], [3, 4], 0.0).shrink([0, 1], [2, 2]);
            vec![part.reshape([2, 2, 1]).expand([2, 2, 2])]
        },
        expected: || vec![0.0, 0.0, 0.0, 0.0, -6.0, -6.0, -2.0, -2.0],
    },
    Row {
        ops: &[Stack],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| vec![Tensor::stack(&[&x[0], &x[1]], 0)],
        expected: || X.into_iter().chain(Y).map(f64::from).collect(),
    },
    Row {
        ops: &[Index],
        form: Form::Tensor,
        devices: ALL,
        inputs: || vec![Tensor::from_slice(&X, [6]), Tensor::from_slice(&[5i32, 0, 6, 2], [4])],
        program: |x| vec![x[0].index0(&x[1])],
        expected: || vec![-6.0, 1.5, 0.0, 3.0],
    },
    Row {
        ops: &[Bitcast, And],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| vec![x[0].bitcast(DType::U32).and(0x7fff_ffffu32).bitcast(DType::F32)],
        expected: || each(X, Y, |x, _| x.abs()),
    },
    Row {
        ops: &[Trunc, Cast],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| vec![x[0].trunc().cast(DType::I32)],
        expected: || each(X, Y, |x, _| x as i32),
    },
    Row {
        ops: &[Reduce],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| vec![x[0].sum(1, false), x[0].max(1, false), x[0].prod(1, false)],
        expected: || vec![2.5, -5.5, 3.0, 5.0, -9.0, 135.0],
    },
    Row {
        ops: &[Function, Tuple, GetTuple],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| {
            let (twice, total) = doubled(&x[0]);
            vec![twice + total]
        },
        expected: || vec![0.0, -1.0, 3.0, -12.0, 13.0, -15.0],
    },
    Row {
        ops: &[Contiguous, ContiguousBackward, Detach],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| {
            let y = x[0].square().contiguous_backward().contiguous();
            let slopes = grad(&(&y * x[0].detach()).sum(.., false), &[&x[0]]);
            slopes.unwrap_or_else(|error| panic!("{error}")).into_iter().chain([y]).collect()
        },
        expected: || [each(X, Y, |x, _| 2.0 * x * x), each(X, Y, |x, _| x * x)].concat(),
    },
    Row {
        ops: &[Recip, Sqrt, Div, Max, CmpLt, Where],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| {
            let (x, y) = (&x[0], &x[1]);
            vec![y.reciprocal(), x.square().sqrt(), x / y, x.maximum(y), x.lt(y).where_(x, y)]
        },
        expected: || {
            let root = each(X, Y, |x, _| x.abs());
            [each(X, Y, |_, y| 1.0 / y), root, each(X, Y, |x, y| x / y), each(X, Y, f32::max), each(X, Y, f32::min)]
                .concat()
        },
    },
    Row {
        ops: &[Exp2, Log2, Sin, Pow],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| {
            let positive = x[0].square();
            vec![x[1].exp2(), positive.log2(), x[0].sin(), positive.pow(&x[1])]
        },
        expected: || {
            let of = |f: fn(f64, f64) -> f64| each(X, Y, |x, y| f(x.into(), y.into()));
            [of(|_, y| y.exp2()), of(|x, _| (x * x).log2()), of(|x, _| x.sin()), of(|x, y| (x * x).powf(y))].concat()
        },
    },
    Row {
        ops: &[Mod, Idiv, Xor, Or, Shr, Shl, CmpNe],
        form: Form::Tensor,
        devices: ALL,
        inputs: integers,
        program: |x| {
            let (a, b) = (&x[0], &x[1]);
            let numbers =
                [a.modulo(b), a.idiv(b, "floor"), a.xor(b), a.or(b), a.shr(2), a.shl(3), a.ne(b).cast(DType::I32)];
            numbers.to_vec()
        },
        expected: || {
            let floor = |a: i32, b: i32| f64::from(a).div_euclid(1.0) / f64::from(b);
            let quotient = move |a, b| floor(a, b).floor();
            let rest = move |a: i32, b: i32| f64::from(a) - quotient(a, b) * f64::from(b);
            let bits = [each(A, B, |a, b| a ^ b), each(A, B, |a, b| a | b)].concat();
            let shifts = [each(A, B, |a, _| a >> 2), each(A, B, |a, _| a << 3)].concat();
            [each(A, B, rest), each(A, B, quotient), bits, shifts, each(A, B, |a, b| (a != b) as i32)].concat()
        },
    },
    Row {
        // Counter and key of the published vectors; halves of 64 bits are exact in f64.
        ops: &[Threefry],
        form: Form::Tensor,
        devices: ALL,
        inputs: || {
            let of = |words: [u64; 3]| Tensor::from_slice(&words, [3]);
            vec![of([0, u64::MAX, 0x85a3_08d3_243f_6a88]), of([0, u64::MAX, 0x0370_7344_1319_8a2e])]
        },
        program: |x| {
            let bits = x[0].threefry(&x[1]);
            vec![bits.shr(32), bits.and(0xffff_ffffu64)]
        },
        expected: || {
            [0x99ba_4efeu32, 0xbb00_2be7, 0x483d_f7a0, 0x6b20_0159, 0x1cb9_96fc, 0xc492_3a9c].map(f64::from).to_vec()
        },
    },
    Row {
        ops: &[Mulacc],
        form: Form::Kernel,
        devices: ALL,
        // Long enough for several terms per thread.
        inputs: || vec![many(384, DType::F32), many(384, DType::F32)],
        program: |x| vec![x[0].reshape([4, 96]).matmul(x[1].reshape([96, 4]))],
        expected: || product(4, 96, 4),
    },
    Row {
        ops: &[Custom],
        form: Form::Linear,
        devices: ALL,
        inputs: || vec![Tensor::from_slice(&X, [6])],
        program: |x| vec![negated(&x[0])],
        expected: || each(X, Y, |x, _| -x),
    },
    Row {
        ops: &[CustomFunction, Call, Binary, After],
        form: Form::Tensor,
        devices: ALL,
        inputs: || vec![Tensor::from_slice(&X, [6])],
        program: |x| vec![squared(&(&x[0] + 1.0)) * 2.0],
        expected: || each(X, Y, |x, _| (x + 1.0) * (x + 1.0) * 2.0),
    },
    Row {
        ops: &[Buffer, Call, After, Sink],
        form: Form::Schedule,
        devices: ALL,
        inputs: floats,
        program: |x| vec![(&x[0] + 1.0).contiguous().sum(1, false)],
        expected: || vec![5.5, -2.5],
    },
    Row {
        ops: &[Range, End, Load, Store, Group, Index, Sink],
        form: Form::Kernel,
        devices: ALL,
        inputs: || vec![many(100, DType::F32)],
        program: |x| vec![&x[0] + 1.0, &x[0] * 2.0],
        expected: || {
            let x = (0..100).map(|i| f64::from(i * 7 % 11 - 5));
            x.clone().map(|x| x + 1.0).chain(x.map(|x| x * 2.0)).collect()
        },
    },
    Row {
        ops: &[Linear, Load, Store, Param, Sink],
        form: Form::Linear,
        devices: ALL,
        inputs: floats,
        program: |x| vec![&x[0] + &x[1]],
        expected: || each(X, Y, |x, y| x + y),
    },
    Row {
        ops: &[AtomicAdd],
        form: Form::Linear,
        devices: ALL,
        inputs: || vec![Tensor::from_slice(&A, [6]), Tensor::from_slice(&[10i32; 8], [8])],
        program: |x| {
            let mut counts = x[1].clone();
            counted(&x[0], &mut counts);
            vec![counts]
        },
        expected: || vec![11.0, 10.0, 10.0, 10.0, 10.0, 11.0, 10.0, 11.0],
    },
    Row {
        ops: &[If, Endif],
        form: Form::Linear,
        devices: ALL,
        inputs: || vec![Tensor::from_slice(&X, [6])],
        program: |x| {
            let (y, z) = where_positive(&x[0]);
            vec![y, z]
        },
        expected: || {
            let of = |f: fn(f32) -> f32| each(X, Y, |x, _| if x > 0.0 { f(x) } else { 0.0 });
            [of(|x| x + 1.0), of(|x| x * 2.0)].concat()
        },
    },
    Row {
        ops: &[Barrier],
        form: Form::Linear,
        devices: GPUS,
        inputs: || vec![many(40, DType::F32)],
        program: |x| vec![reversed(&x[0].reshape([5, 8]))],
        expected: || (0..40).map(|at| f64::from((at / 8 * 8 + 7 - at % 8) * 7 % 11 - 5)).collect(),
    },
    Row {
        ops: &[Barrier],
        form: Form::Kernel,
        devices: ALL,
        inputs: || vec![many(40, DType::F32)],
        program: |x| vec![reversed(&x[0].reshape([5, 8]))],
        expected: || (0..40).map(|at| f64::from((at / 8 * 8 + 7 - at % 8) * 7 % 11 - 5)).collect(),
    },
    Row {
        // Threads share the sum, and those beyond the end take no part.
        ops: &[Special, Barrier, If, Endif],
        form: Form::Linear,
        devices: GPUS,
        inputs: || vec![many(1999, DType::F32)],
        program: |x| vec![x[0].sum(0, true), &x[0] + 1.0],
        expected: || {
            let x = (0..1999).map(|i| f64::from(i * 7 % 11 - 5));
            std::iter::once(x.clone().sum()).chain(x.map(|x| x + 1.0)).collect()
        },
    },
    Row {
        ops: &[Ins],
        form: Form::Linear,
        devices: &[WORDS],
        inputs: || vec![many(64, DType::F32)],
        program: |x| vec![x[0].exp2()],
        expected: || (0..64).map(|i| f64::from(i * 7 % 11 - 5).exp2()).collect(),
    },
    Row {
        ops: &[Wmma],
        form: Form::Linear,
        devices: &[WORDS],
        inputs: || vec![many(32 * 64, DType::I16), many(64 * 48, DType::I16)],
        program: |x| {
            let (a, b) = (x[0].reshape([32, 64]), x[1].reshape([64, 48]));
            vec![a.cast(DType::I32).matmul(b.cast(DType::I32))]
        },
        expected: || product(32, 64, 48),
    },
    Row {
        ops: &[Replicated, Load],
        form: Form::Tensor,
        devices: ALL,
        inputs: floats,
        program: |x| {
            let both = broadcast(&x[0], ["interpreter:0", "interpreter:1"]);
            vec![gather(&(&both + &both))]
        },
        expected: || each(X, Y, |x, _| x * 2.0),
    },
    Row {
        ops: &[Program, Linear, Source, Binary],
        form: Form::Program,
        devices: ALL,
        inputs: floats,
        program: |x| vec![(&x[0] + &x[1]).sum(.., false)],
        expected: || vec![f64::from(X.iter().chain(&Y).sum::<f32>())],
    },
];

/// What [`many`] numbers as matrices give.
fn product(rows: usize, terms: usize, columns: usize) -> Vec<f64> {
    let number = |at: usize| f64::from(at as i32 * 7 % 11 - 5);
    let element = |at: usize| {
        let (row, column) = (at / columns, at % columns);
        (0..terms).map(|term| number(row * terms + term) * number(term * columns + column)).sum()
    };
    (0..rows * columns).map(element).collect()
}
