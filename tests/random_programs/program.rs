//! Programs made of numbers: any list of genes is a program that tensors accept, so shrinking the genes shrinks it.

use tinyspec::{DType, Tensor};

/// How an input is filled, and what steps may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Whole numbers and ops that are exact on them: every device agrees bit for bit.
    Exact,
    /// As exact, with nan, infinities and -0 among the floats.
    Special,
    /// Smooth ops: compared within a tolerance, gradients with finite differences.
    Smooth,
    /// Attention and softmax of f32, and what uses their results again, all of one shape.
    Attention,
}

/// What decides an input: dtype, rank, dims, seed of its data.
pub type InputGenes = [u16; 6];
/// What decides a step: which op, on which values, with which parameters.
pub type StepGenes = [u16; 6];

/// A program and its data.
#[derive(Clone, Debug)]
pub struct Program {
    pub family: Family,
    pub inputs: Vec<InputGenes>,
    pub steps: Vec<StepGenes>,
}

/// Data of an input.
#[derive(Clone, Debug)]
pub struct Input {
    pub dtype: DType,
    pub shape: Vec<i64>,
    pub values: Vec<f64>,
}

const DIMS: [i64; 11] = [1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64];
/// Greatest number of elements of a value.
const LARGEST: i64 = 6000;

fn dim(gene: u16) -> i64 {
    // Empty axes are rare.
    let index = gene as usize % 64;
    if index == 63 { 0 } else { DIMS[index % DIMS.len()] }
}

impl Program {
    /// The inputs with their data.
    pub fn data(&self) -> Vec<Input> {
        self.inputs.iter().map(|genes| self.input(*genes)).collect()
    }

    fn input(&self, genes: InputGenes) -> Input {
        use DType::*;
        let dtypes: &[DType] = match self.family {
            Family::Smooth => &[F64],
            Family::Attention => &[F32],
            _ => &[F32, I32, F64, U8, Bool, I64, I8, F32, U32, I16, U16, U64],
        };
        let dtype = dtypes[genes[0] as usize % dtypes.len()];
        let rank = genes[1] as usize % 5;
        let mut shape: Vec<i64> = Vec::new();
        for axis in 0..rank {
            let size = dim(genes[2].wrapping_add((axis as u16).wrapping_mul(genes[3])));
            let total: i64 = shape.iter().product::<i64>().max(1);
            shape.push(if total * size > 1500 { 1 } else { size });
        }
        if self.family == Family::Attention {
            // Enough scores for blocks of them; the first input decides.
            let genes = self.inputs[0];
            shape = vec![
                [1, 2][genes[1] as usize % 2],
                [64, 70, 96][genes[2] as usize % 3],
                [4, 8, 5][genes[3] as usize % 3],
            ];
        }
        let count = shape.iter().product::<i64>();
        let mut state = u64::from(genes[4]).wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        // Some reach to where exponentials end.
        let reach = if genes[5].is_multiple_of(4) { 50.0 } else { 1.0 };
        let values = (0..count)
            .map(|_| {
                let number = next();
                match (self.family, dtype) {
                    (Family::Attention, _) => (number % 4001) as f64 / 1000.0 - 2.0,
                    (Family::Smooth, _) => ((number % 4001) as f64 / 1000.0 - 2.0) * reach,
                    (_, Bool) => (number % 2) as f64,
                    (Family::Special, F32 | F64) if number.is_multiple_of(5) => {
                        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 512.0, -0.0][number as usize / 5 % 6]
                    }
                    (_, U8 | U16 | U32 | U64) => (number % 8) as f64,
                    _ => (number % 15) as f64 - 7.0,
                }
            })
            .collect();
        Input { dtype, shape, values }
    }

    /// The results: the last values of the program, and their names for a report. Where `reads`, some values are computed
    /// on the way, which changes nothing.
    pub fn run(&self, inputs: &[Tensor], reads: bool, log: &mut Vec<String>) -> Vec<Tensor> {
        let mut pool: Vec<Tensor> = inputs.to_vec();
        for genes in &self.steps {
            let (name, result) = match self.family {
                Family::Smooth => smooth(&pool, *genes),
                Family::Attention => attention(&pool, *genes),
                _ => exact(&pool, *genes),
            };
            if reads && genes[5].is_multiple_of(8) {
                // An error is carried on.
                let _ = result.realize();
            }
            let shape: Vec<String> = result.shape().iter().map(|dim| dim.to_string()).collect();
            log.push(format!("v{} = {name} -> {} [{}]", pool.len(), result.dtype(), shape.join(", ")));
            pool.push(result);
        }
        pool.split_off(inputs.len().min(pool.len() - 1))
    }
}

