//! Errors of kernels name the kernel and the user's lines: where it is called, and where it is written.

use crate::*;
use tinyspec::prelude::*;

/// The first line of this file with these words.
fn line_of(words: &str) -> usize {
    1 + include_str!("lines.rs").lines().position(|line| line.contains(words)).expect("a line of this file")
}

uop! { <N, M>
    fn put(y: &mut Global<f32, M>, x: &Global<f32, N>, places: &Global<i32, N>) {
        for i in global(N) {
            unsafe { y[places[i]] = x[i]; }
        }
    }

    <N>
    fn crowded(x: &Global<f32, N>) -> Global<f32, N> as y {
        for group in global(N / 64) {
            let mut tile: Local<f32, 32768>;
            for t in local(64) { tile[t] = x[group * 64 + t]; }
            for t in local(64) { y[group * 64 + t] = tile[63 - t]; }
        }
    }

    <N>
    fn unreadable(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = unsafe { custom("no code at all", x[i] + 1.0, x[i]) }; }
    }
}

/// One line of text has both places: that of the call, and that of the kernel.
#[track_caller]
fn assert_lines(error: &str, kernel: &str, call: usize) {
    assert!(error.contains(&format!("`{kernel}`")), "{error}");
    let [call, written] = [call, line_of(&format!("fn {kernel}("))].map(|line| format!("kernels/lines.rs:{line}:"));
    let (before, places) = error.split_once("\n  at ").unwrap_or_else(|| panic!("no line: {error}"));
    assert!(!before.contains("lines.rs") && !places.contains("\n  at "), "{error}");
    let places = places.split_once(" (kernel at ").unwrap_or_else(|| panic!("one line: {error}"));
    assert!(places.0.contains(&call) && places.1.contains(&written), "{error}");
}

#[function]
fn put_into_zeros<N>(x: &Tensor<f32, N>, places: &Tensor<i32, N>) -> Tensor<f32, N> {
    twice_put(x, places) + 1.0
}

uop! { <N>
    fn twice_put(x: &Global<f32, N>, places: &Global<i32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i]; }
        for i in global(N) { unsafe { y[places[i]] = x[i]; } }
    }
}

#[test]
fn what_a_kernel_does_wrong_is_said_with_both_lines() {
    for device in devices().into_iter().filter(|&device| device != "cpu") {
        let x = tensor(&[1.0; 4], &[4], device);
        let mut y = tensor(&[0.0; 300], &[300], device);
        put(&mut y, &x, &Tensor::from_slice(&[0, 7, 7, 3], [4]).to(device));
        let error = y.to_vec::<f32>().expect_err("two meet").to_string();
        assert_lines(&error, "put", line_of("put(&mut y, &x, "));
        let buffer = if device.contains("sim:") { "byte 28 of buffer 0 (`y`)" } else { "element 7 of `y`" };
        assert!(error.contains("races") && error.contains(buffer), "{device}: {error}");
        // Machine code is shown with what of the Linear form it was made for.
        let is_of_store = error.split_once("`) for `%").is_some_and(|(_, line)| {
            let line = line.split_once("` of the Linear form, workgroup").map(|(line, _)| line);
            line.is_some_and(|line| line.contains(" = store("))
        });
        assert_eq!(is_of_store, device.contains("sim:"), "{device}: {error}");
    }
}

#[test]
fn a_kernel_that_a_function_calls_is_called_there() {
    let x = tensor(&[1.0; 4], &[4], "interpreter");
    let places = Tensor::from_slice(&[0, 1, 1, 3], [4]).to("interpreter");
    let error = put_into_zeros(&x, &places).to_vec::<f32>().expect_err("iterations meet").to_string();
    assert_lines(&error, "twice_put", line_of("twice_put(x, places)"));
}

#[test]
fn a_kernel_that_cannot_be_made_is_named_with_both_lines() {
    for device in devices() {
        let x = tensor(&[1.0; 64], &[64], device);
        if !["interpreter", "simt"].contains(&device) {
            let error = unreadable(&x).to_vec::<f32>().expect_err("it is no code").to_string();
            assert_lines(&error, "unreadable", line_of("unreadable(&x)"));
            // SAFETY: it never runs.
            let y = unsafe { (&x + 1.0).custom("no code", &[&x]) };
            let error = y.to_vec::<f32>().expect_err("it is no code").to_string();
            assert!(
                error.contains(&format!("\n  at tests/kernels/lines.rs:{}:", line_of("custom(\"no code\","))),
                "{error}"
            );
        }
        if device.contains("sim") {
            let error = crowded(&x).to_vec::<f32>().expect_err("it needs 128 KiB").to_string();
            assert_lines(&error, "crowded", line_of("crowded(&x)"));
            assert!(error.contains("131072 bytes of LOCAL memory, at most "), "{error}");
        }
    }
}

uop! { <N>
    fn reads_before(x: &Global<f32, N>) -> Global<f32, N> as y {
        for group in global(N / 64) {
            let mut tile: Local<f32, 64>;
            for t in local(64) { y[group * 64 + t] = tile[t] + x[group * 64 + t]; }
        }
    }

    <N>
    fn does_not_wait(x: &Global<f32, N>) -> Global<f32, N> as y {
        for group in global(N / 64) {
            let mut tile: Local<f32, 64>;
            for t in local(64) { unsafe {
                tile[t] = x[group * 64 + t];
                y[group * 64 + t] = tile[63 - t];
            } }
        }
    }
}

#[test]
fn what_verifiers_or_simulators_find_is_said_with_both_lines() {
    for device in devices().into_iter().filter(|device| device.contains("sim")) {
        let x = tensor(&[1.0; 128], &[128], device);
        let error = reads_before(&x).to_vec::<f32>().expect_err("it reads what nobody wrote").to_string();
        assert_lines(&error, "reads_before", line_of("reads_before(&x)"));
        let error = does_not_wait(&x).to_vec::<f32>().expect_err("threads meet").to_string();
        assert_lines(&error, "does_not_wait", line_of("does_not_wait(&x)"));
    }
}

uop! { <N>
    fn breaks_its_word(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = unsafe { custom("%n = fneg {r} %0\n ret {r} %n", x[i] + 0.0, x[i]) }; }
    }
}

#[test]
#[ignore = "run by the test below"]
fn another_value() {
    let y = breaks_its_word(&tensor(&[1.0, 2.0], &[2], "cpu")).to_vec::<f32>();
    match std::env::var("TINYSPEC_VALIDATE") {
        Ok(_) => {
            let error = y.expect_err("the interpreter adds 0").to_string();
            assert!(error.contains("computes -1 on cpu and 1 on interpreter"), "{error}");
            assert_lines(&error, "breaks_its_word", line_of("breaks_its_word(&"));
        }
        Err(_) => assert_eq!(y.expect("it runs"), [-1.0, -2.0]),
    }
}

#[test]
fn validation_and_the_table_of_kernels_have_both_lines() {
    let run = |variable: &str, value: &str| {
        let mut command = std::process::Command::new(std::env::current_exe().expect("a name"));
        let command = command.args(["--exact", "lines::another_value", "--ignored", "--nocapture"]);
        let output = command.env(variable, value).output().expect("a process");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        text
    };
    run("TINYSPEC_VALIDATE", "1");
    let text = run("TINYSPEC_DEBUG", "2");
    let [call, kernel] = ["breaks_its_word(&", "fn breaks_its_word("].map(line_of);
    let is_ours =
        |row: &&str| row.contains(&format!("lines.rs:{call}:")) && row.contains(&format!("lines.rs:{kernel}:"));
    assert!(text.lines().any(|row| is_ours(&row)), "{text}");
}
