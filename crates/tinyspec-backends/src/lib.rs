//! Targets, compilers and runtimes of tinyspec: interpreters and LLVM.
