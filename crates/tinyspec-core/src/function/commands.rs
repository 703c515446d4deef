//! Prepared calls as text: their command buffers.

use super::prepare::{Prepared, Sizing, State};
use super::text::params;
use crate::compile;
use crate::device::{default_device, device};
use crate::{Error, Result};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tinyspec_ir::commands::base;
use tinyspec_ir::{Arg, Builder, DType, Device, ErrorKind, Graph, NodeId, Op, Shape, text};

/// The command buffer: a `Linear` of Calls of kernels in range form, and the results behind it. Further roots are arguments that it
/// does not use.
impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizing = self.last();
        let mut graph = Graph::clone(sizing.plan.commands.graph());
        let used = params(&graph, &[sizing.plan.root]);
        let mut roots = vec![sizing.plan.root];
        for (slot, (dtype, shape)) in (0..).zip(&sizing.inputs) {
            if !used.contains_key(&slot) {
                let param = param(&mut graph, slot, *dtype, shape).map_err(|_| fmt::Error)?;
                roots.push(param);
            }
        }
        f.write_str(&text::print(&graph, &roots))
    }
}

fn param(graph: &mut Graph, slot: u32, dtype: DType, shape: &Shape) -> tinyspec_ir::Result<NodeId> {
    let shape = graph.shape(shape)?;
    graph.add(Op::Param, &[shape], Arg::Param { slot, dtype, device: None, addrspace: None })
}

/// Reads a command buffer, and compiles its kernels for the device that its buffers name, or else for the default one. Since its
/// kernels may access any memory, it runs once the caller [vouches](Prepared::vouched) for it; on the interpreter, which checks
/// every access, it runs as it is.
///
/// ```
/// # use tinyspec_core::{Tensor, function::{Prepare, Prepared}};
/// let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]);
/// let run = (|x: &Tensor| x * 2.0).prepare(&[&x])?;
/// let read: Prepared = run.to_string().parse()?;
/// assert_eq!(read.to_string(), run.to_string());
/// // SAFETY: it was printed by a prepared call.
/// let read = unsafe { read.vouched() };
/// let mut out = read.outputs()?;
/// read.call(&mut out, &[&x])?;
/// assert_eq!(out[0].to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
impl FromStr for Prepared {
    type Err = Error;

    fn from_str(text: &str) -> Result<Prepared> {
        let refuse = |kind, why: String| Err(Error::refused(kind, "command buffer", why));
        let (graph, roots) = text::parse(text)?;
        let Some((&root, unused)) = roots.split_first() else {
            return refuse(ErrorKind::Parse, "the text returns nothing".into());
        };
        if unused.iter().any(|&node| graph.op(node) != Op::Param) {
            return refuse(
                ErrorKind::Parse,
                "behind its Tuple, only arguments that it does not use are returned".into(),
            );
        }
        let found = params(&graph, &roots);
        let mut inputs = Vec::with_capacity(found.len());
        for slot in 0..found.len() as u32 {
            let Some(&param) = found.get(&slot) else {
                return refuse(
                    ErrorKind::Arity,
                    format!("argument {slot} is missing: return a Param for it behind the Tuple"),
                );
            };
            inputs.push((graph.dtype(param), graph.props(param).shape.clone()));
        }
        let results = graph.sources(root).to_vec();
        let outputs: Vec<_> =
            results.iter().map(|&node| (graph.dtype(node), graph.props(node).shape.clone())).collect();
        let dims = |shape: &Shape| shape.iter().any(|dim| dim.as_const().is_none());
        if inputs.iter().chain(&outputs).any(|(_, shape)| dims(shape)) {
            return refuse(ErrorKind::Unsupported, "has named dims: print a call that was prepared for numbers".into());
        }
        let state = |(result, &node): (usize, &NodeId)| match *graph.arg(base(&graph, node)) {
            Arg::Param { slot, .. } => Some(State { result, argument: slot as usize }),
            _ => None,
        };
        let states: SmallVec<[State; 2]> = results.iter().enumerate().filter_map(state).collect();
        let device = match graph.props(root).elements.as_deref().and_then(|results| results.first()?.device.clone()) {
            None => default_device()?,
            Some(Device::Single(name)) => device(&name)?,
            Some(Device::Many(names)) => {
                return refuse(ErrorKind::Device, format!("is on {names:?}, a prepared call runs on one device"));
            }
        };
        let plan = Arc::new(compile::load(graph, root, &device)?.plan(&|_| None)?);
        Ok(Prepared::read(device, Sizing { plan, inputs, outputs }, states))
    }
}
