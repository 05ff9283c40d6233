//! The machine of the Mach library ([`mach::Machine`]) on L4: the base of a personality server.
//! `K8` and `U6` are sections of docs/src/architecture.md.
//!
//! | module | subject |
//! |---|---|
//! | [`L4Machine`] | the machine: its start, and [`mach::Machine`] |
//! | [`UserThread`] | a thread of a program, as Mach's library uses it |
//! | [`Space`], [`Pmap`] | an address space, and its translation by MapControl (K8) |
//! | [`serve`](L4Machine::serve) | the loop of a worker: messages of threads, tasks, answers (U6) |
//!
//! # How a server uses it
//!
//! ```ignore
//! let machine = L4Machine::start(&Configuration::default())?;
//! let vm = Vm::new(machine.clone())?;
//! machine.spawn(0, async move { /* make tasks and threads */ })?;
//! machine.serve(0, &mut |_bits| {})
//! ```
//!
//! and each thread of a program is a task of the server's:
//!
//! ```ignore
//! let thread = machine.thread_create(&space).await?;
//! let mut resume = Resume::Registers(Box::new(first_state));
//! loop {
//!     resume = match thread.run(resume).await {
//!         Event::SystemCall(call) => Resume::Return(answer(call).await),
//!         Event::PageFault(fault) => { map.fault(fault.address, fault.access).await; Resume::Continue }
//!         Event::Ended => break,
//!         ...
//!     }
//! }
//! ```
//!
//! # What holds
//!
//! - **A thread belongs to the worker of the processor that it lives on**: its messages go there.
//!   Processor and worker change together, when the worker that has the thread's message answers
//!   it. So a thread gets its answer from the worker that it asked.
//! - **No program can block or stop the server.** Answers have a zero send timeout. Messages of
//!   programs are words only, and count only if the thread was running at user level as far as the
//!   server knows. So a forged or repeated message confuses only its sender's own program.
//! - **The only IPC in which a worker waits for another thread is the request to root** (which
//!   never waits for a server): at the start, for a new space or thread, and for those that have
//!   ended, whose requests the worker makes between two messages.
//! - A request that is answered without waiting allocates nothing and costs one kernel entry: the
//!   answer goes out with the next receive. A page fault that need not wait is answered without
//!   waking the thread's task ([`NonblockingHandler`](mach::machine::NonblockingHandler)).
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

mod alarm;
mod changes;
mod cpu_accounting;
mod devices;
mod event;
mod frames;
mod idle_time;
mod kernel;
mod machine;
mod placement;
mod platform;
mod registers;
mod space;
mod start;
mod thread_table;
mod user_thread;
mod worker;

pub use machine::{HeapFrames, L4Machine};
pub use platform::L4Platform;
pub use space::{Pmap, Space};
pub use start::{Configuration, SpaceLayout, StartError};
pub use user_thread::UserThread;
