//! Forms say what their nodes compute, and quotients, limits and footprints what arithmetic says.

use super::symbolic::{evaluate, random};
use std::collections::BTreeSet;
use tinyspec_ir::affine::{Affine, Constraint, Domain, Footprint, gcd, less};
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Graph, NodeId, Op, Result, text};

fn range(graph: &mut Graph, trips: i64, id: u32) -> NodeId {
    let bound = graph.index(trips);
    graph.range(bound, id, AxisType::Loop).unwrap()
}

/// The value of a form where Range k stands at `positions[k]`.
fn value(graph: &Graph, form: &Affine, positions: &[i64]) -> i128 {
    let term = |&(atom, coefficient): &(NodeId, i64)| evaluate(graph, atom, positions) * i128::from(coefficient);
    form.terms().iter().map(term).sum::<i128>() + i128::from(form.constant())
}

/// The form of a node, quotients and remainders folded.
fn folded(graph: &mut Graph, root: NodeId) -> Result<Affine> {
    let mut forms = vec![None; graph.len()];
    for node in graph.reachable(&[root]) {
        let op = graph.op(node);
        forms[node.index()] = Some(match op {
            Op::Add | Op::Mul | Op::Idiv | Op::Mod => {
                let sources: Vec<Affine> =
                    graph.sources(node).iter().map(|source| forms[source.index()].clone().unwrap()).collect();
                Affine::combine(graph, op, &sources)?
            }
            _ => Affine::leaf(graph, node),
        });
    }
    Ok(forms[root.index()].clone().unwrap())
}

#[test]
fn forms_of_random_expressions_keep_their_values_and_bounds() {
    let mut dice = fastrand::Rng::with_seed(3);
    for round in 0..5_000 {
        let mut graph = Graph::new();
        let bounds = [0; 3].map(|_| dice.i64(1..14));
        let root = random(&mut graph, &mut dice, &bounds, 5);
        let read = Affine::of(&graph, root);
        let folded = folded(&mut graph, root).unwrap();
        let emitted = [&read, &folded].map(|form| form.emit(&mut graph).unwrap());
        for _ in 0..12 {
            let positions: Vec<i64> = bounds.iter().map(|&bound| dice.i64(0..bound)).collect();
            let want = evaluate(&graph, root, &positions);
            for (form, emitted) in [&read, &folded].into_iter().zip(emitted) {
                let why = || format!("round {round} at {positions:?}: {form:?}\n{}", text::print(&graph, &[root]));
                assert_eq!(value(&graph, form, &positions), want, "{}", why());
                assert_eq!(evaluate(&graph, emitted, &positions), want, "{}", why());
                let (low, high) = form.bounds(&graph);
                assert!(low <= want && want <= high, "{}", why());
            }
        }
    }
}

/// A form over the given atoms.
fn any_form(dice: &mut fastrand::Rng, atoms: &[NodeId], greatest: i64) -> Affine {
    let terms: Vec<(NodeId, i64)> = atoms.iter().map(|&atom| (atom, dice.i64(-greatest..=greatest))).collect();
    Affine::sum(terms, dice.i64(-greatest..=greatest))
}

#[test]
fn emitted_forms_are_read_as_they_were() {
    let mut dice = fastrand::Rng::with_seed(5);
    let mut graph = Graph::new();
    let atoms: Vec<NodeId> = (0..4).map(|id| range(&mut graph, 9, id)).collect();
    for _ in 0..500 {
        let (a, b) = (any_form(&mut dice, &atoms, 5), any_form(&mut dice, &atoms, 5));
        let node = a.emit(&mut graph).unwrap();
        assert_eq!(Affine::of(&graph, node), a);
        let node = a.emit_as(&mut graph, DType::I64).unwrap();
        assert_eq!(Affine::of(&graph, node), a);
        assert_eq!(a.plus(&b).minus(&b), a);
        assert_eq!(a.plus(&a), a.scale(2));
        assert_eq!(a.minus(&a), Affine::number(0));
        assert_eq!(a.substitute(Affine::atom), a);
    }
}

#[test]
fn quotients_and_remainders_are_floored() {
    let mut dice = fastrand::Rng::with_seed(7);
    for _ in 0..5_000 {
        let mut graph = Graph::new();
        let bounds = [0; 3].map(|_| dice.i64(1..40));
        let atoms: Vec<NodeId> = (0..3).map(|id| range(&mut graph, bounds[id as usize], id)).collect();
        let form = any_form(&mut dice, &atoms, 70);
        let divisors = [0; 2].map(|_| [1, 2, 3, 4, 6, 8, 12, 32, 59, 64][dice.usize(0..10)]);
        let quotient = form.quotient(&mut graph, divisors[0]).unwrap();
        let remainder = form.remainder(&mut graph, divisors[0]).unwrap();
        let nested = quotient.quotient(&mut graph, divisors[1]).unwrap();
        let nested_remainder = remainder.remainder(&mut graph, divisors[1]).unwrap();
        for _ in 0..12 {
            let positions: Vec<i64> = bounds.iter().map(|&bound| dice.i64(0..bound)).collect();
            let whole = value(&graph, &form, &positions);
            let [first, second] = divisors.map(i128::from);
            assert_eq!(value(&graph, &quotient, &positions), whole.div_euclid(first), "{form:?} / {first}");
            assert_eq!(value(&graph, &remainder, &positions), whole.rem_euclid(first), "{form:?} mod {first}");
            assert_eq!(value(&graph, &nested, &positions), whole.div_euclid(first).div_euclid(second));
            assert_eq!(value(&graph, &nested_remainder, &positions), whole.rem_euclid(first).rem_euclid(second));
        }
    }
}

