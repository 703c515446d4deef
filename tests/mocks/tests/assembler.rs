//! Kernels as cubins, where there is an assembler: here a fake one, whose cubins the mock takes.

use crate::processes::{command, passes};
use crate::vendor::CUDA;
use std::path::{Path, PathBuf};
use std::process::Command;

const FAKE: &str = env!("CARGO_BIN_EXE_fake-ptxas");

/// A folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    folder
}

/// A process that runs programs through the mock, and keeps its kernels in the folder.
fn programs(folder: &Path) -> Command {
    let mut command = command(&CUDA, "behaviour::programs");
    command.env(CUDA.variable, CUDA.folder()).env("TINYSPEC_CACHE", folder.join("cache")).env_remove("TINYSPEC_PTXAS");
    command.env("FAKE_PTXAS_LOG", folder.join("log"));
    command
}

/// Kernels that were assembled.
fn assembled(folder: &Path) -> usize {
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert!(log.lines().all(|line| line == "-v -arch=sm_80 /dev/stdin -o /dev/stdout"), "{log}");
    log.lines().count()
}

#[test]
fn kernels_are_assembled_once_by_each_version() {
    let folder = folder("versions");
    let run = |version: &str| {
        let mut command = programs(&folder);
        let output = command.env("TINYSPEC_PTXAS", FAKE).env("FAKE_PTXAS_VERSION", version).output();
        passes("programs", output.expect("a process"));
        assembled(&folder)
    };
    let first = run("12.9.86");
    assert!(first > 2, "{first}");
    assert_eq!(run("12.9.86"), first);
    assert_eq!(run("13.0.88"), 2 * first);
    assert_eq!(run("12.9.86"), 2 * first);
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn an_assembler_is_found_by_path_unless_it_is_off() {
    let folder = folder("path");
    std::os::unix::fs::symlink(FAKE, folder.join("ptxas")).expect("a link");
    let run = |chosen: &str| {
        let output = programs(&folder).env("TINYSPEC_PTXAS", chosen).env("PATH", &folder).output();
        passes("programs", output.expect("a process"));
        assembled(&folder)
    };
    assert_eq!(run("off"), 0);
    assert!(run("") > 2);
    let _ = std::fs::remove_dir_all(&folder);
}

/// The driver gets PTX then, and standard error says why.
#[test]
fn an_assembler_that_will_not_do_is_done_without() {
    let folder = folder("refusing");
    let says = |chosen: &str, words: &[&str]| {
        let output = programs(&folder).env("TINYSPEC_PTXAS", chosen).env("FAKE_PTXAS_REFUSES", "1").output();
        let output = output.expect("a process");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        passes("programs", output);
        assert!(words.iter().all(|word| said.contains(word)) && said.matches("warning").count() == 1, "{said}");
    };
    says(FAKE, &["refuses `", "which the driver compiles instead", "no kernel is good enough"]);
    says(
        "/nowhere/ptxas",
        &["TINYSPEC_PTXAS=/nowhere/ptxas: ", "the driver compiles PTX instead", "help: name the file"],
    );
    says("/bin/true", &["it does not tell its version"]);
    assert_eq!(assembled(&folder), 0);
    let _ = std::fs::remove_dir_all(&folder);
}
