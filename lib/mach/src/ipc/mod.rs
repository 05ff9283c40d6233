//! Mach's ports: queues of messages that the library protects, and the rights that tasks have to
//! them.
//!
//! # The parts
//!
//! | module | what it holds |
//! |---|---|
//! | [`Space`] | a task's names for rights; the `mach_port_*` calls |
//! | `port`, `right` | ports, and the rights to them as values |
//! | `queue`, `set` | sending and receiving; port sets |
//! | [`message`](Message) | a message in transit, which owns all that it carries |
//! | [`HeldReceiver`] | threads that wait for a message outside of any task, and get it directly |
//! | `kernel` | ports that stand for objects of the library ([`kobject`](crate::kobject)) |
//! | `notify` | the messages that the library itself sends |
//! | `copyin`, `copyout` | rights from a task's names into a message, and back |
//! | [`typed`] | `mach_msg` with the typed messages of 64-bit programs |
//!
//! The core of the module knows no layout of messages. A front end, such as [`typed`], reads the
//! bytes that a task sends, and writes the bytes that a task receives.
//!
//! # Rules
//!
//! - **A right is a value.** While a [`SendRight`], [`SendOnceRight`] or [`ReceiveRight`] exists,
//!   its port counts it. To drop the value does what Mach does when a right ends: it sends the
//!   notifications, and without a receive right it ends the port. So if a message, a name space or
//!   a future is dropped, at any await, no right is lost or kept.
//! - **Lock order**: the lock of transit first, then a space, a port, a set. All are spin locks,
//!   and two locks of one kind are never held together. While a lock is held, no right is dropped
//!   and no waiter is woken: an operation collects what it wants to drop or to send in a `Later`,
//!   which is dropped after the lock's guard.
//! - **A notification never fails.** Every notification is sent with a send-once right, and each
//!   send-once right holds the memory for one message from the time when it is made.
//! - **The end of a message is not recursive.** The messages of a port that dies go to a list of
//!   the processor. The outermost call that drops messages empties that list in a loop.
mod account;
mod copyin;
mod copyout;
mod entry;
mod error;
mod free_names;
mod held;
mod kernel;
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

pub(crate) use account::Charge;
pub use copyin::Disposition;
pub use error::{MsgError, MsgErrorKind, Shortage};
pub use held::{HeldReceiver, Rest};
pub use kernel::{
    DeliverReply, KernelObject, KernelPort, KernelRequest, KernelServed, KernelServer, PlainRequest,
};
pub(crate) use kernel::{REPLY_BYTES, ReplyPort};
pub(crate) use message::Item;
pub use message::Message;
pub use name::{Name, NameRule};
pub use right::{ReceiveRight, Right, SendOnceRight, SendRight};
pub use space::{PortRight, PortType, Space};
pub use status::PortStatus;
pub use user_memory::UserMemory;
pub(crate) use user_memory::pages_around;
pub(crate) use wait::Ended;
pub use wait::Interruption;

use crate::machine::Machine;
use crate::vm::Vm;
use crate::{KernError, KernResult};
use message::Garbage;

/// The limits that a system sets for the ports of its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most names that one task can have.
    pub names: usize,
    /// The most bytes of server memory for the names, ports and messages of one task.
    pub bytes: usize,
    /// How many messages the queue of a new port holds before senders wait.
    pub queue: u32,
    /// The largest queue limit that a task can set for a port.
    pub longest_queue: u32,
    /// The most bytes of a message in line, and of each array or piece of memory out of line that
    /// is copied as bytes.
    pub message: usize,
}

impl Default for Limits {
    /// Queue limits as in Mach 3.0, and memory for a few thousand ports and messages per task.
    fn default() -> Self {
        Self { names: 1 << 16, bytes: 64 << 20, queue: 5, longest_queue: 16, message: 1 << 20 }
    }
}

/// The data of one processor. Another processor uses it only when the thread of a call moves to
/// that processor in the middle of the call, so there is hardly any contention for the locks.
struct Local<M: Machine> {
    /// Used messages, kept so that the next message needs no allocation: a null RPC allocates
    /// nothing.
    #[expect(clippy::vec_box, reason = "messages move to queues as boxes")]
    unused: SpinLock<Vec<Box<Message<M>>>>,
    garbage: SpinLock<Garbage<M>>,
}

/// The most messages that one processor keeps for reuse.
const UNUSED_MESSAGES: usize = 8;

impl<M: Machine> Local<M> {
    /// The most bytes that the messages kept for reuse on one processor take.
    const BYTES: usize = UNUSED_MESSAGES * (Message::<M>::BYTES + message::KEPT_BYTES);
}

/// All ports of a system, and what they share.
pub struct Ipc<M: Machine> {
    vm: Arc<Vm<M>>,
    names: NameRule,
    limits: Limits,
    next_id: AtomicU64,
    /// Locked while receive rights enter or leave messages ([`transit`]).
    transit: SpinLock<()>,
    processors: Vec<Local<M>>,
    /// How many ports exist, including dead ports to which there are still rights.
    ports: AtomicU64,
}

impl<M: Machine> Ipc<M> {
    /// Creates a system without ports. Messages carry pages of the memory system `vm`.
    ///
    /// # Errors
    /// `ResourceShortage`: the machine has no memory for the messages that processors keep.
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

    /// How many ports exist now, including dead ports to which there are still rights.
    pub fn ports(&self) -> u64 {
        // Relaxed: the count is for tests and statistics, and orders nothing.
        self.ports.load(Ordering::Relaxed)
    }

    fn new_id(&self) -> u64 {
        // Relaxed: the numbers must be different, but their order means nothing.
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The data of the processor that executes the caller.
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
