//! The exact remainder of two floats. LLVM's code for GPUs is inexact, since it rounds the quotient.

use super::super::Renderer;
use super::super::emit::{Kind, Result, Value};
use llvm_sys::LLVMOpcode::{LLVMFPExt, LLVMFPTrunc};
use tinyspec_ir::NodeId;

/// For doubles `%0` and `%1`, with the sign of the first; nan if undefined.
///
/// Both are an integer below 2^53 times a power of two. The remainder so far is shifted left by 11 bits, for which a
/// word has room, and reduced, until the shifts add up to the difference of the exponents.
const REMAINDER: &str = "
entry:
  %x = call double @llvm.fabs.f64(double %0)
  %y = call double @llvm.fabs.f64(double %1)
  %finite = fcmp olt double %x, 0x7FF0000000000000
  %some = fcmp ogt double %y, 0.0
  %defined = and i1 %finite, %some
  %less = fcmp olt double %x, %y
  br i1 %defined, label %compare, label %done
compare:
  br i1 %less, label %done, label %split
split:
  %xbits = bitcast double %x to i64
  %ybits = bitcast double %y to i64
  %xbiased = lshr i64 %xbits, 52
  %ybiased = lshr i64 %ybits, 52
  %xfraction = and i64 %xbits, 4503599627370495
  %yfraction = and i64 %ybits, 4503599627370495
  %xsubnormal = icmp eq i64 %xbiased, 0
  %ysubnormal = icmp eq i64 %ybiased, 0
  %xwhole = or i64 %xfraction, 4503599627370496
  %ywhole = or i64 %yfraction, 4503599627370496
  %xmantissa = select i1 %xsubnormal, i64 %xfraction, i64 %xwhole
  %ymantissa = select i1 %ysubnormal, i64 %yfraction, i64 %ywhole
  %xexponent = select i1 %xsubnormal, i64 1, i64 %xbiased
  %yexponent = select i1 %ysubnormal, i64 1, i64 %ybiased
  %distance = sub i64 %xexponent, %yexponent
  %first = urem i64 %xmantissa, %ymantissa
  %apart = icmp sgt i64 %distance, 0
  br i1 %apart, label %shift, label %join
shift:
  %rest = phi i64 [ %first, %split ], [ %next, %shift ]
  %left = phi i64 [ %distance, %split ], [ %still, %shift ]
  %near = icmp slt i64 %left, 11
  %by = select i1 %near, i64 %left, i64 11
  %shifted = shl i64 %rest, %by
  %next = urem i64 %shifted, %ymantissa
  %still = sub i64 %left, %by
  %again = icmp sgt i64 %still, 0
  br i1 %again, label %shift, label %join
join:
  %mantissa = phi i64 [ %first, %split ], [ %next, %shift ]
  %power = sub i64 %yexponent, 1075
  %half = ashr i64 %power, 1
  %other = sub i64 %power, %half
  %halfbiased = add i64 %half, 1023
  %otherbiased = add i64 %other, 1023
  %halfbits = shl i64 %halfbiased, 52
  %otherbits = shl i64 %otherbiased, 52
  %halffactor = bitcast i64 %halfbits to double
  %otherfactor = bitcast i64 %otherbits to double
  %number = uitofp i64 %mantissa to double
  %scaled = fmul double %number, %halffactor
  %remainder = fmul double %scaled, %otherfactor
  br label %done
done:
  %magnitude = phi double [ 0x7FF8000000000000, %entry ], [ %x, %compare ], [ %remainder, %join ]
  %bits = bitcast double %0 to i64
  %negative = icmp slt i64 %bits, 0
  %negated = fneg double %magnitude
  %value = select i1 %negative, double %negated, double %magnitude
  ret double %value";

impl Renderer<'_, '_> {
    /// The remainder of a division that truncates.
    pub(in super::super) fn remainder_by_words(&mut self, node: NodeId, a: Value, b: Value) -> Result<Value> {
        let function = self.custom_function(node, REMAINDER, (Kind::Double, 1), &[(Kind::Double, 1); 2])?;
        let is_narrow = a.kind != Kind::Double;
        let mut all = self.emit.undefined(a.kind, a.lanes);
        for lane in 0..a.lanes {
            let mut operands = [self.emit.extract(a, lane)?, self.emit.extract(b, lane)?];
            if is_narrow {
                for operand in &mut operands {
                    *operand = self.emit.convert(LLVMFPExt, *operand, Kind::Double)?;
                }
            }
            let mut value = self.emit.call_named(&function, &operands, Kind::Double, 1)?;
            if is_narrow {
                // It has no more bits than the divisor.
                value = self.emit.convert(LLVMFPTrunc, value, a.kind)?;
            }
            all = if a.lanes == 1 { value } else { self.emit.insert(all, value, lane)? };
        }
        Ok(all)
    }
}
