//! Programs: the kernels that computing tensors would run, to inspect, to save as text, and to call.

use crate::compile::{self, Contents, Rendered};
use crate::device::{default_device, device};
use crate::execute::shards;
use crate::lazy::{Node, Walk};
use crate::tensor::{Tensor, apply_many};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::fmt;
use std::panic::Location;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_ir::function::inline_all;
use tinyspec_ir::kernel::WrittenKernel;
use tinyspec_ir::{Arg, Builder, DType, Device, ErrorKind, Graph, NodeId, Op, commands, text, verify};

/// A compiled kernel, `Program(Linear, Source, Binary)`: its instructions, the compiler's input, and the machine code.
///
/// ```
/// use tinyspec_core::{Program, Tensor};
/// let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]);
/// let programs = Program::of(&[&(&x * 2.0 + 1.0)])?;
/// let y = programs[0].call(&[&Tensor::zeros([3])], &[&x]);
/// assert_eq!(y[0].to_vec::<f32>()?, [3.0, 5.0, 7.0]);
/// # Ok::<(), tinyspec_core::Error>(())
/// ```
///
/// [`Display`](fmt::Display) gives the text form. [Parsing](FromStr) it gives the same program, which may run once the
/// caller [vouches](Program::vouched) for it. A Linear can be parsed, too: it is a program that is not compiled yet; and a Sink,
/// such as `TINYSPEC_DEBUG=5` prints after each stage: it is lowered from its form on, for the device of its buffers.
#[derive(Clone)]
pub struct Program {
    name: String,
    /// Written buffers come first.
    outputs: usize,
    /// dtype and number of elements of each buffer that the kernel uses.
    buffers: Vec<Option<(DType, i64)>>,
    graph: Graph,
    root: NodeId,
    origin: Origin,
    /// If its root is a Sink: what it is lowered to, by device.
    lowered: Arc<Mutex<Lowered>>,
}

type Lowered = FxHashMap<Arc<str>, (Graph, NodeId)>;

/// Whether a program can be trusted.
#[derive(Clone)]
enum Origin {
    /// It was compiled here, or is vouched for, and runs on the device of this name.
    Device(Arc<str>),
    Text,
}

impl Program {
    /// The kernels that computing these tensors would run on their device, in order; on a tuple of devices those of the
    /// first one, then those of the second, and so on.
    ///
    /// # Errors
    /// The first error that a tensor carries, that of planning, when tensors are on different devices, and when values would
    /// move between devices.
    #[track_caller]
    pub fn of(tensors: &[&Tensor]) -> Result<Vec<Program>> {
        let location = Location::caller();
        let nodes = tensors.iter().map(|tensor| tensor.node().cloned()).collect::<Result<Vec<_>>>();
        nodes.and_then(Program::computing).map_err(|error| error.at(location))
    }

    fn computing(mut nodes: Vec<Arc<Node>>) -> Result<Vec<Program>> {
        nodes.retain(|node| !node.is_realized());
        if nodes.is_empty() {
            return Ok(vec![]);
        }
        let walk = Walk::of(&nodes);
        let refuse = |message: &str| Err(Error::refused(ErrorKind::Unsupported, Op::Program.name(), message));
        if !walk.first.is_empty() || walk.has_placeholder {
            return refuse("what it is made of has no value yet: realize values that move between devices");
        }
        let mut devices = nodes.iter().map(|node| node.device());
        let first = devices.next().flatten();
        if devices.any(|other| other != first) {
            return refuse(
                "the tensors are on different devices, a program is of one: ask for those of each by themselves",
            );
        }
        let device = match first {
            None => default_device()?,
            Some(Device::Single(name)) => device(name)?,
            // A device's part needs no other device's, or else it waits for a move, which is refused.
            Some(Device::Many(names)) => {
                let shards = shards::parts(&nodes, &walk, names)?;
                let own = |number: usize| shards.iter().map(|shards| shards.parts[number].clone()).collect();
                let programs: Result<Vec<Vec<Program>>> =
                    (0..names.len()).map(|number| Program::computing(own(number))).collect();
                return Ok(programs?.concat());
            }
        };
        let callified = walk.build()?;
        let (graph, outputs) = inline_all(callified.graph, callified.outputs)?;
        let programs = compile::programs(&graph, &outputs, &device)?;
        let own = |(Rendered { name, buffers, graph, root }, outputs)| {
            Program::new(name, graph, root, buffers, Some(outputs), Origin::Device(device.name().into()))
        };
        programs.into_iter().map(own).collect()
    }

