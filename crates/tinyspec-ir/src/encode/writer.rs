//! Encodes numbers, strings and arguments.

use crate::op::ArgKind;
use crate::{Arg, Device, Op};

/// Appends numbers, texts and blocks to bytes. [`Reader`](super::Reader) reads them in the same order.
///
/// ```
/// use tinyspec_ir::encode::{Reader, Writer};
/// let mut writer = Writer::default();
/// writer.number(300);
/// writer.text("gemm");
/// let bytes = writer.into_bytes();
/// let mut reader = Reader::new(&bytes);
/// assert_eq!((reader.number()?, reader.text::<String>()?), (300, "gemm".into()));
/// # Ok::<(), tinyspec_ir::Error>(())
/// ```
#[derive(Default, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// The bytes written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Bytes whose number the reader knows.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// LEB128: seven bits per byte, low ones first.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    fn list<T: Copy>(&mut self, items: &[T], number: impl Fn(T) -> u64) {
        self.number(items.len() as u64);
        for &item in items {
            self.number(number(item));
        }
    }

    /// Length-prefixed bytes.
    pub fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    /// A length-prefixed string.
    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.raw(text.as_bytes());
    }

    /// 0: none; 1: one; n + 2: a tuple of n.
    fn device(&mut self, device: Option<&Device>) {
        match device {
            None => self.number(0),
            Some(Device::Single(name)) => {
                self.number(1);
                self.text(name);
            }
            Some(Device::Many(names)) => {
                self.number(names.len() as u64 + 2);
                names.iter().for_each(|name| self.text(name));
            }
        }
    }

    /// The op determines the kind of argument that follows; only those of a Store and a Contiguous are optional.
    pub(super) fn arg(&mut self, op: Op, arg: &Arg) {
        match arg {
            Arg::None if matches!(op.info().arg, ArgKind::Store | ArgKind::Contiguous) => self.byte(0),
            Arg::None => {}
            Arg::Const(value) => {
                self.byte(value.dtype as u8);
                self.raw(&value.bits.to_le_bytes());
            }
            Arg::Param { slot, dtype, device, addrspace } => {
                self.number(*slot as u64);
                self.byte(*dtype as u8);
                self.device(device.as_ref());
                self.byte(addrspace.map_or(0, |space| space as u8 + 1));
            }
            Arg::Buffer { slot, dtype, device, addrspace } => {
                self.number(*slot as u64);
                self.byte(*dtype as u8);
                self.device(device.as_ref());
                self.byte(*addrspace as u8 + 1);
            }
            Arg::Bytes(bytes) => {
                self.number(bytes.len() as u64);
                self.raw(bytes);
            }
            Arg::Axes(axes) => self.list(axes, u64::from),
            Arg::Flags(flags) => self.list(flags, u64::from),
            Arg::DType(dtype) => self.byte(*dtype as u8),
            Arg::Reduce { op, axes } => {
                self.byte(*op as u8);
                self.list(axes, u64::from);
            }
            Arg::Number(number) => self.number(*number as u64),
            Arg::Load { device, addrspace } => {
                self.device(device.as_ref());
                self.byte(*addrspace as u8 + 1);
            }
            Arg::Nontemporal | Arg::Stored => self.byte(1),
            Arg::Range { id, axis } => {
                self.number(*id as u64);
                self.byte(*axis as u8);
            }
            Arg::Text(text) => self.text(text),
        }
    }
}
