use tinyspec::prelude::*;

#[function]
fn sum_without_arguments<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum()
}

#[function]
fn without_keepdim<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(1)
}

#[function]
fn too_many<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.relu(0.1)
}

#[function]
fn softmax_everywhere<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.softmax()
}

#[function]
fn reshape_spread<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape(B, 64)
}

#[function]
fn transpose_nothing<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.transpose()
}

#[function]
fn one_size<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.max_pool1d(2)
}

#[function]
fn without_options<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape([B, 1, 64]).conv1d(x.reshape([B, 1, 64]), None)
}

#[function]
fn zeros_nothing<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x + Tensor::zeros()
}

#[function]
fn full_value<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x + Tensor::full([B, 64])
}

#[function]
fn arange_ends<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x + Tensor::arange(0, 64)
}

#[function]
fn method_as_function<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::relu(x)
}

#[function]
fn function_as_method<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.cat(x, 0)
}

#[function]
fn clone<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.clone(1)
}

#[function]
fn shape<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape(x.shape(0))
}

#[function]
fn eps<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.rms_norm(1.0)
}

#[function]
fn two_mistakes<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum().softmax()
}

fn main() {}
