//! The arguments of a dynamic call, taken one after the other.

use super::MethodArg;
use crate::ops::options::{self, Options, for_each_options};
use crate::{DType, Dim, Error, ErrorKind, NodeId, Result, Shape};

pub(super) struct Arguments<'a> {
    pub name: &'a str,
    pub args: &'a [MethodArg],
    pub next: usize,
}

impl<'a> Arguments<'a> {
    fn wrong<T>(&self, param: &str, expected: &str) -> Result<T> {
        let found = self.args.get(self.next.wrapping_sub(1)).map_or("nothing".to_string(), |arg| format!("{arg:?}"));
        Err(Error::new(ErrorKind::Arity, self.name, format!("`{param}` must be {expected}, found {found}")))
    }

    fn take(&mut self) -> Option<&'a MethodArg> {
        self.next += 1;
        self.args.get(self.next - 1)
    }

    pub fn tensor(&mut self, param: &str) -> Result<NodeId> {
        match self.take() {
            Some(MethodArg::Tensor(node)) => Ok(*node),
            _ => self.wrong(param, "a tensor"),
        }
    }

    pub fn tensors(&mut self, param: &str) -> Result<Vec<NodeId>> {
        match self.take() {
            Some(MethodArg::Tensors(nodes)) => Ok(nodes.clone()),
            _ => self.wrong(param, "a list of tensors"),
        }
    }

    pub fn optional(&mut self, param: &str) -> Result<Option<NodeId>> {
        match self.take() {
            Some(MethodArg::Tensor(node)) => Ok(Some(*node)),
            Some(MethodArg::Nothing) => Ok(None),
            _ => self.wrong(param, "a tensor, or nothing"),
        }
    }

    fn options<T: Options>(&mut self, param: &str) -> Result<T> {
        let Some(MethodArg::Options(fields)) = self.take() else { return self.wrong(param, "a struct of options") };
        let mut options = T::default();
        for (field, value) in fields {
            options.set(self.name, field, value)?;
        }
        Ok(options)
    }

    pub fn int(&mut self, param: &str) -> Result<i64> {
        match self.take() {
            Some(MethodArg::Int(number)) => Ok(*number),
            _ => self.wrong(param, "a whole number"),
        }
    }

    pub fn ints(&mut self, param: &str) -> Result<Vec<i64>> {
        match self.take() {
            Some(MethodArg::Ints(numbers)) => Ok(numbers.clone()),
            Some(MethodArg::Int(number)) => Ok(vec![*number]),
            _ => self.wrong(param, "a list of whole numbers"),
        }
    }

    pub fn float(&mut self, param: &str) -> Result<f64> {
        match self.take() {
            Some(MethodArg::Float(number)) => Ok(*number),
            Some(MethodArg::Int(number)) => Ok(*number as f64),
            _ => self.wrong(param, "a number"),
        }
    }

    pub fn flag(&mut self, param: &str) -> Result<bool> {
        match self.take() {
            Some(MethodArg::Flag(flag)) => Ok(*flag),
            _ => self.wrong(param, "true or false"),
        }
    }

    pub fn dtype(&mut self, param: &str) -> Result<DType> {
        match self.take() {
            Some(MethodArg::DType(dtype)) => Ok(*dtype),
            _ => self.wrong(param, "a dtype"),
        }
    }

    pub fn shape(&mut self, param: &str) -> Result<Shape> {
        match self.take() {
            Some(MethodArg::Shape(shape)) => Ok(shape.clone()),
            Some(MethodArg::Ints(numbers)) => Ok(numbers.iter().map(|&number| Dim::from(number)).collect()),
            _ => self.wrong(param, "a shape"),
        }
    }

    pub fn size(&mut self, param: &str) -> Result<Dim> {
        match self.take() {
            Some(MethodArg::Int(number)) => Ok(Dim::from(*number)),
            Some(MethodArg::Shape(shape)) if shape.len() == 1 => Ok(shape[0].clone()),
            _ => self.wrong(param, "the size of an axis"),
        }
    }

    pub fn axes(&mut self, param: &str) -> Result<Option<Vec<i64>>> {
        match self.take() {
            Some(MethodArg::AllAxes) => Ok(None),
            Some(MethodArg::Ints(axes)) => Ok(Some(axes.clone())),
            Some(MethodArg::Int(axis)) => Ok(Some(vec![*axis])),
            _ => self.wrong(param, "an axis, a list of axes, or all"),
        }
    }

    pub fn text(&mut self, param: &str) -> Result<&'a str> {
        match self.take() {
            Some(MethodArg::Text(text)) => Ok(text),
            _ => self.wrong(param, "a word"),
        }
    }

    pub fn finish(&self) -> Result<()> {
        if self.next == self.args.len() {
            return Ok(());
        }
        let message = format!("takes {} arguments, found {}", self.next, self.args.len());
        Err(Error::new(ErrorKind::Arity, self.name, message))
    }
}

macro_rules! structs {
    ($($name:ident $(= $options:ident<$axes:literal>)?,)*) => {
        #[allow(non_snake_case, reason = "a parameter's kind is the name of its reader")]
        impl Arguments<'_> {
            $(pub fn $name(&mut self, param: &str) -> Result<options::$name> {
                self.options(param)
            })*
        }
    };
}

for_each_options!(structs);
