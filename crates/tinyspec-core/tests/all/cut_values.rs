//! Every op on values that a tuple of devices cuts: what one device gives, and where the result is cut.

use tinyspec_core::tensor::collectives::broadcast;
use tinyspec_core::{Tensor, grad, set_seed, stepped};
use tinyspec_ir::DType;
use tinyspec_ir::ops::options::default;

const FOUR: [&str; 4] = ["interpreter:0", "interpreter:1", "interpreter:2", "interpreter:3"];

fn numbers(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|number| ((number * 7) % 23) as f32 - 11.0).collect();
    Tensor::from_slice(&data, shape)
}

/// The values, whatever their dtype, and the shape.
fn floats(what: &str, tensor: &Tensor) -> (Vec<usize>, Vec<f64>) {
    let values = tensor.cast(DType::F64).to_vec().unwrap_or_else(|error| panic!("{what}: {error}"));
    (tensor.sizes().unwrap(), values)
}

type Op = fn(&Tensor) -> Tensor;

/// Ops on a value of `[12, 6]`, which 2, 3 and 4 devices cut along axis 0; and where two then cut the result.
const OPS: &[(&str, Option<usize>, Op)] = &[
    ("a slice that divides", Some(0), |x| x.at(0..12)),
    ("a slice of other parts", Some(0), |x| x.at(5..8)),
    ("a slice that no count divides", Some(0), |x| x.at(4..11)),
    ("one row", None, |x| x.at(7)),
    ("one row, kept", None, |x| x.narrow(0, 7, 1)),
    ("every other row", Some(0), |x| x.at(stepped(.., 2))),
    ("every third, backwards", Some(0), |x| x.at(stepped(.., -3))),
    ("flip", Some(0), |x| x.flip([0])),
    ("flip both", Some(0), |x| x.flip([0, 1])),
    ("flip of an uneven part", Some(0), |x| x.narrow(0, 1, 7).flip([0])),
    ("roll", Some(0), |x| x.roll([5], [0])),
    ("roll elsewhere", Some(0), |x| x.roll([2], [1])),
    ("pad", Some(0), |x| x.pad([3, 1], [16, 8], 0.5)),
    ("pad by more than a part", Some(0), |x| x.pad([30, 0], [60, 6], 0.0)),
    ("cat", Some(0), |x| Tensor::cat(&[x, &x.narrow(0, 3, 5), &x.flip([1])], 0)),
    ("cat elsewhere", Some(0), |x| Tensor::cat(&[x, x], 1)),
    ("stack", Some(1), |x| Tensor::stack(&[x, &x.neg()], 0)),
    ("split", Some(0), |x| x.split(5, 0)[1].clone()),
    ("repeat", Some(0), |x| x.repeat([2, 1])),
    ("a reshape with the same parts", Some(0), |x| x.reshape([12, 2, 3])),
    ("a reshape with other parts", Some(0), |x| x.reshape([8, 9])),
    ("a reshape that another cut survives", Some(1), |x| x.permute([1, 0]).reshape([1, 72])),
    ("a reshape that no cut survives", None, |x| x.reshape([2, 36]).narrow(0, 0, 1).reshape([36])),
    ("a reshape after a cut further in", Some(0), |x| x.permute([1, 0]).reshape([6, 3, 4])),
    ("sum over the cut", None, |x| x.sum(0, false)),
    ("sum elsewhere", Some(0), |x| x.sum(1, true)),
    ("max of an uneven part", None, |x| x.narrow(0, 2, 7).max(0, false)),
    ("cumsum along the cut", None, |x| x.cumsum(0)),
    ("sort along the cut", None, |x| x.sort(0, false)[0].clone()),
    ("argmax along the cut", None, |x| x.argmax(0)),
    ("bits in other sizes", Some(0), |x| x.reshape([72]).bitcast(DType::U16).bitcast(DType::F32)),
    ("tril", Some(0), |x| x.tril(0)),
    ("matmul with its transpose", Some(0), |x| x.matmul(x.transpose(0, 1))),
    ("matmul over the cut", None, |x| x.transpose(0, 1).matmul(x)),
    ("two cuts", Some(0), |x| x.narrow(0, 0, 6) + x.narrow(0, 6, 6).transpose(0, 1)),
    ("pooling along the cut", Some(2), |x| x.reshape([1, 1, 12, 6]).max_pool2d([3, 3], default())),
];

#[test]
fn every_op_gives_what_one_device_gives() {
    let whole = numbers(&[12, 6]);
    let mut wrong: Vec<String> = vec![];
    for count in 2..=4 {
        let cut = whole.to(&FOUR[..count]);
        for (what, axis, op) in OPS {
            let what = format!("{what} on {count} devices");
            let (want, found) = (op(&whole), op(&cut));
            let lazy = found.axis();
            assert_eq!(floats(&what, &found), floats(&what, &want), "{what}");
            found.realize().unwrap();
            assert_eq!(found.axis(), lazy, "{what}: the axis, computed");
            if count == 2 && lazy != *axis {
                wrong.push(format!("{what}: {lazy:?}, not {axis:?}"));
            }
            // As it is on the devices, it can be used again.
            assert_eq!(floats(&what, &found.add(&found)), floats(&what, &want.add(&want)), "{what}, twice");
        }
    }
    assert!(wrong.is_empty(), "axes: {wrong:#?}");
}

