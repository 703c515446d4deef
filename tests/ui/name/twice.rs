use tinyspec::prelude::*;

mod a {
    use tinyspec::prelude::*;

    #[function]
    pub fn act<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
        x.relu()
    }
}

mod shadowed {
    use super::a::*;
    use tinyspec::prelude::*;

    #[function]
    pub fn act<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
        x.exp()
    }

    #[function]
    pub fn call<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
        act(x)
    }
}

fn main() {}
