//! What memory bounds: maps, reductions, normalisations, products of a matrix and a vector, an optimiser's update.

use tinyspec::Tensor;
use tinyspec_benches::limits::{LARGE, Resource};

use crate::kernels::Workload;

type Body = fn(&[Tensor]) -> Vec<Tensor>;

/// Reads as many elements as it writes.
fn map(name: &str, elements: usize, inputs: &[&[usize]], body: Body) -> Workload {
    Workload::bytes(name, 2 * elements, Resource::Copy(elements), inputs, body)
}

/// Reads, and writes next to nothing.
fn reduction(name: &str, elements: usize, inputs: &[&[usize]], body: Body) -> Workload {
    Workload::bytes(name, elements, Resource::Read(elements), inputs, body)
}

/// Every workload whose pace memory sets, or an exponential an element.
pub fn workloads() -> Vec<Workload> {
    [maps(), reductions(), normalisations(), vector_products()].into_iter().flatten().collect()
}

fn maps() -> Vec<Workload> {
    let side = 4096;
    let adam = Workload::bytes(
        "adam/f32/16M",
        // The weight, its gradient and two memories; three of them are written.
        7 * LARGE,
        Resource::Copy(LARGE),
        &[&[LARGE] as &[usize]; 4],
        |inputs| {
            let [weight, gradient, mean, variance] = inputs else { unreachable!("as many as the shapes") };
            let mean = mean * 0.9 + gradient * 0.1;
            let variance = variance * 0.999 + gradient * gradient * 0.001;
            let scale = (&variance / 0.5).sqrt() + 1e-8;
            let next = weight - (&mean / 0.5) * 1e-3 / scale;
            vec![next, mean, variance]
        },
    );
    vec![
        map("chain/f32/16M", LARGE, &[&[LARGE]], |inputs| {
            vec![((&inputs[0] * 2.0 + 1.0).relu() * &inputs[0] - 0.5).abs()]
        }),
        map("add/f32/4096x4096/row", side * side, &[&[side, side], &[side]], |inputs| vec![&inputs[0] + &inputs[1]]),
        map("gelu/f32/16M", LARGE, &[&[LARGE]], |inputs| vec![inputs[0].gelu()]),
        map("transpose/f32/4096x4096", side * side, &[&[side, side]], |inputs| {
            vec![inputs[0].transpose(0, 1).contiguous()]
        }),
        adam,
    ]
}

fn reductions() -> Vec<Workload> {
    let side = 4096;
    vec![
        reduction("sum/f32/16M", LARGE, &[&[LARGE]], |inputs| vec![inputs[0].sum(.., false)]),
        reduction("sum/f32/4096x4096/rows", side * side, &[&[side, side]], |inputs| vec![inputs[0].sum(1, false)]),
        reduction("sum/f32/4096x4096/columns", side * side, &[&[side, side]], |inputs| vec![inputs[0].sum(0, false)]),
        reduction("meanvar/f32/16M", LARGE, &[&[LARGE]], |inputs| {
            vec![inputs[0].mean(.., false), inputs[0].var(.., 1, false)]
        }),
        reduction("meanvar/f32/4096x4096/rows", side * side, &[&[side, side]], |inputs| {
            vec![inputs[0].mean(1, false), inputs[0].var(1, 1, false)]
        }),
        reduction("argmax/f32/16M", LARGE, &[&[LARGE]], |inputs| vec![inputs[0].argmax(0)]),
        reduction("argmax/f32/4096x4096/rows", side * side, &[&[side, side]], |inputs| vec![inputs[0].argmax(1)]),
    ]
}

fn normalisations() -> Vec<Workload> {
    let (rows, wide, narrow) = (4096, 1024, 768);
    let softmax = map("softmax/f32/4096x1024", rows * wide, &[&[rows, wide]], |inputs| vec![inputs[0].softmax(-1)]);
    vec![
        Workload { exponentials: rows * wide, ..softmax },
        map("layernorm/f32/4096x768", rows * narrow, &[&[rows, narrow], &[narrow], &[narrow]], |inputs| {
            vec![inputs[0].layer_norm(&inputs[1], &inputs[2], 1, 1e-5)]
        }),
    ]
}

/// Every weight is read once, by one vector or a few.
fn vector_products() -> Vec<Workload> {
    let (width, hidden, words) = (768, 3072, 50257);
    let across = |name: &str, inner: usize, outer: usize| {
        reduction(name, inner * outer, &[&[1, inner], &[inner, outer]], |inputs| vec![inputs[0].matmul(&inputs[1])])
    };
    let along = |name: &str, inner: usize, outer: usize| {
        reduction(name, inner * outer, &[&[1, inner], &[outer, inner]], |inputs| {
            vec![inputs[0].matmul(inputs[1].transpose(0, 1))]
        })
    };
    let few = |name: &str, rows: usize, is_turned: bool| {
        let weights = if is_turned { [hidden, width] } else { [width, hidden] };
        let body: Body = match is_turned {
            true => |inputs| vec![inputs[0].matmul(inputs[1].transpose(0, 1))],
            false => |inputs| vec![inputs[0].matmul(&inputs[1])],
        };
        let product = reduction(name, width * hidden, &[&[rows, width], &weights], body);
        Workload { multiply_adds: rows * width * hidden, ..product }
    };
    vec![
        across("gemv/f32/768x3072", width, hidden),
        along("gemv/f32/768x3072/nt", width, hidden),
        across("gemv/f32/768x50257", width, words),
        along("gemv/f32/768x50257/nt", width, words),
        few("gemv/f32/2x768x3072", 2, false),
        few("gemv/f32/2x768x3072/nt", 2, true),
        few("gemv/f32/4x768x3072", 4, false),
        few("gemv/f32/4x768x3072/nt", 4, true),
    ]
}
