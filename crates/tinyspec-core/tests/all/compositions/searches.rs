//! Searches and elements by their number: the way that costs least for the sizes at hand.

use super::steps;
use tinyspec_core::{Error, Program, Tensor};

fn mixed(count: i64) -> Tensor {
    ((Tensor::arange(count) * 7919) % 10_007).contiguous()
}

/// Searching among many values takes fewer steps than comparing every element with all of them; among few, one comparison kernel does.
#[test]
fn elements_are_looked_up_among_many_values() -> Result<(), Error> {
    let elements = 1 << 20;
    for values in [200, 1000, 10_000] {
        let found = steps(&[&mixed(elements).isin(mixed(values))])?;
        let compared = steps(&[&mixed(elements).reshape([-1, 1]).eq(mixed(values)).any([1], false)])?;
        assert!(found < compared, "{found} steps for {values} values, {compared} for comparing all");
    }
    let few = mixed(10).isin(mixed(3000));
    let programs = Program::of(&[&few])?.len();
    assert!(programs <= 3, "{programs} kernels to compare 10 elements with 3000");
    Ok(())
}

/// A row that can be compared with itself at once is brought in order; a selection would be dozens of kernels.
#[test]
fn a_number_in_a_short_row_takes_few_kernels() -> Result<(), Error> {
    let x = mixed(400).cast(tinyspec_ir::DType::F32);
    for (name, element) in [
        ("median", x.median(0, false)),
        ("kthvalue", x.kthvalue(7, 0, false)),
        ("quantile", x.quantile(0.3, 0, false)),
        ("nanmedian", x.nanmedian(0, false)),
        ("sort", x.sort(0, false)[0].clone()),
    ] {
        let programs = Program::of(&[&element])?.len();
        assert!(programs < 10, "{name} of 400 elements: {programs} kernels");
    }
    Ok(())
}
