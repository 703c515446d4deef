//! Custom code in the renderer's language, here the body of a function in LLVM IR over `%0`, `%1`, ….
//!
//! `{r}` and `{0}`, `{1}`, … stand for the types of the result and the operands, `{r.name}`, … for their suffixes in
//! names of intrinsics. Code with such placeholders works on whole vectors; code without them is applied to each lane.

use super::Renderer;
use super::emit::{Kind, Result, Value};
use super::gpu;
use crate::BackendError;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use llvm_sys::ir_reader;
use std::ffi::CStr;
use tinyspec_ir::{Arg, NodeId};

/// A type of the code: kind and lanes.
type Type = (Kind, u32);

impl Renderer<'_, '_> {
    pub(super) fn custom(&mut self, node: NodeId) -> Result<Value> {
        let Arg::Text(code) = self.graph.arg(node) else { return Err(self.unsupported(node, "it has no code")) };
        let (kind, lanes) = (self.kind(node), self.lanes(node)?);
        let mut operands = Vec::new();
        for &source in &self.graph.sources(node)[1..] {
            operands.push(self.value_in(source, lanes)?);
        }
        let types = |lanes: u32| -> Vec<Type> { operands.iter().map(|operand| (operand.kind, lanes)).collect() };
        let wide = instance(code, (kind, lanes), &types(lanes));
        if lanes == 1 || wide != **code {
            let function = self.custom_function(node, &wide, (kind, lanes), &types(lanes))?;
            return self.emit.call_named(&function, &operands, kind, lanes);
        }
        let function = self.custom_function(node, code, (kind, 1), &types(1))?;
        let mut result = self.emit.undefined(kind, lanes);
        for lane in 0..lanes {
            let own = operands.iter().map(|&operand| self.emit.extract(operand, lane)).collect::<Result<Vec<_>>>()?;
            result = self.emit.insert(result, self.emit.call_named(&function, &own, kind, 1)?, lane)?;
        }
        Ok(result)
    }

    /// Adds the function with this body, and returns its name.
    pub(super) fn custom_function(
        &mut self,
        node: NodeId,
        code: &str,
        result: Type,
        operands: &[Type],
    ) -> Result<String> {
        let parameters: Vec<String> =
            operands.iter().enumerate().map(|(number, &of)| format!("{} %{number}", type_name(of))).collect();
        let signature = format!("({}) alwaysinline nounwind {{\n{code}\n}}\n", parameters.join(", "));
        let definition = |name: &str| format!("define {} @{name}{signature}", type_name(result));
        if let Some(number) = self.customs.iter().position(|known| *known == definition("")) {
            return Ok(custom_name(number));
        }
        let name = custom_name(self.customs.len());
        let admitted = |parsed| if self.is_gpu() { gpu::admit::code(&parsed).map(|()| parsed) } else { Ok(parsed) };
        let function = parse(self.context, &definition(&name), &name)
            .and_then(admitted)
            .and_then(|parsed| link(self.module, parsed, &name))
            .map_err(|reason| self.unsupported(node, &format!("its code is not a body of a function: {reason}")));
        function?;
        self.customs.push(definition(""));
        Ok(name)
    }
}

fn custom_name(number: usize) -> String {
    format!("custom.{number}")
}

/// Instantiates the code for these types.
pub(super) fn instance(code: &str, result: Type, operands: &[Type]) -> String {
    let operands = operands.iter().enumerate().map(|(number, &of)| (number.to_string(), of));
    operands.chain([("r".to_string(), result)]).fold(code.to_string(), |code, (mark, of)| {
        code.replace(&format!("{{{mark}}}"), &type_name(of)).replace(&format!("{{{mark}.name}}"), &suffix(of))
    })
}

fn type_name((kind, lanes): Type) -> String {
    let element = match kind {
        Kind::Half => "half".into(),
        Kind::BFloat => "bfloat".into(),
        Kind::Float => "float".into(),
        Kind::Double => "double".into(),
        Kind::Pointer(_) => "ptr".into(),
        int => format!("i{}", int.bits()),
    };
    if lanes == 1 { element } else { format!("<{lanes} x {element}>") }
}

/// The suffix of an intrinsic's name for this type.
fn suffix((kind, lanes): Type) -> String {
    let letter = if kind.is_float() { 'f' } else { 'i' };
    let vector = if lanes == 1 { String::new() } else { format!("v{lanes}") };
    format!("{vector}{letter}{}", kind.bits())
}

