use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, #[cfg(any())] x: &Global<f32, N>) {
        for i in global(N) {
            #[cfg(any())]
            let a = 1.0;
            #[allow(unused)]
            let b = 1.0;
            /// What `b` is for.
            y[i] = b + #[inline] x[i];
            #[cfg(any())] { y[i] = 5.0; }
            #[rustfmt::skip]
            y[i] += 1.0;
        }
    }
}

fn main() {}
