//! How a library is found, and what is said of one that will not do.

use crate::behaviour;
use crate::processes::{command, passes};
use crate::vendor::{AMD, CUDA, Vendor, vendor};
use std::path::PathBuf;
use tinyspec::prelude::*;

/// What the device `name` says of why it cannot be had; twice the same.
fn says(name: &str, words: &[&str]) {
    for _ in 0..2 {
        let error = tinyspec::device(name).expect_err("it cannot be had").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    // The process goes on.
    assert_eq!((Tensor::full([2], 1f32) + 1.0).to_vec::<f32>().expect("it runs"), [2.0; 2]);
}

#[test]
#[ignore = "in a process of its own"]
fn old() {
    let [found, needed] = vendor().versions;
    let help = format!("help: {}", vendor().update);
    says(vendor().device, &[vendor().library, found, &format!("{needed} is needed"), &help]);
}

#[test]
#[ignore = "in a process of its own"]
fn none() {
    says(vendor().device, &["finds no GPU", vendor().no_device, "help: "]);
}

#[test]
#[ignore = "in a process of its own"]
fn few() {
    says(vendor().second, &[&format!("no device `{}`", vendor().second), "the driver sees 1"]);
}

#[test]
#[ignore = "in a process of its own"]
fn chip() {
    let family = if vendor().device == "cuda" { "sm_" } else { "gfx" };
    let help = format!("help: there is code for {family}");
    says(vendor().device, &[&format!("`{}` is simulated GPU 0, ", vendor().device), "no code is made", &help]);
}

#[test]
#[ignore = "in a process of its own"]
fn missing() {
    let file = format!("/nowhere/{}: ", vendor().library);
    says(vendor().device, &[vendor().unfound, &file, "help: install"]);
}

#[test]
#[ignore = "in a process of its own"]
fn incomplete() {
    says(vendor().second, &[&format!("libc.so.6: the driver lacks {}", vendor().first)]);
}

#[test]
#[ignore = "in a process of its own"]
fn without_one() {
    let event = vendor().event.to_str().expect("a name");
    says(vendor().device, &[&format!("the driver lacks {event}"), &format!("help: {}", vendor().update)]);
}

#[test]
#[ignore = "in a process of its own"]
fn older_code() {
    let device = tinyspec::device(vendor().device).expect("the mock");
    assert_eq!(device.target().name, vendor().chip);
    behaviour::programs().expect("it runs");
}

#[test]
#[ignore = "in a process of its own"]
fn no_code() {
    let named = if vendor().device == "cuda" { "sm_90" } else { "gfx1100" };
    let help = format!("help: there is code for {named} (TINYSPEC_GPU names no others)");
    says(vendor().device, &[&format!("is simulated GPU 0, a {}", vendor().chip), ": no code is made", &help]);
}

#[test]
#[ignore = "in a process of its own"]
fn no_chip() {
    says(vendor().device, &["TINYSPEC_GPU=sm_80 sm_81: expected chips, one or several of sm_75, sm_80, "]);
}

/// What is compiled for: the newest of the chips that are named, if its code runs there.
#[test]
fn code_is_made_for_the_chips_that_are_named() {
    each_vendor(|vendor| {
        let newer = if vendor.device == "cuda" { "chip=sm_89" } else { "chip=gfx942" };
        for (chips, settings, name) in [
            ("sm_75,sm_80 gfx942 sm_90", newer, "opening::older_code"),
            ("sm_90 gfx1100", "", "opening::no_code"),
            ("sm_80 sm_81", "", "opening::no_chip"),
        ] {
            let mut command = command(vendor, name);
            command.env(vendor.variable, vendor.folder()).env(vendor.settings, settings).env("TINYSPEC_GPU", chips);
            passes(name, command.output().expect("a process"));
        }
    });
}

fn each_vendor(mut test: impl FnMut(&Vendor)) {
    [&CUDA, &AMD].into_iter().for_each(&mut test);
}

#[test]
fn a_library_that_is_named_is_taken() {
    each_vendor(|vendor| {
        let child = |value: &str, name: &str| {
            passes(name, command(vendor, name).env(vendor.variable, value).output().expect("a process"));
        };
        child(&format!("/nowhere/{}", vendor.library), "opening::missing");
        // The C library exports no function of a GPU.
        child("libc.so.6", "opening::incomplete");
        // A folder, and the default device of a program.
        child(&vendor.folder().to_string_lossy(), "behaviour::programs");
        // Each kernel beside the CPU.
        let mut command = command(vendor, "behaviour::programs");
        command.env("TINYSPEC_VALIDATE", "1").env(vendor.variable, vendor.folder());
        passes("behaviour::programs", command.output().expect("a process"));
    });
}

/// The mock, with another name for one of its functions.
#[test]
fn a_function_that_is_missing_is_named() {
    each_vendor(|vendor| {
        let mut library = std::fs::read(vendor.mock()).expect("the mock");
        let name = [b"\0", vendor.event.to_bytes_with_nul()].concat();
        let places: Vec<usize> =
            (0..library.len() - name.len()).filter(|&at| library[at..].starts_with(&name)).collect();
        places.iter().for_each(|at| library[at + name.len() - 2] = b'_');
        assert!(!places.is_empty());
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-lacking.so", vendor.device));
        std::fs::write(&file, library).expect("a file");
        let mut command = command(vendor, "opening::without_one");
        passes("opening::without_one", command.env(vendor.variable, &file).output().expect("a process"));
    });
}

/// A process leaves kernels on disk; the next one has no libLLVM.
#[test]
fn kernels_on_disk_need_no_code_generator() {
    let name = "behaviour::programs";
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-cache-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&cache);
    let run = |has_llvm: bool| {
        let mut command = command(&CUDA, name);
        command.env(CUDA.variable, CUDA.folder()).env("TINYSPEC_CACHE", &cache).env("TINYSPEC_THREADS", "1");
        if !has_llvm {
            command.env("TINYSPEC_LLVM", cache.join("nowhere"));
        }
        command.output().expect("a process")
    };
    let cold = run(false);
    assert!(!cold.status.success() && String::from_utf8_lossy(&cold.stderr).contains("LLVM"), "{cold:?}");
    passes(name, run(true));
    passes(name, run(false));
    let _ = std::fs::remove_dir_all(&cache);
}
