//! Programs through the stages.

use crate::corpus::{self, Case};
use crate::{run, written};
use tinyspec::backends::{LinearKernel, Target, Workgroups, interpreter};
use tinyspec::ir::function::inline_all;
use tinyspec::ir::rewrite::Rewriter;
use tinyspec::ir::{Graph, NodeId, rules, text};
use tinyspec::{Dim, Function, Spec};
use tinyspec_core::lower::kernel::lower_observed;
use tinyspec_core::lower::rangeify::{self, HandWritten, Schedule};

/// A tensor graph: a case's forward pass, or that and its gradients.
pub struct Program {
    pub name: String,
    pub graph: Graph,
    pub outputs: Vec<NodeId>,
}

/// A kernel in range form.
pub struct Kernel {
    pub name: String,
    pub graph: Graph,
    pub sink: NodeId,
    pub hand_written: Option<HandWritten>,
}

/// A device like a CPU with small vectors, whose code the interpreter can run.
pub fn target() -> Target {
    Target { vector_bytes: 16, accumulators: 2, watches_races: false, threads: 2, ..interpreter::target() }
}

/// A GPU whose workgroups are small, so that small kernels have several, and share their sums.
pub fn gpu() -> Target {
    let limits = Workgroups {
        counts: [64, 64, 64],
        threads: [16; 3],
        size: 16,
        warp: 4,
        local_bytes: 48 << 10,
        processors: 4,
        resident: 32,
    };
    Target { workgroups: Some(limits), ..interpreter::simt::target() }
}

/// Every program there is. Without the corpus only those written here.
pub fn programs() -> Vec<Program> {
    let mut programs = written::programs();
    match corpus::read(&corpus::folder()) {
        Ok(cases) => cases.iter().for_each(|case| programs.extend(of_case(case))),
        Err(error) => println!("skipped: no corpus ({error})"),
    }
    programs
}

fn of_case(case: &Case) -> Vec<Program> {
    let specs: Vec<Spec> = case.inputs.iter().map(|input| spec(input.dtype, &input.shape)).collect();
    let mut failure = None;
    let function = Function::trace(&specs, |inputs| match run::outputs(case, inputs) {
        Ok(outputs) if outputs.iter().all(|output| output.error().is_none()) => outputs,
        _ => {
            failure = Some(());
            vec![]
        }
    });
    // What reads values while it runs is no one graph.
    let (Ok(function), None) = (function, failure) else { return vec![] };
    let mut programs: Vec<Program> = program(case.id.clone(), &function).into_iter().collect();
    if !case.gradients.is_empty()
        && let Ok(backward) = function.backward()
    {
        programs.extend(program(format!("{} backward", case.id), &backward));
    }
    programs
}

pub fn spec(dtype: tinyspec::DType, shape: &[i64]) -> Spec {
    Spec::new(dtype, shape.iter().map(|&dim| Dim::from(dim)).collect::<Vec<Dim>>().as_slice())
}

/// A function's body, without calls.
pub fn program(name: String, function: &Function) -> Option<Program> {
    let body = function.body();
    let (mut graph, outputs) = inline_all(body.graph().clone(), body.outputs().to_vec()).ok()?;
    let outputs = Rewriter::new(&[rules::EXACT, rules::REASSOC].concat()).rewrite(&mut graph, &outputs).ok()?;
    Some(Program { name, graph, outputs })
}

impl Program {
    pub fn schedule(&self) -> Schedule {
        rangeify::rangeify(&self.graph, &self.outputs, &target())
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The kernels of its schedule.
    pub fn kernels(&self) -> Vec<Kernel> {
        let schedule = self.schedule();
        let kernel = |call: &rangeify::KernelCall| {
            let mut graph = Graph::new();
            let sink = graph.import(&schedule.graph, &[call.kernel], |_, _| Ok(None)).ok()?[0];
            Some(Kernel { name: self.name.clone(), graph, sink, hand_written: call.hand_written.clone() })
        };
        schedule.calls.iter().filter_map(kernel).collect()
    }
}

impl Kernel {
    /// Through all stages; `observe` sees what each leaves.
    pub fn lower(&self, observe: impl FnMut(&'static str, &Graph, NodeId)) -> LinearKernel {
        self.lower_for(&target(), observe)
    }

    /// The same for another target.
    pub fn lower_for(&self, target: &Target, mut observe: impl FnMut(&'static str, &Graph, NodeId)) -> LinearKernel {
        lower_observed(self.graph.clone(), self.sink, self.hand_written.as_ref(), target, &mut observe)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", self.name, text::print(&self.graph, &[self.sink])))
    }
}
