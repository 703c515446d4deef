//! What a program may do with a GPU behind a driver, and what may go wrong. Each test is run once for each vendor, in a
//! process of its own.

use crate::kernel::Doubling;
use crate::vendor::{held, vendor};
use std::sync::Arc;
use tinyspec::Error;
use tinyspec::backends::{BackendError, Launch, Memory, Runtime};
use tinyspec::collectives::broadcast;
use tinyspec::prelude::*;
use tinyspec_mock_machine::Held;

type Runs = std::result::Result<(), BackendError>;

#[test]
#[ignore = "in a process of its own"]
pub fn programs() -> Result<()> {
    tinyspec::set_default_device(vendor().device)?;
    let (a, b) = (Tensor::arange(1000).cast(DType::F32), Tensor::full([1000], 0.5));
    let sum = (&a + &b).to_vec::<f32>()?;
    assert!(sum.iter().zip(0..).all(|(&sum, i)| sum == i as f32 + 0.5));
    tinyspec::set_seed(1);
    let (x, w) = (Tensor::randn([37, 50]), Tensor::randn([50, 70]));
    let product = |device: &str| x.to(device).matmul(w.to(device)).softmax(-1).to_vec::<f32>();
    let (here, there) = (product("cpu")?, product(vendor().device)?);
    assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-5), "{here:?}\n{there:?}");
    assert!(held().launched > 2);
    Ok(())
}

#[function(bounds(T: 1..=40))]
fn scores<T>(q: &Tensor<f32, 1, 8>, keys: &Tensor<f32, T, 8>) -> Tensor<f32, 1, T> {
    q.matmul(keys.transpose(0, 1)).softmax(-1)
}

#[test]
#[ignore = "in a process of its own"]
fn exchange() -> Result<()> {
    let numbers: Vec<f32> = (0..600).map(|i| i as f32).collect();
    let x = Tensor::from_slice(&numbers, [20, 30]);
    let there = (x.to(vendor().device) * 2.0).to(vendor().second) + 1.0;
    let part = there.at((3.., 4..9)).to("cpu");
    assert_eq!(part.at((0, 0)).to_vec::<f32>()?, [2.0 * 94.0 + 1.0]);
    // A dim with bounds is a parameter of kernels.
    let (q, keys) = (x.at((..1, ..8)), x.at((.., 8..16)) * 0.001);
    for rows in [1, 7, 20] {
        let of = |device: &str| scores(&q.to(device), &keys.at(..rows).to(device)).to_vec::<f32>();
        let (here, there) = (of("cpu")?, of(vendor().device)?);
        assert!(here.len() == rows && here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-5), "{rows}");
    }
    Ok(())
}

/// The copy of what is not computed yet waits for it, and what is computed next where it came from waits for the copy.
#[test]
#[ignore = "in a process of its own"]
fn order() -> Result<()> {
    let x = Tensor::from_vec((0..5000).map(|i| i as f32).collect(), [5000]).to(vendor().device);
    let mut there = Vec::new();
    for round in 0..20 {
        let part = (&x * round as f32).to(vendor().second);
        part.realize()?;
        // Its memory may be that of what was copied.
        (&x + round as f32).realize()?;
        there.push(part);
    }
    assert_eq!(held().launched, 0);
    for (round, part) in there.iter().enumerate() {
        let found = part.to_vec::<f32>()?;
        assert!(found.iter().zip(0..).all(|(&found, i)| found == (i * round) as f32), "{round}");
    }
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn asynchronous() -> Result<()> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]).to(vendor().device);
    let y = (&x * 2.0).contiguous();
    y.realize()?;
    let z = (&y + 1.0).contiguous();
    z.realize()?;
    drop((x, y));
    assert_eq!(held().launched, 0);
    assert_eq!(z.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
    assert_eq!(held().launched, 2);
    (z * 2.0).realize()?;
    tinyspec::device(vendor().device)?.synchronize()?;
    assert_eq!(held().launched, 3);
    Ok(())
}

