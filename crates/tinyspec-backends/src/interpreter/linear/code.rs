//! A linear kernel as bytes: a header, the encoded graph, a checksum.

use crate::{BackendError, Grid, LinearKernel};
use std::hash::Hasher;
use tinyspec_ir::{ContentHasher, encode as graph_code};

const MAGIC: &[u8; 8] = b"uopslin3";

pub(in super::super) fn encode(kernel: &LinearKernel) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let mut number = |number: usize| bytes.extend_from_slice(&(number as u64).to_le_bytes());
    number(kernel.params);
    number(kernel.scratch_bytes);
    number(kernel.shared_trips);
    number(kernel.local_offsets.len());
    for &(slot, offset) in &kernel.local_offsets {
        number(slot as usize);
        number(offset);
    }
    bytes.push(kernel.hand_written.is_some() as u8);
    let names = kernel.hand_written.as_deref().unwrap_or_default().join(" ");
    bytes.extend_from_slice(&(names.len() as u64).to_le_bytes());
    bytes.extend_from_slice(names.as_bytes());
    bytes.extend(graph_code::encode(&kernel.graph, &[kernel.linear]));
    let sum = checksum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

pub(in super::super) fn decode(name: &str, bytes: &[u8]) -> Result<LinearKernel, BackendError> {
    let damaged =
        || BackendError::Load { name: name.into(), reason: "the bytes are damaged or of another device".into() };
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
    if u64::from_le_bytes(*sum) != checksum(body) {
        return Err(damaged());
    }
    let mut rest = body.strip_prefix(MAGIC).ok_or_else(damaged)?;
    let mut number = || -> Result<usize, BackendError> {
        let (number, tail) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        rest = tail;
        usize::try_from(u64::from_le_bytes(*number)).map_err(|_| damaged())
    };
    let (params, scratch_bytes, shared_trips) = (number()?, number()?, number()?);
    let mut local_offsets = Vec::new();
    for _ in 0..number()? {
        let slot = u32::try_from(number()?).map_err(|_| damaged())?;
        local_offsets.push((slot, number()?));
    }
    let (is_hand_written, tail) = rest.split_first().ok_or_else(damaged)?;
    let (length, tail) = tail.split_first_chunk::<8>().ok_or_else(damaged)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
    let (names, rest) = tail.split_at_checked(length).ok_or_else(damaged)?;
    let names = std::str::from_utf8(names).map_err(|_| damaged())?;
    let hand_written = (*is_hand_written != 0).then(|| names.split_whitespace().map(str::to_string).collect());
    let (graph, roots) = graph_code::decode(rest)?;
    let &[linear] = roots.as_slice() else { return Err(damaged()) };
    let (grid, name) = (Grid::of(&graph, linear), name.into());
    Ok(LinearKernel { graph, linear, name, params, local_offsets, scratch_bytes, shared_trips, grid, hand_written })
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = ContentHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
