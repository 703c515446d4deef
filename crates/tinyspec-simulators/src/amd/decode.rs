//! Decodes the text of instructions into steps: registers become numbers, mnemonics rows of the table. Anything that is not
//! understood is an error, whether or not it would be executed.

mod access;
mod control;
mod scalar;
mod vector;

use super::chip::{Chip, Family};
use super::object::Entry;
use super::origins;
use super::text::{self, Given, Line, Operand, register};
use super::wave::{Counter, Span};
use crate::{Parameter, Position, SimulatorError};
pub(super) use access::{Access, Base};
pub(super) use scalar::{ScalarFrom, ScalarStep};
use smallvec::SmallVec;
use tinyspec_backends::llvm::Disassembler;
pub(super) use vector::{Dpp, MaskOut, Select, Source, SourcePlace, To, Unused, Vector};

/// Scratch memory of a lane, at the most: a wave of 64 lanes has 8 MiB.
const MOST_SCRATCH: u32 = 128 << 10;

/// A decoded kernel.
pub(super) struct Code {
    pub name: String,
    pub chip: Chip,
    /// The instructions as LLVM writes them.
    pub listing: Vec<String>,
    /// Line of the source code that each is for, or 0.
    pub source_lines: Vec<u32>,
    pub steps: Vec<Step>,
    pub params: Vec<Parameter>,
    pub argument_bytes: usize,
    pub local_bytes: usize,
    /// Scratch memory of a lane.
    pub scratch_bytes: usize,
    pub most_threads: u64,
    pub required: Option<[u32; 3]>,
    pub vectors: usize,
    pub start: Start,
    /// Parameters whose memory is written, by bit.
    pub written: u64,
    /// The smallest accesses of GLOBAL and LOCAL memory, as powers of two.
    pub granule: [u32; 2],
}

/// The initial register state of a wave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Start {
    /// The pair of scalar registers with the address of the arguments.
    pub arguments: Option<u16>,
    /// The scalar register that holds the workgroup's index, for each dimension.
    pub groups: [Option<u16>; 3],
    /// Dimensions of the thread's place in `v0`.
    pub threads: u32,
}

/// An instruction.
pub(super) struct Step {
    pub action: Action,
    pub reads: SmallVec<[Span; 4]>,
    pub writes: SmallVec<[Span; 2]>,
}

pub(super) enum Action {
    Vector(Box<Vector>),
    /// Both read before one writes.
    Dual(Box<[Vector; 2]>),
    Scalar(Box<ScalarStep>),
    Access(Box<Access>),
    /// Copies the first active lane of a register, or the lane that a scalar names, to a scalar register.
    ReadLane {
        to: u16,
        from: SourcePlace,
        lane: Option<ScalarFrom>,
    },
    WriteLane {
        to: u16,
        value: ScalarFrom,
        lane: ScalarFrom,
    },
    /// Counts the bits of a mask below the lane's own, in the lower or the upper 32 lanes, and adds a number.
    CountBelow {
        to: u16,
        mask: SourcePlace,
        add: SourcePlace,
        upper: bool,
    },
    Branch {
        when: When,
        to: u32,
    },
    Wait(SmallVec<[(Counter, usize); 2]>),
    /// Arrives and waits, arrives, or waits.
    Barrier {
        arrives: bool,
        waits: bool,
    },
    End,
    Nothing,
    /// Must not be reached.
    Trap,
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    Condition(bool),
    /// VCC is zero.
    MaskZero(bool),
    /// EXEC is zero.
    ActiveZero(bool),
}

/// Why an instruction is not decoded.
pub(super) type Refusal = String;

/// The context in which instructions are decoded.
pub(super) struct Context {
    pub chip: Chip,
    /// Byte offsets of the instructions.
    pub offsets: Vec<usize>,
    /// The index of the one being decoded.
    pub here: usize,
    /// The byte offset of the next.
    pub next: usize,
    pub vectors: u16,
    /// Where accumulation registers begin.
    pub accumulators: u16,
}

impl Context {
    /// The registers of an operand, in this module's numbering.
    pub fn span(&self, operand: &Operand) -> Result<Span, Refusal> {
        let (first, count, limit) = match *operand {
            Operand::Scalar { first, count } => return Ok(Span::new(first, count)),
            Operand::Vector { first, count, .. } => (first, count, self.accumulators.min(self.vectors)),
            Operand::Accumulator { first, count } => (first + self.accumulators, count, self.vectors),
            _ => return Err("a register is expected".into()),
        };
        if first + count > limit {
            return Err(format!("register {} of {limit} that the kernel has", first + count - 1));
        }
        Ok(Span::new(register::SCALARS + first, count))
    }

