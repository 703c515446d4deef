//! Syntax → code: registers become numbers, labels places, instructions functions of lanes.

mod code;
mod control;
mod floats;
mod integers;
mod memory;
mod moves;
mod names;
mod origins;
mod warps;

pub(crate) use code::Code;
pub(super) use code::{
    Action, Address, Atomic, AtomicOperator, BarrierKind, Follows, Logic, MatchKind, Predicate, Reduction, Register,
    ShuffleMode, Special, Step, Transfer, VoteMode,
};

use super::arithmetic::Shape;
use super::syntax::{Entry, Instruction, Operand, Source, Statement};
use super::types::Type;
use crate::{Position, SimulatorError};
use rustc_hash::FxHashMap;
use std::sync::Arc;

type Result<T> = std::result::Result<T, SimulatorError>;

pub(super) fn decode(source: &Source, entry: &Entry, text: Arc<str>) -> Result<Code> {
    let mut decoder = Decoder::new(source, entry, text)?;
    for statement in &entry.body {
        decoder.statement(statement)?;
    }
    decoder.finish()
}

struct Decoder<'a> {
    code: Code,
    entry: &'a Entry,
    /// Registers by name, a map for each open scope.
    scopes: Vec<FxHashMap<&'a str, Register>>,
    ranges: Vec<Vec<names::Range<'a>>>,
    labels: FxHashMap<&'a str, u32>,
    /// Branches to labels, to be given their places at the end.
    jumps: Vec<(usize, &'a str, Position)>,
    tables: FxHashMap<&'a str, &'a [String]>,
    /// Steps that take their targets from a table.
    switches: Vec<(usize, &'a str, Position)>,
    constants: names::Constants,
    variables: FxHashMap<&'a str, names::Place>,
    guard: Option<Predicate>,
    at: Position,
    source_line: u32,
}

impl<'a> Decoder<'a> {
    fn statement(&mut self, statement: &'a Statement) -> Result<()> {
        match statement {
            Statement::Label(name, at) => {
                let place = self.code.steps.len() as u32;
                if self.labels.insert(name, place).is_some() {
                    return Err(SimulatorError::Syntax { at: *at, reason: format!("`{name}` is there twice") });
                }
                Ok(())
            }
            Statement::Registers { kind, name, count, at } => self.declare(*kind, name, *count, *at),
            Statement::Variable(variable) => self.variable(variable),
            Statement::Open => {
                self.scopes.push(FxHashMap::default());
                self.ranges.push(Vec::new());
                Ok(())
            }
            Statement::Close => {
                self.scopes.pop();
                self.ranges.pop();
                Ok(())
            }
            Statement::Targets(name, targets) => {
                self.tables.insert(name, targets);
                Ok(())
            }
            Statement::Instruction(instruction) => self.instruction(instruction),
        }
    }

    fn instruction(&mut self, instruction: &'a Instruction) -> Result<()> {
        (self.at, self.source_line) = (instruction.at, instruction.source_line);
        self.guard = match &instruction.guard {
            None => None,
            Some((name, is_negated)) => {
                Some(Predicate { register: self.predicate_named(name)?, is_negated: *is_negated })
            }
        };
        let words: Vec<&str> = instruction.words.iter().map(String::as_str).collect();
        let mut form = Form { instruction, words: words[1..].to_vec() };
        let operands = &instruction.operands[..];
        match words[0] {
            "mov" => self.mov(form, operands),
            "ld" | "ldu" | "st" => self.transfer(words[0], form, operands),
            "atom" | "red" => self.atomic(words[0], form, operands),
            "cvta" | "isspacep" => self.address_space(words[0], form, operands),
            "prefetch" | "prefetchu" | "applypriority" | "discard" => Ok(()),
            "membar" | "fence" => self.fence(form),
            "bra" | "brx" | "ret" | "exit" | "trap" => self.branch(words[0], form, operands),
            "bar" | "barrier" => self.barrier(form, operands),
            "shfl" => self.shuffle(form, operands),
            "vote" => self.vote(form, operands),
            "match" => self.matching(form, operands),
            "redux" => self.redux(form, operands),
            "activemask" => self.active_mask(form, operands),
            "nanosleep" | "pmevent" => Ok(()),
            "setp" => self.compare(form, operands),
            "set" => self.set(form, operands),
            "selp" => self.select(form, operands),
            "slct" => self.select_by_sign(form, operands),
            "testp" => self.property(form, operands),
            "cvt" => self.convert(form, operands),
            "copysign" => {
                let kind = form.kind()?;
                form.done()?;
                let shape = match kind {
                    Type::F32 => super::arithmetic::single::copy_sign(),
                    Type::F64 => {
                        super::arithmetic::double::two("copysign").ok_or_else(|| form.unknown("no such instruction"))?
                    }
                    _ => return Err(form.unknown("it takes f32 or f64")),
                };
                self.compute(&form, shape, &[kind, kind, kind], operands)
            }
            "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "min" | "max" | "abs" | "neg" | "sqrt" | "rcp"
            | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => self.arithmetic(words[0], form, operands),
            _ => self.integer(words[0], form, operands),
        }
    }

    fn push(&mut self, action: Action) {
        let step = Step { action, guard: self.guard, line: self.at.line, source_line: self.source_line };
        self.code.steps.push(step);
    }

    fn syntax<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(SimulatorError::Syntax { at: self.at, reason: reason.into() })
    }

    /// An instruction that computes: `kinds` are those of the result and of the operands.
    fn compute(&mut self, form: &Form, shape: Shape, kinds: &[Type], operands: &'a [Operand]) -> Result<()> {
        form.count(operands, kinds.len())?;
        let mut from = [0; 4];
        for ((place, operand), &kind) in from.iter_mut().zip(&operands[1..]).zip(&kinds[1..]) {
            *place = self.source(operand, kind)?.number();
        }
        if kinds.len() == 2 {
            from[1] = from[0];
        }
        let to = self.target(&operands[0], kinds[0])?.number();
        self.push(Action::Compute { shape, follows: form.follows(kinds[0]), to, from });
        Ok(())
    }

    fn finish(mut self) -> Result<Code> {
        // Whoever comes to the end of the text has come to the end of the kernel.
        self.guard = None;
        self.push(Action::Exit);
        for (step, label, at) in std::mem::take(&mut self.jumps) {
            let place = self.place(label, at)?;
            self.code.steps[step].action = Action::Branch(place);
        }
        for (step, table, at) in std::mem::take(&mut self.switches) {
            let unknown = || SimulatorError::Syntax { at, reason: format!("there are no targets `{table}`") };
            let targets = *self.tables.get(table).ok_or_else(unknown)?;
            let places = targets.iter().map(|label| self.place(label, at)).collect::<Result<Vec<u32>>>()?;
            if let Action::Switch { targets, .. } = &mut self.code.steps[step].action {
                *targets = places;
            }
        }
        self.constants.put(&mut self.code);
        origins::trace(&mut self.code);
        Ok(self.code)
    }

    fn place(&self, label: &str, at: Position) -> Result<u32> {
        let unknown = || SimulatorError::Syntax { at, reason: format!("there is no label `{label}`") };
        self.labels.get(label).copied().ok_or_else(unknown)
    }
}

