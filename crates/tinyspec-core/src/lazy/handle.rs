//! References of the program to lazy nodes.

use super::Node;
use std::ops::Deref;
use std::sync::Arc;

/// A tensor's reference to its node. Nodes count these apart from the references of other nodes, so that a run can tell what the
/// program still has from what only other values need.
pub(crate) struct Handle(Arc<Node>);

impl Handle {
    pub fn new(node: Arc<Node>) -> Handle {
        node.add_handle();
        Handle(node)
    }

    /// The node itself, for its only owner.
    pub fn node_mut(&mut self) -> Option<&mut Node> {
        Arc::get_mut(&mut self.0)
    }

    /// The node, which has one handle less.
    pub fn into_node(self) -> Arc<Node> {
        self.0.clone()
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        Handle::new(self.0.clone())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.remove_handle();
    }
}

impl Deref for Handle {
    type Target = Arc<Node>;

    fn deref(&self) -> &Arc<Node> {
        &self.0
    }
}
