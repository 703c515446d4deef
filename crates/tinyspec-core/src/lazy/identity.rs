//! Who a value is to a gradient.
//!
//! What is equal is computed once, by the hash of its node. A gradient is asked for of one tensor, and another one may be
//! equal to it: two weights that start as zeros. So every float tensor that somebody has a handle of is somebody: a leaf of
//! its own, or a result. What a method makes on the way is nobody: such nodes are one if they are equal and made of the same.

use tinyspec_ir::ContentHash;

/// Told apart where hashes are not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Identity(pub(super) u64);

/// What is one node to a gradient: tensors by who they are, other nodes by value and what they are made of.
pub(crate) type Who = (ContentHash, Identity);

impl Identity {
    /// Made of no tensor.
    pub const NONE: Identity = Identity(0);

    /// Of the tensor whose node has this age: an odd number.
    pub fn of_tensor(age: u64) -> Identity {
        Identity(age << 1 | 1)
    }

    /// Of a node on the way, by those of its sources: an even number.
    pub fn made_of(sources: impl Iterator<Item = Identity>) -> Identity {
        // An odd factor of many bits: sources in another order, or in another place, are others.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = sources.fold(0, |mixed: u64, source| (mixed.rotate_left(29) ^ source.0).wrapping_mul(FACTOR));
        Identity(mixed << 1)
    }

    pub fn is_tensor(self) -> bool {
        self.0 & 1 == 1
    }

    /// Of a tensor, the age of the node that it was first.
    pub fn age(self) -> u64 {
        self.0 >> 1
    }

    /// What a node with this hash is to a gradient.
    pub fn who(self, hash: ContentHash) -> Who {
        if self.is_tensor() { self.as_tensor() } else { (hash, self) }
    }

    /// What a tensor is to a gradient: its value does not matter.
    pub fn as_tensor(self) -> Who {
        (ContentHash(0), self)
    }
}
