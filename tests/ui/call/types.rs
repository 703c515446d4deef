use tinyspec::prelude::*;

mod layers {
    use tinyspec::prelude::*;

    #[function]
    pub fn dense<N, I, O>(x: &Tensor<f32, N, I>, w: &Tensor<f32, I, O>, scale: f32) -> Tensor<f32, N, O> {
        x.matmul(w) * scale
    }

    #[function]
    pub fn moments<N, I>(x: &Tensor<f32, N, I>) -> (Tensor<f32, N>, Tensor<f32, N>) {
        (x.mean(1, false), x.var(1, 0, false))
    }
}

#[function]
fn by_value<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    layers::dense(x.relu(), w, 1.0)
}

#[function]
fn number_for_tensor<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    layers::dense(x, 2.0, 1.0)
}

#[function]
fn list_for_tensor<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    layers::dense(&[x, x], w, 1.0)
}

#[function]
fn too_many<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    layers::dense(x, w, 1.0, 2.0)
}

#[function]
fn tuple_used_as_tensor<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B> {
    layers::moments(x).relu()
}

#[function]
fn taken_apart<B>(x: &Tensor<f32, B, 64>) -> Tensor<f32, B> {
    let (mean, variance, more) = layers::moments(x);
    mean + variance
}

#[function]
fn whole_number_for_float<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 10>) -> Tensor<f32, B, 10> {
    layers::dense(x, w, 1)
}

fn main() {}