fn sizes(x: &Tensor) -> Vec<i64> {
    x.sizes().unwrap_or_default().into_iter().map(|size| size as i64).collect()
}

fn count(x: &Tensor) -> i64 {
    sizes(x).iter().product()
}

fn pick(pool: &[Tensor], gene: u16) -> (usize, Tensor) {
    // Counted from the newest, so that 0 makes a chain.
    let index = pool.len() - 1 - gene as usize % pool.len();
    (index, pool[index].clone())
}

fn float(x: &Tensor) -> Tensor {
    if x.dtype().is_float() { x.clone() } else { x.cast(DType::F32) }
}

/// Two integers, or two as i32.
fn ints(x: &Tensor, y: &Tensor) -> (Tensor, Tensor) {
    if x.dtype().promote(y.dtype()).is_some_and(|dtype| dtype.is_int()) {
        (x.clone(), y.clone())
    } else {
        (x.cast(DType::I32), y.cast(DType::I32))
    }
}

/// A bool as a number.
fn number(x: &Tensor) -> Tensor {
    if x.dtype() == DType::Bool { x.cast(DType::I32) } else { x.clone() }
}

fn int(x: &Tensor) -> Tensor {
    if x.dtype().is_int() { x.clone() } else { x.cast(DType::I32) }
}

/// Whole numbers stay small, so that sums and products are exact.
fn small(x: Tensor) -> Tensor {
    if x.dtype() == DType::Bool {
        x
    } else if x.dtype().is_unsigned() {
        x.minimum(9)
    } else {
        x.maximum(-9).minimum(9)
    }
}

/// A value of the pool that broadcasts with `x`, else a part of `x` itself.
fn partner(pool: &[Tensor], gene: u16, x: &Tensor) -> (String, Tensor) {
    let (index, y) = pick(pool, gene);
    let (a, b) = (sizes(x), sizes(&y));
    let mut total = 1;
    for axis in 0..a.len().max(b.len()) {
        let at = |s: &[i64]| s.len().checked_sub(axis + 1).map_or(1, |i| s[i]);
        let (p, q) = (at(&a), at(&b));
        if p != q && p != 1 && q != 1 {
            let axis = gene as i64 % a.len().max(1) as i64;
            return if a.is_empty() || a[axis as usize] == 0 {
                ("itself".into(), x.clone())
            } else {
                (format!("itself[{axis}; {}]", a[axis as usize] - 1), x.narrow(axis, a[axis as usize] - 1, 1))
            };
        }
        total *= if p == 1 { q } else { p };
    }
    if total > LARGEST { ("itself".into(), x.clone()) } else { (format!("v{index}"), y) }
}

