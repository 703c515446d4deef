//! Hashes the sources of the compiler: command buffers on disk that other sources made are not used.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// The crates below this one lie beside it in a workspace; elsewhere their versions are fixed by that of this one.
const FOLDERS: [&str; 3] = ["src", "../tinyspec-ir/src", "../tinyspec-backends/src"];

fn main() {
    let mut hasher = DefaultHasher::new();
    for folder in FOLDERS.map(Path::new).into_iter().filter(|folder| folder.exists()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(folder, &mut files);
        files.sort();
        for file in files {
            hasher.write(file.to_string_lossy().as_bytes());
            hasher.write(&std::fs::read(&file).unwrap_or_default());
        }
    }
    println!("cargo::rustc-env=COMPILER_SOURCES_HASH={:016x}", hasher.finish());
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
