//! Objects on disk: what is whole is used again; what is damaged, foreign or no file is made anew.
//!
//! The folder of the cache is chosen once a process, so each test runs its work in a process of its own.

use std::fs::{self, FileTimes};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use tinyspec_backends::interpreter::{self, linear::InterpreterCompiler, linear::InterpreterRuntime};
use tinyspec_backends::{BackendError, Compiler, LinearKernel, Runtime, Target};
use tinyspec_core::Tensor;
use tinyspec_core::execute::{register, with_default_device};
use tinyspec_ir::ContentHasher;

/// Counts how often it is asked, and takes long enough for its objects to be worth a file.
struct Counting {
    compiler: Arc<dyn Compiler>,
    fingerprint: &'static str,
    generator: Option<&'static str>,
    compiled: Arc<AtomicUsize>,
}

// SAFETY: the code is another compiler's.
unsafe impl Compiler for Counting {
    fn fingerprint(&self) -> String {
        self.fingerprint.into()
    }

    fn generator(&self) -> Option<String> {
        self.generator.map(String::from)
    }

    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
        self.compiler.compile(kernel, target)
    }

    fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.compiler.source(kernel, target)
    }

    fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.compiler.assembly(kernel, target)
    }
}

/// A kind of device; every use of it is a new device, for a process keeps the kernels of those it has seen.
struct Kind {
    target: Target,
    compiler: Arc<dyn Compiler>,
    runtime: Arc<dyn Runtime>,
    used: AtomicUsize,
}

impl Kind {
    fn interpreter() -> Kind {
        Kind::new(interpreter::target(), Arc::new(InterpreterCompiler), Arc::new(InterpreterRuntime))
    }

    fn new(target: Target, compiler: Arc<dyn Compiler>, runtime: Arc<dyn Runtime>) -> Kind {
        Kind { target, compiler, runtime, used: AtomicUsize::new(0) }
    }

    #[cfg(feature = "llvm")]
    fn cpu() -> Option<Kind> {
        use tinyspec_backends::llvm::LlvmCompiler;
        match LlvmCompiler::new() {
            Ok(compiler) => {
                let runtime = tinyspec_backends::cpu::CpuRuntime::new(1);
                Some(Kind::new(Target::native(), Arc::new(compiler), Arc::new(runtime)))
            }
            Err(error) => {
                println!("skipped on the CPU: {error}");
                None
            }
        }
    }

    #[cfg(not(feature = "llvm"))]
    fn cpu() -> Option<Kind> {
        println!("skipped on the CPU: built without `llvm`");
        None
    }

    /// Computes one kernel on a new device, checks the result, and tells how often the compiler was asked.
    fn compute(&self, fingerprint: &'static str) -> usize {
        self.compute_by(fingerprint, Some("a generator"))
    }

    /// As [`Kind::compute`], by this code generator.
    fn compute_by(&self, fingerprint: &'static str, generator: Option<&'static str>) -> usize {
        let compiled = Arc::new(AtomicUsize::new(0));
        let compiler = Counting { compiler: self.compiler.clone(), fingerprint, generator, compiled: compiled.clone() };
        let name = format!("{}-{}", self.target.name, self.used.fetch_add(1, Ordering::Relaxed));
        register(&name, self.target.clone(), Arc::new(compiler), self.runtime.clone());
        let found: Result<Vec<f32>, tinyspec_core::Error> = with_default_device(&name, || {
            let x = Tensor::from_slice(&[1f32, -2.0, 3.0], [3]);
            (&x * &x + 1.0).to_vec()
        });
        assert_eq!(found.unwrap(), [2.0, 5.0, 10.0]);
        compiled.load(Ordering::Relaxed)
    }
}

/// Runs a test below in a process with a cache folder of its own.
fn in_own_process(test: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("object_cache::work::{test}"), "--include-ignored", "--nocapture"])
        .env("TINYSPEC_CACHE", &folder)
        .output()
        .unwrap();
    let _ = fs::remove_dir_all(&folder);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text.lines().filter(|line| line.starts_with("skipped")).for_each(|line| println!("{line}"));
}

#[test]
fn a_whole_entry_spares_the_compiler() {
    in_own_process("whole");
}

#[test]
fn an_unknown_code_generator_takes_what_any_has_made() {
    in_own_process("generators");
}

