//! The signature of a function: named inputs whose dims are numbers, names, or expressions over names, and how
//! arguments bind the names. The macros check calls at compile time, the library at run time.

use crate::dim::{self, Atom};
use crate::{Arg, Builder, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// A dim that a signature names; its slot in the signature's shapes is its position.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NamedDim {
    /// The name as the user wrote it.
    pub name: String,
    /// Least value; bodies are traced for sizes from 1 on (see [`NamedDim::at`]).
    pub min: i64,
    /// Greatest value.
    pub max: i64,
    /// The least value for which no size in the signature is negative: 2 if it has `{ N - 2 }`. The body is traced for values from
    /// there on, and numbers are checked against it; the sizes of a dim that a caller leaves open are checked at its call.
    pub implied: i64,
}

impl NamedDim {
    /// Greatest value of a dim that has no bounds of its own.
    pub const MAX: i64 = i32::MAX as i64;

    /// A dim from 0 to [`NamedDim::MAX`].
    pub fn new(name: impl Into<String>) -> NamedDim {
        NamedDim { name: name.into(), min: 0, max: NamedDim::MAX, implied: 0 }
    }

    /// The least value to require of `size`, which a call binds the dim to.
    fn least_of(&self, size: &Dim) -> i64 {
        if size.as_const().is_some() { self.min.max(self.implied) } else { self.min }
    }

    /// The dim with this slot in a traced body. It is at least 1, because with 0 most facts about shapes could not be
    /// proved. For arguments without elements the body is traced again.
    pub fn at(&self, slot: u32) -> Dim {
        Dim::named(slot, self.min.max(self.implied).max(1), self.max)
    }
}

/// A parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Input {
    /// The name as the user wrote it.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// The shape; dims by slot are those of the signature.
    pub shape: Shape,
}

/// Name, named dims and inputs of a function ("The @function Decorator").
///
/// ```
/// use tinyspec_ir::{DType, signature::{Input, NamedDim, Signature}, Dim};
/// let dims = vec![NamedDim::new("N")];
/// let n = Dim::named(0, 1, NamedDim::MAX);
/// let input = |name: &str| Input { name: name.into(), dtype: DType::F32, shape: [n.clone()].into_iter().collect() };
/// let signature = Signature { name: "add".into(), dims, inputs: vec![input("x"), input("y")] };
/// let vector = |size: i64| (DType::F32, [Dim::from(size)].into_iter().collect());
/// assert_eq!(signature.bind(&[vector(3), vector(3)]), Ok(vec![Dim::from(3)]));
/// let wrong = signature.bind(&[vector(3), vector(4)]).unwrap_err();
/// assert!(wrong[0].error.message().starts_with("dim `N` is 3 from `x`, but axis 0 of `y` is 4"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    /// The function's name.
    pub name: String,
    /// Dims bound by the arguments.
    pub dims: Vec<NamedDim>,
    /// Parameters in order.
    pub inputs: Vec<Input>,
}

/// Why arguments do not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Position of the argument that is wrong; `None` for a wrong number of them.
    pub argument: Option<usize>,
    /// The error, with what was found and expected.
    pub error: Error,
}

/// An axis of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Position of the argument.
    pub argument: usize,
    /// Position among its axes.
    pub axis: usize,
}

impl Signature {
    /// The dim with a position among [`Signature::dims`].
    pub fn dim(&self, position: usize) -> Dim {
        self.dims[position].at(position as u32)
    }

    /// The inputs as Params of a graph: their slots come first, then those of the named dims.
    ///
    /// # Errors
    /// When [`crate::derive()`] refuses a shape.
    pub fn params(&self, builder: &mut dyn Builder) -> Result<Vec<NodeId>> {
        let first = self.inputs.len() as u32;
        let slot = |position: u32| Some(self.dims.get(position as usize)?.at(first + position));
        let mut params = vec![];
        for (number, input) in (0..).zip(&self.inputs) {
            let shape: Shape = input.shape.iter().map(|dim| dim.substitute(&slot)).collect();
            let shape = builder.shape(&shape)?;
            let arg = Arg::Param { slot: number, dtype: input.dtype, device: None, addrspace: None };
            params.push(builder.add(Op::Param, &[shape], arg)?);
        }
        Ok(params)
    }

