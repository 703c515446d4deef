use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<u8, N>, x: &Global<u8, N>) {
        for i in global(N) { atomic_add(&mut y[i], x[i]); }
    }
}

fn main() {}
