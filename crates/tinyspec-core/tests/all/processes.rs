//! What a process is told by its environment, and what the child of a `fork` can do.
//!
//! Each test runs its work in a process of its own.

use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tinyspec_core::{Tensor, realize_all};

fn in_own_process(work: &str, variables: &[(&str, &str)]) -> String {
    let Output { status, stdout, stderr } = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("processes::work::{work}"), "--include-ignored", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && text.contains("1 passed"), "{text}");
    text
}

#[test]
fn the_number_of_threads_is_set() {
    in_own_process("has_three_threads", &[("TINYSPEC_THREADS", "3")]);
    for wrong in ["0", "many", "-1", "100000"] {
        let text = in_own_process("refuses_threads", &[("TINYSPEC_THREADS", wrong), ("TINYSPEC_DEVICE", "")]);
        assert!(
            text.contains(&format!("TINYSPEC_THREADS={wrong}: expected a number of threads, from 1 to 1024")),
            "{text}"
        );
    }
}

/// What is wrong in the environment is said of the environment: no line of the program is.
#[test]
fn variables_that_name_nothing_are_named() {
    let text = in_own_process("says_what_is_wrong", &[("TINYSPEC_DEVICE", "gpu9")]);
    assert!(text.contains("TINYSPEC_DEVICE=gpu9: expected a device: "), "{text}");
    if cfg!(feature = "llvm") {
        let text = in_own_process("says_what_is_wrong", &[("TINYSPEC_DEVICE", " "), ("TINYSPEC_CPU", "z80")]);
        assert!(text.contains("TINYSPEC_CPU=z80: expected a processor: native, "), "{text}");
    }
    for (variable, value, expected) in [
        ("TINYSPEC_DEBUG", "verbose", "a number: 2 for kernels"),
        ("TINYSPEC_PASSES", "expand, devectorise", "passes, one or several of simplify, concat, two-level-scan"),
        ("TINYSPEC_VERIFY", "maybe", "`1` or `on`, `0` or `off`"),
        ("TINYSPEC_VALIDATE", "cuda", "`1` or `on`, `0` or `off`"),
        ("TINYSPEC_STRICT", "of", "`1` or `on`, `0` or `off`"),
        ("TINYSPEC_FALLBACK", "never", "`1` or `on`, `0` or `off`"),
        ("TINYSPEC_PERF_MAP", "2", "`1` or `on`, `0` or `off`"),
        ("TINYSPEC_FAULT", "everything", "`schedule` or `fusion`"),
        ("TINYSPEC_BEAM", "-3", "the number of seconds"),
        ("TINYSPEC_MEMORY", "much", "a size, such as `512MB`"),
        ("TINYSPEC_PLANS", "few", "a size, such as `512MB`"),
        ("TINYSPEC_CACHE_SIZE", "1XB", "a size, such as `512MB`"),
    ] {
        let text = in_own_process("says_what_is_wrong", &[(variable, value)]);
        assert!(text.contains(&format!("{variable}={value}: expected {expected}")), "{text}");
    }
}

/// A misspelt variable would be without effect, and without a word.
#[test]
fn variables_that_nobody_reads_are_named_once() {
    let wrong = [("TINYSPEC_CAHCE", "off"), ("TINYSPEC_LOG", "1"), ("TINYSPEC_FUZZ", "1")];
    let text = in_own_process("computes_on_two_devices", &wrong);
    let of = |variable: &str| text.lines().filter(|line| line.contains(variable)).collect::<Vec<_>>();
    let expected = "tinyspec: warning: there is no variable TINYSPEC_CAHCE; did you mean TINYSPEC_CACHE?";
    assert_eq!(of("TINYSPEC_CAHCE"), [expected], "{text}");
    assert!(matches!(of("TINYSPEC_LOG")[..], [line] if line.contains("there are TINYSPEC_{BEAM, CACHE, ")), "{text}");
    assert!(of("TINYSPEC_FUZZ").is_empty(), "{text}");
}

/// `program 2>&1 | head`: what is said to nobody is no reason to end the program.
#[test]
fn a_program_goes_on_where_nobody_reads_what_is_said() {
    for (variable, value) in [("TINYSPEC_DEBUG", "2"), ("TINYSPEC_DEBUG", "5"), ("TINYSPEC_CAHCE", "off")] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let Output { status, stdout, .. } = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::work::computes_on_two_devices", "--include-ignored", "--nocapture"])
            .env(variable, value)
            .stderr(writer)
            .output()
            .unwrap();
        assert!(status.success(), "{variable}={value}: {}", String::from_utf8_lossy(&stdout));
    }
}

