//! Mach as a library: tasks, threads and virtual memory over a small `Machine` trait (ARCHITECTURE U3).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;
