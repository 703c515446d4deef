//! The mistakes that verifiers are there for, in every form that a kernel takes: accesses outside of a buffer, loops
//! without an end, reads of what nobody has written, an After or a Barrier that is missing.

use tinyspec_ir::{Graph, NodeId, Op, Result, text, verify};

type Verifier = fn(&Graph, NodeId) -> Result<()>;

const FORMS: [(&str, Verifier); 4] =
    [("ranges", verify::ranges), ("tiles", verify::tiles), ("machine", verify::machine), ("linear", verify::linear)];

/// `y[i] = x'[7 - i]`, where x' is a LOCAL copy of x. All forms allow it.
const MIRRORED: &str = "
%0 = const[index 8]
%1 = stack(%0)
%2 = param[0 f32 global](%1)
%3 = param[1 f32 global](%1)
%4 = buffer[0 f32 local](%1)
%5 = range[0 loop](%0)
%6 = index(%3, %5)
%7 = load[reg](%6)
%8 = index(%4, %5)
%9 = store(%8, %7)
%10 = end(%9, %5)
%11 = after(%4, %10)
%12 = range[1 loop](%0)
%13 = cast[i32](%12)
%14 = const[i32 -1]
%15 = const[i32 7]
%16 = mul(%13, %14)
%17 = add(%16, %15)
%18 = index(%11, %17)
%19 = load[reg](%18)
%20 = index(%2, %12)
%21 = store(%20, %19)
%22 = end(%21, %12)
%23 = sink(%22)
return %23
";

