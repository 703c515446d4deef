//! Emits LLVM IR for scalars and vectors uniformly.
//!
//! inkwell has separate types for scalars and vectors, integers and floats; here every operation is defined on all of
//! them, so instructions are built through LLVM's C interface. The checks that keep this sound are in this file and its
//! submodules.

mod control;
mod gpu;
mod memory;

pub(super) use gpu::Scope;

use crate::BackendError;
use inkwell::context::Context;
use inkwell::debug_info::DILocation;
use inkwell::module::Module;
use inkwell::values::{AsValueRef, FunctionValue};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMInlineAsmDialect, LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use tinyspec_ir::DType;

pub(super) type Result<T> = std::result::Result<T, BackendError>;

/// Type of an element in registers. Signedness belongs to operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    I1,
    I8,
    I16,
    I32,
    I64,
    Half,
    /// Only for the bf16 dot product instruction; elsewhere bf16 values are integers.
    BFloat,
    Float,
    Double,
    Pointer(Space),
}

/// The address space of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Space {
    /// The only one of a CPU.
    Flat,
    /// A GPU's memory that all workgroups share.
    Global,
    /// Memory of a workgroup.
    Local,
}

impl Space {
    /// LLVM's number of it, the same for all GPUs.
    pub(super) const fn number(self) -> u32 {
        match self {
            Space::Flat => 0,
            Space::Global => 1,
            Space::Local => 3,
        }
    }
}

impl Kind {
    /// The kind of a dtype in registers: bool is one bit; bf16 and 8-bit floats are storage only, so they are integers
    /// of their bits.
    pub(super) fn of(dtype: DType) -> Kind {
        match dtype {
            DType::Bool => Kind::I1,
            DType::I8 | DType::U8 | DType::F8E4M3 | DType::F8E5M2 | DType::Void => Kind::I8,
            DType::I16 | DType::U16 | DType::BF16 => Kind::I16,
            DType::I32 | DType::U32 => Kind::I32,
            DType::I64 | DType::U64 | DType::Index => Kind::I64,
            DType::F16 => Kind::Half,
            DType::F32 => Kind::Float,
            DType::F64 => Kind::Double,
        }
    }

    /// The kind in memory, where bool is a byte.
    pub(super) fn in_memory(self) -> Kind {
        if self == Kind::I1 { Kind::I8 } else { self }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Kind::I1 => 1,
            Kind::I8 => 8,
            Kind::I16 | Kind::Half | Kind::BFloat => 16,
            Kind::I32 | Kind::Float => 32,
            Kind::I64 | Kind::Double | Kind::Pointer(_) => 64,
        }
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Kind::Half | Kind::BFloat | Kind::Float | Kind::Double)
    }

    pub(super) fn is_int(self) -> bool {
        !self.is_float() && !self.is_pointer()
    }

    pub(super) fn is_pointer(self) -> bool {
        matches!(self, Kind::Pointer(_))
    }
}

/// A value of the function under construction: a scalar if it has one lane, else a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value {
    raw: LLVMValueRef,
    pub(super) kind: Kind,
    pub(super) lanes: u32,
}

/// A basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block(LLVMBasicBlockRef);

const UNNAMED: *const std::ffi::c_char = c"".as_ptr();

/// Builds one function. Everything it returns lives as long as the context.
pub(super) struct Emitter<'context> {
    context: LLVMContextRef,
    module: LLVMModuleRef,
    // Owns the builder that the pointer below refers to.
    owner: inkwell::builder::Builder<'context>,
    builder: LLVMBuilderRef,
    function: LLVMValueRef,
    /// The debug location of the next instructions, if there are locations.
    location: Cell<Option<DILocation<'context>>>,
    /// The scope of atomic operations; `None` for all threads of the system.
    scope: Option<Scope>,
    intrinsics: RefCell<FxHashMap<Overloaded, Intrinsic>>,
}

/// An intrinsic's name, and the types that it is used on.
type Overloaded = (String, SmallVec<[(Kind, u32); 2]>);

/// A declaration.
#[derive(Clone)]
struct Intrinsic {
    callee: LLVMValueRef,
    signature: LLVMTypeRef,
    parameters: SmallVec<[LLVMTypeRef; 6]>,
}

fn mismatch(operation: &str, a: Value, b: Value) -> BackendError {
    BackendError::Compile(format!(
        "{operation} of {:?}×{} and {:?}×{}: the graph of the kernel is not well-formed",
        a.kind, a.lanes, b.kind, b.lanes
    ))
}

