//! Calls of other functions.

use super::assume::Assumption;
use super::expression::text_of;
use super::{Check, ModelValue, Tracer, Value};
use crate::diagnostics::Place;
use crate::diagnostics::source_text;
use crate::function::callees::callee_of;
use crate::function::companion::{Callee, Known, respanned};
use crate::function::signature::{Passing, ResultType, TensorType, open_span};
use crate::function::source::{is_const_function, is_plain};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprCall, ExprMethodCall, Token};
use tinyspec_ir::dim::Atom;
use tinyspec_ir::function::{CallSite, FIRST_CONSTANT, FIRST_RESULT};
use tinyspec_ir::signature::{Axis, Mismatch, Signature};
use tinyspec_ir::{Builder, DType, Dim, NodeId, Shape, dim};

/// A call before its arguments are looked at.
struct Site<'a> {
    callee: &'a Callee,
    number: u32,
    /// The callee's signature as seen from this call.
    wanted: Wanted,
    /// The buffers that the call changes.
    changed: Vec<usize>,
    /// Inputs before the arguments: the tensors of `self`, if there is one.
    given: Option<Vec<NodeId>>,
    arguments: Vec<&'a Expr>,
}

/// A call whose arguments fit.
struct Called<'a> {
    value: Value,
    wanted: Wanted,
    /// The values of the callee's dims.
    bound: Vec<Dim>,
    /// The argument of each input, if it has one.
    places: Vec<Option<&'a Expr>>,
}

/// A callee's signature as seen from a call: constants of its scope that no argument binds are constants of the caller.
struct Wanted {
    signature: Signature,
    result: ResultType,
    /// The constants that arguments bind, following the declared dims: their numbers in the callee.
    constants: Vec<usize>,
}

