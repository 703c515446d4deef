//! What the gradients of a walk depend on: programs that differ in nothing else share these.

use super::{Entry, KeyPart, Opening, Positions, Walk, called};
use crate::lazy::moved::Offsets;
use crate::lazy::{Node, Place, is_one_of_few};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;
use tinyspec_ir::{Arg, ContentHasher, Device, Op};

impl Walk {
    /// What gradients with respect to `wanted` are derived of: everything that they flow through, and constants. Other values are leaves,
    /// however they are computed. Walks that differ in numbers of the program alone have the same key, unless a number decides what is
    /// derived.
    ///
    /// None where gradients follow the history of a tensor, where values are on several devices or of sizes that are not known, and
    /// where windows that gradients flow through change from call to call: then their offsets may become inputs, which takes a node for each.
    pub fn derivation(&self, wanted: &[Arc<Node>]) -> Option<Walk> {
        let of_wanted = self.roots.get(1..)?;
        let mut opening = Opening::new(wanted, self.leaf_count);
        let leaves = self.entries.iter().zip(self.flows()).filter(|(entry, flows)| *flows && entry.leaf.is_some());
        for (leaf, _) in leaves {
            if !matches!(opening.history_of(&leaf.node), Ok(None)) {
                return None;
            }
        }
        let mut depends = vec![false; self.entries.len()];
        of_wanted.iter().for_each(|&root| depends[root as usize] = true);
        for (position, entry) in self.entries.iter().enumerate() {
            depends[position] |= entry.leaf.is_none() && entry.sources.iter().any(|&source| depends[source as usize]);
        }
        let is_inner = |position: usize| {
            let entry = &self.entries[position];
            entry.leaf.is_none() && !is_number(&entry.node) && (depends[position] || !entry.node.has_data())
        };
        let mut is_needed = vec![false; self.entries.len()];
        self.roots.iter().for_each(|&root| is_needed[root as usize] = true);
        for position in (0..self.entries.len()).rev().filter(|&position| is_inner(position)) {
            if is_needed[position] {
                self.entries[position].sources.iter().for_each(|&source| is_needed[source as usize] = true);
            }
        }
        let mut hasher = ContentHasher::default();
        let mut part = Walk { has_placeholder: self.has_placeholder, ..Walk::new() };
        // Of the entries, in the part.
        let mut positions = vec![0; self.entries.len()];
        let mut windows: FxHashMap<_, u32> = FxHashMap::default();
        for (position, entry) in self.entries.iter().enumerate().filter(|&(position, _)| is_needed[position]) {
            let node = &entry.node;
            let is_elsewhere = matches!(node.device(), Some(Device::Many(_)));
            let has_sizes = !node.props.shape.iter().all(|dim| dim.as_const().is_some());
            if is_elsewhere || has_sizes {
                return None;
            }
            positions[position] = part.entries.len() as u32;
            let (mut sources, mut leaf) = (Positions::new(), None);
            if is_inner(position) {
                sources.extend(entry.sources.iter().map(|&source| positions[source as usize]));
                KeyPart::Node(node.op, &node.arg, &sources).hash(&mut hasher);
                if let Some(body) = called(node) {
                    if !body.ranged().is_empty() {
                        return None;
                    }
                    KeyPart::Body(body.hash()).hash(&mut hasher);
                }
                self.hash_chosen(entry, &mut hasher);
            } else {
                KeyPart::Leaf(node.props.dtype, &node.props.shape, node.device()).hash(&mut hasher);
                if !is_number(node) {
                    leaf = Some(part.leaf_count);
                    part.leaf_count += 1;
                }
            }
            // Kept apart from its equals.
            node.identity().is_tensor().hash(&mut hasher);
            part.entries.push(Entry { node: node.clone(), sources, leaf, waits: false, is_moved: false });
            if depends[position]
                && matches!(node.op, Op::Shrink | Op::Pad)
                && let (Some(line), Some(offsets)) = (node.location, Offsets::of(node))
            {
                let occurrence = windows.entry((line, offsets.sizes())).or_default();
                *occurrence += 1;
                let place = Place::Flow(offsets.sizes(), *occurrence);
                if !is_one_of_few(line, place, offsets.number()) {
                    return None;
                }
            }
        }
        part.roots = self.roots.iter().map(|&root| positions[root as usize]).collect();
        part.roots.hash(&mut hasher);
        part.key = hasher.content_hash();
        Some(part)
    }

    /// Hashes numbers that a derivation may depend on: what terms are chosen against, and arguments of Functions, which may do that.
    fn hash_chosen(&self, entry: &Entry, hasher: &mut ContentHasher) {
        let sources = match entry.node.op {
            Op::Where => entry.sources.get(2..).unwrap_or_default(),
            Op::Function => &entry.sources[..],
            _ => &[],
        };
        for node in sources.iter().map(|&source| &self.entries[source as usize].node).filter(|node| is_number(node)) {
            node.arg.hash(hasher);
        }
    }
}

/// A number that the program writes.
fn is_number(node: &Node) -> bool {
    node.literal().is_some() && matches!(node.arg, Arg::Const(_))
}
