//! NVIDIA GPUs, through CUDA's driver; nothing else need be installed. The driver assembles PTX; cubins from
//! [`super::ptxas`] are loaded as they are.

use super::driver::{self, Called, Driver, Facts, Handle, Library, Names, Place, Search, Vendor, functions};
use super::{DriverError, Gpu};
use crate::Runtime;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolFlags, SymbolKind};
use smallvec::SmallVec;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

/// The variable that names the library or its folder.
pub const VARIABLE: &str = "TINYSPEC_CUDA";

const UPDATE: &str = "install a newer driver of NVIDIA: CUDA 12.0 came with 525";

const NEWER_PTX: &str =
    "install a newer driver of NVIDIA: this one does not know the version of PTX that the kernel needs";

static FACTS: Facts = Facts {
    search: Search {
        driver: "for CUDA",
        variable: VARIABLE,
        names: if cfg!(windows) {
            &["nvcuda.dll"]
        } else {
            &["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"]
        },
        help: "install NVIDIA's driver, or name its library by TINYSPEC_CUDA; `simt` interprets GPU kernels on any machine",
    },
    names: Names {
        initialise: "cuInit",
        version: "cuDriverGetVersion",
        count: "cuDeviceGetCount",
        new_stream: "cuStreamCreate",
        destroy_stream: "cuStreamDestroy_v2",
        wait_for_stream: "cuStreamSynchronize",
        allocate: "cuMemAlloc_v2",
        free: "cuMemFree_v2",
        memory: "cuMemGetInfo_v2",
        pin: "cuMemHostAlloc",
        unpin: "cuMemFreeHost",
        upload: "cuMemcpyHtoDAsync_v2",
        download: "cuMemcpyDtoHAsync_v2",
        copy: "cuMemcpyDtoDAsync_v2",
        new_event: "cuEventCreate",
        destroy_event: "cuEventDestroy_v2",
        record: "cuEventRecord",
        ask: "cuEventQuery",
        wait_for_event: "cuEventSynchronize",
        // The second version is new in 12.8.
        between: "cuEventElapsedTime",
        order: "cuStreamWaitEvent",
        unload: "cuModuleUnload",
        function: "cuModuleGetFunction",
        launch: "cuLaunchKernel",
    },
    oldest: 12_000,
    show_version: |version| format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
    update: UPDATE,
    no_device: "`nvidia-smi` lists the GPUs; CUDA_VISIBLE_DEVICES may hide them, and a container has to be given them",
    // After these errors the context, and for most of them the process, is unusable: the driver is shutting down, the
    // device is unavailable, memory or a link has uncorrectable errors, or a fault was contained; a kernel accessed an
    // illegal address, timed out, lost its context, failed an assertion, had an invalid stack, instruction, alignment,
    // address space or program counter, or failed in some other way.
    lost: &[4, 46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719],
};

functions! {
    /// Signatures and names are those of `cuda.h`, in which a macro gives many names the suffix `_v2`.
    Cuda {
        cuGetErrorName(error: c_int, name: *mut *const c_char);
        cuGetErrorString(error: c_int, text: *mut *const c_char);
        cuDeviceGet(device: *mut c_int, ordinal: c_int);
        cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
        cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
        cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
        cuDevicePrimaryCtxRelease_v2(device: c_int);
        cuCtxSetCurrent(context: Handle);
        cuModuleLoadDataEx(
            module: *mut Handle,
            image: *const c_void,
            count: c_uint,
            options: *mut c_int,
            values: *mut *mut c_void,
        );
        cuModuleUnload(module: Handle);
        cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
        cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Handle);
        cuMemcpyPeerAsync(
            to: u64,
            to_context: Handle,
            from: u64,
            from_context: Handle,
            bytes: usize,
            stream: Handle,
        );
    }
}

/// Values of `CUresult`, `CUdevice_attribute`, `CUfunction_attribute` and `CUjit_option`.
mod number {
    use std::ffi::c_int;

    pub const UNSUPPORTED_PTX_VERSION: c_int = 222;

    pub const CAPABILITY_MAJOR: c_int = 75;
    pub const CAPABILITY_MINOR: c_int = 76;

    pub const LOCAL_SIZE_BYTES: c_int = 3;

    pub const ERROR_LOG_BUFFER: c_int = 5;
    pub const ERROR_LOG_BUFFER_BYTES: c_int = 6;
}

fn called(function: &'static str, status: c_int) -> Called {
    Called { function, status }
}

