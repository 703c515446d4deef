//! The decoders: any bytes give an error or a sound graph.
#![no_main]

#[path = "../../crates/tinyspec-ir/tests/all/any_input/property.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| property::any_bytes(bytes));
