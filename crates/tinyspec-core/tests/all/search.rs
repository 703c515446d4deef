//! Search: what it finds computes the same, is kept, used again, gone on with, and shipped.
//!
//! `TINYSPEC_BEAM` is read once a process, so each test runs its work in processes of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use tinyspec_backends::Target;
use tinyspec_backends::cpu::CpuRuntime;
use tinyspec_backends::llvm::LlvmCompiler;
use tinyspec_core::execute::{register, with_default_device};
use tinyspec_core::{Tensor, search};

/// A file of schedules that lasts as long as a test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let file = File(folder.join(format!("schedules-{name}-{}", std::process::id())));
        let _ = fs::remove_file(&file.0);
        file
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// Lines of kernels.
    fn kernels(&self) -> usize {
        self.text().lines().filter(|line| !line.starts_with('#')).count()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs a piece of work below with this file, searching for so many seconds a kernel; what it printed.
fn work(name: &str, file: &File, beam: Option<&str>) -> String {
    let Output { status, stdout, stderr } = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("search::work::{name}"), "--include-ignored", "--nocapture"])
        .env("TINYSPEC_SCHEDULES", &file.0)
        .env("TINYSPEC_BEAM", beam.unwrap_or_default())
        .env("TINYSPEC_CACHE", "off")
        .env("TINYSPEC_DEBUG", "3")
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && text.contains("1 passed"), "{text}");
    assert!(!text.contains("computes something else"), "{text}");
    text
}

#[test]
fn what_is_found_is_kept_used_and_gone_on_with() {
    let file = File::new("kept");
    let first = work("computes", &file, Some("0.2"));
    assert!(first.contains("schedules timed") && first.contains("found by search"), "{first}");
    let kernels = file.kernels();
    assert!(kernels > 0, "{first}");
    // Without a search the file is read, not written.
    let used = work("computes", &file, None);
    assert!(used.contains("known from a search") && !used.contains("schedules timed"), "{used}");
    assert_eq!(file.kernels(), kernels);
    // A search that had its time is not begun again; one with more time goes on.
    let again = work("computes", &file, Some("0.2"));
    assert!(!again.contains("schedules timed"), "{again}");
    let unfinished = file.text().lines().any(|line| !line.starts_with('#') && !line.contains(" done\t"));
    let longer = work("computes", &file, Some("0.4"));
    assert_eq!(longer.contains("schedules timed"), unfinished, "{longer}");
}

#[test]
fn a_program_ships_with_its_schedules() {
    let file = File::new("shipped");
    work("computes", &file, Some("0.1"));
    let elsewhere = File::new("elsewhere");
    fs::copy(&file.0, elsewhere.0.with_extension("shipped")).unwrap();
    let text = work("ships", &elsewhere, None);
    fs::remove_file(elsewhere.0.with_extension("shipped")).unwrap();
    assert!(text.contains("known from a search"), "{text}");
}

#[test]
fn attention_is_searched_in_other_blocks() {
    let file = File::new("attention");
    let first = work("attends", &file, Some("1"));
    assert!(first.contains("schedules timed") && first.contains("block("), "{first}");
    let line = file.text().lines().find(|line| line.contains("block(")).unwrap().to_string();
    assert!(line.matches("block(").count() > 1, "{line}");
    let used = work("attends", &file, None);
    assert!(used.contains("known from a search"), "{used}");
}

/// A kernel is timed together with the one that copies for it.
#[test]
fn copies_for_all_threads_are_searched() {
    let file = File::new("copies");
    let found = work("copies", &file, Some("0.2"));
    assert!(found.contains("schedules timed") && !found.contains("inf µs"), "{found}");
    assert!(file.text().contains("at root global"), "{}", file.text());
}

#[test]
fn an_empty_file_is_a_new_one() {
    let file = File::new("empty");
    fs::write(&file.0, "").unwrap();
    work("computes", &file, None);
    work("computes", &file, Some("0.1"));
    assert!(file.text().starts_with("# tinyspec schedules 2\n") && file.kernels() > 0, "{}", file.text());
}