#[test]
fn gradients_are_those_of_one_device() {
    let (whole, devices) = (numbers(&[12, 6]), &FOUR[..3]);
    for (what, _, op) in OPS {
        let slope = |x: &Tensor| -> Option<Tensor> {
            let y = op(x);
            let loss = (&y * &y * 0.25).sum(.., false);
            y.dtype().is_float().then(|| grad(&loss, &[&whole]).ok()?.pop())?
        };
        let (Some(want), found) = (slope(&whole), slope(&whole.to(devices))) else { continue };
        let found = found.unwrap_or_else(|| panic!("{what} has no gradient over devices"));
        assert_eq!(floats(what, &found), floats(what, &want), "gradient of {what}");
    }
}

#[test]
fn what_is_drawn_for_a_value_is_drawn_where_it_is() {
    let x = numbers(&[12, 6]);
    let draws: [(&str, Op); 5] = [
        ("dropout", |x| x.dropout(0.3)),
        ("randn_like", |x| x.randn_like() + x),
        ("rand_like", |x| x.rand_like() + x),
        ("bernoulli", |x| x.sigmoid().bernoulli()),
        ("multinomial", |x| x.sigmoid().multinomial(3, true)),
    ];
    for (name, draw) in draws {
        let drawn = |x: &Tensor| {
            set_seed(3);
            floats(name, &draw(x))
        };
        let wanted = drawn(&x.to("interpreter:0"));
        assert_eq!(drawn(&x.to("interpreter:2")), wanted, "{name}");
        assert_eq!(drawn(&x.to(&FOUR[..3])), wanted, "{name}");
        assert_eq!(drawn(&broadcast(&x, &FOUR[..2])), wanted, "{name}");
    }
}

#[test]
fn what_picks_comes_to_every_device_by_itself() {
    let (table, tokens) = (numbers(&[12, 6]), Tensor::from_slice(&[3i32, 0, 11, -1, 20], [5]));
    let (cut, everywhere) = (table.to(&FOUR[..3]), broadcast(&table, &FOUR[..3]));
    for table_there in [&cut, &everywhere] {
        let same = |what: &str, op: &dyn Fn(&Tensor) -> Tensor| {
            assert_eq!(floats(what, &op(table_there)), floats(what, &op(&table)), "{what}");
        };
        same("embedding", &|table| tokens.embedding(table));
        same("at", &|table| table.at(&tokens));
        same("at of two", &|table| table.at((&tokens, &tokens)));
        same("index_select", &|table| table.index_select(1, Tensor::from_slice(&[5i32, 0], [2])));
        same("a mask of rows", &|table| table.at(table.sum(1, false).gt(0.0)));
        same("a mask of all", &|table| table.masked_select(&table.gt(0.0)));
        same("nonzero", &|table| table.maximum(0.0).nonzero());
        let picks = Tensor::from_slice(&(0..72).map(|number| number * 7 % 6).collect::<Vec<i32>>(), [12, 6]);
        same("gather", &|table| table.gather(&picks, 1));
        same("scatter", &|table| table.scatter(&picks, table.neg(), 1));
        same("scatter_add", &|table| table.scatter_add(&picks, table.neg(), 1));
        let rows = Tensor::from_slice(&[3i32, 0, -1, 3], [4]);
        same("index_add", &|table| table.index_add(0, &rows, table.narrow(0, 2, 4)));
        same("index_copy", &|table| table.index_copy(0, &rows, table.narrow(0, 2, 4)));
        same("index_fill", &|table| table.index_fill(0, &rows, 0.5));
        same("set", &|table| {
            let mut new = table.clone();
            new.set(&rows, 0.5);
            new.set((.., Tensor::from_slice(&[true, false, false, true, true, false], [6])), -2.0);
            new
        });
        same("a scalar", &|table| table * Tensor::scalar(3.0f32));
        same("a scalar that is lazy", &|table| table + numbers(&[3]).sum(.., false));
    }
    let gradient = |table: &Tensor, tokens: &Tensor| {
        let loss = tokens.embedding(table).square().sum(.., false);
        grad(&loss, &[table]).unwrap().pop().unwrap()
    };
    assert_eq!(floats("embedding'", &gradient(&everywhere, &tokens)), floats("embedding'", &gradient(&table, &tokens)));
}

#[test]
fn constants_that_were_computed_come_along() {
    let full = Tensor::full([12, 6], 2.5f32);
    full.realize().unwrap();
    let devices = &FOUR[..2];
    assert_eq!(floats("to", &full.to(devices)), floats("to", &full));
    assert_eq!(full.to(devices).axis(), Some(0));
    let x = numbers(&[12, 6]);
    assert_eq!(floats("beside", &(x.to(devices) * &full)), floats("beside", &(&x * &full)));
    assert_eq!(floats("broadcast", &broadcast(&full, devices)), floats("broadcast", &full));
    // On one device, too.
    let there = numbers(&[12, 6]).to("interpreter:3") + &full;
    assert_eq!(floats("one device", &there), floats("one device", &(&x + &full)));
    assert_eq!(floats("moved", &full.to("interpreter:3")), floats("moved", &full));
}

#[test]
fn a_mistake_in_a_mask_is_at_the_line_of_its_use() {
    let x = numbers(&[3, 4]);
    let mask = Tensor::from_slice(&[true, false], [2]);
    let (failed, line) = (x.at(&mask), line!());
    let error = failed.realize().unwrap_err();
    let location = error.location().unwrap_or_else(|| panic!("no line in {error}"));
    assert!(location.file.ends_with("cut_values.rs") && location.line == line, "{error}");
    let broken = x.reshape([5]);
    for failed in [x.masked_select(&broken.gt(0.0)), x.at(broken.gt(0.0)), broken.nonzero(), x.masked_select(&mask)] {
        let error = failed.realize().unwrap_err();
        assert!(error.location().unwrap().file.ends_with("cut_values.rs"), "{error}");
    }
}
