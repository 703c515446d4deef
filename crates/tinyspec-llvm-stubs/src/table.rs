//! The stubs, and the table that they jump through.

use std::sync::atomic::AtomicPtr;

// On ELF the stubs are assembler text, because symbols that Rust itself defines without a mangled name are exported
// from every cdylib, and these must not be. Naked functions do the same wherever Rust runs.
macro_rules! stub {
    ($name:ident, $index:expr) => {
        #[cfg(all(target_arch = "x86_64", any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
        core::arch::global_asm!(
            concat!(".pushsection .text.", stringify!($name), ",\"ax\",@progbits"),
            concat!(".globl ", stringify!($name)),
            concat!(".hidden ", stringify!($name)),
            concat!(".type ", stringify!($name), ",@function"),
            concat!(stringify!($name), ":"),
            "mov r11d, {index}",
            "jmp qword ptr [rip + {table} + 8*{index}]",
            concat!(".size ", stringify!($name), ", .-", stringify!($name)),
            ".popsection",
            table = sym TABLE, index = const $index as usize,
        );
        #[cfg(all(target_arch = "aarch64", any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
        core::arch::global_asm!(
            concat!(".pushsection .text.", stringify!($name), ",\"ax\",%progbits"),
            concat!(".globl ", stringify!($name)),
            concat!(".hidden ", stringify!($name)),
            concat!(".type ", stringify!($name), ",%function"),
            concat!(stringify!($name), ":"),
            "adrp x16, {table}",
            "add x16, x16, :lo12:{table}",
            "mov w17, {index}",
            "ldr x16, [x16, w17, uxtw #3]",
            "br x16",
            concat!(".size ", stringify!($name), ", .-", stringify!($name)),
            ".popsection",
            table = sym TABLE, index = const $index as usize,
        );
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
        unsafe extern "C" {
            fn $name();
        }

        #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!("mov r11d, {index}", "jmp qword ptr [rip + {table} + 8*{index}]",
                table = sym TABLE, index = const $index as usize);
            #[cfg(all(target_arch = "aarch64", target_vendor = "apple"))]
            core::arch::naked_asm!("adrp x16, {table}@PAGE", "add x16, x16, {table}@PAGEOFF", "mov w17, {index}",
                "ldr x16, [x16, w17, uxtw #3]", "br x16", table = sym TABLE, index = const $index as usize);
            #[cfg(all(target_arch = "aarch64", not(target_vendor = "apple")))]
            core::arch::naked_asm!("adrp x16, {table}", "add x16, x16, :lo12:{table}", "mov w17, {index}",
                "ldr x16, [x16, w17, uxtw #3]", "br x16", table = sym TABLE, index = const $index as usize);
        }
    };
}

macro_rules! stubs {
    ($($name:ident)*) => {
        #[allow(non_camel_case_types, clippy::enum_variant_names)]
        #[repr(usize)]
        enum Symbol { $($name,)* Count }

        /// Names of all stubs, sorted.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(stub!($name, Symbol::$name);)*

        /// Refers to every stub, so that no linker drops one, whatever the order of archives.
        static KEEP: [unsafe extern "C" fn(); Symbol::Count as usize] = [$($name),*];
    };
}

crate::names::with_names!(stubs);

/// Where each stub jumps to.
pub(crate) static TABLE: [AtomicPtr<()>; Symbol::Count as usize] =
    [const { AtomicPtr::new(unbound as *const () as *mut ()) }; Symbol::Count as usize];

pub(crate) fn keep() {
    std::hint::black_box(&KEEP);
}

/// The entry of [`TABLE`] for a function that is not bound.
pub(crate) fn unbound_address() -> *mut () {
    unbound as *const () as *mut ()
}

/// Where the stub of a missing function ends: aligns the stack and hands its index to [`die`].
#[unsafe(naked)]
unsafe extern "C" fn unbound() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("mov edi, r11d", "and rsp, -16", "call {die}", "ud2", die = sym die);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov w0, w17", "bl {die}", "brk #1", die = sym die);
}

#[cfg(target_arch = "x86_64")]
extern "sysv64" fn die(index: u32) -> ! {
    report(index)
}

#[cfg(target_arch = "aarch64")]
extern "C" fn die(index: u32) -> ! {
    report(index)
}

/// Unwinding through LLVM's callers is not possible: print and abort.
fn report(index: u32) -> ! {
    let name = NAMES.get(index as usize).copied().unwrap_or("a function of LLVM");
    match crate::is_bound() {
        Some(library) => eprintln!("{name} is not in {library}"),
        None => eprintln!("{name} was called before libLLVM was loaded"),
    }
    std::process::abort()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the stubs of LLVM exist for x86-64 and AArch64: build tinyspec without its feature `llvm`");
