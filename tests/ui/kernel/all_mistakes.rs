use tinyspec::uop;

uop! {
    <N> fn indices(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) {
            y[1.5] = 1.0;
            y[-1] = 1.0;
            y[i] = x[i - 1] + 1i32;
            let a = x[i + 1] * 2u8;
            y[i] = a;
        }
    }

    <N> fn loops(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) {
            let mut s = 0.0;
            for j in serial(1.5) { s += x[j] + x[i + 2]; }
            for j in reduce(N) { s += x[j + 3] + true; }
            y[i] = s;
        }
    }

    <N> fn conditions(y: &mut Global<f32, N>, x: &Global<f32, N>) {
        for i in global(N) {
            let mut k = 0usize;
            if x[i] { k = i + 1; y[i + 1] = 1u8; } else { y[0] = x[k]; }
            y[i] = x[k];
            if x[i] && x[i + 4] > 0.0 { unknown[i] = x[i + 5]; }
            y[i] = if x[i] { x[i + 6] } else { 1i32 + 1.0f32 };
            y[i] = 0.0;
        }
    }

    <N> fn nothing(x: &Global<f32, N>) {
        for i in global(N) { let a = x[i]; }
    }
}

fn main() {}
