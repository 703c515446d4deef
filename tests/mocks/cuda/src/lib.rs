//! A `libcuda` whose GPU is simulated: kernels are PTX text, executed instruction by instruction. `MOCK_CUDA`, read by
//! `cuInit`, says what fails; see [`tinyspec_mock_machine::Settings`].
//!
//! Functions are declared with the types of the crate `cudarc`, which bindgen made from NVIDIA's header, so that a
//! wrong signature shows. The backend declares the twenty functions that it uses itself, which spares users that
//! dependency.

mod driver;
mod vendor;
