//! Random small graphs: the schedule computes what the graph means, whatever the costs.

use super::*;

/// A stream of small numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % bound.max(1) as u64) as usize
    }
}

fn shape_of(graph: &Graph, node: NodeId) -> Vec<i64> {
    graph.props(node).shape.iter().map(|dim| dim.as_const().unwrap()).collect()
}

/// A random view of `node`.
fn view(graph: &mut Graph, dice: &mut Dice, node: NodeId) -> NodeId {
    let shape = shape_of(graph, node);
    let rank = shape.len();
    let shape_node = |graph: &mut Graph, shape: &[i64]| graph.shape(&dims(shape)).unwrap();
    match dice.below(6) {
        0 if rank > 1 => {
            let mut order: Vec<u32> = (0..rank as u32).collect();
            order.rotate_left(1 + dice.below(rank - 1));
            graph.add(Op::Permute, &[node], Arg::Axes(Axes::from_vec(order))).unwrap()
        }
        1 => {
            let flags = (0..rank).map(|_| dice.below(2) == 1).collect();
            graph.add(Op::Flip, &[node], Arg::Flags(flags)).unwrap()
        }
        2 => {
            let count: i64 = shape.iter().product();
            let divisors: Vec<i64> = (1..=count.max(1)).filter(|&divisor| count % divisor == 0).collect();
            let first = divisors[dice.below(divisors.len())];
            let target = shape_node(graph, &[first, count / first]);
            graph.alu(Op::Reshape, &[node, target]).unwrap()
        }
        3 if rank > 0 && shape.iter().product::<i64>() < 60 => {
            let offset: Vec<i64> = (0..rank).map(|_| dice.below(3) as i64).collect();
            let larger: Vec<i64> = shape.iter().zip(&offset).map(|(dim, offset)| dim + offset + 1).collect();
            let (offset, larger) = (shape_node(graph, &offset), shape_node(graph, &larger));
            graph.alu(Op::Pad, &[node, offset, larger]).unwrap()
        }
        4 if rank > 0 => {
            let smaller: Vec<i64> = shape.iter().map(|&dim| dim - dice.below(dim.min(3) as usize) as i64).collect();
            let offset: Vec<i64> =
                shape.iter().zip(&smaller).map(|(a, b)| dice.below((a - b + 1) as usize) as i64).collect();
            let (offset, smaller) = (shape_node(graph, &offset), shape_node(graph, &smaller));
            graph.alu(Op::Shrink, &[node, offset, smaller]).unwrap()
        }
        _ => {
            let mut larger = shape.clone();
            larger.iter_mut().filter(|dim| **dim == 1).for_each(|dim| *dim = 3);
            let larger = shape_node(graph, &larger);
            graph.alu(Op::Expand, &[node, larger]).unwrap()
        }
    }
}

fn grow(graph: &mut Graph, dice: &mut Dice, pool: &mut Vec<NodeId>) {
    let pick = |dice: &mut Dice, pool: &[NodeId]| pool[pool.len() - 1 - dice.below(pool.len().min(6))];
    let a = pick(dice, pool);
    let b = pick(dice, pool);
    let rank = graph.props(a).rank();
    let new = match dice.below(9) {
        0..=2 => Some(view(graph, dice, a)),
        3..=5 => {
            let op = [Op::Add, Op::Mul, Op::Max, Op::Mod][dice.below(4)];
            let fits = graph.props(a).element_count().as_const().unwrap() < 100;
            graph.alu(op, &[a, b]).ok().filter(|_| fits)
        }
        6 if rank > 0 => {
            let op = [Op::Add, Op::Max][dice.below(2)];
            Some(reduce(graph, op, a, &[dice.below(rank) as u32]))
        }
        7 if rank > 0 && graph.props(b).rank() <= 1 => graph.alu(Op::Index, &[a, b]).ok(),
        8 if dice.below(3) == 0 => Some(graph.alu(Op::Contiguous, &[a]).unwrap()),
        8 if graph.props(a).shape == graph.props(b).shape => graph.alu(Op::Stack, &[a, b]).ok(),
        _ => None,
    };
    let fits = |node: &NodeId| (graph.props(*node).element_count().as_const().unwrap()) < 300;
    pool.extend(new.filter(fits));
}

fn round(seed: u64, costs: &Costs) {
    let mut dice = Dice(seed);
    let mut graph = Graph::new();
    let mut pool = Vec::new();
    for slot in 0..3 {
        let shape: Vec<i64> = (0..dice.below(4)).map(|_| [1, 2, 3, 4, 5][dice.below(5)]).collect();
        pool.push(param(&mut graph, slot, DType::I32, &shape));
    }
    for _ in 0..14 {
        grow(&mut graph, &mut dice, &mut pool);
    }
    let outputs: Vec<NodeId> =
        (0..1 + dice.below(3)).map(|_| pool[pool.len() - 1 - dice.below(pool.len().min(4))]).collect();
    check(&graph, &outputs, costs);
}

#[test]
fn random_graphs_keep_their_meaning() {
    let usual = Costs::of(&target());
    let eager = Costs { byte: 0.0, launch: 0.0, parallel: 4.0, nodes: 7, outputs: 3, ..usual.clone() };
    let fused = Costs { byte: 1e6, ..usual.clone() };
    for seed in 0..400 {
        for costs in [&usual, &eager, &fused] {
            round(seed, costs);
        }
    }
}
