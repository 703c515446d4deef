//! Checks a program after every pass of the lowering: interprets the tensor graph that a pass leaves, and runs the schedule with
//! all kernels in the form that a pass leaves. Both must agree with the tensor interpreter on the original program.

use crate::check::{self, compare, traced};
use crate::launch;
use crate::program::Program;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tinyspec::backends::interpreter::array::Array;
use tinyspec::backends::interpreter::{ranges, simt, tensor};
use tinyspec::backends::{LinearKernel, Target, Workgroups, interpreter};
use tinyspec::ir::function::inline_all;
use tinyspec::ir::{Error, ErrorKind, Graph, NodeId, Op, text};
use tinyspec_core::lower::kernel::lower_observed;
use tinyspec_core::lower::passes::{self, DIVIDE, SIMPLIFY, TensorPass};
use tinyspec_core::lower::rangeify::{self, Costs, Schedule};

/// Targets that lead through different parts of the stages; the interpreters can run what any of them gets. Beside those made
/// for it, that of one processor of another shape, by the program, or of all.
fn targets(program: &Program) -> Vec<Target> {
    // With caches so small that the scores of small attentions are made anew in every kernel.
    let cache_bytes = [1 << 15, 1 << 13, 1 << 20];
    let narrow = Target { vector_bytes: 16, accumulators: 2, threads: 2, cache_bytes, ..interpreter::target() };
    let wide = Target { vector_bytes: 64, accumulators: 8, masked_access: false, ..interpreter::target() };
    // So small that small kernels have several workgroups.
    let limits = Workgroups {
        counts: [64; 3],
        threads: [16; 3],
        size: 16,
        warp: 4,
        local_bytes: 48 << 10,
        processors: 4,
        resident: 32,
    };
    let threads = Target { workgroups: Some(limits), ..simt::target() };
    let mut targets = vec![narrow, wide, threads];
    let device = |name: &str| tinyspec::device(name).expect("a shape").target().clone();
    targets.extend(check::shapes(program).map(device));
    targets
}

/// A kernel in the forms that the stages left.
struct Forms {
    graphs: BTreeMap<&'static str, (Graph, NodeId)>,
    linear: LinearKernel,
}

impl Forms {
    fn of(schedule: &Graph, kernel: NodeId, target: &Target) -> Result<Forms, Error> {
        let mut graph = Graph::new();
        let sink = graph.import(schedule, &[kernel], |_, _| Ok(None))?[0];
        let mut graphs = BTreeMap::new();
        let mut observe = |stage: &'static str, graph: &Graph, root: NodeId| {
            graphs.insert(stage, (graph.clone(), root));
        };
        let linear = lower_observed(graph, sink, None, target, &mut observe)?;
        Ok(Forms { graphs, linear })
    }

    /// Runs the kernel as the pass left it, or as the last one before that changed it.
    fn run(&self, stage: &str, buffers: &mut [Array]) -> Result<(), Error> {
        match until(stage).into_iter().rev().find_map(|stage| self.graphs.get(stage)) {
            Some((graph, linear)) if graph.op(*linear) == Op::Linear => {
                let fail = |error: String| Error::new(ErrorKind::Value, "linear", error);
                let kernel = LinearKernel { graph: graph.clone(), linear: *linear, ..self.linear.clone() };
                let after = launch::run(&kernel, buffers).map_err(fail)?;
                buffers.iter_mut().zip(after).for_each(|(buffer, after)| *buffer = after);
                Ok(())
            }
            Some((graph, root)) => ranges::run_kernel(graph, *root, buffers).map(|_| ()),
            None => Err(Error::new(ErrorKind::Value, "kernel", "has no form")),
        }
    }
}

/// The steps up to one.
fn until(stage: &str) -> Vec<&'static str> {
    let end = passes::observed().position(|step| step == stage).map_or(0, |last| last + 1);
    passes::observed().take(end).collect()
}

