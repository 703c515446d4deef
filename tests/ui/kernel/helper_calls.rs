use tinyspec::prelude::*;

uop! {
    fn square_of(x: f32) -> f32 {
        x * x
    }

    <K> fn dot(a: &Global<f32, K>, b: &Global<f32, K>) -> f32 {
        let mut sum = 0.0f32;
        for k in reduce(K) {
            sum += a[k] * b[k];
        }
        sum
    }

    <K> fn put(y: &mut Global<f32, K>, i: usize, x: f32) -> () {
        y[i] = x;
    }

    fn add(sum: &mut Reg<f32, 2>, x: f32) -> () {
        sum[0] += x;
    }

    fn endless(x: f32) -> f32 {
        odd(x)
    }

    fn odd(x: f32) -> f32 {
        endless(x) + 1.0
    }

    <M, N> fn wrong(x: &Global<f32, M, N>, z: &Global<f32, M>, n: &Global<i32, N>) -> Global<f32, M> as y {
        for i in global(M) {
            y[i] = square_of(x[i, 0], 2.0);
            y[i] = square_of(n[0]);
            y[i] = square_of(x);
            y[i] = dot(x, z);
            y[i] = dot(&x[i, ..], z);
            y[i] = dot(&x[i, ..], n);
            y[i] = dot(&x[.., 0], 1.0);
            y[i] = dot(&x[i, 1.., 2], z);
            y[i] = dot(&x[i], z);
            y[i] = dot(&mut z, z);
            y[i] = dot(&w, z);
            y[i] = dot(&i, z);
            put(z, i, 1.0);
            put(&y, i, 1.0);
            y[i] = put(y, i, 1.0);
            square_of(1.0);
            let mut sum: Reg<f32, 2>;
            add(sum, 1.0);
            add(y, 1.0);
            y[i] = endless(1.0);
            y[i] = exp(&z);
        }
    }

    fn stores(y: &Global<f32, 4>, r: &Reg<f32, 1>) -> () {
        y[0] = 1.0;
        r[0] = 1.0;
    }

    fn members(y: &mut Global<f32, 4>) -> f32 {
        for i in local(4) {
            y[i] = 1.0;
        }
        barrier();
        1.0
    }
}

fn main() {}
