use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<i32, N>) {
        for i in global(N) {
            if y[i] { y[i] = 0; }
        }
    }
}

fn main() {}
