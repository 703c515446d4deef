//! What is refused names the op that was called, and the line.

use tinyspec_core::{Error, Function, Spec, Tensor};
use tinyspec_ir::{DType, ErrorKind};

#[track_caller]
fn refused(tensor: &Tensor, expected: &str) {
    let line = std::panic::Location::caller().line();
    let error = tensor.error().unwrap_or_else(|| panic!("{tensor:?} is no error"));
    assert!(error.to_string().contains(expected), "{error} does not say {expected}");
    assert_eq!(error.location().map(|location| location.line), Some(line), "{error}");
}

#[test]
fn composed_ops_speak_for_themselves() {
    let x = Tensor::ones([2, 2]);
    refused(&Tensor::arange(3).one_hot(-3), "one_hot: -3 classes");
    refused(&Tensor::eye(-1, 2, DType::F32), "eye: -1 rows and 2 columns");
    refused(&Tensor::zeros([-3]), "zeros: ");
    refused(&Tensor::ones([-3]), "ones: ");
    refused(&Tensor::full([-3], 2), "full: ");
    refused(&Tensor::randn([-3]), "randn: ");
    refused(&Tensor::uniform([-3], 0.0, 1.0), "uniform: ");
    refused(&x.repeat([-1, 1]), "repeat: -1 copies");
    refused(&x.unflatten(0, [3, 5]), "unflatten: ");
    refused(&Tensor::einsum("ij->ii", &[&x]), "einsum: the result of `ij->ii` has `i` twice");
    refused(&x.cast(DType::Void), "cast: ");
    refused(&x.to("gpu"), "no device `gpu`");
    refused(&x.roll([1, 2], [0]), "roll: 2 shifts for 1 axes");
    refused(&x.split_sizes([i64::MAX, 2], 0)[0], "split_sizes: ");
    refused(&Tensor::from_bytes(DType::F32, &[0; 7], &[1]), "from_bytes: 7 bytes");
    refused(&Tensor::from_bytes(DType::Void, &[], &[1]), "from_bytes: void");
    refused(&Tensor::from_bytes(DType::Index, &[0; 8], &[1]), "from_bytes: index");
    let (logits, target) = (Tensor::ones([1, 4]), Tensor::from_slice(&[1i32], [1]));
    refused(&logits.cross_entropy(&target, "mean", 2.0, -100), "cross_entropy: label_smoothing 2 is no share");
    refused(&logits.nll_loss_weight(&target, Tensor::ones([3]), "mean"), "nll_loss_weight: weights of shape [3]");
    assert_eq!(x.chunk(i64::MAX, 0).len(), 2);
}

#[test]
fn losses_do_not_broadcast() {
    let (column, row) = (Tensor::full([3, 1], 0.5), Tensor::full([3], 0.5));
    refused(&column.binary_crossentropy(&row, "mean"), "binary_crossentropy: predictions of [3, 1] and targets of [3]");
    refused(&column.binary_crossentropy_logits(&row, "mean"), "binary_crossentropy_logits: predictions of [3, 1]");
    refused(&column.cross_entropy_prob(&row, "mean"), "cross_entropy_prob: predictions of [3, 1] and targets of [3]");
}

#[test]
fn equations_are_made_of_letters() {
    let (x, matrix) = (Tensor::ones([2]), Tensor::ones([2, 2]));
    for wrong in [".....", "i$->$", "i1->i", "i-", "......", "i->i.", "i->i->i", "é->é", "...i..."] {
        refused(&Tensor::einsum(wrong, &[&x]), "is not made of letters and one `...`");
    }
    assert_eq!(Tensor::einsum("...i -> ...", &[&matrix]).to_vec::<f32>().expect("sums"), [2.0, 2.0]);
    let x = Tensor::ones([2, 2, 2]);
    assert_eq!(Tensor::einsum("...i", &[&x]).sizes().expect("all"), [2, 2, 2]);
}

#[test]
fn positions_beyond_all_axes() {
    let x = Tensor::from_slice(&[1i32, 2, 3], [3]);
    let error = x.at(usize::MAX).error().expect("there is no such element").to_string();
    assert!(error.contains("9223372036854775807"), "{error}");
    assert_eq!(x.at(1..usize::MAX).to_vec::<i32>().expect("to the end"), [2, 3]);
}

#[test]
fn reading_names_the_line() {
    let x = Tensor::ones([2]);
    let wrong: [(u32, Error); 2] = [
        (line!(), x.to_vec::<i32>().expect_err("the dtype is another")),
        (line!(), x.item::<f32>().expect_err("there are two")),
    ];
    for (line, error) in wrong {
        assert_eq!(error.location().map(|location| location.line), Some(line), "{error}");
    }
}

#[test]
fn random_tensors_in_a_body_are_told_of_their_keys() {
    let spec = [Spec::new(DType::F32, [2])];
    let error = Function::trace(&spec, |inputs| vec![&inputs[0] + Tensor::randn([2])]).expect_err("a key is no input");
    assert_eq!(error.kind(), Some(ErrorKind::Unsupported));
    assert!(error.to_string().contains("a random tensor holds a key"), "{error}");
}
