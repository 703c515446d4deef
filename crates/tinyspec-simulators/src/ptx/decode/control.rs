//! Branches and barriers.

use super::super::syntax::Operand;
use super::super::types::Type;
use super::{Action, BarrierKind, Decoder, Form, Result};

impl<'a> Decoder<'a> {
    pub(super) fn branch(&mut self, name: &str, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        form.takes("uni");
        match name {
            "ret" | "exit" => {
                form.done()?;
                form.count(operands, 0)?;
                self.push(Action::Exit);
            }
            "trap" => {
                form.done()?;
                self.push(Action::Trap);
            }
            "brx" => {
                form.takes("idx");
                form.done()?;
                form.count(operands, 2)?;
                let index = self.source(&operands[0], Type::U32)?.number();
                let Operand::Name(table) = &operands[1] else { return self.syntax("a list of targets is wanted") };
                self.switches.push((self.code.steps.len(), table, self.at));
                self.push(Action::Switch { index, targets: Vec::new() });
            }
            _ => {
                form.done()?;
                form.count(operands, 1)?;
                let Operand::Name(label) = &operands[0] else { return self.syntax("a label is wanted") };
                self.jumps.push((self.code.steps.len(), label, self.at));
                self.push(Action::Branch(0));
            }
        }
        Ok(())
    }

    /// `bar.sync`, `barrier.cta.sync.aligned`, `bar.arrive`, `bar.red`, `bar.warp.sync`
    pub(super) fn barrier(&mut self, mut form: Form, operands: &'a [Operand]) -> Result<()> {
        if form.takes("warp") {
            form.takes("sync");
            form.done()?;
            form.count(operands, 1)?;
            let members = self.source(&operands[0], Type::B32)?.number();
            self.push(Action::Meet { members });
            return Ok(());
        }
        form.takes("cta");
        let is_aligned = form.takes("aligned") || form.instruction.words[0] == "bar";
        let Some(kind) = form.one_of(&["sync", "arrive", "red"]) else { return Err(form.unknown("no such barrier")) };
        let (mut to, mut of, mut rest) = (None, None, operands);
        let kind = match kind {
            "sync" => BarrierKind::Wait,
            "arrive" => BarrierKind::Arrive,
            _ => {
                let kind = match form.one_of(&["popc", "and", "or"]) {
                    Some("popc") => BarrierKind::Count,
                    Some("and") => BarrierKind::And,
                    Some(_) => BarrierKind::Or,
                    None => return Err(form.unknown("it reduces by nothing")),
                };
                let result = form.kind()?;
                let is_count = kind == BarrierKind::Count;
                if result != (if is_count { Type::U32 } else { Type::Pred }) || operands.len() < 3 {
                    return Err(form.unknown("no such reduction"));
                }
                to = Some(self.target(&operands[0], result)?.number());
                of = Some(self.predicate(&operands[operands.len() - 1])?);
                rest = &operands[1..operands.len() - 1];
                kind
            }
        };
        form.done()?;
        if rest.is_empty() || rest.len() > 2 || (kind == BarrierKind::Arrive && rest.len() != 2) {
            return self.syntax("a barrier has a number, and a number of threads");
        }
        let number = self.source(&rest[0], Type::U32)?.number();
        let threads = match rest.get(1) {
            Some(operand) => Some(self.source(operand, Type::U32)?.number()),
            None => None,
        };
        self.push(Action::Barrier { kind, number, threads, is_aligned, to, of });
        Ok(())
    }
}
