use super::*;
use crate::account::Settings;
use crate::testing::account;
use alloc::boxed::Box;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

const LIMITS: QueueLimits = QueueLimits { length: 2, size: 4 };

fn queue(all: &Arc<AtomicU32>) -> Arc<MessageQueue> {
    let maker = Maker { account: &account(), limit: 1 << 20, privileged: false };
    MessageQueue::new(&maker, Some(LIMITS), all).unwrap()
}

fn message(priority: u32, bytes: &[u8]) -> Message {
    Message::charged(&account(), bytes.len()).unwrap()(priority, bytes.to_vec())
}

fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn send(queue: &MessageQueue, priority: u32, bytes: &[u8]) -> Result<Option<Notice>> {
    match poll(queue.send(message(priority, bytes), true)) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn messages_are_received_by_priority_and_then_by_age() {
    let queue = queue(&Arc::default());
    assert_eq!(send(&queue, 1, b"a"), Ok(None));
    assert_eq!(send(&queue, 1, b"b"), Ok(None));
    assert_eq!(send(&queue, 1, b"c"), Err(Error::EAGAIN));
    assert_eq!(send(&queue, 1, b"large"), Err(Error::EMSGSIZE));
    assert_eq!(queue.readiness(), Readiness::READ);
    let receive = || match poll(queue.receive(true)) {
        Poll::Ready(done) => done.map(|message| message.bytes),
        Poll::Pending => panic!("it waits"),
    };
    assert_eq!(receive(), Ok(b"a".to_vec()));
    assert_eq!(send(&queue, 7, b"d"), Ok(None));
    assert_eq!(receive(), Ok(b"d".to_vec()));
    assert_eq!(receive(), Ok(b"b".to_vec()));
    assert_eq!(receive(), Err(Error::EAGAIN));
    assert_eq!(queue.readiness(), Readiness::WRITE);
}

#[test]
fn a_process_is_notified_once_and_not_if_a_receiver_waits() {
    let queue = queue(&Arc::default());
    let notice = Notice { owner: LockOwner::Table(1), process: 1, signal: None };
    queue.notify(notice).unwrap();
    assert_eq!(queue.notify(notice), Err(Error::EBUSY));
    let mut first = Box::pin(queue.receive(false));
    let mut context = Context::from_waker(Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert_eq!(send(&queue, 0, b"1"), Ok(None), "it is the receiver's");
    assert_eq!(send(&queue, 0, b"2"), Ok(Some(notice)), "the queue was as good as empty");
    assert!(first.as_mut().poll(&mut context).is_ready());
    drop(first);
    // A receiver that waits no more does not count.
    queue.notify(notice).unwrap();
    assert!(poll(queue.receive(true)).is_ready());
    assert!(poll(queue.receive(false)).is_pending());
    queue.forget(LockOwner::Table(2));
    assert_eq!(send(&queue, 0, b"3"), Ok(Some(notice)));
}

#[test]
fn queues_have_limits_and_are_counted() {
    let all = Arc::new(AtomicU32::new(0));
    let user = Account::new(1000, Settings::new(1 << 30));
    let make = |length, size, limit, privileged| {
        let maker = Maker { account: &user, limit, privileged };
        MessageQueue::new(&maker, Some(QueueLimits { length, size }), &all).map(|_| ())
    };
    assert_eq!(make(0, 1, u64::MAX, true), Err(Error::EINVAL));
    assert_eq!(make(1, u64::MAX, u64::MAX, true), Err(Error::EINVAL));
    assert_eq!(make(11, 1, u64::MAX, false), Err(Error::EINVAL));
    assert_eq!(make(11, 1, u64::MAX, true), Ok(()));
    assert_eq!(make(10, 8192, 10 * (8192 + 96), false), Ok(()));
    assert_eq!(make(10, 8192, 10 * (8192 + 96) - 1, true), Err(Error::EMFILE));
    user.settings().set(Setting::MessageQueues, 1);
    let first = queue(&all);
    assert_eq!(make(1, 1, u64::MAX, false), Err(Error::ENOSPC));
    assert_eq!(make(1, 1, u64::MAX, true), Ok(()));
    drop(first);
    assert_eq!(make(1, 1, u64::MAX, false), Ok(()));
    assert_eq!((all.load(Ordering::Relaxed), user.amount(Kept::MessageQueues)), (0, 0));
}
