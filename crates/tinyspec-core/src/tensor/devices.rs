//! The device of a tensor's value, or the tuple of devices.

use super::{Tensor, apply};
use crate::device::device;
use crate::{Error, Result};
use std::panic::Location;
use std::sync::Arc;
use tinyspec_ir::{AddrSpace, Arg, Builder, Device, ErrorKind, Op};

/// An argument that names a device, or a tuple of devices.
pub trait IntoDevice {
    /// The device as graphs name it.
    ///
    /// # Errors
    /// When there is no such device.
    fn into_device(self) -> Result<Device>;
}

impl IntoDevice for &str {
    fn into_device(self) -> Result<Device> {
        Ok(device(self)?.id().clone())
    }
}

impl IntoDevice for &String {
    fn into_device(self) -> Result<Device> {
        self.as_str().into_device()
    }
}

impl IntoDevice for &Arc<str> {
    fn into_device(self) -> Result<Device> {
        (**self).into_device()
    }
}

impl IntoDevice for &Device {
    fn into_device(self) -> Result<Device> {
        match self {
            Device::Single(name) => name.into_device(),
            Device::Many(names) => names.into_device(),
        }
    }
}

impl<T: AsRef<str>> IntoDevice for &[T] {
    fn into_device(self) -> Result<Device> {
        if self.is_empty() {
            return Err(Error::refused(ErrorKind::Device, "to", "a tuple of no devices"));
        }
        let mut names: Vec<Arc<str>> = Vec::with_capacity(self.len());
        for name in self {
            let name = Arc::from(device(name.as_ref())?.name());
            if names.contains(&name) {
                let message = format!("`{name}` is twice in the tuple of devices");
                let error = tinyspec_ir::Error::new(ErrorKind::Device, "to", message);
                return Err(error
                    .help("`cpu:0`, `cpu:1`, … are devices beside each other with memory of their own")
                    .into());
            }
            names.push(name);
        }
        Ok(Device::Many(names.into()))
    }
}

impl<T: AsRef<str>> IntoDevice for &Vec<T> {
    fn into_device(self) -> Result<Device> {
        self.as_slice().into_device()
    }
}

impl<T: AsRef<str>, const N: usize> IntoDevice for [T; N] {
    fn into_device(self) -> Result<Device> {
        self.as_slice().into_device()
    }
}

impl<T: AsRef<str>, const N: usize> IntoDevice for &[T; N] {
    fn into_device(self) -> Result<Device> {
        self.as_slice().into_device()
    }
}

impl Tensor {
    /// The value on another device; on a tuple of devices it is sharded evenly along axis 0 ("Multi-Device Collectives"
    /// of the spec). `cpu:1`, `cpu:2`, … are further devices like `cpu`, with memory of their own.
    ///
    /// ```
    /// # use tinyspec_core::Tensor;
    /// # fn main() -> tinyspec_core::Result<()> {
    /// let devices = ["interpreter:0", "interpreter:1"];
    /// let x = Tensor::arange(6).to(devices);
    /// assert_eq!(x.axis(), Some(0));
    /// // Every device adds to its three elements.
    /// assert_eq!((x + 1).to("interpreter:0").to_vec::<i32>()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn to(&self, device: impl IntoDevice) -> Tensor {
        self.to_at(Location::caller(), device.into_device().map_err(|error| error.in_op("to")))
    }

    pub(crate) fn to_at(&self, location: &'static Location<'static>, device: Result<Device>) -> Tensor {
        let device = match device {
            Ok(device) => device,
            Err(error) => return Tensor::failed(error.at(location)),
        };
        if self.device() == Some(&device) && (matches!(device, Device::Single(_)) || self.axis() == Some(0)) {
            return self.clone();
        }
        apply(location, &[self], |builder, nodes| {
            builder.add(Op::Load, nodes, Arg::Load { device: Some(device), addrspace: AddrSpace::Global })
        })
    }

    /// The axis along which the value is sharded over a tuple of devices; `None` if each device has all of it, and on
    /// one device. For results of a Function it is known once they are computed.
    pub fn axis(&self) -> Option<usize> {
        let node = self.node().ok()?;
        let axis = match node.shards() {
            Some(shards) => shards.axis,
            None => node.props.axis,
        };
        axis.map(|axis| axis as usize)
    }

    /// For a value that is sharded along `axis` into equal shards of length 1: that shard, replicated on every device.
    #[track_caller]
    pub fn replicated(&self, axis: usize) -> Tensor {
        let location = Location::caller();
        if self.error().is_none() && self.axis() != Some(axis) {
            let message = match self.axis() {
                Some(cut) => format!("the value is cut along axis {cut} over the devices, not {axis}"),
                None => "the value is not cut over a tuple of devices".into(),
            };
            return Tensor::refused(location, ErrorKind::Axis, "replicated", message);
        }
        apply(location, &[self], |builder, nodes| builder.add(Op::Replicated, nodes, Arg::Number(axis as u32)))
    }
}
