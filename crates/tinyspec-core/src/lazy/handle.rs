//! The program's references to lazy nodes.

use super::{Node, unread};
use std::ops::Deref;
use std::sync::Arc;

/// A tensor's reference to its node. Nodes count handles separately from references by other nodes, so a run can tell values that
/// the program still holds from values that only other nodes need.
pub(crate) struct Handle(Arc<Node>);

impl Handle {
    pub fn new(node: Arc<Node>) -> Handle {
        node.add_handle();
        Handle(node)
    }

    /// The first handle of a node, or another handle of a node that is a tensor.
    pub fn of_tensor(node: Arc<Node>) -> Handle {
        node.become_tensor();
        unread::note(&node);
        Handle::new(node)
    }

    /// Exclusive access to the node, if this is the only reference to it.
    pub fn node_mut(&mut self) -> Option<&mut Node> {
        Arc::get_mut(&mut self.0)
    }

    /// The node, without the handle.
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
