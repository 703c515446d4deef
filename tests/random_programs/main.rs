//! Random programs give the same on every device and after every stage of the lowering, and what the tensor interpreter
//! gives, forward and gradient.
//!
//! `TINYSPEC_PROGRAMS=<number>` runs more of them. The long mode goes on after a failure, reduces each program that fails,
//! and prints it as a case for this file:
//!
//! ```text
//! TINYSPEC_LONG=200000 [TINYSPEC_SEED=7] cargo nextest run --release -p tinyspec-tests --test random_programs -E 'test(long_mode)'
//! ```
//!
//! With `TINYSPEC_FIRST=<number>` it begins there, for a failure to be seen again.
//!
//! `TINYSPEC_DEVICES="cuda cuda:0,cpu"` tries these alone, in either mode: a device, and a tuple of two.

mod check;
#[path = "../launch.rs"]
#[allow(dead_code)]
mod launch;
mod long;
mod program;
mod reduce;
#[path = "../simulators.rs"]
mod simulators;
mod stages;
mod states;

use check::{check, describe, guarded};
use program::{Family, Program};
use proptest::prelude::*;

fn any_program(family: Family) -> impl Strategy<Value = Program> {
    (prop::collection::vec(any::<[u16; 6]>(), 1..4), prop::collection::vec(any::<[u16; 6]>(), 1..10))
        .prop_map(move |(inputs, steps)| Program { family, inputs, steps })
}

/// So many programs, unless the environment asks for another number.
fn programs(usually: u32) -> ProptestConfig {
    let cases = std::env::var("TINYSPEC_PROGRAMS").ok().and_then(|number| number.parse().ok()).unwrap_or(usually);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(programs(64))]

    #[test]
    fn exact_programs_agree(program in any_program(Family::Exact)) {
        check(&program).map_err(|error| TestCaseError::fail(format!("{error}\n{}", describe(&program))))?;
    }

    #[test]
    fn programs_with_nan_and_infinities_agree(program in any_program(Family::Special)) {
        check(&program).map_err(|error| TestCaseError::fail(format!("{error}\n{}", describe(&program))))?;
    }

    #[test]
    fn smooth_programs_agree(program in any_program(Family::Smooth)) {
        check(&program).map_err(|error| TestCaseError::fail(format!("{error}\n{}", describe(&program))))?;
    }
}

proptest! {
    #![proptest_config(programs(48))]

    #[test]
    fn reads_change_no_state(
        size in prop::sample::select(vec![3usize, 17, 520]),
        steps in prop::collection::vec((any::<states::Step>(), prop::option::weighted(0.3, any::<u16>())), 1..24),
    ) {
        states::check(size, &steps).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(programs(20))]

    #[test]
    fn every_stage_agrees_on_exact_programs(program in any_program(Family::Exact)) {
        guarded(|| stages::check(&program))
            .map_err(|error| TestCaseError::fail(format!("{error}\n{}", describe(&program))))?;
    }

    #[test]
    fn every_stage_agrees_on_nan_and_infinities(program in any_program(Family::Special)) {
        guarded(|| stages::check(&program))
            .map_err(|error| TestCaseError::fail(format!("{error}\n{}", describe(&program))))?;
    }

    #[test]
    fn every_stage_agrees_on_smooth_programs(program in any_program(Family::Smooth)) {
        guarded(|| stages::check(&program))
            .map_err(|error| TestCaseError::fail(format!("{error}\n{}", describe(&program))))?;
    }
}

proptest! {
    #![proptest_config(programs(8))]

    #[test]
    fn attention_used_again_agrees(program in any_program(Family::Attention)) {
        check(&program).map_err(|error| TestCaseError::fail(format!("{error}\n{}", describe(&program))))?;
    }
}

/// A program that failed once.
fn agrees(program: &Program, check: impl Fn(&Program) -> Result<(), String>) {
    guarded(|| check(program)).unwrap_or_else(|error| panic!("{error}\n{}", describe(program)));
}

/// A softmax of a softmax and its gradient in one kernel: each of two loops wanted to keep values for the other.
#[test]
fn loops_keep_values_one_way() {
    let program = Program {
        family: Family::Smooth,
        inputs: vec![[0, 36658, 22603, 14939, 0, 0], [0; 6], [0, 0, 0, 0, 8, 35247]],
        steps: vec![
            [54248, 48263, 3719, 27871, 45902, 50873],
            [11667, 53711, 60874, 45767, 37349, 40513],
            [26693, 63634, 14435, 48064, 49284, 30376],
            [9954, 15492, 30048, 19843, 51536, 26483],
            [21263, 44921, 46642, 59258, 47825, 34552],
            [28124, 23007, 43552, 24273, 38821, 51552],
            [16121, 53193, 18245, 2024, 15600, 5597],
        ],
    };
    agrees(&program, check);
}

/// Equal terms that the threads of a workgroup add up, for several sums: the threads of a sum had the numbers of the sums.
#[test]
fn sums_of_equal_terms_have_threads_of_their_own() {
    let program = Program {
        family: Family::Exact,
        inputs: vec![[0, 14, 56, 26, 0, 0], [0, 57752, 2, 4, 0, 0]],
        steps: vec![[43475, 0, 1, 0, 0, 0]],
    };
    agrees(&program, check);
}

/// What is read outside of an axis is 0, whatever the values inside are known to be.
#[test]
fn a_read_outside_of_known_values_is_zero() {
    let program = Program {
        family: Family::Exact,
        inputs: vec![[1, 1, 0, 0, 0, 0]],
        steps: vec![[54692, 0, 0, 6, 0, 1], [0; 6], [38, 1, 0, 0, 0, 1], [24872, 0, 0, 0, 0, 0]],
    };
    agrees(&program, check);
}

/// Partial sums in LOCAL memory are written by a loop nested in another loop over the same Range.
#[test]
fn a_loop_in_a_loop_over_the_same_range() {
    let program = Program {
        family: Family::Smooth,
        inputs: vec![[0, 5744, 44, 45, 0, 0]],
        steps: vec![
            [15206, 18439, 57834, 58500, 35335, 64897],
            [25087, 17096, 43644, 5631, 54959, 33972],
            [24668, 56401, 3259, 61010, 1421, 16824],
        ],
    };
    agrees(&program, stages::check);
}

/// Also on several devices, a maximum that was read is recomputed together with the terms that its gradient compares it with.
#[test]
fn a_maximum_that_was_read_equals_one_of_its_terms() {
    let program = Program {
        family: Family::Smooth,
        inputs: vec![[0, 2, 18, 0, 0, 0]],
        steps: vec![[688, 0, 6, 0, 0, 1], [0; 6], [0; 6], [7580, 2, 1985, 0, 0, 0]],
    };
    agrees(&program, check);
}
