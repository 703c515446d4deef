//! Files of weights, as safetensors.

use super::header::mistake;
use crate::file::{Durability, folder_of, remove_abandoned_drafts, replace};
use crate::tensor::{from_bytes, realize_all};
use crate::{Error, Result, Tensor};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::path::Path;
use tinyspec_ir::{DType, Dim, Shape};

/// The dtypes of the format.
pub(super) const DTYPES: &[(DType, Dtype)] = &[
    (DType::Bool, Dtype::BOOL),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::U8, Dtype::U8),
    (DType::U16, Dtype::U16),
    (DType::U32, Dtype::U32),
    (DType::U64, Dtype::U64),
    (DType::F8E4M3, Dtype::F8_E4M3),
    (DType::F8E5M2, Dtype::F8_E5M2),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
];

/// The reserved name of the format's metadata.
pub(super) const NOTES: &str = "__metadata__";

pub(super) fn failed(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Weights { path: path.display().to_string(), reason: reason.to_string() }
}

/// Writes tensors with their names: `&[("w", &w)]`, [`named_parameters`](super::Model::named_parameters) of a model or
/// [`named_state`](super::Optimizer::named_state) of an optimiser.
///
/// The file replaces an older one once it is complete and on disk: if the process is killed or the power fails, one of
/// them is intact. Several threads and processes may save at the same time. The draft of a process that was killed
/// while writing (`.….tinyspec-draft`) is removed by the next one that saves to the folder.
///
/// # Errors
/// When two tensors have the same name or one is named `__metadata__`, a tensor carries an error or cannot be computed,
/// or the file cannot be written. The older file is kept then.
pub fn save(path: impl AsRef<Path>, tensors: &[(impl AsRef<str>, &Tensor)]) -> Result<()> {
    let path = path.as_ref();
    let mut names = BTreeSet::new();
    if let Some((name, _)) = tensors.iter().find(|(name, _)| !names.insert(name.as_ref())) {
        return Err(failed(path, format!("two tensors are named `{}`", name.as_ref())));
    }
    if names.contains(NOTES) {
        let reason =
            format!("a tensor is named `{NOTES}`, which safetensors keeps for notes on a file: give it another name");
        return Err(failed(path, reason));
    }
    realize_all(&tensors.iter().map(|(_, tensor)| *tensor).collect::<Vec<_>>())?;
    let mut data = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        let name = name.as_ref();
        let dtype = DTYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype());
        let Some((_, dtype)) = dtype else {
            return Err(failed(path, format!("`{name}` is {}, which the format lacks", tensor.dtype())));
        };
        data.push((name, *dtype, tensor.sizes()?, tensor.to_bytes()?));
    }
    let views = data
        .iter()
        .map(|(name, dtype, sizes, bytes)| Ok((*name, TensorView::new(*dtype, sizes.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|error| failed(path, error))?;
    let bytes = safetensors::serialize(views, None).map_err(|error| failed(path, error))?;
    remove_abandoned_drafts(folder_of(path));
    replace(path, &bytes, Durability::Synced).map_err(|error| failed(path, error))
}

/// Reads all tensors of a file, by name, onto the default device.
///
/// # Errors
/// When the file is missing, truncated or damaged, or contains an unsupported dtype.
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor>> {
    let (path, location) = (path.as_ref(), Location::caller());
    let bytes = std::fs::read(path).map_err(|error| failed(path, error))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| {
        let reason = mistake(&bytes).unwrap_or_else(|| error.to_string());
        failed(path, format!("it is not a file of safetensors, or damaged or cut off: {reason}"))
    })?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.tensors() {
        let Some((dtype, _)) = DTYPES.iter().find(|(_, dtype)| *dtype == view.dtype()) else {
            return Err(failed(path, format!("`{name}` has a dtype that is not supported: {:?}", view.dtype())));
        };
        let shape: Shape = view.shape().iter().map(|&size| Dim::from(size)).collect();
        tensors.insert(name, from_bytes(location, view.data(), *dtype, &shape)?);
    }
    Ok(tensors)
}
