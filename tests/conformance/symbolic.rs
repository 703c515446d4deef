//! The symbolic corpus: simplifying keeps values and bounds, and as arithmetic of a kernel, over loops and over named dims,
//! the expressions have their values on every device.

use crate::corpus;
use crate::expression::{self, Expression};
use crate::launch::Loaded;
use crate::run::Failure;
use tinyspec::backends::interpreter::array::Array;
use tinyspec::backends::interpreter::ranges::run_kernel;
use tinyspec::ir::{AddrSpace, Arg, AxisType, Builder, Graph, NodeId, Op, rules, text};
use tinyspec::{DType, Device, Dim};
use tinyspec_core::lower::kernel::lower_kernel;

fn expressions() -> Vec<Expression> {
    match expression::read(&corpus::folder()) {
        Ok(expressions) => expressions,
        Err(error) if std::env::var_os("TINYSPEC_CORPUS").is_none() => {
            println!("skipped: no symbolic corpus ({error})");
            vec![]
        }
        Err(error) => panic!("{error}"),
    }
}

/// An expression as an index and as a value: `y[p] = e` and `z[p] = ramp[e - min]`, at every place p of the variables' domain.
struct Kernel {
    graph: Graph,
    sink: NodeId,
}

const VALUES: usize = 0;
const READ: usize = 1;

impl Kernel {
    /// The variables are loops, but for the first where it is a named dim; of the expression as it is or simplified.
    fn new(expression: &Expression, first_is_named: bool, simplified: bool) -> Result<Kernel, Failure> {
        let mut graph = Graph::new();
        let mut loops: Vec<(NodeId, i64)> = Vec::new();
        let mut values = Vec::new();
        for (number, variable) in (0u32..).zip(&expression.variables) {
            if first_is_named && number == 0 {
                values.push(graph.dim(&Dim::named(0, variable.min, variable.max))?);
                continue;
            }
            let (bound, min) = (graph.index(variable.count()), graph.index(variable.min));
            let range = graph.range(bound, number, AxisType::Loop)?;
            loops.push((range, variable.count()));
            values.push(graph.alu(Op::Add, &[range, min])?);
        }
        let mut value = expression.build(&mut graph, &values)?;
        if simplified {
            value = rules::simplify(&mut graph, &[value])?[0];
        }
        let mut place = graph.index(0);
        for &(range, count) in &loops {
            let count = graph.index(count);
            place = graph.alu(Op::Mul, &[place, count])?;
            place = graph.alu(Op::Add, &[place, range])?;
        }
        let length = loops.iter().map(|(_, count)| count).product();
        let (low, high) = expression.bounds;
        let buffers = [length, length, high - low + 1];
        let [y, z, ramp] = [0, 1, 2].map(|slot: usize| {
            let shape = graph.shape(&[Dim::from(buffers[slot])])?;
            let space = Some(AddrSpace::Global);
            let arg = Arg::Param { slot: slot as u32, dtype: DType::I64, device: None, addrspace: space };
            graph.add(Op::Param, &[shape], arg)
        });
        let at = |graph: &mut Graph, buffer, index| graph.add(Op::Index, &[buffer, index], Arg::None);
        let number = graph.add(Op::Cast, &[value], Arg::DType(DType::I64))?;
        let y = at(&mut graph, y?, place)?;
        let first = graph.add(Op::Store, &[y, number], Arg::None)?;
        let least = graph.index(-low);
        let position = graph.alu(Op::Add, &[value, least])?;
        let read = at(&mut graph, ramp?, position)?;
        let read = graph.add(Op::Load, &[read], Arg::Load { device: None, addrspace: AddrSpace::Reg })?;
        let z = at(&mut graph, z?, place)?;
        let second = graph.add(Op::Store, &[z, read], Arg::None)?;
        let mut body = graph.add(Op::Group, &[first, second], Arg::None)?;
        for (range, _) in loops.iter().rev() {
            body = graph.add(Op::End, &[body, *range], Arg::None)?;
        }
        let sink = graph.add(Op::Sink, &[body], Arg::None)?;
        Ok(Kernel { graph, sink })
    }
}

fn ints(values: &[i64]) -> Result<Array, Failure> {
    Ok(Array::from_ints(DType::I64, &[values.len()], values)?)
}

/// What a kernel over `count` places is called with.
fn buffers(expression: &Expression, count: usize) -> Result<Vec<Array>, Failure> {
    let nothing = ints(&vec![i64::MIN; count])?;
    let ramp: Vec<i64> = (expression.bounds.0..=expression.bounds.1).collect();
    Ok(vec![nothing.clone(), nothing, ints(&ramp)?])
}

