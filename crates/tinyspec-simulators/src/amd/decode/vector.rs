//! Vector instructions: operands with their modifiers, in each of the encodings.

use super::super::chip::Family;
use super::super::kind::Kind;
use super::super::lanes::Function;
use super::super::table::{self, Masks, Row};
use super::super::text::{Flag, Given, Half, Line, Operand, register};
use super::super::wave::Span;
use super::{Action, Context, Modifiers, Refusal, Step, bare};
use crate::amd::table::ScalarKind;
use smallvec::{SmallVec, smallvec};

/// Where an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum SourcePlace {
    Vector(u16),
    Scalar(u16),
    Value(u64),
    Flag(Flag),
}

/// Which part of a register is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Select {
    All,
    Of(Half),
    /// A byte, and whether it is sign-extended.
    Byte(u8, bool),
    Word(Half, bool),
    /// Of a pair: which halves become the low part and the high part.
    Pair(Half, Half),
}

/// An operand of a vector instruction.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Source {
    pub place: SourcePlace,
    pub kind: Kind,
    pub select: Select,
    pub absolute: bool,
    pub negative: bool,
    /// Of a pair: its low and its high part.
    pub negative_parts: [bool; 2],
    /// A register without modifiers.
    pub is_plain: bool,
    /// Bit mask of the bytes that are read from the register or register pair.
    pub needs: u8,
}

/// Where the result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum To {
    Nothing,
    Word(u16),
    Long(u16),
    /// A half; the other one is preserved, or cleared.
    Half(u16, Half, bool),
    /// A byte; the others are preserved, cleared, or (above it) filled with its sign.
    Byte(u16, u8, Unused),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Unused {
    Kept,
    Zero,
    Sign,
}

/// Where a mask goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct MaskOut {
    pub register: u16,
    /// To EXEC too, or alone.
    pub active: bool,
}

/// The lanes that the first operand is read from.
#[derive(Clone, Debug)]
pub(in super::super) struct Dpp {
    /// The source lane of each lane; 64 for none.
    pub from: [u8; 64],
    /// Lanes that may be written.
    pub enabled: u64,
    /// A lane without a source reads 0 instead of being disabled.
    pub zero: bool,
    /// Inactive lanes may be read.
    pub reads_inactive: bool,
}

/// The lanes that the first operand is read from, if not each lane's own.
pub(in super::super) type Lanes = Option<Box<Dpp>>;

/// A vector instruction.
pub(in super::super) struct Vector {
    pub function: Function,
    pub to: To,
    pub kind: Kind,
    pub from: [Source; 3],
    pub count: usize,
    pub mask_in: Option<u16>,
    pub mask_out: Option<MaskOut>,
    /// A float result is clamped to [0, 1].
    pub clamps: bool,
    pub lanes: Lanes,
    /// The truth table, of [`Function::Table`].
    pub table: u8,
    /// See [`Row::follows`].
    pub follows: bool,
}

const NO_SOURCE: Source = Source {
    place: SourcePlace::Value(0),
    kind: Kind::I32,
    select: Select::All,
    absolute: false,
    negative: false,
    negative_parts: [false; 2],
    is_plain: false,
    needs: 0,
};

/// The name without the encoding.
fn base(name: &str) -> (&str, bool) {
    for (suffix, is_sdwa) in [("_e64_dpp", false), ("_e32", false), ("_e64", false), ("_dpp", false), ("_sdwa", true)] {
        if let Some(name) = name.strip_suffix(suffix) {
            return (name, is_sdwa);
        }
    }
    (name, false)
}

type Decoded = (Vector, SmallVec<[Span; 4]>, SmallVec<[Span; 2]>);