/// Objects beyond the limit are removed, those that were used last are kept, and nothing happens again on the same day.
#[test]
fn a_cache_beyond_its_limit_loses_what_was_not_used() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-limit-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let others = folder.join("made-by-others");
    let write = |number: u64| {
        let file = fs::File::create(others.join(number.to_string())).unwrap();
        file.set_len(1000).unwrap();
        let used = SystemTime::now() - Duration::from_secs(number * 3600);
        file.set_times(FileTimes::new().set_modified(used).set_accessed(used)).unwrap();
    };
    let left = || {
        let names = fs::read_dir(&others).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut numbers: Vec<u64> = names.map(|name| name.parse().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    };
    let run = |test: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("object_cache::work::{test}"), "--include-ignored", "--nocapture"]);
        command.env("TINYSPEC_CACHE", &folder).env("TINYSPEC_CACHE_SIZE", "8000");
        let output = command.env("TINYSPEC_DEVICE", "interpreter").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    for part in [&folder, &others] {
        fs::create_dir_all(part).unwrap();
        #[cfg(unix)]
        fs::set_permissions(part, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    }
    (1..=10).for_each(write);
    run("kept");
    assert_eq!(left(), [1, 2, 3, 4, 5, 6]);
    (7..=10).for_each(write);
    run("kept_again");
    assert_eq!(left().len(), 10);
    let _ = fs::remove_dir_all(&folder);
}

/// One process leaves a kernel on disk, the next one has no libLLVM: the kernel runs, another one is refused.
#[cfg(feature = "llvm")]
#[test]
fn a_warm_cache_needs_no_libllvm() {
    if Kind::cpu().is_none() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-warm-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let run = |test: &str, hidden: bool| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("object_cache::work::{test}"), "--include-ignored", "--nocapture"]);
        if hidden {
            command.env("TINYSPEC_LLVM", folder.join("nowhere"));
        }
        let output = command.env("TINYSPEC_CACHE", &folder).env("TINYSPEC_DEVICE", "cpu").output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    };
    run("known", false);
    run("known", true);
    run("unknown", true);
    let _ = fs::remove_dir_all(&folder);
}

/// A command buffer on disk is all that its program needs. Damaged, it is made again.
#[cfg(feature = "llvm")]
#[test]
fn a_command_buffer_holds_its_kernels() {
    if Kind::cpu().is_none() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-commands-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let run = |hidden: bool| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "object_cache::work::several", "--include-ignored", "--nocapture"]);
        if hidden {
            command.env("TINYSPEC_LLVM", folder.join("nowhere"));
        }
        // Verification lowers in any case.
        command.env_remove("TINYSPEC_VERIFY").env("TINYSPEC_CACHE", &folder).env("TINYSPEC_DEVICE", "cpu");
        command.output().unwrap().status.success()
    };
    let files = |extension: &str| -> Vec<PathBuf> {
        let inside = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let generators = inside(&folder).filter(|entry| entry.is_dir());
        let all = generators.flat_map(|generator| inside(&generator));
        all.filter(|file| file.extension() == Some(extension.as_ref())).collect()
    };
    let remove = |file: &PathBuf| fs::remove_file(file).unwrap();
    assert!(run(false));
    let whole: Vec<(PathBuf, Vec<u8>)> =
        files("commands").into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    assert!(whole.len() > 2, "{whole:?}");
    files("o").iter().for_each(remove);
    assert!(run(true), "from the command buffers");
    for (file, contents) in &whole {
        let mut bytes = contents.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).unwrap();
    }
    assert!(!run(true), "damaged");
    assert!(run(false), "made again");
    for (file, contents) in &whole {
        assert_eq!(&fs::read(file).unwrap(), contents, "{}", file.display());
    }
    let _ = fs::remove_dir_all(&folder);
}

