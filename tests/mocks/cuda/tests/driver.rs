//! CUDA's driver as `cuda` uses it, with a simulated GPU behind it: each test in a process of its own, as a process has one
//! driver.

#![cfg(target_os = "linux")]

use mock_cuda::Held;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use tinyspec::backends::gpu::cuda;
use tinyspec::backends::{BackendError, Grid, Launch, Memory, Runtime};
use tinyspec::collectives::broadcast;
use tinyspec::prelude::*;
use tinyspec::{DType, Error};

/// A folder in which the mock is called what NVIDIA's library is.
fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("libcuda");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let library = std::env::current_exe().expect("a name").with_file_name("libmock_cuda.so");
    // Another test may be as far.
    let _ = std::os::unix::fs::symlink(library, folder.join("libcuda.so.1"));
    folder
}

/// Runs the ignored test of this name with the mock as libcuda.
fn apart(name: &str, settings: &str) {
    let output = command(name).env("MOCK_CUDA", settings).env("LD_LIBRARY_PATH", folder()).output();
    passes(name, output.expect("a process"));
}

fn command(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a name"));
    command.args(["--exact", name, "--ignored", "--nocapture"]).env_remove("TINYSPEC_CUDA");
    command
}

fn passes(name: &str, output: Output) {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && out.contains("1 passed"), "{name}: {}\n{out}\n{err}", output.status);
}

/// What the mock has given and not got back.
fn held() -> Held {
    let mut held = Held::default();
    // SAFETY: the library is open already under this name; the function is the mock's own.
    unsafe {
        let library = libloading::Library::new("libcuda.so.1").expect("it is open");
        let function = library.get::<unsafe extern "C" fn(*mut Held)>(c"mock_cuda_held".to_bytes_with_nul());
        function.expect("it is the mock")(&mut held);
    }
    held
}

macro_rules! processes {
    ($($name:ident $child:ident $settings:literal;)*) => {
        $(#[test]
        fn $name() {
            apart(stringify!($child), $settings);
        })*
    };
}

processes! {
    programs_run programs "";
    programs_run_on_another_chip programs "capability=90";
    devices_exchange_tensors exchange "";
    a_run_is_enqueued_and_reading_waits asynchronous "";
    much_work_is_enqueued many "";
    large_copies_go_through_pinned_memory large "";
    copies_do_without_pinned_memory large "pinned=0";
    memory_is_used_again reuse "";
    what_is_let_go_is_used_only_later order "";
    the_cpu_and_a_gpu_share_a_tensor tuple "";
    several_threads_use_a_device threads "";
    what_is_dropped_is_given_back give_back "";
    foreign_code_is_refused foreign "";
    newer_code_says_that_the_driver_is_old newer "ptx=69";
    memory_runs_out memory "memory=1000000";
    a_fault_names_the_kernel fault "fault=0";
    a_fault_among_several_kernels fault_among "fault=1";
    a_refused_launch_harms_nobody refused "refused=1";
    a_lost_device lost "lost=1";
    a_result_that_nobody_knows unknown "unknown=1";
    an_old_driver old "version=11080";
    no_device none "devices=0";
    too_few_devices few "devices=1";
    a_chip_without_code chip "capability=70";
}

#[test]
#[ignore = "in a process of its own"]
fn programs() -> Result<()> {
    tinyspec::set_default_device("cuda")?;
    let (a, b) = (Tensor::arange(1000).cast(DType::F32), Tensor::full([1000], 0.5));
    let sum = (&a + &b).to_vec::<f32>()?;
    assert!(sum.iter().zip(0..).all(|(&sum, i)| sum == i as f32 + 0.5));
    tinyspec::set_seed(1);
    let (x, w) = (Tensor::randn([37, 50]), Tensor::randn([50, 70]));
    let product = |device: &str| x.to(device).matmul(w.to(device)).softmax(-1).to_vec::<f32>();
    let (here, there) = (product("cpu")?, product("cuda")?);
    assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-5), "{here:?}\n{there:?}");
    assert!(held().launched > 2);
    Ok(())
}

#[function(bounds(T: 1..=40))]
fn scores<T>(q: &Tensor<f32, 1, 8>, keys: &Tensor<f32, T, 8>) -> Tensor<f32, 1, T> {
    q.matmul(keys.transpose(0, 1)).softmax(-1)
}

