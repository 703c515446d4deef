use tinyspec::prelude::*;

mod layers {
    use tinyspec::prelude::*;

    #[function]
    fn hidden<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
        x.relu()
    }

    pub mod inner {
        use tinyspec::prelude::*;

        #[function]
        pub(super) fn half<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
            x.relu()
        }
    }
}

#[function]
fn private<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    layers::hidden(x)
}

#[function]
fn restricted<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    layers::inner::half(x)
}

fn main() {}