/// The same by the threads of a workgroup.
const THREADS: &str = "
%0 = const[index 8]
%1 = stack(%0)
%2 = param[0 f32 global](%1)
%3 = param[1 f32 global](%1)
%4 = buffer[0 f32 local](%1)
%5 = special[\"lidx0\"](%0)
%6 = index(%3, %5)
%7 = load[reg](%6)
%8 = index(%4, %5)
%9 = store(%8, %7)
%10 = barrier(%9)
%11 = after(%4, %10)
%13 = cast[i32](%5)
%14 = const[i32 -1]
%15 = const[i32 7]
%16 = mul(%13, %14)
%17 = add(%16, %15)
%18 = index(%11, %17)
%19 = load[reg](%18)
%20 = index(%2, %5)
%21 = store(%20, %19)
%23 = sink(%21)
return %23
";

/// A sum in a register.
const SUM: &str = "
%0 = const[index 8]
%1 = stack(%0)
%2 = param[0 f32 global](%1)
%3 = param[1 f32 global](%1)
%4 = stack()
%5 = buffer[0 f32 reg](%4)
%6 = const[f32 0.0]
%7 = store(%5, %6)
%8 = range[0 loop](%0)
%9 = after(%5, %7, %8)
%10 = load[reg](%9)
%11 = index(%3, %8)
%12 = load[reg](%11)
%13 = add(%10, %12)
%14 = store(%9, %13)
%15 = end(%14, %8)
%16 = after(%5, %15)
%17 = load[reg](%16)
%18 = const[index 0]
%19 = index(%2, %18)
%20 = store(%19, %17)
%21 = sink(%20)
return %21
";

fn says(verdict: Result<()>) -> String {
    verdict.map_or_else(|error| error.to_string(), |()| "fine".to_string())
}

/// The kernel in the order of its lines.
fn in_order(source: &str) -> String {
    let named: Vec<(&str, &str)> = source.lines().filter_map(|line| line.split_once(" = ")).collect();
    let listed = named.iter().filter(|(_, value)| !value.starts_with("const") && !value.starts_with("stack"));
    let listed: Vec<&str> = listed.map(|(name, _)| *name).collect();
    let lines = source.lines().filter(|line| !line.starts_with("return"));
    let lines: Vec<&str> = lines.collect();
    format!("{}\n%99 = linear({})\nreturn %99\n", lines.join("\n"), listed.join(", "))
}

/// What each form's verifier says of the kernel with these edits.
fn verdicts(source: &str, edits: &[(&str, &str)]) -> Vec<(&'static str, String)> {
    let edited = edits.iter().fold(source.to_string(), |source, (from, to)| {
        assert!(source.contains(from), "{from}");
        source.replace(from, to)
    });
    let verdict = |&(form, verifier): &(&'static str, Verifier)| {
        let source = if form == "linear" { in_order(&edited) } else { edited.clone() };
        let (graph, roots) = text::parse(&source).unwrap();
        (form, says(verifier(&graph, roots[0])))
    };
    FORMS.iter().map(verdict).collect()
}

/// Every form but those named refuses it and says why.
fn refused(source: &str, edits: &[(&str, &str)], why: &str, but: &[&str]) {
    for (form, verdict) in verdicts(source, edits).into_iter().filter(|(form, _)| !but.contains(form)) {
        assert!(verdict.contains(why), "{form}, {edits:?}: `{verdict}` does not say `{why}`");
    }
}

#[test]
fn the_kernels_as_they_are_pass_in_every_form() {
    for source in [MIRRORED, THREADS, SUM] {
        for (form, verdict) in verdicts(source, &[]) {
            assert_eq!(verdict, "fine", "{form}\n{source}");
        }
    }
}

#[test]
fn accesses_outside_of_a_buffer_are_refused() {
    let longer = ("%12 = range[1 loop](%0)", "%30 = const[index 9]\n%12 = range[1 loop](%30)");
    // Of tiles each lane is looked at once they are vectors.
    let but = &["tiles"];
    refused(MIRRORED, &[("const[i32 7]", "const[i32 8]")], "leaves its buffer at index 8", but);
    refused(MIRRORED, &[("const[i32 7]", "const[i32 6]")], "leaves its buffer at index -1", but);
    refused(MIRRORED, &[longer], "leaves its buffer at index", but);
    refused(THREADS, &[("const[i32 7]", "const[i32 8]")], "leaves its buffer at index 8", but);
    // A gate that lets one iteration too many through; one that is tight.
    let gated = |limit: i64| {
        let gate = format!("%31 = const[i32 {limit}]\n%32 = cmplt(%17, %31)\n%33 = const[f32 0.0]\n");
        let load = format!("{gate}%19 = load[reg](%18, %33, %32)");
        verdicts(MIRRORED, &[("const[i32 7]", "const[i32 9]"), ("%19 = load[reg](%18)", &load)])
    };
    for (form, verdict) in gated(9).into_iter().filter(|(form, _)| !but.contains(form)) {
        assert!(verdict.contains("leaves its buffer at index 8"), "{form}: {verdict}");
    }
    assert!(gated(8).iter().all(|(_, verdict)| verdict == "fine"), "{:?}", gated(8));
}

#[test]
fn loops_without_an_end_are_refused() {
    for (source, end, ended, open) in [
        (MIRRORED, "%22 = end(%21, %12)\n%23 = sink(%22)", "%23 = sink(%21)", "%12"),
        (MIRRORED, "%10 = end(%9, %5)\n%11 = after(%4, %10)", "%11 = after(%4, %9)", "%5"),
        (SUM, "%15 = end(%14, %8)\n%16 = after(%5, %15)", "%16 = after(%5, %14)", "%8"),
    ] {
        assert!(source.contains(open));
        refused(source, &[(end, ended)], "is used outside its loop", &["linear"]);
        refused(source, &[(end, ended)], "is never closed", &["ranges", "tiles", "machine"]);
    }
    // One End too many closes what is not open.
    let twice = ("%23 = sink(%22)", "%24 = end(%22, %12)\n%23 = sink(%24)");
    refused(MIRRORED, &[twice], "does not close the innermost open Range", &["ranges", "tiles", "machine"]);
}

#[test]
fn reads_before_any_store_are_refused() {
    let forgotten = [("%18 = index(%11, %17)", "%18 = index(%4, %17)")];
    refused(MIRRORED, &forgotten, "reads a buffer that nothing has written before", &["linear"]);
    refused(SUM, &[("%9 = after(%5, %7, %8)", "%9 = after(%5, %8)")], "that nothing has written before", &["linear"]);
    let dropped = [("%9 = store(%8, %7)", "%9 = group()")];
    refused(MIRRORED, &dropped, "reads a buffer that nothing has written before", &[]);
}

#[test]
fn a_missing_after_is_refused() {
    let both = [("%18 = index(%11, %17)", "%18 = index(%4, %17)"), ("%23 = sink(%22)", "%23 = sink(%10, %22)")];
    refused(MIRRORED, &both, "is neither before nor after", &[]);
    // The order of the lines is right, but the graph does not say so.
    refused(
        SUM,
        &[("%17 = load[reg](%16)", "%17 = load[reg](%5)"), ("sink(%20)", "sink(%15, %20)")],
        "is neither",
        &[],
    );
}

/// `y = x` by one loop, `z = y` backwards by the next, all three being buffers of the caller.
fn through_memory() -> String {
    let copy = ("%4 = buffer[0 f32 local](%1)", "%4 = param[2 f32 global](%1)");
    MIRRORED.replace(copy.0, copy.1).replace("%23 = sink(%22)", "%23 = sink(%10, %22)")
}

#[test]
fn buffers_of_the_caller_are_ordered_too() {
    let mirrored = through_memory();
    let forgotten = ("%18 = index(%11, %17)", "%18 = index(%4, %17)");
    let no_memory = ("%11 = after(%4, %10)\n", "");
    assert!(verdicts(&mirrored, &[]).iter().all(|(_, verdict)| verdict == "fine"), "{:?}", verdicts(&mirrored, &[]));
    // Of tiles each lane is looked at once they are vectors.
    refused(&mirrored, &[forgotten, no_memory], "is neither before nor after", &[]);
    // Two loops that fill one buffer, and two that fill halves of it.
    let fills = |offset: i64| {
        let other = format!("%30 = const[i32 {offset}]\n%31 = add(%13, %30)\n%20 = index(%4, %31)");
        let size =
            ("%4 = param[2 f32 global](%1)", "%32 = const[index 16]\n%33 = stack(%32)\n%4 = param[2 f32 global](%33)");
        let x = ("%18 = index(%11, %17)", "%18 = index(%3, %17)");
        verdicts(&mirrored, &[size, x, no_memory, ("%20 = index(%2, %12)", &other)])
    };
    for (form, verdict) in fills(7).into_iter() {
        assert!(verdict.contains("is neither before nor after"), "{form}: {verdict}");
    }
    assert!(fills(8).iter().all(|(_, verdict)| verdict == "fine"), "{:?}", fills(8));
}

#[test]
fn iterations_that_meet_are_refused() {
    let parallel = MIRRORED.replace("%12 = range[1 loop]", "%12 = range[1 global]");
    assert!(verdicts(&parallel, &[]).iter().all(|(_, verdict)| verdict == "fine"), "{:?}", verdicts(&parallel, &[]));
    let why = "of another iteration of a parallel loop";
    let to = |index: &str| format!("%30 = const[i32 2]\n%31 = {index}\n%20 = index(%2, %31)");
    for index in ["idiv(%13, %30)", "mod(%13, %30)", "mul(%30, %30)"] {
        refused(&parallel, &[("%20 = index(%2, %12)", &to(index))], why, &[]);
    }
    // Workgroups are iterations of the launch.
    let groups =
        THREADS.replace("lidx0", "gidx0").replace("%4 = buffer[0 f32 local](%1)", "%4 = param[2 f32 global](%1)");
    let groups = groups.replace("%10 = barrier(%9)", "%10 = group(%9)");
    refused(&groups, &[], "of another iteration of a parallel loop", &[]);
}

#[test]
fn ranges_of_less_than_nothing_are_refused() {
    let negative = ("%12 = range[1 loop](%0)", "%30 = const[index -3]\n%12 = range[1 loop](%30)");
    refused(MIRRORED, &[negative], "a loop of -3 iterations", &["tiles"]);
}

#[test]
fn a_missing_barrier_is_refused() {
    let why = "of another thread without a Barrier between";
    refused(THREADS, &[("%10 = barrier(%9)", "%10 = group(%9)")], why, &["ranges", "tiles"]);
    refused(THREADS, &[("%11 = after(%4, %10)", "%11 = after(%4, %9)")], why, &["ranges", "tiles"]);
    // A Barrier that does not wait for the store.
    refused(THREADS, &[("%10 = barrier(%9)", "%40 = barrier(%7)\n%10 = group(%9, %40)")], why, &["ranges", "tiles"]);
    // Where members of a workgroup are loops.
    let members = MIRRORED.replace("[0 loop]", "[0 local]").replace("[1 loop]", "[1 local]");
    let verdict = |source: &str| {
        let (graph, roots) = text::parse(source).unwrap();
        says(verify::barriers(&graph, roots[0]))
    };
    assert!(verdict(&members).contains("of a LOCAL loop without a Barrier between"), "{}", verdict(&members));
    let waiting = members.replace("%11 = after(%4, %10)", "%40 = barrier(%10)\n%11 = after(%4, %40)");
    assert_eq!(verdict(&waiting), "fine");
}

/// t = x copied, u = t copied.
const SCHEDULE: &str = "
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
%11 = param[0 f32 @\"cpu\" global](%1)
%12 = buffer[0 f32 @\"cpu\" global](%1)
%13 = buffer[1 f32 @\"cpu\" global](%1)
%14 = call(%10, %12, %11)
%15 = after(%12, %14)
%16 = call(%10, %13, %15)
%17 = after(%13, %16)
%18 = sink(%17, %15)
return %18
";

#[test]
fn calls_without_an_order_are_refused() {
    for (from, to, why) in [
        ("%18", "%18", "fine"),
        ("%16 = call(%10, %13, %15)", "%16 = call(%10, %13, %12)", "is neither before nor after"),
        ("%18 = sink(%17, %15)", "%18 = sink(%13, %15)", "a result that nothing has written"),
        ("%14 = call(%10, %12, %11)", "%14 = call(%10, %11, %12)", "which nothing has written"),
        ("%18 = sink(%17, %15)", "%18 = sink(%17, %12)", "does not wait for"),
        ("%13 = buffer[1 f32 @\"cpu\" global](%1)", "%13 = buffer[1 f64 @\"cpu\" global](%1)", "does not fit"),
    ] {
        assert!(SCHEDULE.contains(from), "{from}");
        let (graph, roots) = text::parse(&SCHEDULE.replace(from, to)).unwrap();
        let own: Vec<NodeId> = graph.nodes().filter(|&node| graph.op(node) == Op::Buffer).collect();
        let verdict = says(verify::schedule(&graph, roots[0], &own));
        assert!(verdict.contains(why), "{from} -> {to}: `{verdict}` does not say `{why}`");
    }
}

/// The threads of a workgroup of which some are beyond the end of a buffer, in the order of instructions.
const BOUNDED: &str = "
%0 = const[index 5]
%1 = stack(%0)
%2 = param[0 f32 global](%1)
%3 = param[1 f32 global](%1)
%4 = const[index 8]
%5 = special[\"lidx0\"](%4)
%6 = cast[i64](%5)
%7 = const[i64 5]
%8 = cmplt(%6, %7)
%9 = if(%8)
%10 = index(%3, %6)
%11 = load[reg](%10)
%12 = index(%2, %6)
%13 = store(%12, %11)
%14 = endif(%9)
%15 = barrier()
%16 = sink(%13)
%17 = linear(%2, %3, %5, %6, %8, %9, %10, %11, %12, %13, %14, %15, %16)
return %17
";

#[test]
fn conditions_count_and_close_as_they_opened() {
    let verdict = |edits: &[(&str, &str)]| {
        let source = edits.iter().fold(BOUNDED.to_string(), |source, (from, to)| {
            assert!(source.contains(from), "{from}");
            source.replace(from, to)
        });
        let parsed = text::parse(&source);
        parsed.and_then(|(graph, roots)| verify::linear(&graph, roots[0])).map_err(|error| error.to_string())
    };
    assert_eq!(verdict(&[]), Ok(()));
    for (edits, why) in [
        // Without the condition, and with one that lets too many threads in.
        (&[("%8, %9, %10", "%8, %10"), (", %14, %15", ", %15")][..], "leaves its buffer at index 5"),
        (&[("const[i64 5]", "const[i64 6]")], "leaves its buffer at index 5"),
        (&[("%13, %14, %15, %16)", "%13, %15, %16, %14)")], "differs from thread to thread"),
        (&[(", %14, %15", ", %15")], "is never closed"),
        (&[("%8, %9, %10", "%8, %10"), (", %13, %14", ", %13, %9, %14")], "leaves its buffer"),
        (&[("%11, %12, %13, %14, %15", "%14, %11, %12, %13, %15")], "outside its loop"),
        (&[("%9 = if(%8)", "%9 = if(%6)")], "the condition must be one bool, found i64"),
    ] {
        let refused = verdict(edits).expect_err(why);
        assert!(refused.contains(why), "{refused}: {why}");
    }
}

#[test]
fn an_axis_has_one_flag() {
    let flipped = |flags: &str| text::parse(&format!("%0 = const[f32 1]\n%1 = flip[{flags}](%0)\nreturn %1\n"));
    assert!(flipped("1 0").expect_err("a scalar has no axes").to_string().contains("2 flags for the 0 axes"));
}
