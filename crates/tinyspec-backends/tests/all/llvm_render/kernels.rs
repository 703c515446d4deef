//! Whole kernels: tiles, masks, gates, scratch, threads.

use super::{elementwise, floats, interpret, run, run_object, run_part, value_of};
use crate::kernel::{Kernel, REG, float_bytes};
use tinyspec_backends::llvm::LlvmCompiler;
use tinyspec_backends::{BackendError, Compiler, LinearKernel, Target};
use tinyspec_ir::DType::{self, *};
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Const, NodeId, Op};

/// `out[m, n] = Σ a[m, k] b[k, n]` with a tile of `rows` by one vector, k in a REG loop.
fn matmul(rows: i64, lanes: i64, size: i64) -> LinearKernel {
    product(rows, lanes, size, size, false)
}

/// As [`matmul`], with `inner` terms; where they are `numbered`, `Σ (a[m, k] + k) b[k, n]`.
fn product(rows: i64, lanes: i64, size: i64, inner: i64, numbered: bool) -> LinearKernel {
    let mut kernel = Kernel { shared_trips: (size / rows) as usize, ..Kernel::default() };
    let (out, a, b) =
        (kernel.param(F32, size * size), kernel.param(F32, size * inner), kernel.param(F32, inner * size));
    let (size_node, rows_node, lanes_node) = (kernel.int(size), kernel.int(rows), kernel.int(lanes));
    let inner_node = kernel.int(inner);
    let (m_range, m) = kernel.range(size / rows, 0, AxisType::Thread);
    let first_row = kernel.alu(Op::Mul, &[m, rows_node]);
    let (n_range, n) = kernel.range(size / lanes, 1, AxisType::Loop);
    let column = kernel.alu(Op::Mul, &[n, lanes_node]);
    let zero = kernel.float(0.0);
    let shape = kernel.shape(&[lanes]);
    let zeros = kernel.alu(Op::Expand, &[zero, shape]);
    let mut accumulators = Vec::new();
    for row in 0..rows {
        let buffer = kernel.buffer(AddrSpace::Reg, F32, &[lanes], row as u32);
        let init = kernel.alu(Op::Store, &[buffer, zeros]);
        accumulators.push((buffer, init));
    }
    let (k_range, k) = kernel.range(inner, 2, AxisType::Reduce);
    let b_row = kernel.alu(Op::Mul, &[k, size_node]);
    let b_offset = kernel.alu(Op::Add, &[b_row, column]);
    let b_place = kernel.run(b, b_offset, lanes);
    let b_vector = kernel.add(Op::Load, &[b_place], REG);
    let mut updates = Vec::new();
    let mut row_offsets = Vec::new();
    for (row, (buffer, init)) in (0..).zip(&accumulators) {
        let row = kernel.int(row);
        let row = kernel.alu(Op::Add, &[first_row, row]);
        let (out_row, a_row) = (kernel.alu(Op::Mul, &[row, size_node]), kernel.alu(Op::Mul, &[row, inner_node]));
        row_offsets.push(out_row);
        let a_offset = kernel.alu(Op::Add, &[a_row, k]);
        let a_place = kernel.alu(Op::Index, &[a, a_offset]);
        let mut a_scalar = kernel.add(Op::Load, &[a_place], REG);
        if numbered {
            let number = kernel.add(Op::Cast, &[k], Arg::DType(F32));
            a_scalar = kernel.alu(Op::Add, &[a_scalar, number]);
        }
        let a_vector = kernel.alu(Op::Expand, &[a_scalar, shape]);
        let inside = kernel.alu(Op::After, &[*buffer, *init, k_range]);
        let old = kernel.add(Op::Load, &[inside], REG);
        let new = kernel.alu(Op::Mulacc, &[a_vector, b_vector, old]);
        updates.push(kernel.alu(Op::Store, &[inside, new]));
    }
    let group = kernel.alu(Op::Group, &updates);
    let end = kernel.alu(Op::End, &[group, k_range]);
    let mut stores = Vec::new();
    for ((buffer, _), row) in accumulators.iter().zip(row_offsets) {
        let after = kernel.alu(Op::After, &[*buffer, end]);
        let sum = kernel.add(Op::Load, &[after], REG);
        let offset = kernel.alu(Op::Add, &[row, column]);
        let place = kernel.run(out, offset, lanes);
        stores.push(kernel.alu(Op::Store, &[place, sum]));
    }
    let group = kernel.alu(Op::Group, &stores);
    let end = kernel.alu(Op::End, &[group, n_range]);
    kernel.alu(Op::End, &[end, m_range]);
    kernel.finish()
}

