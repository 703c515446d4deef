//! The functions of the library, by the signatures of `hip_runtime_api.h`.

use crate::vendor::{VENDOR, machine, read};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use tinyspec_mock_machine::{Held, Outcome, Refusal, Source, Work, exports, image_of_file, pointer, put};
use tinyspec_simulators::{Launch, Parameter};

/// An address of a device's memory is a pointer here.
type DevicePointer = *mut c_void;
/// Streams, events, modules and functions are pointers to what nobody sees.
type Handle = *mut c_void;

const EVENT_DISABLE_TIMING: c_uint = 2;

/// `hipDeviceProp_t` as of ROCm 6.
#[repr(C, align(8))]
pub struct Properties([u8; 1472]);

impl Properties {
    const NAME: usize = 0;
    const CHIP: usize = 1160;

    fn put(&mut self, at: usize, text: &str) {
        self.0[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
}

exports! { VENDOR;
    fn hipInit(_flags: c_uint) {
        machine().initialise()
    }

    fn hipRuntimeGetVersion(version: *mut c_int) {
        // SAFETY: as the caller promises; so it is below.
        unsafe { put(version, machine().settings().version) }
    }

    fn hipGetDeviceCount(count: *mut c_int) {
        let devices = machine().initialised()?.devices;
        // SAFETY: as above.
        unsafe { put(count, devices as c_int) }
    }

    fn hipGetDevicePropertiesR0600(properties: *mut Properties, device: c_int) {
        let machine = machine();
        let mut found = Properties([0; _]);
        found.put(Properties::NAME, &format!("simulated GPU {}", machine.device(device)?));
        // As AMD's runtime writes it, with what may be switched.
        found.put(Properties::CHIP, &format!("{}:sramecc+:xnack-", machine.settings().chip));
        // SAFETY: as above.
        unsafe { put(properties, found) }
    }

    fn hipSetDevice(device: c_int) {
        machine().set_device(device)
    }

    fn hipStreamCreateWithFlags(stream: *mut Handle, _flags: c_uint) {
        let handle = machine().new_stream()?;
        // SAFETY: as above.
        unsafe { put(stream, pointer(handle)) }
    }

    fn hipStreamDestroy(stream: Handle) {
        machine().destroy_stream(stream.addr())
    }

    fn hipStreamSynchronize(stream: Handle) {
        machine().synchronize(stream.addr())
    }

    fn hipMalloc(address: *mut DevicePointer, bytes: usize) {
        let made = machine().allocate(bytes)?;
        // SAFETY: as above.
        unsafe { put(address, pointer(made as usize)) }
    }

    fn hipFree(address: DevicePointer) {
        machine().free(address.addr() as u64)
    }

    fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        let memory = machine().memory()?;
        // SAFETY: as above.
        unsafe { put(free, memory.0).and_then(|()| put(total, memory.1)) }
    }

    fn hipHostMalloc(address: *mut *mut c_void, bytes: usize, _flags: c_uint) {
        let made = machine().pin(bytes)?;
        // SAFETY: as above.
        unsafe { put(address, std::ptr::with_exposed_provenance_mut(made)) }
    }

    fn hipHostFree(address: *mut c_void) {
        machine().unpin(address.addr())
    }

    fn hipMemcpyHtoDAsync(to: DevicePointer, from: *const c_void, bytes: usize, stream: Handle) {
        let mut machine = machine();
        // SAFETY: as above.
        let from = unsafe { Source::of(&machine, from.cast(), bytes) };
        machine.enqueue(stream.addr(), Work::Write { to: to.addr() as u64, from })
    }

    fn hipMemcpyDtoHAsync(to: *mut c_void, from: DevicePointer, bytes: usize, stream: Handle) {
        machine().enqueue(stream.addr(), Work::Read { to: to.expose_provenance(), from: from.addr() as u64, bytes })
    }

    fn hipMemcpyDtoDAsync(to: DevicePointer, from: DevicePointer, bytes: usize, stream: Handle) {
        let mut machine = machine();
        let device = machine.current()?;
        let [to, from] = [to, from].map(|address| (device, address.addr() as u64));
        machine.enqueue(stream.addr(), Work::Copy { to, from, bytes })
    }

    fn hipMemcpyPeerAsync(
        to: DevicePointer,
        to_device: c_int,
        from: DevicePointer,
        from_device: c_int,
        bytes: usize,
        stream: Handle,
    ) {
        let mut machine = machine();
        let [to_device, from_device] = [to_device, from_device].map(|device| machine.device(device));
        let (to, from) = ((to_device?, to.addr() as u64), (from_device?, from.addr() as u64));
        machine.enqueue(stream.addr(), Work::Copy { to, from, bytes })
    }

    fn hipEventCreateWithFlags(event: *mut Handle, flags: c_uint) {
        let handle = machine().new_event(flags & EVENT_DISABLE_TIMING == 0)?;
        // SAFETY: as above.
        unsafe { put(event, pointer(handle)) }
    }

    fn hipEventDestroy(event: Handle) {
        machine().destroy_event(event.addr())
    }

    fn hipEventRecord(event: Handle, stream: Handle) {
        machine().record(event.addr(), stream.addr())
    }

    fn hipEventQuery(event: Handle) {
        machine().ask(event.addr())
    }

    fn hipEventSynchronize(event: Handle) {
        machine().wait_for(event.addr())
    }

    fn hipEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) {
        let between = machine().between(start.addr(), end.addr())?;
        // SAFETY: as above.
        unsafe { put(milliseconds, between) }
    }

