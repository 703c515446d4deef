//! Links LLVM's objects for AMD GPUs into the form that ROCm loads: a shared object with segments, and symbols that the loader
//! finds. A kernel refers to nothing but itself, so there is little to link.

use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget,
    SectionFlags, SectionIndex,
};

type File<'data> = ElfFile64<'data, LittleEndian>;

/// Numbers of the format, and of AMD's relocations.
mod elf {
    pub const DT_HASH: u64 = 4;
    pub const DT_NULL: u64 = 0;
    pub const DT_STRSZ: u64 = 10;
    pub const DT_STRTAB: u64 = 5;
    pub const DT_SYMENT: u64 = 11;
    pub const DT_SYMTAB: u64 = 6;
    pub const EM_AMDGPU: u16 = 224;
    pub const ET_DYN: u16 = 3;
    pub const PF_R: u32 = 4;
    pub const PF_W: u32 = 2;
    pub const PF_X: u32 = 1;
    pub const PT_DYNAMIC: u32 = 2;
    pub const PT_LOAD: u32 = 1;
    pub const PT_NOTE: u32 = 4;
    pub const R_AMDGPU_ABS64: u32 = 3;
    pub const R_AMDGPU_REL32: u32 = 4;
    pub const R_AMDGPU_REL32_HI: u32 = 11;
    pub const R_AMDGPU_REL32_LO: u32 = 10;
    pub const R_AMDGPU_REL64: u32 = 5;
    pub const SHF_ALLOC: u32 = 2;
    pub const SHF_EXECINSTR: u32 = 4;
    pub const SHF_WRITE: u32 = 1;
    pub const SHT_DYNAMIC: u32 = 6;
    pub const SHT_DYNSYM: u32 = 11;
    pub const SHT_HASH: u32 = 5;
    pub const SHT_NOTE: u32 = 7;
    pub const SHT_PROGBITS: u32 = 1;
    pub const SHT_STRTAB: u32 = 3;
    pub const SHT_SYMTAB: u32 = 2;
}

/// Why an object cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// It is damaged, or not an object.
    #[error("the object cannot be read: {0}")]
    Damaged(String),
    /// It is for another machine.
    #[error("the object is not for a GPU of AMD (its machine is {0}, not 224)")]
    Foreign(u16),
    /// It has a section of an unknown kind.
    #[error("the object has a section `{0}`, which a kernel has no place for")]
    Section(String),
    /// It refers to another object.
    #[error("the object needs `{0}`, which it does not define")]
    Undefined(String),
    /// A relocation is of an unknown type, or its target is out of range.
    #[error("the object has a relocation of type {kind} in `{section}`: {reason}")]
    Relocation {
        /// AMD's number of the type.
        kind: u32,
        /// The section that it is in.
        section: String,
        /// Why it is refused.
        reason: &'static str,
    },
}

fn damaged(error: impl std::fmt::Display) -> LinkError {
    LinkError::Damaged(error.to_string())
}

const PAGE: u64 = 4096;
const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const SEGMENTS: u64 = 5;
const SYMBOL: u64 = 24;
const DYNAMIC: u64 = 16;
/// The one debug section that is kept, if the object has it.
const LINES: &str = ".debug_line";

/// A section of the executable. Symbols refer to sections, so these keep their headers.
struct Section {
    /// Its index in the input; `None` for sections that are created here.
    from: Option<SectionIndex>,
    name: String,
    kind: u32,
    flags: u64,
    align: u64,
    link: u32,
    info: u32,
    entry: u64,
    /// Its offset in the file, which is also its address if it is loaded.
    offset: u64,
    data: Vec<u8>,
}

impl Section {
    fn new(name: &str, kind: u32, flags: u32, align: u64, data: Vec<u8>) -> Section {
        let (name, flags) = (name.to_string(), u64::from(flags));
        Section { from: None, name, kind, flags, align, link: 0, info: 0, entry: 0, offset: 0, data }
    }

    fn is_loaded(&self) -> bool {
        self.flags & u64::from(elf::SHF_ALLOC) != 0
    }

    fn is_code(&self) -> bool {
        self.flags & u64::from(elf::SHF_EXECINSTR) != 0
    }

