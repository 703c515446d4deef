//! Relocations of x86-64 and AArch64.

use super::{LoadError, damaged};
use object::elf::{self, Machine, RelocationType};

#[cfg(target_arch = "x86_64")]
pub(super) const MACHINE: Machine = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
pub(super) const MACHINE: Machine = elf::EM_AARCH64;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const MACHINE: Machine = elf::EM_NONE;

/// The processor's name, for messages.
pub(super) const NAME: &str = std::env::consts::ARCH;

/// The operands of a relocation.
pub(super) struct Operands {
    /// Address of the bytes to change.
    pub(super) address: u64,
    /// Address of the symbol.
    pub(super) symbol: u64,
    /// Address of the symbol's thunk, if it has one.
    pub(super) thunk: Option<u64>,
    /// Constant to add.
    pub(super) addend: i64,
}

impl Operands {
    fn absolute(&self) -> u64 {
        self.symbol.wrapping_add_signed(self.addend)
    }

    fn relative(&self) -> i64 {
        self.absolute().wrapping_sub(self.address) as i64
    }

    /// The distance to a function, or to its thunk if there is one, because the function may be out of range.
    fn call(&self) -> i64 {
        let target = self.thunk.unwrap_or(self.symbol);
        target.wrapping_add_signed(self.addend).wrapping_sub(self.address) as i64
    }

    /// Address of the slot that holds the symbol's address: the second half of its thunk.
    fn slot(&self) -> Result<u64, LoadError> {
        Ok(self.thunk.ok_or_else(|| damaged("relocation without a slot"))? + 8)
    }
}

fn write<const N: usize>(bytes: &mut [u8], value: [u8; N]) -> Result<(), LoadError> {
    bytes.get_mut(..N).ok_or_else(|| damaged("relocation outside its section"))?.copy_from_slice(&value);
    Ok(())
}

fn write_distance(bytes: &mut [u8], distance: i64) -> Result<(), LoadError> {
    let distance = i32::try_from(distance).map_err(|_| damaged("relocation out of reach"))?;
    write(bytes, distance.to_le_bytes())
}

/// Whether this kind of relocation refers to the slot with the symbol's address.
pub(super) fn through_table(kind: RelocationType) -> bool {
    match MACHINE {
        elf::EM_X86_64 => {
            matches!(kind, elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX)
        }
        _ => matches!(kind, elf::R_AARCH64_ADR_GOT_PAGE | elf::R_AARCH64_LD64_GOT_LO12_NC),
    }
}

/// Applies a relocation to `bytes`.
pub(super) fn relocate(kind: RelocationType, place: &Operands, bytes: &mut [u8]) -> Result<(), LoadError> {
    match MACHINE {
        elf::EM_X86_64 => relocate_x86_64(kind, place, bytes),
        _ => relocate_aarch64(kind, place, bytes),
    }
}

fn relocate_x86_64(kind: RelocationType, place: &Operands, bytes: &mut [u8]) -> Result<(), LoadError> {
    match kind {
        elf::R_X86_64_NONE => Ok(()),
        elf::R_X86_64_64 => write(bytes, place.absolute().to_le_bytes()),
        elf::R_X86_64_PC64 => write(bytes, place.relative().to_le_bytes()),
        elf::R_X86_64_PC32 => write_distance(bytes, place.relative()),
        elf::R_X86_64_PLT32 => write_distance(bytes, place.call()),
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
            let distance = place.slot()?.wrapping_add_signed(place.addend).wrapping_sub(place.address);
            write_distance(bytes, distance as i64)
        }
        other => Err(LoadError::UnknownRelocation { kind: other.0, machine: "x86-64" }),
    }
}

