//! The only way to make nodes: composed ops are written over this trait, and work for both the arena and the lazy
//! tensor.

use crate::function::OwnGradient;
use crate::special::SpecialIndex;
use crate::{Arg, AxisType, Const, ContentHash, DType, Dim, NodeId, Op, Props, Result, dim::Atom};
use smallvec::SmallVec;

/// Something that nodes can be added to: the arena [`crate::Graph`], or the lazy tensor's builder.
///
/// A `NodeId` means something only to the builder that gave it.
pub trait Builder {
    /// The node `(op, sources, arg)`.
    ///
    /// # Errors
    /// When [`crate::derive()`] refuses the node.
    fn add(&mut self, op: Op, sources: &[NodeId], arg: Arg) -> Result<NodeId>;

    /// Derived properties of a node.
    fn props(&self, node: NodeId) -> &Props;

    /// A constant. It cannot fail.
    fn constant(&mut self, value: Const) -> NodeId {
        // A Const has no sources, so it cannot be refused.
        self.add(Op::Const, &[], Arg::Const(value)).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// A number that a caller passed, such as a rate: a constant, unless a builder makes data of numbers that change.
    fn number(&mut self, value: Const) -> NodeId {
        self.constant(value)
    }

    /// `picker` on the devices of `value`: a tensor that indexes into a value is copied to all of its devices
    /// automatically.
    ///
    /// # Errors
    /// When it cannot be moved.
    fn beside(&mut self, _value: NodeId, picker: NodeId) -> Result<NodeId> {
        Ok(picker)
    }

    /// An index constant.
    fn index(&mut self, value: i64) -> NodeId {
        self.constant(Const::int(DType::Index, value as i128))
    }

    /// A dim as an index scalar.
    ///
    /// # Errors
    /// None for dims made by [`crate::derive()`].
    fn dim(&mut self, dim: &Dim) -> Result<NodeId> {
        if let Some(number) = dim.as_const() {
            return Ok(self.index(number));
        }
        let mut total: Option<NodeId> = None;
        for (atoms, coefficient) in dim.terms() {
            let mut product: Option<NodeId> = None;
            for atom in &atoms {
                let factor = match atom {
                    Atom::Named { slot, min, max } => {
                        let (scalar, min, max) = (self.shape(&[])?, self.index(*min), self.index(*max));
                        let arg = Arg::Param { slot: *slot, dtype: DType::Index, device: None, addrspace: None };
                        self.add(Op::Param, &[scalar, min, max], arg)?
                    }
                    Atom::Idiv(a, b) => self.dim_pair(Op::Idiv, a, b)?,
                    Atom::Mod(a, b) => self.dim_pair(Op::Mod, a, b)?,
                    Atom::Max(a, b) => self.dim_pair(Op::Max, a, b)?,
                };
                product = Some(match product {
                    Some(product) => self.add(Op::Mul, &[product, factor], Arg::None)?,
                    None => factor,
                });
            }
            let term = match product {
                Some(product) if coefficient == 1 => product,
                Some(product) => {
                    let coefficient = self.index(coefficient);
                    self.add(Op::Mul, &[product, coefficient], Arg::None)?
                }
                None => self.index(coefficient),
            };
            total = Some(match total {
                Some(total) => self.add(Op::Add, &[total, term], Arg::None)?,
                None => term,
            });
        }
        Ok(match total {
            Some(total) => total,
            None => self.index(0),
        })
    }

    /// A binary op of two dims, as an index scalar.
    ///
    /// # Errors
    /// As [`Builder::dim`].
    fn dim_pair(&mut self, op: Op, a: &Dim, b: &Dim) -> Result<NodeId> {
        let (a, b) = (self.dim(a)?, self.dim(b)?);
        self.add(op, &[a, b], Arg::None)
    }

    /// A shape (or offset) as a Stack of index scalars.
    ///
    /// # Errors
    /// As [`Builder::dim`].
    fn shape(&mut self, dims: &[Dim]) -> Result<NodeId> {
        let mut sources: SmallVec<[NodeId; 6]> = SmallVec::new();
        for dim in dims {
            sources.push(self.dim(dim)?);
        }
        self.add(Op::Stack, &sources, Arg::None)
    }

    /// The index of a workgroup or thread, from 0 to `bound`.
    ///
    /// # Errors
    /// When the bound is not an index scalar.
    fn special(&mut self, bound: NodeId, index: SpecialIndex) -> Result<NodeId> {
        self.add(Op::Special, &[bound], Arg::Text(index.name().into()))
    }

    /// A Range from 0 to `bound`.
    ///
    /// # Errors
    /// When `bound` is not an index scalar.
    fn range(&mut self, bound: NodeId, id: u32, axis: AxisType) -> Result<NodeId> {
        self.add(Op::Range, &[bound], Arg::Range { id, axis })
    }

    /// A call of a function with a gradient of its own. `make` builds it, unless the builder already knows it by `key`.
    ///
    /// # Errors
    /// Those of `make`, and what [`crate::derive()`] refuses of the arguments.
    fn function(
        &mut self,
        key: ContentHash,
        make: &mut dyn FnMut() -> Result<OwnGradient>,
        arguments: &[NodeId],
    ) -> Result<NodeId>;

    /// An elementwise node without argument.
    ///
    /// # Errors
    /// When dtypes or shapes do not fit.
    fn alu(&mut self, op: Op, sources: &[NodeId]) -> Result<NodeId> {
        self.add(op, sources, Arg::None)
    }
}