fn movement(x: &Tensor, pool: &[Tensor], genes: StepGenes) -> (String, Tensor) {
    let shape = sizes(x);
    let rank = shape.len() as i64;
    let axis = if rank == 0 { 0 } else { i64::from(genes[2]) % rank };
    let (a, b) = (i64::from(genes[3]), i64::from(genes[4]));
    let at = |axis: i64| shape.get(axis as usize).copied().unwrap_or(1);
    match genes[5] % 17 {
        0 if rank > 0 => (format!("flip({axis})"), x.flip([axis])),
        1 if rank > 1 => {
            let other = a % rank;
            (format!("transpose({axis}, {other})"), x.transpose(axis, other))
        }
        2 => (format!("unsqueeze({})", axis), x.unsqueeze(axis)),
        3 => ("squeeze(..)".into(), x.squeeze(..)),
        4 if rank > 0 => {
            let (before, after) = (a % 4, b % 4);
            if count(x) / at(axis).max(1) * (at(axis) + before + after) > LARGEST {
                return ("same".into(), x.clone());
            }
            let mut offset = vec![0; rank as usize];
            offset[axis as usize] = before;
            let mut wide = shape.clone();
            wide[axis as usize] += before + after;
            let value = if genes[1].is_multiple_of(3) { 2.0 } else { 0.0 };
            (format!("pad({offset:?}, {wide:?}, {value})"), x.pad(offset, wide, value))
        }
        5 if rank > 0 && at(axis) > 0 => {
            let start = a % at(axis);
            let length = 1 + b % (at(axis) - start);
            (format!("narrow({axis}, {start}, {length})"), x.narrow(axis, start, length))
        }
        6 => (format!("reshape({})", count(x)), x.reshape([count(x)])),
        7 if rank > 0 => {
            // Splits an axis by a divisor, and moves it to the front.
            let size = at(axis);
            let divisor = (1..=size.max(1)).filter(|d| size % d == 0).nth(a as usize % 3).unwrap_or(1);
            let split = x.unflatten(axis, [divisor, size / divisor]);
            (
                format!("unflatten({axis}, [{divisor}, {}]).transpose(0, {axis})", size / divisor),
                split.transpose(0, axis),
            )
        }
        8 if rank > 0 && count(x) * 2 <= LARGEST => {
            let (name, y) = match pick(pool, genes[3]) {
                (index, y)
                    if y.rank() == x.rank()
                        && (0..rank as usize).all(|i| i as i64 == axis || sizes(&y)[i] == shape[i]) =>
                {
                    (format!("v{index}"), y)
                }
                _ => ("itself".into(), x.flip([axis])),
            };
            let y = y.cast(x.dtype());
            (format!("cat({name}; {axis})"), Tensor::cat(&[x, &y, x], axis))
        }
        9 if count(x) * 2 <= LARGEST && rank < 5 => {
            (format!("stack([x, -x], {axis})"), Tensor::stack(&[x, &x.flip([0i64; 0])], axis))
        }
        10 if rank > 0 => {
            let mut repeats = vec![1; rank as usize];
            repeats[axis as usize] = 1 + a % 3;
            if count(x) * 3 > LARGEST {
                return ("same".into(), x.clone());
            }
            (format!("repeat({repeats:?})"), x.repeat(repeats))
        }
        11 if rank > 0 => (format!("roll([{}], [{axis}])", a % 9 - 4), x.roll([a % 9 - 4], [axis])),
        12 if rank > 1 && shape.iter().all(|&d| d < 100) => (format!("triu({})", a % 5 - 2), x.triu(a % 5 - 2)),
        13 if rank > 1 && shape.iter().all(|&d| d < 100) => (format!("tril({})", a % 5 - 2), x.tril(a % 5 - 2)),
        14 if rank > 1 => {
            let order: Vec<i64> = (0..rank).map(|i| (i + 1 + a) % rank).collect();
            (format!("permute({order:?})"), x.permute(order))
        }
        15 if rank > 0 && at(axis) > 1 => {
            let pieces = x.split(1 + a % at(axis), axis);
            let index = b as usize % pieces.len();
            (format!("split({}, {axis})[{index}]", 1 + a % at(axis)), pieces[index].clone())
        }
        16 => ("contiguous()".into(), x.contiguous()),
        _ => {
            let mut wide = shape.clone();
            wide.insert(0, 1 + a % 3);
            if count(x) * 3 > LARGEST || rank > 4 {
                return ("same".into(), x.clone());
            }
            (format!("expand({wide:?})"), x.expand(wide))
        }
    }
}

