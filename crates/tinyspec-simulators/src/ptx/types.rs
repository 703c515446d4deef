//! The types of PTX, as suffixes of instructions name them.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    F32,
    F32x2,
    TF32,
    F64,
    E4M3x2,
    E5M2x2,
    U16x2,
    S16x2,
}

use Type::*;

const NAMES: [(&str, Type); 26] = [
    ("pred", Pred),
    ("b8", B8),
    ("b16", B16),
    ("b32", B32),
    ("b64", B64),
    ("b128", B128),
    ("u8", U8),
    ("u16", U16),
    ("u32", U32),
    ("u64", U64),
    ("s8", S8),
    ("s16", S16),
    ("s32", S32),
    ("s64", S64),
    ("f16", F16),
    ("f16x2", F16x2),
    ("bf16", BF16),
    ("bf16x2", BF16x2),
    ("f32", F32),
    ("f32x2", F32x2),
    ("tf32", TF32),
    ("f64", F64),
    ("e4m3x2", E4M3x2),
    ("e5m2x2", E5M2x2),
    ("u16x2", U16x2),
    ("s16x2", S16x2),
];

impl Type {
    pub fn named(name: &str) -> Option<Type> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Its name, without the dot.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Bytes in memory; a predicate has none.
    pub fn size(self) -> usize {
        match self {
            Pred => 0,
            B8 | U8 | S8 => 1,
            B16 | U16 | S16 | F16 | BF16 | E4M3x2 | E5M2x2 => 2,
            B32 | U32 | S32 | F32 | F16x2 | BF16x2 | TF32 | U16x2 | S16x2 => 4,
            B64 | U64 | S64 | F64 | F32x2 => 8,
            B128 => 16,
        }
    }

    pub fn bits(self) -> u32 {
        self.size() as u32 * 8
    }

    /// The type of each of two floats of 16 bits.
    pub fn part(self) -> Option<Type> {
        match self {
            F16x2 => Some(F16),
            BF16x2 => Some(BF16),
            _ => None,
        }
    }

    pub fn is_signed(self) -> bool {
        matches!(self, S8 | S16 | S32 | S64)
    }

    pub fn is_unsigned(self) -> bool {
        matches!(self, U8 | U16 | U32 | U64)
    }

    pub fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    pub fn is_float(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64 | TF32)
    }

    /// Untyped bits.
    pub fn is_bits(self) -> bool {
        matches!(self, B8 | B16 | B32 | B64 | B128)
    }
}