    fn new(
        name: String,
        graph: Graph,
        root: NodeId,
        buffers: usize,
        outputs: Option<usize>,
        origin: Origin,
    ) -> Result<Program> {
        let kernel = match graph.op(root) {
            Op::Sink => {
                compile::check_form(&graph, root)?;
                root
            }
            _ => {
                let linear = Contents::of(&graph, root)?.linear;
                verify::linear(&graph, linear)?;
                linear
            }
        };
        let refuse = |message: &str| Err(Error::refused(ErrorKind::Verify, Op::Program.name(), message));
        let mut params: Vec<Option<(DType, i64)>> = vec![None; buffers];
        let mut written: Vec<bool> = vec![false; buffers];
        for node in graph.reachable(&[kernel]) {
            match (graph.op(node), graph.arg(node)) {
                (Op::Param, Arg::Param { dtype: DType::Index, .. }) => {
                    return refuse("has named dims whose values are not known");
                }
                (Op::Param, &Arg::Param { slot, dtype, .. }) => {
                    let Some(count) = graph.props(node).element_count().as_const() else {
                        return refuse("has buffers of unknown size");
                    };
                    let slot = slot as usize;
                    if slot >= params.len() {
                        params.resize(slot + 1, None);
                        written.resize(slot + 1, false);
                    }
                    params[slot] = Some((dtype, count));
                }
                (Op::Store | Op::AtomicAdd, _) => {
                    let mut place = graph.source(node, 0);
                    while !matches!(graph.op(place), Op::Param | Op::Buffer) && !graph.sources(place).is_empty() {
                        place = graph.source(place, 0);
                    }
                    if let (Op::Param, &Arg::Param { slot, .. }) = (graph.op(place), graph.arg(place))
                        && let Some(written) = written.get_mut(slot as usize)
                    {
                        *written = true;
                    }
                }
                _ => {}
            }
        }
        let outputs = outputs.unwrap_or_else(|| written.iter().take_while(|&&written| written).count());
        if written.iter().skip(outputs).any(|&written| written) {
            return refuse("the buffers that it writes come first");
        }
        Ok(Program { name, outputs, buffers: params, graph, root, origin, lowered: Arc::default() })
    }

