//! `cargo bench`: every benchmark beside its limit, in one table. `cargo bench -- gemm` runs those whose name holds `gemm`.

mod peers;
mod session;

use std::process::ExitCode;

use session::Session;

fn main() -> ExitCode {
    let mut session = Session::from_arguments();
    session.limits();
    peers::gemm::benches(&mut session);
    match session.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the report: {error}");
            ExitCode::FAILURE
        }
    }
}
