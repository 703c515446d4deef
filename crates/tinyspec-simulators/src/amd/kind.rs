//! Operand types: their width, how an inline constant or a literal is read, which modifiers apply.

use super::text::Operand;

/// The type of an operand, or of the result, of a vector instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Untyped bits. Each result bit depends on only a few operand bits, so unwritten bits are tracked individually.
    B16,
    B32,
    B64,
    /// Integers.
    I16,
    I32,
    U64,
    /// A 32-bit literal is sign-extended.
    I64,
    F16,
    F32,
    F64,
    /// Two 16-bit values in one register.
    PairB16,
    PairI16,
    PairF16,
    /// Two 32-bit values in a register pair.
    PairB32,
    PairF32,
    /// An f16 or an f32, as `op_sel_hi` selects.
    Mixed,
}

impl Kind {
    /// The number of registers it occupies.
    pub fn count(self) -> u16 {
        match self {
            Kind::B64 | Kind::U64 | Kind::I64 | Kind::F64 | Kind::PairB32 | Kind::PairF32 => 2,
            _ => 1,
        }
    }

    pub fn is_narrow(self) -> bool {
        matches!(self, Kind::B16 | Kind::I16 | Kind::F16)
    }

    pub fn is_pair(self) -> bool {
        matches!(self, Kind::PairB16 | Kind::PairI16 | Kind::PairF16 | Kind::PairB32 | Kind::PairF32)
    }

    /// Whether unwritten bits are tracked individually.
    pub const fn is_bits(self) -> bool {
        matches!(self, Kind::B16 | Kind::B32 | Kind::B64 | Kind::PairB16 | Kind::PairB32)
    }

    /// The sign bit of a float.
    pub fn sign(self) -> Option<u64> {
        match self {
            Kind::F16 => Some(1 << 15),
            Kind::F32 | Kind::Mixed => Some(1 << 31),
            Kind::F64 => Some(1 << 63),
            _ => None,
        }
    }

    /// The bits of an inline constant or a literal. Those on which chips or manuals disagree are refused.
    pub fn constant(self, operand: &Operand) -> Result<u64, String> {
        let inline = |value: i64| (-16..=64).contains(&value);
        match *operand {
            Operand::Integer(value) if inline(value) => Ok(match self.count() {
                2 if !self.is_pair() => value as u64,
                _ => u64::from(value as u32),
            }),
            Operand::Integer(value) => self.literal(value as u32, i64::from(value as i32) == value),
            Operand::Bits(bits) => self.literal(bits as u32, bits <= u32::MAX.into()),
            Operand::Float(value) => self.float(value),
            _ => Err("a constant is expected".into()),
        }
    }

    fn literal(self, bits: u32, fits: bool) -> Result<u64, String> {
        if !fits {
            return Err("a literal of more than 32 bits".into());
        }
        match self {
            Kind::F64 => Ok(u64::from(bits) << 32),
            Kind::I64 => Ok(i64::from(bits as i32) as u64),
            Kind::PairB32 | Kind::PairF32 => Err("a literal for a register pair".into()),
            _ => Ok(bits.into()),
        }
    }

    fn float(self, value: f64) -> Result<u64, String> {
        // 1 / (2π), which the disassembler prints rounded.
        let is_turn = (value - 0.159_154_943_091_895_32).abs() < 1e-4;
        let known = [0.5, 1.0, 2.0, 4.0];
        if !is_turn && !known.contains(&value.abs()) {
            return Err(format!("{value} is no inline constant"));
        }
        let single = if is_turn { 0x3e22_f983 } else { (value as f32).to_bits() };
        Ok(match self {
            Kind::F16 | Kind::PairF16 | Kind::B16 => {
                if is_turn {
                    0x3118
                } else {
                    let exponent = (single >> 23 & 0xff) + 15 - 127;
                    u64::from((single >> 16 & 0x8000) | exponent << 10)
                }
            }
            Kind::F64 | Kind::B64 | Kind::U64 | Kind::I64 => {
                if is_turn {
                    0x3fc4_5f30_6dc9_c882
                } else {
                    value.to_bits()
                }
            }
            Kind::PairI16 | Kind::PairB16 | Kind::I16 => return Err("a float constant for a 16-bit integer".into()),
            Kind::B32 | Kind::I32 | Kind::F32 | Kind::Mixed | Kind::PairF32 | Kind::PairB32 => single.into(),
        })
    }
}
