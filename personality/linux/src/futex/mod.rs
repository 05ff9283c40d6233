//! Futexes (futex(2), get_robust_list(2)): waiting for a word of user memory to change.
//!
//! A waiter first joins the queue and then reads the word. A wake between the two steps finds the
//! waiter in the queue, so that none is lost, and no lock is held while the word's page is brought
//! in. Queues are found by [`Key`]: for a word in private memory by address space and address, for
//! a word in shared memory by object and offset, wherever the object is mapped.

mod inheriting;
mod key;
mod operation;
mod queue;
mod robust;
mod words;

pub(crate) use inheriting::holder;
pub(crate) use key::{Key, Words};
pub(crate) use operation::{Comparison, WakeOperation};
pub(crate) use queue::Futexes;
pub(crate) use robust::RobustList;
pub(crate) use words::MemoryWords;

#[cfg(test)]
mod tests;
