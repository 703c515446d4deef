//! Facts about dims: after `where(D % H == 0)` a `D` is `H` times a whole number, which is a dim of its own.
//!
//! The new dim is bound at each call, like `{ H * Q }`. In the same way an exact quotient of constants is a constant of
//! its own (`trace/assume.rs`). An equality that determines no constant, such as `8 == H * (D / H)`, is only checked
//! (`trace/stand_in.rs`).

use super::super::options::Fact;
use super::types::{TypeReader, mentions};
use super::{FunctionSignature, Ident, NamedDim};
use crate::diagnostics::{Diagnostics, Place, source_text};
use syn::{Expr, ExprLit, Lit};
use tinyspec_ir::Dim;

/// A declared dim that a fact makes a product.
pub struct MadeDim {
    /// Its name.
    pub ident: Ident,
    /// The divisor, as written.
    pub by: Expr,
    /// The local variable of the quotient, a generated name.
    pub quotient: Ident,
    /// The product.
    pub dim: Dim,
}

/// The facts that define dims, one for each dim: several numbers are replaced by their least common multiple.
fn merged(facts: &[Fact], function: &Ident, dims: &[NamedDim], diagnostics: &mut Diagnostics) -> Vec<Fact> {
    let mut merged: Vec<Fact> = vec![];
    for fact in facts {
        let name = fact.dim.to_string();
        let Some(position) = dims.iter().position(|dim| dim.name == name) else {
            diagnostics.error(Place::of(&fact.dim), format!("`{function}` declares no dim `{name}`"));
            continue;
        };
        if (dims[position].min, dims[position].max) != (NamedDim::new("").min, NamedDim::MAX) {
            let message = format!("`{name}` has `bounds`, and a fact makes it a product: bound what it is made of");
            diagnostics.error(Place::of(&fact.dim), message);
            continue;
        }
        match merged.iter_mut().find(|other| other.dim == fact.dim) {
            None => merged.push(fact.clone()),
            Some(other) => match number(&other.by).zip(number(&fact.by)).and_then(common_multiple) {
                // A multiple of 4 and 6 is a multiple of 12.
                Some(both) => {
                    let both = proc_macro2::Literal::i64_unsuffixed(both);
                    other.by = syn::parse_quote!(#both);
                }
                None => {
                    let message = format!(
                        "one fact says what divides `{name}`: write the product, `where({name} % (H * K) == 0)`"
                    );
                    diagnostics.error(Place::of(&fact.dim), message);
                }
            },
        }
    }
    merged
}

/// The dims that facts define. Their quotients are added to `dims` and `idents`, and the reader gets the products.
pub fn made_dims(
    facts: &[Fact],
    function: &Ident,
    dims: &mut Vec<NamedDim>,
    idents: &mut Vec<Ident>,
    reader: &mut TypeReader,
) -> Vec<MadeDim> {
    let mut left = merged(facts, function, dims, reader.diagnostics);
    let mut made = vec![];
    // Factors come before the products made of them.
    while !left.is_empty() {
        let next = left.iter().position(|fact| left.iter().all(|other| !mentions(&fact.by, &other.dim.to_string())));
        let Some(next) = next else {
            reader.diagnostics.error(Place::of(&left[0].dim), "these facts are circular");
            break;
        };
        let Fact { dim, by } = left.remove(next);
        let Some(divisor) = reader.dim(&by) else { continue };
        if divisor.bounds().1 < 1 {
            reader
                .diagnostics
                .error(Place::of(&by), format!("`{}` divides nothing: it is {divisor}", source_text(&by)));
            continue;
        }
        let slot = dims.len() as u32;
        // Without spaces, as other dims are shown.
        let shown = source_text(&by).replace(' ', "");
        let shown = if shown.contains(['+', '-', '*', '/', '%']) { format!("({shown})") } else { shown };
        dims.push(NamedDim::new(format!("({dim}/{shown})")));
        let quotient = Ident::new(&format!("__tinyspec_quotient_{slot}"), proc_macro2::Span::mixed_site());
        idents.push(quotient.clone());
        let product = divisor * dims[slot as usize].at(slot);
        if let Some((_, known)) = reader.names.iter_mut().find(|(name, _)| dim == *name) {
            *known = product.clone();
        }
        made.push(MadeDim { ident: dim, by, quotient, dim: product });
    }
    made
}

fn number(expression: &Expr) -> Option<i64> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        _ => None,
    }
}

/// The least common multiple of two positive numbers, if it is an i64.
fn common_multiple((one, two): (i64, i64)) -> Option<i64> {
    if one < 1 || two < 1 {
        return None;
    }
    (one / gcd(one.unsigned_abs(), two.unsigned_abs()) as i64).checked_mul(two)
}

/// The greatest common divisor.
pub fn gcd(one: u64, two: u64) -> u64 {
    if two == 0 { one } else { gcd(two, one % two) }
}

impl FunctionSignature {
    /// Removes dims that are made of others from the signature and renumbers the rest.
    pub(super) fn without_made(&mut self) {
        let made: Vec<String> = self.made.iter().map(|made| made.ident.to_string()).collect();
        let kept: Vec<usize> =
            (0..self.dims.len()).filter(|&slot| made.iter().all(|name| self.dims[slot] != *name)).collect();
        let dims: Vec<NamedDim> = kept.iter().map(|&slot| self.signature.dims[slot].clone()).collect();
        let place = |slot: u32| {
            let place = kept.iter().position(|&other| other == slot as usize)?;
            Some(dims[place].at(place as u32))
        };
        for input in &mut self.signature.inputs {
            input.shape = input.shape.iter().map(|dim| dim.substitute(&place)).collect();
        }
        if let Some(result) = &mut self.result {
            result.substitute(&place);
        }
        for made in &mut self.made {
            made.dim = made.dim.substitute(&place);
        }
        self.dims = kept.iter().map(|&slot| self.dims[slot].clone()).collect();
        self.signature.dims = dims;
    }
}
