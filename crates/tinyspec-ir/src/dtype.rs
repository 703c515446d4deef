//! Data types, and the promotion lattice.

use crate::Op;

/// The dtype of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DType {
    /// No value.
    Void = 0,
    /// A mathematical integer; Instruction Selection picks i32 or i64 from min_max.
    Index = 1,
    /// One byte, 0 or 1.
    Bool = 2,
    /// 8-bit signed.
    I8 = 3,
    /// 16-bit signed.
    I16 = 4,
    /// 32-bit signed.
    I32 = 5,
    /// 64-bit signed.
    I64 = 6,
    /// 8-bit unsigned.
    U8 = 7,
    /// 16-bit unsigned.
    U16 = 8,
    /// 32-bit unsigned.
    U32 = 9,
    /// 64-bit unsigned.
    U64 = 10,
    /// 8-bit float: 4 exponent bits, 3 mantissa bits, no infinity.
    F8E4M3 = 11,
    /// 8-bit float: 5 exponent bits, 2 mantissa bits.
    F8E5M2 = 12,
    /// IEEE half.
    F16 = 13,
    /// bfloat16.
    BF16 = 14,
    /// IEEE single.
    F32 = 15,
    /// IEEE double.
    F64 = 16,
}

use DType::*;

impl DType {
    /// Every dtype, in numeric order.
    pub const ALL: [DType; 17] =
        [Void, Index, Bool, I8, I16, I32, I64, U8, U16, U32, U64, F8E4M3, F8E5M2, F16, BF16, F32, F64];

    /// Name in the text form and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Void => "void",
            Index => "index",
            Bool => "bool",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            F8E4M3 => "f8e4m3",
            F8E5M2 => "f8e5m2",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
        }
    }

    /// The dtype of this name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The dtype with this number in encoded graphs.
    pub fn from_number(number: u8) -> Option<DType> {
        DType::ALL.get(number as usize).copied()
    }

    /// Bytes of one element in memory (`Void` 0; `Index` 8, the widest it can become).
    pub const fn size(self) -> usize {
        match self {
            Void => 0,
            Bool | I8 | U8 | F8E4M3 | F8E5M2 => 1,
            I16 | U16 | F16 | BF16 => 2,
            I32 | U32 | F32 => 4,
            Index | I64 | U64 | F64 => 8,
        }
    }

    /// A floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, F8E4M3 | F8E5M2 | F16 | BF16 | F32 | F64)
    }

    /// A signed or unsigned integer, including `index`; not bool.
    pub const fn is_int(self) -> bool {
        matches!(self, Index | I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
    }

    /// An integer without sign, or bool.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Bool | U8 | U16 | U32 | U64)
    }

    /// Least and greatest value of an integer or bool; `index` is bounded by i64.
    pub const fn int_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Bool => (0, 1),
            I8 => (i8::MIN as i128, i8::MAX as i128),
            I16 => (i16::MIN as i128, i16::MAX as i128),
            I32 => (i32::MIN as i128, i32::MAX as i128),
            Index | I64 => (i64::MIN as i128, i64::MAX as i128),
            U8 => (0, u8::MAX as i128),
            U16 => (0, u16::MAX as i128),
            U32 => (0, u32::MAX as i128),
            U64 => (0, u64::MAX as i128),
            _ => return None,
        })
    }

    /// The largest range of integers that this type represents without gaps. Beyond it, a cast to a float rounds.
    pub const fn whole_range(self) -> Option<(i128, i128)> {
        let bits = match self {
            F64 => 53,
            F32 => 24,
            F16 => 11,
            BF16 => 8,
            F8E4M3 => 4,
            F8E5M2 => 3,
            _ => return self.int_range(),
        };
        Some((-(1 << bits), 1 << bits))
    }

    /// The type in which a Reduce over this one accumulates (SEMANTICS, "Reduce").
    pub const fn accumulator(self) -> DType {
        match self {
            F8E4M3 | F8E5M2 | F16 | BF16 => F32,
            I8 | I16 => I32,
            U8 | U16 => U32,
            Bool => I32,
            other => other,
        }
    }

    /// The type in which a Reduce by `op` over this one accumulates. A maximum needs no wider type, whose identity
    /// would not be this type's least value.
    pub const fn accumulator_of(self, op: Op) -> DType {
        match (op, self) {
            (Op::Max, Bool) => U8,
            (Op::Max, I8 | I16 | U8 | U16) => self,
            _ => self.accumulator(),
        }
    }

    /// The least upper bound of both in the promotion lattice; `None` for void, and for index with anything else.
    ///
    /// Edges of the lattice: bool → i8, u8; i8 → i16 → i32 → i64; u8 → i16, u16; u16 → i32, u32; u32 → i64, u64;
    /// i64, u64 → f8; f8 → f16, bf16 → f32 → f64. Two integers without a common integer become f32.
    pub fn promote(self, other: DType) -> Option<DType> {
        if self == other {
            return (self != Void).then_some(self);
        }
        // Lists are in order of size, so the first common ancestor is the least one.
        let (a, b) = (self.ancestors(), other.ancestors());
        let least = a.iter().find(|dtype| b.contains(dtype)).copied()?;
        // Integers whose least common ancestor is a float promote to the default float.
        Some(if least.is_float() && !self.is_float() && !other.is_float() { F32 } else { least })
    }

    const fn ancestors(self) -> &'static [DType] {
        match self {
            Void => &[],
            Index => &[Index],
            Bool => &[Bool, I8, U8, I16, U16, I32, U32, I64, U64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            I8 => &[I8, I16, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            U8 => &[U8, I16, U16, I32, U32, I64, U64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            I16 => &[I16, I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            U16 => &[U16, I32, U32, I64, U64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            I32 => &[I32, I64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            U32 => &[U32, I64, U64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            I64 => &[I64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            U64 => &[U64, F8E4M3, F8E5M2, F16, BF16, F32, F64],
            F8E4M3 => &[F8E4M3, F16, BF16, F32, F64],
            F8E5M2 => &[F8E5M2, F16, BF16, F32, F64],
            F16 => &[F16, F32, F64],
            BF16 => &[BF16, F32, F64],
            F32 => &[F32, F64],
            F64 => &[F64],
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
