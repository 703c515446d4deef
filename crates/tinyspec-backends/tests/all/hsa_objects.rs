//! Objects for AMD's GPUs, in the form that ROCm loads.

use inkwell::AddressSpace;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol};
use tinyspec_backends::llvm::hsa_linker::{LinkError, link};
use tinyspec_backends::llvm::{LlvmError, Machine, Output};
use tinyspec_backends::{Gpu, Processor};

type File<'data> = ElfFile64<'data, LittleEndian>;

/// A kernel that stores a number, as LLVM makes it: not linked yet.
fn relocatable(machine: &Machine) -> Vec<u8> {
    const KERNEL: u32 = 91;
    let object = machine.generate::<LlvmError>("module", Output::Object, |context, module| {
        let pointer = context.ptr_type(AddressSpace::from(1u16));
        let function = module.add_function("store", context.void_type().fn_type(&[pointer.into()], false), None);
        function.set_call_conventions(KERNEL);
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, ""));
        let to = function.get_first_param().expect("a parameter").into_pointer_value();
        builder.build_store(to, context.i32_type().const_int(7, false)).expect("a store");
        builder.build_return(None).expect("a return");
        Ok(())
    });
    object.expect("an object")
}

fn chip(name: &str) -> Machine {
    let isa = Gpu::named(name).expect("a known chip").target().isa.expect("an instruction set");
    Machine::new(&isa).expect("a code generator")
}

fn section<'a, 'data>(file: &'a File<'data>, name: &str) -> object::read::elf::ElfSection64<'data, 'a, LittleEndian> {
    file.section_by_name(name).unwrap_or_else(|| panic!("no section {name}"))
}

#[test]
fn linked_objects_have_what_a_loader_reads() {
    for name in Gpu::names().filter(|name| name.starts_with("gfx")) {
        let made = relocatable(&chip(name));
        let linked = link(&made).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (before, file) = (File::parse(&*made).expect("an object"), File::parse(&*linked).expect("an object"));
        assert_eq!(file.kind(), ObjectKind::Dynamic);
        assert_eq!(file.elf_header().e_flags, before.elf_header().e_flags);
        assert_eq!(linked[7..9], made[7..9], "the ABI and its version");
        for same in [".text", ".note"] {
            assert_eq!(section(&file, same).data(), section(&before, same).data(), "{name}: {same}");
        }
        let text = section(&file, ".text");
        assert_eq!(text.address() % 256, 0);
        let address = |name: &str, symbols: &[(String, u64)]| {
            symbols.iter().find(|(known, _)| known == name).map(|(_, address)| *address).expect("a symbol")
        };
        let named = |symbol: object::read::elf::ElfSymbol64<'_, '_, LittleEndian>| {
            (symbol.name().expect("a name").to_string(), symbol.address())
        };
        let all: Vec<_> = file.symbols().map(named).collect();
        let dynamic: Vec<_> = file.dynamic_symbols().map(named).collect();
        for symbols in [all, dynamic] {
            // The descriptor says how far behind it the code begins.
            let (code, descriptor) = (address("store", &symbols), address("store.kd", &symbols));
            let data = section(&file, ".rodata");
            let place = (descriptor - data.address()) as usize + 16;
            let bytes = data.data().expect("its bytes")[place..place + 8].try_into().expect("eight of them");
            assert_eq!(descriptor.wrapping_add_signed(i64::from_le_bytes(bytes)), code, "{name}");
            assert_eq!(code, text.address());
        }
        // No page is both written and executed, and each section is where its segment says.
        let segments: Vec<_> = file.segments().map(|segment| (segment.address(), segment.size())).collect();
        assert_eq!(segments.len(), 3);
        assert!(segments.windows(2).all(|pair| (pair[0].0 + pair[0].1).div_ceil(4096) <= pair[1].0 / 4096));
        // What is linked is left as it is.
        assert_eq!(link(&linked).as_deref(), Ok(&*linked));
    }
}

#[test]
fn damaged_objects_are_refused() {
    let made = relocatable(&chip("gfx942"));
    let file = File::parse(&*made).expect("an object");
    let cpu = relocatable(&Machine::new(&Processor::native().isa).expect("a code generator"));
    assert!(matches!(link(&cpu), Err(LinkError::Foreign(_))));
    for length in 0..made.len() {
        assert!(link(&made[..length]).is_err(), "{length} of {} bytes", made.len());
    }
    // The kind of its relocation, an absolute address.
    let (start, _) = section(&file, ".rela.rodata").file_range().expect("its bytes");
    let changed = |place: u64, byte: u8| {
        let mut bytes = made.clone();
        bytes[place as usize] = byte;
        link(&bytes)
    };
    const ABS64: u8 = 3;
    let refused = changed(start + 8, ABS64);
    assert!(
        matches!(&refused, Err(LinkError::Relocation { kind: 3, section, .. }) if section == ".rodata"),
        "{refused:?}"
    );
    let refused = changed(start + 1, 0xff);
    assert!(matches!(refused, Err(LinkError::Relocation { kind: 5, .. })), "{refused:?}");
    // Whatever byte is another one: an error or an object, never a panic.
    for place in 0..made.len() as u64 {
        let _ = changed(place, made[place as usize] ^ 0xff);
    }
}

/// LLVM's linker, where the toolchain brings it.
fn rust_lld() -> Option<std::path::PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = std::process::Command::new(rustc).args(["--print", "target-libdir"]).output().ok()?;
    let libraries = std::path::PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Some(libraries.parent()?.join("bin/rust-lld")).filter(|file| file.exists())
}

/// LLVM's linker makes the same of an object, takes what is linked here for a shared object, and gives what is taken here.
#[test]
fn the_toolchains_linker_agrees() {
    let Some(linker) = rust_lld() else {
        println!("skipped: the toolchain has no rust-lld");
        return;
    };
    for name in Gpu::names().filter(|name| name.starts_with("gfx")) {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file = |end: &str| folder.join(format!("{name}-{}.{end}", std::process::id()));
        let run = |from: &std::path::Path, to: &std::path::Path| {
            let mut command = std::process::Command::new(&linker);
            let output = command.args(["-flavor", "gnu", "-shared", "-o"]).arg(to).arg(from).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && said.is_empty(), "{name}: {said}");
            std::fs::read(to).expect("an object")
        };
        let made = relocatable(&chip(name));
        let linked = link(&made).unwrap_or_else(|error| panic!("{name}: {error}"));
        std::fs::write(file("o"), &made).expect("a file");
        std::fs::write(file("so"), &linked).expect("a file");
        let theirs = run(&file("o"), &file("lld"));
        run(&file("so"), &file("both"));
        let (ours, other) = (File::parse(&*linked).expect("an object"), File::parse(&*theirs).expect("an object"));
        assert_eq!(ours.elf_header().e_flags, other.elf_header().e_flags, "{name}");
        assert_eq!((ours.kind(), &linked[7..9]), (other.kind(), &theirs[7..9]), "{name}");
        for same in [".text", ".note"] {
            assert_eq!(section(&ours, same).data(), section(&other, same).data(), "{name}: {same}");
        }
        let named = |file: &File| {
            let mut names: Vec<String> =
                file.dynamic_symbols().filter_map(|symbol| Some(symbol.name().ok()?.to_string())).collect();
            names.sort();
            names
        };
        assert_eq!(named(&ours), named(&other), "{name}");
        assert_eq!(link(&theirs).as_deref(), Ok(&*theirs), "{name}: what is linked is left as it is");
        ["o", "so", "lld", "both"].iter().for_each(|end| drop(std::fs::remove_file(file(end))));
    }
}
