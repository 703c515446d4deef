//! Memory accesses.

use super::super::arithmetic::{brain, choose_long, d, double};
use super::super::arithmetic::{f, half, maximum, maximum_ieee, minimum, minimum_ieee, single, widen};
use super::super::text::Half;

/// The kind of an access.
#[derive(Clone, Copy)]
pub(in super::super) enum TransferKind {
    Load,
    Store,
    /// Two elements, at offsets in units of this many elements.
    LoadTwo(u32),
    StoreTwo(u32),
    /// An atomic operation that returns nothing.
    Atomic(Atomic),
    /// One that returns the old value.
    AtomicReturning(Atomic),
    /// Lanes read each other's registers through the LDS crossbar.
    Permute(Permutation),
}

/// How lanes are permuted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Permutation {
    /// Each lane names the lane it reads.
    From,
    /// Each lane names the lane it writes.
    To,
    /// The instruction's offset encodes the pattern.
    Swizzle,
}

/// The function of an atomic operation.
#[derive(Clone, Copy)]
pub(in super::super) enum Atomic {
    Of(fn(u64, u64) -> u64),
    /// Compare and swap: the new value, then the expected one, in consecutive registers.
    Compare,
    /// The same in two operands: the new value, then the expected one.
    CompareApart,
    /// The same in the other order: the expected value, then the new one.
    CompareFirst,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Place {
    Global,
    Local,
    /// GLOBAL memory, loaded into scalar registers.
    Scalar,
    /// Memory that each lane has to itself.
    Scratch,
}

/// An access.
#[derive(Clone, Copy)]
pub(in super::super) struct Transfer {
    pub kind: TransferKind,
    pub place: Place,
    /// Bytes per element.
    pub bytes: usize,
    pub count: usize,
    pub is_signed: bool,
    /// The half of a register that is accessed; the other one is preserved.
    pub half: Option<Half>,
}

type Transfers = Vec<(&'static str, Transfer)>;

use Atomic::{Compare, CompareApart, CompareFirst, Of};
use Place::{Global, Local, Scalar, Scratch};
use TransferKind::{AtomicReturning, Load, LoadTwo, Permute, Store, StoreTwo};

const fn access(kind: TransferKind, place: Place, bytes: usize, count: usize) -> Transfer {
    Transfer { kind, place, bytes, count, is_signed: false, half: None }
}

const fn load(place: Place, bytes: usize, count: usize) -> Transfer {
    access(Load, place, bytes, count)
}

const fn signed(place: Place, bytes: usize) -> Transfer {
    Transfer { is_signed: true, ..load(place, bytes, 1) }
}

const fn store(place: Place, bytes: usize, count: usize) -> Transfer {
    access(Store, place, bytes, count)
}

const fn half_of(transfer: Transfer, half: Half) -> Transfer {
    Transfer { half: Some(half), ..transfer }
}

const LOW: Half = Half::Low;
const HIGH: Half = Half::High;

pub(super) fn rows() -> Transfers {
    let mut rows = loads_and_stores();
    rows.extend(in_scratch(&rows));
    // In GLOBAL memory a modifier says whether the old value is returned; in LOCAL memory the name does.
    let global = |rows: &mut Transfers, name: &str, bytes: usize, of: Atomic| {
        rows.push((format!("global_atomic_{name}").leak(), access(TransferKind::Atomic(of), Global, bytes, 1)));
    };
    let local = |rows: &mut Transfers, name: &str, bytes: usize, of: Atomic| {
        let (start, end) = name.rsplit_once('_').unwrap_or((name, ""));
        rows.push((format!("ds_{name}").leak(), access(TransferKind::Atomic(of), Local, bytes, 1)));
        rows.push((format!("ds_{start}_rtn_{end}").leak(), access(AtomicReturning(of), Local, bytes, 1)));
    };
    for (names, bytes, of) in atomics() {
        names.split('|').for_each(|name| global(&mut rows, name, bytes, of));
        // For LOCAL memory all chips use the newest name.
        local(&mut rows, names.rsplit('|').next().unwrap_or(names), bytes, of);
    }
    for (in_global, in_local, bytes, of) in exchanges() {
        in_global.iter().for_each(|name| global(&mut rows, name, bytes, of));
        in_local.iter().for_each(|name| local(&mut rows, name, bytes, of));
    }
    rows
}

/// Scratch memory has the loads and stores of GLOBAL memory.
fn in_scratch(rows: &Transfers) -> Transfers {
    let in_global = rows.iter().filter(|(_, transfer)| transfer.place == Global);
    let row = |&(names, transfer): &(&'static str, Transfer)| -> (&'static str, Transfer) {
        (names.replace("global_", "scratch_").leak(), Transfer { place: Scratch, ..transfer })
    };
    in_global.map(row).collect()
}

fn loads_and_stores() -> Transfers {
    vec![
        ("global_load_dword|global_load_b32", load(Global, 4, 1)),
        ("global_load_dwordx2|global_load_b64", load(Global, 4, 2)),
        ("global_load_dwordx3|global_load_b96", load(Global, 4, 3)),
        ("global_load_dwordx4|global_load_b128", load(Global, 4, 4)),
        ("global_load_ubyte|global_load_u8", load(Global, 1, 1)),
        ("global_load_sbyte|global_load_i8", signed(Global, 1)),
        ("global_load_ushort|global_load_u16", load(Global, 2, 1)),
        ("global_load_sshort|global_load_i16", signed(Global, 2)),
        ("global_load_short_d16|global_load_d16_b16", half_of(load(Global, 2, 1), LOW)),
        ("global_load_short_d16_hi|global_load_d16_hi_b16", half_of(load(Global, 2, 1), HIGH)),
        ("global_load_ubyte_d16|global_load_d16_u8", half_of(load(Global, 1, 1), LOW)),
        ("global_load_ubyte_d16_hi|global_load_d16_hi_u8", half_of(load(Global, 1, 1), HIGH)),
        ("global_load_sbyte_d16|global_load_d16_i8", half_of(signed(Global, 1), LOW)),
        ("global_load_sbyte_d16_hi|global_load_d16_hi_i8", half_of(signed(Global, 1), HIGH)),
        ("global_store_dword|global_store_b32", store(Global, 4, 1)),
        ("global_store_dwordx2|global_store_b64", store(Global, 4, 2)),
        ("global_store_dwordx3|global_store_b96", store(Global, 4, 3)),
        ("global_store_dwordx4|global_store_b128", store(Global, 4, 4)),
        ("global_store_byte|global_store_b8", store(Global, 1, 1)),
        ("global_store_short|global_store_b16", store(Global, 2, 1)),
        ("global_store_byte_d16_hi|global_store_d16_hi_b8", half_of(store(Global, 1, 1), HIGH)),
        ("global_store_short_d16_hi|global_store_d16_hi_b16", half_of(store(Global, 2, 1), HIGH)),
        ("ds_read_b32|ds_load_b32", load(Local, 4, 1)),
        ("ds_read_b64|ds_load_b64", load(Local, 4, 2)),
        ("ds_read_b96|ds_load_b96", load(Local, 4, 3)),
        ("ds_read_b128|ds_load_b128", load(Local, 4, 4)),
        ("ds_read_u8|ds_load_u8", load(Local, 1, 1)),
        ("ds_read_i8|ds_load_i8", signed(Local, 1)),
        ("ds_read_u16|ds_load_u16", load(Local, 2, 1)),
        ("ds_read_i16|ds_load_i16", signed(Local, 2)),
        ("ds_read_u16_d16|ds_load_u16_d16", half_of(load(Local, 2, 1), LOW)),
        ("ds_read_u16_d16_hi|ds_load_u16_d16_hi", half_of(load(Local, 2, 1), HIGH)),
        ("ds_read_u8_d16|ds_load_u8_d16", half_of(load(Local, 1, 1), LOW)),
        ("ds_read_u8_d16_hi|ds_load_u8_d16_hi", half_of(load(Local, 1, 1), HIGH)),
        ("ds_read_i8_d16|ds_load_i8_d16", half_of(signed(Local, 1), LOW)),
        ("ds_read_i8_d16_hi|ds_load_i8_d16_hi", half_of(signed(Local, 1), HIGH)),
        ("ds_write_b32|ds_store_b32", store(Local, 4, 1)),
        ("ds_write_b64|ds_store_b64", store(Local, 4, 2)),
        ("ds_write_b96|ds_store_b96", store(Local, 4, 3)),
        ("ds_write_b128|ds_store_b128", store(Local, 4, 4)),
        ("ds_write_b8|ds_store_b8", store(Local, 1, 1)),
        ("ds_write_b16|ds_store_b16", store(Local, 2, 1)),
        ("ds_write_b8_d16_hi|ds_store_b8_d16_hi", half_of(store(Local, 1, 1), HIGH)),
        ("ds_write_b16_d16_hi|ds_store_b16_d16_hi", half_of(store(Local, 2, 1), HIGH)),
        ("ds_read2_b32|ds_load_2addr_b32", access(LoadTwo(1), Local, 4, 1)),
        ("ds_read2_b64|ds_load_2addr_b64", access(LoadTwo(1), Local, 4, 2)),
        ("ds_read2st64_b32|ds_load_2addr_stride64_b32", access(LoadTwo(64), Local, 4, 1)),
        ("ds_read2st64_b64|ds_load_2addr_stride64_b64", access(LoadTwo(64), Local, 4, 2)),
        ("ds_write2_b32|ds_store_2addr_b32", access(StoreTwo(1), Local, 4, 1)),
        ("ds_write2_b64|ds_store_2addr_b64", access(StoreTwo(1), Local, 4, 2)),
        ("ds_write2st64_b32|ds_store_2addr_stride64_b32", access(StoreTwo(64), Local, 4, 1)),
        ("ds_write2st64_b64|ds_store_2addr_stride64_b64", access(StoreTwo(64), Local, 4, 2)),
        ("ds_bpermute_b32", access(Permute(Permutation::From), Local, 4, 1)),
        ("ds_permute_b32", access(Permute(Permutation::To), Local, 4, 1)),
        ("ds_swizzle_b32", access(Permute(Permutation::Swizzle), Local, 4, 1)),
        ("s_load_dword|s_load_b32", load(Scalar, 4, 1)),
        ("s_load_dwordx2|s_load_b64", load(Scalar, 4, 2)),
        ("s_load_b96", load(Scalar, 4, 3)),
        ("s_load_dwordx4|s_load_b128", load(Scalar, 4, 4)),
        ("s_load_dwordx8|s_load_b256", load(Scalar, 4, 8)),
        ("s_load_dwordx16|s_load_b512", load(Scalar, 4, 16)),
        ("s_load_u8", load(Scalar, 1, 1)),
        ("s_load_i8", signed(Scalar, 1)),
        ("s_load_u16", load(Scalar, 2, 1)),
        ("s_load_i16", signed(Scalar, 2)),
    ]
}

fn low(bits: u64) -> u32 {
    bits as u32
}

fn s(bits: u64) -> i32 {
    bits as u32 as i32
}

fn singles(of: fn(u32, u32) -> u32, a: u64, b: u64) -> u64 {
    of(low(a), low(b)).into()
}

fn add_single(a: u64, b: u64) -> u64 {
    single(f(low(a)) + f(low(b)), [low(a), low(b)]).into()
}

fn add_double(a: u64, b: u64) -> u64 {
    double(d(a) + d(b), [a, b])
}

/// Adds both halves as f16.
fn add_halves(a: u64, b: u64) -> u64 {
    let of = |a: u32, b: u32| half(widen(a & 0xffff) + widen(b & 0xffff), [a & 0xffff, b & 0xffff]);
    (of(low(a), low(b)) | of(low(a) >> 16, low(b) >> 16) << 16).into()
}

/// Adds two pairs of bf16 in f32, then rounds. The second rounding is harmless: f32 has more than twice the precision of bf16
/// plus two bits.
fn add_brains(a: u64, b: u64) -> u64 {
    let of = |a: u32, b: u32| brain(f(a << 16) + f(b << 16));
    (of(low(a), low(b)) | of(low(a) >> 16, low(b) >> 16) << 16).into()
}

/// Names, bytes, operation.
type Atomics = Vec<(&'static str, usize, Atomic)>;

fn atomics() -> Atomics {
    vec![
        ("add|add_u32", 4, Of(|a, b| low(a).wrapping_add(low(b)).into())),
        ("sub|sub_u32", 4, Of(|a, b| low(a).wrapping_sub(low(b)).into())),
        ("smin|min_i32", 4, Of(|a, b| u64::from(s(a).min(s(b)) as u32))),
        ("smax|max_i32", 4, Of(|a, b| u64::from(s(a).max(s(b)) as u32))),
        ("umin|min_u32", 4, Of(|a, b| a.min(b))),
        ("umax|max_u32", 4, Of(|a, b| a.max(b))),
        ("and|and_b32", 4, Of(|a, b| a & b)),
        ("or|or_b32", 4, Of(|a, b| a | b)),
        ("xor|xor_b32", 4, Of(|a, b| a ^ b)),
        ("add_f32", 4, Of(add_single)),
        ("min_f32", 4, Of(|a, b| singles(minimum_ieee, a, b))),
        ("max_f32", 4, Of(|a, b| singles(maximum_ieee, a, b))),
        ("min_num_f32", 4, Of(|a, b| singles(minimum, a, b))),
        ("max_num_f32", 4, Of(|a, b| singles(maximum, a, b))),
        ("pk_add_f16", 4, Of(add_halves)),
        ("pk_add_bf16", 4, Of(add_brains)),
        ("add_x2|add_u64", 8, Of(u64::wrapping_add)),
        ("sub_x2|sub_u64", 8, Of(u64::wrapping_sub)),
        ("smin_x2|min_i64", 8, Of(|a, b| (a as i64).min(b as i64) as u64)),
        ("smax_x2|max_i64", 8, Of(|a, b| (a as i64).max(b as i64) as u64)),
        ("umin_x2|min_u64", 8, Of(|a, b| a.min(b))),
        ("umax_x2|max_u64", 8, Of(|a, b| a.max(b))),
        ("and_x2|and_b64", 8, Of(|a, b| a & b)),
        ("or_x2|or_b64", 8, Of(|a, b| a | b)),
        ("xor_x2|xor_b64", 8, Of(|a, b| a ^ b)),
        ("add_f64", 8, Of(add_double)),
        ("min_f64", 8, Of(|a, b| choose_long(a, b, false, true, false))),
        ("max_f64", 8, Of(|a, b| choose_long(a, b, true, true, false))),
    ]
}

/// Names in GLOBAL memory and in LOCAL memory, bytes, operation.
type Exchanges = Vec<(&'static [&'static str], &'static [&'static str], usize, Atomic)>;

/// The operations whose LOCAL name is not their GLOBAL name with another prefix. Compare-and-swap takes its operands in
/// another order in LOCAL memory.
fn exchanges() -> Exchanges {
    vec![
        (&["swap", "swap_b32"], &["wrxchg_b32", "storexchg_b32"], 4, Of(|_, b| b)),
        (&["swap_x2", "swap_b64"], &["wrxchg_b64", "storexchg_b64"], 8, Of(|_, b| b)),
        (&["cmpswap", "cmpswap_b32"], &[], 4, Compare),
        (&["cmpswap_x2", "cmpswap_b64"], &[], 8, Compare),
        (&[], &["cmpst_b32"], 4, CompareFirst),
        (&[], &["cmpst_b64"], 8, CompareFirst),
        (&[], &["cmpstore_b32"], 4, CompareApart),
        (&[], &["cmpstore_b64"], 8, CompareApart),
    ]
}
