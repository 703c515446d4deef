//! Moves, selections, comparisons, conversions.

use super::super::arithmetic::convert::{self, Conversion};
use super::super::arithmetic::{Shape, WARP, compare, integer};
use super::super::syntax::Operand;
use super::super::types::Type;
use super::{Action, Decoder, Follows, Form, Logic, Predicate, Register, Result};
use crate::float::Rounding;

impl<'a> Decoder<'a> {
    pub(super) fn mov(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let kind = form.kind()?;
        form.done()?;
        form.count(operands, 2)?;
        match (&operands[0], &operands[1]) {
            (_, Operand::Vector(parts)) => return self.pack(&form, kind, &operands[0], parts),
            (Operand::Vector(parts), _) => return self.unpack(&form, kind, parts, &operands[1]),
            _ => {}
        }
        if kind == Type::Pred {
            let to = self.target(&operands[0], Type::Pred)?.number();
            let from = self.predicate(&operands[1])?;
            self.push(Action::Logic { logic: Logic::Move, to, from: [from; 2] });
            return Ok(());
        }
        let shape = integer::one("mov", kind).ok_or_else(|| form.unknown("no such type of moves"))?;
        self.compute(&form, shape, &[kind, kind], operands)
    }

    /// `mov.b32 %r1, {%rs1, %rs2}`
    fn pack(&mut self, form: &Form, kind: Type, to: &'a Operand, parts: &'a [Operand]) -> Result<()> {
        let part = match (kind.bits(), parts.len()) {
            (32, 2) | (64, 4) => Type::B16,
            (64, 2) => Type::B32,
            _ => return Err(form.unknown("no such vector")),
        };
        let mut from = Vec::new();
        for operand in parts {
            from.push(self.source(operand, part)?.number());
        }
        let to = self.target(to, kind)?;
        let packed = |shape, to: Register, [low, high]: [u32; 2]| {
            let from = [low, high, 0, 0];
            Action::Compute { shape, follows: Follows::Bits, to: to.number(), from }
        };
        let halves: fn(
            &super::super::arithmetic::Word,
            &super::super::arithmetic::Word,
            &mut super::super::arithmetic::Word,
        ) = |low, high, out| {
            for lane in 0..WARP {
                out[lane] = (low[lane] & 0xffff) | high[lane] << 16;
            }
        };
        if part == Type::B16 && kind.bits() == 32 {
            let shape = Shape::WWW(halves);
            self.push(packed(shape, to, [from[0], from[1]]));
            return Ok(());
        }
        let words = match part {
            Type::B32 => [from[0], from[1]],
            _ => {
                let [low, high] = [0, 2].map(|first| {
                    let half = self.temporary(Type::B32);
                    self.push(packed(Shape::WWW(halves), half, [from[first], from[first + 1]]));
                    half.number()
                });
                [low, high]
            }
        };
        let shape = Shape::LWW(|low, high, out| {
            for lane in 0..WARP {
                out[lane] = u64::from(low[lane]) | u64::from(high[lane]) << 32;
            }
        });
        self.push(packed(shape, to, words));
        Ok(())
    }

    /// `mov.b32 {%rs1, %rs2}, %r1`
    fn unpack(&mut self, form: &Form, kind: Type, parts: &'a [Operand], from: &'a Operand) -> Result<()> {
        let part = match (kind.bits(), parts.len()) {
            (32, 2) | (64, 4) => Type::B16,
            (64, 2) => Type::B32,
            _ => return Err(form.unknown("no such vector")),
        };
        let from = self.source(from, kind)?.number();
        for (number, operand) in parts.iter().enumerate() {
            if *operand == Operand::Nothing {
                continue;
            }
            let to = self.target(operand, part)?.number();
            let shape = match (kind.bits(), part.bits(), number) {
                (32, _, 0) => low_half(),
                (32, _, _) => high_half(),
                (_, 32, 0) => Shape::WL(|x, out| (0..WARP).for_each(|lane| out[lane] = x[lane] as u32)),
                (_, 32, _) => Shape::WL(|x, out| (0..WARP).for_each(|lane| out[lane] = (x[lane] >> 32) as u32)),
                (_, _, 0) => Shape::WL(|x, out| (0..WARP).for_each(|lane| out[lane] = x[lane] as u32 & 0xffff)),
                (_, _, 1) => Shape::WL(|x, out| (0..WARP).for_each(|lane| out[lane] = (x[lane] >> 16) as u32 & 0xffff)),
                (_, _, 2) => Shape::WL(|x, out| (0..WARP).for_each(|lane| out[lane] = (x[lane] >> 32) as u32 & 0xffff)),
                _ => Shape::WL(|x, out| (0..WARP).for_each(|lane| out[lane] = (x[lane] >> 48) as u32)),
            };
            self.push(Action::Compute { shape, follows: Follows::Bits, to, from: [from, 0, 0, 0] });
        }
        Ok(())
    }

