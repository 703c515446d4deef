//! Saves a training in one file, and resumes it.

use super::memory::Memory;
use super::model::build_from;
use super::weights::{failed, load, save};
use super::{Model, Name, Optimizer};
use crate::tensor::{random_state, set_random_state};
use crate::{Error, Result, Tensor};
use std::collections::BTreeMap;
use std::path::Path;
use tinyspec_ir::DType;

/// The prefix of the names of the optimiser's state; the name of its type follows.
const OPTIMIZER: &str = "optimizer.";

/// The prefix of the names of the optimiser's options.
const OPTION: &str = "option.";

/// Writes everything that a training needs to continue into one safetensors file: the number of steps done, the model
/// (`model.…`), the state of the optimiser (`optimizer.Adam.…`), its options (`option.…`) and the state of the random
/// number generator. [`resume`] reads it.
///
/// The file replaces an older one once it is complete.
///
/// # Errors
/// As [`save`], and when the optimiser was made with impossible numbers.
pub fn save_training(
    path: impl AsRef<Path>,
    steps: usize,
    model: &impl Model,
    optimizer: &dyn Optimizer,
) -> Result<()> {
    let (steps, random) = (Tensor::from_slice(&[steps as u64], ()), random_state());
    let mut named = vec![("steps".to_string(), &steps), ("random".to_string(), &random)];
    named.extend(model.named_state().into_iter().map(|(name, tensor)| (format!("model.{name}"), tensor)));
    let own = format!("{OPTIMIZER}{}.", optimizer.kind());
    named.extend(optimizer.named_state().into_iter().map(|(name, tensor)| (format!("{own}{name}"), tensor)));
    let options: Vec<(String, Tensor)> = (optimizer.options()?.into_iter())
        .map(|(name, value)| (format!("{OPTION}{name}"), Tensor::from_slice(&[value], ())))
        .collect();
    named.extend(options.iter().map(|(name, tensor)| (name.clone(), tensor)));
    save(path, &named)
}