    fn is_written(&self) -> bool {
        self.flags & u64::from(elf::SHF_WRITE) != 0
    }

    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

/// A symbol that the object exports.
struct Symbol {
    name: String,
    info: u8,
    other: u8,
    section: SectionIndex,
    value: u64,
    size: u64,
}

/// The loadable form of an object; one that is already loadable is returned unchanged.
///
/// # Errors
/// When the object is damaged, for another machine, or refers to undefined symbols.
pub fn link(object: &[u8]) -> Result<Vec<u8>, LinkError> {
    let file = File::parse(object).map_err(damaged)?;
    let header = file.elf_header();
    let machine = header.e_machine.get(LittleEndian).0;
    if machine != elf::EM_AMDGPU {
        return Err(LinkError::Foreign(machine));
    }
    match file.kind() {
        ObjectKind::Dynamic => return Ok(object.to_vec()),
        ObjectKind::Relocatable => {}
        kind => return Err(LinkError::Damaged(format!("it is of the kind {kind:?}"))),
    }
    let symbols = symbols(&file)?;
    let mut sections = sections(&file)?;
    add_tables(&mut sections, &symbols);
    place(&mut sections);
    for position in 0..sections.len() {
        relocate(&file, &mut sections, position)?;
    }
    fill_tables(&mut sections, &symbols)?;
    let (abi, version) = (header.e_ident.os_abi.0, header.e_ident.abi_version);
    Ok(write(&sections, abi, version, header.e_flags.get(LittleEndian).0))
}

fn symbols(file: &File) -> Result<Vec<Symbol>, LinkError> {
    let mut symbols = Vec::new();
    for symbol in file.symbols() {
        let name = symbol.name().map_err(damaged)?.to_string();
        if symbol.is_undefined() {
            return Err(LinkError::Undefined(name));
        }
        let raw = symbol.elf_symbol();
        if let (true, Some(section)) = (symbol.is_global(), symbol.section_index()) {
            let (value, size) = (symbol.address(), symbol.size());
            symbols.push(Symbol { name, info: raw.st_info.0, other: raw.st_other.0, section, value, size });
        }
    }
    Ok(symbols)
}

/// The sections of an object to load, read-only data before code, followed by its line table.
fn sections(file: &File) -> Result<Vec<Section>, LinkError> {
    let mut found = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let sh_flags = sh_flags.0;
        let name = section.name().map_err(damaged)?;
        let is_of_lines = name == LINES && sh_flags == 0;
        if sh_flags & u64::from(elf::SHF_ALLOC) == 0 && !is_of_lines || section.size() == 0 {
            continue;
        }
        let is_code = name == ".text" && sh_flags == u64::from(elf::SHF_ALLOC | elf::SHF_EXECINSTR);
        let is_data = sh_flags == u64::from(elf::SHF_ALLOC) && (name == ".note" || name == ".rodata");
        if !is_code && !is_data && !is_of_lines || !section.align().is_power_of_two() || section.align() > PAGE {
            return Err(LinkError::Section(name.into()));
        }
        let kind = if name == ".note" { elf::SHT_NOTE } else { elf::SHT_PROGBITS };
        let data = section.data().map_err(damaged)?.to_vec();
        let section =
            Section { from: Some(section.index()), ..Section::new(name, kind, sh_flags as u32, section.align(), data) };
        found.push(section);
    }
    found.sort_by_key(|section| (!section.is_loaded(), section.is_code(), section.kind != elf::SHT_NOTE));
    Ok(found)
}

/// A string table of NUL-terminated names, and the offset of each.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<u8>, Vec<u32>) {
    let (mut text, mut starts) = (vec![0u8], Vec::new());
    for name in names {
        starts.push(text.len() as u32);
        text.extend_from_slice(name.as_bytes());
        text.push(0);
    }
    (text, starts)
}

/// Adds the tables that loaders read, with addresses still unset.
fn add_tables(sections: &mut Vec<Section>, symbols: &[Symbol]) {
    let count = symbols.len() as u64 + 1;
    let (text, _) = names(symbols.iter().map(|symbol| &*symbol.name));
    let table = |count: u64, size: u64| vec![0; (count * size) as usize];
    let read = elf::SHF_ALLOC;
    let code = sections.iter().position(Section::is_code).unwrap_or(sections.len());
    let loaded = [
        Section::new(".dynsym", elf::SHT_DYNSYM, read, 8, table(count, SYMBOL)),
        Section::new(".hash", elf::SHT_HASH, read, 4, hash(count)),
        Section::new(".dynstr", elf::SHT_STRTAB, read, 1, text.clone()),
    ];
    sections.splice(code..code, loaded);
    let dynamic = Section::new(".dynamic", elf::SHT_DYNAMIC, read | elf::SHF_WRITE, 8, table(6, DYNAMIC));
    let end = sections.iter().position(|section| !section.is_loaded()).unwrap_or(sections.len());
    sections.insert(end, dynamic);
    sections.push(Section::new(".symtab", elf::SHT_SYMTAB, 0, 8, table(count, SYMBOL)));
    sections.push(Section::new(".strtab", elf::SHT_STRTAB, 0, 1, text));
    sections.push(Section::new(".shstrtab", elf::SHT_STRTAB, 0, 1, Vec::new()));
    let (text, _) = names(sections.iter().map(|section| &*section.name));
    if let Some(last) = sections.last_mut() {
        last.data = text;
    }
    // Sections are numbered from 1, after an empty one.
    let number = |sections: &[Section], name: &str| position(sections, name).map_or(0, |position| position as u32 + 1);
    for (table, strings, entry) in [
        (".dynsym", ".dynstr", SYMBOL),
        (".hash", ".dynsym", 4),
        (".dynamic", ".dynstr", DYNAMIC),
        (".symtab", ".strtab", SYMBOL),
    ] {
        let link = number(sections, strings);
        if let Some(position) = position(sections, table) {
            let is_of_symbols = entry == SYMBOL;
            let section = &mut sections[position];
            (section.link, section.entry, section.info) = (link, entry, is_of_symbols.into());
        }
    }
}

