//! Serialised command buffers with the machine code of their kernels, so that a later run neither lowers nor compiles.

use super::linked::{Callee, Linked};
use super::pipeline::Parts;
use super::plan::Kernel;
use crate::Result;
use crate::compare::Tolerance;
use crate::device::Device;
use std::sync::Arc;
use tinyspec_backends::Grid;
use tinyspec_ir::encode::{Reader, Writer, decode, encode};
use tinyspec_ir::{Dim, Error, ErrorKind};

/// The bytes of a command buffer; `None` if it is for several sizes, or its machine code is not there any more.
pub(super) fn write(linked: &Linked) -> Option<Vec<u8>> {
    let mut writer = Writer::default();
    writer.block(&encode(linked.graph(), &[linked.root()]));
    let mut kernels: Vec<&Arc<Kernel>> = Vec::new();
    for kernel in linked.calls().flat_map(|(kernels, ..)| kernels) {
        if kernels.iter().all(|known| !Arc::ptr_eq(known, kernel)) {
            kernels.push(kernel);
        }
    }
    writer.number(kernels.len() as u64);
    kernels.iter().try_for_each(|kernel| write_kernel(&mut writer, kernel))?;
    writer.number(linked.calls().count() as u64);
    for (own, line, outputs) in linked.calls() {
        writer.text(line);
        writer.number(outputs as u64);
        writer.number(own.len() as u64);
        for kernel in own {
            writer.number(kernels.iter().position(|known| Arc::ptr_eq(known, kernel))? as u64);
        }
    }
    Some(writer.into_bytes())
}

/// The command buffer in some bytes, its kernels loaded.
///
/// # Errors
/// When the bytes are damaged, or the device does not load a kernel.
pub(super) fn read(bytes: &[u8], device: &Arc<Device>) -> Result<Linked> {
    let damaged = || Error::new(ErrorKind::Parse, "command buffer", "what is stored of it is damaged");
    let mut reader = Reader::new(bytes);
    let (graph, roots) = decode(reader.block()?)?;
    let &[root] = roots.as_slice() else { return Err(damaged().into()) };
    let kernels = (0..reader.count()?).map(|_| read_kernel(&mut reader, device)).collect::<Result<Vec<_>>>()?;
    let mut callees = Vec::new();
    for _ in 0..reader.count()? {
        let (line, outputs) = (reader.text()?, reader.number()? as usize);
        let own = (0..reader.count()?).map(|_| {
            let kernel = kernels.get(reader.number()? as usize);
            kernel.cloned().ok_or_else(damaged)
        });
        let kernels = own.collect::<tinyspec_ir::Result<Parts>>()?;
        callees.push(Callee { kernels, line, outputs, tolerance: Tolerance::default() });
    }
    match reader.is_done() {
        true => Linked::new(Arc::new(graph), root, callees, device),
        false => Err(damaged().into()),
    }
}

fn write_kernel(writer: &mut Writer, kernel: &Kernel) -> Option<()> {
    let Kernel { name, axes, scratch_bytes, params, buffers, dims, grid, work, has_prologue, .. } = kernel;
    writer.text(name);
    writer.text(axes);
    for number in [*scratch_bytes, *params, *buffers, *dims].into_iter().chain(grid.groups).chain(grid.threads) {
        writer.number(number as u64);
    }
    for dim in [&kernel.trips, &kernel.blocks] {
        writer.number(u64::try_from(dim.as_const()?).ok()?);
    }
    writer.number(*work);
    writer.byte(u8::from(*has_prologue));
    for number in [kernel.nanoseconds, kernel.copied] {
        writer.byte(u8::from(number.is_some()));
        writer.number(number.unwrap_or(0));
    }
    writer.number(kernel.temporaries.len() as u64);
    kernel.temporaries.iter().for_each(|&bytes| writer.number(bytes as u64));
    writer.block(kernel.code.as_deref()?);
    Some(())
}

fn read_kernel(reader: &mut Reader, device: &Device) -> Result<Arc<Kernel>> {
    let (name, axes): (String, String) = (reader.text()?, reader.text()?);
    let mut numbers = [0usize; 10];
    for number in &mut numbers {
        *number = reader.number()? as usize;
    }
    let [scratch_bytes, params, buffers, dims, groups @ .., a, b, c] = numbers;
    let (trips, blocks) = (Dim::from(reader.number()? as i64), Dim::from(reader.number()? as i64));
    let (work, has_prologue) = (reader.number()?, reader.byte()? != 0);
    let mut optional = || -> Result<Option<u64>> {
        let is_there = reader.byte()? != 0;
        Ok(Some(reader.number()?).filter(|_| is_there))
    };
    let (nanoseconds, copied) = (optional()?, optional()?);
    let temporaries = (0..reader.count()?).map(|_| Ok(reader.number()? as usize)).collect::<Result<_>>()?;
    let code: Arc<[u8]> = reader.block()?.into();
    Ok(Arc::new(Kernel {
        program: device.runtime().load(&name, &code)?,
        grid: Grid { groups, threads: [a, b, c] },
        code: Some(code),
        name,
        axes,
        scratch_bytes,
        params,
        buffers,
        dims,
        trips,
        blocks,
        work,
        nanoseconds,
        has_prologue,
        temporaries,
        copied,
    }))
}
