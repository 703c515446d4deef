//! Benchmarks against the limits of the machine.
