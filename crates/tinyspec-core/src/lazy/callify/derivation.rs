//! The part of a walk that its gradients are derived from. Programs that agree in it share the derived gradients.

use super::{Entry, KeyPart, Positions, Walk, called};
use crate::device::device_of;
use crate::error::Result;
use crate::lazy::moved::{Moved, Offsets};
use crate::lazy::{Class, Node, Opening, Produced, Series};
use rustc_hash::FxHashMap;
use std::hash::Hash;
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

impl Walk {
    /// The same walk, in which the offsets of windows that gradients flow through are data where they change from call to call. Programs that
    /// differ only in these offsets then share their gradients.
    ///
    /// # Errors
    /// When there is no memory for the offsets.
    pub fn with_moved_windows(self, wanted: &[Arc<Node>]) -> Result<Walk> {
        let is_single = |node: &Node| !matches!(node.device(), Some(Device::Many(_)));
        let is_window = |entry: &Entry| {
            matches!(entry.node.op, Op::Shrink | Op::Pad) && entry.leaf.is_none() && is_single(&entry.node)
        };
        // Within a trace, data would become part of the function.
        if self.has_placeholder || !self.entries.iter().any(is_window) {
            return Ok(self);
        }
        let mut windows = Produced::new();
        let depends = self.depends(self.follows_history(wanted));
        for (position, (entry, depends)) in self.entries.iter().zip(depends).enumerate() {
            if depends
                && is_window(entry)
                && let (Some(line), Some(offsets)) = (entry.node.location, Offsets::of(&entry.node))
            {
                windows.push(line, Series::Flowing(offsets.sizes()), offsets.number(), (position, offsets));
            }
        }
        let mut moved: FxHashMap<usize, Moved> = FxHashMap::default();
        let mut known: FxHashMap<Class, Moved> = FxHashMap::default();
        for (class, (position, offsets)) in windows.changing() {
            let device = device_of([self.entries[position].node.device()].into_iter())?;
            let offsets = match known.get(&class) {
                Some(known) => known.clone(),
                None => offsets.moved(&device, class.line)?,
            };
            known.insert(class, offsets.clone());
            moved.insert(position, offsets);
        }
        if moved.is_empty() {
            return Ok(self);
        }
        let mut walk = Walk { entries: Vec::with_capacity(self.entries.len() + moved.len()), ..self };
        // Position of each old entry.
        let mut positions: Vec<u32> = Vec::with_capacity(self.entries.len());
        for (position, mut entry) in self.entries.into_iter().enumerate() {
            for source in &mut entry.sources {
                *source = positions[*source as usize];
            }
            if let Some(Moved(offsets)) = moved.remove(&position) {
                entry.sources.truncate(1);
                entry.sources.push(walk.entries.len() as u32);
                entry.is_moved = true;
                let leaf = Some(walk.leaf_count);
                walk.leaf_count += 1;
                let sources = Positions::new();
                walk.entries.push(Entry { node: offsets, sources, leaf, waits: false, is_moved: false });
            }
            positions.push(walk.entries.len() as u32);
            walk.entries.push(entry);
        }
        walk.roots.iter_mut().for_each(|root| *root = positions[*root as usize]);
        Ok(walk)
    }

    /// The part of the walk that gradients with respect to `wanted` are derived from: all values that they flow through, and constants. Other
    /// values are leaves, however they are computed. Walks that differ only in numbers of the program have the same key, unless a number
    /// decides what is derived.
    ///
    /// None where gradients follow the history of a tensor, and where values are on several devices, of sizes that are not known, or results
    /// of functions that are compiled once for all sizes.
    pub fn derivation(&self, wanted: &[Arc<Node>]) -> Option<Walk> {
        let follows_history = self.follows_history(wanted);
        if follows_history.contains(&true) {
            return None;
        }
        let parts = self.parts(&self.depends(follows_history));
        let mut hasher = ContentHasher::default();
        let mut derivation = Walk { has_placeholder: self.has_placeholder, ..Walk::new() };
        // Position of each entry in the derivation.
        let mut positions = vec![0; self.entries.len()];
        for (position, (entry, part)) in self.entries.iter().zip(&parts).enumerate() {
            let node = &entry.node;
            if *part == Part::None {
                continue;
            }
            let is_elsewhere = matches!(node.device(), Some(Device::Many(_)));
            let is_move = node.op == Op::Load && *part == Part::Made;
            let has_sizes = !node.props.shape.iter().all(|dim| dim.as_const().is_some());
            if is_elsewhere || is_move || has_sizes {
                return None;
            }
            positions[position] = derivation.entries.len() as u32;
            let (mut sources, mut leaf) = (Positions::new(), None);
            match part {
                Part::Made | Part::Constant => {
                    sources.extend(entry.sources.iter().map(|&source| positions[source as usize]));
                    KeyPart::Node(node.op, &node.arg, &sources).hash(&mut hasher);
                    if entry.is_moved {
                        KeyPart::Window(&node.props.shape).hash(&mut hasher);
                    }
                    if let Some(body) = called(node) {
                        if !body.ranged().is_empty() || body.work().moves {
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
            let is_moved = entry.is_moved && leaf.is_none();
            derivation.entries.push(Entry { node: node.clone(), sources, leaf, waits: false, is_moved });
        }
        derivation.roots = self.roots.iter().map(|&root| positions[root as usize]).collect();
        derivation.roots.hash(&mut hasher);
        derivation.key = hasher.content_hash();
        Some(derivation)
    }

    /// The entries whose history gradients flow on through, or that cannot be followed so far.
    fn follows_history(&self, wanted: &[Arc<Node>]) -> Vec<bool> {
        let mut opening = Opening::new(wanted, self.leaf_count);
        let entries = self.entries.iter().zip(self.flows());
        let follows = entries.map(|(entry, flows)| {
            flows && entry.leaf.is_some() && !matches!(opening.history_of(&entry.node), Ok(None))
        });
        follows.collect()
    }

    /// The entries that depend on a wanted tensor: these, the given ones, and what is made of them.
    fn depends(&self, mut depends: Vec<bool>) -> Vec<bool> {
        self.roots.iter().skip(1).for_each(|&root| depends[root as usize] = true);
        for (position, entry) in self.entries.iter().enumerate() {
            depends[position] |= entry.sources.iter().any(|&source| depends[source as usize]);
        }
        depends
    }

    /// The role of each entry in deriving gradients of the first root with respect to the others.
    fn parts(&self, depends: &[bool]) -> Vec<Part> {
        let count = self.entries.len();
        let mut parts = vec![Part::Leaf; count];
        for (position, Entry { node, sources, .. }) in
            self.entries.iter().enumerate().filter(|(_, entry)| entry.leaf.is_none())
        {
            let is_made = sources.iter().any(|&source| depends[source as usize]);
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

    /// Hashes numbers that a derivation may depend on: alternatives of a Where, and arguments of Functions, which may use them so.
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
