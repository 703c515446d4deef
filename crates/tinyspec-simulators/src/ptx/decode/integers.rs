//! Instructions on integers and bits alone.

use super::super::arithmetic::integer;
use super::super::syntax::Operand;
use super::super::types::Type;
use super::moves::logic_named;
use super::{Action, Decoder, Form, Result};

impl<'a> Decoder<'a> {
    pub(super) fn integer(&mut self, name: &str, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        let unknown = |form: &Form| form.unknown("no such instruction, or no such form of it");
        match name {
            "and" | "or" | "xor" | "not" => {
                let kind = form.kind()?;
                form.done()?;
                if kind == Type::Pred {
                    return self.logic(name, &form, operands);
                }
                match name {
                    "not" => {
                        let shape = integer::one(name, kind).ok_or_else(|| unknown(&form))?;
                        self.compute(&form, shape, &[kind; 2], operands)
                    }
                    _ => {
                        let shape = integer::two(name, kind).ok_or_else(|| unknown(&form))?;
                        self.compute(&form, shape, &[kind; 3], operands)
                    }
                }
            }
            "shl" | "shr" => {
                let kind = form.kind()?;
                form.done()?;
                let shape = integer::shift(name, kind).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[kind, kind, Type::U32], operands)
            }
            "shf" => {
                let (direction, mode) = (form.one_of(&["l", "r"]), form.one_of(&["wrap", "clamp"]));
                let kind = form.kind()?;
                form.done()?;
                let shape = integer::funnel(direction.unwrap_or(""), mode.unwrap_or(""));
                let shape = shape.filter(|_| kind == Type::B32).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[kind, kind, kind, Type::U32], operands)
            }
            "bfe" => {
                let kind = form.kind()?;
                form.done()?;
                let shape = integer::extract(kind).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[kind, kind, Type::U32, Type::U32], operands)
            }
            "bfi" => {
                let kind = form.kind()?;
                form.done()?;
                let shape = integer::insert(kind).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[kind, kind, kind, Type::U32, Type::U32], operands)
            }
            "prmt" => {
                let kind = form.kind()?;
                let mode = form.words.pop();
                form.done()?;
                let shape = integer::permute(mode).filter(|_| kind == Type::B32).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[kind; 4], operands)
            }
            "lop3" => {
                let kind = form.kind()?;
                form.done()?;
                let shape = integer::lookup().filter(|_| kind == Type::B32).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[kind; 5], operands)
            }
            "popc" | "clz" | "bfind" => {
                let kind = form.kind()?;
                form.done()?;
                let shape = integer::one(name, kind).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[Type::U32, kind], operands)
            }
            "brev" | "cnot" => {
                let kind = form.kind()?;
                form.done()?;
                let shape = integer::one(name, kind).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[kind; 2], operands)
            }
            "dp4a" => {
                let (a, b) = (form.kind()?, form.kind()?);
                form.done()?;
                let are_words = [a, b].iter().all(|kind| matches!(kind, Type::U32 | Type::S32));
                let shape = integer::dot_of_bytes(a, b).filter(|_| are_words).ok_or_else(|| unknown(&form))?;
                self.compute(&form, shape, &[Type::S32, Type::B32, Type::B32, Type::S32], operands)
            }
            _ => Err(unknown(&form)),
        }
    }

    fn logic(&mut self, name: &str, form: &Form, operands: &'a [Operand]) -> Result<()> {
        form.count(operands, if name == "not" { 2 } else { 3 })?;
        let first = self.predicate(&operands[1])?;
        let second = match operands.get(2) {
            Some(operand) => self.predicate(operand)?,
            None => first,
        };
        let to = self.target(&operands[0], Type::Pred)?.number();
        self.push(Action::Logic { logic: logic_named(name), to, from: [first, second] });
        Ok(())
    }
}
