//! The syntax of a kernel, after parsing and before any name is looked up.

use crate::diagnostics::Place as At;
use proc_macro2::Ident;
use tinyspec_ir::{AddrSpace, AxisType, DType};

/// A kernel: one function inside `uop!`.
pub struct Kernel {
    pub attributes: Vec<syn::Attribute>,
    pub gradient: Option<syn::Path>,
    pub visibility: syn::Visibility,
    pub name: Ident,
    pub dims: Vec<Ident>,
    pub parameters: Vec<Parameter>,
    /// The functions that its body defines for itself.
    pub helpers: Vec<Helper>,
    /// The head as written.
    pub written: String,
    /// `None` where its syntax is wrong.
    pub body: Option<Block>,
}

/// A parameter, or a result that the kernel allocates.
pub struct Parameter {
    pub name: Ident,
    pub at: At,
    pub dtype: DType,
    pub kind: ParameterKind,
}

/// The kind of a parameter.
pub enum ParameterKind {
    /// `x: &Global<…>`.
    Input(Vec<Expr>),
    /// `y: &mut Global<…>`.
    Updated(Vec<Expr>),
    /// `-> Global<…> as y`.
    Result(Vec<Expr>),
    /// `a: f32`.
    Scalar,
    /// Could not be read; its mistake is reported already.
    Refused,
    /// The same for a result.
    RefusedResult,
}

impl Parameter {
    /// The dims of a buffer.
    pub fn dims(&self) -> &[Expr] {
        match &self.kind {
            ParameterKind::Input(dims) | ParameterKind::Updated(dims) | ParameterKind::Result(dims) => dims,
            ParameterKind::Scalar | ParameterKind::Refused | ParameterKind::RefusedResult => &[],
        }
    }

    /// Whether its mistake is reported already.
    pub fn is_refused(&self) -> bool {
        matches!(self.kind, ParameterKind::Refused | ParameterKind::RefusedResult)
    }

    /// Whether the kernel may store to it.
    pub fn is_written(&self) -> bool {
        matches!(self.kind, ParameterKind::Updated(_) | ParameterKind::Result(_))
    }
}

/// A function that kernels call, `fn dot(…) -> f32`: its code stands wherever it is called.
pub struct Helper {
    pub name: Ident,
    pub dims: Vec<Ident>,
    pub parameters: Vec<HelperParameter>,
    /// The dtype of its value, and where it was written; `None` for `-> ()`.
    pub result: Option<(DType, At)>,
    pub body: Block,
    /// The expression at the end of the body.
    pub value: Option<Expr>,
    /// A mistake in it is reported already, so that its calls have no value.
    pub is_refused: bool,
}

impl Helper {
    /// Whether it stores to a buffer that it is given.
    pub fn changes_buffers(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.buffer.as_ref().is_some_and(|buffer| buffer.mutable))
    }
}

/// A parameter of a [`Helper`].
pub struct HelperParameter {
    pub name: Ident,
    pub at: At,
    pub dtype: DType,
    /// `None` for a number.
    pub buffer: Option<PassedBuffer>,
}

/// The type of a buffer that a [`Helper`] takes.
pub struct PassedBuffer {
    pub space: AddrSpace,
    /// `&mut`.
    pub mutable: bool,
    pub dims: Vec<Expr>,
}

/// Statements between braces.
#[derive(Clone)]
pub struct Block {
    pub statements: Vec<Statement>,
    pub at: At,
}

/// A statement.
#[derive(Clone)]
pub enum Statement {
    /// A `let` whose mistake is reported already.
    Refused(Vec<Ident>),
    /// `let name = value;`
    Let { name: Ident, mutable: bool, dtype: Option<DType>, value: Expr },
    /// `let mut name: Local<…>;` or `Reg`.
    Declare { name: Ident, local: bool, dtype: DType, dims: Vec<Expr>, at: At },
    /// `place = value;`, `place += value;`
    Assign { place: Place, op: Option<BinaryOp>, value: Expr, at: At },
    /// `for variable in kind(start..end, at most most) { body }`
    For { variable: Ident, kind: LoopKind, trips: Box<Trips>, body: Block, at: At },
    /// `if condition { then } else { otherwise }`
    If { condition: Expr, then: Block, otherwise: Option<Block> },
    /// `{ … }`
    Block(Block),
    /// `unsafe { … }`
    Unsafe(Block),
    /// `barrier();`
    Barrier(At),
    /// `break;`
    Break(At),
    /// `continue;`
    Continue(At),
    /// A call whose value is not used.
    Call(Expr),
    /// `atomic_add(&mut place, value);`
    AtomicAdd { place: Place, value: Expr, at: At },
}

