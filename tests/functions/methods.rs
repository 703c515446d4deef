//! Every method of the table in a `#[function]` of its own name: what is embedded is what a trace at run time gives.

#![allow(clippy::should_implement_trait)]

use tinyspec::function::EmbeddedFunction;
use tinyspec::ir::ops::METHODS;
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

#[function]
fn reshape<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, { B * 2 }, 3> {
    x.reshape([B * 2, 3])
}

#[function]
fn permute<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, 6, B> {
    x.permute([1, 0])
}

#[function]
fn transpose<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, 6, B> {
    x.transpose(0, 1)
}

#[function]
fn expand<B>(x: &Tensor<f32, B, 1>) -> Tensor<f32, B, 6> {
    x.expand([B, 6])
}

#[function]
fn flip<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.flip([1])
}

#[function]
fn pad<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, { B + 1 }, 8> {
    x.pad([1, 2], [B + 1, 8], 0.5)
}

#[function]
fn shrink<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 4> {
    x.shrink([0, 1], [B, 4])
}

#[function]
fn narrow<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 3> {
    x.narrow(1, 2, 3)
}

#[function]
fn unsqueeze<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1, 6> {
    x.unsqueeze(1)
}

#[function]
fn squeeze<B>(x: &Tensor<f32, B, 1, 6>) -> Tensor<f32, B, 6> {
    x.squeeze(1)
}

#[function]
fn flatten<B>(x: &Tensor<f32, B, 2, 3>) -> Tensor<f32, B, 6> {
    x.flatten(1, 2)
}

#[function]
fn unflatten<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 2, 3> {
    x.unflatten(1, [2, 3])
}

#[function]
fn cat<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, { B * 2 }, 6> {
    Tensor::cat(&[x, y], 0)
}

#[function]
fn stack<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32, B, 2, 6> {
    Tensor::stack(&[x, y], 1)
}

#[function]
fn split<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 3> {
    let parts = x.split(3, 1);
    &parts[0] + &parts[1]
}

#[function]
fn split_sizes<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B, 2>, Tensor<f32, B, 4>) {
    let parts = x.split_sizes([2, 4], 1);
    (parts[0].clone(), parts[1].clone())
}

#[function]
fn chunk<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 2> {
    let parts = x.chunk(3, 1);
    &parts[0] * &parts[2]
}

#[function]
fn repeat<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 12> {
    x.repeat([1, 2])
}

#[function]
fn repeat_interleave<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 12> {
    x.repeat_interleave(2, 1)
}

#[function]
fn diagonal<B>(x: &Tensor<f32, B, 4, 4>) -> Tensor<f32, B, 4> {
    x.diagonal(0)
}

#[function]
fn roll<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.roll([2], [1])
}

#[function]
fn triu<B>(x: &Tensor<f32, B, 4, 4>) -> Tensor<f32, B, 4, 4> {
    x.triu(1)
}

#[function]
fn tril<B>(x: &Tensor<f32, B, 4, 4>) -> Tensor<f32, B, 4, 4> {
    x.tril(0)
}

#[function]
fn sum<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.sum(1, true)
}

#[function]
fn prod<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.prod(1, true)
}

#[function]
fn max<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.max(1, true)
}

#[function]
fn min<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.min(1, true)
}

#[function]
fn mean<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.mean(1, true)
}

#[function]
fn logsumexp<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 1> {
    x.logsumexp(1, true)
}

#[function]
fn var<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.var(.., 1, false)
}

#[function]
fn std<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.std(.., 1, false)
}

#[function]
fn any<B>(m: &Tensor<bool, B, 6>) -> Tensor<bool, B> {
    m.any([1], false)
}

#[function]
fn all<B>(m: &Tensor<bool, B, 6>) -> Tensor<bool, B> {
    m.all([1], false)
}

#[function]
fn softmax<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.softmax(1)
}

#[function]
fn softmin<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.softmin(1)
}

#[function]
fn log_softmax<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.log_softmax(1)
}

#[function]
fn cumsum<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cumsum(1)
}

#[function]
fn cumprod<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cumprod(1)
}

#[function]
fn cummax<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cummax(1)
}

#[function]
fn cummin<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.cummin(1)
}

