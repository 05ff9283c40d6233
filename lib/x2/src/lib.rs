//! Types of the L4 X.2 interface on AMD64, shared by kernel and user level.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
