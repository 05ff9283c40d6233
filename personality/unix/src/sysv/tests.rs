//! Tests of System V objects, without calls.

use super::User;
use super::messages::{MessageQueues, Receive, Which};
use super::objects::{Find, PRIVATE};
use super::semaphores::{Operation, Semaphores, VALUE_LIMIT};
use crate::account::{Account, Settings};
use crate::{Error, Identity, Privileges};
use alloc::sync::Arc;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

fn user(number: u32, process: u32) -> User {
    let identity = Identity::new(number, number, Arc::new([])).with_privileges(Privileges::NONE);
    User {
        identity,
        owner: Default::default(),
        process,
        now: 1000,
        account: Account::new(number, Settings::new(1 << 30)),
    }
}

fn find(key: i32, mode: u32) -> Find {
    Find { key, create: true, exclusive: false, mode }
}

fn poll<T>(future: core::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("waits"),
    }
}

fn operation(number: u16, change: i16) -> Operation {
    Operation { number, change, no_wait: false, undo: false }
}

#[test]
fn keys_find_objects_within_their_permissions() {
    let sets = Semaphores::default();
    let (owner, other) = (user(1, 10), user(2, 20));
    let id = sets.get(&owner, find(7, 0o600), 2).unwrap();
    assert_eq!(sets.get(&owner, find(7, 0o600), 1), Ok(id));
    assert_eq!(sets.get(&owner, find(7, 0), 3), Err(Error::EINVAL), "it has fewer");
    assert_eq!(sets.get(&other, find(7, 0o600), 1), Err(Error::EACCES));
    assert_eq!(sets.get(&other, find(7, 0), 1), Ok(id), "nothing is asked for");
    let exclusive = Find { exclusive: true, ..find(7, 0) };
    assert_eq!(sets.get(&owner, exclusive, 1), Err(Error::EEXIST));
    assert_eq!(sets.get(&owner, Find { create: false, ..find(8, 0) }, 1), Err(Error::ENOENT));
    let private = sets.get(&owner, find(PRIVATE, 0o600), 1).unwrap();
    assert_ne!(private, id);
    assert_eq!(sets.remove(&other, id), Err(Error::EPERM));
    assert_eq!(sets.remove(&owner, id), Ok(()));
    assert_eq!(sets.remove(&owner, id), Err(Error::EINVAL));
    let again = sets.get(&owner, find(7, 0o600), 2).unwrap();
    assert_ne!(again, id, "an old id does not name a new object");
}

#[test]
fn operations_are_done_together_or_not_at_all() {
    let sets = Semaphores::default();
    let owner = user(1, 10);
    let id = sets.get(&owner, find(1, 0o600), 2).unwrap();
    let values = |expected: [i32; 2]| {
        let values: Vec<i32> =
            sets.with(|sets| sets.get(id).unwrap().semaphores.iter().map(|s| s.value).collect());
        assert_eq!(values, expected);
    };
    assert_eq!(now(sets.operate(&owner, id, &[operation(0, 3), operation(1, 1)])), Ok(()));
    values([3, 1]);
    let both = [operation(0, -2), operation(1, -2)];
    let mut waits = Box::pin(sets.operate(&owner, id, &both));
    assert!(poll(waits.as_mut()).is_pending());
    values([3, 1]);
    assert_eq!(sets.with(|sets| sets.get(id).unwrap().semaphores[1].waits_for_more), 1);
    assert_eq!(now(sets.operate(&owner, id, &[operation(1, 1)])), Ok(()));
    assert_eq!(poll(waits.as_mut()), Poll::Ready(Ok(())));
    values([1, 0]);
    let no_wait = Operation { no_wait: true, ..operation(1, -1) };
    assert_eq!(now(sets.operate(&owner, id, &[no_wait])), Err(Error::EAGAIN));
    assert_eq!(now(sets.operate(&owner, id, &[operation(2, 1)])), Err(Error::EFBIG));
    assert_eq!(now(sets.operate(&owner, id, &[operation(0, 32767)])), Err(Error::ERANGE));
    assert_eq!(now(sets.operate(&user(2, 20), id, &[operation(0, 1)])), Err(Error::EACCES));
    let zero = [operation(0, 0)];
    let mut waits = Box::pin(sets.operate(&owner, id, &zero));
    assert!(poll(waits.as_mut()).is_pending());
    drop(waits);
    assert_eq!(sets.with(|sets| sets.get(id).unwrap().semaphores[0].waits_for_zero), 0);
    let mut waits = Box::pin(sets.operate(&owner, id, &zero));
    assert!(poll(waits.as_mut()).is_pending());
    sets.remove(&owner, id).unwrap();
    assert_eq!(poll(waits.as_mut()), Poll::Ready(Err(Error::EIDRM)));
}

