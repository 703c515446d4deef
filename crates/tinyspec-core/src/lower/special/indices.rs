//! Maps parallel Ranges to Specials: at most three, each within the limits of a launch.

use super::axes::{Axes, Axis, numbered};
use crate::lower::fold::both;
use crate::lower::live::RangeSet;
use smallvec::SmallVec;
use tinyspec_backends::Workgroups;
use tinyspec_ir::affine::{Affine, less};
use tinyspec_ir::special::{DIMENSIONS, SpecialIndex};
use tinyspec_ir::{Builder, Error, ErrorKind, Graph, NodeId, Result};

/// Makes the Special for a dimension of the launch.
type Kind = fn(usize) -> SpecialIndex;

/// The indices of workgroups, or of threads. Ranges that are never open together share one.
pub(super) struct Indices {
    axes: Vec<Axis>,
    /// The index of each axis.
    numbers: Vec<usize>,
    /// Each index as a sum over the Specials, and as a node.
    sums: Vec<(Affine, NodeId)>,
    /// The greatest number of trips of each index.
    sizes: Vec<i64>,
    specials: SmallVec<[NodeId; DIMENSIONS]>,
    /// The condition that is false in the excess part of the launch.
    exists: Option<NodeId>,
}

impl Indices {
    pub fn groups(graph: &mut Graph, axes: &Axes, limits: &Workgroups) -> Result<Indices> {
        Indices::new(graph, &axes.groups, &limits.counts, SpecialIndex::Group)
    }

    pub fn threads(graph: &mut Graph, axes: &Axes, limits: &Workgroups) -> Result<Indices> {
        Indices::new(graph, &axes.threads, &limits.threads, SpecialIndex::Thread)
    }

    fn new(graph: &mut Graph, axes: &[Axis], limits: &[usize; DIMENSIONS], kind: Kind) -> Result<Indices> {
        let (numbers, sizes) = numbered(axes);
        let axes = axes.to_vec();
        let mut indices = Indices { axes, numbers, sums: vec![], sizes, specials: SmallVec::new(), exists: None };
        let fits = indices.sizes.len() <= DIMENSIONS
            && indices.sizes.iter().zip(limits).all(|(&size, &limit)| size <= limit as i64);
        let mut sums: Vec<Affine> = Vec::new();
        if fits {
            for (dimension, &size) in indices.sizes.clone().iter().enumerate() {
                sums.push(indices.special(graph, size, kind(dimension))?);
            }
        } else {
            let mut rest = indices.linear(graph, limits, kind)?;
            for (number, &size) in indices.sizes.clone().iter().enumerate() {
                if number + 1 == indices.sizes.len() {
                    sums.push(rest.clone());
                } else {
                    sums.push(rest.remainder(graph, size)?);
                    rest = rest.quotient(graph, size)?;
                }
            }
        }
        for sum in sums {
            let node = sum.emit(graph)?;
            indices.sums.push((sum, node));
        }
        Ok(indices)
    }

    fn special(&mut self, graph: &mut Graph, size: i64, index: SpecialIndex) -> Result<Affine> {
        let bound = graph.index(size);
        let special = graph.special(bound, index)?;
        self.specials.push(special);
        Ok(Affine::atom(special))
    }

    /// A linear index over as many dimensions of the launch as needed.
    fn linear(&mut self, graph: &mut Graph, limits: &[usize; DIMENSIONS], kind: Kind) -> Result<Affine> {
        let size = self.sizes.iter().try_fold(1i64, |product, &size| product.checked_mul(size));
        let mut left = size.unwrap_or(i64::MAX);
        let (mut linear, mut stride) = (Affine::number(0), 1i64);
        for (dimension, &limit) in limits.iter().enumerate() {
            let limit = limit as i64;
            // Preferably without a remainder.
            let whole = (1..=limit.min(left)).rev().take(1 << 16).find(|trips| left % trips == 0);
            let trips = match whole {
                Some(trips) if left / trips <= limits[dimension + 1..].iter().map(|&l| l as i64).product() => trips,
                _ => limit.min(left),
            };
            if trips > 1 {
                linear = linear.plus(&self.special(graph, trips, kind(dimension))?.scale(stride));
            }
            stride = stride.saturating_mul(trips);
            left = (left + trips - 1) / trips.max(1);
        }
        if left > 1 {
            let message =
                format!("{} trips of parallel loops", size.map_or("more than 2^63".into(), |size| size.to_string()));
            return Err(Error::new(ErrorKind::Unsupported, "special", message).help("make the tensor smaller"));
        }
        if let Some(size) = size.filter(|&size| size != stride) {
            self.exists = Some(less(graph, &linear, &Affine::number(size))?);
        }
        Ok(linear)
    }

    fn position(&self, range: NodeId) -> Option<usize> {
        self.axes.iter().position(|axis| axis.range == range)
    }

    /// The index that replaces a Range.
    pub fn of(&self, range: NodeId) -> Option<NodeId> {
        self.position(range).map(|axis| self.sums[self.numbers[axis]].1)
    }

    /// The Specials behind a Range.
    pub fn specials_of(&self, range: NodeId) -> Option<&[NodeId]> {
        self.position(range).map(|_| &self.specials[..])
    }

    /// Whether there is more than one.
    pub fn has_several(&self) -> bool {
        self.sizes.iter().any(|&size| size > 1)
    }

    /// A gate that holds where the loops `open` have trips; if `once`, only for one of the threads that they do not
    /// distinguish.
    pub fn gate(&self, graph: &mut Graph, open: RangeSet, once: bool) -> Result<Option<NodeId>> {
        let mut gate = None;
        for (number, (sum, _)) in self.sums.iter().enumerate() {
            let mut own = self.axes.iter().zip(&self.numbers).filter(|(_, other)| **other == number);
            let trips = own.find(|(axis, _)| axis.bit & open != 0).map(|(axis, _)| axis.trips);
            let trips = match trips {
                Some(trips) => trips,
                None if once => 1,
                None => continue,
            };
            if trips < self.sizes[number] {
                let within = less(graph, sum, &Affine::number(trips))?;
                gate = both(graph, gate, Some(within))?;
            }
        }
        let is_inside = once || self.axes.iter().any(|axis| axis.bit & open != 0);
        if is_inside && self.exists.is_some() { both(graph, gate, self.exists) } else { Ok(gate) }
    }
}
