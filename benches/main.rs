//! `cargo bench`: every benchmark beside its limit, in one table. `cargo bench -- gemm` runs those whose name holds `gemm`.

mod attention;
mod blocks;
mod candle;
mod check;
mod contractions;
mod figures;
mod growth;
mod hand_written;
mod kernels;
mod latency;
mod macros;
mod memory_bound;
mod models;
mod peers;
mod schedules;
mod selections;
mod session;
mod training;

use std::process::ExitCode;

use session::Session;
use tinyspec::backends::Processor;

/// Prepared calls allocate nothing, which a bench counts.
#[global_allocator]
static ALLOCATOR: latency::Counting = latency::Counting;

fn main() -> ExitCode {
    let instead = latency::probe::answered().and_then(|answered| match growth::selected() {
        _ if !answered && blocks::selected() => blocks::run().map(|()| true),
        _ if !answered && candle::selected() => candle::run().map(|()| true),
        _ if !answered && check::selected() => check::run().map(|()| true),
        _ if !answered && figures::selected() => figures::run().map(|()| true),
        _ if !answered && macros::selected() => macros::run().map(|()| true),
        _ if !answered && schedules::selected() => schedules::run().map(|()| true),
        true if !answered => growth::run().map(|()| true),
        _ => Ok(answered),
    });
    match instead {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    match Processor::chosen() {
        Ok(processor) => println!("{processor}"),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    let mut session = Session::from_arguments();
    session.limits();
    let measured = kernels::benches(&mut session)
        .and_then(|()| hand_written::benches(&mut session))
        .and_then(|()| attention::counts(&mut session))
        .and_then(|()| latency::benches(&mut session))
        .and_then(|()| Ok(training::benches(&mut session)?));
    // What was measured before a failure is still worth reading.
    let written = session.finish();
    match measured.and_then(|()| Ok(written?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
