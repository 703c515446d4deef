//! The kernels of the corpus as the compiler makes them for a chip, which nothing runs.

use crate::recorder::Recorder;
use crate::{corpus, run};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::{realize_all, with_default_device};

/// The distinct kernels of the corpus's cases that are taken.
pub fn kernels(
    chip: &str,
    is_taken: impl Fn(usize) -> bool,
) -> Result<BTreeMap<Vec<u8>, String>, Box<dyn std::error::Error>> {
    let name = format!("recorded:{chip}");
    let recorder = Recorder::register(&name, chip, Arc::new(LlvmCompiler::new()?))?;
    let cases = corpus::read(&corpus::folder())?;
    for (_, case) in cases.iter().enumerate().filter(|(number, case)| is_taken(*number) && case.op != "promote") {
        // What is read is zeros: whatever a case makes of them, its kernels are made.
        let _ = with_default_device::<(), tinyspec::Error>(&name, || {
            let inputs = case.inputs.iter().map(|input| run::tensor(input, &name)).collect::<Result<Vec<_>, _>>();
            if let Ok(inputs) = inputs
                && let Ok(mut all) = run::outputs(case, &inputs)
            {
                let gradients = run::gradients(case, &name, &inputs, &all);
                all.extend(gradients.unwrap_or_default());
                let _ = realize_all(&all.iter().collect::<Vec<_>>());
            }
            Ok(())
        });
    }
    Ok(recorder.take())
}

/// Does something with every kernel, on several threads; what went wrong.
pub fn each<T: Sync, U: Sync>(
    all: &[(&T, &U)],
    work: impl Fn(usize, &T, &U) -> Result<(), String> + Sync,
) -> Vec<String> {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..tinyspec::threads().unwrap_or(1) {
            let (next, failures, work) = (&next, &failures, &work);
            scope.spawn(move || {
                while let Some((code, name)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(reason) = work(worker, code, name) {
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(reason);
                    }
                }
            });
        }
    });
    failures.into_inner().unwrap_or_else(PoisonError::into_inner)
}
