//! Ports: queues of messages that the library protects, and the rights of tasks to them.
//!
//! # The parts
//!
//! | module | what it holds |
//! |---|---|
//! | [`Space`] | a task's names for rights; the `mach_port_*` calls |
//! | `port`, `right` | ports, and the rights to them as values |
//! | `queue`, `set` | sending and receiving; port sets |
//! | [`message`](Message) | a message in transit, which owns all that it carries |
//! | `notify` | the messages that the library itself sends |
//! | `copyin`, `copyout` | rights from a task's names into a message, and back |
//! | [`typed`] | `mach_msg` with the typed messages of 64-bit programs |
//!
//! The core knows no layout of messages: a front end parses what a task sends, and lays out what it
//! receives.
//!
//! # Rules
//!
//! - **A right is a value.** While a [`SendRight`], [`SendOnceRight`] or receive right exists, its
//!   port counts it; dropping it does what Mach does when a right ends: notifications, and the end
//!   of a port without a receive right. So a message, a name space, or a future that is dropped at
//!   any await leaves nothing.
//! - **Lock order**: the lock of transit, a space, a port, a set; all are spin locks, and two of
//!   one kind are never held together. No right is dropped and no waiter is woken under one of
//!   them: what an operation wants to drop or to send is collected in a `Later`, whose drop comes
//!   after that of the guard.
//! - **A notification never fails.** Every notification is sent with a send-once right, and each
//!   send-once right holds the memory for one message from the time when it is made.
//! - **The end of a message is not recursive.** The messages of a port that dies go to a list of
//!   their processor, which the outermost drop empties.
mod account;
mod copyin;
mod copyout;
mod entry;
mod error;
mod free_names;
mod message;
mod name;
mod notify;
mod port;
mod queue;
mod ready;
mod receive;
mod requests;
mod reverse;
mod right;
mod send;
mod set;
mod space;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod transit;
pub mod typed;
mod user_memory;
mod wait;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use macadamia_sync::SpinLock;

pub use copyin::Disposition;
pub use error::{MsgError, MsgErrorKind, Shortage};
pub use message::Message;
pub use name::{Name, NameRule};
pub use right::{ReceiveRight, Right, SendOnceRight, SendRight};
pub use space::{PortRight, PortType, Space};
pub use status::PortStatus;
pub use user_memory::UserMemory;
pub use wait::Interruption;

use crate::machine::Machine;
use crate::vm::Vm;
use crate::{KernError, KernResult};
use message::Garbage;

/// What a system allows its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Names of one task.
    pub names: usize,
    /// Bytes of server memory for one task's names, ports and messages.
    pub bytes: usize,
    /// Messages that a port's queue holds until it is told another number.
    pub queue: u32,
    /// The most that a queue can be told to hold.
    pub longest_queue: u32,
    /// Bytes of a message in line.
    pub message: usize,
}

impl Default for Limits {
    /// Queues as in Mach 3.0; as much memory as a few thousand ports and messages need.
    fn default() -> Self {
        Self { names: 1 << 16, bytes: 64 << 20, queue: 5, longest_queue: 16, message: 1 << 20 }
    }
}

/// What one processor keeps for itself. Others reach it only when a call moves between processors,
/// so its locks are free.
struct Local<M: Machine> {
    /// Messages that were used, for the next: a null RPC allocates nothing.
    #[expect(clippy::vec_box, reason = "messages move to queues as boxes")]
    unused: SpinLock<Vec<Box<Message<M>>>>,
    garbage: SpinLock<Garbage<M>>,
}

/// Messages that a processor keeps for reuse.
const UNUSED_MESSAGES: usize = 8;

impl<M: Machine> Local<M> {
    /// The most that the unused messages take.
    const BYTES: usize = UNUSED_MESSAGES * (Message::<M>::BYTES + message::KEPT_BYTES);
}

/// The ports of a system.
pub struct Ipc<M: Machine> {
    vm: Arc<Vm<M>>,
    names: NameRule,
    limits: Limits,
    next_id: AtomicU64,
    /// Held while receive rights enter or leave messages ([`transit`]).
    transit: SpinLock<()>,
    processors: Vec<Local<M>>,
    /// Ports that exist.
    ports: AtomicU64,
}

impl<M: Machine> Ipc<M> {
    /// A system without ports, over a memory system.
    ///
    /// # Errors
    /// `ResourceShortage`.
    pub fn new(vm: &Arc<Vm<M>>, names: NameRule, limits: Limits) -> KernResult<Arc<Self>> {
        let processors = vm.machine().processors().max(1);
        if !vm.machine().reserve_memory(processors * Local::<M>::BYTES) {
            return Err(KernError::ResourceShortage);
        }
        let local = |_| Local {
            unused: SpinLock::new(Vec::with_capacity(UNUSED_MESSAGES)),
            garbage: SpinLock::new(Garbage::new()),
        };
        Ok(Arc::new(Self {
            vm: vm.clone(),
            names,
            limits,
            next_id: AtomicU64::new(1),
            transit: SpinLock::new(()),
            processors: (0..processors).map(local).collect(),
            ports: AtomicU64::new(0),
        }))
    }

    /// The machine on which the library runs.
    pub fn machine(&self) -> &M {
        self.vm.machine()
    }

    /// Ports that exist now, dead ones to which there are rights too.
    pub fn ports(&self) -> u64 {
        // Relaxed: a count for tests and statistics.
        self.ports.load(Ordering::Relaxed)
    }

    fn new_id(&self) -> u64 {
        // Relaxed: only uniqueness matters.
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// What the executing processor has for itself.
    fn local(&self) -> &Local<M> {
        let processor = self.machine().current_processor();
        &self.processors[processor % self.processors.len()]
    }
}

impl<M: Machine> Drop for Ipc<M> {
    fn drop(&mut self) {
        self.machine().unreserve_memory(self.processors.len() * Local::<M>::BYTES);
    }
}
