//! Which kernels have to run before others. Each is deeper than all that need it, so that a question about two of them
//! looks only at what lies between, not at all that is below.

use super::walk::Kernel;
use rustc_hash::FxHashSet;

/// `user` needs `other`, which does not need it, to have run.
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

/// One of `from` needs, directly or through others, one of `targets` to have run.
pub(super) fn depends_on(kernels: &[Kernel], from: &[usize], targets: &[usize]) -> bool {
    let Some(deepest) = targets.iter().map(|&target| kernels[target].depth).max() else { return false };
    // As large as what is reached: a table of all kernels would make every question linear in them.
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
