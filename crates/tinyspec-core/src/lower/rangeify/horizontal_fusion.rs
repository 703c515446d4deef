//! Kernels with one iteration space and no path between them become one kernel with several outputs.

use super::close::contents;
use super::depends::{depend, depends_on};
use super::fusion::Costs;
use super::walk::{DemandId, Kernel, Met, Walk};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{Dim, NodeId, Op};

/// How many earlier kernels of the same space are tried. A limit keeps the pass linear.
const CANDIDATES: usize = 16;

/// Groups of kernels to be built as one, in an order in which they can run.
pub(super) fn groups(walk: &mut Walk, values: &[NodeId], costs: &Costs) -> Vec<Vec<usize>> {
    let shapes: Vec<Shape> = (0..walk.kernels.len())
        .map(|kernel| {
            let contents = contents(&walk.indices, &walk.kernels[kernel], values);
            let mut loops: Vec<Vec<Dim>> = contents.reduces.iter().map(|reduce| reduce.extents.to_vec()).collect();
            loops.sort_unstable();
            loops.dedup();
            Shape { loops, reuses: contents.reduces.iter().any(|reduce| reduce.reuses) }
        })
        .collect();
    let mut members: Vec<Vec<usize>> = (0..walk.kernels.len()).map(|kernel| vec![kernel]).collect();
    // The users of each kernel, updated as kernels merge.
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); walk.kernels.len()];
    for (user, kernel) in walk.kernels.iter().enumerate() {
        kernel.depends.iter().for_each(|&other| users[other].push(user));
    }
    let mut loads: Vec<Vec<DemandId>> = vec![Vec::new(); walk.kernels.len()];
    for (demand, need) in (0..).zip(&walk.needs) {
        if matches!(need.met, Met::Load) {
            loads[need.kernel].push(demand);
        }
    }
    let mut spaces: FxHashMap<Vec<Dim>, Vec<usize>> = FxHashMap::default();
    for kernel in 0..walk.kernels.len() {
        let space = spaces.entry(walk.kernels[kernel].extents.to_vec()).or_default();
        let partner = space.iter().rev().take(CANDIDATES).copied().find(|&other| {
            let (a, b) = (&walk.kernels[other], &walk.kernels[kernel]);
            let outputs: usize = members[other].iter().map(|&member| walk.kernels[member].outputs.len()).sum();
            outputs + b.outputs.len() <= costs.outputs
                && a.loops + b.loops <= costs.loops
                && gains(a, b, &shapes[other], &shapes[kernel], costs)
                && a.online.is_none_or(|family| sum_along_one_axis(walk, family, other, kernel))
                && !depends_on(&walk.kernels, &[other], &[kernel])
                && !depends_on(&walk.kernels, &[kernel], &[other])
                && (walk.kernels[kernel].online.is_some()
                    || shapes[kernel].loops.is_empty()
                    || read_alike(walk, &loads[other], &loads[kernel]))
        });
        match partner {
            Some(partner) => {
                merge(&mut walk.kernels, &mut users, partner, kernel);
                let moved = std::mem::take(&mut members[kernel]);
                members[partner].extend(moved);
            }
            None => space.push(kernel),
        }
    }
    in_order(&walk.kernels, members)
}

/// The loops of a kernel's Reduces.
struct Shape {
    loops: Vec<Vec<Dim>>,
    reuses: bool,
}

fn gains(a: &Kernel, b: &Kernel, a_shape: &Shape, b_shape: &Shape, costs: &Costs) -> bool {
    let shares = a.inputs.iter().any(|input| b.inputs.contains(input));
    a.device == b.device
        && a.hand_written.is_none()
        && b.hand_written.is_none()
        && !a.is_alone
        && !b.is_alone
        && a.online == b.online
        && (shares || (a.space < costs.parallel && a_shape.loops.is_empty()))
        && a_shape.loops == b_shape.loops
        // A matrix product needs all registers for its own tile, unless loops over blocks give each sum its own.
        && (a.online.is_some() || !a_shape.reuses && !b_shape.reuses)
        && a.size + b.size <= costs.nodes
        && a.demands + b.demands <= costs.demands
}

