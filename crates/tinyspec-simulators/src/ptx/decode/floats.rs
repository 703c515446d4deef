//! Arithmetic: instructions that both integers and floats have, and those of floats.

use super::super::arithmetic::narrow::{self, exact, mixed};
use super::super::arithmetic::{Mode, double, integer, single};
use super::super::syntax::Operand;
use super::super::types::Type;
use super::moves::rounding;
use super::{Action, Decoder, Form, Result};
use crate::float::Rounding;

impl<'a> Decoder<'a> {
    pub(super) fn arithmetic(&mut self, name: &'a str, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let part = form.one_of(&["lo", "hi", "wide"]);
        let mode = Mode {
            rounding: form.one_of(&["rn", "rz", "rm", "rp"]).map(rounding),
            flush: form.takes("ftz"),
            saturate: form.takes("sat"),
            approximate: form.takes("approx"),
            full: form.takes("full"),
            nan: form.takes("NaN"),
            relu: form.takes("relu"),
        };
        let kind = form.kind()?;
        // f32 results of narrower operands: sm_100 and later.
        let narrow = match (name, kind) {
            ("add" | "sub" | "fma", Type::F32) => form.one_of(&["f16", "bf16"]).and_then(Type::named),
            _ => None,
        };
        form.done()?;
        if let Some(narrow) = narrow {
            return self.exact(name, &form, mode, kind, narrow, operands);
        }
        match kind {
            Type::F32x2 => self.pairs(name, &form, mode, operands),
            _ if kind.is_integer() || matches!(kind, Type::U16x2 | Type::S16x2) => {
                self.whole(name, &form, part, mode, kind, operands)
            }
            _ if part.is_some() => Err(form.unknown("products of floats have one part")),
            Type::F32 | Type::F64 | Type::F16 | Type::F16x2 | Type::BF16 | Type::BF16x2 => {
                self.float(name, &form, mode, kind, operands)
            }
            _ => Err(form.unknown("no such form")),
        }
    }

    fn whole(
        &mut self,
        name: &str,
        form: &Form,
        part: Option<&str>,
        mode: Mode,
        kind: Type,
        operands: &'a [Operand],
    ) -> Result<()> {
        let unknown = || form.unknown("no such form of integers");
        let is_plain = mode == Mode { saturate: mode.saturate, relu: mode.relu, ..Mode::default() };
        let is_saturate_known = !mode.saturate || matches!(name, "add" | "sub");
        let is_relu_known = !mode.relu || matches!(name, "min" | "max");
        if !is_plain || !is_saturate_known || !is_relu_known {
            return Err(unknown());
        }
        let double_width = match kind {
            Type::U16 => Type::U32,
            Type::S16 => Type::S32,
            Type::U32 => Type::U64,
            _ => Type::S64,
        };
        let (shape, kinds) = match (name, part) {
            ("mul", Some("wide")) => (integer::wide(kind), vec![double_width, kind, kind]),
            ("mul", Some("lo")) => (integer::two("mul.lo", kind), vec![kind; 3]),
            ("mul", Some("hi")) => (integer::two("mul.hi", kind), vec![kind; 3]),
            ("mad", Some("wide")) => {
                (integer::multiply_add("wide", kind), vec![double_width, kind, kind, double_width])
            }
            ("mad", Some(part)) => (integer::multiply_add(part, kind), vec![kind; 4]),
            (_, Some(_)) => (None, vec![]),
            ("add" | "sub", None) if mode.saturate => (integer::saturating(name, kind), vec![kind; 3]),
            (_, None) if mode.relu => (integer::not_negative(name, kind), vec![kind; 3]),
            ("add" | "min" | "max", None) if matches!(kind, Type::U16x2 | Type::S16x2) => {
                (integer::packed(name, kind), vec![kind; 3])
            }
            ("add" | "sub" | "div" | "rem" | "min" | "max", None) => (integer::two(name, kind), vec![kind; 3]),
            ("abs" | "neg", None) => (integer::one(name, kind), vec![kind; 2]),
            _ => (None, vec![]),
        };
        self.compute(form, shape.ok_or_else(unknown)?, &kinds, operands)
    }

    fn float(&mut self, name: &str, form: &Form, mode: Mode, kind: Type, operands: &'a [Operand]) -> Result<()> {
        check(name, form, mode, kind)?;
        let is_even = mode.rounding.is_none_or(|rounding| rounding == Rounding::Even);
        let count = count(name);
        let kinds = vec![kind; count];
        let shape = match (kind, name) {
            (Type::F64, _) if mode.flush || mode.saturate || mode.nan || mode.relu || !is_even => None,
            (Type::F64, "fma" | "mad") => Some(double::multiply_add()),
            (Type::F64, "rsqrt") => None,
            (Type::F64, _) => {
                if count == 3 {
                    double::two(name)
                } else {
                    double::one(name)
                }
            }
            (Type::F32, _) if !is_even || mode.relu => None,
            (Type::F32, "fma" | "mad") => Some(single::multiply_add(mode)),
            (Type::F32, "abs" | "neg") => single::sign(name, mode),
            (Type::F32, "div") => single::two(name, mode),
            (Type::F32, _) if mode.approximate => single::approximate(name, mode),
            (Type::F32, _) if count == 3 => single::two(name, mode),
            (Type::F32, _) => single::one(name, mode),
            (Type::BF16, "add" | "sub" | "mul") if !mode.flush && !mode.saturate => narrow::brain(name),
            _ => None,
        };
        if let Some(shape) = shape {
            return self.compute(form, shape, &kinds, operands);
        }
        self.exact(name, form, mode, kind, kind, operands)
    }

