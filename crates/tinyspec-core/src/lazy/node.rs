//! The lazy node behind a tensor: small, hashed when created, dropped without recursion.

use super::history::Computed;
use super::identity::{Identity, Who};
use super::{Body, Shards, unread};
use crate::device::{self, Owner, Storage};
use smallvec::SmallVec;
use std::hash::Hash;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use tinyspec_ir::{
    AddrSpace, Arg, Builder, Const, ContentHash, ContentHasher, DType, Device, Op, Props, Result, Shape, derive,
};

/// Sources of a lazy node.
pub(crate) type Sources = SmallVec<[Arc<Node>; 3]>;

/// `(op, sources, arg)` and derived properties. All clones of a tensor share one node, so its value is computed once.
pub(crate) struct Node {
    pub op: Op,
    pub arg: Arg,
    pub props: Props,
    /// Equal for nodes of equal value: made of op, argument and the sources' hashes; a buffer's is its identity.
    pub hash: ContentHash,
    /// Increases in the order in which nodes are made: sources have smaller ages.
    pub age: u64,
    /// Nodes below this age existed when the thread that made this node last began a run.
    pub last_run: u64,
    /// The smallest age among this node and the lazy nodes that its value depends on; [`COMPUTED`] once it has one.
    oldest_lazy: AtomicU64,
    /// Whether its value depends on a buffer. Nodes that depend on constants alone are simplified.
    has_data: bool,
    /// Whether its value depended on a [state](Node::is_state) when it was made.
    reads_state: bool,
    pub location: Option<&'static Location<'static>>,
    /// An [`Identity`], settled before the node is shared.
    identity: AtomicU64,
    /// The number, if this is a constant or a buffer that is a single number in the program.
    literal: Option<Const>,
    /// Whether it is a buffer that the library made for a caller, who has no tensor of it and so cannot keep it.
    is_internal: bool,
    /// [`HANDLE`] for each tensor of the program that refers to this node, plus [`HAD_HANDLES`] once one has.
    handles: AtomicU32,
    /// Whether a gradient has been taken through this node.
    is_differentiated: AtomicBool,
    /// Everything that is computed together with this gradient.
    gradients: OnceLock<Arc<[Weak<Node>]>>,
    /// Whether a training loop carries this state from step to step.
    is_loop_carried: AtomicBool,
    /// Whether a run computes this node without a request for its value.
    is_unrequested: AtomicBool,
    /// The state that an assignment replaced this one with.
    next_state: OnceLock<Weak<Node>>,
    state: RwLock<State>,
}

enum State {
    Lazy(Sources),
    /// Computed: its sources are released. Gradients may still follow its history.
    Realised(Arc<Storage>, Option<Computed>),
    /// Computed, on a tuple of devices.
    Sharded(Shards, Option<Computed>),
    /// The Tuple of a Function. It is closed, so it has a graph instead of sources.
    Body(Arc<Body>),
    /// Its memory is being overwritten by the state that replaces it: threads that need it wait.
    Taken(Option<Computed>),
    /// Overwritten.
    Gone,
}

/// A snapshot of a node's state.
pub(crate) enum View {
    Lazy(Sources),
    /// Its memory, unless it is spread over several devices.
    Realised(Option<Arc<Storage>>),
    Overwritten,
}

/// `oldest_lazy` of a computed node: above all ages.
const COMPUTED: u64 = u64::MAX;

const HAD_HANDLES: u32 = 1;
const HANDLE: u32 = 2;

impl Node {
    /// A new age, greater than that of every existing node.
    pub fn next_age() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// A node without a known line of the program.
    fn new(op: Op, arg: Arg, props: Props, hash: ContentHash, identity: Identity, age: u64, state: State) -> Node {
        Node {
            op,
            arg,
            props,
            hash,
            age,
            last_run: 0,
            oldest_lazy: AtomicU64::new(COMPUTED),
            has_data: op == Op::Buffer,
            reads_state: false,
            location: None,
            identity: AtomicU64::new(identity.0),
            literal: None,
            is_internal: false,
            handles: AtomicU32::new(0),
            is_differentiated: AtomicBool::new(false),
            gradients: OnceLock::new(),
            is_loop_carried: AtomicBool::new(false),
            is_unrequested: AtomicBool::new(false),
            next_state: OnceLock::new(),
            state: RwLock::new(state),
        }
    }

