//! Custom functions: the registry of their code, and how a command buffer runs it.
//!
//! A run reaches them between its kernels. On a device in host memory the code works on the buffers themselves; elsewhere they
//! are copied to the host and back, unless the function has code for the device.

use crate::device::Device;
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use tinyspec_backends::host_memory::ALIGNMENT;
use tinyspec_ir::custom_function::{CustomFunction, Meta};
use tinyspec_ir::{DType, Dim, ErrorKind, Location, Shape, dim};

/// Why a custom function fails: any error, or text, `Err("…".into())`.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// dtype and shape of an argument or a result.
pub(crate) type Described = (DType, Shape);

/// From descriptions of the arguments, and parameters, to descriptions of the buffers that the function makes.
pub(crate) type Rule = dyn Fn(&[Described], &[Meta]) -> Result<Vec<Described>, Failure> + Send + Sync;
pub(crate) type HostBody = dyn Fn(HostCall) -> Result<(), Failure> + Send + Sync;
pub(crate) type DeviceBody = dyn Fn(DeviceCall) -> Result<(), Failure> + Send + Sync;

/// A call as a host body receives it.
#[non_exhaustive]
pub struct HostCall<'a> {
    /// The parameters of the call.
    pub meta: &'a [Meta],
    /// The arguments that are only read, in order.
    pub inputs: Vec<HostInput<'a>>,
    /// The results, in order: the buffers that the function makes, whose contents are undefined before it writes them, then the arguments
    /// that it updates, which hold their values.
    pub outputs: Vec<HostOutput<'a>>,
}

/// An argument in host memory.
pub struct HostInput<'a> {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: &'a [u8],
}

/// A result in host memory.
pub struct HostOutput<'a> {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: &'a mut [u8],
}

/// A call as a device body receives it. Earlier work on the device is done; work that the body enqueues must be done when it returns.
#[non_exhaustive]
pub struct DeviceCall<'a> {
    /// The device, such as `cuda:1`.
    pub device: &'a str,
    /// The parameters of the call.
    pub meta: &'a [Meta],
    /// The arguments that are only read, in order.
    pub inputs: Vec<DeviceBuffer>,
    /// The results, as in [`HostCall::outputs`].
    pub outputs: Vec<DeviceBuffer>,
}

/// A buffer as the device addresses it.
#[non_exhaustive]
pub struct DeviceBuffer {
    /// Type of its elements.
    pub dtype: DType,
    /// Its shape; elements are in row-major order.
    pub shape: Vec<usize>,
    /// The address of its first element.
    pub address: *mut u8,
    /// Its size.
    pub bytes: usize,
}

/// The code of a custom function.
pub(crate) struct Code {
    pub name: Arc<str>,
    /// How many of the first arguments it updates in place.
    pub updated: usize,
    pub rule: Box<Rule>,
    pub host: Option<Arc<HostBody>>,
    pub interpreter: Option<Arc<HostBody>>,
    /// By the name of a device, or of its kind.
    pub devices: Vec<(String, Arc<DeviceBody>)>,
}

static REGISTRY: LazyLock<RwLock<FxHashMap<Arc<str>, Arc<Code>>>> = LazyLock::new(RwLock::default);

/// Adds a function; `also` runs before anybody can find it.
///
/// # Errors
/// When there is one of this name.
pub(crate) fn register(code: Code, also: impl FnOnce()) -> Result<()> {
    let refuse = |message: &str, help: &str| {
        Err(tinyspec_ir::Error::new(ErrorKind::Value, "register_function", message).help(help).into())
    };
    if code.name.is_empty() {
        return refuse("a custom function needs a name", "it is found by its name");
    }
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if registry.contains_key(&code.name) {
        return refuse(
            &format!("a custom function `{}` is registered already", code.name),
            "names are unique in a process: `my_crate::name` avoids clashes between crates; `std::sync::Once` registers once",
        );
    }
    also();
    registry.insert(code.name.clone(), Arc::new(code));
    Ok(())
}

/// The function of this name.
///
/// # Errors
/// When none is registered.
pub(crate) fn find(name: &str) -> tinyspec_ir::Result<Arc<Code>> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    registry.get(name).cloned().ok_or_else(|| {
        let mut known: Vec<String> = registry.keys().map(|name| format!("`{name}`")).collect();
        known.sort_unstable();
        let known =
            if known.is_empty() { "none is".to_string() } else { format!("registered are {}", known.join(", ")) };
        tinyspec_ir::Error::new(ErrorKind::Unsupported, name, "no custom function of this name is registered")
            .help(format!("`register_function(CustomFunction::new(\"{name}\", …))` before the value is read; {known}"))
    })
}

