//! Instructions between the lanes of a warp.

use super::super::syntax::Operand;
use super::super::types::Type;
use super::{Action, Decoder, Form, MatchKind, Reduction, Result, ShuffleMode, VoteMode};

impl<'a> Decoder<'a> {
    fn needs_sync(&self, form: &mut Form) -> Result<()> {
        match form.takes("sync") {
            true => Ok(()),
            false => Err(form.unknown("without `.sync` nobody says which lanes take part")),
        }
    }

    pub(super) fn shuffle(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        self.needs_sync(&mut form)?;
        let mode = match form.one_of(&["up", "down", "bfly", "idx"]) {
            Some("up") => ShuffleMode::Up,
            Some("down") => ShuffleMode::Down,
            Some("bfly") => ShuffleMode::Butterfly,
            Some(_) => ShuffleMode::Index,
            None => return Err(form.unknown("it has no mode")),
        };
        let kind = form.kind()?;
        form.done()?;
        form.count(operands, 5)?;
        if kind != Type::B32 {
            return Err(form.unknown("it moves b32"));
        }
        let value = self.source(&operands[1], Type::B32)?.number();
        let by = self.source(&operands[2], Type::B32)?.number();
        let clamp = self.source(&operands[3], Type::B32)?.number();
        let members = self.source(&operands[4], Type::B32)?.number();
        let (to, valid) = match &operands[0] {
            Operand::Pair(to, valid) => {
                let to = if to == "_" { None } else { Some(self.wide_target(to, Type::B32)?.number()) };
                let valid = if valid == "_" { None } else { Some(self.predicate_named(valid)?) };
                (to, valid)
            }
            operand => (Some(self.target(operand, Type::B32)?.number()), None),
        };
        self.push(Action::Shuffle { mode, to, valid, value, by, clamp, members });
        Ok(())
    }

    pub(super) fn vote(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        self.needs_sync(&mut form)?;
        let mode = match form.one_of(&["all", "any", "uni", "ballot"]) {
            Some("all") => VoteMode::All,
            Some("any") => VoteMode::Any,
            Some("uni") => VoteMode::Uniform,
            Some(_) => VoteMode::Ballot,
            None => return Err(form.unknown("it has no mode")),
        };
        let kind = form.kind()?;
        form.done()?;
        form.count(operands, 3)?;
        if kind != (if mode == VoteMode::Ballot { Type::B32 } else { Type::Pred }) {
            return Err(form.unknown("its result is a predicate, a ballot's b32"));
        }
        let of = self.predicate(&operands[1])?;
        let members = self.source(&operands[2], Type::B32)?.number();
        let to = self.target(&operands[0], kind)?.number();
        self.push(Action::Vote { mode, to, of, members });
        Ok(())
    }

    pub(super) fn matching(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        self.needs_sync(&mut form)?;
        let kind = if form.takes("all") { MatchKind::All } else { MatchKind::Any };
        form.takes("any");
        let of = form.kind()?;
        form.done()?;
        form.count(operands, 3)?;
        if !matches!(of, Type::B32 | Type::B64) {
            return Err(form.unknown("it compares b32 or b64"));
        }
        let value = self.source(&operands[1], of)?;
        let members = self.source(&operands[2], Type::B32)?.number();
        let (to, valid) = match &operands[0] {
            Operand::Pair(to, valid) if kind == MatchKind::All => {
                (self.wide_target(to, Type::B32)?.number(), Some(self.predicate_named(valid)?))
            }
            operand => (self.target(operand, Type::B32)?.number(), None),
        };
        self.push(Action::Match { kind, to, valid, value, members });
        Ok(())
    }

    pub(super) fn redux(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        self.needs_sync(&mut form)?;
        let operation = form.one_of(&["add", "min", "max", "and", "or", "xor"]).unwrap_or_default();
        let kind = form.kind()?;
        form.done()?;
        form.count(operands, 3)?;
        let reduction = match (operation, kind) {
            ("add", Type::U32 | Type::S32) => Reduction::AddInteger,
            ("min", Type::S32) => Reduction::MinSigned,
            ("max", Type::S32) => Reduction::MaxSigned,
            ("min", Type::U32) => Reduction::MinUnsigned,
            ("max", Type::U32) => Reduction::MaxUnsigned,
            ("and", Type::B32) => Reduction::And,
            ("or", Type::B32) => Reduction::Or,
            ("xor", Type::B32) => Reduction::Xor,
            _ => return Err(form.unknown("no such reduction")),
        };
        let value = self.source(&operands[1], kind)?.number();
        let members = self.source(&operands[2], Type::B32)?.number();
        let to = self.target(&operands[0], kind)?.number();
        self.push(Action::Reduce { reduction, to, value, members });
        Ok(())
    }

    pub(super) fn active_mask(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        form.kind()?;
        form.done()?;
        form.count(operands, 1)?;
        let to = self.target(&operands[0], Type::B32)?.number();
        self.push(Action::ActiveMask { to });
        Ok(())
    }
}
