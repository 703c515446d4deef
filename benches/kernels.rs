//! Kernels, each beside the limit that bounds it: prepared once, then run on the same tensors.

use std::sync::Arc;

use tinyspec::backends::Processor;
use tinyspec::backends::cpu::CpuRuntime;
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::{DType, Function, Result, Spec, Tensor};
use tinyspec_benches::limits::{Limit, Resource};
use tinyspec_benches::report::Measure;

use crate::attention;
use crate::contractions;
use crate::peers::gemm::Product;
use crate::session::{Case, Session};
use crate::{memory_bound, selections};

const F32: f64 = 4.0;

/// What one case computes.
pub struct Workload {
    /// Family, dtype and sizes; the threads come last.
    pub name: String,
    /// What one run does.
    pub measure: Measure,
    /// What bounds it.
    pub resource: Resource,
    /// Exponentials it takes, where they are what bounds it.
    pub exponentials: usize,
    /// f32 multiply-adds, where they may be the limit.
    pub multiply_adds: usize,
    /// Shapes of the inputs.
    pub inputs: Vec<Vec<usize>>,
    /// What their elements are.
    pub dtype: DType,
    /// The outputs.
    pub body: fn(&[Tensor]) -> Vec<Tensor>,
    /// Side of the matrices of the peer's product, if it computes the same.
    pub peer: Option<usize>,
}

impl Workload {
    /// A workload that memory bounds.
    pub fn bytes(
        name: &str,
        elements: usize,
        resource: Resource,
        inputs: &[&[usize]],
        body: fn(&[Tensor]) -> Vec<Tensor>,
    ) -> Self {
        Self {
            name: name.into(),
            measure: Measure::Bytes(elements as f64 * F32),
            resource,
            exponentials: 0,
            multiply_adds: 0,
            inputs: inputs.iter().map(|shape| shape.to_vec()).collect(),
            dtype: DType::F32,
            body,
            peer: None,
        }
    }
}

fn workloads() -> Vec<Workload> {
    [contractions::workloads(), attention::workloads(), memory_bound::workloads(), selections::workloads()]
        .into_iter()
        .flatten()
        .collect()
}

/// A CPU of so many threads, as a device of its own; a strict one computes sums of products of bf16 as written.
///
/// # Errors
/// When libLLVM is missing.
pub fn device(threads: usize, strict: bool) -> Result<String, Box<dyn std::error::Error>> {
    let name = format!("cpu:{threads}t{}", if strict { ":strict" } else { "" });
    let target = Processor::chosen()?.target(threads);
    let target = if strict { target.strict() } else { target };
    let runtime = CpuRuntime::of(&target);
    tinyspec::register(&name, target, Arc::new(LlvmCompiler::new()?), Arc::new(runtime));
    Ok(name)
}

/// A row for every kernel and thread count.
///
/// # Errors
/// When libLLVM is missing, or a kernel cannot be compiled or run.
pub fn benches(session: &mut Session) -> Result<(), Box<dyn std::error::Error>> {
    for threads in session.thread_counts() {
        let devices = [device(threads, false)?, device(threads, true)?];
        for workload in workloads() {
            let name = format!("{}/{threads}t", workload.name);
            if session.selects(&name) {
                let strict = workload.dtype == DType::BF16 && workload.resource == Resource::Fma;
                kernel(session, &name, threads, &devices[usize::from(strict)], &workload)?;
            }
        }
    }
    Ok(())
}

/// Tensors of these shapes, filled alike each time.
///
/// # Errors
/// When they cannot be computed.
pub fn tensors(shapes: &[Vec<usize>], dtype: DType, device: &str) -> Result<Vec<Tensor>> {
    shapes
        .iter()
        .map(|shape| {
            let count: usize = shape.iter().product();
            // Integers of a byte, or as much around 0 as floats are.
            let unit = if dtype.is_float() { 251.0 } else { 1.0 };
            let data: Vec<f32> = (0..count).map(|index| ((index % 251) as f32 - 125.0) / unit).collect();
            let tensor = Tensor::from_vec(data, shape.as_slice()).cast(dtype).to(device);
            tensor.realize()?;
            Ok(tensor)
        })
        .collect()
}

fn kernel(
    session: &mut Session,
    name: &str,
    threads: usize,
    device: &str,
    workload: &Workload,
) -> Result<(), Box<dyn std::error::Error>> {
    let inputs = tensors(&workload.inputs, workload.dtype, device)?;
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let specs: Vec<Spec> = inputs.iter().map(|input| Spec::of(input)).collect();
    let prepared = Function::trace(&specs, workload.body)?.prepare(&inputs)?;
    let mut outputs = prepared.outputs()?;
    prepared.call(&mut outputs, &inputs)?;
    let mut failure = None;
    let mut run = || {
        if let Err(error) = prepared.call(&mut outputs, &inputs) {
            failure.get_or_insert(error);
        }
    };
    let mut peer = workload.peer.map(|side| Product::new(side, threads));
    let mut peer_run = peer.as_mut().map(|product| move || product.run());
    let mut bounds = vec![(Limit { resource: workload.resource, threads }, workload.measure.amount())];
    if workload.exponentials > 0 {
        bounds.push((Limit::exponentials(threads), workload.exponentials as f64));
    }
    if workload.multiply_adds > 0 {
        bounds.push((Limit::fma(threads), 2.0 * workload.multiply_adds as f64));
    }
    session.bench(Case {
        name: name.into(),
        measure: workload.measure,
        bounds,
        run: &mut run,
        peer: peer_run.as_mut().map(|run| run as &mut dyn FnMut()),
    });
    failure.map_or(Ok(()), |error| Err(error.into()))
}
