//! Every stage of every case: verified, and printed, parsed, encoded and decoded to the identical graph.

use crate::stages::{gpu, programs};
use std::collections::{BTreeMap, HashSet};
use tinyspec::ir::{ContentHash, Graph, NodeId, encode, text, verify};

#[test]
fn every_stage_of_the_corpus_goes_through_text_and_bytes() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut known: HashSet<ContentHash> = HashSet::new();
    let mut check = |name: &str, stage: &'static str, graph: &Graph, roots: &[NodeId]| {
        let hash = graph.content_hash(roots);
        if !known.insert(hash) {
            return;
        }
        let printed = text::print(graph, roots);
        let (parsed, same) = text::parse(&printed).unwrap_or_else(|error| panic!("{name}, {stage}: {error}"));
        assert!(parsed.content_hash(&same) == hash, "{name}, {stage}: the text is another graph\n{printed}");
        assert!(text::print(&parsed, &same) == printed, "{name}, {stage}: it prints differently");
        let decoded = encode::decode(&encode::encode(graph, roots));
        let (decoded, same) = decoded.unwrap_or_else(|error| panic!("{name}, {stage}: {error}"));
        assert!(decoded.content_hash(&same) == hash, "{name}, {stage}: the bytes are another graph\n{printed}");
        *counts.entry(stage).or_default() += 1;
    };
    for program in programs() {
        let name = &program.name;
        let refused = |stage: &str, error: tinyspec::ir::Error| panic!("{name}, {stage}: {error}");
        verify::tensor(&program.graph, &program.outputs).unwrap_or_else(|error| refused("tensors", error));
        check(name, "tensors", &program.graph, &program.outputs);
        let schedule = program.schedule();
        verify::schedule(&schedule.graph, schedule.root, &schedule.buffers)
            .unwrap_or_else(|error| refused("schedule", error));
        check(name, "schedule", &schedule.graph, &[schedule.root]);
        for kernel in program.kernels() {
            // The verifiers of the later stages run inside.
            kernel.lower(|stage, graph, root| check(name, stage, graph, &[root]));
            kernel.lower_for(&gpu(), |stage, graph, root| check(name, stage, graph, &[root]));
        }
    }
    let counts: Vec<String> = counts.iter().map(|(stage, count)| format!("{stage} {count}")).collect();
    println!("graphs that went through text and bytes: {}", counts.join(", "));
}
