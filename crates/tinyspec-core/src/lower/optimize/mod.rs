//! Optimize: which axes of a kernel are parallel, vectorised, tiled ("Kernel Optimizations").
//!
//! A schedule is a list of [`OptOp`]s; `heuristics` writes one by hand-made rules, the search finds others, and the
//! kernel is rebuilt once, with every original range replaced by its expression over the new axes.

mod axis;
mod bands;
pub(super) mod bounds;
mod congruences;
mod cost;
mod counted;
pub(super) mod delinearize;
pub(crate) mod descent;
mod heuristics;
mod kernel;
mod local;
pub(crate) mod moves;
mod nans;
pub(crate) mod online;
pub(super) mod packed_dot;
mod partition;
mod rebuild;
mod recomputation;
mod refusal;
pub(super) mod rename;
mod reversal;
pub(crate) mod scatter;
mod space;
pub mod transforms;
pub(crate) mod windows;

pub use axis::{Axis, AxisName, NoAxisName};
pub use cost::Estimate;
pub(crate) use cost::NAMED_TRIPS;
pub use kernel::{Access, Kernel, Nest, Reduction};
pub use online::Blocking;
pub use packed_dot::Product;
pub use rebuild::CopyKernel;
pub use recomputation::Recomputed;
pub use refusal::{Refusal, Refused};
pub use space::Space;
pub use transforms::OptOp;

use super::hand_written;
use super::pass::{self, Form, Observe, Pass, Stage, pass};
use online::Online;
use rebuild::Copies;
use smallvec::SmallVec;
use space::OwnLoops;
use tinyspec_backends::Target;
use tinyspec_ir::{Graph, NodeId, Result};
use transforms::{Block, Scatter};

/// Passes before the schedule, which bring a kernel into canonical form.
#[rustfmt::skip]
pub const CANONICAL: &[Pass] = &[
    pass(Stage::Optimize, "domains",     Form::Ranges, Form::Ranges, |graph, sink, _| windows::simplify(graph, sink)),
    pass(Stage::Optimize, "rename",      Form::Ranges, Form::Ranges, |graph, sink, _| rename::rename(graph, sink)),
    pass(Stage::Optimize, "delinearize", Form::Ranges, Form::Ranges, |graph, sink, _| delinearize::delinearize(graph, sink)),
    pass(Stage::Optimize, "reversal",    Form::Ranges, Form::Ranges, |graph, sink, _| reversal::reverse(graph, sink)),
    pass(Stage::Optimize, "strict",      Form::Ranges, Form::Ranges, |graph, sink, _| packed_dot::as_written(graph, sink)),
    pass(Stage::Optimize, "signs",       Form::Ranges, Form::Ranges, bounds::write),
];

/// A kernel over the axes of its schedule, and the kernels that run before it.
pub struct Scheduled {
    /// The graph of all of them.
    pub graph: Graph,
    /// The root of the kernel.
    pub sink: NodeId,
    /// The kernels that make copies for it.
    pub copies: SmallVec<[CopyKernel; 1]>,
}

/// A kernel in range form, read once, that schedules can be tried on.
#[derive(Clone)]
pub struct Scheduler<'t> {
    graph: Graph,
    kernel: Kernel,
    /// Its axes without a schedule.
    whole: Space,
    online: Option<Online>,
    /// The kernel as loops over the terms of sums at places, if all its results are such sums.
    scattered: Option<NodeId>,
    target: &'t Target,
}

impl<'t> Scheduler<'t> {
    /// Reads the kernel.
    ///
    /// # Errors
    /// When it is not in range form.
    pub fn new(graph: Graph, sink: NodeId, target: &'t Target) -> Result<Scheduler<'t>> {
        Scheduler::observed(graph, sink, target, &mut |_, _, _| {})
    }

    /// As [`Scheduler::new`]; `observe` sees the output of the passes before the schedule.
    ///
    /// # Errors
    /// When it is not in range form.
    pub fn observed(
        mut graph: Graph,
        sink: NodeId,
        target: &'t Target,
        observe: &mut Observe,
    ) -> Result<Scheduler<'t>> {
        let online = Online::of(&mut graph, sink, target)?;
        let scattered = scatter::loops(&mut graph, sink, target)?;
        let scattered = scattered.map(|sink| hand_written::vectorize(&mut graph, sink, target)).transpose()?;
        let is_strict = packed_dot::is_strict(&graph, sink);
        let sink = pass::run(CANONICAL, &mut graph, sink, target, observe)?;
        let mut kernel = Kernel::new(&mut graph, sink)?;
        kernel.product = kernel.product.filter(|_| !is_strict);
        kernel.recomputed = recomputation::find(&mut graph, &kernel, target)?;
        kernel.without_nans = nans::find(&mut graph, &kernel, target)?;
        let lengths = online.as_ref().map(|online| online.lengths().clone());
        let whole = Space::new(&graph, &kernel, target, lengths, scattered.is_some());
        Ok(Scheduler { graph, kernel, whole, online, scattered, target })
    }

