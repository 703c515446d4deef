//! A block as data: its inputs, the program, the same in PyTorch, and what it costs at least.

use tinyspec::{DType, Tensor};

/// What a tensor is filled with, the same in every run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Normal, of this deviation.
    Normal(f32),
    /// Uniform in a half-open interval.
    Uniform(f32, f32),
    /// Whole numbers from 0, below this.
    Below(u32),
    /// 1 with this probability, else 0.
    Bernoulli(f32),
    /// As many different numbers between -1 and 1 as there are elements, in random order.
    Distinct,
    /// Symmetric positive definite matrices in the last two axes, well conditioned.
    Definite,
}

/// An input of a block.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its values.
    pub fill: Fill,
    /// Its dtype.
    pub dtype: DType,
    /// Its dims.
    pub shape: Vec<usize>,
}

impl Input {
    fn new<const N: usize>(fill: Fill, dtype: DType, shape: [usize; N]) -> Self {
        Self { fill, dtype, shape: shape.to_vec() }
    }

    /// The same values in another dtype.
    pub fn cast(self, dtype: DType) -> Self {
        Self { dtype, ..self }
    }

    /// Its values; equal seeds give equal ones.
    pub fn values(&self, seed: u64) -> Vec<f32> {
        const DRAWN: usize = 1_048_573;
        let count: usize = self.shape.iter().product();
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        let all = count;
        let count = if matches!(self.fill, Fill::Definite | Fill::Distinct) { all } else { all.min(DRAWN) };
        let drawn: Vec<f32> = match self.fill {
            Fill::Normal(deviation) => (0..count).map(|_| random.normal() * deviation).collect(),
            Fill::Uniform(low, high) => (0..count).map(|_| low + (high - low) * random.uniform()).collect(),
            Fill::Below(bound) => (0..count).map(|_| (random.next() % u64::from(bound)) as f32).collect(),
            Fill::Bernoulli(probability) => {
                (0..count).map(|_| f32::from(u8::from(random.uniform() < probability))).collect()
            }
            Fill::Distinct => {
                let mut values: Vec<f32> = (0..count).map(|place| 2.0 * place as f32 / count as f32 - 1.0).collect();
                for place in (1..count).rev() {
                    values.swap(place, random.next() as usize % (place + 1));
                }
                values
            }
            Fill::Definite => {
                let side = self.shape.last().copied().unwrap_or(1);
                let mut values: Vec<f32> = (0..count).map(|_| random.normal() / side as f32).collect();
                for matrix in values.chunks_exact_mut(side * side) {
                    for row in 0..side {
                        for column in 0..row {
                            matrix[column * side + row] = matrix[row * side + column];
                        }
                        matrix[row * side + row] = 2.0 + matrix[row * side + row].abs();
                    }
                }
                values
            }
        };
        // Large tensors repeat themselves, after a prime number of elements.
        drawn.iter().copied().cycle().take(all).collect()
    }
}

/// Xorshift.
pub struct Random(pub u64);

impl Random {
    /// The next number, of 44 bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 20
    }

    fn uniform(&mut self) -> f32 {
        (self.next() & 0xFF_FFFF) as f32 / (1 << 24) as f32
    }

    /// By Box and Muller.
    fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f32::consts::TAU * self.uniform()).cos()
    }
}

/// Activations: normal, of deviation 1.
pub fn normal<const N: usize>(shape: [usize; N]) -> Input {
    Input::new(Fill::Normal(1.0), DType::F32, shape)
}

/// Weights: normal, so that a product with them has the deviation of its other factor.
pub fn weight<const N: usize>(shape: [usize; N], summed: usize) -> Input {
    Input::new(Fill::Normal(1.0 / (summed as f32).sqrt()), DType::F32, shape)
}

/// Uniform from `low` to `high`.
pub fn uniform<const N: usize>(low: f32, high: f32, shape: [usize; N]) -> Input {
    Input::new(Fill::Uniform(low, high), DType::F32, shape)
}

/// Positions below `bound`: i32 here, i64 in PyTorch.
pub fn below<const N: usize>(bound: u32, shape: [usize; N]) -> Input {
    Input::new(Fill::Below(bound), DType::I32, shape)
}

/// Different numbers between -1 and 1: no two compare equal.
pub fn distinct<const N: usize>(shape: [usize; N]) -> Input {
    Input::new(Fill::Distinct, DType::F32, shape)
}

/// A mask, true with this probability.
pub fn mask<const N: usize>(probability: f32, shape: [usize; N]) -> Input {
    Input::new(Fill::Bernoulli(probability), DType::Bool, shape)
}

/// Positive definite matrices.
pub fn definite<const N: usize>(shape: [usize; N]) -> Input {
    Input::new(Fill::Definite, DType::F32, shape)
}