#[function]
fn logcumsumexp<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.logcumsumexp(1)
}

#[function]
fn argmax<B>(x: &Tensor<f32, B, 6>) -> Tensor<i32, B> {
    x.argmax(-1)
}

#[function]
fn argmin<B>(x: &Tensor<f32, B, 6>) -> Tensor<i32, B> {
    x.argmin(-1)
}

#[function]
fn matmul<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6, 4>) -> Tensor<f32, B, 4> {
    x.matmul(w)
}

#[function]
fn dot<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>) -> Tensor<f32, B> {
    x.dot(w)
}

#[function]
fn linear<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6, 4>, b: &Tensor<f32, 4>) -> Tensor<f32, B, 4> {
    x.linear(w, b)
}

#[function]
fn einsum<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6, 4>) -> Tensor<f32, 4, B> {
    Tensor::einsum("bi,io->ob", &[x, w])
}

#[function]
fn conv1d<B>(x: &Tensor<f32, B, 3, 8>, w: &Tensor<f32, 4, 3, 3>, b: &Tensor<f32, 4>) -> Tensor<f32, B, 4, 8> {
    x.conv1d(w, Some(b), Conv1d { padding: [1], ..default() })
}

#[function]
fn conv2d<B>(x: &Tensor<f32, B, 4, 8, 8>, w: &Tensor<f32, 4, 2, 3, 3>) -> Tensor<f32, B, 4, 3, 3> {
    x.conv2d(w, None, Conv2d { stride: [2, 2], groups: 2, ..default() })
}

#[function]
fn conv3d<B>(x: &Tensor<f32, B, 2, 4, 4, 4>, w: &Tensor<f32, 3, 2, 2, 2, 2>) -> Tensor<f32, B, 3, 3, 3, 3> {
    x.conv3d(w, None, default())
}

#[function]
fn conv_transpose1d<B>(x: &Tensor<f32, B, 3, 4>, w: &Tensor<f32, 3, 2, 3>) -> Tensor<f32, B, 2, 9> {
    x.conv_transpose1d(w, None, ConvTranspose1d { stride: [2], ..default() })
}

#[function]
fn conv_transpose2d<B>(x: &Tensor<f32, B, 3, 4, 4>, w: &Tensor<f32, 3, 2, 2, 2>) -> Tensor<f32, B, 2, 5, 5> {
    x.conv_transpose2d(w, None, default())
}

#[function]
fn conv_transpose3d<B>(x: &Tensor<f32, B, 3, 2, 2, 2>, w: &Tensor<f32, 3, 2, 2, 2, 2>) -> Tensor<f32, B, 2, 3, 3, 3> {
    x.conv_transpose3d(w, None, default())
}

#[function]
fn max_pool1d<B>(x: &Tensor<f32, B, 3, 8>) -> Tensor<f32, B, 3, 4> {
    x.max_pool1d([2], default())
}

#[function]
fn avg_pool1d<B>(x: &Tensor<f32, B, 3, 8>) -> Tensor<f32, B, 3, 4> {
    x.avg_pool1d([2], AvgPool1d { count_include_pad: false, ..default() })
}

#[function]
fn max_pool2d<B>(x: &Tensor<f32, B, 3, 8, 8>) -> Tensor<f32, B, 3, 4, 4> {
    x.max_pool2d([2, 2], default())
}

#[function]
fn avg_pool2d<B>(x: &Tensor<f32, B, 3, 8, 8>) -> Tensor<f32, B, 3, 4, 4> {
    x.avg_pool2d([2, 2], AvgPool2d { count_include_pad: false, ..default() })
}

#[function]
fn max_pool3d<B>(x: &Tensor<f32, B, 3, 4, 4, 4>) -> Tensor<f32, B, 3, 2, 2, 2> {
    x.max_pool3d([2, 2, 2], default())
}

#[function]
fn avg_pool3d<B>(x: &Tensor<f32, B, 3, 4, 4, 4>) -> Tensor<f32, B, 3, 2, 2, 2> {
    x.avg_pool3d([2, 2, 2], AvgPool3d { count_include_pad: false, ..default() })
}

#[function]
fn unfold<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 3, 2> {
    x.unfold(1, 2, 2)
}

