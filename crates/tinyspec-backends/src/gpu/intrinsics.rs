//! The LLVM intrinsics that custom code may call on a GPU. LLVM aborts the process if a chip does not support an
//! intrinsic, such as `llvm.sin` on NVIDIA's, so this lists those that are tested for every chip: on integers of 8 to
//! 64 bits or floats of 16 to 64, as scalars and in vectors of up to [`Intrinsic::MOST_LANES`].

/// An intrinsic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intrinsic {
    /// Its name, without the types.
    pub name: &'static str,
    /// Number of operands, which have the type of the result.
    pub operands: usize,
    /// Whether it is for floats rather than integers.
    pub is_of_floats: bool,
}

impl Intrinsic {
    /// Lanes of the longest vectors.
    pub const MOST_LANES: u32 = 16;

    /// All of them.
    pub const ALL: &[Intrinsic] = &[
        of_ints("llvm.smax", 2),
        of_ints("llvm.smin", 2),
        of_ints("llvm.umax", 2),
        of_ints("llvm.umin", 2),
        of_ints("llvm.ctpop", 1),
        of_ints("llvm.bitreverse", 1),
        of_ints("llvm.fshl", 3),
        of_ints("llvm.fshr", 3),
        of_ints("llvm.sadd.sat", 2),
        of_ints("llvm.uadd.sat", 2),
        of_ints("llvm.ssub.sat", 2),
        of_ints("llvm.usub.sat", 2),
        of_floats("llvm.fabs", 1),
        of_floats("llvm.copysign", 2),
        of_floats("llvm.ceil", 1),
        of_floats("llvm.floor", 1),
        of_floats("llvm.trunc", 1),
        of_floats("llvm.rint", 1),
        of_floats("llvm.nearbyint", 1),
        of_floats("llvm.round", 1),
        of_floats("llvm.roundeven", 1),
        of_floats("llvm.sqrt", 1),
        of_floats("llvm.fma", 3),
        of_floats("llvm.minnum", 2),
        of_floats("llvm.maxnum", 2),
        of_floats("llvm.minimum", 2),
        of_floats("llvm.maximum", 2),
    ];

    /// The intrinsic of a declaration's name, which includes types.
    pub fn of(name: &str) -> Option<Intrinsic> {
        let without_types = |name: &str| name.rsplit_once('.').map(|(before, _)| before.to_string());
        let name = without_types(name)?;
        Intrinsic::ALL.iter().copied().find(|known| known.name == name)
    }
}

const fn of_ints(name: &'static str, operands: usize) -> Intrinsic {
    Intrinsic { name, operands, is_of_floats: false }
}

const fn of_floats(name: &'static str, operands: usize) -> Intrinsic {
    Intrinsic { name, operands, is_of_floats: true }
}
