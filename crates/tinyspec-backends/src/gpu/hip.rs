//! GPUs of AMD, through the HIP runtime of ROCm: it loads the objects that are linked here.
//!
//! As in [`super::cuda`], the library is opened and all of its functions are found before the first is called, and what they
//! return are numbers.

use super::driver::{DeviceRuntime, Failure, FailureKind, Library, Loaded, Search, Vendor, functions};
use super::{DriverError, Gpu};
use crate::{Grid, Runtime};
use object::{Object as _, ObjectSymbol as _};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

const SEARCH: Search = Search {
    driver: "of HIP",
    variable: VARIABLE,
    names: if cfg!(windows) {
        &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
    } else {
        &["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so"]
    },
    help: "install ROCm's HIP runtime, or name its library by TINYSPEC_HIP; `simt` interprets GPU kernels on any machine",
};

/// The variable that names the library or its folder.
pub const VARIABLE: &str = "TINYSPEC_HIP";

/// The oldest HIP that is taken: older ones load no objects like ours.
const OLDEST: c_int = 60_000_000;

const UPDATE: &str = "install ROCm 6.0 or newer";

type Module = *mut c_void;
type Function = *mut c_void;
type Stream = *mut c_void;
type Address = *mut c_void;

functions! {
    /// Signatures and names are those of `hip_runtime_api.h`.
    Functions {
        hipInit(flags: c_uint);
        hipRuntimeGetVersion(version: *mut c_int);
        hipGetDeviceCount(count: *mut c_int);
        hipSetDevice(device: c_int);
        hipGetDevicePropertiesR0600(properties: *mut Properties, device: c_int);
        hipStreamCreateWithFlags(stream: *mut Stream, flags: c_uint);
        hipStreamDestroy(stream: Stream);
        hipStreamSynchronize(stream: Stream);
        hipMalloc(address: *mut Address, bytes: usize);
        hipFree(address: Address);
        hipMemGetInfo(free: *mut usize, total: *mut usize);
        hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int, stream: Stream);
        hipModuleLoadData(module: *mut Module, image: *const c_void);
        hipModuleUnload(module: Module);
        hipModuleGetFunction(function: *mut Function, module: Module, name: *const c_char);
        hipModuleLaunchKernel(
            function: Function, groups_x: c_uint, groups_y: c_uint, groups_z: c_uint, threads_x: c_uint, threads_y: c_uint,
            threads_z: c_uint, local_bytes: c_uint, stream: Stream, parameters: *mut *mut c_void, extra: *mut *mut c_void
        );
    }
}

/// The functions that give no result: a name and a description of one.
type Text = unsafe extern "C" fn(c_int) -> *const c_char;

/// `hipDeviceProp_t` as of ROCm 6: what is looked at, and room for all of it and more.
#[repr(C, align(16))]
pub(super) struct Properties([u8; Properties::BYTES]);

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

/// Values of `hipError_t`, `hipMemcpyKind`, of flags, and the marks of a launch's extra arguments.
mod number {
    use std::ffi::{c_int, c_uint};

    pub const OUT_OF_MEMORY: c_int = 2;
    pub const NO_DEVICE: c_int = 100;
    /// Shut down; uncorrectable memory; a kernel left its memory, took too long, its context is gone, an assertion failed, or
    /// it failed in another way.
    pub const LOST: &[c_int] = &[4, 214, 700, 702, 709, 710, 719];

    pub const HOST_TO_DEVICE: c_int = 1;
    pub const DEVICE_TO_HOST: c_int = 2;

    pub const STREAM_NON_BLOCKING: c_uint = 1;

    pub const BUFFER_POINTER: usize = 1;
    pub const BUFFER_SIZE: usize = 2;
    pub const END: usize = 3;
}

/// The runtime of this process.
#[derive(Debug)]
struct Hip {
    library: Library,
    functions: Functions,
    name: Text,
    string: Text,
}