pub(super) fn decode(context: &Context, line: &Line) -> Result<Decoded, Refusal> {
    let (name, is_sdwa) = base(&line.mnemonic);
    let row = table::vector(name).ok_or("no such instruction is known")?;
    let mut modifiers = Modifiers::new(line);
    let mut operands = line.operands.as_slice();
    let mut reads: SmallVec<[Span; 4]> = smallvec![];
    let mut writes: SmallVec<[Span; 2]> = smallvec![];
    let mask_count = context.mask();
    let vcc = Operand::Scalar { first: register::VCC, count: mask_count };
    let active = Span::new(register::EXEC, mask_count);

    // Results.
    let mut result = None;
    let mut mask_out = None;
    match row.masks {
        Masks::Result => {
            let (mask, rest) = split(operands)?;
            operands = rest;
            mask_out = Some(MaskOut { register: context.scalar(bare(mask)?, mask_count)?, active: false });
        }
        Masks::ResultActive => {
            // On gfx9 a mask is written too; later families print EXEC or nothing.
            let is_mask = matches!(operands.first().map(|given| &given.operand), Some(Operand::Scalar { .. }))
                && operands.len() > row.from.len();
            if is_mask {
                let (mask, rest) = split(operands)?;
                operands = rest;
                mask_out = Some(MaskOut { register: context.scalar(bare(mask)?, mask_count)?, active: true });
            } else {
                mask_out = Some(MaskOut { register: register::NULL, active: true });
            }
            writes.push(active);
        }
        _ => {
            let (to, rest) = split(operands)?;
            operands = rest;
            result = Some(bare(to)?);
        }
    }
    if matches!(row.masks, Masks::Out | Masks::OutIn) {
        let (mask, rest) = split(operands)?;
        operands = rest;
        mask_out = Some(MaskOut { register: context.scalar(bare(mask)?, mask_count)?, active: false });
    }
    if let Some(MaskOut { register, .. }) = mask_out {
        writes.push(Span::new(register, mask_count));
    }
    let mut mask_in = None;
    if matches!(row.masks, Masks::OutIn | Masks::In) {
        let wanted = row.from.len() + 1;
        let mask = match operands.split_last() {
            Some((last, rest)) if operands.len() == wanted => {
                operands = rest;
                bare(last)?.clone()
            }
            // Half of a dual instruction does not name it.
            _ => vcc.clone(),
        };
        mask_in = Some(context.scalar(&mask, mask_count)?);
    } else if row.masks == Masks::InCarry {
        mask_in = Some(register::VCC);
    }
    if let Some(register) = mask_in {
        reads.push(Span::new(register, mask_count));
    }

    // Operands.
    let count = row.from.len();
    let given = count - usize::from(row.accumulates);
    if operands.len() != given {
        return Err(format!("it has {} operands, not {given}", operands.len()));
    }
    let selects = Selects::read(&mut modifiers, row, is_sdwa)?;
    let mut from = [NO_SOURCE; 3];
    for (number, kind) in row.from.iter().enumerate() {
        let operand = match operands.get(number) {
            Some(given) => given.clone(),
            None => Given {
                operand: result.cloned().ok_or("it has no result")?,
                negative: false,
                absolute: false,
                sign_extended: false,
            },
        };
        from[number] = source(context, &operand, *kind, &selects, number)?;
        if let Ok(span) = context.span(&operand.operand) {
            let needs = from[number].needs;
            let half = match (kind.count(), needs & 0b1100, needs & 0b0011) {
                (1, 0, _) => Some(Half::Low),
                (1, _, 0) => Some(Half::High),
                _ => None,
            };
            reads.push(if span.first < register::SCALARS { span } else { span.half(half) });
        }
    }

    // The rest.
    let to = match result {
        None => To::Nothing,
        Some(operand) => {
            let to = target(context, row, operand, &selects, is_sdwa)?;
            let half = if let To::Half(_, half, false) = to { Some(half) } else { None };
            writes.push(context.span(operand)?.half(half));
            to
        }
    };
    let clamps = modifiers.flag("clamp") || modifiers.flag("clamp_mode");
    let is_float = matches!(row.to, Kind::F16 | Kind::F32 | Kind::F64 | Kind::PairF16 | Kind::PairF32);
    // Floats are clamped when they are written, integers while they are computed.
    let function = match row.saturating {
        _ if !clamps || is_float => row.function,
        Some(saturating) => saturating,
        None => return Err("what its result is clamped to is not known".into()),
    };
    let lanes = spread(&mut modifiers, context.chip.family, context.chip.wave)?;
    let table = match row.function {
        Function::Table => {
            let bits = modifiers.number("bitop3")?.unwrap_or(0);
            u8::try_from(bits).map_err(|_| "its table has more than eight bits")?
        }
        _ => 0,
    };
    modifiers.end()?;
    let vector = Vector {
        function,
        to,
        kind: row.to,
        from,
        count,
        mask_in,
        mask_out,
        clamps: clamps && is_float,
        lanes,
        table,
        follows: row.follows && function.can_be_tried(),
    };
    Ok((vector, reads, writes))
}

