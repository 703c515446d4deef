//! The tables of rules beyond the exact ones: what only reorders a Reduce, and what a permission allows.

use proptest::prelude::*;
use std::collections::BTreeSet;
use tinyspec_backends::interpreter::{array::Array, tensor::evaluate};
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Function, Permission, Spec, Tensor};
use tinyspec_ir::rewrite::{Keeps, Rewriter, RuleSet};
use tinyspec_ir::{DType, Graph, NodeId, Op, rules, text};

type Values = Vec<Vec<f64>>;

/// A function's values before and after some rules.
struct BothWays {
    before: Values,
    after: Values,
    graph: Graph,
    roots: Vec<NodeId>,
    fired: BTreeSet<&'static str>,
}

fn both_ways(function: &Function, sets: &[&RuleSet], inputs: &[Array]) -> BothWays {
    let (mut graph, roots) = (function.body().graph().clone(), function.body().outputs());
    let floats = |arrays: Vec<Array>| arrays.iter().map(Array::to_floats).collect();
    let before = evaluate(&graph, roots, inputs).unwrap();
    let mut rewriter = Rewriter::new(sets);
    let roots = rewriter.rewrite(&mut graph, roots).unwrap();
    let after = evaluate(&graph, &roots, inputs).unwrap();
    let fired = rewriter.fired().keys().copied().collect();
    BothWays { before: floats(before), after: floats(after), graph, roots, fired }
}

fn names(set: &RuleSet) -> BTreeSet<&'static str> {
    set.rules.iter().map(|rule| rule.name).collect()
}

fn count(graph: &Graph, roots: &[NodeId], op: Op) -> usize {
    graph.reachable(roots).into_iter().filter(|&node| graph.op(node) == op).count()
}

