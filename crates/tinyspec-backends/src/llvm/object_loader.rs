//! Loads a relocatable ELF object into executable memory of this process.
//!
//! Kernels have code and constants, nothing writable: one anonymous map is filled, relocated, and then made executable
//! and read-only. Kernels may call only the functions of a fixed table; objects that refer to others, or that are
//! visibly damaged, are refused.

mod externals;
mod relocate;

use super::perf_map;
use memmap2::{Mmap, MmapMut};
use object::LittleEndian;
use object::elf::{self, FileHeader64, Rela64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use object::read::{SectionIndex, SymbolIndex};
use relocate::{Operands, relocate};
use std::collections::HashMap;

/// Why an object cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes are not a well-formed ELF object.
    #[error("damaged object: {0}")]
    Damaged(String),
    /// The object is for another processor or of another kind.
    #[error("the object is made for another machine: {0}")]
    Foreign(String),
    /// The object has data that code may write to.
    #[error("section `{0}` is writable; kernels keep no state")]
    Writable(String),
    /// The object refers to a function that kernels may not call.
    #[error("unknown function `{0}`")]
    UnknownSymbol(String),
    /// The object has a relocation that the loader does not support.
    #[error("unknown relocation {kind} of {machine}")]
    UnknownRelocation {
        /// Its number.
        kind: u32,
        /// The processor's name.
        machine: &'static str,
    },
    /// The operating system refused memory.
    #[error("no executable memory: {0}")]
    Memory(String),
}

impl From<object::read::Error> for LoadError {
    fn from(error: object::read::Error) -> LoadError {
        LoadError::Damaged(error.to_string())
    }
}

fn damaged(what: &str) -> LoadError {
    LoadError::Damaged(what.into())
}

const ENDIAN: LittleEndian = LittleEndian;
type Header = FileHeader64<LittleEndian>;
type Sections<'data> = SectionTable<'data, Header>;
type Symbols<'data> = SymbolTable<'data, Header>;

/// A jump of 8 bytes, and the address that it reads: a stub for a far function, and a slot of the global offset table
/// (GOT).
const THUNK_BYTES: usize = 16;
/// The granularity of memory maps.
const PAGE: usize = 4096;
/// AVX-512 constants need 64; nothing needs more than a page.
const GREATEST_ALIGNMENT: u64 = 4096;

/// The location of a function.
#[derive(Clone, Copy, Debug)]
struct Function {
    offset: usize,
    size: usize,
}

/// Code of an object, ready to run. It is unmapped when dropped.
#[derive(Debug)]
pub struct LoadedObject {
    map: Mmap,
    functions: HashMap<String, Function>,
}

impl LoadedObject {
    /// The memory that it takes: pages of code and constants, and the system's data for each map.
    pub fn bytes(&self) -> usize {
        const OF_A_MAP: usize = 512;
        self.map.len().next_multiple_of(PAGE) + OF_A_MAP
    }
}

impl LoadedObject {
    /// Loads `bytes`, an object that LLVM made for this machine.
    ///
    /// # Errors
    /// When the object is damaged, foreign, or needs something that kernels may not use. None of its code has run then.
    pub fn load(bytes: &[u8]) -> Result<LoadedObject, LoadError> {
        // The parser reads in place and needs aligned tables.
        let aligned = Aligned::copy(bytes);
        let data = aligned.bytes();
        let header = Header::parse(data)?;
        check_header(header)?;
        let sections = header.sections(ENDIAN, data)?;
        let symbols = sections.symbols(ENDIAN, data, elf::SHT_SYMTAB)?;

        let layout = Layout::of(&sections, &symbols, data)?;
        let mut map = MmapMut::map_anon(layout.bytes.max(1)).map_err(|error| LoadError::Memory(error.to_string()))?;
        for (index, section) in sections.enumerate() {
            if let Some(start) = layout.sections[index.0] {
                let contents = section.data(ENDIAN, data)?;
                map.get_mut(start..start + contents.len())
                    .ok_or_else(|| damaged("section size"))?
                    .copy_from_slice(contents);
            }
        }
        let addresses =
            Addresses { base: map.as_ptr() as u64, layout: &layout, sections: &sections, symbols: &symbols };
        for (symbol, start) in &layout.thunks {
            let target = addresses.of(*symbol)?;
            relocate::write_thunk(&mut map[*start..*start + THUNK_BYTES], target);
        }
        for (index, section) in sections.enumerate() {
            apply(&mut map, section, index, &addresses, data)?;
        }
        let functions = functions(&addresses)?;
        let map = map.make_exec().map_err(|error| LoadError::Memory(error.to_string()))?;
        relocate::synchronize_instructions(&map);
        let base = map.as_ptr() as usize;
        perf_map::note(functions.iter().map(|(name, function)| (base + function.offset, function.size, name.as_str())));
        Ok(LoadedObject { map, functions })
    }