/// `start..end, at most most`
#[derive(Clone)]
pub struct Trips {
    pub start: Option<Expr>,
    pub end: Expr,
    /// The declared maximum of their number.
    pub most: Option<Expr>,
}

/// How the iterations of a loop run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopKind {
    Global,
    Local,
    Serial,
    Reduce,
    Unroll,
}

impl LoopKind {
    pub const ALL: [(&'static str, LoopKind); 5] = [
        ("global", LoopKind::Global),
        ("local", LoopKind::Local),
        ("serial", LoopKind::Serial),
        ("reduce", LoopKind::Reduce),
        ("unroll", LoopKind::Unroll),
    ];

    /// The type of the Range.
    pub fn axis(self) -> AxisType {
        match self {
            LoopKind::Global => AxisType::Global,
            LoopKind::Local => AxisType::Local,
            LoopKind::Reduce => AxisType::Reduce,
            LoopKind::Serial | LoopKind::Unroll => AxisType::Loop,
        }
    }

    /// Whether its iterations run in parallel.
    pub fn is_parallel(self) -> bool {
        matches!(self, LoopKind::Global | LoopKind::Local)
    }
}

impl std::fmt::Display for LoopKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(LoopKind::ALL.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name))
    }
}

/// The target of an assignment.
#[derive(Clone)]
pub enum Place {
    Variable(Ident),
    Element(Element),
}

impl Place {
    pub fn at(&self) -> At {
        match self {
            Place::Variable(name) => name.span().into(),
            Place::Element(element) => element.at,
        }
    }
}

/// `buffer[i, j]`.
#[derive(Clone)]
pub struct Element {
    pub buffer: Ident,
    pub indices: Vec<Expr>,
    pub at: At,
}

/// An expression and its location.
#[derive(Clone)]
pub struct Expr {
    pub kind: ExprKind,
    pub at: At,
}

#[derive(Clone)]
pub enum ExprKind {
    Int(i128, Option<DType>),
    Float(f64, Option<DType>),
    Bool(bool),
    /// Code for `custom`.
    Text(String),
    /// A variable, dim or outer constant.
    Name(Ident),
    /// An outer constant by its path.
    Path(syn::Path),
    Element(Element),
    /// `x.get([i, j], default)`.
    Get(Element, Box<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Cast(Box<Expr>, DType),
    /// `exp(x)`, `x.exp()`.
    Call(Ident, Vec<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `unsafe { … }` around a value.
    Unsafe(Box<Expr>),
    /// `&x`, `&mut x`, `&x[i, ..]`: a buffer for a function, or the part of one.
    Reference {
        buffer: Ident,
        mutable: bool,
        part: Option<Vec<Option<Expr>>>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    Neg,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    And,
    Or,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

impl BinaryOp {
    pub fn symbol(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            Rem => "%",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            Shl => "<<",
            Shr => ">>",
            And => "&&",
            Or => "||",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            Eq => "==",
            Ne => "!=",
        }
    }

    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Lt | Le | Gt | Ge | Eq | Ne)
    }
}

impl Statement {
    /// Calls `visit` for this statement and all statements inside.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Statement)) {
        visit(self);
        match self {
            Statement::For { body, .. } => body.walk(visit),
            Statement::If { then, otherwise, .. } => {
                then.walk(visit);
                otherwise.iter().for_each(|block| block.walk(visit));
            }
            Statement::Block(block) | Statement::Unsafe(block) => block.walk(visit),
            _ => {}
        }
    }

    /// Calls `visit` for each `break` and `continue` of the loop around this statement, and whether it is a `break`.
    pub fn exits(&self, visit: &mut dyn FnMut(At, bool)) {
        match self {
            Statement::Break(at) => visit(*at, true),
            Statement::Continue(at) => visit(*at, false),
            Statement::If { then, otherwise, .. } => {
                then.exits(visit);
                otherwise.iter().for_each(|block| block.exits(visit));
            }
            Statement::Block(block) | Statement::Unsafe(block) => block.exits(visit),
            _ => {}
        }
    }

    /// Whether a `break` or `continue` in it may skip what follows.
    pub fn may_exit(&self) -> bool {
        let mut found = false;
        self.exits(&mut |_, _| found = true);
        found
    }

    /// Whether it contains a barrier.
    pub fn has_barrier(&self) -> bool {
        let mut found = false;
        self.walk(&mut |statement| found |= matches!(statement, Statement::Barrier(_)));
        found
    }

