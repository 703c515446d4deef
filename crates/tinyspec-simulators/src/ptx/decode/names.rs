//! Names: registers, constants, special registers, variables.

use super::super::syntax::{Entry, Operand, Source, Variable, VariableSpace};
use super::super::types::Type;
use super::code::Data;
use super::{Code, Decoder, Predicate, Register, Result, Special};
use crate::lanes::memory::LOCAL_BASE;
use crate::{Position, SimulatorError};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// `%r<5>`: registers that are made when somebody names them.
pub(super) struct Range<'a> {
    prefix: &'a str,
    count: u32,
    kind: Type,
    made: FxHashMap<u32, Register>,
}

/// Where a variable is.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Local(u64),
    /// By number among [`Code::variables`].
    Data(usize),
    Parameter(usize),
}

/// Registers of values that never change.
#[derive(Default)]
pub(super) struct Constants {
    words: FxHashMap<u32, u32>,
    longs: FxHashMap<u64, u32>,
    predicates: FxHashMap<bool, u32>,
    specials: Vec<(Special, u32)>,
    addresses: FxHashMap<(usize, i64), u32>,
    /// Of parameters, in the memory of parameters.
    parameters: FxHashMap<(usize, i64), u32>,
}

impl Constants {
    pub fn put(&self, code: &mut Code) {
        code.word_constants = self.words.iter().map(|(&value, &register)| (register, value)).collect();
        code.long_constants = self.longs.iter().map(|(&value, &register)| (register, value)).collect();
        code.predicate_constants = self.predicates.iter().map(|(&value, &register)| (register, value)).collect();
        code.specials = self.specials.iter().map(|&(special, register)| (register, special)).collect();
        let addresses = self.addresses.iter();
        code.addresses = addresses.map(|(&(variable, offset), &register)| (register, variable, offset)).collect();
        for (&(parameter, offset), &register) in &self.parameters {
            let address = (code.params[parameter].offset as u64).wrapping_add_signed(offset);
            code.parameter_addresses.push((register, parameter));
            code.long_constants.push((register, address));
        }
    }
}