    /// Addresses of GLOBAL memory are generic ones; those of LOCAL memory nobody is to make generic.
    pub(super) fn address_space(&mut self, name: &str, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        form.takes("to");
        let space = form.one_of(&["global", "const"]);
        if name != "cvta" || space.is_none() {
            return Err(form.unknown("accesses name their memory: there are no generic addresses of LOCAL memory"));
        }
        let kind = form.kind()?;
        form.done()?;
        let shape = integer::one("mov", Type::B64).ok_or_else(|| form.unknown("no such form"))?;
        self.compute(&form, shape, &[kind, kind], operands)
    }

    /// Result and, behind `|`, its complement.
    fn pair(&mut self, operand: &'a Operand) -> Result<[Option<u32>; 2]> {
        match operand {
            Operand::Pair(first, second) => {
                let place = |decoder: &mut Self, name: &str| match name {
                    "_" => Ok(None),
                    _ => decoder.predicate_named(name).map(Some),
                };
                Ok([place(self, first)?, place(self, second)?])
            }
            Operand::Nothing => Ok([None, None]),
            _ => Ok([Some(self.target(operand, Type::Pred)?.number()), None]),
        }
    }

    pub(super) fn compare(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let Some(&comparison) = form.words.first() else { return Err(form.unknown("it compares nothing")) };
        form.words.remove(0);
        let logic = form.one_of(&["and", "or", "xor"]).map(logic_named);
        let flush = form.takes("ftz");
        let kind = form.kind()?;
        form.done()?;
        let test = compare::compare(comparison, kind.part().unwrap_or(kind), flush);
        let test = test.ok_or_else(|| form.unknown("no such comparison"))?;
        form.count(operands, 3 + usize::from(logic.is_some()))?;
        let from = [self.source(&operands[1], kind)?.number(), self.source(&operands[2], kind)?.number()];
        let combine = match logic {
            Some(logic) => Some((logic, self.predicate(&operands[3])?)),
            None => None,
        };
        let to = self.pair(&operands[0])?;
        let Some(part) = kind.part() else {
            self.push(Action::Compare { test, from, to, combine });
            return Ok(());
        };
        // Compares both elements of a register, each into its own predicate; `combine` may read the first.
        let places = to.map(|to| to.map(|_| self.temporary(Type::Pred).number()));
        for (half, place) in [low_half(), high_half()].into_iter().zip(places) {
            let halves = from.map(|from| {
                let to = self.temporary(part).number();
                let from = [from, 0, 0, 0];
                self.push(Action::Compute { shape: half.clone(), follows: Follows::Bits, to, from });
                to
            });
            self.push(Action::Compare { test, from: halves, to: [place, None], combine });
        }
        let guard = self.guard.map(|guard| guard.register);
        let mut moves: Vec<(u32, u32)> = to.into_iter().flatten().zip(places.into_iter().flatten()).collect();
        // The predicate that decides what runs changes last.
        moves.sort_by_key(|&(to, _)| guard == Some(to));
        for (to, register) in moves {
            let from = [Predicate { register, is_negated: false }; 2];
            self.push(Action::Logic { logic: Logic::Move, to, from });
        }
        Ok(())
    }

    pub(super) fn set(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let Some(&comparison) = form.words.first() else { return Err(form.unknown("it compares nothing")) };
        form.words.remove(0);
        let flush = form.takes("ftz");
        let (to_kind, kind) = (form.kind()?, form.kind()?);
        form.done()?;
        form.count(operands, 3)?;
        let test = compare::compare(comparison, kind, flush).ok_or_else(|| form.unknown("no such comparison"))?;
        let one = match to_kind {
            Type::U32 | Type::S32 | Type::B32 => u32::MAX,
            Type::F32 => 1f32.to_bits(),
            _ => return Err(form.unknown("its result is u32, s32 or f32")),
        };
        let from = [self.source(&operands[1], kind)?.number(), self.source(&operands[2], kind)?.number()];
        let by = self.temporary(Type::Pred).number();
        let to = self.target(&operands[0], to_kind)?.number();
        self.push(Action::Compare { test, from, to: [Some(by), None], combine: None });
        self.push(Action::Spread { to, one, by });
        Ok(())
    }

    pub(super) fn select(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let kind = form.kind()?;
        form.done()?;
        form.count(operands, 4)?;
        let by = self.predicate(&operands[3])?;
        self.selection(kind, &operands[..3], by)
    }

