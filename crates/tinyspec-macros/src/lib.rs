//! The macros of tinyspec: Rust tensor code becomes graphs while rustc compiles it.
//!
//! `#[function]` traces a body with [`tinyspec_ir`]'s own builders and embeds the graph; mistakes are reported at the
//! user's tokens. `uop!` does the same for kernels written by hand. See the crate `tinyspec` for usage.

mod diagnostics;
mod documentation;
mod editor;
mod function;
mod half_typed;
mod kernel;
mod model;
mod renamed;

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

/// A struct of tensors with declared shapes; see `tinyspec::model`.
#[proc_macro_attribute]
pub fn model(options: TokenStream, item: TokenStream) -> TokenStream {
    model::expand(options.into(), item.into()).into()
}

/// The last step of a `#[model]` that contains others, and of a `#[function] impl`.
#[doc(hidden)]
#[proc_macro]
pub fn model_companion(input: TokenStream) -> TokenStream {
    model::expand_companion(input.into()).into()
}

/// The last step of a `#[function]` that takes models: its companion.
#[doc(hidden)]
#[proc_macro]
pub fn companion(input: TokenStream) -> TokenStream {
    function::expand_companion(input.into()).into()
}

/// The last step of a `#[function]` that calls others: all their signatures are known.
#[doc(hidden)]
#[proc_macro]
pub fn trace(input: TokenStream) -> TokenStream {
    function::expand_traced(input.into()).into()
}
