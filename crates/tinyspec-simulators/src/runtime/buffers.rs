//! Descriptions of a kernel's buffers, in a line behind its code: bounds are exact although memory comes in larger pieces, and
//! errors name buffers as the user does. Neither the driver nor a loader looks there.

use tinyspec_backends::LinearKernel;
use tinyspec_ir::{AddrSpace, Arg, Builder as _, Op, dim};

const MARK: &str = "\n// bytes and names of buffers:";

/// A buffer that a kernel is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Its size, where that is known before a launch.
    pub bytes: Option<usize>,
    /// Its name in a kernel written by hand.
    pub name: Option<String>,
}

/// Adds them: `400=x` is a buffer `x` of 400 bytes, `?` an unknown one.
pub fn add(kernel: &LinearKernel, mut code: Vec<u8>) -> Vec<u8> {
    let graph = &kernel.graph;
    let mut buffers = vec![Buffer::default(); kernel.params];
    for &node in graph.sources(kernel.linear) {
        let &Arg::Param { slot, dtype, addrspace: Some(AddrSpace::Global), .. } = graph.arg(node) else { continue };
        if graph.op(node) != Op::Param {
            continue;
        }
        let elements = dim::static_shape(&graph.props(node).shape)
            .and_then(|dims| dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim.try_into().ok()?)));
        if let Some(buffer) = buffers.get_mut(slot as usize) {
            buffer.bytes = elements.and_then(|elements| elements.checked_mul(dtype.size()));
        }
    }
    for (buffer, name) in buffers.iter_mut().zip(kernel.hand_written.iter().flatten()) {
        buffer.name = Some(name.clone());
    }
    code.extend(MARK.bytes());
    for Buffer { bytes, name } in buffers {
        let bytes = bytes.map_or("?".into(), |bytes| bytes.to_string());
        let name = name.map_or_else(String::new, |name| format!("={name}"));
        code.extend(format!(" {bytes}{name}").bytes());
    }
    code.push(b'\n');
    code
}

/// The descriptions at the end of the code.
pub fn read(code: &[u8]) -> Vec<Buffer> {
    let Some(start) = code.windows(MARK.len()).rposition(|bytes| bytes == MARK.as_bytes()) else { return Vec::new() };
    let line = String::from_utf8_lossy(&code[start + MARK.len()..]);
    let buffer = |word: &str| {
        let (bytes, name) = word.split_once('=').map_or((word, None), |(bytes, name)| (bytes, Some(name.to_string())));
        Buffer { bytes: bytes.parse().ok(), name }
    };
    line.split_whitespace().map(buffer).collect()
}
