//! From a module built by hand to running machine code, and what damaged input gives.

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicType;
use inkwell::values::{BasicMetadataValueEnum, BasicValue, PhiValue};
use inkwell::{AddressSpace, IntPredicate};
use tinyspec_backends::llvm::{LlvmError, LoadError, LoadedObject, Machine, Output, find, llvm};
use tinyspec_backends::{Processor, Target};

type Saxpy = unsafe extern "C" fn(*mut f32, *const f32, f32, i64);

/// `y[i] = a * x[i] + y[i]`, one host vector a step.
fn saxpy<'context>(context: &'context Context, module: &Module<'context>) -> Result<(), LlvmError> {
    let lanes = (Target::native().vector_bytes / 4) as u32;
    let (float, long, pointer) = (context.f32_type(), context.i64_type(), context.ptr_type(AddressSpace::default()));
    let vector = float.vec_type(lanes);
    let parameters = [pointer.into(), pointer.into(), float.into(), long.into()];
    let function = module.add_function("saxpy", context.void_type().fn_type(&parameters, false), None);
    let entry = context.append_basic_block(function, "entry");
    let body = context.append_basic_block(function, "body");
    let exit = context.append_basic_block(function, "exit");
    let builder = context.create_builder();
    builder.position_at_end(entry);
    let argument = |index| function.get_nth_param(index).expect("four parameters");
    let (y, x) = (argument(0).into_pointer_value(), argument(1).into_pointer_value());
    let single = builder.build_insert_element(vector.get_undef(), argument(2), long.const_zero(), "").unwrap();
    let mask = context.i32_type().vec_type(lanes).const_zero();
    let a = builder.build_shuffle_vector(single, vector.get_undef(), mask, "a").unwrap();
    builder.build_unconditional_branch(body).unwrap();
    builder.position_at_end(body);
    let i: PhiValue = builder.build_phi(long, "i").unwrap();
    let index = i.as_basic_value().into_int_value();
    // SAFETY: the caller of the generated code gives whole vectors.
    let at = |base| unsafe { builder.build_in_bounds_gep(float, base, &[index], "").unwrap() };
    let (xs, ys) = (at(x), at(y));
    let load = |from| {
        let value = builder.build_load(vector, from, "").unwrap();
        let instruction = value.as_instruction_value().expect("a load");
        instruction.set_alignment(4).unwrap();
        value.into_vector_value()
    };
    let product = builder.build_float_mul(a, load(xs), "").unwrap();
    let sum = builder.build_float_add(product, load(ys), "").unwrap();
    builder.build_store(ys, sum).unwrap().set_alignment(4).unwrap();
    let next = builder.build_int_add(index, long.const_int(lanes.into(), false), "").unwrap();
    let bound = argument(3).into_int_value();
    let more = builder.build_int_compare(IntPredicate::SLT, next, bound, "").unwrap();
    builder.build_conditional_branch(more, body, exit).unwrap();
    i.add_incoming(&[(&long.const_zero(), entry), (&next, body)]);
    builder.position_at_end(exit);
    builder.build_return(None).unwrap();
    Ok(())
}

/// `out[0] = fmod(a, b)`, or a call of any other function of two doubles.
fn call_of(name: &'static str) -> Vec<u8> {
    fn build<'c>(context: &'c Context, module: &Module<'c>, callee: &str) -> Result<(), LlvmError> {
        let (double, pointer) = (context.f64_type(), context.ptr_type(AddressSpace::default()));
        let signature = double.fn_type(&[double.into(), double.into()], false);
        let callee = module.add_function(callee, signature, None);
        let parameters = [pointer.as_basic_type_enum().into(), double.into(), double.into()];
        let function = module.add_function("call", context.void_type().fn_type(&parameters, false), None);
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, "entry"));
        let argument = |index| function.get_nth_param(index).expect("three parameters");
        let arguments: [BasicMetadataValueEnum; 2] = [argument(1).into(), argument(2).into()];
        let call = builder.build_call(callee, &arguments, "").unwrap();
        let result = call.try_as_basic_value().basic().expect("a value");
        builder.build_store(argument(0).into_pointer_value(), result).unwrap();
        builder.build_return(None).unwrap();
        Ok(())
    }
    let machine = Machine::new(&Processor::native().isa).expect("a code generator");
    machine.generate("call", Output::Object, |context, module| build(context, module, name)).expect("an object")
}

fn saxpy_object() -> Vec<u8> {
    let machine = Machine::new(&Processor::native().isa).expect("a code generator");
    machine.generate("saxpy", Output::Object, saxpy).expect("an object")
}

