//! Realises nodes: walks them, finds or makes their plan, runs it, and turns the nodes into buffers.

use super::overwrite::{self, Overwriting};
use super::ranged;
use super::shards::{self, move_to_device};
use super::together::together;
use super::validate;
use crate::compile::{self, CustomStep, Place, Plan};
use crate::device::{Device, Owner, Storage, default_device};
use crate::kept::Kept;
use crate::lazy::callify::{Callified, Unevaluated, Walk};
use crate::lazy::{History, Node, UnreadStates, unread_states};
use crate::lower::rangeify::Donation;
use crate::profile::{self, Launched, Level};
use crate::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::Hash;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tinyspec_ir::Device as DeviceId;
use tinyspec_ir::{ContentHash, ContentHasher, ErrorKind, Op};

/// The most groups to remember: a program with ever new shapes must not grow without bound.
const KNOWN_GROUPS: usize = 4096;

/// The unrequested work of a run, among values that an earlier run left lazy: those that its roots depend on and the program has dropped,
/// and with `held` also those that the program holds and each run would recompute.
#[derive(Clone, Copy)]
struct Unrequested {
    /// When the previous run began.
    last_run: u64,
    held: bool,
}

/// Computes nodes, all those on one device as one graph.
pub(crate) fn realize(roots: &[Arc<Node>]) -> Result<()> {
    if roots.iter().all(|root| root.is_realized()) {
        return Ok(());
    }
    let UnreadStates { states, last_run } = unread_states();
    states.iter().for_each(|state| state.become_unrequested());
    realize_with(roots, &states, Some(Unrequested { last_run, held: true }))
}

/// Computes nodes as part of a run, and nothing unrequested.
pub(in crate::execute) fn realize_part(nodes: &[Arc<Node>]) -> Result<()> {
    realize_with(nodes, &[], None)
}

/// Computes `roots`, `states`, and whatever `unrequested` describes.
fn realize_with<'a>(roots: &'a [Arc<Node>], states: &'a [Arc<Node>], unrequested: Option<Unrequested>) -> Result<()> {
    // One root is the common case, and needs no map.
    if let ([root], []) = (roots, states) {
        return if root.is_realized() { Ok(()) } else { realize_distinct(vec![root.clone()], vec![], unrequested) };
    }
    let mut known: FxHashMap<ContentHash, &Arc<Node>> = FxHashMap::default();
    let mut twins: Vec<(&Arc<Node>, &Arc<Node>)> = Vec::new();
    let mut distinct = |nodes: &'a [Arc<Node>]| -> Vec<Arc<Node>> {
        let mut distinct = Vec::with_capacity(nodes.len());
        for node in nodes.iter().filter(|node| !node.is_realized()) {
            match known.get(&node.hash) {
                None => {
                    known.insert(node.hash, node);
                    distinct.push(node.clone());
                }
                Some(first) => twins.push((node, first)),
            }
        }
        distinct
    };
    let (pending, next_states) = (distinct(roots), distinct(states));
    // Equal nodes may have been computed from different tensors.
    let mut histories = Vec::with_capacity(twins.len());
    for &(twin, first) in &twins {
        let is_same = twin.who() == first.who();
        histories.push(if is_same { None } else { History::of_tensor(twin)? });
    }
    if !pending.is_empty() {
        realize_distinct(pending, next_states, unrequested)?;
    }
    for ((twin, first), history) in twins.into_iter().zip(histories) {
        twin.become_as(first, history.and_then(|history| history.result(0)));
    }
    Ok(())
}

