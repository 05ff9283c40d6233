//! Futexes (futex(2), get_robust_list(2)): waiting for a word of user memory to change.
//!
//! A waiter first joins the queue and then looks at the word: a wake between the two finds it
//! queued, so none is lost, and user memory may fault in meanwhile without a lock being held.
//! Queues are found by [`Key`]: words in private memory by address space and address, in shared
//! memory by object and offset, wherever it is mapped.

mod inheriting;
mod key;
mod operation;
mod queue;
mod robust;
mod words;

pub(crate) use key::{Key, Words};
pub(crate) use operation::{Comparison, WakeOperation};
pub(crate) use queue::Futexes;
pub(crate) use robust::RobustList;
pub(crate) use words::MemoryWords;

#[cfg(test)]
mod tests;
