//! Code for CPUs: `extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64)`, which takes a table of its buffers.

use super::Renderer;
use super::emit::{Kind, Result, Space, Value};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::FunctionValue;

/// A pointer on a CPU.
const POINTER: Kind = Kind::Pointer(Space::Flat);

/// Adds the kernel's function to `module`, in its own section if one is given.
pub(super) fn function<'context>(
    context: &'context Context,
    module: &Module<'context>,
    name: &str,
    section: Option<&str>,
) -> FunctionValue<'context> {
    let (long, pointer) = (context.i64_type(), context.ptr_type(inkwell::AddressSpace::default()));
    let signature = context.void_type().fn_type(&[pointer.into(), long.into(), long.into()], false);
    let function = module.add_function(name, signature, None);
    function.set_section(section);
    function
}

impl Renderer<'_, '_> {
    /// Loads the pointer at a position of the table.
    fn entry_of_table(&self, position: usize) -> Result<Value> {
        let table = self.emit.parameter(0, POINTER)?;
        let position = self.emit.int(Kind::I64, 1, position as i64);
        let place = self.emit.offset(table, position, POINTER)?;
        self.emit.load(place, POINTER, 1, 8)
    }

    /// The address of a buffer.
    pub(super) fn buffer_of_table(&self, slot: u32) -> Result<Value> {
        self.entry_of_table(slot as usize)
    }

    /// The value of a named dim: these follow the buffers.
    pub(super) fn dim_of_table(&self, slot: u32) -> Result<Value> {
        let dims = self.entry_of_table(self.kernel.params.saturating_sub(1))?;
        let position = self.emit.int(Kind::I64, 1, i64::from(slot));
        let place = self.emit.offset(dims, position, Kind::I64)?;
        self.emit.load(place, Kind::I64, 1, 8)
    }

    /// LOCAL memory, which is the thread's own and follows the Params.
    pub(super) fn scratch_of_table(&self, offset: usize) -> Result<Value> {
        let scratch = self.entry_of_table(self.kernel.params)?;
        let offset = self.emit.int(Kind::I64, 1, offset as i64);
        self.emit.offset(scratch, offset, Kind::I8)
    }

    /// The trips of the THREAD Range that this call runs.
    pub(super) fn shared_trips(&self) -> Result<(Value, Value)> {
        Ok((self.emit.parameter(1, Kind::I64)?, self.emit.parameter(2, Kind::I64)?))
    }
}
