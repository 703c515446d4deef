//! Loops whose number of trips depends on data, under a declared maximum.

use crate::{assert_same, each_device, numbers, tensor};
use tinyspec::prelude::*;

uop! {
    <M, N> fn rows_of_lengths(x: &Global<f32, M, N>, lengths: &Global<i32, M>) -> (Global<f32, M> as sums, Global<f32, M> as greatest) {
        for i in global(M) {
            let mut sum = 0.0f32;
            for j in reduce(lengths[i], at most N) { sum += x[i, j]; }
            sums[i] = sum;
            let mut most = -100.0f32;
            for j in serial(lengths[i], at most N) {
                if x[i, j] > most { most = x[i, j]; }
            }
            greatest[i] = most;
        }
    }

    // Compressed rows: the columns and values of row i are at starts[i]..starts[i + 1].
    <R, V, C> fn sparse_product(
        starts: &Global<i32, { R + 1 }>, columns: &Global<u32, V>, values: &Global<f32, V>, x: &Global<f32, C>
    ) -> Global<f32, R> as y {
        for i in global(R) {
            let mut sum = 0.0f32;
            for k in serial(starts[i]..starts[i + 1], at most V) {
                let column = columns.get([k], 0);
                sum += values.get([k], 0.0) * x.get([column], 0.0);
            }
            y[i] = sum;
        }
    }

    <N> fn nested(n: &Global<u8, N>) -> Global<i32, N> as y {
        for i in global(N) {
            let mut count = 0;
            for j in serial(n[i], at most 7) {
                for k in serial(j..n[i], at most 3) { count += (k * 10 + j) as i32; }
            }
            y[i] = count;
        }
    }

    <N> fn grows(n: &mut Global<i32, N>) {
        for i in global(N) {
            for j in serial(n[i], at most 5) { n[i] += 2; }
        }
    }

    fn once(n: &Global<i32, 3>) -> Global<i32, 3> as y {
        for i in global(3) {
            for j in serial(n[i], at most 1) { y[i] = 7 + j as i32; }
        }
    }

    <N> fn prefix(x: &Global<i32, N>, count: i32) -> Global<i32, 1> as y {
        for g in global(1) {
            let mut sum = 0;
            for j in reduce(count, at most N) { sum += x[j]; }
            y[0] = sum;
        }
    }
}

#[test]
fn rows_end_where_data_say() {
    let (m, n) = (7, 40);
    let x = numbers(m * n, 1);
    let lengths = [0, 3, 40, 41, -5, 17, 1];
    let length = |i: usize| lengths[i].clamp(0, n as i32) as usize;
    let row = |i: usize| &x[i * n..i * n + length(i)];
    let sums: Vec<f32> = (0..m).map(|i| row(i).iter().sum()).collect();
    let greatest: Vec<f32> = (0..m).map(|i| row(i).iter().fold(-100.0, |a: f32, &b| a.max(b))).collect();
    each_device(|device| {
        let lengths = Tensor::from_slice(&lengths, [m]).to(device);
        let (found, most) = rows_of_lengths(&tensor(&x, &[m, n], device), &lengths);
        assert_same(&found, &sums);
        assert_same(&most, &greatest);
    });
}

#[test]
fn a_sparse_product() {
    let starts = [0, 2, 2, 7, 9];
    let columns: Vec<u32> = vec![0, 3, 1, 2, 3, 4, 0, 4, 2];
    let (values, x) = (numbers(9, 2), numbers(5, 3));
    let row = |i: usize| (starts[i]..starts[i + 1]).map(|k| values[k] * x[columns[k] as usize]).sum::<f32>();
    let expected: Vec<f32> = (0..4).map(row).collect();
    each_device(|device| {
        let starts = Tensor::from_slice(&starts.map(|start| start as i32), [5]).to(device);
        let columns = Tensor::from_slice(&columns, [9]).to(device);
        assert_same(
            &sparse_product(&starts, &columns, &tensor(&values, &[9], device), &tensor(&x, &[5], device)),
            &expected,
        );
    });
}

#[test]
fn loops_in_loops() {
    let n = [0u8, 1, 2, 5, 9, 200];
    let of_one = |&n: &u8| {
        let pairs = (0..n.min(7) as i32).flat_map(|j| (j..(n as i32).min(j + 3)).map(move |k| k * 10 + j));
        pairs.sum()
    };
    let expected: Vec<i32> = n.iter().map(of_one).collect();
    each_device(|device| {
        let n = Tensor::from_slice(&n, [6]).to(device);
        assert_eq!(nested(&n).to_vec::<i32>().unwrap(), expected);
    });
}

#[test]
fn the_number_of_trips_is_that_before_the_loop() {
    each_device(|device| {
        let mut n = Tensor::from_slice(&[0, 1, 2, 3, 9, -1], [6]).to(device);
        grows(&mut n);
        assert_eq!(n.to_vec::<i32>().unwrap(), [0, 3, 6, 9, 19, -1]);
        let n = Tensor::from_slice(&[0, 1, 5], [3]).to(device);
        assert_eq!(once(&n).to_vec::<i32>().unwrap(), [0, 7, 7]);
    });
}

#[test]
fn a_number_ends_a_sum() {
    each_device(|device| {
        let x = Tensor::from_slice(&[1, 2, 4, 8, 16], [5]).to(device);
        let found: Vec<i32> = (-1..8).map(|count| prefix(&x, count).to_vec::<i32>().unwrap()[0]).collect();
        assert_eq!(found, [0, 0, 1, 3, 7, 15, 31, 31, 31]);
    });
}
