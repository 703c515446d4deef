//! Joined tensors: in place or by choosing, whatever the parts are and whoever reads them.

use crate::support::on_each_device;
use proptest::prelude::*;
use tinyspec_core::{Error, Program, Tensor, grad, realize_all, stepped};
use tinyspec_ir::DType;

/// How a part comes about from numbers.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Data,
    Computed,
    Summed,
    /// A slice of something larger.
    Slice,
    /// The part before, if it has the same length.
    Again,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Data), Just(Kind::Computed), Just(Kind::Summed), Just(Kind::Slice), Just(Kind::Again)]
}

/// Small whole numbers, which every dtype holds.
fn numbers(seed: usize, count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7 + seed * 13) % 11) as f64).collect()
}

fn tensor(data: &[f64], dims: &[usize], dtype: DType) -> Tensor {
    Tensor::from_slice(data, dims).cast(dtype)
}

/// A part and its elements.
fn part(kind: Kind, seed: usize, dims: [usize; 3], dtype: DType) -> (Tensor, Vec<f64>) {
    let count = dims.iter().product();
    let data = numbers(seed, count);
    match kind {
        Kind::Data | Kind::Again => (tensor(&data, &dims, dtype), data),
        Kind::Computed => {
            let doubled = data.iter().map(|x| 2.0 * x + 1.0).collect();
            (tensor(&data, &dims, dtype) * 2 + 1, doubled)
        }
        Kind::Summed => {
            let wide = numbers(seed, 3 * count);
            let sums = wide.chunks(3).map(|terms| terms.iter().sum()).collect();
            let [a, b, c] = dims;
            (tensor(&wide, &[a, b, c, 3], dtype).sum(3, false).cast(dtype), sums)
        }
        Kind::Slice => {
            let [a, b, c] = dims;
            let wide = numbers(seed, a * (b + 2) * c);
            let row = (b + 2) * c;
            let inner = (0..a).flat_map(|at| wide[at * row + c..][..b * c].to_vec()).collect();
            (tensor(&wide, &[a, b + 2, c], dtype).narrow(1, 1, b as i64), inner)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 10 } else { 40 }))]

    #[test]
    fn parts_lie_beside_each_other(
        outer in 1..4usize,
        inner in 1..40usize,
        parts in prop::collection::vec((kind(), 1..70usize), 1..12),
        dtype in prop::sample::select(vec![DType::F32, DType::F64, DType::I32, DType::U8, DType::I64]),
    ) {
        on_each_device(|| {
            let mut made: Vec<(Tensor, Vec<f64>, usize)> = Vec::new();
            for (number, &(kind, length)) in parts.iter().enumerate() {
                let again = made.last().filter(|last| matches!(kind, Kind::Again) && last.2 == length).cloned();
                made.push(again.unwrap_or_else(|| {
                    let (tensor, data) = part(kind, number, [outer, length, inner], dtype);
                    (tensor, data, length)
                }));
            }
            let rows = |at: usize| made.iter().flat_map(move |(_, data, length)| &data[at * length * inner..][..length * inner]);
            let want: Vec<f64> = (0..outer).flat_map(rows).copied().collect();
            let tensors: Vec<&Tensor> = made.iter().map(|part| &part.0).collect();
            let joined = Tensor::cat(&tensors, 1);
            let read = |tensor: &Tensor| tensor.cast(DType::F64).to_vec::<f64>();
            assert_eq!(read(&joined)?, want, "alone");
            // With others that read a part and the whole.
            let joined = Tensor::cat(&tensors, 1);
            let (first, more, sums) = (tensors[0] + 1, &joined + 1, joined.cast(DType::F64).sum(1, false));
            realize_all(&[&joined, &first, &more, &sums])?;
            assert_eq!(read(&joined)?, want, "with readers");
            assert_eq!(read(&first)?, made[0].1.iter().map(|x| x + 1.0).collect::<Vec<_>>(), "the first part");
            assert_eq!(read(&more)?, want.iter().map(|x| x + 1.0).collect::<Vec<_>>(), "what is made of it");
            let total: f64 = want.iter().sum();
            assert_eq!(sums.to_vec::<f64>()?.iter().sum::<f64>(), total, "sums");
            Ok(())
        });
    }

    /// In any order, again, or only partly.
    #[test]
    fn a_tensor_is_filled_part_by_part(
        axis in 0..3usize,
        others in (1..4usize, 1..40usize),
        lengths in prop_oneof![prop::collection::vec(1..1usize + 1, 1..50), prop::collection::vec(1..60usize, 1..12)],
        kinds in prop::collection::vec(kind(), 50),
        order in prop::collection::vec(0..1000usize, 50),
        extra in prop::option::of((0..100usize, 1..30usize)),
        leaves_one in prop::bool::weighted(0.2),
        dtype in prop::sample::select(vec![DType::F32, DType::BF16, DType::F64, DType::I32, DType::U8]),
    ) {
        on_each_device(|| {
            let whole: usize = lengths.iter().sum();
            let mut dims = [others.0, others.0, others.1];
            dims[axis] = whole;
            let mut windows: Vec<(usize, usize)> = Vec::new();
            for &length in &lengths {
                windows.push((windows.last().map_or(0, |&(start, length)| start + length), length));
            }
            let mut ranks: Vec<usize> = (0..windows.len()).collect();
            ranks.sort_by_key(|&window| order[window]);
            windows = ranks.into_iter().map(|window| windows[window]).collect();
            if leaves_one {
                windows.pop();
            }
            if let Some((start, length)) = extra {
                windows.push((start % whole, length.min(whole - start % whole)));
            }
            let data = numbers(99, dims.iter().product());
            let (mut filled, mut want) = (tensor(&data, &dims, dtype), data);
            for (number, &(start, length)) in windows.iter().enumerate() {
                let kind = if let Kind::Again = kinds[number % 50] { Kind::Data } else { kinds[number % 50] };
                let mut sizes = dims;
                sizes[axis] = length;
                let (value, data) = part(kind, number, sizes, dtype);
                let (start_of, end) = (start as i64, (start + length) as i64);
                match axis {
                    0 if length == 1 => filled.set(start_of, value.reshape([sizes[1], sizes[2]])),
                    0 => filled.set(start_of..end, value),
                    1 => filled.set((.., start_of..end), value),
                    _ => filled.set((.., .., start_of..end), value),
                }
                for (at, value) in data.iter().enumerate() {
                    let mut place = [at / (sizes[1] * sizes[2]), at / sizes[2] % sizes[1], at % sizes[2]];
                    place[axis] += start;
                    want[(place[0] * dims[1] + place[1]) * dims[2] + place[2]] = *value;
                }
            }
            let (more, half) = (&filled + 1, filled.narrow(axis as i64, 0, (whole as i64 + 1) / 2).cast(DType::F64).sum(.., false));
            assert_eq!((more - 1).cast(DType::F64).to_vec::<f64>()?, want.clone());
            let rows = |at: usize| at / dims[axis + 1..].iter().product::<usize>() % whole < whole.div_ceil(2);
            let first: f64 = want.iter().enumerate().filter(|&(at, _)| rows(at)).map(|(_, x)| x).sum();
            assert_eq!(half.item::<f64>()?, first);
            assert_eq!(filled.cast(DType::F64).to_vec::<f64>()?, want);
            Ok(())
        });
    }

    #[test]
    fn gradients_are_those_of_the_parts(lengths in prop::collection::vec(20..90usize, 2..12), axis in 0..2i64) {
        on_each_device(|| {
            let dims = |length: usize| if axis == 0 { [length, 36] } else { [36, length] };
            let parts: Vec<Tensor> =
                lengths.iter().enumerate().map(|(seed, &length)| tensor(&numbers(seed, 36 * length), &dims(length), DType::F32)).collect();
            let refs: Vec<&Tensor> = parts.iter().collect();
            let loss = Tensor::cat(&refs, axis).square().sum(.., false);
            for (part, slope) in parts.iter().zip(grad(&loss, &refs)?) {
                assert_eq!(slope.to_vec::<f32>()?, (part * 2.0).to_vec::<f32>()?);
            }
            Ok(())
        });
    }
}

