//! Accesses of memory.

use super::super::chip::Family;
use super::super::table::{Atomic, Permutation, Place, ScalarKind, Transfer, TransferKind};
use super::super::text::{Half, Line, Operand, register};
use super::super::wave::{Counter, Span};
use super::scalar::{ScalarFrom, operand as scalar_operand, span as scalar_span};
use super::{Action, Context, Modifiers, Refusal, Step, bare, number};
use smallvec::{SmallVec, smallvec};

/// The base of an address, without the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Base {
    /// A pair of vector registers.
    Each(u16),
    /// A pair of scalar registers, plus a vector register with an offset of 32 bits.
    Shared { first: u16, each: u16 },
    /// A vector register, in LOCAL memory.
    Local(u16),
    /// A pair of scalar registers, plus an optional scalar offset.
    Scalar { first: u16, more: Option<ScalarFrom> },
    /// An optional vector register, plus an optional scalar register, in the lane's scratch memory.
    Scratch { each: Option<u16>, shared: Option<u16> },
}

/// An access.
pub(in super::super) struct Access {
    pub kind: TransferKind,
    pub is_local: bool,
    pub base: Base,
    /// Byte offsets; the second one is used by instructions that access two places.
    pub offsets: [i64; 2],
    /// Size of an element, and the number of elements.
    pub bytes: usize,
    pub count: usize,
    pub is_signed: bool,
    pub half: Option<Half>,
    /// Registers of the result: of lanes, or scalar ones.
    pub to: Option<u16>,
    /// Registers of lanes with the stored data.
    pub data: [Option<u16>; 2],
    pub counter: Counter,
    pub results: SmallVec<[Span; 2]>,
    /// It is coherent across workgroups, or atomic.
    pub is_strong: bool,
    /// Parameters that the address derives from, by bit.
    pub origins: u64,
    pub swizzle: u16,
}

impl Access {
    pub fn is_global(&self) -> bool {
        !self.is_local && !matches!(self.base, Base::Scratch { .. })
    }
}

