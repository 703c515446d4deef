//! Splits an object of several kernels: each gets its own code, and the constants that this refers to.
//!
//! The per-module overhead of the code generator is that of a small kernel, so several share a module; but each is
//! cached, loaded and dropped separately.

use object::read::elf::ElfFile64;
use object::write::{Object, Relocation, SectionId, Symbol, SymbolId, SymbolSection};
use object::{
    BinaryFormat, Endianness, LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget,
    SectionIndex, SectionKind, SymbolFlags, SymbolIndex, SymbolKind,
};
use std::collections::HashMap;

type File<'data> = ElfFile64<'data, LittleEndian>;

/// The section that the kernel of this number is put in.
pub(super) fn section(number: usize) -> String {
    format!(".text.{number}")
}

/// An object for each of `count` kernels.
///
/// # Errors
/// When the object is not of the form that the code generator gives it.
pub(super) fn split(object: &[u8], count: usize) -> Result<Vec<Vec<u8>>, String> {
    let file = File::parse(object).map_err(text)?;
    (0..count)
        .map(|number| {
            let section = section(number);
            let code = file.section_by_name(&section).ok_or_else(|| format!("no section `{section}`"))?;
            Part::of(&file, code.index())
        })
        .collect()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// An object under construction.
struct Part<'a, 'data> {
    file: &'a File<'data>,
    object: Object<'data>,
    sections: HashMap<SectionIndex, SectionId>,
    symbols: HashMap<SymbolIndex, SymbolId>,
    /// Sections whose relocations are still to be copied.
    open: Vec<SectionIndex>,
}

impl<'a, 'data> Part<'a, 'data> {
    fn of(file: &'a File<'data>, code: SectionIndex) -> Result<Vec<u8>, String> {
        let object = Object::new(BinaryFormat::Elf, file.architecture(), Endianness::Little);
        let mut part = Part { file, object, sections: HashMap::new(), symbols: HashMap::new(), open: Vec::new() };
        part.section(code)?;
        for symbol in file.symbols().filter(|symbol| symbol.is_global() && symbol.section_index() == Some(code)) {
            part.symbol(symbol.index())?;
        }
        while let Some(index) = part.open.pop() {
            part.relocations(index)?;
        }
        part.object.write().map_err(text)
    }

    fn section(&mut self, index: SectionIndex) -> Result<SectionId, String> {
        if let Some(&known) = self.sections.get(&index) {
            return Ok(known);
        }
        let section = self.file.section_by_index(index).map_err(text)?;
        let kind = if section.kind() == SectionKind::Text { SectionKind::Text } else { SectionKind::ReadOnlyData };
        let name = section.name_bytes().map_err(text)?.to_vec();
        let new = self.object.add_section(Vec::new(), name, kind);
        self.object.append_section_data(new, section.data().map_err(text)?, section.align());
        self.sections.insert(index, new);
        self.open.push(index);
        Ok(new)
    }

    fn symbol(&mut self, index: SymbolIndex) -> Result<SymbolId, String> {
        if let Some(&known) = self.symbols.get(&index) {
            return Ok(known);
        }
        let symbol = self.file.symbol_by_index(index).map_err(text)?;
        let new = match symbol.section_index() {
            Some(section) if symbol.kind() == SymbolKind::Section => {
                let section = self.section(section)?;
                self.object.section_symbol(section)
            }
            section => {
                let section = section.map(|section| self.section(section)).transpose()?;
                // Labels of constants have no kind.
                let kind = match symbol.kind() {
                    SymbolKind::Unknown if section.is_some() => SymbolKind::Data,
                    kind => kind,
                };
                self.object.add_symbol(Symbol {
                    name: symbol.name_bytes().map_err(text)?.to_vec(),
                    value: symbol.address(),
                    size: symbol.size(),
                    kind,
                    scope: symbol.scope(),
                    weak: symbol.is_weak(),
                    section: section.map_or(SymbolSection::Undefined, SymbolSection::Section),
                    flags: SymbolFlags::None,
                })
            }
        };
        self.symbols.insert(index, new);
        Ok(new)
    }

    fn relocations(&mut self, index: SectionIndex) -> Result<(), String> {
        let section = self.file.section_by_index(index).map_err(text)?;
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                return Err("a relocation without a symbol".into());
            };
            let symbol = self.symbol(symbol)?;
            let relocation = Relocation { offset, symbol, addend: relocation.addend(), flags: relocation.flags() };
            self.object.add_relocation(self.sections[&index], relocation).map_err(text)?;
        }
        Ok(())
    }
}
