//! Methods that work element by element, each in a `#[function]` of its own name.

#![allow(clippy::should_implement_trait)]

use tinyspec::function::EmbeddedFunction;
use tinyspec::prelude::*;

#[function]
fn add<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.add(y)
}

#[function]
fn sub<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.sub(y)
}

#[function]
fn mul<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.mul(y)
}

#[function]
fn div<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.div(y)
}

#[function]
fn modulo<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.modulo(y)
}

#[function]
fn fmod<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.fmod(y)
}

#[function]
fn pow<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.pow(y)
}

#[function]
fn maximum<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.maximum(y)
}

#[function]
fn minimum<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.minimum(y)
}

#[function]
fn copysign<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.copysign(y)
}

#[function]
fn logaddexp<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.logaddexp(y)
}

#[function]
fn idiv<B>(i: &Tensor<i32, B, 6>, j: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i.idiv(j, "floor")
}

#[function]
fn imod<B>(i: &Tensor<i32, B, 6>, j: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i.imod(j, "trunc")
}

#[function]
fn neg<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.neg()
}

#[function]
fn not<B>(i: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i.not()
}

#[function]
fn logical_not<B>(x: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.logical_not()
}

#[function]
fn and<B>(i: &Tensor<i32, B, 6>, j: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i.and(j)
}

#[function]
fn or<B>(i: &Tensor<i32, B, 6>, j: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i.or(j)
}

#[function]
fn xor<B>(i: &Tensor<i32, B, 6>, j: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i.xor(j)
}

#[function]
fn shl<B>(i: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i.shl(2)
}

#[function]
fn shr<B>(i: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i.shr(2)
}

#[function]
fn lt<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.lt(y)
}

#[function]
fn le<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.le(y)
}

#[function]
fn gt<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.gt(y)
}

#[function]
fn ge<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.ge(y)
}

#[function]
fn eq<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.eq(y)
}

#[function]
fn ne<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.ne(y)
}

#[function]
fn where_<B>(m: &Tensor<bool, B, 6>, x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    m.where_(x, y)
}

#[function]
fn lerp<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.lerp(y, 0.25)
}

#[function]
fn reciprocal<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.reciprocal()
}

#[function]
fn sqrt<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.sqrt()
}

#[function]
fn rsqrt<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.rsqrt()
}

#[function]
fn exp2<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.exp2()
}

#[function]
fn log2<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.log2()
}

#[function]
fn exp<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.exp()
}

#[function]
fn log<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.log()
}

#[function]
fn log10<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.log10()
}

#[function]
fn sin<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.sin()
}

#[function]
fn cos<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cos()
}

#[function]
fn tan<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.tan()
}

#[function]
fn sinh<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.sinh()
}

#[function]
fn cosh<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cosh()
}

#[function]
fn tanh<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.tanh()
}

#[function]
fn asin<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.asin()
}

#[function]
fn acos<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.acos()
}

#[function]
fn atan<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.atan()
}

#[function]
fn asinh<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.asinh()
}

#[function]
fn acosh<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.acosh()
}

#[function]
fn atanh<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.atanh()
}

#[function]
fn erf<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.erf()
}

#[function]
fn trunc<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.trunc()
}

#[function]
fn floor<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.floor()
}

#[function]
fn ceil<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.ceil()
}

#[function]
fn round<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.round()
}

#[function]
fn abs<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.abs()
}

#[function]
fn sign<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.sign()
}

#[function]
fn square<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.square()
}

#[function]
fn relu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.relu()
}

#[function]
fn relu6<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.relu6()
}

#[function]
fn sigmoid<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.sigmoid()
}

#[function]
fn silu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.silu()
}

#[function]
fn gelu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.gelu()
}

#[function]
fn quick_gelu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.quick_gelu()
}

#[function]
fn softplus<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.softplus()
}

#[function]
fn logsigmoid<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.logsigmoid()
}

#[function]
fn softsign<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.softsign()
}

#[function]
fn mish<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.mish()
}

#[function]
fn hardsigmoid<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.hardsigmoid()
}

#[function]
fn hardswish<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.hardswish()
}

#[function]
fn selu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.selu()
}

#[function]
fn detach<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.detach()
}

#[function]
fn contiguous<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.contiguous()
}

#[function]
fn contiguous_backward<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.contiguous_backward()
}

#[function]
fn clip<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.clip(-1.0, 1.0)
}

#[function]
fn leaky_relu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.leaky_relu(0.1)
}

#[function]
fn elu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.elu(0.5)
}

#[function]
fn celu<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.celu(0.5)
}

#[function]
fn isnan<B>(x: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.isnan()
}

#[function]
fn isinf<B>(x: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.isinf()
}

#[function]
fn isfinite<B>(x: &Tensor<f32, B, 6>) -> Tensor<bool, B, 6> {
    x.isfinite()
}

#[function]
fn pow_const<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.pow_const(3.0)
}

#[function]
fn const_pow<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.const_pow(2.0)
}

#[function]
fn cast<B>(x: &Tensor<f32, B, 6>) -> Tensor<f64, B, 6> {
    x.cast(DType::F64)
}

#[function]
fn bitcast<B>(x: &Tensor<f32, B, 6>) -> Tensor<u32, B, 6> {
    x.bitcast(DType::U32)
}

pub const FUNCTIONS: &[&EmbeddedFunction] = functions! {
    add sub mul div modulo fmod pow maximum minimum copysign logaddexp idiv imod neg not logical_not and or xor shl shr lt le gt ge eq ne where_ lerp reciprocal sqrt rsqrt exp2 log2 exp log log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf trunc floor ceil round abs sign square relu relu6 sigmoid silu gelu quick_gelu softplus logsigmoid softsign mish hardsigmoid hardswish selu detach contiguous contiguous_backward clip leaky_relu elu celu isnan isinf isfinite pow_const const_pow cast bitcast
};
