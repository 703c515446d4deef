//! Decoded kernels.

use super::super::arithmetic::narrow::Exact;
use super::super::arithmetic::{Shape, Test};
use crate::Parameter;
use crate::lanes::memory::{MOST_ELEMENTS, Space};
use std::sync::Arc;

/// A kernel, ready to run.
pub(crate) struct Code {
    pub name: String,
    pub text: Arc<str>,
    pub steps: Vec<Step>,
    /// Registers of each size.
    pub words: u32,
    pub longs: u32,
    pub predicates: u32,
    /// Registers that hold the same from the start of a block on.
    pub word_constants: Vec<(u32, u32)>,
    pub long_constants: Vec<(u32, u64)>,
    pub predicate_constants: Vec<(u32, bool)>,
    pub specials: Vec<(u32, Special)>,
    /// Registers that hold addresses of variables.
    pub addresses: Vec<(u32, usize, i64)>,
    /// Registers that hold addresses of parameters.
    pub parameter_addresses: Vec<(u32, usize)>,
    pub params: Vec<Parameter>,
    pub variables: Vec<Data>,
    /// Bytes of LOCAL memory that the kernel declares; an external array follows them.
    pub local_bytes: usize,
    /// The launch says how large the external array is.
    pub has_external: bool,
    /// Bytes of the smallest accesses to GLOBAL and LOCAL memory, as powers of two.
    pub granule: [u32; 2],
    /// Parameters and variables whose memory is written, by bit.
    pub written: u64,
    pub required: Option<[u32; 3]>,
    pub most: Option<Vec<u32>>,
}

/// A variable in GLOBAL or constant memory.
pub(crate) struct Data {
    pub name: String,
    pub bytes: Vec<u8>,
}

pub(crate) struct Step {
    pub action: Action,
    pub guard: Option<Predicate>,
    pub line: u32,
    /// Line of the source code that it is for, or 0.
    pub source_line: u32,
}

/// A register, by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Register {
    Predicate(u32),
    /// With its bits: 16 or 32.
    Word(u32, u32),
    Long(u32),
}

impl Register {
    pub fn number(self) -> u32 {
        match self {
            Register::Predicate(number) | Register::Word(number, _) | Register::Long(number) => number,
        }
    }

    pub fn bits(self) -> u32 {
        match self {
            Register::Predicate(_) => 1,
            Register::Word(_, bits) => bits,
            Register::Long(_) => 64,
        }
    }
}

/// A predicate as an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predicate {
    pub register: u32,
    pub is_negated: bool,
}

/// Registers that the machine fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
    Lane,
    Warp,
    Warps,
    LanesEqual,
    LanesBelow,
    LanesUpTo,
    LanesFrom,
    LanesAbove,
    LocalBytes,
    ExternalBytes,
}

/// Of predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    Move,
    Not,
    And,
    Or,
    Xor,
}

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Long(u32),
    Word(u32),
}

#[derive(Clone)]
pub(crate) struct Transfer {
    pub space: Space,
    /// Bytes of an element.
    pub size: usize,
    pub count: usize,
    /// Loaded values fill their registers with their sign.
    pub is_signed: bool,
    pub base: Address,
    pub offset: i64,
    /// The registers; none for unused values.
    pub registers: [Option<Register>; MOST_ELEMENTS],
    pub is_strong: bool,
    /// `.nc`: of memory that is not written while the kernel runs.
    pub is_constant: bool,
    /// Regions that the address may be in.
    pub origins: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    AddInteger,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
    And,
    Or,
    Xor,
}

#[derive(Clone)]
pub(crate) enum AtomicOperator {
    Reduce(Reduction),
    AddSingle {
        flush: bool,
    },
    AddDouble,
    /// f16, bf16 and pairs.
    Exact(Exact),
    Exchange,
    /// The operand is the value compared, the second one the value stored.
    CompareAndSwap,
    Increment,
    Decrement,
}

#[derive(Clone)]
pub(crate) struct Atomic {
    pub space: Space,
    pub size: usize,
    pub count: usize,
    pub base: Address,
    pub offset: i64,
    pub operator: AtomicOperator,
    /// Old values; none for `red`.
    pub to: [Option<Register>; MOST_ELEMENTS],
    pub from: [Option<Register>; MOST_ELEMENTS],
    pub second: Option<Register>,
    pub origins: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchKind {
    Any,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Wait,
    Arrive,
    /// `bar.red`: and wait; the predicate's count, and, or.
    Count,
    And,
    Or,
}

/// Which result bits are unwritten, given the unwritten bits of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// All.
    All,
    /// Those that depend on unwritten operand bits, found by trial.
    Bits,
    /// All bits from the lowest unwritten one upwards: carries propagate that way.
    Upward,
    /// The elements that are unwritten in any operand, of vectors whose elements have this many bits.
    Parts(u32),
}

pub(crate) enum Action {
    Compute {
        shape: Shape,
        follows: Follows,
        to: u32,
        from: [u32; 4],
    },
    /// f16, bf16, pairs, and directed rounding.
    Exact {
        of: Exact,
        follows: Follows,
        to: u32,
        from: [u32; 3],
    },
    Compare {
        test: Test,
        from: [u32; 2],
        to: [Option<u32>; 2],
        combine: Option<(Logic, Predicate)>,
    },
    Logic {
        logic: Logic,
        to: u32,
        from: [Predicate; 2],
    },
    SelectWord {
        to: u32,
        from: [u32; 2],
        by: Predicate,
    },
    SelectLong {
        to: u32,
        from: [u32; 2],
        by: Predicate,
    },
    /// All bits, or 1.0, or 0 by a predicate.
    Spread {
        to: u32,
        one: u32,
        by: u32,
    },
    Parameter {
        to: Register,
        offset: usize,
        size: usize,
        is_signed: bool,
    },
    /// A parameter whose address is computed.
    ParameterAt {
        to: Register,
        base: u32,
        offset: i64,
        size: usize,
        is_signed: bool,
    },
    Load(Box<Transfer>),
    Store(Box<Transfer>),
    Atomic(Box<Atomic>),
    Shuffle {
        mode: ShuffleMode,
        to: Option<u32>,
        valid: Option<u32>,
        value: u32,
        by: u32,
        clamp: u32,
        members: u32,
    },
    Vote {
        mode: VoteMode,
        to: u32,
        of: Predicate,
        members: u32,
    },
    Match {
        kind: MatchKind,
        to: u32,
        valid: Option<u32>,
        value: Register,
        members: u32,
    },
    Reduce {
        reduction: Reduction,
        to: u32,
        value: u32,
        members: u32,
    },
    ActiveMask {
        to: u32,
    },
    /// `bar.warp.sync`
    Meet {
        members: u32,
    },
    Barrier {
        kind: BarrierKind,
        number: u32,
        threads: Option<u32>,
        is_aligned: bool,
        to: Option<u32>,
        of: Option<Predicate>,
    },
    Branch(u32),
    Switch {
        index: u32,
        targets: Vec<u32>,
    },
    Exit,
    Trap,
    Nothing,
}
