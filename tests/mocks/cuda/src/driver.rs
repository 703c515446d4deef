//! The functions of the library.

use crate::vendor::{VENDOR, capability, machine, read, text_of_cubin};
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUresult, CUstream};
use cudarc::driver::sys::{CUdevice_attribute, CUevent_flags, CUfunction_attribute, CUjit_option};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use tinyspec_mock_machine::{Held, Refusal, Source, Work, exports, image_of_file, pointer, put};
use tinyspec_simulators::Launch;

exports! { VENDOR;
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
        let capability = capability(&machine.settings().chip);
        let number = match attribute {
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => capability / 10,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => capability % 10,
            _ => return Err(Refusal::Value),
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
        // SAFETY: as above.
        let from = unsafe { Source::of(&machine, from.cast(), count) };
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

    fn cuEventCreate(event: *mut CUevent, flags: c_uint) {
        let handle = machine().new_event(flags & CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint == 0)?;
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

    fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) {
        let between = machine().between(start.addr(), end.addr())?;
        // SAFETY: as above.
        unsafe { put(milliseconds, between) }
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
        // SAFETY: as above: a cubin is there as a whole, PTX ends with a zero, and there are as many options as values.
        let (text, options) = unsafe {
            let given = |number: usize| (options.add(number).read(), values.add(number).read());
            let text = match std::slice::from_raw_parts(image.cast::<u8>(), 1) {
                [0x7f] => text_of_cubin(image_of_file(image.cast())),
                _ => Ok(CStr::from_ptr(image.cast()).to_string_lossy().into_owned()),
            };
            (text, (0..count as usize).map(given).collect::<Vec<_>>())
        };
        let mut machine = machine();
        let is_roomy = text.as_ref().is_ok_and(|text| text.contains(".minnctapersm"));
        let kernels = text.and_then(|text| read(&text, &machine.settings())).map_err(|(refusal, words)| {
            let value = |wanted| options.iter().find(|(option, _)| *option == wanted).map(|(_, value)| *value);
            let log = value(CUjit_option::CU_JIT_ERROR_LOG_BUFFER);
            let room = value(CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES).map_or(0, <*mut c_void>::addr);
            if let Some(log) = log {
                // SAFETY: as above: the log has as many bytes as the other option says.
                unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), log.cast(), words.len().min(room)) };
            }
            refusal
        })?;
        let handle = machine.load(kernels)?;
        let stack = machine.settings().stack;
        machine.put_stack(handle, if is_roomy { 0 } else { stack });
        // SAFETY: as above.
        unsafe { put(module, pointer(handle)) }
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

    fn cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction) {
        let number = match attribute {
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => machine().stack(function.addr())?,
            _ => return Err(Refusal::Value),
        };
        // SAFETY: as above.
        unsafe { put(value, number) }
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
        let layout = machine.parameters(function.addr())?;
        if !extra.is_null() || (parameters.is_null() && !layout.is_empty()) {
            return Err(Refusal::Value);
        }
        let mut values = Vec::new();
        for (number, parameter) in layout.iter().enumerate() {
            let mut bytes = [0; 8];
            // SAFETY: as above: a pointer for each parameter, to as many bytes as that has.
            unsafe {
                let from = parameters.add(number).read().cast::<u8>();
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), parameter.bytes.min(8));
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
pub unsafe extern "C" fn mock_held(held: *mut Held) {
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
    unsafe { put_text(name, VENDOR.texts(result)[0]) }
}

/// # Safety
/// As above.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(result: c_int, string: *mut *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { put_text(string, VENDOR.texts(result)[1]) }
}

/// # Safety
/// The pointer is valid.
unsafe fn put_text(to: *mut *const c_char, text: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { to.write(text) };
    VENDOR.number(if text.is_null() { Err(Refusal::Value) } else { Ok(()) })
}

