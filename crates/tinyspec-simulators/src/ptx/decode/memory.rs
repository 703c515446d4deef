//! Loads, stores, atomics, fences.

use super::super::arithmetic::Mode;
use super::super::arithmetic::narrow::exact;
use super::super::syntax::Operand;
use super::super::types::Type;
use super::names::Place;
use super::{Action, Address, Atomic, AtomicOperator, Decoder, Form, Reduction, Register, Result, Transfer};
use crate::lanes::memory::{MOST_ELEMENTS, Space};

/// The memory that an access names.
enum Named {
    Parameter,
    Memory(Space),
}

/// Advice to caches.
const ADVICE: [&str; 8] = ["ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak"];
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

impl<'a> Decoder<'a> {
    fn space(form: &mut Form) -> Result<Named> {
        if form.takes("local") {
            return Err(form.unknown("kernels are to need no stack"));
        }
        match form.one_of(&["param", "global", "const", "shared", "shared::cta"]) {
            Some("param") => Ok(Named::Parameter),
            Some("global" | "const") => Ok(Named::Memory(Space::Global)),
            Some(_) => Ok(Named::Memory(Space::Local)),
            None => Err(form.unknown("accesses name their memory: generic addresses are not simulated")),
        }
    }

    /// Suffixes that change nothing here; whether the access is strong.
    fn qualifiers(form: &mut Form) -> bool {
        form.words.retain(|word| !ADVICE.contains(word) && !word.starts_with("L1::") && !word.starts_with("L2::"));
        let is_strong = form.one_of(&["volatile", "relaxed", "acquire", "release", "mmio", "acq_rel"]).is_some();
        while form.one_of(&SCOPES).is_some() {}
        is_strong
    }

    fn elements(form: &mut Form) -> usize {
        match form.one_of(&["v2", "v4", "v8"]) {
            Some("v2") => 2,
            Some("v4") => 4,
            Some(_) => 8,
            None => 1,
        }
    }

    fn address(&mut self, operand: &'a Operand) -> Result<(Address, i64)> {
        let Operand::Memory(base, offset) = operand else { return self.syntax("an address in brackets is wanted") };
        let Some(name) = base else {
            return Ok((Address::Long(self.long(0).number()), *offset));
        };
        match self.register(name) {
            Some(Register::Long(number)) => Ok((Address::Long(number), *offset)),
            Some(Register::Word(number, 32)) => Ok((Address::Word(number), *offset)),
            Some(_) => self.syntax(format!("`{name}` is not an address")),
            None if self.place_of(name).is_some() => Ok((Address::Long(self.address_of(name, 0)?.number()), *offset)),
            None => self.syntax(format!("there is no register or variable `{name}`")),
        }
    }

    /// The smallest access decides how finely memory is watched.
    fn watch(&mut self, space: Space, bytes: usize) {
        let granule = &mut self.code.granule[if space == Space::Global { 0 } else { 1 }];
        *granule = (*granule).min(bytes.trailing_zeros());
    }

    pub(super) fn transfer(&mut self, name: &str, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let named = Self::space(&mut form)?;
        let is_constant = name != "st" && form.takes("nc");
        let is_strong = Self::qualifiers(&mut form);
        let count = Self::elements(&mut form);
        let kind = form.kind()?;
        form.done()?;
        let is_known = matches!(kind.size(), 1 | 2 | 4 | 8) && count * kind.size() <= 32;
        if !is_known || matches!(kind, Type::Pred) {
            return Err(form.unknown("no such access"));
        }
        form.count(operands, 2)?;
        let is_load = name != "st";
        let (values, place) = if is_load { (&operands[0], &operands[1]) } else { (&operands[1], &operands[0]) };
        let values: Vec<&Operand> = match values {
            Operand::Vector(elements) => elements.iter().collect(),
            one => vec![one],
        };
        if values.len() != count {
            return self.syntax(format!("{count} elements are accessed, {} are given", values.len()));
        }
        let mut registers = [None; MOST_ELEMENTS];
        for (register, operand) in registers.iter_mut().zip(values) {
            *register = match operand {
                Operand::Nothing if is_load => None,
                Operand::Name(name) if is_load => Some(self.wide_target(name, kind)?),
                operand if !is_load => Some(self.any_source(operand, kind)?),
                _ => return self.syntax("values are loaded into registers"),
            };
        }
        let space = match named {
            Named::Parameter if is_load => return self.parameter(&form, kind, &registers[..count], place),
            Named::Parameter => return Err(form.unknown("parameters are not written")),
            Named::Memory(space) => space,
        };
        let (base, offset) = self.address(place)?;
        self.watch(space, kind.size() * count);
        let transfer = Transfer {
            space,
            size: kind.size(),
            count,
            is_signed: kind.is_signed(),
            base,
            offset,
            registers,
            is_strong,
            is_constant,
            origins: 0,
        };
        self.push(if is_load { Action::Load(Box::new(transfer)) } else { Action::Store(Box::new(transfer)) });
        Ok(())
    }

