//! The lazy graph behind tensors, the histories of computed tensors, and the conversion to an arena graph (Callify).

mod body;
mod builder;
pub(crate) mod callify;
mod changing;
mod composition;
mod fits;
mod handle;
pub(crate) mod history;
mod identity;
mod literals;
mod moved;
mod node;
mod part;
mod shards;
mod sizes;
mod tracing;
mod unread;

pub use body::Body;
pub(crate) use builder::{LazyBuilder, Results};
pub(crate) use callify::Walk;
pub(crate) use changing::number_as_data;
pub(crate) use composition::Method;
pub(crate) use handle::Handle;
pub(crate) use history::{History, Opening, Program, ends_gradients, oldest};
pub(crate) use identity::{Identity, Who};
pub(crate) use literals::{Class, Place, Produced, Series, is_one_of_few};
pub(crate) use moved::{is_moved, window};
pub(crate) use node::{Node, Sources, View};
pub(crate) use part::{part, within};
pub(crate) use shards::Shards;
pub(crate) use sizes::{Sizes, number, sizes};
pub(crate) use tracing::Tracing;
pub(crate) use unread::{UnreadStates, unread_states};
