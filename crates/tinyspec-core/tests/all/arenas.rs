//! The memory of temporaries: the verifier of layouts accepts what the planner makes, and no other sharing of memory.

use proptest::prelude::*;
use tinyspec_core::lower::plan::{ALIGNMENT, Lifetime, arena};
use tinyspec_ir::verify::{Placed, Temporary};
use tinyspec_ir::{Builder, Graph, NodeId, text, verify};

/// A command buffer of copies of 40 numbers: Call k makes temporary k, or the result, from the buffer before it that is named, where
/// 0 is the argument.
fn copies(sources: &[usize]) -> (Graph, NodeId, Vec<NodeId>) {
    let mut lines = "
        %0 = const[index 40]
        %1 = stack(%0)
        %2 = range[0 loop](%0)
        %3 = param[1 f32 global](%1)
        %4 = index(%3, %2)
        %5 = load[reg](%4)
        %6 = param[0 f32 global](%1)
        %7 = index(%6, %2)
        %8 = store(%7, %5)
        %9 = end(%8, %2)
        %10 = sink(%9)
    "
    .to_string();
    let buffer = |number: usize| if number == 0 { 6 } else { 100 + number };
    let mut calls = Vec::new();
    for (number, source) in (1..).zip(sources) {
        lines += &format!("%{} = buffer[{number} f32 global](%1)\n", buffer(number));
        lines += &format!("%{} = call(%10, %{}, %{})\n", 1000 + number, buffer(number), buffer(*source));
        calls.push(format!("%{}", 1000 + number));
    }
    lines += &format!(
        "%11 = linear({})\n%12 = after(%{}, %11)\n%13 = tuple(%12)\n",
        calls.join(", "),
        buffer(sources.len())
    );
    let temporaries: Vec<String> = (1..sources.len()).map(|number| format!(", %{}", buffer(number))).collect();
    lines += &format!("return %13{}\n", temporaries.concat());
    let (graph, roots) = text::parse(&lines).unwrap_or_else(|error| panic!("{error}\n{lines}"));
    verify::commands(&graph, roots[0]).unwrap();
    (graph, roots[0], roots[1..].to_vec())
}

fn lifetimes(sources: &[usize]) -> Vec<Lifetime> {
    let last = |number: usize| sources.iter().rposition(|&source| source == number).unwrap_or(number - 1);
    (1..sources.len())
        .map(|number| Lifetime { first: number - 1, last: last(number).max(number - 1), bytes: 160 })
        .collect()
}

fn check(graph: &Graph, root: NodeId, temporaries: &[NodeId], offsets: &[usize], bytes: usize) -> Result<(), String> {
    let placed = |(&node, &start): (&NodeId, &usize)| Placed { of: Temporary::Buffer(node), bytes: start..start + 160 };
    let layout: Vec<Placed> = temporaries.iter().zip(offsets).map(placed).collect();
    verify::arena(graph, root, &layout, bytes, &|_| None).map_err(|error| error.to_string())
}

/// Sources of 2 to 12 Calls: each reads a buffer made before it.
fn programs() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<prop::sample::Index>(), 2..12)
        .prop_map(|picks| picks.iter().enumerate().map(|(number, pick)| pick.index(number + 1)).collect())
}

proptest! {
    #[test]
    fn only_what_is_needed_at_other_times_may_share_memory(sources in programs()) {
        let (graph, root, temporaries) = copies(&sources);
        let lives = lifetimes(&sources);
        let (offsets, bytes) = arena(&lives);
        prop_assert_eq!(check(&graph, root, &temporaries, &offsets, bytes), Ok(()));
        // Each apart, then one moved onto another.
        let apart: Vec<usize> = (0..lives.len()).map(|number| number * 160usize.next_multiple_of(ALIGNMENT)).collect();
        let all = lives.len() * 160usize.next_multiple_of(ALIGNMENT);
        prop_assert_eq!(check(&graph, root, &temporaries, &apart, all), Ok(()));
        for moved in 0..lives.len() {
            for onto in (0..lives.len()).filter(|&onto| onto != moved) {
                let meet = lives[moved].first <= lives[onto].last && lives[onto].first <= lives[moved].last;
                for shift in [0, 64] {
                    let mut offsets = apart.clone();
                    offsets[moved] = apart[onto] + shift;
                    let found = check(&graph, root, &temporaries, &offsets, all + 64);
                    // Beside a temporary that is shifted lies the next one.
                    let next = onto + 1;
                    let meets_next = shift > 0
                        && next < lives.len()
                        && next != moved
                        && lives[moved].first <= lives[next].last
                        && lives[next].first <= lives[moved].last
                        && apart[onto] + shift + 160 > apart[next];
                    prop_assert_eq!(found.is_err(), meet || meets_next, "{:?}: {:?}", sources, found);
                    if let Err(error) = found {
                        prop_assert!(error.contains("needed at the same time"), "{}", error);
                    }
                }
            }
        }
    }
}

#[test]
fn other_mistakes_of_a_layout() {
    let (graph, root, temporaries) = copies(&[0, 1, 2]);
    let place = |number: usize, bytes| Placed { of: Temporary::Buffer(temporaries[number]), bytes };
    let count = graph.props(temporaries[0]).element_count();
    assert!(count.is(40));
    for (layout, what) in [
        (vec![place(0, 0..160)], "has no place in the arena"),
        (vec![place(0, 0..160), place(1, 192..340)], "has 148 bytes of the arena for 40 elements of 4"),
        (vec![place(0, 0..160), place(1, 256..416)], "takes bytes 256..416 of an arena of 400"),
        (vec![place(0, 0..160), place(1, 162..322)], "it is not aligned"),
        (vec![place(0, 0..160), place(1, 192..352), place(0, 0..160)], "has two places"),
        (vec![place(0, 0..160), place(1, 96..256)], "shares bytes 96..160 of the arena with"),
        (
            vec![place(0, 0..160), place(1, 192..352), Placed { of: Temporary::Within(3), bytes: 0..8 }],
            "it has no Call 3",
        ),
        (
            vec![place(0, 0..160), place(1, 192..352), Placed { of: Temporary::Within(0), bytes: 8..16 }],
            "shares bytes 8..16",
        ),
    ] {
        let error = verify::arena(&graph, root, &layout, 400, &|_| None).expect_err(what).to_string();
        assert!(error.starts_with("verify arena: ") && error.contains(what), "{error}");
    }
    let within = Placed { of: Temporary::Within(2), bytes: 8..16 };
    verify::arena(&graph, root, &[place(0, 0..160), place(1, 192..352), within], 400, &|_| None).unwrap();
}
