use crate::*;
use tinyspec::prelude::*;

uop! { <N>
    /// y = a x + y.
    pub fn saxpy(y: &mut Global<f32, N>, x: &Global<f32, N>, a: f32) {
        for i in global(N) { y[i] = a * x[i] + y[i]; }
    }
}

#[test]
fn saxpy_updates_its_handle_and_no_other() {
    each_device(|device| {
        let x = tensor(&[1.0, 2.0, 3.0], &[3], device);
        let mut y = tensor(&[10.0, 20.0, 30.0], &[3], device);
        let before = y.clone();
        saxpy(&mut y, &x, 2.0);
        assert_same(&y, &[12.0, 24.0, 36.0]);
        assert_same(&before, &[10.0, 20.0, 30.0]);
        saxpy(&mut y, &x, -1.0);
        assert_same(&y, &[11.0, 22.0, 33.0]);
        for n in [256, 77, 100_003] {
            let (x, z) = (numbers(n, 1), numbers(n, 2));
            let mut y = tensor(&z, &[n], device);
            saxpy(&mut y, &tensor(&x, &[n], device), 3.0);
            assert_same(&y, &x.iter().zip(&z).map(|(x, z)| 3.0 * x + z).collect::<Vec<_>>());
        }
    });
}

uop! { <M, N>
    fn bias(x: &Global<f32, M, N>, b: &Global<f32, N>) -> Global<f32, M, N> as y {
        for i in global(M) {
            for j in global(N) { y[i, j] = (x[i, j] + b[j]).relu(); }
        }
    }
}

#[test]
fn bias_adds_a_row() {
    each_device(|device| {
        for n in [33, 64, 100] {
            let (x, b) = (numbers(7 * n, 1), numbers(n, 2));
            let y = bias(&tensor(&x, &[7, n], device), &tensor(&b, &[n], device));
            let expected: Vec<f32> = (0..7 * n).map(|at| (x[at] + b[at % n]).max(0.0)).collect();
            assert_same(&y, &expected);
        }
    });
}

uop! { <N>
    fn functions(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let v = x[i];
            let positive = abs(v) + 1.0;
            let root = sqrt(positive) + v.sin() * exp(-positive);
            y[i] = if v < 0.0 { max(root, 1.5) } else { root + log(positive) * pow(positive, 0.5) };
        }
    }
}

#[test]
fn functions_of_the_language() {
    each_device(|device| {
        let x = numbers(128, 3);
        let y = functions(&tensor(&x, &[128], device));
        let expected: Vec<f32> = x
            .iter()
            .map(|v| {
                let positive = v.abs() + 1.0;
                let root = positive.sqrt() + v.sin() * (-positive).exp();
                if *v < 0.0 { root.max(1.5) } else { root + positive.ln() * positive.powf(0.5) }
            })
            .collect();
        assert_close(&y, &expected);
    });
}

uop! { <N>
    fn normalise(x: &Global<u8, N>, scale: f32) -> Global<f32, N> as y {
        for i in global(N) { y[i] = (x[i] as f32 - 128.0) * scale; }
    }
}

#[test]
fn bytes_become_floats() {
    each_device(|device| {
        let x: Vec<u8> = (0..=255).collect();
        let y = normalise(&Tensor::from_slice(&x, [256]).to(device), 0.5);
        assert_same(&y, &x.iter().map(|&x| (x as f32 - 128.0) * 0.5).collect::<Vec<_>>());
    });
}

uop! { <N>
    fn reversed(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[N - 1 - i] = x[i]; }
    }
}

#[test]
fn an_index_may_run_down() {
    each_device(|device| {
        let x = numbers(64, 4);
        let y = reversed(&tensor(&x, &[64], device));
        assert_same(&y, &x.iter().rev().copied().collect::<Vec<_>>());
    });
}

uop! { <N>
    fn interleaved(a: &Global<f32, N>, b: &Global<f32, N>) -> Global<f32, { 2 * N }> as y {
        for i in global(N) {
            y[2 * i] = a[i];
            y[2 * i + 1] = b[i];
        }
    }
}

#[test]
fn two_stores_that_never_meet() {
    each_device(|device| {
        let (a, b) = (numbers(9, 5), numbers(9, 6));
        let y = interleaved(&tensor(&a, &[9], device), &tensor(&b, &[9], device));
        assert_same(&y, &a.iter().zip(&b).flat_map(|(&a, &b)| [a, b]).collect::<Vec<_>>());
    });
}

uop! { <M, N>
    fn outer(a: &Global<f32, M>, b: &Global<f32, N>) -> Global<f32, { M * N }> as y {
        for i in global(M) {
            for j in global(N) { y[i * N + j] = a[i] * b[j]; }
        }
    }
}

