//! GPUs behind a driver: one of this machine, and a simulated one behind a mock of the driver.

use std::process::Command;

/// The device's name.
pub const DEVICE: &str = "cuda";

/// In a process of its own, as a process has one driver.
#[test]
fn the_corpus_passes_through_a_driver() {
    if std::env::var_os("TINYSPEC_DEVICES").is_some() {
        println!("skipped: the mock of a driver: TINYSPEC_DEVICES says what runs");
        return;
    }
    let own = std::env::current_exe().expect("tests have a file");
    let library = own.with_file_name("libmock_cuda.so");
    if !cfg!(target_os = "linux") {
        println!("skipped: the mock of a driver: it is for Linux");
        return;
    }
    assert!(library.exists(), "{} is not built", library.display());
    for test in ["the_corpus_passes_on_every_device", "symbolic::the_symbolic_corpus_passes_on_every_device"] {
        let mut command = Command::new(&own);
        command.args(["--exact", test, "--nocapture"]).env("TINYSPEC_DEVICES", DEVICE).env("TINYSPEC_CUDA", &library);
        let output = command.output().expect("a process of its own");
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        out.lines()
            .filter(|line| line.starts_with(DEVICE))
            .for_each(|line| println!("through a mock of the driver: {line}"));
        assert!(output.status.success() && out.contains("1 passed"), "{test}: {}\n{out}\n{err}", output.status);
    }
}
