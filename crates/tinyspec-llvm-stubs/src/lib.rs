//! LLVM's C functions as jump stubs, bound when libLLVM is loaded at run time.
//!
//! Every function that `llvm-sys` declares is defined here as a jump through a table. Nothing of LLVM is needed to build
//! or to start a program; [`Library::bind`] fills the table from a libLLVM that [`open`] found usable. A call of a
//! function that is not bound prints its name and aborts, so check [`is_bound`] (and [`has`] for functions that not
//! every version offers) first.
//!
//! ```no_run
//! let library = tinyspec_llvm_stubs::open("/usr/lib/libLLVM.so.22.1".as_ref())?;
//! println!("LLVM {}", library.version());
//! library.bind(&["LLVMContextCreate"])?;
//! assert!(tinyspec_llvm_stubs::has("LLVMContextCreate"));
//! # Ok::<(), tinyspec_llvm_stubs::Error>(())
//! ```

mod initialize;
mod library;
mod names;
mod table;

pub use library::{Error, Library, Version, has, is_bound, open};
pub use table::NAMES;