/// It is opened when the first device is asked for, and stays open.
fn hip() -> Result<&'static Hip, DriverError> {
    static HIP: OnceLock<Result<Hip, DriverError>> = OnceLock::new();
    HIP.get_or_init(Hip::open).as_ref().map_err(Clone::clone)
}

impl Hip {
    fn open() -> Result<Hip, DriverError> {
        let library = SEARCH.open()?;
        let path = || library.path().to_path_buf();
        let mut missing = Vec::new();
        // SAFETY: the signatures are those of HIP's header.
        let [name, string] = ["hipGetErrorName", "hipGetErrorString"]
            .map(|name| unsafe { library.function::<Text>(name, &mut missing) });
        let hip = match (Functions::of(&library), name.zip(string)) {
            (Ok(functions), Some((name, string))) => Hip { functions, name, string, library },
            (functions, _) => {
                missing.extend(functions.err().unwrap_or_default());
                return Err(DriverError::Incomplete { library: path(), missing, help: UPDATE });
            }
        };
        // SAFETY: the signatures are HIP's; this is the first call.
        let result = hip.call("hipInit", unsafe { (hip.functions.hipInit)(0) });
        let mut version = 0;
        // SAFETY: the number is written to a variable of ours.
        unsafe { (hip.functions.hipRuntimeGetVersion)(&mut version) };
        if version > 0 && version < OLDEST {
            let show = |version: c_int| format!("HIP {}.{}", version / 10_000_000, version / 100_000 % 100);
            return Err(DriverError::TooOld {
                library: hip.library.path().into(),
                found: show(version),
                needed: show(OLDEST),
                help: UPDATE,
            });
        }
        match result {
            Ok(()) => Ok(hip),
            Err(failure) => Err(hip.unusable(failure)),
        }
    }

    fn unusable(&self, failure: Failure) -> DriverError {
        let library = self.library.path().into();
        match failure.code {
            number::NO_DEVICE => DriverError::NoDevice {
                library,
                reason: failure.text,
                help: "`rocminfo` lists the GPUs; HIP_VISIBLE_DEVICES may hide them, and the user may lack the group `render`",
            },
            code => DriverError::Failed { library, call: failure.call, code, text: failure.text },
        }
    }

    /// What a function has returned.
    fn call(&self, call: &'static str, code: c_int) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        let kind = match code {
            number::OUT_OF_MEMORY => FailureKind::Memory,
            code if number::LOST.contains(&code) => FailureKind::Lost,
            _ => FailureKind::Refused,
        };
        let word = |function: Text| {
            // SAFETY: it gives a string that is always there, or none.
            let text = unsafe { function(code) };
            // SAFETY: as above.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let words: Vec<String> = [self.name, self.string].into_iter().filter_map(word).collect();
        Err(Failure { call, code, text: words.join(", "), kind })
    }
}

/// A GPU of AMD.
#[derive(Debug)]
struct HipDevice {
    hip: &'static Hip,
    name: String,
    device: c_int,
    stream: usize,
}