    /// Calls `visit` for every expression of this statement itself, not of the statements inside.
    pub fn expressions<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        let place = |place: &'a Place, visit: &mut dyn FnMut(&'a Expr)| {
            if let Place::Element(element) = place {
                element.indices.iter().for_each(|index| index.walk(visit));
            }
        };
        match self {
            Statement::Let { value, .. } => value.walk(visit),
            Statement::Declare { dims, .. } => dims.iter().for_each(|dim| dim.walk(visit)),
            Statement::Assign { place: to, value, .. } | Statement::AtomicAdd { place: to, value, .. } => {
                place(to, visit);
                value.walk(visit);
            }
            Statement::For { trips, .. } => {
                let Trips { start, end, most } = &**trips;
                start.iter().chain(most).for_each(|bound| bound.walk(visit));
                end.walk(visit);
            }
            Statement::If { condition, .. } => condition.walk(visit),
            Statement::Call(call) => call.walk(visit),
            Statement::Refused(_)
            | Statement::Block(_)
            | Statement::Unsafe(_)
            | Statement::Barrier(_)
            | Statement::Break(_)
            | Statement::Continue(_) => {}
        }
    }
}

impl Block {
    /// As [`Statement::exits`].
    pub fn exits(&self, visit: &mut dyn FnMut(At, bool)) {
        self.statements.iter().for_each(|statement| statement.exits(visit));
    }

    /// Whether a `break` in it ends the loop of which it is the body.
    pub fn breaks(&self) -> bool {
        let mut found = false;
        self.exits(&mut |_, is_break| found |= is_break);
        found
    }

    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Statement)) {
        self.statements.iter().for_each(|statement| statement.walk(visit));
    }

    /// Whether an element of this buffer is read inside.
    pub fn reads(&self, name: &str) -> bool {
        let mut found = false;
        self.walk(&mut |statement| {
            if let Statement::Assign { place: Place::Element(element), op: Some(_), .. } = statement {
                found |= element.buffer == name;
            }
            statement.expressions(&mut |expression| {
                found |= match &expression.kind {
                    ExprKind::Element(element) | ExprKind::Get(element, _) => element.buffer == name,
                    ExprKind::Reference { buffer, .. } => buffer == name,
                    // A parameter that is passed on.
                    ExprKind::Call(_, arguments) => arguments
                        .iter()
                        .any(|argument| matches!(&argument.kind, ExprKind::Name(passed) if passed == name)),
                    _ => false,
                };
            });
        });
        found
    }

    /// Names of variables that are assigned inside, and of buffers passed to be changed.
    pub fn assigned(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: &Ident| {
            if names.iter().all(|known| name != known) {
                names.push(name.to_string());
            }
        };
        self.walk(&mut |statement| {
            if let Statement::Assign { place, .. } = statement {
                add(match place {
                    Place::Variable(name) => name,
                    Place::Element(element) => &element.buffer,
                });
            }
            statement.expressions(&mut |expression| {
                if let ExprKind::Reference { buffer, mutable: true, .. } = &expression.kind {
                    add(buffer);
                }
            });
        });
        names
    }
}

/// Every name that the statements mention.
pub fn mentioned(statements: &[Statement]) -> Vec<String> {
    let mut names = Vec::new();
    for statement in statements {
        statement.walk(&mut |statement| {
            if let Statement::Assign { place: Place::Variable(name), .. } = statement {
                names.push(name.to_string());
            }
            if let Statement::Assign { place: Place::Element(element), .. } = statement {
                names.push(element.buffer.to_string());
            }
            statement.expressions(&mut |expression| match &expression.kind {
                ExprKind::Name(name) => names.push(name.to_string()),
                ExprKind::Element(element) | ExprKind::Get(element, _) => names.push(element.buffer.to_string()),
                ExprKind::Reference { buffer, .. } => names.push(buffer.to_string()),
                _ => {}
            });
        });
    }
    names
}

impl Expr {
    /// Whether it passes a buffer to be changed.
    pub fn changes_buffers(&self) -> bool {
        let mut found = false;
        self.walk(&mut |inner| found |= matches!(inner.kind, ExprKind::Reference { mutable: true, .. }));
        found
    }

    /// Calls `visit` for this expression and all expressions inside.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        match &self.kind {
            ExprKind::Element(element) => element.indices.iter().for_each(|index| index.walk(visit)),
            ExprKind::Get(element, default) => {
                element.indices.iter().for_each(|index| index.walk(visit));
                default.walk(visit);
            }
            ExprKind::Unary(_, a) | ExprKind::Cast(a, _) | ExprKind::Unsafe(a) => a.walk(visit),
            ExprKind::Binary(_, a, b) => {
                a.walk(visit);
                b.walk(visit);
            }
            ExprKind::Call(_, arguments) => arguments.iter().for_each(|argument| argument.walk(visit)),
            ExprKind::Reference { part, .. } => {
                part.iter().flatten().flatten().for_each(|index| index.walk(visit));
            }
            ExprKind::If(condition, a, b) => {
                condition.walk(visit);
                a.walk(visit);
                b.walk(visit);
            }
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Name(_)
            | ExprKind::Path(_) => {}
        }
    }
}