#[test]
fn a_damaged_line_costs_its_own_kernel_only() {
    let file = File::new("damaged");
    work("computes", &file, Some("0.1"));
    let known = |text: &str| text.matches("known from a search").count();
    let before = known(&work("computes", &file, None));
    let mut text = file.text().replacen('\n', "\n00\tname\tsoon\t1\n", 1);
    // The last line was being written.
    text.truncate(text.rfind('\t').unwrap());
    let cut = text.rfind('\n').unwrap();
    text.truncate(text[cut..].find('\t').unwrap() + cut + 3);
    fs::write(&file.0, &text).unwrap();
    let used = work("computes", &file, None);
    assert_eq!(used.matches("line 2: `soon` is not a time").count(), 1, "{used}");
    assert!(known(&used) < before, "{used}");
    // It is searched for again, and what is found has a line of its own.
    work("computes", &file, Some("0.1"));
    let again = work("computes", &file, None);
    assert_eq!(known(&again), before, "{again}");
}

/// Threads share one loop: of two THREAD axes they would leave most of the second one out.
#[test]
fn a_schedule_that_would_break_the_program_is_not_used() {
    let file = File::new("broken");
    work("transposes", &file, Some("0.05"));
    assert_eq!(file.kernels(), 1, "{}", file.text());
    for (broken, reason) in [
        ("split(a, 4 t top); split(b, 4 t top)", "one THREAD axis"),
        ("split(b, 4 t top)", "outermost loop"),
        ("split(a, 4 g top)", "THREAD axis (t)"),
        ("split(a, 4 w)", "workgroups"),
        ("split(a, 7 u)", "does not divide"),
        ("stage(%0, at root)", "%0"),
        ("swap(a, j)", "no axis j"),
    ] {
        let text = file.text();
        let line = text.lines().find(|line| !line.starts_with('#')).unwrap();
        let kernel: Vec<&str> = line.split('\t').take(4).collect();
        fs::write(&file.0, format!("# tinyspec schedules 2\n{}\t1 {broken}\n", kernel.join("\t"))).unwrap();
        let used = work("transposes", &file, None);
        assert_eq!(used.matches("does not fit it and is not used").count(), 1, "{broken}: {used}");
        assert!(used.contains(reason), "{broken}: {used}");
    }
}

#[test]
fn a_file_of_something_else_is_an_error() {
    let file = File::new("foreign");
    fs::write(&file.0, "mine\n").unwrap();
    let text = work("is_refused", &file, None);
    assert!(text.contains("line 1 is not"), "{text}");
    assert_eq!(file.text(), "mine\n");
}

#[test]
fn a_folder_is_no_file_of_schedules() {
    let folder = File::new("folder");
    fs::create_dir(&folder.0).unwrap();
    let (text, path) = (work("is_refused", &folder, None), folder.0.display());
    fs::remove_dir(&folder.0).unwrap();
    assert!(text.contains(&format!("{path}: it is a folder")), "{text}");
    assert!(text.contains(&format!("help: name a file, as in TINYSPEC_SCHEDULES={path}/schedules")), "{text}");
}

#[test]
fn a_file_that_a_search_cannot_write_is_an_error() {
    let text = work("is_refused", &File("/proc/nowhere/schedules".into()), Some("0.2"));
    assert!(text.contains("/proc/nowhere/schedules: "), "{text}");
    assert!(text.contains("help: name a file in TINYSPEC_SCHEDULES that can be read and written"), "{text}");
}

#[test]
fn an_odd_budget_is_an_error() {
    let text = work("is_refused", &File::new("odd"), Some("long"));
    assert!(text.contains("TINYSPEC_BEAM=long: expected the number of seconds"), "{text}");
}

