//! Kernels written by hand with `uop!`, each beside the same computation in tensor ops, its peer.

use tinyspec::{DType, Function, Prepared, Result, Spec, Tensor, uop};
use tinyspec_benches::report::Measure;

use crate::kernels::{device, tensors};
use crate::session::{Case, Session};

type Body = fn(&[Tensor]) -> Vec<Tensor>;

uop! {
    /// A panel of `b` is copied to where it lies side by side; tiles of 8 rows and a panel's columns are in registers.
    <M, K, N> fn gemm(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
        for rows in global(M / 128) {
            let mut panel: Local<f32, 256, 32>;
            for part in serial(K / 256) {
                for columns in serial(N / 32) {
                    for k in serial(256) {
                        for j in local(32) { panel[k, j] = b[256 * part + k, 32 * columns + j]; }
                    }
                    for i in serial(16) {
                        for j in local(32) {
                            let mut sums: Reg<f32, 8>;
                            for u in unroll(8) { sums[u] = c[128 * rows + 8 * i + u, 32 * columns + j]; }
                            for k in reduce(256) {
                                for u in unroll(8) { sums[u] += a[128 * rows + 8 * i + u, 256 * part + k] * panel[k, j]; }
                            }
                            for u in unroll(8) { c[128 * rows + 8 * i + u, 32 * columns + j] = sums[u]; }
                        }
                    }
                }
            }
        }
    }

    /// Blocks of 64 queries meet blocks of 64 keys; the greatest score so far and the sum of a row follow from block to block.
    <H, L> fn attention(q: &Global<f32, H, L, 64>, k: &Global<f32, H, L, 64>, v: &Global<f32, H, L, 64>)
        -> Global<f32, H, L, 64> as y
    {
        for h in global(H) {
            for block in global(L / 64) {
                let mut keys: Local<f32, 64, 64>;
                let mut scores: Local<f32, 64, 64>;
                let mut sums: Local<f32, 64, 64>;
                let mut greatest: Local<f32, 64>;
                let mut total: Local<f32, 64>;
                for i in local(64) {
                    greatest[i] = -1e30;
                    total[i] = 0.0;
                }
                for i in serial(64) {
                    for d in local(64) { sums[i, d] = 0.0; }
                }
                for part in serial(L / 64) {
                    for d in local(64) {
                        for j in local(64) { keys[d, j] = k[h, 64 * part + j, d]; }
                    }
                    for i in serial(8) {
                        for j in local(64) {
                            let mut s: Reg<f32, 8>;
                            for d in reduce(64) {
                                for u in unroll(8) { s[u] += q[h, 64 * block + 8 * i + u, d] * keys[d, j]; }
                            }
                            for u in unroll(8) { scores[8 * i + u, j] = s[u] * 0.125; }
                        }
                    }
                    for i in serial(64) {
                        let before = greatest[i];
                        let mut most = before;
                        for j in reduce(64) { most = max(most, scores[i, j]); }
                        for j in local(64) { scores[i, j] = exp(scores[i, j] - most); }
                        let mut sum = 0.0f32;
                        for j in reduce(64) { sum += scores[i, j]; }
                        let scale = exp(before - most);
                        for d in local(64) { sums[i, d] *= scale; }
                        for d in local(1) {
                            total[i] = total[i] * scale + sum;
                            greatest[i] = most;
                        }
                    }
                    for i in serial(8) {
                        for d in local(64) {
                            let mut s: Reg<f32, 8>;
                            for u in unroll(8) { s[u] = sums[8 * i + u, d]; }
                            for j in reduce(64) {
                                for u in unroll(8) { s[u] += scores[8 * i + u, j] * v[h, 64 * part + j, d]; }
                            }
                            for u in unroll(8) { sums[8 * i + u, d] = s[u]; }
                        }
                    }
                }
                for i in serial(64) {
                    for d in local(64) { y[h, 64 * block + i, d] = sums[i, d] / total[i]; }
                }
            }
        }
    }

    /// An element is the sum of those up to it.
    <M, N> fn prefix_sums(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
        for i in global(M) {
            for j in local(N) {
                let mut sum = 0.0f32;
                for k in reduce(j + 1) { sum += x[i, k]; }
                y[i, j] = sum;
            }
        }
    }

    /// Each of 64 members looks through its part of the row; the first of the greatest is the least of their places.
    <M, N> fn argmax(x: &Global<f32, M, N>) -> Global<i32, M> as y {
        for i in global(M) {
            let mut values: Local<f32, 64>;
            let mut places: Local<i32, 64>;
            for l in local(64) {
                let mut value = -1e38f32;
                let mut place = 0;
                for j in serial(N / 64) {
                    let next = x[i, 64 * j + l];
                    if next > value {
                        value = next;
                        place = (64 * j + l) as i32;
                    }
                }
                values[l] = value;
                places[l] = place;
            }
            let mut greatest = -1e38f32;
            for l in reduce(64) { greatest = max(greatest, values[l]); }
            let mut first = 2147483647;
            for l in reduce(64) { first = min(first, if values[l] == greatest { places[l] } else { 2147483647 }); }
            y[i] = first;
        }
    }

    /// The acceleration of each body by all.
    <N> fn bodies(x: &Global<f32, N>, y: &Global<f32, N>, z: &Global<f32, N>, mass: &Global<f32, N>)
        -> (Global<f32, N> as ax, Global<f32, N> as ay, Global<f32, N> as az)
    {
        for i in global(N) {
            let mut sum_x = 0.0f32;
            let mut sum_y = 0.0f32;
            let mut sum_z = 0.0f32;
            for j in reduce(N) {
                let dx = x[j] - x[i];
                let dy = y[j] - y[i];
                let dz = z[j] - z[i];
                let near = rsqrt(dx * dx + dy * dy + dz * dz + 0.01);
                let pull = mass[j] * near * near * near;
                sum_x += pull * dx;
                sum_y += pull * dy;
                sum_z += pull * dz;
            }
            ax[i] = sum_x;
            ay[i] = sum_y;
            az[i] = sum_z;
        }
    }

    /// Each of 64 members has its part of a row, which waits in `powers` until its sum is known. Meanwhile the greatest of the next
    /// row is found.
    <M> fn softmax(x: &Global<f32, M, 1024>) -> Global<f32, M, 1024> as y {
        for block in global(M / 32) {
            let mut powers: Local<f32, 1024>;
            let mut parts: Local<f32, 64>;
            let mut sums: Local<f32, 64>;
            let mut greatest = -1e30f32;
            for j in reduce(1024) { greatest = max(greatest, x[32 * block, j]); }
            for r in serial(32) {
                for l in local(64) {
                    let mut sum = 0.0f32;
                    let mut most = -1e30f32;
                    for j in serial(16) {
                        let power = exp(x[32 * block + r, 64 * j + l] - greatest);
                        powers[64 * j + l] = power;
                        sum += power;
                        let next = x[32 * block + min(r + 1, 31), 64 * j + l];
                        most = if next > most { next } else { most };
                    }
                    sums[l] = sum;
                    parts[l] = most;
                }
                let mut total = 0.0f32;
                for l in reduce(64) { total += sums[l]; }
                greatest = -1e30;
                for l in reduce(64) { greatest = max(greatest, parts[l]); }
                let scale = 1.0 / total;
                for j in local(1024) { y[32 * block + r, j] = powers[j] * scale; }
            }
        }
    }

    /// Four bytes along `k` lie side by side in both.
    <M, K, N> fn gemm_of_bytes(a: &Global<i8, M, K, 4>, b: &Global<i8, K, N, 4>) -> Global<i32, M, N> as c {
        for i in global(M / 8) {
            for columns in serial(N / 32) {
                for j in local(32) {
                    let mut sums: Reg<i32, 8>;
                    for k in reduce(K) {
                        for u in unroll(8) {
                            for q in reduce(4) { sums[u] += a[8 * i + u, k, q] as i32 * b[k, 32 * columns + j, q] as i32; }
                        }
                    }
                    for u in unroll(8) { c[8 * i + u, 32 * columns + j] = sums[u]; }
                }
            }
        }
    }
}

