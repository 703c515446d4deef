//! Atomic additions. If a machine has no instruction for them, they are compare-and-swap loops. GPUs swap at least 32
//! bits, so narrower numbers use the word that contains them.

use super::emit::{Kind, Result, Space, Value};
use super::gpu::amdgpu;
use super::{Family, Renderer};
use llvm_sys::LLVMIntPredicate::{LLVMIntUGE, LLVMIntUGT, LLVMIntULT};
use llvm_sys::LLVMOpcode::{
    LLVMAdd, LLVMAnd, LLVMBitCast, LLVMFAdd, LLVMFMul, LLVMLShr, LLVMOr, LLVMPtrToInt, LLVMShl, LLVMSub, LLVMTrunc,
    LLVMUIToFP, LLVMXor, LLVMZExt,
};
use tinyspec_ir::float::EightBits;
use tinyspec_ir::{DType, NodeId};

/// The narrowest compare-and-swap of GPUs.
const WORD: Kind = Kind::I32;

/// The memory that is read and swapped.
struct Place {
    pointer: Value,
    kind: Kind,
    /// The bit position of the number, if it is narrower.
    shift: Option<Value>,
}

impl Renderer<'_, '_> {
    /// Adds lane by lane, so that equal addresses in a vector all count.
    pub(super) fn atomic_add(&mut self, node: NodeId) -> Result<()> {
        let sources = self.graph.sources(node);
        let (place, source) = (sources[0], sources[1]);
        let (address, dtype) = (self.address(place)?, self.graph.dtype(source));
        if matches!(dtype, DType::Index | DType::Void) {
            return Err(self.unsupported(node, "memory holds no such values"));
        }
        let lanes = self.lanes(source)?.max(address.pointer.lanes);
        let value = self.value_in(source, lanes)?;
        let gate = match sources.get(2) {
            Some(gate) => Some(self.value_in(*gate, lanes)?),
            None => None,
        };
        let size = Kind::of(address.dtype).in_memory();
        for lane in 0..lanes {
            let element = self.emit.extract(value, lane)?;
            let pointer = if address.pointer.lanes > 1 {
                self.emit.extract(address.pointer, lane)?
            } else {
                let lane = self.emit.int(Kind::I64, 1, lane.into());
                self.emit.offset(address.pointer, lane, size)?
            };
            match gate {
                Some(gate) => {
                    let gate = self.emit.extract(gate, lane)?;
                    self.only_if(gate, |renderer| renderer.add_to(pointer, element, dtype))?;
                }
                None => self.add_to(pointer, element, dtype)?,
            }
        }
        Ok(())
    }

    fn add_to(&mut self, to: Value, value: Value, dtype: DType) -> Result<()> {
        match dtype {
            DType::Bool => self.emit.atomic_or(to, self.write_bools(Kind::I1, value)?),
            _ if self.adds_in_memory(dtype) => self.emit.atomic_add(to, value),
            _ => self.exchange_sum(to, value, dtype),
        }
    }

    /// Whether LLVM has an instruction for it, or emits a loop that reads atomically.
    fn adds_in_memory(&self, dtype: DType) -> bool {
        let is_word = dtype.size() as u32 * 8 >= WORD.bits();
        match self.family {
            Family::Cpu => is_word || dtype.is_int(),
            Family::Nvptx => is_word,
            Family::Amdgpu => is_word && (dtype != DType::F64 || amdgpu::adds_doubles(self.target)),
        }
    }

