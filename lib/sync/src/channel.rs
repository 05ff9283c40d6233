//! A bounded queue of values between any number of senders and receivers.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use crate::{SpinLock, WaitQueue};

struct Buffer<T> {
    values: VecDeque<T>,
    senders: usize,
    receivers: usize,
}

struct Shared<T> {
    capacity: usize,
    buffer: SpinLock<Buffer<T>>,
    not_full: WaitQueue,
    not_empty: WaitQueue,
}

/// The sender's end of a channel. Clones are further senders.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// The receiver's end of a channel. Clones are further receivers; each value goes to one of them.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

/// Why a value was not sent; the error contains the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The queue is full.
    Full(T),
    /// There is no receiver any more.
    Closed(T),
}

/// Why no value was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryReceiveError {
    /// The queue is empty.
    Empty,
    /// The queue is empty, and there is no sender any more.
    Closed,
}

/// The error that the other side does not exist any more: there is no receiver (the error contains
/// the value), or no sender and no value left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed<T = ()>(
    /// The value that could not be sent.
    pub T,
);

/// Both ends of a new channel that holds up to `capacity` values (at least one).
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.max(1);
    let shared = Arc::new(Shared {
        capacity,
        buffer: SpinLock::new(Buffer { values: VecDeque::with_capacity(capacity), senders: 1, receivers: 1 }),
        not_full: WaitQueue::new(),
        not_empty: WaitQueue::new(),
    });
    (Sender { shared: shared.clone() }, Receiver { shared })
}

impl<T> Sender<T> {
    /// Sends a value if there is room.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        {
            let mut buffer = self.shared.buffer.lock();
            if buffer.receivers == 0 {
                return Err(TrySendError::Closed(value));
            }
            if buffer.values.len() == self.shared.capacity {
                return Err(TrySendError::Full(value));
            }
            buffer.values.push_back(value);
        }
        self.shared.not_empty.wake_one();
        Ok(())
    }

    /// Sends a value, and waits for room. If the future is dropped before it is ready, nothing was
    /// sent.
    pub async fn send(&self, value: T) -> Result<(), Closed<T>>
    where
        T: Unpin,
    {
        let mut value = Some(value);
        self.shared
            .not_full
            .wait_until(|| match self.try_send(value.take()?) {
                Ok(()) => Some(Ok(())),
                Err(TrySendError::Closed(back)) => Some(Err(Closed(back))),
                Err(TrySendError::Full(back)) => {
                    value = Some(back);
                    None
                }
            })
            .await
    }
}

impl<T> Receiver<T> {
    /// Returns the oldest value, if there is one.
    pub fn try_receive(&self) -> Result<T, TryReceiveError> {
        let value = {
            let mut buffer = self.shared.buffer.lock();
            match buffer.values.pop_front() {
                Some(value) => value,
                None if buffer.senders == 0 => return Err(TryReceiveError::Closed),
                None => return Err(TryReceiveError::Empty),
            }
        };
        self.shared.not_full.wake_one();
        Ok(value)
    }

    /// Returns the oldest value, and waits until there is one. If the future is dropped before it
    /// is ready, no value was taken.
    pub async fn receive(&self) -> Result<T, Closed> {
        self.shared
            .not_empty
            .wait_until(|| match self.try_receive() {
                Ok(value) => Some(Ok(value)),
                Err(TryReceiveError::Closed) => Some(Err(Closed(()))),
                Err(TryReceiveError::Empty) => None,
            })
            .await
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.buffer.lock().senders += 1;
        Self { shared: self.shared.clone() }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.buffer.lock().receivers += 1;
        Self { shared: self.shared.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let last = {
            let mut buffer = self.shared.buffer.lock();
            buffer.senders -= 1;
            buffer.senders == 0
        };
        if last {
            self.shared.not_empty.wake_all();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let abandoned = {
            let mut buffer = self.shared.buffer.lock();
            buffer.receivers -= 1;
            (buffer.receivers == 0).then(|| core::mem::take(&mut buffer.values))
        };
        if abandoned.is_some() {
            self.shared.not_full.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Task, block_on};

    #[test]
    fn values_keep_their_order_and_the_bound_holds() {
        let (sender, receiver) = channel(2);
        sender.try_send(1).unwrap();
        sender.try_send(2).unwrap();
        assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
        let mut third = Task::new(sender.send(3));
        assert!(third.poll().is_pending());
        assert_eq!(receiver.try_receive(), Ok(1));
        assert!(third.woken() && third.poll().is_ready());
        assert_eq!((receiver.try_receive(), receiver.try_receive()), (Ok(2), Ok(3)));
        assert_eq!(receiver.try_receive(), Err(TryReceiveError::Empty));
    }

    #[test]
    fn a_dropped_send_sends_nothing_and_a_dropped_receive_takes_nothing() {
        let (sender, receiver) = channel(1);
        sender.try_send(1).unwrap();
        let mut late = Task::new(sender.send(2));
        assert!(late.poll().is_pending());
        drop(late);
        assert_eq!(receiver.try_receive(), Ok(1));
        let (mut first, mut second) = (Task::new(receiver.receive()), Task::new(receiver.receive()));
        assert!(first.poll().is_pending() && second.poll().is_pending());
        sender.try_send(3).unwrap();
        drop(first);
        assert!(second.woken());
        assert!(matches!(second.poll(), core::task::Poll::Ready(Ok(3))));
    }

    #[test]
    fn each_side_notices_that_the_other_is_gone() {
        let (sender, receiver) = channel(1);
        sender.try_send(1).unwrap();
        drop(sender);
        assert_eq!(block_on(receiver.receive()), Ok(1));
        assert_eq!(block_on(receiver.receive()), Err(Closed(())));
        let (sender, receiver) = channel(1);
        drop(receiver);
        assert_eq!(block_on(sender.send(4)), Err(Closed(4)));
    }

    #[test]
    fn threads_exchange_every_value_once() {
        let (sender, receiver) = channel(4);
        let senders: Vec<_> = (0..3u64)
            .map(|_| {
                let sender = sender.clone();
                std::thread::spawn(move || (1..=500).for_each(|value| block_on(sender.send(value)).unwrap()))
            })
            .collect();
        drop(sender);
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                let receiver = receiver.clone();
                std::thread::spawn(move || {
                    let mut sum = 0;
                    while let Ok(value) = block_on(receiver.receive()) {
                        sum += value;
                    }
                    sum
                })
            })
            .collect();
        senders.into_iter().for_each(|thread| thread.join().unwrap());
        let total: u64 = receivers.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(total, 3 * 500 * 501 / 2);
    }
}