    /// The index of a vector register.
    pub fn vector(&self, operand: &Operand, count: u16) -> Result<u16, Refusal> {
        let span = self.span(operand)?;
        if span.first < register::SCALARS {
            return Err("a register of lanes is expected".into());
        }
        if span.count != count {
            return Err(format!("{} registers where {count} are expected", span.count));
        }
        Ok(span.first - register::SCALARS)
    }

    /// A scalar register, or several.
    pub fn scalar(&self, operand: &Operand, count: u16) -> Result<u16, Refusal> {
        match *operand {
            Operand::Scalar { first: register::NULL, .. } => Ok(register::NULL),
            Operand::Scalar { first, count: has } if has == count => Ok(first),
            Operand::Scalar { count: has, .. } => Err(format!("{has} scalar registers where {count} are expected")),
            _ => Err("a scalar register is expected".into()),
        }
    }

    /// How many scalar registers a lane mask takes.
    pub fn mask(&self) -> u16 {
        if self.chip.wave == 64 { 2 } else { 1 }
    }
}

/// Modifiers that have not been consumed yet; any left over are an error.
pub(super) struct Modifiers<'line> {
    left: Vec<(&'line str, Option<&'line str>)>,
}

impl<'line> Modifiers<'line> {
    pub fn new(line: &'line Line) -> Self {
        Modifiers { left: line.modifiers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect() }
    }

    /// Consumes a modifier without a value, if present.
    pub fn flag(&mut self, name: &str) -> bool {
        let place = self.left.iter().position(|(other, value)| *other == name && value.is_none());
        place.map(|place| self.left.remove(place)).is_some()
    }

    pub fn value(&mut self, name: &str) -> Option<&'line str> {
        let place = self.left.iter().position(|(other, value)| *other == name && value.is_some())?;
        self.left.remove(place).1
    }

    pub fn number(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        self.value(name).map(|text| number(text).ok_or_else(|| format!("`{text}` is not a number"))).transpose()
    }

    /// `[0,1,1]`
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<i64>>, Refusal> {
        let Some(text) = self.value(name) else { return Ok(None) };
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let numbers = inner.and_then(|inner| inner.split(',').map(|text| number(text.trim())).collect());
        numbers.map(Some).ok_or_else(|| format!("`{text}` is no list"))
    }

    pub fn end(self) -> Result<(), Refusal> {
        match self.left.first() {
            Some((name, _)) => Err(format!("its modifier `{name}` is not known")),
            None => Ok(()),
        }
    }
}

pub(super) fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// An operand without modifiers.
pub(super) fn bare(given: &Given) -> Result<&Operand, Refusal> {
    match given.negative || given.absolute || given.sign_extended {
        true => Err("an operand has a modifier, which it cannot have here".into()),
        false => Ok(&given.operand),
    }
}