fn axes_of(rank: i64, a: u16) -> Vec<i64> {
    match rank {
        0 => vec![],
        _ => {
            let first = i64::from(a) % rank;
            let second = i64::from(a / 7) % rank;
            let mut axes = vec![first, second];
            axes.sort_unstable();
            axes.dedup();
            axes
        }
    }
}

fn exact(pool: &[Tensor], genes: StepGenes) -> (String, Tensor) {
    let (index, x) = pick(pool, genes[1]);
    let rank = x.rank() as i64;
    let shape = sizes(&x);
    let axis = if rank == 0 { 0 } else { i64::from(genes[3]) % rank };
    let on = |name: &str, result: Tensor| (format!("v{index}.{name}"), result);
    let kind = genes[0] % 40;
    match kind {
        0..=11 => {
            let (name, result) = movement(&x, pool, genes);
            on(&name, result)
        }
        12..=19 => {
            let (name, y) = partner(pool, genes[2], &x);
            let (op, result) = match genes[3] % 17 {
                0 => ("add", small(x.add(&y))),
                1 => ("sub", small(number(&x).sub(&y))),
                2 => ("mul", small(x.mul(&y))),
                3 => ("maximum", x.maximum(&y)),
                4 => ("minimum", x.minimum(&y)),
                5 => ("lt", x.lt(&y)),
                6 => ("eq", x.eq(&y)),
                7 => ("ge", x.ge(&y)),
                8 => ("idiv floor", small(ints(&x, &y).0.idiv(&ints(&x, &y).1, "floor"))),
                9 => ("idiv trunc", small(ints(&x, &y).0.idiv(&ints(&x, &y).1, "trunc"))),
                10 => ("modulo", small(int(&x).modulo(&y))),
                11 => ("fmod", small(int(&x).fmod(&y))),
                12 => ("xor", small(ints(&x, &y).0.xor(&ints(&x, &y).1))),
                13 => ("and", small(ints(&x, &y).0.and(&ints(&x, &y).1))),
                14 => ("shl", small(ints(&x, &y).0.shl(&ints(&x, &y).1))),
                15 => ("shr", small(ints(&x, &y).0.shr(&ints(&x, &y).1))),
                // A gather is a one-hot sum or a read, and only a read preserves the sign of -0.
                _ => ("copysign", float(&x).copysign(y.eq(0).where_(1, float(&y)))),
            };
            on(&format!("{op}({name})"), result)
        }
        20..=22 => {
            let result = match genes[2] % 17 {
                0 => ("relu", x.relu()),
                1 => ("neg", small(number(&x).neg())),
                2 => ("abs", small(x.abs())),
                3 => ("sign", x.sign()),
                4 => ("square", small(x.square())),
                5 => ("floor", float(&x).floor()),
                6 => ("round", float(&x).mul(0.5).round()),
                7 => ("trunc", float(&x).trunc()),
                8 => ("ceil", float(&x).ceil()),
                9 => ("isnan", float(&x).isnan()),
                10 => ("isinf", float(&x).isinf()),
                11 => ("logical_not", x.logical_not()),
                12 => ("clip", x.clip(-2.0, 3.0)),
                13 if !x.dtype().is_float() => ("not", x.not()),
                14 => ("leaky_relu", float(&x).leaky_relu(2.0)),
                15 => ("detach", x.detach()),
                _ => ("sqrt(square)", float(&x).square().sqrt()),
            };
            on(result.0, small(result.1))
        }
        23..=26 => {
            use DType::*;
            let to = [F32, I32, F64, U8, Bool, I64, I8, U16, U32, I16, U64, F16, BF16][genes[2] as usize % 13];
            let y = x.cast(to);
            // Narrow floats hold these whole numbers exactly.
            let y = if matches!(to, F16 | BF16) { small(y.cast(F32)) } else { small(y) };
            on(&format!("cast({to})"), y)
        }
        27..=31 => {
            let axes = axes_of(rank, genes[3]);
            let keep = genes[4].is_multiple_of(2);
            let (name, result) = match genes[2] % 14 {
                0 | 7 => ("sum", small(x.sum(axes.as_slice(), keep))),
                1 => ("max", x.max(axes.as_slice(), keep)),
                2 => ("min", x.min(axes.as_slice(), keep)),
                3 => ("any", x.any(axes.as_slice(), keep)),
                4 => ("all", x.all(axes.as_slice(), keep)),
                5 => ("prod", x.sign().prod(axes.as_slice(), keep)),
                6 => ("sum", small(x.sum(.., keep))),
                8 if rank > 0 && (1..100).contains(&shape[axis as usize]) => ("argmax", x.argmax(axis)),
                9 if rank > 0 && (1..100).contains(&shape[axis as usize]) => ("argmin", x.argmin(axis)),
                10 if rank > 0 && shape[axis as usize] < 100 => ("cumsum", small(x.cumsum(axis))),
                11 if rank > 0 && shape[axis as usize] < 100 => ("cummax", x.cummax(axis)),
                12 if rank > 0 && shape[axis as usize] < 100 => ("cummin", x.cummin(axis)),
                13 if rank > 0 && shape[axis as usize] < 100 => ("cumprod", x.sign().cumprod(axis)),
                _ => ("max(..)", x.max(.., keep)),
            };
            on(&format!("{name}({axes:?} / {axis}, keepdim {keep})"), result)
        }
        32..=34 => {
            let (other, y) = pick(pool, genes[2]);
            let other_shape = sizes(&y);
            if rank > 0 && !other_shape.is_empty() {
                let (inner, outer) = (shape[shape.len() - 1], other_shape[other_shape.len().saturating_sub(2)]);
                let batch = shape.len().max(other_shape.len()) <= 2;
                if inner == outer && batch && count(&x) * other_shape[other_shape.len() - 1] <= 60000 {
                    return on(&format!("matmul(v{other})"), small(x.matmul(&y)));
                }
            }
            if rank > 1 && count(&x) * shape[shape.len() - 2] <= 60000 {
                return on("matmul(its transpose)", small(x.matmul(x.transpose(-1, -2))));
            }
            on("square", small(x.square()))
        }
        35 => {
            let (name, y) = partner(pool, genes[2], &x);
            let condition = x.lt(2);
            (format!("where(v{index} < 2, {name}, v{index})"), condition.where_(&y, &x))
        }
        36 => {
            let classes = [3, 5, 9, 17][genes[2] as usize % 4];
            if count(&x) * classes > LARGEST {
                return on("same", x.clone());
            }
            on(&format!("one_hot({classes})"), int(&x).one_hot(classes))
        }
        37 if rank > 0 => {
            // An index of the same shape but for one axis.
            let (other, y) = pick(pool, genes[2]);
            let mut wanted = shape.clone();
            wanted[axis as usize] = 1 + i64::from(genes[4]) % 4;
            let flat = int(&y).reshape([count(&y)]);
            let need: i64 = wanted.iter().product();
            if count(&y) < need || need * shape[axis as usize] > 20000 {
                return on("same", x.clone());
            }
            let index_tensor = flat.narrow(0, 0, need).reshape(wanted);
            on(&format!("gather(v{other} part, {axis})"), x.gather(&index_tensor, axis))
        }
        38 if rank > 0 => {
            let (other, y) = pick(pool, genes[2]);
            if count(&y) * count(&x) / shape[0].max(1) > LARGEST {
                return on("same", x.clone());
            }
            let y = int(&y);
            if genes[4].is_multiple_of(2) {
                on(&format!("index0(v{other})"), x.index0(&y))
            } else {
                on(&format!("embedded by v{other}"), y.embedding(&x))
            }
        }
        39 if rank > 0 && shape[axis as usize] < 100 => on(&format!("+ arange along {axis}"), {
            let mut dims = vec![1; rank as usize];
            dims[axis as usize] = shape[axis as usize];
            small(x.add(Tensor::arange(shape[axis as usize]).reshape(dims)))
        }),
        _ => on("same", x.clone()),
    }
}