#[test]
fn changes_are_taken_back_at_the_end_of_a_process() {
    let sets = Semaphores::default();
    let owner = user(1, 10);
    let id = sets.get(&owner, find(1, 0o600), 2).unwrap();
    let undo = |number, change| Operation { undo: true, ..operation(number, change) };
    now(sets.operate(&owner, id, &[undo(0, 5), operation(1, 5)])).unwrap();
    now(sets.operate(&user(1, 11), id, &[undo(1, -2)])).unwrap();
    let value = |number: usize| sets.with(|sets| sets.get(id).unwrap().semaphores[number].value);
    sets.process_ended(10, 2000);
    assert_eq!((value(0), value(1)), (0, 3));
    sets.set(&owner, id, Some(1), &[9]).unwrap();
    sets.process_ended(11, 2000);
    assert_eq!(value(1), 9, "what was to be taken back is forgotten when the value is set");
    assert_eq!(sets.set(&owner, id, None, &[1, VALUE_LIMIT + 1]), Err(Error::ERANGE));
    assert_eq!(sets.set(&owner, id, None, &[1, 2]), Ok(()));
    assert_eq!(sets.set(&owner, id, Some(2), &[1]), Err(Error::EINVAL));
}

#[test]
fn messages_are_received_by_type_and_wait_for_room() {
    let queues = MessageQueues::default();
    let owner = user(1, 10);
    let id = queues.get(&owner, find(1, 0o600)).unwrap();
    let send = |kind, text: &[u8]| now(queues.send(&owner, id, (kind, text.to_vec()), true));
    let how = Receive { which: Which::First, room: 100, truncate: false, no_wait: true };
    let receive = |which| now(queues.receive(&owner, id, Receive { which, ..how }));
    assert_eq!(send(0, b"x"), Err(Error::EINVAL));
    for (kind, text) in [(3, b"three"), (1, b"one 1"), (2, b"two 2")] {
        send(kind, text).unwrap();
    }
    assert_eq!(receive(Which::Of(9)), Err(Error::ENOMSG));
    assert_eq!(receive(Which::UpTo(2)), Ok((1, b"one 1".to_vec())));
    assert_eq!(receive(Which::Except(3)), Ok((2, b"two 2".to_vec())));
    let short = Receive { room: 2, ..how };
    assert_eq!(now(queues.receive(&owner, id, short)), Err(Error::E2BIG));
    assert_eq!(now(queues.receive(&owner, id, Receive { truncate: true, ..short })), Ok((3, b"th".to_vec())));
    for _ in 0..2 {
        send(1, &[0; 8192]).unwrap();
    }
    assert_eq!(send(1, b"x"), Err(Error::EAGAIN));
    let mut waits = Box::pin(queues.send(&owner, id, (5, b"late".to_vec()), false));
    assert!(poll(waits.as_mut()).is_pending());
    assert!(now(queues.receive(&owner, id, Receive { room: 9000, ..how })).is_ok());
    assert_eq!(poll(waits.as_mut()), Poll::Ready(Ok(())));
    assert_eq!(now(queues.receive(&user(2, 20), id, how)), Err(Error::EACCES));
    assert_eq!(queues.set(&owner, id, (1, 1), 0o600, 20000), Err(Error::EPERM));
    let mut waits =
        Box::pin(queues.receive(&owner, id, Receive { which: Which::Of(77), no_wait: false, ..how }));
    assert!(poll(waits.as_mut()).is_pending());
    queues.remove(&owner, id).unwrap();
    assert_eq!(poll(waits.as_mut()), Poll::Ready(Err(Error::EIDRM)));
}
