//! Code for all GPUs: a kernel's parameters are its buffers in GLOBAL memory, followed by the values of its named dims;
//! LOCAL memory belongs to a workgroup; indices are Specials.

mod access;
pub(super) mod admit;
pub(super) mod amdgpu;
mod index;
mod nvptx;
mod remainder;

use super::emit::{Kind, Result, Scope, Space, Value};
use super::{Family, Placed, Renderer};
use crate::processor::Isa;
use crate::{LinearKernel, Target};
use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::FunctionValue;
use llvm_sys::LLVMOpcode::LLVMZExt;
use tinyspec_ir::NodeId;
use tinyspec_ir::special::SpecialIndex;

/// The alignment of buffers, which is part of the kernel's calling convention.
const BUFFER_ALIGNMENT: u64 = 64;

/// Adds the kernel's function to `module`.
pub(super) fn function<'context>(
    context: &'context Context,
    module: &Module<'context>,
    kernel: &LinearKernel,
    name: &str,
    family: Family,
) -> FunctionValue<'context> {
    let pointer = context.ptr_type(AddressSpace::from(Space::Global.number() as u16));
    let (buffers, dims) = (kernel.buffers(), kernel.dims());
    let parameters: Vec<BasicMetadataTypeEnum> =
        (0..buffers).map(|_| pointer.into()).chain((0..dims).map(|_| context.i64_type().into())).collect();
    let function = module.add_function(name, context.void_type().fn_type(&parameters, false), None);
    let align = context.create_enum_attribute(Attribute::get_named_enum_kind_id("align"), BUFFER_ALIGNMENT);
    for index in 0..buffers as u32 {
        function.add_attribute(AttributeLoc::Param(index), align);
    }
    let (convention, attributes) = match family {
        Family::Amdgpu => {
            amdgpu::set_version(context, module);
            (amdgpu::CONVENTION, amdgpu::attributes(kernel))
        }
        _ => (nvptx::CONVENTION, nvptx::attributes(kernel)),
    };
    function.set_call_conventions(convention);
    for (key, value) in attributes {
        function.add_attribute(AttributeLoc::Function, context.create_string_attribute(key, &value));
    }
    function
}

/// Checks that LLVM supports this kernel on a GPU.
pub(super) fn admit(kernel: &LinearKernel, target: &Target) -> Result<()> {
    match &target.workgroups {
        Some(workgroups) => workgroups.admit(kernel, &target.name),
        None => Ok(()),
    }
}

impl Renderer<'_, '_> {
    /// Whether the code is for a GPU.
    pub(super) fn is_gpu(&self) -> bool {
        self.family != Family::Cpu
    }

    /// The address of a buffer.
    pub(super) fn buffer_parameter(&self, slot: u32) -> Result<Value> {
        let buffer = self.emit.parameter(slot, Kind::Pointer(Space::Global))?;
        Ok(self.hide_parameter(buffer))
    }

    /// The value of a named dim.
    pub(super) fn dim_parameter(&self, slot: u32) -> Result<Value> {
        let dim = self.emit.parameter(self.kernel.buffers() as u32 + slot, Kind::I64)?;
        Ok(self.hide_parameter(dim))
    }

    /// The value of a parameter, with its origin hidden from LLVM for NVIDIA, which would turn a select of two
    /// parameters into a load from a selected parameter address.
    fn hide_parameter(&self, value: Value) -> Value {
        if self.family == Family::Nvptx { self.emit.freeze(value) } else { value }
    }

    /// LOCAL memory, which contains all LOCAL buffers of a kernel.
    pub(super) fn local_memory(&self, offset: usize) -> Result<Value> {
        let memory = self.emit.local_memory(self.kernel.scratch_bytes);
        let offset = self.emit.int(Kind::I32, 1, offset as i64);
        self.emit.offset(memory, offset, Kind::I8)
    }

    /// A Special: the number of a workgroup, or of a thread in it.
    pub(super) fn special(&mut self, node: NodeId) -> Result<Value> {
        let kind = self.kind(node);
        let bound = self.graph.as_int(self.graph.source(node, 0)).and_then(|bound| u32::try_from(bound).ok());
        let (Some(index), Some(bound)) = (SpecialIndex::of(self.graph, node), bound) else {
            return Err(self.unsupported(node, "it is not an index of a launch"));
        };
        let name = match self.family {
            Family::Cpu => return Err(self.unsupported(node, "a CPU has no workgroups")),
            Family::Nvptx => nvptx::special(index),
            Family::Amdgpu => amdgpu::special(index),
        };
        if bound <= 1 {
            return Ok(self.emit.int(kind, 1, 0));
        }
        let value = self.emit.special_register(&name, bound)?;
        // It has no operands, so its depth is 0.
        self.addresses.narrow.insert(node, Placed { value, depth: 0 });
        match kind {
            Kind::I32 => Ok(value),
            Kind::I64 => self.emit.convert(LLVMZExt, value, kind),
            _ => Err(self.unsupported(node, "an index has 32 or 64 bits")),
        }
    }

    /// Synchronises all threads of the workgroup, and makes their writes visible to each other.
    pub(super) fn barrier(&mut self) -> Result<()> {
        match self.family {
            // LOCAL memory belongs to a single thread, so a barrier has no effect.
            Family::Cpu => Ok(()),
            Family::Nvptx => nvptx::barrier(&self.emit),
            Family::Amdgpu => amdgpu::barrier(&self.emit),
        }
    }
}

/// The family of an instruction set.
pub(super) fn family(isa: Option<&Isa>) -> Family {
    use crate::processor::Architecture;
    match isa.map(|isa| isa.architecture) {
        Some(Architecture::Nvptx64) => Family::Nvptx,
        Some(Architecture::Amdgcn) => Family::Amdgpu,
        _ => Family::Cpu,
    }
}

/// The scope of atomic operations: all threads of the device.
pub(super) fn scope(family: Family) -> Scope {
    if family == Family::Amdgpu { amdgpu::SCOPE } else { nvptx::SCOPE }
}

/// `x`, `y` and `z`.
fn axis(dimension: usize) -> char {
    ['x', 'y', 'z'].get(dimension).copied().unwrap_or('z')
}

/// The name of a Special's register, given the names for groups and threads.
fn register(index: SpecialIndex, group: &str, thread: &str) -> String {
    match index {
        SpecialIndex::Group(dimension) => format!("{group}.{}", axis(dimension)),
        SpecialIndex::Thread(dimension) => format!("{thread}.{}", axis(dimension)),
    }
}
