//! The macros of tinyspec: Rust tensor code becomes graphs while rustc compiles it.
//!
//! `#[function]` traces a body with [`tinyspec_ir`]'s own builders and embeds the graph; what is wrong is reported by
//! rustc at the user's tokens. `uop!` does the same for kernels written by hand. See the crate `tinyspec` for what users write.

mod diagnostics;
mod function;
mod kernel;

use proc_macro::TokenStream;

/// Traces a function over tensors at compile time; see `tinyspec::function`.
#[proc_macro_attribute]
pub fn function(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(options.into(), item.into()).into()
}

/// Kernels written by hand, checked and traced at compile time; see `tinyspec::uop`.
#[proc_macro]
pub fn uop(input: TokenStream) -> TokenStream {
    kernel::expand(input.into()).into()
}

/// The last step of a `#[function]` that calls others: all their signatures are known.
#[doc(hidden)]
#[proc_macro]
pub fn trace(input: TokenStream) -> TokenStream {
    function::expand_traced(input.into()).into()
}
