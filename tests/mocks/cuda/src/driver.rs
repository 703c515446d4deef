//! The functions of the library.

use crate::machine::{Held, Outcome, Source, Work, error, machine};
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUresult, CUstream};
use cudarc::driver::sys::{CUdevice_attribute, CUjit_option};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use tinyspec_simulators::Launch;

/// Exports functions that give a result by its number. Their parameters are those that cudarc declares.
macro_rules! exports {
    ($($(#[$doc:meta])* fn $function:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            /// # Safety
            /// As in CUDA's documentation: pointers are valid for what is read or written.
            #[allow(non_snake_case, clippy::too_many_arguments)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function($($argument: $type),*) -> c_int {
                let answer = || -> Outcome { $body };
                match answer() {
                    Ok(()) => 0,
                    Err(code) => code,
                }
            }
            const _: unsafe fn($($type),*) -> CUresult = sys::$function;
        )*
    };
}

/// Gives a result.
unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return error(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: as the caller of the library promises.
    unsafe { to.write(value) };
    Ok(())
}

fn pointer<T>(handle: usize) -> *mut T {
    std::ptr::without_provenance_mut(handle)
}

exports! {
    fn cuInit(_flags: c_uint) {
        machine().initialise()
    }

    fn cuDriverGetVersion(version: *mut c_int) {
        // SAFETY: as the caller promises; so it is below.
        unsafe { put(version, machine().settings().version) }
    }

    fn cuDeviceGetCount(count: *mut c_int) {
        let devices = machine().initialised()?.devices;
        // SAFETY: as above.
        unsafe { put(count, devices as c_int) }
    }

    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) {
        let number = machine().device(ordinal)?;
        // SAFETY: as above.
        unsafe { put(device, number as CUdevice) }
    }

    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice) {
        let text = format!("simulated GPU {}\0", machine().device(device)?);
        let count = text.len().min(usize::try_from(length).unwrap_or(0));
        // SAFETY: as above; there is room for `length` of them.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, count) };
        Ok(())
    }

    fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice) {
        let machine = machine();
        machine.device(device)?;
        let capability = machine.settings().capability;
        let number = match attribute {
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => capability / 10,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => capability % 10,
            _ => return error(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        // SAFETY: as above.
        unsafe { put(value, number) }
    }

    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) {
        let mut machine = machine();
        let device = machine.device(device)?;
        // SAFETY: as above.
        unsafe { put(context, pointer(machine.retain(device))) }
    }

    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) {
        let mut machine = machine();
        let device = machine.device(device)?;
        machine.release(device)
    }

    fn cuCtxSetCurrent(context: CUcontext) {
        machine().set_current(context.addr())
    }

    fn cuStreamCreate(stream: *mut CUstream, _flags: c_uint) {
        let handle = machine().new_stream()?;
        // SAFETY: as above.
        unsafe { put(stream, pointer(handle)) }
    }

    fn cuStreamDestroy_v2(stream: CUstream) {
        machine().destroy_stream(stream.addr())
    }

    fn cuStreamSynchronize(stream: CUstream) {
        machine().synchronize(stream.addr())
    }

    fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) {
        let made = machine().allocate(bytes)?;
        // SAFETY: as above.
        unsafe { put(address, made) }
    }

    fn cuMemFree_v2(address: CUdeviceptr) {
        machine().free(address)
    }

    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let memory = machine().memory()?;
        // SAFETY: as above.
        unsafe { put(free, memory.0).and_then(|()| put(total, memory.1)) }
    }

    fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, _flags: c_uint) {
        let made = machine().pin(bytes)?;
        // SAFETY: as above.
        unsafe { put(address, std::ptr::with_exposed_provenance_mut(made)) }
    }

    fn cuMemFreeHost(address: *mut c_void) {
        machine().unpin(address.addr())
    }

    fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, count: usize, stream: CUstream) {
        let mut machine = machine();
        // What is not pinned is copied at once, what is pinned when it is the copy's turn.
        let from = match machine.is_pinned(from.addr(), count) {
            true => Source::Pinned(from.expose_provenance(), count),
            // SAFETY: as above.
            false => Source::Copied(unsafe { std::slice::from_raw_parts(from.cast::<u8>(), count) }.to_vec()),
        };
        machine.enqueue(stream.addr(), Work::Write { to, from })
    }

    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        machine().enqueue(stream.addr(), Work::Read { to: to.expose_provenance(), from, bytes })
    }

    fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        let mut machine = machine();
        let device = machine.current()?;
        machine.enqueue(stream.addr(), Work::Copy { to: (device, to), from: (device, from), bytes })
    }

    fn cuMemcpyPeerAsync(
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
        stream: CUstream,
    ) {
        let mut machine = machine();
        let [to_device, from_device] = [to_context, from_context].map(|context| machine.of_context(context.addr()));
        machine.enqueue(stream.addr(), Work::Copy { to: (to_device?, to), from: (from_device?, from), bytes })
    }

    fn cuEventCreate(event: *mut CUevent, _flags: c_uint) {
        let handle = machine().new_event()?;
        // SAFETY: as above.
        unsafe { put(event, pointer(handle)) }
    }

    fn cuEventDestroy_v2(event: CUevent) {
        machine().destroy_event(event.addr())
    }

    fn cuEventRecord(event: CUevent, stream: CUstream) {
        machine().record(event.addr(), stream.addr())
    }

    fn cuEventQuery(event: CUevent) {
        machine().ask(event.addr())
    }

    fn cuEventSynchronize(event: CUevent) {
        machine().wait_for(event.addr())
    }

    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, _flags: c_uint) {
        machine().order(stream.addr(), event.addr())
    }

    fn cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) {
        // SAFETY: as above: PTX ends with a zero, and there are as many options as values.
        let (image, options) = unsafe {
            let given = |number: usize| (options.add(number).read(), values.add(number).read());
            (CStr::from_ptr(image.cast()), (0..count as usize).map(given).collect::<Vec<_>>())
        };
        match machine().load(&image.to_string_lossy()) {
            // SAFETY: as above.
            Ok(handle) => unsafe { put(module, pointer(handle)) },
            Err((code, words)) => {
                let value = |wanted| options.iter().find(|(option, _)| *option == wanted).map(|(_, value)| *value);
                let log = value(CUjit_option::CU_JIT_ERROR_LOG_BUFFER);
                let room = value(CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES).map_or(0, <*mut c_void>::addr);
                if let Some(log) = log {
                    // SAFETY: as above: the log has as many bytes as the other option says.
                    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), log.cast(), words.len().min(room)) };
                }
                Err(code)
            }
        }
    }

    fn cuModuleUnload(module: CUmodule) {
        machine().unload(module.addr())
    }

    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let handle = machine().function(module.addr(), &name)?;
        // SAFETY: as above.
        unsafe { put(function, pointer(handle)) }
    }

    fn cuLaunchKernel(
        function: CUfunction,
        groups_x: c_uint,
        groups_y: c_uint,
        groups_z: c_uint,
        threads_x: c_uint,
        threads_y: c_uint,
        threads_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        let mut machine = machine();
        let sizes = machine.parameters(function.addr())?;
        if !extra.is_null() || (parameters.is_null() && !sizes.is_empty()) {
            return error(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut values = Vec::new();
        for (number, &size) in sizes.iter().enumerate() {
            let mut bytes = [0; 8];
            // SAFETY: as above: a pointer for each parameter, to as many bytes as that has.
            unsafe {
                let from = parameters.add(number).read().cast::<u8>();
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), size.min(8));
            }
            values.push(u64::from_le_bytes(bytes));
        }
        let mut launch = Launch::grid([groups_x, groups_y, groups_z], [threads_x, threads_y, threads_z]);
        launch.local_bytes = shared_bytes as usize;
        machine.launch(stream.addr(), function.addr(), launch, values)
    }
}

