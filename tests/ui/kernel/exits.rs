use tinyspec::prelude::*;

uop! {
    <N> fn unbounded(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut r = x[i];
            while r > 1.0 {
                r = r / 2.0;
            }
            y[i] = r;
        }
    }

    <N> fn endless(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            loop {
                y[i] = x[i];
                break;
            }
        }
    }

    <N> fn in_parallel(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            if x[i] < 0.0 { break; }
            y[i] = x[i];
        }
    }

    <N> fn in_a_sum(x: &Global<f32, N>) -> Global<f32, 1> as y {
        for g in global(1) {
            let mut sum = 0.0f32;
            for i in reduce(N) {
                if x[i] < 0.0 { break; }
                sum += x[i];
            }
            y[0] = sum;
        }
    }

    <N> fn unrolled(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for u in unroll(4) {
                if x[i] < 0.0 { break; }
                y[i] += 1.0;
            }
        }
    }

    <N> fn outside(x: &Global<f32, N>) -> Global<f32, N> as y {
        break;
        for i in global(N) { y[i] = x[i]; }
    }

    <N> fn labelled(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            'rows: for j in serial(4) {
                for k in serial(4) {
                    if x[i] > 0.0 { break 'rows; }
                    y[i] += 1.0;
                }
            }
        }
    }

    <N> fn with_value(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(4) { break 1.0; }
            let z = break;
            y[i] = x[i];
        }
    }

    <N> fn never(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(4) {
                y[i] += x[i];
                continue;
                y[i] += 1.0;
            }
        }
    }

    <N> fn behind_a_barrier(x: &Global<f32, N, 8>) -> Global<f32, N, 8> as y {
        for i in global(N) {
            let mut t: Local<f32, 8>;
            for j in local(8) {
                if x[i, j] < 0.0 { continue; }
                t[j] = x[i, j];
                barrier();
                for s in serial(4) {
                    if x[i, 0] > 0.0 { break; }
                    y[i, j] += t[7 - j];
                    barrier();
                }
            }
        }
    }

    <N> fn of_data(x: &Global<f32, N>, n: &Global<i32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            while y[i] < x[i], at most n[i] { y[i] += 1.0; }
        }
    }

    <N> fn condition(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            while x[i], at most 4 { y[i] += 1.0; }
        }
    }

    <N> fn beyond(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut j = i;
            while x[j] > 0.0, at most N { j += 1; }
            y[i] = j as f32;
        }
    }

    <N> fn beyond_by_one(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(N) {
                if x[j] > 0.0 { break; }
                y[i] += x[j + 1];
            }
        }
    }

    <N> fn races(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            for j in serial(N) {
                if x[j] > 0.0 { break; }
                y[j] = x[i];
            }
        }
    }

    <N> fn early(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            if x[i] > 0.0 { return; }
            y[i] = x[i];
        }
    }
}

fn main() {}
