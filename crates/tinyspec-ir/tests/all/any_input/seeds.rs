//! Where inputs come from: graphs of every stage, and graphs made of any op on any sources.

use tinyspec_ir::op::ArgKind;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Category, Const, DType, Device, Graph, NodeId, Op, Result};

/// The graphs of the file tests, as text.
pub fn texts() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let mut paths: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path()).collect();
    paths.sort();
    let mut seeds = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|kind| kind == "txt")) {
        let mut graph = String::new();
        for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
            if line.starts_with('%') || line.starts_with("return ") {
                graph += line;
                graph.push('\n');
            }
            if line.starts_with("return ") {
                seeds.push(std::mem::take(&mut graph));
            }
        }
    }
    seeds
}

/// Numbers that tend to break things.
pub const NUMBERS: [i128; 14] =
    [0, 1, 2, 3, -1, 8, 63, 64, 255, 1 << 31, u32::MAX as i128, i64::MAX as i128, i64::MIN as i128, u64::MAX as i128];

/// A graph of `count` nodes, where nodes are whatever `derive` lets pass.
pub fn graph(dice: &mut fastrand::Rng, count: usize) -> (Graph, Vec<NodeId>) {
    let mut graph = Graph::new();
    let mut nodes: Vec<NodeId> = start(dice, &mut graph).unwrap_or_default();
    let count = nodes.len() + count;
    for _ in 0..count * 8 {
        let op = Op::ALL[dice.usize(..Op::ALL.len())];
        // Most of those take anything: they would be most of the graph.
        if op.category() == Category::Codegen && dice.u32(..8) > 0 {
            continue;
        }
        let (least, greatest) = op.info().sources;
        let wanted = least + dice.usize(..=(greatest.min(least + 2) - least));
        if nodes.is_empty() && wanted > 0 {
            continue;
        }
        // Recent nodes are the interesting ones.
        let reach = if dice.bool() { 8 } else { 40 };
        let near = |dice: &mut fastrand::Rng| nodes[nodes.len() - 1 - dice.usize(..nodes.len().min(reach))];
        let sources: Vec<NodeId> = (0..wanted).map(|_| near(dice)).collect();
        let arg = argument(dice, op);
        if let Ok(node) = graph.add(op, &sources, arg)
            && !nodes.contains(&node)
        {
            nodes.push(node);
        }
        if nodes.len() == count {
            break;
        }
    }
    let roots = nodes.iter().rev().take(3).copied().collect();
    (graph, roots)
}

/// Dims, shapes of them and tensors of those shapes.
fn start(dice: &mut fastrand::Rng, graph: &mut Graph) -> Result<Vec<NodeId>> {
    let scalar = graph.add(Op::Stack, &[], Arg::None)?;
    let mut nodes = vec![scalar];
    let mut dims: Vec<NodeId> = [0, 1, 2, 3, 4].map(|dim| graph.index(dim)).to_vec();
    for slot in 0..2 {
        let arg = Arg::Param { slot, dtype: DType::Index, device: None, addrspace: None };
        let bounds = [scalar, dims[dice.usize(..2)], graph.index(NUMBERS[dice.usize(..NUMBERS.len())] as i64)];
        dims.push(graph.add(Op::Param, &bounds, arg)?);
    }
    nodes.extend(&dims);
    for slot in 2..6 {
        let sizes: Vec<NodeId> = (0..dice.usize(..4)).map(|_| dims[dice.usize(..dims.len())]).collect();
        let shape = graph.add(Op::Stack, &sizes, Arg::None)?;
        let dtype = if slot < 4 { DType::F32 } else { DType::ALL[dice.usize(..DType::ALL.len())] };
        let addrspace = Some(AddrSpace::Global).filter(|_| dice.bool());
        nodes.push(shape);
        nodes.push(graph.add(Op::Param, &[shape], Arg::Param { slot, dtype, device: None, addrspace })?);
    }
    Ok(nodes)
}

fn argument(dice: &mut fastrand::Rng, op: Op) -> Arg {
    let dtype = DType::ALL[dice.usize(..DType::ALL.len())];
    let number = NUMBERS[dice.usize(..NUMBERS.len())];
    let small = dice.u32(..4);
    let device = [None, Some(Device::new("cpu")), Some(Device::Many(["a".into(), "b \" c".into()].into()))];
    let device = device[dice.usize(..4).min(2)].clone().filter(|_| dice.bool());
    let addrspace = AddrSpace::ALL[dice.usize(..3)];
    match op.info().arg {
        ArgKind::None => Arg::None,
        ArgKind::Const => Arg::Const(match dice.u32(..3) {
            // Often an index, from which shapes are made.
            0 | 1 => Const::int(DType::Index, if dice.bool() { small as i128 } else { number }),
            _ if dice.bool() => Const::int(dtype, number),
            _ => Const::float(dtype, f64::from_bits(dice.u64(..))),
        }),
        ArgKind::Param => {
            let index = dice.bool();
            Arg::Param {
                slot: small,
                dtype: if index { DType::Index } else { dtype },
                device: device.filter(|_| !index),
                addrspace: Some(addrspace).filter(|_| !index),
            }
        }
        ArgKind::Buffer => Arg::Buffer { slot: small, dtype, device, addrspace },
        ArgKind::Bytes => Arg::Bytes((0..small).map(|_| dice.u8(..)).collect::<Vec<_>>().into()),
        ArgKind::Axes => Arg::Axes((0..small).map(|_| dice.u32(..4)).collect()),
        ArgKind::Flags => Arg::Flags((0..small).map(|_| dice.bool()).collect()),
        ArgKind::DType => Arg::DType(dtype),
        ArgKind::Reduce => Arg::Reduce {
            op: [Op::Add, Op::Max, Op::Mul, Op::Xor][dice.usize(..4)],
            axes: (0..small / 2).map(|_| dice.u32(..3)).collect(),
        },
        ArgKind::Number => Arg::Number(small),
        ArgKind::Load => Arg::Load { device, addrspace },
        ArgKind::Store => [Arg::None, Arg::Nontemporal][dice.usize(..2)].clone(),
        ArgKind::Contiguous => [Arg::None, Arg::Stored][dice.usize(..2)].clone(),
        ArgKind::Range => Arg::Range { id: small, axis: AxisType::ALL[dice.usize(..9)] },
        ArgKind::Text => Arg::Text("text \"\\\n".into()),
    }
}