pub(super) fn decode(context: &Context, line: &Line, row: &Transfer) -> Result<Step, Refusal> {
    let mut modifiers = Modifiers::new(line);
    let caches = Caches::read(&mut modifiers);
    let mut operands = line.operands.iter();
    let mut next = || operands.next().ok_or_else(|| "an operand is missing".to_string()).and_then(bare);
    let mut reads: SmallVec<[Span; 4]> = smallvec![];
    let mut writes: SmallVec<[Span; 2]> = smallvec![];
    let mut access = Access {
        kind: row.kind,
        is_local: row.place == Place::Local,
        base: Base::Local(0),
        offsets: [0; 2],
        bytes: row.bytes,
        count: row.count,
        is_signed: row.is_signed,
        half: row.half,
        to: None,
        data: [None; 2],
        counter: Counter::Local,
        results: smallvec![],
        is_strong: false,
        origins: 0,
        swizzle: 0,
    };
    let words = (row.bytes * row.count).div_ceil(4) as u16;
    if row.place == Place::Scalar {
        scalar_load(context, &mut access, &mut next, &mut modifiers, words, &mut reads)?;
    } else {
        // The result.
        if let TransferKind::Atomic(atomic) = row.kind
            && caches.returns
        {
            access.kind = TransferKind::AtomicReturning(atomic);
        }
        let result = match access.kind {
            TransferKind::Load | TransferKind::AtomicReturning(_) | TransferKind::Permute(_) => words,
            TransferKind::LoadTwo(_) => 2 * words,
            TransferKind::Store | TransferKind::StoreTwo(_) | TransferKind::Atomic(_) => 0,
        };
        if result > 0 {
            let operand = next()?;
            access.to = Some(context.vector(operand, result)?);
            if let Operand::Vector { half: Some(half), .. } = operand {
                access.half = Some(*half);
            }
            access.results.push(context.span(operand)?.half(access.half));
        }
        // The address, which a swizzle does not have.
        let address = match access.kind {
            TransferKind::Permute(Permutation::Swizzle) => None,
            _ => Some(next()?),
        };
        if let Some(address) = address.filter(|address| !matches!(address, Operand::Off)) {
            reads.push(context.span(address)?);
        }
        // The data.
        let data: &[u16] = match access.kind {
            TransferKind::Load | TransferKind::LoadTwo(_) => &[],
            TransferKind::Store | TransferKind::Permute(_) => &[words],
            TransferKind::StoreTwo(_) => &[words, words],
            TransferKind::Atomic(atomic) | TransferKind::AtomicReturning(atomic) => match atomic {
                Atomic::Of(_) => &[words],
                Atomic::Compare => &[2 * words],
                Atomic::CompareApart | Atomic::CompareFirst => &[words, words],
            },
        };
        for (place, &count) in access.data.iter_mut().zip(data) {
            let operand = next()?;
            if let Operand::Vector { half: Some(half), .. } = operand {
                access.half = Some(*half);
            }
            *place = Some(context.vector(operand, count)?);
            reads.push(context.span(operand)?.half(access.half));
        }
        match address {
            Some(address) if row.place == Place::Scratch => {
                let each = match address {
                    Operand::Off => None,
                    each => Some(context.vector(each, 1)?),
                };
                let shared = match next()? {
                    Operand::Off => None,
                    shared => {
                        reads.push(context.span(shared)?);
                        Some(context.scalar(shared, 1)?)
                    }
                };
                access.base = Base::Scratch { each, shared };
            }
            Some(address) if row.place == Place::Global => {
                access.base = match next()? {
                    Operand::Off => Base::Each(context.vector(address, 2)?),
                    shared => {
                        reads.extend(context.span(shared));
                        Base::Shared { first: context.scalar(shared, 2)?, each: context.vector(address, 1)? }
                    }
                };
            }
            Some(address) => access.base = Base::Local(context.vector(address, 1)?),
            None => {}
        }
        offsets(&mut access, &mut modifiers)?;
        let returns = access.to.is_some();
        access.counter = match (row.place, context.chip.family) {
            (Place::Local, _) => Counter::Local,
            (_, Family::Gfx9) => Counter::Load,
            _ if returns => Counter::Load,
            _ => Counter::Store,
        };
        let is_atomic = matches!(access.kind, TransferKind::Atomic(_) | TransferKind::AtomicReturning(_));
        access.is_strong = is_atomic || caches.is_strong(context.chip.name, context.chip.family);
    }
    if operands.next().is_some() {
        return Err("it has more operands than are known".into());
    }
    modifiers.end()?;
    // A narrow result preserves the other half.
    writes.extend(access.results.iter().copied());
    Ok(Step { action: Action::Access(Box::new(access)), reads, writes })
}

fn scalar_load<'line>(
    context: &Context,
    access: &mut Access,
    next: &mut impl FnMut() -> Result<&'line Operand, Refusal>,
    modifiers: &mut Modifiers,
    words: u16,
    reads: &mut SmallVec<[Span; 4]>,
) -> Result<(), Refusal> {
    let to = next()?;
    if matches!(to, Operand::Scalar { first: register::NULL, .. }) {
        return Err("a load whose result nobody gets".into());
    }
    access.to = Some(context.scalar(to, words)?);
    access.results.push(context.span(to)?);
    let base = next()?;
    let first = context.scalar(base, 2)?;
    reads.extend(context.span(base));
    let mut more = None;
    match next()? {
        Operand::Bits(bits) => access.offsets[0] = *bits as i64,
        Operand::Integer(value) => access.offsets[0] = *value,
        Operand::Scalar { first: register::NULL, .. } => {}
        operand => {
            let from = scalar_operand(context, operand, ScalarKind::I32)?;
            reads.extend(scalar_span(from));
            more = Some(from);
        }
    }
    if let Some(offset) = modifiers.number("offset")? {
        access.offsets[0] += offset;
    }
    access.base = Base::Scalar { first, more };
    access.counter = if context.chip.family == Family::Gfx12 { Counter::Scalar } else { Counter::Local };
    Ok(())
}