#[test]
fn a_module_becomes_running_code() {
    let loaded = LoadedObject::load(&saxpy_object()).expect("a sound object");
    assert_eq!(loaded.functions().collect::<Vec<_>>(), ["saxpy"]);
    let address = loaded.function("saxpy").expect("the function");
    // SAFETY: the function was built with this signature, and `loaded` is alive.
    let saxpy: Saxpy = unsafe { std::mem::transmute(address) };
    let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let mut y = vec![1.0; 64];
    // SAFETY: 64 elements are whole vectors on every host.
    unsafe { saxpy(y.as_mut_ptr(), x.as_ptr(), 2.0, 64) };
    assert!(y.iter().enumerate().all(|(i, y)| *y == 2.0 * i as f32 + 1.0), "{y:?}");
}

#[test]
fn source_and_assembly_are_shown() {
    let machine = Machine::new(&Processor::native().isa).expect("a code generator");
    let source = machine.generate("saxpy", Output::Source, saxpy).expect("LLVM IR");
    assert!(String::from_utf8_lossy(&source).contains("define void @saxpy"));
    let assembly = machine.generate("saxpy", Output::Assembly, saxpy).expect("assembler text");
    assert!(String::from_utf8_lossy(&assembly).contains("saxpy:"));
}

#[test]
fn kernels_call_what_the_table_holds() {
    let loaded = LoadedObject::load(&call_of("fmod")).expect("fmod is known");
    let address = loaded.function("call").expect("the function");
    // SAFETY: built with this signature.
    let call: unsafe extern "C" fn(*mut f64, f64, f64) = unsafe { std::mem::transmute(address) };
    let mut out = 0.0;
    // SAFETY: one valid place.
    unsafe { call(&mut out, -7.5, 2.0) };
    assert_eq!(out, -1.5);
}

#[test]
fn kernels_call_nothing_else() {
    let error = LoadedObject::load(&call_of("system_of_a_down")).expect_err("unknown function");
    assert_eq!(error, LoadError::UnknownSymbol("system_of_a_down".into()));
}

/// Release builds verify only where `TINYSPEC_VERIFY` asks for it.
#[cfg(debug_assertions)]
#[test]
fn a_module_that_does_not_verify_is_an_error() {
    fn unfinished<'c>(context: &'c Context, module: &Module<'c>) -> Result<(), LlvmError> {
        let function = module.add_function("unfinished", context.void_type().fn_type(&[], false), None);
        context.append_basic_block(function, "entry");
        Ok(())
    }
    let machine = Machine::new(&Processor::native().isa).expect("a code generator");
    let error = machine.generate("unfinished", Output::Object, unfinished).expect_err("no terminator");
    assert!(error.to_string().contains("unfinished"), "{error}");
}

#[test]
fn damaged_objects_are_refused_and_never_crash() {
    let object = saxpy_object();
    for length in 0..object.len() {
        let result = LoadedObject::load(&object[..length]);
        assert!(result.is_err(), "{length} of {} bytes were accepted", object.len());
    }
    // A flipped bit in code or in padding cannot be seen; in any other place it gives an error or sound tables.
    let mut refused = 0;
    for position in 0..object.len() {
        for bit in [0, 3, 7] {
            let mut damaged = object.clone();
            damaged[position] ^= 1 << bit;
            refused += LoadedObject::load(&damaged).is_err() as usize;
        }
    }
    assert!(refused > 100, "only {refused} damages were noticed");
    let mut foreign = object;
    foreign[18] ^= 0x55;
    assert!(matches!(LoadedObject::load(&foreign), Err(LoadError::Foreign(_))));
}

#[test]
fn a_named_library_that_is_missing_is_an_error_and_not_replaced() {
    let error = find::search(Some("/nowhere/at/all".into())).expect_err("nothing is there");
    assert!(matches!(error, LlvmError::Named { .. }));
    let text = error.to_string();
    assert!(text.contains("TINYSPEC_LLVM=/nowhere/at/all"), "{text}");
    let folder = std::env::temp_dir().join(format!("tinyspec-no-llvm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let error = find::search(Some(folder.clone().into())).expect_err("no libLLVM in an empty folder");
    std::fs::remove_dir(&folder).expect("it is empty");
    assert!(error.to_string().contains("no libLLVM in this folder"), "{error}");
}

#[test]
fn the_toolchain_holds_a_usable_library() {
    let llvm = llvm().expect("cargo's toolchain has libLLVM");
    assert!((19..=22).contains(&llvm.version.major), "{}", llvm.version);
    assert!(find::search(Some(llvm.path.clone().into())).is_ok());
}
