//! What users wait for before the first result, and what a call costs beside its kernel.

mod allocations;
mod calls;
mod compiler;
pub mod probe;
mod programs;

use crate::session::Session;
pub use allocations::Counting;
use probe::Kernel;
use programs::PROGRAMS;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Fresh processes for each kind of first call.
const PROCESSES: usize = 5;

/// First calls without and with a warm object cache; lowering, code generation and loading, a kernel; calls.
///
/// # Errors
/// When a program cannot be compiled or run.
pub fn benches(session: &mut Session) -> Result<()> {
    first_calls(session)?;
    calls::benches(session)
}

fn first_calls(session: &mut Session) -> Result<()> {
    for program in PROGRAMS {
        let name = format!("compile/{}", program.name);
        if !session.measures(&name) {
            continue;
        }
        let of = |runs: &[probe::First], value: fn(&probe::First) -> f64| {
            probe::median(&mut runs.iter().map(value).collect::<Vec<_>>())
        };
        let cold = (0..PROCESSES).map(|_| probe::first(program, "off")).collect::<Result<Vec<_>>>()?;
        session.note(&format!("{name}/cold/call"), of(&cold, |run| run.call));
        session.note(&format!("{name}/cold/compiling"), of(&cold, |run| run.compiling));
        let cache = std::env::temp_dir().join(format!("tinyspec-bench-{}", std::process::id()));
        let folder = cache.to_string_lossy();
        probe::first(program, &folder)?;
        let warm = (0..PROCESSES).map(|_| probe::first(program, &folder)).collect::<Result<Vec<_>>>();
        std::fs::remove_dir_all(&cache)?;
        let warm = warm?;
        if warm.iter().any(|run| run.llvm_loaded) {
            eprintln!("{name}: libLLVM was loaded although every kernel was cached");
        }
        session.note(&format!("{name}/warm/call"), of(&warm, |run| run.call));
        session.note(&format!("{name}/warm/load/kernel"), of(&warm, |run| run.loading / run.kernels.max(1) as f64));
        let kernels = probe::kernels(program)?;
        if std::env::var_os("TINYSPEC_BENCH_KERNELS").is_some() {
            for Kernel { name, lowering, generating, bytes } in &kernels {
                println!("{name:40} {lowering:8.0} µs {generating:8.0} µs {bytes:7} bytes");
            }
        }
        session.count(&format!("{name}/kernels"), kernels.len() as u64);
        type Part = (&'static str, fn(&Kernel) -> f64);
        let parts: [Part; 2] = [("lowering", |kernel| kernel.lowering), ("llvm", |kernel| kernel.generating)];
        for (part, time) in parts {
            let mut times: Vec<f64> = kernels.iter().map(time).collect();
            session.note(&format!("{name}/{part}/kernel"), probe::median(&mut times));
            session.note(&format!("{name}/{part}/kernel/mean"), probe::mean(&times));
        }
    }
    Ok(())
}