/// Reads what [`save_training`] wrote: returns the number of steps done and the model, and restores the optimiser's
/// state and that of random tensors. Training then continues as if it had not been interrupted, bit for bit.
///
/// The learning rate is part of the state; the other [`options`](Optimizer::options) of the optimiser must be those of the
/// training. Files that were written before options were saved are read without that check.
///
/// A learning-rate schedule is a function of the number of the step and needs nothing else.
///
/// ```standalone_crate
/// # use tinyspec_core::{Error, Result, Tensor, nn::{Adam, Init, Model, Name, Parameter, Role, resume, save_training}};
/// # use tinyspec_ir::DType;
/// # struct Line { weight: Tensor }
/// # impl Model for Line {
/// #     fn visit<'a>(&'a self, name: &Name, visit: &mut dyn FnMut(&Name, Role, &'a Tensor)) {
/// #         visit(&name.field("weight"), Role::Parameter, &self.weight);
/// #     }
/// #     fn visit_mut<'a>(&'a mut self, name: &Name, visit: &mut dyn FnMut(&Name, Role, &'a mut Tensor)) {
/// #         visit(&name.field("weight"), Role::Parameter, &mut self.weight);
/// #     }
/// #     fn build(name: &Name, make: &mut dyn FnMut(Parameter) -> Result<Tensor>) -> Result<Line> {
/// #         let name = &name.field("weight");
/// #         let (init, role) = (Init::Xavier, Role::Parameter);
/// #         Ok(Line { weight: make(Parameter { name, dtype: DType::F32, shape: &[3, 1], init, role })? })
/// #     }
/// # }
/// // `Line` is a `#[model]` with a weight of f32 [3, 1].
/// fn train(line: &mut Line, optimizer: &mut Adam) -> Result<f32> {
///     let x = Tensor::randn([8, 3]);
///     let loss = (x.matmul(&line.weight) - x.sum(1, true)).square().mean(.., false);
///     line.train_step(&loss, optimizer)?;
///     loss.item()
/// }
/// let file = std::env::temp_dir().join(format!("training-{}.safetensors", std::process::id()));
/// let (mut line, mut optimizer) = (Line::init(), Adam::new(0.1));
/// for _ in 0..3 {
///     train(&mut line, &mut optimizer)?;
/// }
/// save_training(&file, 3, &line, &optimizer)?;
/// let went_on = train(&mut line, &mut optimizer)?;
///
/// let mut optimizer = Adam::new(0.1);
/// let (steps, mut line) = resume::<Line>(&file, &mut optimizer)?;
/// assert_eq!((steps, train(&mut line, &mut optimizer)?), (3, went_on));
/// # std::fs::remove_file(&file).ok();
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// When the file cannot be read; when it is of another optimiser, or of one with other options; or when names are missing or
/// unexpected, or if shapes or dtypes differ, in the model or in the optimiser. The error lists them all, and nothing is changed.
/// Which weights the optimiser was given is unknown until its next step, which refuses others.
#[track_caller]
pub fn resume<M: Model>(path: impl AsRef<Path>, optimizer: &mut dyn Optimizer) -> Result<(usize, M)> {
    let path = path.as_ref();
    let mut found = load(path)?;
    let mut number = |name: &str, sizes: &[usize]| -> Result<Tensor> {
        let fits = |tensor: &Tensor| tensor.dtype() == DType::U64 && tensor.sizes().is_ok_and(|found| found == sizes);
        let is_of = format!("no `{name}` of u64 {sizes:?}: `save_training` writes files that can be resumed from");
        found.remove(name).filter(fits).ok_or_else(|| failed(path, is_of))
    };
    let (steps, random) = (number("steps", &[])?.item::<u64>()?, number("random", &[2])?);
    let mut state = BTreeMap::new();
    let mut parameters = BTreeMap::new();
    let mut options = BTreeMap::new();
    for (name, tensor) in found {
        if let Some(option) = name.strip_prefix(OPTION) {
            options.insert(option.to_string(), tensor.item::<f32>()?);
            continue;
        }
        let Some(of_optimizer) = name.strip_prefix(OPTIMIZER) else {
            parameters.insert(name, tensor);
            continue;
        };
        let (kind, own) = of_optimizer.split_once('.').unwrap_or(("", of_optimizer));
        if kind != optimizer.kind() {
            let (wanted, found) = (optimizer.kind(), if kind.is_empty() { own } else { kind });
            return Err(failed(path, format!("the training is one of the optimiser `{found}`, not of `{wanted}`")));
        }
        state.insert(own.to_string(), tensor);
    }
    if let Some(differences) = other_options(optimizer, &options)? {
        return Err(failed(path, differences));
    }
    if steps > 0 && optimizer.memory().iter().any(Memory::is_of_weights) && !state.keys().any(|name| name.contains('.'))
    {
        let own = optimizer.kind();
        let message = format!("{steps} steps are done, but nothing is there that `{own}` remembers of weights");
        return Err(failed(path, format!("{message}: it was saved with other options")));
    }
    let model =
        build_from(&Name::ROOT.field("model"), &mut parameters)?.map_err(|differences| failed(path, differences))?;
    optimizer.load_state(state).map_err(|error| match error {
        Error::Graph(error) => failed(path, format!("the optimiser: {error}")),
        error => error,
    })?;
    set_random_state(&random)?;
    Ok((usize::try_from(steps).unwrap_or(usize::MAX), model))
}

/// How the options of the optimiser differ from those in the file. An option that the file lacks may be newer than the file.
fn other_options(optimizer: &dyn Optimizer, found: &BTreeMap<String, f32>) -> Result<Option<String>> {
    let (kind, own) = (optimizer.kind(), optimizer.options()?);
    let differences = found.iter().filter_map(|(name, &saved)| match own.iter().find(|(own, _)| own == name) {
        Some(&(_, value)) if value == saved => None,
        Some((_, value)) => Some(format!("`{name}` is {saved} in the training, {value} in the optimiser")),
        None => Some(format!("`{name}` is {saved} in the training, and no option of the optimiser")),
    });
    let differences: Vec<String> = differences.collect();
    let advice =
        format!("make the `{kind}` with the options of the training; with others it would not go on bit for bit");
    Ok((!differences.is_empty()).then(|| format!("{}: {advice}", differences.join("; "))))
}