/// The suffixes of an instruction that nobody has looked at.
struct Form<'a> {
    instruction: &'a Instruction,
    words: Vec<&'a str>,
}

impl<'a> Form<'a> {
    fn takes(&mut self, word: &str) -> bool {
        let place = self.words.iter().position(|other| *other == word);
        place.map(|place| self.words.remove(place)).is_some()
    }

    /// One of some suffixes, if it is there.
    fn one_of(&mut self, words: &[&str]) -> Option<&'a str> {
        let place = self.words.iter().position(|other| words.contains(other))?;
        Some(self.words.remove(place))
    }

    /// The first type among the suffixes.
    fn kind(&mut self) -> Result<Type> {
        let place = self.words.iter().position(|word| Type::named(word).is_some());
        let kind = place.and_then(|place| Type::named(self.words.remove(place)));
        kind.ok_or_else(|| self.unknown("it has no type"))
    }

    /// Nothing may be left over.
    fn done(&self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(self.unknown(&format!("`.{word}` is not known here"))),
        }
    }

    /// How unwritten bits spread to a result of this type.
    fn follows(&self, kind: Type) -> Follows {
        let words = &self.instruction.words;
        let has = |suffix: &str| words.iter().any(|word| word == suffix);
        match (words[0].as_str(), kind) {
            (
                "mov" | "and" | "or" | "xor" | "not" | "shl" | "shr" | "shf" | "bfe" | "bfi" | "prmt" | "lop3" | "brev",
                _,
            ) => Follows::Bits,
            ("add" | "sub" | "mul" | "mad" | "neg", kind) if kind.is_integer() && !has("hi") && !has("sat") => {
                Follows::Upward
            }
            (_, Type::F16x2 | Type::BF16x2 | Type::U16x2 | Type::S16x2) => Follows::Parts(16),
            (_, Type::F32x2) => Follows::Parts(32),
            _ => Follows::All,
        }
    }

    fn unknown(&self, reason: &str) -> SimulatorError {
        let what = self.instruction.name();
        SimulatorError::Unknown { at: self.instruction.at, what, reason: reason.into() }
    }

    fn count(&self, operands: &[Operand], count: usize) -> Result<()> {
        if operands.len() == count {
            return Ok(());
        }
        let (name, given) = (self.instruction.name(), operands.len());
        let reason = format!("`{name}` takes {count} operands, not {given}");
        Err(SimulatorError::Syntax { at: self.instruction.at, reason })
    }
}