/// What is held of the driver, for tests: NVIDIA's has no such function.
///
/// # Safety
/// The pointer is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mock_cuda_held(held: *mut Held) {
    // SAFETY: as the caller promises.
    unsafe { held.write(machine().held()) }
}

// Of a result that no header has there is no value of cudarc's type.

/// # Safety
/// As above.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(result: c_int, name: *mut *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { put_text(name, text(result).map(|(name, _)| name)) }
}

/// # Safety
/// As above.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(result: c_int, string: *mut *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { put_text(string, text(result).map(|(_, string)| string)) }
}

const _: unsafe fn(CUresult, *mut *const c_char) -> CUresult = sys::cuGetErrorName;
const _: unsafe fn(CUresult, *mut *const c_char) -> CUresult = sys::cuGetErrorString;

/// # Safety
/// The pointer is valid.
unsafe fn put_text(to: *mut *const c_char, text: Option<&'static CStr>) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { to.write(text.map_or(std::ptr::null(), CStr::as_ptr)) };
    if text.is_some() { 0 } else { CUresult::CUDA_ERROR_INVALID_VALUE as c_int }
}

/// Name and description of a result.
fn text(result: c_int) -> Option<(&'static CStr, &'static CStr)> {
    const TEXTS: &[(CUresult, &CStr, &CStr)] = &[
        (CUresult::CUDA_ERROR_INVALID_VALUE, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        (CUresult::CUDA_ERROR_NO_DEVICE, c"CUDA_ERROR_NO_DEVICE", c"no device is detected"),
        (CUresult::CUDA_ERROR_INVALID_PTX, c"CUDA_ERROR_INVALID_PTX", c"the PTX cannot be compiled"),
        (CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the PTX is too new"),
        (CUresult::CUDA_ERROR_ECC_UNCORRECTABLE, c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable memory error"),
        (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access"),
        (CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources"),
        (CUresult::CUDA_ERROR_LAUNCH_FAILED, c"CUDA_ERROR_LAUNCH_FAILED", c"the launch failed"),
    ];
    TEXTS.iter().find(|(known, ..)| *known as c_int == result).map(|&(_, name, string)| (name, string))
}