    /// Start of a global function of the object.
    pub fn function(&self, name: &str) -> Option<*const u8> {
        self.map.get(self.functions.get(name)?.offset..).map(<[u8]>::as_ptr)
    }

    /// Names of the global functions.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// The bytes in use.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether it holds no code.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

/// Bytes that start at an address divisible by eight.
struct Aligned {
    words: Vec<u64>,
    len: usize,
}

impl Aligned {
    fn copy(bytes: &[u8]) -> Aligned {
        let (whole, rest) = bytes.as_chunks();
        let mut words: Vec<u64> = whole.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words.push(u64::from_ne_bytes(last));
        Aligned { words, len: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &object::pod::bytes_of_slice(&self.words)[..self.len]
    }
}

fn check_header(header: &Header) -> Result<(), LoadError> {
    let ident = header.e_ident();
    if ident.class != elf::ELFCLASS64 || ident.data != elf::ELFDATA2LSB {
        return Err(LoadError::Foreign("not a 64-bit little-endian ELF file".into()));
    }
    if header.e_type(ENDIAN) != elf::ET_REL {
        return Err(LoadError::Foreign("not a relocatable object".into()));
    }
    if header.e_machine(ENDIAN) != relocate::MACHINE {
        return Err(LoadError::Foreign(format!("machine {}, not {}", header.e_machine(ENDIAN).0, relocate::NAME)));
    }
    Ok(())
}

fn is_loaded(section: &SectionHeader64<LittleEndian>) -> bool {
    section.sh_flags(ENDIAN).0 & elf::SHF_ALLOC.0 != 0 && section.sh_size(ENDIAN) != 0
}

/// The relocations in `section`, and the section that they apply to; no relocations if it is not a relocation table.
fn relocations<'data>(
    section: &SectionHeader64<LittleEndian>,
    data: &'data [u8],
) -> Result<(SectionIndex, &'data [Rela64<LittleEndian>]), LoadError> {
    if section.sh_type(ENDIAN) == elf::SHT_REL {
        return Err(damaged("relocations without addends"));
    }
    match section.rela(ENDIAN, data)? {
        Some((relocations, _)) => Ok((SectionIndex(section.sh_info(ENDIAN) as usize), relocations)),
        None => Ok((SectionIndex(0), &[])),
    }
}

/// The layout of the map.
struct Layout {
    /// The start of each loaded section.
    sections: Vec<Option<usize>>,
    /// Start of the thunk of each symbol that needs one.
    thunks: HashMap<SymbolIndex, usize>,
    bytes: usize,
}

impl Layout {
    fn of(sections: &Sections, symbols: &Symbols, data: &[u8]) -> Result<Layout, LoadError> {
        let mut layout = Layout { sections: vec![None; sections.len()], thunks: HashMap::new(), bytes: 0 };
        for (index, section) in sections.enumerate() {
            if !is_loaded(section) {
                continue;
            }
            let flags = section.sh_flags(ENDIAN).0;
            let name = || String::from_utf8_lossy(sections.section_name(ENDIAN, section).unwrap_or(b"?")).into_owned();
            if flags & (elf::SHF_WRITE.0 | elf::SHF_TLS.0) != 0 || section.sh_type(ENDIAN) == elf::SHT_NOBITS {
                return Err(LoadError::Writable(name()));
            }
            let alignment = section.sh_addralign(ENDIAN).max(1);
            if !alignment.is_power_of_two() || alignment > GREATEST_ALIGNMENT {
                return Err(damaged("alignment of a section"));
            }
            // The size is bounded by that of the file, so no sum below can overflow.
            let size = section.data(ENDIAN, data)?.len();
            let start = layout.bytes.next_multiple_of(alignment as usize);
            layout.sections[index.0] = Some(start);
            layout.bytes = start + size;
        }
        layout.bytes = layout.bytes.next_multiple_of(THUNK_BYTES);
        for section in sections.iter() {
            let (target, relocations) = relocations(section, data)?;
            if layout.sections.get(target.0).copied().flatten().is_none() {
                continue;
            }
            for relocation in relocations {
                let index = SymbolIndex(relocation.r_sym(ENDIAN, false) as usize);
                let external = index.0 != 0 && symbols.symbol(index)?.is_undefined(ENDIAN);
                let kind = relocation.r_type(ENDIAN, false);
                if (external || relocate::through_table(kind)) && !layout.thunks.contains_key(&index) {
                    layout.thunks.insert(index, layout.bytes);
                    layout.bytes += THUNK_BYTES;
                }
            }
        }
        Ok(layout)
    }
}

/// The addresses of symbols in the map.
struct Addresses<'a, 'data> {
    base: u64,
    layout: &'a Layout,
    sections: &'a Sections<'data>,
    symbols: &'a Symbols<'data>,
}

impl Addresses<'_, '_> {
    fn of(&self, index: SymbolIndex) -> Result<u64, LoadError> {
        let symbol = self.symbols.symbol(index)?;
        if symbol.is_undefined(ENDIAN) {
            let name = self.symbols.symbol_name(ENDIAN, symbol)?;
            return externals::address(name)
                .ok_or_else(|| LoadError::UnknownSymbol(String::from_utf8_lossy(name).into_owned()));
        }
        Ok(self.base + self.offset_of(index, symbol)? as u64)
    }