impl Code {
    /// Dtypes and shapes of the buffers that the function makes from these arguments.
    ///
    /// # Errors
    /// When its shape rule refuses them, or panics.
    pub fn made(&self, arguments: &[Described], meta: &[Meta]) -> tinyspec_ir::Result<Vec<Described>> {
        let refuse = |message: String| Err(tinyspec_ir::Error::new(ErrorKind::Shape, &*self.name, message));
        if arguments.len() < self.updated {
            return refuse(format!("updates its first {} arguments, found {}", self.updated, arguments.len()));
        }
        let found: Vec<String> =
            arguments.iter().map(|(dtype, shape)| format!("{dtype} {}", dim::show(shape))).collect();
        match catch_unwind(AssertUnwindSafe(|| (self.rule)(arguments, meta))) {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(failure)) => refuse(format!("{failure}; the arguments are ({})", found.join(", "))),
            Err(panic) => {
                refuse(format!("its shape rule panicked: {}; the arguments are ({})", said(&*panic), found.join(", ")))
            }
        }
    }

    fn on(&self, device: &Device) -> Option<Body<'_>> {
        let kind = device.name().split(':').next().unwrap_or_default();
        let own = self.devices.iter().find(|(name, _)| name == device.name());
        let own = own.or_else(|| self.devices.iter().find(|(name, _)| name == kind));
        if let Some((_, body)) = own {
            return Some(Body::Device(&**body));
        }
        let interpreter = self.interpreter.as_deref().filter(|_| device.is_interpreter());
        interpreter.or(self.host.as_deref()).map(Body::Host)
    }
}

