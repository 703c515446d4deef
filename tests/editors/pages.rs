//! The pages of `cargo doc`, as text.

use super::{is_long, target, written_crate};
use std::process::Command;

/// The text of a page up to where the traits of std begin.
fn page(name: &str) -> String {
    let html = std::fs::read_to_string(target().join("doc/opened").join(name)).expect("there is a page");
    let (mut text, mut is_tag) = (String::new(), false);
    for c in html.split("Trait Implementations</h2>").next().unwrap_or_default().chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            _ if !is_tag => text.push(c),
            _ => {}
        }
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'").replace("&nbsp;", " ");
    text.replace("&amp;", "&")
}

#[test]
fn pages_show_signatures_as_they_were_written() {
    if !is_long() {
        return;
    }
    let folder = written_crate();
    let pages = target().join("doc/opened");
    if pages.exists() {
        std::fs::remove_dir_all(&pages).expect("older pages can go");
    }
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    let command = command.args(["doc", "--no-deps", "--offline"]).current_dir(folder).env("CARGO_TARGET_DIR", target());
    let said = command.env("RUSTDOCFLAGS", "-D warnings").output().expect("cargo runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));

    let shown = [
        (
            "fn.heads.html",
            "fn heads<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }>",
        ),
        ("fn.heads.html", "#[function(where(D % H == 0))]"),
        ("fn.loss.html", "    scale: f32,\n) -> Tensor<f32>"),
        ("fn.loss.html", "loss::grad(x, w, b, scale)"),
        ("fn.deep.html", "fn deep<B>(x: &Tensor<f32, B, 4>, residual: bool) -> Tensor<f32, B, 4>"),
        ("struct.Linear.html", "pub weight: Tensor<f32, I, O>,\n    /* private fields */"),
        ("struct.Linear.html", "fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O>"),
        ("struct.Mean.html", "fn see<B>(&mut self, x: &Tensor<f32, B, 3>) -> Tensor<f32, B, 3>"),
        ("fn.saxpy.html", "<N> fn saxpy(y: &mut Global<f32, N>, x: &Global<f32, N>, a: f32)"),
        ("index.html", "In heads."),
    ];
    for (name, part) in shown {
        let page = page(name);
        assert!(page.contains(part), "`{part}` is not on {name}:\n{page}");
        for internal in ["__tinyspec", "__private", "EmbeddedFunction", "HasFunction", "enum"] {
            assert!(!page.contains(internal), "`{internal}` is on {name}:\n{page}");
        }
    }
    let files = std::fs::read_dir(&pages).expect("pages").flatten().map(|file| file.file_name());
    let mut files: Vec<String> = files.map(|file| file.to_string_lossy().into_owned()).collect();
    files.sort();
    let expected = [
        "all.html",
        "constant.LAYERS.html",
        "fn.deep.html",
        "fn.heads.html",
        "fn.loss.html",
        "fn.run.html",
        "fn.saxpy.html",
        "index.html",
        "sidebar-items.js",
        "struct.Linear.html",
        "struct.Mean.html",
    ];
    assert_eq!(files, expected);
}
