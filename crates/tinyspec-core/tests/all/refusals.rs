//! What is refused names the op that was called, and the line.

use tinyspec_core::{Error, Function, Rest, Spec, Tensor, stepped};
use tinyspec_ir::ops::options::{Conv2d, default};
use tinyspec_ir::{DType, Dim, ErrorKind};

#[track_caller]
fn refused(tensor: &Tensor, expected: &str) {
    let line = std::panic::Location::caller().line();
    let error = tensor.error().unwrap_or_else(|| panic!("{tensor:?} is no error"));
    assert!(error.to_string().contains(expected), "{error} does not say {expected}");
    assert_eq!(error.location().map(|location| location.line), Some(line), "{error}");
}

/// What is wrong is said in the sizes that were asked for, and a limit by the end that was passed.
#[test]
fn absurd_sizes_are_refused_for_what_they_are() {
    const MOST: i64 = i64::MAX;
    let (x, images) = (Tensor::ones([4]), Tensor::ones([1, 2, 8, 8]));
    let weight = Tensor::ones([2, 2, 3, 3]);
    refused(&Tensor::eye(MOST, 2, DType::F32), "eye: [9223372036854775807, 2] has too many elements");
    refused(&Tensor::zeros([usize::MAX]), "zeros: [9223372036854775807] has too many elements");
    refused(&Tensor::arange(MOST), "arange: [9223372036854775807] has too many elements");
    refused(&Tensor::arange(1i64 << 62), "arange: [4611686018427387904] has too many elements");
    refused(&Tensor::linspace(0.0, 1.0, MOST, DType::F32), "linspace: [9223372036854775807] has too many elements");
    refused(&Tensor::logspace(0.0, 1.0, MOST, 2.0, DType::F32), "logspace: [9223372036854775807] has too many");
    refused(&Tensor::arange(3).one_hot(MOST), "one_hot: [3, 9223372036854775807] has too many elements");
    refused(&x.reshape([MOST, MOST]), "reshape: [9223372036854775807, 9223372036854775807] has too many elements");
    refused(&x.reshape([i64::MIN]), "reshape: the dim -9223372036854775808 of [-9223372036854775808] is negative");
    refused(&x.reshape([2, -2]), "reshape: the dim -2 of [2, -2] is negative");
    refused(&x.unfold(0, MOST, 1), "it is at most 2147483647");
    refused(&x.unfold(0, 0, 1), "it is at least 1");
    refused(&images.pixel_shuffle(MOST), "it is at most 1048575");
    refused(&images.center_crop([MOST, 2]), "it is at most 2147483647");
    refused(&images.adaptive_avg_pool2d([MOST, 2]), "it is at most");
    refused(&images.interpolate([MOST, 2], "nearest", false), "it is at most 1073741824");
    refused(&Tensor::hann_window(MOST, true), "it is at most 1073741823");
    refused(&Tensor::tril_indices(MOST, 3, 0), "tril_indices: 9223372036854775807 rows");
    refused(&Tensor::tril_indices(3, 3, i64::MIN), "it is at least -32768");
    let conv = |options| images.conv2d(&weight, None, options);
    for (options, expected) in [
        (Conv2d { padding: [MOST; 2], ..default() }, "it is at most 2147483647"),
        (Conv2d { padding: [-1; 2], ..default() }, "it is at least 0"),
        (Conv2d { stride: [MOST; 2], ..default() }, "it is at most 2147483647"),
        (Conv2d { dilation: [0; 2], ..default() }, "it is at least 1"),
    ] {
        let error = conv(options).error().expect("refused").to_string();
        assert!(error.contains(expected), "{error} does not say {expected}");
    }
}