/// The values at every place, as the interpreter of the ranges finds them, checked against the samples.
fn values(expression: &Expression, simplified: bool) -> Result<Vec<i64>, Failure> {
    let count: i64 = expression.variables.iter().map(|variable| variable.count()).product();
    let kernel = Kernel::new(expression, false, simplified)?;
    let mut arrays = buffers(expression, count as usize)?;
    run_kernel(&kernel.graph, kernel.sink, &mut arrays)?;
    let values: Vec<i64> = arrays[VALUES].lanes().iter().map(|&lane| lane as i64).collect();
    for (at, want) in &expression.samples {
        let place = at
            .iter()
            .zip(&expression.variables)
            .fold(0, |place, (value, variable)| place * variable.count() + value - variable.min);
        let got = values.get(place as usize);
        if got != Some(want) {
            return Err(Failure::Wrong(format!("at {at:?} it is {got:?} instead of {want}")));
        }
    }
    Ok(values)
}

#[test]
fn simplifying_keeps_values_and_bounds_of_the_symbolic_corpus() {
    let (mut cases, mut tight) = (0, 0);
    for expression in expressions() {
        let fail = |failure: Failure| match failure {
            Failure::Wrong(why) => format!("{}: {why}", expression.id),
            Failure::NotBuilt => format!("{}: not built", expression.id),
        };
        let check = || -> Result<bool, Failure> {
            let mut graph = Graph::new();
            let dim = |(slot, variable): (u32, &expression::Variable)| Dim::named(slot, variable.min, variable.max);
            let dims: Vec<Dim> = (0..).zip(&expression.variables).map(dim).collect();
            let variables = dims.iter().map(|dim| graph.dim(dim)).collect::<Result<Vec<_>, _>>()?;
            let root = expression.build(&mut graph, &variables)?;
            let simple = rules::simplify(&mut graph, &[root])?[0];
            let exact = (i128::from(expression.bounds.0), i128::from(expression.bounds.1));
            for node in [root, simple] {
                let found = graph.props(node).interval.int();
                if !found.is_some_and(|(low, high)| low <= exact.0 && exact.1 <= high) {
                    let text = text::print(&graph, &[node]);
                    return Err(Failure::Wrong(format!("{found:?} does not hold {exact:?}\n{text}")));
                }
            }
            if values(&expression, false)? != values(&expression, true)? {
                return Err(Failure::Wrong(format!("another value of\n{}", text::print(&graph, &[simple]))));
            }
            Ok(graph.props(simple).interval.int() == Some(exact))
        };
        tight += check().map_err(fail).unwrap_or_else(|why| panic!("{why}")) as usize;
        cases += 1;
    }
    println!("{cases} symbolic cases, {tight} with exact bounds");
}

#[test]
fn the_symbolic_corpus_passes_on_every_device() {
    let expressions = expressions();
    let mut total = 0;
    for name in crate::devices() {
        let device = tinyspec::device(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (mut passed, mut failed, mut missing) = (0, 0, 0);
        for expression in crate::share(&name, expressions.iter()) {
            match on_device(expression, &device) {
                Ok(()) => passed += 1,
                Err(Failure::NotBuilt) => missing += 1,
                Err(Failure::Wrong(why)) => {
                    println!("{name}: {}: {why}", expression.id);
                    failed += 1;
                }
            }
        }
        println!("{name}: {passed} symbolic cases passed, {failed} failed, {missing} not built");
        total += failed + missing;
    }
    assert_eq!(total, 0, "{total} symbolic cases failed or were not built");
}

/// Both kernels of an expression.
fn on_device(expression: &Expression, device: &Device) -> Result<(), Failure> {
    let want = values(expression, false)?;
    let Kernel { mut graph, sink } = Kernel::new(expression, false, false)?;
    let kernel = lower_kernel(&mut graph, sink, "loops", device.target())?;
    let arrays = buffers(expression, want.len())?;
    agree("loops", &Loaded::new(device, &kernel)?.run(&arrays)?, &want)?;

    let first = &expression.variables[0];
    let Kernel { mut graph, sink } = Kernel::new(expression, true, false)?;
    let kernel = lower_kernel(&mut graph, sink, "dims", device.target())?;
    let loaded = Loaded::new(device, &kernel)?;
    let inner = want.len() / first.count() as usize;
    for (dim, want) in (first.min..=first.max).zip(want.chunks(inner)) {
        let mut arrays = buffers(expression, inner)?;
        // The values of the named dims are the last of the buffers.
        arrays.push(ints(&[dim])?);
        agree(&format!("the dim {dim}"), &loaded.run(&arrays)?, want)?;
    }
    Ok(())
}

fn agree(what: &str, got: &[Array], want: &[i64]) -> Result<(), Failure> {
    for (name, slot) in [("value", VALUES), ("read", READ)] {
        let got: Vec<i64> = got[slot].lanes().iter().map(|&lane| lane as i64).collect();
        if let Some(place) = got.iter().zip(want).position(|(got, want)| got != want) {
            let (got, want) = (got[place], want[place]);
            return Err(Failure::Wrong(format!("{what}: {name} {place} is {got} instead of {want}")));
        }
    }
    Ok(())
}