/// A root folder that holds nothing but the program, the C library and the cache: there is no libLLVM, no toolchain, no `/proc`
/// and no `/sys`.
#[cfg(all(feature = "llvm", target_os = "linux"))]
#[test]
fn a_warm_cache_is_all_that_a_bare_root_needs() {
    use std::ffi::{CString, c_char, c_int};
    use std::os::unix::process::CommandExt;
    unsafe extern "C" {
        fn chroot(path: *const c_char) -> c_int;
        fn chdir(path: *const c_char) -> c_int;
        fn unshare(flags: c_int) -> c_int;
    }
    const NEW_USER: c_int = 0x1000_0000;
    const NOT_PERMITTED: i32 = 1;
    if Kind::cpu().is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("root-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    for folder in ["lib", "lib64"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let program = std::env::current_exe().unwrap();
    if fs::hard_link(&program, root.join("program")).is_err() {
        fs::copy(&program, root.join("program")).unwrap();
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    for library in files.filter(|file| file.contains(".so") && !file.contains("LLVM")) {
        let name = Path::new(library).file_name().unwrap();
        for folder in ["lib", "lib64"] {
            fs::copy(library, root.join(folder).join(name)).unwrap();
        }
    }
    let arguments = |test: &str| {
        ["--exact", &format!("object_cache::work::{test}"), "--include-ignored", "--nocapture"].map(String::from)
    };
    let mut warm = Command::new(&program);
    warm.args(arguments("several")).env("TINYSPEC_CACHE", root.join("cache")).env("TINYSPEC_DEVICE", "cpu");
    let output = warm.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = CString::new(root.to_str().unwrap()).unwrap();
    for test in ["several", "refused"] {
        let mut bare = Command::new("/program");
        bare.args(arguments(test)).env_clear().env("TINYSPEC_CACHE", "/cache").env("TINYSPEC_DEVICE", "cpu");
        bare.env("LD_LIBRARY_PATH", "/lib");
        // What is compiled for another processor is another entry.
        bare.envs(std::env::vars_os().filter(|(name, _)| name == "TINYSPEC_CPU"));
        let path = path.clone();
        // SAFETY: between fork and exec it makes calls of the system alone.
        unsafe {
            bare.pre_exec(move || {
                let is_there = chroot(path.as_ptr()) == 0 || unshare(NEW_USER) == 0 && chroot(path.as_ptr()) == 0;
                let is_there = is_there && chdir(c"/".as_ptr()) == 0;
                if is_there { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            });
        }
        let output = match bare.output() {
            Err(error) if error.raw_os_error() == Some(NOT_PERMITTED) => {
                println!("skipped: this process may not change its root folder: {error}");
                break;
            }
            output => output.unwrap(),
        };
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_damaged_entry_is_made_anew() {
    in_own_process("damaged");
}

#[test]
fn a_foreign_entry_is_made_anew() {
    in_own_process("foreign");
}

#[test]
fn what_is_no_readable_file_is_passed_by() {
    in_own_process("no_file");
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_can_write_to_is_not_used() {
    in_own_process("shared_folder");
}

#[cfg(unix)]
#[test]
fn a_subfolder_that_is_not_ours_alone_is_not_used() {
    in_own_process("shared_subfolder");
}

/// What the tests above run, each in a process of its own.
mod work {
    use super::*;

    const VERSION: &str = "a version";

    fn numbers() -> Tensor {
        Tensor::from_slice(&[0.5f32, -2.0, 3.0, 1.0], [2, 2])
    }

    #[test]
    #[ignore = "needs a cache folder of its own"]
    fn known() {
        let found: Vec<f32> = (numbers().matmul(numbers()) + 1.0).to_vec().unwrap();
        assert_eq!(found, [-4.75, -2.0, 5.5, -4.0]);
    }

    #[test]
    #[ignore = "needs a cache folder of its own"]
    fn kept() {
        assert_eq!(Kind::interpreter().compute(VERSION), 1);
    }

    #[test]
    #[ignore = "needs a cache folder of its own"]
    fn kept_again() {
        assert_eq!(Kind::interpreter().compute("another version"), 1);
    }

    #[test]
    #[ignore = "needs an environment without libLLVM"]
    fn unknown() {
        let error = (numbers() * numbers()).to_vec::<f32>().unwrap_err().to_string();
        let cache = fs::canonicalize(folder()).unwrap();
        let missing = format!(" is not in the cache {}, and there is no code generator", cache.display());
        assert!(error.starts_with("kernel `") && error.contains(&missing), "{error}");
        assert!(error.contains("TINYSPEC_LLVM") && error.contains("nowhere"), "{error}");
    }

    /// Kernels of several kinds, some for several threads.
    #[test]
    #[ignore = "needs a cache folder of its own"]
    fn several() {
        let x = Tensor::ones([300, 200]).contiguous();
        let product = x.matmul(x.transpose(0, 1));
        assert_eq!(product.to_vec::<f32>().unwrap(), vec![200.0; 300 * 300]);
        let shares: Vec<f32> = product.softmax(1).sum(1, false).to_vec().unwrap();
        assert!(shares.iter().all(|share| (share - 1.0).abs() < 1e-5));
        assert_eq!((&x * 2.0).cumsum(0).max(.., false).item::<f32>().unwrap(), 600.0);
        assert_eq!(Tensor::ones([2000, 1000]).contiguous().sum(0, false).to_vec::<f32>().unwrap(), vec![2000.0; 1000]);
    }

    #[test]
    #[ignore = "needs an environment without libLLVM"]
    fn refused() {
        let error = (numbers() * numbers()).to_vec::<f32>().unwrap_err().to_string();
        assert!(error.contains("TINYSPEC_LLVM"), "{error}");
    }

    fn folder() -> PathBuf {
        PathBuf::from(std::env::var_os("TINYSPEC_CACHE").expect("run by the tests above"))
    }

    /// Whatever is there but command buffers: each device of these tests is another one to them.
    fn entries() -> Vec<PathBuf> {
        let inside = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let generators = inside(&folder()).filter(|entry| entry.is_dir());
        let all = generators.flat_map(|generator| inside(&generator));
        let mut found: Vec<PathBuf> = all.filter(|entry| entry.extension() != Some("commands".as_ref())).collect();
        found.sort();
        found
    }

    fn entry() -> PathBuf {
        let [entry] = &entries()[..] else { panic!("one entry: {:?}", entries()) };
        entry.clone()
    }

    /// Both kinds of devices, and how many of the damages to try: machine code is longer and slower to make.
    fn kinds() -> impl Iterator<Item = (Kind, usize)> {
        [(Some(Kind::interpreter()), 1), (Kind::cpu(), 41)].into_iter().filter_map(|(kind, step)| Some((kind?, step)))
    }

    /// An entry with these contents is made anew, and is whole again after that.
    fn remade(kind: &Kind, contents: &[u8], whole: &[u8], what: &str) {
        fs::write(entry(), contents).unwrap();
        assert_eq!(kind.compute(VERSION), 1, "{what}: made anew");
        assert_eq!(fs::read(entry()).unwrap(), whole, "{what}: kept");
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn whole() {
        for (kind, _) in kinds() {
            assert_eq!(kind.compute(VERSION), 1);
            assert_eq!(kind.compute(VERSION), 0);
            // Another version of the compiler has entries of its own.
            assert_eq!(kind.compute("another version"), 1);
            assert_eq!(kind.compute(VERSION), 0);
            assert_eq!(entries().len(), 2, "no drafts are left: {:?}", entries());
            entries().iter().for_each(|entry| fs::remove_file(entry).unwrap());
        }
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn generators() {
        for (kind, _) in kinds() {
            assert_eq!(kind.compute_by(VERSION, Some("one")), 1);
            assert_eq!(kind.compute_by(VERSION, Some("another")), 1, "each has entries of its own");
            assert_eq!(kind.compute_by(VERSION, Some("one")), 0);
            assert_eq!(kind.compute_by(VERSION, None), 0, "the entry of any will do");
            assert_eq!(kind.compute_by("another version", None), 1, "but not of another processor");
            entries().iter().for_each(|entry| fs::remove_file(entry).unwrap());
        }
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn damaged() {
        for (kind, step) in kinds() {
            kind.compute(VERSION);
            let whole = fs::read(entry()).unwrap();
            for position in (0..whole.len()).step_by(step) {
                let mut bytes = whole.clone();
                bytes[position] ^= 1 << (position % 8);
                remade(&kind, &bytes, &whole, &format!("byte {position} damaged"));
                remade(&kind, &whole[..position], &whole, &format!("cut after {position} bytes"));
            }
            let longer = [&whole[..], &[0]].concat();
            remade(&kind, &longer, &whole, "a byte too many");
            fs::remove_file(entry()).unwrap();
        }
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn foreign() {
        for (kind, _) in kinds() {
            kind.compute(VERSION);
            let whole = fs::read(entry()).unwrap();
            let (header, code) = whole.split_at(40);
            let another_format = [&b"\x7fELF\x02\x01\x01\0"[..], &whole[8..]].concat();
            remade(&kind, &another_format, &whole, "another format");
            let another_version = [&b"tsobj\0\0\x02"[..], &whole[8..]].concat();
            remade(&kind, &another_version, &whole, "another version of the format");
            let another_key = [&header[..8], &[7; 16], &header[24..], code].concat();
            remade(&kind, &another_key, &whole, "the entry of another kernel");
            // Sound by its own account, but no runtime can load it.
            for code in [&b""[..], b"no code at all", &code[..code.len() / 2]] {
                let mut sum = ContentHasher::default();
                sum.write(code);
                let sealed = [&header[..24], &sum.content_hash().0.to_le_bytes(), code].concat();
                remade(&kind, &sealed, &whole, "sealed, but no code");
            }
            fs::remove_file(entry()).unwrap();
        }
    }

    #[test]
    #[ignore = "needs a process of its own"]
    fn no_file() {
        let kind = Kind::interpreter();
        kind.compute(VERSION);
        let entry = entry();
        fs::remove_file(&entry).unwrap();
        fs::create_dir(&entry).unwrap();
        assert_eq!(kind.compute(VERSION), 1, "a directory");
        assert!(entry.is_dir() && entries().len() == 1, "no draft is left beside it: {:?}", entries());
        fs::remove_dir(&entry).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt, symlink};
            symlink(folder().join("nowhere"), &entry).unwrap();
            assert_eq!(kind.compute(VERSION), 1, "a link to nothing");
            assert_eq!(kind.compute(VERSION), 0, "replaced by an entry");
            fs::set_permissions(&entry, fs::Permissions::from_mode(0o000)).unwrap();
            // Whoever may read everything reads this too.
            let readable = fs::read(&entry).is_ok();
            assert_eq!(kind.compute(VERSION), usize::from(!readable), "unreadable");
        }
        fs::remove_dir_all(folder()).unwrap();
        assert_eq!(kind.compute(VERSION), 1, "the folder is gone");
        assert_eq!(kind.compute(VERSION), 0, "the folder is made anew");
        fs::remove_dir_all(folder()).unwrap();
        fs::write(folder(), "a file in the folder's place").unwrap();
        assert_eq!(kind.compute(VERSION), 1, "a file in the folder's place");
        fs::remove_file(folder()).unwrap();
    }

    #[cfg(unix)]
    #[test]
    #[ignore = "needs a process of its own"]
    fn shared_folder() {
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir(folder()).unwrap();
        fs::set_permissions(folder(), fs::Permissions::from_mode(0o777)).unwrap();
        let kind = Kind::interpreter();
        assert_eq!(kind.compute(VERSION), 1);
        assert_eq!(kind.compute(VERSION), 1);
        assert!(entries().is_empty(), "{:?}", entries());
    }

    #[cfg(unix)]
    #[test]
    #[ignore = "needs a process of its own"]
    fn shared_subfolder() {
        use std::os::unix::fs::{PermissionsExt, chown, symlink};
        let kind = Kind::interpreter();
        assert_eq!(kind.compute(VERSION), 1);
        let entry = entry();
        let of_generator = entry.parent().unwrap();
        let is_used = |what: &str, is_used: bool| {
            assert_eq!(kind.compute(VERSION), usize::from(!is_used), "{what}");
            // Whoever takes what any generator has made looks there too, and keeps what it has to make in a folder of its own.
            assert_eq!(kind.compute_by(VERSION, None), usize::from(!is_used), "{what}, any generator's");
            let others =
                fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|other| other.is_dir());
            others.filter(|other| *other != of_generator).for_each(|other| fs::remove_dir_all(other).unwrap());
        };
        let allow = |mode| fs::set_permissions(of_generator, fs::Permissions::from_mode(mode)).unwrap();
        allow(0o777);
        is_used("others may write to it", false);
        allow(0o700);
        is_used("ours alone", true);
        let elsewhere = folder().with_extension("elsewhere");
        fs::rename(of_generator, &elsewhere).unwrap();
        symlink(&elsewhere, of_generator).unwrap();
        is_used("a link to another folder", false);
        fs::remove_file(of_generator).unwrap();
        fs::rename(&elsewhere, of_generator).unwrap();
        match chown(of_generator, Some(4242), None) {
            Ok(()) => is_used("somebody else's", false),
            Err(error) => println!("skipped: a folder of another owner: {error}"),
        }
    }
}
