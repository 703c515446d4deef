//! Converts elements of memory to lanes and back.

use tinyspec_ir::DType;
use tinyspec_ir::eval::{from_storage, to_storage};

/// Start of a buffer with `length` elements of one dtype; positions are checked by the caller.
#[derive(Clone, Copy)]
pub(in super::super) struct View {
    pub start: *mut u8,
    pub dtype: DType,
}

/// Calls `$access::<type>(…)` with the unsigned type that stores the dtype.
macro_rules! by_size {
    ($dtype:expr, $access:ident($($argument:expr),*)) => {
        match $dtype.size() {
            1 => $access::<u8>($($argument),*),
            2 => $access::<u16>($($argument),*),
            4 => $access::<u32>($($argument),*),
            _ => $access::<u64>($($argument),*),
        }
    };
}

impl View {
    /// # Safety
    /// The elements `from..from + lanes.len()` must exist and not be written concurrently.
    pub unsafe fn load(self, from: usize, lanes: &mut [u64]) {
        // SAFETY: as the caller promises.
        unsafe { by_size!(self.dtype, load(self, from, lanes)) }
    }

    /// # Safety
    /// The elements `from..from + lanes.len()` must exist and not be used concurrently.
    pub unsafe fn store(self, from: usize, lanes: &[u64]) {
        // SAFETY: as the caller promises.
        unsafe { by_size!(self.dtype, store(self, from, lanes)) }
    }
}

trait Storage: Copy {
    fn widen(self) -> u64;
    fn narrow(bits: u64) -> Self;
}

macro_rules! storage {
    ($($type:ty)*) => {$(
        impl Storage for $type {
            fn widen(self) -> u64 { self as u64 }
            fn narrow(bits: u64) -> $type { bits as $type }
        }
    )*};
}

storage!(u8 u16 u32 u64);

unsafe fn load<T: Storage>(view: View, from: usize, lanes: &mut [u64]) {
    let start = view.start.cast::<T>();
    // A fast path for the common type, without a branch per lane.
    if view.dtype == DType::F32 {
        for (position, lane) in lanes.iter_mut().enumerate() {
            // SAFETY: the caller promises that the element exists.
            let bits = unsafe { start.add(from + position).read_unaligned() }.widen();
            *lane = (f32::from_bits(bits as u32) as f64).to_bits();
        }
        return;
    }
    for (position, lane) in lanes.iter_mut().enumerate() {
        // SAFETY: as above.
        let bits = unsafe { start.add(from + position).read_unaligned() }.widen();
        *lane = from_storage(view.dtype, bits);
    }
}

unsafe fn store<T: Storage>(view: View, from: usize, lanes: &[u64]) {
    let start = view.start.cast::<T>();
    if view.dtype == DType::F32 {
        for (position, &lane) in lanes.iter().enumerate() {
            let bits = (f64::from_bits(lane) as f32).to_bits() as u64;
            // SAFETY: the caller promises that the element exists.
            unsafe { start.add(from + position).write_unaligned(T::narrow(bits)) }
        }
        return;
    }
    for (position, &lane) in lanes.iter().enumerate() {
        // SAFETY: as above.
        unsafe { start.add(from + position).write_unaligned(T::narrow(to_storage(view.dtype, lane))) }
    }
}