// SAFETY of this file: every pointer comes from LLVM and belongs to `context`, which outlives the emitter; operands are
// checked to have the kinds that an instruction takes; the builder is positioned in a block of `function` from `new`
// on.
impl<'context> Emitter<'context> {
    /// Starts the body of an empty function.
    pub(super) fn new(
        context: &'context Context,
        module: &Module<'context>,
        function: FunctionValue<'context>,
        scope: Option<Scope>,
    ) -> Emitter<'context> {
        // Functions that do not unwind need no unwind tables.
        let nounwind = inkwell::attributes::Attribute::get_named_enum_kind_id("nounwind");
        let attribute = context.create_enum_attribute(nounwind, 0);
        function.add_attribute(inkwell::attributes::AttributeLoc::Function, attribute);
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, "entry"));
        Emitter {
            context: context.raw(),
            module: module.as_mut_ptr(),
            builder: builder.as_mut_ptr(),
            owner: builder,
            location: Cell::new(None),
            function: function.as_value_ref(),
            scope,
            intrinsics: RefCell::default(),
        }
    }

    /// Sets the debug location of the next instructions.
    pub(super) fn locate(&self, location: DILocation<'context>) {
        self.location.set(Some(location));
        self.keep_location();
    }

    /// Restores the debug location afterwards: positioning the builder before an instruction takes that instruction's.
    fn keep_location(&self) {
        if let Some(location) = self.location.get() {
            self.owner.set_current_debug_location(location);
        }
    }

    /// Parameter `index` of the function.
    pub(super) fn parameter(&self, index: u32, kind: Kind) -> Result<Value> {
        // SAFETY: see above; the function has this parameter.
        unsafe {
            if index >= LLVMCountParams(self.function) {
                return Err(BackendError::Compile(format!("the kernel has no parameter {index}")));
            }
            let value = Value { raw: LLVMGetParam(self.function, index), kind, lanes: 1 };
            let is_of_kind = LLVMTypeOf(value.raw) == self.type_of(kind, 1);
            if is_of_kind { Ok(value) } else { Err(mismatch("parameter", value, value)) }
        }
    }

    fn type_of(&self, kind: Kind, lanes: u32) -> LLVMTypeRef {
        // SAFETY: see above.
        unsafe {
            let element = match kind {
                Kind::I1 => LLVMInt1TypeInContext(self.context),
                Kind::I8 => LLVMInt8TypeInContext(self.context),
                Kind::I16 => LLVMInt16TypeInContext(self.context),
                Kind::I32 => LLVMInt32TypeInContext(self.context),
                Kind::I64 => LLVMInt64TypeInContext(self.context),
                Kind::Half => LLVMHalfTypeInContext(self.context),
                Kind::BFloat => LLVMBFloatTypeInContext(self.context),
                Kind::Float => LLVMFloatTypeInContext(self.context),
                Kind::Double => LLVMDoubleTypeInContext(self.context),
                Kind::Pointer(space) => LLVMPointerTypeInContext(self.context, space.number()),
            };
            if lanes == 1 { element } else { LLVMVectorType(element, lanes) }
        }
    }

    pub(super) fn undefined(&self, kind: Kind, lanes: u32) -> Value {
        // SAFETY: see above.
        Value { raw: unsafe { LLVMGetUndef(self.type_of(kind, lanes)) }, kind, lanes }
    }

    /// The integer `number`, truncated to the kind, in every lane.
    pub(super) fn int(&self, kind: Kind, lanes: u32, number: i64) -> Value {
        // SAFETY: see above. Bits beyond the width must not be set.
        let mask = if kind.bits() == 64 { u64::MAX } else { (1 << kind.bits()) - 1 };
        let raw = unsafe { LLVMConstInt(self.type_of(kind, 1), number as u64 & mask, 0) };
        self.repeat(Value { raw, kind, lanes: 1 }, lanes)
    }

    /// The float `number` in every lane.
    pub(super) fn float(&self, kind: Kind, lanes: u32, number: f64) -> Value {
        let raw = if number.is_nan() {
            // By its bits: a conversion in C may change the payload of a nan.
            let (bits, int) = match kind {
                Kind::Double => (number.to_bits(), Kind::I64),
                Kind::Float => ((number as f32).to_bits().into(), Kind::I32),
                _ => (tinyspec_ir::float::to_bits(DType::F16, number), Kind::I16),
            };
            // SAFETY: see above; both types have as many bits.
            unsafe { LLVMConstBitCast(LLVMConstInt(self.type_of(int, 1), bits, 0), self.type_of(kind, 1)) }
        } else {
            // SAFETY: see above.
            unsafe { LLVMConstReal(self.type_of(kind, 1), number) }
        };
        self.repeat(Value { raw, kind, lanes: 1 }, lanes)
    }

    /// A constant in every lane.
    fn repeat(&self, constant: Value, lanes: u32) -> Value {
        if lanes == 1 {
            return constant;
        }
        let mut elements = vec![constant.raw; lanes as usize];
        // SAFETY: see above.
        Value { raw: unsafe { LLVMConstVector(elements.as_mut_ptr(), lanes) }, kind: constant.kind, lanes }
    }

    pub(super) fn is_constant(&self, value: Value) -> bool {
        // SAFETY: see above.
        unsafe { LLVMIsConstant(value.raw) != 0 }
    }

    /// The open lane of a constant mask that has exactly one.
    pub(super) fn only_lane(&self, mask: Value) -> Option<u32> {
        if !self.is_constant(mask) {
            return None;
        }
        // SAFETY: a constant vector has so many elements.
        let is_open = |&lane: &u32| unsafe {
            let element = LLVMGetAggregateElement(mask.raw, lane);
            !element.is_null() && LLVMIsNull(element) == 0
        };
        let mut open = (0..mask.lanes).filter(is_open);
        open.next().filter(|_| open.next().is_none())
    }

    /// A vector of these, if they are constants of one kind.
    pub(super) fn constants(&self, elements: &[Value]) -> Option<Value> {
        let first = *elements.first()?;
        let fits = |element: &Value| element.kind == first.kind && element.lanes == 1 && self.is_constant(*element);
        if !elements.iter().all(fits) {
            return None;
        }
        let lanes = elements.len() as u32;
        let mut raw: Vec<_> = elements.iter().map(|element| element.raw).collect();
        // SAFETY: see above.
        Some(Value { raw: unsafe { LLVMConstVector(raw.as_mut_ptr(), lanes) }, kind: first.kind, lanes })
    }

    /// The scalar in every lane.
    pub(super) fn splat(&self, scalar: Value, lanes: u32) -> Result<Value> {
        if scalar.lanes == lanes {
            return Ok(scalar);
        }
        if scalar.lanes != 1 {
            return Err(mismatch("broadcast", scalar, self.undefined(scalar.kind, lanes)));
        }
        if self.is_constant(scalar) {
            return Ok(self.repeat(scalar, lanes));
        }
        let single = self.insert(self.undefined(scalar.kind, lanes), scalar, 0)?;
        self.shuffle(single, single, &vec![0; lanes as usize])
    }

    pub(super) fn insert(&self, vector: Value, element: Value, lane: u32) -> Result<Value> {
        if vector.kind != element.kind || element.lanes != 1 || lane >= vector.lanes {
            return Err(mismatch("insertion", vector, element));
        }
        let index = self.int(Kind::I32, 1, lane.into()).raw;
        // SAFETY: see above.
        let raw = unsafe { LLVMBuildInsertElement(self.builder, vector.raw, element.raw, index, UNNAMED) };
        Ok(Value { raw, ..vector })
    }

    pub(super) fn extract(&self, vector: Value, lane: u32) -> Result<Value> {
        if lane >= vector.lanes {
            return Err(mismatch("extraction", vector, self.int(Kind::I32, 1, lane.into())));
        }
        if vector.lanes == 1 {
            return Ok(vector);
        }
        let index = self.int(Kind::I32, 1, lane.into()).raw;
        // SAFETY: see above.
        let raw = unsafe { LLVMBuildExtractElement(self.builder, vector.raw, index, UNNAMED) };
        Ok(Value { raw, kind: vector.kind, lanes: 1 })
    }

    /// Shuffles the lanes of `a`, followed by those of `b`, into the order of `lanes`.
    pub(super) fn shuffle(&self, a: Value, b: Value, lanes: &[u32]) -> Result<Value> {
        if a.kind != b.kind || a.lanes != b.lanes || a.lanes == 1 || lanes.iter().any(|lane| *lane >= 2 * a.lanes) {
            return Err(mismatch("shuffle", a, b));
        }
        let mut mask: Vec<_> = lanes.iter().map(|lane| self.int(Kind::I32, 1, (*lane).into()).raw).collect();
        // SAFETY: see above.
        let raw = unsafe {
            let mask = LLVMConstVector(mask.as_mut_ptr(), mask.len() as u32);
            // LLVM would treat a vector shuffled with itself as two vectors.
            let b = if a == b && lanes.iter().all(|lane| *lane < a.lanes) {
                LLVMGetPoison(LLVMTypeOf(a.raw))
            } else {
                b.raw
            };
            LLVMBuildShuffleVector(self.builder, a.raw, b, mask, UNNAMED)
        };
        Ok(Value { raw, kind: a.kind, lanes: lanes.len() as u32 })
    }

    /// An integer or float instruction of two operands of equal type.
    pub(super) fn binary(&self, opcode: LLVMOpcode, a: Value, b: Value) -> Result<Value> {
        use LLVMOpcode::*;
        let float = matches!(opcode, LLVMFAdd | LLVMFSub | LLVMFMul | LLVMFDiv | LLVMFRem);
        if a.kind != b.kind || a.lanes != b.lanes || a.kind.is_float() != float || a.kind.is_pointer() {
            return Err(mismatch("arithmetic", a, b));
        }
        // SAFETY: see above.
        Ok(Value { raw: unsafe { LLVMBuildBinOp(self.builder, opcode, a.raw, b.raw, UNNAMED) }, ..a })
    }

    pub(super) fn negate_float(&self, a: Value) -> Result<Value> {
        if !a.kind.is_float() {
            return Err(mismatch("negation", a, a));
        }
        // SAFETY: see above.
        Ok(Value { raw: unsafe { LLVMBuildFNeg(self.builder, a.raw, UNNAMED) }, ..a })
    }

    pub(super) fn compare_ints(&self, predicate: LLVMIntPredicate, a: Value, b: Value) -> Result<Value> {
        if a.kind != b.kind || a.lanes != b.lanes || !a.kind.is_int() {
            return Err(mismatch("comparison", a, b));
        }
        // SAFETY: see above.
        let raw = unsafe { LLVMBuildICmp(self.builder, predicate, a.raw, b.raw, UNNAMED) };
        Ok(Value { raw, kind: Kind::I1, lanes: a.lanes })
    }

    pub(super) fn compare_floats(&self, predicate: LLVMRealPredicate, a: Value, b: Value) -> Result<Value> {
        if a.kind != b.kind || a.lanes != b.lanes || !a.kind.is_float() {
            return Err(mismatch("comparison", a, b));
        }
        // SAFETY: see above.
        let raw = unsafe { LLVMBuildFCmp(self.builder, predicate, a.raw, b.raw, UNNAMED) };
        Ok(Value { raw, kind: Kind::I1, lanes: a.lanes })
    }

    /// `a` where `condition` holds, else `b`; a scalar condition selects whole vectors.
    pub(super) fn select(&self, condition: Value, a: Value, b: Value) -> Result<Value> {
        let fits = condition.lanes == 1 || condition.lanes == a.lanes;
        if a.kind != b.kind || a.lanes != b.lanes || condition.kind != Kind::I1 || !fits {
            return Err(mismatch("selection", a, b));
        }
        // SAFETY: see above.
        Ok(Value { raw: unsafe { LLVMBuildSelect(self.builder, condition.raw, a.raw, b.raw, UNNAMED) }, ..a })
    }

    /// A mask with only the first lane set, which LLVM cannot fold: it compares lane numbers with a count that comes out of empty inline
    /// assembly.
    pub(super) fn first_lane(&self, lanes: u32) -> Result<Value> {
        let (one, constraints) = (self.int(Kind::I32, 1, 1), c"=r,0");
        // SAFETY: the type is that of a function of an integer, the constraints are those of its result and its
        // argument, and the assembly is empty.
        let raw = unsafe {
            let integer = self.type_of(Kind::I32, 1);
            let function = LLVMFunctionType(integer, [integer].as_mut_ptr(), 1, 0);
            let (text, dialect) = (constraints.as_ptr(), LLVMInlineAsmDialect::LLVMInlineAsmDialectATT);
            let mov = LLVMGetInlineAsm(function, c"".as_ptr(), 0, text, constraints.count_bytes(), 0, 0, dialect, 0);
            LLVMBuildCall2(self.builder, function, mov, [one.raw].as_mut_ptr(), 1, UNNAMED)
        };
        let numbers: Vec<Value> = (0..lanes).map(|lane| self.int(Kind::I32, 1, lane.into())).collect();
        let (Some(numbers), count) = (self.constants(&numbers), Value { raw, ..one }) else { return Ok(one) };
        self.compare_ints(LLVMIntPredicate::LLVMIntULT, numbers, self.splat(count, lanes)?)
    }

    /// Converts between kinds for which `opcode` is defined.
    pub(super) fn convert(&self, opcode: LLVMOpcode, a: Value, kind: Kind) -> Result<Value> {
        use LLVMOpcode::*;
        let (from, to) = (a.kind, kind);
        let fits = match opcode {
            LLVMTrunc => from.is_int() && to.is_int() && from.bits() > to.bits(),
            LLVMZExt | LLVMSExt => from.is_int() && to.is_int() && from.bits() < to.bits(),
            LLVMFPTrunc => from.is_float() && to.is_float() && from.bits() > to.bits(),
            LLVMFPExt => from.is_float() && to.is_float() && from.bits() < to.bits(),
            LLVMSIToFP | LLVMUIToFP => from.is_int() && to.is_float(),
            LLVMFPToSI | LLVMFPToUI => from.is_float() && to.is_int(),
            LLVMBitCast => from.bits() == to.bits() && !from.is_pointer() && !to.is_pointer(),
            LLVMPtrToInt => from.is_pointer() && to.is_int(),
            _ => false,
        };
        if !fits {
            return Err(mismatch("conversion", a, self.undefined(kind, a.lanes)));
        }
        // SAFETY: see above.
        let raw = unsafe { LLVMBuildCast(self.builder, opcode, a.raw, self.type_of(kind, a.lanes), UNNAMED) };
        Ok(Value { raw, kind, lanes: a.lanes })
    }

    /// The same bits as `lanes` elements of `kind`.
    pub(super) fn reinterpret(&self, a: Value, kind: Kind, lanes: u32) -> Result<Value> {
        if a.kind.bits() * a.lanes != kind.bits() * lanes || a.kind.is_pointer() || kind.is_pointer() {
            return Err(mismatch("reinterpretation", a, self.undefined(kind, lanes)));
        }
        let to = self.type_of(kind, lanes);
        // SAFETY: see above.
        Ok(Value {
            raw: unsafe { LLVMBuildCast(self.builder, LLVMOpcode::LLVMBitCast, a.raw, to, UNNAMED) },
            kind,
            lanes,
        })
    }

    /// Calls an intrinsic that is overloaded on the types of `overloads`; the result has `kind` and `lanes`, or is void.
    pub(super) fn intrinsic(
        &self,
        name: &str,
        overloads: &[(Kind, u32)],
        arguments: &[Value],
        result: Option<(Kind, u32)>,
    ) -> Result<Option<Value>> {
        let unknown = || BackendError::Compile(format!("this LLVM has no `{name}` as it is used here"));
        let mut arguments: SmallVec<[LLVMValueRef; 6]> = arguments.iter().map(|value| value.raw).collect();
        let Intrinsic { callee, signature, parameters } = self.declared(name, overloads).ok_or_else(unknown)?;
        // SAFETY: see above. The declaration's own parameter types are compared with the arguments' before the call.
        unsafe {
            if !arguments.iter().map(|argument| LLVMTypeOf(*argument)).eq(parameters) {
                return Err(unknown());
            }
            let count = arguments.len() as u32;
            let raw = LLVMBuildCall2(self.builder, signature, callee, arguments.as_mut_ptr(), count, UNNAMED);
            Ok(result.map(|(kind, lanes)| Value { raw, kind, lanes }))
        }
    }

    /// The declaration of an intrinsic, cached because LLVM's lookup by name takes as long as emitting ten
    /// instructions.
    fn declared(&self, name: &str, overloads: &[(Kind, u32)]) -> Option<Intrinsic> {
        let key = (name.into(), overloads.into());
        if let Some(known) = self.intrinsics.borrow().get(&key) {
            return Some(known.clone());
        }
        let mut types: Vec<_> = overloads.iter().map(|(kind, lanes)| self.type_of(*kind, *lanes)).collect();
        // SAFETY: see above.
        let declared = unsafe {
            let id = LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            if id == 0 {
                return None;
            }
            let callee = LLVMGetIntrinsicDeclaration(self.module, id, types.as_mut_ptr(), types.len());
            let parameters = (0..LLVMCountParams(callee)).map(|index| LLVMTypeOf(LLVMGetParam(callee, index)));
            Intrinsic { callee, signature: LLVMGlobalGetValueType(callee), parameters: parameters.collect() }
        };
        self.intrinsics.borrow_mut().insert(key, declared.clone());
        Some(declared)
    }

    /// An intrinsic from values of one type to that type.
    pub(super) fn call(&self, name: &str, arguments: &[Value]) -> Result<Value> {
        let Some(first) = arguments.first() else { return Err(BackendError::Compile(format!("`{name}` of nothing"))) };
        let shape = (first.kind, first.lanes);
        let result = self.intrinsic(name, &[shape], arguments, Some(shape))?;
        result.ok_or_else(|| BackendError::Compile(format!("`{name}` has no value")))
    }

    /// The number of parameters of an intrinsic in this version of LLVM.
    pub(super) fn parameters_of(&self, name: &str, overloads: &[(Kind, u32)]) -> u32 {
        self.declared(name, overloads).map_or(0, |declared| declared.parameters.len() as u32)
    }
}
