//! The checked-in list of names is what `llvm-sys` declares. `TINYSPEC_BLESS=1` rewrites it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the `llvm-sys` that the workspace builds with.
fn llvm_sys() -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let package = packages
        .iter()
        .find(|package| package["name"] == "llvm-sys" && package["version"].as_str().unwrap_or("").starts_with("221."))
        .expect("llvm-sys 221 is in the workspace's graph");
    Path::new(package["manifest_path"].as_str().expect("a path")).with_file_name("src")
}

/// What libLLVM has, and `llvm-sys` does not declare.
const UNDECLARED: [&str; 1] = ["LLVMInitializeAMDGPUDisassembler"];

fn declared(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("sources of llvm-sys") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            declared(&path, names);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("Rust source");
        let mut inside = false;
        for line in text.lines() {
            // rustfmt closes a top-level block in column 0.
            inside = if line.starts_with("extern \"C\" {") { true } else { inside && line != "}" };
            let Some(rest) = line.trim_start().strip_prefix("pub fn ").filter(|_| inside) else { continue };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // Wrappers around macros, and the other libraries in libLLVM, are not LLVM-C.
            if name.starts_with("LLVM") && !name.starts_with("LLVM_") {
                names.insert(name);
            }
        }
    }
}

#[test]
fn the_list_is_what_llvm_sys_declares() {
    let mut names = BTreeSet::new();
    declared(&llvm_sys(), &mut names);
    names.extend(UNDECLARED.map(String::from));
    assert!(names.len() > 1000, "only {} declarations found", names.len());
    if std::env::var_os("TINYSPEC_BLESS").is_some() {
        let mut text = String::from(
            "//! Functions of LLVM-C that `llvm-sys` 221 declares: made by the test `the_list_is_what_llvm_sys_declares`.\n\n\
             macro_rules! with_names {\n    ($callback:ident) => {\n        $callback! {\n",
        );
        for name in &names {
            writeln!(text, "            {name}").expect("a String takes all");
        }
        text.push_str("        }\n    };\n}\n\npub(crate) use with_names;\n");
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/names.rs"), text).expect("the list is writable");
        return;
    }
    let listed: Vec<&str> = tinyspec_llvm_stubs::NAMES.to_vec();
    let declared: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(
        listed == declared,
        "missing {:?}, surplus {:?}: run the test with TINYSPEC_BLESS=1",
        declared.iter().filter(|name| !listed.contains(name)).collect::<Vec<_>>(),
        listed.iter().filter(|name| !declared.contains(name)).collect::<Vec<_>>()
    );
}