    /// The graph that holds its nodes.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The node itself.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The kernel's name, such as `reduce_4096_1024`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many buffers it writes: the first ones.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    fn contents(&self) -> Option<Contents<'_>> {
        Contents::of(&self.graph, self.root).ok()
    }

    /// The compiler's input, such as LLVM IR.
    pub fn source(&self) -> Option<&str> {
        self.contents()?.source
    }

    /// The machine code.
    pub fn binary(&self) -> Option<&[u8]> {
        self.contents()?.binary.map(|bytes| &**bytes)
    }

    /// Vouches for a parsed program: its machine code runs on the device of this name; on others, its Linear is
    /// compiled.
    ///
    /// # Safety
    /// The code must do what the Linear says, and that must stay within its buffers.
    pub unsafe fn vouched(self, device: &str) -> Program {
        Program { origin: Origin::Device(device.into()), ..self }
    }

    /// Calls it, lazily. The result is the new values of the buffers that it writes, given their old values and the
    /// buffers that it reads. On a device other than its own, its Linear is compiled again.
    #[track_caller]
    pub fn call(&self, written: &[&Tensor], read: &[&Tensor]) -> Vec<Tensor> {
        let location = Location::caller();
        let inputs = [written, read].concat();
        let called = self
            .kernel(written.len(), &inputs)
            .and_then(|kernel| apply_many(location, &inputs, |builder, nodes| kernel.call(builder, nodes)));
        match called {
            Ok(results) => results,
            Err(error) => vec![Tensor::failed(error.at(location)); self.outputs.max(1)],
        }
    }

    /// The Linear of a Sink for a device.
    fn lowered(&self, there: &Arc<str>) -> Result<(Graph, NodeId)> {
        let mut lowered = self.lowered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lowered.get(there) {
            return Ok(known.clone());
        }
        let kernel = compile::linear(&self.graph, self.root, &device(there)?)?;
        lowered.insert(there.clone(), kernel.clone());
        Ok(kernel)
    }

    /// The body of a Call with these buffers.
    fn kernel(&self, written: usize, inputs: &[&Tensor]) -> Result<WrittenKernel> {
        let refuse = |kind, message: String| Err(Error::refused(kind, Op::Program.name(), message));
        let Origin::Device(own) = &self.origin else {
            let message = "was read from text: `unsafe { program.vouched(\"cpu\") }` vouches for it".to_string();
            return refuse(ErrorKind::Unsupported, message);
        };
        if (written, inputs.len()) != (self.outputs, self.buffers.len()) {
            let (read, found) = (self.buffers.len() - self.outputs, inputs.len().saturating_sub(written));
            let message = format!("writes {} buffers and reads {read}, found {written} and {found}", self.outputs);
            return refuse(ErrorKind::Arity, message);
        }
        for (number, (input, buffer)) in inputs.iter().zip(&self.buffers).enumerate() {
            let node = input.node()?;
            let count = input.sizes()?.iter().product::<usize>() as i64;
            if let Some((dtype, length)) = *buffer
                && (dtype, length) != (node.props.dtype, count)
            {
                let message = format!("buffer {number} is {length} of {dtype}, found {count} of {}", node.props.dtype);
                return refuse(ErrorKind::Shape, message);
            }
        }
        let there = match inputs.iter().find_map(|input| input.device()) {
            Some(Device::Single(name)) => name.clone(),
            Some(Device::Many(names)) => {
                let message = format!("runs on one device, a buffer is on {names:?}: bring it to one with `.to(…)`");
                return refuse(ErrorKind::Device, message);
            }
            None => default_device()?.name().into(),
        };
        let (graph, sink) = match self.graph.op(self.root) {
            Op::Sink => self.lowered(&there)?,
            _ => {
                let root = if *there == **own { self.root } else { Contents::of(&self.graph, self.root)?.linear };
                let mut graph = Graph::new();
                let sink = graph.import(&self.graph, &[root], |_, _| Ok(None))?[0];
                (graph, sink)
            }
        };
        let buffers = (0..self.buffers.len()).map(|number| format!("buffer {number}")).collect();
        Ok(WrittenKernel { name: self.name.clone(), outputs: self.outputs, buffers, vouched: true, graph, sink })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::print(&self.graph, &[self.root]))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("name", &self.name).finish_non_exhaustive()
    }
}

impl FromStr for Program {
    type Err = Error;

    fn from_str(text: &str) -> Result<Program> {
        let (graph, roots) = text::parse(text)?;
        let &[root] = roots.as_slice() else {
            return Err(Error::refused(ErrorKind::Parse, Op::Program.name(), "the text has one root, the program"));
        };
        // The buffers that a kernel writes come first.
        let outputs = (graph.op(root) == Op::Sink).then(|| commands::outputs(&graph, root));
        Program::new(Op::Program.name().into(), graph, root, 0, outputs, Origin::Text)
    }
}
