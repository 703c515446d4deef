//! Assignments to tensors and to their parts: values as of a program that copies, memory as of one that does not.

use crate::support::on_each_device;
use proptest::prelude::*;
use std::sync::Arc;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_core::execute::{Device, register, with_default_device};
use tinyspec_core::{Error, IntoPick, Pick, Tensor, grad, realize_all, stepped};

/// A device of the test's own, so that nobody else uses its memory.
fn device(name: &str) -> Arc<Device> {
    let interpreter = tinyspec_core::execute::device("interpreter").unwrap();
    register(name, interpreter.target().clone(), Arc::new(InterpreterCompiler), Arc::new(InterpreterRuntime))
}

/// Large enough that a second state is worth to be avoided.
const ROWS: usize = 17_000;
const BYTES: u64 = 4 * ROWS as u64 * 16;

/// A large state on a device that has no room for two of them.
fn state(device: &Device) -> Tensor {
    let data: Vec<f32> = (0..ROWS * 16).map(|i| (i % 251) as f32).collect();
    let state = Tensor::from_vec(data, [ROWS, 16]).to(device.name());
    state.realize().unwrap();
    device.limit_memory(Some(BYTES * 3 / 2));
    state
}

/// Bytes that kernels move while `work` runs.
fn moved(device: &Device, work: impl FnOnce() -> Result<(), Error>) -> u64 {
    let before = device.moved();
    work().unwrap();
    device.moved() - before
}

#[test]
fn a_part_that_is_set_moves_only_itself() {
    let device = device("parts");
    let mut x = state(&device);
    let row = 16 * 4;
    type Change = Box<dyn Fn(&mut Tensor)>;
    let cases: [(&str, Change, u64); 8] = [
        ("a row", Box::new(|x| x.set(3, 1.0)), row),
        // What is moved to a device is made there first.
        ("the last row", Box::new(|x| x.set(-1, Tensor::full([16], 2.0).to("parts"))), 3 * row),
        ("some rows", Box::new(|x| x.set(10..14, 3.0)), 4 * row),
        ("every tenth row", Box::new(|x| x.set(stepped(5.., 10), 4.0)), 1700 * row),
        ("backwards", Box::new(|x| x.set(stepped(.., -1000), 5.0)), 17 * row),
        ("a block", Box::new(|x| x.set((100..200, 4..6), 6.0)), 100 * 2 * 4),
        // By way of a temporary.
        ("a part of itself", Box::new(|x| x.set(7, x.at(7) * 2.0)), 4 * row),
        // The place, too, is read.
        ("a row that data name", Box::new(|x| x.set(Tensor::from_slice(&[9i32], [1]).to("parts"), 7.0)), row + 4),
    ];
    for (name, set, bytes) in cases {
        let found = moved(&device, || {
            set(&mut x);
            x.realize().map(|_| ())
        });
        assert_eq!(found, bytes, "{name}");
    }
    // Several parts, one after the other: nothing is read, and no second state is there.
    x.set(0, 1.0);
    x.set(1, 2.0);
    let found = moved(&device, || x.realize().map(|_| ()));
    assert!(found <= BYTES, "{found}");
    x.assign(&(&x + 1.0));
    assert_eq!(moved(&device, || x.realize().map(|_| ())), 2 * BYTES);
    device.limit_memory(None);
    let rows = [0, 1, 3, 5, 7, 9, 10, 101, 110, 999].map(|row| x.at((row, 5)).item::<f32>().unwrap());
    let old = |row: usize| ((row * 16 + 5) % 251) as f32;
    assert_eq!(rows, [2.0, 3.0, 2.0, 5.0, old(7) * 2.0 + 1.0, 8.0, 4.0, 7.0, 7.0, 6.0]);
}

