//! PyTorch eager in a process of its own, on as many threads and with the same instruction set.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs};

use serde_json::{Value, json};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// A tensor in a file of f32.
pub struct Array {
    /// As the block calls it.
    pub name: String,
    /// PyTorch's dtype.
    pub dtype: &'static str,
    /// Its dims.
    pub shape: Vec<usize>,
    /// The values.
    pub values: Vec<f32>,
}

/// The process, and a folder for what it reads and writes.
pub struct Torch {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Torch {
    /// Starts PyTorch if there is one: in the environment that `benches/peers/install` makes, or the one `TINYSPEC_PEERS` names.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(threads: usize, vector_bytes: usize) -> Result<Option<Self>> {
        let Some(python) = python() else { return Ok(None) };
        let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/torch_worker.py");
        // No matrix unit: tinyspec uses none.
        let (aten, onednn, mkl) = match vector_bytes {
            64 => ("avx512", "AVX512_CORE_BF16", "AVX512"),
            _ => ("avx2", "AVX2", "AVX2"),
        };
        let mut process = Command::new(python)
            .arg(worker)
            .env("OMP_NUM_THREADS", threads.to_string())
            .env("ATEN_CPU_CAPABILITY", aten)
            .env("ONEDNN_MAX_CPU_ISA", onednn)
            .env("MKL_ENABLE_INSTRUCTIONS", mkl)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let folder = env::temp_dir().join(format!("tinyspec-torch-{}", process.id()));
        fs::create_dir_all(&folder)?;
        let requests = process.stdin.take().ok_or("no pipe to PyTorch")?;
        let answers = BufReader::new(process.stdout.take().ok_or("no pipe from PyTorch")?);
        Ok(Some(Self { process, requests, answers, folder }))
    }

    /// Loads a block; with `wanted`, the gradients of these inputs by the first output, weighted by the cotangent. Returns
    /// the outputs of a run.
    ///
    /// # Errors
    /// When PyTorch refuses the block.
    pub fn load(
        &mut self,
        inputs: &[Array],
        code: &str,
        wanted: &[&str],
        cotangent: Option<&Array>,
    ) -> Result<Vec<Vec<f32>>> {
        let folder = self.folder.clone();
        let write = |array: &Array| -> Result<Value> {
            let path = folder.join(&array.name);
            let bytes: Vec<u8> = array.values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            fs::write(&path, bytes)?;
            Ok(json!({ "name": array.name, "path": path, "dtype": array.dtype, "shape": array.shape }))
        };
        let files = inputs.iter().map(write).collect::<Result<Vec<_>>>()?;
        let cotangent = cotangent.map(write).transpose()?;
        let request =
            json!({ "inputs": files, "code": code, "wanted": wanted, "cotangent": cotangent, "folder": self.folder });
        let answer = self.ask(&json!({ "load": request }))?;
        let paths = answer["outputs"].as_array().ok_or("no outputs from PyTorch")?;
        let read = |path: &Value| -> Result<Vec<f32>> {
            let bytes = fs::read(path.as_str().unwrap_or_default())?;
            Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect())
        };
        paths.iter().map(read).collect()
    }

    /// The seconds of an iteration of the loaded block, over so many, after one that warms the caches.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn time(&mut self, iterations: u64) -> Result<f64> {
        let answer = self.ask(&json!({ "time": iterations }))?;
        Ok(answer["seconds"].as_f64().ok_or("no time from PyTorch")?)
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.requests, "{request}")?;
        self.requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("PyTorch's process ended".into());
        }
        let answer: Value = serde_json::from_str(&line)?;
        match answer["error"].as_str() {
            Some(error) => Err(format!("PyTorch: {error}").into()),
            None => Ok(answer),
        }
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        // Neither matters any more if it fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The interpreter of the peers' environment, if it is there.
fn python() -> Option<PathBuf> {
    let folder = env::var_os("TINYSPEC_PEERS")
        .map_or_else(|| tinyspec_benches::report::target_folder().join("peers"), PathBuf::from);
    Some(folder.join("bin/python")).filter(|python| python.exists())
}
