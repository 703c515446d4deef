//! Program: a kernel with its instructions, its source and its machine code (the spec's Render, "Codegen Ops").

use crate::Result;
use crate::device::Device;
use crate::lower::{kernel, plan};
use std::sync::Arc;
use tinyspec_backends::{Grid, LinearKernel};
use tinyspec_ir::{Arg, Builder, ErrorKind, Graph, NodeId, Op};

/// A kernel as a node: `Program(Linear, Source, Binary)`.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The kernel's name.
    pub name: String,
    /// The number of buffers that it takes.
    pub buffers: usize,
    /// Holds the nodes.
    pub graph: Graph,
    /// The Program.
    pub root: NodeId,
}

/// Renders a kernel for a device.
///
/// # Errors
/// When the device's compiler refuses the kernel.
pub fn program(kernel: &LinearKernel, device: &Device) -> Result<Rendered> {
    let (compiler, target) = (device.compiler(), device.target());
    let source = compiler.source(kernel, target)?;
    let code = compiler.compile(kernel, target)?;
    let mut graph = Graph::new();
    let linear = graph.import(&kernel.graph, &[kernel.linear], |_, _| Ok(None))?[0];
    let source = graph.add(Op::Source, &[], Arg::Text(source.as_str().into()))?;
    let binary = graph.add(Op::Binary, &[], Arg::Bytes(code.into()))?;
    let root = graph.add(Op::Program, &[linear, source, binary], Arg::None)?;
    Ok(Rendered { name: kernel.name.clone(), buffers: kernel.params, graph, root })
}

/// The contents of a `Program`; a Linear is one without source and code.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a> {
    pub linear: NodeId,
    pub source: Option<&'a str>,
    pub binary: Option<&'a Arc<[u8]>>,
}

impl<'a> Contents<'a> {
    /// # Errors
    /// When it is neither, or has other sources.
    pub fn of(graph: &'a Graph, root: NodeId) -> Result<Contents<'a>> {
        let refuse = |what: &str| Err(crate::Error::refused(ErrorKind::Verify, Op::Program.name(), what));
        let sources = match graph.op(root) {
            Op::Linear => std::slice::from_ref(&root),
            Op::Program => graph.sources(root),
            _ => return refuse("a kernel that is done is a Program, or a Linear"),
        };
        let mut contents = Contents { linear: sources[0], source: None, binary: None };
        if graph.op(contents.linear) != Op::Linear {
            return refuse("its first source is a Linear");
        }
        for &source in &sources[1..] {
            match (graph.op(source), graph.arg(source)) {
                (Op::Source, Arg::Text(text)) if contents.source.is_none() && contents.binary.is_none() => {
                    contents.source = Some(text);
                }
                (Op::Binary, Arg::Bytes(bytes)) if contents.binary.is_none() => contents.binary = Some(bytes),
                _ => return refuse("behind its Linear stand a Source and a Binary"),
            }
        }
        Ok(contents)
    }
}

/// A Linear in the form that compilers take.
pub(crate) fn linear_kernel(graph: &Graph, linear: NodeId, name: &str, params: usize) -> Result<LinearKernel> {
    let mut own = Graph::new();
    let linear = own.import(graph, &[linear], |_, _| Ok(None))?[0];
    tinyspec_ir::verify::linear(&own, linear)?;
    let (local_offsets, scratch_bytes) = plan::locals(&own, linear);
    Ok(LinearKernel {
        hand_written: None,
        shared_trips: kernel::most_shared_trips(&own, linear),
        grid: Grid::of(&own, linear),
        params: params.max(kernel::params(&own, linear)),
        linear,
        name: name.into(),
        local_offsets,
        scratch_bytes,
        graph: own,
    })
}
