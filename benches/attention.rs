//! Attention, forward and backward, and what it takes besides time.

use tinyspec::backends::Target;
use tinyspec::ir::rewrite::Rewriter;
use tinyspec::ir::{Builder, Graph, rules};
use tinyspec::{DType, Function, Spec, Tensor, grad};
use tinyspec_core::lower::{kernel, rangeify};

use crate::contractions::flops;
use crate::kernels::Workload;
use crate::session::Session;

const HEADS: usize = 8;
const WIDTH: usize = 64;

type Body = fn(&[Tensor]) -> Vec<Tensor>;

fn forward(inputs: &[Tensor]) -> Vec<Tensor> {
    vec![inputs[0].sdpa(&inputs[1], &inputs[2], false)]
}

/// The gradients of all three inputs; the fourth is that of the result.
fn backward(inputs: &[Tensor]) -> Vec<Tensor> {
    let loss = (&forward(inputs)[0] * &inputs[3]).sum(.., false);
    grad(&loss, &[&inputs[0], &inputs[1], &inputs[2]]).expect("attention of floats has gradients")
}

/// Both products count, and all five of the gradients; not the exponentials between them, nor what is computed anew.
pub fn workloads() -> Vec<Workload> {
    let of = |name: &str, length: usize, products: usize, inputs: usize, body: Body| {
        let name = format!("attention/f32/{HEADS}x{length}x{WIDTH}{name}");
        let shape: &[usize] = &[HEADS, length, WIDTH];
        flops(&name, products * HEADS * length * length * WIDTH, &vec![shape; inputs], body)
    };
    vec![of("", 512, 2, 3, forward), of("", 4096, 2, 3, forward), of("/backward", 512, 5, 4, backward)]
}

/// Rows for the number of kernels, and for the bytes that they need beside their inputs and outputs; the scores would
/// take 64 MiB a head.
///
/// # Errors
/// When a kernel cannot be lowered.
pub fn counts(session: &mut Session) -> Result<(), Box<dyn std::error::Error>> {
    let target = Target::native();
    for (part, inputs, body) in [("", 3, forward as Body), ("/backward", 4, backward)] {
        let name = format!("attention/f32/1x4096x{WIDTH}{part}");
        if !session.measures(&name) {
            continue;
        }
        let specs = vec![Spec::new(DType::F32, [1, 4096, WIDTH as i64]); inputs];
        let traced = Function::trace(&specs, body)?;
        let mut graph = traced.body().graph().clone();
        let outputs =
            Rewriter::new(&[rules::EXACT, rules::REASSOC].concat()).rewrite(&mut graph, traced.body().outputs())?;
        let schedule = rangeify::rangeify(&graph, &outputs, &target)?;
        let bytes = |graph: &Graph, buffer| {
            let props = graph.props(buffer);
            props.element_count().as_const().unwrap_or(0) as usize * props.dtype.size()
        };
        let written: usize = schedule.buffers.iter().map(|&buffer| bytes(&schedule.graph, buffer)).sum();
        let results: usize = outputs.iter().map(|&output| bytes(&graph, output)).sum();
        let mut scratch = 0;
        for call in &schedule.calls {
            let lowered = kernel::lower_kernel(&mut schedule.graph.clone(), call.kernel, "attention", &target)?;
            scratch = scratch.max(lowered.scratch_bytes * target.threads);
        }
        session.count(&format!("{name}/kernels"), schedule.calls.len() as u64);
        session.count(&format!("{name}/scratch/bytes"), (written - results + scratch) as u64);
    }
    Ok(())
}
