//! The memory planner: values that live at the same time never share a byte, others do.

use proptest::prelude::*;
use tinyspec_core::Tensor;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::lower::passes::{self, LOWERING};
use tinyspec_core::lower::plan::{ALIGNMENT, Lifetime, arena, locals};
use tinyspec_ir::{AddrSpace, Arg, Graph, NodeId, Op, text, verify};

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

/// A kernel in the order of its lines.
fn linear(lines: &str) -> (Graph, NodeId) {
    let lines = lines.trim();
    let named = lines.lines().filter_map(|line| line.trim().split_once(" = "));
    let listed = named.filter(|(_, value)| !value.starts_with("const") && !value.starts_with("stack"));
    let listed: Vec<&str> = listed.map(|(name, _)| name).collect();
    let source = format!("{lines}\n%999 = linear({})\nreturn %999\n", listed.join(", "));
    let (graph, roots) = text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    verify::linear(&graph, roots[0]).unwrap_or_else(|error| panic!("{error}\n{source}"));
    (graph, roots[0])
}

#[test]
fn local_buffers_that_are_needed_at_once_lie_apart() {
    let (graph, linear) = linear(
        "%0 = const[index 3]\n%1 = stack(%0)\n%2 = buffer[0 f32 local](%1)\n%3 = const[index 20]\n%4 = stack(%3)
%5 = buffer[1 f64 local](%4)\n%6 = const[index 0]\n%7 = index(%2, %6)\n%8 = index(%5, %6)\n%9 = const[f32 1.0]
%10 = const[f64 1.0]\n%11 = store(%7, %9)\n%12 = store(%8, %10)\n%13 = after(%2, %11)\n%14 = index(%13, %6)
%15 = load[reg](%14)\n%16 = const[index 1]\n%17 = stack(%16)\n%18 = param[0 f32 global](%17)\n%19 = index(%18, %6)
%20 = store(%19, %15)\n%21 = sink(%20, %12)",
    );
    let (offsets, bytes) = locals(&graph, linear);
    assert_eq!((offsets, bytes), (vec![(0, 0), (1, 64)], 256));
}

