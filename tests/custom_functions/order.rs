//! Effects: when a call runs, how often, and after what.

use std::sync::{Arc, Mutex};
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, call_function, register_function, with_default_device};

/// Parameters and values, in order.
type Seen = Arc<Mutex<Vec<(String, Vec<f32>)>>>;

/// A probe that keeps what it has seen.
fn probe(name: &str) -> Seen {
    let seen: Seen = Arc::default();
    let keeps = seen.clone();
    let probe = CustomFunction::new(name, |_, _| Ok(vec![])).updates(1).host(move |call| {
        let text = format!("{:?}", call.meta);
        keeps.lock().unwrap().push((text, call.outputs[0].as_slice::<f32>()?.to_vec()));
        Ok(())
    });
    register_function(probe.gradient(|_, _, gradients| vec![Some(gradients[0].clone())])).unwrap();
    seen
}

#[test]
fn a_probe_sees_each_value_once_in_order() {
    let seen = probe("order::probe");
    for device in crate::devices() {
        let found = with_default_device(device, || {
            let x = Tensor::from_slice(&[1f32, 2.0], [2]);
            let [a] = call_function("order::probe", &[1.into()], &[&(&x + 1.0)]);
            let [b] = call_function("order::probe", &[2.into()], &[&(&a * 10.0)]);
            (b + a).to_vec::<f32>()
        });
        assert_eq!(found.unwrap(), [22.0, 33.0]);
        let expected = [("[Int(1)]".to_string(), vec![2.0, 3.0]), ("[Int(2)]".to_string(), vec![20.0, 30.0])];
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), expected, "{device}");
    }
}

#[test]
fn a_call_that_nobody_reads_does_not_run_and_a_read_result_does_not_run_again() {
    let seen = probe("order::lazy");
    let x = Tensor::from_slice(&[1f32], [1]);
    let [y] = call_function("order::lazy", &[], &[&x]);
    assert!(seen.lock().unwrap().is_empty());
    y.realize().unwrap();
    assert_eq!((y + 1.0).to_vec::<f32>().unwrap(), [2.0]);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn a_probe_within_a_loss_lets_the_gradient_through() {
    let seen = probe("order::loss");
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]);
    let [y] = call_function("order::loss", &["y".into()], &[&(&x * &x)]);
    let loss = (y * 2.0).sum(.., false);
    let gradients = grad(&loss, &[&x]).unwrap();
    assert_eq!(loss.item::<f32>().unwrap(), 28.0);
    assert_eq!(gradients[0].to_vec::<f32>().unwrap(), [4.0, 8.0, 12.0]);
    assert!(seen.lock().unwrap().iter().all(|(_, values)| values == &[1.0, 4.0, 9.0]));
}

#[test]
fn a_prepared_call_runs_it_every_time() {
    let seen = probe("order::prepared");
    let run = |x: &Tensor| {
        let [y] = call_function("order::prepared", &[], &[&(x + 1.0)]);
        y * 2.0
    };
    let x = Tensor::from_slice(&[1f32], [1]);
    let prepared = run.prepare(&[&x]).unwrap();
    let mut out = prepared.outputs().unwrap();
    for number in 1..4 {
        prepared.call(&mut out, &[&Tensor::from_slice(&[number as f32], [1])]).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), [2.0 * (number as f32 + 1.0)]);
    }
    let values: Vec<f32> = seen.lock().unwrap().iter().map(|(_, values)| values[0]).collect();
    assert_eq!(values, [2.0, 3.0, 4.0]);
}