/// Whether every pass for every target agrees with the tensor interpreter.
pub fn check(program: &Program) -> Result<(), String> {
    let (function, arrays) = traced(program)?;
    let body = function.body();
    let want = tensor::evaluate(body.graph(), body.outputs(), &arrays).map_err(|error| format!("ORACLE {error}"))?;
    let agree = |stage: &str, got: &[Array]| {
        for (index, (got, want)) in got.iter().zip(&want).enumerate() {
            let got = Array::new(got.dtype(), want.shape(), got.lanes().to_vec()).map_err(|error| error.to_string())?;
            compare(program.family, index >= program.steps.len(), &got, want)
                .map_err(|error| format!("WRONG after {stage}: result {index}: {error}"))?;
        }
        Ok::<(), String>(())
    };
    let lowering = |error: Error| format!("LOWERING {error}");
    let (graph, outputs) = inline_all(body.graph().clone(), body.outputs().to_vec()).map_err(lowering)?;
    // One pass after the other, each as a list of one.
    let by_each = |all: &'static [TensorPass], graph: &Graph, outputs: &[NodeId], target: &Target| {
        let (mut graph, mut outputs) = (graph.clone(), outputs.to_vec());
        for pass in all.chunks(1) {
            let new = passes::run_on_tensors(pass, &graph, &outputs, &Costs::of(target), target).map_err(lowering)?;
            let Some(new) = new else { continue };
            (graph, outputs) = new;
            agree(pass[0].name, &tensor::evaluate(&graph, &outputs, &arrays).map_err(lowering)?)?;
        }
        Ok::<_, String>((graph, outputs))
    };
    for target in targets(program) {
        let (graph, outputs) = by_each(SIMPLIFY, &graph, &outputs, &target)?;
        by_each(DIVIDE, &graph, &outputs, &target)?;
        let schedule = rangeify::rangeify(&graph, &outputs, &target).map_err(lowering)?;
        let mut kernels = BTreeMap::new();
        for call in &schedule.calls {
            if let Entry::Vacant(entry) = kernels.entry(call.kernel) {
                entry.insert(Forms::of(&schedule.graph, call.kernel, &target).map_err(lowering)?);
            }
        }
        for stage in passes::observed() {
            if !kernels.values().any(|forms| forms.graphs.contains_key(stage)) {
                continue;
            }
            let got = run(&schedule, &kernels, stage, &arrays).map_err(|error| format!("{stage}: {error}"));
            got.and_then(|got| agree(stage, &got)).map_err(|error| {
                let kernel = culprit(&schedule, &kernels, stage, &arrays);
                format!("{error}\non {}, vectors of {} bytes\n{kernel}", target.name, target.vector_bytes)
            })?;
        }
    }
    Ok(())
}

type Kernels = BTreeMap<NodeId, Forms>;

fn run(schedule: &Schedule, kernels: &Kernels, stage: &str, arrays: &[Array]) -> Result<Vec<Array>, Error> {
    ranges::run_schedule_by(&schedule.graph, schedule.root, arrays, &mut |kernel, buffers| {
        kernels[&kernel].run(stage, buffers)?;
        Ok((0..buffers.len()).collect())
    })
}

/// The first kernel that a pass made something else of than the one before, in text.
fn culprit(schedule: &Schedule, kernels: &Kernels, stage: &str, arrays: &[Array]) -> String {
    let mut found = String::from("no kernel by itself");
    let _ = ranges::run_schedule_by(&schedule.graph, schedule.root, arrays, &mut |kernel, buffers| {
        let (forms, before) = (&kernels[&kernel], buffers.to_vec());
        let mut after = before.clone();
        let outcome = forms.run(stage, &mut after);
        let steps = until(stage);
        forms.run(steps[steps.len().saturating_sub(2)], buffers)?;
        let differs = after.iter().zip(buffers.iter()).any(|(after, before)| {
            let pairs = after.to_floats().into_iter().zip(before.to_floats());
            pairs.into_iter().any(|(a, b)| a != b && !(a.is_nan() && b.is_nan()) && (a - b).abs() > 1e-5 * a.abs())
        });
        if outcome.is_err() || differs {
            let graphs = steps.into_iter().filter_map(|step| Some((step, forms.graphs.get(step)?)));
            found =
                graphs.map(|(stage, (graph, root))| format!("{stage}:\n{}\n", text::print(graph, &[*root]))).collect();
            return Err(Error::new(ErrorKind::Value, "kernel", "found"));
        }
        Ok((0..buffers.len()).collect())
    });
    found
}
