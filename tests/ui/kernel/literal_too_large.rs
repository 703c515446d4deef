use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<u8, N>) {
        for i in global(N) { y[i] = y[i] + 300; }
    }
}

fn main() {}