#[test]
fn a_tile_of_accumulators_stays_in_registers() {
    let (size, lanes) = (48, Target::native().vector_bytes as i64 / 4);
    let kernel = matmul(6, lanes, size);
    let numbers: Vec<f32> = (0..size * size).map(|i| (i % 7) as f32 - 3.0).collect();
    let buffers = [vec![0; (size * size * 4) as usize], float_bytes(&numbers), float_bytes(&numbers)];
    assert_eq!(run(&kernel, &buffers)[0], interpret(&kernel, &buffers)[0]);
    // No accumulator goes to memory: no vector is read from or written to the stack.
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let target = Target::native();
    let source = compiler.source(&kernel, &target).expect("a source");
    assert!(source.contains("phi"), "{source}");
    if cfg!(target_arch = "x86_64") {
        let spilled = |line: &&str| line.contains("(%rsp)") && (line.contains("zmm") || line.contains("ymm"));
        let assembly = compiler.assembly(&kernel, &target).expect("instructions");
        assert_eq!(assembly.lines().find(spilled), None, "{assembly}");
    }
}

/// Loops of many trips are unrolled, as often as their number allows.
#[test]
fn long_sums_of_products_have_any_number_of_terms() {
    let (rows, lanes, size) = (6, 8, 48);
    for inner in [344, 345, 346, 347, 355] {
        for numbered in [false, true] {
            let kernel = product(rows, lanes, size, inner, numbered);
            let numbers: Vec<f32> = (0..size * inner).map(|i| (i % 7) as f32 - 3.0).collect();
            let buffers = [vec![0; (size * size * 4) as usize], float_bytes(&numbers), float_bytes(&numbers)];
            assert_eq!(run(&kernel, &buffers)[0], interpret(&kernel, &buffers)[0], "{inner} terms, {numbered}");
        }
    }
}

#[test]
fn a_part_of_the_global_range_touches_only_its_part() {
    let size = 48;
    let kernel = matmul(6, 8, size);
    let ones = float_bytes(&vec![1.0; (size * size) as usize]);
    let buffers = [vec![0; (size * size * 4) as usize], ones.clone(), ones];
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let target = Target::native();
    let out = floats(&run_part(&compiler, &target, &kernel, &buffers, (2, 4))[0]);
    let rows = |from: usize, to: usize| &out[from * size as usize..to * size as usize];
    assert!(rows(0, 12).iter().all(|x| *x == 0.0) && rows(24, 48).iter().all(|x| *x == 0.0));
    assert!(rows(12, 24).iter().all(|x| *x == size as f32), "{:?}", rows(12, 24));
    assert!(floats(&run_part(&compiler, &target, &kernel, &buffers, (3, 3))[0]).iter().all(|x| *x == 0.0));
}