    /// A node to be computed.
    pub fn lazy(op: Op, sources: Sources, arg: Arg, location: Option<&'static Location<'static>>) -> Result<Arc<Node>> {
        let props = {
            let properties: SmallVec<[&Props; 4]> = sources.iter().map(|source| &source.props).collect();
            derive(op, &arg, &properties)?
        };
        let mut hasher = ContentHasher::default();
        (op, &arg).hash(&mut hasher);
        for source in &sources {
            source.hash.hash(&mut hasher);
        }
        let hash = hasher.content_hash();
        let identity = Identity::made_of(sources.iter().map(|source| source.identity()));
        let age = Node::next_age();
        // A shape is read from its node, which no run computes.
        let own = if props.value.is_some() { COMPUTED } else { age };
        let oldest = sources.iter().map(|source| source.oldest_lazy()).fold(own, u64::min);
        let has_data = sources.iter().any(|source| source.has_data);
        let reads_state =
            |source: &Arc<Node>| source.is_state() || source.reads_state && source.oldest_lazy() != COMPUTED;
        let reads_state = sources.iter().any(reads_state);
        let state = State::Lazy(sources);
        let mut node = Node::new(op, arg, props, hash, identity, age, state);
        (node.has_data, node.reads_state) = (has_data, reads_state);
        (node.oldest_lazy, node.last_run) = (AtomicU64::new(oldest), unread::last_run());
        node.location = location;
        Ok(Arc::new(node))
    }

    /// A constant that a line of the program uses as an operand. It may change, so it equals no other node: neither a
    /// constant of the library nor a number that has the same value by chance.
    pub fn number(value: Const, location: &'static Location<'static>) -> Result<Arc<Node>> {
        let mut node = Node::lazy(Op::Const, Sources::new(), Arg::Const(value), Some(location))?;
        if let Some(node) = Arc::get_mut(&mut node) {
            node.literal = Some(value);
        }
        Ok(node.unmerged())
    }

    /// Makes this new node differ from all others, so that it is not merged with an equal one.
    pub fn unmerged(mut self: Arc<Node>) -> Arc<Node> {
        if let Some(node) = Arc::get_mut(&mut self) {
            node.hash = ContentHash::of(&(node.hash, node.age));
        }
        self
    }

    /// A node that is its buffer.
    pub fn buffer(
        storage: Arc<Storage>,
        dtype: DType,
        shape: &Shape,
        location: Option<&'static Location<'static>>,
    ) -> Result<Arc<Node>> {
        let arg =
            Arg::Buffer { slot: 0, dtype, device: Some(storage.device().id().clone()), addrspace: AddrSpace::Global };
        let stack = Props { dtype: DType::Index, value: Some(shape.clone()), ..Props::void() };
        let props = derive(Op::Buffer, &arg, &[&stack])?;
        Ok(Node::data(Op::Buffer, arg, props, State::Realised(storage, None), location))
    }

    /// A node that is its parts on a tuple of devices.
    pub fn sharded(shards: Shards, devices: &Device, dtype: DType, shape: &Shape) -> Result<Arc<Node>> {
        let arg = Arg::Buffer { slot: 0, dtype, device: Some(devices.clone()), addrspace: AddrSpace::Global };
        let stack = Props { dtype: DType::Index, value: Some(shape.clone()), ..Props::void() };
        let props = Props { axis: shards.axis, ..derive(Op::Buffer, &arg, &[&stack])? };
        Ok(Node::data(Op::Buffer, arg, props, State::Sharded(shards, None), None))
    }

    /// A node with a value, equal to no other.
    fn data(op: Op, arg: Arg, props: Props, state: State, location: Option<&'static Location<'static>>) -> Arc<Node> {
        let age = Node::next_age();
        let hash = ContentHash::of(&(Op::Buffer, age));
        let mut node = Node::new(op, arg, props, hash, Identity::NONE, age, state);
        (node.has_data, node.location) = (true, location);
        Arc::new(node)
    }

    /// A node that is its buffer, which holds `value`.
    pub fn literal_buffer(
        storage: Arc<Storage>,
        value: Const,
        location: &'static Location<'static>,
    ) -> Result<Arc<Node>> {
        let mut node = Node::buffer(storage, value.dtype, &Shape::new(), Some(location))?;
        if let Some(node) = Arc::get_mut(&mut node) {
            node.literal = Some(value);
        }
        Ok(node.internal())
    }