#[test]
#[ignore = "in a process of its own"]
fn exchange() -> Result<()> {
    let numbers: Vec<f32> = (0..600).map(|i| i as f32).collect();
    let x = Tensor::from_slice(&numbers, [20, 30]);
    let there = (x.to("cuda") * 2.0).to("cuda:1") + 1.0;
    let part = there.at((3.., 4..9)).to("cpu");
    assert_eq!(part.at((0, 0)).to_vec::<f32>()?, [2.0 * 94.0 + 1.0]);
    // A dim with bounds is a parameter of kernels.
    let (q, keys) = (x.at((..1, ..8)), x.at((.., 8..16)) * 0.001);
    for rows in [1, 7, 20] {
        let of = |device: &str| scores(&q.to(device), &keys.at(..rows).to(device)).to_vec::<f32>();
        let (here, there) = (of("cpu")?, of("cuda")?);
        assert!(here.len() == rows && here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-5), "{rows}");
    }
    Ok(())
}

/// The copy of what is not computed yet waits for it, and what is computed next where it came from waits for the copy.
#[test]
#[ignore = "in a process of its own"]
fn order() -> Result<()> {
    let x = Tensor::from_vec((0..5000).map(|i| i as f32).collect(), [5000]).to("cuda");
    let mut there = Vec::new();
    for round in 0..20 {
        let part = (&x * round as f32).to("cuda:1");
        part.realize()?;
        // Its memory may be that of what was copied.
        (&x + round as f32).realize()?;
        there.push(part);
    }
    assert_eq!(held().launched, 0);
    for (round, part) in there.iter().enumerate() {
        let found = part.to_vec::<f32>()?;
        assert!(found.iter().zip(0..).all(|(&found, i)| found == (i * round) as f32), "{round}");
    }
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn asynchronous() -> Result<()> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]).to("cuda");
    let y = (&x * 2.0).contiguous();
    y.realize()?;
    let z = (&y + 1.0).contiguous();
    z.realize()?;
    drop((x, y));
    assert_eq!(held().launched, 0);
    assert_eq!(z.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
    assert_eq!(held().launched, 2);
    (z * 2.0).realize()?;
    tinyspec::device("cuda")?.synchronize()?;
    assert_eq!(held().launched, 3);
    Ok(())
}

/// Steps that nobody reads: the oldest are waited for, so that not all of them are in the queue.
#[test]
#[ignore = "in a process of its own"]
fn many() -> Result<()> {
    let mut state = Tensor::zeros([40]).to("cuda");
    for step in 0..300 {
        // A number that changes is uploaded each time.
        state = &state + step as f32;
        state.realize()?;
    }
    assert!((200..300).contains(&held().launched), "{}", held().launched);
    assert_eq!(state.to_vec::<f32>()?, [(300 * 299 / 2) as f32; 40]);
    assert!(held().events < 500, "{}", held().events);
    Ok(())
}