fn gravity(inputs: &[Tensor]) -> Vec<Tensor> {
    let between = |x: &Tensor| x.reshape([1, -1]) - x.reshape([-1, 1]);
    let [dx, dy, dz] = [between(&inputs[0]), between(&inputs[1]), between(&inputs[2])];
    let near = (&dx * &dx + &dy * &dy + &dz * &dz + 0.01).rsqrt();
    let pull = inputs[3].reshape([1, -1]) * &near * &near * &near;
    vec![(&pull * dx).sum(1, false), (&pull * dy).sum(1, false), (&pull * dz).sum(1, false)]
}

/// A row for every kernel and thread count.
///
/// # Errors
/// When libLLVM is missing, or a kernel cannot be compiled or run.
pub fn benches(session: &mut Session) -> Result<(), Box<dyn std::error::Error>> {
    for threads in session.thread_counts() {
        let device = device(threads, false)?;
        for pair in pairs() {
            let name = format!("hand_written/{}/{threads}t", pair.name);
            if session.selects(&name) {
                beside(session, name, &device, &pair)?;
            }
        }
    }
    Ok(())
}

fn beside(session: &mut Session, name: String, device: &str, pair: &Pair) -> Result<()> {
    let inputs = tensors(&pair.inputs, pair.dtype, device)?;
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let (by_hand, in_ops) = (prepared(pair.by_hand, &inputs)?, prepared(pair.in_ops, &inputs)?);
    let (mut own, mut others) = (by_hand.outputs()?, in_ops.outputs()?);
    let (mut done, mut peer_done) = (Ok(()), Ok(()));
    let mut run = || done = std::mem::replace(&mut done, Ok(())).and_then(|()| by_hand.call(&mut own, &inputs));
    let mut peer =
        || peer_done = std::mem::replace(&mut peer_done, Ok(())).and_then(|()| in_ops.call(&mut others, &inputs));
    session.bench(Case { name, measure: pair.measure, bounds: vec![], run: &mut run, peer: Some(&mut peer) });
    done.and(peer_done)
}

