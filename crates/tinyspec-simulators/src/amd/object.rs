//! HSA code objects: their kernels, and what a launch needs to know about each.

use crate::Parameter;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _};
use rmpv::Value;
use std::ops::Range;

/// Why a code object is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the code object cannot be read: {0}")]
pub(super) struct Damaged(pub String);

fn damaged(reason: impl std::fmt::Display) -> Damaged {
    Damaged(reason.to_string())
}

/// `e_machine` of AMD's GPUs.
const MACHINE: u16 = 224;
const SHARED_OBJECT: u16 = 3;

/// Chips by the low byte of `e_flags`.
const CHIPS: &[(u32, &str)] = &[
    (0x3f, "gfx90a"),
    (0x4c, "gfx942"),
    (0x4f, "gfx950"),
    (0x41, "gfx1100"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x44, "gfx1103"),
    (0x43, "gfx1150"),
    (0x4a, "gfx1151"),
    (0x48, "gfx1200"),
    (0x4e, "gfx1201"),
];

/// A kernel as its descriptor and the metadata describe it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: String,
    pub code: Vec<u8>,
    /// The address of the code, for messages.
    pub address: u64,
    /// Addresses in their order, and from each on the line of the source code that instructions are for, or 0.
    pub source_lines: Vec<(u64, u32)>,
    pub params: Vec<Parameter>,
    pub argument_bytes: usize,
    pub local_bytes: usize,
    /// Scratch memory of a lane.
    pub scratch_bytes: u32,
    /// Threads of a workgroup, at the most.
    pub most_threads: u64,
    pub required: Option<[u32; 3]>,
    /// Registers of a lane: ordinary ones, and where accumulation registers begin among all of them.
    pub vgprs: usize,
    pub accumulators: usize,
    pub wave: usize,
    pub resources: [u32; 3],
    pub properties: u16,
}

/// A code object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub chip: &'static str,
    pub entries: Vec<Entry>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a code object as a loader does.
pub(super) fn read(bytes: &[u8]) -> Result<Object, Damaged> {
    let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(damaged)?;
    let header = file.elf_header();
    let (machine, kind) = (header.e_machine.get(LittleEndian).0, header.e_type.get(LittleEndian).0);
    if machine != MACHINE {
        return Err(damaged(format!("it is for machine {machine}, not for AMD's GPUs ({MACHINE})")));
    }
    if kind != SHARED_OBJECT {
        return Err(damaged("it has not been linked"));
    }
    let number = header.e_flags.get(LittleEndian).0 & 0xff;
    let chip = CHIPS.iter().find(|(of, _)| *of == number).map(|(_, chip)| *chip);
    let chip = chip.ok_or_else(|| damaged(format!("chip {number:#x} is not simulated")))?;
    let notes = file.section_by_name(".note").ok_or_else(|| damaged("there is no `.note`"))?;
    let metadata = metadata(notes.data().map_err(damaged)?)?;
    let kernels = field(&metadata, "amdhsa.kernels").and_then(Value::as_array);
    let kernels = kernels.ok_or_else(|| damaged("its metadata names no kernels"))?;
    let entries = kernels.iter().map(|kernel| entry(&file, chip, kernel)).collect::<Result<_, _>>()?;
    Ok(Object { chip, entries })
}

/// Finds the metadata among the notes.
fn metadata(notes: &[u8]) -> Result<Value, Damaged> {
    const KIND: u32 = 32;
    let mut at = 0;
    while let (Some(name), Some(size), Some(kind)) = (word(notes, at), word(notes, at + 4), word(notes, at + 8)) {
        let padded = |bytes: u32| (bytes as usize).next_multiple_of(4);
        let start = at + 12 + padded(name);
        let data = notes.get(start..start.saturating_add(size as usize)).ok_or_else(|| damaged("a note is cut off"))?;
        if kind == KIND {
            return rmpv::decode::read_value(&mut &data[..]).map_err(damaged);
        }
        at = start + padded(size);
    }
    Err(damaged("there is no metadata"))
}

fn field<'value>(map: &'value Value, name: &str) -> Option<&'value Value> {
    map.as_map()?.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
}

