//! Branches, waits, barriers, and instructions that a simulator ignores.

use super::super::chip::Family;
use super::super::text::{Line, Operand, register};
use super::super::wave::{Counter, Span};
use super::{Action, Context, Modifiers, Refusal, Step, When, bare, number};
use smallvec::{SmallVec, smallvec};

/// Instructions that do not affect results: delays, hints, instruction-cache control, priorities.
const NOTHING: &[&str] = &[
    "s_nop",
    "s_delay_alu",
    "s_clause",
    "s_set_inst_prefetch_distance",
    "s_inst_prefetch",
    "s_setprio",
    "s_sleep",
    "s_wait_alu",
    "s_waitcnt_depctr",
    "s_wait_idle",
    "s_version",
    "s_icache_inv",
    "v_nop",
    // There are no caches here, so nothing cached is ever stale.
    "buffer_gl0_inv",
    "buffer_gl1_inv",
    "buffer_inv",
    "buffer_wbl2",
    "global_inv",
    "global_wb",
    "s_dcache_inv",
    "s_dcache_wb",
];

/// Decodes the instruction if it is one of these.
pub(super) fn decode(context: &Context, line: &Line) -> Result<Option<Step>, Refusal> {
    let name = line.mnemonic.as_str();
    if NOTHING.contains(&name) {
        return Ok(Some(plain(Action::Nothing)));
    }
    if let Some(action) = wait(context.chip.family, line)? {
        return Ok(Some(plain(action)));
    }
    let mask = Span::new(register::VCC, context.mask());
    let active = Span::new(register::EXEC, context.mask());
    let branch = |when: When, reads: &[Span]| -> Result<Option<Step>, Refusal> {
        let action = Action::Branch { when, to: target(context, line)? };
        Ok(Some(Step { action, reads: reads.into(), writes: smallvec![] }))
    };
    match name {
        "s_branch" => branch(When::Always, &[]),
        "s_cbranch_scc0" => branch(When::Condition(false), &[]),
        "s_cbranch_scc1" => branch(When::Condition(true), &[]),
        "s_cbranch_vccz" => branch(When::MaskZero(true), &[mask]),
        "s_cbranch_vccnz" => branch(When::MaskZero(false), &[mask]),
        "s_cbranch_execz" => branch(When::ActiveZero(true), &[active]),
        "s_cbranch_execnz" => branch(When::ActiveZero(false), &[active]),
        "s_barrier" => {
            none(line)?;
            Ok(Some(plain(Action::Barrier { arrives: true, waits: true })))
        }
        "s_barrier_signal" | "s_barrier_wait" => {
            // -1 is the workgroup's own; of 16 bits it may be printed without its sign.
            let [given] = line.operands.as_slice() else { return Err("one operand is expected".into()) };
            if !matches!(bare(given)?, Operand::Integer(-1) | Operand::Bits(0xffff | 0xffff_ffff)) {
                return Err("only the workgroup's own barrier, -1, is simulated".into());
            }
            let arrives = name == "s_barrier_signal";
            Ok(Some(plain(Action::Barrier { arrives, waits: !arrives })))
        }
        "s_endpgm" => Ok(Some(plain(Action::End))),
        "s_sendmsg" => match line.modifiers.as_slice() {
            // Releases the registers.
            [(message, None)] if message == "sendmsg(MSG_DEALLOC_VGPRS)" => Ok(Some(plain(Action::Nothing))),
            _ => Err("this message is not known".into()),
        },
        "s_code_end" | "s_trap" | "s_endpgm_saved" => Ok(Some(plain(Action::Trap))),
        _ => Ok(None),
    }
}

fn plain(action: Action) -> Step {
    Step { action, reads: smallvec![], writes: smallvec![] }
}

fn none(line: &Line) -> Result<(), Refusal> {
    match line.operands.is_empty() {
        true => Modifiers::new(line).end(),
        false => Err("no operand is expected".into()),
    }
}

