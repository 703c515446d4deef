//! Verifiers: a good graph passes, each mutation is named.

use tinyspec_ir::{text, verify};

const KERNEL: &str = "
%0 = const[index 8]
%1 = stack(%0)
%2 = param[0 f32 global](%1)
%3 = param[1 f32 global](%1)
%4 = range[0 loop](%0)
%5 = index(%3, %4)
%6 = load[reg](%5)
%7 = index(%2, %4)
%8 = store(%7, %6)
%9 = end(%8, %4)
%10 = sink(%9)
return %10
";

fn verdict(source: &str) -> String {
    let (graph, roots) = text::parse(source).unwrap();
    verify::ranges(&graph, roots[0]).map_or_else(|error| error.to_string(), |()| "fine".to_string())
}

#[test]
fn a_kernel_in_range_form_passes() {
    assert_eq!(verdict(KERNEL), "fine");
}

#[test]
fn mutations_of_a_kernel_are_refused() {
    for (from, to, expected) in [
        ("%9 = end(%8, %4)\n%10 = sink(%9)", "%10 = sink(%8)", "is used outside its loop"),
        ("%10 = sink(%9)\nreturn %10", "return %9", "the root of a kernel is a Sink"),
        ("load[reg](%5)", "load[global](%5)", "kernels load into registers"),
        ("%8 = store(%7, %6)", "%8 = store(%6, %6)", "stores into something that is not a buffer"),
    ] {
        assert!(KERNEL.contains(from));
        let verdict = verdict(&KERNEL.replace(from, to));
        assert!(verdict.contains(expected), "{verdict} does not say {expected}");
    }
}

#[test]
fn a_linear_order_is_checked() {
    let linear = |order: &str| {
        let source = KERNEL.replace("return %10", &format!("%11 = linear({order})\nreturn %11"));
        let (graph, roots) = text::parse(&source).unwrap();
        verify::linear(&graph, roots[0]).map_or_else(|error| error.to_string(), |()| "fine".to_string())
    };
    assert_eq!(linear("%2, %3, %4, %5, %6, %7, %8, %9, %10"), "fine");
    assert!(linear("%2, %3, %4, %6, %5, %7, %8, %9, %10").contains("comes before its source"));
    assert!(linear("%2, %3, %4, %5, %6, %7, %8").contains("is never closed"));
}

#[test]
fn tensor_graphs_hold_no_ranges() {
    let (graph, roots) = text::parse(KERNEL).unwrap();
    assert!(verify::tensor(&graph, &roots).unwrap_err().to_string().contains("belongs to kernels"));
}

#[test]
fn gates_of_tensors_broadcast_to_the_buffer() {
    let gated = |dtype: &str, gate: &str| {
        let source = format!(
            "%0 = const[index 8]\n%1 = stack(%0)\n%2 = param[0 f32](%1)\n%3 = const[index 2]\n%4 = stack(%3, %0)
%5 = stack()\n%6 = const[f32 1.0]\n%7 = param[1 {dtype}]({gate})\n%8 = store(%2, %6, %7)\n%9 = after(%2, %8)
return %9\n"
        );
        let checked = text::parse(&source).and_then(|(graph, roots)| verify::tensor(&graph, &roots));
        checked.map_or_else(|error| error.to_string(), |()| "fine".to_string())
    };
    assert_eq!(gated("bool", "%1"), "fine");
    assert_eq!(gated("bool", "%5"), "fine");
    let larger = gated("bool", "%4");
    assert!(larger.contains("a gate of shape [2, 8] in [8]"), "{larger}");
    let number = gated("f32", "%1");
    assert!(number.contains("the gate must be bool, found f32"), "{number}");
}

#[test]
fn tiles_have_one_rank_and_accesses_span_their_gates() {
    let tiles = |gate: &str| {
        let source = format!(
            "
%0 = const[index 8]
%1 = stack(%0)
%2 = param[0 f32 global](%1)
%3 = param[1 f32 global](%1)
%4 = const[index 0]
%5 = const[index 1]
%6 = const[index 2]
%7 = const[index 3]
%8 = stack(%4, %5, %6, %7)
%9 = const[index 4]
%10 = stack(%9, %5)
%11 = reshape(%8, %10)
%12 = stack(%9)
%13 = reshape(%8, %12)
%14 = cmplt(%11, %6)
%15 = cmplt(%13, %6)
%16 = expand(%4, %10)
%17 = const[f32 0.0]
%18 = index(%3, %16)
%19 = index(%3, %4)
%20 = load[reg]({gate})
%21 = index(%2, %11)
%22 = store(%21, %20)
%23 = sink(%22)
return %23
"
        );
        let (graph, roots) = text::parse(&source).unwrap();
        verify::tiles(&graph, roots[0]).map_or_else(|error| error.to_string(), |()| "fine".to_string())
    };
    assert_eq!(tiles("%18, %17, %14"), "fine");
    assert!(tiles("%19, %17, %14").contains("larger than its address"));
    assert!(tiles("%18, %17, %15").contains("another rank"));
}