type Refused<T> = std::result::Result<T, String>;

/// Parses a module with this function, which may call only intrinsics.
fn parse<'context>(context: &'context Context, definition: &str, name: &str) -> Refused<Module<'context>> {
    if definition.contains('\0') {
        return Err("it holds a 0 byte".into());
    }
    let text = MemoryBuffer::create_from_memory_range_copy(definition.as_bytes(), "custom");
    let (mut module, mut message) = (std::ptr::null_mut(), std::ptr::null_mut());
    // Not every supported libLLVM has its successor.
    #[expect(deprecated)]
    // SAFETY: context and text are alive; the parser takes ownership of the text.
    let failed =
        unsafe { ir_reader::LLVMParseIRInContext(context.raw(), text.as_mut_ptr(), &mut module, &mut message) } != 0;
    std::mem::forget(text);
    if failed {
        if message.is_null() {
            return Err("it cannot be read".into());
        }
        // SAFETY: after a failure LLVM returns a message, which is ours to free.
        let text = unsafe {
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            llvm_sys::core::LLVMDisposeMessage(message);
            text
        };
        return Err(text.lines().next().unwrap_or_default().into());
    }
    // SAFETY: the parser made it, and it has no other owner.
    let module = unsafe { Module::new(module) };
    let is_known = |function: inkwell::values::FunctionValue| {
        function.get_name().to_bytes() == name.as_bytes() || function.get_intrinsic_id() != 0
    };
    if let Some(other) = module.get_functions().find(|&function| !is_known(function)) {
        return Err(format!("it needs `{}`, which a kernel cannot call", other.get_name().to_string_lossy()));
    }
    if module.get_first_global().is_some() {
        return Err("it needs a global variable, which a kernel has not".into());
    }
    let mut assembler = 0;
    // SAFETY: the module is alive and owns the text, of which only the length is used.
    unsafe { llvm_sys::core::LLVMGetModuleInlineAsm(module.as_mut_ptr(), &mut assembler) };
    if assembler > 0 {
        return Err("it ends its function and goes on with assembler, which a kernel cannot have".into());
    }
    module.verify().map_err(|message| message.to_string().lines().next().unwrap_or_default().to_string())?;
    Ok(module)
}

/// Links the function into the kernel's module, with private linkage.
fn link<'context>(into: &Module<'context>, parsed: Module<'context>, name: &str) -> Refused<()> {
    parsed.set_triple(&into.get_triple());
    parsed.set_data_layout(&into.get_data_layout());
    // `link_in_module` would leave a diagnostic handler that points into its own stack frame, and later errors, such as an
    // unknown instruction in inline assembler, would be lost.
    // SAFETY: both modules are alive and of one context; LLVM takes `parsed` over.
    let failed = unsafe { llvm_sys::linker::LLVMLinkModules2(into.as_mut_ptr(), parsed.as_mut_ptr()) } != 0;
    std::mem::forget(parsed);
    if failed {
        return Err("it cannot be linked with the kernel".into());
    }
    let function = into.get_function(name).ok_or("it was lost when it was linked")?;
    function.set_linkage(Linkage::Internal);
    Ok(())
}

/// Inlines custom code, so that one function is left.
pub(super) fn inline(module: &Module, count: usize) -> Result<()> {
    use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage};
    use llvm_sys::transforms::pass_builder::*;
    // SAFETY: the module is alive; passes that need no target machine take none.
    let message = unsafe {
        let options = LLVMCreatePassBuilderOptions();
        let error = LLVMRunPasses(module.as_mut_ptr(), c"always-inline".as_ptr(), std::ptr::null_mut(), options);
        LLVMDisposePassBuilderOptions(options);
        if error.is_null() {
            None
        } else {
            let text = LLVMGetErrorMessage(error);
            let message = CStr::from_ptr(text).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(text);
            Some(message)
        }
    };
    let is_left = (0..count).any(|number| module.get_function(&custom_name(number)).is_some());
    match message {
        Some(message) => Err(BackendError::Compile(format!("custom: {message}"))),
        None if is_left => Err(BackendError::Compile("custom: its code cannot stand within a kernel".into())),
        None => Ok(()),
    }
}