    fn selection(&mut self, kind: Type, operands: &'a [Operand], by: Predicate) -> Result<()> {
        let from = [self.source(&operands[1], kind)?.number(), self.source(&operands[2], kind)?.number()];
        let action = match self.target(&operands[0], kind)? {
            Register::Word(to, _) => Action::SelectWord { to, from, by },
            Register::Long(to) => Action::SelectLong { to, from, by },
            Register::Predicate(_) => return self.syntax("`selp` selects no predicates"),
        };
        self.push(action);
        Ok(())
    }

    /// `slct`: the first operand where the third is not negative.
    pub(super) fn select_by_sign(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let flush = form.takes("ftz");
        let (kind, by) = (form.kind()?, form.kind()?);
        form.done()?;
        form.count(operands, 4)?;
        let zero = self.word(0).number();
        let test = compare::compare("ge", by, flush).filter(|_| matches!(by, Type::S32 | Type::F32));
        let test = test.ok_or_else(|| form.unknown("it selects by s32 or f32"))?;
        let from = [self.source(&operands[3], by)?.number(), zero];
        let register = self.temporary(Type::Pred).number();
        self.push(Action::Compare { test, from, to: [Some(register), None], combine: None });
        self.selection(kind, &operands[..3], Predicate { register, is_negated: false })
    }

    pub(super) fn property(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let kind = form.kind()?;
        let property = form.words.pop().unwrap_or_default();
        form.done()?;
        form.count(operands, 2)?;
        let test = compare::property(property, kind).ok_or_else(|| form.unknown("no such property"))?;
        let from = [self.source(&operands[1], kind)?.number(), 0];
        let to = [Some(self.target(&operands[0], Type::Pred)?.number()), None];
        self.push(Action::Compare { test, from, to, combine: None });
        Ok(())
    }

    pub(super) fn convert(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let mut how = Conversion {
            flush: form.takes("ftz"),
            saturate: form.takes("sat"),
            finite: form.takes("satfinite"),
            relu: form.takes("relu"),
            ..Conversion::default()
        };
        how.to_float = form.one_of(&["rn", "rz", "rm", "rp", "rna"]).map(rounding);
        how.to_integer = form.one_of(&["rni", "rzi", "rmi", "rpi"]).map(rounding);
        let (to, from) = (form.kind()?, form.kind()?);
        form.done()?;
        let takes_two = convert::takes_two(to, from);
        form.count(operands, 2 + usize::from(takes_two))?;
        let source = self.any_source(&operands[1], from)?;
        let second = if takes_two { self.any_source(&operands[2], from)? } else { source }.number();
        let Operand::Name(name) = &operands[0] else { return self.syntax("the result goes into a register") };
        let target = self.wide_target(name, to)?;
        let is_exact = source.bits() == from.bits() && target.bits() == to.bits();
        let fast = convert::fast(to, from, how, target.bits()).filter(|_| is_exact);
        let shape = match fast {
            Some(shape) => shape,
            None => {
                let each = convert::convert(to, from, how, target.bits());
                let each =
                    each.ok_or_else(|| form.unknown("no such conversion, or its rounding is not as it must be"))?;
                Shape::Each(each, target.bits() == 64, source.bits() == 64)
            }
        };
        let is_exact = from.is_integer() && to.is_integer() && !how.saturate;
        let follows = if is_exact || takes_two { Follows::Bits } else { Follows::All };
        let from = [source.number(), second, 0, 0];
        self.push(Action::Compute { shape, follows, to: target.number(), from });
        Ok(())
    }

    /// An operand whose register may have more bits than the type.
    pub(super) fn any_source(&mut self, operand: &'a Operand, kind: Type) -> Result<Register> {
        match operand {
            Operand::Name(name) if self.register(name).is_some() => self.wide_target(name, kind),
            _ => self.source(operand, kind),
        }
    }
}

fn low_half() -> Shape {
    Shape::WW(|x, out| (0..WARP).for_each(|lane| out[lane] = x[lane] & 0xffff))
}

fn high_half() -> Shape {
    Shape::WW(|x, out| (0..WARP).for_each(|lane| out[lane] = x[lane] >> 16))
}

pub(super) fn logic_named(name: &str) -> Logic {
    match name {
        "and" => Logic::And,
        "or" => Logic::Or,
        "xor" => Logic::Xor,
        "not" => Logic::Not,
        _ => Logic::Move,
    }
}

pub(super) fn rounding(name: &str) -> Rounding {
    match name {
        "rz" | "rzi" => Rounding::Zero,
        "rm" | "rmi" => Rounding::Down,
        "rp" | "rpi" => Rounding::Up,
        "rna" => Rounding::Away,
        _ => Rounding::Even,
    }
}
