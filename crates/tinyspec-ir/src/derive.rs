//! `derive`: the only code that computes properties, for both the arena graph and the lazy tensor ("Derived Properties"
//! of the spec). It also checks arity, argument, dtypes, devices and shapes.

pub mod cut;
mod interval;
mod shape;

use crate::instruction::Instruction;
use crate::op::{ArgKind, DTypeRule, ShapeRule};
use crate::words::numbers;
use crate::{AddrSpace, Arg, Category, DType, Error, ErrorKind, Op, Props, Result, Shape};

/// The properties of a node with these sources.
///
/// # Errors
/// Names the op, the shapes and dtypes found, and what was expected.
pub fn derive(op: Op, arg: &Arg, sources: &[&Props]) -> Result<Props> {
    check_arity(op, arg, sources)?;
    if let Arg::Const(value) = arg
        && !value.is_sound()
    {
        let message = format!("the bits {:#x} are not a value of {}", value.bits, value.dtype);
        return Err(Error::new(ErrorKind::Value, op.name(), message));
    }
    let dtype = derive_dtype(op, arg, sources)?;
    let device = derive_device(op, arg, sources)?;
    let shape = match op.info().shape {
        ShapeRule::Scalar => Shape::new(),
        ShapeRule::Source(index) => sources.get(index as usize).map(|props| copied(&props.shape)).unwrap_or_default(),
        ShapeRule::Broadcast => shape::broadcast(op, sources)?,
        ShapeRule::Own => shape::derive(op, arg, sources)?,
    };
    check_size(op, &shape)?;
    let elements = match op {
        Op::Tuple => Some(sources.iter().map(|&source| source.clone()).collect()),
        Op::Function => Some(shape::function_elements(sources)?),
        Op::GetTuple => return Ok(shape::element(arg, sources)?.clone()),
        _ => None,
    };
    check_index(op, dtype, sources)?;
    let value = interval::index_value(op, arg, sources);
    let axis = match &device {
        Some(crate::Device::Many(names)) => {
            let axes: smallvec::SmallVec<[Option<u32>; 4]> = sources.iter().map(|source| source.axis).collect();
            cut::axis(op, arg, sources, &axes, names.len())
        }
        _ => None,
    };
    Ok(Props {
        dtype,
        shape,
        device,
        addrspace: derive_addrspace(op, arg, sources),
        interval: interval::derive(op, arg, sources, dtype, value.as_deref()),
        axis,
        value,
        elements,
    })
}

/// A clone with a fast path for scalars and vectors, which most values of kernels are.
fn copied(shape: &Shape) -> Shape {
    match shape.as_slice() {
        [] => Shape::new(),
        [dim] => {
            let mut shape = Shape::new();
            shape.push(dim.clone());
            shape
        }
        _ => shape.clone(),
    }
}

/// The help for a negative size.
const NEGATIVE: &str = "a size is at least 0; in `reshape` one may be -1, which is inferred";

/// Addresses are computed in i64, so a shape whose size in bytes does not fit is refused, even if it is unused.
pub(crate) fn check_size(op: Op, shape: &[crate::Dim]) -> Result<()> {
    const WIDEST: i64 = 16;
    if let Some(dim) = shape.iter().find(|dim| dim.as_const().is_some_and(|size| size < 0)) {
        let message = format!("the dim {dim} of {} is negative", crate::dim::show(shape));
        return Err(Error::new(ErrorKind::Shape, op.name(), message).help(NEGATIVE));
    }
    let total = shape.iter().try_fold(WIDEST, |total, dim| match dim.as_const() {
        Some(size) => total.checked_mul(size.max(1)),
        None => Some(total),
    });
    match total {
        Some(_) => Ok(()),
        None => {
            let message = format!("{} has too many elements", crate::dim::show(shape));
            Err(Error::new(ErrorKind::Shape, op.name(), message)
                .help("no memory holds so many: the sizes may be those of something else"))
        }
    }
}

/// An index is a mathematical integer, but computed in i64: constants that leave that range are refused.
fn check_index(op: Op, dtype: DType, sources: &[&Props]) -> Result<()> {
    let (DType::Index, [a, b]) = (dtype, sources) else { return Ok(()) };
    let (Some(a), Some(b)) = (a.interval.single(), b.interval.single()) else { return Ok(()) };
    let (value, sign) = match op {
        Op::Add => (a.checked_add(b), '+'),
        Op::Mul => (a.checked_mul(b), '*'),
        _ => return Ok(()),
    };
    if value.is_some_and(|value| i64::try_from(value).is_ok()) {
        return Ok(());
    }
    let message = format!("{a} {sign} {b} is more than an index of 64 bits holds");
    Err(Error::new(ErrorKind::Value, op.name(), message).help("smaller sizes, or arithmetic of i64, which wraps"))
}

