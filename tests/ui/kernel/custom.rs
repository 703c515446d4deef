use tinyspec::uop;

uop! {
    <N> fn unvouched(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) { y[i] = custom("ret float %0", x[i], x[i]); }
    }

    <N> fn without_code(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) { y[i] = unsafe { custom(x[i]) }; }
    }

    <N> fn of_index(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) { y[i] = unsafe { custom("ret float 0.0", x[i], i) }; }
    }
}

fn main() {}
