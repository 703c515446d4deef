//! Specials by name: the index of a GPU's launch that a node stands for ("Codegen Ops").

use crate::{Arg, Graph, NodeId, Op};

/// Dimensions of a launch, and of a workgroup.
pub const DIMENSIONS: usize = 3;

/// The index of a Special.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecialIndex {
    /// `gidx0`, `gidx1`, `gidx2`: the workgroup, along this dimension.
    Group(usize),
    /// `lidx0`, `lidx1`, `lidx2`: the thread of a workgroup, along this dimension.
    Thread(usize),
}

impl SpecialIndex {
    /// The index of a node, if it is a Special with such a name.
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

    /// Whether it differs between threads of a workgroup.
    pub fn is_thread(self) -> bool {
        matches!(self, SpecialIndex::Thread(_))
    }
}
