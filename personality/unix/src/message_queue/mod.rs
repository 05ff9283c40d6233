//! POSIX message queues (mq_overview(7)). A queue is a file of a file system of its own, which can
//! be mounted (usually at /dev/mqueue). Messages have priorities; a receiver gets the oldest of
//! those with the highest one.

mod open;

#[cfg(test)]
mod tests;

pub use open::MessageQueues;
pub(crate) use open::QueueFileSystems;

use crate::account::{Account, Charge, Kept, Setting, Settings};
use crate::file::{FileObject, Io, LockOwner, Positions};
use crate::poll::{PollQueue, Readiness, until_ready};
use crate::signal::Signal;
use crate::sync::SpinLock;
use crate::{AttemptError, Error, Result, UserBuffer};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::sync::atomic::{AtomicU32, Ordering};

/// Priorities are lower than this (MQ_PRIO_MAX).
pub const PRIORITIES: u32 = 32768;
/// The most messages of a queue, and the most bytes of a message, with any privilege.
pub const LENGTH_MAXIMUM: u64 = 65536;
/// The most bytes of a message, with any privilege.
pub const SIZE_MAXIMUM: u64 = 16 << 20;

/// How much a queue may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// How many messages (mq_maxmsg).
    pub length: u64,
    /// How many bytes one message may have (mq_msgsize).
    pub size: u64,
}

impl QueueLimits {
    /// The limits of a queue for which a program asks for none.
    pub fn default(settings: &Settings) -> QueueLimits {
        let least = |setting, default| settings.get(setting).min(settings.get(default));
        QueueLimits {
            length: least(Setting::QueueLength, Setting::QueueLengthDefault),
            size: least(Setting::QueueMessageSize, Setting::QueueMessageSizeDefault),
        }
    }

    /// Checks what a program asks for. `EINVAL`.
    fn check(self, settings: &Settings, privileged: bool) -> Result<()> {
        let (length, size) = match privileged {
            true => (LENGTH_MAXIMUM, SIZE_MAXIMUM),
            false => (settings.get(Setting::QueueLength), settings.get(Setting::QueueMessageSize)),
        };
        let fits = (1..=length).contains(&self.length) && (1..=size).contains(&self.size);
        if fits { Ok(()) } else { Err(Error::EINVAL) }
    }

    /// The bytes that count against RLIMIT_MSGQUEUE: those of all messages, and a fixed
    /// number for each message and for each priority that they may have.
    fn bytes(self) -> u64 {
        const MESSAGE: u64 = 48;
        const PRIORITY: u64 = 48;
        let priorities = self.length.min(PRIORITIES.into());
        self.length * (MESSAGE + self.size) + priorities * PRIORITY
    }
}

/// The process for which a queue is made.
pub struct Maker<'a> {
    /// The account to which the queue is charged.
    pub account: &'a Arc<Account>,
    /// How many bytes the queues of the user may have (RLIMIT_MSGQUEUE).
    pub limit: u64,
    /// Whether the process may exceed the limits that all processes share.
    pub privileged: bool,
}

/// A message.
#[derive(Debug)]
pub struct Message {
    /// The priority, less than [`PRIORITIES`].
    pub priority: u32,
    /// The bytes of the message.
    pub bytes: Vec<u8>,
    /// The server's memory that it takes.
    _charge: Charge,
}

impl Message {
    /// Charges a message of `length` bytes to a sender; returns what makes the message of the
    /// bytes. `ENOMEM`.
    pub fn charged(
        account: &Arc<Account>,
        length: usize,
    ) -> Result<impl FnOnce(u32, Vec<u8>) -> Message + use<>> {
        const MESSAGE_BYTES: u64 = 128;
        let charge = account.charge_memory(MESSAGE_BYTES + length as u64).ok_or(Error::ENOMEM)?;
        Ok(|priority, bytes| Message { priority, bytes, _charge: charge })
    }
}

/// A process that wants to know when a message comes into an empty queue (mq_notify(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The owner of the table with the descriptor with which the process has asked.
    pub owner: LockOwner,
    /// The process.
    pub process: u32,
    /// The signal that it gets, and the value with it; `None` if it gets none.
    pub signal: Option<(Signal, u64)>,
}

/// A message queue.
pub struct MessageQueue {
    limits: QueueLimits,
    state: SpinLock<State>,
    queue: PollQueue,
    /// How many queues there are in the system, this one included.
    all: Arc<AtomicU32>,
    _charges: [Charge; 2],
}

#[derive(Default)]
struct State {
    /// The messages in the order in which they are received.
    messages: BTreeMap<(Reverse<u32>, u64), Message>,
    /// The number of the next message.
    next: u64,
    bytes: u64,
    /// How many receivers wait.
    receivers: usize,
    notice: Option<Notice>,
}

/// The bytes of the server's memory that a queue takes without messages.
const QUEUE_BYTES: u64 = 512;