/// Sums `count` numbers in vectors, the last one masked, then across lanes.
fn masked_sum(op: Op, count: i64, lanes: i64) -> LinearKernel {
    let mut kernel = Kernel::default();
    let (out, x) = (kernel.param(F32, 1), kernel.param(F32, count));
    let padded = (count + lanes - 1) / lanes * lanes;
    let identity = kernel.float(if op == Op::Max { f64::NEG_INFINITY } else { 0.0 });
    let shape = kernel.shape(&[lanes]);
    let identities = kernel.alu(Op::Expand, &[identity, shape]);
    let buffer = kernel.buffer(AddrSpace::Reg, F32, &[lanes], 0);
    let init = kernel.alu(Op::Store, &[buffer, identities]);
    let (range, i) = kernel.range(padded / lanes, 0, AxisType::Reduce);
    let lanes_node = kernel.int(lanes);
    let offset = kernel.alu(Op::Mul, &[i, lanes_node]);
    let start = kernel.alu(Op::Expand, &[offset, shape]);
    let steps: Vec<NodeId> = (0..lanes).map(|lane| kernel.int(lane)).collect();
    let steps = kernel.alu(Op::Stack, &steps);
    let positions = kernel.alu(Op::Add, &[start, steps]);
    let count_node = kernel.int(count);
    let counts = kernel.alu(Op::Expand, &[count_node, shape]);
    let gate = kernel.alu(Op::CmpLt, &[positions, counts]);
    let place = kernel.alu(Op::Index, &[x, positions]);
    let value = kernel.add(Op::Load, &[place, identities, gate], REG);
    let inside = kernel.alu(Op::After, &[buffer, init, range]);
    let old = kernel.add(Op::Load, &[inside], REG);
    let new = kernel.alu(op, &[old, value]);
    let update = kernel.alu(Op::Store, &[inside, new]);
    let end = kernel.alu(Op::End, &[update, range]);
    let after = kernel.alu(Op::After, &[buffer, end]);
    let lanes_sum = kernel.add(Op::Load, &[after], REG);
    let total = kernel.add(Op::Reduce, &[lanes_sum], Arg::Reduce { op, axes: [0].into_iter().collect() });
    let zero = kernel.int(0);
    let total = kernel.alu(Op::Index, &[total, zero]);
    let place = kernel.alu(Op::Index, &[out, zero]);
    kernel.alu(Op::Store, &[place, total]);
    kernel.finish()
}

#[test]
fn masked_lanes_read_nothing_and_lanes_reduce() {
    for op in [Op::Add, Op::Max] {
        for (count, lanes) in [(37, 16), (37, 8), (5, 4), (64, 16), (6, 3)] {
            let kernel = masked_sum(op, count, lanes);
            let x: Vec<f32> = (0..count).map(|i| ((i * 5) % 11) as f32).collect();
            let expected = x.iter().fold(0.0, |a: f32, b| if op == Op::Max { a.max(*b) } else { a + b });
            let buffers = [vec![0; 4], float_bytes(&x)];
            assert_eq!(floats(&run(&kernel, &buffers)[0]), [expected], "{op} of {count} in {lanes} lanes");
        }
    }
}

#[test]
fn gates_of_stores_and_scalars() {
    // out[i] = x[i + 3] if that is inside, else -1; written only for odd i.
    let mut kernel = Kernel::default();
    let (out, x) = (kernel.param(F32, 8), kernel.param(F32, 8));
    let (range, i) = kernel.range(8, 0, AxisType::Loop);
    let (three, eight, one, two) = (kernel.int(3), kernel.int(8), kernel.int(1), kernel.int(2));
    let shifted = kernel.alu(Op::Add, &[i, three]);
    let inside = kernel.alu(Op::CmpLt, &[shifted, eight]);
    let minus = kernel.float(-1.0);
    let from = kernel.alu(Op::Index, &[x, shifted]);
    let value = kernel.add(Op::Load, &[from, minus, inside], REG);
    let parity = kernel.alu(Op::Mod, &[i, two]);
    let odd = kernel.alu(Op::CmpLt, &[parity, one]);
    let yes = kernel.graph.constant(Const::int(Bool, 1));
    let odd = kernel.alu(Op::Xor, &[odd, yes]);
    let to = kernel.alu(Op::Index, &[out, i]);
    let store = kernel.alu(Op::Store, &[to, value, odd]);
    kernel.alu(Op::End, &[store, range]);
    let kernel = kernel.finish();
    let x: Vec<f32> = (0..8).map(|i| i as f32).collect();
    let buffers = [float_bytes(&[9.0; 8]), float_bytes(&x)];
    assert_eq!(floats(&run(&kernel, &buffers)[0]), [9.0, 4.0, 9.0, 6.0, 9.0, -1.0, 9.0, -1.0]);
}

