//! Values beyond 2 and 4 GiB on simulated GPUs, whose memory is taken where it is touched: whatever changes a few elements
//! touches these and no others, in the memory that is there.

use crate::simulators;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::backends::{BackendError, CommandBuffer, Gpu, Memory, Program, Runtime};
use tinyspec::prelude::*;
use tinyspec::{DType, Device};
use tinyspec_simulators::{AmdRuntime, PtxRuntime};

uop! { <M, N>
    fn count_places(y: &mut Global<u8, M, N>, rows: &Global<i64, 4>, columns: &Global<i64, 4>) {
        for i in global(4) { unsafe { atomic_add(&mut y[rows[i] as usize, columns[i] as usize], 1); } }
    }

    <N>
    fn set_places(y: &mut Global<f32, N>, places: &Global<i64, 4>) {
        for i in serial(4) { unsafe { y[places[i] as usize] = y[places[i] as usize] + i as f32; } }
    }

    <N>
    fn doubled(y: &mut Global<f32, N>) {
        for i in global(N) { y[i] = y[i] * 2.0; }
    }
}

/// A simulator that can be told not to run what it is given.
struct Pausing {
    runtime: Box<dyn Runtime>,
    is_paused: AtomicBool,
}

// SAFETY: all is the simulator's, or is left out.
unsafe impl Runtime for Pausing {
    fn allocate(&self, bytes: usize) -> std::result::Result<Arc<dyn Memory>, BackendError> {
        self.runtime.allocate(bytes)
    }

    fn load(&self, name: &str, code: &[u8]) -> std::result::Result<Arc<dyn Program>, BackendError> {
        self.runtime.load(name, code)
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> std::result::Result<(), BackendError> {
        match self.is_paused.load(Ordering::Relaxed) {
            true => Ok(()),
            // SAFETY: as the caller promises.
            false => unsafe { self.runtime.enqueue(commands, table) },
        }
    }
}

/// A device of its own for a chip.
struct Own {
    device: Arc<Device>,
    runtime: Arc<Pausing>,
}

impl Own {
    fn new(test: &str, chip: &str) -> Own {
        let gpu = Gpu::named(chip).unwrap();
        let runtime: Box<dyn Runtime> = match chip.starts_with("sm_") {
            true => Box::new(PtxRuntime::new(&gpu)),
            false => Box::new(AmdRuntime::new(&gpu)),
        };
        let runtime = Arc::new(Pausing { runtime, is_paused: false.into() });
        let compiler = Arc::new(LlvmCompiler::new().unwrap());
        Own { device: tinyspec::register(&format!("{test}:{chip}"), gpu.target(), compiler, runtime.clone()), runtime }
    }

    fn to(&self, tensor: Tensor) -> Tensor {
        tensor.to(self.device.name())
    }

