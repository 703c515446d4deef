//! Nolocals: no LOCAL memory.

use super::Transform;
use crate::lower::optimize::{Refusal, Space};
use std::fmt;

/// Rules out LOCAL memory and workgroups of several threads, before it and behind it.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Nolocals;

impl Transform for Nolocals {
    const NAME: &'static str = "nolocals";
    const OPERANDS: &'static str = "";
    const EFFECT: &'static str = "rules out LOCAL memory and workgroups of several threads in the rest of the schedule";
    const REQUIRES: &'static str = "there is neither yet";

    fn parse(operands: &[&str]) -> Option<Nolocals> {
        operands.is_empty().then_some(Nolocals)
    }

    fn print(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        space.no_locals = true;
        Ok(())
    }
}
