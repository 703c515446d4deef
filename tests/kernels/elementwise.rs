use tinyspec::prelude::*;

uop! { <N>
    /// y = a x + y.
    pub fn saxpy(y: &mut Global<f32, N>, x: &Global<f32, N>, a: f32) {
        for i in global(N) { y[i] = a * x[i] + y[i]; }
    }
}

#[test]
fn saxpy_updates_its_handle_and_no_other() {
    for device in ["interpreter", "cpu"] {
        let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]).to(device);
        let mut y = Tensor::from_slice(&[10f32, 20.0, 30.0], [3]).to(device);
        let before = y.clone();
        saxpy(&mut y, &x, 2.0);
        assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0, 36.0]);
        assert_eq!(before.to_vec::<f32>().unwrap(), [10.0, 20.0, 30.0]);
    }
}
