//! Nontemporal: stores that bypass the caches.

use super::{OptOp, Order, Transform};
use crate::lower::optimize::{Refusal, Scheduler, Space};
use std::fmt;

/// Stores that bypass the caches, to every Param that the kernel does not also read: the lines of the others are cached already.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Nontemporal;

impl Transform for Nontemporal {
    const NAME: &'static str = "nontemporal";
    const OPERANDS: &'static str = "";
    const EFFECT: &'static str = "makes stores bypass the caches, unless the kernel also reads what it stores to";
    const REQUIRES: &'static str = "nothing";
    const ORDER: Order = Order::KeepsAxes;

    fn parse(operands: &[&str]) -> Option<Nontemporal> {
        operands.is_empty().then_some(Nontemporal)
    }

    fn print(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        space.nontemporal = true;
        Ok(())
    }

    fn additions(_: &Scheduler, space: &Space) -> Vec<Vec<OptOp>> {
        if space.nontemporal { Vec::new() } else { vec![vec![Nontemporal.into()]] }
    }
}