/// Steps that nobody reads: the oldest are waited for, so that not all of them are in the queue.
#[test]
#[ignore = "in a process of its own"]
fn many() -> Result<()> {
    let mut state = Tensor::zeros([40]).to(vendor().device);
    for step in 0..300 {
        // A number that changes is uploaded each time.
        state = &state + step as f32;
        state.realize()?;
    }
    assert!((200..300).contains(&held().launched), "{}", held().launched);
    assert_eq!(state.to_vec::<f32>()?, [(300 * 299 / 2) as f32; 40]);
    assert!(held().events < 500, "{}", held().events);
    Ok(())
}

/// More than is pinned, of uneven length.
#[test]
#[ignore = "in a process of its own"]
fn large() -> Runs {
    let runtime = open();
    let length = (41 << 20) + 13;
    let data: Vec<u8> = (0..length).map(|i: usize| (i ^ i >> 8 ^ i >> 16) as u8).collect();
    let [first, second] = [runtime.allocate(length)?, runtime.allocate(length)?];
    runtime.write(&*first, &data)?;
    assert!(runtime.copy(&*second, &*first, 5, length - 5)?);
    let mut back = vec![0; length - 5];
    runtime.read(&*second, &mut back)?;
    assert!(back == data[5..]);
    // Small ones in between.
    for number in 0..1000u32 {
        runtime.write(&*first, &number.to_le_bytes())?;
    }
    let mut number = [0; 4];
    runtime.read(&*first, &mut number)?;
    assert_eq!(u32::from_le_bytes(number), 999);
    drop((first, second, runtime));
    assert_eq!(held(), Held { launched: 0, ..Held::default() });
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn reuse() -> Runs {
    let runtime = open();
    let mut addresses = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let memory: Vec<_> =
            (1..20).map(|size| runtime.allocate(size * 1000)).collect::<std::result::Result<_, _>>()?;
        addresses.extend(memory.iter().map(|memory| memory.address() as usize));
        assert!(memory.iter().all(|memory| (memory.address() as usize).is_multiple_of(64)));
    }
    assert!(addresses.len() < 100 && held().allocations == 1, "{} {:?}", addresses.len(), held());
    // What is larger than a block has one of its own.
    let large = runtime.allocate(100 << 20)?;
    assert_eq!((held().allocations, large.len()), (2, 100 << 20));
    let is_refused = |bytes| matches!(runtime.allocate(bytes), Err(BackendError::Memory(_)));
    assert!(is_refused(1 << 40) && is_refused(usize::MAX));
    // That was in need of memory: what nobody uses went back.
    assert_eq!(held().allocations, 1);
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn tuple() -> Result<()> {
    let x = Tensor::from_vec((0..240).map(|i| i as f32 * 0.01).collect(), [24, 10]);
    let w = Tensor::from_vec((0..30).map(|i| i as f32 * 0.1).collect(), [10, 3]);
    let expected = x.matmul(&w).softmax(-1).to_vec::<f32>()?;
    for names in [["cpu", vendor().device], [vendor().device, "cpu"], [vendor().device, vendor().second]] {
        let shared = x.to(names).matmul(broadcast(&w, names)).softmax(-1);
        let found = shared.to_vec::<f32>()?;
        assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-5), "{names:?}");
        let sum = shared.sum(.., false).to_vec::<f32>()?;
        assert!((sum[0] - 24.0).abs() < 1e-4, "{names:?} {sum:?}");
        let gradient = |x: &Tensor, w: &Tensor| tinyspec::grad(&x.matmul(w).square().sum(.., false), &[w]);
        let here = gradient(&x, &w)?[0].to_vec::<f32>()?;
        let there = gradient(&x.to(names), &broadcast(&w, names))?[0].to_vec::<f32>()?;
        assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-3), "{names:?}");
    }
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn threads() {
    let work = |thread: usize| -> Result<()> {
        for round in 1..8 {
            let x = Tensor::full([100 * round + thread], 1.5f32).to(vendor().device);
            let sum = (x * round as f32).sum(.., false).to_vec::<f32>()?;
            assert_eq!(sum, [1.5 * (round * (100 * round + thread)) as f32]);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic").expect("it runs"));
    });
}

