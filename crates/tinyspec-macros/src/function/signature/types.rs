//! Types and dims: `Tensor<f32, B, { 2 * H }>`.

use super::{Constants, TensorType};
use crate::diagnostics::{Diagnostics, Place, constant_of_self, source_text, undefined_size};
use crate::function::source::{is_list, is_undefined};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{BinOp, Expr, GenericArgument, Lit, PathArguments, Type};
use tinyspec_ir::{DType, Dim, Shape};

/// Reads types and dims.
pub struct TypeReader<'a> {
    /// The item that declares dims: `fn dense`, `struct Dense`; empty if names have been checked before.
    pub owner: String,
    /// The function's parameters, which are not sizes.
    pub parameters: &'a [String],
    /// Declared dims and their values.
    pub names: Vec<(String, Dim)>,
    /// Outer constants met so far.
    pub constants: &'a mut Constants,
    /// Where mistakes go.
    pub diagnostics: &'a mut Diagnostics,
}

impl TypeReader<'_> {
    /// `Tensor<f32, B, 64>`, and the same without its arguments.
    pub fn tensor(&mut self, written: &Type) -> Option<TensorType> {
        let help = "write `Tensor<f32, B, 64>`: a dtype, then the dims";
        let Type::Path(path) = written else {
            let help = other_type(written).unwrap_or(help);
            self.diagnostics.error(Place::of(written), format!("expected a tensor; {help}"));
            return None;
        };
        let segment = path.path.segments.last()?;
        if segment.ident != "Tensor" {
            let name = source_text(&path.path);
            let help = other_type(written).unwrap_or(help);
            self.diagnostics.error(Place::of(written), format!("`{name}` is not a tensor type; {help}"));
            return None;
        }
        let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
            self.diagnostics.error(Place::of(written), format!("this tensor has no dtype and no dims; {help}"));
            return None;
        };
        let mut arguments = arguments.args.iter();
        let dtype = match arguments.next() {
            Some(GenericArgument::Type(Type::Path(path))) => self.dtype(&path.path)?,
            Some(other) => {
                let message = format!("the first argument of a tensor is its dtype, one of {}", dtypes());
                self.diagnostics.error(Place::of(other), message);
                return None;
            }
            None => {
                self.diagnostics.error(Place::of(written), format!("this tensor has no dtype; {help}"));
                return None;
            }
        };
        Some(TensorType { dtype, shape: self.dims(arguments)? })
    }

    /// `f32`
    pub fn dtype(&mut self, path: &syn::Path) -> Option<DType> {
        let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let found = DType::from_name(&name).filter(|dtype| !matches!(dtype, DType::Void | DType::Index));
        if found.is_none() {
            if self.names.iter().any(|(dim, _)| *dim == name) {
                let message = format!(
                    "`{name}` is a dim, and the dtype comes first, as in `Tensor<f32, {name}>`: write another function for other dtypes"
                );
                self.diagnostics.error_once(Place::of(path), message);
                return None;
            }
            let message = match name.as_str() {
                "double" => "`double` is called `f64`".to_string(),
                "float" => "`float` is called `f32`".to_string(),
                "int" => "`int` is called `i32`".to_string(),
                "half" => "`half` is called `f16`".to_string(),
                _ => format!("`{name}` is not a dtype; the dtypes are {}", dtypes()),
            };
            self.diagnostics.error(Place::of(path), message);
        }
        found
    }

    /// Generic arguments that are dims.
    pub fn dims<'a>(&mut self, arguments: impl Iterator<Item = &'a GenericArgument>) -> Option<Shape> {
        // Every wrong dim is reported.
        let dims: Vec<Option<Dim>> = arguments
            .map(|argument| match argument {
                GenericArgument::Type(Type::Path(path)) if path.qself.is_none() => {
                    self.dim(&Expr::Path(syn::ExprPath { attrs: vec![], qself: None, path: path.path.clone() }))
                }
                GenericArgument::Const(expression) => self.dim(expression),
                other => {
                    let message = "a dim is a number, a name, or `{ an expression }` over them";
                    self.diagnostics.error(Place::of(other), message);
                    None
                }
            })
            .collect();
        dims.into_iter().collect()
    }

    /// A dim: number, name, outer constant, or an expression over them.
    pub fn dim(&mut self, expression: &Expr) -> Option<Dim> {
        let dim = self.dim_or_none(expression)?;
        if dim.bounds().1 < 1 && dim.as_const() != Some(0) {
            let message = format!("a dim of {dim} elements: a size is not negative");
            self.diagnostics.error(Place::of(expression), message);
            return None;
        }
        Some(dim)
    }

    fn dim_or_none(&mut self, expression: &Expr) -> Option<Dim> {
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => match number.base10_parse::<i64>() {
                    Ok(number) => return Some(Dim::from(number)),
                    Err(error) => self.diagnostics.error(Place::of(literal), format!("no size: {error}")),
                },
                _ => self.diagnostics.error(Place::of(literal), "a dim is an integer"),
            },
            Expr::Path(path) => {
                if let Some(name) = path.path.get_ident()
                    && let Some((_, dim)) = self.names.iter().find(|(declared, _)| name == declared)
                {
                    return Some(dim.clone());
                }
                if let Some(name) =
                    path.path.get_ident().filter(|name| self.parameters.iter().any(|other| *name == other))
                {
                    let message = format!(
                        "`{name}` is a parameter, and a dim is a size: name the sizes of its type, as in `{name}: &Tensor<f32, N>`, and write `N`"
                    );
                    self.diagnostics.error(Place::of(name), message);
                    return None;
                }
                if let Some(name) = path.path.get_ident()
                    && !self.owner.is_empty()
                    && is_undefined(name)
                {
                    let declared: Vec<String> = self.names.iter().map(|(name, _)| name.clone()).collect();
                    let message = undefined_size(name, &self.owner, &declared);
                    self.diagnostics.error_once(Place::of(name), message);
                    return None;
                }
                if path.path.segments.first().is_some_and(|first| first.ident == "Self") {
                    self.diagnostics.error(Place::of(path), constant_of_self(&path.path));
                    return None;
                }
                if let Some(name) = path.path.get_ident().filter(|name| is_list(name)) {
                    let message =
                        format!("`{name}` is an array, and a dim is one number: write `{name}[0], {name}[1]`");
                    self.diagnostics.error(Place::of(name), message);
                    return None;
                }
                return Some(self.constants.dim(source_text(&path.path), quote!(#path)));
            }
            Expr::Paren(inner) => return self.dim_or_none(&inner.expr),
            Expr::Group(inner) => return self.dim_or_none(&inner.expr),
            Expr::Cast(cast) => return self.dim_or_none(&cast.expr),
            Expr::Block(block) => match block.block.stmts.as_slice() {
                [syn::Stmt::Expr(inner, None)] => return self.dim_or_none(inner),
                _ => self.diagnostics.error(Place::of(block), "a dim is one expression"),
            },
            Expr::Binary(binary) => {
                let (left, right) = (self.dim_or_none(&binary.left), self.dim_or_none(&binary.right));
                let (left, right) = (left?, right?);
                if matches!(binary.op, BinOp::Div(_) | BinOp::Rem(_)) && right.is(0) {
                    let message = format!("`{}` divides by 0", source_text(binary));
                    self.diagnostics.error(Place::of(binary), message);
                    return None;
                }
                return Some(match binary.op {
                    BinOp::Add(_) => left + right,
                    BinOp::Sub(_) => left - right,
                    BinOp::Mul(_) => left * right,
                    BinOp::Div(_) => left.idiv(&right),
                    BinOp::Rem(_) => left.modulo(&right),
                    _ => {
                        self.diagnostics.error(Place::of(&binary.op), "dims are made with `+`, `-`, `*`, `/` and `%`");
                        return None;
                    }
                });
            }
            // `SHAPE[0]`, `CONFIG.width`, `padded(64)`: Rust computes it from constants.
            Expr::Index(_) | Expr::Field(_) | Expr::Call(_) | Expr::MethodCall(_)
                if !self.names.iter().any(|(name, _)| mentions(expression, name)) =>
            {
                return Some(self.constants.dim(source_text(expression), quote!(#expression)));
            }
            other => self.diagnostics.error(
                Place::of(other),
                "a dim is a number, a name, an outer constant, or `+`, `-`, `*`, `/`, `%` of them",
            ),
        }
        None
    }
}

/// Does an expression mention this name?
pub fn mentions(expression: &Expr, name: &str) -> bool {
    struct Names<'a>(&'a str, bool);
    impl<'ast> syn::visit::Visit<'ast> for Names<'_> {
        fn visit_ident(&mut self, ident: &'ast syn::Ident) {
            self.1 |= ident == self.0;
        }
    }
    let mut names = Names(name, false);
    syn::visit::Visit::visit_expr(&mut names, expression);
    names.1
}

/// Advice for a type that is not a tensor.
pub fn other_type(written: &Type) -> Option<&'static str> {
    match written {
        Type::Slice(_) | Type::Array(_) => {
            Some("write several tensors as several parameters, or as a tuple in the result")
        }
        Type::ImplTrait(_) | Type::TraitObject(_) | Type::FnPtr(_) => {
            Some("a graph has neither function values nor traits: call the #[function] by its name")
        }
        Type::Tuple(_) => Some("a parameter is one tensor or number: take the parts as parameters of their own"),
        Type::Path(path) => {
            let name = path.path.segments.last()?.ident.to_string();
            Some(match name.as_str() {
                "Vec" => "write several tensors as several parameters, or as a tuple in the result",
                "Option" => "what may be missing is a function of its own",
                "str" | "String" | "char" => "words choose while tracing: write a function for each",
                "usize" | "isize" => "a number is a tensor without dims, such as `Tensor<i64>`",
                name if DType::from_name(name).is_some() => "a number is a tensor without dims, `Tensor<f32>`",
                _ => return None,
            })
        }
        _ => None,
    }
}

fn dtypes() -> String {
    let names = "bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64";
    names.split(' ').map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A tensor type without its arguments: the run-time `Tensor` has its shape as a value.
pub fn without_arguments(written: &Type) -> TokenStream {
    match written {
        Type::Path(path) => {
            let mut path = path.clone();
            if let Some(segment) = path.path.segments.last_mut() {
                segment.arguments = PathArguments::None;
            }
            quote!(#path)
        }
        Type::Reference(reference) => {
            let (mutability, inner) = (&reference.mutability, without_arguments(&reference.elem));
            quote!(& #mutability #inner)
        }
        Type::Tuple(tuple) => {
            let elements = tuple.elems.iter().map(without_arguments);
            quote!((#(#elements,)*))
        }
        other => quote!(#other),
    }
}