    /// Dims in the user's names: `B, 64`.
    pub fn show(&self, shape: &[Dim]) -> String {
        let names: Vec<(u32, String)> = (0..).zip(self.dims.iter().map(|dim| dim.name.clone())).collect();
        dim::with_names(&names, || dim::list(shape))
    }

    /// The values of the named dims, from the dtypes and shapes of the arguments.
    ///
    /// # Errors
    /// Every argument whose dtype, rank or dims do not fit.
    pub fn bind(&self, arguments: &[(DType, Shape)]) -> Result<Vec<Dim>, Vec<Mismatch>> {
        self.bind_where(arguments, &mut |_, _| false)
    }

    /// As [`Signature::bind`], but a dim may be 0 if it has no bounds of its own, or these include 0.
    ///
    /// # Errors
    /// As [`Signature::bind`].
    pub fn bind_or_empty(&self, arguments: &[(DType, Shape)]) -> Result<Vec<Dim>, Vec<Mismatch>> {
        self.bind_from(0, arguments, &mut |_, _| false)
    }

    /// As [`Signature::bind`], but the caller decides by `is_equal` whether the size of an axis matches the expected
    /// one if the two are not provably equal.
    ///
    /// # Errors
    /// As [`Signature::bind`].
    pub fn bind_where(
        &self,
        arguments: &[(DType, Shape)],
        is_equal: &mut dyn FnMut(Axis, [&Dim; 2]) -> bool,
    ) -> Result<Vec<Dim>, Vec<Mismatch>> {
        self.bind_from(1, arguments, is_equal)
    }