fn smooth(pool: &[Tensor], genes: StepGenes) -> (String, Tensor) {
    let (index, x) = pick(pool, genes[1]);
    let rank = x.rank() as i64;
    let shape = sizes(&x);
    let axis = if rank == 0 { 0 } else { i64::from(genes[3]) % rank };
    let on = |name: &str, result: Tensor| (format!("v{index}.{name}"), result);
    match genes[0] % 30 {
        0..=8 => {
            let (name, result) = movement(&x, pool, genes);
            on(&name, result)
        }
        9..=12 => {
            let (name, y) = partner(pool, genes[2], &x);
            let (op, result) = match genes[3] % 8 {
                0 => ("add", x.add(&y)),
                1 => ("sub", x.sub(&y)),
                2 => ("mul", x.mul(&y).softsign()),
                3 => ("div 1+y²", x.div(y.square().add(1.0))),
                4 => ("logaddexp", x.logaddexp(&y)),
                5 => ("pow", x.square().add(0.5).log().add(1.5).square().add(0.1).pow(y.tanh())),
                6 => ("lerp", x.lerp(&y, 0.3)),
                _ => ("maximum", x.maximum(y.mul(1.0123).add(0.0517))),
            };
            on(&format!("{op}({name})"), result)
        }
        13..=19 => {
            let (name, result) = match genes[2] % 27 {
                0 => ("exp", x.tanh().exp()),
                1 => ("log", x.square().add(0.3).log()),
                2 => ("sqrt", x.square().add(0.3).sqrt()),
                3 => ("rsqrt", x.square().add(0.3).rsqrt()),
                4 => ("tanh", x.tanh()),
                5 => ("sigmoid", x.sigmoid()),
                6 => ("gelu", x.gelu()),
                7 => ("silu", x.silu()),
                8 => ("softplus", x.softplus()),
                9 => ("sin", x.sin()),
                10 => ("cos", x.cos()),
                11 => ("mish", x.mish()),
                12 => ("logsigmoid", x.logsigmoid()),
                13 => ("quick_gelu", x.quick_gelu()),
                14 => ("elu", x.elu(1.3)),
                15 => ("celu", x.celu(1.3)),
                16 => ("selu", x.selu()),
                17 => ("softsign", x.softsign()),
                18 => ("reciprocal", x.square().add(0.5).reciprocal()),
                19 => ("exp2", x.tanh().exp2()),
                20 => ("log2", x.square().add(0.3).log2()),
                21 => ("log10", x.square().add(0.3).log10()),
                22 => ("sinh", x.tanh().sinh()),
                23 => ("cosh", x.tanh().cosh()),
                24 => ("pow_const", x.square().add(0.3).pow_const(1.7)),
                25 => ("const_pow", x.tanh().const_pow(2.5)),
                _ => ("tan", x.tanh().tan()),
            };
            on(name, result)
        }
        20..=25 => {
            let axes = axes_of(rank, genes[3]);
            if count(&x) == 0 {
                return on("same", x.clone());
            }
            let keep = genes[4].is_multiple_of(2);
            let (name, result) = match genes[2] % 13 {
                0 => ("sum", x.sum(axes.as_slice(), keep).softsign()),
                1 => ("mean", x.mean(axes.as_slice(), keep)),
                2 => ("var", x.var(axes.as_slice(), 0, keep)),
                3 => ("std", x.var(axes.as_slice(), 0, keep).add(0.1).sqrt()),
                4 => ("logsumexp", x.logsumexp(axes.as_slice(), keep)),
                5 if rank > 0 => ("softmax", x.softmax(axis)),
                6 if rank > 0 => ("log_softmax", x.log_softmax(axis)),
                7 if rank > 0 && shape[axis as usize] < 100 => ("cumsum", x.cumsum(axis).softsign()),
                8 => ("prod", x.tanh().mul(0.2).add(1.0).prod(axes.as_slice(), keep).softsign()),
                9 => ("max", x.max(axes.as_slice(), keep)),
                10 => ("min", x.min(axes.as_slice(), keep)),
                11 if rank > 0 && shape[axis as usize] < 100 => {
                    ("cumprod", x.tanh().mul(0.2).add(1.0).cumprod(axis).softsign())
                }
                12 if rank > 0 => {
                    let width = shape[shape.len() - 1];
                    let (w, b) = (Tensor::ones([width]).cast(DType::F64), Tensor::zeros([width]).cast(DType::F64));
                    ("layer_norm", x.layer_norm(w, b, 1, 0.1))
                }
                _ => ("mean(..)", x.mean(.., keep)),
            };
            on(&format!("{name}({axes:?} / {axis}, keepdim {keep})"), result)
        }
        28 | 29 if rank > 0 && count(&x) > 0 && shape[axis as usize] < 100 => {
            let (name, result) = match genes[2] % 4 {
                0 => ("logcumsumexp", x.logcumsumexp(axis)),
                1 => ("normalize", x.normalize(2.0, axis, 0.1)),
                2 => ("cumsum", x.cumsum(axis)),
                _ => ("std", x.add(x.square()).var([axis], 0, true).add(0.01).sqrt()),
            };
            on(&format!("{name}({axis})"), result)
        }
        _ => {
            let (other, y) = pick(pool, genes[2]);
            let other_shape = sizes(&y);
            if rank > 0 && !other_shape.is_empty() {
                let (inner, outer) = (shape[shape.len() - 1], other_shape[other_shape.len().saturating_sub(2)]);
                if inner == outer
                    && shape.len().max(other_shape.len()) <= 2
                    && count(&x) * other_shape[other_shape.len() - 1] <= 60000
                {
                    return on(&format!("matmul(v{other})"), x.matmul(&y).softsign());
                }
            }
            if rank > 1 && count(&x) * shape[shape.len() - 2] <= 60000 {
                return on("matmul(its transpose)", x.matmul(x.transpose(-1, -2)).softsign());
            }
            on("sin", x.sin())
        }
    }
}

