//! Tests of the simulators.

mod amd;
mod answers;
mod barriers;
mod faults;
mod launches;
mod memory;
mod parts;
mod planted;
mod text;
mod warps;

use tinyspec_simulators::{BufferId, FaultKind, Launch, Simulation, SimulatorError, ptx::Module};

/// The text of a module with one kernel `k` of buffers `p0`, `p1`, …: its registers are declared.
fn module(params: usize, directives: &str, body: &str) -> String {
    let params: Vec<String> = (0..params).map(|number| format!(".param .u64 p{number}")).collect();
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k({}) {directives} {{\n\
         .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<40>;\n{body}\n}}\n",
        params.join(", ")
    )
}

/// Runs a body on buffers; their bytes afterwards.
fn try_run(body: &str, directives: &str, launch: Launch, buffers: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, SimulatorError> {
    let module = Module::parse(&module(buffers.len(), directives, body))?;
    let kernel = module.kernel("k")?;
    on_buffers(buffers, |simulation, ids| simulation.run(&kernel, &launch, ids).map(drop))
}

/// What a run leaves in buffers of these bytes.
fn on_buffers(
    buffers: &[Vec<u8>],
    run: impl FnOnce(&mut Simulation, &[BufferId]) -> Result<(), SimulatorError>,
) -> Result<Vec<Vec<u8>>, SimulatorError> {
    let mut simulation = Simulation::new();
    let ids = buffers.iter().map(|bytes| simulation.buffer(bytes)).collect::<Result<Vec<BufferId>, _>>()?;
    run(&mut simulation, &ids)?;
    ids.into_iter().map(|id| simulation.bytes(id)).collect()
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn as_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|chunk| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]])).collect()
}

/// The fault that a body runs into.
fn fault(body: &str, launch: Launch, buffers: &[Vec<u8>]) -> (FaultKind, String) {
    match try_run(body, "", launch, buffers) {
        Err(SimulatorError::Fault(fault)) => (fault.kind, fault.to_string()),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("nothing was found"),
    }
}

/// `%r0` is the thread's number; `%d10`, `%d11`, … are the buffers' addresses, `%d20`, `%d21`, … those of its own words.
fn prologue(buffers: usize) -> String {
    let mut text = String::from("mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 4;\n");
    for number in 0..buffers {
        let (buffer, own) = (10 + number, 20 + number);
        text += &format!("ld.param.u64 %d{buffer}, [p{number}]; add.s64 %d{own}, %d{buffer}, %d0;\n");
    }
    text
}