impl<'a> Decoder<'a> {
    pub(super) fn new(source: &'a Source, entry: &'a Entry, text: Arc<str>) -> Result<Decoder<'a>> {
        let code = Code {
            name: entry.name.clone(),
            text,
            steps: Vec::new(),
            words: 0,
            longs: 0,
            predicates: 0,
            word_constants: Vec::new(),
            long_constants: Vec::new(),
            predicate_constants: Vec::new(),
            specials: Vec::new(),
            addresses: Vec::new(),
            parameter_addresses: Vec::new(),
            params: entry.params.iter().map(|parameter| parameter.place).collect(),
            variables: Vec::new(),
            local_bytes: 0,
            has_external: false,
            granule: [3, 3],
            written: 0,
            required: entry.required,
            most: entry.most.clone(),
        };
        let mut decoder = Decoder {
            code,
            entry,
            scopes: vec![FxHashMap::default()],
            ranges: vec![Vec::new()],
            labels: FxHashMap::default(),
            jumps: Vec::new(),
            tables: FxHashMap::default(),
            switches: Vec::new(),
            constants: Constants::default(),
            variables: FxHashMap::default(),
            guard: None,
            at: entry.at,
            source_line: 0,
        };
        for (number, parameter) in entry.params.iter().enumerate() {
            decoder.variables.insert(&parameter.name, Place::Parameter(number));
        }
        // An external array lies behind all that have a size.
        let (sized, external): (Vec<_>, Vec<_>) =
            source.variables.iter().partition(|variable| variable.bytes.is_some());
        for variable in sized.into_iter().chain(external) {
            decoder.variable(variable)?;
        }
        Ok(decoder)
    }

    pub(super) fn variable(&mut self, variable: &'a Variable) -> Result<()> {
        let Variable { at, name, space, alignment, bytes, initial } = variable;
        let refuse = |reason: &str| Err(SimulatorError::Unknown { at: *at, what: name.clone(), reason: reason.into() });
        let place = match (space, bytes) {
            (VariableSpace::Shared, _) if initial.is_some() => {
                return refuse("LOCAL memory has no values at the start");
            }
            (VariableSpace::Shared, bytes) => {
                let start = self.code.local_bytes.next_multiple_of((*alignment).max(1));
                self.code.local_bytes = start + bytes.unwrap_or(0);
                self.code.has_external |= bytes.is_none();
                Place::Local(LOCAL_BASE + start as u64)
            }
            (VariableSpace::Local, _) => return refuse("kernels are to need no stack"),
            (_, None) => return refuse("it has no size"),
            (_, Some(bytes)) => {
                let mut data = initial.clone().unwrap_or_default();
                data.resize(*bytes, 0);
                self.code.variables.push(Data { name: name.clone(), bytes: data });
                Place::Data(self.code.variables.len() - 1)
            }
        };
        self.variables.insert(name, place);
        Ok(())
    }

    pub(super) fn declare(&mut self, kind: Type, name: &'a str, count: Option<u32>, at: Position) -> Result<()> {
        if kind == Type::B128 {
            return Err(SimulatorError::Unknown {
                at,
                what: name.into(),
                reason: "registers have 64 bits at most".into(),
            });
        }
        if let Some(count) = count {
            if let Some(ranges) = self.ranges.last_mut() {
                ranges.push(Range { prefix: name, count, kind, made: FxHashMap::default() });
            }
            return Ok(());
        }
        let register = self.code.allocate(kind);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, register);
        }
        Ok(())
    }

    pub(super) fn register(&mut self, name: &str) -> Option<Register> {
        for depth in (0..self.scopes.len()).rev() {
            if let Some(&register) = self.scopes[depth].get(name) {
                return Some(register);
            }
            for range in &mut self.ranges[depth] {
                let number =
                    name.strip_prefix(range.prefix).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
                let Some(number) = number.and_then(|digits| digits.parse::<u32>().ok()) else { continue };
                if number < range.count {
                    let (code, kind) = (&mut self.code, range.kind);
                    return Some(*range.made.entry(number).or_insert_with(|| code.allocate(kind)));
                }
            }
        }
        None
    }

    fn known(&mut self, name: &str) -> Result<Register> {
        match self.register(name) {
            Some(register) => Ok(register),
            None => self.syntax(format!("there is no register `{name}`")),
        }
    }

    pub(super) fn place_of(&self, name: &str) -> Option<Place> {
        self.variables.get(name).copied()
    }

    /// A register whose size must be that of the type.
    pub(super) fn target(&mut self, operand: &'a Operand, kind: Type) -> Result<Register> {
        let Operand::Name(name) = operand else { return self.syntax("the result goes into a register") };
        let register = self.known(name)?;
        self.sized(register, kind, name)
    }

    fn sized(&self, register: Register, kind: Type, name: &str) -> Result<Register> {
        let is_predicate = matches!(register, Register::Predicate(_));
        let fits = match kind {
            Type::Pred => is_predicate,
            // Bytes lie in registers of 16 bits.
            _ => !is_predicate && register.bits() == kind.bits().max(16),
        };
        match fits {
            true => Ok(register),
            false => self.syntax(format!("`{name}` has {} bits, `.{}` is wanted", register.bits(), kind.name())),
        }
    }

    /// A register of any size that a value of the type fits into.
    pub(super) fn wide_target(&mut self, name: &str, kind: Type) -> Result<Register> {
        let register = self.known(name)?;
        match register {
            Register::Predicate(_) => self.syntax(format!("`{name}` is a predicate")),
            _ if register.bits() < kind.bits() => {
                self.syntax(format!("`{name}` has {} bits, `.{}` needs more", register.bits(), kind.name()))
            }
            _ => Ok(register),
        }
    }

    /// The register of a source operand of this type: a register, a special register, or a constant.
    pub(super) fn source(&mut self, operand: &'a Operand, kind: Type) -> Result<Register> {
        match operand {
            Operand::Name(name) => {
                if let Some(register) = self.register(name) {
                    return self.sized(register, kind, name);
                }
                self.named(name, "", kind)
            }
            Operand::Dimension(name, dimension) => self.named(name, dimension, kind),
            Operand::Integer(_) | Operand::Single(_) | Operand::Double(_) => self.constant(operand, kind),
            Operand::Memory(Some(name), offset) if self.place_of(name).is_some() => self.address_of(name, *offset),
            _ => self.syntax("a register or a constant is wanted"),
        }
    }

    /// A special register, or the address of a variable.
    fn named(&mut self, name: &str, dimension: &str, kind: Type) -> Result<Register> {
        if self.place_of(name).is_some() && dimension.is_empty() {
            let register = self.address_of(name, 0)?;
            if register.bits() == kind.bits() {
                return Ok(register);
            }
            if let (Some(Place::Local(address)), 32) = (self.place_of(name), kind.bits()) {
                return Ok(self.word(address as u32));
            }
            return self.syntax(format!("the address of `{name}` has 64 bits"));
        }
        let Some(special) = special(name, dimension) else {
            return self.syntax(format!("there is no register or variable `{name}`"));
        };
        let known = self.constants.specials.iter().find(|(other, _)| *other == special).map(|&(_, number)| number);
        let number = known.unwrap_or_else(|| {
            let number = self.code.allocate(Type::B32).number();
            self.constants.specials.push((special, number));
            number
        });
        match kind.bits() {
            32 => Ok(Register::Word(number, 32)),
            // The lower half.
            16 => Ok(Register::Word(number, 16)),
            _ => self.syntax(format!("`{name}` has 32 bits")),
        }
    }

    pub(super) fn address_of(&mut self, name: &str, offset: i64) -> Result<Register> {
        match self.place_of(name) {
            Some(Place::Local(address)) => Ok(self.long(address.wrapping_add_signed(offset))),
            Some(Place::Data(variable)) => {
                let code = &mut self.code;
                let allocate = || code.allocate(Type::B64).number();
                Ok(Register::Long(*self.constants.addresses.entry((variable, offset)).or_insert_with(allocate)))
            }
            Some(Place::Parameter(parameter)) => {
                let code = &mut self.code;
                let allocate = || code.allocate(Type::B64).number();
                Ok(Register::Long(*self.constants.parameters.entry((parameter, offset)).or_insert_with(allocate)))
            }
            None => self.syntax(format!("there is no variable `{name}`")),
        }
    }

    fn constant(&mut self, operand: &Operand, kind: Type) -> Result<Register> {
        let bits = match (operand, kind) {
            (Operand::Integer(value), Type::Pred) => return Ok(self.truth(*value != 0)),
            (Operand::Integer(_), Type::F32 | Type::F64 | Type::F16 | Type::BF16) => {
                return self.syntax(format!("`.{}` takes a float, such as 0f3F800000", kind.name()));
            }
            (Operand::Integer(value), _) => *value as u64,
            (Operand::Single(bits), Type::F64) => f64::from(f32::from_bits(*bits)).to_bits(),
            (Operand::Single(bits), _) if kind.bits() == 32 => u64::from(*bits),
            (Operand::Double(bits), Type::F32) => u64::from((f64::from_bits(*bits) as f32).to_bits()),
            (Operand::Double(bits), _) if kind.bits() == 64 => *bits,
            _ => return self.syntax(format!("this is not a constant of `.{}`", kind.name())),
        };
        Ok(match kind.bits() {
            64 => self.long(bits),
            32 => self.word(bits as u32),
            bits_of => Register::Word(self.word(bits as u32 & ((1u32 << bits_of) - 1)).number(), 16),
        })
    }

    pub(super) fn word(&mut self, value: u32) -> Register {
        let code = &mut self.code;
        Register::Word(*self.constants.words.entry(value).or_insert_with(|| code.allocate(Type::B32).number()), 32)
    }

    pub(super) fn long(&mut self, value: u64) -> Register {
        let code = &mut self.code;
        Register::Long(*self.constants.longs.entry(value).or_insert_with(|| code.allocate(Type::B64).number()))
    }

    pub(super) fn truth(&mut self, value: bool) -> Register {
        let code = &mut self.code;
        Register::Predicate(
            *self.constants.predicates.entry(value).or_insert_with(|| code.allocate(Type::Pred).number()),
        )
    }

    /// A register of nobody else.
    pub(super) fn temporary(&mut self, kind: Type) -> Register {
        self.code.allocate(kind)
    }

    pub(super) fn predicate_named(&mut self, name: &str) -> Result<u32> {
        match self.register(name) {
            Some(Register::Predicate(number)) => Ok(number),
            _ => self.syntax(format!("there is no predicate `{name}`")),
        }
    }

    /// A predicate as an operand: `%p1`, `!%p1`, 0 or 1.
    pub(super) fn predicate(&mut self, operand: &'a Operand) -> Result<Predicate> {
        match operand {
            Operand::Name(name) => Ok(Predicate { register: self.predicate_named(name)?, is_negated: false }),
            Operand::Not(name) => Ok(Predicate { register: self.predicate_named(name)?, is_negated: true }),
            Operand::Integer(value) => {
                let register = self.truth(*value != 0).number();
                Ok(Predicate { register, is_negated: false })
            }
            _ => self.syntax("a predicate is wanted"),
        }
    }
}

