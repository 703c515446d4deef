//! Random programs give the same on every device and after every stage of the lowering, and what the tensor interpreter
//! gives, forward and gradient.
//!
//! `TINYSPEC_PROGRAMS=<number>` runs more of them.

mod check;
#[path = "../launch.rs"]
#[allow(dead_code)]
mod launch;
mod program;
mod stages;

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
