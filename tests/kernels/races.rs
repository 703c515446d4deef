use crate::*;
use tinyspec::prelude::*;

uop! { <N, M>
    fn scattered(y: &mut Global<f32, M>, x: &Global<f32, N>, order: &Global<u32, N>) {
        for i in global(N) {
            unsafe { y[order[i]] = x[i]; }
        }
    }

    <N>
    fn through_local(x: &Global<f32, N>, order: &Global<u32, 4>) -> Global<f32, N> as y {
        for block in global(N / 4) {
            let mut tile: Local<f32, 4>;
            for t in local(4) {
                unsafe {
                    tile[order[t]] = x[block * 4 + t];
                    y[block * 4 + t] = tile[t];
                }
            }
        }
    }
}

#[test]
fn the_interpreter_names_the_iterations_that_meet() {
    let order = Tensor::from_slice(&[2u32, 0, 1, 2], [4]).to("interpreter");
    let x = tensor(&[1.0, 2.0, 3.0, 4.0], &[4], "interpreter");
    let mut y = tensor(&[0.0; 3], &[3], "interpreter");
    scattered(&mut y, &x, &order);
    let error = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(error.contains("races: iteration (3) writes element 2 of `y`, which iteration (0) wrote"), "{error}");
    let x = tensor(&[1.0; 8], &[8], "interpreter");
    let error = through_local(&x, &order).to_vec::<f32>().unwrap_err().to_string();
    assert!(
        error.contains("races: iteration (0, 1) writes element 0 of a local buffer, which iteration (0, 0) read"),
        "{error}"
    );
}
