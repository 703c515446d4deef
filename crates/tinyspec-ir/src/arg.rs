//! Arguments of nodes. Floats are kept as bits, so that nan and -0 have an identity.

use crate::{DType, Op};
use smallvec::SmallVec;
use std::sync::Arc;

/// Axis numbers of a Permute or Reduce.
pub type Axes = SmallVec<[u32; 6]>;

/// A scalar constant: its dtype and its bits.
///
/// Integers are stored sign- or zero-extended to 64 bits, floats as the bits of the value in f64 (every
/// smaller float is exactly representable there).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Const {
    /// Type of the value.
    pub dtype: DType,
    /// Extended bits, see the type's docs.
    pub bits: u64,
}

impl Const {
    /// An integer, bool or index constant; `value` is taken modulo the width of the type.
    /// A float type takes the value as a float.
    pub fn int(dtype: DType, value: i128) -> Const {
        let bits = match dtype {
            DType::Bool => (value != 0) as u64,
            DType::I8 => value as i8 as i64 as u64,
            DType::I16 => value as i16 as i64 as u64,
            DType::I32 => value as i32 as i64 as u64,
            DType::U8 => value as u8 as u64,
            DType::U16 => value as u16 as u64,
            DType::U32 => value as u32 as u64,
            _ if dtype.is_float() => return Const::float(dtype, value as f64),
            _ => value as u64,
        };
        Const { dtype, bits }
    }

    /// A float constant, rounded to `dtype`; for an integer type the value saturates (SEMANTICS, "total").
    pub fn float(dtype: DType, value: f64) -> Const {
        if dtype.is_float() {
            Const { dtype, bits: crate::float::round(dtype, value).to_bits() }
        } else if dtype == DType::Bool {
            Const { dtype, bits: (value != 0.0) as u64 }
        } else {
            let (low, high) = dtype.int_range().unwrap_or((0, 0));
            Const::int(dtype, (value as i128).clamp(low, high))
        }
    }

    /// Whether its bits are valid for its type, which those of a decoded constant may not be.
    pub fn is_sound(self) -> bool {
        match (self.as_int(), self.as_float()) {
            (Some(value), _) => Const::int(self.dtype, value) == self,
            (_, Some(value)) => value.is_nan() || Const::float(self.dtype, value) == self,
            _ => true,
        }
    }

    /// The value of an integer, bool or index constant.
    pub fn as_int(self) -> Option<i128> {
        match self.dtype {
            DType::U64 => Some(self.bits as i128),
            dtype if dtype.is_int() || dtype == DType::Bool => Some(self.bits as i64 as i128),
            _ => None,
        }
    }

    /// The value, if it is a whole number of an integer or float type, and not -0.
    pub fn as_whole(self) -> Option<i64> {
        let value = match self.as_float() {
            Some(value) => {
                let is_whole = value.fract() == 0.0 && value.abs() <= (1i64 << 53) as f64;
                (is_whole && value.to_bits() != (-0.0f64).to_bits()).then_some(value as i128)
            }
            None => self.as_int(),
        };
        value.and_then(|value| i64::try_from(value).ok())
    }

    /// The value of a float constant.
    pub fn as_float(self) -> Option<f64> {
        self.dtype.is_float().then(|| f64::from_bits(self.bits))
    }
}

/// Where a buffer lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum AddrSpace {
    /// Device memory.
    Global = 0,
    /// Memory of a workgroup; on a CPU, of a thread.
    Local = 1,
    /// Registers.
    Reg = 2,
}

impl AddrSpace {
    /// All address spaces, by number.
    pub const ALL: [AddrSpace; 3] = [AddrSpace::Global, AddrSpace::Local, AddrSpace::Reg];

    /// Name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            AddrSpace::Global => "global",
            AddrSpace::Local => "local",
            AddrSpace::Reg => "reg",
        }
    }
}