    /// As [`Signature::bind_where`], for dims of at least `least`.
    fn bind_from(
        &self,
        least: i64,
        arguments: &[(DType, Shape)],
        is_equal: &mut dyn FnMut(Axis, [&Dim; 2]) -> bool,
    ) -> Result<Vec<Dim>, Vec<Mismatch>> {
        let error = |kind, message: String| Error::new(kind, self.name.clone(), message);
        if arguments.len() != self.inputs.len() {
            let names: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
            let message = format!("takes {} arguments ({}), found {}", names.len(), names.join(", "), arguments.len());
            return Err(vec![Mismatch { argument: None, error: error(ErrorKind::Arity, message) }]);
        }
        let mut mismatches: Vec<Mismatch> = vec![];
        // The value of each dim, and the input that it comes from.
        let mut bound: Vec<Option<(Dim, usize)>> = vec![None; self.dims.len()];
        let mut refuse = |argument: usize, kind, what: String| {
            if mismatches.iter().all(|other| other.argument != Some(argument)) {
                let error = error(kind, what).help(self.expectation(argument, &arguments[argument]));
                mismatches.push(Mismatch { argument: Some(argument), error });
            }
        };
        for (position, ((dtype, shape), input)) in arguments.iter().zip(&self.inputs).enumerate() {
            if *dtype != input.dtype {
                refuse(position, ErrorKind::DType, format!("`{}` is {}, found {dtype}", input.name, input.dtype));
            } else if shape.len() != input.shape.len() {
                let message = format!("`{}` has rank {}, found rank {}", input.name, input.shape.len(), shape.len());
                refuse(position, ErrorKind::Rank, message);
                continue;
            }
            // Plain names bind first; expressions are solved for the rest, then compared.
            for (axis, (found, expected)) in shape.iter().zip(&input.shape).enumerate() {
                let Some(place) = self.named(expected) else { continue };
                let dim = &self.dims[place];
                let (name, min, max) = (&dim.name, dim.least_of(found), dim.max);
                match &bound[place] {
                    None => {
                        let (low, high) = found.bounds();
                        // A product of dims may exceed the default bound of a dim, so only declared bounds are checked.
                        let is_beyond = high > max && (max < NamedDim::MAX || found.as_const().is_some());
                        if low < min.max(least) || is_beyond {
                            let size = match found.as_const() {
                                Some(number) => number.to_string(),
                                None => format!("{found}, between {low} and {high}"),
                            };
                            let why = match low >= min && !is_beyond {
                                true => format!("and what is traced for dim `{name}` takes no 0"),
                                false if max == NamedDim::MAX && !is_beyond => {
                                    format!("but by the sizes in the signature dim `{name}` is at least {min}")
                                }
                                false => format!("but dim `{name}` goes from {min} to {max}"),
                            };
                            let message = format!("axis {axis} of `{}` is {size}, {why}", input.name);
                            refuse(position, ErrorKind::Shape, message);
                        }
                        bound[place] = Some((found.clone(), position));
                    }
                    Some((first, from)) if first != found => {
                        let message = format!(
                            "dim `{name}` is {first} from `{}`, but axis {axis} of `{}` is {found}",
                            self.inputs[*from].name, input.name
                        );
                        refuse(position, ErrorKind::Shape, message);
                    }
                    Some(_) => {}
                }
            }
        }
        self.solve(least, arguments, &mut bound, is_equal);
        let value = |slot: u32| bound.get(slot as usize)?.as_ref().map(|(dim, _)| dim.clone());
        for (position, ((_, shape), input)) in arguments.iter().zip(&self.inputs).enumerate() {
            for (axis, (found, expected)) in shape.iter().zip(&input.shape).enumerate() {
                if self.named(expected).is_some() {
                    continue;
                }
                let wanted = expected.substitute(&value);
                let is_wrong = wanted != *found && !is_equal(Axis { argument: position, axis }, [found, &wanted]);
                if is_wrong {
                    let shown = self.show(std::slice::from_ref(expected));
                    let is_shown = expected.as_const().is_some() || shown == wanted.to_string();
                    let meaning = if is_shown { String::new() } else { format!(" (`{shown}`)") };
                    let unknown = (0..)
                        .zip(&bound)
                        .zip(&self.dims)
                        .find_map(|((slot, value), dim)| (value.is_none() && contains(expected, slot)).then_some(dim));
                    let factor = (0..)
                        .zip(&bound)
                        .find_map(|(slot, value)| linear(&wanted, slot).filter(|_| value.is_none()))
                        .and_then(|(factor, rest)| rest.is(0).then_some(factor))
                        .filter(|factor| !factor.is(1) && !found.modulo(factor).is(0));
                    let message = match unknown {
                        Some(_) if factor.is_some() => {
                            let factor = factor.unwrap_or_else(|| Dim::from(1));
                            let name = &input.name;
                            match (found.as_const(), factor.as_const()) {
                                (Some(_), Some(_)) => {
                                    format!(
                                        "axis {axis} of `{name}` is {found}, which {factor} does not divide (`{shown}`)"
                                    )
                                }
                                _ => format!(
                                    "axis {axis} of `{name}` is {found}, and nothing says that {factor} divides it (`{shown}`): `#[function(where({found} % {factor} == 0))]` does"
                                ),
                            }
                        }
                        Some(NamedDim { name, min, .. }) => format!(
                            "axis {axis} of `{}` is {found}: that is not `{shown}` with `{name}` at least {}",
                            input.name,
                            (*min).max(least)
                        ),
                        None => {
                            format!("axis {axis} of `{}` must be {wanted}{meaning}, here it is {found}", input.name)
                        }
                    };
                    refuse(position, ErrorKind::Shape, message);
                }
            }
        }
        for (dim, value) in self.dims.iter().zip(&bound) {
            if value.is_none() && mismatches.is_empty() {
                let message = format!("no argument has the named dim `{}` as an axis", dim.name);
                mismatches.push(Mismatch { argument: None, error: error(ErrorKind::Shape, message) });
            }
        }
        if mismatches.is_empty() {
            Ok(bound.into_iter().flatten().map(|(dim, _)| dim).collect())
        } else {
            Err(mismatches)
        }
    }

    /// Binds the dims that occur only in expressions: `{2 * H}` of size 6 means that `H` is 3.
    fn solve(
        &self,
        least: i64,
        arguments: &[(DType, Shape)],
        bound: &mut [Option<(Dim, usize)>],
        is_equal: &mut dyn FnMut(Axis, [&Dim; 2]) -> bool,
    ) {
        for (place, argument, axis) in self.solved() {
            let value = |slot: u32| bound.get(slot as usize)?.as_ref().map(|(dim, _)| dim.clone());
            let expected = self.inputs[argument].shape[axis].substitute(&value);
            let Some((coefficient, rest)) = linear(&expected, place as u32) else { continue };
            let Some(found) = arguments.get(argument).and_then(|(_, shape)| shape.get(axis)) else { continue };
            let difference = found.clone() - rest.clone();
            let quotient = difference.idiv(&coefficient);
            let max = self.dims[place].max;
            let min = self.dims[place].least_of(&quotient).max(least);
            let wanted = quotient.clone() * coefficient + rest;
            let (low, high) = quotient.bounds();
            let is_inside = if wanted == *found {
                low >= min && quotient.as_const().is_none_or(|number| number <= max)
            } else {
                high >= min && is_equal(Axis { argument, axis }, [found, &wanted])
            };
            if is_inside {
                bound[place] = Some((quotient, argument));
            }
        }
    }

