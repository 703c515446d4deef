use tinyspec::prelude::*;

uop! { <N>
    fn chosen_by_numbers(x: &Global<f32, N>) -> Global<f32, {N + 1}> as y {
        for i in global(N) {
            let k = if x[i] > 0.0 { 1usize } else { 0usize };
            y[i + k] = x[i];
        }
    }

    <N>
    fn chosen_by_flags(f: &Global<bool, N>) -> Global<f32, {N + 1}> as y {
        for i in global(N) {
            let k = if f[i] { 1usize } else { 0usize };
            y[i + k] = 1.0;
        }
    }
}

fn main() {}
