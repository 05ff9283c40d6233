//! Message queues (msgsnd(2), msgrcv(2)).

use super::User;
use super::objects::{Access, Find, Object, Permission, Registry};
use crate::account::Charge;
use crate::poll::{PollQueue, Readiness, until_ready};
use crate::sync::SpinLock;
use crate::{AttemptError, Error, Privilege, Result};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most queues (MSGMNI).
pub const QUEUES_LIMIT: u32 = 32000;
/// The most bytes of one message (MSGMAX).
pub const SIZE_LIMIT: usize = 8192;
/// How many bytes a new queue may hold (MSGMNB).
pub const BYTES_LIMIT: u64 = 16384;

/// A message.
#[derive(Debug)]
pub struct Message {
    /// The type of the message, at least 1.
    pub kind: i64,
    /// The bytes of the message.
    pub bytes: Vec<u8>,
    /// The server's memory that it takes.
    _charge: Charge,
}

/// A queue of messages.
pub struct Queue {
    /// The owner of the queue, and what others may do with it.
    pub permission: Permission,
    messages: VecDeque<Message>,
    /// How many bytes are in the queue.
    pub bytes: u64,
    /// How many bytes may be in the queue.
    pub limit: u64,
    /// When a message was sent last, in seconds since 1970; 0 for never.
    pub sent: i64,
    /// When a message was received last.
    pub received: i64,
    /// When the queue was made or changed.
    pub changed: i64,
    /// The process that sent last.
    pub sender: u32,
    /// The process that received last.
    pub receiver: u32,
    queue: Arc<PollQueue>,
    _charge: Charge,
}

impl Queue {
    /// How many messages are in the queue.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there is no message in the queue.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl Object for Queue {
    fn permission(&self) -> &Permission {
        &self.permission
    }
}

/// Which message is received (the type of msgrcv(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first one.
    First,
    /// The first one of this type.
    Of(i64),
    /// The first one of another type (MSG_EXCEPT).
    Except(i64),
    /// The first one of the lowest type up to this one.
    UpTo(i64),
}

impl Which {
    fn find(self, messages: &VecDeque<Message>) -> Option<usize> {
        let first = |wanted: &dyn Fn(i64) -> bool| messages.iter().position(|message| wanted(message.kind));
        match self {
            Which::First => first(&|_| true),
            Which::Of(kind) => first(&|other| other == kind),
            Which::Except(kind) => first(&|other| other != kind),
            Which::UpTo(limit) => {
                let lowest =
                    messages.iter().map(|message| message.kind).filter(|kind| *kind <= limit).min()?;
                first(&|other| other == lowest)
            }
        }
    }
}

/// How a message is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Which message.
    pub which: Which,
    /// How many bytes of it there is room for.
    pub room: usize,
    /// A longer message is cut off, instead of staying in the queue (MSG_NOERROR).
    pub truncate: bool,
    /// The call fails with `ENOMSG` instead of waiting.
    pub no_wait: bool,
}

/// All message queues.
pub struct MessageQueues(SpinLock<Registry<Queue>>);

impl Default for MessageQueues {
    fn default() -> MessageQueues {
        MessageQueues(SpinLock::new(Registry::new(QUEUES_LIMIT)))
    }
}

fn failed(error: AttemptError) -> Error {
    match error {
        AttemptError::Failed(error) => error,
        _ => Error::EAGAIN,
    }
}

impl MessageQueues {
    /// Reads or changes the registry, which is locked meanwhile.
    pub fn with<R>(&self, work: impl FnOnce(&mut Registry<Queue>) -> R) -> R {
        work(&mut self.0.lock())
    }

    /// The id of the queue that `find` describes (msgget(2)). `ENOSPC`, and the errors of a
    /// look-up.
    pub fn get(&self, user: &User, find: Find) -> Result<i32> {
        self.with(|queues| {
            if let Some(id) = queues.find(user, find, |_| Ok(()))? {
                return Ok(id);
            }
            let charge = user.charge(0)?;
            queues.add(user, find, |permission| Queue {
                permission,
                messages: VecDeque::new(),
                bytes: 0,
                limit: BYTES_LIMIT,
                sent: 0,
                received: 0,
                changed: user.now,
                sender: 0,
                receiver: 0,
                queue: Arc::new(PollQueue::new()),
                _charge: charge,
            })
        })
    }

