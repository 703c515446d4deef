//! Tests of the simulator of AMD's GPUs: hand-written assembly, made to code objects by libLLVM and our linker.

mod answers;
mod bytes;
mod lanes;
mod memory;
mod objects;
mod planted;

use tinyspec_backends::Gpu;
use tinyspec_backends::llvm::{LlvmError, Machine, Output, hsa_linker};
use tinyspec_simulators::{FaultKind, Launch, SimulatorError, amd::Module};

/// One chip of each family.
const CHIPS: [&str; 3] = ["gfx942", "gfx1100", "gfx1201"];

/// Of the family of gfx9.
fn is_old(chip: &str) -> bool {
    chip.starts_with("gfx9")
}

/// Lanes of a wave.
fn wave(chip: &str) -> u32 {
    if is_old(chip) { 64 } else { 32 }
}

/// What a kernel is beside its instructions.
#[derive(Clone, Copy)]
struct Shape {
    params: usize,
    local_bytes: usize,
    /// Dimensions of threads and of workgroups.
    dimensions: usize,
    most_threads: usize,
}

const SHAPE: Shape = Shape { params: 2, local_bytes: 0, dimensions: 1, most_threads: 1024 };

/// The assembly of a kernel `k`. At its start `s[0:1]` has the address of the arguments, and `s2` the workgroup's number (on
/// gfx12 `ttmp9`).
fn assembly(chip: &str, shape: Shape, body: &str) -> String {
    let Shape { params, local_bytes, dimensions, most_threads } = shape;
    let wave = wave(chip);
    let family = if is_old(chip) { ".amdhsa_accum_offset 64" } else { ".amdhsa_wavefront_size32 1" };
    let arguments: String = (0..params)
        .map(|number| {
            format!(
                "      - {{.address_space: global, .offset: {}, .size: 8, .value_kind: global_buffer}}\n",
                8 * number
            )
        })
        .collect();
    let arguments = if params == 0 { "[]\n".into() } else { format!("\n{arguments}") };
    format!(
        ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\n{body}\n.Lend:\n.size k, .Lend-k\n\
         .rodata\n.p2align 6\n.amdhsa_kernel k\n\
         .amdhsa_group_segment_fixed_size {local_bytes}\n.amdhsa_kernarg_size {}\n\
         .amdhsa_user_sgpr_count 2\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
         .amdhsa_system_sgpr_workgroup_id_x 1\n.amdhsa_system_sgpr_workgroup_id_y {}\n.amdhsa_system_sgpr_workgroup_id_z {}\n\
         .amdhsa_system_vgpr_workitem_id {}\n.amdhsa_next_free_vgpr 64\n.amdhsa_next_free_sgpr 64\n\
         .amdhsa_float_denorm_mode_32 3\n.amdhsa_float_denorm_mode_16_64 3\n{family}\n.end_amdhsa_kernel\n\
         .amdgpu_metadata\n---\namdhsa.kernels:\n  - .args: {arguments}\
         \x20   .group_segment_fixed_size: {local_bytes}\n    .kernarg_segment_align: 8\n    .kernarg_segment_size: {}\n\
         \x20   .max_flat_workgroup_size: {most_threads}\n    .name: k\n    .private_segment_fixed_size: 0\n\
         \x20   .sgpr_count: 64\n    .symbol: k.kd\n    .vgpr_count: 64\n    .wavefront_size: {wave}\n\
         amdhsa.target: amdgcn-amd-amdhsa--{chip}\namdhsa.version:\n  - 1\n  - 2\n...\n.end_amdgpu_metadata\n",
        8 * params,
        u32::from(dimensions > 1),
        u32::from(dimensions > 2),
        dimensions - 1,
        8 * params,
    )
}

/// A code object of assembly.
fn object(chip: &str, text: &str) -> Vec<u8> {
    let target = Gpu::named(chip).expect("the table has it").target();
    let machine = Machine::new(target.isa.as_ref().expect("it has instructions")).expect("libLLVM is found");
    let object = machine.generate("k", Output::Object, |_, module| {
        module.set_inline_assembly(text);
        Ok::<(), LlvmError>(())
    });
    let object = object.unwrap_or_else(|error| panic!("{chip}: {error}\n{text}"));
    hsa_linker::link(&object).unwrap_or_else(|error| panic!("{chip}: {error}"))
}