/// As [`realize_with`], for nodes with distinct values. If a run that also computes unrequested tensors fails, it is
/// repeated with the roots alone, since the failure may not be theirs.
fn realize_distinct(roots: Vec<Arc<Node>>, states: Vec<Arc<Node>>, unrequested: Option<Unrequested>) -> Result<()> {
    let mut adds = !states.is_empty();
    let all = roots.iter().cloned().chain(states.iter().cloned()).collect();
    match attempt(all, &states, unrequested, &mut adds) {
        Err(error) if adds => {
            let roots: Vec<Arc<Node>> = roots.into_iter().filter(|root| !root.is_realized()).collect();
            if !roots.is_empty() {
                attempt(roots, &[], None, &mut adds)?;
            }
            if let Error::Memory { .. } = error {
                // There may be room to compute them one at a time.
                states.iter().for_each(|state| drop(realize_part(std::slice::from_ref(state))));
            }
            Ok(())
        }
        result => result,
    }
}

/// Computes `pending`, which includes `states`. Unless `unrequested` is `None`, it also computes the gradients and states of the same
/// step and what `unrequested` describes, and sets `adds` if there is any of the latter.
fn attempt(
    mut pending: Vec<Arc<Node>>,
    states: &[Arc<Node>],
    unrequested: Option<Unrequested>,
    adds: &mut bool,
) -> Result<()> {
    let mut walk = Walk::of(&pending);
    while unrequested.is_some() {
        let mut unrequested = walk.sibling_gradients();
        unrequested.extend(walk.next_states());
        if unrequested.is_empty() {
            break;
        }
        pending.extend(unrequested);
        walk = Walk::of(&pending);
    }
    // Tensors have no value within a trace.
    if let Some(Unrequested { last_run, held: keeps_held }) = unrequested
        && !walk.has_placeholder
    {
        let Unevaluated { dropped, held } = walk.unevaluated(last_run, states);
        let is_kept = keeps_held && !held.is_empty();
        dropped.iter().chain(&held).for_each(|node| node.become_unrequested());
        *adds |= is_kept || !dropped.is_empty();
        if is_kept {
            // In a run of its own, so that this run is the same program as the next. It may compute some of `pending` as well.
            realize_with(&held, &[], Some(Unrequested { last_run, held: false }))?;
            pending.retain(|node| !node.is_realized());
        }
        if is_kept || !dropped.is_empty() {
            pending.extend(dropped.into_iter().filter(|node| !node.is_realized()));
            walk = Walk::of(&pending);
        }
    }
    let walk = run_first(walk, &mut pending)?;
    if walk.has_placeholder {
        return Err(tinyspec_ir::Error::new(ErrorKind::Value, "realize", "an input of a traced function has no value")
            .help("return the tensor from the function instead")
            .into());
    }
    run_by_device(&pending, walk)
}

/// Computes what the walk of `pending` needs first, such as sources of moves and arguments of functions with their own
/// kernels: all of them together, and before these what they need in turn. Returns the walk of what remains.
fn run_first(mut walk: Walk, pending: &mut Vec<Arc<Node>>) -> Result<Walk> {
    let mut lost = Vec::new();
    while !walk.first.is_empty() || !walk.overwritten.is_empty() {
        if !walk.overwritten.is_empty() {
            overwrite::wait(&walk.overwritten, &mut lost)?;
            pending.retain(|node| !node.is_realized());
            walk = Walk::of(pending);
            continue;
        }
        let mut sources: Vec<Arc<Node>> = walk.first.iter().flat_map(ranged::needed).collect();
        sources.extend(walk.shared_with_first());
        realize_part(&sources)?;
        for node in walk.first.iter().filter(|node| node.op != Op::GetTuple) {
            move_to_device(node)?;
        }
        ranged::call(&walk.first)?;
        pending.retain(|node| !node.is_realized());
        walk = Walk::of(pending);
    }
    Ok(walk)
}