    /// A node with the same value and no history; none where there is no value.
    pub fn as_data(&self) -> Option<Arc<Node>> {
        let state = match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Realised(storage, _) => State::Realised(storage.clone(), None),
            State::Sharded(shards, _) => State::Sharded(shards.clone(), None),
            _ => return None,
        };
        Some(Node::data(self.op, self.arg.clone(), self.props.clone(), state, self.location))
    }

    /// Marks the node of a new, unshared buffer as one that histories keep alive.
    pub fn internal(mut self: Arc<Node>) -> Arc<Node> {
        if let Some(node) = Arc::get_mut(&mut self) {
            node.is_internal = true;
        }
        self
    }

    /// Whether histories keep it alive, because the library made it and no caller can keep it.
    pub fn is_internal(&self) -> bool {
        self.is_internal
    }

    /// The number in the program that this constant or buffer stands for.
    pub fn literal(&self) -> Option<Const> {
        self.literal
    }

    /// The Tuple of a Function's body.
    pub fn tuple(body: Arc<Body>) -> Result<Arc<Node>> {
        let elements: Vec<&Props> = body.outputs().iter().map(|&output| body.graph().props(output)).collect();
        let props = derive(Op::Tuple, &Arg::None, &elements)?;
        let (hash, state) = (body.hash(), State::Body(body));
        Ok(Arc::new(Node::new(Op::Tuple, Arg::None, props, hash, Identity::NONE, Node::next_age(), state)))
    }

    /// Whether its value depends on a buffer.
    pub fn has_data(&self) -> bool {
        self.has_data
    }

    /// Whether its value depended on a [state](Node::is_state) when it was made.
    pub fn reads_state(&self) -> bool {
        self.reads_state
    }

    /// The identity by which gradients distinguish it from equal nodes.
    pub fn identity(&self) -> Identity {
        Identity(self.identity.load(Ordering::Relaxed))
    }

    /// The key by which gradients identify it.
    pub fn who(&self) -> Who {
        self.identity().who(self.hash)
    }

    /// Marks it as a tensor of the program. A node that is not one yet must not be shared.
    pub fn become_tensor(&self) {
        if self.props.dtype.is_float() && !self.identity().is_tensor() {
            self.become_known_as(Identity::of_tensor(self.age));
        }
    }

    /// As [`Node::become_tensor`], for a copy of an earlier tensor.
    pub fn become_known_as(&self, tensor: Identity) {
        self.identity.store(tensor.0, Ordering::Relaxed);
    }

    /// Counts a tensor of the program that refers to this node.
    pub fn add_handle(&self) {
        self.handles.fetch_add(HANDLE, Ordering::Relaxed);
        self.handles.fetch_or(HAD_HANDLES, Ordering::Relaxed);
    }

    /// The inverse of [`Node::add_handle`].
    pub fn remove_handle(&self) {
        let before = self.handles.fetch_sub(HANDLE, Ordering::Relaxed);
        if before < 2 * HANDLE && self.is_state() {
            unread::note_dropped_state();
        }
    }

    /// Whether the program has no tensor of this node: neither by a handle nor as a copy of another node's tensor.
    pub fn is_unheld(&self) -> bool {
        let identity = self.identity();
        let is_copy = identity.is_tensor() && identity != Identity::of_tensor(self.age);
        self.handles.load(Ordering::Relaxed) < HANDLE && !is_copy
    }

    /// Whether the program has or had a tensor of this node.
    pub fn was_tensor(&self) -> bool {
        self.handles.load(Ordering::Relaxed) & HAD_HANDLES != 0
    }

    /// Whether no run has computed this node.
    pub fn is_lazy(&self) -> bool {
        matches!(&*self.state.read().unwrap_or_else(PoisonError::into_inner), State::Lazy(_))
    }

    /// The smallest age among this node and the lazy nodes that its value depended on when it was made; [`COMPUTED`] once it has a
    /// value.
    pub fn oldest_lazy(&self) -> u64 {
        self.oldest_lazy.load(Ordering::Relaxed)
    }

    /// Whether this node's value is data to gradients with respect to tensors, the `oldest` of which has this age.
    pub fn is_data_to_gradients(&self, oldest: u64) -> bool {
        let is_older = self.age < oldest && self.was_tensor() && self.props.value.is_none();
        self.has_data && (is_older || self.op == Op::Detach)
    }

    /// Whether this node is still to be computed: no run has done so, and the program either holds a tensor of it or, if it is a
    /// loop-carried state, computes the next state from it.
    pub fn is_awaited(&self) -> bool {
        self.is_lazy() && (!self.is_unheld() || self.is_loop_carried())
    }

    /// A snapshot for a walk, read atomically, since another thread may be computing the node.
    pub fn view(&self) -> View {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Lazy(sources) => View::Lazy(sources.clone()),
            State::Realised(storage, _) => View::Realised(Some(storage.clone())),
            State::Sharded(..) => View::Realised(None),
            State::Body(_) => View::Lazy(Sources::new()),
            State::Taken(_) | State::Gone => View::Overwritten,
        }
    }

    /// The buffer, once computed.
    pub fn storage(&self) -> Option<Arc<Storage>> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Realised(storage, _) => Some(storage.clone()),
            _ => None,
        }
    }

    /// The parts of a value on a tuple of devices, once computed.
    pub fn shards(&self) -> Option<Shards> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Sharded(shards, _) => Some(shards.clone()),
            _ => None,
        }
    }

    /// Whether its value is computed.
    pub fn is_realized(&self) -> bool {
        matches!(&*self.state.read().unwrap_or_else(PoisonError::into_inner), State::Realised(..) | State::Sharded(..))
    }

    /// Whether its memory has been, or is being, overwritten, so that it no longer has a value.
    pub fn is_overwritten(&self) -> bool {
        matches!(&*self.state.read().unwrap_or_else(PoisonError::into_inner), State::Taken(_) | State::Gone)
    }

    /// Whether its memory has been overwritten irrevocably.
    pub fn is_gone(&self) -> bool {
        matches!(&*self.state.read().unwrap_or_else(PoisonError::into_inner), State::Gone)
    }

    /// Takes the memory, if only this node and the caller refer to it.
    pub fn take(&self, held: &Arc<Storage>) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            // A new reference to the memory can only come from this node, under the lock.
            State::Realised(own, computed) if Arc::ptr_eq(own, held) && Arc::strong_count(own) == 2 => {
                *state = State::Taken(computed.take());
                true
            }
            _ => false,
        }
    }

    /// After [`Node::take`]: gives the memory back, or marks the node as gone.
    pub fn settle(&self, back: Option<Arc<Storage>>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = match (back, &mut *state) {
            (Some(storage), State::Taken(computed)) => State::Realised(storage, computed.take()),
            _ => State::Gone,
        };
    }

    /// How it was computed, if gradients may follow that; also while its memory is being overwritten.
    pub fn computed(&self) -> Option<Computed> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Realised(_, computed) | State::Sharded(_, computed) | State::Taken(computed) => computed.clone(),
            _ => None,
        }
    }

    /// Whether a gradient has been taken through this node.
    pub fn is_differentiated(&self) -> bool {
        self.is_differentiated.load(Ordering::Relaxed)
    }

    /// Records that a gradient has been taken through this node, and releases the inputs held for it.
    pub fn become_differentiated(&self) {
        self.is_differentiated.store(true, Ordering::Relaxed);
        if let Some(computed) = self.computed() {
            computed.release();
        }
    }

    /// Records that these are the gradients of one call, to be computed together with their `siblings`.
    pub fn become_gradients<'a>(nodes: &[&'a Arc<Node>], siblings: impl Iterator<Item = &'a Arc<Node>>) {
        let all: Arc<[Weak<Node>]> = nodes.iter().copied().chain(siblings).map(Arc::downgrade).collect();
        for node in nodes.iter().filter(|_| all.len() > 1) {
            // A node that an earlier call returned stays with that call.
            let _ = node.gradients.set(all.clone());
        }
    }

    /// Everything that the first run that needs this gradient computes: all results of its `grad` call, the loss, and the new states
    /// of buffers. `None` if that is this gradient alone.
    pub fn gradients(&self) -> Option<&Arc<[Weak<Node>]>> {
        self.gradients.get()
    }

    /// Marks this state as loop-carried: from now on [`next_state`](Node::next_state) finds the state assigned over it.
    pub fn become_loop_carried(&self) {
        self.is_loop_carried.store(true, Ordering::Relaxed);
    }

    /// Whether a training loop carries this state.
    pub fn is_loop_carried(&self) -> bool {
        self.is_loop_carried.load(Ordering::Relaxed)
    }

    /// Records that a run computes this node without a request for its value.
    pub fn become_unrequested(&self) {
        self.is_unrequested.store(true, Ordering::Relaxed);
    }

    /// Whether a run computed this node without a request for its value.
    pub fn is_unrequested(&self) -> bool {
        self.is_unrequested.load(Ordering::Relaxed)
    }

    /// Whether this may be a value that a loop replaces in each step.
    pub fn is_state(&self) -> bool {
        self.is_loop_carried() || self.is_unrequested()
    }

    /// Records `next` as the state assigned over this one, if this one is loop-carried.
    pub fn replace_by(&self, next: &Arc<Node>) {
        if self.is_loop_carried() {
            next.become_loop_carried();
            // If a clone was assigned before, that assignment stays.
            let _ = self.next_state.set(Arc::downgrade(next));
        }
    }

    /// The state assigned over this one, if it is still alive.
    pub fn next_state(&self) -> Option<Arc<Node>> {
        self.next_state.get()?.upgrade()
    }

    /// The graph of a Function's body.
    pub fn body(&self) -> Option<Arc<Body>> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Body(body) => Some(body.clone()),
            _ => None,
        }
    }

    /// The sources, unless computed.
    pub fn sources(&self) -> Sources {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Lazy(sources) => sources.clone(),
            _ => Sources::new(),
        }
    }

    /// Inspects the sources without taking references to them.
    pub fn with_sources<T>(&self, look: impl FnOnce(&[Arc<Node>]) -> T) -> T {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Lazy(sources) => look(sources),
            _ => look(&[]),
        }
    }

    /// The node becomes its buffer.
    pub fn become_buffer(&self, storage: Arc<Storage>, computed: Option<Computed>) {
        self.become_state(State::Realised(storage, computed.map(|computed| computed.of(self))));
    }

    /// The node becomes its parts, one per device.
    pub fn become_shards(&self, shards: Shards, computed: Option<Computed>) {
        self.become_state(State::Sharded(shards, computed));
    }

    /// The node takes the value of an equal node, which may have been computed from other tensors.
    pub fn become_as(&self, other: &Node, own: Option<Computed>) {
        let own = own.map(|computed| computed.of(self));
        let computed = own.or_else(|| if self.who() == other.who() { other.computed() } else { None });
        let state = match &*other.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Realised(storage, _) => State::Realised(storage.clone(), computed),
            State::Sharded(shards, _) => State::Sharded(shards.clone(), computed),
            _ => return,
        };
        if !std::ptr::eq(self, other) {
            self.become_state(state);
        }
    }

    fn become_state(&self, new: State) {
        let old = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            // Another thread computed the node in the meantime, and a history recorded since then would refer to the node itself.
            if matches!(*state, State::Realised(..) | State::Sharded(..)) {
                return;
            }
            self.oldest_lazy.store(COMPUTED, Ordering::Relaxed);
            std::mem::replace(&mut *state, new)
        };
        // Dropped outside the lock: it may be the end of a long chain.
        if let State::Lazy(sources) = old {
            release(sources);
        }
    }

    /// Address of the memory, if it is on this device and no other node shares it. Its old value counts as gone.
    pub fn exclusive_storage(&mut self, device: &Arc<device::Device>) -> Option<*mut u8> {
        self.literal = None;
        match self.state.get_mut().unwrap_or_else(PoisonError::into_inner) {
            State::Realised(storage, computed) if Arc::ptr_eq(storage.device(), device) => {
                let address = Arc::get_mut(storage)?.address();
                *computed = None;
                Some(address)
            }
            _ => None,
        }
    }

    /// The owner to report for the memory of its value.
    pub fn owner(&self) -> Owner {
        Owner::tensor(self.props.dtype, &self.props.shape, self.location)
    }

    /// Bytes of its value.
    pub fn bytes(&self) -> u64 {
        let count = self.props.element_count().as_const().and_then(|count| u64::try_from(count).ok());
        count.unwrap_or(u64::MAX).saturating_mul(self.props.dtype.size() as u64)
    }

    /// The device its value is made on.
    pub fn device(&self) -> Option<&Device> {
        self.props.device.as_ref()
    }

    /// The device its value is on. For values derived from constants, that is the device that computed them.
    pub fn place(&self) -> Option<Device> {
        self.device().cloned().or_else(|| Some(self.storage()?.device().id().clone()))
    }
}

impl Node {
    fn take_sources(&mut self) -> Sources {
        match self.state.get_mut().unwrap_or_else(PoisonError::into_inner) {
            State::Lazy(sources) => std::mem::take(sources),
            _ => Sources::new(),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let sources = self.take_sources();
        if !sources.is_empty() {
            release(sources);
        }
    }
}

/// Drops sources iteratively: on a chain of 100,000 nodes recursion would overflow the stack.
fn release(sources: Sources) {
    let mut pending: SmallVec<[Arc<Node>; 16]> = sources.into_iter().collect();
    while let Some(mut node) = pending.pop() {
        // Unwrapping the Arc moves the whole node, but is the only way for a node with weak references.
        if let Some(node) = Arc::get_mut(&mut node) {
            pending.extend(node.take_sources());
        } else if let Some(mut node) = Arc::into_inner(node) {
            pending.extend(node.take_sources());
        }
    }
}
