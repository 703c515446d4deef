use tinyspec::prelude::*;

uop! {
    <N, T: f32 | f33> fn misspelt(x: &Global<T, N>) -> Global<T, N> as y {
        for i in global(N) { y[i] = x[i]; }
    }

    <N, T: Float> fn by_trait(x: &Global<T, N>) -> Global<T, N> as y {
        for i in global(N) { y[i] = x[i]; }
    }

    <N, T:> fn of_nothing(x: &Global<T, N>) -> Global<T, N> as y {
        for i in global(N) { y[i] = x[i]; }
    }

    <N, T: f32 | i32> fn only_floats(x: &Global<T, N>) -> Global<T, N> as y {
        for i in global(N) { y[i] = exp(x[i]); }
    }

    <N, T: f32 | f16> fn for_all(x: &Global<T, N>) -> Global<T, N> as y {
        for i in global(N) { y[i] = x[i + 1]; }
    }

    <N, T: f32 | f16> fn half_sum(x: &Global<T, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i]; }
    }

    <N, T: f32 | f16> fn scalar(x: &Global<T, N>, a: T) -> Global<T, N> as y {
        for i in global(N) { y[i] = x[i] * a; }
    }

    <N, T: f32 | f16> fn of_a_result(x: &Global<f32, N>) -> Global<T, N> as y {
        for i in global(N) { y[i] = x[i] as T; }
    }

    #[gradient(slope)]
    <N, T: f32 | f16> fn with_gradient(x: &Global<T, N>) -> Global<T, N> as y {
        for i in global(N) { y[i] = x[i]; }
    }

    <N, T: f32 | f64> pub fn twice(x: &Global<T, N>) -> Global<T, N> as y {
        for i in global(N) { y[i] = x[i] + x[i]; }
    }

    <
        N, A: i8 | i16 | i32 | i64 | u8 | u16 | u32 | u64 | f32, B: i8 | i16 | i32 | i64 | u8 | u16 | u32 | u64 | f32
    > fn too_many(x: &Global<A, N>, y: &Global<B, N>) -> Global<A, N> as z {
        for i in global(N) { z[i] = x[i]; }
    }
}

#[function]
fn calls(x: &Tensor<f32, 4>) -> Tensor<f32, 4> {
    twice(x)
}

fn main() {}
