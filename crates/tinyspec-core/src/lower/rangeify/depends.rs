//! The order in which kernels must run. Each kernel is deeper than its users, so a query about two kernels visits only
//! those between them, not everything below.

use super::walk::Kernel;
use rustc_hash::FxHashSet;

/// Records that `user` depends on `other`, which must not depend on it.
pub(super) fn depend(kernels: &mut [Kernel], user: usize, other: usize) {
    kernels[user].depends.push(other);
    let mut stack = vec![(other, kernels[user].depth + 1)];
    while let Some((kernel, depth)) = stack.pop() {
        if kernels[kernel].depth < depth {
            kernels[kernel].depth = depth;
            stack.extend(kernels[kernel].depends.iter().map(|&next| (next, depth + 1)));
        }
    }
}

/// Whether one of `from` depends, directly or transitively, on one of `targets`.
pub(super) fn depends_on(kernels: &[Kernel], from: &[usize], targets: &[usize]) -> bool {
    let Some(deepest) = targets.iter().map(|&target| kernels[target].depth).max() else { return false };
    // A set that grows with the search: a table of all kernels would make every query linear in them.
    let mut seen = FxHashSet::default();
    let mut stack = from.to_vec();
    while let Some(kernel) = stack.pop() {
        if kernels[kernel].depth >= deepest || !seen.insert(kernel) {
            continue;
        }
        for &next in &kernels[kernel].depends {
            if targets.contains(&next) {
                return true;
            }
            stack.push(next);
        }
    }
    false
}
