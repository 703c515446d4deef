use tinyspec::uop;

uop! {
    <N, K> fn k(counts: &mut Global<i32, K>, x: &Global<u32, N>) {
        for i in global(N) {
            if x[i] < K as u32 { counts[x[i]] += 1; }
        }
    }
}

fn main() {}
