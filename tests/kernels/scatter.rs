use crate::*;
use tinyspec::prelude::*;

uop! { <N, K>
    fn histogram(x: &Global<i32, N>, counts: &mut Global<i32, K>) {
        for i in global(N) {
            let bin = x[i];
            if bin >= 0 && bin < K as i32 { atomic_add(&mut counts[bin], 1); }
        }
    }
}

#[test]
fn a_histogram_adds_from_all_iterations() {
    each_device(|device| {
        let x: Vec<i32> = numbers(200, 1).iter().map(|&x| x as i32 + 2).collect();
        let mut counts = Tensor::from_slice(&[1i32, 0, 0, 0, 0], [5]).to(device);
        histogram(&Tensor::from_slice(&x, [200]).to(device), &mut counts);
        let mut expected = [1, 0, 0, 0, 0];
        x.iter().filter(|&&bin| (0..5).contains(&bin)).for_each(|&bin| expected[bin as usize] += 1);
        assert_eq!(counts.to_vec::<i32>().unwrap(), expected);
    });
}

uop! { <V, D, N>
    fn embedding(table: &Global<f32, V, D>, words: &Global<i32, N>) -> Global<f32, N, D> as y {
        for i in global(N) {
            for j in global(D) { y[i, j] = table.get([words[i], j], -1.0); }
        }
    }
}

#[test]
fn rows_are_gathered_and_what_is_outside_is_the_default() {
    each_device(|device| {
        let table = numbers(6 * 4, 2);
        let words = [3i32, 0, 5, -1, 6, 2];
        let y = embedding(&tensor(&table, &[6, 4], device), &Tensor::from_slice(&words, [6]).to(device));
        let row = |word: i32| {
            (0..4).map(|j| if (0..6).contains(&word) { table[word as usize * 4 + j] } else { -1.0 }).collect::<Vec<_>>()
        };
        assert_same(&y, &words.iter().flat_map(|&word| row(word)).collect::<Vec<_>>());
    });
}

uop! { <N, K>
    fn sums_by_key(keys: &Global<u8, N>, values: &Global<f32, N>, sums: &mut Global<f32, K>) {
        for i in global(N) {
            let key = keys[i] as usize;
            if key < K { atomic_add(&mut sums[key], values[i]); }
        }
    }
}

uop! { <N>
    fn permuted(x: &Global<f32, N>, order: &Global<u32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            unsafe { y[order[i]] = x[i]; }
        }
    }
}

#[test]
fn what_is_vouched_for_is_guarded() {
    each_device(|device| {
        let order = Tensor::from_slice(&[2u32, 0, 7, 1], [4]).to(device);
        let y = permuted(&tensor(&[1.0, 2.0, 3.0, 4.0], &[4], device), &order);
        assert_same(&y, &[2.0, 4.0, 1.0, 0.0]);
    });
}

#[test]
fn sums_by_key_skip_what_is_outside() {
    each_device(|device| {
        let (keys, values) = ([3u8, 0, 200, 1, 3, 2], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        let keys = Tensor::from_slice(&keys, [6]).to(device);
        let mut sums = tensor(&[1.0, 0.0, 0.0, 0.0], &[4], device);
        sums_by_key(&keys, &tensor(&values, &[6], device), &mut sums);
        assert_same(&sums, &[3.0, 8.0, 32.0, 17.0]);
    });
}

uop! { <N>
    fn of_large_numbers(p: &Global<u64, N>, x: &Global<f32, N>, s: u32, t: u32) -> (Global<f32, N> as y, Global<f32, N> as z) {
        for i in global(N) {
            let k = p[i] as usize;
            if 0 <= k && k < N { y[i] = x[k]; }
            z[i] = x.get([s as usize * t as usize * 8], -1.0);
        }
    }

    <B, T, D>
    fn through_flat(x: &Global<f32, B, T, D>) -> (Global<f32, { B * T * D }> as y, Global<f32, B, T, D> as z) {
        for k in global(B * T * D) { y[k] = x[k / (T * D), k / D % T, k % D]; }
        for b in global(B) {
            for t in serial(T) {
                for d in serial(D) {
                    if (b * T + t) * D + d + 1 < B * T * D { z[b, t, d] = y[(b * T + t) * D + d + 1]; }
                }
            }
        }
    }
}

uop! { <N>
    fn vouched_value(x: &Global<f32, N>, order: &Global<i32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let kept = 2.0 * unsafe { x[order[i]] };
            y[i] = if kept < 0.0 { unsafe { x[order[i] + 1] } } else { kept };
        }
    }
}

