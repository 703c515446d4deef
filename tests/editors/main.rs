//! What users see of `#[function]`, `#[model]` and `uop!` in an editor and in the pages of `cargo doc`.
//!
//! Both build the macros anew, so they belong to the long mode:
//! `TINYSPEC_LONG=1 cargo nextest run -p tinyspec-tests --test editors`.
//! `TINYSPEC_RUST_ANALYZER` names a rust-analyzer that is not in `PATH`.

mod client;
mod opened;
mod pages;

use client::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where what these tests build is kept.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("editors")
}

fn is_long() -> bool {
    std::env::var_os("TINYSPEC_LONG").is_some()
}

/// A crate of its own with `opened.rs` as its library.
fn written_crate() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = target().join("opened");
    let manifest = format!(
        "[package]\nname = \"opened\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         tinyspec = {{ path = {:?} }}\nlayers = {{ package = \"tinyspec-tests-layers\", path = {:?} }}\n\n[workspace]\n",
        tests.join(".."),
        tests.join("layers")
    );
    std::fs::create_dir_all(folder.join("src")).expect("a folder");
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("a manifest");
    std::fs::copy(tests.join("../Cargo.lock"), folder.join("Cargo.lock")).expect("the versions");
    std::fs::write(folder.join("src/lib.rs"), include_str!("opened.rs")).expect("the library");
    folder
}

/// rust-analyzer, if there is one: a name in `PATH` may be rustup's, which has none behind it.
fn rust_analyzer() -> Option<Command> {
    let program = std::env::var_os("TINYSPEC_RUST_ANALYZER").unwrap_or("rust-analyzer".into());
    let answer = Command::new(&program).arg("--version").output();
    answer.is_ok_and(|answer| answer.status.success()).then(|| {
        let mut command = Command::new(program);
        command.env("CARGO_TARGET_DIR", target());
        command
    })
}

fn hover(client: &mut Client, place: &str) -> String {
    let shown = client.at("textDocument/hover", place, json!({}))["contents"]["value"].as_str().map(str::to_string);
    let shown = shown.unwrap_or_else(|| panic!("nothing is shown at `{place}`"));
    for internal in ["__tinyspec", "__private", "pub enum", "macro_rules"] {
        assert!(!shown.contains(internal), "`{internal}` is shown at `{place}`:\n{shown}");
    }
    shown
}

/// File and line of each, from one.
fn lines(answer: &Value) -> Vec<(String, u64)> {
    let targets = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    let target = |target: &Value| {
        let uri = target.get("uri").or(target.get("targetUri")).and_then(Value::as_str).unwrap_or_default();
        let file = uri.rsplit('/').take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("/");
        let range = target.get("range").unwrap_or(&target["targetSelectionRange"]);
        (file, range["start"]["line"].as_u64().unwrap_or_default() + 1)
    };
    let mut lines: Vec<_> = targets.iter().map(target).collect();
    lines.sort();
    lines
}

/// The line of the text that `needle` begins, from one.
fn line_of(text: &str, needle: &str) -> u64 {
    let offset = text.find(needle).unwrap_or_else(|| panic!("`{needle}` is there"));
    text[..offset].matches('\n').count() as u64 + 1
}

fn labels(client: &mut Client, place: &str) -> Vec<String> {
    let answer = client.at("textDocument/completion", place, json!({}));
    let items = answer.as_array().or(answer["items"].as_array()).cloned().unwrap_or_default();
    let labels: Vec<String> = items
        .iter()
        .filter_map(|item| item["label"].as_str())
        .map(|label| label.trim_matches('…').to_string())
        .collect();
    for internal in ["__", "fn_loss", "fn_forward", "ONE_FUNCTION_IMPL", "DIM_"] {
        assert!(
            labels.iter().all(|label| !label.contains(internal)),
            "`{internal}` is listed at `{place}`: {labels:?}"
        );
    }
    labels
}

fn has(labels: &[String], name: &str) -> bool {
    labels.iter().filter(|label| label.split(['(', '!', ' ']).next() == Some(name)).count() == 1
}

