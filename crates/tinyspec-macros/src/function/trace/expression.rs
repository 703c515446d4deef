//! Expressions: what each kind of Rust's syntax means in a graph.

use super::inference::{Float, Kind, NumberType};
use super::{Tracer, Value};
use crate::diagnostics::{Adaptation, Place, constant_of_self, source_text, undefined_size};
use crate::function::source::is_undefined;
use proc_macro2::{Literal, TokenTree};
use syn::{BinOp, Expr, ExprBinary, ExprPath, ExprUnary, Lit, Member, RangeLimits, UnOp};
use tinyspec_ir::ops::{self, MethodArg, arithmetic};
use tinyspec_ir::{Builder, DType, NodeId};

/// The text of an expression for messages, if it is short.
pub(super) fn text_of(expression: &Expr) -> Option<String> {
    let expression = match expression {
        Expr::Reference(reference) => &reference.expr,
        Expr::Paren(inner) => &inner.expr,
        other => other,
    };
    Some(source_text(expression)).filter(|text| text.len() <= 40 && !text.contains('\n'))
}

/// The `x` of `(*x)`, where a reference does as well.
pub(super) fn without_deref(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) if matches!(&*inner.expr, Expr::Unary(_)) => without_deref(&inner.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => without_deref(&unary.expr),
        other => other,
    }
}

/// The text of an operand for messages; only the end of a long one.
pub(super) fn name_of(expression: &Expr) -> String {
    match (text_of(expression), expression) {
        (Some(text), _) => text,
        (None, Expr::MethodCall(call)) => format!("….{}(…)", call.method),
        (None, Expr::Call(call)) => format!("{}(…)", source_text(&call.func)),
        (None, Expr::Reference(inner)) => name_of(&inner.expr),
        (None, Expr::Paren(inner)) => name_of(&inner.expr),
        (None, Expr::Binary(binary)) => format!("… {} …", source_text(&binary.op)),
        _ => "this".to_string(),
    }
}

/// Whether this is `&mut self.mean`, which means the place and not its value.
fn is_borrowed(expression: &Expr) -> bool {
    matches!(expression, Expr::Reference(reference) if reference.mutability.is_some())
}

/// Whether this is a literal such as `1.0`, whose type follows from the other operand.
fn is_plain_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.suffix().is_empty(),
            Lit::Float(number) => number.suffix().is_empty(),
            _ => true,
        },
        Expr::Paren(inner) => is_plain_literal(&inner.expr),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => is_plain_literal(expr),
        _ => false,
    }
}