    fn parameter(&mut self, form: &Form, kind: Type, registers: &[Option<Register>], place: &'a Operand) -> Result<()> {
        let (Operand::Memory(Some(name), offset), size) = (place, kind.size()) else {
            return Err(form.unknown("parameters are read by name"));
        };
        if let Some(Register::Long(base)) = self.register(name) {
            for (element, register) in registers.iter().enumerate() {
                if let Some(to) = *register {
                    let offset = offset + (element * size) as i64;
                    self.push(Action::ParameterAt { to, base, offset, size, is_signed: kind.is_signed() });
                }
            }
            return Ok(());
        }
        let Some(Place::Parameter(number)) = self.place_of(name) else {
            return self.syntax(format!("there is no parameter `{name}`"));
        };
        let parameter = self.entry.params[number].place;
        let Some(first) =
            usize::try_from(*offset).ok().filter(|first| first + size * registers.len() <= parameter.bytes)
        else {
            return self.syntax(format!("`{name}` has {} bytes", parameter.bytes));
        };
        for (element, register) in registers.iter().enumerate() {
            if let Some(to) = *register {
                let offset = parameter.offset + first + element * size;
                self.push(Action::Parameter { to, offset, size, is_signed: kind.is_signed() });
            }
        }
        Ok(())
    }

    pub(super) fn atomic(&mut self, name: &str, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let Named::Memory(space) = Self::space(&mut form)? else { return Err(form.unknown("parameters are constant")) };
        Self::qualifiers(&mut form);
        let count = Self::elements(&mut form);
        let operation = form.one_of(&["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"]);
        let is_exact = form.takes("noftz");
        let kind = form.kind()?;
        form.done()?;
        let operator = operation.and_then(|operation| operator(operation, kind, space, is_exact));
        let operator = operator.ok_or_else(|| form.unknown("no such atomic"))?;
        let returns = name == "atom";
        let is_swap = matches!(operator, AtomicOperator::CompareAndSwap);
        form.count(operands, usize::from(returns) + 2 + usize::from(is_swap))?;
        let mut rest = operands;
        let mut to = [None; MOST_ELEMENTS];
        if returns {
            for (register, operand) in to.iter_mut().zip(elements_of(&rest[0], count)) {
                *register = match operand {
                    Operand::Nothing => None,
                    operand => Some(self.target(operand, kind)?),
                };
            }
            rest = &rest[1..];
        }
        let (base, offset) = self.address(&rest[0])?;
        let mut from = [None; MOST_ELEMENTS];
        for (register, operand) in from.iter_mut().zip(elements_of(&rest[1], count)) {
            *register = Some(self.source(operand, kind)?);
        }
        if from.iter().flatten().count() != count {
            return self.syntax(format!("{count} elements are wanted"));
        }
        let second = match rest.get(2) {
            Some(operand) => Some(self.source(operand, kind)?),
            None => None,
        };
        self.watch(space, kind.size() * count);
        let size = kind.size();
        let atomic = Atomic { space, size, count, base, offset, operator, to, from, second, origins: 0 };
        self.push(Action::Atomic(Box::new(atomic)));
        Ok(())
    }

    /// Orders the accesses of one thread; it makes no two threads wait, so no race is less of one for it.
    pub(super) fn fence(&mut self, mut form: Form) -> Result<()> {
        while form.one_of(&["sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "gl", "sys"]).is_some() {}
        form.done()?;
        self.push(Action::Nothing);
        Ok(())
    }
}

fn elements_of(operand: &Operand, count: usize) -> Vec<&Operand> {
    match operand {
        Operand::Vector(elements) if count > 1 => elements.iter().collect(),
        one => vec![one],
    }
}

fn operator(operation: &str, kind: Type, space: Space, is_exact: bool) -> Option<AtomicOperator> {
    let is_half = matches!(kind, Type::F16 | Type::F16x2 | Type::BF16 | Type::BF16x2);
    if is_exact != (is_half && operation == "add") {
        return None;
    }
    let is_whole = kind.size() >= 4;
    Some(match (operation, kind) {
        ("add", Type::F32) => AtomicOperator::AddSingle { flush: space == Space::Global },
        ("add", Type::F64) => AtomicOperator::AddDouble,
        ("add", _) if is_half => AtomicOperator::Exact(exact("add", kind, Mode::default())?),
        ("add", Type::U32 | Type::S32 | Type::U64) => AtomicOperator::Reduce(Reduction::AddInteger),
        ("min", Type::S32 | Type::S64) => AtomicOperator::Reduce(Reduction::MinSigned),
        ("max", Type::S32 | Type::S64) => AtomicOperator::Reduce(Reduction::MaxSigned),
        ("min", Type::U32 | Type::U64) => AtomicOperator::Reduce(Reduction::MinUnsigned),
        ("max", Type::U32 | Type::U64) => AtomicOperator::Reduce(Reduction::MaxUnsigned),
        ("and", _) if kind.is_bits() && is_whole => AtomicOperator::Reduce(Reduction::And),
        ("or", _) if kind.is_bits() && is_whole => AtomicOperator::Reduce(Reduction::Or),
        ("xor", _) if kind.is_bits() && is_whole => AtomicOperator::Reduce(Reduction::Xor),
        ("exch", Type::B32 | Type::B64) => AtomicOperator::Exchange,
        ("cas", Type::B16 | Type::B32 | Type::B64) => AtomicOperator::CompareAndSwap,
        ("inc", Type::U32) => AtomicOperator::Increment,
        ("dec", Type::U32) => AtomicOperator::Decrement,
        _ => return None,
    })
}
