//! A `libcuda` whose GPU is simulated: kernels are PTX text, executed instruction by instruction.
//!
//! It is stricter than the driver where that helps: streams do nothing until somebody waits for them, handles are never used
//! again, and what a context must be current for refuses without one. `MOCK_CUDA`, read by `cuInit`, says what fails; see
//! [`Settings`].

mod driver;
mod machine;
mod settings;

pub use machine::Held;
pub use settings::Settings;