/// `out[row] = x[row]` in rows of 32 where the row is even, else 1; only the first three rows are written.
#[test]
fn a_scalar_gate_is_every_lanes() {
    let (rows, lanes) = (5, 32);
    let mut kernel = Kernel::default();
    let (out, x) = (kernel.param(F32, rows * lanes), kernel.param(F32, rows * lanes));
    let (range, row) = kernel.range(rows, 0, AxisType::Loop);
    let (one, two, width) = (kernel.int(1), kernel.int(2), kernel.int(lanes));
    let parity = kernel.alu(Op::Mod, &[row, two]);
    let is_even = kernel.alu(Op::CmpLt, &[parity, one]);
    let offset = kernel.alu(Op::Mul, &[row, width]);
    let shape = kernel.shape(&[lanes]);
    let alternative = kernel.float(1.0);
    let alternative = kernel.alu(Op::Expand, &[alternative, shape]);
    let from = kernel.run(x, offset, lanes);
    let value = kernel.add(Op::Load, &[from, alternative, is_even], REG);
    let three = kernel.int(3);
    let is_first = kernel.alu(Op::CmpLt, &[row, three]);
    let to = kernel.run(out, offset, lanes);
    let store = kernel.alu(Op::Store, &[to, value, is_first]);
    kernel.alu(Op::End, &[store, range]);
    let kernel = kernel.finish();
    let x: Vec<f32> = (0..rows * lanes).map(|i| i as f32).collect();
    let result = floats(&run(&kernel, &[float_bytes(&vec![9.0; x.len()]), float_bytes(&x)])[0]);
    for (index, &value) in result.iter().enumerate() {
        let want = match index / lanes as usize {
            0 | 2 => index as f32,
            1 => 1.0,
            _ => 9.0,
        };
        assert_eq!(value, want, "element {index}");
    }
}

/// `out[row] = [x[1], x[1]]`: the broadcast is hoisted out of the loop, and extracts its lane there on demand.
#[test]
fn a_lane_is_taken_out_before_the_loop() {
    let rows = 3;
    let mut kernel = Kernel::default();
    let (out, x) = (kernel.param(F32, 2 * rows), kernel.param(F32, 2));
    let (zero, one, two) = (kernel.int(0), kernel.int(1), kernel.int(2));
    let from = kernel.run(x, zero, 2);
    let pair = kernel.add(Op::Load, &[from], REG);
    let (range, row) = kernel.range(rows, 0, AxisType::Loop);
    let lane = kernel.alu(Op::Index, &[pair, one]);
    let value = kernel.alu(Op::Stack, &[lane, lane]);
    let offset = kernel.alu(Op::Mul, &[row, two]);
    let to = kernel.run(out, offset, 2);
    let store = kernel.alu(Op::Store, &[to, value]);
    kernel.alu(Op::End, &[store, range]);
    let result = floats(&run(&kernel.finish(), &[float_bytes(&[9.0; 6]), float_bytes(&[1.0, 2.0])])[0]);
    assert_eq!(result, [2.0; 6]);
}

/// `if x[0] < 2 { out[0] = x[1] }` and `if x[0] < 9 { out[1] = x[1] }`: a lane that one condition takes out is not there for the other.
#[test]
fn a_lane_is_taken_out_under_each_condition() {
    let mut kernel = Kernel::default();
    let (out, x) = (kernel.param(F32, 2), kernel.param(F32, 2));
    let (zero, one) = (kernel.int(0), kernel.int(1));
    let from = kernel.run(x, zero, 2);
    let pair = kernel.add(Op::Load, &[from], REG);
    let first = kernel.alu(Op::Index, &[pair, zero]);
    for (place, bound) in [(zero, 2.0), (one, 9.0)] {
        let bound = kernel.float(bound);
        let holds = kernel.alu(Op::CmpLt, &[first, bound]);
        let condition = kernel.alu(Op::If, &[holds]);
        let lane = kernel.alu(Op::Index, &[pair, one]);
        let to = kernel.alu(Op::Index, &[out, place]);
        kernel.alu(Op::Store, &[to, lane]);
        kernel.alu(Op::Endif, &[condition]);
    }
    let kernel = kernel.finish();
    for (first, expected) in [(1.0, [5.0, 5.0]), (4.0, [7.0, 5.0]), (10.0, [7.0, 7.0])] {
        let result = floats(&run(&kernel, &[float_bytes(&[7.0; 2]), float_bytes(&[first, 5.0])])[0]);
        assert_eq!(result, expected);
    }
}