fn relocate_aarch64(kind: RelocationType, place: &Operands, bytes: &mut [u8]) -> Result<(), LoadError> {
    match kind {
        elf::R_AARCH64_NONE => return Ok(()),
        elf::R_AARCH64_ABS64 => return write(bytes, place.absolute().to_le_bytes()),
        elf::R_AARCH64_PREL64 => return write(bytes, place.relative().to_le_bytes()),
        elf::R_AARCH64_PREL32 => return write_distance(bytes, place.relative()),
        _ => {}
    }
    let word = bytes.first_chunk::<4>().ok_or_else(|| damaged("relocation outside its section"))?;
    let word = u32::from_le_bytes(*word);
    let low = |value: u64, scale: u32| -> Result<u32, LoadError> {
        let offset = value as u32 & 0xfff;
        if !offset.is_multiple_of(1 << scale) {
            return Err(damaged("misaligned relocation"));
        }
        Ok(word & !(0xfff << 10) | (offset >> scale) << 10)
    };
    let page = |value: u64| -> Result<u32, LoadError> {
        let pages = ((value & !0xfff).wrapping_sub(place.address & !0xfff) as i64) >> 12;
        if !(-(1 << 20)..1 << 20).contains(&pages) {
            return Err(damaged("relocation out of reach"));
        }
        let pages = pages as u32;
        Ok(word & !(0x3 << 29 | 0x7ffff << 5) | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5)
    };
    let word = match kind {
        elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => {
            let distance = place.call();
            if distance % 4 != 0 || !(-(1 << 27)..1 << 27).contains(&distance) {
                return Err(damaged("relocation out of reach"));
            }
            word & !0x03ff_ffff | (distance >> 2) as u32 & 0x03ff_ffff
        }
        elf::R_AARCH64_ADR_PREL_PG_HI21 => page(place.absolute())?,
        elf::R_AARCH64_ADR_GOT_PAGE => page(place.slot()?)?,
        elf::R_AARCH64_LD64_GOT_LO12_NC => low(place.slot()?, 3)?,
        elf::R_AARCH64_ADD_ABS_LO12_NC | elf::R_AARCH64_LDST8_ABS_LO12_NC => low(place.absolute(), 0)?,
        elf::R_AARCH64_LDST16_ABS_LO12_NC => low(place.absolute(), 1)?,
        elf::R_AARCH64_LDST32_ABS_LO12_NC => low(place.absolute(), 2)?,
        elf::R_AARCH64_LDST64_ABS_LO12_NC => low(place.absolute(), 3)?,
        elf::R_AARCH64_LDST128_ABS_LO12_NC => low(place.absolute(), 4)?,
        other => return Err(LoadError::UnknownRelocation { kind: other.0, machine: "AArch64" }),
    };
    write(bytes, word.to_le_bytes())
}

/// A jump to the address in the thunk's second half.
pub(super) fn write_thunk(thunk: &mut [u8], target: u64) {
    let (jump, slot) = thunk.split_at_mut(8);
    jump.copy_from_slice(&match MACHINE {
        // jmp [rip + 2]; two bytes of padding
        elf::EM_X86_64 => [0xff, 0x25, 0x02, 0, 0, 0, 0xcc, 0xcc],
        // ldr x16, .+8; br x16
        _ => [0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6],
    });
    slot.copy_from_slice(&target.to_le_bytes());
}

/// Makes new code visible to instruction fetch, on machines where that is not automatic.
pub(super) fn synchronize_instructions(code: &[u8]) {
    #[cfg(target_arch = "aarch64")]
    {
        // The smallest line size that AArch64 allows is 16 bytes for either cache; cleaning a line twice is harmless.
        let (start, end) = (code.as_ptr() as usize, code.as_ptr() as usize + code.len());
        // SAFETY: maintenance of mapped, readable addresses; it changes no data.
        unsafe {
            for line in (start & !15..end).step_by(16) {
                std::arch::asm!("dc cvau, {line}", line = in(reg) line);
            }
            std::arch::asm!("dsb ish");
            for line in (start & !15..end).step_by(16) {
                std::arch::asm!("ic ivau, {line}", line = in(reg) line);
            }
            std::arch::asm!("dsb ish", "isb");
        }
    }
    #[cfg(not(target_arch = "aarch64"))]
    let _ = code;
}