    /// Reads the kernel as it is: for a schedule without ops.
    ///
    /// # Errors
    /// When it is not in range form.
    pub(crate) fn plain(mut graph: Graph, sink: NodeId, target: &'t Target) -> Result<Scheduler<'t>> {
        let sink = rename::rename(&mut graph, sink)?;
        let kernel = Kernel::new(&mut graph, sink)?;
        let whole = Space::new(&graph, &kernel, target, None, false);
        Ok(Scheduler { graph, kernel, whole, online: None, scattered: None, target })
    }

    /// The analysis of the kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The graph it is in.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The device.
    pub fn target(&self) -> &'t Target {
        self.target
    }

    /// The schedule that the hand-written rules choose, or the cost model where it finds that one poor.
    pub fn heuristics(&self) -> Vec<OptOp> {
        match (&self.online, self.scattered) {
            (_, Some(_)) => vec![Scatter.into()],
            (Some(online), None) => vec![Block(online.cheapest(self.target)).into()],
            (None, None) => {
                let by_rules = heuristics::choose(&self.graph, &self.kernel, self.whole.clone(), self.target);
                let mut ops = descent::improve(self, by_rules);
                if let Ok(mut space) = self.space(&ops) {
                    let values = heuristics::values(&self.graph, &self.kernel, &mut space, self.target);
                    ops.extend(values.into_iter().map(OptOp::from));
                    let partition = heuristics::partition(&self.kernel, &space).map(OptOp::from);
                    ops.extend(partition.filter(|op| space.apply(op).is_ok()));
                    heuristics::share_copies(&self.graph, &self.kernel, space, &mut ops, self.target);
                }
                ops
            }
        }
    }

    /// The axes after some ops, left to right.
    ///
    /// # Errors
    /// When an op does not fit the axes it finds.
    pub fn space(&self, ops: &[OptOp]) -> Result<Space> {
        let mut space = self.whole.clone();
        for op in ops {
            space.apply(op)?;
        }
        Ok(space)
    }

    /// As [`Scheduler::space`], with the outermost loop shared among the threads where that is possible and no op does
    /// it; the ops including that one.
    ///
    /// # Errors
    /// When an op does not fit the axes it finds.
    pub(crate) fn shared(&self, mut ops: Vec<OptOp>) -> Result<(Vec<OptOp>, Space)> {
        let mut space = self.space(&ops)?;
        if let Some(share) = space.share().filter(|share| space.apply(share).is_ok()) {
            ops.push(share);
        }
        Ok((ops, space))
    }

    /// The estimated cost of the kernel with these axes.
    pub fn estimate(&self, space: &Space) -> Estimate {
        match (space.own_loops, &self.online, self.scattered) {
            (Some(OwnLoops::Blocks(blocking)), Some(online), _) => online.estimate(blocking, self.target),
            (Some(OwnLoops::Scatter), _, Some(sink)) => {
                let standing = cost::standing::estimate(&self.graph, sink, self.target);
                standing.unwrap_or_else(|_| Estimate::on(&cost::Core::of(self.target)))
            }
            _ => cost::estimate(&self.graph, &self.kernel, space, self.target),
        }
    }

    /// Whether all accesses of the kernel are affine in Ranges alone.
    fn is_regular(&self) -> bool {
        self.kernel.accesses.iter().all(|access| access.is_regular(&self.graph))
    }

    /// Lanes of its vectors.
    fn lanes(&self) -> i64 {
        super::lanes(self.target, self.kernel.dtypes(&self.graph)) as i64
    }

    /// A lower bound on the time of any schedule on one thread, by the same cost model.
    fn bound(&self) -> Estimate {
        cost::bound(&self.graph, &self.kernel, &self.whole, self.target)
    }

    /// The kernel over these axes as one that stands alone: its graph and its new `Sink`. Copies that a kernel before it
    /// would make are made by each thread for itself.
    ///
    /// # Errors
    /// When it is not in range form.
    pub fn build(self, space: &Space) -> Result<(Graph, NodeId)> {
        let Scheduled { graph, sink, .. } = self.build_all(&space.without_copies_before())?;
        Ok((graph, sink))
    }

    /// The kernel over these axes, and the kernels that fill the packed copies that it reads.
    ///
    /// # Errors
    /// When it is not in range form.
    pub fn build_all(mut self, space: &Space) -> Result<Scheduled> {
        match (space.own_loops, self.online, self.scattered) {
            (Some(OwnLoops::Blocks(blocking)), Some(online), _) => {
                let (graph, sink) = online.build(blocking, self.target)?;
                Ok(Scheduled { graph, sink, copies: Copies::new() })
            }
            (Some(OwnLoops::Scatter), _, Some(sink)) => {
                Ok(Scheduled { graph: self.graph, sink, copies: Copies::new() })
            }
            _ => {
                let (sink, copies) = rebuild::rebuild(&mut self.graph, &self.kernel, space, self.target)?;
                Ok(Scheduled { graph: self.graph, sink, copies })
            }
        }
    }
}
