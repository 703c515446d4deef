//! Arrays of the crate `ndarray` and `.npy` files: optional features of the library, which no default member of the workspace
//! asks for, so that a first build is spared their dependencies.
#![cfg(test)]

use std::path::PathBuf;
use tinyspec::prelude::*;

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tinyspec-{}-{name}.npy", std::process::id()))
}

/// A file as the format's description has it.
fn by_hand(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16 + 1).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.push(b'\n');
    bytes.extend(data);
    bytes
}

#[test]
fn arrays_survive_a_file() -> Result<(), Error> {
    let path = file("survive");
    let lacking = [DType::Void, DType::Index, DType::BF16, DType::F8E4M3, DType::F8E5M2];
    let written = |dtype: &DType| !lacking.contains(dtype);
    for dtype in DType::ALL.iter().copied().filter(written) {
        let x = Tensor::arange(6).reshape([2, 3]).cast(dtype);
        x.save_npy(&path)?;
        let read = Tensor::load_npy(&path)?;
        assert_eq!((read.dtype(), read.sizes()?), (dtype, vec![2, 3]));
        assert_eq!(read.to_bytes()?, x.to_bytes()?);
    }
    let error = Tensor::ones([1]).cast(DType::BF16).save_npy(&path).expect_err("no such type").to_string();
    assert!(error.contains("bf16 is not written"), "{error}");
    std::fs::remove_file(path).expect("the file is there");
    Ok(())
}

#[test]
fn files_of_other_orders_are_read() -> Result<(), Error> {
    let path = file("orders");
    let numbers: Vec<u8> = [1i16, 2, 3, 4, 5, 6].iter().flat_map(|number| number.to_be_bytes()).collect();
    let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
    std::fs::write(&path, by_hand(header, &numbers)).expect("written");
    let x = Tensor::load_npy(&path)?;
    assert_eq!((x.sizes()?, x.to_vec::<i16>()?), (vec![2, 3], vec![1, 3, 5, 2, 4, 6]));
    for (header, data) in [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000), }", &numbers),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1099511627776, 1099511627776), }", &numbers),
        ("{'xshape': (1,), 'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", &numbers),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (0x100000000, 4_294_967_296), }", &numbers),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': [4294967296, 4294967296], }", &numbers),
        ("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", &numbers),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (30,), }", &numbers),
        ("{}", &numbers),
    ] {
        std::fs::write(&path, by_hand(header, data)).expect("written");
        assert!(matches!(Tensor::load_npy(&path), Err(Error::File { .. })), "{header}");
    }
    for bytes in
        [by_hand("{'descr': '<f4', 'fortran_order': Fa", &[]), b"\x93NUMPY\x01\x00\xff\x00{".to_vec(), b"PK".to_vec()]
    {
        std::fs::write(&path, bytes).expect("written");
        let error = Tensor::load_npy(&path).expect_err("no header").to_string();
        let message = "its header is not one of NumPy's: it is not a `.npy` file, or damaged or cut off";
        assert_eq!(error, format!("file {}: {message}", path.display()));
    }
    std::fs::remove_file(&path).expect("the file is there");
    assert!(Tensor::load_npy(&path).is_err());
    Ok(())
}

#[test]
fn arrays_of_every_layout_are_tensors() -> Result<(), Error> {
    let array = ndarray::Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i32);
    let turned = array.view().permuted_axes([2, 0, 1]);
    let x = Tensor::from_ndarray(&turned);
    assert_eq!(x.sizes()?, [4, 2, 3]);
    assert_eq!(x.at((3, 1, 2)).item::<i32>()?, 123);
    assert_eq!(x.to_ndarray::<i32>()?, turned.into_dyn());
    assert_eq!(Tensor::scalar(2.5f64).to_ndarray::<f64>()?, ndarray::arr0(2.5).into_dyn());
    assert!(x.to_ndarray::<f32>().is_err());
    Ok(())
}
