//! The error type of the language: which op refused what, and what to do.

use std::fmt;

/// Result of everything that builds or reads a graph.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ErrorKind {
    /// Shapes do not fit.
    Shape,
    /// Wrong number of dims.
    Rank,
    /// An axis that does not exist.
    Axis,
    /// Wrong or mixed dtypes.
    DType,
    /// Mixed devices.
    Device,
    /// Wrong number or kind of sources or arguments.
    Arity,
    /// A value outside what is allowed.
    Value,
    /// Text or bytes that are not a graph.
    Parse,
    /// A graph that breaks a rule of its stage.
    Verify,
    /// No gradient exists.
    Gradient,
    /// Beyond what the language supports.
    Unsupported,
}

/// A position in a user's source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    /// File as rustc names it.
    pub file: std::sync::Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Location {
    /// Whether it is in Rust's standard library.
    fn is_of_rust(&self) -> bool {
        self.file.starts_with("/rustc/") || self.file.contains("/lib/rustlib/src/rust/library/")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl From<&std::panic::Location<'_>> for Location {
    fn from(location: &std::panic::Location<'_>) -> Self {
        Location { file: location.file().into(), line: location.line(), column: location.column() }
    }
}

/// A typed error: the op, what was found and expected, and a suggestion.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    op: String,
    message: String,
    help: Option<String>,
    location: Option<Location>,
}

impl Error {
    /// The error of `op`; `message` says what was found and what was expected.
    pub fn new(kind: ErrorKind, op: impl Into<String>, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, op: op.into(), message: message.into(), help: None, location: None }))
    }

    /// Adds what to do instead.
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help = Some(help.into());
        self
    }

    /// Adds the user's line, unless one is already known. Lines in Rust's standard library are ignored: they come from
    /// calls through a trait such as `Fn`.
    pub fn at(mut self, location: impl Into<Location>) -> Error {
        if self.0.location.as_ref().is_none_or(Location::is_of_rust) {
            self.0.location = Some(location.into());
        }
        self
    }

    /// As [`Error::at`], for a line that may be unknown.
    pub fn at_known(self, location: Option<impl Into<Location>>) -> Error {
        match location {
            Some(location) => self.at(location),
            None => self,
        }
    }

    /// Names a composed op as the one that refused, which tells a user more than the primitive inside.
    pub fn in_op(mut self, op: &str) -> Error {
        self.0.op = op.to_string();
        self
    }

    /// The kind of mistake.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The op that refused.
    pub fn op(&self) -> &str {
        &self.0.op
    }

    /// The message, with what was found and expected.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The suggested alternative.
    pub fn suggestion(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The user's line.
    pub fn location(&self) -> Option<&Location> {
        self.0.location.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.op, self.0.message)?;
        if let Some(location) = &self.0.location {
            write!(f, "\n  at {location}")?;
        }
        if let Some(help) = &self.0.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// As [`Display`](fmt::Display), because `main` prints errors by `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