enum Body<'a> {
    Host(&'a HostBody),
    Device(&'a DeviceBody),
}

/// A call of a command buffer, over buffers whose sizes may depend on named dims.
#[derive(Clone)]
pub(crate) struct CustomCall {
    pub code: Arc<Code>,
    pub function: CustomFunction,
    /// Dtypes and shapes of its buffers.
    pub buffers: Vec<Described>,
}

impl CustomCall {
    /// The call with numbers for the dims, once its shape rule has agreed.
    ///
    /// # Errors
    /// When a dim has no number, or the shape rule disagrees with the buffers.
    pub fn sized(&self, value: &impl Fn(u32) -> Option<Dim>) -> tinyspec_ir::Result<SizedCall> {
        let CustomCall { code, function, buffers } = self;
        let refuse = |message: String| Err(tinyspec_ir::Error::new(ErrorKind::Shape, &*code.name, message));
        let described: Vec<Described> = (buffers.iter())
            .map(|(dtype, shape)| (*dtype, shape.iter().map(|dim| dim.substitute(value)).collect()))
            .collect();
        let (made, arguments) = described.split_at(function.made);
        if function.updated != code.updated {
            let (declared, registered) = (function.updated, code.updated);
            return refuse(format!("the call updates {declared} arguments in place, the function {registered}"));
        }
        let expected = code.made(arguments, &function.meta)?;
        if expected != made {
            let show = |all: &[Described]| {
                let all: Vec<String> =
                    all.iter().map(|(dtype, shape)| format!("{dtype} {}", dim::show(shape))).collect();
                format!("({})", all.join(", "))
            };
            return refuse(format!("its shape rule gives {}, the call expects {}", show(&expected), show(made)));
        }
        let number = |dim: &Dim| usize::try_from(dim.as_const()?).ok();
        let mut sized = Vec::with_capacity(described.len());
        for (dtype, shape) in &described {
            let Some(numbers) = shape.iter().map(number).collect::<Option<Vec<usize>>>() else {
                return refuse(format!("a buffer of shape {} has no size", dim::show(shape)));
            };
            sized.push((*dtype, numbers));
        }
        Ok(SizedCall { code: code.clone(), function: function.clone(), buffers: sized })
    }
}

/// A call of a command buffer, ready to run.
pub(crate) struct SizedCall {
    code: Arc<Code>,
    function: CustomFunction,
    buffers: Vec<(DType, Vec<usize>)>,
}

impl SizedCall {
    pub fn name(&self) -> &str {
        &self.code.name
    }

    /// Runs it on these buffers of a device.
    ///
    /// # Errors
    /// When the device has no code for it, or the code fails or panics.
    ///
    /// # Safety
    /// At each address there must be a buffer of the device, as large as the call says and aligned for its elements, which
    /// only enqueued work may use in the meantime; those that are written must not overlap others.
    pub unsafe fn run(&self, device: &Device, addresses: &[*mut u8], line: &str) -> Result<()> {
        let failed = |reason: String| Error::CustomFunction {
            name: self.name().to_string(),
            device: device.name().to_string(),
            reason,
            location: position(line),
        };
        let runtime = device.runtime();
        let done = match self.code.on(device) {
            None => {
                let known: Vec<String> = self.code.devices.iter().map(|(name, _)| format!("`{name}`")).collect();
                let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                return Err(failed(format!(
                    "it has no code for this device, and no host body\nhelp: give it one, `CustomFunction::host`, or move its arguments to a device that has it: {known}"
                )));
            }
            Some(Body::Device(body)) => {
                runtime.synchronize()?;
                let buffer = |(&address, (dtype, shape)): (&*mut u8, &(DType, Vec<usize>))| {
                    let (dtype, shape, bytes) = (*dtype, shape.clone(), bytes(*dtype, shape));
                    DeviceBuffer { dtype, shape, address, bytes }
                };
                let mut outputs: Vec<DeviceBuffer> = addresses.iter().zip(&self.buffers).map(buffer).collect();
                let inputs = outputs.split_off(self.function.written());
                let call = DeviceCall { device: device.name(), meta: &self.function.meta, inputs, outputs };
                catch_unwind(AssertUnwindSafe(|| body(call)))
            }
            Some(Body::Host(body)) if device.is_in_host_memory() => {
                runtime.synchronize()?;
                let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
                for (number, (&address, (dtype, shape))) in addresses.iter().zip(&self.buffers).enumerate() {
                    let (dtype, shape, bytes) = (*dtype, shape.clone(), bytes(*dtype, shape));
                    // An empty buffer may have no memory.
                    let address = if bytes == 0 { std::ptr::without_provenance_mut(ALIGNMENT) } else { address };
                    if number < self.function.written() {
                        // SAFETY: there is such a buffer in host memory, which nobody else uses, as the caller promises.
                        let bytes = unsafe { std::slice::from_raw_parts_mut(address, bytes) };
                        outputs.push(HostOutput { dtype, shape, bytes });
                    } else {
                        // SAFETY: as above; several inputs may be one buffer.
                        let bytes = unsafe { std::slice::from_raw_parts(address, bytes) };
                        inputs.push(HostInput { dtype, shape, bytes });
                    }
                }
                self.on_host(body, inputs, outputs)
            }
            Some(Body::Host(body)) => {
                let mut copies = Vec::with_capacity(addresses.len());
                for (number, (&address, (dtype, shape))) in addresses.iter().zip(&self.buffers).enumerate() {
                    let mut data = Aligned::new(bytes(*dtype, shape));
                    if number >= self.function.made && data.bytes > 0 {
                        // SAFETY: as the caller promises.
                        unsafe { runtime.read_at(address, data.bytes())? };
                    }
                    copies.push(data);
                }
                let (written, read) = copies.split_at_mut(self.function.written());
                let outputs = written.iter_mut().zip(&self.buffers).map(|(data, (dtype, shape))| HostOutput {
                    dtype: *dtype,
                    shape: shape.clone(),
                    bytes: data.bytes(),
                });
                let inputs = read.iter_mut().zip(&self.buffers[self.function.written()..]);
                let inputs = inputs.map(|(data, (dtype, shape))| HostInput {
                    dtype: *dtype,
                    shape: shape.clone(),
                    bytes: data.bytes(),
                });
                let done = self.on_host(body, inputs.collect(), outputs.collect());
                if let Ok(Ok(())) = done {
                    let written = addresses.iter().zip(&mut copies).take(self.function.written());
                    for (&address, data) in written.filter(|(_, data)| data.bytes > 0) {
                        // SAFETY: as the caller promises.
                        unsafe { runtime.write_at(address, data.bytes())? };
                    }
                }
                done
            }
        };
        match done {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(failed(failure.to_string())),
            Err(panic) => Err(failed(format!("it panicked: {}", said(&*panic)))),
        }
    }

    fn on_host(
        &self,
        body: &HostBody,
        inputs: Vec<HostInput>,
        mut outputs: Vec<HostOutput>,
    ) -> std::thread::Result<Result<(), Failure>> {
        for output in outputs.iter_mut().take(self.function.made).filter(|output| output.dtype == DType::Bool) {
            // Not every byte is a bool.
            output.bytes.fill(0);
        }
        let call = HostCall { meta: &self.function.meta, inputs, outputs };
        catch_unwind(AssertUnwindSafe(|| body(call)))
    }
}

fn bytes(dtype: DType, shape: &[usize]) -> usize {
    shape.iter().product::<usize>() * dtype.size()
}

/// Host memory that is aligned for elements of any dtype.
struct Aligned {
    words: Vec<u64>,
    bytes: usize,
}

impl Aligned {
    fn new(bytes: usize) -> Aligned {
        Aligned { words: vec![0; bytes.div_ceil(size_of::<u64>())], bytes }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}

/// A line of the user's, `file:line:column`.
pub(crate) fn position(line: &str) -> Option<Location> {
    let mut parts = line.rsplitn(3, ':');
    let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Location { file: file.into(), line: line.parse().ok()?, column: column.parse().ok()? })
}

/// The text of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    match panic.downcast_ref::<String>() {
        Some(text) => text,
        None => panic.downcast_ref::<&str>().copied().unwrap_or("without a message"),
    }
}