    /// Dims that are no input's axis, in the order in which they can be solved: position, and the input and axis whose
    /// expression contains no other unknown dim, and this one linearly.
    fn solved(&self) -> Vec<(usize, usize, usize)> {
        let axes = || {
            let inputs = self.inputs.iter().enumerate();
            inputs.flat_map(|(input, of)| of.shape.iter().enumerate().map(move |(axis, dim)| (input, axis, dim)))
        };
        let mut known: Vec<bool> =
            (0..self.dims.len()).map(|place| axes().any(|(.., dim)| self.named(dim) == Some(place))).collect();
        let mut solved = vec![];
        loop {
            let next = axes().find_map(|(input, axis, dim)| {
                let unknown: Vec<u32> =
                    (0..known.len() as u32).filter(|&slot| !known[slot as usize] && contains(dim, slot)).collect();
                let [slot] = unknown[..] else { return None };
                linear(dim, slot).map(|_| (slot as usize, input, axis))
            });
            let Some(next) = next else { return solved };
            known[next.0] = true;
            solved.push(next);
        }
    }

    /// Positions of the dims that arguments cannot determine: they are not an axis, and no expression can be solved for
    /// them.
    pub fn unbound(&self) -> Vec<usize> {
        let solved = self.solved();
        let is_axis =
            |place| self.inputs.iter().any(|input| input.shape.iter().any(|dim| self.named(dim) == Some(place)));
        (0..self.dims.len()).filter(|&place| !is_axis(place) && solved.iter().all(|found| found.0 != place)).collect()
    }

    /// The position of `dim`, if it is just a named dim.
    fn named(&self, dim: &Dim) -> Option<usize> {
        match dim.as_atom() {
            Some(Atom::Named { slot, .. }) if (*slot as usize) < self.dims.len() => Some(*slot as usize),
            _ => None,
        }
    }

    fn expectation(&self, argument: usize, (dtype, shape): &(DType, Shape)) -> String {
        let input = &self.inputs[argument];
        let expected = type_of(input.dtype, &self.show(&input.shape));
        format!("`{}` wants {expected}, this is {}", self.name, type_of(*dtype, &dim::list(shape)))
    }
}

/// Whether the named dim with this slot occurs.
fn contains(dim: &Dim, slot: u32) -> bool {
    dim.terms().iter().flat_map(|(atoms, _)| atoms).any(|atom| match atom {
        Atom::Named { slot: own, .. } => *own == slot,
        Atom::Idiv(a, b) | Atom::Mod(a, b) | Atom::Max(a, b) => contains(a, slot) || contains(b, slot),
    })
}

/// Splits a dim into `coefficient · dim + rest` for the named dim with this slot, if it occurs in one term.
pub fn linear(dim: &Dim, slot: u32) -> Option<(Dim, Dim)> {
    let is_own = |atom: &Atom| matches!(atom, Atom::Named { slot: own, .. } if *own == slot);
    let (mut atoms, number) = dim.terms().into_iter().find(|(atoms, _)| atoms.iter().any(is_own))?;
    let rest = dim.clone() - Dim::product(&atoms, number);
    atoms.remove(atoms.iter().position(is_own)?);
    let coefficient = Dim::product(&atoms, number);
    (!contains(&rest, slot) && !contains(&coefficient, slot)).then_some((coefficient, rest))
}

/// A tensor's type in a signature: `Tensor<f32, B, 64>`.
fn type_of(dtype: DType, dims: &str) -> String {
    match dims {
        "" => format!("Tensor<{dtype}>"),
        dims => format!("Tensor<{dtype}, {dims}>"),
    }
}

/// A tensor's type in a signature, for a shape whose names are in scope: `Tensor<f32, B, 64>`.
pub fn show_type(dtype: DType, shape: &[Dim]) -> String {
    type_of(dtype, &dim::list(shape))
}
