//! The op table: one row per op of the spec, from which the enum, its names, arity and category checks,
//! the derived-property rules and the docs are generated.
//!
//! Op numbers are explicit and append-only, so that encoded graphs keep their meaning.

/// The group of the spec an op belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Category {
    /// Leaf nodes.
    Source,
    /// View, indexing and reinterpretation; no arithmetic.
    Movement,
    /// Collapses axes to size 1.
    Reduce,
    /// Function abstraction.
    Call,
    /// Reads into a new anonymous buffer.
    Load,
    /// Writes: observable side effects.
    Store,
    /// Execution order.
    Ordering,
    /// Per element, one source.
    Unary,
    /// Per element, two sources.
    Binary,
    /// Per element, three sources.
    Ternary,
    /// Identity on data.
    Marker,
    /// Generated code only.
    Codegen,
}

/// What an op's argument must be (see [`crate::Arg`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ArgKind {
    /// No argument.
    None,
    /// `Arg::Param`.
    Param,
    /// `Arg::Buffer`.
    Buffer,
    /// `Arg::Const`.
    Const,
    /// `Arg::Bytes`.
    Bytes,
    /// `Arg::Axes`.
    Axes,
    /// `Arg::Flags`.
    Flags,
    /// `Arg::DType`.
    DType,
    /// `Arg::Reduce`.
    Reduce,
    /// `Arg::Number`.
    Number,
    /// `Arg::Load`.
    Load,
    /// `Arg::None` or `Arg::Nontemporal`.
    Store,
    /// `Arg::None` or `Arg::Stored`.
    Contiguous,
    /// `Arg::Range`.
    Range,
    /// `Arg::Text`.
    Text,
}

/// How the dtype of a node derives from its sources and argument ("Derived Properties").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DTypeRule {
    /// Named by the argument.
    Argument,
    /// That of the given source.
    Source(u8),
    /// Always this one.
    Bool,
    /// Always `index`.
    Index,
    /// Always `u8`.
    U8,
    /// No value.
    Void,
    /// The element of a Tuple or of a Function's result.
    Element,
}

/// How the shape of a node derives from its sources and argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ShapeRule {
    /// The shape `()`.
    Scalar,
    /// That of the given source.
    Source(u8),
    /// Right-aligned broadcast of all sources.
    Broadcast,
    /// Computed by a rule of its own.
    Own,
}

/// How min_max derives from the sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum IntervalRule {
    /// The range of the dtype.
    DType,
    /// That of the given source.
    Source(u8),
    /// Computed by a rule of its own.
    Own,
    /// Nothing: the node has no value.
    None,
}

