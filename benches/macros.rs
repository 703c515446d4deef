//! `cargo bench -- macros`: what the macros add to a user's `cargo check`, and how large what they embed is. The macros are
//! compiled as users compile them, without optimisation.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use tinyspec::ir::{DType, encode};
use tinyspec::{Function, Spec, Tensor};

/// The least of so many builds counts: what disturbs a build only adds to it.
const BUILDS: usize = 5;
const DECODES: usize = 20;
/// A layer's ops: a product of matrices, two sums, a maximum, a product with a number.
const OPS: usize = 5;

/// Is it asked for by name? It runs cargo, many times.
pub fn selected() -> bool {
    env::args().skip(1).any(|argument| argument == "macros")
}

/// Checks a crate of each kind, and prints what it took beyond an empty one and beyond the same in plain Rust.
///
/// # Errors
/// When cargo fails.
pub fn run() -> Result<(), Box<dyn Error>> {
    let user = User::new()?;
    let empty = user.seconds("")?;
    println!("{:<44}{:>12}{:>16}", "cargo check, s above", "empty crate", "plain Rust");
    for (name, traced, plain) in [
        ("one function of 2,000 ops", function("big", 400, &[]), plain("big", 400)),
        ("50 functions with 3 calls each", callers(50), (0..51).map(|at| plain(&format!("f{at}"), 2)).collect()),
        ("10 kernels, uop!", kernels(10), String::new()),
    ] {
        let (traced, plain) = (user.seconds(&traced)?, user.seconds(&plain)?);
        println!("{name:<44}{:>12.2}{:>16.2}", traced - empty, traced - plain);
    }
    embedded()
}

/// A package of a user's.
struct User {
    folder: PathBuf,
}

impl User {
    fn new() -> Result<User, Box<dyn Error>> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("macros");
        fs::create_dir_all(folder.join("src"))?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let manifest = format!(
            "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [dependencies]\ntinyspec = {{ path = {root:?} }}\n\n[workspace]\n"
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        // The versions that are here already.
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let user = User { folder };
        user.check("")?;
        Ok(user)
    }

    fn seconds(&self, code: &str) -> Result<f64, Box<dyn Error>> {
        let times = (0..BUILDS).map(|build| self.check(&format!("{code}\n// {build}\n")));
        Ok(times.collect::<Result<Vec<_>, _>>()?.into_iter().min().unwrap_or_default().as_secs_f64())
    }

    fn check(&self, code: &str) -> Result<Duration, Box<dyn Error>> {
        let source = self.folder.join("src/lib.rs");
        fs::write(&source, format!("#![allow(unused)]\nuse tinyspec::prelude::*;\n{code}"))?;
        let start = Instant::now();
        let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let target = self.folder.join("target");
        let done = Command::new(cargo)
            .args(["check", "--quiet", "--target-dir"])
            .arg(target)
            .current_dir(&self.folder)
            .status()?;
        let took = start.elapsed();
        if done.success() { Ok(took) } else { Err(format!("{} does not compile", source.display()).into()) }
    }
}

fn layers(count: usize) -> String {
    "    h = (h.matmul(w) + x).relu() * 0.5 + x;\n".repeat(count)
}

/// A function of so many layers that calls others.
fn function(name: &str, count: usize, callees: &[String]) -> String {
    let calls: String = callees.iter().map(|callee| format!("    h = {callee}(&h, w);\n")).collect();
    format!(
        "#[function]\npub fn {name}<B>(x: &Tensor<f32, B, 64>, w: &Tensor<f32, 64, 64>) -> Tensor<f32, B, 64> {{\n    \
         let mut h = x.clone();\n{}{calls}    h\n}}\n",
        layers(count)
    )
}

/// The same as a user would write it for run-time tensors.
fn plain(name: &str, count: usize) -> String {
    format!(
        "pub fn {name}(x: &Tensor, w: &Tensor) -> Tensor {{\n    let mut h = x.clone();\n{}    h\n}}\n",
        layers(count)
    )
}

/// Functions that each call three before them.
fn callers(count: usize) -> String {
    let mut code = function("f0", 2, &[]);
    for at in 1..=count {
        let callees: Vec<String> = (1..=3).map(|back| format!("f{}", at.saturating_sub(back))).collect();
        code += &function(&format!("f{at}"), 2, &callees);
    }
    code
}

/// Tiled products of matrices.
fn kernels(count: usize) -> String {
    let kernel = |at| {
        format!(
            "uop! {{ <M, K, N> pub fn k{at}(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {{\n    \
             for i in global(M) {{ for j in global(N) {{\n        let mut sum = 0.0;\n        \
             for k in reduce(K) {{ sum += a[i, k] * b[k, j]; }}\n        c[i, j] = sum;\n    }} }}\n}} }}\n"
        )
    };
    (0..count).map(kernel).collect()
}

/// What a graph takes in the binary, and how long it takes to be one again.
fn embedded() -> Result<(), Box<dyn Error>> {
    let specs = [Spec::new(DType::F32, [32, 64]), Spec::new(DType::F32, [64, 64])];
    let layer = |h: Tensor, x: &Tensor, w: &Tensor| (h.matmul(w) + x).relu() * 0.5 + x;
    let function = Function::trace(&specs, |inputs| {
        vec![(0..400).fold(inputs[0].clone(), |h, _| layer(h, &inputs[0], &inputs[1]))]
    })?;
    let (graph, outputs) = (function.body().graph(), function.body().outputs());
    let nodes = graph.reachable(outputs).len();
    let bytes = encode::encode(graph, outputs);
    let mut least = Duration::MAX;
    for _ in 0..DECODES {
        let start = Instant::now();
        encode::decode(std::hint::black_box(&bytes))?;
        least = least.min(start.elapsed());
    }
    println!(
        "{:<44}{:>12.1}{:>16.0}",
        format!("{} ops as {nodes} nodes: bytes, ns to decode, a node", 400 * OPS),
        bytes.len() as f64 / nodes as f64,
        least.as_nanos() as f64 / nodes as f64
    );
    Ok(())
}