#[test]
fn a_rule_is_in_one_table() {
    let tables = [(rules::EXACT, Keeps::Exact), (rules::REASSOC, Keeps::Reassoc)];
    let mut names = BTreeSet::new();
    let mut check = |set: &RuleSet, keeps: Keeps| {
        assert_eq!(set.keeps, keeps, "{}", set.name);
        for rule in set.rules {
            assert!(names.insert(rule.name), "{} is there twice", rule.name);
        }
    };
    tables.iter().for_each(|(sets, keeps)| sets.iter().for_each(|set| check(set, *keeps)));
    for permission in Permission::ALL {
        check(rules::permitted(permission), Keeps::Permitted(permission));
        assert_eq!(Permission::from_name(permission.name()), Some(permission));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A Reduce of a Reduce is one: with small integers its order shows nowhere.
    #[test]
    fn reduces_of_reduces_are_one(
        sizes in prop::collection::vec(2..5usize, 3),
        outer in 0..2usize,
        first in 0..3usize,
        keep in any::<bool>(),
        greatest in any::<bool>(),
        numbers in prop::collection::vec(-3..4i64, 64),
    ) {
        let shape: Vec<i64> = sizes.iter().map(|&size| size as i64).collect();
        let function = Function::trace(&[Spec::new(DType::F32, &shape[..])], |inputs| {
            let reduce = |x: &Tensor, axis: usize| {
                if greatest { x.max(axis as i64, keep) } else { x.sum(axis as i64, keep) }
            };
            vec![reduce(&reduce(&inputs[0], first), outer)]
        }).unwrap();
        let total = sizes.iter().product::<usize>();
        let x = Array::from_ints(DType::F32, &sizes, &numbers[..total]).unwrap();
        let again = keep && first == outer;
        prop_assume!(!again);
        let found = both_ways(&function, rules::REASSOC, &[x]);
        let rule = if keep { "reduce_reduce" } else { "reduce_squeezed_reduce" };
        prop_assert!(found.fired.contains(rule), "{:?}", found.fired);
        prop_assert_eq!(found.before, found.after, "{}", text::print(&found.graph, &found.roots));
        prop_assert_eq!(count(&found.graph, &found.roots, Op::Reduce), 1);
    }
}

#[test]
fn a_reduction_written_in_steps_is_one() {
    let two_steps =
        Function::trace(&[Spec::new(DType::F32, [1000, 1000])], |inputs| vec![inputs[0].sum(1, false).sum(0, false)]);
    let two_steps = two_steps.unwrap();
    let mut graph = two_steps.body().graph().clone();
    let roots = Rewriter::new(rules::REASSOC).rewrite(&mut graph, two_steps.body().outputs()).unwrap();
    assert_eq!(count(&graph, &roots, Op::Reduce), 1);
}

#[test]
fn other_reductions_of_reductions_stay() {
    let function = Function::trace(&[Spec::new(DType::F32, [4, 5])], |inputs| {
        vec![inputs[0].sum(1, false).max(0, false), inputs[0].sum(1, false).reshape([2, 2]).sum(0, false)]
    });
    let function = function.unwrap();
    let mut graph = function.body().graph().clone();
    let roots = Rewriter::new(rules::REASSOC).rewrite(&mut graph, function.body().outputs()).unwrap();
    assert_eq!(roots, function.body().outputs());
}

/// A mask of 40 by 40 as a user may write it, of a column of positions and a row of numbers.
const MASKS: [fn(&Tensor, &Tensor) -> Tensor; 10] = [
    |ramp, picks| ramp.eq(picks).cast(DType::F32),
    |ramp, picks| ramp.ne(picks).where_(0f32, 1f32),
    |ramp, picks| ramp.eq(picks).cast(DType::U8).reshape([40, 5, 8]).cast(DType::F32).reshape([40, 40]),
    |ramp, picks| ramp.eq(picks).transpose(0, 1).cast(DType::F32).transpose(0, 1),
    |ramp, picks| ramp.eq(picks).cast(DType::F32) * picks.lt(30).cast(DType::F32),
    |ramp, _| ramp.le(Tensor::arange(40).cast(DType::I32)).cast(DType::F32),
    |ramp, picks| 1.0 - ramp.ne(picks).cast(DType::F32).transpose(0, 1).transpose(0, 1),
    |ramp, picks| ramp.eq(picks).cast(DType::F32) * -0.5,
    |ramp, picks| ramp.lt(picks).where_(0.0, ramp.gt(picks).where_(0.0, 2.0)),
    |ramp, picks| (1.0 - ramp.lt(picks).cast(DType::F32)) * ramp.le(picks).cast(DType::F32),
];

/// Its sum with terms that are the same along the other axis.
const SUMS: [fn(&Tensor, &Tensor) -> Tensor; 5] = [
    |x, mask| (x.reshape([40, 1]) * mask).sum(0, false),
    |x, mask| (mask * x.reshape([1, 40])).sum(1, true),
    |x, mask| (x.reshape([40, 1]).expand([40, 40]) * mask).sum(0, false),
    |x, mask| x.matmul(mask),
    |x, mask| (x.cast(DType::F16) * mask.cast(DType::F16)).sum(-1, false).cast(DType::F32),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// A term that is infinite or nan makes sums nan that do not choose it.
    #[test]
    fn sums_of_chosen_terms_are_those_of_products(
        mask in 0..MASKS.len(),
        sum in 0..SUMS.len(),
        numbers in prop::collection::vec(-3..4i32, 40),
        picks in prop::collection::vec(-2..42i64, 40),
        specials in prop::collection::vec((0..40usize, prop::sample::select(vec![f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0])), 0..3),
    ) {
        let function = Function::trace(&[Spec::new(DType::F32, [40]), Spec::new(DType::I32, [40])], |inputs| {
            let ramp = Tensor::arange(40).cast(DType::I32).reshape([40, 1]);
            vec![SUMS[sum](&inputs[0], &MASKS[mask](&ramp, &inputs[1].reshape([1, 40])))]
        }).unwrap();
        let mut x: Vec<f64> = numbers.iter().map(|&number| f64::from(number)).collect();
        specials.iter().for_each(|&(place, value)| x[place] = value);
        let inputs = [Array::from_floats(DType::F32, &[40], &x).unwrap(), Array::from_ints(DType::I32, &[40], &picks).unwrap()];
        let found = both_ways(&function, &[rules::EXACT, rules::REASSOC].concat(), &inputs);
        prop_assert!(found.fired.contains("sum_of_chosen"), "{:?}", found.fired);
        let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
        let is_same = found.before[0].iter().zip(&found.after[0]).all(same);
        prop_assert!(is_same, "{}\n{:?} was {:?}", text::print(&found.graph, &found.roots), found.after, found.before);
    }
}

#[test]
fn running_sums_of_one_number_are_its_multiples() {
    for (dtype, value) in
        [(DType::I32, 1.0), (DType::F32, 0.5), (DType::I8, -3.0), (DType::F16, 2.0), (DType::F64, f64::INFINITY)]
    {
        let function = Function::trace(&[Spec::new(DType::F32, [1])], |_| {
            vec![Tensor::full_of([2, 50], value, dtype).cumsum(1), Tensor::full_of([30], value, dtype).cumsum(0)]
        });
        let x = Array::from_floats(DType::F32, &[1], &[0.0]).unwrap();
        let found = both_ways(&function.unwrap(), &[rules::EXACT, rules::REASSOC].concat(), &[x]);
        assert!(found.fired.contains("running_sum_of_one"), "{:?}", found.fired);
        assert_eq!(found.before, found.after, "{dtype}");
    }
}

#[test]
fn sums_of_products_that_no_position_chooses_stay() {
    let matrix = || Spec::new(DType::F32, [40, 40]);
    let specs = [matrix(), matrix(), Spec::new(DType::F32, [40])];
    let function = Function::trace(&specs, |inputs| {
        let [x, y, z] = inputs else { return vec![] };
        let by_data = x.gt(0.0).cast(DType::F32);
        let diagonal = Tensor::arange(40).reshape([40, 1]).eq(Tensor::arange(40)).cast(DType::F32);
        vec![(z * by_data).sum(1, false), (y * &diagonal).sum(1, false), (y * x).sum(1, false)]
    });
    let function = function.unwrap();
    let (mut graph, roots) = (function.body().graph().clone(), function.body().outputs());
    let mut rewriter = Rewriter::new(&[rules::EXACT, rules::REASSOC].concat());
    rewriter.rewrite(&mut graph, roots).unwrap();
    assert!(!rewriter.fired().contains_key("sum_of_chosen"), "{:?}", rewriter.fired());
}

/// A few units in the last place of f32.
fn near(a: f64, b: f64, scale: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 4.0 * f64::from(f32::EPSILON) * scale.abs()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn permitted_rules_fire_and_stay_near(numbers in prop::collection::vec(-1e3..1e3f64, 24), divisor in 0.1..1e3f64) {
        let input = || Spec::new(DType::F32, [2, 4]);
        let arrays: Vec<Array> =
            numbers.chunks(8).map(|chunk| Array::from_floats(DType::F32, &[2, 4], chunk).unwrap()).collect();
        let contracted = Function::trace(&[input(), input(), input()], |inputs| {
            let [a, b, c] = inputs else { return vec![] };
            vec![a * b + c, c + a * b]
        }).unwrap();
        let set = rules::permitted(Permission::Contract);
        let found = both_ways(&contracted, &[set], &arrays);
        prop_assert_eq!(found.fired, names(set));
        let left = |op| count(&found.graph, &found.roots, op);
        prop_assert_eq!((left(Op::Add), left(Op::Mulacc)), (0, 1));
        for (before, after) in found.before.iter().zip(&found.after) {
            for lane in 0..8 {
                let scale = numbers[lane] * numbers[8 + lane];
                let scale = scale.abs() + numbers[16 + lane].abs();
                prop_assert!(near(before[lane], after[lane], scale), "{before:?} {after:?}");
            }
        }
        let divided = Function::trace(&[input(), input()], |inputs| {
            vec![&inputs[0] / divisor, &inputs[0] / inputs[1].max(1, true)]
        }).unwrap();
        let set = rules::permitted(Permission::Approx);
        let found = both_ways(&divided, &[set], &arrays[..2]);
        prop_assert_eq!(found.fired, names(set));
        prop_assert_eq!(count(&found.graph, &found.roots, Op::Div), 0);
        for (before, after) in found.before.iter().flatten().zip(found.after.iter().flatten()) {
            prop_assert!(near(*before, *after, *before), "{before} {after}");
        }
    }
}

/// A reciprocal that saves nothing, or is not a normal number.
#[test]
fn quotients_without_a_good_reciprocal_stay() {
    let function = Function::trace(&[Spec::new(DType::F32, [3]), Spec::new(DType::F32, [3])], |inputs| {
        vec![&inputs[0] / &inputs[1], &inputs[0] / 0.0, &inputs[0] / 3e38, &inputs[0] / f64::INFINITY]
    });
    let function = function.unwrap();
    let fast = function.fast_math(&[Permission::Approx]).unwrap();
    assert_eq!(count(fast.body().graph(), fast.body().outputs(), Op::Div), 4);
}

/// Two roundings without the permission, one with it, to the bit, on every device.
#[test]
fn contraction_needs_the_permission() -> Result<(), Error> {
    for device in ["interpreter", "cpu"] {
        let done: Result<(), Error> = with_default_device(device, || {
            let (x, y) = (1.0f32 + f32::EPSILON, 1.0f32 - f32::EPSILON);
            let (a, b) = (Tensor::from_slice(&[x; 5], [5]), Tensor::from_slice(&[y; 5], [5]));
            let c = Tensor::from_slice(&[-1f32; 5], [5]);
            let inputs = [Spec::of(&a), Spec::of(&b), Spec::of(&c)];
            let strict = Function::trace(&inputs, |inputs| vec![&inputs[0] * &inputs[1] + &inputs[2]])?;
            let fast = strict.fast_math(&[Permission::Contract])?;
            assert_eq!(strict.call(&[&a, &b, &c])[0].to_vec::<f32>()?, [x * y - 1.0; 5], "{device}");
            let fused = x.mul_add(y, -1.0);
            assert_ne!(fused, x * y - 1.0);
            let found = fast.call(&[&a, &b, &c])[0].to_vec::<f32>()?;
            let fuses = tinyspec_core::execute::device(device)?.target().fused_multiply_add;
            assert_eq!(found, [if fuses { fused } else { x * y - 1.0 }; 5], "{device}");
            Ok(())
        });
        match done {
            Err(error) if device == "cpu" => println!("skipped on the CPU: {error}"),
            other => other?,
        }
    }
    Ok(())
}

/// What the rules leave of a program is what it computes, also where nothing is left of it.
#[test]
fn programs_that_simplify_to_their_inputs() -> Result<(), Error> {
    for device in ["interpreter", "cpu"] {
        let done: Result<(), Error> = with_default_device(device, || {
            let x = Tensor::from_slice(&[1f32, -2.0, 3.0], [3]);
            let same = &x * 1.0;
            assert_eq!(same.to_vec::<f32>()?, [1.0, -2.0, 3.0]);
            let function = Function::trace(&[Spec::of(&x)], |inputs| vec![&inputs[0] * 1.0, &inputs[0] / 1.0])?;
            let run = function.prepare(&[&x])?;
            let mut out = run.outputs()?;
            run.call(&mut out, &[&x])?;
            for out in &out {
                assert_eq!(out.to_vec::<f32>()?, [1.0, -2.0, 3.0]);
            }
            assert_eq!(function.call(&[&x])[1].to_vec::<f32>()?, [1.0, -2.0, 3.0]);
            Ok(())
        });
        match done {
            Err(error) if device == "cpu" => println!("skipped on the CPU: {error}"),
            other => other?,
        }
    }
    Ok(())
}