macro_rules! op_table {
    ($($number:literal $name:ident $text:literal $category:ident [$low:literal, $high:expr] $arg:ident
        $dtype:expr, $shape:expr, $interval:expr; $doc:literal)*) => {
        /// Every op of the dialect.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Op { $(#[doc = $doc] $name = $number,)* }

        impl Op {
            /// All ops, in the order of the table.
            pub const ALL: &'static [Op] = &[$(Op::$name,)*];

            /// The row of this op.
            pub const fn info(self) -> &'static OpInfo {
                use DTypeRule as D; use ShapeRule as S; use IntervalRule as I;
                match self { $(Op::$name => const { &OpInfo {
                    op: Op::$name, name: $text, category: Category::$category, sources: ($low, $high), arg: ArgKind::$arg,
                    dtype: { #[allow(unused_imports)] use D::*; $dtype }, shape: { #[allow(unused_imports)] use S::*; $shape },
                    interval: { #[allow(unused_imports)] use I::*; $interval }, doc: $doc,
                } },)* }
            }

            /// The op with this number, if there is one.
            pub const fn from_number(number: u8) -> Option<Op> {
                match number { $($number => Some(Op::$name),)* _ => None }
            }

            /// The op with this name in the text form.
            pub fn from_name(name: &str) -> Option<Op> {
                match name { $($text => Some(Op::$name),)* _ => None }
            }
        }
    };
}

/// A row of the op table.
#[derive(Debug)]
pub struct OpInfo {
    /// The op itself.
    pub op: Op,
    /// Its name in the text form.
    pub name: &'static str,
    /// Its group.
    pub category: Category,
    /// Least and greatest number of sources.
    pub sources: (usize, usize),
    /// What its argument must be.
    pub arg: ArgKind,
    /// Rule for the dtype.
    pub dtype: DTypeRule,
    /// Rule for the shape.
    pub shape: ShapeRule,
    /// Rule for min_max.
    pub interval: IntervalRule,
    /// The semantics, in a sentence.
    pub doc: &'static str,
}

const ANY: usize = usize::MAX;

// number, variant, name, category, [least, greatest] sources, argument, dtype rule, shape rule, min_max rule; semantics
op_table! {
    0  Param "param" Source [1, 3] Param Argument, Own, Own; "Placeholder of shape `s`, substituted in Function. Sources: (s) or, for a named dim, (s, min, max)."
    1  Buffer "buffer" Source [1, 1] Buffer Argument, Own, DType; "Concrete buffer slot with shape `s`."
    2  Const "const" Source [0, 0] Const Argument, Scalar, Own; "A scalar constant of shape ()."
    3  Binary "binary" Source [0, 0] Bytes U8, Own, DType; "Raw binary data: dtype u8, shape (len)."

    10 Permute "permute" Movement [1, 1] Axes Source(0), Own, Source(0); "Reorder axes."
    11 Flip "flip" Movement [1, 1] Flags Source(0), Own, Source(0); "Reverse along flagged axes."
    12 Reshape "reshape" Movement [2, 2] None Source(0), Own, Source(0); "Reinterpret in row-major order: (T, s')."
    13 Expand "expand" Movement [2, 2] None Source(0), Own, Source(0); "Broadcast size-1 axes: (T, s')."
    14 Pad "pad" Movement [3, 3] None Source(0), Own, Own; "Place T at offset o in an output of shape s' that is 0 elsewhere: (T, o, s')."
    15 Shrink "shrink" Movement [3, 3] None Source(0), Own, Source(0); "Keep s' elements from offset o on per axis: (T, o, s')."
    16 Index "index" Movement [1, ANY] None Source(0), Own, Own; "Index from the left; a () index removes the dim, a (k,) index makes it k. Outside the axis a read gives 0, a write does nothing."
    17 Stack "stack" Movement [0, ANY] None Source(0), Own, Own; "Join along a new leading axis. Without sources: the empty shape of a scalar."
    18 Bitcast "bitcast" Movement [1, 1] DType Argument, Own, DType; "Reinterpret storage; the last dim scales by the size ratio."
    19 Replicated "replicated" Movement [1, 1] Number Source(0), Own, Source(0); "T is sharded on axis k and all shards are equal: the axis is dropped."

    20 Reduce "reduce" Reduce [1, ANY] Reduce Source(0), Own, Own; "Reduce along axes (kept at size 1) or Ranges."

    30 Function "function" Call [1, ANY] None Element, Own, None; "(body, args...): substitute each Param k in the Tuple body by argument k."
    31 Call "call" Call [1, ANY] None Void, Scalar, None; "(body, buffers...): opaque invocation of a kernel."
    32 Tuple "tuple" Call [0, ANY] None Void, Scalar, None; "Pack values: the body of a Function."
    33 GetTuple "get_tuple" Call [1, 1] Number Element, Own, Own; "Element k of a Tuple or of a Function's result."

    40 Load "load" Load [1, 3] Load Source(0), Source(0), Own; "(buf, alt?, gate?): read into a new anonymous buffer; with a false gate memory is untouched and the value is alt."
    41 Store "store" Store [2, 3] Store Void, Scalar, None; "(buf, val, gate?): write val; with a false gate nothing is written."

    50 Range "range" Ordering [1, 1] Range Index, Scalar, Own; "Iterator from 0 to bound (exclusive)."
    51 End "end" Ordering [2, 2] None Void, Scalar, None; "(body, range): close a Range loop."
    52 After "after" Ordering [1, ANY] None Source(0), Source(0), Own; "(buf, deps...): buf, once deps have run."
    53 Group "group" Ordering [0, ANY] None Void, Scalar, None; "Several effects as one node, unordered."
    54 Sink "sink" Ordering [0, ANY] None Void, Scalar, None; "The root of side effects."
    55 Linear "linear" Ordering [0, ANY] None Void, Scalar, None; "A linear instruction sequence."

    60 Recip "recip" Unary [1, 1] None Source(0), Source(0), DType; "1/x."
    61 Trunc "trunc" Unary [1, 1] None Source(0), Source(0), Own; "Round toward zero."
    62 Cast "cast" Unary [1, 1] DType Argument, Source(0), Own; "Convert to another dtype."
    63 Exp2 "exp2" Unary [1, 1] None Source(0), Source(0), DType; "2^x."
    64 Log2 "log2" Unary [1, 1] None Source(0), Source(0), DType; "Binary logarithm."
    65 Sin "sin" Unary [1, 1] None Source(0), Source(0), DType; "Sine."
    66 Sqrt "sqrt" Unary [1, 1] None Source(0), Source(0), DType; "Square root."

    70 Add "add" Binary [2, 2] None Source(0), Broadcast, Own; "a + b."
    71 Mul "mul" Binary [2, 2] None Source(0), Broadcast, Own; "a * b."
    72 Max "max" Binary [2, 2] None Source(0), Broadcast, Own; "The larger one; nan if either is nan."
    73 Mod "mod" Binary [2, 2] None Source(0), Broadcast, Own; "Floored remainder; x mod 0 = x."
    74 Idiv "idiv" Binary [2, 2] None Source(0), Broadcast, Own; "Floored quotient; x / 0 = 0."
    75 CmpLt "cmplt" Binary [2, 2] None Bool, Broadcast, Own; "a < b."
    76 CmpNe "cmpne" Binary [2, 2] None Bool, Broadcast, Own; "a != b."
    77 Xor "xor" Binary [2, 2] None Source(0), Broadcast, Own; "Bitwise exclusive or."
    78 Or "or" Binary [2, 2] None Source(0), Broadcast, Own; "Bitwise or."
    79 And "and" Binary [2, 2] None Source(0), Broadcast, Own; "Bitwise and."
    80 Shr "shr" Binary [2, 2] None Source(0), Broadcast, Own; "Shift right; arithmetic for signed types. A count >= width gives 0 or the sign."
    81 Shl "shl" Binary [2, 2] None Source(0), Broadcast, Own; "Shift left. A count >= width gives 0."
    82 Div "div" Binary [2, 2] None Source(0), Broadcast, DType; "a / b, correctly rounded (floats)."
    83 Pow "pow" Binary [2, 2] None Source(0), Broadcast, DType; "a ^ b (floats)."
    84 Threefry "threefry" Binary [2, 2] None Source(0), Broadcast, DType; "Threefry-2x32, 20 rounds: (counter u64, key u64) -> u64."

    90 Where "where" Ternary [3, 3] None Source(1), Broadcast, Own; "a where p, else b: (p, a, b)."
    91 Mulacc "mulacc" Ternary [3, 3] None Source(0), Broadcast, Own; "a * b + c in one rounding where the target can."

    100 Contiguous "contiguous" Marker [1, 1] Contiguous Source(0), Source(0), Source(0); "Force a contiguous layout."
    101 ContiguousBackward "contiguous_backward" Marker [1, 1] None Source(0), Source(0), Source(0); "Force a contiguous layout in the backward pass."
    102 Detach "detach" Marker [1, 1] None Source(0), Source(0), Source(0); "Stops gradient propagation."

    110 Barrier "barrier" Codegen [0, ANY] None Void, Scalar, None; "Synchronise the threads of a workgroup."
    111 Ins "ins" Codegen [0, ANY] Text Source(0), Source(0), DType; "A single machine instruction."
    112 Special "special" Codegen [1, 1] Text Index, Scalar, Own; "A thread or workgroup index, such as gidx0."
    113 If "if" Codegen [1, 1] None Void, Scalar, None; "Begin conditional execution."
    114 Endif "endif" Codegen [1, 1] None Void, Scalar, None; "End conditional execution."
    115 Wmma "wmma" Codegen [3, 3] Text Source(2), Broadcast, DType; "(A, B, acc): acc + A · B of words. Those of u32 hold two numbers: of i16 to i32, which wraps; of bf16 to f32, the upper ones first, each product and sum rounded to nearest together, and subnormal numbers are 0. Those of i32 hold four bytes, of A unsigned, of B signed, to i32, which wraps."
    116 Custom "custom" Codegen [1, ANY] Text Source(0), Broadcast, DType; "(value, args...): value, by code in the renderer's language over the args; where there is none, value itself."
    117 AtomicAdd "atomic_add" Codegen [2, 3] None Void, Scalar, None; "(idx, val, gate?): adds val to the element at idx, atomically."
    118 CustomFunction "custom_function" Codegen [0, ANY] Text Void, Scalar, None; "(made, updated, meta...): code from outside of the language, found by its name and invoked by Call; or (kernel,): a kernel written by hand."
    119 Program "program" Codegen [1, 3] None Void, Scalar, None; "Compiled kernel: (linear, source, binary)."
    120 Source "source" Codegen [0, 0] Text Void, Scalar, None; "Rendered source code."
}

impl Op {
    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The group of the spec.
    pub const fn category(self) -> Category {
        self.info().category
    }

    /// Whether it is applied per element, with broadcasting.
    pub const fn is_elementwise(self) -> bool {
        matches!(self.category(), Category::Unary | Category::Binary | Category::Ternary)
            || matches!(self, Op::Wmma | Op::Custom)
    }

    /// Whether it is a view of one source's elements: they are rearranged, and may be padded with 0.
    pub const fn is_view(self) -> bool {
        matches!(self, Op::Permute | Op::Flip | Op::Reshape | Op::Expand | Op::Pad | Op::Shrink)
    }

    /// Whether it has effects, which the verifiers require to be ordered.
    pub const fn has_effect(self) -> bool {
        matches!(self, Op::Store | Op::AtomicAdd | Op::Barrier | Op::Call | Op::Ins)
    }

    /// Whether `a op b == b op a`, bit for bit.
    pub const fn is_commutative(self) -> bool {
        matches!(self, Op::Add | Op::Mul | Op::Max | Op::Xor | Op::Or | Op::And | Op::CmpNe)
    }
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
