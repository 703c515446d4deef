//! What GPUs are tried with, on simulated ones.

#[allow(dead_code)]
#[path = "../../conformance/rendered.rs"]
mod rendered;
#[path = "../../simulators.rs"]
mod simulators;

use simulators::{SIMULATED, register};
use std::sync::Arc;
use tinyspec_gpu_check::programs::{Size, agree, decode, digits, encoder_layer, residual_block, shipped_digits};
use tinyspec_gpu_check::rates::{ROWS, SMALL};
use tinyspec_gpu_check::recorder::Recorder;
use tinyspec_gpu_check::{Outcome, numbers};

#[test]
fn a_layer_a_block_and_decoding_agree_with_the_cpu() -> Outcome {
    register()?;
    SIMULATED.into_iter().try_for_each(|device| agree(device, Size::SMALL, 20))
}

/// One GPU of each vendor.
const ONE_EACH: [&str; 2] = ["ptxsim:sm_80", "amdsim:gfx942"];

#[test]
fn digits_are_learned_as_on_the_cpu() -> Outcome {
    register()?;
    let here = digits("cpu", &shipped_digits(), 4)?;
    for device in ONE_EACH {
        let there = digits(device, &shipped_digits(), 4)?;
        assert!(here > 85.0 && (here - there).abs() <= 1.0, "{here} % on the CPU, {there} % on {device}");
    }
    Ok(())
}

/// What is claimed of AMD's GPUs is so on simulated ones.
#[test]
fn facts_are_so() -> Outcome {
    register()?;
    for name in SIMULATED.into_iter().filter(|name| name.starts_with("amdsim")) {
        let device = tinyspec::device(name)?;
        for fact in tinyspec_gpu_check::facts::amd::FACTS {
            (fact.check)(&device).map_err(|error| format!("{name}: {}: {error}", fact.claim))?;
        }
    }
    Ok(())
}

/// Most conversions on one GPU of each vendor, and on the others those that their own instructions make, between floats; with
/// `TINYSPEC_SHAPES=all` all of them everywhere.
#[test]
fn small_numbers_are_converted_exactly() -> Outcome {
    register()?;
    let takes_all = std::env::var("TINYSPEC_SHAPES").is_ok_and(|text| text == "all");
    for device in SIMULATED {
        let is_whole = ONE_EACH.contains(&device);
        numbers::conversions(device, |from, to| {
            let some = from.size() == 1 || to.is_float() || to.size() == 4;
            takes_all || is_whole && some || from.is_float() && to.is_float()
        })?;
    }
    Ok(())
}

#[test]
fn extremes_of_whole_numbers_are_right() -> Outcome {
    register()?;
    SIMULATED.into_iter().try_for_each(numbers::extremes)
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
        if let Err(error) = rendered::device(&name, chip, Arc::new(Recorder::default())) {
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
