//! Paths of tensors in their models.

use std::fmt;

/// The path of a tensor in its model, of fields and numbers: `layers.0.attn.weight`.
///
/// A list of references: every call of a function over models visits all tensors, and few visitors ask for names.
///
/// ```
/// use tinyspec_core::nn::Name;
///
/// let layers = Name::ROOT.field("layers");
/// let first = layers.item(0);
/// assert_eq!(first.field("weight").to_string(), "layers.0.weight");
/// ```
#[derive(Clone, Copy)]
pub struct Name<'a>(Option<(&'a Name<'a>, Segment<'a>)>);

#[derive(Clone, Copy)]
enum Segment<'a> {
    Field(&'a str),
    Item(usize),
}

impl<'a> Name<'a> {
    /// The model itself: the empty path.
    pub const ROOT: &'static Name<'static> = &Name(None);

    /// The name of a field of the value with this name.
    pub fn field(&'a self, field: &'a str) -> Name<'a> {
        Name(Some((self, Segment::Field(field))))
    }

    /// An element of a list of this name.
    pub fn item(&'a self, number: usize) -> Name<'a> {
        Name(Some((self, Segment::Item(number))))
    }

    /// The path as a Rust expression that starts at a variable: `net.layers[0].weight`.
    pub(crate) fn inside(&self, variable: &str) -> String {
        let Some((outer, segment)) = &self.0 else { return variable.to_string() };
        match segment {
            Segment::Field(name) => format!("{}.{name}", outer.inside(variable)),
            Segment::Item(number) => format!("{}[{number}]", outer.inside(variable)),
        }
    }

    /// Whether `text` is what [`Name::inside`] returns.
    pub(crate) fn is_inside(&self, variable: &str, text: &str) -> bool {
        self.end_in(variable, text) == Some("")
    }

    /// The rest of `text` after this path, if it starts with it.
    fn end_in<'t>(&self, variable: &str, text: &'t str) -> Option<&'t str> {
        let Some((outer, segment)) = &self.0 else { return text.strip_prefix(variable) };
        let rest = outer.end_in(variable, text)?;
        match segment {
            Segment::Field(name) => {
                let field = rest.strip_prefix('.')?;
                field.strip_prefix("r#").unwrap_or(field).strip_prefix(name)
            }
            Segment::Item(number) => {
                let (digits, rest) = rest.strip_prefix('[')?.split_once(']')?;
                (digits.parse() == Ok(*number)).then_some(rest)
            }
        }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((outer, segment)) = &self.0 else { return Ok(()) };
        outer.fmt(f)?;
        let dot = if outer.0.is_some() { "." } else { "" };
        match segment {
            Segment::Field(name) => write!(f, "{dot}{name}"),
            Segment::Item(number) => write!(f, "{dot}{number}"),
        }
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