#[test]
fn a_vector_store_leaves_masked_lanes_alone_and_scatters() {
    for scattered in [false, true] {
        let mut kernel = Kernel::default();
        let (out, x) = (kernel.param(F32, 8), kernel.param(F32, 8));
        let zero = kernel.int(0);
        let from = kernel.run(x, zero, 8);
        let value = kernel.add(Op::Load, &[from], REG);
        let shape = kernel.shape(&[8]);
        let two = kernel.float(2.0);
        let twos = kernel.alu(Op::Expand, &[two, shape]);
        let gate = kernel.alu(Op::CmpLt, &[twos, value]);
        let order: Vec<NodeId> = (0..8).map(|lane| kernel.int(7 - lane)).collect();
        let order = kernel.alu(Op::Stack, &order);
        let to = if scattered { kernel.alu(Op::Index, &[out, order]) } else { kernel.run(out, zero, 8) };
        kernel.alu(Op::Store, &[to, value, gate]);
        let kernel = kernel.finish();
        let x: Vec<f32> = (0..8).map(|i| i as f32).collect();
        let result = floats(&run(&kernel, &[float_bytes(&[9.0; 8]), float_bytes(&x)])[0]);
        let expected =
            if scattered { [7.0, 6.0, 5.0, 4.0, 3.0, 9.0, 9.0, 9.0] } else { [9.0, 9.0, 9.0, 3.0, 4.0, 5.0, 6.0, 7.0] };
        assert_eq!(result, expected);
    }
}

/// Reads `x` under a mask, 5 elsewhere, and writes that whole to one buffer, and under the mask to another.
fn masked_copy(dtype: DType, lanes: i64, gathers: bool) -> LinearKernel {
    let mut kernel = Kernel::default();
    let [whole, some, x, mask] = [dtype, dtype, dtype, F32].map(|dtype| kernel.param(dtype, lanes));
    let (zero, shape) = (kernel.int(0), kernel.shape(&[lanes]));
    let from = kernel.run(mask, zero, lanes);
    let mask = kernel.add(Op::Load, &[from], REG);
    let nothing = kernel.float(0.0);
    let nothing = kernel.alu(Op::Expand, &[nothing, shape]);
    let gate = kernel.alu(Op::CmpLt, &[nothing, mask]);
    let order: Vec<NodeId> = (0..lanes).map(|lane| kernel.int(lanes - 1 - lane)).collect();
    let order = kernel.alu(Op::Stack, &order);
    let place = |kernel: &mut Kernel, buffer: NodeId| match gathers {
        true => kernel.alu(Op::Index, &[buffer, order]),
        false => kernel.run(buffer, zero, lanes),
    };
    let five = kernel.graph.constant(if dtype.is_float() { Const::float(dtype, 5.0) } else { Const::int(dtype, 5) });
    let fives = kernel.alu(Op::Expand, &[five, shape]);
    let from = place(&mut kernel, x);
    let value = kernel.add(Op::Load, &[from, fives, gate], REG);
    let to = kernel.run(whole, zero, lanes);
    kernel.alu(Op::Store, &[to, value]);
    let to = place(&mut kernel, some);
    kernel.alu(Op::Store, &[to, value, gate]);
    kernel.finish()
}

#[test]
fn masks_of_every_width_open_their_lanes_alone() {
    for (dtype, lanes) in [U8, U16, F32, F64].into_iter().flat_map(|dtype| [2, 4, 8, 16, 32].map(|it| (dtype, it))) {
        for gathers in [false, true] {
            let kernel = masked_copy(dtype, lanes, gathers);
            for open in [|_: i64| false, |_| true, |lane| lane % 3 == 1, |lane| lane == 1] {
                let size = lanes as usize * dtype.size();
                let numbers = (0..size).map(|byte| (byte * 37 % 101) as u8).collect();
                let mask = float_bytes(&(0..lanes).map(|lane| f32::from(u8::from(open(lane)))).collect::<Vec<_>>());
                let buffers = [vec![9; size], vec![9; size], numbers, mask];
                let case = format!("{dtype} in {lanes} lanes, gathered: {gathers}");
                assert_eq!(run(&kernel, &buffers), interpret(&kernel, &buffers), "{case}");
            }
        }
    }
}

