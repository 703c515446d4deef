//! What is linked here for AMD's GPUs is, for every kernel of the corpus, a shared object to LLVM's linker and to readelf, neither
//! of which has a word to say.
//!
//! In CI a share of the cases on one chip of each family; with `TINYSPEC_SHAPES=all` all of them.

use crate::corpus;
use crate::recorded::{each, kernels};
use std::path::{Path, PathBuf};
use std::process::Command;

const CHIPS: [&str; 3] = ["gfx942", "gfx1100", "gfx1201"];
/// Of so many cases one is looked at in CI.
const SHARE: usize = 24;

/// LLVM's linker, where the toolchain brings it.
fn linker() -> Option<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir"]).output().ok()?;
    let libraries = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Some(libraries.parent()?.join("bin/rust-lld")).filter(|file| file.exists())
}

/// Whatever a program has to say of a file.
fn is_silent(command: &mut Command, file: &Path) -> Result<(), String> {
    let output = command.arg(file).output().map_err(|error| error.to_string())?;
    match output.status.success() && output.stderr.is_empty() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

#[test]
fn every_object_is_one_to_others() -> Result<(), Box<dyn std::error::Error>> {
    if corpus::read(&corpus::folder()).is_err() && std::env::var_os("TINYSPEC_CORPUS").is_none() {
        println!("skipped: no corpus");
        return Ok(());
    }
    let linker = linker();
    let has_readelf = Command::new("readelf").arg("--version").output().is_ok();
    if linker.is_none() {
        println!("skipped: the toolchain has no rust-lld");
    }
    if !has_readelf {
        println!("skipped: there is no readelf");
    }
    let takes_all = crate::takes_all_shapes();
    for (turn, chip) in CHIPS.into_iter().enumerate() {
        let kernels = match kernels(chip, |number| takes_all || number % SHARE == turn) {
            Ok(kernels) => kernels,
            Err(error) => {
                println!("skipped: code for GPUs: {error}");
                return Ok(());
            }
        };
        let all: Vec<(&Vec<u8>, &String)> = kernels.iter().collect();
        let failures = each(&all, |worker, object, name| {
            let file = format!("linked-{chip}-{worker}-{}.so", std::process::id());
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
            std::fs::write(&file, object).map_err(|error| error.to_string())?;
            let mut found = Ok(());
            if let Some(linker) = &linker {
                let mut command = Command::new(linker);
                found = is_silent(command.args(["-flavor", "gnu", "-shared", "-o", "/dev/null"]), &file);
            }
            if has_readelf {
                found = found.and_then(|()| is_silent(Command::new("readelf").args(["-a", "-W"]), &file));
            }
            let _ = std::fs::remove_file(&file);
            found.map_err(|reason| format!("{name}: {reason}"))
        });
        println!("{chip}: {} objects, {} refused", all.len(), failures.len());
        assert!(failures.is_empty(), "{chip}: {}\n{}", failures.len(), failures[0]);
        assert!(all.len() > 20, "{chip}: of {} objects", all.len());
    }
    Ok(())
}