#[test]
fn an_index_of_products_of_dims() {
    each_device(|device| {
        let (a, b) = (numbers(5, 7), numbers(8, 8));
        let y = outer(&tensor(&a, &[5], device), &tensor(&b, &[8], device));
        let expected: Vec<f32> = a.iter().flat_map(|a| b.iter().map(move |b| a * b)).collect();
        assert_same(&y, &expected);
    });
}

uop! { <N>
    fn split(x: &Global<i32, N>) -> (Global<i32, N> as quotient, Global<i32, N> as rest) {
        for i in global(N) {
            quotient[i] = x[i] / 3;
            rest[i] = x[i] % 3;
        }
    }
}

#[test]
fn two_results_and_floored_division() {
    each_device(|device| {
        let x: Vec<i32> = (-10..10).collect();
        let (quotient, rest) = split(&Tensor::from_slice(&x, [20]).to(device));
        assert_eq!(quotient.to_vec::<i32>().unwrap(), x.iter().map(|x| x.div_euclid(3)).collect::<Vec<_>>());
        assert_eq!(rest.to_vec::<i32>().unwrap(), x.iter().map(|x| x.rem_euclid(3)).collect::<Vec<_>>());
    });
}

uop! { <N>
    fn swapped(a: &mut Global<f32, N>, b: &mut Global<f32, N>) {
        for i in global(N) {
            let kept = a[i];
            a[i] = b[i];
            b[i] = kept;
        }
    }
}

#[test]
fn an_element_is_read_before_it_is_overwritten() {
    each_device(|device| {
        let (x, y) = (numbers(12, 9), numbers(12, 10));
        let (mut a, mut b) = (tensor(&x, &[12], device), tensor(&y, &[12], device));
        swapped(&mut a, &mut b);
        assert_same(&a, &y);
        assert_same(&b, &x);
    });
}

const BLOCK: usize = 4;

uop! { <N>
    fn blocks(x: &Global<f32, N>) -> Global<f32, N> as y {
        for block in global(N / BLOCK) {
            for i in serial(BLOCK) {
                let at = block * BLOCK + i;
                y[at] = x[at] + block as f32;
            }
        }
    }
}

#[test]
fn outer_constants_are_dims() {
    each_device(|device| {
        let x = numbers(18, 11);
        let y = blocks(&tensor(&x, &[18], device));
        let expected: Vec<f32> = (0..18).map(|at| if at < 16 { x[at] + (at / 4) as f32 } else { 0.0 }).collect();
        assert_same(&y, &expected);
    });
}

uop! {
    fn least(a: i32) -> (Global<i32, 2> as y, Global<i64, 1> as z, Global<i8, 1> as w) {
        for i in global(1) {
            y[0] = -2147483648i32;
            y[1] = max(-2_147_483_648, a);
            z[0] = -9223372036854775808i64;
            w[0] = -128i8;
        }
    }
}

#[test]
fn the_sign_of_a_number_belongs_to_it() {
    each_device(|device| {
        let made: Result<_> = tinyspec::with_default_device(device, || Ok(least(-5)));
        let (y, z, w) = made.unwrap();
        assert_eq!(y.to_vec::<i32>().unwrap(), [i32::MIN, -5]);
        assert_eq!(z.to_vec::<i64>().unwrap(), [i64::MIN]);
        assert_eq!(w.to_vec::<i8>().unwrap(), [i8::MIN]);
    });
}

uop! { <N>
    #[cfg(any())]
    fn chosen(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i + 1]; }
    }

    <N>
    #[cfg(not(any()))]
    fn chosen(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            #[allow(clippy::identity_op)]
            let a = x[i] + 1.0;
            /// Lints and documentation change nothing.
            y[i] = a;
        }
    }
}

#[test]
fn conditions_choose_whole_kernels() {
    each_device(|device| assert_same(&chosen(&tensor(&[1.0, 2.0], &[2], device)), &[2.0, 3.0]));
}

uop! { <N>
    fn tall(x: &Global<i32, 2, N, 2>) -> Global<i32, 2, N, 2> as y {
        for i in global(2) {
            for j in global(N) {
                for k in global(2) { y[i, j, k] = x[i, j, k] + 1; }
            }
        }
    }
}

/// In y and z some GPUs number workgroups with 16 bits.
#[test]
fn a_grid_may_be_taller_than_16_bits() -> Result<()> {
    if let Err(error) = simulators::register() {
        println!("skipped: simulated GPUs: {error}");
        return Ok(());
    }
    for device in simulators::SIMULATED {
        let x: Vec<i32> = (0..4 * 70_000).collect();
        let y = tall(&Tensor::from_slice(&x, [2, 70_000, 2]).to(device)).to_vec::<i32>()?;
        assert!(y.iter().zip(&x).all(|(y, x)| *y == x + 1), "{device}");
    }
    Ok(())
}