/// Messages quote the numbers that the user wrote.
#[test]
fn refusals_show_what_was_written() {
    refused(&Tensor::ones([6]).reshape([4, -1]), "reshape: -1 stands for 6 / 4 in [4, -1]");
    let x = Tensor::ones([5]);
    refused(&x.unsqueeze(3), "unsqueeze: [5] cannot have a new axis 3");
    refused(&x.unsqueeze(-3), "new axes go from -2 to 1");
    refused(&Tensor::full_of([2], 300, DType::U8), "full_of: 300 is not a value of u8, which goes from 0 to 255");
    refused(&Tensor::full_of([2], 300, DType::U8), "DType::I16 holds it");
    refused(&Tensor::ones([2]).cast(DType::I8).full_like(128), "full_like: 128 is not a value of i8");
    refused(&Tensor::full([2], 1e300), "full: 1e300 is not a value of f32");
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
    refused(&logits.cross_entropy(&target, "mean", 2.0, -100), "cross_entropy: label_smoothing 2 is not between");
    refused(&logits.nll_loss_weight(&target, Tensor::ones([3]), "mean"), "nll_loss_weight: weights of shape [3]");
    let swapped = "targets of f32 [1, 4] for predictions of i32 [1]: they are swapped";
    refused(&target.cross_entropy(&logits, "mean", 0.0, -100), &format!("cross_entropy: {swapped}"));
    refused(&target.nll_loss(&logits, "mean"), &format!("nll_loss: {swapped}"));
    refused(&target.multi_margin_loss(&logits, "mean", 1.0, 1.0), &format!("multi_margin_loss: {swapped}"));
    let floats = target.cast(DType::F32);
    refused(&floats.cross_entropy(&logits, "mean", 0.1, -100), "predictions of f32 [1]: they are swapped");
    refused(&logits.cross_entropy(&floats, "mean", 0.0, -100), "cross_entropy: an index must be an integer, found f32");
    let expected = "targets of f32 [1, 4] for predictions of f32 [1, 4], not of class numbers";
    refused(&logits.cross_entropy(&logits, "mean", 0.0, -100), expected);
    refused(&Tensor::from_slice(&[1f32], [2]), "from_slice: 1 elements do not fill [2]");
    refused(&Tensor::from_vec(vec![1f32], [2]), "from_vec: 1 elements do not fill [2]");
    let (tokens, table) = (Tensor::from_slice(&[1i32, 0], [2]), Tensor::ones([3, 4]));
    refused(&table.embedding(&tokens), "embedding: tokens of f32 [3, 4] in a table of i32 [2]: they are swapped");
    assert_eq!(x.chunk(i64::MAX, 0).len(), 2);
}

/// Sizes that belong together are named as the user knows them, not as they were made to fit.
#[test]
fn sizes_that_belong_together_are_compared_as_they_were_passed() {
    let (images, four, three) = (Tensor::ones([1, 3, 8, 8]), Tensor::ones([4]), Tensor::ones([3]));
    let channels = "4 numbers for the 3 channels of [1, 3, 8, 8]";
    refused(&images.batch_norm_train(&four, &three, 1e-5), &format!("batch_norm_train: {channels}"));
    refused(&images.batch_norm_eval(&three, &three, &four, &three, 1e-5), &format!("batch_norm_eval: {channels}"));
    refused(&images.instance_norm(&three, &four, 1e-5), &format!("instance_norm: {channels}"));
    let x = Tensor::ones([2, 3]);
    refused(&Tensor::einsum("ij,jk->ik", &[&x, &x]), "einsum: `j` of `ij,jk->ik` is an axis of 3 and one of 2");
    let (wide, long, mask) = (Tensor::ones([1, 3, 9, 4]), Tensor::ones([1, 3, 9, 8]), Tensor::ones([8, 9]));
    refused(&images.sdpa(&wide, &wide, false), "queries of [1, 3, 8, 8] and keys of [1, 3, 9, 4] differ in width");
    refused(&images.sdpa(&images, &long, true), "keys of [1, 3, 8, 8] and values of [1, 3, 9, 8] differ in number");
    let expected = "sdpa_mask: a mask of [8, 9] for scores of [1, 3, 8, 8]";
    refused(&images.sdpa_mask(&images, &images, mask.gt(0.0)), expected);
    refused(&images.sdpa_mask(&images, &images, &mask), expected);
}

/// What is read or derived in vain says what to write.
#[test]
fn reading_and_deriving_have_help() {
    let (x, w) = (Tensor::ones([2, 3]), Tensor::ones([3]));
    let errors = [
        x.item::<f32>().unwrap_err(),
        tinyspec_core::grad(&x, &[&x]).unwrap_err(),
        tinyspec_core::grad(&x.gt(0.0).sum(.., false), &[&x]).unwrap_err(),
        tinyspec_core::grad(&x.sum(.., false), &[&Tensor::arange(3)]).unwrap_err(),
        tinyspec_core::nn::Optimizer::step(&mut tinyspec_core::nn::Sgd::new(0.1), &mut [&mut x.clone()], &[])
            .unwrap_err(),
        tinyspec_core::nn::Optimizer::step(&mut tinyspec_core::nn::Sgd::new(0.1), &mut [&mut x.clone()], &[w])
            .unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("\n  help: ") && error.to_string().contains("refusals.rs:"), "{error}");
    }
}