fn open() -> Arc<dyn Runtime> {
    (vendor().open)(vendor().device, 0).expect("the mock").1
}

/// Doubles what `from` holds.
fn double(runtime: &dyn Runtime, kernel: &Doubling, [to, from]: [&Arc<dyn Memory>; 2]) -> Runs {
    let launch = Launch {
        program: runtime.load("double", &kernel.code)?,
        buffers: vec![0, 1],
        dims: Vec::new(),
        trips: 0..1,
        grid: kernel.grid,
        scratch_bytes: 0,
        nanoseconds: 0,
        has_prologue: false,
        line: Default::default(),
    };
    // SAFETY: the kernel is one for so much memory, which lives until all is done.
    unsafe { runtime.enqueue(&vec![launch].into(), &[to.address(), from.address()])? };
    runtime.synchronize()
}

#[test]
#[ignore = "in a process of its own"]
fn give_back() -> Runs {
    let (runtime, kernel) = (open(), Doubling::of(vendor().chip));
    let [to, from] = [runtime.allocate(128)?, runtime.allocate(128)?];
    runtime.write(&*from, &[1; 128])?;
    double(&*runtime, &kernel, [&to, &from])?;
    let mut bytes = [0; 128];
    runtime.read(&*to, &mut bytes)?;
    assert_eq!(bytes, [2; 128]);
    let empty = runtime.allocate(0)?;
    assert!(empty.is_empty() && !to.is_on_host());
    assert!(runtime.write(&*to, &[0; 129]).is_err() && runtime.read(&*empty, &mut bytes).is_err());
    // All have a block; copies go through one piece of pinned memory.
    assert_eq!(held(), Held { streams: 1, modules: 0, allocations: 1, pinned: 1, launched: 1, ..held() });
    assert!(held().events > 0);
    drop((to, from, empty, runtime));
    assert_eq!(held(), Held { launched: 1, ..Held::default() });
    Ok(())
}

/// A kernel that has a stack is loaded again, with more registers, and once.
#[test]
#[ignore = "in a process of its own"]
fn roomy() -> Runs {
    let (runtime, kernel) = (open(), Doubling::of(vendor().chip));
    let program = runtime.load("kernel", &kernel.code)?;
    assert_eq!(held().modules, 1);
    drop(program);
    let [to, from] = [runtime.allocate(128)?, runtime.allocate(128)?];
    runtime.write(&*from, &[1; 128])?;
    double(&*runtime, &kernel, [&to, &from])?;
    let mut bytes = [0; 128];
    runtime.read(&*to, &mut bytes)?;
    assert_eq!((bytes, held().modules), ([2; 128], 0));
    Ok(())
}

/// By the device's clock: what is enqueued has run by then.
#[test]
#[ignore = "in a process of its own"]
fn timed() -> Runs {
    let (runtime, kernel) = (open(), Doubling::of(vendor().chip));
    let [to, from] = [runtime.allocate(128)?, runtime.allocate(128)?];
    runtime.write(&*from, &[1; 128])?;
    let mut outcome = Ok(());
    let time = runtime.timed(&mut || outcome = double(&*runtime, &kernel, [&to, &from]))?;
    outcome?;
    assert!(!time.is_zero() && held().launched == 1, "{time:?}");
    assert!(runtime.timed(&mut || ())? < time);
    drop((to, from, runtime));
    assert_eq!(held(), Held { launched: 1, ..Held::default() });
    Ok(())
}

