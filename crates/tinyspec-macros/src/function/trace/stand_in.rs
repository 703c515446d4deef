//! Equalities that cannot be solved for one constant, such as `8 == H * (D / H)`. They are checked by `const` evaluation; the
//! trace continues with a placeholder tensor of the type that is correct if they hold. The graph itself comes from the typed
//! copy, where constants have values.

use super::assume::{elements_of, replaced};
use super::{Check, Tracer, Value};
use crate::diagnostics::Place;
use crate::function::signature::gcd;
use tinyspec_ir::ops::{self, Method, MethodArg, movement};
use tinyspec_ir::{Arg, Builder, Dim, Graph, NodeId, Op, Shape, dim};

/// The most equalities that are assumed for one op: all combinations are tried.
const MOST_EQUALITIES: usize = 3;

/// Two sizes that are equal if a check holds.
#[derive(Clone)]
struct Equality {
    found: Dim,
    wanted: Dim,
    check: Check,
}

/// The shape under these equalities: the first of two equal sizes represents both.
fn with(equalities: &[Equality], shape: &[Dim]) -> Shape {
    let representative = |dim: &Dim| {
        let equal = equalities.iter().rev();
        equal.fold(dim, |dim, one| if *dim == one.wanted { &one.found } else { dim }).clone()
    };
    shape.iter().map(representative).collect()
}

/// Finds `count` of the possible equalities that, added to those `taken`, make it work.
fn some_of(
    possible: &[Equality],
    count: usize,
    taken: &mut Vec<Equality>,
    works: &impl Fn(&[Equality]) -> bool,
) -> Option<Vec<Equality>> {
    if count == 0 {
        return works(taken).then(|| taken.clone());
    }
    possible.iter().enumerate().find_map(|(at, equality)| {
        taken.push(equality.clone());
        let found = some_of(&possible[at + 1..], count - 1, taken, works);
        taken.pop();
        found
    })
}

