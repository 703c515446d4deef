//! PTX as it is written: modules, variables, kernels, statements.

use super::types::Type;
use crate::Position;

#[derive(Debug, Default)]
pub(super) struct Source {
    /// PTX ISA version, major and minor.
    pub version: (u32, u32),
    /// Such as `sm_80`.
    pub target: String,
    pub variables: Vec<Variable>,
    pub entries: Vec<Entry>,
}

/// State spaces that a variable can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum VariableSpace {
    Global,
    Const,
    Shared,
    Local,
}

#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub at: Position,
    pub name: String,
    pub space: VariableSpace,
    pub alignment: usize,
    /// Bytes; `None` for an external array without a size, whose bytes the launch decides.
    pub bytes: Option<usize>,
    /// Values of a variable that has some; what follows them is zero.
    pub initial: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    pub name: String,
    pub at: Position,
    pub params: Vec<Parameter>,
    /// Threads of a block that are required.
    pub required: Option<[u32; 3]>,
    /// Threads of a block at the most, by dimension; one number bounds their product.
    pub most: Option<Vec<u32>>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub name: String,
    pub place: crate::Parameter,
}

#[derive(Debug)]
pub(super) enum Statement {
    Label(String, Position),
    Registers {
        kind: Type,
        name: String,
        /** `%r<5>` declares `%r0` to `%r4`. */
        count: Option<u32>,
        at: Position,
    },
    Variable(Variable),
    Instruction(Instruction),
    /// `{`: registers and labels until `}` are its own.
    Open,
    Close,
    /// `label: .branchtargets a, b;`
    Targets(String, Vec<String>),
}

#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub at: Position,
    /// Line of the source code that it is for, as `.loc` says; 0 where nothing does.
    pub source_line: u32,
    /// Predicate, and whether it is negated.
    pub guard: Option<(String, bool)>,
    /// Such as `ld`, `global`, `v4`, `b32`.
    pub words: Vec<String>,
    pub operands: Vec<Operand>,
}

impl Instruction {
    pub fn name(&self) -> String {
        self.words.join(".")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// A register, a special register, a label or a variable.
    Name(String),
    /// A special register's dimension: `%tid.x`.
    Dimension(String, String),
    Integer(i128),
    Single(u32),
    Double(u64),
    /// `!%p1`
    Not(String),
    /// `[base + offset]`
    Memory(Option<String>, i64),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `%r1|%p1`
    Pair(String, String),
    /// `_`
    Nothing,
}
