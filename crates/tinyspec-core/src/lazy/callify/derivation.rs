//! The part of a walk that its gradients are derived from. Programs that agree in it share the derived gradients.

use super::{Entry, KeyPart, Opening, Positions, Walk, called};
use crate::lazy::moved::Offsets;
use crate::lazy::{Node, Place, is_one_of_few};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{Arg, ContentHasher, Device, Op};

/// The role of an entry in the derivation.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Not part of it.
    None,
    /// Depends on a wanted tensor.
    Made,
    /// Depends on constants only.
    Constant,
    /// A number that the program writes.
    Number,
    /// Any other value: data.
    Leaf,
}

/// How many windows of the same sizes each source line has created so far, by line and hash of the sizes.
#[derive(Default)]
struct Windows(FxHashMap<(&'static Location<'static>, u64), u32>);

impl Windows {
    /// Counts `node` if it is a window. True if its source line creates it at ever new offsets.
    fn change(&mut self, node: &Node) -> bool {
        if !matches!(node.op, Op::Shrink | Op::Pad) {
            return false;
        }
        let (Some(line), Some(offsets)) = (node.location, Offsets::of(node)) else { return false };
        let occurrence = self.0.entry((line, offsets.sizes())).or_default();
        *occurrence += 1;
        !is_one_of_few(line, Place::Flow(offsets.sizes(), *occurrence), offsets.number())
    }
}

impl Walk {
    /// What gradients with respect to `wanted` are derived of: everything that they flow through, and constants. Other values are leaves,
    /// however they are computed. Walks that differ in numbers of the program alone have the same key, unless a number decides what is
    /// derived.
    ///
    /// None where gradients follow the history of a tensor, where values are on several devices or of sizes that are not known, and
    /// where windows that gradients flow through change from call to call: then their offsets may become inputs, which takes a node for each.
    pub fn derivation(&self, wanted: &[Arc<Node>]) -> Option<Walk> {
        if self.follows_history(wanted) {
            return None;
        }
        let parts = self.parts();
        let mut hasher = ContentHasher::default();
        let mut derivation = Walk { has_placeholder: self.has_placeholder, ..Walk::new() };
        // Position of each entry in the derivation.
        let mut positions = vec![0; self.entries.len()];
        let mut windows = Windows::default();
        for (position, (entry, part)) in self.entries.iter().zip(&parts).enumerate() {
            let node = &entry.node;
            if *part == Part::None {
                continue;
            }
            let is_elsewhere = matches!(node.device(), Some(Device::Many(_)));
            let has_sizes = !node.props.shape.iter().all(|dim| dim.as_const().is_some());
            if is_elsewhere || has_sizes || *part == Part::Made && windows.change(node) {
                return None;
            }
            positions[position] = derivation.entries.len() as u32;
            let (mut sources, mut leaf) = (Positions::new(), None);
            match part {
                Part::Made | Part::Constant => {
                    sources.extend(entry.sources.iter().map(|&source| positions[source as usize]));
                    KeyPart::Node(node.op, &node.arg, &sources).hash(&mut hasher);
                    if let Some(body) = called(node) {
                        if !body.ranged().is_empty() {
                            return None;
                        }
                        KeyPart::Body(body.hash()).hash(&mut hasher);
                    }
                    self.hash_chosen(entry, &mut hasher);
                }
                _ => {
                    KeyPart::Leaf(node.props.dtype, &node.props.shape, node.device()).hash(&mut hasher);
                    if *part == Part::Leaf {
                        leaf = Some(derivation.leaf_count);
                        derivation.leaf_count += 1;
                    }
                }
            }
            // A tensor is kept apart from equal nodes.
            node.identity().is_tensor().hash(&mut hasher);
            derivation.entries.push(Entry { node: node.clone(), sources, leaf, waits: false, is_moved: false });
        }
        derivation.roots = self.roots.iter().map(|&root| positions[root as usize]).collect();
        derivation.roots.hash(&mut hasher);
        derivation.key = hasher.content_hash();
        Some(derivation)
    }

    /// Whether gradients flow on through the history of a leaf, or cannot be followed so far.
    fn follows_history(&self, wanted: &[Arc<Node>]) -> bool {
        let mut opening = Opening::new(wanted, self.leaf_count);
        let leaves = self.entries.iter().zip(self.flows()).filter(|(entry, flows)| *flows && entry.leaf.is_some());
        leaves.into_iter().any(|(leaf, _)| !matches!(opening.history_of(&leaf.node), Ok(None)))
    }

    /// What each entry is to the derivation of gradients of the first root with respect to the others.
    fn parts(&self) -> Vec<Part> {
        let count = self.entries.len();
        let (mut parts, mut depends) = (vec![Part::Leaf; count], vec![false; count]);
        self.roots.iter().skip(1).for_each(|&root| depends[root as usize] = true);
        for (position, Entry { node, sources, .. }) in
            self.entries.iter().enumerate().filter(|(_, entry)| entry.leaf.is_none())
        {
            let is_made = sources.iter().any(|&source| depends[source as usize]);
            depends[position] |= is_made;
            parts[position] = match () {
                () if is_number(node) => Part::Number,
                () if is_made => Part::Made,
                () if !node.has_data() => Part::Constant,
                () => Part::Leaf,
            };
        }
        let mut is_needed = vec![false; count];
        self.roots.iter().for_each(|&root| is_needed[root as usize] = true);
        for (position, entry) in self.entries.iter().enumerate().rev() {
            match parts[position] {
                _ if !is_needed[position] => parts[position] = Part::None,
                Part::Made | Part::Constant => {
                    entry.sources.iter().for_each(|&source| is_needed[source as usize] = true);
                }
                _ => {}
            }
        }
        parts
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

/// Whether the node is a number that the program writes.
fn is_number(node: &Node) -> bool {
    node.literal().is_some() && matches!(node.arg, Arg::Const(_))
}