/// A kernel as Select leaves it: a loop that adds vectors up in a register.
const MACHINE: &str = "
%0 = const[index 8]
%1 = stack(%0)
%2 = param[0 f32 global](%1)
%3 = param[1 f32 global](%1)
%4 = stack()
%5 = buffer[0 f32 reg](%4)
%6 = const[f32 0.0]
%7 = store(%5, %6)
%8 = range[0 reduce](%0)
%9 = after(%5, %7, %8)
%10 = cast[i32](%8)
%11 = index(%3, %10)
%12 = load[reg](%11)
%13 = load[reg](%9)
%14 = add(%13, %12)
%15 = store(%9, %14)
%16 = end(%15, %8)
%17 = after(%5, %16)
%18 = load[reg](%17)
%19 = const[index 0]
%20 = index(%2, %19)
%21 = store(%20, %18)
%22 = sink(%21)
return %22
";

type Verifier = fn(&tinyspec_ir::Graph, &[tinyspec_ir::NodeId]) -> tinyspec_ir::Result<()>;

/// The verdict on `source` where `from` became `to`.
fn mutated(verify: Verifier, source: &str, from: &str, to: &str) -> String {
    assert!(source.contains(from), "{from}");
    let (graph, roots) = text::parse(&source.replace(from, to)).unwrap();
    verify(&graph, &roots).map_or_else(|error| error.to_string(), |()| "fine".to_string())
}

#[test]
fn mutations_of_a_machine_kernel_are_refused() {
    let machine: Verifier = |graph, roots| verify::machine(graph, roots[0]);
    for (from, to, expected) in [
        ("return %22", "return %22", "fine"),
        ("return %22", "return %21", "the root of a kernel is a Sink"),
        ("%10 = cast[i32](%8)", "%10 = add(%8, %8)", "index arithmetic"),
        ("%17 = after(%5, %16)", "%17 = contiguous(%5)", "should be gone"),
        ("%18 = load[reg](%17)", "%18 = load[reg](%6)", "loads from something that is not a buffer"),
        ("%18 = load[reg](%17)", "%18 = reduce[add](%12, %8)", "should have become an accumulator"),
        ("param[1 f32 global]", "buffer[1 f32 global]", "reaches memory through its Params"),
        ("%1 = stack(%0)", "%1 = stack(%0, %0)", "more than one axis"),
    ] {
        let verdict = mutated(machine, MACHINE, from, to);
        assert!(verdict.contains(expected), "{from} -> {to}: {verdict} does not say {expected}");
    }
}

#[test]
fn mutations_of_a_linear_order_are_refused() {
    let source = MACHINE.replace(
        "return %22",
        "%23 = linear(%2, %3, %5, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %20, %21, %22)\nreturn %23",
    );
    let linear: Verifier = |graph, roots| verify::linear(graph, roots[0]);
    for (from, to, expected) in [
        ("return %23", "return %23", "fine"),
        ("return %23", "return %22", "the root is a Linear"),
        ("%7, %8, %9", "%8, %9", "comes before its source"),
        ("%15, %16, %17", "%15, %17", "comes before its source"),
        ("%13, %14, %15", "%14, %13, %15", "comes before its source"),
        // The value of the loop's body, used after the loop.
        ("%21 = store(%20, %18)", "%21 = store(%20, %14)", "outside its loop"),
    ] {
        let verdict = mutated(linear, &source, from, to);
        assert!(verdict.contains(expected), "{from} -> {to}: {verdict} does not say {expected}");
    }
}

#[test]
fn ranges_that_expand_should_have_replaced_are_refused() {
    let tiles: Verifier = |graph, roots| verify::tiles(graph, roots[0]);
    assert_eq!(mutated(tiles, KERNEL, "range[0 loop]", "range[0 global]"), "fine");
    for axis in ["upcast", "unroll"] {
        let verdict = mutated(tiles, KERNEL, "range[0 loop]", &format!("range[0 {axis}]"));
        assert!(verdict.contains("should have become an axis of the tile"), "{verdict}");
    }
}
