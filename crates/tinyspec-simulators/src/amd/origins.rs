//! Which parameters each address derives from: an access that lands in another parameter's memory has left its buffer. This
//! also tells which buffers a kernel writes; the others need not be watched for races.
//!
//! Registers are reused, so this is a data flow analysis along the branches. Where a write may leave out lanes, what the
//! register held before counts too.

use super::decode::{Access, Action, Base, Code, Step, When};
use super::table::TransferKind;
use super::text::register;
use super::wave::Span;

/// The number of parameters that are tracked.
const MOST: usize = 63;
const REGISTERS: usize = register::SCALARS as usize + 512;

/// By register.
type Origins = Vec<u64>;

pub(super) fn trace(code: &mut Code) {
    // One more bit stands for the kernel-argument segment.
    let arguments = 1 << code.params.len().min(MOST);
    if code.params.len() > MOST {
        code.written = u64::MAX;
        return;
    }
    let starts = starts(&code.steps);
    let leaves_out = code.steps.iter().any(writes_active);
    let mut states: Vec<Option<Origins>> = vec![None; starts.len()];
    let mut first = vec![0; REGISTERS];
    if let Some(register) = code.start.arguments {
        first[usize::from(register)] = arguments;
        first[usize::from(register) + 1] = arguments;
    }
    states[0] = Some(first);
    let mut open = vec![0];
    while let Some(block) = open.pop() {
        let Some(mut state) = states[block].clone() else { continue };
        let end = starts.get(block + 1).copied().unwrap_or(code.steps.len());
        let mut falls = true;
        for number in starts[block]..end {
            let step = &code.steps[number];
            flow(step, code, arguments, leaves_out, &mut state);
            if let Action::Branch { to, when } = step.action {
                join(&mut states, &mut open, &starts, to as usize, &state);
                falls = when != When::Always;
            } else if matches!(step.action, Action::End | Action::Trap) {
                falls = false;
            }
        }
        if falls && end < code.steps.len() {
            join(&mut states, &mut open, &starts, end, &state);
        }
    }
    let mut written = 0;
    for block in 0..starts.len() {
        let Some(mut state) = states[block].take() else { continue };
        let end = starts.get(block + 1).copied().unwrap_or(code.steps.len());
        for number in starts[block]..end {
            let mut origins = None;
            if let Action::Access(access) = &code.steps[number].action
                && access.is_global()
            {
                origins = Some(of(access, &state));
            }
            flow(&code.steps[number], code, arguments, leaves_out, &mut state);
            if let (Action::Access(access), Some(origins)) = (&mut code.steps[number].action, origins) {
                access.origins = origins;
                let stores = !matches!(access.kind, TransferKind::Load | TransferKind::LoadTwo(_));
                if stores {
                    written |= if origins == 0 { u64::MAX } else { origins };
                }
            }
        }
    }
    code.written = written;
}

/// The first instruction of each basic block.
fn starts(steps: &[Step]) -> Vec<usize> {
    let mut starts = vec![0];
    for (number, step) in steps.iter().enumerate() {
        if let Action::Branch { to, .. } = step.action {
            starts.extend([to as usize, number + 1]);
        }
    }
    starts.retain(|&start| start < steps.len());
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn writes_active(step: &Step) -> bool {
    step.writes.iter().any(|span| span.first <= register::EXEC + 1 && span.first + span.count > register::EXEC)
}

fn join(states: &mut [Option<Origins>], open: &mut Vec<usize>, starts: &[usize], to: usize, state: &Origins) {
    let Ok(block) = starts.binary_search(&to) else { return };
    let changed = match &mut states[block] {
        Some(known) => {
            let mut changed = false;
            for (known, &more) in known.iter_mut().zip(state) {
                changed |= more & !*known != 0;
                *known |= more;
            }
            changed
        }
        empty => {
            *empty = Some(state.clone());
            true
        }
    };
    if changed {
        open.push(block);
    }
}

/// The origins of an address.
fn of(access: &Access, state: &Origins) -> u64 {
    match access.base {
        Base::Each(register) => state[usize::from(register::SCALARS + register)],
        Base::Shared { first, .. } | Base::Scalar { first, .. } => state[usize::from(first)],
        Base::Local(_) | Base::Scratch { .. } => 0,
    }
}

fn flow(step: &Step, code: &Code, arguments: u64, leaves_out: bool, state: &mut Origins) {
    let registers = |span: &Span| usize::from(span.first)..usize::from(span.first + span.count);
    // Parameters come from the segment of arguments; what is loaded from elsewhere is not an address.
    if let Action::Access(access) = &step.action {
        let is_argument = match access.base {
            Base::Scalar { first, more: None } => state[usize::from(first)] == arguments,
            _ => false,
        };
        for span in &step.writes {
            for (number, register) in registers(span).enumerate() {
                let offset = access.offsets[0] + 4 * number as i64;
                let holds = |parameter: &crate::Parameter| {
                    (parameter.offset as i64..(parameter.offset + parameter.bytes) as i64).contains(&offset)
                };
                let found = code.params.iter().position(holds).filter(|_| is_argument);
                state[register] = found.map_or(0, |number| 1 << number);
            }
        }
        return;
    }
    let mut together = step.reads.iter().flat_map(registers).fold(0, |all, register| all | state[register]);
    // An address in the kernel-argument segment at an unknown offset: a load from it may read any parameter.
    let is_move = match &step.action {
        Action::Scalar(scalar) => scalar.from.len() == 1,
        _ => false,
    };
    if together & arguments != 0 && !is_move {
        together = 0;
    }
    for span in &step.writes {
        for register in registers(span) {
            let is_kept = leaves_out && span.first >= register::SCALARS;
            let before = if is_kept { state[register] } else { 0 };
            state[register] = together | before;
        }
    }
}
