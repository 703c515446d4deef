//! The text parser: any text gives an error or a sound graph.
#![no_main]

#[path = "../../crates/tinyspec-ir/tests/all/any_input/property.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|text: &str| property::any_text(text));
