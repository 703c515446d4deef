//! The binary form of a graph: what the macros embed and the caches store.
//!
//! A header (magic, version, counts), one record per node in walk order (op number, sources as backward distances,
//! argument), the roots, and a checksum of everything before it. Decoding goes through `derive`, so untrusted bytes
//! give a well-formed graph or an error.

mod reader;
mod writer;

use crate::{Builder, ContentHasher, Error, ErrorKind, Graph, NodeId, Op, Result};
pub use reader::Reader;
use std::hash::Hasher;
pub use writer::Writer;

const MAGIC: &[u8; 4] = b"UOPS";
const VERSION: u64 = 1;

/// Encodes everything that `roots` depend on.
///
/// ```
/// use tinyspec_ir::{Builder, Const, DType, Graph, encode};
/// let mut graph = Graph::new();
/// let one = graph.constant(Const::int(DType::I32, 1));
/// let bytes = encode::encode(&graph, &[one]);
/// let (decoded, roots) = encode::decode(&bytes)?;
/// assert_eq!(decoded.content_hash(&roots), graph.content_hash(&[one]));
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
pub fn encode(graph: &Graph, roots: &[NodeId]) -> Vec<u8> {
    let live = graph.reachable(roots);
    let mut numbers = vec![0usize; graph.len()];
    let mut writer = Writer::default();
    writer.raw(MAGIC);
    writer.number(VERSION);
    writer.number(live.len() as u64);
    for (number, &node) in live.iter().enumerate() {
        numbers[node.index()] = number;
        writer.byte(graph.op(node) as u8);
        writer.number(graph.sources(node).len() as u64);
        for source in graph.sources(node) {
            // Sources are mostly near, so most distances are one byte.
            writer.number((number - numbers[source.index()]) as u64);
        }
        writer.arg(graph.op(node), graph.arg(node));
    }
    writer.number(roots.len() as u64);
    for root in roots {
        writer.number(numbers[root.index()] as u64);
    }
    let checksum = checksum(writer.bytes());
    writer.raw(&checksum.to_le_bytes());
    writer.into_bytes()
}

/// The graph in `bytes`, and its roots.
///
/// # Errors
/// When the bytes are damaged, truncated or of another version, or describe what [`crate::derive()`] refuses.
pub fn decode(bytes: &[u8]) -> Result<(Graph, Vec<NodeId>)> {
    let damaged = |what: &str| Error::new(ErrorKind::Parse, "decode", format!("the encoded graph is damaged: {what}"));
    let Some((body, sum)) = bytes.split_last_chunk::<8>() else { return Err(damaged("too short")) };
    if !body.starts_with(MAGIC) {
        return Err(damaged("it does not begin like one"));
    }
    if u64::from_le_bytes(*sum) != checksum(body) {
        return Err(damaged("its checksum does not match"));
    }
    let mut reader = Reader::new(&body[MAGIC.len()..]);
    let version = reader.number()?;
    if version != VERSION {
        return Err(Error::new(
            ErrorKind::Parse,
            "decode",
            format!("the encoded graph has version {version}, this is {VERSION}"),
        ));
    }
    let mut graph = Graph::new();
    let mut nodes: Vec<NodeId> = Vec::new();
    let count = reader.number()?;
    // A node takes about four bytes, so a damaged count must not cause a huge allocation.
    let believed = (count as usize).min(bytes.len() / 4);
    graph.reserve(believed);
    nodes.reserve(believed);
    for number in 0..count {
        let op = Op::from_number(reader.byte()?).ok_or_else(|| damaged("an unknown op"))?;
        let count = reader.count()?;
        let mut sources = Vec::with_capacity(count);
        for _ in 0..count {
            let position = number.checked_sub(reader.number()?).and_then(|position| nodes.get(position as usize));
            sources.push(*position.ok_or_else(|| damaged("a source that is not there"))?);
        }
        let arg = reader.arg(op)?;
        nodes.push(graph.add(op, &sources, arg)?);
    }
    let mut roots = Vec::new();
    for _ in 0..reader.number()? {
        let root = nodes.get(reader.number()? as usize);
        roots.push(*root.ok_or_else(|| damaged("a root that is not there"))?);
    }
    if reader.is_done() { Ok((graph, roots)) } else { Err(damaged("bytes are left over")) }
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = ContentHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
