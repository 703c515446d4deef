//! What GPUs are tried with, on simulated ones.

#[allow(dead_code)]
#[path = "../../conformance/rendered.rs"]
mod rendered;
#[path = "../../simulators.rs"]
mod simulators;

use simulators::{SIMULATED, register};
use std::sync::Arc;
use tinyspec::DType;
use tinyspec_gpu_check::nothing::Nothing;
use tinyspec_gpu_check::programs::{Size, agree, decode, digits, encoder_layer, residual_block, shipped_digits};
use tinyspec_gpu_check::rates::{ROWS, SMALL};
use tinyspec_gpu_check::{Outcome, numbers};

#[test]
fn a_layer_a_block_and_decoding_agree_with_the_cpu() -> Outcome {
    register()?;
    SIMULATED.into_iter().try_for_each(|device| agree(device, Size::SMALL, 20))
}

#[test]
fn digits_are_learned_as_on_the_cpu() -> Outcome {
    register()?;
    let (here, there) = (digits("cpu", &shipped_digits(), 4)?, digits(SIMULATED[0], &shipped_digits(), 4)?);
    assert!(here > 85.0 && (here - there).abs() <= 1.0, "{here} % on the CPU, {there} % on {}", SIMULATED[0]);
    Ok(())
}

/// Of each dtype's conversions some; all with `TINYSPEC_SHAPES=all`.
#[test]
fn small_numbers_are_converted_exactly() -> Outcome {
    register()?;
    let takes_all = std::env::var("TINYSPEC_SHAPES").is_ok_and(|text| text == "all");
    let some = |from: DType, to: DType| takes_all || from.size() == 1 || to.is_float() || to.size() == 4;
    numbers::conversions(SIMULATED[0], some)?;
    numbers::conversions(SIMULATED[1], |from, to| takes_all || (from.is_float() && to.is_float()))
}

#[test]
fn random_bits_are_the_published_ones() -> Outcome {
    register()?;
    SIMULATED.into_iter().try_for_each(numbers::threefry)
}

/// Programs in their real sizes, of which only the code is made: no stack, no spills, no access of no memory.
#[test]
fn code_of_programs_has_no_stack() -> Outcome {
    for chip in ["sm_80", "gfx942", "gfx1100"] {
        let name = format!("code/{chip}");
        if let Err(error) = rendered::device(&name, chip, Arc::new(Nothing)) {
            println!("skipped: {error}");
            return Ok(());
        }
        encoder_layer(&name, Size::REAL).realize()?;
        residual_block(&name, Size::REAL).realize()?;
        decode(&name, 3)?;
        digits(&name, &shipped_digits(), 1)?;
        ROWS.iter().try_for_each(|row| row.run(&name, 8 * SMALL))?;
    }
    Ok(())
}
