use tinyspec::prelude::*;

uop! {
    <N> fn operand(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i] + ; }
    }

    <N> fn method(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i]. }
    }

    <N> fn parameter(x: &Global<f32, N>, a: ) -> Global<f32, {N + 1}> as y {
        for i in global(N) { y[i] = x[i] * a; y[i + 2] = 0.0; }
    }

    <N> fn result(x: &Global<f32, N>) -> (Global<f32, N> as a, Global<f32, N>) {
        for i in global(N) { a[i] = x[i]; a[i + 1] = 0.0; }
    }

    <N> fn no_body(x: &Global<f32, N>, a: f32) -> Global<f32, N> as y

    /// Its own mistake is shown as well.
    <N, 3> pub(crate) fn dims(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i + 1]; }
    }

    <N> fn good(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i]; }
    }
    good
}

#[function]
fn calls<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    operand(x) + method(x) + good(x)
}

fn main() {
    let x = Tensor::ones([4]);
    let y: Tensor = operand(&x) + method(&x) + parameter(&x, 2.0) + no_body(&x, 1.0) + dims(&x) + good(&x);
    let (a, b) = result(&y);
    drop(calls(&(a + b)));
}
