//! The drivers of GPUs as `cuda` and `amd` use them, with a mock of each vendor's library and a simulated GPU behind it: each
//! test in a process of its own, as a process has one driver of a vendor.

#![cfg(target_os = "linux")]

mod assembler;
mod behaviour;
mod kernel;
mod opening;
mod processes;
#[path = "../../recorder.rs"]
mod recorder;
mod vendor;
