//! The specification's compositions, written as there, in whatever way the ones of its arange are spelled.

mod bands;
mod reshapes;
mod running;
mod searches;
mod vectors;
mod writes;

use crate::support::on_each_shape;
use proptest::prelude::*;
use tinyspec_core::execute::{default_device, with_default_device};
use tinyspec_core::{Error, Program, Tensor, grad};
use tinyspec_ir::instructions::is_otherwise;
use tinyspec_ir::{Builder, DType, Op};

fn count(x: &Tensor) -> i64 {
    x.shape()[0].as_const().unwrap()
}

fn prefix_sum(x: &Tensor) -> Tensor {
    windows(x).sum(1, false)
}

fn windows(x: &Tensor) -> Tensor {
    let n = count(x);
    let row = x.pad([n - 1], [2 * n - 1], 0.0).reshape([1, 2 * n - 1]).expand([n + 1, 2 * n - 1]);
    let windows = row.reshape([(n + 1) * (2 * n - 1)]).narrow(0, 0, 2 * n * n).reshape([n, 2 * n]);
    windows.narrow(1, 0, n)
}

/// What `Tensor(1).reshape(1).expand(n)` and the arange made of it may be written as.
type Spelling = (&'static str, fn(i64) -> Tensor, fn(Tensor) -> Tensor);

const SPELLINGS: [Spelling; 22] = [
    ("full of i32", |n| Tensor::full([n], 1i32), |x| x),
    ("scalar", |n| Tensor::scalar(1i32).reshape([1]).expand([n]), |x| x),
    ("scalar of i64", |n| Tensor::scalar(1i64).reshape([1]).expand([n]), |x| x),
    ("scalar, cast", |n| Tensor::scalar(1u8).cast(DType::I32).reshape([1]).expand([n]), |x| x),
    ("scalar of u32", |n| Tensor::scalar(1u32).reshape([1]).expand([n]), |x| x),
    ("scalar of f32", |n| Tensor::scalar(1f32).reshape([1]).expand([n]), |x| x),
    ("scalar of bool", |n| Tensor::scalar(true).reshape([1]).expand([n]).cast(DType::I32), |x| x),
    ("cumsum", |n| Tensor::ones([n]), |x| Tensor::ones([count(&x)]).cumsum(0) - 1),
    ("zeros and one", |n| Tensor::zeros([n]) + 1, |x| x),
    ("full of shape ()", |n| Tensor::full((), 1i32).reshape([1]).expand([n]), |x| x),
    ("full of i64", |n| Tensor::full([n], 1i64), |x| x),
    ("full of f32", |n| Tensor::full([n], 1f32), |x| x),
    ("full of f64", |n| Tensor::full_of([n], 1f64, DType::F64), |x| x),
    ("ones, cast", |n| Tensor::ones([n]).cast(DType::I32), |x| x),
    ("ones, twice cast", |n| Tensor::ones([n]).cast(DType::I16).cast(DType::I32), |x| x),
    ("ones, cast later", |n| Tensor::ones([n]), |x| x.cast(DType::I32)),
    ("full of i32, cast to f32", |n| Tensor::full([n], 1i32), |x| x.cast(DType::F32)),
    ("full of i32, there and back", |n| Tensor::full([n], 1i32), |x| x.cast(DType::F32).cast(DType::I32)),
    ("scalar and zeros", |n| Tensor::scalar(1i32) + Tensor::full([n], 0i32), |x| x),
    ("scalars", |n| (Tensor::scalar(3i32) - Tensor::scalar(2i32)).expand([n]), |x| x),
    ("powers of zeros", |n| Tensor::zeros([n]).exp(), |x| x),
    ("a sum of halves", |n| Tensor::full([n], 0.5f32) + 0.5, |x| x),
];

fn arange(n: i64, (_, ones, cast): Spelling) -> Tensor {
    cast(prefix_sum(&ones(n)) - 1)
}

fn gather(x: &Tensor, picks: &Tensor, spelling: Spelling) -> Tensor {
    let n = count(x);
    let mask = arange(n, spelling).reshape([n, 1]).eq(picks.reshape([1, -1])).cast(x.dtype());
    (x.reshape([n, 1]) * mask).sum(0, false)
}

fn scatter_add(x: &Tensor, picks: &Tensor, values: &Tensor, spelling: Spelling) -> Tensor {
    let (n, d) = (count(x), count(picks));
    let mask = arange(n, spelling).reshape([n, 1]).eq(picks.reshape([1, d])).cast(x.dtype());
    x + (mask * values.reshape([1, d])).sum(1, false)
}

/// Instructions that a program executes, a vector's as one and a shuffle as one; of two versions of a loop those of the longer one.
fn steps(results: &[&Tensor]) -> Result<i64, Error> {
    let mut steps = 0;
    for program in Program::of(results)? {
        let graph = program.graph();
        let (mut trips, mut blocks, mut before) = (vec![1], Vec::new(), None);
        let mut last = 0;
        for &node in graph.sources(graph.source(program.root(), 0)) {
            let here = trips[trips.len() - 1];
            let is_second = before.is_some_and(|before| is_otherwise(graph, before, node));
            before = Some(node);
            match graph.op(node) {
                Op::If => blocks.push((steps, is_second.then_some(last))),
                Op::Endif => {
                    let (start, first) = blocks.pop().unwrap_or((steps, None));
                    last = steps - start;
                    steps -= first.map_or(0, |first| last.min(first));
                }
                Op::Range => trips.push(here * graph.as_int(graph.source(node, 0)).map_or(1, |bound| bound as i64)),
                Op::End => drop(trips.pop()),
                // The lanes that a shuffle takes.
                Op::Index if graph.props(graph.source(node, 0)).addrspace.is_none() => {}
                _ => steps += here,
            }
        }
    }
    Ok(steps)
}

#[track_caller]
fn is_linear(results: &[&Tensor], elements: i64, name: &str) -> Result<(), Error> {
    let steps = steps(results)?;
    let device = default_device()?;
    let is_some = (1..100 * elements).contains(&steps);
    assert!(is_some, "{name}: {steps} steps for {elements} elements on {}", device.name());
    Ok(())
}

fn ramp(n: i64) -> Tensor {
    Tensor::arange(n)
}

fn picks(n: i64, d: i64) -> Tensor {
    ((Tensor::arange(d) * 7) % n).contiguous()
}

/// Whatever the ones of the arange are written as, gathers, sums at places and their gradients take some steps an element.
#[test]
fn every_spelling_of_one_takes_a_step_an_element() -> Result<(), Error> {
    on_each_shape(|| {
        let (n, d) = (4000i64, 5000i64);
        for dtype in [DType::I32, DType::F32] {
            let [x, values, picks] = [(ramp(n) * 3).cast(dtype), (ramp(d) - 7).cast(dtype), picks(n, d)];
            let picks = picks.cast(DType::I32);
            for data in [&x, &values, &picks] {
                data.realize()?;
            }
            for spelling in SPELLINGS {
                let name = format!("{dtype}: {}", spelling.0);
                is_linear(&[&arange(n, spelling)], n, &name)?;
                is_linear(&[&gather(&x, &picks, spelling)], n + d, &name)?;
                is_linear(&[&scatter_add(&x, &picks, &values, spelling)], n + d, &name)?;
                if dtype == DType::F32 {
                    let squares = gather(&x, &picks, spelling).square().sum(.., false);
                    is_linear(&[&grad(&squares, &[&x])?[0]], n + d, &name)?;
                }
            }
        }
        Ok(())
    })
}

/// Bools are counted.
#[test]
fn compositions_of_bools_take_a_step_an_element() -> Result<(), Error> {
    on_each_shape(|| {
        let (n, d) = (3000i64, 2000i64);
        let is_chosen = |i: i64| i * i % 7 < 3;
        let [x, values] = [n, d].map(|n| (ramp(n) * ramp(n) % 7).lt(3).contiguous());
        let picks = picks(n, d);
        let sum = prefix_sum(&x);
        let places = |spelling| (gather(&x, &picks, spelling), scatter_add(&x, &picks, &values, spelling));
        let (picked, added) = places(SPELLINGS[0]);
        for (name, result) in [("prefix sum", &sum), ("gather", &picked), ("scatter-add", &added)] {
            is_linear(&[result], n + d, name)?;
        }
        let count = |at: i64| (0..=at).filter(|&i| is_chosen(i)).count() as i32;
        assert_eq!(sum.to_vec::<i32>()?, (0..n).map(count).collect::<Vec<_>>());
        let places: Vec<i64> = (0..d).map(|i| i * 7 % n).collect();
        assert_eq!(picked.to_vec::<i32>()?, places.iter().map(|&at| is_chosen(at) as i32).collect::<Vec<_>>());
        let mut wanted: Vec<i32> = (0..n).map(|at| is_chosen(at) as i32).collect();
        places.iter().zip(0..).for_each(|(&at, i)| wanted[at as usize] += is_chosen(i) as i32);
        assert_eq!(added.to_vec::<i32>()?, wanted);
        Ok(())
    })
}

/// What a user may write, and its name.
type MaskSpelling = (&'static str, fn(&Tensor, &Tensor) -> Tensor);

/// A mask of n rows and d columns, of positions and of what is picked.
const MASKS: [MaskSpelling; 22] = [
    ("eq", |ramp, picks| ramp.eq(picks).cast(DType::F32)),
    ("eq, turned", |ramp, picks| picks.eq(ramp).cast(DType::F32)),
    ("ne, not", |ramp, picks| ramp.ne(picks).not().cast(DType::F32)),
    ("chosen", |ramp, picks| ramp.ne(picks).where_(0f32, 1f32)),
    ("not below, not above", |ramp, picks| (ramp.le(picks) & ramp.ge(picks)).cast(DType::F32)),
    ("a difference", |ramp, picks| (ramp - picks).eq(0).cast(DType::F32)),
    ("an integer", |ramp, picks| ramp.eq(picks).cast(DType::I32)),
    ("floats", |ramp, picks| ramp.cast(DType::F32).eq(picks.cast(DType::F32)).cast(DType::F32)),
    ("one_hot", |ramp, picks| {
        picks.reshape([-1]).one_hot(ramp.shape()[0].as_const().unwrap_or(0)).transpose(0, 1).cast(DType::F32)
    }),
    ("one less", |ramp, picks| 1.0 - ramp.ne(picks).cast(DType::F32)),
    ("one less, of integers", |ramp, picks| (1 - ramp.ne(picks).cast(DType::I32)).cast(DType::F32)),
    ("one less, turned", |ramp, picks| 1.0 - picks.ne(ramp).transpose(0, 1).cast(DType::F32).transpose(0, 1)),
    ("one less, not 0", |ramp, picks| (1.0 - ramp.ne(picks).cast(DType::F32)).ne(0.0).cast(DType::F32)),
    ("a product", |ramp, picks| ramp.le(picks).cast(DType::F32) * ramp.ge(picks).cast(DType::F32)),
    ("a product of two less than one", |ramp, picks| {
        (1.0 - ramp.lt(picks).cast(DType::F32)) * (1.0 - ramp.gt(picks).cast(DType::F32))
    }),
    ("itself twice", |ramp, picks| ramp.eq(picks).cast(DType::F32) * ramp.eq(picks).cast(DType::F32)),
    ("scaled", |ramp, picks| ramp.eq(picks).cast(DType::F32) * 2.0),
    ("scaled below 0", |ramp, picks| ramp.eq(picks).cast(DType::F32) * -0.5),
    ("scaled integers", |ramp, picks| ramp.eq(picks).cast(DType::I32) * -3),
    ("chosen in a choice", |ramp, picks| ramp.lt(picks).where_(0f32, ramp.gt(picks).where_(0f32, 1f32))),
    ("stretched", |ramp, picks| (ramp * 2).eq(picks).cast(DType::F32)),
    ("stretched and moved", |ramp, picks| (ramp * -3 + 1).eq(picks - 200).cast(DType::F32)),
];

/// However a mask is written and used, rows are read and added to: one step an element.
#[test]
fn every_use_of_a_mask_takes_a_step_an_element() -> Result<(), Error> {
    on_each_shape(|| {
        let (n, d) = (4000i64, 5000i64);
        let (x, values, picks) = (ramp(n).cast(DType::F32), ramp(d).cast(DType::F32), picks(n, d));
        let (table, rows) =
            (ramp(n * 4).cast(DType::F32).reshape([n, 4]), ramp(d * 4).cast(DType::F32).reshape([d, 4]));
        for data in [&x, &values, &picks, &table, &rows] {
            data.realize()?;
        }
        for (name, mask) in MASKS {
            let mask = || mask(&ramp(n).reshape([n, 1]), &picks.reshape([1, d]));
            let (row, column) = (picks.reshape([1, d]), ramp(n).reshape([n, 1]));
            let nested = |x: &Tensor| column.lt(&row).where_(0.0, column.gt(&row).where_(0.0, x)).sum(0, false);
            let read = [
                (x.reshape([n, 1]) * mask()).sum(0, false),
                (mask() * x.reshape([n, 1])).sum(0, true),
                x.matmul(mask()),
                mask().transpose(0, 1).matmul(&x),
                (table.reshape([n, 1, 4]) * mask().reshape([n, d, 1])).sum(0, false),
                mask().transpose(0, 1).matmul(&table),
                mask().sum(0, false),
                nested(&x.reshape([n, 1])),
            ];
            let added = [
                (mask() * values.reshape([1, d])).sum(1, false),
                mask().matmul(&values),
                mask().matmul(&rows),
                mask().sum(1, false),
            ];
            for (number, result) in read.iter().chain(&added).enumerate() {
                is_linear(&[result], 4 * (n + d), &format!("{name}, {number}"))?;
            }
            for (result, data) in [
                (&read[0], &x),
                (&read[7], &x),
                (&read[2], &x),
                (&read[5], &table),
                (&added[0], &values),
                (&added[2], &rows),
            ] {
                let slopes = grad(&result.square().sum(.., false), &[data])?;
                is_linear(&[&slopes[0]], 4 * (n + d), &format!("gradient of {name}"))?;
            }
        }
        Ok(())
    })
}

/// Infinities and nans among what a scaled mask, or one of several factors, leaves out are ones times 0.
#[test]
fn gathers_by_masks_of_several_parts_are_those_of_products() -> Result<(), Error> {
    let (n, picks) = (50i64, (0..40).map(|k| k * 7 % 50).collect::<Vec<i32>>());
    for special in SPECIAL {
        let mut numbers: Vec<f32> = (0..n).map(|k| (k % 5) as f32 - 2.0).collect();
        numbers[7] = special;
        let x = Tensor::from_slice(&numbers, [n, 1]);
        let [row, column] = [Tensor::from_slice(&picks, [1, 40]), ramp(n).reshape([n, 1])];
        for (name, mask) in &MASKS[9..] {
            let found = (&x * mask(&column, &row)).sum(0, false).to_vec::<f32>()?;
            let factors = mask(&column, &row).contiguous().cast(DType::F32).to_vec::<f32>()?;
            let product = |pick: usize| (0..n as usize).map(|k| numbers[k] * factors[k * 40 + pick]).sum::<f32>();
            let expected: Vec<f32> = (0..40).map(product).collect();
            assert!(same(&found, &expected), "{name}, {special}: {found:?} instead of {expected:?}");
        }
        let (below, above) = (column.lt(&row), column.gt(&row));
        let nested = below.where_(0.0, above.where_(0.0, &x)).sum(0, false).to_vec::<f32>()?;
        let expected: Vec<f32> = picks.iter().map(|&pick| numbers[pick as usize]).collect();
        assert!(same(&nested, &expected), "{special}: {nested:?} instead of {expected:?}");
    }
    Ok(())
}

/// A float that is not a whole number is not a position.
#[test]
fn floats_pick_where_they_are_whole() -> Result<(), Error> {
    let n = 40i64;
    let x = Tensor::from_vec((0..n as i32).map(|k| k + 100).collect::<Vec<_>>(), [n]);
    let picks = [3.0f32, 3.5, -0.0, 39.0, 40.0, -1.0, f32::NAN, f32::INFINITY, 1e30, 7.0];
    let mask = ramp(n).cast(DType::F32).reshape([n, 1]).eq(Tensor::from_slice(&picks, [1, picks.len()]));
    let found = (x.reshape([n, 1]) * mask.cast(DType::I32)).sum(0, false);
    assert_eq!(found.to_vec::<i32>()?, [103, 0, 100, 139, 0, 0, 0, 0, 0, 107]);
    assert_eq!(mask.cast(DType::I32).sum(1, false).to_vec::<i32>()?.iter().sum::<i32>(), 4);
    Ok(())
}

/// What a program wrote for a number is that of the tensor it wrote, of which there may be several.
#[test]
fn sums_of_scalars_are_those_of_their_values() -> Result<(), Error> {
    let ramp = |step: i32| prefix_sum(&Tensor::scalar(step).reshape([1]).expand([4])).to_vec::<i32>();
    assert_eq!((ramp(1)?, ramp(2)?, ramp(-3)?), (vec![1, 2, 3, 4], vec![2, 4, 6, 8], vec![-3, -6, -9, -12]));
    let (mut state, two) = (Tensor::scalar(5i32), Tensor::scalar(2i32));
    let before = state.clone();
    state.assign(&(&before * &two));
    let sum = |x: &Tensor| x.expand([3]).sum(.., false).item::<i32>();
    assert_eq!((sum(&state)?, sum(&before)?, sum(&two)?), (30, 15, 6));
    state.assign(&(&state + &two));
    assert_eq!((sum(&state)?, sum(&Tensor::scalar(-1i8).cast(DType::I32))?), (36, -3));
    assert_eq!(Tensor::scalar(u64::MAX).expand([2]).sum(.., false).item::<u64>()?, u64::MAX - 1);
    Ok(())
}

/// Counts of a small float end where it has no more whole numbers, and wrap in small integers: such a ramp is not a position.
#[test]
fn ramps_that_their_dtype_does_not_hold_are_what_it_makes_of_them() -> Result<(), Error> {
    let n = 300i64;
    let picks = Tensor::from_slice(&[0i32, 43, 44, 254, 255, 256, 257, 258, 299, 300, -1], [11]);
    for dtype in [DType::F16, DType::BF16, DType::U8, DType::I8] {
        let found = |device: &str| {
            with_default_device::<_, Error>(device, || {
                let picks = picks.to_vec::<i32>()?;
                let picks = Tensor::from_slice(&picks, [11]);
                let ramp = prefix_sum(&Tensor::ones([n]).cast(dtype)) - 1;
                let values = Tensor::from_vec((0..n as i32).collect::<Vec<_>>(), [n]);
                let mask = ramp.cast(DType::I32).reshape([n, 1]).eq(picks.reshape([1, 11]));
                let float = ramp.cast(DType::F32).reshape([n, 1]).eq(picks.reshape([1, 11]));
                let picked = |mask: Tensor| (values.reshape([n, 1]) * mask.cast(DType::I32)).sum(0, false);
                Ok((
                    ramp.cast(DType::F32).to_vec::<f32>()?,
                    picked(mask).to_vec::<i32>()?,
                    picked(float).to_vec::<i32>()?,
                ))
            })
        };
        let (ramp, whole, float) = found("cpu")?;
        let picks = picks.to_vec::<i32>()?;
        let chosen = |pick: &i32| (0..n as i32).filter(|&k| ramp[k as usize] == *pick as f32).sum::<i32>();
        let expected: Vec<i32> = picks.iter().map(chosen).collect();
        assert_eq!((&whole, &float), (&expected, &expected), "{dtype}");
        assert_eq!(found("interpreter")?, (ramp, whole, float), "{dtype}");
    }
    Ok(())
}

/// Whole numbers that f32 rounds to another one are still no position, and beyond them they are.
#[test]
fn picks_are_compared_as_floats_where_that_is_written() -> Result<(), Error> {
    let n = 100i64;
    let picks = [5i32, (1 << 24) + 1, i32::MAX, i32::MIN, -1, 99, 100];
    let x = Tensor::from_vec((0..n as i32).map(|k| k + 1000).collect::<Vec<_>>(), [n]);
    let near = arange(n, SPELLINGS[6]);
    let found = |ramp: &Tensor, picks: &[i32]| {
        let picks = Tensor::from_slice(picks, [1, picks.len()]);
        (x.reshape([n, 1]) * ramp.reshape([n, 1]).eq(picks.cast(DType::F32)).cast(DType::I32))
            .sum(0, false)
            .to_vec::<i32>()
    };
    assert_eq!(found(&near, &picks)?, [1005, 0, 0, 0, 0, 1099, 0]);
    // 2^24 + 1 is rounded down, 2^24 + 3 up.
    let far = &near + (16_777_216.0 - 50.0);
    let picks = [(1 << 24) - 50, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 24) + 2, (1 << 24) + 3];
    let ramp = far.to_vec::<f32>()?;
    let chosen =
        |&pick: &i32| (0..n as usize).filter(|&k| ramp[k] == pick as f32).map(|k| k as i32 + 1000).sum::<i32>();
    assert_eq!(found(&far, &picks)?, picks.iter().map(chosen).collect::<Vec<_>>());
    Ok(())
}

const SPECIAL: [f32; 8] = [1.0, -2.0, 0.0, -0.0, 3.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];

/// The products and sums that the specification writes; a zero's sign is lost in a sum.
fn products(masks: impl Iterator<Item = bool>, values: &[f32]) -> f32 {
    masks.zip(values).map(|(mask, value)| f32::from(u8::from(mask)) * value).sum::<f32>() + 0.0
}

fn same(found: &[f32], expected: &[f32]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nan and infinities, too, do what their products with 0 and 1 say.
    #[test]
    fn gathers_and_sums_at_places_as_written(
        (n, d) in (1i64..90, 1i64..90),
        spelling in 0..SPELLINGS.len(),
        seed in prop::collection::vec((0usize..1000, 0usize..1000), 90),
        specials in 0usize..4,
        is_float in any::<bool>(),
        device in prop::sample::select(vec!["cpu", "interpreter"]),
    ) {
        let spelling = SPELLINGS[spelling];
        // Few of them are not finite, so that one alone shows.
        let number = |(a, b): (usize, usize)| match (is_float, b < 15 * specials) {
            (true, true) => SPECIAL[5 + a % 3],
            (true, false) => SPECIAL[a % 5],
            (false, _) => a as f32 - 500.0,
        };
        let picks: Vec<i32> = seed[..d as usize].iter().map(|(a, _)| *a as i32 % (n as i32 + 4) - 2).collect();
        let x: Vec<f32> = seed[..n as usize].iter().map(|&pair| number(pair)).collect();
        let values: Vec<f32> = seed[..d as usize].iter().rev().map(|&(a, b)| number((b, a))).collect();
        let dtype = if is_float { DType::F32 } else { DType::I32 };
        let found = with_default_device::<_, Error>(device, || {
            let (x, values) = (Tensor::from_slice(&x, [n]).cast(dtype), Tensor::from_slice(&values, [d]).cast(dtype));
            let picks = Tensor::from_slice(&picks, [d]);
            let (picked, added) = (gather(&x, &picks, spelling), scatter_add(&x, &picks, &values, spelling));
            Ok((picked.cast(DType::F32).to_vec::<f32>()?, added.cast(DType::F32).to_vec::<f32>()?))
        }).unwrap();
        let picked: Vec<f32> = picks.iter().map(|&pick| products((0..n as i32).map(|k| k == pick), &x)).collect();
        let added: Vec<f32> =
            (0..n as i32).map(|k| x[k as usize] + products(picks.iter().map(|&pick| pick == k), &values)).collect();
        prop_assert!(same(&found.0, &picked), "{}: {:?} instead of {picked:?}", spelling.0, found.0);
        prop_assert!(same(&found.1, &added), "{}: {:?} instead of {added:?}", spelling.0, found.1);
    }
}

/// A number times a mask may be infinite before another mask leaves it out.
#[test]
fn numbers_beyond_a_float_are_left_out_as_written() -> Result<(), Error> {
    let n = 50i64;
    let x = Tensor::full([n, 1], 1e30f32).contiguous();
    let (column, row) = (ramp(n).reshape([n, 1]), picks(n, 40).reshape([1, 40]));
    let (all, one) = (column.ge(0).cast(DType::F32) + 0.0, column.eq(&row).cast(DType::F32));
    let cases = [
        (&x * (&all * 1e30) * &one, f32::NAN),
        (&x * &all * (&one * 1e30), f32::INFINITY),
        (&x * (&all * 1e30 * &one * 1e-30), 1e30 * (1e30 * 1e-30)),
    ];
    for (number, (terms, expected)) in cases.iter().enumerate() {
        let found = terms.sum(0, false).to_vec::<f32>()?;
        assert!(same(&found, &[*expected; 40]), "{number}: {found:?}");
    }
    Ok(())
}

/// The sum of a ramp counts pairs: the number of its inner terms is not the same for all outer ones.
#[test]
fn sums_of_ramps_count_triangles() -> Result<(), Error> {
    for device in ["cpu", "interpreter"] {
        for n in [1i64, 2, 5, 16, 64, 129] {
            with_default_device::<_, Error>(device, || {
                let cases = [
                    ((Tensor::arange(n) + 1i32).sum(.., false), n * (n + 1) / 2),
                    ((Tensor::arange(n) - (-1i32)).sum(.., false), n * (n + 1) / 2),
                    (Tensor::arange(n).sum(.., false), n * (n - 1) / 2),
                    ((ramp(n).unsqueeze(1) + Tensor::arange(n) + 1i32).sum(.., false), n * n * n),
                ];
                for (number, (sum, expected)) in cases.into_iter().enumerate() {
                    assert_eq!(sum.cast(DType::I64).item::<i64>()?, expected, "case {number} of {n} on {device}");
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}
