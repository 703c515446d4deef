//! What a device's memory holds, and that no more is taken than it may hold.

use std::sync::Arc;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_core::execute::{Device, register};
use tinyspec_core::tensor::collectives::broadcast;
use tinyspec_core::{Error, Tensor, grad};

const MEGABYTE: u64 = 1 << 20;

/// A device of the test's own, so that nobody else uses its memory.
fn device(name: &str, limit: Option<u64>) -> Arc<Device> {
    let interpreter = tinyspec_core::execute::device("interpreter").unwrap();
    let device =
        register(name, interpreter.target().clone(), Arc::new(InterpreterCompiler), Arc::new(InterpreterRuntime));
    device.limit_memory(limit);
    device
}

fn ones(count: usize, device: &str) -> Tensor {
    Tensor::from_slice(&vec![1.0f32; count], [count]).to(device)
}

#[test]
fn the_report_names_what_is_held() {
    let device = device("reported", None);
    let (small, large) = (ones(1000, "reported"), ones(100_000, "reported"));
    small.realize().unwrap();
    large.realize().unwrap();
    let line = line!() + 1;
    let sum = large.add(1.0).mul(&large);
    sum.realize().unwrap();
    let report = device.memory();
    assert_eq!((report.buffers, report.largest.len()), (3, 3));
    assert!(report.used >= 4 * 201_000 && report.peak >= report.used, "{report}");
    assert_eq!(report.largest[0].bytes, 400_000);
    assert_eq!(report.largest[2].what, "tensor f32 [1000]");
    let location = report.largest[1].location.as_ref().unwrap();
    assert!(location.file.ends_with("memory_limit.rs") && location.line == line, "{report}");
    drop((small, large, sum));
    let after = device.memory();
    assert_eq!((after.buffers, after.used), (0, 0));
    assert!(after.kept >= 4 * 201_000 && after.peak == report.peak, "{after}");
}

#[test]
fn what_was_never_there_is_no_peak() {
    let device = device("small", None);
    ones(1000, "small").realize().unwrap();
    let huge = Tensor::zeros([1i64 << 45]).to("small").contiguous();
    let Error::Memory { report, .. } = huge.realize().expect_err("128 TiB") else { panic!("of memory") };
    assert!(report.peak.max(device.memory().peak) < MEGABYTE, "{report}");
}

#[test]
fn what_exceeds_the_limit_is_refused_and_can_be_freed() {
    let device = device("limited", Some(MEGABYTE));
    let first = ones(150_000, "limited");
    first.realize().unwrap();
    let second = first.add(1.0);
    let error = second.realize().unwrap_err();
    let Error::Memory { report, location, .. } = &error else { panic!("{error}") };
    assert_eq!(report.limit, Some(MEGABYTE));
    assert!(location.is_some());
    let text = error.to_string();
    for part in ["tensor f32 [150000] of 600.0 kB", "the limit would be exceeded", "memory_limit.rs", "TINYSPEC_MEMORY"]
    {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    // The refused tensor is still a lazy one: with room, it is computed.
    device.limit_memory(None);
    assert_eq!(second.to_vec::<f32>().unwrap()[..2], [2.0, 2.0]);
}

#[test]
fn kept_memory_makes_room_first() {
    let device = device("kept", Some(MEGABYTE));
    // Each size has a class of its own: were all kept, the limit would be exceeded many times over.
    for size in (0..8).map(|step| 60_000 + 20_000 * step) {
        ones(size, "kept").realize().unwrap();
        let report = device.memory();
        assert!(report.used + report.kept <= MEGABYTE, "{report}");
    }
}

#[test]
fn sizes_that_no_memory_has_are_an_error() {
    let _device = device("endless", None);
    let endless = Tensor::full([1usize << 30, 1 << 20], 1.0f32).to("endless").contiguous();
    let error = endless.realize().unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
}

#[test]
fn each_device_of_a_tuple_holds_its_part_within_its_own_limit() {
    let names = ["part a", "part b"];
    let devices = names.map(|name| device(name, None));
    // 600 kB in all, 300 kB on each.
    let cut = Tensor::from_slice(&vec![1.0f32; 150_000], [150_000]).to(names);
    cut.realize().unwrap();
    for device in &devices {
        let report = device.memory();
        assert_eq!((report.buffers, report.largest[0].bytes), (1, 300_000), "{report}");
        assert_eq!(report.largest[0].what, "tensor f32 [75000]");
    }
    // One of them has no room for another part; the other one has.
    devices[1].limit_memory(Some(MEGABYTE / 2));
    let line = line!() + 1;
    let more = cut.add(1.0);
    let error = more.realize().unwrap_err();
    let Error::Memory { report, location: Some(location), .. } = &error else { panic!("{error}") };
    assert_eq!((report.device.as_str(), report.limit), ("part b", Some(MEGABYTE / 2)), "{error}");
    assert!(location.file.ends_with("memory_limit.rs") && location.line == line, "{error}");
    assert!(devices.iter().all(|device| device.memory().peak <= MEGABYTE), "a device took the other's part");
    // What every device has as a whole is refused where it does not fit.
    let whole = broadcast(&Tensor::from_slice(&vec![1.0f32; 150_000], [150_000]), names);
    assert!(matches!(whole.realize(), Err(Error::Memory { .. })));
    // With room both are computed.
    devices[1].limit_memory(None);
    assert_eq!(more.sum(.., false).item::<f32>().unwrap(), 300_000.0);
    assert_eq!(whole.sum(.., false).item::<f32>().unwrap(), 150_000.0);
    drop((cut, more, whole));
    for device in &devices {
        let report = device.memory();
        assert_eq!((report.buffers, report.used), (0, 0), "{report}");
    }
}

/// A loss that was read holds its batch for a gradient, until the memory is needed.
#[test]
fn what_gradients_may_need_makes_room() {
    let device = device("short", Some(4 * MEGABYTE));
    let weight = ones(1, "short");
    let losses: Vec<Tensor> = (0..12)
        .map(|_| {
            let batch = ones(150_000, "short");
            let loss = weight.mul(&batch).sum(.., false);
            assert_eq!(loss.item::<f32>().unwrap(), 150_000.0);
            loss
        })
        .collect();
    let kept = losses.iter().filter(|loss| grad(loss, &[&weight]).is_ok()).count();
    assert!((1..12).contains(&kept), "{kept}");
    assert!(device.memory().used <= 4 * MEGABYTE);
}

/// States that no run has read are computed one after the other where there is no room for them together.
#[test]
fn unread_states_need_not_fit_together() {
    let device = device("narrow", Some(4 * MEGABYTE));
    let (mut a, mut b) = (ones(200_000, "narrow"), ones(200_000, "narrow"));
    let small = ones(4, "narrow");
    for _ in 0..6 {
        let next = a.mul(0.5).add(b.mul(0.25)).tanh();
        (a, b) = (next.clone(), b.mul(0.5).add(next.mul(0.5)).tanh());
        assert_eq!(small.sum(.., false).item::<f32>().unwrap(), 4.0);
    }
    a.realize().unwrap();
    b.realize().unwrap();
    assert!(device.memory().used <= 4 * MEGABYTE);
}