#[test]
fn what_reshapes_leave_is_folded() {
    let mut graph = Graph::new();
    let (i, j, k) = (range(&mut graph, 8, 0), range(&mut graph, 16, 1), range(&mut graph, 4, 2));
    let place = Affine::sum([(i, 64), (j, 4), (k, 1)], 0);
    assert_eq!(place.quotient(&mut graph, 64).unwrap(), Affine::atom(i));
    assert_eq!(place.remainder(&mut graph, 64).unwrap(), Affine::sum([(j, 4), (k, 1)], 0));
    // Of `(4·j + k) / 8` the k never carries: it is `j / 2`, and `(j / 2) / 4` is `j / 8`.
    let half = place.remainder(&mut graph, 64).unwrap().quotient(&mut graph, 8).unwrap();
    assert_eq!(half, Affine::atom(j).quotient(&mut graph, 2).unwrap());
    assert_eq!(half.quotient(&mut graph, 4).unwrap(), Affine::atom(j).quotient(&mut graph, 8).unwrap());
    // `58·i + j` in rows of 59 is row i at `j - i`, where that is one of the row's.
    let back = Affine::sum([(i, 58), (j, 1)], 7);
    assert_eq!(back.quotient(&mut graph, 59).unwrap(), Affine::atom(i));
    assert_eq!(back.remainder(&mut graph, 59).unwrap(), Affine::sum([(i, -1), (j, 1)], 7));
}

#[test]
fn machine_integers_that_may_wrap_are_atoms() {
    let mut graph = Graph::new();
    let index = range(&mut graph, 100, 0);
    for dtype in [DType::U8, DType::I8, DType::I32, DType::I64, DType::U64] {
        let value = graph.add(Op::Cast, &[index], Arg::DType(dtype)).unwrap();
        let number = |graph: &mut Graph, number: i128| graph.constant(Const::int(dtype, number));
        let (two, three) = (number(&mut graph, 2), number(&mut graph, 3));
        let double = graph.alu(Op::Mul, &[value, two]).unwrap();
        let product = graph.alu(Op::Mul, &[value, three]).unwrap();
        let sum = graph.alu(Op::Add, &[product, two]).unwrap();
        // 2 · 99 fits u8, 3 · 99 + 2 does not; i8 holds neither.
        let want = |fits: bool, form: Affine, node: NodeId| if fits { form } else { Affine::atom(node) };
        let fits = [dtype != DType::I8, dtype.size() > 1];
        assert_eq!(Affine::of(&graph, double), want(fits[0], Affine::sum([(index, 2)], 0), double), "{dtype:?}");
        let open = if fits[1] { Affine::sum([(index, 3)], 2) } else { Affine::atom(sum) };
        assert_eq!(Affine::of(&graph, sum), open, "{dtype:?}");
    }
    // A constant that no coefficient holds.
    let (shape, greatest) = (graph.shape(&[]).unwrap(), graph.constant(Const::int(DType::U64, u64::MAX.into())));
    let param = Arg::Param { slot: 0, dtype: DType::U64, device: None, addrspace: None };
    let data = graph.add(Op::Param, &[shape], param).unwrap();
    let product = graph.alu(Op::Mul, &[data, greatest]).unwrap();
    assert_eq!(Affine::of(&graph, product), Affine::atom(product));
    assert_eq!(Affine::of(&graph, greatest), Affine::atom(greatest));
}

#[test]
fn a_choice_between_numbers_is_a_multiple_of_its_condition() {
    let mut graph = Graph::new();
    let (index, limit) = (range(&mut graph, 100, 0), graph.index(7));
    let gate = graph.alu(Op::CmpLt, &[index, limit]).unwrap();
    let [here, before] = [0, -16].map(|number| graph.constant(Const::int(DType::I64, number)));
    let moved = graph.alu(Op::Where, &[gate, here, before]).unwrap();
    let form = Affine::of(&graph, moved);
    assert_eq!(form, Affine::sum([(gate, 16)], -16));
    assert_eq!(form.bounds(&graph), (-16, 0));
    let node = form.emit_as(&mut graph, DType::I64).unwrap();
    for position in [0, 6, 7, 99] {
        assert_eq!(evaluate(&graph, node, &[position]), evaluate(&graph, moved, &[position]));
    }
}