fn attention(pool: &[Tensor], genes: StepGenes) -> (String, Tensor) {
    let [(a, x), (b, y), (c, z)] = [genes[1], genes[2], genes[3]].map(|gene| pick(pool, gene));
    match genes[0] % 16 {
        0..=4 => {
            let causal = genes[4].is_multiple_of(2);
            (format!("v{a}.sdpa(v{b}, v{c}, {causal})"), x.sdpa(&y, &z, causal))
        }
        5 => (format!("softmax(v{a} v{b}ᵀ / 4) v{c}"), x.matmul(y.transpose(-1, -2)).mul(0.25).softmax(-1).matmul(&z)),
        6 => (format!("v{a}.softmax(-1)"), x.softmax(-1)),
        7 => (format!("v{a}.softmax(1)"), x.softmax(1)),
        8 => (format!("v{a}.gelu()"), x.gelu()),
        9 => (format!("v{a}.sigmoid()"), x.sigmoid()),
        10 => (format!("tanh(v{a})²"), x.tanh().square()),
        11 => (format!("v{a} - mean"), x.sub(x.mean(-1, true))),
        12 => (format!("softsign(v{a} + v{b})"), x.add(&y).softsign()),
        _ => (format!("softsign(v{a} · v{b})"), x.mul(&y).softsign()),
    }
}
