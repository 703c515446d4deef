//! Prepared calls as text: their command buffers.

use super::prepare::{Prepared, RangedCommands, State};
use super::text::params;
use crate::compile;
use crate::device::{default_device, device};
use crate::{Error, Result};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;
use tinyspec_ir::commands::base;
use tinyspec_ir::dim::Name;
use tinyspec_ir::signature::{Input, NamedDim, Signature};
use tinyspec_ir::{Arg, Builder, DType, Device, Dim, ErrorKind, Graph, NodeId, Op, Shape, text};

/// The command buffer: a `Linear` of Calls of kernels in range form, and the results behind it. Further roots are arguments that it
/// does not use. On a tuple of devices there are several, with lines on what becomes of their values.
impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f, |sizing, inputs| {
            let mut graph = Graph::clone(sizing.plan.commands.graph());
            let used = params(&graph, &[sizing.plan.root]);
            let mut roots = vec![sizing.plan.root];
            for (slot, (dtype, shape)) in (0..).zip(inputs) {
                if !used.contains_key(&slot) {
                    let param = param(&mut graph, slot, *dtype, shape).map_err(|_| fmt::Error)?;
                    roots.push(param);
                }
            }
            Ok(text::print(&graph, &roots))
        })
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
        if text.lines().filter(|line| line.trim_start().starts_with("return")).count() > 1 {
            let why = "holds several: those of a call on a tuple of devices are read one by one";
            return refuse(ErrorKind::Unsupported, why.into());
        }
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
        let (signature, names) = arguments(&graph, &roots)?;
        let results = graph.sources(root).to_vec();
        let outputs = results.iter().map(|&node| (graph.dtype(node), graph.props(node).shape.clone())).collect();
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
        let linked = compile::load(graph, root, &device)?;
        Prepared::read(device, RangedCommands { signature, names, linked, outputs }, states)
    }
}

/// The arguments of a command buffer, and its named dims, which their sizes give.
fn arguments(graph: &Graph, roots: &[NodeId]) -> Result<(Signature, Vec<Name>)> {
    let refuse = |why: String| tinyspec_ir::Error::new(ErrorKind::Arity, "command buffer", why);
    let mut found: Vec<(u32, NodeId)> = params(graph, roots).into_iter().collect();
    found.sort_unstable();
    let is_dim = |&(_, node): &(u32, NodeId)| graph.dtype(node) == DType::Index;
    let (dims, tensors): (Vec<_>, Vec<_>) = found.into_iter().partition(is_dim);
    let mut names = Vec::with_capacity(dims.len());
    for &(slot, param) in &dims {
        let value = graph.props(param).value.as_deref().and_then(|value| value.first());
        let Some(name) = value.and_then(|value| value.names().into_iter().next()) else {
            let message = format!("Param {slot} is an index without bounds");
            return Err(refuse(message).help(format!("a named dim is `param[{slot} index](shape, min, max)`")).into());
        };
        names.push(name);
    }
    let mut inputs = Vec::with_capacity(tensors.len());
    let position = |slot: u32| names.iter().position(|name| name.slot == slot);
    for (number, &(slot, param)) in (0..).zip(&tensors) {
        if slot != number {
            let message = format!("argument {number} is missing");
            return Err(refuse(message).help("return a Param for it behind the Tuple").into());
        }
        let own = |dim: &Dim| {
            dim.substitute(&|slot| {
                let place = position(slot)?;
                Some(Dim::named(place as u32, names[place].min, names[place].max))
            })
        };
        let shape = graph.props(param).shape.iter().map(own).collect();
        inputs.push(Input { name: format!("argument {slot}"), dtype: graph.dtype(param), shape });
    }
    let named = |&Name { slot, min, max }: &Name| NamedDim { min, max, ..NamedDim::new(format!("d{slot}")) };
    let signature = Signature { name: "call".into(), dims: names.iter().map(named).collect(), inputs };
    if let Some(&place) = signature.unbound().first() {
        let slot = names[place].slot;
        let message = format!("the sizes of its arguments do not give named dim {slot}");
        let help = format!("return a Param behind the Tuple that has `%{}` as an axis", dims[place].1.0);
        return Err(tinyspec_ir::Error::new(ErrorKind::Shape, "command buffer", message).help(help).into());
    }
    Ok((signature, names))
}