/// Works until something fails, as it has to. Then nothing is held, the other device works, and so does the process.
#[test]
#[ignore = "in a process of its own"]
fn leak() -> Runs {
    let kernel = Doubling::of(vendor().chip);
    let work = |runtime: &dyn Runtime, rounds: usize| -> Runs {
        let mut kept = Vec::new();
        for _ in 0..rounds {
            let [to, from] = [runtime.allocate(20 << 20)?, runtime.allocate(128)?];
            runtime.write(&*from, &[1; 128])?;
            double(runtime, &kernel, [&to, &from])?;
            let mut bytes = [0; 128];
            runtime.read(&*to, &mut bytes)?;
            assert_eq!(bytes, [2; 128]);
            kept.push([to, from]);
        }
        Ok(())
    };
    let holds_nothing = || assert_eq!(held(), Held { launched: held().launched, ..Held::default() });
    let runtime = open();
    work(&*runtime, 8).expect_err("something fails");
    drop(runtime);
    holds_nothing();
    let (_, other) = (vendor().open)(vendor().second, 1).expect("the mock");
    work(&*other, 1)?;
    drop(other);
    holds_nothing();
    assert_eq!((Tensor::full([2], 1f32) + 1.0).to_vec::<f32>().expect("it runs"), [2.0; 2]);
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn foreign() {
    let (runtime, own) = (open(), Doubling::of(vendor().chip).code);
    let refused = |code: &[u8]| runtime.load("k", code).map(drop).expect_err("it is not loaded");
    let half = &own[..own.len() / 2];
    for code in [&b""[..], b"\x7fELF\x02\x01\x01", b"\xff\xfe", b".version 7.0\n.target sm_80\n", b".entry k( {", half]
    {
        let error = refused(code);
        assert!(matches!(error, BackendError::Load { .. }), "{error}");
    }
    // Each time another byte is another.
    for (place, change) in (0..own.len()).step_by(7).zip((1..=255u8).cycle()) {
        let mut code = own.clone();
        code[place] ^= change;
        if let Err(error) = runtime.load("k", &code) {
            assert!(matches!(error, BackendError::Load { .. }), "{error}");
        }
    }
    let error = refused(&Doubling::of(vendor().other_chip).code).to_string();
    assert!(error.contains(vendor().wrong_chip), "{error}");
    assert_eq!(held().modules, 0);
}

#[test]
#[ignore = "in a process of its own"]
fn newer() {
    let error = open().load("double", &Doubling::of(vendor().chip).code).map(drop).expect_err("PTX is newer");
    let text = error.to_string();
    assert!(text.contains("UNSUPPORTED_PTX_VERSION") && text.contains("help: install a newer driver"), "{text}");
    let x = Tensor::from_slice(&[1f32; 10], [10]).to(vendor().device);
    let (y, line) = (x * 2.0, line!());
    let text = y.to_vec::<f32>().expect_err("PTX is newer").to_string();
    assert!(
        text.contains("compiled code of `") && text.contains(&format!("\n  at tests/mocks/tests/behaviour.rs:{line}:")),
        "{text}"
    );
}

#[test]
#[ignore = "in a process of its own"]
fn memory() -> Result<()> {
    let small = Tensor::full([1000], 1f32).to(vendor().device);
    small.realize()?;
    let large = (Tensor::full([600, 600], 1f32).to(vendor().device) * 2.0).to_vec::<f32>();
    let Err(Error::Memory { reason, report, .. }) = &large else { panic!("{large:?}") };
    assert!(reason.contains(vendor().no_memory) && reason.contains(" are free"), "{reason}");
    assert!(report.largest.iter().any(|held| held.what == "tensor f32 [1000]" && held.location.is_some()), "{report}");
    // The device goes on.
    assert_eq!((small * 3.0).sum(.., false).to_vec::<f32>()?, [3000.0]);
    Ok(())
}

/// The device is lost, neither the CPU nor another device is.
fn is_lost(reason: &str) -> Result<()> {
    let x = Tensor::full([10], 1f32);
    let error = (x.to(vendor().device) + 1.0).to_vec::<f32>().expect_err("the device is lost");
    // The first request to the device fails, which here is an allocation.
    assert!(matches!(error, Error::Backend(BackendError::Lost { .. })), "{error}");
    assert!(error.to_string().contains("is lost: ") && error.to_string().contains(reason), "{error}");
    assert!(error.to_string().contains("help: start the program again"), "{error}");
    for other in ["cpu", vendor().second] {
        assert_eq!((x.to(other) + 1.0).to_vec::<f32>()?, [2.0; 10], "{other}");
    }
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn fault() -> Result<()> {
    let x = Tensor::full([10], 1f32).to(vendor().device);
    let (y, line) = ((x * 2.0).sum(.., false), line!());
    // That it fails shows where it is read.
    y.realize()?;
    let error = y.to_vec::<f32>().expect_err("the kernel leaves its memory");
    let Error::Backend(BackendError::Execution { name, reason }) = &error else { panic!("{error}") };
    assert!(
        reason.contains(vendor().address) && reason.contains(&format!("{} (simulated GPU 0)", vendor().device)),
        "{error}"
    );
    assert!(reason.contains(&format!("behaviour.rs:{line}:")), "{error}");
    is_lost(name)
}

uop! { <N>
    fn halved(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i] * 0.5; }
    }
}

