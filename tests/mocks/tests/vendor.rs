//! What differs between the vendors.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use tinyspec::backends::gpu::{DriverError, cuda, hip};
use tinyspec::backends::{Gpu, Runtime};
use tinyspec_mock_machine::Held;

/// What opening a device gives.
type Opened = Result<(Gpu, Arc<dyn Runtime>), DriverError>;

/// A vendor, its library, and what that says.
pub struct Vendor {
    pub device: &'static str,
    pub second: &'static str,
    pub open: fn(&str, usize) -> Opened,
    /// The mock's file.
    pub mock: &'static str,
    /// What the vendor calls it, and what it is called in an error.
    pub library: &'static str,
    pub unfound: &'static str,
    /// The variable that names it, and that of the mock.
    pub variable: &'static str,
    pub settings: &'static str,
    /// The first functions that are looked for, and another, for which some library may have another name of that length.
    pub first: &'static str,
    pub event: &'static CStr,
    pub launch: &'static str,
    pub chip: &'static str,
    pub other_chip: &'static str,
    pub wrong_chip: &'static str,
    pub no_memory: &'static str,
    pub no_device: &'static str,
    pub address: &'static str,
    pub broken: &'static str,
    pub resources: &'static str,
    /// Versions, as they are shown.
    pub versions: [&'static str; 2],
    pub update: &'static str,
}

pub static CUDA: Vendor = Vendor {
    device: "cuda",
    second: "cuda:1",
    open: cuda::open,
    mock: "libmock_cuda.so",
    library: "libcuda.so.1",
    unfound: "there is no driver for CUDA",
    variable: cuda::VARIABLE,
    settings: "MOCK_CUDA",
    first: "cuInit, cuDriverGetVersion",
    event: c"cuEventQuery",
    launch: "cuLaunchKernel",
    chip: "sm_80",
    other_chip: "sm_90a",
    wrong_chip: "sm_90a is not sm_80",
    no_memory: "CUDA_ERROR_OUT_OF_MEMORY",
    no_device: "CUDA_ERROR_NO_DEVICE",
    address: "CUDA_ERROR_ILLEGAL_ADDRESS",
    broken: "CUDA_ERROR_ECC_UNCORRECTABLE",
    resources: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, too many resources (701)",
    versions: ["CUDA 11.8", "CUDA 12.0"],
    update: "install a newer driver",
};

pub static AMD: Vendor = Vendor {
    device: "amd",
    second: "amd:1",
    open: hip::open,
    mock: "libmock_hip.so",
    library: "libamdhip64.so",
    unfound: "there is no driver of HIP",
    variable: hip::VARIABLE,
    settings: "MOCK_HIP",
    first: "hipInit, hipRuntimeGetVersion",
    event: c"hipEventQuery",
    launch: "hipModuleLaunchKernel",
    chip: "gfx942",
    other_chip: "gfx1100",
    wrong_chip: "hipErrorNoBinaryForGpu",
    no_memory: "hipErrorOutOfMemory",
    no_device: "hipErrorNoDevice",
    address: "hipErrorIllegalAddress",
    broken: "hipErrorECCNotCorrectable",
    resources: "hipErrorLaunchOutOfResources, too many resources requested for launch (701)",
    versions: ["HIP 5.7", "HIP 6.0"],
    update: "install ROCm 6.0 or newer",
};

/// The variable that tells a process which vendor it tests.
pub const TESTED: &str = "TESTED_DRIVER";

/// The vendor that this process tests.
pub fn vendor() -> &'static Vendor {
    let named = std::env::var(TESTED).unwrap_or_default();
    [&CUDA, &AMD].into_iter().find(|vendor| vendor.device == named).expect("a vendor to test")
}

impl Vendor {
    /// The mock's file, which cargo has put beside the tests.
    pub fn mock(&self) -> PathBuf {
        std::env::current_exe().expect("a name").with_file_name(self.mock)
    }

    /// A folder in which the mock is called what the vendor's library is.
    pub fn folder(&self) -> PathBuf {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(self.device);
        std::fs::create_dir_all(&folder).expect("a folder for tests");
        // Another test may be as far.
        let _ = std::os::unix::fs::symlink(self.mock(), folder.join(self.library));
        folder
    }
}

/// What the mock has given and not got back.
pub fn held() -> Held {
    let mut held = Held::default();
    // SAFETY: this file is open already, whatever it was called; the function is the mock's own.
    unsafe {
        let library = libloading::Library::new(vendor().mock()).expect("it is open");
        let function = library.get::<unsafe extern "C" fn(*mut Held)>(c"mock_held".to_bytes_with_nul());
        function.expect("it is the mock")(&mut held);
    }
    held
}
