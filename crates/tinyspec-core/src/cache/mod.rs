//! Objects on disk: machine code of kernels seen by an earlier run.
//!
//! An entry is trusted only if it is ours, complete and has this key; anything else is ignored and compiled again. Each
//! code generator has its own folder. If the code generator is unknown or missing, all folders are searched, since the
//! code of any of them is correct.

mod folder;
mod limit;

pub(crate) use folder::private as folder;
pub(crate) use limit::check as check_settings;

use crate::Result;
use crate::device::Device;
use crate::file::{Durability, folder_of, replace};
use crate::profile;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tinyspec_backends::{BackendError, LinearKernel, Program};
use tinyspec_ir::{ContentHash, ContentHasher};

const MAGIC: &[u8; 8] = b"tsobj\0\0\x01";
/// Magic, key, checksum.
const HEADER: usize = 8 + 16 + 16;
/// Code that compiles faster than this is not worth a file.
const WORTH_KEEPING: Duration = Duration::from_micros(150);

/// Where a kernel's object is, or would be.
pub(crate) struct Entry {
    key: ContentHash,
    /// Where it is kept.
    file: Option<PathBuf>,
    /// Any code generator may have made it.
    is_of_any: bool,
}

impl Entry {
    pub(crate) fn of(kernel: &LinearKernel, device: &Device) -> Entry {
        let _timer = profile::loading_timer();
        let key = key(kernel, device);
        let generator = device.compiler().generator();
        let folder = folder().and_then(|folder| folder::of_generator(folder, generator.as_deref()));
        let file = folder.map(|folder| folder.join(name(key)));
        Entry { key, file, is_of_any: generator.is_none() }
    }

    /// The kernel from disk.
    pub(crate) fn load(&self, kernel: &LinearKernel, device: &Device) -> Option<Arc<dyn Program>> {
        let _timer = profile::loading_timer();
        let load = |file: &Path| device.runtime().load(&kernel.name, &read(file, self.key)?).ok();
        if let Some(program) = load(self.file.as_ref()?) {
            return Some(program);
        }
        let others = if self.is_of_any { folder::generators() } else { &[] };
        let trusted = others.iter().filter(|folder| folder::is_private(folder));
        trusted.map(|folder| folder.join(name(self.key))).find_map(|file| load(&file))
    }

    fn keep(&self, code: &[u8]) {
        if let Some(file) = &self.file {
            // A full disk or a race with another process costs only the next run's time.
            let _ = write(file, self.key, code);
        }
    }
}

/// Kernels that were not on disk, compiled together, loaded and kept.
pub(crate) fn compile(kernels: &[(&LinearKernel, &Entry)], device: &Device) -> Vec<Result<Arc<dyn Program>>> {
    let start = Instant::now();
    let codes = {
        let _timer = profile::generating_timer();
        let kernels: Vec<&LinearKernel> = kernels.iter().map(|(kernel, _)| *kernel).collect();
        device.compiler().compile_all(&kernels, device.target())
    };
    let is_worth_keeping = start.elapsed() >= WORTH_KEEPING * kernels.len() as u32;
    let program = |((kernel, entry), code): (&(&LinearKernel, &Entry), std::result::Result<Vec<u8>, BackendError>)| {
        let code = code.map_err(|error| not_compiled(error, kernel, device))?;
        if is_worth_keeping {
            entry.keep(&code);
        }
        let _timer = profile::loading_timer();
        Ok(device.runtime().load(&kernel.name, &code)?)
    };
    kernels.iter().zip(codes).map(program).collect()
}

/// Without a code generator the error is that the kernel was not on disk.
fn not_compiled(error: BackendError, kernel: &LinearKernel, device: &Device) -> BackendError {
    match error {
        BackendError::NoGenerator(reason) => {
            let (name, target) = (kernel.name.clone(), device.target().name.clone());
            BackendError::NotCompiled { name, target, cache: folder().map(Path::to_path_buf), reason }
        }
        error => error,
    }
}

fn name(key: ContentHash) -> String {
    format!("{key}.o")
}

fn key(kernel: &LinearKernel, device: &Device) -> ContentHash {
    let mut hasher = ContentHasher::default();
    kernel.graph.structural_hash(kernel.linear).hash(&mut hasher);
    (&kernel.name, kernel.params, &kernel.local_offsets, kernel.scratch_bytes, kernel.global_trips).hash(&mut hasher);
    (device.code_hash(), device.compiler().fingerprint(), tinyspec_backends::SOURCES_HASH).hash(&mut hasher);
    hasher.content_hash()
}

fn checksum(code: &[u8]) -> ContentHash {
    let mut hasher = ContentHasher::default();
    hasher.write(code);
    hasher.content_hash()
}

/// The code in an entry, if it is complete and has this key.
fn read(file: &Path, key: ContentHash) -> Option<Vec<u8>> {
    let mut bytes = fs::read(file).ok()?;
    let (header, code) = bytes.split_at_checked(HEADER)?;
    let (magic, sums) = header.split_at(MAGIC.len());
    let (stored_key, stored_sum) = sums.split_at(16);
    let sound = magic == MAGIC && stored_key == key.0.to_le_bytes() && stored_sum == checksum(code).0.to_le_bytes();
    sound.then(|| bytes.split_off(HEADER))
}

fn write(file: &Path, key: ContentHash, code: &[u8]) -> std::io::Result<()> {
    folder::create(folder_of(file))?;
    folder::sweep(folder_of(file));
    limit::enforce();
    let mut bytes = Vec::with_capacity(HEADER + code.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&key.0.to_le_bytes());
    bytes.extend_from_slice(&checksum(code).0.to_le_bytes());
    bytes.extend_from_slice(code);
    replace(file, &bytes, Durability::Unsynced)
}