/// A code object whose kernel does nothing.
pub fn empty_object(chip: &str) -> Vec<u8> {
    object(chip, &assembly(chip, SHAPE, "s_endpgm"))
}

/// Runs a body on buffers; their bytes afterwards.
fn try_run(
    chip: &str,
    shape: Shape,
    body: &str,
    launch: Launch,
    buffers: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, SimulatorError> {
    let shape = Shape { params: buffers.len(), ..shape };
    let module = Module::read(&object(chip, &assembly(chip, shape, body)))?;
    let kernel = module.kernel("k")?;
    crate::on_buffers(buffers, |simulation, ids| simulation.run(&kernel, &launch, ids).map(drop))
}

/// The fault that a body runs into.
fn fault(chip: &str, shape: Shape, body: &str, launch: Launch, buffers: &[Vec<u8>]) -> (FaultKind, String) {
    match try_run(chip, shape, body, launch, buffers) {
        Err(SimulatorError::Fault(fault)) => (fault.kind, fault.to_string()),
        Err(error) => panic!("{chip}: {error}"),
        Ok(_) => panic!("{chip}: nothing was found"),
    }
}

/// Waits for everything that is loaded.
fn wait(chip: &str) -> &'static str {
    match chip {
        "gfx1201" => "s_wait_loadcnt 0x0\ns_wait_kmcnt 0x0\ns_wait_dscnt 0x0\n",
        _ => "s_waitcnt vmcnt(0) lgkmcnt(0)\n",
    }
}

/// `s[4:5]`, `s[6:7]`, … are the addresses of the buffers, `v1` is four times the thread's number and `s30` the workgroup's.
fn prologue(chip: &str, buffers: usize) -> String {
    let load = if is_old(chip) { "s_load_dwordx2" } else { "s_load_b64" };
    let mut text = String::new();
    for number in 0..buffers {
        let to = 4 + 2 * number;
        text += &format!("{load} s[{to}:{}], s[0:1], {:#x}\n", to + 1, 8 * number);
    }
    let group = if chip == "gfx1201" { "ttmp9" } else { "s2" };
    text + wait(chip) + &format!("s_mov_b32 s30, {group}\nv_lshlrev_b32_e32 v1, 2, v0\n")
}

/// The name of an access on a chip: `load_dword` of gfx9 is `load_b32` later.
fn renamed(chip: &str, text: &str) -> String {
    let text = text.replace("s_wait\n", wait(chip));
    if is_old(chip) {
        return text;
    }
    let names = [
        ("_load_dwordx4", "_load_b128"),
        ("_load_dwordx3", "_load_b96"),
        ("_load_dwordx2", "_load_b64"),
        ("_load_dword", "_load_b32"),
        ("_load_ubyte", "_load_u8"),
        ("_load_sbyte", "_load_i8"),
        ("_load_ushort", "_load_u16"),
        ("_load_sshort", "_load_i16"),
        ("_store_dwordx4", "_store_b128"),
        ("_store_dwordx3", "_store_b96"),
        ("_store_dwordx2", "_store_b64"),
        ("_store_dword", "_store_b32"),
        ("_store_byte", "_store_b8"),
        ("_store_short", "_store_b16"),
        ("ds_read2st64_b32", "ds_load_2addr_stride64_b32"),
        ("ds_read2_b32", "ds_load_2addr_b32"),
        ("ds_read_", "ds_load_"),
        ("ds_write2_b32", "ds_store_2addr_b32"),
        ("ds_write_", "ds_store_"),
    ];
    let mut text = text;
    for (old, new) in names {
        text = text.replace(old, new);
    }
    if chip == "gfx1201" {
        text = text.replace("s_barrier\n", "s_barrier_signal -1\ns_barrier_wait -1\n");
    }
    text
}