impl Code {
    fn allocate(&mut self, kind: Type) -> Register {
        let next = |count: &mut u32| {
            *count += 1;
            *count - 1
        };
        match kind.bits() {
            0 => Register::Predicate(next(&mut self.predicates)),
            64 => Register::Long(next(&mut self.longs)),
            bits => Register::Word(next(&mut self.words), bits.max(16)),
        }
    }
}

fn special(name: &str, dimension: &str) -> Option<Special> {
    let axis = ["x", "y", "z"].iter().position(|axis| *axis == dimension);
    Some(match (name, axis) {
        ("%tid", Some(axis)) => Special::Thread(axis),
        ("%ntid", Some(axis)) => Special::Threads(axis),
        ("%ctaid", Some(axis)) => Special::Block(axis),
        ("%nctaid", Some(axis)) => Special::Blocks(axis),
        ("%laneid", None) => Special::Lane,
        ("%warpid", None) => Special::Warp,
        ("%nwarpid", None) => Special::Warps,
        ("%lanemask_eq", None) => Special::LanesEqual,
        ("%lanemask_lt", None) => Special::LanesBelow,
        ("%lanemask_le", None) => Special::LanesUpTo,
        ("%lanemask_ge", None) => Special::LanesFrom,
        ("%lanemask_gt", None) => Special::LanesAbove,
        ("%total_smem_size", None) => Special::LocalBytes,
        ("%dynamic_smem_size", None) => Special::ExternalBytes,
        _ => return None,
    })
}