/// More than is pinned, of uneven length.
#[test]
#[ignore = "in a process of its own"]
fn large() -> Runs {
    let runtime = open();
    let length = (41 << 20) + 13;
    let data: Vec<u8> = (0..length).map(|i: usize| (i ^ i >> 8 ^ i >> 16) as u8).collect();
    let [first, second] = [runtime.allocate(length)?, runtime.allocate(length)?];
    runtime.write(&*first, &data)?;
    assert!(runtime.copy(&*second, &*first, 5, length - 5)?);
    let mut back = vec![0; length - 5];
    runtime.read(&*second, &mut back)?;
    assert!(back == data[5..]);
    // Small ones in between.
    for number in 0..1000u32 {
        runtime.write(&*first, &number.to_le_bytes())?;
    }
    let mut number = [0; 4];
    runtime.read(&*first, &mut number)?;
    assert_eq!(u32::from_le_bytes(number), 999);
    drop((first, second, runtime));
    assert_eq!(held(), Held { launched: 0, ..Held::default() });
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn reuse() -> Runs {
    let runtime = open();
    let mut addresses = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let memory: Vec<_> =
            (1..20).map(|size| runtime.allocate(size * 1000)).collect::<std::result::Result<_, _>>()?;
        addresses.extend(memory.iter().map(|memory| memory.address() as usize));
        assert!(memory.iter().all(|memory| (memory.address() as usize).is_multiple_of(64)));
    }
    assert!(addresses.len() < 100 && held().allocations == 1, "{} {:?}", addresses.len(), held());
    // What is larger than a block has one of its own.
    let large = runtime.allocate(100 << 20)?;
    assert_eq!((held().allocations, large.len()), (2, 100 << 20));
    let is_refused = |bytes| matches!(runtime.allocate(bytes), Err(BackendError::Memory(_)));
    assert!(is_refused(1 << 40) && is_refused(usize::MAX));
    // That was in need of memory: what nobody uses went back.
    assert_eq!(held().allocations, 1);
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn tuple() -> Result<()> {
    let x = Tensor::from_vec((0..240).map(|i| i as f32 * 0.01).collect(), [24, 10]);
    let w = Tensor::from_vec((0..30).map(|i| i as f32 * 0.1).collect(), [10, 3]);
    let expected = x.matmul(&w).softmax(-1).to_vec::<f32>()?;
    for names in [["cpu", "cuda"], ["cuda", "cpu"], ["cuda", "cuda:1"]] {
        let shared = x.to(names).matmul(broadcast(&w, names)).softmax(-1);
        let found = shared.to_vec::<f32>()?;
        assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-5), "{names:?}");
        let sum = shared.sum(.., false).to_vec::<f32>()?;
        assert!((sum[0] - 24.0).abs() < 1e-4, "{names:?} {sum:?}");
        let gradient = |x: &Tensor, w: &Tensor| tinyspec::grad(&x.matmul(w).square().sum(.., false), &[w]);
        let here = gradient(&x, &w)?[0].to_vec::<f32>()?;
        let there = gradient(&x.to(names), &broadcast(&w, names))?[0].to_vec::<f32>()?;
        assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-3), "{names:?}");
    }
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn threads() {
    let work = |thread: usize| -> Result<()> {
        for round in 1..8 {
            let x = Tensor::full([100 * round + thread], 1.5f32).to("cuda");
            let sum = (x * round as f32).sum(.., false).to_vec::<f32>()?;
            assert_eq!(sum, [1.5 * (round * (100 * round + thread)) as f32]);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic").expect("it runs"));
    });
}

/// Each of `n` threads doubles its own number.
const DOUBLE: &str = ".version 7.0
.target sm_80
.address_size 64
.visible .entry double(.param .u64 .ptr .global .align 64 double_param_0) .reqntid 32 {
.reg .b32 %r<3>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [double_param_0]; cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r1, %tid.x; mad.wide.u32 %rd3, %r1, 4, %rd2;
ld.global.u32 %r2, [%rd3]; shl.b32 %r2, %r2, 1; st.global.u32 [%rd3], %r2; ret; }
";

type Runs = std::result::Result<(), BackendError>;

fn launch(runtime: &dyn Runtime, memory: &Arc<dyn Memory>, text: &str) -> Runs {
    let launch = Launch {
        program: runtime.load("double", text.as_bytes())?,
        buffers: vec![0],
        dims: Vec::new(),
        trips: 0..1,
        grid: Grid { groups: [1; 3], threads: [32, 1, 1] },
        scratch_bytes: 0,
        nanoseconds: 0,
        has_prologue: false,
        line: Default::default(),
    };
    // SAFETY: the kernel touches 128 bytes, which the memory has unless a fault is meant; it lives until all is done.
    unsafe { runtime.enqueue(&[launch], &[memory.address()])? };
    runtime.synchronize()
}

fn open() -> Arc<dyn Runtime> {
    cuda::open("cuda", 0).expect("the mock").1
}