impl Tracer<'_> {
    /// A placeholder for the value of a method that refused its arguments, if only constants decide whether they fit.
    pub(super) fn stand_in_of_method(&mut self, place: Place, row: &Method, args: &[MethodArg]) -> Option<Value> {
        if let ("reshape", [MethodArg::Tensor(node), MethodArg::Shape(target)]) = (row.name, args) {
            let elements = elements_of(&self.graph.props(*node).shape);
            let check = self.equality(place, row.name, &elements, &elements_of(target))?;
            let node = self.stand_in(place, *node, target)?;
            self.leave_to_constants(vec![check]);
            return Some(Value::Tensor(node));
        }
        let equalities = self.equalities_of(place, row.name, args)?;
        let mut stand_in = |node: NodeId| {
            let shape = with(&equalities, &self.graph.props(node).shape);
            self.stand_in(place, node, &shape)
        };
        let args: Option<Vec<MethodArg>> = args
            .iter()
            .map(|arg| {
                Some(match arg {
                    MethodArg::Tensor(node) => MethodArg::Tensor(stand_in(*node)?),
                    MethodArg::Tensors(nodes) => {
                        MethodArg::Tensors(nodes.iter().map(|&node| stand_in(node)).collect::<Option<_>>()?)
                    }
                    MethodArg::Shape(shape) => MethodArg::Shape(with(&equalities, shape)),
                    other => other.clone(),
                })
            })
            .collect();
        let args = args?;
        let nodes = self.build(place.start, |graph| ops::call(row.name, graph, &args)).ok()?;
        self.leave_to_constants(equalities.into_iter().map(|equality| equality.check).collect());
        let mut values = nodes.into_iter().map(Value::Tensor);
        if row.is_list { Some(Value::List(values.collect())) } else { values.next() }
    }

    /// The smallest set of equalities of sizes under which a method accepts its arguments.
    fn equalities_of(&self, place: Place, method: &str, args: &[MethodArg]) -> Option<Vec<Equality>> {
        let operands = self.graph_types(args);
        let targets = args.iter().filter_map(|arg| match arg {
            MethodArg::Shape(shape) => Some(shape),
            _ => None,
        });
        let mut dims: Vec<&Dim> = vec![];
        for dim in operands.iter().map(|(_, shape)| shape).chain(targets).flatten() {
            if !dims.contains(&dim) {
                dims.push(dim);
            }
        }
        let pairs =
            dims.iter().enumerate().flat_map(|(at, &found)| dims[at + 1..].iter().map(move |&wanted| (found, wanted)));
        let possible: Vec<Equality> = pairs
            .filter_map(|(found, wanted)| {
                let check = self.equality(place, method, found, wanted)?;
                Some(Equality { found: found.clone(), wanted: wanted.clone(), check })
            })
            .collect();
        let works = |equalities: &[Equality]| {
            let mut scratch = Graph::new();
            let tried = replaced(args, &operands, &|shape| with(equalities, shape), &mut scratch);
            tried.is_ok_and(|args| ops::call(method, &mut scratch, &args).is_ok())
        };
        (1..=MOST_EQUALITIES).find_map(|count| some_of(&possible, count, &mut vec![], &works))
    }

    /// The tensor with the expected shape, if only constants decide whether it has that shape.
    pub(super) fn taken_as(&mut self, place: Place, what: &str, node: NodeId, wanted: &Shape) -> Option<NodeId> {
        let found = self.graph.props(node).shape.clone();
        if found == *wanted || found.len() != wanted.len() {
            return None;
        }
        let different = found.iter().zip(wanted).filter(|(found, wanted)| found != wanted);
        let checks = different.map(|(found, wanted)| self.equality(place, what, found, wanted));
        let checks = checks.collect::<Option<Vec<_>>>()?;
        let node = self.stand_in(place, node, wanted)?;
        self.leave_to_constants(checks);
        Some(node)
    }

    fn leave_to_constants(&mut self, checks: Vec<Check>) {
        self.equalities.extend(checks);
        self.is_deferred = true;
    }

    /// The check for `const` evaluation, if two sizes differ only in constants.
    fn equality(&self, place: Place, what: &str, found: &Dim, wanted: &Dim) -> Option<Check> {
        let (found, wanted) = found.ratio(wanted);
        if !may_be_equal(&found, &wanted) {
            return None;
        }
        // The message names the side that is made of constants first.
        let (constant, other) = if wanted.as_const().is_some() { (found, wanted) } else { (wanted, found) };
        let (expected, value) = (self.constants.in_rust(&constant)?, self.constants.in_rust(&other)?);
        let [shown, found] = dim::with_names(&self.names(), || [constant.to_string(), other.to_string()]);
        Some(Check { place, what: what.to_string(), constant: Some(shown), expected, found, value })
    }

    /// A placeholder of another shape: one element of the tensor, expanded. It keeps the dtype, and has a gradient where the tensor has one.
    fn stand_in(&mut self, place: Place, node: NodeId, shape: &Shape) -> Option<NodeId> {
        if self.graph.props(node).shape == *shape {
            return Some(node);
        }
        let rank = self.graph.props(node).shape.len();
        let made = self.build(place.start, |graph| {
            let [zero, one] = [0, 1].map(|size| Shape::from_iter(std::iter::repeat_n(Dim::from(size), rank)));
            let element = movement::shrink(graph, node, &zero, &one)?;
            let scalar = graph.shape(&[])?;
            let element = graph.add(Op::Reshape, &[element, scalar], Arg::None)?;
            let shape = graph.shape(shape)?;
            graph.add(Op::Expand, &[element, shape], Arg::None)
        });
        made.ok()
    }
}

/// Can these two sizes, which are written differently, be equal for some values of the constants?
fn may_be_equal(one: &Dim, other: &Dim) -> bool {
    let difference = one - other;
    let (mut number, mut common) = (0, 0);
    for (atoms, coefficient) in difference.terms() {
        match atoms.is_empty() {
            true => number = coefficient,
            false => common = gcd(common, coefficient.unsigned_abs()),
        }
    }
    let (least, greatest) = difference.bounds();
    common > 0 && number.unsigned_abs() % common == 0 && (least..=greatest).contains(&0)
}
