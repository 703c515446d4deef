//! The cost of loops that are built already, each of which runs as it stands.

use super::{Core, Estimate, NAMED_TRIPS, threads};
use crate::lower::live::{self, Live};
use crate::lower::select::decompose::Sizes;
use tinyspec_backends::Target;
use tinyspec_ir::{Arg, AxisType, DType, Graph, NodeId, Op, Result};

/// Counts the operations that a kernel in range form executes. Its addresses are unknown, so all accesses count as first-level
/// cache hits.
///
/// # Errors
/// When it has more loops than a kernel may have.
pub(in crate::lower::optimize) fn estimate(graph: &Graph, sink: NodeId, target: &Target) -> Result<Estimate> {
    let order = graph.reachable(&[sink]);
    let (live, sizes) = (Live::new(graph, &order)?, Sizes::of(target));
    let lanes = crate::lower::lanes(target, [DType::F32].into_iter()) as f64;
    let axis = |range: NodeId| match graph.arg(range) {
        Arg::Range { axis, .. } => *axis,
        _ => AxisType::Loop,
    };
    let trips = |range: NodeId| live::trips(graph, range).map_or(NAMED_TRIPS, |trips| trips as f64);
    // Vector loops run once for all lanes.
    let times = |range: NodeId| match axis(range) {
        AxisType::Upcast | AxisType::Unroll => (trips(range) / lanes).ceil(),
        _ => trips(range),
    };
    let core = Core::of(target);
    let mut estimate = Estimate::on(&core);
    for &node in &order {
        let count: f64 = live.members(live.of(node)).map(times).product();
        let cost = match graph.op(node) {
            Op::Load => [0.0, 1.0 / core.loads, 1.0],
            Op::Store => [0.0, 1.0 / core.stores, 1.0],
            op if op.is_elementwise() => {
                let size = sizes.size(graph, node) as f64;
                [size / core.arithmetic, 0.0, size]
            }
            Op::Range if axis(node) == AxisType::Thread => {
                estimate.threads = threads(trips(node), target.threads);
                continue;
            }
            _ => continue,
        };
        estimate.arithmetic += cost[0] * count;
        estimate.accesses += cost[1] * count;
        estimate.instructions += cost[2] * count / core.instructions;
        estimate.code += cost[2];
    }
    Ok(estimate)
}