impl MessageQueue {
    /// Makes an empty queue. `EINVAL` for limits that the maker may not set, `EMFILE` if its queues
    /// would be too large, `ENOSPC` if there are too many queues, `ENOMEM`.
    pub fn new(
        maker: &Maker<'_>,
        limits: Option<QueueLimits>,
        all: &Arc<AtomicU32>,
    ) -> Result<Arc<MessageQueue>> {
        let settings = maker.account.settings();
        let limits = match limits {
            Some(limits) => {
                limits.check(settings, maker.privileged)?;
                limits
            }
            None => QueueLimits::default(settings),
        };
        let memory = maker.account.charge_memory(QUEUE_BYTES).ok_or(Error::ENOMEM)?;
        let bytes = maker.account.charge(Kept::MessageQueues, limits.bytes(), |sum| sum <= maker.limit);
        let charges = [memory, bytes.ok_or(Error::EMFILE)?];
        let most = settings.get(Setting::MessageQueues);
        let more = |count: u32| (maker.privileged || u64::from(count) < most).then_some(count + 1);
        // Relaxed ordering: the count orders nothing else.
        all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| Error::ENOSPC)?;
        Ok(Arc::new(MessageQueue {
            limits,
            state: SpinLock::new(State::default()),
            queue: PollQueue::new(),
            all: all.clone(),
            _charges: charges,
        }))
    }

    /// How much the queue may hold.
    pub fn limits(&self) -> QueueLimits {
        self.limits
    }

    /// How many messages are in the queue.
    pub fn length(&self) -> usize {
        self.state.lock().messages.len()
    }

    /// Puts a message into the queue, or waits until there is room. Returns the process that is to
    /// be notified, which is then forgotten. The future may be dropped. `EAGAIN`, `EMSGSIZE`.
    pub async fn send(&self, message: Message, no_wait: bool) -> Result<Option<Notice>> {
        if message.bytes.len() as u64 > self.limits.size {
            return Err(Error::EMSGSIZE);
        }
        let mut message = Some(message);
        let attempt = || {
            let mut state = self.state.lock();
            if state.messages.len() as u64 >= self.limits.length {
                return Err(if no_wait { Error::EAGAIN.into() } else { AttemptError::WouldBlock });
            }
            let Some(message) = message.take() else { return Ok(None) };
            state.bytes += message.bytes.len() as u64;
            let key = (Reverse(message.priority), state.next);
            state.next += 1;
            state.messages.insert(key, message);
            // Each waiting receiver takes one message, so the queue counts as empty until there are
            // more messages than receivers.
            let was_empty = state.messages.len() == state.receivers + 1;
            Ok(if was_empty { state.notice.take() } else { None })
        };
        let notice = until_ready(&self.queue, Readiness::WRITE, attempt).await.map_err(failed)?;
        self.queue.wake(Readiness::READ);
        Ok(notice)
    }

    /// Takes the next message from the queue, or waits for one. The future may be dropped.
    /// `EAGAIN`.
    pub async fn receive(&self, no_wait: bool) -> Result<Message> {
        let mut waits = None;
        let attempt = || {
            let mut state = self.state.lock();
            let Some((_, message)) = state.messages.pop_first() else {
                if no_wait {
                    return Err(Error::EAGAIN.into());
                }
                if waits.is_none() {
                    state.receivers += 1;
                    waits = Some(Waits(self));
                }
                return Err(AttemptError::WouldBlock);
            };
            state.bytes -= message.bytes.len() as u64;
            if let Some(waits) = waits.take() {
                core::mem::forget(waits);
                state.receivers -= 1;
            }
            Ok(message)
        };
        let message = until_ready(&self.queue, Readiness::READ, attempt).await.map_err(failed)?;
        self.queue.wake(Readiness::WRITE);
        Ok(message)
    }

    /// Has a process notified of the next message that comes into the empty queue. `EBUSY` if
    /// another is to be notified already.
    pub fn notify(&self, notice: Notice) -> Result<()> {
        let mut state = self.state.lock();
        if state.notice.is_some() {
            return Err(Error::EBUSY);
        }
        state.notice = Some(notice);
        Ok(())
    }

    /// Notifies the process no more that has asked through a descriptor of this table.
    pub fn forget(&self, owner: LockOwner) {
        let mut state = self.state.lock();
        state.notice.take_if(|notice| notice.owner == owner);
    }
}

/// A receiver that waits, as the queue counts it.
struct Waits<'a>(&'a MessageQueue);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.state.lock().receivers -= 1;
    }
}

fn failed(error: AttemptError) -> Error {
    match error {
        AttemptError::Failed(error) => error,
        _ => Error::EAGAIN,
    }
}

impl Drop for MessageQueue {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

impl FileObject for MessageQueue {
    /// Shows the state of the queue.
    fn try_read(&self, io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let (bytes, notice) = {
            let state = self.state.lock();
            (state.bytes, state.notice)
        };
        // 0 stands for a signal, 1 for no notification of a process that has asked for one.
        let kind = u32::from(notice.is_some_and(|notice| notice.signal.is_none()));
        let signal = notice.and_then(|notice| notice.signal).map_or(0, |(signal, _)| signal.number());
        let process = notice.map_or(0, |notice| notice.process);
        let text = format!("QSIZE:{bytes:<10} NOTIFY:{kind:<5} SIGNO:{signal:<5} NOTIFY_PID:{process:<6}\n");
        let start = usize::try_from(io.position).unwrap_or(usize::MAX).min(text.len());
        Ok(to.copy_out(&text.as_bytes()[start..])?)
    }

    fn readiness(&self) -> Readiness {
        let length = self.length() as u64;
        let mut ready = Readiness::empty();
        ready.set(Readiness::READ, length > 0);
        ready.set(Readiness::WRITE, length < self.limits.length);
        ready
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn positions(&self) -> Positions {
        Positions::Upto(i64::MAX as u64)
    }

    fn descriptor_closed(&self, owner: LockOwner) {
        self.forget(owner);
    }

    fn label(&self) -> &'static str {
        "mqueue"
    }
}
