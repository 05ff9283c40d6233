//! One value from one sender to one receiver: the answer to a request.

use alloc::sync::Arc;

use crate::{SpinLock, WaitQueue};

enum State<T> {
    Open,
    Sent(T),
    Closed,
}

struct Shared<T> {
    state: SpinLock<State<T>>,
    queue: WaitQueue,
}

/// The sender's end of a one-shot.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// The receiver's end of a one-shot.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

/// The error that the sender was dropped without sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// Both ends of a new one-shot.
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared { state: SpinLock::new(State::Open), queue: WaitQueue::new() });
    (Sender { shared: shared.clone() }, Receiver { shared })
}

impl<T> Sender<T> {
    /// Sends the value. Returns it as an error if the receiver was dropped.
    pub fn send(self, value: T) -> Result<(), T> {
        {
            let mut state = self.shared.state.lock();
            if matches!(*state, State::Closed) {
                return Err(value);
            }
            *state = State::Sent(value);
        }
        self.shared.queue.wake_one();
        Ok(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state.lock();
            if matches!(*state, State::Open) {
                *state = State::Closed;
            }
        }
        self.shared.queue.wake_one();
    }
}

impl<T> Receiver<T> {
    /// Waits for the value. May be called again if the future was dropped. After the value was
    /// received it returns [`Cancelled`].
    pub async fn receive(&mut self) -> Result<T, Cancelled> {
        let shared = &*self.shared;
        shared
            .queue
            .wait_until(|| {
                let mut state = shared.state.lock();
                match core::mem::replace(&mut *state, State::Closed) {
                    State::Open => {
                        *state = State::Open;
                        None
                    }
                    State::Sent(value) => Some(Ok(value)),
                    State::Closed => Some(Err(Cancelled)),
                }
            })
            .await
    }

    /// Returns the value, if it has been sent.
    pub fn try_receive(&mut self) -> Option<T> {
        let mut state = self.shared.state.lock();
        match core::mem::replace(&mut *state, State::Closed) {
            State::Sent(value) => Some(value),
            other => {
                *state = other;
                None
            }
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // The old state is dropped after the lock was released, since the destructor of a value may
        // take long.
        let _old = core::mem::replace(&mut *self.shared.state.lock(), State::Closed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Task, block_on};

    #[test]
    fn a_value_arrives_once() {
        let (sender, mut receiver) = oneshot();
        {
            let mut task = Task::new(receiver.receive());
            assert!(task.poll().is_pending());
            sender.send(7).unwrap();
            assert!(task.woken());
        }
        assert_eq!(block_on(receiver.receive()), Ok(7));
        assert_eq!(block_on(receiver.receive()), Err(Cancelled));
    }

    #[test]
    fn each_end_notices_that_the_other_is_gone() {
        let (sender, receiver) = oneshot();
        drop(receiver);
        assert_eq!(sender.send(1), Err(1));
        let (sender, mut receiver) = oneshot::<u8>();
        drop(sender);
        assert_eq!(receiver.try_receive(), None);
        assert_eq!(block_on(receiver.receive()), Err(Cancelled));
    }
}
