//! What a call costs beside the kernel: 16 elements leave nothing else to measure.

use tinyspec::backends::llvm::LoadedObject;
use tinyspec::{DType, Function, Spec, Tensor, with_default_device};
use tinyspec_benches::report::Measure;

use super::Result;
use super::allocations::allocations;
use super::compiler::Clocked;
use crate::session::{Case, Session};

/// The kernels' calling convention.
type Kernel = unsafe extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64);

/// The machine code alone, a prepared call of it, and a lazy one; then what the calls allocate.
///
/// # Errors
/// When the kernel cannot be compiled or run.
pub fn benches(session: &mut Session) -> Result<()> {
    const DEVICE: &str = "cpu:calls";
    let compiler = Clocked::device(DEVICE);
    with_default_device(DEVICE, || {
        let input = Tensor::from_vec(vec![1.0f32; 16], [16]);
        input.realize()?;
        let body = |inputs: &[Tensor]| vec![&inputs[0] * 2.0 + 1.0];
        let prepared = Function::trace(&[Spec::new(DType::F32, [16])], body)?.prepare(&[&input])?;
        let mut outputs = prepared.outputs()?;
        prepared.call(&mut outputs, &[&input])?;
        let compiled = compiler.take();
        // Where the cache had it, there is no code to call: the bench runs without one.
        let object = compiled.first().map(|kernel| LoadedObject::load(&kernel.code)).transpose()?;
        let code = object.as_ref().and_then(|object| object.function(object.functions().next()?));
        let mut failed = false;
        if let Some(code) = code {
            // SAFETY: it is what the compiler made of the kernel above.
            let kernel = unsafe { std::mem::transmute::<*const u8, Kernel>(code) };
            let (mut from, mut to) = (Aligned([1.0; 16]), Aligned([0.0; 16]));
            let buffers = [to.0.as_mut_ptr().cast::<u8>(), from.0.as_mut_ptr().cast()];
            let mut run = || {
                // SAFETY: the kernel writes its first buffer and reads its second, 16 floats each.
                unsafe { kernel(std::hint::black_box(buffers.as_ptr()), 0, 1) };
            };
            session.bench(case("call/bare/16", &mut run));
            failed |= session.measures("call/bare/16") && to.0[15] != 3.0;
        }
        let mut prepared_call = || failed |= prepared.call(&mut outputs, &[&input]).is_err();
        session.bench(case("call/prepared/16", &mut prepared_call));
        let prepared_allocations = allocations(&mut prepared_call);
        let mut lazy_call = || failed |= (&input * 2.0 + 1.0).realize().is_err();
        session.bench(case("call/lazy/16", &mut lazy_call));
        let lazy_allocations = allocations(&mut lazy_call);
        if session.measures("call/prepared/allocations") {
            session.count("call/prepared/allocations", prepared_allocations);
            session.count("call/lazy/allocations", lazy_allocations);
        }
        if failed { Err("a call of 16 elements failed".into()) } else { Ok(()) }
    })
}

/// Buffers of kernels are aligned.
#[repr(align(64))]
struct Aligned([f32; 16]);

fn case<'a>(name: &str, run: &'a mut dyn FnMut()) -> Case<'a> {
    Case { name: name.into(), measure: Measure::Times(1.0), bounds: Vec::new(), run, peer: None }
}
