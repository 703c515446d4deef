//! Each test of a vendor, in a process of its own.

use crate::vendor::{AMD, CUDA, TESTED, Vendor};
use std::process::{Command, Output};

/// A process that runs the ignored test of this name, for a vendor.
pub fn command(vendor: &Vendor, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a name"));
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(TESTED, vendor.device).env_remove(vendor.variable);
    // The mock runs no machine code of NVIDIA's.
    command.env("TINYSPEC_PTXAS", "off");
    command
}

/// It has to pass.
pub fn passes(name: &str, output: Output) {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && out.contains("1 passed"), "{name}: {}\n{out}\n{err}", output.status);
}

/// Runs a test with the mock where the system looks for the vendor's library.
fn apart(vendor: &Vendor, name: &str, settings: &str) {
    let mut command = command(vendor, name);
    let output = command.env(vendor.settings, settings).env("LD_LIBRARY_PATH", vendor.folder()).output();
    passes(name, output.expect("a process"));
}

/// Test, the name of what runs, settings: those of all vendors, or of each.
macro_rules! processes {
    ($($name:ident $file:ident::$child:ident $cuda:literal $($amd:literal)?;)*) => {
        mod cuda {
            use super::*;
            $(#[test]
            fn $name() {
                apart(&CUDA, concat!(stringify!($file), "::", stringify!($child)), $cuda);
            })*
        }

        mod amd {
            use super::*;
            $(#[test]
            fn $name() {
                let settings = [$cuda, $($amd)?];
                apart(&AMD, concat!(stringify!($file), "::", stringify!($child)), settings.last().unwrap_or(&""));
            })*
        }
    };
}

processes! {
    programs_run behaviour::programs "";
    programs_run_on_another_chip behaviour::programs "chip=sm_90" "chip=gfx1100";
    devices_exchange_tensors behaviour::exchange "";
    a_run_is_enqueued_and_reading_waits behaviour::asynchronous "";
    much_work_is_enqueued behaviour::many "";
    large_copies_go_through_pinned_memory behaviour::large "";
    copies_do_without_pinned_memory behaviour::large "pinned=0";
    memory_is_used_again behaviour::reuse "";
    what_is_let_go_is_used_only_later behaviour::order "";
    the_cpu_and_a_gpu_share_a_tensor behaviour::tuple "";
    several_threads_use_a_device behaviour::threads "";
    what_is_dropped_is_given_back behaviour::give_back "";
    work_is_timed_by_events behaviour::timed "";
    nothing_leaks_without_memory behaviour::leak "memory=80000000";
    nothing_leaks_after_a_fault behaviour::leak "fault=2";
    nothing_leaks_after_a_refused_launch behaviour::leak "refused=2";
    nothing_leaks_of_a_lost_device behaviour::leak "lost=2";
    nothing_leaks_after_a_result_that_nobody_knows behaviour::leak "unknown=2";
    foreign_code_is_refused behaviour::foreign "";
    memory_runs_out behaviour::memory "memory=1000000";
    a_fault_names_the_kernel behaviour::fault "fault=0";
    a_fault_names_a_kernel_written_by_hand behaviour::fault_by_hand "fault=0";
    a_fault_among_several_kernels behaviour::fault_among "fault=1";
    a_refused_launch_harms_nobody behaviour::refused "refused=1";
    a_lost_device behaviour::lost "lost=1";
    a_result_that_nobody_knows behaviour::unknown "unknown=1";
    an_old_driver opening::old "version=11080" "version=50700000";
    no_device opening::none "devices=0";
    too_few_devices opening::few "devices=1";
    a_chip_without_code opening::chip "chip=sm_70" "chip=gfx803";
}

/// Objects of AMD's GPUs are not assembled by the driver.
#[test]
fn a_kernel_with_a_stack_gets_more_registers() {
    apart(&CUDA, "behaviour::roomy", "stack=8");
}

/// Objects of AMD's GPUs have no version of their own.
#[test]
fn newer_code_says_that_the_driver_is_old() {
    apart(&CUDA, "behaviour::newer", "format=69");
}