#[test]
#[ignore = "in a process of its own"]
fn fault_by_hand() -> Result<()> {
    let x = Tensor::from_slice(&[1f32; 10], [10]).to(vendor().device);
    let (y, line) = (halved(&x), line!());
    let error = y.to_vec::<f32>().expect_err("the kernel leaves its memory").to_string();
    assert!(error.starts_with("kernel `halved`: "), "{error}");
    let written =
        1 + include_str!("behaviour.rs").lines().position(|line| line.contains("fn halved(")).expect("a line");
    let [called, written] = [line as usize, written].map(|line| format!("tests/behaviour.rs:{line}:"));
    assert!(error.contains(&called) && error.contains(&written), "{error}");
    is_lost("kernel `halved` at ")
}

#[test]
#[ignore = "in a process of its own"]
fn fault_among() -> Result<()> {
    let x = Tensor::full([10, 10], 1f32).to(vendor().device);
    let y = (&x * 2.0).contiguous().matmul(&x).contiguous().sum(.., false);
    let error = y.to_vec::<f32>().expect_err("a kernel leaves its memory");
    let Error::Backend(BackendError::Execution { reason, .. }) = &error else { panic!("{error}") };
    assert!(reason.contains("or one launched behind it") && reason.contains("TINYSPEC_DEBUG=2"), "{error}");
    assert_eq!(reason.matches("behaviour.rs:").count(), 4, "{error}");
    is_lost(vendor().address)
}

/// The first program runs, the second fails; then all goes on.
fn fails_once(words: &str) -> Result<()> {
    let x = Tensor::from_slice(&[1f32; 10], [10]).to(vendor().device);
    let of = |factor: f32| (&x * factor).to_vec::<f32>();
    assert_eq!(of(2.0)?, [2.0; 10]);
    let error = of(3.0).expect_err("the launch fails");
    assert!(matches!(error, Error::Backend(BackendError::Execution { .. })), "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(of(3.0)?, [3.0; 10]);
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn refused() -> Result<()> {
    fails_once(vendor().resources)
}

#[test]
#[ignore = "in a process of its own"]
fn unknown() -> Result<()> {
    fails_once(&format!("{} failed with an unknown error (4242)", vendor().launch))
}

#[test]
#[ignore = "in a process of its own"]
fn lost() -> Result<()> {
    let x = Tensor::from_slice(&[1f32; 10], [10]).to(vendor().device);
    assert_eq!((&x * 2.0).to_vec::<f32>()?, [2.0; 10]);
    assert!((&x * 3.0).to_vec::<f32>().is_err());
    is_lost(vendor().broken)
}
