//! tinyspec: a tensor compiler in one dialect, UOp.