impl HipDevice {
    /// What HIP counts as the GPU of this number, and what it is.
    fn open(name: &str, ordinal: usize) -> Result<(HipDevice, Gpu), DriverError> {
        let hip = hip()?;
        let functions = &hip.functions;
        let check = |call, code| hip.call(call, code).map_err(|failure| hip.unusable(failure));
        let (mut count, mut stream): (c_int, Stream) = (0, ptr::null_mut());
        let mut properties = Box::new(Properties([0; Properties::BYTES]));
        // SAFETY: these write to variables of ours.
        check("hipGetDeviceCount", unsafe { (functions.hipGetDeviceCount)(&mut count) })?;
        let device = c_int::try_from(ordinal).ok().filter(|ordinal| *ordinal < count);
        let device = device.ok_or_else(|| DriverError::TooFew { name: name.into(), count: count.max(0) as usize })?;
        // SAFETY: as above; the properties have room for more than HIP's.
        unsafe {
            let result = (functions.hipGetDevicePropertiesR0600)(&mut *properties, device);
            check("hipGetDeviceProperties", result)?;
        }
        let product = properties.text(Properties::NAME, Properties::NAME_BYTES);
        let chip = properties.text(Properties::CHIP, Properties::CHIP_BYTES);
        let gpu = Gpu::for_device(&chip).map_err(|_| DriverError::Chip {
            name: name.into(),
            device: product.clone(),
            chip: chip.clone(),
        })?;
        // SAFETY: as above.
        unsafe {
            check("hipSetDevice", (functions.hipSetDevice)(device))?;
            let result = (functions.hipStreamCreateWithFlags)(&mut stream, number::STREAM_NON_BLOCKING);
            check("hipStreamCreateWithFlags", result)?;
        }
        Ok((HipDevice { hip, name: format!("{name} ({product})"), device, stream: stream as usize }, gpu))
    }

    fn stream(&self) -> Stream {
        self.stream as Stream
    }

    /// The calls of this thread are this device's from now on.
    fn bind(&self) -> Result<&'static Functions, Failure> {
        let functions = &self.hip.functions;
        // SAFETY: the device is there.
        self.hip.call("hipSetDevice", unsafe { (functions.hipSetDevice)(self.device) })?;
        Ok(functions)
    }

    fn wait(&self, functions: &Functions) -> Result<(), Failure> {
        // SAFETY: the stream lives as long as `self`.
        self.hip.call("hipStreamSynchronize", unsafe { (functions.hipStreamSynchronize)(self.stream()) })
    }

    /// # Safety
    /// As [`Vendor::write`] and [`Vendor::read`].
    unsafe fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) -> Result<(), Failure> {
        let functions = self.bind()?;
        // SAFETY: as the caller promises; the memory is there until the stream has been waited for.
        let code = unsafe { (functions.hipMemcpyAsync)(to, from, bytes, kind, self.stream()) };
        self.hip.call("hipMemcpyAsync", code)?;
        self.wait(functions)
    }
}

impl Drop for HipDevice {
    fn drop(&mut self) {
        if let Ok(functions) = self.bind() {
            // SAFETY: it came from HIP, and nobody has it any more.
            unsafe { (functions.hipStreamDestroy)(self.stream()) };
        }
    }
}

fn pointer(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}

