//! AMD GPUs, through ROCm's HIP runtime, which loads the objects that are linked here.

use super::driver::{self, Called, Driver, Facts, Handle, Library, Names, Place, Search, Vendor, functions};
use super::{DriverError, Gpu};
use crate::Runtime;
use object::{Object as _, ObjectSymbol as _};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

/// The variable that names the library or its folder.
pub const VARIABLE: &str = "TINYSPEC_HIP";

static FACTS: Facts = Facts {
    search: Search {
        driver: "of HIP",
        variable: VARIABLE,
        names: if cfg!(windows) {
            &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
        } else {
            &["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so"]
        },
        help: "install ROCm's HIP runtime, or name its library by TINYSPEC_HIP; `simt` interprets GPU kernels on any machine",
    },
    names: Names {
        initialise: "hipInit",
        version: "hipRuntimeGetVersion",
        count: "hipGetDeviceCount",
        new_stream: "hipStreamCreateWithFlags",
        destroy_stream: "hipStreamDestroy",
        wait_for_stream: "hipStreamSynchronize",
        allocate: "hipMalloc",
        free: "hipFree",
        memory: "hipMemGetInfo",
        pin: "hipHostMalloc",
        unpin: "hipHostFree",
        upload: "hipMemcpyHtoDAsync",
        download: "hipMemcpyDtoHAsync",
        copy: "hipMemcpyDtoDAsync",
        new_event: "hipEventCreateWithFlags",
        destroy_event: "hipEventDestroy",
        record: "hipEventRecord",
        ask: "hipEventQuery",
        wait_for_event: "hipEventSynchronize",
        between: "hipEventElapsedTime",
        order: "hipStreamWaitEvent",
        unload: "hipModuleUnload",
        function: "hipModuleGetFunction",
        launch: "hipModuleLaunchKernel",
    },
    // Older ones cannot load our objects.
    oldest: 60_000_000,
    show_version: |version| format!("HIP {}.{}", version / 10_000_000, version / 100_000 % 100),
    update: "install ROCm 6.0 or newer",
    no_device: "`rocminfo` lists the GPUs; HIP_VISIBLE_DEVICES may hide them, and the user may lack the group `render`",
    // The driver is shutting down; memory has uncorrectable errors; a kernel accessed an illegal address, timed out,
    // lost its context, failed an assertion, or failed in another way.
    lost: &[4, 214, 700, 702, 709, 710, 719],
};

functions! {
    /// Signatures and names are those of `hip_runtime_api.h`.
    Hip {
        hipGetErrorName(error: c_int) -> *const c_char;
        hipGetErrorString(error: c_int) -> *const c_char;
        hipGetDevicePropertiesR0600(properties: *mut Properties, device: c_int);
        hipSetDevice(device: c_int);
        hipModuleLoadData(module: *mut Handle, image: *const c_void);
        hipMemcpyPeerAsync(to: u64, to_device: c_int, from: u64, from_device: c_int, bytes: usize, stream: Handle);
    }
}

/// `hipDeviceProp_t` as of ROCm 6: the fields used here, with room for the whole structure and more.
#[repr(C, align(16))]
struct Properties([u8; Properties::BYTES]);

impl Properties {
    const BYTES: usize = 4096;
    const NAME: usize = 0;
    const NAME_BYTES: usize = 256;
    /// `gcnArchName`
    const CHIP: usize = 1160;
    const CHIP_BYTES: usize = 256;

    fn text(&self, start: usize, bytes: usize) -> String {
        let text = &self.0[start..start + bytes];
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(bytes);
        String::from_utf8_lossy(&text[..end]).into_owned()
    }
}

/// The markers in the extra arguments of a launch.
mod mark {
    pub const BUFFER_POINTER: usize = 1;
    pub const BUFFER_SIZE: usize = 2;
    pub const END: usize = 3;
}

fn called(function: &'static str, status: c_int) -> Called {
    Called { function, status }
}

impl Vendor for Hip {
    const FACTS: &'static Facts = &FACTS;

