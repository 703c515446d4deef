//! The memory planner: values that live at the same time never share a byte, others do.

use proptest::prelude::*;
use tinyspec_core::Tensor;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::lower::plan::{ALIGNMENT, Lifetime, arena, locals};
use tinyspec_ir::text;

fn life(first: usize, last: usize, bytes: usize) -> Lifetime {
    Lifetime { first, last, bytes }
}

fn together(a: &Lifetime, b: &Lifetime) -> bool {
    a.first <= b.last && b.first <= a.last
}

fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// The most bytes that are needed at one step: no arena is smaller.
fn most_at_once(lives: &[Lifetime]) -> usize {
    let at = |step: usize| -> usize {
        lives.iter().filter(|life| (life.first..=life.last).contains(&step)).map(|life| rounded(life.bytes)).sum()
    };
    lives.iter().map(|life| at(life.first)).max().unwrap_or(0)
}

#[test]
fn a_chain_of_steps_takes_turns_with_two_places() {
    let lives: Vec<Lifetime> = (0..100).map(|step| life(step, step + 1, 1000)).collect();
    let (offsets, bytes) = arena(&lives);
    assert_eq!(bytes, 2 * rounded(1000));
    assert!(offsets.iter().skip(2).zip(&offsets).all(|(later, earlier)| later == earlier));
}

#[test]
fn a_value_of_the_last_reader_is_not_overwritten_by_it() {
    // The second is written by the step that reads the first.
    let (offsets, bytes) = arena(&[life(0, 1, 64), life(1, 2, 64)]);
    assert_ne!(offsets[0], offsets[1]);
    assert_eq!(bytes, 128);
}

#[test]
fn neighbours_that_end_make_one_hole() {
    let (offsets, bytes) = arena(&[life(0, 0, 640), life(0, 0, 320), life(1, 1, 960)]);
    assert_eq!((offsets[2], bytes), (0, 960));
}

#[test]
fn the_last_hole_grows() {
    assert_eq!(arena(&[life(0, 0, 64), life(1, 1, 128), life(2, 2, 256)]).1, 256);
}

#[test]
fn nothing_takes_no_room() {
    assert_eq!(arena(&[]), (vec![], 0));
    assert_eq!(arena(&[life(0, 5, 0), life(1, 2, 0)]).1, 0);
}

fn any_lives() -> impl Strategy<Value = Vec<Lifetime>> {
    let one = (0..30usize, 0..8usize, 0..5000usize).prop_map(|(first, steps, bytes)| life(first, first + steps, bytes));
    prop::collection::vec(one, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_that_live_together_share_no_byte(lives in any_lives()) {
        let (offsets, bytes) = arena(&lives);
        for (a, &start) in lives.iter().zip(&offsets) {
            prop_assert_eq!(start % ALIGNMENT, 0);
            prop_assert!(start + a.bytes <= bytes);
        }
        for (i, a) in lives.iter().enumerate() {
            for (j, b) in lives.iter().enumerate().skip(i + 1) {
                let apart = offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                prop_assert!(!together(a, b) || apart || a.bytes == 0 || b.bytes == 0, "{a:?} and {b:?}: {offsets:?}");
            }
        }
        prop_assert!(bytes >= most_at_once(&lives));
    }

    /// Places of one size are never wasted: as many as are needed at once.
    #[test]
    fn values_of_one_size_take_no_more_than_is_needed_at_once(lives in any_lives(), size in 1..3000usize) {
        let lives: Vec<Lifetime> = lives.iter().map(|l| life(l.first, l.last, size)).collect();
        prop_assert_eq!(arena(&lives).1, most_at_once(&lives));
    }
}

#[test]
fn local_buffers_of_a_kernel_lie_apart() {
    let (graph, roots) = text::parse(
        "%0 = const[index 3]\n%1 = stack(%0)\n%2 = buffer[0 f32 local](%1)\n%3 = const[index 20]\n%4 = stack(%3)
%5 = buffer[1 f64 local](%4)\n%6 = const[index 0]\n%7 = index(%2, %6)\n%8 = index(%5, %6)\n%9 = const[f32 1.0]
%10 = const[f64 1.0]\n%11 = store(%7, %9)\n%12 = store(%8, %10)\n%13 = sink(%11, %12)
%14 = linear(%2, %5, %7, %11, %8, %12, %13)\nreturn %14\n",
    )
    .unwrap();
    let (mut offsets, bytes) = locals(&graph, roots[0]);
    offsets.sort_unstable_by_key(|&(_, offset)| offset);
    let sizes = [12, 160];
    let mut end = 0;
    for (slot, offset) in offsets {
        assert!(offset >= end && offset % ALIGNMENT == 0, "slot {slot} at {offset}");
        end = offset + sizes[slot as usize];
    }
    assert!(bytes >= end);
}

/// Temporaries of one program that all take turns in the arena, some of them needed long after others ended.
#[test]
fn programs_of_many_temporaries_compute_right() {
    for device in ["interpreter", "cpu"] {
        let found: Result<Vec<f32>, tinyspec_core::Error> = with_default_device(device, || {
            let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [4]);
            let kept = (&x * 100.0).contiguous();
            let mut value = x;
            for step in 0..12 {
                value = (value.flip([0]) + step).contiguous();
            }
            (value + kept).to_vec()
        });
        match found {
            Ok(found) => assert_eq!(found, [167.0, 268.0, 369.0, 470.0], "{device}"),
            Err(error) if device == "cpu" => println!("skipped on the CPU: {error}"),
            Err(error) => panic!("{device}: {error}"),
        }
    }
}
