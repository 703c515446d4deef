//! GPUs in software: the PTX or the machine code of each kernel, executed instruction by instruction.

pub use crate::simulators::{SIMULATED, register};
use tinyspec::{DType, Tensor};

/// Numbers of every width, read and written in vectors of 2 to 7: nothing beyond the end of a buffer is touched, or the
/// simulator refuses the kernel.
#[test]
fn short_vectors_stay_inside_their_buffers() -> Result<(), Box<dyn std::error::Error>> {
    register()?;
    for device in SIMULATED {
        for dtype in [DType::I8, DType::U16, DType::F16, DType::I32, DType::F32, DType::I64, DType::F64] {
            for count in 2..=7i64 {
                let numbers: Vec<i32> = (1..=count as i32).collect();
                let x = Tensor::from_slice(&numbers, [count]).cast(dtype).to(device).contiguous();
                // As one vector, as the elements of one thread, and in rows.
                let twice = (&x + &x).cast(DType::I32).to_vec::<i32>()?;
                assert_eq!(
                    twice,
                    numbers.iter().map(|number| 2 * number).collect::<Vec<_>>(),
                    "{device} {dtype} {count}"
                );
                let parts: Vec<Tensor> = (0..count).rev().map(|i| x.at(i)).collect();
                let turned = Tensor::stack(&parts.iter().collect::<Vec<_>>(), 0).cast(DType::I32).to_vec::<i32>()?;
                assert!(turned.iter().rev().eq(&numbers), "{device} {dtype} {count}: {turned:?}");
                let sum = (&x * 2).sum(.., false).cast(DType::I32).to_vec::<i32>()?;
                assert_eq!(sum, [(count * (count + 1)) as i32], "{device} {dtype} {count}");
                let rows = x.reshape([1, count]).expand([3, count]) + x.at(0);
                let rows = rows.contiguous().sum(1, false).cast(DType::I32).to_vec::<i32>()?;
                assert_eq!(rows, [(count * (count + 1) / 2 + count) as i32; 3], "{device} {dtype} {count}");
            }
        }
    }
    Ok(())
}

/// Quotients by a constant, and roots of tiny numbers: code for them has constants of 64 bits in scalar registers.
#[test]
fn constants_of_64_bits_are_whole() -> Result<(), Box<dyn std::error::Error>> {
    register()?;
    let numbers = [1.0f64, 6.0, 7e-310, 3e300];
    for device in SIMULATED {
        let x = Tensor::from_slice(&numbers, [4]).to(device).contiguous();
        let (quotients, roots) = ((&x / 6.0).to_vec::<f64>()?, x.sqrt().to_vec::<f64>()?);
        assert_eq!(quotients, numbers.map(|number| number / 6.0), "{device}");
        assert_eq!(roots, numbers.map(f64::sqrt), "{device}");
    }
    Ok(())
}
