//! Sizes within the bounds, drawn at random, against programs of exactly these sizes.

use tinyspec::function::named;
use tinyspec::options::Conv1d;
use tinyspec::prelude::default;
use tinyspec::{DType, Dim, Error, Function, Spec, Tensor, realize_all, stepped, with_default_device};

/// The named dims `N` and `M` of the programs.
const MOST: [i64; 2] = [70, 9];

type Shapes = fn(&[Dim; 2]) -> Vec<Vec<Dim>>;
type Body = fn(&[Tensor]) -> Vec<Tensor>;
/// What sets parts of a tensor, some to another.
type Written = fn(&mut Tensor, &Tensor);

fn fixed(size: i64) -> Dim {
    Dim::from(size)
}

fn size(x: &Tensor, axis: usize) -> Dim {
    x.shape()[axis].clone()
}

/// A name, the shapes of the inputs and the results, over `N` and `M`.
const PROGRAMS: [(&str, Shapes, Body); 45] = [
    ("elementwise", |[n, _]| vec![vec![n.clone()]; 2], |x| vec![x[0].mul(&x[1]).add(3), x[0].maximum(&x[1])]),
    ("sum of all", |[n, _]| vec![vec![n.clone(), fixed(5)]], |x| vec![x[0].sum(.., false)]),
    (
        "sums along both axes",
        |[n, m]| vec![vec![n.clone(), m.clone()]],
        |x| vec![x[0].sum([0], false), x[0].sum([1], true), x[0].max([0], false)],
    ),
    ("softmax along it", |[n, m]| vec![vec![m.clone(), n.clone()]], |x| vec![x[0].softmax(-1)]),
    ("softmax beside it", |[n, _]| vec![vec![n.clone(), fixed(6)]], |x| vec![x[0].softmax(-1)]),
    (
        "mean and variance",
        |[n, _]| vec![vec![fixed(4), n.clone()]],
        |x| {
            let mean = x[0].mean([1], true);
            let centred = x[0].sub(&mean);
            vec![centred.mul(&centred).mean([1], false), centred]
        },
    ),
    (
        "a network",
        |[n, _]| vec![vec![n.clone(), fixed(8)], vec![fixed(8), fixed(16)], vec![fixed(16), fixed(3)]],
        |x| vec![x[0].matmul(&x[1]).relu().matmul(&x[2])],
    ),
    (
        "products over it",
        |[n, m]| vec![vec![m.clone(), n.clone()], vec![n.clone(), fixed(7)]],
        |x| vec![x[0].matmul(&x[1])],
    ),
    (
        "attention",
        |[n, _]| vec![vec![fixed(2), fixed(8)], vec![n.clone(), fixed(8)], vec![n.clone(), fixed(8)]],
        |x| vec![x[0].matmul(x[1].transpose(0, 1)).mul(0.35).softmax(-1).matmul(&x[2])],
    ),
    (
        "diagonals",
        |[n, m]| vec![vec![n.clone(), n.clone()], vec![fixed(2), m + Dim::from(3), m.clone()]],
        |x| vec![x[0].diagonal(0), x[1].diagonal(0), x[1].diagonal(-2)],
    ),
    ("correlations", |[_, m]| vec![vec![m.clone(), fixed(12)]], |x| vec![x[0].corrcoef()]),
    ("transposed", |[n, m]| vec![vec![n.clone(), m.clone()]], |x| vec![x[0].transpose(0, 1).add(1)]),
    (
        "flat and back",
        |[n, m]| vec![vec![n.clone(), m.clone(), fixed(3)]],
        |x| {
            let (n, m) = (size(&x[0], 0), size(&x[0], 1));
            let flat = x[0].reshape([n.clone() * m.clone() * fixed(3)]);
            vec![
                flat.mul(2).reshape([n.clone(), m.clone() * fixed(3)]),
                flat.reshape([n.clone() * m.clone(), fixed(3)]).sum([1], false),
            ]
        },
    ),
    ("flipped", |[n, m]| vec![vec![n.clone(), m.clone()]], |x| vec![x[0].flip([0, 1])]),
    (
        "a prefix",
        |[n, m]| vec![vec![fixed(80), fixed(2)], vec![n.clone()], vec![m.clone()]],
        |x| {
            let (n, m) = (size(&x[1], 0), size(&x[2], 0));
            vec![
                x[0].shrink([fixed(0), fixed(0)], [n.clone(), fixed(2)]).sum([0], false),
                x[0].shrink([m.clone(), fixed(1)], [n.clone(), fixed(1)]).reshape([n.clone()]).add(&x[1]),
            ]
        },
    ),
    (
        "padded",
        |[n, m]| vec![vec![n.clone()], vec![m.clone()]],
        |x| {
            let m = size(&x[1], 0);
            vec![x[0].pad([m.clone()], [size(&x[0], 0) + m * fixed(2)], 0.0).add(1)]
        },
    ),
    (
        "beside each other",
        |[n, m]| vec![vec![n.clone(), fixed(2)], vec![m.clone(), fixed(2)]],
        |x| vec![Tensor::cat(&[&x[0], &x[1]], 0)],
    ),
    (
        "broadcast",
        |[n, m]| vec![vec![n.clone(), fixed(1)], vec![m.clone()]],
        |x| vec![x[0].add(&x[1]), x[0].mul(&x[1]).sum(.., false)],
    ),
    ("cumulative", |[n, m]| vec![vec![m.clone(), n.clone()]], |x| vec![x[0].cumsum(1)]),
    (
        "positions of the greatest",
        |[n, m]| vec![vec![m.clone(), n.clone()]],
        |x| vec![x[0].argmax(1), x[0].argmin(0), x[0].cast(DType::F64).argmax(1)],
    ),
    (
        "in order",
        |[n, m]| vec![vec![m.clone(), n.clone()]],
        |x| {
            let [values, places] = x[0].sort(1, false);
            vec![values, places, x[0].argsort(0, true)]
        },
    ),
    ("the greatest two", |[n, _]| vec![vec![n.clone() + fixed(1)]], |x| x[0].topk(2, 0, true).into()),
    (
        "running",
        |[n, m]| vec![vec![m.clone(), n.clone()]],
        |x| vec![x[0].cummax(1), x[0].div(9).cumprod(1), x[0].flip([1]).cumsum(1).flip([1])],
    ),
    (
        "statistics",
        |[n, m]| vec![vec![m.clone(), n.clone()]],
        |x| vec![x[0].var([1], 0, false), x[0].logsumexp([1], false), x[0].log_softmax(1), x[0].min([1], true)],
    ),
    (
        "at places",
        |[n, m]| vec![vec![n.clone(), fixed(3)], vec![m.clone()]],
        |x| {
            let places = x[1].abs().cast(DType::I32).modulo(2);
            vec![x[0].gather(places.reshape([size(&x[1], 0), fixed(1)]).expand([size(&x[1], 0), fixed(3)]), 0)]
        },
    ),
    (
        "a lower triangle",
        |[n, _]| vec![vec![n.clone(), n.clone()]],
        |x| vec![x[0].tril(0), x[0].triu(1).sum([1], false)],
    ),
    (
        "parts",
        |[n, m]| vec![vec![n.clone(), m.clone()]],
        |x| vec![x[0].at(..1), x[0].at(-1), x[0].at(2..), x[0].at((..-1, 0)), x[0].at((.., -3..))],
    ),
    (
        "every other",
        |[n, m]| vec![vec![n.clone(), m.clone()]],
        |x| {
            let steps = [stepped(.., 2), stepped(.., -1), stepped(1.., 3), stepped(..-1, -2)];
            steps.into_iter().map(|steps| x[0].at(steps)).collect()
        },
    ),
    (
        "parts that are written",
        |[n, m]| vec![vec![n.clone(), m.clone()], vec![m.clone()]],
        |x| {
            let set = |picks: Written| {
                let mut y = x[0].contiguous();
                picks(&mut y, &x[1]);
                y
            };
            vec![
                set(|y, _| y.set(0, 7.0)),
                set(|y, row| y.set(-1, row)),
                set(|y, _| y.set((..2, -2..), -7.0)),
                set(|y, _| y.set(stepped(.., -2), 0.5)),
            ]
        },
    ),
    (
        "turned",
        |[n, m]| vec![vec![n.clone(), m.clone()]],
        |x| vec![x[0].roll([3], [0]), x[0].roll([-1, 2], [0, 1]), x[0].roll([80], [0])],
    ),
    (
        "differences",
        |[n, m]| vec![vec![n.clone(), m.clone()]],
        |x| vec![x[0].diff(1, 0), x[0].trapezoid(0.5, 0), x[0].diff(1, 1)],
    ),
    (
        "order statistics",
        |[n, m]| vec![vec![n.clone(), m.clone()]],
        |x| {
            vec![
                x[0].median(0, false),
                x[0].quantile(0.3, 0, false),
                x[0].quantile(1.0, 1, true),
                x[0].kthvalue(1, 0, false),
            ]
        },
    ),
    (
        "other lengths",
        |[n, _]| vec![vec![fixed(1), fixed(2), n.clone()]],
        |x| {
            let modes = [("nearest", false), ("linear", false), ("linear", true), ("cubic", false)];
            let mut all: Vec<Tensor> = modes.map(|(mode, ends)| x[0].interpolate([13], mode, ends)).into();
            all.extend([x[0].pad_mode([1], [1], "circular"), x[0].pad_mode([2], [3], "replicate")]);
            all
        },
    ),
    (
        "windows with steps",
        |[n, _]| vec![vec![fixed(1), fixed(2), n.clone()], vec![fixed(3), fixed(2), fixed(3)]],
        |x| {
            let wide = x[0].pad([0, 0, 2], [fixed(1), fixed(2), size(&x[0], 2) + fixed(3)], 0.0);
            let options = Conv1d { padding: [1], stride: [2], ..default() };
            vec![x[0].conv1d(&x[1], None, options), wide.unfold(2, 3, 2), wide.unfold(2, 2, 2)]
        },
    ),
    (
        "sums at places",
        |[n, m]| vec![vec![n.clone(), fixed(3)], vec![fixed(40), m.clone()], vec![n.clone()]],
        |x| {
            let rows = x[2].abs().cast(DType::I32).mul(7).modulo(40);
            let index = rows.reshape([size(&x[0], 0), fixed(1)]).expand([size(&x[0], 0), fixed(3)]);
            let columns = x[2].cast(DType::I32).modulo(45);
            vec![
                Tensor::zeros([40, 3]).scatter_add(index, &x[0], 0),
                Tensor::zeros([size(&x[0], 0)]).scatter_add(columns, &x[2], 0),
            ]
        },
    ),
    (
        "equal pieces",
        |[n, m]| vec![vec![n.clone() * fixed(3), m.clone()]],
        |x| {
            let pieces = x[0].chunk(3, 0);
            vec![&pieces[0] + &pieces[2], pieces[1].sum([1], false)]
        },
    ),
    (
        "pieces of a size",
        |[_, m]| vec![vec![m.clone() + fixed(27), fixed(2)]],
        |x| {
            let pieces = x[0].split(18, 0);
            vec![pieces[0].sum([0], false), pieces[1].mul(2)]
        },
    ),
    (
        "as many windows",
        |[n, m]| vec![vec![fixed(1), fixed(2), n.clone()], vec![m.clone() * fixed(5)]],
        |x| {
            let other = x[1].reshape([fixed(1), fixed(1), size(&x[1], 0)]);
            vec![x[0].adaptive_avg_pool1d([4]), x[0].adaptive_max_pool1d([3]), other.adaptive_avg_pool1d([5])]
        },
    ),
    ("positions", |[n, _]| vec![vec![n.clone()]], |x| vec![x[0].add(Tensor::arange(size(&x[0], 0)).cast(DType::F32))]),
    (
        "attention of any width",
        |[n, m]| vec![vec![fixed(2), n.clone(), m.clone()], vec![fixed(2), n.clone(), m.clone()]],
        |x| {
            let y = x[0].mul(0.3);
            vec![y.sdpa(&x[1], &x[0], true), y.sdpa(&x[1], &x[1], false), y.sdpa_mask(&x[1], &x[0], x[1].sum(-1, true))]
        },
    ),
    (
        "norms of any width",
        |[n, m]| vec![vec![n.clone(), m.clone()], vec![m.clone()]],
        |x| {
            vec![
                x[0].layer_norm(&x[1], &x[1], 1, 1e-2),
                x[0].rms_norm(&x[1], 1e-2),
                x[0].batch_norm_train(&x[1], &x[1], 1e-2),
                x[0].normalize(2.0, 1, 1e-2),
                x[0].norm(2.0, 0, false),
            ]
        },
    ),
    (
        "losses over any number of classes",
        |[n, m]| vec![vec![n.clone(), m.clone()], vec![n.clone()]],
        |x| {
            let labels = x[1].abs().imod(size(&x[0], 1), "floor").cast(DType::I32);
            let hot = labels.one_hot(11).sum(1, false).cast(DType::F32);
            vec![
                x[0].cross_entropy(&labels, "mean", 0.1, -100),
                x[0].log_softmax(-1).nll_loss(&labels, "none") * hot,
                x[0].kl_div(x[0].mul(2.0).softmax(-1), "mean", false),
                x[0].mse_loss(x[0].exp(), "mean"),
            ]
        },
    ),
    (
        "moments of any number",
        |[n, m]| vec![vec![n.clone() + fixed(1), m.clone() + fixed(1)]],
        |x| {
            vec![
                x[0].var(.., 1, false),
                x[0].std(0, 0, true),
                x[0].quantile(0.3, 1, false),
                x[0].softmin(0),
                x[0].cov(1),
                x[0].cosine_similarity(x[0].add(1.0), 1, 1e-6),
            ]
        },
    ),
    (
        "products of any sizes",
        |[n, m]| vec![vec![n.clone(), m.clone()], vec![m.clone(), fixed(3)], vec![m.clone()]],
        |x| {
            vec![
                Tensor::einsum("nm,mk->kn", &[&x[0], &x[1]]),
                x[0].linear(&x[1], Tensor::ones([3])),
                x[2].outer(&x[2]),
                x[0].cdist(x[1].transpose(0, 1), 2.0),
                x[0].transpose(0, 1).matmul(&x[0]).tril(0).triu(-1),
            ]
        },
    ),
    (
        "embedding of any width",
        |[n, m]| vec![vec![n.clone(), m.clone()], vec![fixed(5)]],
        |x| {
            let rows = x[1].abs().imod(size(&x[0], 0), "floor").cast(DType::I32);
            let (values, places) = (rows.embedding(&x[0]), x[0].argmax(1));
            vec![values.mean(.., false), places.unsqueeze(1).mul(1), x[0].mean(0, false)]
        },
    ),
];