#[test]
fn a_sum_that_doubles_itself_is_read_in_linear_time() {
    let mut graph = Graph::new();
    let index = range(&mut graph, 2, 0);
    let mut node = index;
    for _ in 0..62 {
        node = graph.alu(Op::Add, &[node, node]).unwrap();
    }
    assert_eq!(Affine::of(&graph, node), Affine::sum([(index, 1 << 62)], 0));
}

#[test]
fn constraints_limit_a_range_as_the_comparison_does() {
    let mut dice = fastrand::Rng::with_seed(11);
    for _ in 0..3_000 {
        let mut graph = Graph::new();
        let bounds = [0; 2].map(|_| dice.i64(1..12));
        let atoms: Vec<NodeId> = (0..2).map(|id| range(&mut graph, bounds[id as usize], id)).collect();
        let mut holds = Vec::new();
        let mut constraints = Vec::new();
        for _ in 0..3 {
            let mut sides = [0; 2].map(|_| any_form(&mut dice, &atoms, 3));
            // Of a quotient and a number, too.
            if dice.bool() {
                sides = [sides[0].quotient(&mut graph, dice.i64(2..5)).unwrap(), Affine::number(dice.i64(-3..4))];
            }
            let flip = dice.usize(0..2);
            let (a, b) = (sides[flip].clone(), sides[1 - flip].clone());
            let (op, truth) = [(Op::CmpLt, true), (Op::CmpLt, false), (Op::CmpNe, false)][dice.usize(0..3)];
            constraints.push(Constraint::comparison(op, truth, &a, &b).unwrap());
            let node = match op {
                Op::CmpLt => less(&mut graph, &a, &b).unwrap(),
                _ => {
                    let sides = [&a, &b].map(|side| side.emit(&mut graph).unwrap());
                    graph.alu(op, &sides).unwrap()
                }
            };
            holds.push((node, truth));
        }
        let domain = Domain::of(&graph, atoms[1], constraints.iter().enumerate());
        let (low, high) = domain.numbers(bounds[1]);
        for i in 0..bounds[0] {
            for j in 0..bounds[1] {
                let positions = [i, j];
                let all = holds.iter().all(|&(node, truth)| (evaluate(&graph, node, &positions) != 0) == truth);
                let at = |form: &Affine| value(&graph, form, &positions);
                let j = i128::from(j);
                let said: BTreeSet<usize> =
                    domain.lows.iter().chain(&domain.highs).map(|&(_, constraint)| constraint).collect();
                let is_inside = domain.lows.iter().all(|(low, _)| at(low) <= j)
                    && domain.highs.iter().all(|(high, _)| j <= at(high));
                let others = (0..3).filter(|number| !said.contains(number)).all(|number| {
                    let (node, truth) = holds[number];
                    (evaluate(&graph, node, &positions) != 0) == truth
                });
                assert_eq!(is_inside && others, all);
                assert!(!all || (i128::from(low) <= j && j <= i128::from(high)));
                for window in domain.windows() {
                    let first = at(window.first);
                    assert!(!all || (first <= j && j < first + i128::from(window.count)));
                }
            }
        }
    }
}

#[test]
fn a_limit_hidden_in_an_atom_is_none() {
    let mut graph = Graph::new();
    let (i, j) = (range(&mut graph, 16, 0), range(&mut graph, 16, 1));
    let hidden = Affine::atom(j).quotient(&mut graph, 3).unwrap();
    let constraint = Constraint::NotNegative(hidden.plus(&Affine::sum([(i, 1), (j, 1)], 0)));
    assert_eq!(constraint.limit(&graph, j), None);
    assert!(constraint.limit(&graph, i).is_some());
}

#[test]
fn footprints_count_the_elements_that_are_reached() {
    let mut dice = fastrand::Rng::with_seed(13);
    for _ in 0..2_000 {
        let steps: Vec<(i64, i64)> = (0..3).map(|_| (dice.i64(-12..13), dice.i64(1..6))).collect();
        let mut reached = BTreeSet::from([0]);
        for &(step, trips) in &steps {
            reached = reached.iter().flat_map(|&place| (0..trips).map(move |trip| place + trip * step)).collect();
        }
        let Footprint { run, rows } = Footprint::of(steps.iter().copied());
        let count = rows.iter().fold(run, |count, row| count * row.1);
        let span = reached.last().unwrap() - reached.first().unwrap() + 1;
        assert!(reached.len() as i64 <= count, "{steps:?}");
        if rows.is_empty() {
            assert_eq!((reached.len() as i64, span), (run, run), "{steps:?}");
        }
    }
}

#[test]
fn the_greatest_common_divisor_is_never_negative() {
    assert_eq!([gcd(12, -18), gcd(0, -5), gcd(0, 0), gcd(i64::MIN, 6)], [6, 5, 0, 2]);
}