    fn find(library: &Library) -> Result<Hip, Vec<&'static str>> {
        Hip::find(library)
    }

    fn words(&self, status: c_int) -> Vec<String> {
        let word = |function: unsafe extern "C" fn(c_int) -> *const c_char| {
            // SAFETY: it returns a static string, or null.
            let text = unsafe { function(status) };
            // SAFETY: as above.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        [self.hipGetErrorName, self.hipGetErrorString].into_iter().filter_map(word).collect()
    }

    fn identify(&self, ordinal: c_int) -> Result<(String, String), Called> {
        let mut properties = Box::new(Properties([0; Properties::BYTES]));
        // SAFETY: the properties have room for more than HIP's.
        let status = unsafe { (self.hipGetDevicePropertiesR0600)(&mut *properties, ordinal) };
        called("hipGetDeviceProperties", status).check()?;
        let text = |start, bytes| properties.text(start, bytes);
        Ok((text(Properties::NAME, Properties::NAME_BYTES), text(Properties::CHIP, Properties::CHIP_BYTES)))
    }

    fn retain(&self, ordinal: c_int) -> Result<Place, Called> {
        Ok(Place { ordinal, context: 0 })
    }

    fn release(&self, _: Place) {}

    fn bind(&self, place: Place) -> Called {
        // SAFETY: the device exists.
        called("hipSetDevice", unsafe { (self.hipSetDevice)(place.ordinal) })
    }

    /// The kernel's name is that of its descriptor, without `.kd`.
    fn entry(&self, code: &[u8]) -> Result<CString, String> {
        let file = object::File::parse(code).map_err(|error| format!("it is not an object: {error}"))?;
        let name = file.symbols().find_map(|symbol| symbol.name().ok()?.strip_suffix(".kd").map(str::to_string));
        CString::new(name.ok_or("it holds no kernel of a GPU")?).map_err(|error| error.to_string())
    }

    fn load(&self, code: &[u8]) -> Result<Handle, (Called, String)> {
        let mut module = ptr::null_mut();
        // SAFETY: the length of an ELF file follows from its header, and `entry` has read this one to its end.
        let status = unsafe { (self.hipModuleLoadData)(&mut module, code.as_ptr().cast()) };
        called("hipModuleLoadData", status).check().map_err(|called| (called, String::new()))?;
        Ok(module)
    }

    /// Copies directly if the devices are peers, else through host memory.
    unsafe fn copy_from(&self, to: (Place, u64), from: (Place, u64), bytes: usize, stream: Handle) -> Called {
        let (ordinal, other) = (to.0.ordinal, from.0.ordinal);
        // SAFETY: as the caller promises.
        let status = unsafe { (self.hipMemcpyPeerAsync)(to.1, ordinal, from.1, other, bytes, stream) };
        called("hipMemcpyPeerAsync", status)
    }

    fn pass(
        &self,
        parameters: &mut [u64],
        launch: impl FnOnce(*mut *mut c_void, *mut *mut c_void) -> Called,
    ) -> Called {
        // The kernel's argument segment has the same layout: every parameter takes 8 bytes.
        let mut bytes = size_of_val(parameters);
        let mut extra: [*mut c_void; 5] = [
            ptr::without_provenance_mut(mark::BUFFER_POINTER),
            parameters.as_mut_ptr().cast(),
            ptr::without_provenance_mut(mark::BUFFER_SIZE),
            ptr::from_mut(&mut bytes).cast(),
            ptr::without_provenance_mut(mark::END),
        ];
        launch(ptr::null_mut(), extra.as_mut_ptr())
    }
}

/// The GPU with this number in HIP, and the runtime that runs objects on it; messages refer to it as `name`.
///
/// ```no_run
/// let (gpu, runtime) = tinyspec_backends::gpu::hip::open("amd:1", 1)?;
/// let memory = runtime.allocate(4096)?;
/// println!("4096 bytes of a {gpu}, at {:?}", memory.address());
/// # Ok::<(), tinyspec_backends::BackendError>(())
/// ```
///
/// # Errors
/// When there is no HIP runtime, it is older than ROCm 6.0, there is no such GPU, or no code can be generated for it.
pub fn open(name: &str, ordinal: usize) -> Result<(Gpu, Arc<dyn Runtime>), DriverError> {
    static DRIVER: OnceLock<Result<Driver<Hip>, DriverError>> = OnceLock::new();
    driver::open(&DRIVER, name, ordinal)
}
