use tinyspec::prelude::*;

uop! {
    <N> pub fn of_u64(p: &Global<u64, N>, x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let k = p[i] as usize;
            if k < N {
                y[i] = x[k];
            }
        }
    }

    <N> pub fn of_a_product(x: &Global<f32, N>, s: u32, t: u32) -> Global<f32, N> as y {
        for i in global(N) {
            let k = s as usize * t as usize * 8;
            if k < N {
                y[i] = x[k];
            }
        }
    }

    <N> pub fn of_a_cube(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            if i * i * i < N {
                y[i] = x[i * i * i];
            }
        }
    }
}

fn main() {}