fn offsets(access: &mut Access, modifiers: &mut Modifiers) -> Result<(), Refusal> {
    let size = (access.bytes * access.count) as i64;
    let scale = match access.kind {
        TransferKind::LoadTwo(stride) | TransferKind::StoreTwo(stride) => i64::from(stride) * size,
        TransferKind::Permute(Permutation::Swizzle) => {
            let text = modifiers.value("offset").ok_or("it says not where lanes read from")?;
            access.swizzle = swizzle(text)?;
            return Ok(());
        }
        _ => {
            access.offsets[0] = modifiers.number("offset")?.unwrap_or(0);
            return Ok(());
        }
    };
    for (offset, name) in access.offsets.iter_mut().zip(["offset0", "offset1"]) {
        *offset = modifiers.number(name)?.unwrap_or(0) * scale;
    }
    Ok(())
}

/// The offset of `ds_swizzle_b32`: bits, or words for them.
fn swizzle(text: &str) -> Result<u16, Refusal> {
    if let Some(bits) = number(text) {
        return u16::try_from(bits).map_err(|_| "an offset of 16 bits is expected".into());
    }
    let inner = text.strip_prefix("swizzle(").and_then(|text| text.strip_suffix(')'));
    let inner = inner.ok_or_else(|| format!("`{text}` is no swizzle"))?;
    let mut words = inner.split(',').map(str::trim);
    let kind = words.next().unwrap_or_default();
    let numbers: Vec<&str> = words.collect();
    let values = || numbers.iter().map(|text| number(text).and_then(|value| u16::try_from(value).ok())).collect();
    let values: Option<Vec<u16>> = values();
    match (kind, values.as_deref()) {
        ("QUAD_PERM", Some(&[a, b, c, d])) => Ok(0x8000 | a | b << 2 | c << 4 | d << 6),
        ("SWAP", Some(&[size @ 1..=16])) => Ok(size << 10 | 0x1f),
        ("REVERSE", Some(&[size @ 1..=32])) => Ok((size - 1) << 10 | 0x1f),
        ("BROADCAST", Some(&[size @ 1..=32, lane])) => Ok((0x1f & !(size - 1)) | lane << 5),
        ("BITMASK_PERM", _) => {
            // From the highest bit: `0`, `1`, the lane's own `p`, or its opposite `i`.
            let bits = numbers.first().map(|text| text.trim_matches('"')).filter(|text| text.len() == 5);
            let (mut and, mut or, mut xor) = (0u16, 0, 0);
            for (place, letter) in bits.ok_or("five letters are expected")?.bytes().rev().enumerate() {
                match letter {
                    b'0' => {}
                    b'1' => or |= 1 << place,
                    b'p' => and |= 1 << place,
                    b'i' => {
                        and |= 1 << place;
                        xor |= 1 << place;
                    }
                    _ => return Err("such a letter is not known".into()),
                }
            }
            Ok(and | or << 5 | xor << 10)
        }
        _ => Err(format!("the swizzle `{kind}` is not known")),
    }
}

/// Cache modifiers.
#[derive(Default)]
struct Caches {
    sc0: bool,
    sc1: bool,
    glc: bool,
    scope: bool,
    /// The atomic operation returns the old value.
    returns: bool,
}

impl Caches {
    fn read(modifiers: &mut Modifiers) -> Caches {
        let mut caches = Caches {
            sc0: modifiers.flag("sc0"),
            sc1: modifiers.flag("sc1"),
            glc: modifiers.flag("glc"),
            ..Caches::default()
        };
        // Hints.
        for name in ["nt", "slc", "dlc"] {
            modifiers.flag(name);
        }
        if let Some(scope) = modifiers.value("scope") {
            caches.scope = matches!(scope, "SCOPE_SE" | "SCOPE_DEV" | "SCOPE_SYS");
        }
        let hint = modifiers.value("th").unwrap_or_default();
        caches.returns = caches.sc0 || caches.glc || hint.contains("ATOMIC_RETURN");
        caches
    }

    /// It is coherent across workgroups.
    fn is_strong(&self, chip: &str, family: Family) -> bool {
        match family {
            Family::Gfx9 if chip == "gfx90a" => self.glc,
            Family::Gfx9 => self.sc1,
            Family::Gfx11 => self.glc,
            Family::Gfx12 => self.scope,
        }
    }
}