fn prepared(body: Body, inputs: &[&Tensor]) -> Result<Prepared> {
    let specs: Vec<Spec> = inputs.iter().map(|input| Spec::of(input)).collect();
    Function::trace(&specs, body)?.prepare(inputs)
}

/// What a kernel computes, and how tensor ops do.
pub struct Pair {
    /// Name, dtype and sizes.
    pub name: &'static str,
    /// What one run does.
    pub measure: Measure,
    /// Shapes of the inputs.
    pub inputs: Vec<Vec<usize>>,
    /// What their elements are.
    pub dtype: DType,
    /// The kernel.
    pub by_hand: Body,
    /// The same in tensor ops.
    pub in_ops: Body,
}

pub fn pairs() -> Vec<Pair> {
    let pair = |name, measure, inputs: usize, shape: &[usize], by_hand: Body, in_ops: Body| Pair {
        name,
        measure,
        inputs: vec![shape.to_vec(); inputs],
        dtype: DType::F32,
        by_hand,
        in_ops,
    };
    let flops = |multiplications: usize| Measure::Flops(2.0 * multiplications as f64);
    let bytes = |elements: usize| Measure::Bytes(elements as f64 * 4.0);
    vec![
        pair(
            "attention/f32/8x512x64",
            flops(2 * 8 * 512 * 512 * 64),
            3,
            &[8, 512, 64],
            |inputs| vec![attention(&inputs[0], &inputs[1], &inputs[2])],
            |inputs| vec![inputs[0].sdpa(&inputs[1], &inputs[2], false)],
        ),
        pair(
            "gemm/f32/1024",
            flops(1 << 30),
            2,
            &[1024, 1024],
            |inputs| vec![gemm(&inputs[0], &inputs[1])],
            |inputs| vec![inputs[0].matmul(&inputs[1])],
        ),
        Pair {
            dtype: DType::I8,
            ..pair(
                "gemm/i8/1024",
                flops(1 << 30),
                2,
                &[1024, 1024],
                |inputs| {
                    let b = inputs[1].reshape([256, 4, 1024]).permute([0, 2, 1]).contiguous();
                    vec![gemm_of_bytes(&inputs[0].reshape([1024, 256, 4]), &b)]
                },
                |inputs| vec![inputs[0].matmul(&inputs[1])],
            )
        },
        pair(
            "cumsum/f32/1024x1024",
            bytes(2 << 20),
            1,
            &[1024, 1024],
            |inputs| vec![prefix_sums(&inputs[0])],
            |inputs| vec![inputs[0].cumsum(1)],
        ),
        pair(
            "argmax/f32/4096x1024",
            bytes(4 << 20),
            1,
            &[4096, 1024],
            |inputs| vec![argmax(&inputs[0])],
            |inputs| vec![inputs[0].argmax(1)],
        ),
        pair(
            "bodies/f32/4096",
            Measure::Times(1.0),
            4,
            &[4096],
            |inputs| {
                let (x, y, z) = bodies(&inputs[0], &inputs[1], &inputs[2], &inputs[3]);
                vec![x, y, z]
            },
            gravity,
        ),
        pair(
            "softmax/f32/4096x1024",
            bytes(8 << 20),
            1,
            &[4096, 1024],
            |inputs| vec![softmax(&inputs[0])],
            |inputs| vec![inputs[0].softmax(-1)],
        ),
    ]
}
