//! Unix as a library: processes, signals, files and terminals (ARCHITECTURE U4).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;
