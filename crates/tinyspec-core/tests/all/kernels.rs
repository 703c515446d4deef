//! Kernels in range form, written by hand as Rangeify would leave them.

use tinyspec_ir::{AddrSpace, Arg, Axes, AxisType, Builder, Const, DType, Dim, Graph, NodeId, Op};

/// A kernel under construction.
pub struct Kernel {
    pub graph: Graph,
    /// dtype and length of every Param.
    pub params: Vec<(DType, i64)>,
    ranges: u32,
}

impl Kernel {
    pub fn new() -> Kernel {
        Kernel { graph: Graph::new(), params: Vec::new(), ranges: 0 }
    }

    pub fn param(&mut self, dtype: DType, length: i64) -> NodeId {
        let dims = self.graph.shape(&[Dim::from(length)]).unwrap();
        let slot = self.params.len() as u32;
        self.params.push((dtype, length));
        let arg = Arg::Param { slot, dtype, device: None, addrspace: Some(AddrSpace::Global) };
        self.graph.add(Op::Param, &[dims], arg).unwrap()
    }

    pub fn range(&mut self, trips: i64, axis: AxisType) -> NodeId {
        let bound = self.graph.index(trips);
        self.ranges += 1;
        self.graph.range(bound, self.ranges - 1, axis).unwrap()
    }

    pub fn output(&mut self, trips: i64) -> NodeId {
        self.range(trips, AxisType::Loop)
    }

    pub fn reduction(&mut self, trips: i64) -> NodeId {
        self.range(trips, AxisType::Reduce)
    }

    /// `Σ range · stride`.
    pub fn at(&mut self, terms: &[(NodeId, i64)]) -> NodeId {
        let mut total = self.graph.index(0);
        for &(range, stride) in terms {
            let stride = self.graph.index(stride);
            let term = self.alu(Op::Mul, &[range, stride]);
            total = self.alu(Op::Add, &[total, term]);
        }
        total
    }

    pub fn alu(&mut self, op: Op, sources: &[NodeId]) -> NodeId {
        self.graph.alu(op, sources).unwrap()
    }

    pub fn float(&mut self, value: f64) -> NodeId {
        self.graph.constant(Const::float(DType::F32, value))
    }

    pub fn load(&mut self, buffer: NodeId, index: NodeId) -> NodeId {
        let place = self.graph.add(Op::Index, &[buffer, index], Arg::None).unwrap();
        self.graph.add(Op::Load, &[place], Arg::Load { device: None, addrspace: AddrSpace::Reg }).unwrap()
    }

    pub fn gated_load(&mut self, buffer: NodeId, index: NodeId, gate: NodeId) -> NodeId {
        let place = self.graph.add(Op::Index, &[buffer, index], Arg::None).unwrap();
        let alt = self.graph.constant(Const::int(self.graph.dtype(buffer), 0));
        let arg = Arg::Load { device: None, addrspace: AddrSpace::Reg };
        self.graph.add(Op::Load, &[place, alt, gate], arg).unwrap()
    }

    pub fn store(&mut self, buffer: NodeId, index: NodeId, value: NodeId) -> NodeId {
        let place = self.graph.add(Op::Index, &[buffer, index], Arg::None).unwrap();
        self.graph.add(Op::Store, &[place, value], Arg::None).unwrap()
    }

    pub fn reduce(&mut self, op: Op, value: NodeId, ranges: &[NodeId]) -> NodeId {
        let sources: Vec<NodeId> = std::iter::once(value).chain(ranges.iter().copied()).collect();
        self.graph.add(Op::Reduce, &sources, Arg::Reduce { op, axes: Axes::new() }).unwrap()
    }

    pub fn cast(&mut self, value: NodeId, dtype: DType) -> NodeId {
        self.graph.add(Op::Cast, &[value], Arg::DType(dtype)).unwrap()
    }

