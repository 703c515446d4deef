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
        ("%8 = store(%7, %6)", "%8 = store(%6, %6)", "stores into what is no buffer"),
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
