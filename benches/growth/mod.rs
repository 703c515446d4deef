//! `cargo bench -- growth`: how cost grows. Sizes, graph lengths and kernel counts are doubled, and the times drawn
//! into `docs/growth.svg`; those of kernels of compositions that are written over squares into `docs/growth-kernels.svg`.

mod chart;
mod compositions;
mod device;
mod programs;

use std::error::Error;
use std::path::Path;

use chart::Line;
use compositions::COMPOSITIONS;
use programs::{GROWTHS, Growth};

/// Sizes of each growth, every one twice the one before.
const DOUBLINGS: u32 = 4;
/// The least of so many runs counts: what disturbs a run only adds to it.
const RUNS: usize = 3;

/// Is it asked for by name? It takes long and writes into the docs.
pub fn selected() -> bool {
    std::env::args().skip(1).any(|argument| argument == "growth")
}

/// Runs all and draws them.
///
/// # Errors
/// When a program fails, or the chart cannot be written.
pub fn run() -> Result<(), Box<dyn Error>> {
    drawn(&GROWTHS, "growth.svg")?;
    drawn(&COMPOSITIONS, "growth-kernels.svg")
}

fn drawn(growths: &[Growth], name: &str) -> Result<(), Box<dyn Error>> {
    let mut lines = Vec::new();
    for growth in growths {
        let line = measure(growth)?;
        let times: Vec<String> =
            line.points.iter().map(|(n, seconds)| format!("{n:>6}: {:9.3} ms", seconds * 1e3)).collect();
        println!("{:32} n^{:.2}  {}", line.name, line.exponent, times.join("  "));
        lines.push(line);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    chart::draw(&lines, &file)
}

fn measure(growth: &Growth) -> Result<Line, Box<dyn Error>> {
    let mut points = Vec::new();
    for doubling in 0..=DOUBLINGS {
        let n = growth.from << doubling;
        let mut least = f64::MAX;
        for run in 0..RUNS {
            // No plan of an earlier run is known to a new device.
            let name = format!("growth:{}:{n}:{run}", growth.name);
            device::register(&name);
            let took = tinyspec::with_default_device(&name, || (growth.run)(n))?;
            least = least.min(took.as_secs_f64());
        }
        points.push((n as f64, least));
    }
    Ok(Line { name: growth.name, exponent: slope(&points), points })
}

/// Least squares on the logarithms.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logarithms: Vec<(f64, f64)> = points.iter().map(|(n, seconds)| (n.ln(), seconds.ln())).collect();
    let count = logarithms.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| logarithms.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = logarithms.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    covariance / logarithms.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}