fn split(operands: &[Given]) -> Result<(&Given, &[Given]), Refusal> {
    operands.split_first().ok_or_else(|| "an operand is missing".into())
}

/// Operand selection by modifiers.
#[derive(Default)]
struct Selects {
    /// `op_sel`: the high half, by operand and at last the result.
    high: Vec<i64>,
    /// `op_sel_hi`, of pairs.
    high_above: Vec<i64>,
    negative_below: Vec<i64>,
    negative_above: Vec<i64>,
    /// SDWA: of the result and of two operands.
    parts: Option<[Part; 3]>,
    unused: Option<Unused>,
}

#[derive(Clone, Copy)]
enum Part {
    Byte(u8),
    Word(Half),
    All,
}

impl Part {
    fn named(name: &str) -> Result<Part, Refusal> {
        Ok(match name {
            "BYTE_0" => Part::Byte(0),
            "BYTE_1" => Part::Byte(1),
            "BYTE_2" => Part::Byte(2),
            "BYTE_3" => Part::Byte(3),
            "WORD_0" => Part::Word(Half::Low),
            "WORD_1" => Part::Word(Half::High),
            "DWORD" => Part::All,
            _ => return Err(format!("`{name}` is not a part of a register")),
        })
    }
}

impl Selects {
    fn read(modifiers: &mut Modifiers, row: &Row, is_sdwa: bool) -> Result<Selects, Refusal> {
        let mut selects = Selects {
            high: modifiers.list("op_sel")?.unwrap_or_default(),
            high_above: modifiers.list("op_sel_hi")?.unwrap_or_default(),
            negative_below: modifiers.list("neg_lo")?.unwrap_or_default(),
            negative_above: modifiers.list("neg_hi")?.unwrap_or_default(),
            ..Selects::default()
        };
        let takes_pairs = row.from.iter().any(|kind| kind.is_pair());
        let is_mixed = row.from.contains(&Kind::Mixed);
        let has_pairs = !selects.negative_below.is_empty() || !selects.negative_above.is_empty();
        if has_pairs && !takes_pairs || !selects.high_above.is_empty() && !takes_pairs && !is_mixed {
            return Err("its modifiers are those of pairs".into());
        }
        if is_sdwa {
            let mut part = |name: &str| modifiers.value(name).map(Part::named).transpose();
            let parts = [part("dst_sel")?, part("src0_sel")?, part("src1_sel")?];
            selects.parts = Some(parts.map(|part| part.unwrap_or(Part::All)));
            selects.unused = match modifiers.value("dst_unused") {
                None => None,
                Some("UNUSED_PAD") => Some(Unused::Zero),
                Some("UNUSED_SEXT") => Some(Unused::Sign),
                Some("UNUSED_PRESERVE") => Some(Unused::Kept),
                Some(name) => return Err(format!("`{name}` says nothing of what is left of a register")),
            };
        }
        Ok(selects)
    }

    fn is_high(&self, number: usize) -> bool {
        self.high.get(number) == Some(&1)
    }
}

fn half(is_high: bool) -> Half {
    if is_high { Half::High } else { Half::Low }
}