#[function]
fn pad_mode<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 9> {
    x.pad_mode([1], [2], "reflect")
}

#[function]
fn interpolate<B>(x: &Tensor<f32, B, 3, 4>) -> Tensor<f32, B, 3, 8> {
    x.interpolate([8], "linear", false)
}

#[function]
fn one_hot<B>(i: &Tensor<i32, B>) -> Tensor<i32, B, 10> {
    i.one_hot(10)
}

#[function]
fn index0<B>(x: &Tensor<f32, 10, 4>, i: &Tensor<i32, B>) -> Tensor<f32, B, 4> {
    x.index0(i)
}

#[function]
fn embedding<B>(i: &Tensor<i32, B, 5>, x: &Tensor<f32, 10, 4>) -> Tensor<f32, B, 5, 4> {
    i.embedding(x)
}

#[function]
fn take<B>(x: &Tensor<f32, 10, 4>, i: &Tensor<i32, B>) -> Tensor<f32, B, 4> {
    x.take(i)
}

#[function]
fn gather<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>) -> Tensor<f32, B, 3> {
    x.gather(i, 1)
}

#[function]
fn scatter_add<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>, v: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.scatter_add(i, v, 1)
}

#[function]
fn scatter_multiply<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>, v: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.scatter_multiply(i, v, 1)
}

#[function]
fn scatter<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>, v: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.scatter(i, v, 1)
}

#[function]
fn scatter_reduce<B>(x: &Tensor<f32, B, 6>, i: &Tensor<i32, B, 3>, v: &Tensor<f32, B, 3>) -> Tensor<f32, B, 6> {
    x.scatter_reduce(i, v, 1, "amax", true)
}

#[function]
fn sort<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B, 6>, Tensor<i32, B, 6>) {
    let sorted = x.sort(1, true);
    (sorted[0].clone(), sorted[1].clone())
}

#[function]
fn argsort<B>(x: &Tensor<f32, B, 6>) -> Tensor<i32, B, 6> {
    x.argsort(1, false)
}

#[function]
fn topk<B>(x: &Tensor<f32, B, 6>) -> (Tensor<f32, B, 2>, Tensor<i32, B, 2>) {
    let best = x.topk(2, 1, true);
    (best[0].clone(), best[1].clone())
}

#[function]
fn cross_entropy<B>(x: &Tensor<f32, B, 6>, t: &Tensor<i32, B>) -> Tensor<f32> {
    x.cross_entropy(t, "mean", 0.1, -1)
}

#[function]
fn cross_entropy_prob<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.cross_entropy_prob(y, "sum")
}

#[function]
fn nll_loss<B>(x: &Tensor<f32, B, 6>, t: &Tensor<i32, B>) -> Tensor<f32, B> {
    x.nll_loss(t, "none")
}

#[function]
fn nll_loss_weight<B>(x: &Tensor<f32, B, 6>, t: &Tensor<i32, B>, w: &Tensor<f32, 6>) -> Tensor<f32> {
    x.nll_loss_weight(t, w, "mean")
}

#[function]
fn binary_crossentropy<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.binary_crossentropy(y, "mean")
}

#[function]
fn binary_crossentropy_logits<B>(x: &Tensor<f32, B, 6>, y: &Tensor<f32, B, 6>) -> Tensor<f32> {
    x.binary_crossentropy_logits(y, "mean")
}

#[function]
fn layer_norm<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>, b: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.layer_norm(w, b, 1, 0.00001)
}

#[function]
fn rms_norm<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.rms_norm(w, 0.00001)
}

#[function]
fn group_norm<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>, b: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.group_norm(w, b, 2, 0.00001)
}

#[function]
fn batch_norm_train<B>(x: &Tensor<f32, B, 6>, w: &Tensor<f32, 6>, b: &Tensor<f32, 6>) -> Tensor<f32, B, 6> {
    x.batch_norm_train(w, b, 0.00001)
}

#[function]
fn batch_norm_eval<B>(
    x: &Tensor<f32, B, 6>,
    w: &Tensor<f32, 6>,
    b: &Tensor<f32, 6>,
    mean: &Tensor<f32, 6>,
    variance: &Tensor<f32, 6>,
) -> Tensor<f32, B, 6> {
    x.batch_norm_eval(w, b, mean, variance, 0.00001)
}