fn data(shape: &[i64], seed: i64) -> Tensor {
    let count: i64 = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|place| ((place * 7 + seed * 5) % 11 - 5) as f32).collect();
    Tensor::from_slice(&values, shape)
}

fn values(results: &[Tensor]) -> Result<Vec<Vec<f32>>, Error> {
    realize_all(&results.iter().collect::<Vec<_>>())?;
    results.iter().map(|result| result.cast(DType::F32).to_vec::<f32>()).collect()
}

fn agree(name: &str, shapes: Shapes, body: Body, sizes: &[[i64; 2]]) -> Result<(), Error> {
    let dims = [named(0, MOST[0]), named(1, MOST[1])];
    let specs: Vec<Spec> = shapes(&dims).iter().map(|shape| Spec::new(DType::F32, shape.as_slice())).collect();
    let function = Function::trace(&specs, body)?;
    for &[n, m] in sizes {
        let numbers = [Dim::from(n), Dim::from(m)];
        let concrete = shapes(&numbers);
        let inputs: Vec<Tensor> = concrete
            .iter()
            .zip(1..)
            .map(|(shape, seed)| data(&shape.iter().map(|dim| dim.as_const().unwrap_or(0)).collect::<Vec<_>>(), seed))
            .collect();
        let got = function.call(&inputs.iter().collect::<Vec<_>>());
        let want = body(&inputs);
        for (number, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_eq!(got.shape(), want.shape(), "result {number} of {name} at {n}, {m}");
        }
        for (number, (got, want)) in values(&got)?.iter().zip(values(&want)?).enumerate() {
            let far = got.iter().zip(&want).position(|(got, want)| (got - want).abs() > 1e-4 + 1e-4 * want.abs());
            assert_eq!(far, None, "result {number} of {name} at {n}, {m}: {got:?}, not {want:?}");
        }
    }
    Ok(())
}