/// Whether two kernels read each shared value along the same loops. If one sums rows and the other columns, one of them
/// would stride from line to line.
fn read_alike(walk: &mut Walk, a: &[DemandId], b: &[DemandId]) -> bool {
    let is_read_alike = |walk: &mut Walk, demand: DemandId| {
        let node = walk.needs[demand as usize].node;
        let others = a.iter().copied().filter(|&other| walk.needs[other as usize].node == node);
        let others: SmallVec<[DemandId; 4]> = others.collect();
        others.is_empty() || {
            let moves = walk.moves(demand);
            others.into_iter().any(|other| walk.moves(other) == moves)
        }
    };
    b.iter().all(|&demand| is_read_alike(walk, demand))
}

/// Whether two kernels over blocks sum the same matrices along the same axes, so that one can compute them for both.
fn sum_along_one_axis(walk: &Walk, family: usize, a: usize, b: usize) -> bool {
    let (of_a, of_b) = (orientations(walk, a), orientations(walk, b));
    let mut both = of_a.iter().filter_map(|(matrix, axes)| Some((axes, of_b.get(matrix)?))).peekable();
    !walk.online.is_separate(family)
        && both.peek().is_some()
        && both.all(|(a, b)| a == b)
        // Each sum has one output Range that its matrices lack: that of its weights.
        && [(a, &of_a), (b, &of_b)].into_iter().all(|(kernel, axes)| {
            let outputs = walk.kernels[kernel].ranges.len();
            axes.values().all(|axes| axes.iter().flatten().count() + 1 == outputs)
        })
}

/// For each product that a kernel computes in blocks, which output Ranges of the kernel its axes follow.
fn orientations(walk: &Walk, kernel: usize) -> FxHashMap<NodeId, SmallVec<[Option<usize>; 4]>> {
    let ranges = &walk.kernels[kernel].ranges;
    let is_product = |node: NodeId| walk.tensors.op(node) == Op::Reduce && walk.online.is_inside(node);
    let made = walk.needs.iter().filter(|need| need.kernel == kernel && is_product(need.node));
    made.map(|need| (need.node, need.tuple.iter().map(|at| ranges.iter().position(|range| range == at)).collect()))
        .collect()
}

/// Merges the dependencies of `kernel` into `partner`; each keeps its own values.
fn merge(kernels: &mut [Kernel], users: &mut [Vec<usize>], partner: usize, kernel: usize) {
    for other in std::mem::take(&mut kernels[kernel].depends) {
        users[other].push(partner);
        depend(kernels, partner, other);
    }
    let Kernel { demands, size, loops, .. } = kernels[kernel];
    kernels[partner].demands += demands;
    kernels[partner].size += size;
    kernels[partner].loops += loops;
    let inputs = kernels[kernel].inputs.clone();
    kernels[partner].inputs.extend(inputs);
    // A kernel that waits for one waits for both.
    depend(kernels, kernel, partner);
    for user in std::mem::take(&mut users[kernel]) {
        if !kernels[user].depends.contains(&partner) {
            depend(kernels, user, partner);
            users[partner].push(user);
        }
        users[kernel].push(user);
    }
    users[partner].push(kernel);
}

/// A topological order; among ready kernels, later ones first, since the walk found them from the outputs down.
fn in_order(kernels: &[Kernel], members: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut home = vec![0; kernels.len()];
    for (group, members) in members.iter().enumerate() {
        for &member in members {
            home[member] = group;
        }
    }
    let mut waits = vec![0usize; members.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
    for (group, kernel) in kernels.iter().enumerate() {
        let mut needs: Vec<usize> = kernel.depends.iter().map(|&other| home[other]).collect();
        needs.sort_unstable();
        needs.dedup();
        for need in needs {
            if need != home[group] {
                waits[home[group]] += 1;
                users[need].push(home[group]);
            }
        }
    }
    let mut ready: std::collections::BinaryHeap<usize> =
        (0..members.len()).filter(|&group| !members[group].is_empty() && waits[group] == 0).collect();
    let mut order = Vec::new();
    let mut members = members;
    while let Some(group) = ready.pop() {
        for &user in &users[group] {
            waits[user] -= 1;
            if waits[user] == 0 {
                ready.push(user);
            }
        }
        order.push(std::mem::take(&mut members[group]));
    }
    order
}