impl Vendor for Cuda {
    const FACTS: &'static Facts = &FACTS;

    fn find(library: &Library) -> Result<Cuda, Vec<&'static str>> {
        Cuda::find(library)
    }

    /// `CUDA_ERROR_OUT_OF_MEMORY, out of memory`
    fn words(&self, status: c_int) -> Vec<String> {
        let word = |function: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text = ptr::null();
            // SAFETY: it writes the address of a static string, or none.
            unsafe {
                let result = function(status, &mut text);
                (result == 0 && !text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        [self.cuGetErrorName, self.cuGetErrorString].into_iter().filter_map(word).collect()
    }

    fn identify(&self, ordinal: c_int) -> Result<(String, String), Called> {
        let (mut device, mut capability, mut product) = (0, [0; 2], [0; 256]);
        let length = product.len() as c_int - 1;
        // SAFETY: all of these write to local variables, and at most `length` bytes of the name.
        unsafe {
            called("cuDeviceGet", (self.cuDeviceGet)(&mut device, ordinal)).check()?;
            called("cuDeviceGetName", (self.cuDeviceGetName)(product.as_mut_ptr(), length, device)).check()?;
            for (value, attribute) in capability.iter_mut().zip([number::CAPABILITY_MAJOR, number::CAPABILITY_MINOR]) {
                let status = (self.cuDeviceGetAttribute)(value, attribute, device);
                called("cuDeviceGetAttribute", status).check()?;
            }
        }
        // SAFETY: the last byte is zero, since it was not passed to the driver.
        let product = unsafe { CStr::from_ptr(product.as_ptr()) }.to_string_lossy().into_owned();
        let chip = format!("sm_{}{}", capability[0], capability[1]);
        // Chips whose names end with `a` have instructions that others lack.
        let own = format!("{chip}a");
        Ok((product, if Gpu::named(&own).is_ok() { own } else { chip }))
    }

    /// The primary context, which all libraries of a process share.
    fn retain(&self, ordinal: c_int) -> Result<Place, Called> {
        let (mut device, mut context) = (0, ptr::null_mut());
        // SAFETY: both write to local variables.
        unsafe {
            called("cuDeviceGet", (self.cuDeviceGet)(&mut device, ordinal)).check()?;
            called("cuDevicePrimaryCtxRetain", (self.cuDevicePrimaryCtxRetain)(&mut context, device)).check()?;
        }
        Ok(Place { ordinal: device, context: context as usize })
    }

    fn release(&self, place: Place) {
        // SAFETY: it was retained.
        unsafe { (self.cuDevicePrimaryCtxRelease_v2)(place.ordinal) };
    }

    fn bind(&self, place: Place) -> Called {
        // SAFETY: the context is retained.
        called("cuCtxSetCurrent", unsafe { (self.cuCtxSetCurrent)(place.context as Handle) })
    }

    fn entry(&self, code: &[u8]) -> Result<CString, String> {
        let entry = match is_cubin(code) {
            true => entry_of_cubin(code)?,
            false => entry(text(code)).ok_or("it is not PTX with a kernel")?.to_string(),
        };
        CString::new(entry).map_err(|error| error.to_string())
    }

    /// The driver's assembler may spill registers unnecessarily, too; see [`super::ptxas::roomy`].
    fn load(&self, code: &[u8]) -> Result<Handle, (Called, String)> {
        if is_cubin(code) {
            // A cubin contains its own length.
            return self.module(code);
        }
        let terminated = |text: &[u8]| CString::new(text).unwrap_or_default().into_bytes_with_nul();
        let text = text(code);
        let first = self.module(&terminated(text))?;
        if !self.has_stack(first, text) {
            return Ok(first);
        }
        let roomy = super::ptxas::roomy(&String::from_utf8_lossy(text));
        let Ok(second) = self.module(&terminated(roomy.as_bytes())) else { return Ok(first) };
        // SAFETY: no kernel of it is in use.
        unsafe { (self.cuModuleUnload)(first) };
        Ok(second)
    }

    /// Copies directly if the devices are peers, else through the driver's own memory.
    unsafe fn copy_from(&self, to: (Place, u64), from: (Place, u64), bytes: usize, stream: Handle) -> Called {
        let context = |place: Place| place.context as Handle;
        // SAFETY: as the caller promises.
        let status = unsafe { (self.cuMemcpyPeerAsync)(to.1, context(to.0), from.1, context(from.0), bytes, stream) };
        called("cuMemcpyPeerAsync", status)
    }

    fn pass(
        &self,
        parameters: &mut [u64],
        launch: impl FnOnce(*mut *mut c_void, *mut *mut c_void) -> Called,
    ) -> Called {
        let mut pointers: SmallVec<[*mut c_void; 24]> =
            parameters.iter_mut().map(|parameter| ptr::from_mut(parameter).cast()).collect();
        launch(pointers.as_mut_ptr(), ptr::null_mut())
    }
}

impl Cuda {
    /// Loads a cubin, or text that ends with a zero.
    fn module(&self, image: &[u8]) -> Result<Handle, (Called, String)> {
        let mut log = vec![0u8; 8192];
        let mut options = [number::ERROR_LOG_BUFFER, number::ERROR_LOG_BUFFER_BYTES];
        // The length is passed in place of a pointer; the last byte stays zero.
        let mut values = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len() - 1)];
        let mut module = ptr::null_mut();
        // SAFETY: as said above, and `entry` has checked that a cubin contains everything that its headers refer to;
        // there are as many options as values, and the log has the length that is passed.
        let status = unsafe {
            (self.cuModuleLoadDataEx)(
                &mut module,
                image.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        called("cuModuleLoadDataEx", status).check().map_err(|called| {
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
            let help = match status {
                number::UNSUPPORTED_PTX_VERSION => format!("\nhelp: {NEWER_PTX}"),
                _ => String::new(),
            };
            (called, format!("\n{}{help}", log.trim()))
        })?;
        Ok(module)
    }

    /// Whether the kernel of a module uses a stack.
    fn has_stack(&self, module: Handle, text: &[u8]) -> bool {
        let Some(Ok(name)) = entry(text).map(CString::new) else { return false };
        let (mut kernel, mut bytes) = (ptr::null_mut(), 0);
        // SAFETY: the module is loaded, the name ends with a zero, and both results are local variables.
        unsafe {
            (self.cuModuleGetFunction)(&mut kernel, module, name.as_ptr()) == 0
                && (self.cuFuncGetAttribute)(&mut bytes, number::LOCAL_SIZE_BYTES, kernel) == 0
                && bytes > 0
        }
    }
}

fn is_cubin(code: &[u8]) -> bool {
    code.starts_with(b"\x7fELF")
}

/// The bit of `st_other` that marks a kernel. Subroutines, such as those for division and square roots, lack it.
const IS_ENTRY: u8 = 0x10;

/// The name of the first kernel in an assembled module, which must be complete.
fn entry_of_cubin(code: &[u8]) -> Result<String, String> {
    let damaged = |error: object::Error| format!("it is a damaged cubin: {error}");
    let file = object::File::parse(code).map_err(damaged)?;
    file.sections().try_for_each(|section| section.data().map(drop)).map_err(damaged)?;
    let is_entry = |flags| matches!(flags, SymbolFlags::Elf { st_other, .. } if st_other.0 & IS_ENTRY != 0);
    let is_kernel = |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text && is_entry(symbol.flags());
    let kernel = file.symbols().find(is_kernel).ok_or("it is a cubin without a kernel")?;
    Ok(kernel.name().map_err(damaged)?.to_string())
}

/// The text of a module, without trailing zeros.
fn text(code: &[u8]) -> &[u8] {
    code.split(|&byte| byte == 0).next().unwrap_or(code)
}

/// The name of the first kernel in the text of a module.
fn entry(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once(".entry")?;
    rest.trim_start().split(|c: char| c.is_whitespace() || c == '(').next().filter(|name| !name.is_empty())
}

/// The GPU with this number in CUDA, and the runtime that runs PTX on it; messages refer to it as `name`.
///
/// ```no_run
/// let (gpu, runtime) = tinyspec_backends::gpu::cuda::open("cuda:1", 1)?;
/// let memory = runtime.allocate(4096)?;
/// println!("4096 bytes of an {gpu}, at {:?}", memory.address());
/// # Ok::<(), tinyspec_backends::BackendError>(())
/// ```
///
/// # Errors
/// When there is no driver, it is for a CUDA older than 12.0, there is no such GPU, or no code can be generated for it.
pub fn open(name: &str, ordinal: usize) -> Result<(Gpu, Arc<dyn Runtime>), DriverError> {
    static DRIVER: OnceLock<Result<Driver<Cuda>, DriverError>> = OnceLock::new();
    driver::open(&DRIVER, name, ordinal)
}
