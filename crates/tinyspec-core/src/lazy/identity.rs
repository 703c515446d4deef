//! The identity of a value to gradients.
//!
//! Equal values are computed once, by the hash of their node. But a gradient is taken with respect to one tensor, and
//! another may be equal to it, such as two weights that start as zeros. So every float tensor that the program has a
//! handle of has an identity of its own, whether it is a leaf or a result. The intermediate values of a method have
//! none: such nodes are the same if they are equal and derive from the same tensors.

use tinyspec_ir::ContentHash;

/// Distinguishes nodes with equal hashes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Identity(pub(super) u64);

/// The key by which gradients identify a node: tensors compare by identity, other nodes by value and the tensors that they
/// derive from.
pub(crate) type Who = (ContentHash, Identity);

impl Identity {
    /// Derives from no tensor.
    pub const NONE: Identity = Identity(0);

    /// The identity of the tensor whose node has this age: an odd number.
    pub fn of_tensor(age: u64) -> Identity {
        Identity(age << 1 | 1)
    }

    /// The identity of an intermediate node, from those of its sources: an even number.
    pub fn made_of(sources: impl Iterator<Item = Identity>) -> Identity {
        // An odd factor with many bits set, so that the order and position of sources matter.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = sources.fold(0, |mixed: u64, source| (mixed.rotate_left(29) ^ source.0).wrapping_mul(FACTOR));
        Identity(mixed << 1)
    }

    pub fn is_tensor(self) -> bool {
        self.0 & 1 == 1
    }

    /// The age of the tensor's first node.
    pub fn age(self) -> u64 {
        self.0 >> 1
    }

    /// The key of a node with this hash.
    pub fn who(self, hash: ContentHash) -> Who {
        if self.is_tensor() { self.as_tensor() } else { (hash, self) }
    }

    /// The key of a tensor, which does not depend on its value.
    pub fn as_tensor(self) -> Who {
        (ContentHash(0), self)
    }
}
