//! The drivers of GPUs, with a mock of each vendor's library.
