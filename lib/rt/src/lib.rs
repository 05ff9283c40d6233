//! The run-time of native programs and servers.
//!
//! * [`backtrace`]: the calls that led to where a thread is, for reports of panics.
//! * [`executor`]: asynchronous tasks over one worker thread per processor (section U6 of
//!   `docs/src/architecture.md`). It knows nothing of L4: a server's main loop drives its worker
//!   and tells the [`executor::Platform`] how to notify another one.
//! * [`heap`](mod@heap): the global allocator.
//! * [`per_processor`]: memory of which each processor has a part.
//! * [`root`]: requests to `root`, which started the server.
//! * [`start_page`]: the page that tells a server its name and arguments.
//! * [`thread`]: threads, and values of which each has its own.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod backtrace;
pub mod executor;
pub mod heap;
pub mod per_processor;
pub mod root;
pub mod start_page;
pub mod thread;
