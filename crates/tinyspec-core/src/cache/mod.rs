//! The cache on disk: machine code of kernels, and whole command buffers, of an earlier run.
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
use tinyspec_backends::{BackendError, LinearKernel, Program, settings};
use tinyspec_ir::{ContentHash, ContentHasher};

const MAGIC: &[u8; 8] = b"tsobj\0\0\x01";
/// Magic, key, checksum.
const HEADER: usize = 8 + 16 + 16;
/// Hash of the sources that command buffers depend on.
const COMPILER_HASH: &str = env!("COMPILER_SOURCES_HASH");
/// Code that compiles faster than this is not worth a file.
const WORTH_KEEPING: Duration = Duration::from_micros(150);

/// A file of the cache, which may not exist yet.
pub(crate) struct Entry {
    key: ContentHash,
    name: String,
    /// Where it is kept.
    file: Option<PathBuf>,
    /// Any code generator may have made it.
    is_of_any: bool,
}

/// A loaded kernel and its code.
pub(crate) struct Object {
    pub program: Arc<dyn Program>,
    pub code: Arc<[u8]>,
}

impl Object {
    /// # Errors
    /// When the device does not load it.
    pub(crate) fn load(name: &str, code: Vec<u8>, device: &Device) -> Result<Object> {
        let _timer = profile::loading_timer();
        Ok(Object { program: device.runtime().load(name, &code)?, code: code.into() })
    }
}

impl Entry {
    /// The code of a kernel.
    pub(crate) fn of(kernel: &LinearKernel, device: &Device) -> Entry {
        let _timer = profile::loading_timer();
        Entry::new(key(kernel, device), "o", device)
    }

    /// The command buffer of the program with this key.
    pub(crate) fn of_commands(key: ContentHash, device: &Device) -> Entry {
        let _timer = profile::loading_timer();
        let mut hasher = ContentHasher::default();
        (key, device.compiler().fingerprint(), settings::deciding(), COMPILER_HASH).hash(&mut hasher);
        Entry::new(hasher.content_hash(), "commands", device)
    }

    fn new(key: ContentHash, extension: &str, device: &Device) -> Entry {
        let name = format!("{key}.{extension}");
        let generator = device.compiler().generator();
        let folder = folder().and_then(|folder| folder::of_generator(folder, generator.as_deref()));
        Entry { key, file: folder.map(|folder| folder.join(&name)), name, is_of_any: generator.is_none() }
    }

    /// The result of `read` for the first entry that it accepts.
    pub(crate) fn load<T>(&self, read: impl Fn(Vec<u8>) -> Option<T>) -> Option<T> {
        let load = |file: &Path| self::read(file, self.key).and_then(&read);
        if let Some(loaded) = load(self.file.as_ref()?) {
            return Some(loaded);
        }
        let others = if self.is_of_any { folder::generators() } else { &[] };
        let trusted = others.iter().filter(|folder| folder::is_private(folder));
        trusted.map(|folder| folder.join(&self.name)).find_map(|file| load(&file))
    }

    pub(crate) fn keep(&self, contents: &[u8]) {
        if let Some(file) = &self.file {
            // A full disk or a race with another process costs only the next run's time.
            let _ = write(file, self.key, contents);
        }
    }
}

/// Kernels that were not on disk, compiled together, loaded and kept.
pub(crate) fn compile(kernels: &[(&LinearKernel, &Entry)], device: &Device) -> Vec<Result<Object>> {
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
        Object::load(&kernel.name, code, device)
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

fn key(kernel: &LinearKernel, device: &Device) -> ContentHash {
    let mut hasher = ContentHasher::default();
    kernel.graph.structural_hash(kernel.linear).hash(&mut hasher);
    (&kernel.name, kernel.params, &kernel.local_offsets, kernel.scratch_bytes, kernel.shared_trips).hash(&mut hasher);
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
