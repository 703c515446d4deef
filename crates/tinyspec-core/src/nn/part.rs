//! Fields of a model whose types may not be models: rustc has already reported the missing companion, and need not
//! report it twice.
//!
//! An inherent method takes precedence over a trait's, and exists only if its bounds hold.

use super::{Model, Name, Parameter, Role};
use crate::{Error, Result, Tensor};
use std::marker::PhantomData;
use tinyspec_ir::ErrorKind;

/// A reference to a field.
pub struct Part<R>(pub R);

impl<'a, M: Model> Part<&'a M> {
    /// As [`Model::visit`].
    pub fn visit(self, name: &Name, visit: &mut dyn FnMut(&Name, Role, &'a Tensor)) {
        self.0.visit(name, visit);
    }
}

impl<'a, M: Model> Part<&'a mut M> {
    /// As [`Model::visit_mut`].
    pub fn visit_mut(self, name: &Name, visit: &mut dyn FnMut(&Name, Role, &'a mut Tensor)) {
        self.0.visit_mut(name, visit);
    }
}

/// A field to be built.
pub struct Made<M>(PhantomData<M>);

impl<M> Made<M> {
    /// Of this type.
    #[allow(clippy::new_without_default, reason = "says only which type is meant")]
    pub fn new() -> Made<M> {
        Made(PhantomData)
    }
}

impl<M: Model> Made<M> {
    /// As [`Model::build`].
    pub fn build(self, name: &Name, make: &mut dyn FnMut(Parameter) -> Result<Tensor>) -> Result<M> {
        M::build(name, make)
    }
}

/// Stands in where a field is not a model.
pub trait NoPart: Sized {
    /// Has nothing to visit.
    fn visit<V: ?Sized>(self, _name: &Name, _visit: &mut V) {}

    /// Has nothing to visit.
    fn visit_mut<V: ?Sized>(self, _name: &Name, _visit: &mut V) {}
}

impl<R> NoPart for Part<R> {}

/// Stands in where a field is not a model.
pub trait NotMade<M>: Sized {
    /// Cannot be made.
    ///
    /// # Errors
    /// Always.
    fn build<V: ?Sized>(self, name: &Name, _make: &mut V) -> Result<M> {
        Err(Error::refused(ErrorKind::Unsupported, "build", format!("`{name}` is not a model")))
    }
}

impl<M> NotMade<M> for Made<M> {}
