//! Programs: what tensors and kernels run, as `Program(Linear, Source, Binary)`, which prints, parses, and runs.

use crate::*;
use tinyspec::Program;
use tinyspec::ir::{Op, text};
use tinyspec::prelude::*;

uop! { <N>
    fn scaled_into(y: &mut Global<f32, N>, x: &Global<f32, N>, s: &Global<f32, 1>) {
        for i in global(N) {
            if i > 0 { y[i] = s[0] * x[i] + y[i]; }
        }
    }
}

#[test]
fn a_program_is_what_runs_and_runs_by_itself() -> Result<()> {
    on_both(|| {
        let x = Tensor::from_slice(&numbers(6 * 50, 3), [6, 50]).realize()?.clone();
        let y = x.softmax(1).contiguous().sum(0, false) * 3.0;
        let programs = Program::of(&[&y])?;
        assert_eq!(programs.len(), 2);
        let first = programs[0].call(&[&Tensor::zeros([6, 50])], &[&x]);
        let last = programs[1].call(&[&Tensor::zeros([50])], &[&first[0]]);
        assert_eq!(last[0].to_vec::<f32>()?, y.to_vec::<f32>()?);
        // What is computed runs nothing.
        assert!(Program::of(&[y.realize()?])?.is_empty());
        Ok(())
    })
}

#[test]
fn a_program_has_its_linear_its_source_and_its_code() -> Result<()> {
    for (device, mark) in [("cpu", "define"), ("interpreter", "linear("), ("simt", "special[")] {
        let x = Tensor::from_slice(&numbers(1000, 1), [1000]).to(device).realize()?.clone();
        let programs = Program::of(&[&(&x * 2.0)])?;
        let [program] = programs.as_slice() else { panic!("{} programs", programs.len()) };
        let graph = program.graph();
        let ops: Vec<Op> = graph.sources(program.root()).iter().map(|&source| graph.op(source)).collect();
        assert_eq!(
            (graph.op(program.root()), ops.as_slice()),
            (Op::Program, &[Op::Linear, Op::Source, Op::Binary][..])
        );
        assert!(program.source().is_some_and(|source| source.contains(mark)), "{device}");
        assert!(program.binary().is_some_and(|code| !code.is_empty()), "{device}");
        // An object, where there are objects.
        assert!(device != "cpu" || program.binary().is_some_and(|code| code.starts_with(b"\x7fELF")));
    }
    Ok(())
}

#[test]
fn a_program_that_was_printed_is_the_same_program() -> Result<()> {
    each_device(|device| {
        let checked = || -> Result<()> {
            let of = |seed| tensor(&numbers(40, seed), &[40], device).realize().cloned();
            let (mut y, x, s) = (of(1)?, of(2)?, tensor(&[3.0], &[1], device).realize()?.clone());
            let before = y.clone();
            scaled_into(&mut y, &x, &s);
            let programs = Program::of(&[&y])?;
            // A buffer that others see is copied before it is updated.
            let program = programs.last().expect("the kernel's own");
            assert_eq!((program.name(), program.outputs()), ("scaled_into", 1));
            let (again, same) = (program.to_string().parse::<Program>()?, text::parse(&program.to_string())?);
            assert_eq!(program.graph().content_hash(&[program.root()]), same.0.content_hash(&same.1));
            let refused = again.call(&[&before], &[&x, &s]).remove(0).to_vec::<f32>().expect_err("nobody vouches");
            assert!(refused.to_string().contains("vouched"), "{refused}");
            // SAFETY: it is what was printed above.
            let again = unsafe { again.vouched(device) };
            let expected = y.to_vec::<f32>()?;
            assert_eq!(again.call(&[&before], &[&x, &s])[0].to_vec::<f32>()?, expected);
            // What others see stays as it was.
            assert_eq!(before.to_vec::<f32>()?, numbers(40, 1));
            // Without its code the Linear is compiled.
            let linear = text::print(program.graph(), &program.graph().sources(program.root())[..1]);
            // SAFETY: as above.
            let linear = unsafe { linear.parse::<Program>()?.vouched(device) };
            assert!(linear.binary().is_none() && linear.source().is_none());
            assert_eq!(linear.call(&[&before], &[&x, &s])[0].to_vec::<f32>()?, expected);
            Ok(())
        };
        checked().unwrap_or_else(|error| panic!("{device}: {error}"));
    });
    Ok(())
}

#[test]
fn a_program_of_one_device_runs_on_another_from_its_linear() -> Result<()> {
    let (x, y) = (numbers(130, 1), numbers(130, 2));
    let of = |data: &[f32], device: &str| tensor(data, &[130], device).realize().cloned();
    let programs = Program::of(&[&(of(&x, "cpu")? * of(&y, "cpu")?)])?;
    let found = programs[0]
        .call(&[&tensor(&[0.0; 130], &[130], "interpreter")], &[&of(&x, "interpreter")?, &of(&y, "interpreter")?]);
    assert_same(&found[0], &x.iter().zip(&y).map(|(x, y)| x * y).collect::<Vec<_>>());
    // A kernel of threads has none elsewhere.
    let programs = Program::of(&[&(of(&x, "simt")? + 1.0)])?;
    let refused =
        programs[0].call(&[&of(&x, "cpu")?], &[&of(&x, "cpu")?]).remove(0).to_vec::<f32>().expect_err("threads");
    assert!(refused.to_string().contains("special"), "{refused}");
    Ok(())
}

#[test]
fn what_is_no_program_is_refused_by_name() -> Result<()> {
    let x = Tensor::from_slice(&[1f32, 2.0], [2]).to("cpu");
    x.realize()?;
    let programs = Program::of(&[&(&x + 1.0)])?;
    let call = |written: &[&Tensor], read: &[&Tensor]| {
        programs[0].call(written, read).remove(0).to_vec::<f32>().expect_err("a wrong call").to_string()
    };
    assert!(call(&[&x], &[]).contains("reads 1, found 1 and 0"));
    assert!(call(&[&x], &[&x.cast(DType::F64)]).contains("buffer 1 is 2 of f32, found 2 of f64"));
    assert!(call(&[&Tensor::zeros([3]).to("cpu")], &[&x]).contains("buffer 0 is 2 of f32, found 3 of f32"));
    for (text, what) in [
        ("%0 = const[i32 1]\nreturn %0", "a Program, or a Linear"),
        ("%0 = const[i32 1]\n%1 = program(%0)\nreturn %1", "its first source is a Linear"),
        ("%0 = linear()\n%1 = program(%0, %0)\nreturn %1", "a Source and a Binary"),
        ("%0 = linear()\nreturn %0, %0", "one root"),
    ] {
        let error = text.parse::<Program>().expect_err(what).to_string();
        assert!(error.contains(what), "{error}");
    }
    // Code that is none, though somebody vouches for it.
    let mut text = programs[0].to_string();
    let start = text.find("binary[").expect("its code") + "binary[".len();
    let end = start + text[start..].find(']').expect("its end");
    text.replace_range(start..end, "00ff");
    // SAFETY: nothing of it can be loaded.
    let damaged = unsafe { text.parse::<Program>()?.vouched("cpu") };
    let error = damaged.call(&[&x], &[&x]).remove(0).to_vec::<f32>().expect_err("no code").to_string();
    assert!(error.contains("cannot be loaded"), "{error}");
    Ok(())
}
