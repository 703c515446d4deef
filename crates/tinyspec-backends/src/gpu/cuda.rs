//! GPUs of NVIDIA, through CUDA's driver: nothing else has to be installed. PTX goes to the driver, which has the assembler.
//!
//! The library is opened and all of its functions are found before the first is called. What they return are numbers here: a
//! newer driver may have results that nobody knew when this was written.

use super::driver::{DeviceRuntime, Failure, FailureKind, Library, Loaded, Search, Vendor, functions};
use super::{DriverError, Gpu, UnknownGpu};
use crate::{Grid, Runtime};
use smallvec::SmallVec;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

const SEARCH: Search = Search {
    driver: "for CUDA",
    variable: VARIABLE,
    names: if cfg!(windows) {
        &["nvcuda.dll"]
    } else {
        &["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"]
    },
    help: "install NVIDIA's driver, or name its library by TINYSPEC_CUDA; `simt` interprets GPU kernels on any machine",
};

/// The variable that names the library or its folder.
pub const VARIABLE: &str = "TINYSPEC_CUDA";

/// The oldest CUDA that a driver may be for.
const OLDEST: c_int = 12_000;

const UPDATE: &str = "install a newer driver of NVIDIA: CUDA 12.0 came with 525";

type Context = *mut c_void;
type Module = *mut c_void;
type Function = *mut c_void;
type Stream = *mut c_void;
type Address = u64;

functions! {
    /// Signatures and names are those of `cuda.h`, in which a macro gives many names the suffix `_v2`.
    Functions {
        cuInit(flags: c_uint);
        cuDriverGetVersion(version: *mut c_int);
        cuGetErrorName(error: c_int, name: *mut *const c_char);
        cuGetErrorString(error: c_int, text: *mut *const c_char);
        cuDeviceGetCount(count: *mut c_int);
        cuDeviceGet(device: *mut c_int, ordinal: c_int);
        cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
        cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
        cuDevicePrimaryCtxRetain(context: *mut Context, device: c_int);
        cuDevicePrimaryCtxRelease_v2(device: c_int);
        cuCtxSetCurrent(context: Context);
        cuStreamCreate(stream: *mut Stream, flags: c_uint);
        cuStreamDestroy_v2(stream: Stream);
        cuStreamSynchronize(stream: Stream);
        cuMemAlloc_v2(address: *mut Address, bytes: usize);
        cuMemFree_v2(address: Address);
        cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        cuMemcpyHtoDAsync_v2(to: Address, from: *const c_void, bytes: usize, stream: Stream);
        cuMemcpyDtoHAsync_v2(to: *mut c_void, from: Address, bytes: usize, stream: Stream);
        cuModuleLoadDataEx(module: *mut Module, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void);
        cuModuleUnload(module: Module);
        cuModuleGetFunction(function: *mut Function, module: Module, name: *const c_char);
        cuLaunchKernel(
            function: Function, groups_x: c_uint, groups_y: c_uint, groups_z: c_uint, threads_x: c_uint, threads_y: c_uint,
            threads_z: c_uint, shared_bytes: c_uint, stream: Stream, parameters: *mut *mut c_void, extra: *mut *mut c_void
        );
    }
}

/// Values of `CUresult`, `CUdevice_attribute`, `CUstream_flags` and `CUjit_option`.
mod number {
    use std::ffi::{c_int, c_uint};

    pub const OUT_OF_MEMORY: c_int = 2;
    pub const NO_DEVICE: c_int = 100;
    pub const UNSUPPORTED_PTX_VERSION: c_int = 222;
    /// After these a context, and for most of them the process, is of no more use: the driver shuts down, a device is
    /// unavailable, memory has uncorrectable errors, a link too, a fault was contained; a kernel left its memory, took too
    /// long, the context is gone, an assertion failed, stack, instruction, alignment, address space or program counter were
    /// wrong, or the launch failed in some other way.
    pub const LOST: &[c_int] = &[4, 46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719];

    pub const CAPABILITY_MAJOR: c_int = 75;
    pub const CAPABILITY_MINOR: c_int = 76;

    pub const STREAM_NON_BLOCKING: c_uint = 1;

