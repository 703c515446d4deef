//! The corpus: cases as JSON lines, their arrays as safetensors.

use safetensors::SafeTensors;
use serde_json::Value;
use std::path::PathBuf;
use tinyspec::DType;

/// An array of the corpus: little-endian elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub dtype: DType,
    pub shape: Vec<i64>,
    pub bytes: Vec<u8>,
}

impl Array {
    /// Elements as f64; 64-bit integers lose low bits, so those are compared as bytes.
    pub fn to_f64(&self) -> Vec<f64> {
        let size = self.dtype.size().max(1);
        self.bytes
            .chunks_exact(size)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..size].copy_from_slice(chunk);
                let bits = u64::from_le_bytes(word);
                match self.dtype {
                    dtype if dtype.is_float() => tinyspec::ir::float::from_bits(dtype, bits),
                    dtype if dtype.is_unsigned() => bits as f64,
                    _ => ((bits << (64 - 8 * size)) as i64 >> (64 - 8 * size)) as f64,
                }
            })
            .collect()
    }
}

/// How far a result may be from the reference.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
}

/// One case of the corpus.
pub struct Case {
    pub id: String,
    pub op: String,
    pub args: serde_json::Map<String, Value>,
    pub inputs: Vec<Array>,
    pub outputs: Vec<Array>,
    /// Cotangents of the outputs that have one.
    pub cotangents: Vec<Option<Array>>,
    /// Inputs whose gradient is checked, and the gradients.
    pub gradients: Vec<(usize, Array)>,
    /// None: exact.
    pub tolerance: Option<Tolerance>,
    pub gradient_tolerance: Option<Tolerance>,
}

/// Where the corpus is: `TINYSPEC_CORPUS`, else beside the checkout.
pub fn folder() -> PathBuf {
    match std::env::var_os("TINYSPEC_CORPUS") {
        Some(folder) => folder.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance"),
    }
}

/// All cases, in the order of the file.
pub fn read(folder: &std::path::Path) -> Result<Vec<Case>, String> {
    let file = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let bytes = file("cases.safetensors")?;
    let arrays = SafeTensors::deserialize(&bytes).map_err(|error| format!("cases.safetensors: {error}"))?;
    let text = String::from_utf8(file("cases.jsonl")?).map_err(|error| format!("cases.jsonl: {error}"))?;
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| case(line, &arrays).map_err(|error| format!("cases.jsonl:{}: {error}", number + 1)))
        .collect()
}

fn case(line: &str, arrays: &SafeTensors) -> Result<Case, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let text = |key: &str| value[key].as_str().map(str::to_string).ok_or_else(|| format!("`{key}` is missing"));
    let id = text("id")?;
    let count = |key: &str| value[key].as_array().map_or(0, Vec::len);
    let wanted = |kind: &str, index: usize| {
        array(arrays, &format!("{id}/{kind}{index}")).ok_or_else(|| format!("{id}/{kind}{index} is missing"))
    };
    let gradients = value["grad"].as_array().cloned().unwrap_or_default();
    let tolerance = |prefix: &str| {
        let number = |key: &str| value["tol"][format!("{prefix}{key}")].as_f64();
        Some(Tolerance { relative: number("rtol")?, absolute: number("atol")? })
    };
    Ok(Case {
        op: text("op")?,
        args: value["args"].as_object().cloned().unwrap_or_default(),
        inputs: (0..count("in")).map(|index| wanted("in", index)).collect::<Result<_, _>>()?,
        outputs: (0..count("out")).map(|index| wanted("out", index)).collect::<Result<_, _>>()?,
        cotangents: (0..count("out")).map(|index| array(arrays, &format!("{id}/cot{index}"))).collect(),
        gradients: gradients
            .iter()
            .filter_map(Value::as_u64)
            .map(|index| Ok((index as usize, wanted("grad", index as usize)?)))
            .collect::<Result<_, String>>()?,
        tolerance: tolerance(""),
        gradient_tolerance: tolerance("grad_"),
        id,
    })
}

fn array(arrays: &SafeTensors, name: &str) -> Option<Array> {
    let view = arrays.tensor(name).ok()?;
    let dtype = DType::from_name(&format!("{:?}", view.dtype()).to_lowercase())?;
    let shape = view.shape().iter().map(|&dim| dim as i64).collect();
    Some(Array { dtype, shape, bytes: view.data().to_vec() })
}