    /// Puts a message into a queue, or waits until there is room (msgsnd(2)). The future may be
    /// dropped. `EINVAL`, `EACCES`, `EAGAIN`, `ENOMEM`; `EIDRM` if the queue has been removed
    /// meanwhile.
    pub async fn send(
        &self,
        user: &User,
        id: i32,
        (kind, bytes): (i64, Vec<u8>),
        no_wait: bool,
    ) -> Result<()> {
        if kind < 1 || bytes.len() > SIZE_LIMIT {
            return Err(Error::EINVAL);
        }
        let charge = user.charge(bytes.len() as u64)?;
        let queue = self.with(|queues| Ok::<_, Error>(queues.get(id)?.queue.clone()))?;
        let mut message = Some(Message { kind, bytes, _charge: charge });
        let mut known = false;
        let attempt = || {
            self.with(|queues| {
                let queue = queues.get_mut(id).map_err(|error| if known { Error::EIDRM } else { error })?;
                known = true;
                queue.permission.check(user, Access::Write)?;
                let size = message.as_ref().map_or(0, |message| message.bytes.len() as u64);
                let fits = queue.bytes + size <= queue.limit && (queue.messages.len() as u64) < queue.limit;
                if !fits {
                    return Err(if no_wait { Error::EAGAIN.into() } else { AttemptError::WouldBlock });
                }
                queue.messages.try_reserve(1).map_err(|_| Error::ENOMEM)?;
                queue.messages.extend(message.take());
                queue.bytes += size;
                (queue.sent, queue.sender) = (user.now, user.process);
                Ok(())
            })
        };
        until_ready(&queue, Readiness::READ, attempt).await.map_err(failed)?;
        queue.wake(Readiness::READ);
        Ok(())
    }

    /// Takes a message from a queue, or waits for one (msgrcv(2)); returns its type and bytes. The
    /// future may be dropped. `EINVAL`, `EACCES`, `E2BIG`, `ENOMSG`; `EIDRM` if the queue has been
    /// removed meanwhile.
    pub async fn receive(&self, user: &User, id: i32, how: Receive) -> Result<(i64, Vec<u8>)> {
        let queue = self.with(|queues| Ok::<_, Error>(queues.get(id)?.queue.clone()))?;
        let mut known = false;
        let attempt = || {
            self.with(|queues| {
                let queue = queues.get_mut(id).map_err(|error| if known { Error::EIDRM } else { error })?;
                known = true;
                queue.permission.check(user, Access::Read)?;
                let Some(index) = how.which.find(&queue.messages) else {
                    return Err(if how.no_wait { Error::ENOMSG.into() } else { AttemptError::WouldBlock });
                };
                if queue.messages[index].bytes.len() > how.room && !how.truncate {
                    return Err(Error::E2BIG.into());
                }
                let mut message = queue.messages.remove(index).ok_or(Error::ENOMSG)?;
                queue.bytes -= message.bytes.len() as u64;
                (queue.received, queue.receiver) = (user.now, user.process);
                message.bytes.truncate(how.room);
                Ok((message.kind, message.bytes))
            })
        };
        let received = until_ready(&queue, Readiness::READ, attempt).await.map_err(failed)?;
        queue.wake(Readiness::READ);
        Ok(received)
    }

    /// Sets owner, mode and limit of a queue (IPC_SET). `EINVAL`, `EPERM`.
    pub fn set(&self, user: &User, id: i32, owner: (u32, u32), mode: u32, limit: u64) -> Result<()> {
        let queue = self.with(|queues| {
            let queue = queues.get_mut(id)?;
            queue.permission.check_owner(user)?;
            if limit > BYTES_LIMIT && !user.identity.has_in(&user.owner, Privilege::Resource) {
                return Err(Error::EPERM);
            }
            queue.permission.set(owner, mode);
            (queue.limit, queue.changed) = (limit, user.now);
            Ok(queue.queue.clone())
        })?;
        queue.wake(Readiness::READ);
        Ok(())
    }

    /// Removes a queue with its messages; callers that wait fail (IPC_RMID). `EINVAL`, `EPERM`.
    pub fn remove(&self, user: &User, id: i32) -> Result<()> {
        let queue = self.with(|queues| {
            queues.get(id)?.permission.check_owner(user)?;
            queues.remove(id)
        })?;
        queue.queue.wake(Readiness::READ);
        Ok(())
    }
}