impl Vendor for HipDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        let (functions, mut address) = (self.bind()?, ptr::null_mut());
        // SAFETY: it writes to a variable of ours.
        self.hip.call("hipMalloc", unsafe { (functions.hipMalloc)(&mut address, bytes) })?;
        Ok(address.addr() as u64)
    }

    fn free_memory(&self) -> Option<(usize, usize)> {
        let (functions, mut free, mut total) = (self.bind().ok()?, 0, 0);
        // SAFETY: as above.
        let code = unsafe { (functions.hipMemGetInfo)(&mut free, &mut total) };
        (code == 0).then_some((free, total))
    }

    unsafe fn free(&self, address: u64) {
        if let Ok(functions) = self.bind() {
            let _ = self.wait(functions);
            // SAFETY: as the caller promises.
            unsafe { (functions.hipFree)(pointer(address)) };
        }
    }

    unsafe fn write(&self, to: u64, data: &[u8]) -> Result<(), Failure> {
        // SAFETY: as the caller promises.
        unsafe { self.copy(pointer(to), data.as_ptr().cast(), data.len(), number::HOST_TO_DEVICE) }
    }

    unsafe fn read(&self, from: u64, data: &mut [u8]) -> Result<(), Failure> {
        // SAFETY: as the caller promises.
        unsafe { self.copy(data.as_mut_ptr().cast(), pointer(from), data.len(), number::DEVICE_TO_HOST) }
    }

    fn load(&self, code: &[u8]) -> Result<Loaded, String> {
        let functions = self.bind().map_err(|failure| failure.to_string())?;
        let entry = entry(code)?;
        let (mut module, mut function): (Module, Function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: an ELF file says itself how long it is, and this one has been read to its end.
        let result = unsafe { (functions.hipModuleLoadData)(&mut module, code.as_ptr().cast()) };
        let failed = |failure: Failure| format!("{failure} on {}", self.name);
        self.hip.call("hipModuleLoadData", result).map_err(failed)?;
        // SAFETY: the name ends with a zero; the module is not needed if it has no such function.
        unsafe {
            let result = (functions.hipModuleGetFunction)(&mut function, module, entry.as_ptr());
            self.hip.call("hipModuleGetFunction", result).map_err(|failure| {
                (functions.hipModuleUnload)(module);
                format!("{failure}: it has no kernel {}", entry.to_string_lossy())
            })?;
        }
        Ok(Loaded { module: module as usize, function: function as usize })
    }

    unsafe fn unload(&self, loaded: Loaded) {
        if let Ok(functions) = self.bind() {
            let _ = self.wait(functions);
            // SAFETY: as the caller promises.
            unsafe { (functions.hipModuleUnload)(loaded.module as Module) };
        }
    }

    unsafe fn launch(&self, loaded: Loaded, grid: &Grid, parameters: &mut [u64]) -> Result<(), Failure> {
        let functions = self.bind()?;
        let number = |size: usize| c_uint::try_from(size).unwrap_or(c_uint::MAX);
        let [groups, threads] = [grid.groups, grid.threads].map(|sizes| sizes.map(number));
        // Each parameter has 8 bytes, so that they lie as the kernel finds them.
        let mut bytes = size_of_val(parameters);
        let mut extra: [*mut c_void; 5] = [
            ptr::without_provenance_mut(number::BUFFER_POINTER),
            parameters.as_mut_ptr().cast(),
            ptr::without_provenance_mut(number::BUFFER_SIZE),
            ptr::from_mut(&mut bytes).cast(),
            ptr::without_provenance_mut(number::END),
        ];
        // SAFETY: as the caller promises. LOCAL memory is declared by the kernel.
        let code = unsafe {
            (functions.hipModuleLaunchKernel)(
                loaded.function as Function,
                groups[0],
                groups[1],
                groups[2],
                threads[0],
                threads[1],
                threads[2],
                0,
                self.stream(),
                ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        };
        self.hip.call("hipModuleLaunchKernel", code)
    }

    fn synchronize(&self) -> Result<(), Failure> {
        let functions = self.bind()?;
        self.wait(functions)
    }
}

/// The name of the kernel in an object: that of its descriptor, without `.kd`.
fn entry(code: &[u8]) -> Result<CString, String> {
    let file = object::File::parse(code).map_err(|error| format!("it is no object: {error}"))?;
    let name = file.symbols().find_map(|symbol| symbol.name().ok()?.strip_suffix(".kd").map(str::to_string));
    CString::new(name.ok_or("it holds no kernel of a GPU")?).map_err(|error| error.to_string())
}

/// The GPU that HIP gives this number, and what runs objects on it; messages call it by `name`.
///
/// ```no_run
/// let (gpu, runtime) = tinyspec_backends::gpu::hip::open("amd:1", 1)?;
/// let memory = runtime.allocate(4096)?;
/// println!("4096 bytes of a {gpu}, at {:?}", memory.address());
/// # Ok::<(), tinyspec_backends::BackendError>(())
/// ```
///
/// # Errors
/// When there is no HIP runtime, one before ROCm 6.0, no such GPU, or one for which no code is made.
pub fn open(name: &str, ordinal: usize) -> Result<(Gpu, Arc<dyn Runtime>), DriverError> {
    let (device, gpu) = HipDevice::open(name, ordinal)?;
    Ok((gpu, Arc::new(DeviceRuntime::new(device))))
}