#[test]
fn scratch_conditions_and_loops_that_do_not_run() {
    // LOCAL scratch holds x reversed; a register is changed only under a condition, and in a loop without trips.
    let mut kernel = Kernel { local_offsets: vec![(9, 64)], scratch_bytes: 128, ..Kernel::default() };
    let (out, x) = (kernel.param(F32, 4), kernel.param(F32, 4));
    let scratch = kernel.buffer(AddrSpace::Local, F32, &[4], 9);
    let (copy, i) = kernel.range(4, 0, AxisType::Loop);
    let (three, minus) = (kernel.int(3), kernel.int(-1));
    let negated = kernel.alu(Op::Mul, &[i, minus]);
    let back = kernel.alu(Op::Add, &[negated, three]);
    let from = kernel.alu(Op::Index, &[x, i]);
    let value = kernel.add(Op::Load, &[from], REG);
    let to = kernel.alu(Op::Index, &[scratch, back]);
    let store = kernel.alu(Op::Store, &[to, value]);
    let copied = kernel.alu(Op::End, &[store, copy]);
    let register = kernel.buffer(AddrSpace::Reg, F32, &[], 1);
    let hundred = kernel.float(100.0);
    let init = kernel.alu(Op::Store, &[register, hundred]);
    let (range, i) = kernel.range(4, 1, AxisType::Loop);
    let inside = kernel.alu(Op::After, &[register, init, range]);
    let full = kernel.alu(Op::After, &[scratch, copied]);
    let from = kernel.alu(Op::Index, &[full, i]);
    let value = kernel.add(Op::Load, &[from], REG);
    let two = kernel.float(2.0);
    let small = kernel.alu(Op::CmpLt, &[value, two]);
    let condition = kernel.alu(Op::If, &[small]);
    let old = kernel.add(Op::Load, &[inside], REG);
    let sum = kernel.alu(Op::Add, &[old, value]);
    kernel.alu(Op::Store, &[inside, sum]);
    let closed = kernel.alu(Op::Endif, &[condition]);
    let (never, _) = kernel.range(0, 2, AxisType::Loop);
    let lost = kernel.alu(Op::Store, &[inside, two]);
    let never = kernel.alu(Op::End, &[lost, never]);
    let settled = kernel.alu(Op::After, &[register, closed, never]);
    let again = kernel.add(Op::Load, &[settled], REG);
    let result = kernel.alu(Op::Add, &[again, value]);
    let to = kernel.alu(Op::Index, &[out, i]);
    let store = kernel.alu(Op::Store, &[to, result]);
    kernel.alu(Op::End, &[store, range]);
    let kernel = kernel.finish();
    let result = floats(&run(&kernel, &[vec![0; 16], float_bytes(&[0.5, 4.0, 1.0, 8.0])])[0]);
    assert_eq!(result, [108.0, 102.0, 105.0, 102.0]);
}

#[test]
fn atomic_additions_count_every_lane() {
    for dtype in [F32, F64, I32, I64] {
        let mut kernel = Kernel::default();
        let (out, places) = (kernel.param(dtype, 3), kernel.param(I32, 8));
        let zero = kernel.int(0);
        let from = kernel.run(places, zero, 8);
        let places = kernel.add(Op::Load, &[from], REG);
        let shape = kernel.shape(&[8]);
        let (three, two) = (kernel.int(3), kernel.graph.constant(Const::int(dtype, 2)));
        let threes = kernel.alu(Op::Expand, &[three, shape]);
        let gate = kernel.alu(Op::CmpLt, &[places, threes]);
        let to = kernel.alu(Op::Index, &[out, places]);
        let twos = kernel.alu(Op::Expand, &[two, shape]);
        kernel.alu(Op::AtomicAdd, &[to, twos, gate]);
        let indices = [0i32, 2, 2, 1000, 2, 0, 3, 2].iter().flat_map(|index| index.to_le_bytes()).collect();
        let result = run(&kernel.finish(), &[vec![0; 3 * dtype.size()], indices]);
        let found: Vec<Const> = result[0].chunks(dtype.size()).map(|data| value_of(dtype, data)).collect();
        assert_eq!(found, [4, 0, 8].map(|count| Const::int(dtype, count)));
    }
}

