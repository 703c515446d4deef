//! Linear kernels written by hand, and running them through the traits.

use std::sync::Arc;
use tinyspec_backends::{BackendError, Compiler, Grid, Launch, LinearKernel, Memory, Runtime, Target};
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Const, DType, Graph, NodeId, Op};

/// A kernel under construction: what is added is also put in order.
#[derive(Default)]
pub struct Kernel {
    pub graph: Graph,
    pub order: Vec<NodeId>,
    pub params: usize,
    pub local_offsets: Vec<(u32, usize)>,
    pub scratch_bytes: usize,
    pub shared_trips: usize,
}

/// A Load into a register.
pub const REG: Arg = Arg::Load { device: None, addrspace: AddrSpace::Reg };

impl Kernel {
    pub fn shape(&mut self, dims: &[i64]) -> NodeId {
        let dims: Vec<_> = dims.iter().map(|&dim| self.graph.index(dim)).collect();
        self.graph.add(Op::Stack, &dims, Arg::None).unwrap()
    }

    pub fn param(&mut self, dtype: DType, length: i64) -> NodeId {
        let shape = self.shape(&[length]);
        let slot = self.params as u32;
        self.params += 1;
        self.add(Op::Param, &[shape], Arg::Param { slot, dtype, device: None, addrspace: Some(AddrSpace::Global) })
    }

    pub fn buffer(&mut self, addrspace: AddrSpace, dtype: DType, dims: &[i64], slot: u32) -> NodeId {
        let shape = self.shape(dims);
        self.add(Op::Buffer, &[shape], Arg::Buffer { slot, dtype, device: None, addrspace })
    }

    pub fn add(&mut self, op: Op, sources: &[NodeId], arg: Arg) -> NodeId {
        let node = self.graph.add(op, sources, arg).unwrap_or_else(|error| panic!("{error}"));
        if !self.order.contains(&node) {
            self.order.push(node);
        }
        node
    }

    pub fn alu(&mut self, op: Op, sources: &[NodeId]) -> NodeId {
        self.add(op, sources, Arg::None)
    }

    pub fn float(&mut self, value: f64) -> NodeId {
        self.graph.constant(Const::float(DType::F32, value))
    }

    pub fn int(&mut self, value: i64) -> NodeId {
        self.graph.constant(Const::int(DType::I32, value as i128))
    }

    /// A Range, and its value as i32.
    pub fn range(&mut self, bound: i64, id: u32, axis: AxisType) -> (NodeId, NodeId) {
        let bound = self.graph.index(bound);
        let range = self.add(Op::Range, &[bound], Arg::Range { id, axis });
        let value = self.add(Op::Cast, &[range], Arg::DType(DType::I32));
        (range, value)
    }

    /// An index of a workgroup or thread, as i32.
    pub fn special(&mut self, bound: i64, name: &str) -> NodeId {
        let bound = self.graph.index(bound);
        let special = self.add(Op::Special, &[bound], Arg::Text(name.into()));
        self.add(Op::Cast, &[special], Arg::DType(DType::I32))
    }

    /// `lanes` elements of `buffer` from `offset` (an i32) on.
    pub fn run(&mut self, buffer: NodeId, offset: NodeId, lanes: i64) -> NodeId {
        let offset = self.graph.add(Op::Stack, &[offset], Arg::None).unwrap();
        let shape = self.shape(&[lanes]);
        self.alu(Op::Shrink, &[buffer, offset, shape])
    }

    pub fn finish(mut self) -> LinearKernel {
        let sink = self.graph.add(Op::Sink, &[], Arg::None).unwrap();
        self.order.push(sink);
        let linear = self.graph.add(Op::Linear, &self.order, Arg::None).unwrap();
        let grid = Grid::of(&self.graph, linear);
        LinearKernel {
            hand_written: None,
            graph: self.graph,
            linear,
            name: "kernel_under_test".into(),
            params: self.params,
            local_offsets: self.local_offsets,
            scratch_bytes: self.scratch_bytes,
            shared_trips: self.shared_trips.max(1),
            grid,
        }
    }
}

pub fn float_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Compiles, loads, runs; the buffers afterwards.
pub fn launch(
    runtime: &dyn Runtime,
    compiler: &dyn Compiler,
    target: &Target,
    kernel: &LinearKernel,
    buffers: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, BackendError> {
    let code = compiler.compile(kernel, target)?;
    let program = runtime.load(&kernel.name, &code)?;
    let mut memories: Vec<Arc<dyn Memory>> = Vec::new();
    for data in buffers {
        let memory = runtime.allocate(data.len())?;
        runtime.write(memory.as_ref(), data)?;
        memories.push(memory);
    }
    let addresses: Vec<*mut u8> = memories.iter().map(|memory| memory.address()).collect();
    let launch = Launch {
        program,
        buffers: (0..buffers.len() as u32).collect(),
        dims: Vec::new(),
        trips: 0..kernel.shared_trips,
        grid: kernel.grid,
        scratch_bytes: kernel.scratch_bytes,
        nanoseconds: 0,
        has_prologue: false,
        line: Default::default(),
    };
    // SAFETY: the memories are as long as the Params say, and live until the end.
    unsafe { runtime.enqueue(&vec![launch].into(), &addresses)? }
    runtime.synchronize()?;
    let mut results = Vec::new();
    for memory in &memories {
        let mut data = vec![0; memory.len()];
        runtime.read(memory.as_ref(), &mut data)?;
        results.push(data);
    }
    Ok(results)
}
