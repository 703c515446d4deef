//! Sizes of buffers, in a line behind the code: bounds are exact although memory comes in larger pieces. Neither the driver
//! nor a loader looks there.

use tinyspec_backends::LinearKernel;
use tinyspec_ir::{AddrSpace, Arg, Builder as _, Op, dim};

const MARK: &str = "\n// bytes of buffers:";

/// Adds them.
pub fn add(kernel: &LinearKernel, mut code: Vec<u8>) -> Vec<u8> {
    let graph = &kernel.graph;
    let mut sizes: Vec<Option<usize>> = vec![None; kernel.params];
    for &node in graph.sources(kernel.linear) {
        let &Arg::Param { slot, dtype, addrspace: Some(AddrSpace::Global), .. } = graph.arg(node) else { continue };
        if graph.op(node) != Op::Param {
            continue;
        }
        let elements = dim::static_shape(&graph.props(node).shape)
            .and_then(|dims| dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim.try_into().ok()?)));
        if let Some(size) = sizes.get_mut(slot as usize) {
            *size = elements.and_then(|elements| elements.checked_mul(dtype.size()));
        }
    }
    code.extend(MARK.bytes());
    for size in sizes {
        let text = size.map_or("?".into(), |size| size.to_string());
        code.extend(format!(" {text}").bytes());
    }
    code.push(b'\n');
    code
}

/// What stands at the end of the code.
pub fn read(code: &[u8]) -> Vec<Option<usize>> {
    let Some(start) = code.windows(MARK.len()).rposition(|bytes| bytes == MARK.as_bytes()) else { return Vec::new() };
    let line = String::from_utf8_lossy(&code[start + MARK.len()..]);
    line.split_whitespace().map(|size| size.parse().ok()).collect()
}
