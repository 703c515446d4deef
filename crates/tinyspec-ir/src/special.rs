//! Specials by name: which index of a GPU's launch a node is ("Codegen Ops").

use crate::{Arg, Graph, NodeId, Op};

/// Dimensions of a launch, and of a workgroup.
pub const DIMENSIONS: usize = 3;

/// What a Special counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecialIndex {
    /// `gidx0`, `gidx1`, `gidx2`: the workgroup, along this dimension.
    Group(usize),
    /// `lidx0`, `lidx1`, `lidx2`: the thread of a workgroup, along this dimension.
    Thread(usize),
}

impl SpecialIndex {
    /// What a node counts, if it is a Special with such a name.
    pub fn of(graph: &Graph, node: NodeId) -> Option<SpecialIndex> {
        let (Op::Special, Arg::Text(name)) = (graph.op(node), graph.arg(node)) else { return None };
        let dimension = |digit: &str| digit.parse().ok().filter(|&dimension: &usize| dimension < DIMENSIONS);
        match name.split_at_checked(4)? {
            ("gidx", digit) => dimension(digit).map(SpecialIndex::Group),
            ("lidx", digit) => dimension(digit).map(SpecialIndex::Thread),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            SpecialIndex::Group(dimension) => format!("gidx{dimension}"),
            SpecialIndex::Thread(dimension) => format!("lidx{dimension}"),
        }
    }

    /// Differs from thread to thread of a workgroup.
    pub fn is_thread(self) -> bool {
        matches!(self, SpecialIndex::Thread(_))
    }
}