fn source(context: &Context, given: &Given, kind: Kind, selects: &Selects, number: usize) -> Result<Source, Refusal> {
    let mut operand_half = None;
    let place = match &given.operand {
        Operand::Vector { .. } | Operand::Accumulator { .. } => {
            operand_half = half_of(&given.operand);
            SourcePlace::Vector(context.vector(&given.operand, kind.count())?)
        }
        Operand::Scalar { first, .. } => {
            // A pair of 16 or 32 bits each, or one.
            context.scalar(&given.operand, kind.count())?;
            SourcePlace::Scalar(*first)
        }
        Operand::Flag(flag) => SourcePlace::Flag(*flag),
        operand => SourcePlace::Value(kind.constant(operand)?),
    };
    let mut select = match kind {
        kind if kind.is_pair() => {
            let above = selects.high_above.get(number).is_none_or(|&bit| bit == 1);
            Select::Pair(half(selects.is_high(number)), half(above))
        }
        Kind::Mixed if selects.high_above.get(number) == Some(&1) => Select::Of(half(selects.is_high(number))),
        Kind::Mixed => Select::All,
        kind if kind.is_narrow() => Select::Of(operand_half.unwrap_or(half(selects.is_high(number)))),
        _ if selects.is_high(number) || operand_half.is_some() => {
            return Err("half of an operand that is all of a register".into());
        }
        _ => Select::All,
    };
    if let Some(parts) = &selects.parts {
        let part = parts.get(number + 1).copied().unwrap_or(Part::All);
        select = match part {
            Part::All => select,
            _ if kind.count() != 1 || kind.is_pair() => return Err("part of such an operand".into()),
            Part::Byte(byte) => Select::Byte(byte, given.sign_extended),
            Part::Word(half) if kind.is_narrow() => Select::Of(half),
            Part::Word(half) => Select::Word(half, given.sign_extended),
        };
        if given.sign_extended && !matches!(select, Select::Byte(..) | Select::Word(..)) && !kind.is_narrow() {
            return Err("`sext` of all of a register".into());
        }
    } else if given.sign_extended {
        return Err("`sext` without a part".into());
    }
    let is_signed = kind.sign().is_some() || matches!(kind, Kind::B32 | Kind::B16);
    if (given.negative || given.absolute) && !is_signed {
        return Err("the sign of an operand that has none".into());
    }
    let pair_bit = |list: &[i64]| list.get(number) == Some(&1);
    let negative_parts = [pair_bit(&selects.negative_below), pair_bit(&selects.negative_above)];
    if negative_parts != [false; 2] && !matches!(kind, Kind::PairF16 | Kind::PairF32) {
        return Err("the sign of a pair that has none".into());
    }
    let is_whole = matches!(select, Select::All | Select::Of(Half::Low) | Select::Pair(Half::Low, Half::High))
        && !(kind == Kind::Mixed && select != Select::All);
    let is_plain = is_whole
        && !given.negative
        && !given.absolute
        && negative_parts == [false; 2]
        && matches!(place, SourcePlace::Vector(_))
        && kind.count() == 1;
    let bytes_of = |half: Half| match (half, kind.count()) {
        (Half::Low, 2) => 0b0000_1111,
        (Half::High, 2) => 0b1111_0000,
        (Half::Low, _) => 0b0011,
        (Half::High, _) => 0b1100,
    };
    let needs = match select {
        Select::All => bytes_of(Half::Low) | bytes_of(Half::High),
        Select::Of(half) | Select::Word(half, _) => bytes_of(half),
        Select::Byte(byte, _) => 1 << byte,
        Select::Pair(low, high) => bytes_of(low) | bytes_of(high),
    };
    Ok(Source {
        place,
        kind,
        select,
        absolute: given.absolute,
        negative: given.negative,
        negative_parts,
        is_plain,
        needs,
    })
}

fn half_of(operand: &Operand) -> Option<Half> {
    match operand {
        Operand::Vector { half, .. } => *half,
        _ => None,
    }
}

