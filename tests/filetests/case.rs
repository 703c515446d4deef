//! The parts of a case.

use tinyspec::backends::{Gpu, Processor, Rates, Target, Workgroups};
use tinyspec::ir::rewrite::{Permission, RuleSet};
use tinyspec::ir::{DType, Op, rules};
use tinyspec_core::lower::optimize::OptOp;
use tinyspec_core::lower::rangeify::Donation;

/// A case, as it stands in its file.
pub struct Case<'a> {
    /// Everything up to what is expected.
    pub given: &'a str,
    pub stage: &'a str,
    pub from: Option<&'a str>,
    pub target: Target,
    pub schedule: Option<Vec<OptOp>>,
    /// Those that run first.
    pub rules: Vec<&'a RuleSet>,
    /// Results over inputs.
    pub donations: Vec<Donation>,
    pub input: &'a str,
    pub expected: &'a str,
}

impl<'a> Case<'a> {
    pub fn parse(text: &'a str) -> Result<Case<'a>, String> {
        const SEPARATOR: &str = "\n----";
        let end = text.find(SEPARATOR).ok_or("no line `----` after what goes in")? + SEPARATOR.len();
        let (given, expected) = text.split_at(end);
        let (header, input) = given.split_once("\n\n").ok_or("no empty line after the header")?;
        let input = input.strip_suffix(SEPARATOR).unwrap_or_default();
        let mut case = Case {
            given,
            stage: "",
            from: None,
            target: target(),
            schedule: None,
            rules: vec![],
            donations: vec![],
            input,
            expected,
        };
        for line in header.lines().filter(|line| !line.starts_with(';')) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "test" => {
                    let (stage, from) =
                        rest.split_once(" from ").map_or((rest, None), |(stage, from)| (stage, Some(from)));
                    (case.stage, case.from) = (stage, from);
                }
                "target" => rest.split(' ').try_for_each(|fact| set(&mut case.target, fact))?,
                "schedule" => {
                    let ops = rest.split("; ").filter(|op| !op.is_empty());
                    case.schedule = Some(
                        ops.map(|op| op.parse().map_err(|error: tinyspec::ir::Error| error.to_string()))
                            .collect::<Result<_, _>>()?,
                    );
                }
                "donate" => {
                    let numbers = rest.split(' ').map(|pair| {
                        let (output, slot) = pair.split_once('/')?;
                        Some(Donation { output: output.parse().ok()?, slot: slot.parse().ok()?, only_part: false })
                    });
                    case.donations = numbers.collect::<Option<_>>().ok_or(format!("`{rest}` is not `result/slot`"))?;
                }
                "rules" => case.rules = rest.split(' ').map(table).collect::<Result<Vec<_>, _>>()?.concat(),
                _ => return Err(format!("`{word}` is not expected in a header")),
            }
        }
        Ok(case)
    }
}

/// A table of rules, or a permission.
fn table(name: &str) -> Result<Vec<&'static RuleSet>, String> {
    match name {
        "exact" => Ok(rules::EXACT.to_vec()),
        "reassoc" => Ok(rules::REASSOC.to_vec()),
        _ => {
            let permission = Permission::from_name(name).ok_or(format!("no table of rules is called `{name}`"))?;
            Ok(vec![rules::permitted(permission)])
        }
    }
}

/// Small vectors keep the text short.
fn target() -> Target {
    Target {
        name: "cpu".into(),
        fingerprint: "filetests".into(),
        isa: None,
        vector_bytes: 16,
        vector_registers: 16,
        masked_access: false,
        fused_multiply_add: true,
        accumulators: 2,
        watches_races: false,
        tensor_cores: Vec::new(),
        threads: 1,
        cache_bytes: [32 << 10, 512 << 10, 32 << 20],
        rates: Rates { latency: 1, ..Rates::TYPICAL },
        native: vec![Op::Div, Op::Sqrt, Op::Exp2, Op::Log2, Op::Sin, Op::Idiv, Op::Mod, Op::Mulacc],
        instructions: Vec::new(),
        workgroups: None,
        arithmetic: DType::ALL.into_iter().filter(|dtype| dtype.size() >= 4 || !dtype.is_float()).collect(),
    }
}

/// One `fact=value`.
fn set(target: &mut Target, fact: &str) -> Result<(), String> {
    let (name, value) = fact.split_once('=').ok_or(format!("`{fact}` is no fact=value"))?;
    let number = || value.parse::<usize>().map_err(|_| format!("`{value}` is not a number"));
    let truth = || value.parse::<bool>().map_err(|_| format!("`{value}` is not true or false"));
    match name {
        "vector_bytes" => target.vector_bytes = number()?,
        "vector_registers" => target.vector_registers = number()?,
        "accumulators" => target.accumulators = number()?,
        "threads" => target.threads = number()?,
        "processor" => *target = Processor::named(value).map_err(|error| error.to_string())?.target(1),
        "gpu" => *target = Gpu::named(value).map_err(|error| error.to_string())?.target(),
        "masked_access" => target.masked_access = truth()?,
        "fused_multiply_add" => target.fused_multiply_add = truth()?,
        "workgroups" => {
            let size = number()?;
            let (counts, threads) = ([1 << 31, 65_535, 65_535], [size; 3]);
            let limits = Workgroups {
                counts,
                threads,
                size,
                warp: size / 4,
                local_bytes: 48 << 10,
                processors: 4,
                resident: 2 * size,
            };
            target.workgroups = Some(limits);
        }
        "native" => {
            let op = |name| Op::from_name(name).ok_or_else(|| format!("no op is called `{name}`"));
            target.native = value.split(',').filter(|name| !name.is_empty()).map(op).collect::<Result<_, _>>()?;
        }
        _ => return Err(format!("`{name}` is not a fact of a target that cases change")),
    }
    Ok(())
}