    /// The offset in the map of a defined symbol.
    fn offset_of(&self, index: SymbolIndex, symbol: &Sym64<LittleEndian>) -> Result<usize, LoadError> {
        let section =
            self.symbols.symbol_section(ENDIAN, symbol, index)?.ok_or_else(|| damaged("symbol without section"))?;
        let start = self.layout.sections.get(section.0).copied().flatten();
        let start = start.ok_or_else(|| damaged("symbol in a section that is not loaded"))?;
        let size = self.sections.section(section)?.sh_size(ENDIAN);
        if symbol.st_value(ENDIAN) > size {
            return Err(damaged("symbol outside its section"));
        }
        Ok(start + symbol.st_value(ENDIAN) as usize)
    }
}

/// Applies the relocations that `section` holds, if any.
fn apply(
    map: &mut MmapMut,
    section: &SectionHeader64<LittleEndian>,
    index: SectionIndex,
    addresses: &Addresses,
    data: &[u8],
) -> Result<(), LoadError> {
    let (target, relocations) = relocations(section, data)?;
    let Some(start) = addresses.layout.sections.get(target.0).copied().flatten().filter(|_| index != target) else {
        return Ok(());
    };
    let size = addresses.sections.section(target)?.sh_size(ENDIAN) as usize;
    for relocation in relocations {
        let offset = relocation.r_offset(ENDIAN);
        let offset = usize::try_from(offset).ok().filter(|offset| *offset < size);
        let offset = offset.ok_or_else(|| damaged("relocation outside its section"))?;
        let symbol = SymbolIndex(relocation.r_sym(ENDIAN, false) as usize);
        let kind = relocation.r_type(ENDIAN, false);
        let thunk = addresses.layout.thunks.get(&symbol).map(|thunk| addresses.base + *thunk as u64);
        let place = Operands {
            address: addresses.base + (start + offset) as u64,
            symbol: if symbol.0 == 0 { 0 } else { addresses.of(symbol)? },
            thunk,
            addend: relocation.r_addend(ENDIAN),
        };
        let bytes = map.get_mut(start + offset..start + size).ok_or_else(|| damaged("relocation"))?;
        relocate(kind, &place, bytes)?;
    }
    Ok(())
}

/// The global functions.
fn functions(addresses: &Addresses) -> Result<HashMap<String, Function>, LoadError> {
    let mut functions = HashMap::new();
    for (index, symbol) in addresses.symbols.enumerate() {
        if symbol.st_type() == elf::STT_FUNC && symbol.st_bind() == elf::STB_GLOBAL && !symbol.is_undefined(ENDIAN) {
            let name = addresses.symbols.symbol_name(ENDIAN, symbol)?;
            let name = std::str::from_utf8(name).map_err(|_| damaged("name of a function"))?;
            let function =
                Function { offset: addresses.offset_of(index, symbol)?, size: symbol.st_size(ENDIAN) as usize };
            functions.insert(name.to_string(), function);
        }
    }
    Ok(functions)
}
