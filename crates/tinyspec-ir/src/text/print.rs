//! Prints a graph as text.

use crate::{Arg, Builder, Const, DType, Device, Graph, NodeId, dim::show};
use std::fmt::Write;

/// The nodes that `roots` depend on, one per line, and the roots.
///
/// ```
/// use tinyspec_ir::{Builder, Const, DType, Graph, text};
/// let mut graph = Graph::new();
/// let one = graph.constant(Const::int(DType::I32, 1));
/// assert_eq!(text::print(&graph, &[one]), "%0 = const[i32 1]  ; i32 []\nreturn %0\n");
/// ```
pub fn print(graph: &Graph, roots: &[NodeId]) -> String {
    let live = graph.reachable(roots);
    let mut numbers = vec![0u32; graph.len()];
    let mut text = String::with_capacity(live.len() * 48);
    for (number, &node) in live.iter().enumerate() {
        numbers[node.index()] = number as u32;
        let _ = write!(text, "%{number} = {}", graph.op(node).name());
        write_arg(&mut text, graph.arg(node));
        if !graph.sources(node).is_empty() || *graph.arg(node) == Arg::None {
            write_sources(&mut text, "(", graph.sources(node), &numbers, ")");
        }
        let props = graph.props(node);
        if props.dtype != DType::Void {
            let _ = write!(text, "  ; {} {}", props.dtype, show(&props.shape));
        }
        text.push('\n');
    }
    text.push_str("return");
    write_sources(&mut text, " ", roots, &numbers, "\n");
    text
}

fn write_sources(text: &mut String, open: &str, sources: &[NodeId], numbers: &[u32], close: &str) {
    text.push_str(open);
    for (position, source) in sources.iter().enumerate() {
        let comma = if position > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}%{}", numbers[source.index()]);
    }
    text.push_str(close);
}

fn write_arg(text: &mut String, arg: &Arg) {
    let words = match arg {
        Arg::None => return,
        Arg::Const(value) => constant(*value),
        Arg::Param { slot, dtype, device, addrspace } => {
            let place = [device.as_ref().map(device_word), addrspace.map(|space| space.name().to_string())];
            place.into_iter().flatten().fold(format!("{slot} {dtype}"), |words, word| words + " " + &word)
        }
        Arg::Buffer { slot, dtype, device, addrspace } => {
            let device = device.as_ref().map_or(String::new(), |device| device_word(device) + " ");
            format!("{slot} {dtype} {device}{}", addrspace.name())
        }
        Arg::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Arg::Axes(axes) => join(axes.iter()),
        Arg::Flags(flags) => join(flags.iter().map(|&flag| flag as u8)),
        Arg::DType(dtype) => dtype.to_string(),
        Arg::Reduce { op, axes } => axes.iter().fold(op.to_string(), |words, axis| format!("{words} {axis}")),
        Arg::Number(number) => number.to_string(),
        Arg::Load { device, addrspace } => {
            let device = device.as_ref().map_or(String::new(), |device| device_word(device) + " ");
            format!("{device}{}", addrspace.name())
        }
        Arg::Nontemporal => "nontemporal".to_string(),
        Arg::Stored => "stored".to_string(),
        Arg::Range { id, axis } => format!("{id} {axis:?}").to_lowercase(),
        Arg::Text(words) => format!("{words:?}"),
    };
    let _ = write!(text, "[{words}]");
}

fn join(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
}

fn device_word(device: &Device) -> String {
    match device {
        Device::Single(name) => format!("@{name:?}"),
        Device::Many(names) => format!("@({})", join(names.iter().map(|name| format!("{name:?}")))),
    }
}

/// A nan shows its bits, since its sign and payload are part of the node's identity.
fn constant(value: Const) -> String {
    let number = match (value.as_int(), value.as_float()) {
        (Some(number), _) => number.to_string(),
        (_, Some(float)) if float.is_nan() => format!("bits {:#x}", value.bits),
        (_, Some(float)) => format!("{float:?}"),
        _ => format!("bits {:#x}", value.bits),
    };
    format!("{} {number}", value.dtype)
}
