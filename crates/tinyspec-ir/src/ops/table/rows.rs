//! The rows, a family after the other.

/// Hands every row of the method table to a callback macro; see [`mod@crate::ops::table`].
#[macro_export]
macro_rules! for_each_method {
    ($callback:ident) => { $callback! {
        /// Sum with broadcasting.
        add(x: tensor, other: tensor) -> tensor = arithmetic::add;
        /// Difference.
        #[doc(alias("subtract"))]
        sub(x: tensor, other: tensor) -> tensor = arithmetic::sub;
        /// Product, element by element.
        #[doc(alias("multiply"))]
        mul(x: tensor, other: tensor) -> tensor = arithmetic::mul;
        /// Quotient in floats.
        #[doc(alias("divide", "true_divide"))]
        div(x: tensor, other: tensor) -> tensor = arithmetic::div;
        /// Quotient of integers; `rounding` is `"floor"` or `"trunc"`.
        #[doc(alias("floor_divide"))]
        idiv(x: tensor, other: tensor, rounding: text) -> tensor = arithmetic::idiv;
        /// Remainder of the quotient that `rounding` names.
        imod(x: tensor, other: tensor, rounding: text) -> tensor = arithmetic::imod;
        /// Floored remainder; by 0 it is nan of floats.
        #[doc(alias("remainder"))]
        modulo(x: tensor, other: tensor) -> tensor = arithmetic::modulo;
        /// Remainder with the sign of the dividend; by 0 it is nan of floats.
        fmod(x: tensor, other: tensor) -> tensor = arithmetic::fmod;
        /// Power, in floats.
        #[doc(alias("float_power", "powf", "powi"))]
        pow(x: tensor, other: tensor) -> tensor = arithmetic::pow;
        /// The larger one.
        maximum(x: tensor, other: tensor) -> tensor = arithmetic::maximum;
        /// The smaller one.
        minimum(x: tensor, other: tensor) -> tensor = arithmetic::minimum;
        /// The larger one, and the other one of nan.
        fmax(x: tensor, other: tensor) -> tensor = logical::fmax;
        /// The smaller one, and the other one of nan.
        fmin(x: tensor, other: tensor) -> tensor = logical::fmin;
        /// Negation.
        #[doc(alias("negative"))]
        neg(x: tensor) -> tensor = arithmetic::neg;
        /// Bitwise complement.
        #[doc(alias("bitwise_not"))]
        not(x: tensor) -> tensor = arithmetic::not;
        /// `[x = 0]`.
        logical_not(x: tensor) -> tensor = arithmetic::logical_not;
        /// `[x != 0 and y != 0]`.
        logical_and(x: tensor, other: tensor) -> tensor = logical::logical_and;
        /// `[x != 0 or y != 0]`.
        logical_or(x: tensor, other: tensor) -> tensor = logical::logical_or;
        /// `[x != 0]` and `[y != 0]` differ.
        logical_xor(x: tensor, other: tensor) -> tensor = logical::logical_xor;
        /// Bitwise or logical and.
        #[doc(alias("bitwise_and"))]
        and(x: tensor, other: tensor) -> tensor = arithmetic::and;
        /// Bitwise or logical or.
        #[doc(alias("bitwise_or"))]
        or(x: tensor, other: tensor) -> tensor = arithmetic::or;
        /// Bitwise or logical exclusive or.
        #[doc(alias("bitwise_xor"))]
        xor(x: tensor, other: tensor) -> tensor = arithmetic::xor;
        /// Shift left.
        #[doc(alias("bitwise_left_shift", "lshift"))]
        shl(x: tensor, other: tensor) -> tensor = arithmetic::shl;
        /// Shift right.
        #[doc(alias("bitwise_right_shift", "rshift"))]
        shr(x: tensor, other: tensor) -> tensor = arithmetic::shr;
        /// `[x < y]`.
        #[doc(alias("less"))]
        lt(x: tensor, other: tensor) -> tensor = arithmetic::lt;
        /// `[x <= y]`.
        #[doc(alias("less_equal"))]
        le(x: tensor, other: tensor) -> tensor = arithmetic::le;
        /// `[x > y]`.
        #[doc(alias("greater"))]
        gt(x: tensor, other: tensor) -> tensor = arithmetic::gt;
        /// `[x >= y]`.
        #[doc(alias("greater_equal"))]
        ge(x: tensor, other: tensor) -> tensor = arithmetic::ge;
        /// `[x = y]`, by element.
        eq(x: tensor, other: tensor) -> tensor = arithmetic::eq;
        /// `[x != y]`, by element.
        #[doc(alias("not_equal"))]
        ne(x: tensor, other: tensor) -> tensor = arithmetic::ne;
        /// This (a bool tensor) picks from `x` where true, from `y` elsewhere.
        #[doc(alias("where"))]
        where_(condition: tensor, x: tensor, y: tensor) -> tensor = arithmetic::where_;
        /// `x + weight * (end - x)`.
        lerp(x: tensor, end: tensor, weight: tensor) -> tensor = arithmetic::lerp;
        /// `x + value * first * second`.
        addcmul(x: tensor, first: tensor, second: tensor, value: float) -> tensor = logical::addcmul;
        /// `x + value * first / second`.
        addcdiv(x: tensor, first: tensor, second: tensor, value: float) -> tensor = logical::addcdiv;
        /// Greatest common divisor of whole numbers, without a sign.
        gcd(x: tensor, other: tensor) -> tensor = divisors::gcd;
        /// Least common multiple of whole numbers, without a sign.
        lcm(x: tensor, other: tensor) -> tensor = divisors::lcm;
        /// The next float on the way to `other`.
        nextafter(x: tensor, other: tensor) -> tensor = bits::nextafter;
        /// A mantissa from 1/2 to 1 and a power of two (i32), `mantissa * 2^power`.
        frexp(x: tensor) -> array[2] = bits::frexp;
        /// `x * 2^exponent`.
        ldexp(x: tensor, exponent: tensor) -> tensor = logical::ldexp;
        /// The magnitude of this with the sign of `sign`.
        copysign(x: tensor, sign: tensor) -> tensor = arithmetic::copysign;
        /// `log(e^x + e^y)` without overflow.
        logaddexp(x: tensor, other: tensor) -> tensor = arithmetic::logaddexp;
        /// `log2(2^x + 2^y)` without overflow.
        logaddexp2(x: tensor, other: tensor) -> tensor = special::logaddexp2;
        /// The angle of the point with this as its height and `x` as its width, from -π to π.
        #[doc(alias("arctan2"))]
        atan2(y: tensor, x: tensor) -> tensor = logarithm::atan2;
        /// `√(x² + y²)` without overflow between.
        hypot(x: tensor, other: tensor) -> tensor = logarithm::hypot;
        /// `x log(y)`, which is 0 where `x` is 0.
        xlogy(x: tensor, other: tensor) -> tensor = logarithm::xlogy;
        /// `x log(1 + y)`, which is 0 where `x` is 0.
        xlog1py(x: tensor, other: tensor) -> tensor = special::xlog1py;
        /// `[|x - y| <= atol + rtol |y|]`; equal infinities are close, nan is to nothing.
        isclose(x: tensor, other: tensor, rtol: float, atol: float) -> tensor = threshold::isclose;
        /// Are all elements close in this sense.
        allclose(x: tensor, other: tensor, rtol: float, atol: float) -> tensor = threshold::allclose;
        /// 1 above 0, `value` at 0, 0 elsewhere, of nan too.
        heaviside(x: tensor, value: tensor) -> tensor = threshold::heaviside;
        /// Is each element among `values`.
        isin(x: tensor, values: tensor) -> tensor = relation::isin;

        /// `1 / x`.
        #[doc(alias("recip"))]
        reciprocal(x: tensor) -> tensor = elementwise::reciprocal;
        /// Square root.
        sqrt(x: tensor) -> tensor = elementwise::sqrt;
        /// `1 / sqrt(x)`.
        rsqrt(x: tensor) -> tensor = elementwise::rsqrt;
        /// `2 ^ x`.
        exp2(x: tensor) -> tensor = elementwise::exp2;
        /// Binary logarithm.
        log2(x: tensor) -> tensor = elementwise::log2;
        /// `e ^ x`.
        exp(x: tensor) -> tensor = elementwise::exp;
        /// Natural logarithm.
        #[doc(alias("ln"))]
        log(x: tensor) -> tensor = elementwise::log;
        /// Decimal logarithm.
        log10(x: tensor) -> tensor = elementwise::log10;
        /// `log(1 + x)`, exact near 0.
        log1p(x: tensor) -> tensor = logarithm::log1p;
        /// `e^x - 1`, exact near 0.
        expm1(x: tensor) -> tensor = logarithm::expm1;
        /// `10 ^ x`.
        exp10(x: tensor) -> tensor = logarithm::exp10;
        /// `log(x / (1 - x))` of `x` within `eps` and `1 - eps`.
        logit(x: tensor, eps: float) -> tensor = logarithm::logit;
        /// Degrees as radians.
        deg2rad(x: tensor) -> tensor = logarithm::deg2rad;
        /// Radians as degrees.
        rad2deg(x: tensor) -> tensor = logarithm::rad2deg;
        /// `sin(πx) / (πx)`, and 1 at 0.
        sinc(x: tensor) -> tensor = logarithm::sinc;
        /// `x - trunc(x)`.
        frac(x: tensor) -> tensor = logarithm::frac;
        /// Sine.
        sin(x: tensor) -> tensor = trigonometry::sin;
        /// Cosine.
        cos(x: tensor) -> tensor = trigonometry::cos;
        /// Tangent.
        tan(x: tensor) -> tensor = trigonometry::tan;
        /// Hyperbolic sine.
        sinh(x: tensor) -> tensor = hyperbolic::sinh;
        /// Hyperbolic cosine.
        cosh(x: tensor) -> tensor = hyperbolic::cosh;
        /// Hyperbolic tangent.
        tanh(x: tensor) -> tensor = hyperbolic::tanh;
        /// Inverse sine.
        #[doc(alias("arcsin"))]
        asin(x: tensor) -> tensor = inverse::asin;
        /// Inverse cosine.
        #[doc(alias("arccos"))]
        acos(x: tensor) -> tensor = inverse::acos;
        /// Inverse tangent.
        #[doc(alias("arctan"))]
        atan(x: tensor) -> tensor = inverse::atan;
        /// Inverse hyperbolic sine.
        #[doc(alias("arcsinh"))]
        asinh(x: tensor) -> tensor = inverse::asinh;
        /// Inverse hyperbolic cosine.
        #[doc(alias("arccosh"))]
        acosh(x: tensor) -> tensor = inverse::acosh;
        /// Inverse hyperbolic tangent.
        #[doc(alias("arctanh"))]
        atanh(x: tensor) -> tensor = inverse::atanh;
        /// The error function.
        erf(x: tensor) -> tensor = inverse::erf;
        /// `1 - erf(x)`, which keeps its digits where `erf(x)` is nearly 1.
        erfc(x: tensor) -> tensor = inverse::erfc;
        /// The inverse of the error function; infinite at -1 and 1, nan outside.
        erfinv(x: tensor) -> tensor = special::erfinv;
        /// The share of normal numbers below `x`.
        ndtr(x: tensor) -> tensor = special::ndtr;
        /// The number that a share of normal numbers is below, the inverse of `ndtr`.
        ndtri(x: tensor) -> tensor = special::ndtri;
        /// `log |Γ(x)|`; infinite at 0, -1, -2, …
        lgamma(x: tensor) -> tensor = special::lgamma;
        /// The derivative of `lgamma`; infinite at 0, nan at -1, -2, …
        digamma(x: tensor) -> tensor = special::digamma;
        /// Bessel's modified function of order 0.
        i0(x: tensor) -> tensor = bessel::i0;
        /// Bessel's modified function of order 0, without its growth: times `e^-|x|`.
        i0e(x: tensor) -> tensor = bessel::i0e;
        /// `-x log x`; 0 at 0, -infinity below.
        entr(x: tensor) -> tensor = special::entr;
        /// Toward zero.
        #[doc(alias("fix"))]
        trunc(x: tensor) -> tensor = elementwise::trunc;
        /// Down.
        floor(x: tensor) -> tensor = elementwise::floor;
        /// Up.
        ceil(x: tensor) -> tensor = elementwise::ceil;
        /// To the nearest integer, ties to even.
        round(x: tensor) -> tensor = elementwise::round;
        /// Magnitude.
        #[doc(alias("absolute"))]
        abs(x: tensor) -> tensor = elementwise::abs;
        /// -1, 0 or 1.
        #[doc(alias("sgn"))]
        sign(x: tensor) -> tensor = elementwise::sign;
        /// The sign bit, of -0 too.
        signbit(x: tensor) -> tensor = logical::signbit;
        /// `x * x`.
        square(x: tensor) -> tensor = elementwise::square;
        /// `max(x, 0)`.
        relu(x: tensor) -> tensor = activation::relu;
        /// `min(max(x, 0), 6)`.
        relu6(x: tensor) -> tensor = activation::relu6;
        /// Within `min` and `max`; `max` where `min` is greater.
        #[doc(alias("clamp"))]
        clip(x: tensor, min: float, max: float) -> tensor = elementwise::clip;
        /// `1 / (1 + e^-x)`.
        sigmoid(x: tensor) -> tensor = activation::sigmoid;
        /// `x * sigmoid(x)`.
        #[doc(alias("swish"))]
        silu(x: tensor) -> tensor = activation::silu;
        /// Gelu, in its tanh form.
        gelu(x: tensor) -> tensor = activation::gelu;
        /// `x * sigmoid(1.702 x)`.
        quick_gelu(x: tensor) -> tensor = activation::quick_gelu;
        /// `log(1 + e^x)`.
        softplus(x: tensor) -> tensor = activation::softplus;
        /// `log(sigmoid(x))`.
        logsigmoid(x: tensor) -> tensor = activation::logsigmoid;
        /// `x / (1 + |x|)`.
        softsign(x: tensor) -> tensor = activation::softsign;
        /// `x * tanh(softplus(x))`.
        mish(x: tensor) -> tensor = activation::mish;
        /// `relu6(x + 3) / 6`.
        #[doc(alias("hard_sigmoid"))]
        hardsigmoid(x: tensor) -> tensor = activation::hardsigmoid;
        /// `x * hardsigmoid(x)`.
        hardswish(x: tensor) -> tensor = activation::hardswish;
        /// `x` above 0, `slope * x` below.
        leaky_relu(x: tensor, slope: float) -> tensor = activation::leaky_relu;
        /// `x` above 0, `alpha (e^x - 1)` below.
        elu(x: tensor, alpha: float) -> tensor = activation::elu;
        /// `x` above 0, `alpha (e^(x/alpha) - 1)` below.
        celu(x: tensor, alpha: float) -> tensor = activation::celu;
        /// Elu with self-normalising constants.
        selu(x: tensor) -> tensor = activation::selu;
        /// Gelu by its definition, with the error function.
        gelu_erf(x: tensor) -> tensor = threshold::gelu_erf;
        /// Within `min` and `max`, usually -1 and 1.
        hardtanh(x: tensor, min: float, max: float) -> tensor = threshold::hardtanh;
        /// `value` where this is not greater than `bound`.
        threshold(x: tensor, bound: float, value: float) -> tensor = threshold::threshold;
        /// 0 where `|x| <= lambda`.
        hardshrink(x: tensor, lambda: float) -> tensor = threshold::hardshrink;
        /// Moved by `lambda` toward 0, and not beyond.
        softshrink(x: tensor, lambda: float) -> tensor = threshold::softshrink;
        /// `x - tanh(x)`.
        tanhshrink(x: tensor) -> tensor = threshold::tanhshrink;
        /// `x` above 0, `weight * x` below: one weight, or one for each channel (axis 1).
        prelu(x: tensor, weight: tensor) -> tensor = threshold::prelu;
        /// The first half of an axis times the sigmoid of the second.
        glu(x: tensor, axis: int) -> tensor = threshold::glu;
        /// Other numbers for nan and the infinities.
        nan_to_num(x: tensor, nan: float, posinf: float, neginf: float) -> tensor = threshold::nan_to_num;
        /// Is nan.
        isnan(x: tensor) -> tensor = elementwise::isnan;
        /// Is an infinity.
        isinf(x: tensor) -> tensor = elementwise::isinf;
        /// Is the positive infinity.
        isposinf(x: tensor) -> tensor = elementwise::isposinf;
        /// Is the negative infinity.
        isneginf(x: tensor) -> tensor = elementwise::isneginf;
        /// Is neither nan nor an infinity.
        isfinite(x: tensor) -> tensor = elementwise::isfinite;
        /// `x ^ exponent`.
        pow_const(x: tensor, exponent: float) -> tensor = elementwise::pow_const;
        /// `base ^ x`.
        const_pow(x: tensor, base: float) -> tensor = elementwise::const_pow;
        /// The value, without a gradient.
        detach(x: tensor) -> tensor = elementwise::detach;
        /// The value in memory of its own, row-major: the kernels that write it contain nothing of what follows.
        contiguous(x: tensor) -> tensor = elementwise::contiguous;
        /// The value; its gradient has memory of its own, row-major.
        contiguous_backward(x: tensor) -> tensor = elementwise::contiguous_backward;
        /// Converted to another dtype.
        cast(x: tensor, to: dtype) -> tensor = cast;
        /// The storage as another dtype.
        bitcast(x: tensor, to: dtype) -> tensor = elementwise::bitcast;

        /// Row-major reinterpretation; one dim may be -1.
        #[doc(alias("reshape_as", "view", "view_as"))]
        reshape(x: tensor, shape: shape) -> tensor = movement::reshape;
        /// Axes in another order.
        #[doc(alias("permute_dims"))]
        permute(x: tensor, order: ints) -> tensor = movement::permute;
        /// Two axes swapped.
        #[doc(alias("swapaxes", "swapdims"))]
        transpose(x: tensor, axis0: int, axis1: int) -> tensor = movement::transpose;
        /// Size-1 axes broadcast.
        #[doc(alias("broadcast_tensors", "broadcast_to", "expand_as"))]
        expand(x: tensor, shape: shape) -> tensor = movement::expand;
        /// Reversed along axes.
        flip(x: tensor, axes: ints) -> tensor = movement::flip;
        /// At `offset` in a tensor of `shape`, that of the whole result, which is `value` elsewhere.
        pad(x: tensor, offset: shape, shape: shape, value: float) -> tensor = movement::pad;
        /// `shape` elements from `offset` on.
        shrink(x: tensor, offset: shape, shape: shape) -> tensor = movement::shrink;
        /// `length` elements of an axis from `start` on.
        narrow(x: tensor, axis: int, start: int, length: int) -> tensor = movement::narrow;
        /// A new axis of size 1.
        unsqueeze(x: tensor, axis: int) -> tensor = movement::unsqueeze;
        /// Without the axes of size 1.
        squeeze(x: tensor, axis: axes) -> tensor = movement::squeeze;
        /// Axes `start` to `end` as one.
        #[doc(alias("ravel"))]
        flatten(x: tensor, start: int, end: int) -> tensor = movement::flatten;
        /// One axis as several.
        unflatten(x: tensor, axis: int, sizes: shape) -> tensor = movement::unflatten;
        /// Joined along an axis.
        cat(tensors: tensors, axis: int) -> tensor = movement::cat;
        /// Joined along a new axis.
        stack(tensors: tensors, axis: int) -> tensor = movement::stack;
        /// Pieces of a size along an axis.
        split(x: tensor, size: int, axis: int) -> tensors = movement::split;
        /// Pieces of given sizes along an axis.
        #[doc(alias("tensor_split"))]
        split_sizes(x: tensor, sizes: ints, axis: int) -> tensors[sizes.as_ref().len() as i64] = movement::split_sizes;
        /// At most `n` pieces along an axis.
        chunk(x: tensor, n: int, axis: int) -> tensors[n] = movement::chunk;
        /// Copies along each axis.
        #[doc(alias("tile"))]
        repeat(x: tensor, repeats: ints) -> tensor = movement::repeat;
        /// Each element several times along an axis.
        repeat_interleave(x: tensor, repeats: int, axis: int) -> tensor = movement::repeat_interleave;
        /// The diagonal of the last two axes, `offset` columns to the right.
        diagonal(x: tensor, offset: int) -> tensor = movement::diagonal;
        /// Cyclic shift along axes.
        roll(x: tensor, shifts: ints, axes: ints) -> tensor = movement::roll;
        /// Turned by `turns` quarters in the plane of two axes, from the first toward the second.
        rot90(x: tensor, turns: int, first: int, second: int) -> tensor = shapes::rot90;
        /// The upper triangle.
        triu(x: tensor, diagonal: int) -> tensor = movement::triu;
        /// The lower triangle.
        tril(x: tensor, diagonal: int) -> tensor = movement::tril;
        /// Positions `start`, `start + step`, … before `stop` of an axis, as NumPy's `x[start:stop:step]`: negative ends count
        /// from the end, and what lies outside is cut off.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let x = Tensor::arange(10);
        /// assert_eq!(x.slice(0, 1, -1, 3).to_vec::<i32>()?, [1, 4, 7]);
        /// assert_eq!(x.slice(0, 100, -100, -4).to_vec::<i32>()?, [9, 5, 1]);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        slice(x: tensor, axis: int, start: int, stop: int, step: int) -> tensor = slice::slice;
        /// This with `value` where [`Tensor::slice`] reads; `value` broadcasts to that part.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let x = Tensor::arange(6).slice_scatter(-1, 0, 1, 6, 2);
        /// assert_eq!(x.to_vec::<i32>()?, [0, -1, 2, -1, 4, -1]);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        slice_scatter(x: tensor, value: tensor, axis: int, start: int, stop: int, step: int) -> tensor = slice::slice_scatter;
        /// One position of an axis, which is dropped; negative ones count from the end.
        select(x: tensor, axis: int, position: int) -> tensor = slice::select;
        /// This with `value` at one position of an axis.
        select_scatter(x: tensor, value: tensor, axis: int, position: int) -> tensor = slice::select_scatter;
        /// Each position of an axis as a tensor of its own.
        unbind(x: tensor, axis: int) -> tensors = slice::unbind;
        /// `value` where `mask` is true.
        masked_fill(x: tensor, mask: tensor, value: tensor) -> tensor = masked::masked_fill;
        /// The elements of `source`, one after the other, where `mask` is true.
        masked_scatter(x: tensor, mask: tensor, source: tensor) -> tensor = masked::masked_scatter;
        /// `value` on a diagonal of the last two axes, `offset` columns to the right.
        diagonal_scatter(x: tensor, value: tensor, offset: int) -> tensor = written::diagonal_scatter;
        /// An axis moved to another place.
        #[doc(alias("moveaxis"))]
        movedim(x: tensor, from: int, to: int) -> tensor = movement::movedim;
        /// Vectors as the coordinates of a grid: rows first (`"ij"`) or columns first (`"xy"`).
        meshgrid(vectors: tensors, indexing: text) -> tensors[vectors.len() as i64] = products::meshgrid;
        /// Every combination of elements of vectors, a row each.
        cartesian_prod(vectors: tensors) -> tensor = shapes::cartesian_prod;
        /// Matrices along the diagonal of one, zeros elsewhere; vectors are rows.
        block_diag(tensors: tensors) -> tensor = shapes::block_diag;
        /// The powers of a vector's elements below `count` as columns, the greatest first unless `increasing`.
        vander(x: tensor, count: int, increasing: flag) -> tensor = shapes::vander;
        /// The diagonal of a matrix; of a vector the matrix that has it as its diagonal.
        diag(x: tensor, offset: int) -> tensor = products::diag;
        /// The last axis on the diagonal of square matrices of zeros.
        diag_embed(x: tensor, offset: int) -> tensor = products::diag_embed;

        /// Sum along axes.
        sum(x: tensor, axis: axes, keepdim: flag) -> tensor = reduce::sum;
        /// Product along axes.
        prod(x: tensor, axis: axes, keepdim: flag) -> tensor = reduce::prod;
        /// Greatest element along axes.
        #[doc(alias("amax"))]
        max(x: tensor, axis: axes, keepdim: flag) -> tensor = reduce::max;
        /// Least element along axes.
        #[doc(alias("amin"))]
        min(x: tensor, axis: axes, keepdim: flag) -> tensor = reduce::min;
        /// Mean along axes.
        #[doc(alias("average"))]
        mean(x: tensor, axis: axes, keepdim: flag) -> tensor = reduce::mean;
        /// Variance along axes; `correction` 1 is the unbiased one.
        var(x: tensor, axis: axes, correction: int, keepdim: flag) -> tensor = reduce::var;
        /// Standard deviation along axes.
        std(x: tensor, axis: axes, correction: int, keepdim: flag) -> tensor = reduce::std;
        /// Variance and mean.
        var_mean(x: tensor, axis: axes, correction: int, keepdim: flag) -> array[2] = relation::var_mean;
        /// Standard deviation and mean.
        std_mean(x: tensor, axis: axes, correction: int, keepdim: flag) -> array[2] = relation::std_mean;
        /// Least and greatest elements.
        aminmax(x: tensor, axis: axes, keepdim: flag) -> array[2] = relation::aminmax;
        /// Covariance of the variables that the rows of a matrix are; each column is an observation.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let x = Tensor::from_slice(&[0f32, 1.0, 2.0, 2.0, 1.0, 0.0], [2, 3]);
        /// assert_eq!(x.cov(1).to_vec::<f32>()?, [1.0, -1.0, -1.0, 1.0]);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        cov(x: tensor, correction: int) -> tensor = relation::cov;
        /// Correlation of the variables that the rows of a matrix are.
        corrcoef(x: tensor) -> tensor = relation::corrcoef;
        /// Is any element nonzero.
        any(x: tensor, axis: axes, keepdim: flag) -> tensor = reduce::any;
        /// Are all elements nonzero.
        all(x: tensor, axis: axes, keepdim: flag) -> tensor = reduce::all;
        /// `log(sum(e^x))` along axes.
        logsumexp(x: tensor, axis: axes, keepdim: flag) -> tensor = reduce::logsumexp;
        /// `e^x / sum(e^x)` along an axis.
        softmax(x: tensor, axis: int) -> tensor = reduce::softmax;
        /// Softmax of `-x`.
        softmin(x: tensor, axis: int) -> tensor = reduce::softmin;
        /// `x - log(sum(e^x))` along an axis.
        log_softmax(x: tensor, axis: int) -> tensor = reduce::log_softmax;
        /// Position of the first greatest element.
        argmax(x: tensor, axis: int) -> tensor = reduce::argmax;
        /// Position of the first least element.
        argmin(x: tensor, axis: int) -> tensor = reduce::argmin;
        /// The greatest elements along an axis, and the positions (i32) of the first of them, which alone get the gradient; a nan
        /// is the greatest.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let [values, places] = Tensor::from_slice(&[3f32, 7.0, 7.0], [1, 3]).max_with_place(1, false);
        /// assert_eq!((values.to_vec::<f32>()?, places.to_vec::<i32>()?), (vec![7.0], vec![1]));
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        max_with_place(x: tensor, axis: int, keepdim: flag) -> array[2] = argmax::max_with_place;
        /// The least elements along an axis and the positions of the first of them, as [`Tensor::max_with_place`].
        min_with_place(x: tensor, axis: int, keepdim: flag) -> array[2] = argmax::min_with_place;
        /// Running sum.
        cumsum(x: tensor, axis: int) -> tensor = scan::cumsum;
        /// Running product.
        cumprod(x: tensor, axis: int) -> tensor = scan::cumprod;
        /// Running maximum.
        cummax(x: tensor, axis: int) -> tensor = scan::cummax;
        /// Running minimum.
        cummin(x: tensor, axis: int) -> tensor = scan::cummin;
        /// Running `log(sum(e^x))`.
        logcumsumexp(x: tensor, axis: int) -> tensor = scan::logcumsumexp;
        /// How many elements are not 0 (i32).
        count_nonzero(x: tensor, axis: axes, keepdim: flag) -> tensor = statistics::count_nonzero;
        /// Sum without nan.
        nansum(x: tensor, axis: axes, keepdim: flag) -> tensor = statistics::nansum;
        /// Mean without nan.
        nanmean(x: tensor, axis: axes, keepdim: flag) -> tensor = statistics::nanmean;
        /// The middle element in order, the lower one of two; nan if there is one.
        median(x: tensor, axis: int, keepdim: flag) -> tensor = statistics::median;
        /// The median of what is not nan.
        nanmedian(x: tensor, axis: int, keepdim: flag) -> tensor = relation::nanmedian;
        /// The `k`-th least element, from 1 on.
        kthvalue(x: tensor, k: int, axis: int, keepdim: flag) -> tensor = statistics::kthvalue;
        /// The most frequent element, the least of several.
        mode(x: tensor, axis: int, keepdim: flag) -> tensor = statistics::mode;
        /// The value that the share `q` of an axis lies below, interpolated between elements.
        quantile(x: tensor, q: float, axis: int, keepdim: flag) -> tensor = statistics::quantile;
        /// Differences of neighbours, `n` times.
        diff(x: tensor, n: int, axis: int) -> tensor = statistics::diff;
        /// The integral along an axis by trapezes `dx` apart.
        #[doc(alias("trapz"))]
        trapezoid(x: tensor, dx: float, axis: int) -> tensor = statistics::trapezoid;
        /// The integrals up to each element after the first one.
        cumulative_trapezoid(x: tensor, dx: float, axis: int) -> tensor = relation::cumulative_trapezoid;
        /// How often each of 0, 1, … `length - 1` is among the numbers (i32).
        bincount(x: tensor, length: int) -> tensor = statistics::bincount;
        /// How many elements fall into each of `bins` equal parts of `min` to `max` (i32).
        #[doc(alias("histogram"))]
        histc(x: tensor, bins: int, min: float, max: float) -> tensor = statistics::histc;
        /// Where each of `values` would stand in this ascending vector, or in the row with its leading indices (i32), after what equals
        /// it if `right`.
        searchsorted(x: tensor, values: tensor, right: flag) -> tensor = statistics::searchsorted;
        /// Which part between ascending `bounds` each element is in (i32): before what equals it, or after if `right`.
        bucketize(x: tensor, bounds: tensor, right: flag) -> tensor = relation::bucketize;
        /// The `p`-norm: `(Σ |x|^p)^(1/p)`; with an infinity the greatest or least magnitude.
        norm(x: tensor, p: float, axis: axes, keepdim: flag) -> tensor = distance::norm;
        /// Over the `p`-norm along an axis, or over `eps` where that is less.
        normalize(x: tensor, p: float, axis: int, eps: float) -> tensor = distance::normalize;
        /// Each position of an axis, as a vector over the others, made at most `bound` long by the `p`-norm.
        renorm(x: tensor, p: float, axis: int, bound: float) -> tensor = relation::renorm;

        /// Matrix product.
        #[doc(alias("bmm", "mm", "mv"))]
        matmul(x: tensor, other: tensor) -> tensor = matmul::matmul;
        /// Matrix product.
        dot(x: tensor, other: tensor) -> tensor = matmul::dot;
        /// `x @ weight + bias`.
        linear(x: tensor, weight: tensor, bias: tensor) -> tensor = matmul::linear;
        /// `x W_k other + bias_k` of vectors in the last axes, for each matrix of the weight (k, x, other).
        bilinear(x: tensor, other: tensor, weight: tensor, bias: optional) -> tensor = shapes::bilinear;
        /// `x[i] * other[j]` of two vectors.
        #[doc(alias("ger"))]
        outer(x: tensor, other: tensor) -> tensor = products::outer;
        /// Sums of products over axes of both, pair by pair.
        tensordot(x: tensor, other: tensor, axes: ints, other_axes: ints) -> tensor = products::tensordot;
        /// Each element times all of `other`, in blocks.
        kron(x: tensor, other: tensor) -> tensor = products::kron;
        /// The sum of the diagonal of the last two axes.
        trace(x: tensor) -> tensor = products::trace;
        /// The vector product along an axis of three.
        cross(x: tensor, other: tensor, axis: int) -> tensor = distance::cross;
        /// The cosine of the angle between vectors along an axis; norms count as at least `eps`.
        cosine_similarity(x: tensor, other: tensor, axis: int, eps: float) -> tensor = distance::cosine_similarity;
        /// The `p`-distance of each row to each row of `other`.
        cdist(x: tensor, other: tensor, p: float) -> tensor = distance::cdist;
        /// The `p`-norm of `x - other + eps` along the last axis.
        pairwise_distance(x: tensor, other: tensor, p: float, eps: float) -> tensor = relation::pairwise_distance;
        /// The `x` of `A x = other` for square matrices `A` in the last two axes: `other` is a vector, or columns.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let a = Tensor::from_slice(&[2f32, 1.0, 1.0, 3.0], [2, 2]);
        /// let x = a.solve(Tensor::from_slice(&[3f32, 5.0], [2]));
        /// assert!(a.matmul(x).allclose(Tensor::from_slice(&[3f32, 5.0], [2]), 1e-5, 1e-5).item::<bool>()?);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        solve(x: tensor, other: tensor) -> tensor = linalg::solve::solve;
        /// The `x` of `A x = other`, where `A` is the lower or `upper` triangle of this; `unit` takes its diagonal for ones.
        solve_triangular(x: tensor, other: tensor, upper: flag, unit: flag) -> tensor = linalg::triangular::solve_triangular;
        /// The `x` that makes `A x - other` least, for a matrix of full rank with no fewer rows than columns.
        lstsq(x: tensor, other: tensor) -> tensor = linalg::solve::lstsq;
        /// Inverse of square matrices in the last two axes; infinite or nan if there is none.
        inverse(x: tensor) -> tensor = linalg::solve::inverse;
        /// Determinant of square matrices in the last two axes.
        det(x: tensor) -> tensor = linalg::solve::det;
        /// The sign of the determinant, and the logarithm of its magnitude.
        slogdet(x: tensor) -> array[2] = linalg::solve::slogdet;
        /// Logarithm of the determinant; nan if that is negative.
        logdet(x: tensor) -> tensor = linalg::solve::logdet;
        /// Product of `n` of these square matrices, or of `-n` inverses. Powers of whole numbers are whole if `n` is not negative.
        matrix_power(x: tensor, n: int) -> tensor = linalg::solve::matrix_power;
        /// The lower triangle L with `A = L Lᵀ` (or the `upper` one, `A = Uᵀ U`), where A is the symmetric part of this.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let a = Tensor::from_slice(&[4f32, 2.0, 2.0, 5.0], [2, 2]);
        /// assert_eq!(a.cholesky(false).to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        cholesky(x: tensor, upper: flag) -> tensor = linalg::cholesky::cholesky;
        /// The `x` of `A x = this`, where `factor` is what `cholesky` gave for `A`.
        cholesky_solve(x: tensor, factor: tensor, upper: flag) -> tensor = linalg::cholesky::cholesky_solve;
        /// P, L and U with `A = P L U`: a permutation, a lower triangle with ones on its diagonal, an upper triangle.
        lu(x: tensor) -> array[3] = linalg::lu::lu;
        /// Q and R with `A = Q R`: orthonormal columns and an upper triangle, both as narrow as A allows.
        qr(x: tensor) -> array[2] = linalg::qr::qr;
        /// Sum of products by an equation.
        einsum(equation: text, tensors: tensors) -> tensor = einsum::einsum;

        /// Convolution over one axis.
        conv1d(x: tensor, weight: tensor, bias: optional, options: Conv1d) -> tensor = conv::conv;
        /// Convolution over two axes.
        conv2d(x: tensor, weight: tensor, bias: optional, options: Conv2d) -> tensor = conv::conv;
        /// Convolution over three axes.
        conv3d(x: tensor, weight: tensor, bias: optional, options: Conv3d) -> tensor = conv::conv;
        /// Transposed convolution over one axis.
        conv_transpose1d(x: tensor, weight: tensor, bias: optional, options: ConvTranspose1d) -> tensor = conv::conv_transpose;
        /// Transposed convolution over two axes.
        conv_transpose2d(x: tensor, weight: tensor, bias: optional, options: ConvTranspose2d) -> tensor = conv::conv_transpose;
        /// Transposed convolution over three axes.
        conv_transpose3d(x: tensor, weight: tensor, bias: optional, options: ConvTranspose3d) -> tensor = conv::conv_transpose;
        /// Greatest elements of windows along one axis.
        max_pool1d(x: tensor, kernel_size: ints, options: MaxPool1d) -> tensor = pool::max_pool;
        /// Greatest elements of windows along two axes.
        max_pool2d(x: tensor, kernel_size: ints, options: MaxPool2d) -> tensor = pool::max_pool;
        /// Greatest elements of windows along three axes.
        max_pool3d(x: tensor, kernel_size: ints, options: MaxPool3d) -> tensor = pool::max_pool;
        /// Means of windows along one axis.
        avg_pool1d(x: tensor, kernel_size: ints, options: AvgPool1d) -> tensor = pool::avg_pool;
        /// Means of windows along two axes.
        avg_pool2d(x: tensor, kernel_size: ints, options: AvgPool2d) -> tensor = pool::avg_pool;
        /// Means of windows along three axes.
        avg_pool3d(x: tensor, kernel_size: ints, options: AvgPool3d) -> tensor = pool::avg_pool;
        /// `(Σ |x|^p)^(1/p)` of windows over the last axis.
        lp_pool1d(x: tensor, p: float, kernel_size: ints, options: AvgPool1d) -> tensor = pool::lp_pool;
        /// `(Σ |x|^p)^(1/p)` of windows over the last two axes.
        lp_pool2d(x: tensor, p: float, kernel_size: ints, options: AvgPool2d) -> tensor = pool::lp_pool;
        /// Means of a given number of windows along one axis.
        adaptive_avg_pool1d(x: tensor, size: ints) -> tensor = adaptive::avg_pool1;
        /// Means of a given number of windows along two axes.
        adaptive_avg_pool2d(x: tensor, size: ints) -> tensor = adaptive::avg_pool2;
        /// Means of a given number of windows along three axes.
        adaptive_avg_pool3d(x: tensor, size: ints) -> tensor = adaptive::avg_pool3;
        /// Greatest elements of a given number of windows along one axis.
        adaptive_max_pool1d(x: tensor, size: ints) -> tensor = adaptive::max_pool1;
        /// Greatest elements of a given number of windows along two axes.
        adaptive_max_pool2d(x: tensor, size: ints) -> tensor = adaptive::max_pool2;
        /// Greatest elements of a given number of windows along three axes.
        adaptive_max_pool3d(x: tensor, size: ints) -> tensor = adaptive::max_pool3;
        /// Windows of `size` along an axis, `step` apart, in a new last axis.
        unfold(x: tensor, axis: int, size: int, step: int) -> tensor = window::unfold;
        /// Windows (in the last axis) added up where `unfold` cuts them from an axis of `length`.
        fold(x: tensor, axis: int, length: int, step: int) -> tensor = shuffle::fold;
        /// Channels, `factor²` at a time, as the pixels of a picture `factor` times as large.
        pixel_shuffle(x: tensor, factor: int) -> tensor = shuffle::pixel_shuffle;
        /// The inverse of `pixel_shuffle`.
        pixel_unshuffle(x: tensor, factor: int) -> tensor = shuffle::pixel_unshuffle;
        /// The channels (axis 1) of `groups` groups, dealt in turn.
        channel_shuffle(x: tensor, groups: int) -> tensor = shuffle::channel_shuffle;
        /// The middle of the last axes, zeros around what is shorter.
        center_crop(x: tensor, size: ints) -> tensor = shuffle::center_crop;
        /// More elements at the ends of the last axes, by `"reflect"`, `"replicate"` or `"circular"`.
        pad_mode(x: tensor, before: ints, after: ints, mode: text) -> tensor = resize::pad_mode;
        /// The last axes at other lengths, by `"nearest"`, `"nearest-exact"`, `"linear"`, `"cubic"` or `"area"`.
        #[doc(alias("upsample", "upsample_bilinear", "upsample_nearest"))]
        interpolate(x: tensor, size: ints, mode: text, align_corners: flag) -> tensor = resize::interpolate;
        /// The axes after the first two `factor` times as long, rounded down, by the modes of `interpolate`.
        interpolate_scale(x: tensor, factor: float, mode: text, align_corners: flag) -> tensor = resize::interpolate_scale;
        /// The places `[N, rows, columns, 2]` of a result under maps `[N, 2, 3]` of a picture that reaches from -1 to 1.
        affine_grid(x: tensor, size: ints, align_corners: flag) -> tensor = sample::affine_grid;
        /// What of pictures `[N, C, rows, columns]` lies at places `[N, …, …, 2]`: `mode` is `"bilinear"` or `"nearest"`,
        /// `padding` `"zeros"`, `"border"` or `"reflection"`.
        grid_sample(x: tensor, grid: tensor, mode: text, padding: text, align_corners: flag) -> tensor = sample::grid_sample;

        /// `[x = 0, …, x = classes - 1]` in a new last axis.
        one_hot(x: tensor, num_classes: int) -> tensor = index::one_hot;
        /// Rows by number; negative ones count from the end.
        index0(x: tensor, index: tensor) -> tensor = index::index0;
        /// What lies at the numbers of a vector along an axis; negative ones count from the end.
        index_select(x: tensor, axis: int, index: tensor) -> tensor = slice::index_select;
        /// `x[first[k], second[k]]` for each k: two index tensors, paired.
        index_pairs(x: tensor, first: tensor, second: tensor) -> tensor = slice::index_pairs;
        /// This tensor's numbers pick rows of `table`.
        embedding(x: tensor, table: tensor) -> tensor = index::embedding;
        /// Rows of axis 0 by number, of a vector its elements; outside they are 0.
        take(x: tensor, index: tensor) -> tensor = index::take;
        /// `out[i][j] = x[index[i][j]][j]` for axis 0, and so on; the index gives the shape, and is on no other axis longer than `x`.
        #[doc(alias("take_along_dim"))]
        gather(x: tensor, index: tensor, axis: int) -> tensor = index::gather;
        /// This plus `value` at `index` along an axis; what lies beyond the index on the other axes stays, here and below.
        scatter_add(x: tensor, index: tensor, value: tensor, axis: int) -> tensor = scatter::scatter_add;
        /// This times `value` at `index` along an axis.
        scatter_multiply(x: tensor, index: tensor, value: tensor, axis: int) -> tensor = scatter::scatter_multiply;
        /// This with `value` at `index` along an axis; the last of several stays.
        scatter(x: tensor, index: tensor, value: tensor, axis: int) -> tensor = scatter::scatter;
        /// What meets at a place by `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`, with this or without.
        scatter_reduce(x: tensor, index: tensor, value: tensor, axis: int, reduce: text, include_self: flag) -> tensor = scatter::scatter_reduce;
        /// `value` added at the numbers of a vector along an axis, collisions too.
        index_add(x: tensor, axis: int, index: tensor, value: tensor) -> tensor = written::index_add;
        /// `value` at the numbers of a vector along an axis; the last of several stays.
        index_copy(x: tensor, axis: int, index: tensor, value: tensor) -> tensor = written::index_copy;
        /// One `value` at the numbers of a vector along an axis.
        index_fill(x: tensor, axis: int, index: tensor, value: tensor) -> tensor = written::index_fill;

        /// In order along an axis, and the positions that the elements come from.
        sort(x: tensor, axis: int, descending: flag) -> array[2] = sort::sort;
        /// Positions that put this in order along an axis.
        argsort(x: tensor, axis: int, descending: flag) -> tensor = sort::argsort;
        /// The `k` greatest (or least) elements along an axis, and their positions.
        topk(x: tensor, k: int, axis: int, largest: flag) -> array[2] = sort::topk;

        /// Cross entropy of logits, classes in the last axis, against class numbers; `reduction` is `"mean"`, `"sum"` or `"none"`. Targets of `ignore_index` do not count; the loss of others that are not a class is nan, as is its gradient.
        #[doc(alias("sparse_categorical_crossentropy"))]
        cross_entropy(x: tensor, target: tensor, reduction: text, label_smoothing: float, ignore_index: int) -> tensor = loss::cross_entropy;
        /// Cross entropy of logits with a weight per class, the last axis; a mean is over the weights of the targets.
        cross_entropy_weight(x: tensor, target: tensor, weight: tensor, reduction: text, label_smoothing: float, ignore_index: int) -> tensor = loss::cross_entropy_weight;
        /// Cross entropy of logits against probabilities, classes in the last axis of both.
        cross_entropy_prob(x: tensor, target: tensor, reduction: text) -> tensor = loss::cross_entropy_prob;
        /// Negative log likelihood of class numbers, of log-probabilities with the classes in the last axis. Targets of -100 do not count; the loss of others that are not a class is nan, as is its gradient.
        nll_loss(x: tensor, target: tensor, reduction: text) -> tensor = loss::nll_loss;
        /// Connectionist temporal classification: `-log` of the probability that a sequence spells its labels, with blanks between
        /// and repetitions. Logarithms of probabilities are `[steps, batch, classes]`, `target` `[batch, labels]`; the lengths, whole
        /// numbers for each sequence, say how many steps and labels count. `blank` is the class of blanks. A mean is over losses by
        /// label. What cannot be spelled has an infinite loss, or 0 with `zero_infinity`, and no gradient. There are no second derivatives.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// # let of = |data: &[i32]| Tensor::from_slice(data, [data.len()]);
        /// // In two steps the label 1 is "1-", "-1" or "11": 3/4 of all.
        /// let x = Tensor::full([2, 1, 2], 0.5f32).log();
        /// let loss = x.ctc_loss(of(&[1]).unsqueeze(0), of(&[2]), of(&[1]), 0, "sum", false);
        /// assert!((loss.item::<f32>()? + 0.75f32.ln()).abs() < 1e-6);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        ctc_loss(x: tensor, target: tensor, input_lengths: tensor, target_lengths: tensor, blank: int, reduction: text, zero_infinity: flag) -> tensor = ctc::ctc_loss;
        /// Negative log likelihood with a weight per class, the last axis.
        nll_loss_weight(x: tensor, target: tensor, weight: tensor, reduction: text) -> tensor = loss::nll_loss_weight;
        /// Cross entropy of probabilities of one event; logarithms are at least -100.
        #[doc(alias("binary_cross_entropy"))]
        binary_crossentropy(x: tensor, target: tensor, reduction: text) -> tensor = events::binary_crossentropy;
        /// Cross entropy of probabilities of one event, times a weight that broadcasts to them; a mean is over their number.
        binary_crossentropy_weight(x: tensor, target: tensor, weight: tensor, reduction: text) -> tensor = events::binary_crossentropy_weight;
        /// Cross entropy of logits of one event.
        #[doc(alias("binary_cross_entropy_with_logits"))]
        binary_crossentropy_logits(x: tensor, target: tensor, reduction: text) -> tensor = events::binary_crossentropy_logits;
        /// Cross entropy of logits of one event, times a weight; where the event is true it counts `positive` times.
        binary_crossentropy_logits_weight(x: tensor, target: tensor, weight: optional, positive: optional, reduction: text) -> tensor = events::binary_crossentropy_logits_weight;
        /// `(x - target)²`; `reduction` is `"mean"`, `"sum"` or `"none"`. Both have one shape, here and in the losses below.
        mse_loss(x: tensor, target: tensor, reduction: text) -> tensor = regression::mse_loss;
        /// `|x - target|`.
        l1_loss(x: tensor, target: tensor, reduction: text) -> tensor = regression::l1_loss;
        /// Half the square of a difference below `beta`, over `beta`; with slope 1 beyond.
        smooth_l1_loss(x: tensor, target: tensor, reduction: text, beta: float) -> tensor = regression::smooth_l1_loss;
        /// Half the square of a difference below `delta`, with slope `delta` beyond.
        huber_loss(x: tensor, target: tensor, reduction: text, delta: float) -> tensor = regression::huber_loss;
        /// `t (log t - x)` of log-probabilities; `"batchmean"` is a reduction too.
        kl_div(x: tensor, target: tensor, reduction: text, log_target: flag) -> tensor = regression::kl_div;
        /// Negative log likelihood of counts, up to a constant; `log_input` says that this is the logarithm of their rates.
        poisson_nll_loss(x: tensor, target: tensor, reduction: text, log_input: flag, eps: float) -> tensor = regression::poisson_nll_loss;
        /// Negative log likelihood of normal numbers with this mean, up to a constant.
        gaussian_nll_loss(x: tensor, target: tensor, variance: tensor, reduction: text, eps: float) -> tensor = regression::gaussian_nll_loss;
        /// The distance itself where the target is 1, what it lacks to the margin where it is -1.
        hinge_embedding_loss(x: tensor, target: tensor, reduction: text, margin: float) -> tensor = regression::hinge_embedding_loss;
        /// What `target * (x - other)` lacks to the margin.
        margin_ranking_loss(x: tensor, other: tensor, target: tensor, reduction: text, margin: float) -> tensor = regression::margin_ranking_loss;
        /// `1 - cos` of rows where the target is 1, `max(cos - margin, 0)` where it is -1.
        cosine_embedding_loss(x: tensor, other: tensor, target: tensor, reduction: text, margin: float) -> tensor = regression::cosine_embedding_loss;
        /// What the distance to `far` lacks to that to `near` and the margin, with the `p`-norm of the last axis.
        triplet_margin_loss(x: tensor, near: tensor, far: tensor, reduction: text, margin: float, p: float) -> tensor = regression::triplet_margin_loss;
        /// `log(1 + e^(-t x))` with targets of -1 and 1.
        soft_margin_loss(x: tensor, target: tensor, reduction: text) -> tensor = margins::soft_margin_loss;
        /// `max(margin - x[t] + x[j], 0)^p` over the classes j that are not t, by the number of classes.
        multi_margin_loss(x: tensor, target: tensor, reduction: text, p: float, margin: float) -> tensor = margins::multi_margin_loss;
        /// The mean over the last axis of the cross entropies of its events.
        multilabel_soft_margin_loss(x: tensor, target: tensor, reduction: text) -> tensor = margins::multilabel_soft_margin_loss;
        /// What each class that the targets name, up to the first negative one, lacks to being 1 above each other class.
        multilabel_margin_loss(x: tensor, target: tensor, reduction: text) -> tensor = margins::multilabel_margin_loss;
        /// Cross entropy of logits of one event, times the share that is missing to the power `gamma`; `alpha` weighs 1
        /// against 0, unless it is negative.
        sigmoid_focal_loss(x: tensor, target: tensor, reduction: text, alpha: float, gamma: float) -> tensor = margins::sigmoid_focal_loss;

        /// Layer normalisation over the last `axes` axes.
        #[doc(alias("layernorm"))]
        layer_norm(x: tensor, weight: tensor, bias: tensor, axes: int, eps: float) -> tensor = norm::layer_norm;
        /// Root-mean-square normalisation of the last axis.
        rms_norm(x: tensor, weight: tensor, eps: float) -> tensor = norm::rms_norm;
        /// Group normalisation of the channels.
        group_norm(x: tensor, weight: tensor, bias: tensor, groups: int, eps: float) -> tensor = norm::group_norm;
        /// Batch normalisation with the statistics of the batch.
        batch_norm_train(x: tensor, weight: tensor, bias: tensor, eps: float) -> tensor = norm::batch_norm_train;
        /// Batch normalisation with given statistics.
        #[doc(alias("batchnorm"))]
        batch_norm_eval(x: tensor, weight: tensor, bias: tensor, mean: tensor, variance: tensor, eps: float) -> tensor = norm::batch_norm_eval;
        /// Running mean and variance of the channels after a batch, of which `momentum` is the batch's; two tensors
        /// without gradients.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 6.0], [2, 2]);
        /// let running = x.batch_norm_running(Tensor::zeros([2]), Tensor::ones([2]), 0.5);
        /// assert_eq!(running[0].to_vec::<f32>()?, [1.0, 2.0]);
        /// assert_eq!(running[1].to_vec::<f32>()?, [1.5, 4.5]);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        batch_norm_running(x: tensor, mean: tensor, variance: tensor, momentum: float) -> array[2] = norm::batch_norm_running;
        /// Normalisation of each channel of each sample.
        instance_norm(x: tensor, weight: tensor, bias: tensor, eps: float) -> tensor = norm::instance_norm;
        /// `x / (k + alpha mean(x²))^beta` over `size` neighbouring channels.
        local_response_norm(x: tensor, size: int, alpha: float, beta: float, k: float) -> tensor = norm::local_response_norm;
        /// Scaled dot-product attention.
        sdpa(x: tensor, k: tensor, v: tensor, causal: flag) -> tensor = attention::sdpa;
        /// Scaled dot-product attention with a mask.
        sdpa_mask(x: tensor, k: tensor, v: tensor, mask: tensor) -> tensor = attention::sdpa_mask;
        /// Scaled dot-product attention with options, and with a mask; `key` draws what dropout takes away.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// # use tinyspec_ir::ops::options::{Attention, default};
        /// let (q, k) = (Tensor::randn([1, 8, 5, 16]), Tensor::randn([1, 2, 7, 16]));
        /// let options = Attention { scale: Some(0.1), grouped: true, ..default() };
        /// assert_eq!(q.sdpa_with(&k, &k, None, None, options).sizes()?, [1, 8, 5, 16]);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        sdpa_with(x: tensor, k: tensor, v: tensor, mask: optional, key: optional, options: Attention) -> tensor = attention::sdpa_with;
        /// `tanh(x W + h U)`: a recurrent step with weights (inputs, width) and (width, width), and the biases of both.
        rnn_cell(x: tensor, h: tensor, weight: tensor, recurrent: tensor, bias: optional, recurrent_bias: optional) -> tensor = recurrent::rnn_cell;
        /// The next h and c of a long short-term memory: weights (inputs, 4 width) and (width, 4 width) of the gates i, f, g, o.
        lstm_cell(x: tensor, h: tensor, c: tensor, weight: tensor, recurrent: tensor, bias: optional, recurrent_bias: optional) -> array[2] = recurrent::lstm_cell;
        /// The next h of a gated unit: weights (inputs, 3 width) and (width, 3 width) of the gates r, z, n.
        gru_cell(x: tensor, h: tensor, weight: tensor, recurrent: tensor, bias: optional, recurrent_bias: optional) -> tensor = recurrent::gru_cell;
        /// All states of `rnn_cell` over the first axis, and the last one.
        rnn(x: tensor, h: tensor, weight: tensor, recurrent: tensor, bias: optional, recurrent_bias: optional) -> array[2] = recurrent::rnn;
        /// All states h of `lstm_cell` over the first axis, and the last h and c.
        lstm(x: tensor, h: tensor, c: tensor, weight: tensor, recurrent: tensor, bias: optional, recurrent_bias: optional) -> array[3] = recurrent::lstm;
        /// All states of `gru_cell` over the first axis, and the last one.
        gru(x: tensor, h: tensor, weight: tensor, recurrent: tensor, bias: optional, recurrent_bias: optional) -> array[2] = recurrent::gru;
        /// Layers of `rnn`, each over the states of the one before, and back through the steps too if `both_ways`: all states of
        /// the last layer (steps, batch, ways · width), and the last ones of all (layers · ways, batch, width), as `h` has the
        /// first ones. `weights` are those of each layer and way in turn: weight, recurrent, and the two biases or none.
        rnn_layers(x: tensor, h: tensor, weights: tensors, both_ways: flag) -> array[2] = recurrent::rnn_layers;
        /// Layers of `lstm`, as `rnn_layers`: all states h of the last one, and the last h and c of all.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let (x, h) = (Tensor::randn([7, 2, 3]), Tensor::zeros([2, 2, 4]));
        /// let (weight, recurrent) = (Tensor::randn([3, 16]), Tensor::randn([4, 16]));
        /// let found = x.lstm_layers(&h, &h, &[&weight, &recurrent, &weight, &recurrent], true);
        /// assert_eq!(found[0].sizes()?, [7, 2, 8]);
        /// assert_eq!(found[2].sizes()?, [2, 2, 4]);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        lstm_layers(x: tensor, h: tensor, c: tensor, weights: tensors, both_ways: flag) -> array[3] = recurrent::lstm_layers;
        /// Layers of `gru`, as `rnn_layers`.
        gru_layers(x: tensor, h: tensor, weights: tensors, both_ways: flag) -> array[2] = recurrent::gru_layers;
        /// `rnn_layers`, to be trained: of the states that a layer shows the next one, `key` (a u64 scalar) draws for each layer
        /// anew which are 0, with probability `dropout`; the others are over `1 - dropout`.
        rnn_layers_with(x: tensor, h: tensor, weights: tensors, both_ways: flag, key: tensor, dropout: float) -> array[2] = recurrent::rnn_layers_with;
        /// `lstm_layers` with dropout between the layers, as `rnn_layers_with`.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// let (x, h) = (Tensor::randn([7, 2, 3]), Tensor::zeros([2, 2, 4]));
        /// let first = [Tensor::randn([3, 16]), Tensor::randn([4, 16])];
        /// let second = [Tensor::randn([4, 16]), Tensor::randn([4, 16])];
        /// let weights = [&first[0], &first[1], &second[0], &second[1]];
        /// let trained = x.lstm_layers_with(&h, &h, &weights, false, Tensor::random_key(), 0.5);
        /// let tested = x.lstm_layers(&h, &h, &weights, false);
        /// assert_eq!(trained[0].sizes()?, tested[0].sizes()?);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        lstm_layers_with(x: tensor, h: tensor, c: tensor, weights: tensors, both_ways: flag, key: tensor, dropout: float) -> array[3] = recurrent::lstm_layers_with;
        /// `gru_layers` with dropout between the layers, as `rnn_layers_with`.
        gru_layers_with(x: tensor, h: tensor, weights: tensors, both_ways: flag, key: tensor, dropout: float) -> array[2] = recurrent::gru_layers_with;

        /// One value everywhere.
        full(shape: shape, value: float, dtype: dtype) -> tensor = creation::full;
        /// Zeros.
        zeros(shape: shape, dtype: dtype) -> tensor = creation::zeros;
        /// Ones.
        ones(shape: shape, dtype: dtype) -> tensor = creation::ones;
        /// `start`, `start + step`, … before `stop`.
        arange(start: float, stop: float, step: float, dtype: dtype) -> tensor = creation::arange;
        /// `start`, `start + step`, … before `stop`, of any dtype.
        ///
        /// ```
        /// # use tinyspec_core::Tensor;
        /// # use tinyspec_ir::DType;
        /// let x = Tensor::arange_of(1.0, 2.0, 0.25, DType::F32);
        /// assert_eq!(x.to_vec::<f32>()?, [1.0, 1.25, 1.5, 1.75]);
        /// # Ok::<(), tinyspec_core::Error>(())
        /// ```
        arange_of(start: float, stop: float, step: float, dtype: dtype) -> tensor = creation::arange;
        /// `steps` values from `start` to `stop`.
        linspace(start: float, stop: float, steps: int, dtype: dtype) -> tensor = creation::linspace;
        /// `base` to the powers of `steps` numbers from `start` to `stop`.
        logspace(start: float, stop: float, steps: int, base: float, dtype: dtype) -> tensor = shapes::logspace;
        /// Two rows of numbers (i32): rows and columns of a lower triangle, up to its `offset`-th diagonal.
        tril_indices(rows: int, columns: int, offset: int) -> tensor = shapes::tril_indices;
        /// Two rows of numbers (i32): rows and columns of an upper triangle, from its `offset`-th diagonal on.
        triu_indices(rows: int, columns: int, offset: int) -> tensor = shapes::triu_indices;
        /// A window of half a cosine up and down (f32); `periodic` leaves the last 0 away.
        hann_window(length: int, periodic: flag) -> tensor = shapes::hann_window;
        /// The window `0.54 - 0.46 cos` (f32).
        hamming_window(length: int, periodic: flag) -> tensor = shapes::hamming_window;
        /// The window `0.42 - 0.5 cos + 0.08 cos` of twice the angle (f32).
        blackman_window(length: int, periodic: flag) -> tensor = shapes::blackman_window;
        /// Ones on the diagonal.
        eye(n: size, m: size, dtype: dtype) -> tensor = creation::eye;
        /// 64 random bits of each counter (u64) under a u64 key: Threefry-2x32 with 20 rounds.
        threefry(counter: tensor, key: tensor) -> tensor = random::threefry;
        /// Uniform in `[low, high)`, by Threefry from a u64 key.
        uniform(key: tensor, shape: shape, low: float, high: float, dtype: dtype) -> tensor = random::uniform;
        /// Standard normal, by Threefry from a u64 key.
        randn(key: tensor, shape: shape, dtype: dtype) -> tensor = random::randn;
        /// Whole numbers in `[low, high)`, by Threefry from this u64 key.
        randint_with(key: tensor, shape: shape, low: int, high: int, dtype: dtype) -> tensor = draw::randint;
        /// Uniform numbers in `[low, high)`, by Threefry from this u64 key.
        uniform_with(key: tensor, shape: shape, low: float, high: float, dtype: dtype) -> tensor = random::uniform;
        /// Normal numbers of this mean and standard deviation, by Threefry from this u64 key.
        normal_with(key: tensor, shape: shape, mean: float, std: float, dtype: dtype) -> tensor = draw::normal;
        /// 0, 1, … `n - 1` in random order (i32), by Threefry from this u64 key.
        permutation_with(key: tensor, n: int) -> tensor = draw::permutation;
        /// 1 with the probability that each element is, else 0, from a u64 key.
        bernoulli_with(x: tensor, key: tensor) -> tensor = draw::bernoulli;
        /// `count` positions along the last axis, with probabilities as its elements, from a u64 key (i32); -1 where
        /// nothing is left that has a probability, and where a row has a nan or an infinity.
        multinomial_with(x: tensor, key: tensor, count: int, replacement: flag) -> tensor = draw::multinomial;
        /// An axis in random order, from a u64 key.
        shuffle_with(x: tensor, key: tensor, axis: int) -> tensor = draw::shuffle;
        /// Each element 0 with probability `p`, the others over `1 - p`, from a u64 key.
        dropout_with(x: tensor, key: tensor, p: float) -> tensor = draw::dropout;
        /// Numbers with the density `rate · e^(-rate · x)`, by Threefry from this u64 key.
        exponential_with(key: tensor, shape: shape, rate: float, dtype: dtype) -> tensor = draw::exponential;
        /// The softmax of noisy logits over `temperature`, from a u64 key; `hard` shows its greatest element, with the
        /// gradient of the softmax. The noise and the greatest element are the same on every device, the softmax is as
        /// exact as any.
        gumbel_softmax_with(x: tensor, key: tensor, temperature: float, hard: flag, axis: int) -> tensor = draw::gumbel_softmax;
    } };
}
