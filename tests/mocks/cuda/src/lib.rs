//! A `libcuda` whose GPU is simulated: kernels are PTX text, executed instruction by instruction. `MOCK_CUDA`, read by
//! `cuInit`, says what fails; see [`tinyspec_mock_machine::Settings`].

mod driver;
mod vendor;
