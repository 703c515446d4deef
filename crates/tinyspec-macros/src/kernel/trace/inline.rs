//! Calls of functions: the code of each is traced where it is called.

use super::{Binding, Tracer, Value, View};
use crate::diagnostics::{Place as At, unbound_dim};
use crate::kernel::parse::NOT_USED;
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use std::collections::HashMap;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, NodeId, Op};

/// The names that a function sees.
type Scope = HashMap<String, Binding>;

/// A buffer that is passed to a function.
struct Found {
    space: AddrSpace,
    dtype: DType,
    /// Whether the caller may store to it.
    may_change: bool,
    /// `&mut` or `&`; `None` for a bare name, a parameter of the caller that is passed on.
    mutable: Option<bool>,
}

impl Binding {
    /// A buffer as the function sees it.
    fn seen(mut self, as_mutable: bool) -> Binding {
        if let Binding::View(View { mutable, .. }) | Binding::Registers { mutable, .. } = &mut self {
            *mutable &= as_mutable;
        }
        self
    }
}

impl<'a> Tracer<'a> {
    /// The function of this name; of one with dtype parameters, that of the arguments' dtypes.
    pub fn helper(&mut self, name: &Ident, arguments: &[Expr]) -> Option<&'a Helper> {
        let found: Vec<&'a Helper> = self.helpers.iter().filter(|helper| helper.name == *name).copied().collect();
        let &first = found.first()?;
        self.called.insert(name.to_string());
        if found.len() == 1 {
            return Some(first);
        }
        let dtypes: Vec<Option<DType>> = arguments.iter().map(|argument| self.dtype_of(argument)).collect();
        let fits = |helper: &&&Helper| {
            let mut pairs = helper.parameters.iter().zip(&dtypes);
            pairs.all(|(parameter, dtype)| dtype.is_none_or(|dtype| dtype == parameter.dtype))
        };
        Some(found.iter().find(fits).copied().unwrap_or(first))
    }

    /// The dtype of an argument; a literal has none.
    fn dtype_of(&mut self, argument: &Expr) -> Option<DType> {
        let (ExprKind::Name(buffer) | ExprKind::Reference { buffer, .. }) = &argument.kind else {
            let value = self.expression(argument);
            return self.dtype(value);
        };
        match (self.view(buffer), self.lookup(&buffer.to_string())) {
            (Some(view), _) => Some(self.graph.dtype(self.memories[view.memory].node)),
            (None, Some(Binding::Registers { first: number, .. } | Binding::Variable(number))) => {
                self.dtype(self.variables[*number].value)
            }
            (None, Some(Binding::Index(node) | Binding::Scalar(node))) => Some(self.graph.dtype(*node)),
            _ => None,
        }
    }

    /// A call whose value is not used.
    pub fn call_statement(&mut self, call: &Expr) {
        if let ExprKind::Call(name, arguments) = &call.kind
            && let Some(helper) = self.helper(name, arguments)
            && (helper.result.is_none() || helper.changes_buffers())
        {
            self.traced_call(helper, arguments, call.at);
        } else if self.expression(call) != Value::Wrong {
            self.error(call.at, NOT_USED);
        }
    }

    /// The value of a call.
    pub fn inlined(&mut self, helper: &'a Helper, arguments: &[Expr], at: At) -> Option<Value> {
        if helper.result.is_none() && !helper.is_refused {
            self.error(at, format!("`{}` has no value: it is a statement", helper.name));
            return None;
        }
        let value = self.traced_call(helper, arguments, at)?;
        Some(value).filter(|value| *value != Value::Wrong)
    }

    /// `None` after a reported mistake, and for a function without a value.
    fn traced_call(&mut self, helper: &'a Helper, arguments: &[Expr], at: At) -> Option<Value> {
        let name = &helper.name;
        if helper.is_refused {
            self.calls_refused = true;
            return None;
        }
        if self.calls.iter().any(|(other, _)| name == other) {
            self.error(
                at,
                format!("`{name}` calls itself: its code stands where it is called, so it has no end; use a loop"),
            );
            return None;
        }
        let (wanted, found) = (helper.parameters.len(), arguments.len());
        if wanted != found {
            let plural = if wanted == 1 { "value" } else { "values" };
            self.error(at, format!("`{name}` takes {wanted} {plural}, found {found}"));
            return None;
        }
        let passed = helper.parameters.iter().zip(arguments);
        let passed: Vec<Option<Binding>> =
            passed.map(|(parameter, argument)| self.passed(parameter, argument)).collect();
        let passed: Vec<Binding> = passed.into_iter().collect::<Option<_>>()?;
        let places: Vec<At> = arguments.iter().map(|argument| argument.at).collect();
        let scope = self.bound_dims(helper, &passed, &places)?;
        self.called_with(helper, scope, passed, at)
    }

    /// Traces the code with these names; conditions stay those of the call, `unsafe` does not.
    fn called_with(&mut self, helper: &'a Helper, mut scope: Scope, passed: Vec<Binding>, at: At) -> Option<Value> {
        for (parameter, binding) in helper.parameters.iter().zip(passed) {
            scope.insert(parameter.name.to_string(), binding);
        }
        let outer = std::mem::replace(&mut self.scopes, vec![scope]);
        let unsafe_depth = std::mem::take(&mut self.unsafe_depth);
        // A `break` in a function leaves a loop of its own.
        let exits = std::mem::take(&mut self.exits);
        self.calls.push((helper.name.to_string(), at));
        self.statements(&helper.body.statements);
        let value = helper.value.as_ref().zip(helper.result).map(|(value, (dtype, _))| {
            let traced = self.expression(value);
            self.converted(traced, dtype, value.at)
        });
        self.calls.pop();
        self.unsafe_depth = unsafe_depth;
        self.exits = exits;
        self.scopes = outer;
        value
    }

    /// A number of this dtype; a literal index stays a number.
    fn converted(&mut self, value: Value, dtype: DType, at: At) -> Value {
        match (dtype, value) {
            (DType::Index, Value::Int(_)) => value,
            (DType::Index, value) => self.index(value, at).map_or(Value::Wrong, Value::Node),
            (dtype, value) => self.of_dtype(value, dtype, at).map_or(Value::Wrong, Value::Node),
        }
    }

    /// The binding of a parameter.
    fn passed(&mut self, parameter: &HelperParameter, argument: &Expr) -> Option<Binding> {
        let Some(wanted) = &parameter.buffer else {
            let value = self.expression(argument);
            let value = self.converted(value, parameter.dtype, argument.at);
            if value == Value::Wrong {
                return None;
            }
            return Some(Binding::Variable(self.declare(parameter.name.to_string(), value, false)));
        };
        let (buffer, mutable, part) = match &argument.kind {
            ExprKind::Name(name) => (name, None, None),
            ExprKind::Reference { buffer, mutable, part } => (buffer, Some(*mutable), part.as_ref()),
            _ => {
                self.expression(argument);
                self.error(
                    argument.at,
                    format!("`{}` is a buffer: pass one, such as `&x` or `&x[i, ..]`", parameter.name),
                );
                return None;
            }
        };
        let binding = match self.view(buffer) {
            Some(view) => Binding::View(self.part(view, buffer, part, argument.at)?),
            None => self.lookup(&buffer.to_string()).cloned().or_else(|| {
                self.unknown(buffer);
                None
            })?,
        };
        let (space, dtype, may_change) = match &binding {
            Binding::View(view) => {
                let node = self.memories[view.memory].node;
                (self.graph.props(node).addrspace?, self.graph.dtype(node), view.mutable)
            }
            Binding::Registers { first, mutable, .. } => {
                (AddrSpace::Reg, self.dtype(self.variables[*first].value)?, *mutable)
            }
            Binding::Wrong => return None,
            _ => {
                self.no_buffer(buffer);
                return None;
            }
        };
        let found = Found { space, dtype, may_change, mutable };
        self.accepted(parameter, wanted, &found, argument.at).then(|| binding.seen(wanted.mutable))
    }

    /// The part of a buffer with these indices; all of it without any.
    fn part(&mut self, mut view: View, name: &Ident, part: Option<&Vec<Option<Expr>>>, at: At) -> Option<View> {
        let Some(part) = part else { return Some(view) };
        let rank = view.fixed.iter().filter(|fixed| fixed.is_none()).count();
        if part.len() != rank {
            let axes = if rank == 1 { "axis" } else { "axes" };
            let indices = if part.len() == 1 { "index" } else { "indices" };
            self.error(at, format!("`{name}` has {rank} {axes}, found {} {indices}", part.len()));
            return None;
        }
        let mut part = part.iter();
        for axis in view.fixed.iter_mut().filter(|axis| axis.is_none()) {
            if let Some(Some(index)) = part.next() {
                let value = self.expression(index);
                *axis = Some((self.index(value, index.at)?, index.at));
            }
        }
        Some(view)
    }

    /// Whether a parameter accepts a buffer.
    fn accepted(&mut self, parameter: &HelperParameter, wanted: &PassedBuffer, found: &Found, at: At) -> bool {
        let name = &parameter.name;
        // The syntax of a loop's body decides which variables it changes.
        let is_reg = found.space == AddrSpace::Reg;
        let space = |space: AddrSpace| match space {
            AddrSpace::Global => "Global",
            AddrSpace::Local => "Local",
            AddrSpace::Reg => "Reg",
        };
        let message = if found.space != wanted.space || found.dtype != parameter.dtype {
            let (wanted, found_space) = (space(wanted.space), space(found.space));
            format!("`{name}` is a {wanted}<{}, …>, found {found_space}<{}, …>", parameter.dtype, found.dtype)
        } else if wanted.mutable && !found.may_change {
            format!("`{name}` is changed, and this is an input: declare it `&mut {}<…>`", space(wanted.space))
        } else if wanted.mutable && (found.mutable == Some(false) || found.mutable.is_none() && is_reg) {
            format!("`{name}` is changed: pass it as `&mut …`")
        } else if found.mutable == Some(true) && !wanted.mutable {
            format!("`{name}` is only read: pass it as `&…`")
        } else {
            return true;
        };
        self.error(at, message);
        false
    }

    /// The dims of a function, from the buffers that it was given.
    fn bound_dims(&mut self, helper: &Helper, passed: &[Binding], places: &[At]) -> Option<Scope> {
        let mut scope = Scope::new();
        let mut compared = Vec::new();
        for ((parameter, binding), &at) in helper.parameters.iter().zip(passed).zip(places) {
            let Some(wanted) = &parameter.buffer else { continue };
            let sizes = self.sizes(binding);
            if sizes.len() != wanted.dims.len() {
                let (name, wanted, found) = (&parameter.name, wanted.dims.len(), sizes.len());
                self.error(
                    at,
                    format!(
                        "`{name}` has rank {wanted}, found rank {found}: fix an axis by its index, as in `&x[i, ..]`"
                    ),
                );
                return None;
            }
            for (axis, (dim, &size)) in wanted.dims.iter().zip(&sizes).enumerate() {
                match &dim.kind {
                    ExprKind::Name(name) if helper.dims.contains(name) && !scope.contains_key(&name.to_string()) => {
                        scope.insert(name.to_string(), Binding::Index(size));
                    }
                    _ => compared.push((parameter, axis, dim, size, at)),
                }
            }
        }
        for dim in &helper.dims {
            if !scope.contains_key(&dim.to_string()) {
                self.error(dim.span(), unbound_dim(dim));
                return None;
            }
        }
        for (parameter, axis, dim, size, at) in compared {
            let outer = std::mem::replace(&mut self.scopes, vec![scope.clone()]);
            let value = self.expression(dim);
            let wanted = self.index(value, dim.at);
            self.scopes = outer;
            let wanted = wanted?;
            if !self.same_size(wanted, size) {
                let (name, function) = (&parameter.name, &helper.name);
                let (wanted, found) = (self.size_text(wanted), self.size_text(size));
                self.error(
                    at,
                    format!("`{function}`: axis {axis} of `{name}` has {wanted} elements, and here {found}"),
                );
                return None;
            }
        }
        Some(scope)
    }

    /// The sizes of the axes that are left.
    fn sizes(&mut self, binding: &Binding) -> Vec<NodeId> {
        match binding {
            Binding::View(view) => {
                let dims = self.memories[view.memory].dims.iter().zip(&view.fixed);
                dims.filter(|(_, fixed)| fixed.is_none()).map(|(dim, _)| *dim).collect()
            }
            Binding::Registers { dims, .. } => dims.iter().map(|&dim| self.graph.index(dim)).collect(),
            _ => vec![],
        }
    }

    /// A size in the caller's words.
    fn size_text(&self, size: NodeId) -> String {
        let is_it = |binding: &Binding| matches!(binding, Binding::Index(node) if *node == size);
        let mut bound = self.scopes.iter().flatten();
        match self.graph.as_int(size) {
            Some(number) => number.to_string(),
            None => bound.find(|(_, binding)| is_it(binding)).map_or("other".into(), |(name, _)| format!("`{name}`")),
        }
    }

    fn same_size(&self, a: NodeId, b: NodeId) -> bool {
        let value = |node: NodeId| self.graph.props(node).value.clone();
        a == b || value(a).is_some() && value(a) == value(b)
    }

    /// Traces a function with unknown arguments.
    pub fn by_itself(&mut self, helper: &'a Helper) {
        let mut scope = Scope::new();
        for (slot, name) in helper.dims.iter().enumerate() {
            let dim = self.dim_param(slot as u32, 1);
            scope.insert(name.to_string(), Binding::Index(dim));
        }
        self.scopes = vec![scope.clone()];
        let mut passed = Vec::new();
        for (position, parameter) in helper.parameters.iter().enumerate() {
            let slot = (helper.dims.len() + position) as u32;
            passed.push(self.unknown_argument(parameter, slot).unwrap_or(Binding::Wrong));
        }
        self.called_with(helper, scope, passed, helper.name.span().into());
    }

    fn unknown_argument(&mut self, parameter: &HelperParameter, slot: u32) -> Option<Binding> {
        let (name, dtype) = (parameter.name.to_string(), parameter.dtype);
        let Some(PassedBuffer { space, mutable, dims }) = &parameter.buffer else {
            let value = match dtype {
                DType::Index => self.dim_param(slot, 0),
                dtype => {
                    let memory = self.own_memory(name.clone(), AddrSpace::Reg, dtype, vec![], parameter.at)?;
                    self.load(memory, &[], None, None)?
                }
            };
            return Some(Binding::Variable(self.declare(name, Value::Node(value), false)));
        };
        if *space == AddrSpace::Reg {
            self.registers(&parameter.name, dtype, dims, parameter.at);
            return self.scopes.last()?.get(&name).cloned().map(|binding| binding.seen(*mutable));
        }
        let dims = self.dim_nodes(dims)?;
        let arg = Arg::Param { slot, dtype, device: None, addrspace: Some(*space) };
        let made = self.graph.add(Op::Stack, &dims, Arg::None);
        let made = made.and_then(|shape| self.graph.add(Op::Param, &[shape], arg));
        let node = self.buffer_made(&name, parameter.at, made)?;
        let fixed = vec![None; dims.len()];
        let memory = self.memory(name, node, dims, *mutable, true);
        Some(Binding::View(View { memory, fixed, mutable: *mutable }))
    }
}