#[test]
#[ignore = "in a process of its own"]
fn give_back() -> Runs {
    let runtime = open();
    let memory = runtime.allocate(128)?;
    runtime.write(&*memory, &[1; 128])?;
    launch(&*runtime, &memory, DOUBLE)?;
    let mut bytes = [0; 128];
    runtime.read(&*memory, &mut bytes)?;
    assert_eq!(bytes, [2; 128]);
    let empty = runtime.allocate(0)?;
    assert!(empty.is_empty() && !memory.is_on_host());
    assert!(runtime.write(&*memory, &[0; 129]).is_err() && runtime.read(&*empty, &mut bytes).is_err());
    // Both have a block; copies go through one piece of pinned memory.
    assert_eq!(held(), Held { contexts: 1, streams: 1, modules: 0, allocations: 1, pinned: 1, launched: 1, ..held() });
    assert!(held().events > 0);
    drop((memory, empty, runtime));
    assert_eq!(held(), Held { launched: 1, ..Held::default() });
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn foreign() {
    let runtime = open();
    for code in [&b""[..], b"\x7fELF\x02\x01\x01", b"\xff\xfe", b".version 7.0\n.target sm_80\n", b".entry k( {"] {
        let error = runtime.load("k", code).map(drop).expect_err("it is no PTX");
        assert!(matches!(error, BackendError::Load { .. }), "{error}");
    }
    let error = runtime.load("double", DOUBLE.replace("shl.b32", "frob").as_bytes()).map(drop).expect_err("unknown");
    assert!(error.to_string().contains("frob"), "{error}");
    let error = runtime.load("double", DOUBLE.replace("_80", "_90a").as_bytes()).map(drop).expect_err("too new");
    assert!(error.to_string().contains("sm_90a is not sm_80"), "{error}");
    assert_eq!(held().modules, 0);
}

#[test]
#[ignore = "in a process of its own"]
fn newer() {
    let error = open().load("double", DOUBLE.as_bytes()).map(drop).expect_err("PTX is newer");
    let text = error.to_string();
    assert!(text.contains("UNSUPPORTED_PTX_VERSION") && text.contains("help: install a newer driver"), "{text}");
}

#[test]
#[ignore = "in a process of its own"]
fn memory() -> Result<()> {
    let small = Tensor::full([1000], 1f32).to("cuda");
    small.realize()?;
    let large = (Tensor::full([600, 600], 1f32).to("cuda") * 2.0).to_vec::<f32>();
    let Err(Error::Memory { reason, report, .. }) = &large else { panic!("{large:?}") };
    assert!(reason.contains("CUDA_ERROR_OUT_OF_MEMORY") && reason.contains(" are free"), "{reason}");
    assert!(report.largest.iter().any(|held| held.what == "tensor f32 [1000]" && held.location.is_some()), "{report}");
    // The device goes on.
    assert_eq!((small * 3.0).sum(.., false).to_vec::<f32>()?, [3000.0]);
    Ok(())
}

/// The device is lost, neither the CPU nor another device is.
fn is_lost(reason: &str) -> Result<()> {
    let x = Tensor::full([10], 1f32);
    let error = (x.to("cuda") + 1.0).to_vec::<f32>().expect_err("the device is lost");
    assert!(matches!(error, Error::Backend(BackendError::Lost { .. }) | Error::Memory { .. }), "{error}");
    assert!(error.to_string().contains("is lost: ") && error.to_string().contains(reason), "{error}");
    for other in ["cpu", "cuda:1"] {
        assert_eq!((x.to(other) + 1.0).to_vec::<f32>()?, [2.0; 10], "{other}");
    }
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn fault() -> Result<()> {
    let x = Tensor::full([10], 1f32).to("cuda");
    let (y, line) = ((x * 2.0).sum(.., false), line!());
    // That it fails shows where it is read.
    y.realize()?;
    let error = y.to_vec::<f32>().expect_err("the kernel leaves its memory");
    let Error::Backend(BackendError::Execution { name, reason }) = &error else { panic!("{error}") };
    assert!(reason.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && reason.contains("cuda (simulated GPU 0)"), "{error}");
    assert!(reason.contains(&format!("driver.rs:{line}:")), "{error}");
    is_lost(name)
}

#[test]
#[ignore = "in a process of its own"]
fn fault_among() -> Result<()> {
    let x = Tensor::full([10, 10], 1f32).to("cuda");
    let y = (&x * 2.0).contiguous().matmul(&x).contiguous().sum(.., false);
    let error = y.to_vec::<f32>().expect_err("a kernel leaves its memory");
    let Error::Backend(BackendError::Execution { reason, .. }) = &error else { panic!("{error}") };
    assert!(reason.contains("or one launched behind it") && reason.contains("TINYSPEC_DEBUG=2"), "{error}");
    assert_eq!(reason.matches("driver.rs:").count(), 4, "{error}");
    is_lost("ILLEGAL_ADDRESS")
}

/// The first program runs, the second fails; then all goes on.
fn fails_once(words: &str) -> Result<()> {
    let x = Tensor::from_slice(&[1f32; 10], [10]).to("cuda");
    let of = |factor: f32| (&x * factor).to_vec::<f32>();
    assert_eq!(of(2.0)?, [2.0; 10]);
    let error = of(3.0).expect_err("the launch fails");
    assert!(matches!(error, Error::Backend(BackendError::Execution { .. })), "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(of(3.0)?, [3.0; 10]);
    Ok(())
}

#[test]
#[ignore = "in a process of its own"]
fn refused() -> Result<()> {
    fails_once("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, too many resources (701)")
}

#[test]
#[ignore = "in a process of its own"]
fn unknown() -> Result<()> {
    fails_once("cuLaunchKernel failed with an unknown error (4242)")
}

#[test]
#[ignore = "in a process of its own"]
fn lost() -> Result<()> {
    let x = Tensor::from_slice(&[1f32; 10], [10]).to("cuda");
    assert_eq!((&x * 2.0).to_vec::<f32>()?, [2.0; 10]);
    assert!((&x * 3.0).to_vec::<f32>().is_err());
    is_lost("CUDA_ERROR_ECC_UNCORRECTABLE")
}

/// What the device `name` says of why it cannot be had; twice the same.
fn says(name: &str, words: &[&str]) {
    for _ in 0..2 {
        let error = tinyspec::device(name).expect_err("it cannot be had").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    // The process goes on.
    assert_eq!((Tensor::full([2], 1f32) + 1.0).to_vec::<f32>().expect("it runs"), [2.0; 2]);
}

#[test]
#[ignore = "in a process of its own"]
fn old() {
    says("cuda", &["libcuda.so.1", "CUDA 11.8", "CUDA 12.0 is needed", "help: install a newer driver"]);
}

#[test]
#[ignore = "in a process of its own"]
fn none() {
    says("cuda", &["finds no GPU", "CUDA_ERROR_NO_DEVICE", "help: "]);
}

#[test]
#[ignore = "in a process of its own"]
fn few() {
    says("cuda:1", &["no device `cuda:1`", "the driver sees 1"]);
}

#[test]
#[ignore = "in a process of its own"]
fn chip() {
    says("cuda", &["`cuda` is simulated GPU 0, a sm_70a", "no code is made"]);
}

#[test]
fn a_missing_library_is_named() {
    let child = |variable: &str, value: &str, name: &str| {
        passes(name, command(name).env(variable, value).output().expect("a process"));
    };
    child("TINYSPEC_CUDA", "/nowhere/libcuda.so", "missing");
    // The C library exports no function of CUDA.
    child("TINYSPEC_CUDA", "libc.so.6", "incomplete");
    child("TINYSPEC_HIP", "/nowhere/libamdhip64.so", "missing_hip");
    child("TINYSPEC_HIP", "libc.so.6", "incomplete_hip");
    // Each kernel beside the CPU.
    let validated = command("programs").env("TINYSPEC_VALIDATE", "1").env("TINYSPEC_CUDA", folder()).output();
    passes("programs", validated.expect("a process"));
    // A folder, and the default device of a program.
    let output = command("programs").env("TINYSPEC_CUDA", folder()).output();
    passes("programs", output.expect("a process"));
}

/// A process leaves kernels on disk; the next one has no libLLVM.
#[test]
fn kernels_on_disk_need_no_code_generator() {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-cache-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&cache);
    let run = |has_llvm: bool| {
        let mut command = command("programs");
        command.env("TINYSPEC_CUDA", folder()).env("TINYSPEC_CACHE", &cache).env("TINYSPEC_THREADS", "1");
        if !has_llvm {
            command.env("TINYSPEC_LLVM", cache.join("nowhere"));
        }
        command.output().expect("a process")
    };
    let cold = run(false);
    assert!(!cold.status.success() && String::from_utf8_lossy(&cold.stderr).contains("LLVM"), "{cold:?}");
    passes("programs", run(true));
    passes("programs", run(false));
    let _ = std::fs::remove_dir_all(&cache);
}

#[test]
#[ignore = "in a process of its own"]
fn missing() {
    says("cuda", &["there is no driver for CUDA", "/nowhere/libcuda.so: ", "help: install NVIDIA's driver"]);
}

#[test]
#[ignore = "in a process of its own"]
fn incomplete() {
    says("cuda", &["libc.so.6: the driver lacks cuInit, cuDriverGetVersion"]);
}

#[test]
#[ignore = "in a process of its own"]
fn missing_hip() {
    says("amd", &["there is no driver of HIP", "/nowhere/libamdhip64.so: ", "help: install ROCm's HIP runtime"]);
}

#[test]
#[ignore = "in a process of its own"]
fn incomplete_hip() {
    says("amd:1", &["libc.so.6: the driver lacks hipInit, hipRuntimeGetVersion, "]);
}