/// The instruction at a distance in words from the next one.
fn target(context: &Context, line: &Line) -> Result<u32, Refusal> {
    let words = match line.operands.as_slice() {
        [given] => match *bare(given)? {
            Operand::Integer(words) => words,
            Operand::Bits(words) => words as i64,
            _ => return Err("a distance is expected".into()),
        },
        _ => return Err("one operand is expected".into()),
    };
    let words = if words > i64::from(i16::MAX) { words - (1 << 16) } else { words };
    let place = context.next as i64 + 4 * words;
    let found = usize::try_from(place).ok().and_then(|place| context.offsets.binary_search(&place).ok());
    found.map(|number| number as u32).ok_or_else(|| "it leads to no instruction of the kernel".into())
}

/// Waits, by the counters of the family.
fn wait(family: Family, line: &Line) -> Result<Option<Action>, Refusal> {
    let mut waits: SmallVec<[(Counter, usize); 2]> = smallvec![];
    let amount = |text: Option<&Operand>| match text {
        Some(&Operand::Integer(amount)) => Ok(amount as usize),
        Some(&Operand::Bits(amount)) => Ok(amount as usize),
        _ => Err("a number is expected".to_string()),
    };
    let operand = |number: usize| line.operands.get(number).map(|given| &given.operand);
    // One immediate holds two counters, LOCAL memory's in the low bits.
    let both = |first: Counter, waits: &mut SmallVec<[(Counter, usize); 2]>| -> Result<(), Refusal> {
        let amount = amount(operand(0))?;
        waits.push((first, amount >> 8 & 0x3f));
        waits.push((Counter::Local, amount & 0x3f));
        Ok(())
    };
    match line.mnemonic.as_str() {
        "s_waitcnt" => {
            for (text, value) in &line.modifiers {
                let inner = text.strip_suffix(')').and_then(|text| text.split_once('('));
                let parsed = inner.and_then(|(name, amount)| Some((name, number(amount)?)));
                match (parsed, value) {
                    (Some(("vmcnt", amount)), None) => waits.push((Counter::Load, amount as usize)),
                    (Some(("lgkmcnt", amount)), None) => waits.push((Counter::Local, amount as usize)),
                    // Exports, which compute kernels do not have.
                    (Some(("expcnt", _)), None) => {}
                    _ if text == "&" => {}
                    _ => return Err(format!("the counter `{text}` is not known")),
                }
            }
        }
        "s_waitcnt_vscnt" | "s_waitcnt_vmcnt" | "s_waitcnt_lgkmcnt" => {
            if !matches!(operand(0), Some(Operand::Scalar { first: register::NULL, .. })) {
                return Err("`null` is expected".into());
            }
            let counter = match line.mnemonic.as_str() {
                "s_waitcnt_vscnt" => Counter::Store,
                "s_waitcnt_vmcnt" => Counter::Load,
                _ => Counter::Local,
            };
            waits.push((counter, amount(operand(1))?));
        }
        "s_wait_loadcnt" => waits.push((Counter::Load, amount(operand(0))?)),
        "s_wait_storecnt" => waits.push((Counter::Store, amount(operand(0))?)),
        "s_wait_dscnt" => waits.push((Counter::Local, amount(operand(0))?)),
        "s_wait_kmcnt" => waits.push((Counter::Scalar, amount(operand(0))?)),
        "s_wait_loadcnt_dscnt" => both(Counter::Load, &mut waits)?,
        "s_wait_storecnt_dscnt" => both(Counter::Store, &mut waits)?,
        // Image samples, ray tracing and exports.
        "s_wait_samplecnt" | "s_wait_bvhcnt" | "s_wait_expcnt" | "s_wait_xcnt" => {}
        _ => return Ok(None),
    }
    if family != Family::Gfx12 && line.mnemonic.starts_with("s_wait_") {
        return Err("this family has no such counter".into());
    }
    Ok(Some(Action::Wait(waits)))
}
