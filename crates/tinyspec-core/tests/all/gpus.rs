//! GPUs as devices: code for all of them, made on a machine that has none.

use tinyspec_backends::{BackendError, Gpu};
use tinyspec_core::execute::{device, with_default_device};
use tinyspec_core::{Error, Program, Tensor};

fn rows() -> Tensor {
    let numbers = |seed: i64| (0..48 * 48).map(|k| (k * seed % 7) as f32 - 3.0).collect::<Vec<f32>>();
    let factor = |seed: i64| Tensor::from_vec(numbers(seed), [48, 48]);
    factor(3).matmul(factor(5)).relu().sum(1, false)
}

/// What each GPU's code says that it is for: of PTX the line, of an object the chip's number in the ELF header.
fn is_for(code: &[u8], chip: &str) -> bool {
    /// AMD's numbers, from the LLVM documentation of the target (`EF_AMDGPU_MACH`).
    const NUMBERS: [(&str, u8); 11] = [
        ("gfx90a", 0x3f),
        ("gfx942", 0x4c),
        ("gfx950", 0x4f),
        ("gfx1100", 0x41),
        ("gfx1101", 0x46),
        ("gfx1102", 0x47),
        ("gfx1103", 0x44),
        ("gfx1150", 0x43),
        ("gfx1151", 0x4a),
        ("gfx1200", 0x48),
        ("gfx1201", 0x4e),
    ];
    const FLAGS: usize = 48;
    match NUMBERS.iter().find(|(name, _)| *name == chip) {
        Some((_, number)) => code.starts_with(b"\x7fELF") && code[FLAGS] == *number,
        None => {
            String::from_utf8_lossy(code).contains(&format!("\n.target {chip}\n")) && is_as_old_as_can_be(code, chip)
        }
    }
}

/// The first version of PTX that has the chip: older drivers read it, too.
fn is_as_old_as_can_be(code: &[u8], chip: &str) -> bool {
    const VERSIONS: [(&str, &str); 8] = [
        ("sm_75", "6.3"),
        ("sm_80", "7.0"),
        ("sm_86", "7.1"),
        ("sm_89", "7.8"),
        ("sm_90", "7.8"),
        ("sm_90a", "8.0"),
        ("sm_100", "8.6"),
        ("sm_120", "8.7"),
    ];
    let version = VERSIONS.iter().find(|(name, _)| *name == chip).map(|(_, version)| *version);
    version.is_some_and(|version| String::from_utf8_lossy(code).contains(&format!(".version {version}\n")))
}

#[test]
fn gpus_are_devices_that_render_and_run_nothing() -> Result<(), Error> {
    let expected = with_default_device::<_, Error>("interpreter", || rows().to_vec::<f32>())?;
    for chip in Gpu::names() {
        with_default_device::<_, Error>(chip, || {
            let programs = Program::of(&[&rows()])?;
            assert!(!programs.is_empty());
            assert!(programs.iter().all(|program| program.binary().is_some_and(|code| is_for(code, chip))), "{chip}");
            match rows().to_vec::<f32>() {
                Err(Error::Backend(BackendError::CompileOnly { name })) => assert_eq!(name, chip),
                outcome => panic!("{chip}: {outcome:?}"),
            }
            Ok(())
        })?;
        let interpreted = format!("simt/{chip}");
        assert_eq!(with_default_device::<_, Error>(&interpreted, || rows().to_vec::<f32>())?, expected, "{chip}");
    }
    Ok(())
}

#[test]
fn only_known_gpus_are_devices() {
    let wrong = [
        ("sm_81", "`sm_81`"),
        ("simt/gfx906", "`gfx906`"),
        ("simt/znver4", "znver4"),
        ("interpreter/sm_80", "sm_80"),
        ("sm_80:x", "sm_80:x"),
    ];
    for (name, named) in wrong {
        let error = device(name).expect_err("no such GPU").to_string();
        assert!(error.contains(named), "{error}");
    }
    assert!(device("sm_80:1").is_ok());
}