/// Which unit a contraction exhausts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Multiply-adds of f32.
    F32,
    /// Dot products of pairs of bf16.
    Bf16,
    /// Dot products of words of four bytes.
    I8,
}

/// How a contraction or a pass uses memory, and so whose rate it is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// Reads and writes.
    Copy,
    /// Reads, and writes next to nothing.
    Read,
    /// Copies rows of 768 f32 that lie far from each other.
    Rows,
}

/// A contraction or a pass: the least it does.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Operations: two a multiply-add. 0 for a pass.
    pub flops: f64,
    /// Of which unit.
    pub unit: Unit,
    /// Bytes that have to be read or written: each operand and each result once.
    pub bytes: f64,
    /// In which way.
    pub memory: Memory,
    /// How often this is done.
    pub count: f64,
    /// Bytes of the walk that this is a part of, if that is more.
    pub walk: f64,
}

impl Work {
    /// The same, so many times.
    pub fn times(self, count: usize) -> Self {
        Self { count: self.count * count as f64, ..self }
    }

    /// With another unit, whose elements have so many bytes.
    pub fn on(self, unit: Unit, bytes: usize) -> Self {
        Self { unit, bytes: self.bytes / 4.0 * bytes as f64, ..self }
    }

    /// With another use of memory.
    pub fn by(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// As a part of a walk over so many elements of f32, at whose rate it goes.
    pub fn of(self, elements: usize) -> Self {
        Self { walk: 4.0 * elements as f64, ..self }
    }

    /// With the gradient behind it: a contraction has two, of its operands; a pass reads what it has read and the cotangent, and writes
    /// the gradient.
    pub fn with_gradient(self) -> Self {
        let bytes = self.bytes * if self.flops > 0.0 { 3.0 } else { 2.5 };
        Self { flops: self.flops * 3.0, bytes, ..self }
    }
}

/// A product of f32 `[batch, rows, inner] @ [batch, inner, columns]`.
pub fn product(batch: usize, rows: usize, inner: usize, columns: usize) -> Work {
    let flops = 2.0 * (batch * rows * inner * columns) as f64;
    let (read, written) = (batch * (rows * inner + inner * columns), batch * rows * columns);
    let memory = if written * 8 < read { Memory::Read } else { Memory::Copy };
    Work { flops, memory, ..pass(read + written) }
}

/// A product with one matrix for all rows: `[rows, inner] @ [inner, columns]`.
pub fn linear(rows: usize, inner: usize, columns: usize) -> Work {
    product(1, rows, inner, columns)
}

/// A convolution to `[batch, output, height, width]` with so many multiply-adds an element, from so many elements.
pub fn convolution(result: [usize; 4], taps: usize, input: usize) -> Work {
    let result: usize = result.iter().product();
    Work { flops: 2.0 * (result * taps) as f64, ..pass(input + result) }
}

/// A walk over so many elements of f32, those read and those written.
pub fn pass(elements: usize) -> Work {
    Work { flops: 0.0, unit: Unit::F32, bytes: 4.0 * elements as f64, memory: Memory::Copy, count: 1.0, walk: 0.0 }
}

/// What a body may give.
pub trait Outputs {
    /// As a list.
    fn outputs(self) -> Vec<Tensor>;
}

impl Outputs for Tensor {
    fn outputs(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl Outputs for Vec<Tensor> {
    fn outputs(self) -> Vec<Tensor> {
        self
    }
}

impl<const N: usize> Outputs for [Tensor; N] {
    fn outputs(self) -> Vec<Tensor> {
        self.into()
    }
}

/// A block of a model.
pub struct Block {
    /// Family and name.
    pub name: String,
    /// By the names that both programs call them.
    pub inputs: Vec<(String, Input)>,
    /// The program.
    pub ours: fn(&[Tensor]) -> Vec<Tensor>,
    /// The same in Python: an expression, or statements that end with `return`; `inputs` lists the inputs.
    pub torch: &'static str,
    /// Its contractions and passes; what can be an epilogue of a contraction is not one.
    pub work: Vec<Work>,
    /// The inputs whose gradients a training step asks for; without any, there is no such row.
    pub train: &'static [&'static str],
}

/// A table of blocks.
macro_rules! blocks {
    ($($name:literal ($($input:ident = $spec:expr),* $(,)?)
        ours $ours:expr;
        torch $torch:expr;
        work $work:expr;
        $(train $($wanted:ident)*;)?
    )*) => {
        vec![$($crate::blocks::block::Block {
            name: $name.into(),
            inputs: vec![$((stringify!($input).into(), $spec)),*],
            ours: |inputs| {
                let [$($input),*] = inputs else { unreachable!("as many as the table says") };
                $crate::blocks::block::Outputs::outputs($ours)
            },
            torch: $torch,
            work: $work.into(),
            train: &[$($(stringify!($wanted)),*)?],
        }),*]
    };
}
pub(crate) use blocks;