fn entry(file: &ElfFile64<LittleEndian>, chip: &str, kernel: &Value) -> Result<Entry, Damaged> {
    let text = |name: &str| {
        field(kernel, name).and_then(Value::as_str).ok_or_else(|| damaged(format!("a kernel has no `{name}`")))
    };
    let name = text(".name")?.to_string();
    let number = |map: &Value, key: &str| {
        let value = field(map, key).and_then(Value::as_u64);
        value.ok_or_else(|| damaged(format!("`{name}` has no `{key}`")))
    };
    let symbol = |wanted: &str| {
        let found = file.symbols().find(|symbol| symbol.name() == Ok(wanted));
        found.ok_or_else(|| damaged(format!("there is no symbol `{wanted}`")))
    };
    let descriptor_at = symbol(text(".symbol")?)?.address();
    let descriptor = bytes_at(file, descriptor_at..descriptor_at.saturating_add(64))?;
    let at = |offset: usize| word(descriptor, offset).unwrap_or_default();
    let offset = i64::from_le_bytes(descriptor[16..24].try_into().unwrap_or_default());
    let address = descriptor_at.wrapping_add_signed(offset);
    let size = symbol(&name)?.size();
    let addresses = address..address.saturating_add(size);
    let code = bytes_at(file, addresses.clone())?.to_vec();
    let mut source_lines = source_lines(file)?;
    source_lines.retain(|(from, _)| addresses.contains(from));
    let resources = [at(48), at(52), at(44)];
    let properties = u16::from_le_bytes([descriptor[56], descriptor[57]]);
    if u16::from_le_bytes([descriptor[58], descriptor[59]]) != 0 {
        return Err(damaged(format!("`{name}` has its arguments loaded in advance, which is not simulated")));
    }
    let mut params = Vec::new();
    for parameter in field(kernel, ".args").and_then(Value::as_array).into_iter().flatten() {
        let kind = field(parameter, ".value_kind").and_then(Value::as_str).unwrap_or_default();
        let is_pointer = match kind {
            "global_buffer" => true,
            "by_value" => false,
            _ => return Err(damaged(format!("`{name}` has a parameter of kind `{kind}`, which is not simulated"))),
        };
        let (offset, bytes) = (number(parameter, ".offset")? as usize, number(parameter, ".size")? as usize);
        if offset.checked_add(bytes).is_none_or(|end| end > at(8) as usize) || !matches!(bytes, 1 | 2 | 4 | 8) {
            return Err(damaged(format!(
                "`{name}` has a parameter of {bytes} bytes at byte {offset} of its arguments"
            )));
        }
        params.push(Parameter { offset, bytes, is_pointer });
    }
    let wave = number(kernel, ".wavefront_size")? as usize;
    let has_accumulators = matches!(chip, "gfx90a" | "gfx942" | "gfx950");
    if wave != 64 && (wave != 32 || has_accumulators) {
        return Err(damaged(format!("`{name}` has waves of {wave} lanes, which {chip} has not")));
    }
    // In blocks of 8; on chips with accumulation registers these come behind the ordinary ones.
    let vgprs = ((resources[0] & 0x3f) as usize + 1) * 8;
    let accumulators = if has_accumulators { ((resources[2] & 0x3f) as usize + 1) * 4 } else { vgprs };
    let required = field(kernel, ".reqd_workgroup_size").and_then(Value::as_array).map(|sizes| {
        let mut all = [1; 3];
        for (to, size) in all.iter_mut().zip(sizes) {
            *to = size.as_u64().unwrap_or_default() as u32;
        }
        all
    });
    Ok(Entry {
        code,
        address,
        source_lines,
        params,
        argument_bytes: at(8) as usize,
        local_bytes: at(0) as usize,
        scratch_bytes: at(4),
        most_threads: number(kernel, ".max_flat_workgroup_size")?,
        required,
        vgprs,
        accumulators,
        wave,
        resources,
        properties,
        name,
    })
}

/// The line table of `.debug_line`, if there is one.
fn source_lines(file: &ElfFile64<LittleEndian>) -> Result<Vec<(u64, u32)>, Damaged> {
    let Some(section) = file.section_by_name(".debug_line") else { return Ok(Vec::new()) };
    let data = section.data().map_err(damaged)?;
    let table = gimli::DebugLine::new(data, gimli::LittleEndian);
    let program = table.program(gimli::DebugLineOffset(0), 8, None, None).map_err(damaged)?;
    let (mut rows, mut lines) = (program.rows(), Vec::new());
    while let Some((_, row)) = rows.next_row().map_err(damaged)? {
        let line = row.line().filter(|_| !row.end_sequence()).and_then(|line| u32::try_from(line.get()).ok());
        lines.push((row.address(), line.unwrap_or(0)));
    }
    Ok(lines)
}

/// The bytes that are loaded at these addresses.
fn bytes_at<'data>(file: &ElfFile64<'data, LittleEndian>, addresses: Range<u64>) -> Result<&'data [u8], Damaged> {
    for section in file.sections() {
        let Some(offset) = addresses.start.checked_sub(section.address()).filter(|_| section.address() != 0) else {
            continue;
        };
        let data = section.data().map_err(damaged)?;
        let end = offset.saturating_add(addresses.end - addresses.start) as usize;
        if let Some(bytes) = data.get(offset as usize..end) {
            return Ok(bytes);
        }
    }
    Err(damaged(format!("nothing is loaded at {:#x}", addresses.start)))
}
