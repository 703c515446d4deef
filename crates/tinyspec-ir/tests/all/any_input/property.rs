//! What must hold of any text and any bytes: an error, or a graph that survives every reader, writer and verifier.
//! Shared by the tests and by the fuzz targets in `fuzz/`.
#![allow(dead_code, reason = "each fuzz target uses a part")]

use std::hash::Hasher;
use tinyspec_ir::kernel::WrittenKernel;
use tinyspec_ir::rewrite::Rewriter;
use tinyspec_ir::{ContentHasher, Graph, NodeId, encode, rules, text, verify};

/// Any text.
pub fn any_text(source: &str) {
    if let Ok((graph, roots)) = text::parse(source) {
        any_graph(&graph, &roots);
    }
}

/// Any bytes, as they are, and with the checksum they should have.
pub fn any_bytes(bytes: &[u8]) {
    let _ = encode::decode(bytes);
    let _ = WrittenKernel::decode(bytes);
    if let Ok((graph, roots)) = encode::decode(&sealed(bytes)) {
        any_graph(&graph, &roots);
    }
}

/// The bytes behind their checksum, so that what is behind the check is read as well.
pub fn sealed(body: &[u8]) -> Vec<u8> {
    let mut hasher = ContentHasher::default();
    hasher.write(body);
    [body, &hasher.finish().to_le_bytes()].concat()
}

/// Without its checksum.
pub fn unsealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len().saturating_sub(8));
    bytes
}

/// Any graph that was built at all.
pub fn any_graph(graph: &Graph, roots: &[NodeId]) {
    let printed = text::print(graph, roots);
    let (parsed, parsed_roots) = text::parse(&printed).unwrap_or_else(|error| panic!("{error} in\n{printed}"));
    let again = text::print(&parsed, &parsed_roots);
    let differs = printed.lines().zip(again.lines()).find(|(line, again)| line != again);
    assert!(printed == again, "the second time a line is another one: {differs:?}\n{printed}");
    let hash = graph.content_hash(roots);
    assert!(hash == parsed.content_hash(&parsed_roots), "the text is another graph:\n{printed}");
    let (decoded, decoded_roots) =
        encode::decode(&encode::encode(graph, roots)).unwrap_or_else(|error| panic!("{error} in\n{printed}"));
    assert!(hash == decoded.content_hash(&decoded_roots), "the bytes are another graph:\n{printed}");
    if verify::tensor(graph, roots).is_ok() {
        let rules = [rules::EXACT, rules::REASSOC].concat();
        let _ = Rewriter::new(&rules).rewrite(&mut graph.clone(), roots);
    }
    // Verifiers are asked what a graph is, so they must bear any.
    for &root in roots {
        let _ = verify::ranges(graph, root);
        let _ = verify::tiles(graph, root);
        let _ = verify::machine(graph, root);
        let _ = verify::linear(graph, root);
        let _ = verify::access::problems(graph, root, &|_| None, &|_| false);
    }
}
