//! Comparisons: `v_cmp_` gives a mask, `v_cmpx_` makes it EXEC.

#![expect(clippy::neg_cmp_op_on_partial_ord, reason = "what the instructions are: true of a nan")]

use super::super::arithmetic::{class_double, class_half, class_single, d, f, widen};
use super::super::kind::Kind::{self, F16, F32, F64, I16, I32, I64, U64};
use super::super::lanes::{Function, PART, test};
use super::{Masks, Row, Vectors};

macro_rules! floats {
    ($rows:ident, $suffix:literal, $kind:expr, $test:ident, $of:expr) => {
        $rows.extend([
            (concat!("lt_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) < $of(b))),
            (concat!("eq_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) == $of(b))),
            (concat!("le_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) <= $of(b))),
            (concat!("gt_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) > $of(b))),
            (concat!("lg_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) < $of(b) || $of(a) > $of(b))),
            (concat!("ge_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) >= $of(b))),
            (concat!("o_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) <= $of(b) || $of(a) > $of(b))),
            (concat!("u_", $suffix), $kind as &[Kind], test!($test | a, b | !($of(a) <= $of(b) || $of(a) > $of(b)))),
            (concat!("nge_", $suffix), $kind as &[Kind], test!($test | a, b | !($of(a) >= $of(b)))),
            (concat!("nlg_", $suffix), $kind as &[Kind], test!($test | a, b | !($of(a) < $of(b) || $of(a) > $of(b)))),
            (concat!("ngt_", $suffix), $kind as &[Kind], test!($test | a, b | !($of(a) > $of(b)))),
            (concat!("nle_", $suffix), $kind as &[Kind], test!($test | a, b | !($of(a) <= $of(b)))),
            (concat!("neq_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) != $of(b))),
            (concat!("nlt_", $suffix), $kind as &[Kind], test!($test | a, b | !($of(a) < $of(b)))),
        ]);
    };
}

macro_rules! integers {
    ($rows:ident, $suffix:literal, $kind:expr, $test:ident, $of:expr) => {
        $rows.extend([
            (concat!("lt_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) < $of(b))),
            (concat!("eq_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) == $of(b))),
            (concat!("le_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) <= $of(b))),
            (concat!("gt_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) > $of(b))),
            (concat!("ne_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) != $of(b))),
            (concat!("ge_", $suffix), $kind as &[Kind], test!($test | a, b | $of(a) >= $of(b))),
        ]);
    };
}

type Comparisons = Vec<(&'static str, &'static [Kind], Function)>;

pub(super) fn rows() -> Vectors {
    let mut all: Comparisons = Vec::new();
    floats!(all, "f32", &[F32, F32], TestWords, f);
    floats!(all, "f64", &[F64, F64], TestLongs, d);
    floats!(all, "f16", &[F16, F16], TestWords, |bits: u32| widen(bits & 0xffff));
    integers!(all, "u32", &[I32, I32], TestWords, |bits: u32| bits);
    integers!(all, "i32", &[I32, I32], TestWords, |bits: u32| bits as i32);
    integers!(all, "u64", &[U64, U64], TestLongs, |bits: u64| bits);
    integers!(all, "i64", &[I64, I64], TestLongs, |bits: u64| bits as i64);
    integers!(all, "u16", &[I16, I16], TestWords, |bits: u32| bits as u16);
    integers!(all, "i16", &[I16, I16], TestWords, |bits: u32| bits as i16);
    all.extend([
        ("class_f32", &[F32, I32][..], test!(TestWords | a, b | class_single(a, b))),
        ("class_f64", &[F64, I32], test!(TestLongs | a, b | class_double(a, b))),
        ("class_f16", &[F16, I32], test!(TestWords | a, b | class_half(a, b))),
    ]);
    let mut rows = Vectors::new();
    for (name, from, function) in all {
        let row = Row::new(Kind::B32, from, function);
        rows.push((format!("v_cmp_{name}").leak(), row.masks(Masks::Result)));
        rows.push((format!("v_cmpx_{name}").leak(), row.masks(Masks::ResultActive)));
    }
    rows
}
