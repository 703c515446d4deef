//! Statements: names, assignments, conditions.

use super::expression::Indices;
use super::value::Variable;
use super::{Binding, Tracer, Value, View};
use crate::diagnostics::Place as At;
use crate::kernel::syntax::*;
use proc_macro2::Ident;
use tinyspec_ir::{AddrSpace, Builder, DType, NodeId, Op, ops};

/// The most elements of a Reg buffer.
const REGISTERS: i64 = 256;

impl Tracer<'_> {
    pub fn block(&mut self, block: &Block) {
        self.scopes.push(Default::default());
        self.statements(&block.statements);
        self.scopes.pop();
    }

    pub fn statements(&mut self, statements: &[Statement]) {
        for (position, statement) in statements.iter().enumerate() {
            self.statement(statement);
            if statement.may_exit() {
                return self.behind_exit(statement, &statements[position + 1..]);
            }
        }
    }

    pub fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Refused(names) => names.iter().for_each(|name| self.bind(name, Binding::Wrong)),
            Statement::Let { name, mutable, dtype, value } => self.binding(name, *mutable, *dtype, value),
            Statement::Declare { name, local, dtype, dims, at } => {
                if *local {
                    self.local(name, *dtype, dims, *at)
                } else {
                    self.registers(name, *dtype, dims, *at)
                }
            }
            Statement::Assign { place, op, value, at } => self.assign(place, *op, value, *at),
            Statement::For { variable, kind, trips, body, at } => self.each(variable, *kind, trips, body, *at),
            Statement::If { condition, then, otherwise } => self.branch(condition, then, otherwise.as_ref()),
            Statement::Block(inner) => self.block(inner),
            Statement::Unsafe(inner) => {
                self.unsafe_depth += 1;
                self.vouched = true;
                self.block(inner);
                self.unsafe_depth -= 1;
            }
            Statement::Call(call) => self.call_statement(call),
            Statement::Barrier(at) => self.misplaced_barrier(*at),
            Statement::Break(at) => self.exit(*at, true),
            Statement::Continue(at) => self.exit(*at, false),
            Statement::AtomicAdd { place, value, at } => self.atomic_add(place, value, *at),
        }
    }

    fn misplaced_barrier(&mut self, at: At) {
        let message = if !self.loops.iter().any(|open| open.kind == LoopKind::Local) {
            "`barrier()` synchronises the iterations of a local loop, and there is none around it"
        } else if !self.gates.is_empty() {
            "`barrier()` in an `if`: iterations that skip it would leave the others waiting; move it out"
        } else {
            "`barrier()` stands in local loops that contain each other directly, or in a serial loop directly in those"
        };
        self.error(at, message);
    }

    /// A new variable.
    pub fn declare(&mut self, name: String, value: Value, mutable: bool) -> usize {
        let depth = self.loops.len();
        self.variables.push(Variable { name, value, mutable, depth });
        self.variables.len() - 1
    }

    fn binding(&mut self, name: &Ident, mutable: bool, dtype: Option<DType>, expr: &Expr) {
        let mut value = self.expression(expr);
        if let Some(dtype) = dtype {
            let node =
                if dtype == DType::Index { self.index(value, expr.at) } else { self.of_dtype(value, dtype, expr.at) };
            value = node.map_or(Value::Wrong, Value::Node);
        } else if mutable {
            // A mutable variable is no longer a literal.
            value = self.node(value).map_or(Value::Wrong, Value::Node);
        }
        if value == Value::Wrong {
            return self.bind(name, Binding::Wrong);
        }
        let number = self.declare(name.to_string(), value, mutable);
        self.bind(name, Binding::Variable(number));
    }

    fn local(&mut self, name: &Ident, dtype: DType, dims: &[Expr], at: At) {
        if self.loops.iter().any(|open| open.kind != LoopKind::Global) || !self.gates.is_empty() {
            self.error(at, "a `Local` buffer belongs to a whole workgroup: declare it directly in the global loops");
            return self.bind(name, Binding::Wrong);
        }
        let memory = self.dim_nodes(dims);
        let memory = memory.and_then(|dims| self.own_memory(name.to_string(), AddrSpace::Local, dtype, dims, at));
        self.bind(name, memory.map_or(Binding::Wrong, Binding::Memory));
    }

    pub fn registers(&mut self, name: &Ident, dtype: DType, dims: &[Expr], at: At) {
        let mut sizes = Vec::new();
        for dim in dims {
            let value = self.expression(dim);
            match value {
                Value::Int(size) if size > 0 && size <= REGISTERS.into() => sizes.push(size as i64),
                Value::Wrong => return self.bind(name, Binding::Wrong),
                _ => {
                    self.error(dim.at, format!("a dim of a `Reg` buffer is a number from 1 to {REGISTERS}"));
                    return self.bind(name, Binding::Wrong);
                }
            }
        }
        let count = sizes.iter().fold(1i64, |count, size| count.saturating_mul(*size));
        if count > REGISTERS {
            self.error(at, format!("{count} elements are more than registers can hold (at most {REGISTERS})"));
            return self.bind(name, Binding::Wrong);
        }
        let zero = self.graph.constant(tinyspec_ir::Const::int(dtype, 0));
        let first = self.variables.len();
        for _ in 0..count {
            self.declare(name.to_string(), Value::Node(zero), true);
        }
        self.bind(name, Binding::Registers { dims: sizes, first, mutable: true });
    }

    fn assign(&mut self, place: &Place, op: Option<BinaryOp>, value: &Expr, at: At) {
        match place {
            Place::Variable(name) => {
                let binding = self.lookup(&name.to_string()).cloned();
                match binding {
                    Some(Binding::Variable(number)) => self.assign_variable(number, name.span().into(), op, value, at),
                    Some(Binding::Wrong) => self.look_at([value]),
                    Some(Binding::Memory(_) | Binding::View(_) | Binding::Registers { .. }) => {
                        self.error(
                            name.span(),
                            format!("`{name}` is a buffer: store to its elements, `{name}[…] = …`"),
                        );
                        self.look_at([value]);
                    }
                    Some(_) => {
                        self.error(name.span(), format!("`{name}` cannot be changed"));
                        self.look_at([value]);
                    }
                    None => {
                        self.unknown(name);
                        self.look_at([value]);
                    }
                }
            }
            Place::Element(element) => match self.lookup(&element.buffer.to_string()).cloned() {
                Some(Binding::Registers { dims, first, mutable }) => match self.register(element, &dims, first) {
                    Some(_) if !mutable => self.refuse_input(element, "Reg"),
                    Some(number) => self.assign_variable(number, element.at, op, value, at),
                    None => self.look_at([value]),
                },
                Some(Binding::Memory(_) | Binding::View(_)) => self.assign_element(element, op, value),
                other => {
                    self.refuse_buffer(other, element);
                    self.look_at([value]);
                }
            },
        }
    }

    pub fn no_buffer(&mut self, name: &Ident) {
        self.error(name.span(), format!("`{name}` is not a buffer: it has no elements"));
    }

    fn assign_variable(&mut self, number: usize, target: At, op: Option<BinaryOp>, expr: &Expr, at: At) {
        let Variable { name, mutable, depth, .. } = self.variables[number].clone();
        if !mutable {
            self.error(target, format!("`{name}` cannot be changed: declare it with `let mut {name}`"));
            return self.look_at([expr]);
        }
        if let Some(open) = self.loops[depth.min(self.loops.len())..].iter().find(|open| open.kind.is_parallel()) {
            let kind = open.kind;
            let message = format!(
                "all iterations of the {kind} loop would change the one `{name}` that was declared outside of it: \
                 declare it inside, or accumulate with a `reduce` loop"
            );
            self.error(target, message);
            return self.look_at([expr]);
        }
        if self.is_accumulating(number) {
            return self.accumulate(number, op, expr, at);
        }
        let old = self.variables[number].value;
        let new = self.expression(expr);
        let new = match op {
            Some(op) => self.binary(op, old, target, new, expr.at, at),
            None => new,
        };
        // A variable that was wrong stays wrong, since its dtype is unknown.
        let node = self.dtype(old).and_then(|dtype| match dtype {
            DType::Index => self.index(new, expr.at),
            dtype => self.of_dtype(new, dtype, expr.at),
        });
        self.variables[number].value = node.map_or(Value::Wrong, Value::Node);
    }

    fn assign_element(&mut self, element: &Element, op: Option<BinaryOp>, expr: &Expr) {
        let Some(view) = self.view(&element.buffer) else { return self.lost(element.at) };
        let value = self.expression(expr);
        let Some(indices) = self.indices(&view, element) else { return self.lost(element.at) };
        if !self.may_store(&view, element) {
            return;
        }
        let dtype = self.graph.dtype(self.memories[view.memory].node);
        let gate = self.gate(0);
        let value = match op {
            Some(op) => {
                let Some(old) = self.load_located(&view, element, &indices, gate, None) else {
                    return self.lost(element.at);
                };
                self.binary(op, Value::Node(old), element.at, value, expr.at, element.at.to(expr.at))
            }
            None => value,
        };
        let value = self.stored(value, dtype, expr.at);
        self.store_located(Op::Store, &view, element, &indices, value, gate);
    }

    /// The stored value; a placeholder for a wrong one, since the element is checked too.
    fn stored(&mut self, value: Value, dtype: DType, at: At) -> NodeId {
        let node = self.of_dtype(value, dtype, at);
        node.unwrap_or_else(|| self.graph.constant(tinyspec_ir::Const::int(dtype, 0)))
    }

    fn atomic_add(&mut self, place: &Place, expr: &Expr, at: At) {
        let Place::Element(element) = place else {
            return self.error(place.at(), "`atomic_add` changes an element of a buffer: `atomic_add(&mut h[i], 1)`");
        };
        let Some(view) = self.view(&element.buffer) else {
            let binding = self.lookup(&element.buffer.to_string()).cloned();
            self.refuse_buffer(binding, element);
            return self.look_at([expr]);
        };
        if let Some(message) = self.no_effects_here() {
            return self.error(at, message);
        }
        let value = self.expression(expr);
        let Some(indices) = self.indices(&view, element) else { return self.lost(element.at) };
        if !self.may_store(&view, element) {
            return;
        }
        let dtype = self.graph.dtype(self.memories[view.memory].node);
        if dtype == DType::Bool {
            return self.error(element.at, "`atomic_add` adds numbers, found bool");
        }
        let value = self.stored(value, dtype, expr.at);
        let gate = self.gate(0);
        self.store_located(Op::AtomicAdd, &view, element, &indices, value, gate);
    }

    fn no_effects_here(&self) -> Option<&'static str> {
        self.loops
            .iter()
            .any(|open| open.kind == LoopKind::Reduce)
            .then_some("a reduce loop only accumulates into variables: store after it, or use `serial`")
    }

    fn may_store(&mut self, view: &View, element: &Element) -> bool {
        if let Some(message) = self.no_effects_here() {
            self.error(element.at, message);
            return false;
        }
        if !view.mutable {
            let space = self.graph.props(self.memories[view.memory].node).addrspace;
            self.refuse_input(element, if space == Some(AddrSpace::Local) { "Local" } else { "Global" });
        }
        view.mutable
    }

    fn refuse_input(&mut self, element: &Element, space: &str) {
        let name = &element.buffer;
        self.error(element.at, format!("`{name}` is an input: declare it `{name}: &mut {space}<…>` to store to it"));
    }

    pub fn store_located(
        &mut self,
        op: Op,
        view: &View,
        element: &Element,
        indices: &Indices,
        value: NodeId,
        gate: Option<NodeId>,
    ) {
        if self.doubts > 0 {
            return;
        }
        let gate = self.guarded(view.memory, &indices.nodes, gate);
        match self.store(op, view.memory, &indices.nodes, value, gate) {
            Some(store) => self.locate(store, element, indices, view),
            None => self.lost(element.at),
        }
    }

    /// A branch: effects get the condition as their gate, and variables are selected by it.
    fn branch(&mut self, condition: &Expr, then: &Block, otherwise: Option<&Block>) {
        let value = self.expression(condition);
        let values = |tracer: &Self| -> Vec<Value> { tracer.variables.iter().map(|variable| variable.value).collect() };
        let before = values(self);
        let Some(condition) = self.condition(value, condition.at) else {
            return self.branch_in_doubt(then, otherwise, &before);
        };
        self.gates.push(condition);
        self.block(then);
        self.gates.pop();
        let yes = values(self);
        for (variable, &value) in self.variables.iter_mut().zip(&before) {
            variable.value = value;
        }
        if let Some(otherwise) = otherwise {
            let Some(not) = self.not(condition) else { return self.lost(otherwise.at) };
            self.gates.push(not);
            self.block(otherwise);
            self.gates.pop();
        }
        for (number, &yes) in yes.iter().enumerate().take(before.len()) {
            let no = self.variables[number].value;
            if yes == no {
                continue;
            }
            self.variables[number].value = match (self.node(yes), self.node(no)) {
                (Some(yes), Some(no)) => {
                    self.graph.alu(Op::Where, &[condition, yes, no]).map_or(Value::Wrong, Value::Node)
                }
                _ => Value::Wrong,
            };
        }
    }

    /// The branches of a condition that could not be traced: variables that they change are wrong.
    fn branch_in_doubt(&mut self, then: &Block, otherwise: Option<&Block>, before: &[Value]) {
        for block in [Some(then), otherwise].into_iter().flatten() {
            self.in_doubt(|tracer| tracer.block(block));
            for (variable, &value) in self.variables.iter_mut().zip(before) {
                if variable.value != value {
                    variable.value = Value::Wrong;
                }
            }
        }
    }

    pub fn unknown(&mut self, name: &Ident) {
        if self.is_unnamed {
            return;
        }
        let wanted = name.to_string();
        let known = self.scopes.iter().rev().flat_map(|scope| scope.keys());
        let in_other_letters = known.clone().find(|other| other.eq_ignore_ascii_case(&wanted)).map(String::as_str);
        let nearest = in_other_letters.or_else(|| ops::nearest_of(&wanted, known.map(String::as_str)));
        let help = nearest.map(|near| format!("; is it `{near}`?")).unwrap_or_default();
        self.error(name.span(), format!("there is no `{wanted}` here{help}"));
    }
}