    /// Adds by a compare-and-swap loop.
    fn exchange_sum(&mut self, to: Value, value: Value, dtype: DType) -> Result<()> {
        let bits = match dtype.size() {
            1 => Kind::I8,
            2 => Kind::I16,
            4 => Kind::I32,
            _ => Kind::I64,
        };
        let place = match self.family {
            Family::Nvptx | Family::Amdgpu if bits.bits() < WORD.bits() => self.word_around(to)?,
            _ => Place { pointer: to, kind: bits, shift: None },
        };
        let term = self.widen(value, dtype)?;
        let first = self.first_read(&place)?;
        let (before, again, after) = (self.emit.block(), self.emit.new_block(), self.emit.new_block());
        self.emit.jump(again);
        self.emit.enter(again);
        let old = self.emit.phi(place.kind, 1);
        self.emit.arrive(old, first, before)?;
        let number = self.emit.reinterpret(self.taken_from(&place, old, bits)?, Kind::of(dtype), 1)?;
        let operation = if dtype.is_float() { LLVMFAdd } else { LLVMAdd };
        let sum = self.emit.binary(operation, self.widen(number, dtype)?, term)?;
        let sum = self.emit.reinterpret(self.narrow(sum, dtype)?, bits, 1)?;
        let (found, done) = self.emit.compare_exchange(place.pointer, old, self.put_into(&place, old, sum)?)?;
        self.emit.arrive(old, found, self.emit.block())?;
        self.emit.branch(done, after, again)?;
        self.emit.enter(after);
        Ok(())
    }

    /// A first guess of the old value. On AMD GPUs, an atomic load of LOCAL memory is not distinguished from any other,
    /// so it is read by a compare-and-swap of 0 for 0.
    fn first_read(&self, place: &Place) -> Result<Value> {
        if matches!(place.pointer.kind, Kind::Pointer(Space::Local)) {
            let zero = self.emit.int(place.kind, 1, 0);
            return Ok(self.emit.compare_exchange(place.pointer, zero, zero)?.0);
        }
        self.emit.atomic_load(place.pointer, place.kind)
    }

    /// The aligned word that holds a narrower number.
    fn word_around(&self, to: Value) -> Result<Place> {
        let (emit, int) = (&self.emit, |number: i64| self.emit.int(Kind::I64, 1, number));
        let bytes = emit.binary(LLVMAnd, emit.convert(LLVMPtrToInt, to, Kind::I64)?, int(3))?;
        let pointer = emit.offset(to, emit.binary(LLVMSub, int(0), bytes)?, Kind::I8)?;
        let shift = emit.binary(LLVMShl, emit.convert(LLVMTrunc, bytes, WORD)?, emit.int(WORD, 1, 3))?;
        Ok(Place { pointer, kind: WORD, shift: Some(shift) })
    }

    /// Extracts the number's bits from the word that was read.
    fn taken_from(&self, place: &Place, read: Value, bits: Kind) -> Result<Value> {
        match place.shift {
            None => Ok(read),
            Some(shift) => self.emit.convert(LLVMTrunc, self.emit.binary(LLVMLShr, read, shift)?, bits),
        }
    }

    /// The word to write: the number's new bits, and the others unchanged.
    fn put_into(&self, place: &Place, read: Value, new: Value) -> Result<Value> {
        let Some(shift) = place.shift else { return Ok(new) };
        let (emit, kind) = (&self.emit, place.kind);
        let mask = emit.binary(LLVMShl, emit.int(kind, 1, (1 << new.kind.bits()) - 1), shift)?;
        let others = emit.binary(LLVMAnd, read, emit.binary(LLVMXor, mask, emit.int(kind, 1, -1))?)?;
        emit.binary(LLVMOr, others, emit.binary(LLVMShl, emit.convert(LLVMZExt, new, kind)?, shift)?)
    }

    /// Converts floats of at most 16 bits to f32; other numbers are unchanged.
    fn widen(&self, value: Value, dtype: DType) -> Result<Value> {
        match EightBits::of(dtype) {
            _ if dtype.is_int() || dtype.size() > 2 => Ok(value),
            Some(layout) => self.decode(value, &layout),
            None => self.convert(value, dtype, DType::F32),
        }
    }

    /// Rounds f32 to floats of at most 16 bits; other numbers are unchanged.
    fn narrow(&self, value: Value, dtype: DType) -> Result<Value> {
        match EightBits::of(dtype) {
            _ if dtype.is_int() || dtype.size() > 2 => Ok(value),
            Some(layout) => self.encode(value, &layout),
            None => self.convert(value, DType::F32, dtype),
        }
    }