    /// Zeros that nobody has written: new memory of a simulator is zero.
    fn zeros(&self, shape: &[i64], dtype: DType) -> Tensor {
        let zeros = self.to(Tensor::zeros(shape).cast(dtype)).contiguous();
        self.runtime.is_paused.store(true, Ordering::Relaxed);
        zeros.realize().unwrap();
        self.runtime.is_paused.store(false, Ordering::Relaxed);
        zeros
    }
}

/// One chip of each family.
fn each_family(test: &str, check: impl Fn(&Own)) {
    if let Err(error) = simulators::register() {
        println!("skipped: simulated GPUs: {error}");
        return;
    }
    ["sm_80", "gfx942", "gfx1100", "gfx1201"].into_iter().for_each(|chip| check(&Own::new(test, chip)));
}

/// The first and the last of so many, and those on both sides of 2^31 and 2^32.
fn places(count: i64) -> Vec<i64> {
    let around = [1i64 << 29, 1 << 30, 1 << 31, 1 << 32].into_iter().flat_map(|power| [power - 1, power]);
    [0, count - 1].into_iter().chain(around).filter(|&place| place < count).collect()
}

const GIB: i64 = 1 << 30;

#[test]
fn places_beyond_4_gib_are_read_and_set() {
    each_family("set", |own| {
        for (dtype, count) in [(DType::U8, 3 * GIB), (DType::U8, 5 * GIB + 3), (DType::F32, GIB + GIB / 4 + 1)] {
            let mut y = own.zeros(&[count], dtype);
            let places = places(count);
            for (value, &place) in (1..).zip(&places) {
                y.set(place, Tensor::full([1], value as f32).cast(dtype).reshape([0i64; 0]));
                y.realize().unwrap();
            }
            // By places that are data, and by parts.
            let at = own.to(Tensor::from_slice(&places, [places.len() as i64]));
            let found = y.index0(&at).cast(DType::F32).to_vec::<f32>().unwrap();
            let values: Vec<f32> = (1..=places.len()).map(|value| value as f32).collect();
            assert_eq!(found, values, "{:?} {dtype} {count}", own.device);
            for (&place, value) in places.iter().zip(&values) {
                let part = y.at(place.max(1) - 1..place + 1).cast(DType::F32).to_vec::<f32>().unwrap();
                assert_eq!(part.last(), Some(value), "{:?} {dtype} {count} {place}", own.device);
            }
            let report = own.device.memory();
            assert!(report.peak < (count as u64) * dtype.size() as u64 * 3 / 2, "{report}");
        }
    });
}

#[test]
fn kernels_written_by_hand_work_on_what_is_there() {
    each_family("written", |own| {
        let chosen = [1, 2 * GIB + 1, 4 * GIB + 2, 5 * GIB - 1];
        let [rows, columns] = [GIB, 1].map(|of| own.to(Tensor::from_slice(&chosen.map(|at| at / of % GIB), [4])));
        let mut y = own.zeros(&[5, GIB], DType::U8);
        for _ in 0..3 {
            count_places(&mut y, &rows, &columns);
            y.realize().unwrap();
        }
        assert_eq!(y.at((&rows, &columns)).to_vec::<u8>().unwrap(), [3; 4], "{:?}", own.device);
        drop(y);
        let count = 5 * GIB / 4 + 3;
        let chosen = [1, (1 << 29) + 1, (1 << 30) + 2, count - 1];
        let at = own.to(Tensor::from_slice(&chosen, [4]));
        let mut y = own.zeros(&[count], DType::F32);
        for _ in 0..3 {
            set_places(&mut y, &at);
            y.realize().unwrap();
        }
        assert_eq!(y.index0(&at).to_vec::<f32>().unwrap(), [0.0, 3.0, 6.0, 9.0], "{:?}", own.device);
        let report = own.device.memory();
        assert!(report.peak < 7 * GIB as u64, "{report}");
    });
}

/// Whoever still has the old value sees it, and who has not pays for no second one.
#[test]
fn only_what_nobody_sees_is_updated_in_place() {
    each_family("seen", |own| {
        const BYTES: u64 = 2_000_000;
        let chosen = [0i64, 7, 499_999, 7];
        let at = own.to(Tensor::from_slice(&chosen, [4]));
        let read = |y: &Tensor| y.index0(&at).to_vec::<f32>().unwrap();
        let mut y = own.zeros(&[500_000], DType::F32);
        for _ in 0..2 {
            set_places(&mut y, &at);
            y.realize().unwrap();
            doubled(&mut y);
            y.realize().unwrap();
        }
        assert_eq!(read(&y), [0.0, 24.0, 12.0, 24.0]);
        let report = own.device.memory();
        assert!(report.peak < BYTES * 3 / 2, "{report}");
        let old = y.clone();
        doubled(&mut y);
        set_places(&mut y, &at);
        y.realize().unwrap();
        assert_eq!((read(&old), read(&y)), (vec![0.0, 24.0, 12.0, 24.0], vec![0.0, 52.0, 26.0, 52.0]));
        let report = own.device.memory();
        assert!(report.peak >= BYTES * 2, "{report}");
        // A value that is read beside its update, and by what is computed with it.
        drop(old);
        let sum = y.sum(.., false);
        set_places(&mut y, &at);
        tinyspec::realize_all(&[&sum, &y]).unwrap();
        assert_eq!((sum.to_vec::<f32>().unwrap(), read(&y)), (vec![78.0], vec![0.0, 56.0, 28.0, 56.0]));
    });
}
