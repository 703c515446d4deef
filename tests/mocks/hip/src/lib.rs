//! A `libamdhip64` whose GPU is simulated: kernels are code objects, executed instruction by instruction. `MOCK_HIP`, read by
//! `hipInit`, says what fails; see [`tinyspec_mock_machine::Settings`].

mod driver;
mod vendor;
