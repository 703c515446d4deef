//! Kernels as text: what a stage leaves of one is a program that runs.

use crate::WORDS;
use tinyspec::ir::commands::base;
use tinyspec::ir::{Arg, Graph, NodeId, Op, text};
use tinyspec::prelude::*;
use tinyspec::{Program, device, with_default_device};
use tinyspec_core::lower::kernel::lower_observed;
use tinyspec_core::lower::rangeify::rangeify;

type Body = fn(&[Tensor]) -> Tensor;

/// Programs of one kernel over a matrix of 6×40 and a vector of 40.
const BODIES: [(&str, Body); 5] = [
    ("elementwise", |x| (&x[0] * 2.0 + &x[1]).exp()),
    ("sums of rows", |x| (&x[0] * &x[1]).sum([1], false)),
    ("a product", |x| x[0].matmul(x[0].transpose(0, 1))),
    ("a window", |x| x[0].pad([1, 2], [8, 44], 0.0).at((.., 1..43))),
    ("a running sum", |x| x[0].cumsum(1)),
];

/// A kernel as stages leave it, by their names, and the slots of its buffers.
type Printed = (Vec<(&'static str, String)>, Vec<Option<u32>>);

/// The only kernel of a program.
fn printed(body: Body, specs: &[Spec], name: &str) -> Result<Option<Printed>> {
    let traced = Function::trace(specs, |inputs| vec![body(inputs)])?;
    let target = device(name)?.target().clone();
    let schedule = rangeify(traced.body().graph(), traced.body().outputs(), &target)?;
    let [call] = &schedule.calls[..] else { return Ok(None) };
    let slot = |&buffer: &NodeId| match *schedule.graph.arg(base(&schedule.graph, buffer)) {
        Arg::Param { slot, .. } => Some(slot),
        _ => None,
    };
    let slots = schedule.graph.sources(call.node)[1..].iter().map(slot).collect();
    let mut own = Graph::new();
    let sink = own.import(&schedule.graph, &[call.kernel], |_, _| Ok(None))?[0];
    let mut forms: Vec<(&'static str, String)> = Vec::new();
    let mut observe = |stage: &'static str, graph: &Graph, root: NodeId| {
        if graph.op(root) == Op::Sink {
            forms.push((stage, text::print(graph, &[root])));
        }
    };
    lower_observed(own, sink, None, &target, &mut observe)?;
    Ok(Some((forms, slots)))
}

#[test]
fn a_kernel_runs_from_what_each_stage_leaves() -> Result<()> {
    crate::devices();
    let rows: Vec<f32> = (0..240).map(|place| (place * 7 % 23) as f32 * 0.125 - 1.0).collect();
    let mut stages = std::collections::BTreeSet::new();
    for name in ["interpreter", "cpu", "simt", WORDS] {
        with_default_device(name, || -> Result<()> {
            let inputs = [Tensor::from_slice(&rows, [6, 40]), Tensor::from_slice(&rows[..40], [40])];
            let specs: Vec<Spec> = inputs.iter().map(Spec::of).collect();
            for (what, body) in BODIES {
                let Some((forms, slots)) = printed(body, &specs, name)? else { continue };
                let expected = body(&inputs);
                let (shape, expected) = (expected.sizes()?, expected.to_vec::<f32>()?);
                for (stage, text) in forms {
                    let failed =
                        |error: Error| -> String { format!("{what} on {name} after {stage}: {error}\n{text}") };
                    // SAFETY: a stage printed it.
                    let program = unsafe {
                        text.parse::<Program>().unwrap_or_else(|error| panic!("{}", failed(error))).vouched(name)
                    };
                    assert_eq!(program.outputs(), 1);
                    let read: Vec<&Tensor> = slots.iter().flatten().map(|&slot| &inputs[slot as usize]).collect();
                    let found = program.call(&[&Tensor::zeros(&shape[..])], &read)[0]
                        .to_vec::<f32>()
                        .unwrap_or_else(|error| panic!("{}", failed(error)));
                    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
                    assert!(
                        found.iter().zip(&expected).all(near),
                        "{what} on {name} after {stage}: {found:?}, not {expected:?}"
                    );
                    stages.insert(stage);
                }
            }
            Ok(())
        })?;
    }
    for stage in ["ranges", "scheduled", "special", "expand", "accumulate", "devectorize"] {
        assert!(stages.contains(stage), "nothing ran from {stage}: {stages:?}");
    }
    Ok(())
}

#[test]
fn a_sink_that_is_no_kernel_is_refused() -> Result<()> {
    // A Range is used outside of its loop.
    let text = "
        %0 = const[index 4]
        %1 = stack(%0)
        %2 = param[0 f32 global](%1)
        %3 = const[f32 1.0]
        %4 = range[0 loop](%0)
        %5 = index(%2, %4)
        %6 = store(%5, %3)
        %7 = sink(%6)
        return %7
    ";
    let error = text.parse::<Program>().expect_err("no kernel").to_string();
    assert!(error.contains("verify") && error.contains("a kernel as a stage leaves it"), "{error}");
    // Written by nobody who vouches for it.
    let text = "
        %0 = const[index 4]
        %1 = stack(%0)
        %2 = range[0 loop](%0)
        %3 = param[0 f32 global](%1)
        %4 = index(%3, %2)
        %5 = const[f32 1.0]
        %6 = store(%4, %5)
        %7 = end(%6, %2)
        %8 = sink(%7)
        return %8
    ";
    let program: Program = text.parse()?;
    let refused = program.call(&[&Tensor::zeros([4])], &[]).remove(0).to_vec::<f32>().expect_err("nobody vouches");
    assert!(refused.to_string().contains("vouched"), "{refused}");
    // SAFETY: it writes the four elements.
    let program = unsafe { program.vouched("cpu") };
    assert_eq!(program.call(&[&Tensor::zeros([4])], &[])[0].to_vec::<f32>()?, [1.0; 4]);
    Ok(())
}
