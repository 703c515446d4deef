//! What stands in for NVIDIA's assembler: a cubin of its holds the text that it was given, which the mock of CUDA reads.
//!
//! `FAKE_PTXAS_VERSION` is its version, `FAKE_PTXAS_LOG` a file that gets a line for each kernel; with `FAKE_PTXAS_REFUSES` it
//! takes none.

use object::elf::{STB_GLOBAL, STB_WEAK, STT_FUNC, SymbolInfo, SymbolOther};
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};
use std::io::{Read as _, Write as _};

/// In `st_other`: the symbol is a kernel.
const IS_ENTRY: u8 = 0x10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        let version = std::env::var("FAKE_PTXAS_VERSION").unwrap_or("12.9.86".into());
        println!("Cuda compilation tools, release {version}, V{version}");
        return Ok(());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    if std::env::var_os("FAKE_PTXAS_REFUSES").is_some() {
        return Err("fake: no kernel is good enough".into());
    }
    if let Some(log) = std::env::var_os("FAKE_PTXAS_LOG") {
        let mut log = std::fs::File::options().append(true).create(true).open(log)?;
        log.write_all(format!("{}\n", arguments.join(" ")).as_bytes())?;
    }
    let (_, rest) = text.split_once(".entry").ok_or("no kernel")?;
    let name = rest.trim_start().split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let code = object.add_section(vec![], format!(".text.{name}").into_bytes(), SectionKind::Text);
    object.append_section_data(code, &[0; 16], 16);
    // A division is a function, which stands before the kernel.
    let division = ("$__internal_0_$__cuda_sm20_div_rn_f64_full", STB_WEAK, 0);
    for (name, bind, other) in [division, (name, STB_GLOBAL, IS_ENTRY)] {
        object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value: 0,
            size: 16,
            kind: SymbolKind::Text,
            scope: SymbolScope::Dynamic,
            weak: bind == STB_WEAK,
            section: SymbolSection::Section(code),
            flags: SymbolFlags::Elf { st_info: SymbolInfo::new(bind, STT_FUNC), st_other: SymbolOther(other) },
        });
    }
    let section = object.add_section(vec![], b".tinyspec.ptx".to_vec(), SectionKind::Other);
    object.append_section_data(section, text.as_bytes(), 1);
    std::io::stdout().write_all(&object.write()?)?;
    Ok(())
}