#[test]
fn who_saw_the_old_state_keeps_it() {
    let device = device("kept states");
    let mut x = state(&device);
    device.limit_memory(None);
    let wide = |found: u64| assert!(found > BYTES, "{found}");
    // A clone.
    let clone = x.clone();
    x.set(0, -1.0);
    wide(moved(&device, || x.realize().map(|_| ())));
    assert_eq!(clone.at((0, 1)).item::<f32>().unwrap(), 1.0);
    drop(clone);
    // A lazy reader, on its own and of another.
    let reader = x.at(0) * 2.0;
    let further = &reader + 1.0;
    x.set(0, 3.0);
    wide(moved(&device, || x.realize().map(|_| ())));
    drop(reader);
    assert_eq!(further.to_vec::<f32>().unwrap(), [-1.0; 16]);
    drop(further);
    // One that is computed together with the new state reads first.
    let reader = x.at(0) * 2.0;
    x.set(0, 4.0);
    let found = moved(&device, || realize_all(&[&x, &reader]));
    assert_eq!(found, 3 * 16 * 4);
    assert_eq!((reader.to_vec::<f32>().unwrap(), x.at((0, 3)).item::<f32>().unwrap()), (vec![6.0; 16], 4.0));
    // A reader of the new state.
    x.set(1, 5.0);
    let sum = x.at(0..2).sum(.., false);
    let found = moved(&device, || realize_all(&[&sum, &x]));
    assert!(found < 1000, "{found}");
    assert_eq!(sum.item::<f32>().unwrap(), 16.0 * 9.0);
    // One of both: the old state has to live.
    let before = x.at(2).sum(.., false);
    x.set(2, 0.0);
    let both = x.at(2).sum(.., false) + before;
    realize_all(&[&both, &x]).unwrap();
    assert_eq!(both.item::<f32>().unwrap(), (32..48).sum::<i32>() as f32);
}

#[test]
fn what_is_read_elsewhere_needs_a_second_state() {
    on_each_device(|| {
        for n in [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100] {
            let start: Vec<i32> = (0..n).collect();
            let vector = || -> Result<Tensor, Error> { Tensor::from_slice(&start, [n as i64]).realize().cloned() };
            let check = |mut x: Tensor, change: &dyn Fn(&mut Tensor), want: Vec<i32>| {
                change(&mut x);
                assert_eq!(x.to_vec::<i32>().unwrap(), want, "{n}");
            };
            let backwards: Vec<i32> = start.iter().rev().copied().collect();
            check(vector()?, &|x| x.assign(&x.flip([0])), backwards.clone());
            check(vector()?, &|x| x.assign(&(&*x + x.flip([0]))), vec![n - 1; n as usize]);
            check(vector()?, &|x| x.assign(&x.cumsum(0)), start.iter().map(|i| i * (i + 1) / 2).collect());
            check(vector()?, &|x| x.assign(&(&*x - x.max(.., true))), start.iter().map(|i| i - n + 1).collect());
            check(vector()?, &|x| x.set(stepped(.., -1), x.clone()), backwards);
            check(vector()?, &|x| x.set(1.., x.at(..-1)), start.iter().map(|i| (i - 1).max(0)).collect());
            check(vector()?, &|x| *x += 1, start.iter().map(|i| i + 1).collect());
            check(vector()?, &|x| x.assign(&(&*x * 2 + 1)), start.iter().map(|i| i * 2 + 1).collect());
        }
        // Two states that read each other.
        let (mut a, mut b) = (Tensor::from_slice(&[1f32, 2.0], [2]), Tensor::from_slice(&[10f32, 20.0], [2]));
        let (sum, difference) = (&a + &b, &a - &b);
        a.assign(&sum);
        b.assign(&difference);
        drop((sum, difference));
        realize_all(&[&a, &b])?;
        assert_eq!((a.to_vec::<f32>()?, b.to_vec::<f32>()?), (vec![11.0, 22.0], vec![-9.0, -18.0]));
        Ok(())
    });
}

#[test]
fn a_state_is_assigned_from_many_threads() {
    for _ in 0..50 {
        let mut x = Tensor::from_slice(&[1f32; 64], [64]);
        x.realize().unwrap();
        x.set(3..9, 2.0);
        let sums: Vec<f32> = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..4)
                .map(|_| {
                    let x = x.clone();
                    scope.spawn(move || x.to_vec::<f32>().unwrap().iter().sum::<f32>())
                })
                .collect();
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        assert_eq!(sums, [70.0; 4]);
    }
}