/// Decodes a kernel.
pub(super) fn decode(chip: &'static str, entry: &Entry) -> Result<Code, SimulatorError> {
    let chip = Chip::named(chip, entry.wave);
    let launch = |reason: String| SimulatorError::Launch { kernel: entry.name.clone(), reason };
    let mut disassembler = Disassembler::new(chip.name).map_err(|error| launch(error.to_string()))?;
    let (mut listing, mut source_lines, mut offsets, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
    while at < entry.code.len() {
        let found = disassembler.instruction(&entry.code[at..], entry.address + at as u64);
        let Some((bytes, text)) = found else {
            let at = Position { line: listing.len() as u32 + 1, column: 1 };
            return Err(SimulatorError::Syntax { at, reason: "these bytes are not an instruction".into() });
        };
        listing.push(text);
        let before = entry.source_lines.partition_point(|&(from, _)| from <= entry.address + at as u64);
        source_lines.push(before.checked_sub(1).map_or(0, |row| entry.source_lines[row].1));
        offsets.push(at);
        at += bytes;
    }
    let mut context = Context {
        chip,
        offsets,
        here: 0,
        next: 0,
        vectors: entry.vgprs as u16,
        accumulators: entry.accumulators as u16,
    };
    let mut steps = Vec::with_capacity(listing.len());
    for (number, text) in listing.iter().enumerate() {
        context.here = number;
        context.next = context.offsets.get(number + 1).copied().unwrap_or(at);
        let decoded = text::parse(text).and_then(|lines| step(&context, &lines));
        steps.push(decoded.map_err(|reason| SimulatorError::Unknown {
            at: Position { line: number as u32 + 1, column: 1 },
            what: text.split_whitespace().collect::<Vec<_>>().join(" "),
            reason,
        })?);
    }
    if !matches!(
        steps.last().map(|step| &step.action),
        Some(Action::End | Action::Trap | Action::Branch { when: When::Always, .. })
    ) {
        let at = Position { line: listing.len() as u32, column: 1 };
        return Err(SimulatorError::Syntax { at, reason: "the kernel runs beyond its last instruction".into() });
    }
    let mut code = Code {
        name: entry.name.clone(),
        chip,
        listing,
        source_lines,
        steps,
        params: entry.params.clone(),
        argument_bytes: entry.argument_bytes,
        local_bytes: entry.local_bytes,
        scratch_bytes: entry.scratch_bytes as usize,
        most_threads: entry.most_threads,
        required: entry.required,
        vectors: entry.vgprs,
        start: start(chip, entry).map_err(launch)?,
        written: 0,
        granule: [0, 0],
    };
    code.granule = granule(&code);
    origins::trace(&mut code);
    Ok(code)
}

fn granule(code: &Code) -> [u32; 2] {
    let mut least = [3, 3];
    for step in &code.steps {
        if let Action::Access(access) = &step.action
            && (access.is_local || access.is_global())
        {
            let place = &mut least[usize::from(access.is_local)];
            *place = access.bytes.trailing_zeros().min(*place);
        }
    }
    // A shadow cell covers at most 4 bytes.
    least.map(|power| power.min(2))
}

/// The initial register state that the kernel descriptor asks for.
fn start(chip: Chip, entry: &Entry) -> Result<Start, String> {
    let [first, second, _] = entry.resources;
    let properties = entry.properties;
    let field = |word: u32, from: u32, bits: u32| word >> from & ((1 << bits) - 1);
    let scratch = entry.scratch_bytes;
    if scratch > MOST_SCRATCH {
        return Err(format!("each lane needs {scratch} bytes of scratch memory, at most {MOST_SCRATCH}"));
    }
    // There, the kernel itself makes the descriptor of the buffer that scratch memory is.
    if scratch != 0 && chip.name == "gfx90a" {
        return Err(format!("each lane needs {scratch} bytes of scratch memory, which is not simulated on gfx90a"));
    }
    if field(first, 12, 4) != 0 {
        return Err("it rounds in another way than to nearest, which is not simulated".into());
    }
    if field(first, 16, 4) != 0xf {
        return Err("it flushes subnormal numbers, which is not simulated".into());
    }
    if (properties >> 10 & 1 == 1) != (chip.wave == 32) && chip.family != Family::Gfx9 {
        return Err("its descriptor and its metadata name different waves".into());
    }
    let mut at = 0;
    let mut arguments = None;
    // Private segment buffer, dispatch, queue, arguments, dispatch id, scratch, private size.
    for (bit, count) in [4, 2, 2, 2, 2, 2, 1].into_iter().enumerate() {
        if properties >> bit & 1 == 0 {
            continue;
        }
        if bit == 3 {
            arguments = Some(at);
        }
        at += count;
    }
    let user = field(second, 1, 5) as u16;
    if user < at {
        return Err("its descriptor has more values for registers than registers".into());
    }
    let mut groups = [None; 3];
    if chip.family == Family::Gfx12 {
        // `ttmp9` has x, `ttmp7` y and z.
        groups = [None; 3];
    } else {
        let mut at = user;
        for (dimension, place) in groups.iter_mut().enumerate() {
            if field(second, 7 + dimension as u32, 1) == 1 {
                *place = Some(at);
                at += 1;
            }
        }
    }
    Ok(Start { arguments, groups, threads: field(second, 11, 2) + 1 })
}

fn step(context: &Context, lines: &[Line]) -> Result<Step, Refusal> {
    let [line] = lines else {
        let [first, second] = lines else { return Err("more than two instructions in one".into()) };
        return dual(context, first, second);
    };
    let name = line.mnemonic.as_str();
    if let Some(step) = control::decode(context, line)? {
        return Ok(step);
    }
    if let Some(row) = super::table::transfer(name) {
        return access::decode(context, line, row);
    }
    if let Some(row) = super::table::scalar(name) {
        return scalar::decode(context, line, row);
    }
    if let Some(step) = vector::lanes(context, line)? {
        return Ok(step);
    }
    let (vector, reads, writes) = vector::decode(context, line)?;
    Ok(Step { action: Action::Vector(Box::new(vector)), reads, writes })
}

fn dual(context: &Context, first: &Line, second: &Line) -> Result<Step, Refusal> {
    let half = |line: &Line| {
        let name = line.mnemonic.strip_prefix("v_dual_").ok_or("it is not a half of a dual instruction")?;
        vector::decode(context, &Line { mnemonic: format!("v_{name}"), ..line.clone() })
    };
    let (x, mut reads, mut writes) = half(first)?;
    let (y, more_reads, more_writes) = half(second)?;
    reads.extend(more_reads);
    writes.extend(more_writes);
    Ok(Step { action: Action::Dual(Box::new([x, y])), reads, writes })
}
