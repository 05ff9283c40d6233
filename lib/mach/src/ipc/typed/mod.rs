//! `mach_msg` with typed messages, as 64-bit programs of Mach 3.0 have them.
//!
//! A message is a header of 32 bytes and items: a descriptor of 8 bytes, then the data or its
//! address, padded to 8. The descriptor says what the data is (rights, addresses of memory, or
//! bytes of any type), how many elements there are and how large each is.
mod descriptor;
mod header;
mod incoming;
mod kernel_call;
mod outgoing;
mod rendezvous;
mod trap;

pub use rendezvous::{hold, try_mach_msg};
pub use trap::{MsgArguments, MsgOptions, MsgResult, mach_msg, restart};
