//! Values on a tuple of devices.

use crate::register;
use tinyspec::call_function;
use tinyspec::prelude::*;

#[test]
fn each_device_calls_it_on_the_whole_value() {
    register();
    let x = Tensor::arange(8).cast(DType::F32).reshape([4, 2]).to(["cpu:0", "cpu:1"]);
    let [y] = call_function("twice", &[], &[&(&x + 1.0)]);
    let sum = (y + &x).sum(1, false);
    assert_eq!(sum.to("cpu").to_vec::<f32>().unwrap(), [7.0, 19.0, 31.0, 43.0]);
}