    /// Two f32 in a register: sm_100 and later.
    fn pairs(&mut self, name: &str, form: &Form, mode: Mode, operands: &'a [Operand]) -> Result<()> {
        check(name, form, mode, Type::F32x2)?;
        let is_plain = mode == Mode { rounding: mode.rounding, ..Mode::default() };
        let shape = single::pair(name).filter(|_| is_plain);
        let shape = shape.ok_or_else(|| form.unknown("no such form of pairs"))?;
        self.compute(form, shape, &vec![Type::F32x2; if name == "fma" { 4 } else { 3 }], operands)
    }

    /// Rounded once. The operands before the last one may be `narrow`.
    fn exact(
        &mut self,
        name: &str,
        form: &Form,
        mode: Mode,
        kind: Type,
        narrow: Type,
        operands: &'a [Operand],
    ) -> Result<()> {
        check(name, form, mode, kind)?;
        let name = if name == "mad" { "fma" } else { name };
        let is_approximate = mode.approximate && !(kind != Type::F32 && matches!(name, "ex2" | "tanh"));
        let count = count(name);
        let of = match narrow == kind {
            true => exact(name, kind, mode),
            false => mixed(name, narrow, mode),
        };
        let of = of.filter(|_| !is_approximate).ok_or_else(|| form.unknown("no such form of floats"))?;
        form.count(operands, count)?;
        let kind_of = |position: usize| if position + 2 < count { narrow } else { kind };
        // Operands that it does not have are the first one.
        let mut from = [self.source(&operands[1], kind_of(0))?.number(); 3];
        for (position, operand) in operands[1..].iter().enumerate() {
            from[position] = self.source(operand, kind_of(position))?.number();
        }
        let to = self.target(&operands[0], kind)?.number();
        self.push(Action::Exact { of, follows: form.follows(kind), to, from });
        Ok(())
    }
}

/// Operands of an instruction, its result among them.
fn count(name: &str) -> usize {
    match name {
        "fma" | "mad" => 4,
        "add" | "sub" | "mul" | "div" | "min" | "max" => 3,
        _ => 2,
    }
}

/// Which suffixes an instruction must have, and which it cannot.
fn check(name: &str, form: &Form, mode: Mode, kind: Type) -> Result<()> {
    let has_rounding = mode.rounding.is_some();
    match name {
        "add" | "sub" | "mul" if !has_rounding => {
            return Err(form.unknown("without `.rn` it may be fused with another instruction, which rounds otherwise"));
        }
        "add" | "sub" | "mul" | "fma" | "mad" => {
            if !has_rounding || mode.approximate || mode.full || mode.nan {
                return Err(form.unknown("its rounding is not as it must be"));
            }
            let is_half = !matches!(kind, Type::F32 | Type::F64);
            if (is_half && mode.rounding != Some(Rounding::Even)) || (mode.relu && !(is_half && name == "fma")) {
                return Err(form.unknown("no such form of 16-bit floats"));
            }
        }
        "div" | "sqrt" | "rcp" => {
            let ways = [has_rounding, mode.approximate, mode.full].iter().filter(|way| **way).count();
            let is_known = ways == 1 && (!mode.full || name == "div") && matches!(kind, Type::F32 | Type::F64);
            if !is_known || mode.saturate || mode.nan || mode.relu || (kind == Type::F64 && !has_rounding) {
                return Err(form.unknown("it is rounded, `.approx` or (quotients alone) `.full`"));
            }
        }
        "rsqrt" | "sin" | "cos" | "lg2" if !mode.approximate || kind != Type::F32 => {
            return Err(form.unknown("it is `.approx` and of f32"));
        }
        "ex2" | "tanh" if !mode.approximate || kind == Type::F64 => return Err(form.unknown("it is `.approx`")),
        "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => {
            if has_rounding || mode.saturate || mode.nan || mode.relu {
                return Err(form.unknown("approximate functions are not rounded"));
            }
        }
        _ => {
            if has_rounding || mode.saturate || mode.approximate || mode.full || mode.relu {
                return Err(form.unknown("it is exact"));
            }
            if mode.nan && !matches!(name, "min" | "max") {
                return Err(form.unknown("`.NaN` is of minima and maxima"));
            }
        }
    }
    Ok(())
}