fn check_arity(op: Op, arg: &Arg, sources: &[&Props]) -> Result<()> {
    let (least, greatest) = op.info().sources;
    if sources.len() < least || sources.len() > greatest {
        let expected = if least == greatest { least.to_string() } else { format!("at least {least}") };
        return Err(Error::new(
            ErrorKind::Arity,
            op.name(),
            format!("takes {expected} sources, found {}", sources.len()),
        ));
    }
    let fits = match op.info().arg {
        ArgKind::None => matches!(arg, Arg::None),
        ArgKind::Param => matches!(arg, Arg::Param { .. }),
        ArgKind::Buffer => matches!(arg, Arg::Buffer { .. }),
        ArgKind::Const => matches!(arg, Arg::Const(_)),
        ArgKind::Bytes => matches!(arg, Arg::Bytes(_)),
        ArgKind::Axes => matches!(arg, Arg::Axes(_)),
        ArgKind::Flags => matches!(arg, Arg::Flags(_)),
        ArgKind::DType => matches!(arg, Arg::DType(_)),
        ArgKind::Reduce => matches!(arg, Arg::Reduce { op: Op::Add | Op::Max | Op::Mul, .. }),
        ArgKind::Number => matches!(arg, Arg::Number(_)),
        ArgKind::Load => matches!(arg, Arg::Load { .. }),
        ArgKind::Store => matches!(arg, Arg::None | Arg::Nontemporal),
        ArgKind::Contiguous => matches!(arg, Arg::None | Arg::Stored),
        ArgKind::Range => matches!(arg, Arg::Range { .. }),
        ArgKind::Text => matches!(arg, Arg::Text(_)),
    };
    if fits { Ok(()) } else { Err(Error::new(ErrorKind::Arity, op.name(), format!("does not take {arg:?}"))) }
}

fn derive_dtype(op: Op, arg: &Arg, sources: &[&Props]) -> Result<DType> {
    if op.is_elementwise() {
        check_elementwise_dtypes(op, sources)?;
    }
    match op {
        Op::Stack => check_same_dtype(op, sources)?,
        Op::Store => check_same_dtype(op, &sources[..2])?,
        Op::Load if sources.len() > 1 => check_same_dtype(op, &sources[..2])?,
        Op::AtomicAdd => check_same_dtype(op, &sources[..2])?,
        _ => {}
    }
    if let (Op::Store | Op::Load | Op::AtomicAdd, Some(gate)) = (op, sources.get(2))
        && gate.dtype != DType::Bool
    {
        return Err(Error::new(ErrorKind::DType, op.name(), format!("the gate must be bool, found {}", gate.dtype)));
    }
    if op == Op::If && (sources[0].dtype != DType::Bool || !sources[0].shape.is_empty()) {
        let found = format!("{} {}", sources[0].dtype, crate::dim::show(&sources[0].shape));
        return Err(Error::new(ErrorKind::DType, op.name(), format!("the condition must be one bool, found {found}")));
    }
    if op == Op::Ins && Instruction::named(arg).is_some_and(Instruction::is_hint) {
        return Ok(DType::Void);
    }
    Ok(match op.info().dtype {
        DTypeRule::Argument => match arg {
            Arg::Const(value) => value.dtype,
            Arg::DType(dtype) | Arg::Param { dtype, .. } | Arg::Buffer { dtype, .. } => *dtype,
            _ => DType::Void,
        },
        // A Stack without sources is the shape of a scalar.
        DTypeRule::Source(index) => sources.get(index as usize).map_or(DType::Index, |props| props.dtype),
        DTypeRule::Bool => DType::Bool,
        DTypeRule::Index => DType::Index,
        DTypeRule::U8 => DType::U8,
        DTypeRule::Void | DTypeRule::Element => DType::Void,
    })
}

fn check_same_dtype(op: Op, sources: &[&Props]) -> Result<()> {
    if let Some(other) = sources.iter().skip(1).find(|props| props.dtype != sources[0].dtype) {
        return Err(mixed_dtypes(op, sources[0].dtype, other.dtype));
    }
    Ok(())
}

fn mixed_dtypes(op: Op, a: DType, b: DType) -> Error {
    Error::new(ErrorKind::DType, op.name(), format!("mixes {a} and {b}"))
        .help(format!("cast one side, e.g. `.cast(DType::{})`", a.promote(b).unwrap_or(a).name().to_uppercase()))
}

