//! How many kernels are compiled.

use tinyspec::function::named;
use tinyspec::{DType, Dim, Error, Function, Spec, Tensor, profile};

#[test]
fn one_compilation_serves_every_batch() -> Result<(), Error> {
    let _alone = crate::alone();
    let batch = named(0, 4096);
    let specs = [
        Spec::new(DType::F32, [batch, Dim::from(64)]),
        Spec::new(DType::F32, [64, 32]),
        Spec::new(DType::F32, [32, 10]),
    ];
    let mlp = Function::trace(&specs, |x| vec![x[0].matmul(&x[1]).relu().matmul(&x[2]).softmax(-1)])?;
    let (w1, w2) = (Tensor::full([64, 32], 0.01).contiguous(), Tensor::full([32, 10], 0.5).contiguous());
    let mut kernels = None;
    for rows in [1, 2, 7, 64, 100, 1000] {
        let x = Tensor::from_slice(&vec![1f32; rows * 64], [rows, 64]);
        let y = mlp.call(&[&x, &w1, &w2])[0].to_vec::<f32>()?;
        assert_eq!(y.len(), rows * 10);
        assert!(y.iter().all(|y| (y - 0.1).abs() < 1e-6), "{y:?}");
        let now = profile::counters().kernels;
        assert_eq!(now, *kernels.get_or_insert(now), "{rows} rows are compiled again");
    }
    Ok(())
}