/// That the parameters are those of NVIDIA's header.
#[allow(clippy::type_complexity)]
const _: () = {
    let _: unsafe fn(c_uint) -> CUresult = sys::cuInit;
    let _: unsafe fn(*mut c_int) -> CUresult = sys::cuDriverGetVersion;
    let _: unsafe fn(*mut c_int) -> CUresult = sys::cuDeviceGetCount;
    let _: unsafe fn(*mut CUdevice, c_int) -> CUresult = sys::cuDeviceGet;
    let _: unsafe fn(*mut c_char, c_int, CUdevice) -> CUresult = sys::cuDeviceGetName;
    let _: unsafe fn(*mut c_int, CUdevice_attribute, CUdevice) -> CUresult = sys::cuDeviceGetAttribute;
    let _: unsafe fn(*mut CUcontext, CUdevice) -> CUresult = sys::cuDevicePrimaryCtxRetain;
    let _: unsafe fn(CUdevice) -> CUresult = sys::cuDevicePrimaryCtxRelease_v2;
    let _: unsafe fn(CUcontext) -> CUresult = sys::cuCtxSetCurrent;
    let _: unsafe fn(*mut CUstream, c_uint) -> CUresult = sys::cuStreamCreate;
    let _: unsafe fn(CUstream) -> CUresult = sys::cuStreamDestroy_v2;
    let _: unsafe fn(CUstream) -> CUresult = sys::cuStreamSynchronize;
    let _: unsafe fn(*mut CUdeviceptr, usize) -> CUresult = sys::cuMemAlloc_v2;
    let _: unsafe fn(CUdeviceptr) -> CUresult = sys::cuMemFree_v2;
    let _: unsafe fn(*mut usize, *mut usize) -> CUresult = sys::cuMemGetInfo_v2;
    let _: unsafe fn(*mut *mut c_void, usize, c_uint) -> CUresult = sys::cuMemHostAlloc;
    let _: unsafe fn(*mut c_void) -> CUresult = sys::cuMemFreeHost;
    let _: unsafe fn(CUdeviceptr, *const c_void, usize, CUstream) -> CUresult = sys::cuMemcpyHtoDAsync_v2;
    let _: unsafe fn(*mut c_void, CUdeviceptr, usize, CUstream) -> CUresult = sys::cuMemcpyDtoHAsync_v2;
    let _: unsafe fn(CUdeviceptr, CUdeviceptr, usize, CUstream) -> CUresult = sys::cuMemcpyDtoDAsync_v2;
    let _: unsafe fn(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream) -> CUresult =
        sys::cuMemcpyPeerAsync;
    let _: unsafe fn(*mut CUevent, c_uint) -> CUresult = sys::cuEventCreate;
    let _: unsafe fn(CUevent) -> CUresult = sys::cuEventDestroy_v2;
    let _: unsafe fn(CUevent, CUstream) -> CUresult = sys::cuEventRecord;
    let _: unsafe fn(CUevent) -> CUresult = sys::cuEventQuery;
    let _: unsafe fn(CUevent) -> CUresult = sys::cuEventSynchronize;
    let _: unsafe fn(CUstream, CUevent, c_uint) -> CUresult = sys::cuStreamWaitEvent;
    let _: unsafe fn(*mut CUmodule, *const c_void, c_uint, *mut CUjit_option, *mut *mut c_void) -> CUresult =
        sys::cuModuleLoadDataEx;
    let _: unsafe fn(CUmodule) -> CUresult = sys::cuModuleUnload;
    let _: unsafe fn(*mut CUfunction, CUmodule, *const c_char) -> CUresult = sys::cuModuleGetFunction;
    let _: unsafe fn(*mut c_int, CUfunction_attribute, CUfunction) -> CUresult = sys::cuFuncGetAttribute;
    let _: unsafe fn(
        CUfunction,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        CUstream,
        *mut *mut c_void,
        *mut *mut c_void,
    ) -> CUresult = sys::cuLaunchKernel;
    let _: unsafe fn(CUresult, *mut *const c_char) -> CUresult = sys::cuGetErrorName;
    let _: unsafe fn(CUresult, *mut *const c_char) -> CUresult = sys::cuGetErrorString;
};