fn check_elementwise_dtypes(op: Op, sources: &[&Props]) -> Result<()> {
    let dtype = sources[0].dtype;
    if let Some(void) = sources.iter().find(|props| props.dtype == DType::Void) {
        let _ = void;
        return Err(Error::new(ErrorKind::DType, op.name(), "a source has no value (void)"));
    }
    let refuse = |expected: &str, found: DType| {
        let help = match expected {
            "a bool condition" => "a comparison such as `.gt(0)` gives bools",
            "a float" | "floats" => "`.cast(DType::F32)`",
            "integers" => "`.cast(DType::I32)`",
            _ => "`.gt(0)` gives bools, `.cast(DType::I32)` integers",
        };
        Err(Error::new(ErrorKind::DType, op.name(), format!("needs {expected}, found {found}")).help(help))
    };
    match op {
        // Operands of custom code may have any dtypes.
        Op::Cast | Op::Custom => Ok(()),
        Op::Where => {
            if dtype != DType::Bool {
                return refuse("a bool condition", dtype);
            }
            check_same_dtype(op, &sources[1..])
        }
        Op::Wmma => match sources {
            [a, b, sum] if a.dtype == b.dtype && numbers(a.dtype, sum.dtype).is_some() => Ok(()),
            [_, _, sum] if !matches!(sum.dtype, DType::I32 | DType::F32) => refuse("a sum of f32 or i32", sum.dtype),
            _ => refuse("words of u32, or of i32 for a sum of i32", dtype),
        },
        Op::Recip | Op::Exp2 | Op::Log2 | Op::Sin | Op::Sqrt if !dtype.is_float() => refuse("a float", dtype),
        Op::Div | Op::Pow if !dtype.is_float() => refuse("floats", dtype),
        Op::Idiv | Op::Mod if dtype == DType::Bool => refuse("numbers", dtype),
        Op::Xor | Op::Or | Op::And if dtype.is_float() => refuse("integers or bools", dtype),
        Op::Shl | Op::Shr if !dtype.is_int() => refuse("integers", dtype),
        Op::Threefry if dtype != DType::U64 => refuse("u64", dtype),
        _ => check_same_dtype(op, sources),
    }
}

/// The first source with a device; two different ones are an error naming both.
fn derive_device(op: Op, arg: &Arg, sources: &[&Props]) -> Result<Option<crate::Device>> {
    match arg {
        Arg::Param { device, .. } | Arg::Buffer { device, .. } => return Ok(device.clone()),
        Arg::Load { device: Some(device), .. } => return Ok(Some(device.clone())),
        _ => {}
    }
    // Ordering and call nodes combine effects on any devices; only values must agree.
    let values = match op {
        // A value without a device of its own is on that of the effects it waits for.
        Op::After if sources[0].device.is_none() => {
            return Ok(sources.iter().find_map(|props| props.device.clone()));
        }
        Op::After => &sources[..1],
        Op::Call => sources,
        _ if matches!(op.category(), Category::Ordering | Category::Call | Category::Codegen) => {
            return Ok(sources.iter().find_map(|props| props.device.clone()));
        }
        _ => sources,
    };
    common_device(op, values)
}

/// The common device of values.
pub(crate) fn common_device(op: Op, values: &[&Props]) -> Result<Option<crate::Device>> {
    let mut found: Option<&crate::Device> = None;
    for device in values.iter().filter_map(|props| props.device.as_ref()) {
        match found {
            Some(first) if first != device => {
                return Err(mixed_devices(op, first, device));
            }
            _ => found = Some(device),
        }
    }
    Ok(found.cloned())
}

fn mixed_devices(op: Op, first: &crate::Device, second: &crate::Device) -> Error {
    use crate::Device::{Many, Single};
    let help = match (first, second) {
        (Many(names), Single(name)) | (Single(name), Many(names)) => format!(
            "of the value on {name}, `collectives::broadcast(&it, {names:?})` gives every device all, `it.to({names:?})` an \
             equal part along axis 0; or collect the other one with `.to({name:?})`"
        ),
        (Many(names), Many(_)) => format!("move one side with `.to({names:?})`"),
        (Single(name), Single(_)) => format!("move one side with `.to({name:?})`"),
    };
    Error::new(ErrorKind::Device, op.name(), format!("mixes devices {first} and {second}")).help(help)
}

fn derive_addrspace(op: Op, arg: &Arg, sources: &[&Props]) -> Option<AddrSpace> {
    match (op, arg) {
        (Op::Param, Arg::Param { addrspace, .. }) => *addrspace,
        (Op::Buffer, Arg::Buffer { addrspace, .. }) => Some(*addrspace),
        // A Load in a kernel gives a value. Memory of a kernel has no device, that of a tensor has one.
        (Op::Load, _) if sources[0].addrspace.is_some() && sources[0].device.is_none() => None,
        (Op::Load, Arg::Load { addrspace, .. }) => Some(*addrspace),
        (Op::After | Op::Contiguous | Op::ContiguousBackward | Op::Detach, _) => sources[0].addrspace,
        _ if op.category() == Category::Movement && op != Op::Stack => {
            sources.first().and_then(|props| props.addrspace)
        }
        _ => None,
    }
}

/// A shorthand for the submodules.
fn refuse<T>(kind: ErrorKind, op: Op, message: impl Into<String>) -> Result<T> {
    Err(Error::new(kind, op.name(), message))
}

/// As [`refuse`], with what to do instead.
fn refuse_with<T>(kind: ErrorKind, op: Op, message: impl Into<String>, help: &str) -> Result<T> {
    Err(Error::new(kind, op.name(), message).help(help))
}

/// The dims that an index source stands for: `expected` of them if given.
fn dims_of<'a>(op: Op, what: &str, source: &'a Props) -> Result<&'a Shape> {
    match &source.value {
        Some(value) if source.dtype == DType::Index => Ok(value),
        _ => refuse(ErrorKind::Shape, op, format!("{what} must be a Stack of index scalars, found {}", source.dtype)),
    }
}