#[test]
fn unsafe_may_stand_around_a_value() {
    each_device(|device| {
        let x = tensor(&[1.0, -2.0, 3.0, 4.0], &[4], device);
        let order = Tensor::from_slice(&[3i32, 9, 1, -1], [4]).to(device);
        assert_same(&vouched_value(&x, &order), &[8.0, 0.0, 3.0, 0.0]);
    });
}

#[test]
fn indices_that_64_bits_may_not_hold() {
    each_device(|device| {
        let p = Tensor::from_slice(&[u64::MAX, 1 << 63, 1, (1 << 63) - 1], [4]).to(device);
        let x = tensor(&[1.0, 2.0, 3.0, 4.0], &[4], device);
        let (y, z) = of_large_numbers(&p, &x, u32::MAX, u32::MAX);
        assert_same(&y, &[0.0, 0.0, 2.0, 0.0]);
        assert_same(&z, &[-1.0; 4]);
        let values = numbers(2 * 3 * 4, 3);
        let (y, z) = through_flat(&tensor(&values, &[2, 3, 4], device));
        assert_same(&y, &values);
        assert_same(&z, &[&values[1..], &[0.0]].concat());
    });
}

uop! { <N>
    fn counted_in_groups(p: &Global<i32, N, 64>) -> Global<i32, N, 16> as h {
        for g in global(N) {
            let mut t: Local<i32, 16>;
            for i in local(16) { t[i] = 0; }
            for i in local(64) { atomic_add(&mut t[(p[g, i] & 15) as usize], 1); }
            for i in local(16) { h[g, i] = t[i]; }
        }
    }

    <N>
    fn handed_on(x: &Global<f32, N, 8>) -> Global<f32, N, 8> as y {
        for g in global(N) {
            let mut t: Local<f32, 8>;
            for i in local(8) {
                t[i] = x[g, i];
                let mut sum = 0.0;
                for s in serial(4) {
                    sum += t[(i + 1) % 8];
                    barrier();
                    t[i] = sum;
                }
                { y[g, i] = t[7 - i]; barrier(); }
                y[g, i] += t[i];
            }
        }
    }
}

#[test]
fn members_wait_where_a_loop_ends() {
    each_device(|device| {
        let keys: Vec<i32> = (0..128).map(|i| i * 7 % 23).collect();
        let found = counted_in_groups(&Tensor::from_slice(&keys, [2, 64]).to(device));
        let count = |g: usize, bin: i32| keys[g * 64..][..64].iter().filter(|&&key| key & 15 == bin).count() as i32;
        let expected: Vec<i32> =
            (0..2).flat_map(|g| (0..16).map(move |bin| (g, bin))).map(|(g, bin)| count(g, bin)).collect();
        assert_eq!(found.to_vec::<i32>().unwrap(), expected);

        let values = numbers(16, 5);
        let found = handed_on(&tensor(&values, &[2, 8], device));
        let group = |x: &[f32]| {
            let (mut t, mut sums) = (x.to_vec(), [0f32; 8]);
            for _ in 0..4 {
                (0..8).for_each(|i| sums[i] += t[(i + 1) % 8]);
                t.copy_from_slice(&sums);
            }
            (0..8).map(|i| t[7 - i] + t[i]).collect::<Vec<f32>>()
        };
        assert_same(&found, &values.chunks(8).flat_map(group).collect::<Vec<_>>());
    });
}