/// The type of a Range ("Kernel Optimizations").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum AxisType {
    /// Workgroup dimension of a GPU. On a CPU, as LOCAL, a loop whose trips are independent of each other.
    Global = 0,
    /// Dimension within a workgroup.
    Local = 1,
    /// Lanes of a warp: neighbouring threads of a workgroup.
    Warp = 2,
    /// The axis that the threads of a CPU share: the outermost loop.
    Thread = 3,
    /// Generic sequential loop, the initial state.
    Loop = 4,
    /// Reduction axis.
    Reduce = 5,
    /// Reduction shared by a workgroup.
    GroupReduce = 6,
    /// Register-level tile of the output.
    Upcast = 7,
    /// Fully unrolled part of a reduction.
    Unroll = 8,
}

impl AxisType {
    /// All axis types, by number.
    pub const ALL: [AxisType; 9] = [
        AxisType::Global,
        AxisType::Local,
        AxisType::Warp,
        AxisType::Thread,
        AxisType::Loop,
        AxisType::Reduce,
        AxisType::GroupReduce,
        AxisType::Upcast,
        AxisType::Unroll,
    ];

    /// The letter of the spec's table.
    pub const fn letter(self) -> char {
        ['g', 'l', 'w', 't', 'L', 'R', 'G', 'u', 'r'][self as usize]
    }

    /// Whether its trips run at the same time, and do not wait for each other: workgroups, or parts of a CPU's threads.
    pub const fn is_parallel(self) -> bool {
        matches!(self, AxisType::Global | AxisType::Thread)
    }

    /// Whether its trips are threads of a workgroup.
    pub const fn is_within_workgroup(self) -> bool {
        matches!(self, AxisType::Local | AxisType::Warp | AxisType::GroupReduce)
    }

    /// Whether it is part of a reduction.
    pub const fn is_reduce(self) -> bool {
        matches!(self, AxisType::Reduce | AxisType::GroupReduce | AxisType::Unroll)
    }
}

/// A device, or a tuple of devices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Device {
    /// One device, such as `cpu` or `cuda:1`.
    Single(Arc<str>),
    /// Several devices that share a buffer along axis 0.
    Many(Arc<[Arc<str>]>),
}

impl Device {
    /// The device of this name.
    pub fn new(name: &str) -> Device {
        Device::Single(name.into())
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Single(name) => f.write_str(name),
            Device::Many(names) => write!(f, "({})", names.join(", ")),
        }
    }
}

/// The argument of a node; the op table says which kind an op takes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Arg {
    /// None.
    #[default]
    None,
    /// Value of a Const.
    Const(Const),
    /// A Param: its slot, dtype and, if known, device or address space.
    Param {
        /// Position among the arguments of the Function or Call.
        slot: u32,
        /// Type of the elements.
        dtype: DType,
        /// Device, if the Param is a tensor on one.
        device: Option<Device>,
        /// Address space, if the Param is a buffer of a kernel.
        addrspace: Option<AddrSpace>,
    },
    /// A Buffer: its slot, dtype and address space.
    Buffer {
        /// Number of the buffer, unique within its graph.
        slot: u32,
        /// Type of the elements.
        dtype: DType,
        /// Device, for GLOBAL.
        device: Option<Device>,
        /// Address space.
        addrspace: AddrSpace,
    },
    /// Data of a Binary.
    Bytes(Arc<[u8]>),
    /// Order of a Permute.
    Axes(Axes),
    /// Flags of a Flip.
    Flags(SmallVec<[bool; 8]>),
    /// Target of a Cast or Bitcast.
    DType(DType),
    /// Reduce: the op (Add, Max or Mul) and the axes (empty when the sources are Ranges).
    Reduce {
        /// Add, Max or Mul.
        op: Op,
        /// Axes, ascending.
        axes: Axes,
    },
    /// Index of a GetTuple, axis of a Replicated.
    Number(u32),
    /// Where a Load puts its value.
    Load {
        /// Device to move to, if any.
        device: Option<Device>,
        /// Address space to load into.
        addrspace: AddrSpace,
    },
    /// A Store that bypasses the caches.
    Nontemporal,
    /// A Contiguous that is not a kernel boundary: the value is stored, but any kernel may store it along the way.
    Stored,
    /// A Range: identity and type.
    Range {
        /// Ranges with different ids are distinct.
        id: u32,
        /// Type of the axis.
        axis: AxisType,
    },
    /// Name or text of Special, Ins, Custom, CustomFunction, Source, Wmma.
    Text(Arc<str>),
}
