//! Tensors in print: their values, nested by axis, long axes shortened.

use super::Tensor;
use std::fmt;
use tinyspec_ir::DType;

/// Axes longer than this show their ends only.
const LONG: usize = 8;
/// How many elements an end is.
const END: usize = 3;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = match self.node() {
            Ok(node) => node,
            Err(error) => return write!(f, "Tensor({error})"),
        };
        write!(f, "Tensor<{}, {}>", node.props.dtype, tinyspec_ir::dim::show(&node.props.shape))?;
        match self.texts() {
            Ok((texts, sizes)) => {
                f.write_str(" ")?;
                write_axis(f, &texts, &sizes, 0, true)
            }
            Err(error) => write!(f, " ({error})"),
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.texts() {
            Ok((texts, sizes)) => write_axis(f, &texts, &sizes, 0, false),
            Err(error) => write!(f, "{error}"),
        }
    }
}

/// Elements by flat position.
type Texts = Box<dyn Fn(usize) -> String>;

impl Tensor {
    fn texts(&self) -> crate::Result<(Texts, Vec<usize>)> {
        macro_rules! by_dtype {
            ($($dtype:ident $type:ty),*) => { match self.dtype() {
                $(DType::$dtype => {
                    let data = self.to_vec::<$type>()?;
                    Box::new(move |position: usize| data.get(position).map_or(String::new(), |x| format!("{x:?}")))
                })*
                // Narrow floats are shown as what they convert to.
                _ => {
                    let data = self.cast(DType::F32).to_vec::<f32>()?;
                    Box::new(move |position: usize| data.get(position).map_or(String::new(), |x| format!("{x:?}")))
                }
            } };
        }
        let texts: Texts =
            by_dtype!(Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64);
        Ok((texts, self.sizes()?))
    }
}

fn write_axis(f: &mut fmt::Formatter<'_>, texts: &Texts, sizes: &[usize], start: usize, one_line: bool) -> fmt::Result {
    let Some((&size, inner)) = sizes.split_first() else { return f.write_str(&texts(start)) };
    let stride: usize = inner.iter().product();
    let separator = if inner.is_empty() || one_line { ", " } else { ",\n " };
    f.write_str("[")?;
    for position in 0..size {
        let left_out = size > LONG && (END..size - END).contains(&position);
        if left_out && position > END {
            continue;
        }
        if position > 0 {
            f.write_str(separator)?;
        }
        if left_out {
            f.write_str("…")?;
            continue;
        }
        write_axis(f, texts, inner, start + position * stride, one_line)?;
    }
    f.write_str("]")
}
