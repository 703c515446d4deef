//! What one dimension of a launch cannot hold goes to others: nobody has to know how large a grid may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tinyspec_backends::interpreter::simt::{self, SimtCompiler, SimtRuntime};
use tinyspec_backends::{BackendError, CommandBuffer, Program, Runtime, Target, Workgroups};
use tinyspec_core::execute::{register, with_default_device};
use tinyspec_core::{Error, Tensor};
use tinyspec_ir::DType;

/// Refuses what is larger than it may be, as a driver does.
struct Limited {
    counts: [usize; 3],
    launches: Arc<AtomicUsize>,
}

// SAFETY: memory and kernels are those of the interpreter.
unsafe impl Runtime for Limited {
    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        SimtRuntime.load(name, code)
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        for launch in commands.launches() {
            let groups = launch.grid.groups;
            if groups.iter().zip(self.counts).any(|(&groups, most)| groups > most) {
                let reason = format!("{groups:?} workgroups, at most {:?}", self.counts);
                return Err(BackendError::Device { device: "limited".into(), reason });
            }
            self.launches.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: as the caller promises.
        unsafe { SimtRuntime.enqueue(commands, table) }
    }
}

fn programs() -> Result<Vec<f64>, Error> {
    let x = Tensor::arange(7 * 9 * 11 * 13).cast(DType::F32).reshape([7, 9, 11, 13]) * 0.01;
    let turned = x.permute([3, 1, 0, 2]).contiguous() * 2.0;
    let sums = (&x + 1.0).sum(3, false).permute([2, 0, 1]).contiguous();
    let product = x.matmul(x.transpose(2, 3)).softmax(-1);
    let long = (Tensor::arange(70_000).modulo(13) + 1).sum(0, true);
    let grown = x.reshape([63, 143]).cumsum(1);
    let mut all = Vec::new();
    for tensor in [turned, sums, product, long.cast(DType::F32), grown] {
        all.extend(tensor.cast(DType::F64).to_vec::<f64>()?);
    }
    Ok(all)
}

#[test]
fn dimensions_that_are_too_large_are_cut() -> Result<(), Error> {
    let expected = with_default_device::<_, Error>("interpreter", programs)?;
    let limits = [[1 << 31, 3, 2], [5, 1 << 16, 1 << 16], [64, 64, 64], [1 << 31, 1, 1]];
    for (number, counts) in limits.into_iter().enumerate() {
        let target = simt::target();
        let workgroups = target.workgroups.clone().map(|workgroups| Workgroups { counts, ..workgroups });
        let (name, launches) = (format!("limited{number}"), Arc::new(AtomicUsize::new(0)));
        let runtime = Limited { counts, launches: launches.clone() };
        register(&name, Target { workgroups, ..target }, Arc::new(SimtCompiler), Arc::new(runtime));
        let found = with_default_device::<_, Error>(&name, programs)?;
        assert_eq!(found.len(), expected.len());
        for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(
                (found - expected).abs() <= 1e-3 * (1.0 + expected.abs()),
                "{counts:?}, {place}: {found}, {expected}"
            );
        }
        assert!(launches.load(Ordering::Relaxed) >= 5, "{counts:?}");
    }
    Ok(())
}