#[test]
fn gradients_of_what_an_assigned_state_was_read_for() -> Result<(), Error> {
    let w = Tensor::from_slice(&[2f32, 3.0], [2]);
    let mut x = Tensor::from_slice(&[5f32, 7.0], [2]);
    x.realize()?;
    let loss = (&x * &w).sum(.., false);
    assert_eq!(loss.item::<f32>()?, 31.0);
    x.set(0, 1.0);
    assert_eq!(grad(&loss, &[&w])?[0].to_vec::<f32>()?, [5.0, 7.0]);
    assert_eq!(x.to_vec::<f32>()?, [1.0, 7.0]);
    Ok(())
}

#[test]
fn rows_at_places_that_repeat_are_set_after_a_part() {
    on_each_device(|| {
        let mut want: Vec<i32> = (0..6 * 7 * 5).collect();
        let mut x = Tensor::from_slice(&want, [6, 7, 5]);
        x.set(stepped(.., 3), 0);
        x.set(Tensor::from_slice(&[2i32, 2], [2]), Tensor::from_slice(&[8i32, 9], [2, 1, 1]));
        want[..35].fill(0);
        want[2 * 35..3 * 35].fill(9);
        want[3 * 35..4 * 35].fill(0);
        // Whether a row is written is what its largest place says, which is in memory that row 2 had before row 5.
        assert_eq!(x.to_vec::<i32>()?, want);
        Ok(())
    });
}

/// A part of a vector, a matrix or a cube, and its positions along each axis.
#[derive(Clone, Debug)]
enum Part {
    At(i64),
    Span(Option<i64>, Option<i64>, i64),
}

impl Part {
    fn pick(&self) -> Pick {
        match *self {
            Part::At(position) => position.into_pick(),
            Part::Span(start, stop, step) => {
                let range = match (start, stop) {
                    (Some(start), Some(stop)) => (start..stop).into_pick(),
                    (Some(start), None) => (start..).into_pick(),
                    (None, Some(stop)) => (..stop).into_pick(),
                    (None, None) => (..).into_pick(),
                };
                stepped(range, step)
            }
        }
    }

    /// By the definition of Python's slices.
    fn positions(&self, length: i64) -> Vec<usize> {
        let placed = |end: i64| if end < 0 { end + length } else { end };
        let (start, stop, step) = match *self {
            Part::At(position) => return vec![placed(position) as usize],
            Part::Span(start, stop, step) => (start, stop, step),
        };
        let (least, greatest) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let (from, to) = if step > 0 { (0, length) } else { (length - 1, -1) };
        let mut at = start.map_or(from, |end| placed(end).clamp(least, greatest));
        let stop = stop.map_or(to, |end| placed(end).clamp(least, greatest));
        let mut found = Vec::new();
        while if step > 0 { at < stop } else { at > stop } {
            found.push(at as usize);
            at += step;
        }
        found
    }
}

/// What happens to a state of [`SHAPE`].
#[derive(Clone, Debug)]
enum Event {
    Set(Vec<Part>, i32),
    Double(Vec<Part>),
    Copy(i64, i64),
    Above(i32),
    Places(Vec<i32>),
    Flip(i64),
    Add(i32),
    Keep,
    Read,
    Compute,
}

const SHAPE: [usize; 3] = [6, 7, 5];