#[cfg(all(unix, feature = "llvm"))]
#[test]
fn a_cache_that_cannot_be_used_is_named_once() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("tinyspec-unusable-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("file");
    std::fs::write(&file, "").unwrap();
    let open = folder.join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    for (cache, reason) in
        [(file.join("below"), "Not a directory"), (file, "File exists"), (open, "nobody else can write to")]
    {
        let text = in_own_process("computes_on_two_devices", &[("TINYSPEC_CACHE", &cache.to_string_lossy())]);
        let said: Vec<&str> = text.lines().filter(|line| line.contains("are not kept")).collect();
        assert!(
            matches!(said[..], [line] if line.contains(&*cache.to_string_lossy()) && line.contains(reason)),
            "{text}"
        );
    }
    let text = in_own_process("computes_on_two_devices", &[("TINYSPEC_CACHE", "off")]);
    assert!(!text.contains("warning"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn switches_are_on_and_off() {
    for (value, is_on) in [("0", false), (" off ", false), ("", true), ("1", true), ("on", true)] {
        let fault = [("TINYSPEC_FAULT", "schedule"), ("TINYSPEC_CACHE", "off"), ("TINYSPEC_VERIFY", "off")];
        let text = in_own_process("falls_back", &[&fault[..], &[("TINYSPEC_FALLBACK", value)]].concat());
        assert_eq!(text.contains("could not be lowered as planned"), is_on, "{value}: {text}");
    }
}

/// Each variable that the library reads has a row in `docs/settings.md`.
#[test]
fn every_variable_is_documented() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/settings.md")).unwrap();
    let names = std::fs::read_to_string(root.join("crates/tinyspec-backends/src/settings.rs")).unwrap();
    let mut folders: Vec<_> = ["tinyspec-core", "tinyspec-backends", "tinyspec-ir", "tinyspec-macros"]
        .map(|name| root.join("crates").join(name).join("src"))
        .into();
    let mut found = 0;
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        for literal in source.split("\"TINYSPEC_").skip(1) {
            let literal = literal.split('"').next().unwrap_or_default();
            let name = format!("TINYSPEC_{literal}");
            let is_name = name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
            // That one is Cargo's, while this is built.
            if is_name && name != "TINYSPEC_SOURCES_HASH" {
                found += 1;
                assert!(page.contains(&format!("| `{name}")), "{name} of {} is in no row", path.display());
                assert!(names.contains(&format!("\"{literal}\"")), "{name} of {} is called unknown", path.display());
            }
        }
    }
    assert!(found > 12, "{found}");
}

#[test]
fn equal_launches_are_summed_up() {
    let text = in_own_process("launches_often", &[("TINYSPEC_DEBUG", "2")]);
    let (first, totals) = text.split_once("── totals: ").unwrap_or_else(|| panic!("no totals: {text}"));
    let launches = |line: u32, text: &str| {
        let rows: Vec<&str> = text.lines().filter(|row| row.contains(&format!("processes.rs:{line}:"))).collect();
        let [row] = &rows[..] else { panic!("one row of line {line}: {text}") };
        row.split_whitespace().nth(3).and_then(|launches| launches.parse::<u32>().ok())
    };
    launches(work::OFTEN, first);
    launches(work::ONCE, first);
    assert_eq!(launches(work::OFTEN, totals), Some(5), "{text}");
    assert_eq!(launches(work::ONCE, totals), Some(1), "{text}");
    // The greatest first.
    let time = |row: &str| row.split_whitespace().next().and_then(|time| time.parse::<f64>().ok());
    let times: Vec<f64> = totals.lines().filter(|row| row.contains(" µs ")).filter_map(time).collect();
    assert!(times.len() >= 2 && times.is_sorted_by(|a, b| a >= b), "{text}");
    let passes = totals.lines().find_map(|line| line.strip_prefix("── passes, ms: "));
    assert!(passes.is_some_and(|passes| passes.contains("linearize ") && passes.contains("decompose ")), "{text}");
}

/// What a step of a training computes is shown with the user's line.
#[test]
fn the_kernels_of_a_step_have_the_users_line() {
    let text = in_own_process("trains", &[("TINYSPEC_DEBUG", "2")]);
    let (first, _) = text.split_once("── totals: ").unwrap_or_else(|| panic!("no totals: {text}"));
    let step = first.split_once("a step\n").map_or("", |(_, step)| step);
    assert!(step.contains(&format!("processes.rs:{}:", work::STEP)) && !step.contains("/nn/"), "{text}");
}

#[test]
fn passes_are_shown_by_name() {
    let text = in_own_process("launches_often", &[("TINYSPEC_PASSES", "simplify, ranges, devectorize")]);
    assert!(text.lines().any(|line| line == "── simplify"), "{text}");
    let shown = |pass: &str| text.lines().any(|line| line.starts_with("── ") && line.ends_with(&format!(": {pass}")));
    assert!(shown("ranges") && shown("devectorize") && !shown("scheduled") && !shown("linearize"), "{text}");
}

#[cfg(unix)]
#[test]
fn the_child_of_a_fork_computes() {
    in_own_process("forks", &[("TINYSPEC_THREADS", "3"), ("TINYSPEC_CACHE", "off")]);
}

mod work {
    use super::*;
    use crate::resuming::Line;
    use tinyspec_core::nn::{Adam, Model, TrainStep};

    pub const OFTEN: u32 = line!() + 8;
    pub const ONCE: u32 = OFTEN + 2;

    #[test]
    #[ignore = "run by the tests above"]
    fn launches_often() {
        let x = Tensor::from_slice(&[1f32; 64], [8, 8]);
        for _ in 0..5 {
            (&x * 2.0 + 1.0).realize().unwrap();
        }
        x.sum(.., false).realize().unwrap();
    }

    pub const STEP: u32 = line!() + 10;

    #[test]
    #[ignore = "run by the tests above"]
    fn trains() {
        let mut line = Line { weight: Tensor::ones([3, 2]), bias: Tensor::zeros([2]) };
        let mut optimizer = Adam::new(0.1);
        eprintln!("a step");
        let x = Tensor::from_slice(&[1f32; 15], [5, 3]);
        let loss = (x.matmul(&line.weight) + &line.bias).square().mean(.., false);
        line.train_step_with(&loss, &mut optimizer, TrainStep { clip_norm: Some(1.0), ..Default::default() }).unwrap();
    }

    #[test]
    #[ignore = "run by the tests above"]
    fn has_three_threads() {
        assert_eq!(tinyspec_core::threads().unwrap(), 3);
        if let Ok(device) = tinyspec_core::execute::device("cpu") {
            assert_eq!(device.target().threads, 3);
        }
        tinyspec_core::set_threads(3).unwrap();
        let error = tinyspec_core::set_threads(4).unwrap_err().to_string();
        assert!(error.contains("set_threads: 4 threads, but kernels are being made for 3 already"), "{error}");
        assert!(error.contains("processes.rs:") && error.contains("help: "), "{error}");
        compute(3);
    }

    #[test]
    #[ignore = "run by the tests above"]
    fn refuses_threads() {
        println!("{}", tinyspec_core::threads().unwrap_err());
        if cfg!(feature = "llvm") {
            assert!(tinyspec_core::execute::device("cpu").is_err());
        }
    }

    #[test]
    #[ignore = "run by the tests above"]
    fn says_what_is_wrong() {
        println!("{}", Tensor::ones([2]).contiguous().to_vec::<f32>().unwrap_err());
    }

    #[test]
    #[ignore = "run by the tests above"]
    fn computes_on_two_devices() {
        for device in ["interpreter", if cfg!(feature = "llvm") { "cpu" } else { "simt" }] {
            let sum = (Tensor::arange(10).to(device) * 2).sum(.., false);
            assert_eq!(sum.item::<i32>().unwrap(), 90);
        }
    }

    #[test]
    #[ignore = "run by the tests above"]
    fn falls_back() {
        println!("{:?}", (Tensor::arange(1000).contiguous() * 2).to_vec::<i32>().err());
    }

    /// Several kernels, which are compiled beside each other, and a large one, which threads share. No two `number`s have equal
    /// kernels.
    fn compute(number: usize) {
        let rows = 1024 + number;
        let x = Tensor::ones([rows, 512]).contiguous();
        let found = [x.sum(0, false), x.max(1, false) + 1.0, (&x * 2.0).exp().sum(.., false), x.cumsum(0) * 0.5];
        realize_all(&found.each_ref()).unwrap();
        assert_eq!(found[0].to_vec::<f32>().unwrap(), vec![rows as f32; 512]);
        assert_eq!(found[1].to_vec::<f32>().unwrap(), vec![2.0; rows]);
        assert_eq!(found[3].to_vec::<f32>().unwrap()[512], 1.0);
    }

    #[cfg(unix)]
    #[test]
    #[ignore = "run by the tests above"]
    fn forks() {
        unsafe extern "C" {
            fn fork() -> i32;
            fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
            fn kill(process: i32, signal: i32) -> i32;
            fn _exit(status: i32) -> !;
        }
        const NO_HANG: i32 = 1;
        const KILL: i32 = 9;
        compute(1);
        // SAFETY: the other thread of this process, the harness's, waits for this one and holds no lock.
        let child = unsafe { fork() };
        if child == 0 {
            let is_done = std::panic::catch_unwind(|| {
                compute(1);
                compute(2);
            });
            // SAFETY: it does not return to the harness.
            unsafe { _exit(if is_done.is_ok() { 0 } else { 1 }) }
        }
        assert!(child > 0, "no child");
        let (begin, mut status) = (Instant::now(), -1);
        // SAFETY: the child is ours.
        while unsafe { waitpid(child, &mut status, NO_HANG) } == 0 {
            if begin.elapsed() > Duration::from_secs(100) {
                // SAFETY: as above.
                unsafe { kill(child, KILL) };
                panic!("the child hangs");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(status, 0, "the child's status");
        compute(3);
    }
}