    pub const ERROR_LOG_BUFFER: c_int = 5;
    pub const ERROR_LOG_BUFFER_BYTES: c_int = 6;
}

/// The driver of this process.
#[derive(Debug)]
struct Cuda {
    library: Library,
    functions: Functions,
}

/// It is opened when the first device is asked for, and stays open.
fn cuda() -> Result<&'static Cuda, DriverError> {
    static CUDA: OnceLock<Result<Cuda, DriverError>> = OnceLock::new();
    CUDA.get_or_init(Cuda::open).as_ref().map_err(Clone::clone)
}

impl Cuda {
    fn open() -> Result<Cuda, DriverError> {
        let library = SEARCH.open()?;
        let path = || library.path().to_path_buf();
        let functions = Functions::of(&library).map_err(|missing| DriverError::Incomplete {
            library: path(),
            missing,
            help: UPDATE,
        })?;
        let cuda = Cuda { functions, library };
        // SAFETY: the signatures are the driver's; this is the first call.
        let result = cuda.call("cuInit", unsafe { (cuda.functions.cuInit)(0) });
        let mut version = 0;
        // SAFETY: the number is written to a variable of ours. It may be asked for in any state.
        unsafe { (cuda.functions.cuDriverGetVersion)(&mut version) };
        if version > 0 && version < OLDEST {
            let show = |version: c_int| format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
            return Err(DriverError::TooOld {
                library: cuda.library.path().into(),
                found: show(version),
                needed: show(OLDEST),
                help: UPDATE,
            });
        }
        match result {
            Ok(()) => Ok(cuda),
            Err(failure) => Err(cuda.unusable(failure)),
        }
    }