fn part(length: i64) -> impl Strategy<Value = Part> {
    let end = || prop::option::of(-length - 2..length + 3);
    let step = prop_oneof![1i64..4, -3i64..0];
    prop_oneof![(-length..length).prop_map(Part::At), (end(), end(), step).prop_map(|(a, b, c)| Part::Span(a, b, c))]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let all = (part(6), part(7), part(5)).prop_map(|(a, b, c)| vec![a, b, c]);
    (all, 0usize..4).prop_map(|(mut parts, count)| {
        parts.truncate(count);
        parts
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (parts(), -50i32..50).prop_map(|(parts, value)| Event::Set(parts, value)),
        2 => parts().prop_map(Event::Double),
        1 => (-6i64..6, -6i64..6).prop_map(|(to, from)| Event::Copy(to, from)),
        1 => (-50i32..50).prop_map(Event::Above),
        1 => prop::collection::vec(-7i32..8, 1..5).prop_map(Event::Places),
        1 => (0i64..3).prop_map(Event::Flip),
        1 => (-9i32..9).prop_map(Event::Add),
        1 => Just(Event::Keep),
        1 => Just(Event::Read),
        3 => Just(Event::Compute),
    ]
}

/// Offsets of a part, row-major.
fn offsets(parts: &[Part]) -> Vec<usize> {
    let all: Vec<Vec<usize>> = (0..3)
        .map(|axis| parts.get(axis).map_or((0..SHAPE[axis]).collect(), |part| part.positions(SHAPE[axis] as i64)))
        .collect();
    let mut found = Vec::new();
    for &i in &all[0] {
        for &j in &all[1] {
            found.extend(all[2].iter().map(|&k| (i * SHAPE[1] + j) * SHAPE[2] + k));
        }
    }
    found
}

fn picks(parts: &[Part]) -> Vec<Pick> {
    parts.iter().map(Part::pick).collect()
}

/// Runs the events on a tensor and on a plain vector, and compares all that anyone can see.
fn replay(events: &[Event]) -> Result<(), Error> {
    let mut model: Vec<i32> = (0..SHAPE.iter().product::<usize>() as i32).collect();
    let mut x = Tensor::from_slice(&model, SHAPE);
    let mut seen: Vec<(Tensor, Vec<i32>)> = Vec::new();
    for event in events {
        match event {
            Event::Set(parts, value) => {
                x.set(picks(parts), *value);
                offsets(parts).into_iter().for_each(|at| model[at] = *value);
            }
            Event::Double(parts) => {
                x.set(picks(parts), x.at(picks(parts)) * 2);
                offsets(parts).into_iter().for_each(|at| model[at] = model[at].wrapping_mul(2));
            }
            Event::Copy(to, from) => {
                x.set(*to, x.at(*from));
                let row: Vec<i32> = offsets(&[Part::At(*from)]).into_iter().map(|at| model[at]).collect();
                for (at, value) in offsets(&[Part::At(*to)]).into_iter().zip(row) {
                    model[at] = value;
                }
            }
            Event::Above(limit) => {
                x.set(x.gt(*limit), 0);
                model.iter_mut().filter(|value| **value > *limit).for_each(|value| *value = 0);
            }
            Event::Places(rows) => {
                let index = Tensor::from_slice(rows, [rows.len()]);
                let values: Vec<i32> = (0..rows.len() as i32).collect();
                x.set(&index, Tensor::from_slice(&values, [rows.len(), 1, 1]));
                for (row, value) in rows.iter().zip(values) {
                    let row = if *row < 0 { row + 6 } else { *row };
                    if (0..6).contains(&row) {
                        offsets(&[Part::At(row.into())]).into_iter().for_each(|at| model[at] = value);
                    }
                }
            }
            Event::Flip(axis) => {
                x.assign(&x.flip([*axis]));
                let parts: Vec<Part> =
                    (0..3).map(|other| Part::Span(None, None, if other == *axis { -1 } else { 1 })).collect();
                model = offsets(&parts).into_iter().map(|at| model[at]).collect();
            }
            Event::Add(value) => {
                x.assign(&(&x + *value));
                model.iter_mut().for_each(|old| *old = old.wrapping_add(*value));
            }
            Event::Keep => seen.push((x.clone(), model.clone())),
            Event::Read => seen.push((x.at(1) + 1, model[35..70].iter().map(|value| value.wrapping_add(1)).collect())),
            Event::Compute => {
                x.realize()?;
            }
        }
    }
    seen.push((x, model));
    for (tensor, want) in seen {
        assert_eq!(tensor.to_vec::<i32>()?, want);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("TINYSPEC_ASSIGNMENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
    ))]

    #[test]
    fn any_assignments_are_those_of_a_vector(events in prop::collection::vec(event(), 1..12)) {
        for device in ["interpreter", "cpu"] {
            with_default_device::<_, Error>(device, || replay(&events)).unwrap();
        }
    }
}