fn position(sections: &[Section], name: &str) -> Option<usize> {
    sections.iter().position(|section| section.name == name)
}

/// A hash table with all symbols in one bucket: there are two.
fn hash(count: u64) -> Vec<u8> {
    let first = u64::from(count > 1);
    let chain = (0..count).map(|number| if number > 0 && number + 1 < count { number + 1 } else { 0 });
    let words = [1, count, first].into_iter().chain(chain);
    words.flat_map(|word| (word as u32).to_le_bytes()).collect()
}

/// Assigns offsets to sections: read-only data, code and writable data begin on separate pages.
fn place(sections: &mut [Section]) {
    let mut end = HEADER + SEGMENTS * SEGMENT;
    let mut before = (false, false);
    for section in sections.iter_mut() {
        let of = (section.is_code(), section.is_written());
        let align = if section.is_loaded() && of != before { PAGE } else { section.align };
        before = of;
        section.offset = end.next_multiple_of(align);
        end = section.end();
    }
}

/// The new address of `value` in a section of the input.
fn address(sections: &[Section], section: SectionIndex, value: u64) -> Option<u64> {
    let section = sections.iter().find(|known| known.from == Some(section))?;
    (value <= section.data.len() as u64).then(|| section.offset + value)
}

fn relocate(file: &File, sections: &mut [Section], position: usize) -> Result<(), LinkError> {
    let (Some(index), name) = (sections[position].from, sections[position].name.clone()) else { return Ok(()) };
    for (offset, relocation) in file.section_by_index(index).map_err(damaged)?.relocations() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let kind = r_type.0;
        let refuse = |reason| LinkError::Relocation { kind, section: name.clone(), reason };
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            return Err(refuse("it is of no symbol"));
        };
        let symbol = file.symbol_by_index(symbol).map_err(damaged)?;
        let target = symbol.section_index().and_then(|section| address(sections, section, symbol.address()));
        let target = target.ok_or_else(|| refuse("its symbol is in no section that is loaded"))?;
        let place = sections[position].offset.wrapping_add(offset);
        let distance = (target as i64).wrapping_add(relocation.addend()).wrapping_sub(place as i64);
        let bytes = match kind {
            elf::R_AMDGPU_ABS64 if !sections[position].is_loaded() => {
                (target as i64).wrapping_add(relocation.addend()).to_le_bytes().to_vec()
            }
            elf::R_AMDGPU_REL64 => distance.to_le_bytes().to_vec(),
            elf::R_AMDGPU_REL32 => {
                i32::try_from(distance).map_err(|_| refuse("it does not reach"))?.to_le_bytes().to_vec()
            }
            elf::R_AMDGPU_REL32_LO => (distance as u32).to_le_bytes().to_vec(),
            elf::R_AMDGPU_REL32_HI => ((distance >> 32) as u32).to_le_bytes().to_vec(),
            _ => return Err(refuse("only distances are known, of types 4, 5, 10 and 11")),
        };
        let end = usize::try_from(offset).ok().and_then(|offset| Some(offset..offset.checked_add(bytes.len())?));
        let to = end.and_then(|range| sections[position].data.get_mut(range));
        to.ok_or_else(|| refuse("it is outside of its section"))?.copy_from_slice(&bytes);
    }
    Ok(())
}