/// The ends of the ranges, and sizes in between.
fn drawn(count: usize) -> Vec<[i64; 2]> {
    let mut random = fastrand::Rng::with_seed(11);
    let between = (0..count).map(|_| [random.i64(1..=MOST[0]), random.i64(1..=MOST[1])]);
    [[1, 1], MOST, [MOST[0], 1], [16, MOST[1]]].into_iter().chain(between.collect::<Vec<_>>()).collect()
}

#[test]
fn every_size_gives_what_kernels_of_that_size_give() {
    let _alone = crate::alone();
    for device in ["interpreter", "simt", "cpu"] {
        if let Err(error) = tinyspec::device(device) {
            println!("skipped: {error}");
            continue;
        }
        let mut failed = vec![];
        for (name, shapes, body) in PROGRAMS {
            let result = with_default_device(device, || agree(name, shapes, body, &drawn(4)));
            if let Err(error) = result {
                failed.push(format!("{name} on {device}: {error}"));
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}

#[test]
fn slopes_of_running_results_are_those_of_each_size() -> Result<(), Error> {
    let _alone = crate::alone();
    let dims = [named(0, MOST[0]), named(1, MOST[1])];
    let body = |x: &[Tensor]| {
        let x = x[0].mul(0.05).add(1);
        vec![x.cumprod(1), x.cummax(1), x.logcumsumexp(1), x.cumsum(1)]
    };
    let slopes = |x: &Tensor, results: &[Tensor]| {
        let sizes: Vec<i64> = x.sizes()?.iter().map(|&size| size as i64).collect();
        let weighed = results.iter().zip(1..).map(|(result, seed)| (result * data(&sizes, seed)).sum(.., false));
        let losses: Vec<Tensor> = weighed.collect();
        let slopes = losses.iter().map(|loss| Ok(tinyspec::grad(loss, &[x])?.remove(0)));
        values(&slopes.collect::<Result<Vec<_>, Error>>()?)
    };
    for device in ["interpreter", "simt", "cpu"] {
        if let Err(error) = tinyspec::device(device) {
            println!("skipped: {error}");
            continue;
        }
        with_default_device(device, || {
            let function = Function::trace(&[Spec::new(DType::F32, [dims[1].clone(), dims[0].clone()])], body)?;
            for [n, m] in drawn(3) {
                let x = data(&[m, n], 4);
                let (got, want) = (slopes(&x, &function.call(&[&x]))?, slopes(&x, &body(std::slice::from_ref(&x)))?);
                for (number, (got, want)) in got.iter().zip(&want).enumerate() {
                    let far = got.iter().zip(want).position(|(a, b)| {
                        (a - b).abs().partial_cmp(&(1e-3 + 1e-3 * b.abs())).is_none_or(std::cmp::Ordering::is_gt)
                    });
                    assert_eq!(far, None, "slopes of result {number} at {n}, {m}: {got:?}, not {want:?}");
                }
            }
            Ok::<(), Error>(())
        })?;
    }
    Ok(())
}

#[test]
fn a_loop_without_trips_reads_nothing() -> Result<(), Error> {
    let _alone = crate::alone();
    // Of N - 1 elements there may be none, and never more than one: no index shows which loop it is in.
    let n = named(0, 2);
    let rest = |x: &Tensor| x.shrink([fixed(1), fixed(0)], [size(x, 0) - fixed(1), size(x, 1)]);
    let body = |x: &[Tensor]| {
        let rest = rest(&x[0]);
        vec![rest.add(1), rest.sum([0], false), rest.sum(.., false), x[1].add(&rest), rest.exp().max([1], false)]
    };
    let specs = [Spec::new(DType::F32, [n.clone(), fixed(3)]), Spec::new(DType::F32, [3])];
    for device in ["interpreter", "simt", "cpu"] {
        if let Err(error) = tinyspec::device(device) {
            println!("skipped: {error}");
            continue;
        }
        with_default_device(device, || {
            let function = Function::trace(&specs, body)?;
            for rows in [1, 2] {
                let inputs = [data(&[rows, 3], 1), data(&[3], 2)];
                let got = values(&function.call(&inputs.iter().collect::<Vec<_>>()))?;
                assert_eq!(got, values(&body(&inputs))?, "{rows} rows on {device}");
            }
            Ok::<(), Error>(())
        })?;
    }
    Ok(())
}
