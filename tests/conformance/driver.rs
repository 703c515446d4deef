//! GPUs behind a driver: those of this machine, and simulated ones behind mocks of the drivers.

use std::process::Command;

/// A device behind a driver, the mock's file, and the variable that names a driver's library.
struct Driver {
    device: &'static str,
    mock: &'static str,
    variable: &'static str,
}

const DRIVERS: [Driver; 2] = [
    Driver { device: "cuda", mock: "libmock_cuda.so", variable: "TINYSPEC_CUDA" },
    Driver { device: "amd", mock: "libmock_hip.so", variable: "TINYSPEC_HIP" },
];

/// The devices' names.
pub fn devices() -> impl Iterator<Item = &'static str> {
    DRIVERS.iter().map(|driver| driver.device)
}

/// In processes of their own, as a process has one driver.
fn passes(Driver { device, mock, variable }: &Driver) {
    if std::env::var_os("TINYSPEC_DEVICES").is_some() {
        println!("skipped: the mock of a driver: TINYSPEC_DEVICES says what runs");
        return;
    }
    if !cfg!(target_os = "linux") {
        println!("skipped: the mock of a driver: it is for Linux");
        return;
    }
    let own = std::env::current_exe().expect("tests have a file");
    let library = own.with_file_name(mock);
    assert!(library.exists(), "{} is not built", library.display());
    for test in ["the_corpus_passes_on_every_device", "symbolic::the_symbolic_corpus_passes_on_every_device"] {
        let mut command = Command::new(&own);
        command.args(["--exact", test, "--nocapture"]).env("TINYSPEC_DEVICES", device).env(variable, &library);
        command.env("TINYSPEC_PTXAS", "off");
        let output = command.output().expect("a process of its own");
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let own = out.lines().filter(|line| line.starts_with(device));
        own.for_each(|line| println!("through a mock of the driver: {line}"));
        assert!(output.status.success() && out.contains("1 passed"), "{test}: {}\n{out}\n{err}", output.status);
    }
}

#[test]
fn the_corpus_passes_through_cuda() {
    passes(&DRIVERS[0]);
}

#[test]
fn the_corpus_passes_through_hip() {
    passes(&DRIVERS[1]);
}
