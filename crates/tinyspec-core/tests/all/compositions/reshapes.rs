//! Reshapes behind products, and loops behind sums: few more steps than without them.

use super::{ramp, same, steps};
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::DType;
use tinyspec_ir::ops::options::{Conv2d, default};

fn filled(shape: &[i64]) -> Tensor {
    let count = shape.iter().product();
    ((ramp(count) % 31 - 15).cast(DType::F32) * 0.125).reshape(shape).contiguous()
}

/// A product and what becomes of it.
type Behind = (&'static str, fn(&[Tensor]) -> Tensor, fn(&Tensor) -> Tensor);

const BEHIND: [Behind; 6] = [
    ("channels as pixels", convolution, |x| x.pixel_shuffle(2)),
    ("channels dealt in turn", convolution, |x| x.channel_shuffle(4)),
    ("turned, in one row", product, |x| x.transpose(0, 1).flatten(0, 1)),
    ("heads beside each other", heads, |x| x.transpose(0, 1).flatten(1, 2)),
    ("heads in one row", heads, |x| x.transpose(0, 1).flatten(0, 2)),
    ("blocks of rows and columns", product, |x| {
        x.reshape([4, 16, 8, 12]).permute([0, 2, 1, 3]).flatten(0, 1).flatten(1, 2)
    }),
];

fn convolution(data: &[Tensor]) -> Tensor {
    data[0].conv2d(&data[1], None, Conv2d { padding: [1, 1], ..default() })
}

fn product(data: &[Tensor]) -> Tensor {
    data[2].matmul(&data[3])
}

fn heads(data: &[Tensor]) -> Tensor {
    data[4].matmul(&data[5])
}

#[test]
fn a_reshape_behind_a_product_costs_some_steps_an_element() -> Result<(), Error> {
    let shapes: [&[i64]; 6] = [&[1, 16, 20, 24], &[32, 16, 3, 3], &[64, 48], &[48, 96], &[4, 40, 48], &[4, 48, 32]];
    let data = shapes.map(filled);
    for tensor in &data {
        tensor.realize()?;
    }
    for (name, product, behind) in BEHIND {
        let alone = product(&data);
        let both = behind(&product(&data));
        let (least, found) = (steps(&[&alone])?, steps(&[&both])?);
        let elements: i64 = both.sizes()?.iter().map(|&size| size as i64).product();
        assert!(found <= 4 * least + 4 * elements, "{name}: {found} steps, {least} without");
        alone.realize()?;
        assert!(same(&both.to_vec()?, &behind(&alone).to_vec()?), "{name}");
    }
    Ok(())
}

/// What a sum of squares scales takes vectors, as what other sums scale.
#[test]
fn rows_over_their_norm_take_no_more_steps_than_their_softmax() -> Result<(), Error> {
    let x = filled(&[96, 64]);
    let weight = filled(&[64]);
    x.realize()?;
    let least = steps(&[&x.softmax(-1)])?;
    for (name, rows) in [
        ("normalize", x.normalize(2.0, -1, 1e-12)),
        ("root mean square", x.rms_norm(&weight, 1e-6)),
        ("over the sum of squares", &x / (&x * &x).sum(1, true)),
    ] {
        let found = steps(&[&rows])?;
        assert!(found <= least, "{name}: {found} steps, softmax takes {least}");
    }
    Ok(())
}

/// A line that has made ramps of many lengths makes the next one as it made the first: their windows do not become data.
#[test]
fn ramps_of_many_lengths_on_one_line_stay_linear() -> Result<(), Error> {
    let ramp = |length: i64| Tensor::arange(length) * 3;
    for length in 1..=256 {
        ramp(8 * length - 1).realize()?;
    }
    let counters = tinyspec_core::profile::counters();
    assert!(counters.kernels <= counters.plans, "{counters:?}");
    Ok(())
}