#[test]
fn an_editor_shows_what_the_user_wrote() {
    if !is_long() {
        return;
    }
    let Some(server) = rust_analyzer() else { return println!("skipped: no rust-analyzer") };
    let folder = written_crate();
    let file = folder.join("src/lib.rs");
    let text = std::fs::read_to_string(&file).expect("the file is there");
    let mut client = Client::open(server, &folder, &file);
    let said = client.diagnostics();
    assert!(said.is_empty(), "{said:?}");

    // Signatures as written.
    let shown = [
        (
            "fn |heads",
            "#[function(where(D % H == 0))]\nfn heads<B, D, H>(x: &Tensor<f32, B, D>, h: &Tensor<f32, H>) -> Tensor<f32, B, H, { D / H }>",
        ),
        ("fn |heads", "In heads."),
        ("fn |heads", "Each has its part of the last axis."),
        ("= |dense(x", "fn dense<N, I, O>("),
        ("fn |loss", "    scale: f32,\n) -> Tensor<f32>\n"),
        ("fn |loss", "`loss::grad(x, w, b, scale)`"),
        ("fn |deep", "fn deep<B>(x: &Tensor<f32, B, 4>, residual: bool) -> Tensor<f32, B, 4>"),
        (
            "struct |Linear",
            "struct Linear<I, O> {\n    pub weight: Tensor<f32, I, O>,\n    bias: Option<Tensor<f32, O>>,\n}",
        ),
        ("layer: &|Linear", "struct Linear<I, O> {"),
        ("self.|weight", "weight: Tensor<f32, I, O>"),
        ("layer.|forward", "fn forward<B>(&self, x: &Tensor<f32, B, I>) -> Tensor<f32, B, O>"),
        ("struct |Mean", "    #[model(buffer)]\n    pub mean: Tensor<f32, 3>,"),
        ("fn |see", "fn see<B>(&mut self, x: &Tensor<f32, B, 3>) -> Tensor<f32, B, 3>"),
        ("fn |run", "fn run<B>(layer: &Linear<3, 4>, x: &Tensor<f32, B, 3>) -> (Tensor<f32, B, 4>, Tensor<f32, B, 3>)"),
        ("fn |saxpy", "<N> fn saxpy(y: &mut Global<f32, N>, x: &Global<f32, N>, a: f32)"),
        ("    |y.relu()", "let y: Tensor"),
        ("false) * |scale", "scale: &Tensor"),
    ];
    for (place, part) in shown {
        let shown = hover(&mut client, place);
        assert!(shown.contains(part), "`{part}` is not shown at `{place}`:\n{shown}");
    }

    // From a name to where it is declared, and from there to where it is used.
    let layers = include_str!("../layers/lib.rs");
    let own = |line| ("src/lib.rs".to_string(), line);
    let declared = [
        ("= |dense(x", vec![("layers/lib.rs".to_string(), line_of(layers, "pub fn dense"))]),
        ("layer.|forward", vec![own(line_of(&text, "pub fn forward"))]),
        ("self.|weight", vec![own(line_of(&text, "pub weight"))]),
        ("layer: &|Linear", vec![own(line_of(&text, "pub struct Linear"))]),
        ("f32, I, |O>,\n    bias", vec![own(line_of(&text, "pub struct Linear"))]),
        ("{ |D / H }", vec![own(line_of(&text, "pub fn heads"))]),
        ("where(D % |H", vec![own(line_of(&text, "pub fn heads"))]),
        ("0..|LAYERS", vec![own(line_of(&text, "pub const LAYERS"))]),
    ];
    for (place, expected) in declared {
        assert_eq!(lines(&client.at("textDocument/definition", place, json!({}))), expected, "from `{place}`");
    }
    let with_declaration = json!({ "context": { "includeDeclaration": true } });
    let used = client.at("textDocument/references", "fn |forward", with_declaration.clone());
    assert_eq!(lines(&used), [own(line_of(&text, "pub fn forward")), own(line_of(&text, "(layer.forward"))]);
    let head = line_of(&text, "pub fn heads");
    let used = client.at("textDocument/references", "heads<B, |D", with_declaration);
    assert_eq!(lines(&used), [own(head - 1), own(head), own(head), own(head), own(head + 1)]);
    let renamed = client.at("textDocument/rename", "let |y = dense", json!({ "newName": "h" }));
    let edits = renamed.pointer("/documentChanges/0/edits").and_then(Value::as_array);
    assert_eq!(edits.map(Vec::len), Some(2), "{renamed}");

    // In bodies that are half typed, or wrong.
    let half_typed = [
        ("let y = dense(x, w, b);", "let k = x.matmul(w);\n    k.", "    k.|", "relu"),
        ("let y = dense(x, w, b);", "let z = nothing(x);\n    let y = x.exp();\n    y.", "    y.|", "matmul"),
        ("let y = dense(x, w, b);", "let y = de", "let y = de|", "dense"),
        ("x.matmul(&self.weight)", "self.", "    self.|", "weight"),
        ("x.matmul(&self.weight)", "self.forward(x).", "(x).|", "sum"),
        ("(layer.forward(x), x.relu())", "layer.", "    layer.|", "forward"),
        ("x.reshape([B, H, D / H])", "x.re([B, H, D / H])", "x.re|([B", "reshape"),
        ("x - &self.mean", "self.", "    self.|", "mean"),
        ("/// Of a model.", "fn plain() { he }\n/// Of a model.", "{ he|", "heads"),
        ("/// Of a model.", "fn plain() { loss:: }\n/// Of a model.", "loss::|", "grad"),
    ];
    for (whole, half, place, expected) in half_typed {
        assert!(text.contains(whole));
        client.change(text.replacen(whole, half, 1));
        let listed = labels(&mut client, place);
        assert!(has(&listed, expected), "`{expected}` is not listed once behind `{half}`: {listed:?}");
        let said = client.diagnostics();
        assert!(said.iter().all(|(.., is_grey)| !is_grey), "`{half}` greys: {said:?}");
        assert!(said.iter().all(|(_, message, _)| !message.contains("EmbeddedFunction")), "`{half}`: {said:?}");
    }
    let wrong = [
        ("dense(x, w, b)", "dense(x, w, w)", "w", "dense: `b` has rank 1, found rank 2"),
        ("y.relu()", "y.matmul(w)", "matmul", "matmul: inner dimensions differ: 10 and 784"),
        ("x.reshape(", "x.reshap(", "reshap", "tensors have no method `reshap`; did you mean `reshape`?"),
        (
            "layer.forward(x)",
            "layer.forward(&layer.weight)",
            "&",
            "forward: dim `I` is 3 from `self.weight`, but axis 1 of `x` is 4",
        ),
    ];
    for (right, wrong, place, expected) in wrong {
        assert!(text.contains(right));
        client.change(text.replacen(right, wrong, 1));
        let said = client.diagnostics();
        let [(at, message, false)] = &said[..] else { panic!("`{wrong}` is one mistake: {said:?}") };
        assert_eq!(at, place, "{message}");
        assert!(message.contains(expected), "{message}");
    }
    // All mistakes of a body at once.
    client.change(text.replacen("x.reshape([B, H, D / H]) + h.reshape([H, 1])", "x.reshap(1) + h.rleu()", 1));
    let mut said: Vec<String> = client.diagnostics().into_iter().map(|(at, ..)| at).collect();
    said.sort();
    assert_eq!(said, ["reshap", "rleu"]);
}