/// The threads of a workgroup pass data through two LOCAL Buffers, one after the other: `y[i] = x[7 - (7 - i)]`. `{}` stands
/// where threads may wait before the second is written, `around` for a loop that does it several times.
fn by_two_buffers(waits: bool, repeated: bool, waits_again: bool) -> (Graph, NodeId) {
    let barrier = |on: bool, name: &str, of: &str| match on {
        true => format!("{name} = barrier({of})\n"),
        false => format!("{name} = group({of})\n"),
    };
    let (range, end, gone) = match repeated {
        true => ("%6 = range[0 loop](%90)\n", "%40 = end(%37, %6)\n", ", %6"),
        false => ("", "%40 = group(%37)\n", ""),
    };
    let between = barrier(waits, "%22", "%20");
    let again = match (repeated, waits_again) {
        (true, true) => "%41 = barrier(%6)\n%42 = after(%4, %41)\n".to_string(),
        (true, false) => "%42 = after(%4, %6)\n".to_string(),
        _ => "%42 = after(%4)\n".to_string(),
    };
    linear(&format!(
        "%0 = const[index 64]\n%90 = const[index 5]\n%1 = stack(%0)\n%2 = param[0 f32 global](%1)\n%3 = param[1 f32 global](%1)
%4 = buffer[0 f32 local](%1)\n%5 = buffer[1 f32 local](%1)\n%7 = special[\"lidx0\"](%0)\n%13 = cast[i32](%7)\n%14 = const[i32 -1]
%15 = const[i32 63]\n%16 = mul(%13, %14)\n%17 = add(%16, %15)\n{range}{again}%8 = index(%3, %7)\n%9 = load[reg](%8)\n%10 = index(%42, %7)
%11 = store(%10, %9)\n%12 = barrier(%11)\n%18 = after(%42, %12)\n%19 = index(%18, %17)\n%20 = load[reg](%19)\n{between}%23 = after(%5, %22{gone})
%24 = index(%23, %7)\n%25 = store(%24, %20)\n%26 = barrier(%25)\n%27 = after(%23, %26)\n%28 = index(%27, %17)\n%29 = load[reg](%28)
%35 = index(%2, %7)\n%36 = store(%35, %29)\n%37 = group(%36)\n{end}%50 = sink(%40)"
    ))
}

#[test]
fn local_buffers_share_storage_where_threads_wait_in_between() {
    let bytes = |(graph, linear): (Graph, NodeId)| {
        let (offsets, bytes) = locals(&graph, linear);
        verify::storage(&graph, linear, &offsets).unwrap();
        // The same place is refused where the plan has two.
        let shared = verify::storage(&graph, linear, &[(0, 0), (1, 0)]).map_err(|error| error.to_string());
        assert_eq!(shared.is_ok(), bytes == 256, "{shared:?}");
        assert!(shared.is_ok() || shared.unwrap_err().contains("without a Barrier between"));
        bytes
    };
    assert_eq!(bytes(by_two_buffers(true, false, false)), 256);
    assert_eq!(bytes(by_two_buffers(false, false, false)), 512);
    assert_eq!(bytes(by_two_buffers(true, true, true)), 256);
    assert_eq!(bytes(by_two_buffers(false, true, true)), 512);
}

#[test]
fn a_place_that_is_taken_too_early_is_refused() {
    let (graph, linear) = linear(
        "%0 = const[index 1]\n%1 = stack(%0)\n%2 = buffer[0 f32 local](%1)\n%3 = buffer[1 f32 local](%1)\n%4 = param[0 f32 global](%1)
%5 = const[index 0]\n%6 = const[f32 1.0]\n%7 = index(%2, %5)\n%8 = store(%7, %6)\n%9 = index(%3, %5)\n%10 = store(%9, %6)
%11 = after(%2, %8)\n%12 = index(%11, %5)\n%13 = load[reg](%12)\n%14 = index(%4, %5)\n%15 = store(%14, %13)\n%16 = sink(%15, %10)",
    );
    assert_eq!(locals(&graph, linear).1, 128);
    let refused = |offsets: &[(u32, usize)]| verify::storage(&graph, linear, offsets).unwrap_err().to_string();
    assert!(refused(&[(0, 0), (1, 0)]).contains("reads LOCAL memory that another Buffer has taken"));
    assert!(refused(&[(0, 0)]).contains("has no place in LOCAL memory"));
}

/// Two sums, one after the other, the second of which begins with the value of the first or with 0.
fn two_sums(begins: &str) -> (Graph, NodeId) {
    linear(&format!(
        "%0 = const[index 8]\n%1 = stack(%0)\n%2 = param[0 f32 global](%1)\n%3 = param[1 f32 global](%1)\n%4 = stack()\n%5 = buffer[0 f32 reg](%4)
%6 = const[f32 0.0]\n%7 = store(%5, %6)\n%8 = range[0 loop](%0)\n%9 = after(%5, %7, %8)\n%10 = load[reg](%9)\n%11 = index(%3, %8)
%12 = load[reg](%11)\n%13 = add(%10, %12)\n%14 = store(%9, %13)\n%15 = end(%14, %8)\n%16 = after(%5, %15)\n%17 = load[reg](%16)
%18 = const[index 0]\n%19 = index(%2, %18)\n%20 = store(%19, %17)\n%25 = buffer[1 f32 reg](%4)\n%27 = store(%25, {begins})
%28 = range[1 loop](%0)\n%29 = after(%25, %27, %28)\n%30 = load[reg](%29)\n%31 = index(%3, %28)\n%32 = load[reg](%31)\n%33 = add(%30, %32)
%34 = store(%29, %33)\n%35 = end(%34, %28)\n%36 = after(%25, %35)\n%37 = load[reg](%36)\n%38 = const[index 1]\n%39 = index(%2, %38)
%40 = store(%39, %37)\n%41 = sink(%20, %40)"
    ))
}

#[test]
fn registers_that_follow_each_other_share_storage() {
    let registers = LOWERING.iter().position(|pass| pass.name == "registers").unwrap();
    let target = tinyspec_backends::interpreter::target();
    let count = |graph: &Graph, linear| {
        let is_register = |&node: &NodeId| {
            matches!(graph.arg(node), Arg::Buffer { addrspace: AddrSpace::Reg, .. }) && graph.op(node) == Op::Buffer
        };
        graph.reachable(&[linear]).iter().filter(|node| is_register(node)).count()
    };
    for begins in ["%6", "%17"] {
        let (mut graph, linear) = two_sums(begins);
        assert_eq!(count(&graph, linear), 2);
        let pass = &LOWERING[registers..=registers];
        let shared = passes::run(pass, &mut graph, linear, &target, &mut |_, _, _| {}).unwrap();
        assert_eq!(count(&graph, shared), 1, "{begins}");
        verify::linear(&graph, shared).unwrap();
        // Nothing is left to share.
        assert_eq!(passes::run(pass, &mut graph, shared, &target, &mut |_, _, _| {}).unwrap(), shared);
    }
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