fn target(context: &Context, row: &Row, operand: &Operand, selects: &Selects, is_sdwa: bool) -> Result<To, Refusal> {
    let register = context.vector(operand, row.to.count())?;
    // On gfx9 instructions of 16 bits clear the other half.
    let is_old = context.chip.family == Family::Gfx9;
    if is_sdwa && let Some(parts) = &selects.parts {
        let unused = selects.unused.unwrap_or(Unused::Zero);
        return Ok(match parts[0] {
            Part::All if row.to.is_narrow() => To::Half(register, Half::Low, true),
            Part::All => To::Word(register),
            Part::Byte(byte) => To::Byte(register, byte, unused),
            Part::Word(half) => match unused {
                Unused::Kept => To::Half(register, half, false),
                Unused::Zero => To::Half(register, half, true),
                Unused::Sign => return Err("a half whose sign goes on".into()),
            },
        });
    }
    let result_is_high = selects.is_high(row.from.len());
    Ok(match row.to {
        kind if kind.count() == 2 => To::Long(register),
        kind if kind.is_narrow() => match (half_of(operand), row.half) {
            (_, Some(Half::High)) => To::Half(register, Half::High, false),
            (Some(half), _) => To::Half(register, half, false),
            (None, _) if result_is_high => To::Half(register, Half::High, false),
            (None, Some(Half::Low)) => To::Half(register, Half::Low, false),
            (None, None) => To::Half(register, Half::Low, is_old),
        },
        _ if result_is_high || half_of(operand).is_some() => return Err("half of a result".into()),
        _ => To::Word(register),
    })
}

/// DPP: which lanes the first operand is read from.
fn spread(modifiers: &mut Modifiers, family: Family, wave: usize) -> Result<Lanes, Refusal> {
    let mut from = [64u8; 64];
    let mut is_spread = false;
    let mut set = |of: &dyn Fn(usize) -> Option<usize>| {
        for (lane, from) in from.iter_mut().enumerate().take(wave) {
            *from = of(lane).filter(|&lane| lane < wave).map_or(64, |lane| lane as u8);
        }
        is_spread = true;
    };
    if let Some(lanes) = modifiers.list("quad_perm")? {
        let [a, b, c, d] = lanes.as_slice() else { return Err("four lanes are expected".into()) };
        let of = [*a, *b, *c, *d].map(|lane| lane as usize & 3);
        set(&|lane| Some(lane & !3 | of[lane & 3]));
    }
    if let Some(lanes) = modifiers.list("dpp8")? {
        if lanes.len() != 8 {
            return Err("eight lanes are expected".into());
        }
        set(&|lane| Some(lane & !7 | lanes[lane & 7] as usize & 7));
    }
    // Within rows of 16 lanes.
    let row = |lane: usize, place: Option<usize>| place.filter(|&place| place < 16).map(|place| lane & !15 | place);
    if let Some(by) = modifiers.number("row_shl")? {
        set(&|lane| row(lane, Some((lane & 15).saturating_add(by as usize))));
    }
    if let Some(by) = modifiers.number("row_shr")? {
        set(&|lane| row(lane, (lane & 15).checked_sub(by as usize)));
    }
    if let Some(by) = modifiers.number("row_ror")? {
        set(&|lane| row(lane, Some(((lane & 15) + 16 - (by as usize & 15)) & 15)));
    }
    if modifiers.flag("row_mirror") {
        set(&|lane| Some(lane ^ 15));
    }
    if modifiers.flag("row_half_mirror") {
        set(&|lane| Some(lane ^ 7));
    }
    if let Some(mask) = modifiers.number("row_xmask")?.filter(|_| family != Family::Gfx9) {
        set(&|lane| Some(lane ^ (mask as usize & 15)));
    }
    if let Some(place) = modifiers.number("row_share")?.filter(|_| family != Family::Gfx9) {
        set(&|lane| row(lane, Some(place as usize & 15)));
    }
    if let Some(place) = modifiers.number("row_newbcast")?.filter(|_| family == Family::Gfx9) {
        set(&|lane| row(lane, Some(place as usize & 15)));
    }
    if let Some(place) = modifiers.number("row_bcast")?.filter(|_| family == Family::Gfx9) {
        match place {
            // The last lane of each row is broadcast to the next row, or lane 31 to the upper half.
            15 => set(&|lane| (lane & !15).checked_sub(1)),
            31 => set(&|lane| if lane >= 32 { Some(31) } else { None }),
            _ => return Err("such a broadcast is not known".into()),
        }
    }
    if family == Family::Gfx9 {
        for (name, by) in [("wave_shl", 1), ("wave_shr", -1)] {
            if modifiers.number(name)? == Some(1) {
                set(&|lane| usize::try_from(lane as i64 + by).ok());
            }
        }
    }
    let rows = modifiers.number("row_mask")?.unwrap_or(0xf);
    let banks = modifiers.number("bank_mask")?.unwrap_or(0xf);
    let zero = match modifiers.number("bound_ctrl")? {
        None => false,
        Some(0 | 1) => true,
        Some(_) => return Err("such a `bound_ctrl` is not known".into()),
    };
    let reads_inactive = matches!(modifiers.number("fi")?, Some(1));
    if !is_spread {
        return match rows == 0xf && banks == 0xf && !zero {
            true => Ok(None),
            false => Err("lanes are left out of an instruction that reads no others".into()),
        };
    }
    let is_enabled = |lane: &usize| rows >> (lane / 16) & 1 == 1 && banks >> (lane / 4 % 4) & 1 == 1;
    let enabled = (0..wave).filter(is_enabled).fold(0, |mask, lane| mask | 1 << lane);
    Ok(Some(Box::new(Dpp { from, enabled, zero, reads_inactive })))
}