#[function]
fn sdpa<B>(
    q: &Tensor<f32, B, 2, 5, 4>,
    k: &Tensor<f32, B, 2, 5, 4>,
    v: &Tensor<f32, B, 2, 5, 4>,
) -> Tensor<f32, B, 2, 5, 4> {
    q.sdpa(k, v, true)
}

#[function]
fn sdpa_mask<B>(
    q: &Tensor<f32, B, 2, 5, 4>,
    k: &Tensor<f32, B, 2, 5, 4>,
    v: &Tensor<f32, B, 2, 5, 4>,
    m: &Tensor<bool, 5, 5>,
) -> Tensor<f32, B, 2, 5, 4> {
    q.sdpa_mask(k, v, m)
}

#[function]
fn full<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::full([B, 6], 0.5)
}

#[function]
fn zeros<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::zeros([B, 6])
}

#[function]
fn ones<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::ones([B, 6])
}

#[function]
fn arange<B>(i: &Tensor<i32, B, 6>) -> Tensor<i32, B, 6> {
    i + Tensor::arange(6)
}

#[function]
fn linspace<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x + Tensor::linspace(0.0, 1.0, 6, DType::F32)
}

#[function]
fn eye<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 6> {
    x.matmul(Tensor::eye(6, 6, DType::F32))
}

macro_rules! functions {
    ($($name:ident)*) => { &[$($name::FUNCTION),*] };
}

const FUNCTIONS: &[&EmbeddedFunction] = functions! {
    add sub mul div modulo fmod pow maximum minimum copysign logaddexp idiv imod neg not logical_not and or xor shl shr lt le gt ge eq ne where_ lerp reciprocal sqrt rsqrt exp2 log2 exp log log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf trunc floor ceil round abs sign square relu relu6 sigmoid silu gelu quick_gelu softplus logsigmoid softsign mish hardsigmoid hardswish selu detach contiguous contiguous_backward clip leaky_relu elu celu isnan isinf isfinite pow_const const_pow cast bitcast reshape permute transpose expand flip pad shrink narrow unsqueeze squeeze flatten unflatten cat stack split split_sizes chunk repeat repeat_interleave diagonal roll triu tril sum prod max min mean logsumexp var std any all softmax softmin log_softmax cumsum cumprod cummax cummin logcumsumexp argmax argmin matmul dot linear einsum conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d avg_pool1d max_pool2d avg_pool2d max_pool3d avg_pool3d unfold pad_mode interpolate one_hot index0 embedding take gather scatter_add scatter_multiply scatter scatter_reduce sort argsort topk cross_entropy cross_entropy_prob nll_loss nll_loss_weight binary_crossentropy binary_crossentropy_logits layer_norm rms_norm group_norm batch_norm_train batch_norm_eval sdpa sdpa_mask full zeros ones arange linspace eye
};

fn all_functions() -> impl Iterator<Item = &'static &'static EmbeddedFunction> {
    FUNCTIONS
        .iter()
        .chain(crate::composed_methods::FUNCTIONS)
        .chain(crate::linear_algebra::FUNCTIONS)
        .chain(crate::neighbours::FUNCTIONS)
}

/// Rows that a function refuses: they draw random numbers.
const REFUSED: &[&str] = &["uniform", "randn"];

#[test]
fn every_method_has_a_function() {
    let source = [
        include_str!("methods.rs"),
        include_str!("composed_methods.rs"),
        include_str!("linear_algebra.rs"),
        include_str!("neighbours.rs"),
    ]
    .concat();
    for row in METHODS.iter().filter(|row| !REFUSED.contains(&row.name)) {
        let name = row.name;
        assert!(all_functions().any(|function| function.name() == name), "no #[function] here uses `{name}`");
        let is_used = [format!(".{name}("), format!("Tensor::{name}(")].iter().any(|call| source.contains(call));
        assert!(is_used, "the #[function] `{name}` does not use the method");
    }
}

#[test]
fn embedded_and_traced_graphs_are_equal() {
    for function in all_functions() {
        crate::same_graph(function);
    }
}
