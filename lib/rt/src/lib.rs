//! The run-time of native programs and servers.
//!
//! * [`executor`]: asynchronous tasks over one worker thread per processor (ARCHITECTURE U6). It knows nothing of L4: a
//!   server's main loop drives its worker and tells the [`executor::Platform`] how to notify another one.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod executor;
