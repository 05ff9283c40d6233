//! Tests of futex(2), on words in a map.

use super::inheriting::{LOCK_OWNER_DIED, LOCK_WAITERS};
use super::*;
use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex};
use unix::testing::{Task, now};
use unix::{Error, Result};

#[derive(Default)]
struct Memory(Mutex<BTreeMap<u64, u32>>);

impl Memory {
    fn set(&self, address: u64, value: u32) {
        self.0.lock().unwrap().insert(address, value);
    }
    fn get(&self, address: u64) -> Result<u32> {
        self.0.lock().unwrap().get(&address).copied().ok_or(Error::EFAULT)
    }
}

impl Words for Memory {
    fn key(&self, address: u64, shared: bool) -> impl Future<Output = Result<Key>> + Send {
        // Addresses from 0x8000 on are in shared memory.
        ready(Ok(match shared && address >= 0x8000 {
            true => Key::Shared { object: 7, offset: address - 0x8000 },
            false => Key::Private { space: 1, address },
        }))
    }
    fn load(&self, address: u64) -> impl Future<Output = Result<u32>> + Send {
        ready(self.get(address))
    }
    fn exchange(
        &self,
        address: u64,
        current: u32,
        new: u32,
    ) -> impl Future<Output = Result<Result<u32, u32>>> + Send {
        let old = self.get(address);
        if old == Ok(current) {
            self.set(address, new);
        }
        ready(old.map(|old| if old == current { Ok(old) } else { Err(old) }))
    }
    fn load_u64(&self, address: u64) -> impl Future<Output = Result<u64>> + Send {
        let low = self.get(address);
        let high = self.get(address + 4);
        ready(low.and_then(|low| high.map(|high| u64::from(low) | u64::from(high) << 32)))
    }
}

struct World {
    futexes: Futexes,
    memory: Memory,
}

fn world(words: &[(u64, u32)]) -> Arc<World> {
    let world = World { futexes: Futexes::new(), memory: Memory::default() };
    words.iter().for_each(|(address, value)| world.memory.set(*address, *value));
    Arc::new(world)
}

fn wait(world: &Arc<World>, address: u64, expected: u32, bits: u32) -> Task<Result<()>> {
    let world = world.clone();
    Task::new(async move { world.futexes.wait(&world.memory, address, false, expected, bits).await })
}

fn wake(world: &World, address: u64, limit: u32, bits: u32) -> Result<u32> {
    now(world.futexes.wake(&world.memory, address, false, limit, bits))
}

#[test]
fn wake_wakes_a_waiter_whose_word_was_as_expected() {
    let world = world(&[(0x1000, 5)]);
    assert_eq!(wait(&world, 0x1000, 4, 1).finish(), Err(Error::EAGAIN));
    assert_eq!(wait(&world, 0x1001, 4, 1).finish(), Err(Error::EINVAL));
    assert_eq!(wait(&world, 0x1000, 5, 0).finish(), Err(Error::EINVAL));
    assert_eq!(wait(&world, 0x2000, 5, 1).finish(), Err(Error::EFAULT));
    assert_eq!(world.futexes.waiting(), 0, "failed waits leave nothing");
    let mut waiters: Vec<_> = (0..3).map(|_| wait(&world, 0x1000, 5, u32::MAX)).collect();
    waiters.iter_mut().for_each(Task::waits);
    assert_eq!(wake(&world, 0x1000, 2, u32::MAX), Ok(2));
    assert_eq!((waiters[0].finish(), waiters[1].finish()), (Ok(()), Ok(())));
    waiters[2].waits();
    drop(waiters);
    assert_eq!(world.futexes.waiting(), 0, "a dropped wait leaves nothing");
    assert_eq!(wake(&world, 0x1000, 2, u32::MAX), Ok(0));
}

#[test]
fn a_wake_reaches_waiters_with_one_of_its_bits() {
    let world = world(&[(0x1000, 0)]);
    let (mut a, mut b) = (wait(&world, 0x1000, 0, 1), wait(&world, 0x1000, 0, 2));
    a.waits();
    b.waits();
    assert_eq!(wake(&world, 0x1000, 9, 2), Ok(1));
    b.finish().unwrap();
    a.waits();
}

#[test]
fn requeue_wakes_some_waiters_and_moves_others() {
    let world = world(&[(0x1000, 0), (0x2000, 0)]);
    let mut waiters: Vec<_> = (0..4).map(|_| wait(&world, 0x1000, 0, u32::MAX)).collect();
    waiters.iter_mut().for_each(Task::waits);
    let requeue = |wake, move_, expected| {
        now(world.futexes.requeue(&world.memory, 0x1000, 0x2000, false, wake, move_, expected))
    };
    assert_eq!(requeue(1, 2, Some(1)), Err(Error::EAGAIN));
    assert_eq!(requeue(1, 2, Some(0)), Ok((1, 2)));
    waiters[0].finish().unwrap();
    assert_eq!(wake(&world, 0x1000, 9, u32::MAX), Ok(1));
    waiters[3].finish().unwrap();
    assert_eq!(wake(&world, 0x2000, 9, u32::MAX), Ok(2));
    waiters[1].finish().unwrap();
    waiters[2].finish().unwrap();
}

