use tinyspec::uop;

uop! {
    <N, V> fn k(y: &mut Global<f32, N>, table: &Global<f32, V>, at: &Global<i32, N>) {
        for i in global(N) { y[i] = table[at[i]]; }
    }
}

fn main() {}