#[test]
fn errors_are_as_readable_where_main_returns_them() {
    let wrong = Tensor::ones([2, 3]).matmul(Tensor::ones([4, 5]));
    let error = wrong.to_vec::<f32>().unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(format!("{error:?}").contains("matmul: ") && format!("{error:?}").contains("refusals.rs:"), "{error:?}");
    let error = tinyspec_core::execute::device("gpu").unwrap_err();
    assert_eq!(format!("{error:#?}"), error.to_string());
}

/// The caller's own mistakes come before those that follow from them.
#[test]
fn preparing_with_a_failed_tensor_gives_its_error() {
    fn double(x: &Tensor) -> Tensor {
        x + x
    }
    let wrong = Tensor::ones([2, 3]).matmul(Tensor::ones([4, 5]));
    let expected = wrong.error().unwrap().to_string();
    assert_eq!(tinyspec_core::function::Prepare::prepare(&double, &[&wrong]).unwrap_err().to_string(), expected);
    // What the function refuses is refused where it is prepared.
    let line = line!() + 1;
    let error = tinyspec_core::function::Prepare::prepare(&Tensor::inverse, &[&Tensor::ones([2, 3])]).unwrap_err();
    assert_eq!(error.location().map(|location| location.line), Some(line), "{error}");
    let traced = Function::trace(&[Spec::new(DType::F32, [2])], |inputs| vec![double(&inputs[0])]).unwrap();
    assert_eq!(traced.prepare(&[&wrong]).unwrap_err().to_string(), expected);
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
fn errors_name_the_method_that_was_called() {
    let (x, y, i) = (Tensor::ones([2, 3]), Tensor::ones([4]), Tensor::arange(6).reshape([2, 3]));
    refused(&i.copysign(&i), "copysign: needs a float");
    refused(&x.copysign(&y), "copysign: shapes do not broadcast");
    refused(&x.any(5, false), "any: axis 5");
    refused(&x.all(5, false), "all: axis 5");
    refused(&x.std(5, 1, false), "std: axis 5");
    refused(&x.lerp(&y, 0.5), "lerp: shapes do not broadcast");
    refused(&x.modulo(&y), "modulo: shapes do not broadcast");
    refused(&(&x % &y), "modulo: shapes do not broadcast");
    refused(&x.gt(0.0).frac(), "frac: ");
    refused(&x.gt(0.0).logsigmoid(), "logsigmoid: ");
    refused(&x.sum(.., false).rms_norm(1, 1e-5), "rms_norm: ");
    refused(&y.one_hot(3), "one_hot: ");
    refused(&x.repeat([i64::MAX, i64::MAX]), "repeat: ");
    refused(&x.repeat_interleave(i64::MAX, 0), "repeat_interleave: ");
    refused(&x.sdpa_mask(&y, &y, &y), "sdpa_mask: ");
    refused(&Tensor::random_key().uniform_with([-3], 0.0, 1.0, DType::F32), "uniform_with: ");
    refused(&(Tensor::arange(3).cast(DType::U8) + 300), "add: 300 is not a value of u8");
    refused(&Tensor::arange(3).cast(DType::U8).maximum(-1), "maximum: -1 is not a value of u8");
    // What went wrong before keeps its name.
    refused_at(&(x.matmul(&x) + 1.0).relu(), "matmul: inner dimensions differ: 3 and 2");
    let call = [tinyspec_core::Argument::Tensor(x.clone()), tinyspec_core::Argument::Tensor(y.clone())];
    let error = Tensor::call("modulo", &call).expect_err("the shapes differ").to_string();
    assert!(error.starts_with("modulo: "), "{error}");
}

fn refused_at(tensor: &Tensor, expected: &str) {
    let error = tensor.error().map(ToString::to_string).unwrap_or_default();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn mixed_devices_are_what_is_refused() {
    let (x, y) = (Tensor::ones([12, 6]).to("interpreter"), Tensor::ones([6, 12]).to("simt"));
    refused(&x.matmul(&y), "matmul: mixes devices");
    let index = Tensor::zeros([1, 6]).cast(DType::I32).contiguous().to("simt");
    refused(&x.gather(&index, 0), "gather: mixes devices");
    refused(&Tensor::ones([3, 3]).to("interpreter").solve(Tensor::ones([3, 2]).to("simt")), "solve: mixes devices");
    refused(&x.lstsq(Tensor::ones([12, 2]).to("simt")), "lstsq: mixes devices");
}

#[test]
fn messages_tell_what_was_written() {
    let x = Tensor::ones([3, 4, 5]);
    refused(&x.at((0, 0, 0, 0)), "at: the picks are of 4 axes, [3, 4, 5] has 3");
    refused(&x.at((Rest, 0, Rest)), "at: `Rest` twice");
    let huge = [9_000_000_000i64, 9_000_000_000];
    refused(&Tensor::uniform(huge, 0.0, 1.0), "uniform: [9000000000, 9000000000] has too many");
    refused(&Tensor::rand(huge), "rand: [9000000000, 9000000000] has too many");
    let (b, c) = (Dim::named(0, 1, 9), Dim::named(1, 1, 9));
    let names = [(0, "B".to_string()), (1, "C".to_string())];
    let two = Dim::from(2);
    tinyspec_ir::dim::with_names(&names, || {
        assert_eq!(b.idiv(&two).to_string(), "B/2");
        assert_eq!((b.idiv(&two) * two.clone()).to_string(), "2*(B/2)");
        assert_eq!((&b + &c).modulo(&Dim::from(7)).to_string(), "(B+C)%7");
        assert_eq!((&b * &c).idiv(&Dim::from(4)).to_string(), "(B*C)/4");
    });
    // A dim that another divides is a product of both: it is shown as it was written.
    let names = [(0, "H".to_string()), (1, "(D/H)".to_string()), (2, "(E/4)".to_string())];
    let quarter = Dim::named(2, 1, 9);
    tinyspec_ir::dim::with_names(&names, || {
        assert_eq!((&b * &c).to_string(), "D");
        assert_eq!((&b * &c * Dim::from(3)).to_string(), "3*D");
        assert_eq!((&b * &b * &c).to_string(), "H*D");
        assert_eq!(c.to_string(), "(D/H)");
        assert_eq!((&quarter * Dim::from(8)).to_string(), "2*E");
        assert_eq!((&quarter * Dim::from(2)).to_string(), "2*(E/4)");
    });
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
    let error =
        Function::trace(&spec, |inputs| vec![&inputs[0] + Tensor::randn([2])]).expect_err("a key is not an input");
    assert_eq!(error.kind(), Some(ErrorKind::Unsupported));
    assert!(error.to_string().contains("a random tensor holds a key"), "{error}");
}

/// Each refusal says what to do.
#[test]
fn refusals_have_help() {
    let x = Tensor::ones([2, 3]);
    let (whole, vector, mask) = (Tensor::arange(3), Tensor::ones([3]), x.gt(0.0));
    let images = Tensor::ones([1, 3, 7, 7]);
    let (weight, three) = (Tensor::ones([4, 3, 3, 3]), Tensor::ones([3]));
    let refused = [
        x.topk(-1, 1, true)[0].clone(),
        x.topk(4, 1, true)[0].clone(),
        x.chunk(0, 0).remove(0),
        x.split(0, 0).remove(0),
        x.split_sizes([1, 5], 0).remove(0),
        whole.bincount(-1),
        whole.one_hot(-1),
        x.group_norm(&three, &three, 2, 1e-5),
        x.layer_norm(&three, &three, 7, 1e-5),
        x.instance_norm(&three, &three, 1e-5),
        x.sum([0i64, 0], false),
        x.gather(&whole, 0),
        x.index_select(0, &x),
        x.index_add(0, Tensor::arange(2), Tensor::ones([3, 3])),
        x.masked_fill(&x, 1.0),
        x.masked_scatter(&x, &x),
        x.masked_select(&x),
        x.at((0, 0, 0)),
        x.at(5),
        x.at(stepped(.., 0)),
        x.at((Rest, 0, Rest)),
        Tensor::ones([2]).at(&mask),
        x.select(0, 7),
        x.rot90(1, 0, 0),
        x.repeat([2]),
        x.repeat([-1, 1]),
        x.repeat_interleave(-1, 0),
        x.flatten(1, 0),
        vector.tril(0),
        vector.trace(),
        Tensor::cat(&[&x, &Tensor::ones([4, 5])], 0),
        Tensor::cat(&[], 0),
        Tensor::stack(&[], 0),
        Tensor::cartesian_prod(&[&x]).clone(),
        images.conv2d(&weight, Some(&three), default()),
        images.pixel_shuffle(2),
        images.pixel_unshuffle(2),
        x.cross_entropy(Tensor::arange(2), "mean", 2.0, -100),
        x.outer(&x),
        x.inverse(),
        vector.qr()[0].clone(),
        vector.histc(0, 0.0, 1.0),
        vector.quantile(2.0, 0, false),
        x.searchsorted(&three, false),
        x.dropout(1.5),
        Tensor::randint([2], 5, 5),
        Tensor::linspace(0.0, 1.0, -3, DType::F32),
        Tensor::from_slice(&[1f32], [2]),
        x.glu(1),
        x.hardtanh(1.0, 0.0),
        x.diff(-1, 0),
    ];
    for tensor in refused {
        let error = tensor.error().unwrap_or_else(|| panic!("{tensor:?} is no error")).to_string();
        assert!(error.contains("\n  help: "), "{error}");
        assert!(error.contains("refusals.rs:"), "{error}");
    }
}

/// A method with several results that fails returns all of them, each with the error.
#[test]
fn all_results_of_a_call_that_fails_are_there() {
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
    let failed: [(Vec<Tensor>, usize); 7] = [
        (x.topk(4, 0, true).into(), 2),
        (x.sort(1, false).into(), 2),
        (x.std_mean(2, 1, false).into(), 2),
        (x.lu().into(), 3),
        (x.chunk(2, 3), 2),
        (x.split_sizes([1, 1, 5], 0), 3),
        (Tensor::meshgrid(&[&x, &Tensor::ones([2, 2]), &x], "ij"), 3),
    ];
    for (results, count) in failed {
        assert_eq!(results.len(), count);
        assert!(results.iter().all(|result| result.error().is_some()));
    }
    // An invalid number of pieces does not exhaust memory.
    for pieces in [i64::MIN, 0, i64::MAX] {
        assert!((1..=1024).contains(&x.chunk(pieces, 1).len()));
    }
}

/// A number that becomes an element must be a value of the dtype; for integers, infinities are the ends of the range.
#[test]
fn elements_are_numbers_of_their_dtype() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1u8, 2, 3], [3]);
    refused(&x.pad([1], [4], -1.0), "pad: -1.0 is not a value of u8");
    refused(&x.pad([1], [4], 300.0), "pad: 300.0 is not a value of u8");
    refused(&x.pad([1], [4], 0.5), "pad: 0.5 is not a value of u8");
    refused(&Tensor::arange(3).pad([1], [4], f64::NAN), "is not a value of i32");
    refused(&x.threshold(2.0, 300.0), "threshold: 300.0 is not a value of u8");
    refused(&Tensor::full_of([2], 0.5, DType::I32), "0.5 is not a value of i32");
    assert_eq!(x.pad([1], [4], f64::INFINITY).to_vec::<u8>()?, [255, 1, 2, 3]);
    assert_eq!(Tensor::full_of([1], -3.0, DType::I32).to_vec::<i32>()?, [-3]);
    assert_eq!(Tensor::arange(3).pad([0], [4], -7.0).to_vec::<i32>()?, [0, 1, 2, -7]);
    refused(&Tensor::arange(5).pad([-1], [4], 0.0), "an offset counts from the start of the axis and is not negative");
    Ok(())
}

