//! What a function may change is a buffer of a model that it takes by `&mut`.

use tinyspec::prelude::*;

#[model(functions)]
struct Norm<C> {
    weight: Tensor<f32, C>,
    #[model(buffer)]
    mean: Tensor<f32, C>,
    #[model(buffer)]
    batches: Tensor<i64>,
}

#[function]
impl<C> Norm<C> {
    fn shared<B>(&self, x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
        self.mean = x.mean(0, false);
        x - &self.mean
    }

    fn of_a_parameter<B>(&mut self, x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
        self.weight = x.mean(0, false);
        self.weight *= 2.0;
        x * &self.weight
    }

    fn of_another_shape<B>(&mut self, x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
        self.mean = x.mean(0, true);
        x - &self.mean
    }

    fn of_another_dtype<B>(&mut self, x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
        self.batches = x.count_nonzero(.., false).cast(DType::F32);
        x.clone()
    }

    fn of_a_number<B>(&mut self, x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
        self.batches = 0;
        x.clone()
    }

    fn train<B>(&mut self, x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
        self.batches += 1;
        x - &self.mean
    }

    #[function(gradient = own)]
    fn with_a_gradient<B>(&mut self, x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
        self.train(x)
    }
}

#[function]
fn own(norm: &Norm<2>, x: &Tensor<f32, 3, 2>, dy: &Tensor<f32, 3, 2>) -> (Tensor<f32, 2>, Tensor<f32, 3, 2>) {
    (&norm.mean * x.sum(0, false), dy.clone())
}

#[function]
fn through_a_shared_one<B>(norm: &Norm<4>, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    norm.train(x)
}

#[function]
fn train<B>(norm: &mut Norm<4>, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    norm.train(x)
}

#[function]
fn passed_on<B>(norm: &Norm<4>, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    train(norm, x)
}

#[model(functions)]
struct Layers {
    norms: [Norm<4>; 2],
}

#[function]
impl Layers {
    fn over_shared_ones<B>(&mut self, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
        let mut h = x.clone();
        for norm in &self.norms {
            h = norm.train(&h);
        }
        h
    }
}

#[model(functions)]
struct Plain {
    weight: Tensor<f32, 4>,
}

#[function]
impl Plain {
    fn forward<B>(&mut self, x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
        x * &self.weight
    }
}

#[function]
fn of_a_tensor<B>(x: &mut Tensor<f32, B>) -> Tensor<f32, B> {
    x + 1.0
}

#[model(function)]
struct Misspelled {
    #[model(bufer)]
    mean: Tensor<f32, 4>,
    #[model(buffer, skip)]
    both: Tensor<f32, 4>,
    #[model]
    nothing: Tensor<f32, 4>,
}

fn main() {}
