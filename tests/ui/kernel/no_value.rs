use tinyspec::uop;

uop! {
    <N> fn k(y: &mut Global<f32, N>, p: &Global<i32, N>) {
        for i in global(N) {
            y[i] = match i { 0 => 1.0, _ => 2.0 };
            let s = for j in serial(N) { y[j] = 0.0; };
            let t = unsafe { y[p[i]] };
            let f = |a| a + 1.0;
            let r = 0..N;
            let a = [0.0; 4];
            let m = vec![1.0];
            let q = y.shape;
            let l = &y[i];
            let u = if let 0 = p[i] { 1.0 } else { 2.0 };
            y[i] = return 1.0;
            y[i] = (max)(1.0, 2.0);
            match i { _ => {} }
            y;
            y[i] = -p[i] as u32 as f32;
            y[i] = (-(p[i] as u32)) as f32;
            y[i] = !y[i];
            y[i] = !1.5;
        }
    }
}

fn main() {}