    fn hipStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) {
        machine().order(stream.addr(), event.addr())
    }

    fn hipModuleLoadData(module: *mut Handle, image: *const c_void) {
        let mut machine = machine();
        // SAFETY: as above: an object as a whole.
        let object = unsafe { image_of_file(image.cast()) };
        let kernels = read(object, &machine.settings())?;
        let handle = machine.load(kernels)?;
        // SAFETY: as above.
        unsafe { put(module, pointer(handle)) }
    }

    fn hipModuleUnload(module: Handle) {
        machine().unload(module.addr())
    }

    fn hipModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let handle = machine().function(module.addr(), &name)?;
        // SAFETY: as above.
        unsafe { put(function, pointer(handle)) }
    }

    fn hipModuleLaunchKernel(
        function: Handle,
        groups_x: c_uint,
        groups_y: c_uint,
        groups_z: c_uint,
        threads_x: c_uint,
        threads_y: c_uint,
        threads_z: c_uint,
        shared_bytes: c_uint,
        stream: Handle,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        let mut machine = machine();
        let layout = machine.parameters(function.addr())?;
        // AMD's runtime takes pointers to each as well, which nobody passes here.
        if !parameters.is_null() || extra.is_null() {
            return Err(Refusal::Value);
        }
        // SAFETY: as above.
        let values = unsafe { unpack(extra, &layout)? };
        let groups = [groups_x, groups_y, groups_z];
        let threads = [threads_x, threads_y, threads_z];
        // So many threads a dimension are too many.
        let is_over = |(&groups, &threads): (&u32, &u32)| groups.checked_mul(threads).is_none();
        if groups.iter().zip(&threads).any(is_over) {
            return Err(Refusal::Value);
        }
        let mut launch = Launch::grid(groups, threads);
        launch.local_bytes = shared_bytes as usize;
        machine.launch(stream.addr(), function.addr(), launch, values)
    }
}

/// The values of parameters that are packed as a kernel finds them: pairs of a mark and what it marks, up to the last mark.
///
/// # Safety
/// Pointers are valid, and the list ends.
unsafe fn unpack(extra: *mut *mut c_void, layout: &[Parameter]) -> Outcome<Vec<u64>> {
    const POINTER: usize = 1;
    const SIZE: usize = 2;
    const END: usize = 3;
    let (mut start, mut size, mut at) = (None, None, 0);
    loop {
        // SAFETY: as the caller promises.
        let (mark, value) = unsafe { (extra.add(at).read().addr(), extra.add(at + 1)) };
        match mark {
            // SAFETY: behind a mark that is not the last stands what it marks.
            POINTER => start = Some(unsafe { value.read() }.cast::<u8>()),
            // SAFETY: as above: the address of the size.
            SIZE => size = Some(unsafe { value.read().cast::<usize>().read() }),
            END => break,
            _ => return Err(Refusal::Value),
        }
        at += 2;
    }
    let (start, size) = (start.ok_or(Refusal::Value)?, size.ok_or(Refusal::Value)?);
    let end = layout.iter().map(|parameter| parameter.offset + parameter.bytes).max().unwrap_or(0);
    if size != end {
        return Err(Refusal::Value);
    }
    let value = |parameter: &Parameter| {
        let mut bytes = [0; 8];
        // SAFETY: all parameters are among the bytes that are given.
        unsafe {
            std::ptr::copy_nonoverlapping(start.add(parameter.offset), bytes.as_mut_ptr(), parameter.bytes.min(8))
        };
        u64::from_le_bytes(bytes)
    };
    Ok(layout.iter().map(value).collect())
}

/// # Safety
/// None is needed; the signature is the header's.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorName(error: c_int) -> *const c_char {
    VENDOR.texts(error)[0]
}

/// # Safety
/// As above.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorString(error: c_int) -> *const c_char {
    VENDOR.texts(error)[1]
}

/// What is held of the runtime, for tests: AMD's has no such function.
///
/// # Safety
/// The pointer is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mock_held(held: *mut Held) {
    // SAFETY: as the caller promises.
    unsafe { held.write(machine().held()) }
}