/// Instructions that move data between lanes and scalar registers.
pub(super) fn lanes(context: &Context, line: &Line) -> Result<Option<Step>, Refusal> {
    let (name, _) = base(&line.mnemonic);
    if !matches!(
        name,
        "v_readfirstlane_b32" | "v_readlane_b32" | "v_writelane_b32" | "v_mbcnt_lo_u32_b32" | "v_mbcnt_hi_u32_b32"
    ) {
        return Ok(None);
    }
    Modifiers::new(line).end()?;
    let operand = |number: usize| line.operands.get(number).ok_or("an operand is missing".to_string()).and_then(bare);
    let span = |number: usize| operand(number).ok().and_then(|operand| context.span(operand).ok());
    let place = |number: usize| -> Result<SourcePlace, Refusal> {
        let given = Given { operand: operand(number)?.clone(), negative: false, absolute: false, sign_extended: false };
        Ok(source(context, &given, Kind::B32, &Selects::default(), number)?.place)
    };
    let scalar = |number: usize| super::scalar::operand(context, operand(number)?, ScalarKind::I32);
    let mut reads: SmallVec<[Span; 4]> = (1..line.operands.len()).filter_map(span).collect();
    let action = match (name, line.operands.len()) {
        ("v_readfirstlane_b32", 2) => {
            Action::ReadLane { to: context.scalar(operand(0)?, 1)?, from: place(1)?, lane: None }
        }
        ("v_readlane_b32", 3) => {
            Action::ReadLane { to: context.scalar(operand(0)?, 1)?, from: place(1)?, lane: Some(scalar(2)?) }
        }
        ("v_writelane_b32", 3) => {
            reads.extend(span(0));
            Action::WriteLane { to: context.vector(operand(0)?, 1)?, value: scalar(1)?, lane: scalar(2)? }
        }
        ("v_mbcnt_lo_u32_b32" | "v_mbcnt_hi_u32_b32", 3) => Action::CountBelow {
            to: context.vector(operand(0)?, 1)?,
            mask: place(1)?,
            add: place(2)?,
            upper: name == "v_mbcnt_hi_u32_b32",
        },
        (_, count) => return Err(format!("{count} operands are not what it takes")),
    };
    Ok(Some(Step { action, reads, writes: span(0).into_iter().collect() }))
}
