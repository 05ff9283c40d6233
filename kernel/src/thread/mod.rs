//! Threads: what one is ([`Tcb`]), how it is named ([`table`]), what it waits for
//! ([`Continuation`]) and its IPC.

pub mod breakpoints;
mod continuation;
pub mod exception;
pub mod fault;
mod here;
pub mod initial;
pub mod ipc;
pub mod lifecycle;
pub mod location;
mod offer;
pub mod port_fault;
mod priority;
pub mod redirect;
mod registers;
pub mod send_queue;
pub mod table;
mod tcb;
#[cfg(test)]
pub(crate) mod tests;
mod transfer_record;
pub mod user_memory;
mod utcb;

pub use continuation::{Continuation, IpcKind};
pub use here::{Found, Here};
pub use offer::Offer;
pub use priority::PriorityCell;
pub use registers::{Registers, USER_FLAGS};
pub use send_queue::Followers;
#[cfg(test)]
pub(crate) use tcb::test_thread;
pub use tcb::{TCB_SIZE, Tcb, ThreadRef, flag, mark, pending};
pub use transfer_record::{TRANSFER_RECORD_SIZE, TransferRecord, Work};
pub use utcb::Utcb;