/// Windows that look like parts of a whole, but leave what is between them, meet others, or lie on zeros.
#[test]
fn what_is_no_concatenation_stays_what_it_is() {
    on_each_device(|| {
        let row = Tensor::arange(33).cast(DType::F32) + 1.0;
        let mut every_second = Tensor::full([9, 65], 7.0f32);
        for at in 0..9usize {
            every_second.set((at, stepped(.., 2)), &row * at as f32);
        }
        let want: Vec<f32> =
            (0..9 * 65).map(|at| if at % 65 % 2 == 0 { ((at % 65 / 2 + 1) * (at / 65)) as f32 } else { 7.0 }).collect();
        assert_eq!(every_second.to_vec::<f32>()?, want);

        let [a, b, c] = [1i32, 2, 4].map(|number| Tensor::full([2048], number).contiguous());
        let both = a.pad([0], [4096], 0.0) | b.pad([2048], [4096], 0.0) | c.pad([0], [4096], 0.0);
        assert_eq!(both.to_vec::<i32>()?, [vec![5; 2048], vec![2; 2048]].concat());

        let mut behind_room = (&b * 3).pad([2048], [4096], 0.0);
        behind_room.set(..2048i64, &a * 2);
        assert_eq!(behind_room.to_vec::<i32>()?, [vec![2; 2048], vec![6; 2048]].concat());
        let mut bools = b.gt(0).reshape([1, 2048]).pad([1, 0], [2, 2048], 0.0);
        bools.set(0, a.gt(1));
        assert_eq!(bools.cast(DType::I32).to_vec::<i32>()?, [vec![0; 2048], vec![1; 2048]].concat());
        Ok(())
    });
}

/// A small part of a whole costs what it costs.
#[test]
fn parts_of_a_whole_do_not_compute_it() -> Result<(), Error> {
    let rows = |count: i64| Tensor::ones([count, 96]).contiguous();
    let tensors: Vec<Tensor> = (0..9).map(|part| rows(200 + part)).collect();
    let refs: Vec<&Tensor> = tensors.iter().collect();
    let result = (Tensor::cat(&refs, 0) + 1.0).at(190..230).sum(1, false);
    for tensor in &tensors {
        tensor.realize()?;
    }
    let kernels = Program::of(&[&result])?.len();
    assert!(kernels <= 2, "{kernels} kernels for 40 sums of 2 parts of 9");
    Ok(())
}
