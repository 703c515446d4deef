//! Objects on disk: machine code of kernels seen by an earlier run.
//!
//! An entry is trusted only if it is ours, whole and of this key; anything else is ignored and made anew.

mod folder;

pub(crate) use folder::private as folder;

use crate::Result;
use crate::execute::Device;
use crate::profile;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tinyspec_backends::{LinearKernel, Program};
use tinyspec_ir::{ContentHash, ContentHasher, encode};

const MAGIC: &[u8; 8] = b"tsobj\0\0\x01";
/// Magic, key, checksum.
const HEADER: usize = 8 + 16 + 16;
/// What is made faster than this is not worth a file.
const WORTH_KEEPING: Duration = Duration::from_micros(150);

/// A kernel, loaded: from disk, else compiled and kept.
pub(crate) fn program(kernel: &LinearKernel, device: &Device) -> Result<Arc<dyn Program>> {
    let timer = profile::loading_timer();
    let key = key(kernel, device);
    let load = |code: &[u8]| device.runtime().load(&kernel.name, code);
    let file = folder().map(|folder| folder.join(format!("{key}.o")));
    if let Some(program) = file.as_ref().and_then(|file| load(&read(file, key)?).ok()) {
        return Ok(program);
    }
    drop(timer);
    let start = Instant::now();
    let code = {
        let _timer = profile::generating_timer();
        device.compiler().compile(kernel, device.target())?
    };
    if let Some(file) = file.filter(|_| start.elapsed() >= WORTH_KEEPING) {
        // A full disk or a race with another process costs only the next run's time.
        let _ = write(&file, key, &code);
    }
    let _timer = profile::loading_timer();
    Ok(load(&code)?)
}

fn key(kernel: &LinearKernel, device: &Device) -> ContentHash {
    let mut hasher = ContentHasher::default();
    hasher.write(&encode::encode(&kernel.graph, &[kernel.linear]));
    (&kernel.name, kernel.params, &kernel.local_offsets, kernel.scratch_bytes, kernel.global_trips).hash(&mut hasher);
    (device.target_hash(), device.compiler().fingerprint(), tinyspec_backends::SOURCES_HASH).hash(&mut hasher);
    hasher.content_hash()
}

fn checksum(code: &[u8]) -> ContentHash {
    let mut hasher = ContentHasher::default();
    hasher.write(code);
    hasher.content_hash()
}

/// The code in an entry, if it is whole and of this key.
fn read(file: &Path, key: ContentHash) -> Option<Vec<u8>> {
    let mut bytes = fs::read(file).ok()?;
    let (header, code) = bytes.split_at_checked(HEADER)?;
    let (magic, sums) = header.split_at(MAGIC.len());
    let (stored_key, stored_sum) = sums.split_at(16);
    let sound = magic == MAGIC && stored_key == key.0.to_le_bytes() && stored_sum == checksum(code).0.to_le_bytes();
    sound.then(|| bytes.split_off(HEADER))
}

/// Writes beside the entry and renames: a reader sees all of it or nothing.
fn write(file: &Path, key: ContentHash, code: &[u8]) -> std::io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let draft = file.with_extension(format!("{}-{number}", std::process::id()));
    let mut bytes = Vec::with_capacity(HEADER + code.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&key.0.to_le_bytes());
    bytes.extend_from_slice(&checksum(code).0.to_le_bytes());
    bytes.extend_from_slice(code);
    let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}