impl Tracer<'_> {
    /// `softmax(dim = -1)`: an assignment has no value.
    pub(super) fn named_argument(&mut self, arguments: &Punctuated<Expr, Token![,]>, whole: &Expr) -> Option<Value> {
        let named = arguments.iter().find(|argument| matches!(argument, Expr::Assign(_)))?;
        let Expr::Assign(assign) = named else { return None };
        let message = format!(
            "arguments are not named: write just the value, `{}`",
            text_of(&assign.right).unwrap_or("value".into())
        );
        self.diagnostics.error_instead_of_rustc(whole, Place::of(named), message);
        Some(Value::Wrong)
    }

    pub(super) fn call(&mut self, call: &ExprCall, whole: &Expr) -> Value {
        if let Some(wrong) = self.named_argument(&call.args, whole) {
            return wrong;
        }
        let callees = self.callees;
        if let Some(path) = callee_of(call) {
            let text = source_text(&path);
            if path.get_ident().is_some_and(|name| self.lookup(&name.to_string()).is_some()) {
                return self.call_of_local(&text, call, whole);
            }
            if path.get_ident() == Some(&self.signature.ident) {
                let message = format!("`{text}` calls itself: a graph has no recursion; use a loop, which is unrolled");
                return self.refuse(whole, message);
            }
            return match callees.get(&text) {
                Some((number, Some(Known::Function(callee)))) => self.callee(*number, callee, call, whole),
                Some((_, Some(Known::Updating))) => {
                    self.arguments(&call.args);
                    let message = format!(
                        "`{text}` updates an argument, and a #[function] changes nothing: give the kernel a result, `-> Global<…> as y`"
                    );
                    self.diagnostics.error_instead_of_rustc(whole, Place::of(&path), message);
                    Value::Wrong
                }
                Some((_, Some(Known::Generic))) => {
                    self.arguments(&call.args);
                    let message = format!(
                        "`{text}` is a kernel of several dtypes, and a #[function] has one: write the kernel for it, as in `Global<f32, N>`"
                    );
                    self.diagnostics.error_instead_of_rustc(whole, Place::of(&path), message);
                    Value::Wrong
                }
                // Its signature comes with the next expansion, or has mistakes.
                Some(_) => {
                    self.waits = true;
                    self.arguments(&call.args)
                }
                None if path.get_ident().is_some_and(|name| is_plain(&self.signature.ident, name)) => {
                    let message = format!(
                        "`{text}` is a plain function, which is not traced: write `#[function]` before it, with the shapes of its \
                         tensors, or call it outside"
                    );
                    self.diagnostics.error_instead_of_rustc(whole, Place::of(&path), message);
                    self.arguments(&call.args);
                    Value::Wrong
                }
                None if path.get_ident().is_some_and(|name| is_const_function(&self.signature.ident, name)) => {
                    let arguments: Vec<Value> = call.args.iter().map(|argument| self.expression(argument)).collect();
                    if let Some(spoiled) = Value::without_value(&arguments) {
                        return spoiled;
                    }
                    let arguments: Option<Vec<_>> = arguments.iter().map(super::constants::in_rust).collect();
                    let Some(arguments) = arguments else { return Value::Unknown };
                    let (shown, given): (Vec<_>, Vec<_>) =
                        arguments.into_iter().map(|(text, given, _)| (text, given)).unzip();
                    let (text, path) = (format!("{text}({})", shown.join(", ")), quote!(#path(#(#given),*)));
                    Value::Constant { text, path, kind: None, size: None }
                }
                None => self.arguments(&call.args),
            };
        }
        if let Expr::Path(function) = &*call.func {
            let segments = &function.path.segments;
            let is_of = |owner: &str| segments.iter().rev().nth(1).is_some_and(|segment| segment.ident == owner);
            match (segments.last().map(|last| last.ident.to_string()).as_deref(), call.args.first()) {
                (Some("default"), None) => return Value::Default,
                (Some("new"), None) if is_of("Vec") => return Value::List(Vec::new()),
                // The body does not parse; rustc has reported that.
                (Some("wrong_results"), None) => {
                    self.waits = true;
                    return Value::Wrong;
                }
                (Some("Some"), Some(argument)) => {
                    let value = self.expression(argument);
                    let value = self.moved(argument, &value).unwrap_or(value);
                    return Value::Optional(Some(Box::new(value)));
                }
                _ => {}
            }
            if let Some(ty) = segments.iter().rev().nth(1)
                && ty.ident == "Tensor"
                && !ty.arguments.is_none()
            {
                let (name, given) = (&segments[segments.len() - 1].ident, source_text(&call.args));
                let message =
                    format!("a call of `Tensor` has no `<…>`, shapes are arguments: write `Tensor::{name}({given})`");
                return self.refuse(whole, message);
            }
            if let Some(wrong) = self.method_by_path(call, whole) {
                return wrong;
            }
            if is_of("Tensor") {
                return self.associated(&segments[segments.len() - 1].ident, call, whole);
            }
        }
        let name = text_of(&call.func).unwrap_or("this".into());
        if matches!(name.as_str(), "Ok" | "Err") && self.signature.result.is_none() {
            // The signature returns a `Result`, which is refused there.
            self.arguments(&call.args);
            return Value::Wrong;
        }
        let message = format!("`{name}` is neither a #[function] nor a tensor method: only these can be called here");
        self.diagnostics.error_instead_of_rustc(whole, Place::of(&*call.func), message);
        self.arguments(&call.args);
        Value::Wrong
    }

    /// `Linear::forward(l, x)`
    fn method_by_path(&mut self, call: &ExprCall, whole: &Expr) -> Option<Value> {
        let Expr::Path(function) = &*call.func else { return None };
        let method = &function.path.segments.last()?.ident;
        let model = call.args.first()?;
        let (Value::Model(_) | Value::Unseen) = self.expression(model) else { return None };
        let text = text_of(model)?;
        let given: Vec<String> = call.args.iter().skip(1).map(source_text).collect();
        let message = format!("methods are called on their models: write `{text}.{method}({})`", given.join(", "));
        Some(self.refuse(whole, message))
    }

    /// Traces the arguments of a call that is not traced itself, to report mistakes in them.
    pub(super) fn arguments(&mut self, arguments: &Punctuated<Expr, Token![,]>) -> Value {
        let values: Vec<Value> = arguments.iter().map(|argument| self.expression(argument)).collect();
        match Value::without_value(&values) {
            Some(Value::Wrong) => Value::Wrong,
            _ => Value::Unknown,
        }
    }

    fn call_of_local(&mut self, name: &str, call: &ExprCall, whole: &Expr) -> Value {
        let arguments = self.arguments(&call.args);
        match self.lookup(name).cloned() {
            // A closure, which is refused at its definition.
            Some(Value::Wrong) | None => Value::Wrong,
            Some(Value::Unknown) => arguments,
            Some(value) => {
                let message =
                    format!("`{name}` is {} here, not a function: give the local another name", value.describe());
                self.diagnostics.error_instead_of_rustc(whole, Place::of(&*call.func), message);
                Value::Wrong
            }
        }
    }

    fn callee(&mut self, number: u32, callee: &Callee, call: &ExprCall, whole: &Expr) -> Value {
        let reached = |constant: usize| constant_path(call, constant);
        let wanted = self.wanted(callee, &reached);
        let site = Site { callee, number, wanted, changed: vec![], given: None, arguments: call.args.iter().collect() };
        match self.call_site(site, whole, Place::of(&*call.func).start) {
            Ok(called) => {
                self.check_constants(callee, &called, &reached);
                called.value
            }
            Err(value) => value,
        }
    }

    /// `self.fc1.forward(&x)`
    pub(super) fn model_method(&mut self, model: &ModelValue, call: &ExprMethodCall, whole: &Expr) -> Value {
        let name = call.method.to_string();
        let callee = match model.model.methods.iter().find(|(method, _)| *method == name) {
            Some((_, Some(callee))) => callee,
            Some((_, None)) => {
                self.waits = true;
                call.args.iter().for_each(|argument| drop(self.expression(argument)));
                return Value::Unknown;
            }
            None if model.fields.iter().any(|(field, _)| *field == name) => {
                call.args.iter().for_each(|argument| drop(self.expression(argument)));
                let message = self.field_called(model, call);
                self.diagnostics.error_instead_of_rustc(whole, Place::of(&call.method), message);
                return Value::Wrong;
            }
            None => {
                call.args.iter().for_each(|argument| drop(self.expression(argument)));
                let functions = model.model.methods.iter().map(|(name, _)| name.as_str());
                let hint = match self.owner_of(model, call) {
                    Some(owner) => format!("; `{owner}` has one"),
                    None => near_or_all(&name, "its functions", functions.collect()),
                };
                let message = format!("`{}` has no #[function] `{name}`{hint}", model.model.name);
                self.diagnostics.error_instead_of_rustc(whole, Place::of(&call.method), message);
                return Value::Wrong;
            }
        };
        let (root, access, hash) = (&*model.root, &model.access, crate::model::methods::name_hash(&name));
        let reached = quote!(::tinyspec::__private::method::<_, _, #hash>(|model: &#root| &#access));
        let text = reached.to_string();
        let position = self.methods.iter().position(|known| known.to_string() == text).unwrap_or_else(|| {
            self.methods.push(reached);
            self.methods.len() - 1
        });
        let size = |constant: usize| quote!(::tinyspec::__private::method_size::<_, _, #hash>(|model: &#root| &#access, #constant));
        let mut given = vec![];
        model.fields.iter().for_each(|(_, value)| self.leaves(value, &mut given));
        let changed = match callee.passing.first() {
            Some(Passing::Updated(_)) => self.changed_by_callee(model),
            _ => vec![],
        };
        if let Some(message) = self.fixed_parameter(&name, &changed) {
            call.args.iter().for_each(|argument| drop(self.expression(argument)));
            return self.refuse(whole, message);
        }
        let site = Site {
            changed,
            callee,
            number: (self.callees.len() + position) as u32,
            wanted: self.wanted(callee, &size),
            given: Some(given),
            arguments: call.args.iter().collect(),
        };
        match self.call_site(site, whole, call.method.span()) {
            Ok(called) => {
                self.check_constants(callee, &called, &size);
                called.value
            }
            Err(value) => value,
        }
    }

    /// `self.fc1`
    pub(super) fn field(&mut self, model: &ModelValue, name: &syn::Ident, whole: &Expr) -> Value {
        if let Some((_, value)) = model.fields.iter().find(|(field, _)| name == field) {
            return value.clone();
        }
        let is_one_of = |fields: &[String]| fields.iter().any(|field| name == field);
        if is_one_of(&model.model.wrong) {
            return Value::Unseen;
        }
        let message = if is_one_of(&model.model.skipped) {
            format!(
                "`{name}` is `#[model(skip)]`, so a graph cannot know its value: pass it to the function as a parameter of its own"
            )
        } else {
            let fields = model.fields.iter().map(|(field, _)| field.as_str());
            format!(
                "`{}` has no field `{name}`{}",
                model.model.name,
                near_or_all(&name.to_string(), "its fields", fields.collect())
            )
        };
        self.diagnostics.error_instead_of_rustc(whole, Place::of(name), message);
        Value::Wrong
    }

    /// The field of a model whose type has the method that was called on the model.
    fn owner_of(&self, model: &ModelValue, call: &ExprMethodCall) -> Option<String> {
        let has = |value: &Value| matches!(value, Value::Model(part) if part.model.methods.iter().any(|(name, _)| call.method == name));
        let (field, _) = model.fields.iter().find(|(_, value)| has(value))?;
        Some(format!("{}.{field}", text_of(&call.receiver)?))
    }

    /// `m.fc1(x)`, where `fc1` is a field.
    fn field_called(&self, model: &ModelValue, call: &ExprMethodCall) -> String {
        let (owner, field) = (text_of(&call.receiver).unwrap_or("model".into()), &call.method);
        let value = model.fields.iter().find(|(name, _)| field == name).map(|(_, value)| value);
        let functions = match value {
            Some(Value::Model(inner)) => inner.model.methods.iter().map(|(name, _)| name.as_str()).collect(),
            _ => vec![],
        };
        let given = source_text(&call.args);
        let calls: Vec<String> =
            functions.iter().map(|function| format!("`{owner}.{field}.{function}({given})`")).collect();
        match calls.is_empty() {
            true => format!("`{field}` is a field, not a function: `{owner}.{field}`"),
            false => format!("`{field}` is a field: call a function of it, {}", calls.join(" or ")),
        }
    }

    /// A call of a function or method: arguments are checked, results are Params.
    fn call_site<'e>(&mut self, site: Site<'e>, whole: &Expr, span: Span) -> Result<Called<'e>, Value> {
        let Site { callee, number, wanted, mut changed, given, arguments } = site;
        let (is_method, given) = (given.is_some(), given.unwrap_or_default());
        let Wanted { signature, result, constants } = wanted;
        let (name, results) = (&signature.name, result.tensors());
        let without_value = |value: Value| Tracer::shaped(&callee.result, &mut std::iter::repeat(value));
        let mut spoiled = Value::Unknown;
        let passing = &callee.passing[callee.passing.len().min(is_method as usize)..];
        if passing.len() != arguments.len() {
            // rustc counts arguments.
            arguments.iter().for_each(|argument| drop(self.expression(argument)));
            return Err(without_value(Value::Unknown));
        }
        // The argument of each input, if it has one.
        let mut places: Vec<Option<&Expr>> = vec![None; given.len()];
        let mut nodes: Vec<Option<NodeId>> = given.into_iter().map(Some).collect();
        for (&argument, passing) in arguments.iter().zip(passing) {
            let value = self.expression(argument);
            match (passing, &value) {
                (Passing::Model(count) | Passing::Updated(count), Value::Model(model)) => {
                    let mut leaves = vec![];
                    self.leaves(&value, &mut leaves);
                    if leaves.len() != *count {
                        return Err(without_value(Value::Unknown)); // rustc reports another type.
                    }
                    if matches!(passing, Passing::Updated(_)) {
                        let buffers = self.changed_by_callee(model);
                        if let Some(message) = self.fixed_parameter(name, &buffers) {
                            return Err(without_value(self.refuse(argument, message)));
                        }
                        changed.extend(buffers);
                    }
                    nodes.extend(leaves.into_iter().map(Some));
                    places.resize(nodes.len(), Some(argument));
                    continue;
                }
                (Passing::Flag, value) => {
                    // The typed copy passes it on.
                    self.is_deferred = true;
                    match value {
                        Value::Bool(_) | Value::Constant { .. } => {}
                        Value::Tensor(_) => {
                            let message = format!(
                                "`{name}` takes a flag here, a `bool` that chooses its graph: a tensor has a value only when it is computed"
                            );
                            return Err(self.refuse(argument, message));
                        }
                        other => return Err(without_value(other.clone())),
                    }
                    continue;
                }
                (Passing::Model(_) | Passing::Updated(_), _) => return Err(without_value(Value::Unknown)),
                (_, Value::Tensor(node)) => nodes.push(Some(*node)),
                (Passing::Scalar, Value::Int(..) | Value::Float(_) | Value::Bool(_) | Value::Constant { .. }) => {
                    let dtype = signature.inputs.get(nodes.len()).map_or(DType::F32, |input| input.dtype);
                    let value = self.passed(value.clone(), dtype);
                    let node = self.operand(&value, dtype, argument);
                    nodes.push(node.map_err(|value| spoiled = value).ok());
                }
                (_, Value::Wrong) => {
                    spoiled = Value::Wrong;
                    nodes.push(None);
                }
                // rustc refuses anything else.
                _ => nodes.push(None),
            }
            places.push(Some(argument));
        }
        let Some(nodes) = nodes.into_iter().collect::<Option<Vec<_>>>() else { return Err(without_value(spoiled)) };
        let found: Vec<_> =
            nodes.iter().map(|&node| (self.graph.dtype(node), self.graph.props(node).shape.clone())).collect();
        let (mut equal, mut checks) = (vec![], vec![]);
        let bound = dim::with_names(&self.names(), || {
            signature.bind_where(&found, &mut |axis, [found, wanted]| {
                let at = places.get(axis.argument).copied().flatten().map_or_else(|| Place::of(whole), Place::of);
                let check = self.constants_are_equal(&signature, axis, [found, wanted], at);
                let is_equal = check.is_some();
                equal.extend(is_equal.then(|| (wanted.clone(), found.clone())));
                checks.extend(check);
                is_equal
            })
        });
        let bound = match bound {
            Ok(bound) => {
                self.checks.extend(checks);
                bound
            }
            Err(mismatches) => {
                let value = self.mismatched(&signature, &found, &places, mismatches, whole);
                return Err(without_value(value));
            }
        };
        let value = |slot: u32| bound.get(slot as usize).cloned();
        let mut result_nodes = vec![];
        for result in results {
            // Sizes known to be equal are spelled as in the caller.
            let as_found =
                |dim: Dim| equal.iter().find(|(wanted, _)| *wanted == dim).map_or(dim, |(_, found)| found.clone());
            let shape: Shape = result.shape.iter().map(|dim| as_found(dim.substitute(&value))).collect();
            match self.result(span, &TensorType { dtype: result.dtype, shape }) {
                Ok(node) => result_nodes.push(node),
                Err(error) => return Err(self.refused(Place::of(whole), &error, &[])),
            }
        }
        let declared = result_nodes.len();
        for &buffer in &changed {
            let state = self.tensor_type(self.buffers[buffer].node);
            match self.result(span, &state) {
                Ok(node) => result_nodes.push(node),
                Err(error) => return Err(self.refused(Place::of(whole), &error, &[])),
            }
        }
        let results = result_nodes.clone();
        for (buffer, node) in changed.into_iter().zip(result_nodes.split_off(declared)) {
            self.set_buffer(buffer, node);
        }
        self.calls.push(CallSite { callee: number, is_gradient: false, arguments: nodes, results });
        let value = Tracer::shaped(&callee.result, &mut result_nodes.into_iter().map(Value::Tensor));
        Ok(Called { value, wanted: Wanted { signature, result, constants }, bound, places })
    }

    /// The value of a call whose arguments do not fit: the body is traced again if constants may make them fit, otherwise
    /// the mismatches are reported.
    fn mismatched(
        &mut self,
        signature: &Signature,
        found: &[(DType, Shape)],
        places: &[Option<&Expr>],
        mismatches: Vec<Mismatch>,
        whole: &Expr,
    ) -> Value {
        let name = &signature.name;
        let mut shapes: Vec<Shape> = found.iter().map(|(_, shape)| shape.clone()).collect();
        // Any constant in them may be one of the callee's.
        let wanted = signature.inputs.iter().flat_map(|input| &input.shape);
        shapes.push(shapes.iter().flatten().chain(wanted).flat_map(constants_in).collect());
        let fits = |assumption: &Assumption| {
            let mut signature = signature.clone();
            for input in &mut signature.inputs {
                input.shape = assumption.apply(&input.shape);
            }
            let assumed: Vec<_> = found.iter().map(|(dtype, shape)| (*dtype, assumption.apply(shape))).collect();
            signature.bind(&assumed).is_ok()
        };
        let place = |mismatch: &Mismatch| {
            let argument = mismatch.argument.and_then(|position| places.get(position).copied().flatten());
            argument.map_or_else(|| Place::of(whole), Place::of)
        };
        let first = mismatches.first().map_or_else(|| Place::of(whole), place);
        if let Some(value) = self.assume(first, name, &shapes, fits) {
            return value;
        }
        for mismatch in mismatches {
            let mut message = format!("{name}: {}", mismatch.error.message());
            if let Some(help) = mismatch.error.suggestion() {
                message += &format!("\n  {help}");
            }
            for line in self.origins(&message) {
                message += &format!("\n  {line}");
            }
            self.diagnostics.error(place(&mismatch), message);
        }
        Value::Wrong
    }

    /// The check for `const` evaluation, if only constants decide whether the found and the expected shape are equal.
    fn constants_are_equal(
        &self,
        signature: &Signature,
        Axis { argument, axis }: Axis,
        [found, wanted]: [&Dim; 2],
        place: Place,
    ) -> Option<Check> {
        if found.as_const().is_some() && wanted.as_const().is_some() {
            return None;
        }
        let (expected, value) = (self.constants.in_rust(wanted)?, self.constants.in_rust(found)?);
        let (name, input) = (&signature.name, signature.inputs.get(argument)?);
        let shown = signature.show(input.shape.get(axis..=axis)?);
        let what = format!("{name}: axis {axis} of `{}` is `{shown}`", input.name);
        Some(Check { place, what, constant: None, expected, found: found.to_string(), value })
    }

    /// The callee's signature, in which constants that no argument binds become constants under the callee's path.
    fn wanted(&mut self, callee: &Callee, reached: &dyn Fn(usize) -> TokenStream) -> Wanted {
        let (mut signature, mut result) = (callee.signature.clone(), callee.result.clone());
        let names = signature.dims.split_off(callee.declared);
        let (mut constants, mut replaced) = (vec![], vec![]);
        for (number, dim) in names.into_iter().enumerate() {
            let constant = callee.signature.dim(callee.declared + number);
            if callee.of_models.contains(&number)
                || signature.inputs.iter().any(|input| input.shape.contains(&constant))
            {
                replaced.push(dim.at(signature.dims.len() as u32));
                signature.dims.push(dim);
                constants.push(number);
            } else {
                let name =
                    dim.name.trim_start_matches("crate::").trim_start_matches("super::").trim_start_matches("self::");
                let text = format!("{}::{name}", signature.name);
                replaced.push(self.constants.dim(text, reached(number)));
            }
        }
        let replace = |slot: u32| replaced.get((slot as usize).checked_sub(callee.declared)?).cloned();
        for input in &mut signature.inputs {
            input.shape = input.shape.iter().map(|dim| dim.substitute(&replace)).collect();
        }
        result.substitute(&replace);
        Wanted { signature, result, constants }
    }

    /// A constant of the callee must equal what the arguments bind it to: `const` evaluation compares the two.
    fn check_constants(&mut self, callee: &Callee, called: &Called, reached: &dyn Fn(usize) -> TokenStream) {
        let Called { wanted: Wanted { signature: wanted, constants, .. }, bound, places, .. } = called;
        let name = &wanted.name;
        for (position, &number) in (callee.declared..wanted.dims.len()).zip(constants) {
            if callee.of_models.contains(&number) {
                continue;
            }
            let dim = wanted.dim(position);
            let place = wanted
                .inputs
                .iter()
                .enumerate()
                .find_map(|(input, spec)| Some((input, spec.shape.iter().position(|other| *other == dim)?)));
            let (Some((input, axis)), Some(found)) = (place, bound.get(position)) else { continue };
            let Some(argument) = places.get(input).copied().flatten() else { continue };
            let constant = &wanted.dims[position].name;
            let shown = dim::with_names(&self.names(), || found.to_string());
            let what = format!("{name}: axis {axis} of `{}` is the constant `{constant}`", wanted.inputs[input].name);
            match self.constants.in_rust(found) {
                Some(value) => {
                    let path = reached(number);
                    self.checks.push(Check {
                        place: Place::of(argument),
                        what,
                        constant: None,
                        expected: path,
                        found: shown,
                        value,
                    });
                }
                None => self
                    .diagnostics
                    .error(Place::of(argument), format!("{what}, here it is {shown}, which may be any size")),
            }
        }
    }
}

/// The constants in a dim.
fn constants_in(dim: &Dim) -> Vec<Dim> {
    let atoms = dim.terms().into_iter().flat_map(|(atoms, _)| atoms);
    let is_constant = |atom: &Atom| matches!(atom, Atom::Named { slot: FIRST_CONSTANT..FIRST_RESULT, .. });
    atoms.filter(is_constant).map(|atom| Dim::product(&[atom], 1)).collect()
}

/// The nearest of the existing names.
fn near_or_all(name: &str, what: &str, known: Vec<&str>) -> String {
    if let Some(near) = tinyspec_ir::ops::nearest_of(name, known.iter().copied()) {
        return format!("; did you mean `{near}`?");
    }
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("; {what}: {}", if known.is_empty() { "none".to_string() } else { known.join(", ") })
}

/// The caller's path to constant number `position` of a callee's shapes.
fn constant_path(call: &ExprCall, position: usize) -> TokenStream {
    let constant = format_ident!("DIM_{position}");
    match &*call.func {
        Expr::Path(function) => {
            let path = respanned(&function.path, open_span(&call.paren_token));
            quote!(#path::#constant)
        }
        _ => quote!(#constant),
    }
}