    fn unusable(&self, failure: Failure) -> DriverError {
        let library = self.library.path().into();
        match failure.code {
            number::NO_DEVICE => DriverError::NoDevice {
                library,
                reason: failure.text,
                help: "`nvidia-smi` lists the GPUs; CUDA_VISIBLE_DEVICES may hide them, and a container has to be given them",
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
        Err(Failure { call, code, text: self.text(code), kind })
    }

    /// `CUDA_ERROR_OUT_OF_MEMORY, out of memory`
    fn text(&self, code: c_int) -> String {
        let word = |function: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text = ptr::null();
            // SAFETY: it writes the address of a string that is always there, or of none.
            unsafe {
                let result = function(code, &mut text);
                (result == 0 && !text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let words = [self.functions.cuGetErrorName, self.functions.cuGetErrorString].map(word);
        let words: Vec<String> = words.into_iter().flatten().collect();
        if words.is_empty() { "an unknown error".into() } else { words.join(", ") }
    }
}

/// A GPU of NVIDIA.
#[derive(Debug)]
struct CudaDevice {
    cuda: &'static Cuda,
    name: String,
    device: c_int,
    context: usize,
    stream: usize,
}

impl CudaDevice {
    /// What CUDA counts as the GPU of this number, and what it is.
    fn open(name: &str, ordinal: usize) -> Result<(CudaDevice, Gpu), DriverError> {
        let cuda = cuda()?;
        let functions = &cuda.functions;
        let check = |call, code| cuda.call(call, code).map_err(|failure| cuda.unusable(failure));
        let (mut count, mut device, mut capability) = (0, 0, [0; 2]);
        let mut product = [0; 256];
        let (mut context, mut stream): (Context, Stream) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: all of these write to variables of ours, the name no more than it is told.
        unsafe {
            check("cuDeviceGetCount", (functions.cuDeviceGetCount)(&mut count))?;
            let ordinal = c_int::try_from(ordinal).ok().filter(|ordinal| *ordinal < count);
            let few = || DriverError::TooFew { name: name.into(), count: count.max(0) as usize };
            check("cuDeviceGet", (functions.cuDeviceGet)(&mut device, ordinal.ok_or_else(few)?))?;
            let length = product.len() as c_int - 1;
            check("cuDeviceGetName", (functions.cuDeviceGetName)(product.as_mut_ptr(), length, device))?;
            for (value, attribute) in capability.iter_mut().zip([number::CAPABILITY_MAJOR, number::CAPABILITY_MINOR]) {
                check("cuDeviceGetAttribute", (functions.cuDeviceGetAttribute)(value, attribute, device))?;
            }
        }
        // SAFETY: it ends with a zero: its last byte was not given away.
        let product = unsafe { CStr::from_ptr(product.as_ptr()) }.to_string_lossy().into_owned();
        let [major, minor] = capability;
        let unknown =
            |UnknownGpu { name: chip }| DriverError::Chip { name: name.into(), device: product.clone(), chip };
        // Chips whose names end with `a` have instructions that no other has.
        let gpu = Gpu::for_device(&format!("sm_{major}{minor}a")).map_err(unknown)?;
        // SAFETY: as above. The context is the one that all of a process use.
        unsafe {
            check("cuDevicePrimaryCtxRetain", (functions.cuDevicePrimaryCtxRetain)(&mut context, device))?;
            let mut opened = || {
                check("cuCtxSetCurrent", (functions.cuCtxSetCurrent)(context))?;
                check("cuStreamCreate", (functions.cuStreamCreate)(&mut stream, number::STREAM_NON_BLOCKING))
            };
            if let Err(error) = opened() {
                (functions.cuDevicePrimaryCtxRelease_v2)(device);
                return Err(error);
            }
        }
        let name = format!("{name} ({product})");
        Ok((CudaDevice { cuda, name, device, context: context as usize, stream: stream as usize }, gpu))
    }

    fn stream(&self) -> Stream {
        self.stream as Stream
    }

    /// The calls of this thread are this device's from now on.
    fn bind(&self) -> Result<&'static Functions, Failure> {
        let functions = &self.cuda.functions;
        // SAFETY: the context is held as long as `self` lives.
        self.cuda.call("cuCtxSetCurrent", unsafe { (functions.cuCtxSetCurrent)(self.context as Context) })?;
        Ok(functions)
    }

    fn wait(&self, functions: &Functions) -> Result<(), Failure> {
        // SAFETY: the stream lives as long as `self`.
        self.cuda.call("cuStreamSynchronize", unsafe { (functions.cuStreamSynchronize)(self.stream()) })
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        if let Ok(functions) = self.bind() {
            // SAFETY: both came from the driver, and nobody has them any more.
            unsafe {
                (functions.cuStreamDestroy_v2)(self.stream());
                (functions.cuDevicePrimaryCtxRelease_v2)(self.device);
            }
        }
    }
}

impl Vendor for CudaDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        let (functions, mut address) = (self.bind()?, 0);
        // SAFETY: it writes to a variable of ours.
        self.cuda.call("cuMemAlloc", unsafe { (functions.cuMemAlloc_v2)(&mut address, bytes) })?;
        Ok(address)
    }

    fn free_memory(&self) -> Option<(usize, usize)> {
        let (functions, mut free, mut total) = (self.bind().ok()?, 0, 0);
        // SAFETY: as above.
        let code = unsafe { (functions.cuMemGetInfo_v2)(&mut free, &mut total) };
        (code == 0).then_some((free, total))
    }

    unsafe fn free(&self, address: u64) {
        if let Ok(functions) = self.bind() {
            let _ = self.wait(functions);
            // SAFETY: as the caller promises.
            unsafe { (functions.cuMemFree_v2)(address) };
        }
    }

    unsafe fn write(&self, to: u64, data: &[u8]) -> Result<(), Failure> {
        let functions = self.bind()?;
        // SAFETY: as the caller promises; `data` is there until the stream has been waited for.
        let code = unsafe { (functions.cuMemcpyHtoDAsync_v2)(to, data.as_ptr().cast(), data.len(), self.stream()) };
        self.cuda.call("cuMemcpyHtoDAsync", code)?;
        self.wait(functions)
    }

    unsafe fn read(&self, from: u64, data: &mut [u8]) -> Result<(), Failure> {
        let functions = self.bind()?;
        // SAFETY: as above.
        let code =
            unsafe { (functions.cuMemcpyDtoHAsync_v2)(data.as_mut_ptr().cast(), from, data.len(), self.stream()) };
        self.cuda.call("cuMemcpyDtoHAsync", code)?;
        self.wait(functions)
    }

    fn load(&self, code: &[u8]) -> Result<Loaded, String> {
        let functions = self.bind().map_err(|failure| failure.to_string())?;
        let text = code.split(|&byte| byte == 0).next().unwrap_or(code);
        let entry = entry(text).ok_or("it is no PTX with a kernel")?;
        let entry = CString::new(entry).map_err(|error| error.to_string())?;
        let image = CString::new(text).map_err(|error| error.to_string())?;
        let mut log = vec![0u8; 8192];
        let mut options = [number::ERROR_LOG_BUFFER, number::ERROR_LOG_BUFFER_BYTES];
        // The number of bytes stands in place of a pointer; the last byte stays zero.
        let mut values = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len() - 1)];
        let (mut module, mut function): (Module, Function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the text ends with a zero; there are as many options as values, and the log is as long as is said.
        let result = unsafe {
            (functions.cuModuleLoadDataEx)(
                &mut module,
                image.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        self.cuda.call("cuModuleLoadDataEx", result).map_err(|failure| {
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
            let help = match failure.code {
                number::UNSUPPORTED_PTX_VERSION => format!("\nhelp: {UPDATE}"),
                _ => String::new(),
            };
            format!("{failure} on {}\n{}{help}", self.name, log.trim())
        })?;
        // SAFETY: the name ends with a zero; the module is not needed if it has no such function.
        unsafe {
            let result = (functions.cuModuleGetFunction)(&mut function, module, entry.as_ptr());
            self.cuda.call("cuModuleGetFunction", result).map_err(|failure| {
                (functions.cuModuleUnload)(module);
                format!("{failure}: it has no kernel {}", entry.to_string_lossy())
            })?;
        }
        Ok(Loaded { module: module as usize, function: function as usize })
    }

    unsafe fn unload(&self, loaded: Loaded) {
        if let Ok(functions) = self.bind() {
            let _ = self.wait(functions);
            // SAFETY: as the caller promises.
            unsafe { (functions.cuModuleUnload)(loaded.module as Module) };
        }
    }

    unsafe fn launch(&self, loaded: Loaded, grid: &Grid, parameters: &mut [u64]) -> Result<(), Failure> {
        let functions = self.bind()?;
        let number = |size: usize| c_uint::try_from(size).unwrap_or(c_uint::MAX);
        let [groups, threads] = [grid.groups, grid.threads].map(|sizes| sizes.map(number));
        let mut parameters: SmallVec<[*mut c_void; 24]> =
            parameters.iter_mut().map(|parameter| ptr::from_mut(parameter).cast()).collect();
        // SAFETY: as the caller promises. LOCAL memory is declared by the kernel.
        let code = unsafe {
            (functions.cuLaunchKernel)(
                loaded.function as Function,
                groups[0],
                groups[1],
                groups[2],
                threads[0],
                threads[1],
                threads[2],
                0,
                self.stream(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.cuda.call("cuLaunchKernel", code)
    }

    fn synchronize(&self) -> Result<(), Failure> {
        let functions = self.bind()?;
        self.wait(functions)
    }
}

/// The name of the first kernel in the text of a module.
fn entry(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once(".entry")?;
    rest.trim_start().split(|c: char| c.is_whitespace() || c == '(').next().filter(|name| !name.is_empty())
}

/// The GPU that CUDA gives this number, and what runs PTX on it; messages call it by `name`.
///
/// ```no_run
/// let (gpu, runtime) = tinyspec_backends::gpu::cuda::open("cuda:1", 1)?;
/// let memory = runtime.allocate(4096)?;
/// println!("4096 bytes of an {gpu}, at {:?}", memory.address());
/// # Ok::<(), tinyspec_backends::BackendError>(())
/// ```
///
/// # Errors
/// When there is no driver, one for an older CUDA than 12.0, no such GPU, or one for which no code is made.
pub fn open(name: &str, ordinal: usize) -> Result<(Gpu, Arc<dyn Runtime>), DriverError> {
    let (device, gpu) = CudaDevice::open(name, ordinal)?;
    Ok((gpu, Arc::new(DeviceRuntime::new(device))))
}