#[test]
fn wake_op_changes_the_second_word_and_compares_it() {
    let world = world(&[(0x1000, 0), (0x2000, 5)]);
    let (mut a, mut b) = (wait(&world, 0x1000, 0, u32::MAX), wait(&world, 0x2000, 5, u32::MAX));
    a.waits();
    b.waits();
    let run = |operation, comparison| {
        let done =
            world.futexes.wake_operation(&world.memory, 0x1000, 0x2000, false, 1, 1, operation, comparison);
        now(done)
    };
    assert_eq!(run(WakeOperation::Add(2), Comparison::Greater(5)), Ok(1));
    assert_eq!(world.memory.get(0x2000), Ok(7));
    a.finish().unwrap();
    b.waits();
    assert_eq!(run(WakeOperation::AndNot(1), Comparison::GreaterOrEqual(7)), Ok(1));
    assert_eq!(world.memory.get(0x2000), Ok(6));
    b.finish().unwrap();
    assert!(Comparison::Less(0).holds(u32::MAX), "comparisons are signed");
    assert_eq!(WakeOperation::Xor(3).apply(5), 6);
}

#[test]
fn a_shared_and_a_private_word_at_one_address_are_different() {
    let world = world(&[(0x8000, 0)]);
    let mut private = wait(&world, 0x8000, 0, u32::MAX);
    private.waits();
    assert_eq!(now(world.futexes.wake(&world.memory, 0x8000, true, 1, u32::MAX)), Ok(0));
    assert_eq!(wake(&world, 0x8000, 1, u32::MAX), Ok(1));
    private.finish().unwrap();
}

fn lock(world: &Arc<World>, thread: u64) -> Task<Result<()>> {
    let world = world.clone();
    Task::new(async move { world.futexes.lock(&world.memory, 0x1000, false, thread, |tid| tid < 100).await })
}

#[test]
fn a_lock_with_inheritance_goes_to_waiters_in_order() {
    let world = world(&[(0x1000, 0)]);
    assert_eq!(lock(&world, 10).finish(), Ok(()));
    assert_eq!(world.memory.get(0x1000), Ok(10));
    assert_eq!(lock(&world, 10).finish(), Err(Error::EDEADLK));
    let (mut second, mut third) = (lock(&world, 11), lock(&world, 12));
    second.waits();
    third.waits();
    assert_eq!(world.memory.get(0x1000), Ok(10 | LOCK_WAITERS));
    assert_eq!(now(world.futexes.try_lock(&world.memory, 0x1000, false, 13)), Err(Error::EAGAIN));
    assert_eq!(now(world.futexes.unlock(&world.memory, 0x1000, false, 11)), Err(Error::EPERM));
    now(world.futexes.unlock(&world.memory, 0x1000, false, 10)).unwrap();
    second.finish().unwrap();
    third.waits();
    assert_eq!(world.memory.get(0x1000), Ok(11 | LOCK_WAITERS));
    now(world.futexes.unlock(&world.memory, 0x1000, false, 11)).unwrap();
    third.finish().unwrap();
    assert_eq!(world.memory.get(0x1000), Ok(12));
    now(world.futexes.unlock(&world.memory, 0x1000, false, 12)).unwrap();
    assert_eq!(world.memory.get(0x1000), Ok(0));
    world.memory.set(0x1000, 500);
    assert_eq!(lock(&world, 10).finish(), Err(Error::ESRCH));
}

#[test]
fn a_lock_with_inheritance_goes_to_a_waiter_when_its_owner_ends() {
    let world = world(&[(0x1000, 0)]);
    lock(&world, 10).finish().unwrap();
    let (mut second, mut given_up) = (lock(&world, 11), lock(&world, 12));
    second.waits();
    given_up.waits();
    drop(given_up);
    now(world.futexes.give_up_lock(12));
    now(world.futexes.owner_ended(10));
    second.finish().unwrap();
    assert_eq!(world.memory.get(0x1000), Ok(11 | LOCK_OWNER_DIED));
    assert_eq!(world.futexes.waiting(), 0);
}

#[test]
fn robust_locks_of_a_thread_that_ended_are_released() {
    // The head is at 0x100; there are an entry at 0x200 (word 0x210), one at 0x300 (word 0x310,
    // another thread's), and a pending one at 0x400 (word 0x410).
    let world = world(&[]);
    let set64 = |address, value: u64| {
        world.memory.set(address, value as u32);
        world.memory.set(address + 4, (value >> 32) as u32);
    };
    set64(0x100, 0x200);
    set64(0x108, 0x10);
    set64(0x110, 0x400);
    set64(0x200, 0x300);
    set64(0x300, 0x100);
    world.memory.set(0x210, 10 | LOCK_WAITERS);
    world.memory.set(0x310, 11);
    world.memory.set(0x410, 10);
    let mut waiter = wait(&world, 0x210, 10 | LOCK_WAITERS, u32::MAX);
    waiter.waits();
    now(RobustList { head: 0x100 }.release(&world.futexes, &world.memory, 10));
    waiter.finish().unwrap();
    let words = [0x210, 0x310, 0x410].map(|address| world.memory.get(address).unwrap());
    assert_eq!(words, [LOCK_WAITERS | LOCK_OWNER_DIED, 11, LOCK_OWNER_DIED]);
    // One list is circular, and one has a head that is not mapped.
    set64(0x300, 0x200);
    now(RobustList { head: 0x100 }.release(&world.futexes, &world.memory, 10));
    now(RobustList { head: 0x9000 }.release(&world.futexes, &world.memory, 10));
}