    fn decode(&self, value: Value, format: &EightBits) -> Result<Value> {
        let (emit, int) = (&self.emit, |number: i128| self.emit.int(Kind::I32, 1, number as i64));
        let code = emit.convert(LLVMZExt, value, Kind::I32)?;
        let magnitude = emit.binary(LLVMAnd, code, int(0x7f))?;
        // The fields move to their positions in f32, and the exponent is rebiased; a subnormal is a count of units.
        let shifted = emit.binary(LLVMShl, magnitude, int(23 - format.mantissa))?;
        let normal = emit.binary(LLVMAdd, shifted, int((127 - format.bias) << 23))?;
        let unit = emit.float(Kind::Float, 1, 2f64.powi((1 - format.bias - format.mantissa) as i32));
        let units = emit.binary(LLVMFMul, emit.convert(LLVMUIToFP, magnitude, Kind::Float)?, unit)?;
        let units = emit.convert(LLVMBitCast, units, Kind::I32)?;
        let is_subnormal = emit.compare_ints(LLVMIntULT, magnitude, int(1 << format.mantissa))?;
        let finite = emit.select(is_subnormal, units, normal)?;
        let (infinity, nan) = (int(0x7f80_0000), int(0x7fc0_0000));
        let is_overflow = emit.compare_ints(LLVMIntUGE, magnitude, int(format.overflow))?;
        let is_nan = emit.compare_ints(LLVMIntUGT, magnitude, int(format.overflow.min(format.nan - 1)))?;
        let bits = emit.select(is_nan, nan, emit.select(is_overflow, infinity, finite)?)?;
        let sign = emit.binary(LLVMShl, emit.binary(LLVMAnd, code, int(0x80))?, int(24))?;
        emit.convert(LLVMBitCast, emit.binary(LLVMOr, bits, sign)?, Kind::Float)
    }

    fn encode(&self, value: Value, format: &EightBits) -> Result<Value> {
        let (emit, int) = (&self.emit, |number: i128| self.emit.int(Kind::I32, 1, number as i64));
        let bits = emit.convert(LLVMBitCast, value, Kind::I32)?;
        let magnitude = emit.binary(LLVMAnd, bits, int(0x7fff_ffff))?;
        // Half a unit less one, and the last kept bit, make ties go to even; a carry moves into the exponent by itself.
        let dropped = 23 - format.mantissa;
        let last = emit.binary(LLVMAnd, emit.binary(LLVMLShr, magnitude, int(dropped))?, int(1))?;
        let half = emit.binary(LLVMAdd, last, int((1 << (dropped - 1)) - 1))?;
        let rounded = emit.binary(LLVMLShr, emit.binary(LLVMAdd, magnitude, half)?, int(dropped))?;
        let normal = emit.binary(LLVMSub, rounded, int((127 - format.bias) << format.mantissa))?;
        // Below the least normal, a sum with 2^23 units leaves the rounded count of units in the low bits.
        let shift = emit.float(Kind::Float, 1, 2f64.powi((1 - format.bias - format.mantissa + 23) as i32));
        let sum = emit.binary(LLVMFAdd, emit.convert(LLVMBitCast, magnitude, Kind::Float)?, shift)?;
        let sum = emit.convert(LLVMBitCast, sum, Kind::I32)?;
        let subnormal = emit.binary(LLVMSub, sum, emit.convert(LLVMBitCast, shift, Kind::I32)?)?;
        let is_subnormal = emit.compare_ints(LLVMIntULT, magnitude, int((128 - format.bias) << 23))?;
        let finite = emit.select(is_subnormal, subnormal, normal)?;
        let is_large = emit.compare_ints(LLVMIntUGT, finite, int(format.greatest))?;
        let bounded = emit.select(is_large, int(format.overflow), finite)?;
        let is_nan = emit.compare_ints(LLVMIntUGT, magnitude, int(0x7f80_0000))?;
        let code = emit.select(is_nan, int(format.nan), bounded)?;
        let sign = emit.binary(LLVMAnd, emit.binary(LLVMLShr, bits, int(24))?, int(0x80))?;
        emit.convert(LLVMTrunc, emit.binary(LLVMOr, code, sign)?, Kind::I8)
    }
}
