//! Constants whose values decide whether shapes fit: the trace assumes that they do, and `const` evaluation checks it.

use super::{Check, Tracer, Value};
use crate::diagnostics::Place;
use crate::model::types::OF_MODEL;
use proc_macro2::TokenStream;
use quote::quote;
use tinyspec_ir::dim::Atom;
use tinyspec_ir::function::{FIRST_CONSTANT, FIRST_RESULT};
use tinyspec_ir::ops::{self, MethodArg};
use tinyspec_ir::{Arg, Builder, Dim, Graph, Op, Shape, dim};

/// A constant with an assumed value.
pub(super) struct Assumption<'a> {
    slot: u32,
    value: &'a Dim,
}

impl Assumption<'_> {
    /// The shape under the assumption.
    pub(super) fn apply(&self, shape: &[Dim]) -> Shape {
        shape.iter().map(|dim| dim.substitute(&|slot| (slot == self.slot).then(|| self.value.clone()))).collect()
    }
}

impl Tracer<'_> {
    /// `op` has refused operands of these shapes. If it `works` once a size made of constants equals another size, the
    /// equality is solved for a constant and the body is traced again with that value, once for each constant.
    pub(super) fn assume(
        &mut self,
        place: Place,
        op: &str,
        shapes: &[Shape],
        works: impl Fn(&Assumption) -> bool,
    ) -> Option<Value> {
        if !self.assumed.is_empty() {
            // One assumption per trace: the next trace looks at the rest.
            return Some(Value::Wrong);
        }
        if let Some(value) = self.assume_divisor(place, op, shapes) {
            return Some(value);
        }
        if let Some(value) = self.assume_divisible(place, op, shapes, &works) {
            return Some(value);
        }
        if let Some(value) = self.assume_number(place, op, shapes, &works) {
            return Some(value);
        }
        // A reshape only needs equal numbers of elements.
        let elements: Vec<Dim> = match op {
            "reshape" => shapes.iter().map(elements_of).collect(),
            _ => shapes.iter().flatten().cloned().collect(),
        };
        let dims: Vec<&Dim> = elements.iter().collect();
        let pairs = dims.iter().flat_map(|&left| dims.iter().map(move |&right| (left, right)));
        for (left, right) in pairs.filter(|(left, right)| left != right) {
            for (slot, constant, value) in solutions(left, right) {
                if self.constants.open(slot).is_none() || !works(&Assumption { slot, value: &value }) {
                    continue;
                }
                // Opposite a dim, only the constant itself has a value.
                let sides = [(left, right), (&constant, &value)].into_iter().find_map(|(left, right)| {
                    Some((left, self.constants.in_rust(left)?, right, self.constants.in_rust(right)?))
                });
                let Some((left, expected, right, found)) = sides else { continue };
                let names = self.names();
                let check = Check {
                    place,
                    what: op.to_string(),
                    constant: Some(dim::with_names(&names, || left.to_string())),
                    expected,
                    found: dim::with_names(&names, || right.to_string()),
                    value: found,
                };
                self.assumed.push(check);
                self.take_as(slot, value);
                return Some(Value::Wrong);
            }
        }
        None
    }

    /// From the next trace on, the constant is assumed to be this size.
    fn take_as(&mut self, slot: u32, value: Dim) {
        for constant in &mut self.constants.0 {
            let known = constant.assumed.take();
            constant.assumed = known.map(|dim| dim.substitute(&|other| (other == slot).then(|| value.clone())));
        }
        if let Some(constant) = self.constants.0.get_mut((slot - FIRST_CONSTANT) as usize) {
            constant.assumed = Some(value);
        }
    }

    /// The same where a quotient must be an integer: `D / 4` becomes a constant of its own, and `D` is 4 times that.
    fn assume_divisible(
        &mut self,
        place: Place,
        op: &str,
        shapes: &[Shape],
        works: &impl Fn(&Assumption) -> bool,
    ) -> Option<Value> {
        let mut quotients: Vec<(Dim, Dim)> = shapes.iter().flatten().flat_map(quotients_in).collect();
        if let ("reshape", [from, to]) = (op, shapes) {
            let is_inferred = |dim: &&Dim| dim.is(-1);
            if to.iter().filter(is_inferred).count() == 1 {
                let known: Shape = to.iter().filter(|dim| !is_inferred(dim)).cloned().collect();
                quotients.push(elements_of(from).ratio(&elements_of(&known)));
            }
        }
        for (dividend, divisor) in quotients {
            let Some(&Atom::Named { slot: slot @ FIRST_CONSTANT..FIRST_RESULT, .. }) = dividend.as_atom() else {
                continue;
            };
            let (Some(whole), Some(by)) = (self.constants.in_rust(&dividend), self.constants.in_rust(&divisor)) else {
                continue;
            };
            if self.constants.open(slot).is_none() || dividend == divisor {
                continue;
            }
            let names = self.names();
            let [shown, shown_by, factor] =
                dim::with_names(&names, || [dividend.to_string(), divisor.to_string(), divisor.bracketed()]);
            let quotient = self.constants.dim(format!("({shown}/{factor})"), quote!(((#whole / #by) as i64)));
            let value = quotient * divisor;
            if !works(&Assumption { slot, value: &value }) {
                continue;
            }
            self.assumed.push(Check {
                place,
                what: op.to_string(),
                constant: Some(shown.clone()),
                expected: whole.clone(),
                found: format!("{shown_by}*({shown}/{factor})"),
                value: quote!((#by * (#whole / #by))),
            });
            self.take_as(slot, value);
            return Some(Value::Wrong);
        }
        None
    }

    /// `32 / PATCH`: the constant is one of the divisors of the number, and each is traced.
    fn assume_divisor(&mut self, place: Place, op: &str, shapes: &[Shape]) -> Option<Value> {
        let quotients: Vec<(Dim, Dim)> = shapes.iter().flatten().flat_map(quotients_in).collect();
        for (dividend, divisor) in quotients {
            let (Some(number @ 1..=4096), Some(&Atom::Named { slot: slot @ FIRST_CONSTANT..FIRST_RESULT, .. })) =
                (dividend.as_const(), divisor.as_atom())
            else {
                continue;
            };
            let Some(constant) = self.constants.open(slot) else { continue };
            let (text, path) = (constant.text.clone(), constant.path.clone());
            let divisors: Vec<i64> = (1..=number).filter(|divisor| number % divisor == 0).collect();
            return self.take_as_number(place, op, slot, (&text, &path), divisors);
        }
        None
    }

    /// `op` needs a number where the constant is, such as the size of a window; an unknown size does not work.
    fn assume_number(
        &mut self,
        place: Place,
        op: &str,
        shapes: &[Shape],
        works: &impl Fn(&Assumption) -> bool,
    ) -> Option<Value> {
        let atoms = shapes.iter().flatten().filter_map(|dim| dim.as_atom().cloned());
        for atom in atoms.collect::<Vec<_>>() {
            let Atom::Named { slot: slot @ FIRST_CONSTANT..FIRST_RESULT, .. } = atom else { continue };
            let Some(constant) = self.constants.open(slot) else { continue };
            let fits = |number: &i64| works(&Assumption { slot, value: &Dim::from(*number) });
            if (1..=4).filter(fits).count() < 3 {
                continue;
            }
            let (text, path) = (constant.text.clone(), constant.path.clone());
            return self.take_as_number(place, op, slot, (&text, &path), (1..=self.most_number).collect());
        }
        None
    }

    /// The constant is one of these numbers: each is traced.
    fn take_as_number(
        &mut self,
        place: Place,
        op: &str,
        slot: u32,
        (text, path): (&str, &TokenStream),
        numbers: Vec<i64>,
    ) -> Option<Value> {
        let text = text.trim_start_matches(OF_MODEL);
        let Some(number) = self.decide_among(text, path, numbers, (false, None), place) else {
            return Some(Value::Wrong);
        };
        let value = Dim::from(number);
        let check = Check {
            place,
            what: op.to_string(),
            constant: Some(text.to_string()),
            expected: quote!((#path as i128)),
            found: value.to_string(),
            value: self.constants.in_rust(&value)?,
        };
        self.assumed.push(check);
        self.take_as(slot, value);
        Some(Value::Wrong)
    }

    /// The same for a row of the method table.
    pub(super) fn assume_of_method(&mut self, place: Place, name: &str, args: &[MethodArg]) -> Option<Value> {
        let mut shapes = vec![];
        for arg in args {
            match arg {
                MethodArg::Tensor(node) => shapes.push(self.graph.props(*node).shape.clone()),
                MethodArg::Tensors(nodes) => {
                    shapes.extend(nodes.iter().map(|node| self.graph.props(*node).shape.clone()))
                }
                MethodArg::Shape(shape) => shapes.push(shape.clone()),
                _ => {}
            }
        }
        let operands: Vec<_> = self.graph_types(args);
        self.assume(place, name, &shapes, |assumption| {
            let mut scratch = Graph::new();
            let args = replaced(args, &operands, &|shape| assumption.apply(shape), &mut scratch);
            args.is_ok_and(|args| ops::call(name, &mut scratch, &args).is_ok())
        })
    }

    /// The same where two shapes must be equal; later traces compare the rest of them.
    pub(super) fn assume_equal(&mut self, place: Place, what: &str, found: &Shape, wanted: &Shape) -> Option<Value> {
        if found.len() != wanted.len() {
            return None;
        }
        let (found, wanted) = found.iter().zip(wanted).find(|(found, wanted)| found != wanted)?;
        let shapes = [Shape::from_iter([found.clone()]), Shape::from_iter([wanted.clone()])];
        self.assume(place, what, &shapes, |assumption| assumption.apply(&shapes[0]) == assumption.apply(&shapes[1]))
    }

    /// Dtype and shape of each tensor among the arguments.
    pub(super) fn graph_types(&self, args: &[MethodArg]) -> Vec<(tinyspec_ir::DType, Shape)> {
        let nodes = args.iter().flat_map(|arg| match arg {
            MethodArg::Tensor(node) => std::slice::from_ref(node),
            MethodArg::Tensors(nodes) => nodes,
            _ => &[],
        });
        nodes.map(|&node| (self.graph.dtype(node), self.graph.props(node).shape.clone())).collect()
    }
}

/// The number of elements of a tensor of this shape.
pub(super) fn elements_of(shape: &Shape) -> Dim {
    shape.iter().fold(Dim::from(1), |product, dim| product * dim.clone())
}

/// The quotients that a size is made of.
fn quotients_in(dim: &Dim) -> Vec<(Dim, Dim)> {
    let atoms = dim.terms().into_iter().flat_map(|(atoms, _)| atoms);
    let quotients = atoms.flat_map(|atom| match atom {
        Atom::Idiv(a, b) => {
            let mut found = quotients_in(&a);
            found.push((a, b));
            found
        }
        _ => vec![],
    });
    quotients.collect()
}

/// For each constant in which `left` is linear: the value that makes it equal `right`, if that is certainly an integer.
fn solutions(left: &Dim, right: &Dim) -> Vec<(u32, Dim, Dim)> {
    let mut solutions = vec![];
    for (atoms, coefficient) in left.terms() {
        for (position, atom) in atoms.iter().enumerate() {
            let Atom::Named { slot: slot @ FIRST_CONSTANT..FIRST_RESULT, min, max } = *atom else { continue };
            let constant = Dim::named(slot, min, max);
            // Its coefficient: a number, possibly times dims.
            let mut factor = Dim::from(coefficient);
            for (_, other) in atoms.iter().enumerate().filter(|(other, _)| *other != position) {
                let Atom::Named { slot, min, max } = *other else { continue };
                factor = factor * Dim::named(slot, min, max);
            }
            let others = right.clone() - (left.clone() - constant.clone() * factor.clone());
            let value = others.idiv(&factor);
            let is_circular = value.substitute(&|other| (other == slot).then(|| Dim::from(1))) != value;
            if !is_circular && value.bounds().1 >= 1 && value.clone() * factor == others {
                solutions.push((slot, constant, value));
            }
        }
    }
    solutions
}

/// The arguments with operands of the assumed shapes.
pub(super) fn replaced(
    args: &[MethodArg],
    operands: &[(tinyspec_ir::DType, Shape)],
    assumed: &impl Fn(&[Dim]) -> Shape,
    scratch: &mut Graph,
) -> tinyspec_ir::Result<Vec<MethodArg>> {
    let mut operands = (0..).zip(operands);
    let mut operand = |scratch: &mut Graph| {
        let (slot, (dtype, shape)) = operands.next().unwrap_or_else(|| unreachable!("an operand for each tensor"));
        let shape = scratch.shape(&assumed(shape))?;
        scratch.add(Op::Param, &[shape], Arg::Param { slot, dtype: *dtype, device: None, addrspace: None })
    };
    args.iter()
        .map(|arg| {
            Ok(match arg {
                MethodArg::Tensor(_) => MethodArg::Tensor(operand(scratch)?),
                MethodArg::Tensors(nodes) => {
                    MethodArg::Tensors(nodes.iter().map(|_| operand(scratch)).collect::<tinyspec_ir::Result<_>>()?)
                }
                MethodArg::Shape(shape) => MethodArg::Shape(assumed(shape)),
                other => other.clone(),
            })
        })
        .collect()
}
