//! Reports what verification finds about a kernel's accesses, with the user's names and at the user's tokens.

use super::emit;
use super::syntax::Kernel;
use super::trace::{Traced, Written};
use crate::diagnostics::{Diagnostics, Place as At, unbound_dim};
use tinyspec_ir::verify::access::{Problem, ProblemKind, problems};
use tinyspec_ir::{Arg, AxisType, DType, NodeId, Op};

/// Where the function that contains an access is called.
fn called(written: &Written) -> String {
    written.call.map(|call| format!("\nits function is called in line {}", call.start.start().line)).unwrap_or_default()
}

const CURE: &str = "put the access into an `if`, read with `.get([…], default)`, or write `unsafe { … }` to have it \
                    checked while the kernel runs (a read outside gives 0, a store does nothing)";

/// Reports accesses that may be out of bounds, and iterations that may race.
pub fn check(kernel: &Kernel, traced: &Traced, diagnostics: &mut Diagnostics) {
    if traced.is_whole {
        for dim in emit::signature(kernel, traced).unbound() {
            if let Some(dim) = kernel.dims.get(dim) {
                diagnostics.error(At::of(dim), unbound_dim(dim));
            }
        }
    }
    let name = |node: NodeId| name(kernel, traced, node);
    let vouched = |node: NodeId| traced.places.get(&node).is_some_and(|place| place.vouched);
    let mut problems = problems(&traced.graph, traced.sink, &name, &vouched);
    // For `y[i] += …` the error of the store says more than that of the read.
    problems.sort_by_key(|problem| traced.graph.op(problem.node) == Op::Load);
    for problem in problems {
        if let Some(written) = traced.places.get(&problem.node) {
            report(kernel, traced, &problem, written, diagnostics);
        }
    }
}

/// An undeclared dim is treated as a constant, which has no bounds.
fn undeclared(kernel: &Kernel, traced: &Traced, texts: &[&str]) -> String {
    let mut words = texts.iter().flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    let constants = traced.constants.iter().filter_map(|path| path.get_ident());
    let found = constants.map(|name| name.to_string()).find(|name| words.any(|word| word == name));
    let line = |name: String| {
        let mut dims: Vec<String> = kernel.dims.iter().map(ToString::to_string).collect();
        dims.push(name.clone());
        format!("`{name}` is not a dim of this kernel: to make it one, name it before `fn`, `<{}>`\n", dims.join(", "))
    };
    found.map(line).unwrap_or_default()
}

/// Whether the bound depends on a loop, so that it is not a fixed bound.
fn names_a_loop(traced: &Traced, end: &str) -> bool {
    let mut words = end.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.any(|word| traced.loops.values().any(|name| name == word))
}

/// The user's name of a dim, constant or loop variable.
fn name(kernel: &Kernel, traced: &Traced, node: NodeId) -> Option<String> {
    match (traced.graph.op(node), traced.graph.arg(node)) {
        (Op::Range, _) => traced.loops.get(&node).cloned(),
        (Op::Param, Arg::Param { slot, dtype: DType::Index, .. }) => {
            let position = (*slot as usize).checked_sub(kernel.parameters.len())?;
            match kernel.dims.get(position) {
                Some(dim) => Some(dim.to_string()),
                None => {
                    let path = traced.constants.get(position - kernel.dims.len())?;
                    Some(quote::quote!(#path).to_string().replace(' ', ""))
                }
            }
        }
        _ => None,
    }
}

fn report(kernel: &Kernel, traced: &Traced, problem: &Problem, written: &Written, diagnostics: &mut Diagnostics) {
    let buffer = &written.buffer;
    let called = called(written);
    let index = |axis: &usize| written.indices.get(*axis).copied().unwrap_or(written.at);
    match &problem.kind {
        ProblemKind::BelowZero { axis, wraps: true, .. } | ProblemKind::BeyondEnd { axis, wraps: true, .. } => {
            let what =
                format!("64 bits may not hold this index of `{buffer}`, so comparing it proves nothing about its sign");
            let both = "ask for both ends, `if 0 <= k && k < N`";
            diagnostics.error(index(axis), format!("{what}\n{both}; or {CURE}{called}"));
        }
        ProblemKind::BelowZero { axis, least, .. } => {
            let what = match least {
                Some(least) if names_a_loop(traced, least) => {
                    format!("nothing shows that this index of `{buffer}` is never negative")
                }
                Some(least) => format!("this index of `{buffer}` goes down to {least}"),
                None => format!("this index of `{buffer}` may be negative: it depends on data"),
            };
            diagnostics.error(index(axis), format!("{what}\n{CURE}{called}"));
        }
        ProblemKind::BeyondEnd { axis, greatest, size, .. } => {
            let size = size.clone().unwrap_or_else(|| "fewer".into());
            let axes = format!("axis {axis} of `{buffer}` has {size} elements");
            let what = match greatest {
                Some(greatest) if names_a_loop(traced, greatest) => {
                    format!("nothing shows that this index stays inside: {axes}")
                }
                Some(greatest) => format!("this index goes up to {greatest}, but {axes}"),
                None => format!("this index depends on data, and {axes}"),
            };
            let constants = undeclared(kernel, traced, &[&size, greatest.as_deref().unwrap_or_default()]);
            diagnostics.error(index(axis), format!("{what}\n{constants}{CURE}{called}"));
        }
        ProblemKind::Meets { store, range } => {
            let variable = traced.loops.get(range).cloned().unwrap_or_default();
            let is_local = matches!(traced.graph.arg(*range), Arg::Range { axis: AxisType::Local, .. });
            let kind = if is_local { "local" } else { "global" };
            let cure = match is_local {
                true => "let each iteration have elements of its own, or put a `barrier();` between the two",
                false => "let each iteration have elements of its own: index by the loop variable",
            };
            let add = "; `atomic_add(&mut …, value)` adds from all of them";
            let line = |written: &Written| written.at.start.start().line;
            let other = traced.places.get(store).map(line).filter(|&other| other != line(written));
            let other = other.map(|line| format!(", in line {line}")).unwrap_or_default();
            let message = if traced.graph.op(problem.node) == Op::Load {
                format!(
                    "this reads an element of `{buffer}` that another iteration of the {kind} loop over `{variable}` may store to{other}\n{cure}"
                )
            } else if *store == problem.node {
                format!(
                    "several iterations of the {kind} loop over `{variable}` may store to this element of `{buffer}`\n{cure}{add}"
                )
            } else {
                format!(
                    "this stores to an element of `{buffer}` that another iteration of the {kind} loop over `{variable}` stores to, too{other}\n{cure}"
                )
            };
            diagnostics.error(written.at, message + &called);
        }
    }
}
