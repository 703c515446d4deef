//! The digits example, part by part.

#[path = "../confusion.rs"]
mod confusion;
#[path = "../data.rs"]
mod data;
#[path = "../draw.rs"]
mod draw;
#[path = "../network.rs"]
mod network;
#[path = "../options.rs"]
mod options;
#[path = "../program.rs"]
mod program;

mod drawing;
mod line;
mod reading;
mod running;
mod splitting;
mod training;

/// Held by tests that draw random numbers: the seed is one for the process.
static SEED: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    SEED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