#[test]
fn nontemporal_stores_write_the_same() {
    let lanes = Target::native().vector_bytes as i64 / 4;
    let mut kernel = Kernel::default();
    let out = kernel.param(F32, 64);
    let (range, i) = kernel.range(64 / lanes, 0, AxisType::Loop);
    let lanes_node = kernel.int(lanes);
    let offset = kernel.alu(Op::Mul, &[i, lanes_node]);
    let value = kernel.add(Op::Cast, &[i], Arg::DType(F32));
    let shape = kernel.shape(&[lanes]);
    let value = kernel.alu(Op::Expand, &[value, shape]);
    let place = kernel.run(out, offset, lanes);
    let store = kernel.add(Op::Store, &[place, value], Arg::Nontemporal);
    kernel.alu(Op::End, &[store, range]);
    let kernel = kernel.finish();
    let result = floats(&run(&kernel, &[vec![0; 256]])[0]);
    assert!(result.iter().enumerate().all(|(i, x)| *x == (i as i64 / lanes) as f32), "{result:?}");
    if cfg!(target_arch = "x86_64") {
        let assembly = LlvmCompiler::new().expect("libLLVM").assembly(&kernel, &Target::native()).expect("text");
        assert!(assembly.contains("movnt") && assembly.contains("sfence"), "{assembly}");
    }
}

#[test]
fn what_cannot_be_rendered_is_a_typed_error() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let target = Target::native();
    let undecomposed = elementwise(Op::Exp2, &[F32], F32, 1, 4);
    let error = compiler.compile(&undecomposed, &target).expect_err("no exp2 in hardware");
    assert!(matches!(&error, BackendError::Unsupported { op, .. } if op == "exp2: f32"), "{error}");
    // A loop that never closes, and a parameter that the kernel does not have.
    let mut kernel = Kernel::default();
    kernel.range(4, 0, AxisType::Loop);
    assert!(matches!(compiler.compile(&kernel.finish(), &target), Err(BackendError::Unsupported { .. })));
    let mut kernel = Kernel::default();
    kernel.param(F32, 4);
    kernel.params = 0;
    assert!(matches!(compiler.compile(&kernel.finish(), &target), Err(BackendError::Unsupported { .. })));
}

#[test]
fn threads_compile_at_the_same_time() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let target = Target::native();
    let expected = compiler.compile(&matmul(4, 8, 16), &target).expect("an object");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..4 {
                    assert_eq!(compiler.compile(&matmul(4, 8, 16), &target).expect("an object"), expected);
                }
            });
        }
    });
}

#[test]
fn kernels_that_share_a_module_are_those_that_have_their_own() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let target = Target::native();
    // Constants of their own, a function of the runtime's, and two of one name.
    let kernels = [
        masked_sum(Op::Max, 37, 16),
        elementwise(Op::Mod, &[F32, F32], F32, 4, 8),
        masked_sum(Op::Add, 37, 8),
        elementwise(Op::Mod, &[F64, F64], F64, 4, 8),
    ];
    let codes = compiler.compile_all(&kernels.each_ref(), &target);
    assert_eq!(codes.len(), kernels.len());
    for (number, (kernel, code)) in kernels.iter().zip(codes).enumerate() {
        let code = code.expect("an object");
        // By its name the section is one of several.
        let section = format!(".text.{number}\0");
        assert!(code.windows(section.len()).any(|bytes| bytes == section.as_bytes()), "kernel {number}");
        let bytes: Vec<u8> = (1..=37 * 2).flat_map(|i| (i as f32 * 0.75).to_le_bytes()).collect();
        let buffers = vec![bytes; kernel.params];
        let trips = (0, kernel.shared_trips as i64);
        assert_eq!(run_object(&code, kernel, &buffers, trips), run_part(&compiler, &target, kernel, &buffers, trips));
    }
}

#[test]
fn one_that_cannot_be_rendered_leaves_the_others_of_its_module_alone() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let kernels = [matmul(4, 8, 16), elementwise(Op::Exp2, &[F32], F32, 1, 4), masked_sum(Op::Add, 37, 8)];
    let codes = compiler.compile_all(&kernels.each_ref(), &Target::native());
    assert!(matches!(&codes[..], [Ok(_), Err(BackendError::Unsupported { .. }), Ok(_)]));
}