/// Computes `pending`, whose walk needs nothing first, device by device.
fn run_by_device(pending: &[Arc<Node>], walk: Walk) -> Result<()> {
    let mut devices: SmallVec<[Option<DeviceId>; 1]> = SmallVec::new();
    for node in pending {
        let device = node.device().cloned();
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    if let [device] = &devices[..] {
        let walk = walk.with_changing(pending)?;
        return run_group(pending, &walk, device.as_ref());
    }
    drop(walk);
    let groups: Vec<Group> = devices
        .into_iter()
        .map(|device| {
            let roots: Vec<Arc<Node>> =
                pending.iter().filter(|node| node.device() == device.as_ref()).cloned().collect();
            let walk = Walk::of(&roots).with_changing(&roots)?;
            Ok(Group { device, roots, walk })
        })
        .collect::<Result<_>>()?;
    let one = |number: usize| {
        let Group { device, roots, walk } = &groups[number];
        run_group(roots, walk, device.as_ref())
    };
    let are_single = groups.iter().all(|group| matches!(group.device, Some(DeviceId::Single(_))));
    // The first time, devices take turns, since each can use what another has compiled.
    match are_single && met(&groups) {
        true => together(groups.len(), one),
        false => (0..groups.len()).try_for_each(one),
    }
}

/// The roots to compute on one device.
struct Group {
    device: Option<DeviceId>,
    roots: Vec<Arc<Node>>,
    walk: Walk,
}

/// Whether such groups were computed before.
fn met(groups: &[Group]) -> bool {
    static MET: OnceLock<Mutex<FxHashSet<ContentHash>>> = OnceLock::new();
    let mut hasher = ContentHasher::default();
    for Group { device, walk, .. } in groups {
        (device, walk.key).hash(&mut hasher);
    }
    let mut met = MET.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if met.len() >= KNOWN_GROUPS {
        met.clear();
    }
    !met.insert(hasher.content_hash())
}

fn run_group(roots: &[Arc<Node>], walk: &Walk, device: Option<&DeviceId>) -> Result<()> {
    match device {
        None => run_walk(roots, walk, &default_device()?),
        Some(DeviceId::Single(name)) => run_walk(roots, walk, &super::device(name)?),
        Some(DeviceId::Many(names)) => shards::run(roots, walk, names),
    }?;
    Ok(())
}

fn run_walk(roots: &[Arc<Node>], walk: &Walk, device: &Arc<Device>) -> Result<()> {
    // Recorded while all nodes that the walk met still have their values.
    let history = match walk.has_equal || walk.has_parts {
        true => History::of_tensors(roots, &walk.changing)?,
        false => None,
    };
    if walk.has_parts && history.is_none() {
        return run_walk(roots, &Walk::of(roots), device);
    }
    // Alias analysis of replaced states is expensive.
    let wanted = match overwrite::is_possible(roots) {
        true if !known_plan(walk.key, device).is_some_and(|plan| plan.stays_apart) => {
            overwrite::wanted(roots, walk, device)
        }
        _ => SmallVec::new(),
    };
    if !wanted.is_empty() {
        let plan = plan_of(walk, device, &wanted.iter().map(|state| state.wish).collect::<Vec<_>>())?;
        if plan.stays_apart {
            plan_for(walk.key, device, || Ok(plan.clone()))?;
            return run_plan(roots, walk, device, &plan, history, None);
        }
        // Otherwise the old value has gained a reference in the meantime.
        if let Some(overwriting) = Overwriting::begin(&plan, &wanted, walk) {
            return run_plan(roots, walk, device, &plan, history, Some(overwriting));
        }
    }
    let plan = plan_of(walk, device, &[])?;
    run_plan(roots, walk, device, &plan, history, None)
}

fn plan_of(walk: &Walk, device: &Arc<Device>, over: &[Donation]) -> Result<Arc<Plan>> {
    let key = match over {
        [] => walk.key,
        _ => ContentHash::of(&(walk.key, over)),
    };
    plan_for(key, device, || {
        let plan = compile::planned(key_for(key, device), device, over, || {
            let Callified { graph, outputs } = walk.build()?;
            Ok((graph, outputs))
        })?;
        Ok(Arc::new(Plan { program: Some(Arc::new(walk.program()?)), ..plan }))
    })
}

fn run_plan(
    roots: &[Arc<Node>],
    walk: &Walk,
    device: &Arc<Device>,
    plan: &Plan,
    history: Option<Arc<History>>,
    overwriting: Option<Overwriting>,
) -> Result<()> {
    let mut owners: Vec<&Arc<Node>> = vec![&roots[0]; plan.outputs.len()];
    for (root, &number) in roots.iter().zip(&plan.output_of_root) {
        owners[number as usize] = root;
    }
    let over = |number: usize| {
        let slot = plan.overwritten.iter().find(|over| over.0 as usize == number).map(|over| over.1);
        slot.and_then(|slot| walk.leaves.get(slot as usize)).filter(|_| overwriting.is_some())
    };
    let outputs: Vec<Arc<Storage>> = (plan.outputs.iter().zip(&owners).enumerate())
        .map(|(number, (&bytes, owner))| match over(number) {
            Some(storage) => Ok(storage.clone()),
            None => Ok(Arc::new(Storage::allocate(device, bytes, &owner.owner())?)),
        })
        .collect::<Result<_>>()?;
    // Values computed from constants may be on another device.
    let here: SmallVec<[Arc<Storage>; 16]> =
        walk.leaves.iter().map(|leaf| shards::on_device(leaf, device, roots)).collect::<Result<_>>()?;
    let leaves: SmallVec<[*mut u8; 16]> = here.iter().map(|leaf| leaf.address()).collect();
    let addresses: SmallVec<[*mut u8; 8]> = outputs.iter().map(|output| output.address()).collect();
    let temporaries = Owner::temporaries(roots.first().and_then(|root| root.location));
    let arena =
        (plan.arena_bytes > 0).then(|| Storage::allocate(device, plan.arena_bytes, &temporaries)).transpose()?;
    let mut table = Vec::with_capacity(plan.table.len());
    let overwriting = overwriting.map(Overwriting::start);
    // SAFETY: the walk keeps the leaves alive; those that are overwritten, `outputs` and `arena` are ours alone.
    unsafe { run(plan, &leaves, &addresses, arena.as_ref(), &mut table)? };
    let history = match (history, &plan.program) {
        (None, Some(program)) => Some(History::new(program, walk)?),
        (history, _) => history,
    };
    for (position, (root, &number)) in roots.iter().zip(&plan.output_of_root).enumerate() {
        let computed = history.as_ref().and_then(|history| history.result(position));
        root.become_buffer(outputs[number as usize].clone(), computed);
    }
    drop(overwriting);
    Ok(())
}

/// The plans of this process. They get half of the limit; the rest is for other cached parts of programs, and for
/// memory of plans that is not counted.
static PLANS: LazyLock<Kept<ContentHash, Arc<Plan>>> = LazyLock::new(|| Kept::new(2));

/// The key of a program on a device.
pub(crate) fn key_for(key: ContentHash, device: &Device) -> ContentHash {
    let mut hasher = ContentHasher::default();
    (key, device.name(), device.target_hash()).hash(&mut hasher);
    hasher.content_hash()
}

fn known_plan(key: ContentHash, device: &Device) -> Option<Arc<Plan>> {
    PLANS.get(&key_for(key, device))
}

/// The plan with this key for this device, compiled at most once.
pub(crate) fn plan_for(
    key: ContentHash,
    device: &Device,
    make: impl FnOnce() -> Result<Arc<Plan>>,
) -> Result<Arc<Plan>> {
    if let Some(plan) = known_plan(key, device) {
        return Ok(plan);
    }
    let plan = make()?;
    PLANS.insert(key_for(key, device), plan.clone(), plan.kept_bytes())?;
    Ok(plan)
}

/// Fills the table of addresses and enqueues the command buffer; reading a result waits for it.
///
/// # Safety
/// Leaves and outputs must be as large as the plan says and valid for reads and writes; outputs and the arena must
/// not be used otherwise meanwhile, except by work enqueued on the device later.
pub(crate) unsafe fn run(
    plan: &Plan,
    leaves: &[*mut u8],
    outputs: &[*mut u8],
    arena: Option<&Storage>,
    table: &mut Vec<*mut u8>,
) -> Result<()> {
    table.clear();
    for place in &plan.table {
        let address = match *place {
            Place::Leaf(slot) => leaves[slot as usize],
            Place::Output(number) => outputs[number as usize],
            // SAFETY: the plan's offsets lie inside the arena.
            Place::Arena(offset) => arena.map_or(std::ptr::null_mut(), |arena| unsafe { arena.address().add(offset) }),
            Place::Constant(number) => plan.constants[number as usize].address(),
            // SAFETY: the schedule's parts lie inside their buffers.
            Place::Within(buffer, bytes) => unsafe { table[buffer as usize].add(bytes) },
        };
        table.push(address);
    }
    plan.device.count_moved(plan.moved());
    if let Some(compared) = &plan.compared {
        // SAFETY: as the caller promises.
        return unsafe { validate::run(plan, compared, table) };
    }
    let runtime = plan.device.runtime();
    if profile::shows(Level::Kernels) {
        let mut custom = CustomSteps::of(plan);
        for (number, step) in plan.steps.iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { custom.run_until(number, table)? };
            let launch = plan.commands.only(number..number + 1);
            let start = Instant::now();
            // SAFETY: as the caller promises.
            unsafe { runtime.enqueue(&launch, table)? };
            runtime.synchronize()?;
            let launched = Launched {
                kernel: &step.kernel.name,
                axes: &step.kernel.axes,
                line: &step.location,
                work: step.kernel.work,
                bytes: step.bytes,
                arena: plan.arena_bytes as u64,
            };
            profile::kernel(launched, start.elapsed());
        }
        // SAFETY: as the caller promises.
        return unsafe { custom.run_until(plan.steps.len(), table) };
    }
    if plan.custom.is_empty() {
        // SAFETY: as the caller promises.
        unsafe { runtime.enqueue(&plan.commands, table)? };
        return Ok(());
    }
    let mut custom = CustomSteps::of(plan);
    for launches in &plan.between {
        if !launches.launches().is_empty() {
            // SAFETY: as the caller promises.
            unsafe { runtime.enqueue(launches, table)? };
        }
        // SAFETY: as the caller promises.
        unsafe { custom.run_next(table)? };
    }
    Ok(())
}

