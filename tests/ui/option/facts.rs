use tinyspec::prelude::*;

#[function(where(D % H = 0))]
fn assigned<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }> {
    x.reshape([B, H, D / H]) + h.sum(.., false)
}

#[function(where(D))]
fn a_dim<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }> {
    x.reshape([B, H, D / H]) + h.sum(.., false)
}

#[function(where())]
fn nothing<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }> {
    x.reshape([B, H, D / H]) + h.sum(.., false)
}

#[function(where = 3)]
fn a_number<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }> {
    x.reshape([B, H, D / H]) + h.sum(.., false)
}

// No i64 is a multiple of both.
#[function(where(D % 4611686018427387904 == 0, D % 4611686018427387903 == 0))]
fn too_large<B, D>(x: &Tensor<f32, B, D>) -> Tensor<f32, B, D> {
    x.exp()
}

fn main() {}
