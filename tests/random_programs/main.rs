//! Random programs give the same on every device, and what the tensor interpreter gives, forward and gradient.
//!
//! `TINYSPEC_PROGRAMS=<number>` runs more of them.

mod check;
mod program;

use check::{check, describe};
use program::{Family, Program};
use proptest::prelude::*;

fn any_program(family: Family) -> impl Strategy<Value = Program> {
    (prop::collection::vec(any::<[u16; 6]>(), 1..4), prop::collection::vec(any::<[u16; 6]>(), 1..10))
        .prop_map(move |(inputs, steps)| Program { family, inputs, steps })
}

fn config() -> ProptestConfig {
    let cases = std::env::var("TINYSPEC_PROGRAMS").ok().and_then(|number| number.parse().ok()).unwrap_or(64);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

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
