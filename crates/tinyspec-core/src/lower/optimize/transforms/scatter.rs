//! Scatter: sums at places that data name, term by term.

use super::{Order, Transform};
use crate::lower::optimize::space::OwnLoops;
use crate::lower::optimize::{Refusal, Space};
use std::fmt;

/// Computes sums at places that data name by a loop over their terms, each of which it adds to its place
/// (`optimize/scatter.rs`); as it stands the kernel compares every place with every term.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Scatter;

impl Transform for Scatter {
    const NAME: &'static str = "scatter";
    const OPERANDS: &'static str = "";
    const EFFECT: &'static str = "computes sums at places that data name by a loop over their terms, each of which it adds to its place in memory";
    const REQUIRES: &'static str =
        "all results are such sums, the device has no workgroups, and the schedule has no other op";
    const ORDER: Order = Order::Alone;

    fn parse(operands: &[&str]) -> Option<Scatter> {
        operands.is_empty().then_some(Scatter)
    }

    fn print(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    fn apply(&self, space: &mut Space) -> Result<(), Refusal> {
        if !space.facts.can_scatter {
            return Err(Refusal::NoScatter);
        }
        space.own_loops = Some(OwnLoops::Scatter);
        Ok(())
    }
}
