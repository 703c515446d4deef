//! The owner of a buffer, for reports.

use std::panic::Location;
use tinyspec_ir::DType;
use tinyspec_ir::dim::{Shape, show};

/// The purpose of a buffer. It is cheap to create, and becomes text only in a report.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    what: &'static str,
    tensor: Option<(DType, Shape)>,
    location: Option<&'static Location<'static>>,
}

impl Owner {
    /// The values of a tensor.
    pub fn tensor(dtype: DType, shape: &Shape, location: Option<&'static Location<'static>>) -> Owner {
        Owner { what: "tensor", tensor: Some((dtype, shape.clone())), location }
    }

    /// The temporaries of a program whose result was requested at `location`.
    pub fn temporaries(location: Option<&'static Location<'static>>) -> Owner {
        Owner { what: "buffer of temporaries", tensor: None, location }
    }

    /// Constant data of a plan.
    pub fn constant() -> Owner {
        Owner { what: "constant", tensor: None, location: None }
    }

    /// A buffer of the search for schedules.
    pub fn trial() -> Owner {
        Owner { what: "trial of a schedule", tensor: None, location: None }
    }

    pub fn location(&self) -> Option<&'static Location<'static>> {
        self.location
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.what)?;
        match &self.tensor {
            Some((dtype, shape)) => write!(f, " {dtype} {}", show(shape)),
            None => Ok(()),
        }
    }
}
