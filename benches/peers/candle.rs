//! candle in a process of its own, on as many threads: the program that `benches/peers/install` builds.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The process.
pub struct Candle {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Candle {
    /// Starts candle if it was built: where `benches/peers/install` puts it, or in the folder that `TINYSPEC_PEERS` names.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(threads: usize) -> Result<Option<Self>> {
        let folder = env::var_os("TINYSPEC_PEERS")
            .map_or_else(|| tinyspec_benches::report::target_folder().join("peers"), PathBuf::from);
        let program = folder.join("bin/tinyspec-peers-candle");
        if !program.exists() {
            return Ok(None);
        }
        let mut process = Command::new(program)
            .env("RAYON_NUM_THREADS", threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = process.stdin.take().ok_or("no pipe to candle")?;
        let answers = BufReader::new(process.stdout.take().ok_or("no pipe from candle")?);
        Ok(Some(Self { process, requests, answers }))
    }

    /// The seconds of an iteration over so many, and the sum of what it computes.
    ///
    /// # Errors
    /// When candle refuses the op, or the process is gone.
    pub fn time(&mut self, op: &str, shapes: &[Vec<usize>], iterations: u64) -> Result<(f64, f64)> {
        let shape = |shape: &Vec<usize>| shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let shapes: Vec<String> = shapes.iter().map(shape).collect();
        writeln!(self.requests, "{op} {iterations} {}", shapes.join(" "))?;
        self.requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("candle's process ended".into());
        }
        let (seconds, sum) = line.trim().split_once(' ').ok_or("no answer from candle")?;
        match (seconds.parse(), sum.parse()) {
            (Ok(seconds), Ok(sum)) => Ok((seconds, sum)),
            _ => Err(format!("candle: {}", line.trim()).into()),
        }
    }
}

impl Drop for Candle {
    fn drop(&mut self) {
        // Neither matters any more if it fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
