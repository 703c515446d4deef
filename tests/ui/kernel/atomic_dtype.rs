use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<bool, N>, x: &Global<bool, N>) {
        for i in global(N) { atomic_add(&mut y[i], x[i]); }
    }
}

fn main() {}
