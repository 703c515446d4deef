//! Decodes numbers, strings and arguments from untrusted bytes.

use crate::op::ArgKind;
use crate::{AddrSpace, Arg, AxisType, Const, DType, Device, Error, ErrorKind, Op, Result};

/// Reads what a [`Writer`](super::Writer) wrote. The bytes may be truncated or corrupt.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Parse, "decode", format!("the encoded graph is damaged: {what}"))
}

impl<'a> Reader<'a> {
    /// Reads from the start of some bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Whether everything has been read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    fn raw(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(|| damaged("it ends early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// One byte.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.raw(1)?[0])
    }

    /// A number.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn number(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= ((byte & 0x7f) as u64) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged("a number without end"))
    }

    fn small(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| damaged("a number too large"))
    }

    /// A count of items that follow. Each takes at least a byte, so the count is at most the remaining bytes.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn count(&mut self) -> Result<usize> {
        let count = self.number()?;
        if count <= self.rest.len() as u64 { Ok(count as usize) } else { Err(damaged("it ends early")) }
    }

    fn list<T, C: FromIterator<T>>(&mut self, item: impl Fn(u32) -> T) -> Result<C> {
        (0..self.count()?).map(|_| Ok(item(self.small()?))).collect()
    }

    /// A length-prefixed block of bytes.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn block(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.raw(count)
    }

    /// A length-prefixed string.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn text<S: for<'t> From<&'t str>>(&mut self) -> Result<S> {
        let count = self.count()?;
        let text = std::str::from_utf8(self.raw(count)?).map_err(|_| damaged("a string that is not UTF-8"))?;
        Ok(text.into())
    }

    fn device(&mut self) -> Result<Option<Device>> {
        Ok(match self.count()? {
            0 => None,
            1 => Some(Device::Single(self.text()?)),
            count => Some(Device::Many((2..count).map(|_| self.text()).collect::<Result<_>>()?)),
        })
    }

    fn dtype(&mut self) -> Result<DType> {
        DType::from_number(self.byte()?).ok_or_else(|| damaged("an unknown dtype"))
    }

    fn addrspace(&mut self) -> Result<Option<AddrSpace>> {
        match self.byte()? {
            0 => Ok(None),
            number => {
                let space = AddrSpace::ALL.get(number as usize - 1);
                space.copied().map(Some).ok_or_else(|| damaged("an unknown address space"))
            }
        }
    }

    fn needed_addrspace(&mut self) -> Result<AddrSpace> {
        self.addrspace()?.ok_or_else(|| damaged("an address space is missing"))
    }

    pub(super) fn arg(&mut self, op: Op) -> Result<Arg> {
        Ok(match op.info().arg {
            ArgKind::None => Arg::None,
            ArgKind::Const => {
                let dtype = self.dtype()?;
                let bits = self.raw(8)?.iter().rev().fold(0, |bits, &byte| bits << 8 | byte as u64);
                Arg::Const(Const { dtype, bits })
            }
            ArgKind::Param => Arg::Param {
                slot: self.small()?,
                dtype: self.dtype()?,
                device: self.device()?,
                addrspace: self.addrspace()?,
            },
            ArgKind::Buffer => Arg::Buffer {
                slot: self.small()?,
                dtype: self.dtype()?,
                device: self.device()?,
                addrspace: self.needed_addrspace()?,
            },
            ArgKind::Bytes => {
                let count = self.count()?;
                Arg::Bytes(self.raw(count)?.into())
            }
            ArgKind::Axes => Arg::Axes(self.list(|axis| axis)?),
            ArgKind::Flags => Arg::Flags(self.list(|flag| flag != 0)?),
            ArgKind::DType => Arg::DType(self.dtype()?),
            ArgKind::Reduce => {
                let op = Op::from_number(self.byte()?).ok_or_else(|| damaged("an unknown op"))?;
                Arg::Reduce { op, axes: self.list(|axis| axis)? }
            }
            ArgKind::Number => Arg::Number(self.small()?),
            ArgKind::Load => Arg::Load { device: self.device()?, addrspace: self.needed_addrspace()? },
            ArgKind::Store if self.byte()? == 0 => Arg::None,
            ArgKind::Store => Arg::Nontemporal,
            ArgKind::Contiguous if self.byte()? == 0 => Arg::None,
            ArgKind::Contiguous => Arg::Stored,
            ArgKind::Range => {
                let id = self.small()?;
                let axis = AxisType::ALL.get(self.byte()? as usize);
                Arg::Range { id, axis: *axis.ok_or_else(|| damaged("an unknown axis type"))? }
            }
            ArgKind::Text => Arg::Text(self.text()?),
        })
    }
}