impl Tracer<'_> {
    /// The value of an expression. After a mistake it is [`Value::Wrong`], and the typed copy leaves the expression
    /// out.
    pub(super) fn expression(&mut self, expression: &Expr) -> Value {
        let mut value = self.value_of(expression);
        if let (Value::Buffer(number), false) = (&value, is_borrowed(expression)) {
            value = Value::Tensor(self.buffers[*number].node);
        }
        if matches!(value, Value::Unknown | Value::Unseen) {
            // Its parts have been traced before, so they are recorded first.
            self.open.get_or_insert_with(|| Place::of(expression));
        }
        // The wrong part is left out already, and the rest of a block is still checked.
        let is_around = matches!(expression, Expr::Block(_) | Expr::Paren(_) | Expr::Group(_) | Expr::Reference(_));
        if matches!(value, Value::Wrong) && !is_around {
            self.diagnostics.leave_out(expression);
        }
        value
    }

    fn value_of(&mut self, expression: &Expr) -> Value {
        match expression {
            Expr::Lit(literal) => self.literal(&literal.lit, expression),
            Expr::Path(path) => self.path(path),
            Expr::Paren(inner) => self.expression(&inner.expr),
            Expr::Group(inner) => self.expression(&inner.expr),
            Expr::Reference(reference) => {
                if let Some(mutability) = &reference.mutability {
                    match self.place(&reference.expr) {
                        Some(value @ (Value::Buffer(_) | Value::Model(_) | Value::List(_) | Value::Optional(_))) => {
                            return value;
                        }
                        Some(Value::Unseen) => return Value::Unseen,
                        _ => {}
                    }
                    let message = "tensors are values: nothing can be changed through a reference";
                    self.diagnostics.error_instead_of_rustc(expression, Place::of(mutability), message);
                    return Value::Wrong;
                }
                self.expression(without_deref(&reference.expr))
            }
            Expr::Unary(unary) => self.unary(unary, expression),
            Expr::Binary(binary) => self.binary(binary, expression),
            Expr::Assign(assign) => {
                if let Some(refused) = self.refuse_parameter(&assign.left, expression) {
                    return refused;
                }
                let value = self.expression(&assign.right);
                self.assign(&assign.left, value, expression)
            }
            Expr::MethodCall(call) => self.method_call(call, expression),
            Expr::Call(call) => self.call(call, expression),
            Expr::Tuple(tuple) => Value::Tuple(tuple.elems.iter().map(|element| self.expression(element)).collect()),
            Expr::Array(array) => {
                let list = self.list(array.elems.iter());
                if let Value::List(values) = &list
                    && values.iter().any(|value| matches!(value, Value::Dim(_)))
                    && values.iter().all(|value| self.as_dim(value).is_some())
                {
                    // Elements of one type.
                    self.diagnostics.adapt(expression, Adaptation::Sizes);
                }
                list
            }
            Expr::Repeat(repeat) => {
                let value = self.expression(&repeat.expr);
                match self.expression(&repeat.len) {
                    Value::Int(count @ 0..=4096, _) => Value::List(vec![value; count as usize]),
                    length @ (Value::Unknown | Value::Wrong) => length,
                    _ => self.refuse(expression, "the length of an array is a number up to 4096 here"),
                }
            }
            Expr::Index(index) => self.index(index, expression),
            Expr::Field(field) => match (self.expression(&field.base), &field.member) {
                (Value::Tuple(elements), Member::Unnamed(index)) => {
                    elements.into_iter().nth(index.index as usize).unwrap_or(Value::Unknown)
                }
                (Value::Wrong, _) => Value::Wrong,
                (Value::Constant { text, path, .. }, member) => {
                    let (text, path) = (format!("{text}.{}", source_text(member)), quote::quote!(#path.#member));
                    Value::Constant { text, path, kind: None, size: None }
                }
                (Value::Model(model), Member::Named(name)) => self.field(&model, name, expression),
                (Value::Unseen, _) => Value::Unseen,
                // rustc reports a wrong field.
                _ => Value::Unknown,
            },
            Expr::Block(block) if block.label.is_none() => self.block(&block.block),
            Expr::Const(constant) => self.block(&constant.block),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Range(range) => self.range(range, expression),
            Expr::If(branch) => self.branch(branch, expression),
            Expr::Match(matched) => self.match_on(matched, expression),
            Expr::ForLoop(looped) => self.for_loop(looped, expression),
            Expr::Struct(literal) => self.options_literal(literal, expression),
            Expr::Macro(call) => self.macro_call(&call.mac, expression),
            other => self.refuse_control(other),
        }
    }

    /// Reports an expression, which the typed copy leaves out.
    pub(super) fn refuse(&mut self, expression: &Expr, message: impl Into<String>) -> Value {
        self.diagnostics.error_instead_of_rustc(expression, Place::of(expression), message);
        Value::Wrong
    }

    /// A list; all its numbers have one type.
    pub(super) fn list<'e>(&mut self, elements: impl Iterator<Item = &'e Expr>) -> Value {
        let values: Vec<Value> = elements.map(|element| self.expression(element)).collect();
        for pair in values.windows(2) {
            self.unify(&pair[0], &pair[1]);
        }
        Value::List(values)
    }

    fn literal(&mut self, literal: &Lit, whole: &Expr) -> Value {
        match literal {
            Lit::Int(number) if matches!(number.suffix(), "f32" | "f64") => {
                self.float_literal(number.base10_digits(), number.suffix(), Place::of(literal))
            }
            Lit::Int(number) => self.int_literal(number, false, whole),
            Lit::Float(number) => self.float_literal(number.base10_digits(), number.suffix(), Place::of(literal)),
            Lit::Bool(value) => Value::Bool(value.value),
            Lit::Str(text) => Value::Text(text.value()),
            other => {
                self.diagnostics.error(Place::of(other), "a literal here is a number, a bool or a string");
                Value::Wrong
            }
        }
    }

    fn float_literal(&mut self, digits: &str, suffix: &str, place: Place) -> Value {
        // Each rounded once, as rustc does.
        let (Ok(wide), Ok(narrow)) = (digits.parse(), digits.parse()) else { return Value::Unknown };
        let kind = match NumberType::from_name(suffix) {
            Some(ty) => Kind::Known(ty),
            None => self.inference.literal(place),
        };
        Value::Float(Float { wide, narrow, kind })
    }

    fn path(&mut self, path: &ExprPath) -> Value {
        if let Some(name) = path.path.get_ident()
            && let Some(value) = self.lookup(&name.to_string())
        {
            return value.clone();
        }
        if path.path.is_ident("None") {
            return Value::Optional(None);
        }
        if let Some(name) = path.path.get_ident()
            && name.to_string().starts_with(|c: char| c.is_lowercase() || c == '_')
            && DType::from_name(&name.to_string()).is_none()
        {
            return self.unknown_name(name);
        }
        let segments: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [.., ty, name] = segments.as_slice()
            && ty == "DType"
        {
            return match DType::from_name(&name.to_lowercase()) {
                Some(dtype) => Value::DType(dtype),
                None => Value::Unknown, // rustc knows the variants.
            };
        }
        if let Some(value) = super::constants::known_constant(&segments) {
            return Value::Float(value);
        }
        if let Some(name) = path.path.get_ident()
            && *name == name.to_string().to_uppercase()
            && is_undefined(name)
        {
            if !self.signature.is_complete() {
                // It may be a dim of a refused signature.
                self.diagnostics.leave_out(path);
                return Value::Wrong;
            }
            let declared: Vec<String> = self.signature.dim_names().iter().map(ToString::to_string).collect();
            let message = undefined_size(name, &format!("fn {}", self.signature.ident), &declared);
            self.diagnostics.error_instead_of_rustc(path, Place::of(name), message);
            return Value::Wrong;
        }
        if segments.len() > 1 && segments[0] == "Self" {
            let message = constant_of_self(&path.path);
            self.diagnostics.error_instead_of_rustc(path, Place::of(path), message);
            return Value::Wrong;
        }
        Value::Constant { text: source_text(&path.path), path: quote::quote!(#path), kind: None, size: None }
    }

    /// rustc resolves names only after all macros have expanded, so this would not be reported together with other
    /// mistakes.
    pub(super) fn unknown_name(&mut self, name: &syn::Ident) -> Value {
        if !self.signature.is_complete() {
            // It may be a parameter that could not be read.
            return Value::Wrong;
        }
        let text = name.to_string();
        let known = self.scopes.iter().flat_map(|scope| scope.keys().map(String::as_str));
        let near = ops::nearest_of(&text, known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let message = format!("there is no local `{text}` here, and constants have capitals{near}");
        self.diagnostics.error(Place::of(name), message);
        Value::Wrong
    }

    fn index(&mut self, index: &syn::ExprIndex, whole: &Expr) -> Value {
        let (list, position) = (self.expression(&index.expr), self.expression(&index.index));
        match (list, position) {
            (Value::Wrong, _) | (_, Value::Wrong) => Value::Wrong,
            (Value::Unseen, _) => Value::Unseen,
            (Value::Tensor(_), _) => self.refuse(
                whole,
                "a tensor is not indexed with `[…]`: write `.at(…)` with a position, a range, or a tuple of them",
            ),
            (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
            (Value::List(values), position @ Value::Int(..)) => {
                let count = values.len();
                let Value::Int(position, _) = self.typed(position, NumberType::Usize) else { return Value::Unknown };
                let value = usize::try_from(position).ok().and_then(|position| values.into_iter().nth(position));
                if let Some(Value::Dim(_)) = value {
                    // A dim is not copied out of a shape.
                    self.diagnostics.adapt(whole, Adaptation::Size);
                }
                value.unwrap_or_else(|| {
                    let message =
                        format!("index {position} of a list of {count}: they go from 0 to {}", count.saturating_sub(1));
                    self.diagnostics.error(Place::of(&*index.index), message);
                    Value::Wrong
                })
            }
            // Rust looks it up.
            (Value::Constant { text, path, .. }, position @ (Value::Int(..) | Value::Constant { .. })) => {
                let position = self.typed(position, NumberType::Usize);
                let (shown, position) = match position {
                    Value::Int(position, _) => {
                        (position.to_string(), TokenTree::from(Literal::i128_unsuffixed(position)).into())
                    }
                    Value::Constant { text, path, .. } => (text, path),
                    _ => return Value::Unknown,
                };
                let (text, path) = (format!("{text}[{shown}]"), quote::quote!(#path[#position]));
                Value::Constant { text, path, kind: None, size: None }
            }
            (Value::Tuple(_), Value::Int(position, _)) => {
                let tuple = text_of(&index.expr).unwrap_or("pair".into());
                self.refuse(whole, format!("a tuple has fields: write `{tuple}.{position}`"))
            }
            (Value::List(_), Value::Constant { .. }) => {
                let list = text_of(&index.expr).unwrap_or("list".into());
                let position = text_of(&index.index).unwrap_or("it".into());
                let message = format!(
                    "the value of `{position}` is needed, which macros cannot see: go over the list, `for one in &{list}`, or make the constant a `const` inside the function"
                );
                self.refuse(whole, message)
            }
            (list, position) => {
                let message = format!("{} cannot be indexed with {} here", list.describe(), position.describe());
                self.refuse(whole, message)
            }
        }
    }

    fn unary(&mut self, unary: &ExprUnary, whole: &Expr) -> Value {
        if let (UnOp::Neg(_), Expr::Lit(syn::ExprLit { lit: Lit::Int(number), .. })) = (unary.op, &*unary.expr)
            && !matches!(number.suffix(), "f32" | "f64")
        {
            return self.int_literal(number, true, whole);
        }
        let value = self.expression(&unary.expr);
        match (unary.op, value) {
            (UnOp::Deref(_), Value::Tensor(_)) => {
                let text = text_of(&unary.expr).unwrap_or("x".into());
                self.refuse(whole, format!("a tensor is used through its reference: write `{text}`, without `*`"))
            }
            (UnOp::Deref(_), value) => value,
            (UnOp::Neg(token), Value::Tensor(node)) => {
                self.apply_unary(&unary.expr, node, token.span, |graph, x| arithmetic::neg(graph, x))
            }
            (UnOp::Not(token), Value::Tensor(node)) => {
                self.apply_unary(&unary.expr, node, token.span, |graph, x| arithmetic::not(graph, x))
            }
            (_, Value::Wrong) => Value::Wrong,
            (op, value) => self.fold_unary(op, value, whole),
        }
    }

    fn apply_unary(
        &mut self,
        operand: &Expr,
        node: NodeId,
        span: proc_macro2::Span,
        build: impl FnOnce(&mut dyn Builder, NodeId) -> tinyspec_ir::Result<NodeId>,
    ) -> Value {
        match self.build(span, |graph| build(graph, node)) {
            Ok(node) => Value::Tensor(node),
            Err(error) => {
                let place = Place::between(span, Place::of(operand).end);
                let operands = [(name_of(operand), Value::Tensor(node))];
                self.refused(place, &error, &operands)
            }
        }
    }

    fn binary(&mut self, binary: &ExprBinary, whole: &Expr) -> Value {
        if assigning(&binary.op).is_some()
            && let Some(refused) = self.refuse_parameter(&binary.left, whole)
        {
            return refused;
        }
        let left = if assigning(&binary.op).is_some() { without_deref(&binary.left) } else { &*binary.left };
        let (left, right) = (self.expression(left), self.expression(&binary.right));
        if let Some(op) = assigning(&binary.op) {
            let value = self.operator(op, left, right, binary, whole);
            return self.assign(&binary.left, value, whole);
        }
        match comparison_method(&binary.op) {
            Some((symbol, method)) => self.compare(symbol, method, left, right, binary, whole),
            None => self.operator(binary.op, left, right, binary, whole),
        }
    }

    fn operator(&mut self, op: BinOp, left: Value, right: Value, binary: &ExprBinary, whole: &Expr) -> Value {
        if let Some(spoiled) = Value::without_value([&left, &right]) {
            return spoiled;
        }
        if !matches!(left, Value::Tensor(_)) && !matches!(right, Value::Tensor(_)) {
            return self.fold(op, &left, &right, whole);
        }
        let Some((_, path)) = operator_path(&op) else {
            let message =
                "`&&` and `||` take bools at run time: for tensors write `&` and `|`, which compute both sides";
            return self.refuse(whole, message);
        };
        let place = Place::of(whole);
        if matches!(left, Value::Int(..) | Value::Float(_) | Value::Bool(_) | Value::Constant { .. })
            && !is_plain_literal(&binary.left)
        {
            self.diagnostics.adapt(&*binary.left, Adaptation::Left);
        }
        // The target of an assignment is not moved.
        let moved = match assigning(&binary.op) {
            Some(_) => None,
            None => self.moved(&binary.left, &left),
        };
        if let Some(wrong) = moved.or_else(|| self.moved(&binary.right, &right)) {
            return wrong;
        }
        let operands = (
            self.operand(&left, self.dtype_of(&right), &binary.left),
            self.operand(&right, self.dtype_of(&left), &binary.right),
        );
        let (x, y) = match operands {
            (Ok(x), Ok(y)) => (x, y),
            (Err(spoiled), Ok(_)) | (Ok(_), Err(spoiled)) => return spoiled,
            (Err(one), Err(other)) => return Value::without_value([&one, &other]).unwrap_or(one),
        };
        match self.build(place.start, |graph| path(graph, x, y)) {
            Ok(node) => Value::Tensor(node),
            Err(error) => {
                let (name, args) = (operator_row(&op), [MethodArg::Tensor(x), MethodArg::Tensor(y)]);
                if let Some(value) = self.assume_of_method(place, name, &args) {
                    return value;
                }
                let row = ops::METHODS.iter().find(|row| row.name == name);
                if let Some(value) = row.and_then(|row| self.stand_in_of_method(place, row, &args)) {
                    return value;
                }
                let error = match op {
                    BinOp::Rem(_) => error.in_op("modulo"),
                    BinOp::BitXor(_) => error.help("`^` is xor: `.pow(2.0)` is the power"),
                    _ => error,
                };
                let operands = [(name_of(&binary.left), left), (name_of(&binary.right), right)];
                self.refused(place, &error, &operands)
            }
        }
    }

    fn compare(
        &mut self,
        symbol: &str,
        method: &str,
        left: Value,
        right: Value,
        binary: &ExprBinary,
        whole: &Expr,
    ) -> Value {
        if matches!(left, Value::Tensor(_)) || matches!(right, Value::Tensor(_)) {
            let (x, y) = (text_of(&binary.left).unwrap_or("x".into()), text_of(&binary.right).unwrap_or("y".into()));
            let message =
                format!("`{symbol}` gives one bool at run time; for a tensor of bools write `{x}.{method}({y})`");
            return self.refuse(whole, message);
        }
        self.fold_comparison(binary.op, &left, &right, whole)
    }

    fn range(&mut self, range: &syn::ExprRange, whole: &Expr) -> Value {
        let (start, end) = match (&range.start, &range.end) {
            (None, None) => return Value::All,
            (start, end) => {
                let start = start.as_ref().map(|start| self.expression(start));
                let end = end.as_ref().map(|end| self.expression(end));
                let zero = match &end {
                    Some(Value::Int(_, kind)) => Value::Int(0, *kind),
                    _ => Value::UNIT,
                };
                (start.unwrap_or(zero), end)
            }
        };
        match (start, end) {
            (Value::Int(start, left), Some(Value::Int(end, right))) => {
                let end = if matches!(range.limits, RangeLimits::Closed(_)) { end + 1 } else { end };
                let kind = self.inference.unify(left, right);
                kind.map_or(Value::Unknown, |kind| Value::Range(start, end, kind))
            }
            (start, end) => {
                if let Some(spoiled) = Value::without_value([&start].into_iter().chain(&end)) {
                    return spoiled;
                }
                let is_whole = |value: &Value| {
                    matches!(value, Value::Int(..) | Value::Constant { kind: None | Some(ops::LiteralKind::Int), .. })
                };
                // A range without a start has no number whose type the end could take.
                let first = if range.start.is_some() {
                    super::constants::in_rust(&start)
                } else {
                    Some(("0".into(), quote::quote!(0), None))
                };
                if let (true, Some(end), Some((_, first, _))) = (is_whole(&start) || range.start.is_none(), &end, first)
                    && is_whole(end)
                    && let Some((_, last, _)) = super::constants::in_rust(end)
                {
                    let one = matches!(range.limits, RangeLimits::Closed(_)).then(|| quote::quote!(+ 1));
                    let count = quote::quote!((#last as i128 - #first as i128 #one));
                    return Value::OpenRange { text: source_text(range), count };
                }
                let message = match (&start, &end) {
                    (_, None) => "a range in a #[function] must have an end: loops are unrolled".to_string(),
                    (Value::Dim(dim), _) | (_, Some(Value::Dim(dim))) => {
                        let dim = tinyspec_ir::dim::with_names(&self.names(), || dim.to_string());
                        format!("loops are unrolled while rustc runs, and the size {dim} is known when the function is called: use operations on whole tensors")
                    }
                    (Value::Tensor(_), _) | (_, Some(Value::Tensor(_))) => {
                        "loops are unrolled while rustc runs, and a tensor has values when the function is called: write the number of iterations as a literal, or loop around the call".to_string()
                    }
                    _ => "a range in a #[function] must have integer ends".to_string(),
                };
                self.refuse(whole, message)
            }
        }
    }
}

type BinaryBuilder = fn(&mut dyn Builder, NodeId, NodeId) -> tinyspec_ir::Result<NodeId>;

/// The builder function of a run-time operator.
fn operator_path(op: &BinOp) -> Option<(&'static str, BinaryBuilder)> {
    Some(match op {
        BinOp::Add(_) => ("+", arithmetic::add),
        BinOp::Sub(_) => ("-", arithmetic::sub),
        BinOp::Mul(_) => ("*", arithmetic::mul),
        BinOp::Div(_) => ("/", arithmetic::div),
        BinOp::Rem(_) => ("%", arithmetic::modulo),
        BinOp::BitAnd(_) => ("&", arithmetic::and),
        BinOp::BitOr(_) => ("|", arithmetic::or),
        BinOp::BitXor(_) => ("^", arithmetic::xor),
        BinOp::Shl(_) => ("<<", arithmetic::shl),
        BinOp::Shr(_) => (">>", arithmetic::shr),
        _ => return None,
    })
}

/// The row of the method table for an operator.
fn operator_row(op: &BinOp) -> &'static str {
    match op {
        BinOp::Add(_) => "add",
        BinOp::Sub(_) => "sub",
        BinOp::Mul(_) => "mul",
        BinOp::Div(_) => "div",
        BinOp::Rem(_) => "modulo",
        BinOp::BitAnd(_) => "and",
        BinOp::BitOr(_) => "or",
        BinOp::BitXor(_) => "xor",
        BinOp::Shl(_) => "shl",
        _ => "shr",
    }
}

/// The operator of a compound assignment: `x += y` is `x = x + y`.
fn assigning(op: &BinOp) -> Option<BinOp> {
    Some(match op {
        BinOp::AddAssign(_) => BinOp::Add(Default::default()),
        BinOp::SubAssign(_) => BinOp::Sub(Default::default()),
        BinOp::MulAssign(_) => BinOp::Mul(Default::default()),
        BinOp::DivAssign(_) => BinOp::Div(Default::default()),
        BinOp::RemAssign(_) => BinOp::Rem(Default::default()),
        BinOp::BitAndAssign(_) => BinOp::BitAnd(Default::default()),
        BinOp::BitOrAssign(_) => BinOp::BitOr(Default::default()),
        BinOp::BitXorAssign(_) => BinOp::BitXor(Default::default()),
        BinOp::ShlAssign(_) => BinOp::Shl(Default::default()),
        BinOp::ShrAssign(_) => BinOp::Shr(Default::default()),
        _ => return None,
    })
}

pub(super) fn comparison_method(op: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match op {
        BinOp::Lt(_) => ("<", "lt"),
        BinOp::Le(_) => ("<=", "le"),
        BinOp::Gt(_) => (">", "gt"),
        BinOp::Ge(_) => (">=", "ge"),
        BinOp::Eq(_) => ("==", "eq"),
        BinOp::Ne(_) => ("!=", "ne"),
        _ => return None,
    })
}
