//! The #[function] and uop! macros of tinyspec.