/// The custom functions of a plan that are still to run.
pub(super) struct CustomSteps<'p> {
    device: &'p Device,
    steps: std::slice::Iter<'p, CustomStep>,
}

impl<'p> CustomSteps<'p> {
    pub fn of(plan: &'p Plan) -> CustomSteps<'p> {
        CustomSteps { device: &plan.device, steps: plan.custom.iter() }
    }

    /// Runs those that come before the launch of this number.
    ///
    /// # Safety
    /// As for [`run`], whose table it is; the launches before it must have been enqueued.
    pub unsafe fn run_until(&mut self, launch: usize, table: &[*mut u8]) -> Result<()> {
        while self.steps.as_slice().first().is_some_and(|step| step.after <= launch) {
            // SAFETY: as the caller promises.
            unsafe { self.run_next(table)? };
        }
        Ok(())
    }

    /// Runs the next one, if there is one.
    ///
    /// # Safety
    /// As for [`CustomSteps::run_until`].
    unsafe fn run_next(&mut self, table: &[*mut u8]) -> Result<()> {
        let Some(step) = self.steps.next() else { return Ok(()) };
        let addresses: SmallVec<[*mut u8; 8]> = step.buffers.iter().map(|&buffer| table[buffer as usize]).collect();
        let start = Instant::now();
        // SAFETY: the buffers are as large as the plan says, and what a Call writes is none of its other buffers.
        unsafe { step.call.run(self.device, &addresses, &step.location)? };
        if profile::shows(Level::Kernels) {
            let (kernel, line, bytes) = (step.call.name(), &*step.location, step.bytes);
            let launched = Launched { kernel, axes: "custom function", line, work: 0, bytes, arena: 0 };
            profile::kernel(launched, start.elapsed());
        }
        Ok(())
    }
}