#[test]
fn text_that_is_no_file_of_schedules_is_refused() {
    for (text, message) in [
        ("", "line 1"),
        ("# tinyspec schedules 2\nxyz", "line 2: `xyz` is not the number of a kernel"),
        ("# tinyspec schedules 2\n\n12\tname\t1 done\t5\t7 split(a, 4 u); turn(b)", "line 3: "),
    ] {
        let error = search::add_schedules(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// What the tests above run.
mod work {
    use super::*;

    /// Results that do not depend on the order of sums.
    fn compute() -> Result<(), tinyspec_core::Error> {
        let numbers = |count: i64| (0..count).map(|number| (number % 7 - 3) as f32).collect::<Vec<_>>();
        let (rows, inner, columns) = (24, 40, 33);
        let a = Tensor::from_slice(&numbers(rows * inner), [rows, inner]);
        let b = Tensor::from_slice(&numbers(inner * columns), [inner, columns]);
        let product = a.matmul(&b).to_vec::<f32>()?;
        let (left, right) = (numbers(rows * inner), numbers(inner * columns));
        for row in 0..rows {
            for column in 0..columns {
                let expected: f32 =
                    (0..inner).map(|k| left[(row * inner + k) as usize] * right[(k * columns + column) as usize]).sum();
                assert_eq!(product[(row * columns + column) as usize], expected, "{row}, {column}");
            }
        }
        let sum = a.transpose(0, 1).contiguous().sum(0, false).to_vec::<f32>()?;
        let expected: Vec<f32> = left.chunks(inner as usize).map(|row| row.iter().sum()).collect();
        assert_eq!(sum, expected);
        // Sums of f32 in another order, as f64: no schedule is refused for what f32 cannot hold.
        let thirds = a.mul(1.0 / 3.0);
        let product = thirds.matmul(&b).cast(tinyspec_ir::DType::F64).to_vec::<f64>()?;
        assert!(product.iter().all(|value| value.is_finite()));
        Ok(())
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn computes() {
        compute().unwrap();
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn transposes() {
        let numbers: Vec<f32> = (0..1024).map(|number| number as f32).collect();
        let found = Tensor::from_slice(&numbers, [32, 32]).transpose(0, 1).contiguous().to_vec::<f32>().unwrap();
        let wrong = found.iter().enumerate().filter(|&(at, &value)| value as usize != at % 32 * 32 + at / 32).count();
        assert_eq!(wrong, 0, "of 1024");
    }

    /// Each query is one key, and far from the others: so it finds that key's value.
    #[test]
    #[ignore = "needs a process of its own"]
    fn attends() {
        let (count, width) = (256, 8);
        let far = |at: i64| (0..width).map(move |bit| if at >> bit & 1 == 1 { 40.0 } else { -40.0 });
        let keys: Vec<f32> = (0..count).flat_map(far).collect();
        let values: Vec<f32> = (0..count * width).map(|at| at as f32).collect();
        let keys = Tensor::from_slice(&keys, [1, 1, count, width]);
        let found = keys.sdpa(&keys, Tensor::from_slice(&values, [1, 1, count, width]), false).to_vec::<f32>().unwrap();
        assert_eq!(found, values);
    }

    /// A product whose operands are copied before two threads begin.
    #[test]
    #[ignore = "needs a process of its own"]
    fn copies() {
        let compiler = Arc::new(LlvmCompiler::new().expect("libLLVM"));
        register("cpu:two", Target { threads: 2, ..Target::native() }, compiler, Arc::new(CpuRuntime::new(2)));
        let numbers = |shape: [i64; 2]| {
            let data: Vec<f32> = (0..shape[0] * shape[1]).map(|at| (at * 7 % 11 - 5) as f32).collect();
            Tensor::from_vec(data, shape)
        };
        let product = || numbers([190, 260]).transpose(0, 1).matmul(numbers([190, 170])).to_vec::<f32>();
        let expected = with_default_device("interpreter", product).unwrap();
        assert_eq!(with_default_device("cpu:two", product).unwrap(), expected);
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn ships() {
        let file = PathBuf::from(std::env::var_os("TINYSPEC_SCHEDULES").unwrap()).with_extension("shipped");
        assert!(search::add_schedules(&fs::read_to_string(file).unwrap()).unwrap() > 0);
        compute().unwrap();
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn is_refused() {
        println!("{}", compute().unwrap_err());
    }
}
