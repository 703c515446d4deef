//! A copy that the threads of a workgroup make together: a vector per thread, neighbouring threads beside each other.

use super::walk::CopyWalk;
use super::{Group, Rebuild};
use smallvec::SmallVec;
use tinyspec_ir::affine::{Affine, gcd, less};
use tinyspec_ir::{AxisType, Builder, Graph, Result};

impl Rebuild<'_> {
    /// A walk over `groups`, of which the last in `order` changes fastest, by loops like those of the members, in vectors of at
    /// most `lanes`.
    pub(super) fn shared_walk(
        &mut self,
        graph: &mut Graph,
        groups: &[Group],
        order: &[usize],
        lanes: i64,
    ) -> Result<CopyWalk> {
        let innermost = order.last().map(|&group| &groups[group]).filter(|group| group.unit == 1);
        let lanes = innermost.map_or(1, |group| gcd(group.extent, lanes));
        let total: i64 = groups.iter().map(|group| group.extent).product::<i64>() / lanes;
        let mut members: SmallVec<[i64; 3]> = self.trips_of(&[AxisType::Local, AxisType::Warp]);
        if members.is_empty() {
            members = self.trips_of(&[AxisType::GroupReduce]);
        }
        let threads: i64 = members.iter().product();
        let trips = (total + threads - 1) / threads;
        let (mut loops, mut positions, mut inside) = (Vec::new(), vec![Affine::default(); groups.len()], None);
        let mut element = Affine::default();
        let mut stride = threads;
        // Each member makes its trips by itself.
        let members = members.iter().map(|&trips| (AxisType::Local, trips));
        for (kind, trips) in members.chain([(AxisType::Loop, trips)]) {
            stride = if kind == AxisType::Loop { threads } else { stride / trips };
            if trips > 1 {
                let bound = graph.index(trips);
                let range = self.range(graph, bound, kind)?;
                loops.push(range);
                element = element.plus(&Affine::atom(range).scale(stride));
            }
        }
        if trips * threads != total {
            inside = Some(less(graph, &element, &Affine::number(total))?);
        }
        if lanes > 1 {
            let bound = graph.index(lanes);
            let range = self.range(graph, bound, AxisType::Upcast)?;
            loops.push(range);
            element = element.scale(lanes).plus(&Affine::atom(range));
        }
        let mut rest = element;
        for (place, &group) in order.iter().enumerate().rev() {
            let extent = groups[group].extent;
            positions[group] = match place {
                0 => rest.clone(),
                _ => rest.remainder(graph, extent)?,
            };
            rest = rest.quotient(graph, extent)?;
        }
        Ok(CopyWalk { positions, loops, inside_source: inside, inside_copy: inside })
    }

    /// Trips of the axes of these kinds, outer ones first.
    fn trips_of(&self, kinds: &[AxisType]) -> SmallVec<[i64; 3]> {
        self.space
            .axes
            .iter()
            .filter(|axis| kinds.contains(&axis.kind))
            .filter_map(|axis| axis.trips)
            .filter(|&trips| trips > 1)
            .collect()
    }
}
