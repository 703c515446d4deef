//! Data-dependent indexing: narrow indices into long axes, negative numbers, what is outside.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

const ROWS: i64 = 300;

fn on_each_device(check: impl Fn() -> Result<(), Error>) {
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, &check).unwrap_or_else(|error| panic!("{device}: {error}"));
    }
}

fn indices(dtype: DType) -> Tensor {
    Tensor::from_slice(&[0i32, 3, 44, 127], [4]).cast(dtype).contiguous()
}

#[test]
fn an_axis_may_be_longer_than_the_indices_reach() {
    on_each_device(|| {
        let ramp = Tensor::arange(ROWS).cast(DType::F32).contiguous();
        let table = ramp.reshape([ROWS, 1]);
        for dtype in [DType::U8, DType::I8, DType::U16, DType::I16, DType::I32, DType::U64] {
            let index = indices(dtype);
            let hot = index.one_hot(ROWS);
            assert_eq!(hot.sum(1, false).to_vec::<i32>()?, [1; 4], "{dtype}");
            assert_eq!(hot.argmax(1).to_vec::<i32>()?, [0, 3, 44, 127], "{dtype}");
            assert_eq!(ramp.gather(&index, 0).to_vec::<f32>()?, [0.0, 3.0, 44.0, 127.0], "{dtype}");
            assert_eq!(ramp.take(&index).to_vec::<f32>()?, [0.0, 3.0, 44.0, 127.0], "{dtype}");
            assert_eq!(ramp.index0(&index).to_vec::<f32>()?, [0.0, 3.0, 44.0, 127.0], "{dtype}");
            assert_eq!(index.embedding(&table).to_vec::<f32>()?, [0.0, 3.0, 44.0, 127.0], "{dtype}");
            let zeros = Tensor::zeros([ROWS]);
            let added = zeros.scatter_add(&index, Tensor::ones([4]), 0);
            assert_eq!(added.sum(.., false).item::<f32>()?, 4.0, "{dtype}");
        }
        Ok(())
    });
}

#[test]
fn negative_numbers_count_from_the_end_in_a_narrow_dtype() {
    on_each_device(|| {
        let ramp = Tensor::arange(ROWS).cast(DType::F32).contiguous();
        let index = Tensor::from_slice(&[-1i8, -128, 5], [3]);
        assert_eq!(ramp.index0(&index).to_vec::<f32>()?, [299.0, 172.0, 5.0]);
        Ok(())
    });
}

#[test]
fn gradients_go_to_the_rows_that_were_read() {
    on_each_device(|| {
        for dtype in [DType::U8, DType::I8, DType::I32] {
            let table = Tensor::arange(ROWS).cast(DType::F32).reshape([ROWS, 1]).contiguous();
            let rows = Tensor::from_slice(&[3i32, 3, 44], [3]).cast(dtype).contiguous();
            let loss = rows.embedding(&table).sum(.., false);
            let got = grad(&loss, &[&table])?.remove(0).to_vec::<f32>()?;
            let mut want = vec![0f32; ROWS as usize];
            (want[3], want[44]) = (2.0, 1.0);
            assert_eq!(got, want, "{dtype}");
        }
        Ok(())
    });
}