    /// Closes the loops, the last of `ranges` innermost.
    pub fn sink(&mut self, stores: &[NodeId], ranges: &[NodeId]) -> NodeId {
        let mut effect = match stores {
            [store] => *store,
            _ => self.graph.add(Op::Group, stores, Arg::None).unwrap(),
        };
        for &range in ranges.iter().rev() {
            effect = self.graph.add(Op::End, &[effect, range], Arg::None).unwrap();
        }
        self.graph.add(Op::Sink, &[effect], Arg::None).unwrap()
    }
}

/// A kernel with the number of Params it writes.
pub type Case = (Kernel, NodeId, usize);

/// `y[i, j] = x[i, j] * 2 + x[i, j]`.
pub fn elementwise(rows: i64, columns: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let (i, j) = (k.output(rows), k.output(columns));
    let at = k.at(&[(i, columns), (j, 1)]);
    let value = k.load(x, at);
    let two = k.float(2.0);
    let product = k.alu(Op::Mul, &[value, two]);
    let sum = k.alu(Op::Add, &[product, value]);
    let store = k.store(y, at, sum);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// `y[i, j] = x[i, j] + row[max(columns - 1, j) - columns + 1] + j mod columns - j`: every index but x's and y's is a number,
/// and that within the bounds of its own loop only.
pub fn bounded(rows: i64, columns: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let row = k.param(DType::F32, 1);
    let (i, j) = (k.output(rows), k.output(columns));
    let at = k.at(&[(i, columns), (j, 1)]);
    let last = k.graph.index(columns - 1);
    let greatest = k.alu(Op::Max, &[last, j]);
    let back = k.graph.index(1 - columns);
    let place = k.alu(Op::Add, &[greatest, back]);
    let (width, minus) = (k.graph.index(columns), k.graph.index(-1));
    let (rest, negative) = (k.alu(Op::Mod, &[j, width]), k.alu(Op::Mul, &[j, minus]));
    let nothing = k.alu(Op::Add, &[rest, negative]);
    let nothing = k.cast(nothing, DType::F32);
    let (value, constant) = (k.load(x, at), k.load(row, place));
    let sum = k.alu(Op::Add, &[value, constant]);
    let sum = k.alu(Op::Add, &[sum, nothing]);
    let store = k.store(y, at, sum);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// `y[i, j] = x[i, j] + row[j] + column[i]`: no merging of the axes.
pub fn broadcast(rows: i64, columns: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let (row, column) = (k.param(DType::F32, columns), k.param(DType::F32, rows));
    let (i, j) = (k.output(rows), k.output(columns));
    let at = k.at(&[(i, columns), (j, 1)]);
    let (x, row, column) = (k.load(x, at), k.load(row, j), k.load(column, i));
    let sum = k.alu(Op::Add, &[x, row]);
    let sum = k.alu(Op::Add, &[sum, column]);
    let store = k.store(y, at, sum);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// `y[i, j] = x[j, i]`.
pub fn transpose(rows: i64, columns: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let (i, j) = (k.output(rows), k.output(columns));
    let (to, from) = (k.at(&[(i, columns), (j, 1)]), k.at(&[(j, rows), (i, 1)]));
    let value = k.load(x, from);
    let store = k.store(y, to, value);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// A reduction of a matrix along its columns (`axis` 1) or rows (`axis` 0).
pub fn reduction(op: Op, dtype: DType, rows: i64, columns: i64, axis: usize) -> Case {
    let mut k = Kernel::new();
    let (kept, gone) = if axis == 1 { (rows, columns) } else { (columns, rows) };
    let (y, x) = (k.param(dtype, kept), k.param(dtype, rows * columns));
    let (i, r) = (k.output(kept), k.reduction(gone));
    let at = if axis == 1 { k.at(&[(i, columns), (r, 1)]) } else { k.at(&[(r, columns), (i, 1)]) };
    let value = k.load(x, at);
    let total = k.reduce(op, value, &[r]);
    let store = k.store(y, i, total);
    let sink = k.sink(&[store], &[i]);
    (k, sink, 1)
}

/// The sum of everything.
pub fn total(count: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, 1), k.param(DType::F32, count));
    let r = k.reduction(count);
    let value = k.load(x, r);
    let total = k.reduce(Op::Add, value, &[r]);
    let zero = k.graph.index(0);
    let store = k.store(y, zero, total);
    let sink = k.sink(&[store], &[]);
    (k, sink, 1)
}

/// `c = a · b (+ bias)`, each operand plain or transposed.
pub fn matmul(m: i64, n: i64, inner: i64, transposed: (bool, bool), bias: bool) -> Case {
    product(DType::F32, [m, n, inner], transposed, bias)
}

/// The same of operands that are multiplied and summed in a wider type.
pub fn narrow_matmul(dtype: DType, m: i64, n: i64, inner: i64, transposed: (bool, bool)) -> Case {
    product(dtype, [m, n, inner], transposed, false)
}

fn product(dtype: DType, [m, n, inner]: [i64; 3], transposed: (bool, bool), bias: bool) -> Case {
    let mut k = Kernel::new();
    let wide = dtype.accumulator();
    let (c, a, b) = (k.param(wide, m * n), k.param(dtype, m * inner), k.param(dtype, inner * n));
    let bias = bias.then(|| k.param(wide, n));
    let (i, j, r) = (k.output(m), k.output(n), k.reduction(inner));
    let left = if transposed.0 { k.at(&[(r, m), (i, 1)]) } else { k.at(&[(i, inner), (r, 1)]) };
    let right = if transposed.1 { k.at(&[(j, inner), (r, 1)]) } else { k.at(&[(r, n), (j, 1)]) };
    let (mut left, mut right) = (k.load(a, left), k.load(b, right));
    if dtype != wide {
        (left, right) = (k.cast(left, wide), k.cast(right, wide));
    }
    let product = k.alu(Op::Mul, &[left, right]);
    let mut sum = k.reduce(Op::Add, product, &[r]);
    if let Some(bias) = bias {
        let bias = k.load(bias, j);
        sum = k.alu(Op::Add, &[sum, bias]);
    }
    let at = k.at(&[(i, n), (j, 1)]);
    let store = k.store(c, at, sum);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// `c = a · b`, of which the terms from `low` to `high` after the number of the row count; of others a reads 0.
pub fn banded_matmul(m: i64, n: i64, inner: i64, [low, high]: [Option<i64>; 2]) -> Case {
    let mut k = Kernel::new();
    let [c, a, b] = [m * n, m * inner, inner * n].map(|size| k.param(DType::F32, size));
    let (i, j, r) = (k.output(m), k.output(n), k.reduction(inner));
    let [left, right, out] = [k.at(&[(i, inner), (r, 1)]), k.at(&[(r, n), (j, 1)]), k.at(&[(i, n), (j, 1)])];
    let (mut left, right, zero) = (k.load(a, left), k.load(b, right), k.float(0.0));
    for (bound, is_low) in [(low, true), (high, false)] {
        let Some(bound) = bound else { continue };
        let bound = k.graph.index(bound);
        let bound = k.alu(Op::Add, &[i, bound]);
        let outside = k.alu(Op::CmpLt, &if is_low { [r, bound] } else { [bound, r] });
        left = k.alu(Op::Where, &[outside, zero, left]);
    }
    let product = k.alu(Op::Mul, &[left, right]);
    let sum = k.reduce(Op::Add, product, &[r]);
    let store = k.store(c, out, sum);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// `y[i, j] = (x[i, j] - max_j x) / Σ_j (x - max)`: the loops of softmax, with exact arithmetic until the division.
/// `shared`: both reductions name the same Range.
pub fn normalise(rows: i64, columns: i64, shared: bool) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let (i, j, r) = (k.output(rows), k.output(columns), k.reduction(columns));
    let s = if shared { r } else { k.reduction(columns) };
    let minus = k.float(-1.0);
    let at = k.at(&[(i, columns), (r, 1)]);
    let value = k.load(x, at);
    let greatest = k.reduce(Op::Max, value, &[r]);
    let negative = k.alu(Op::Mul, &[greatest, minus]);
    let at = k.at(&[(i, columns), (s, 1)]);
    let value = k.load(x, at);
    let shifted = k.alu(Op::Add, &[value, negative]);
    let total = k.reduce(Op::Add, shifted, &[s]);
    let at = k.at(&[(i, columns), (j, 1)]);
    let value = k.load(x, at);
    let shifted = k.alu(Op::Add, &[value, negative]);
    let quotient = k.alu(Op::Div, &[shifted, total]);
    let store = k.store(y, at, quotient);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// `y[i, j] = x[i, j] / Σj x[i, j]²`
pub fn shares(rows: i64, columns: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let (i, j, r) = (k.output(rows), k.output(columns), k.reduction(columns));
    let at = k.at(&[(i, columns), (r, 1)]);
    let value = k.load(x, at);
    let square = k.alu(Op::Mul, &[value, value]);
    let total = k.reduce(Op::Add, square, &[r]);
    let at = k.at(&[(i, columns), (j, 1)]);
    let value = k.load(x, at);
    let quotient = k.alu(Op::Div, &[value, total]);
    let store = k.store(y, at, quotient);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// The softmax of each row, with exponentials of base 2: of small whole numbers they are exact.
pub fn softmax(rows: i64, columns: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let (i, j, r, s) = (k.output(rows), k.output(columns), k.reduction(columns), k.reduction(columns));
    let minus = k.float(-1.0);
    let at = k.at(&[(i, columns), (r, 1)]);
    let value = k.load(x, at);
    let greatest = k.reduce(Op::Max, value, &[r]);
    let negative = k.alu(Op::Mul, &[greatest, minus]);
    let power = |k: &mut Kernel, column| {
        let at = k.at(&[(i, columns), (column, 1)]);
        let value = k.load(x, at);
        let shifted = k.alu(Op::Add, &[value, negative]);
        (at, k.alu(Op::Exp2, &[shifted]))
    };
    let (_, term) = power(&mut k, s);
    let total = k.reduce(Op::Add, term, &[s]);
    let (at, term) = power(&mut k, j);
    let share = k.alu(Op::Div, &[term, total]);
    let store = k.store(y, at, share);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// `y[i] = x[i - shift]` where that exists, else 0.
pub fn shifted(count: i64, shift: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, count), k.param(DType::F32, count));
    let i = k.output(count);
    let (minus, last, least) = (k.graph.index(-shift), k.graph.index(count - 1), k.graph.index(shift - 1));
    let from = k.alu(Op::Add, &[i, minus]);
    let gate = k.alu(Op::CmpLt, &[least, i]);
    let again = k.alu(Op::CmpLt, &[last, from]);
    let yes = k.graph.constant(Const::int(DType::Bool, 1));
    let again = k.alu(Op::CmpNe, &[again, yes]);
    let gate = k.alu(Op::And, &[gate, again]);
    let value = k.gated_load(x, from, gate);
    let store = k.store(y, i, value);
    let sink = k.sink(&[store], &[i]);
    (k, sink, 1)
}

/// `y[i, j] = table[id[i], j]` where the id is in the table, else 0.
pub fn embedding(rows: i64, columns: i64, entries: i64) -> Case {
    let mut k = Kernel::new();
    let y = k.param(DType::F32, rows * columns);
    let (table, ids) = (k.param(DType::F32, entries * columns), k.param(DType::I32, rows));
    let (i, j) = (k.output(rows), k.output(columns));
    let id = k.load(ids, i);
    let id = k.cast(id, DType::Index);
    let (low, high) = (k.graph.index(-1), k.graph.index(entries));
    let (above, below) = (k.alu(Op::CmpLt, &[low, id]), k.alu(Op::CmpLt, &[id, high]));
    let gate = k.alu(Op::And, &[above, below]);
    let from = k.at(&[(id, columns), (j, 1)]);
    let value = k.gated_load(table, from, gate);
    let to = k.at(&[(i, columns), (j, 1)]);
    let store = k.store(y, to, value);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// The position of each row's maximum: the greatest of `columns - j` among equals of the maximum.
pub fn argmax(rows: i64, columns: i64) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::I32, rows), k.param(DType::F32, rows * columns));
    let (i, r, s) = (k.output(rows), k.reduction(columns), k.reduction(columns));
    let at = k.at(&[(i, columns), (r, 1)]);
    let value = k.load(x, at);
    let greatest = k.reduce(Op::Max, value, &[r]);
    let at = k.at(&[(i, columns), (s, 1)]);
    let value = k.load(x, at);
    let differs = k.alu(Op::CmpNe, &[value, greatest]);
    let reversed = k.at(&[(s, -1)]);
    let reversed = k.cast(reversed, DType::I32);
    let count = k.graph.constant(Const::int(DType::I32, columns as i128));
    let reversed = k.alu(Op::Add, &[count, reversed]);
    let none = k.graph.constant(Const::int(DType::I32, 0));
    let candidate = k.alu(Op::Where, &[differs, none, reversed]);
    let best = k.reduce(Op::Max, candidate, &[s]);
    let minus = k.graph.constant(Const::int(DType::I32, -1));
    let best = k.alu(Op::Mul, &[best, minus]);
    let best = k.alu(Op::Add, &[count, best]);
    let store = k.store(y, i, best);
    let sink = k.sink(&[store], &[i]);
    (k, sink, 1)
}

/// Three outputs of one loop: `m' = m/2 + g`, `v' = v/2 + g²`, `p' = p + m'·v'`.
pub fn optimiser(count: i64) -> Case {
    let mut k = Kernel::new();
    let buffers: Vec<NodeId> = (0..7).map(|_| k.param(DType::F32, count)).collect();
    let i = k.output(count);
    let loaded: Vec<NodeId> = buffers[3..].iter().map(|&buffer| k.load(buffer, i)).collect();
    let [m, v, p, g] = loaded[..] else { panic!() };
    let half = k.float(0.5);
    let (m, v) = (k.alu(Op::Mul, &[m, half]), k.alu(Op::Mul, &[v, half]));
    let m = k.alu(Op::Add, &[m, g]);
    let square = k.alu(Op::Mul, &[g, g]);
    let v = k.alu(Op::Add, &[v, square]);
    let step = k.alu(Op::Mul, &[m, v]);
    let p = k.alu(Op::Add, &[p, step]);
    let stores: Vec<NodeId> =
        [m, v, p].iter().zip(&buffers).map(|(&value, &buffer)| k.store(buffer, i, value)).collect();
    let sink = k.sink(&stores, &[i]);
    (k, sink, 3)
}

/// `y[i, j] = Σ_{a, b} x[i + a, j + b] · w[a, b]` over windows of 3 × 3.
pub fn convolution(rows: i64, columns: i64) -> Case {
    let mut k = Kernel::new();
    let (height, width) = (rows - 2, columns - 2);
    let (y, x, w) = (k.param(DType::F32, height * width), k.param(DType::F32, rows * columns), k.param(DType::F32, 9));
    let (i, j, a, b) = (k.output(height), k.output(width), k.reduction(3), k.reduction(3));
    let (from, weight) = (k.at(&[(i, columns), (a, columns), (j, 1), (b, 1)]), k.at(&[(a, 3), (b, 1)]));
    let (x, w) = (k.load(x, from), k.load(w, weight));
    let product = k.alu(Op::Mul, &[x, w]);
    let sum = k.reduce(Op::Add, product, &[a, b]);
    let to = k.at(&[(i, width), (j, 1)]);
    let store = k.store(y, to, sum);
    let sink = k.sink(&[store], &[i, j]);
    (k, sink, 1)
}

/// A convolution of images with zeros around them: `channels` images to `outputs`, windows of 3×2 in steps.
pub fn padded_convolution([channels, outputs]: [i64; 2], [rows, columns]: [i64; 2], [down, right]: [i64; 2]) -> Case {
    let mut k = Kernel::new();
    let (height, width) = ((rows + 2 - 3) / down + 1, (columns + 2 - 2) / right + 1);
    let y = k.param(DType::F32, outputs * height * width);
    let x = k.param(DType::F32, channels * rows * columns);
    let w = k.param(DType::F32, outputs * channels * 6);
    let (o, i, j) = (k.output(outputs), k.output(height), k.output(width));
    let (c, a, b) = (k.reduction(channels), k.reduction(3), k.reduction(2));
    let (row, column) = (k.at(&[(i, down), (a, 1)]), k.at(&[(j, right), (b, 1)]));
    let one = k.graph.index(-1);
    let (row, column) = (k.alu(Op::Add, &[row, one]), k.alu(Op::Add, &[column, one]));
    let mut inside = Vec::new();
    for (position, size) in [(row, rows), (column, columns)] {
        let size = k.graph.index(size);
        inside.extend([k.alu(Op::CmpLt, &[one, position]), k.alu(Op::CmpLt, &[position, size])]);
    }
    let gate = inside.into_iter().reduce(|a, b| k.alu(Op::And, &[a, b])).expect("four conditions");
    let from = k.at(&[(c, rows * columns), (row, columns), (column, 1)]);
    let x = k.gated_load(x, from, gate);
    let weight = k.at(&[(o, channels * 6), (c, 6), (a, 2), (b, 1)]);
    let w = k.load(w, weight);
    let product = k.alu(Op::Mul, &[x, w]);
    let sum = k.reduce(Op::Add, product, &[c, a, b]);
    let to = k.at(&[(o, height * width), (i, width), (j, 1)]);
    let store = k.store(y, to, sum);
    let sink = k.sink(&[store], &[o, i, j]);
    (k, sink, 1)
}

/// `y[i] = i` and its halves: data made of index arithmetic, with a quotient and a remainder.
pub fn counting(count: i64) -> Case {
    let mut k = Kernel::new();
    let (y, z) = (k.param(DType::F32, count), k.param(DType::I64, count));
    let i = k.output(count);
    let seven = k.graph.index(7);
    let (quotient, remainder) = (k.alu(Op::Idiv, &[i, seven]), k.alu(Op::Mod, &[i, seven]));
    let (float, long) = (k.cast(quotient, DType::F32), k.cast(remainder, DType::I64));
    let stores = [k.store(y, i, float), k.store(z, i, long)];
    let sink = k.sink(&stores, &[i]);
    (k, sink, 2)
}

/// How a window of a running Reduce is written.
#[derive(Clone, Copy, Debug)]
pub enum Window {
    /// `Σr [r < i + offset] · x(r)`.
    UpTo(i64),
    /// `Σr [i + offset < r] · x(r)`.
    From(i64),
    /// `Σr x(i + r - (n - 1))`, where that is not before the first.
    Sliding,
    /// `Σr x(i - r)`, where that is not before the first.
    Back,
}

/// `y[i, j]` is what `op` makes of a window of `x[·, j]` that ends, or begins, near `i`; `i` is the outer axis, or else
/// the inner one.
pub fn running(op: Op, window: Window, rows: i64, columns: i64, outer: bool) -> Case {
    let mut k = Kernel::new();
    let (y, x) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let (first, second) = if outer { (rows, columns) } else { (columns, rows) };
    let (a, b) = (k.output(first), k.output(second));
    let (i, j) = if outer { (a, b) } else { (b, a) };
    let (steps, lanes) = if outer { (columns, 1) } else { (1, rows) };
    let r = k.reduction(rows);
    let nothing = match op {
        Op::Add => 0.0,
        Op::Mul => 1.0,
        _ => f64::NEG_INFINITY,
    };
    let nothing = k.float(nothing);
    let number = |k: &mut Kernel, value: i64| k.graph.index(value);
    let value = match window {
        Window::UpTo(offset) | Window::From(offset) => {
            let offset = number(&mut k, offset);
            let end = k.alu(Op::Add, &[i, offset]);
            let is_in = match window {
                Window::UpTo(_) => k.alu(Op::CmpLt, &[r, end]),
                _ => k.alu(Op::CmpLt, &[end, r]),
            };
            let at = k.at(&[(r, steps), (j, lanes)]);
            let value = k.load(x, at);
            k.alu(Op::Where, &[is_in, value, nothing])
        }
        Window::Sliding | Window::Back => {
            let (sign, shift) = if matches!(window, Window::Sliding) { (1, 1 - rows) } else { (-1, 0) };
            let shift = number(&mut k, shift);
            let at = k.at(&[(i, 1), (r, sign)]);
            let at = k.alu(Op::Add, &[at, shift]);
            let before = number(&mut k, -1);
            let is_in = k.alu(Op::CmpLt, &[before, at]);
            let at = k.at(&[(at, steps), (j, lanes)]);
            let value = k.gated_load(x, at, is_in);
            k.alu(Op::Where, &[is_in, value, nothing])
        }
    };
    let total = k.reduce(op, value, &[r]);
    let two = k.float(2.0);
    let total = k.alu(Op::Mul, &[total, two]);
    let to = k.at(&[(i, steps), (j, lanes)]);
    let store = k.store(y, to, total);
    let sink = k.sink(&[store], &[a, b]);
    (k, sink, 1)
}

/// `y[i, j] = Σr [r = id[i]] · x[r, j] · 2`, and the last column of a row where `r = i` besides.
pub fn one_hot(rows: i64, columns: i64, entries: i64) -> Case {
    let mut k = Kernel::new();
    let (y, z) = (k.param(DType::F32, rows * columns), k.param(DType::F32, rows * columns));
    let (table, ids) = (k.param(DType::F32, entries * columns), k.param(DType::I32, rows));
    let (i, j, r) = (k.output(rows), k.output(columns), k.reduction(entries));
    let (id, position) = (k.load(ids, i), k.cast(r, DType::I32));
    let differs = k.alu(Op::CmpNe, &[id, position]);
    let from = k.at(&[(r, columns), (j, 1)]);
    let value = k.load(table, from);
    let two = k.float(2.0);
    let value = k.alu(Op::Mul, &[value, two]);
    let zero = k.float(0.0);
    let picked = k.alu(Op::Where, &[differs, zero, value]);
    let picked = k.reduce(Op::Add, picked, &[r]);
    let differs = k.alu(Op::CmpNe, &[r, i]);
    let diagonal = k.alu(Op::Where, &[differs, zero, value]);
    let diagonal = k.reduce(Op::Add, diagonal, &[r]);
    let to = k.at(&[(i, columns), (j, 1)]);
    let stores = [k.store(y, to, picked), k.store(z, to, diagonal)];
    let sink = k.sink(&stores, &[i, j]);
    (k, sink, 2)
}

/// `y[k, j]` is what `op` makes of `x[d, j]` where `[k = id[d]]`; `id` may have numbers of its own for each j.
pub fn scatter(op: Op, places: i64, columns: i64, terms: i64, own: bool) -> Case {
    let mut k = Kernel::new();
    let y = k.param(DType::F32, places * columns);
    let (x, ids) = (k.param(DType::F32, terms * columns), k.param(DType::I64, terms * columns));
    let (place, j, d) = (k.output(places), k.output(columns), k.reduction(terms));
    let from = k.at(&[(d, columns), (j, 1)]);
    let id = if own { k.load(ids, from) } else { k.load(ids, d) };
    let position = k.cast(place, DType::I64);
    let differs = k.alu(Op::CmpNe, &[position, id]);
    let value = k.load(x, from);
    let nothing = match op {
        Op::Add => 0.0,
        _ => f64::NEG_INFINITY,
    };
    let nothing = k.float(nothing);
    let value = k.alu(Op::Where, &[differs, nothing, value]);
    let total = k.reduce(op, value, &[d]);
    let to = k.at(&[(place, columns), (j, 1)]);
    let store = k.store(y, to, total);
    let sink = k.sink(&[store], &[place, j]);
    (k, sink, 1)
}
