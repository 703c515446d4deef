//! A kernel written by hand, as `uop!` embeds it: a closed graph in binary form, opaque to whatever works on tensors.
//!
//! The graph is a `Sink` whose buffers keep their shapes: `Index(Param, i, j)` has an index for each axis, so that an
//! access can be checked axis by axis. Or it is a Linear or Program, which needs no further lowering. A call is
//! `Call(CustomFunction(Binary), buffers…, dims…)`; its results are `After(buffer, call, number)`: the buffer's value
//! once the kernel has run.

use crate::encode::{Reader, Writer, decode, encode};
use crate::{Arg, Builder, Error, ErrorKind, Graph, NodeId, Op, Result};

/// A kernel over Params. Slots: written buffers, then those that are only read, then named dims and constants.
#[derive(Clone, Debug)]
pub struct WrittenKernel {
    /// Name as the user wrote it.
    pub name: String,
    /// How many buffers it writes.
    pub outputs: usize,
    /// The names of its buffers, by slot.
    pub buffers: Vec<String>,
    /// Whether parts are the user's responsibility (`unsafe`): iterations may write to the same element.
    pub vouched: bool,
    /// The nodes.
    pub graph: Graph,
    /// The root.
    pub sink: NodeId,
}

impl WrittenKernel {
    /// The bytes that a binary embeds.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.text(&self.name);
        writer.number(self.outputs as u64);
        writer.number(self.buffers.len() as u64);
        self.buffers.iter().for_each(|name| writer.text(name));
        writer.byte(self.vouched as u8);
        writer.block(&encode(&self.graph, &[self.sink]));
        writer.into_bytes()
    }

    /// The kernel in `bytes`.
    ///
    /// # Errors
    /// When they are damaged, or contain something that [`crate::derive()`] refuses.
    pub fn decode(bytes: &[u8]) -> Result<WrittenKernel> {
        let damaged = || Error::new(ErrorKind::Parse, "decode", "the embedded kernel is damaged");
        let mut reader = Reader::new(bytes);
        let name: String = reader.text()?;
        let outputs = reader.number()? as usize;
        let buffers = (0..reader.count()?).map(|_| reader.text()).collect::<Result<Vec<String>>>()?;
        let vouched = reader.byte()? != 0;
        let (graph, roots) = decode(reader.block()?)?;
        let &[sink] = roots.as_slice() else { return Err(damaged()) };
        if !reader.is_done()
            || outputs > buffers.len()
            || !matches!(graph.op(sink), Op::Sink | Op::Linear | Op::Program)
        {
            return Err(damaged());
        }
        Ok(WrittenKernel { name, outputs, buffers, vouched, graph, sink })
    }

    /// Adds a call: `arguments` are the buffers by slot, then the dims. Returns the written buffers' values after it.
    ///
    /// # Errors
    /// When [`crate::derive()`] refuses the call.
    pub fn call(&self, b: &mut dyn Builder, arguments: &[NodeId]) -> Result<Vec<NodeId>> {
        let code = b.add(Op::Binary, &[], Arg::Bytes(self.encode().into()))?;
        let function = b.add(Op::CustomFunction, &[code], Arg::Text(self.name.as_str().into()))?;
        let mut sources = vec![function];
        sources.extend(arguments);
        let call = b.add(Op::Call, &sources, Arg::None)?;
        (0..self.outputs)
            .map(|number| {
                // Two results may be updates of equal values; the number distinguishes them.
                let position = b.index(number as i64);
                b.add(Op::After, &[arguments[number], call, position], Arg::None)
            })
            .collect()
    }
}

/// The bytes of the kernel behind a Call, if it is one written by hand.
pub fn code(graph: &Graph, call: NodeId) -> Option<&[u8]> {
    let function = *graph.sources(call).first().filter(|_| graph.op(call) == Op::Call)?;
    let code = *graph.sources(function).first().filter(|_| graph.op(function) == Op::CustomFunction)?;
    match graph.arg(code) {
        Arg::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// Whether a Call of a tensor graph is of code that nothing looks into: a kernel written by hand, or a
/// [custom function](crate::custom_function).
pub fn is_opaque(graph: &Graph, call: NodeId) -> bool {
    code(graph, call).is_some() || crate::custom_function::of_call(graph, call).is_some()
}

/// The name of the kernel behind a Call.
pub fn name(graph: &Graph, call: NodeId) -> Option<String> {
    match graph.arg(*graph.sources(call).first()?) {
        Arg::Text(name) => Some(name.to_string()),
        _ => None,
    }
}
