use tinyspec::prelude::*;

#[function]
fn text_for_axis<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.softmax("last")
}

#[function]
fn number_for_flag<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(1, 1)
}

#[function]
fn whole_for_float<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.leaky_relu(1)
}

#[function]
fn float_for_whole<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.unsqueeze(1.0)
}

#[function]
fn tuple_for_shape<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape((B, 64))
}

#[function]
fn dtype_name<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.cast("f64")
}

#[function]
fn tensor_for_shape<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape(x)
}

#[function]
fn range_for_axes<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.sum(0..1, true)
}

#[function]
fn single_for_list<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.permute(1)
}

#[function]
fn tensor_for_list<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::cat(x, 0)
}

#[function]
fn tuple_for_list<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::cat((x, x), 0)
}

#[function]
fn numbers_in_list<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    Tensor::cat(&[x, 1.0], 0)
}

#[function]
fn list_plus<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x + [1.0, 2.0]
}

#[function]
fn tuple_times<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x * (1.0, 2.0)
}

#[function]
fn text_plus<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x + "1.0"
}

#[function]
fn bias_without_some<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.reshape([B, 1, 64]).conv1d(x.reshape([B, 1, 64]), x, default())
}

#[function]
fn dim_for_number<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.narrow(1, 0, B)
}

#[function]
fn dim_for_float<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x.leaky_relu(B)
}

#[function]
fn numbers_together<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B, 64> {
    x * (1 + 0.5)
}

fn main() {}
