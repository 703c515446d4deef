//! What happens around a libLLVM that is missing, foreign, or not bound.

use tinyspec_llvm_stubs::{Error, NAMES, has, open};

#[test]
fn names_are_sorted_and_unbound_before_loading() {
    assert!(NAMES.is_sorted());
    assert!(!has("LLVMContextCreate") || tinyspec_llvm_stubs::is_bound().is_some());
    assert!(!has("LLVMNoSuchFunction"));
}

#[test]
fn a_missing_file_is_an_error_in_the_linkers_words() {
    let Err(Error::Open { path, message }) = open("/nowhere/libLLVM.so.22.1".as_ref()) else {
        panic!("opened what does not exist")
    };
    assert_eq!(path.to_str(), Some("/nowhere/libLLVM.so.22.1"));
    assert!(message.contains("libLLVM.so.22.1"), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn another_library_is_not_llvm() {
    let error = open("libc.so.6".as_ref()).expect_err("libc is no LLVM");
    assert!(matches!(error, Error::NotLlvm { .. }) || matches!(error, Error::Open { .. }), "{error}");
}