/// Writes addresses into the tables.
fn fill_tables(sections: &mut [Section], symbols: &[Symbol]) -> Result<(), LinkError> {
    let (_, starts) = names(symbols.iter().map(|symbol| &*symbol.name));
    let mut table = vec![0u8; SYMBOL as usize];
    for (symbol, start) in symbols.iter().zip(starts) {
        let unknown = || LinkError::Undefined(symbol.name.clone());
        let number = sections.iter().position(|section| section.from == Some(symbol.section)).ok_or_else(unknown)?;
        let value = address(sections, symbol.section, symbol.value).ok_or_else(unknown)?;
        table.extend_from_slice(&start.to_le_bytes());
        table.extend_from_slice(&[symbol.info, symbol.other]);
        table.extend_from_slice(&(number as u16 + 1).to_le_bytes());
        table.extend_from_slice(&value.to_le_bytes());
        table.extend_from_slice(&symbol.size.to_le_bytes());
    }
    let place = |name: &str| position(sections, name).map_or(0, |position| sections[position].offset);
    let text = position(sections, ".dynstr").map_or(0, |position| sections[position].data.len() as u64);
    let entries = [
        (elf::DT_HASH, place(".hash")),
        (elf::DT_STRTAB, place(".dynstr")),
        (elf::DT_SYMTAB, place(".dynsym")),
        (elf::DT_STRSZ, text),
        (elf::DT_SYMENT, SYMBOL),
        (elf::DT_NULL, 0),
    ];
    let dynamic: Vec<u8> = entries.iter().flat_map(|&(tag, value)| [tag, value]).flat_map(u64::to_le_bytes).collect();
    for (name, data) in [(".dynsym", table.clone()), (".symtab", table), (".dynamic", dynamic)] {
        if let Some(position) = position(sections, name) {
            sections[position].data = data;
        }
    }
    Ok(())
}

/// A segment: its kind, its permissions, and its location.
struct Segment {
    kind: u32,
    flags: u32,
    start: u64,
    end: u64,
    align: u64,
}

/// The segments to load.
fn segments(sections: &[Section]) -> Vec<Segment> {
    let span = |fits: &dyn Fn(&Section) -> bool| {
        let mut all = sections.iter().filter(|section| section.is_loaded() && fits(section));
        let first = all.next();
        let start = first.map_or(0, |first| first.offset);
        (start, all.next_back().or(first).map_or(start, Section::end))
    };
    let only_read = span(&|section| !section.is_code() && !section.is_written());
    let code = span(&Section::is_code);
    let dynamic = span(&Section::is_written);
    let note = span(&|section| section.kind == elf::SHT_NOTE);
    let segment = |kind, flags, (start, end): (u64, u64), align| Segment { kind, flags, start, end, align };
    vec![
        // Includes the headers, which precede it.
        segment(elf::PT_LOAD, elf::PF_R, (0, only_read.1), PAGE),
        segment(elf::PT_LOAD, elf::PF_R | elf::PF_X, code, PAGE),
        segment(elf::PT_LOAD, elf::PF_R | elf::PF_W, dynamic, PAGE),
        segment(elf::PT_DYNAMIC, elf::PF_R | elf::PF_W, dynamic, 8),
        segment(elf::PT_NOTE, elf::PF_R, note, 4),
    ]
}

fn write(sections: &[Section], abi: u8, version: u8, flags: u32) -> Vec<u8> {
    let end = sections.last().map_or(HEADER, Section::end);
    let headers = end.next_multiple_of(8);
    let mut out = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, abi, version];
    out.resize(16, 0);
    out.extend_from_slice(&elf::ET_DYN.to_le_bytes());
    out.extend_from_slice(&elf::EM_AMDGPU.to_le_bytes());
    out.extend_from_slice(&1u32.to_le_bytes());
    for word in [0, HEADER, headers] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&flags.to_le_bytes());
    let count = sections.len() as u16 + 1;
    for half in [HEADER as u16, SEGMENT as u16, SEGMENTS as u16, HEADER as u16, count, count - 1] {
        out.extend_from_slice(&half.to_le_bytes());
    }
    for Segment { kind, flags, start, end, align } in segments(sections) {
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        for word in [start, start, start, end - start, end - start, align] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    for section in sections {
        out.resize(section.offset as usize, 0);
        out.extend_from_slice(&section.data);
    }
    out.resize(headers as usize + HEADER as usize, 0);
    let (_, starts) = names(sections.iter().map(|section| &*section.name));
    for (section, start) in sections.iter().zip(starts) {
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&section.kind.to_le_bytes());
        let address = if section.is_loaded() { section.offset } else { 0 };
        for word in [section.flags, address, section.offset, section.data.len() as u64] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&section.link.to_le_bytes());
        out.extend_from_slice(&section.info.to_le_bytes());
        for word in [section.align, section.entry] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    out
}
