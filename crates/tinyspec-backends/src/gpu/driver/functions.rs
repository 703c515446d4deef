//! The functions of a driver that differ between CUDA and HIP only in their names. For others, each vendor has a table
//! of its own.

use super::{Called, Handle, Library};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Declares a table of functions. With names in quotes, these are the library's; otherwise the table is made from a
/// table of names, one for each function. A function returns a status, 0 for success, unless it is declared with a result.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident named by $names:ident {
        $($(#[$note:meta])* $function:ident($($argument:ident: $type:ty),* $(,)?);)*
    }) => {
        /// The names of these functions in a vendor's library.
        #[derive(Debug)]
        pub(in super::super) struct $names {
            $(pub $function: &'static str,)*
        }

        $(#[$doc])*
        #[derive(Debug)]
        pub(in super::super) struct $table {
            names: &'static $names,
            $($function: unsafe extern "C" fn($($argument: $type),*) -> c_int,)*
        }

        impl $table {
            /// # Errors
            /// The names that the library does not export.
            pub fn find(library: &Library, names: &'static $names) -> Result<$table, Vec<&'static str>> {
                let mut missing = Vec::new();
                // SAFETY: the signatures are those of the vendors' headers.
                $(let $function = unsafe { library.function(names.$function, &mut missing) };)*
                let table = || Some($table { names, $($function: $function?,)* });
                table().ok_or(missing)
            }

            $(
                $(#[$note])*
                /// # Safety
                /// Handles are valid, and pointers are valid for what is read or written.
                #[allow(clippy::too_many_arguments)]
                pub unsafe fn $function(&self, $($argument: $type),*) -> Called {
                    // SAFETY: as the caller promises.
                    Called { function: self.names.$function, status: unsafe { (self.$function)($($argument),*) } }
                }
            )*
        }
    };
    ($(#[$doc:meta])* $table:ident {
        $($function:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*
    }) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[allow(non_snake_case)]
        struct $table {
            $($function: unsafe extern "C" fn($($argument: $type),*) -> functions!(@result $($result)?),)*
        }

        impl $table {
            /// # Errors
            /// The names that the library does not export.
            #[allow(non_snake_case)]
            fn find(library: &Library) -> Result<$table, Vec<&'static str>> {
                let mut missing = Vec::new();
                // SAFETY: the signatures are those of the vendor's headers.
                $(let $function = unsafe { library.function(stringify!($function), &mut missing) };)*
                let table = || Some($table { $($function: $function?,)* });
                table().ok_or(missing)
            }
        }
    };
    (@result) => { std::ffi::c_int };
    (@result $result:ty) => { $result };
}
pub(in super::super) use functions;

functions! {
    /// Addresses of device memory are numbers here; HIP declares them as pointers, which are passed in the same way.
    Functions named by Names {
        initialise(flags: c_uint);
        version(version: *mut c_int);
        count(count: *mut c_int);
        new_stream(stream: *mut Handle, flags: c_uint);
        destroy_stream(stream: Handle);
        wait_for_stream(stream: Handle);
        allocate(address: *mut u64, bytes: usize);
        free(address: u64);
        memory(free: *mut usize, total: *mut usize);
        pin(address: *mut *mut c_void, bytes: usize, flags: c_uint);
        unpin(address: *mut c_void);
        upload(to: u64, from: *const c_void, bytes: usize, stream: Handle);
        download(to: *mut c_void, from: u64, bytes: usize, stream: Handle);
        copy(to: u64, from: u64, bytes: usize, stream: Handle);
        new_event(event: *mut Handle, flags: c_uint);
        destroy_event(event: Handle);
        record(event: Handle, stream: Handle);
        ask(event: Handle);
        wait_for_event(event: Handle);
        between(milliseconds: *mut f32, start: Handle, end: Handle);
        order(stream: Handle, event: Handle, flags: c_uint);
        unload(module: Handle);
        function(function: *mut Handle, module: Handle, name: *const c_char);
        launch(
            function: Handle,
            groups_x: c_uint,
            groups_y: c_uint,
            groups_z: c_uint,
            threads_x: c_uint,
            threads_y: c_uint,
            threads_z: c_uint,
            local_bytes: c_uint,
            stream: Handle,
            parameters: *mut *mut c_void,
            extra: *mut *mut c_void,
        );
    }
}
