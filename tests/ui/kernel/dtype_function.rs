use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<i32, N>) {
        for i in global(N) { y[i] = exp(y[i]); }
    }
}

fn main() {}