/// Parameters of a normalisation never make its result larger.
#[test]
fn parameters_of_norms_fit_their_rows() {
    let x = Tensor::ones([1, 4]);
    refused(&x.layer_norm(Tensor::ones([1]), Tensor::zeros([2, 1]), 1, 1e-5), "layer_norm: `bias` of shape [2, 1]");
    refused(&x.rms_norm(Tensor::ones([3, 1]), 1e-5), "rms_norm: `weight` of shape [3, 1]");
    assert!(x.layer_norm(Tensor::ones([4]), Tensor::zeros([1, 4]), 1, 1e-5).error().is_none());
}

#[test]
fn what_ends_a_gradient_is_named() {
    let x = Tensor::from_slice(&[1f32, 3.0, 2.0], [3]);
    let refused = |loss: Tensor, expected: [&str; 2]| {
        let error = tinyspec_core::grad(&loss, &[&x]).expect_err("no gradient").to_string();
        assert!(expected.iter().all(|text| error.contains(text)), "{error}");
    };
    let place = |line: u32| format!("{}:{line}", file!());
    let line = line!() + 1;
    let loss = (x.argmax(0).cast(DType::F32) * 2.0).sum(.., false);
    refused(loss, ["wanted tensor 0 but through i32 []", &place(line)]);
    refused((x.gt(1.5).cast(DType::F32) * 2.0).sum(.., false), ["but through bool [3] at", "`sigmoid`"]);
    refused((x.detach() * 2.0).sum(.., false), ["but through what was detached at", "f32 [3]"]);
    refused(Tensor::ones([2]).sum(.., false), ["does not depend on wanted tensor 0", "`grad_or_zeros`"]);
}

#[test]
fn ranks_that_differ_are_no_axis_to_choose() {
    let joined = Tensor::cat(&[&Tensor::ones([2, 3]), &Tensor::ones([3])], 0);
    refused_at(&joined, "cat: [2, 3] has 2 axes and [3] has 1");
}
