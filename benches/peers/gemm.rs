//! Matrix products of the `gemm` crate.

use gemm::Parallelism;

/// The sides of the square products.
pub const SIDES: [usize; 4] = [256, 512, 1024, 2048];

/// A product of two square matrices of f32, all row by row.
pub struct Product {
    side: usize,
    parallelism: Parallelism,
    left: Vec<f32>,
    right: Vec<f32>,
    output: Vec<f32>,
}

impl Product {
    /// A product on so many threads.
    pub fn new(side: usize, threads: usize) -> Self {
        let parallelism = if threads == 1 { Parallelism::None } else { Parallelism::Rayon(threads) };
        let filled = |scale: f32| (0..side * side).map(|index| (index % 17) as f32 * scale).collect();
        Self { side, parallelism, left: filled(0.25), right: filled(-0.5), output: vec![0.0; side * side] }
    }

    /// Multiplications of one product.
    pub fn multiplications(side: usize) -> usize {
        side.pow(3)
    }

    /// Computes it.
    pub fn run(&mut self) {
        let (side, stride) = (self.side, self.side as isize);
        // SAFETY: each matrix is `side` × `side` elements under the strides given, the output is borrowed alone.
        unsafe {
            gemm::gemm(
                side,
                side,
                side,
                self.output.as_mut_ptr(),
                1,
                stride,
                false,
                self.left.as_ptr(),
                1,
                stride,
                self.right.as_ptr(),
                1,
                stride,
                0.0,
                1.0,
                false,
                false,
                false,
                self.parallelism,
            );
        }
    }
}
