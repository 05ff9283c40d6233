//! The lock around the operations of this module, and these operations for the rest of the kernel.
//!
//! One processor at a time changes mappings: between two preemption points an operation is alone.
//! The finer locks (trees, spaces) state what depends on what; while this one exists they are never
//! contended, and taken only where that is checked ([`InnerLock`](crate::sync::InnerLock)). Walks
//! through page tables without it are marked as such ([`arch::tlb::Walk`]).
use core::pin::Pin;

use x2::{Fpage, MapItem, Region, Rights};

use super::cursor::{Cursor, Progress};
use super::space::SpaceMemory;
use super::spare;
use crate::arch::page_entry::MemoryType;
use crate::memory::{OutOfMemory, VirtAddr};
use crate::sync::delay::{self, Point};
use crate::sync::{SpinLock, SpinLockGuard};

#[cfg(doc)]
use crate::arch;

static LOCK: SpinLock<()> = SpinLock::new(());

/// Waits until no other processor changes mappings. After the lock of ThreadControl, before every
/// other.
#[inline]
pub fn lock() -> SpinLockGuard<'static, ()> {
    delay::between(Point::BeforeLock);
    let guard = LOCK.lock();
    delay::at(Point::Lock);
    guard
}

/// Like [`lock`], if that needs no waiting.
#[inline(always)]
pub fn try_lock() -> Option<SpinLockGuard<'static, ()>> {
    let guard = LOCK.try_lock()?;
    delay::at(Point::Lock);
    Some(guard)
}

/// Carries out an operation, after finishing what the operation before it with the same cursor has
/// left over ([`Cursor::cancel`]).
#[inline]
fn settled<T>(
    mut cursor: Pin<&mut Cursor>,
    operation: impl FnOnce(Pin<&mut Cursor>) -> Progress<T>,
) -> Progress<T> {
    match cursor.as_mut().project().finish_left_over() {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(()) => operation(cursor),
    }
}

/// Finishes the walk of an operation that does not go on, if it was in the midst of one. Preemption
/// point.
pub fn finish_walk(cursor: Pin<&mut Cursor>) -> Progress<()> {
    let _alone = lock();
    cursor.project().finish_walk()
}

/// Performs a map or grant item ([`super::map::map`]). Preemption point.
#[inline]
pub fn map(
    cursor: Pin<&mut Cursor>,
    from: SpaceMemory,
    to: SpaceMemory,
    item: MapItem,
    window: Fpage,
) -> Progress<Result<Fpage, OutOfMemory>> {
    let _alone = lock();
    settled(cursor, |cursor| super::map::map(cursor, from, to, item, window))
}

/// Revokes rights ([`super::unmap::unmap`]). Preemption point.
#[inline]
pub fn unmap(cursor: Pin<&mut Cursor>, space: SpaceMemory, fpage: Fpage, flush: bool) -> Progress<Rights> {
    let _alone = lock();
    settled(cursor, |cursor| super::unmap::unmap(cursor, space, fpage, flush))
}

/// Ends a space's memory ([`super::unmap::destroy`]). Preemption point.
pub fn destroy(cursor: Pin<&mut Cursor>, space: SpaceMemory) -> Progress<()> {
    let _alone = lock();
    settled(cursor, |cursor| super::unmap::destroy(cursor, space))
}

/// Sets how memory is cached ([`super::memory_type::set_memory_type`]). Preemption point.
pub fn set_memory_type(
    cursor: Pin<&mut Cursor>,
    space: SpaceMemory,
    region: Region,
    memory_type: MemoryType,
) -> Progress<Result<(), OutOfMemory>> {
    let _alone = lock();
    settled(cursor, |cursor| super::memory_type::set_memory_type(cursor, space, region, memory_type))
}

/// Serves a page fault of sigma0 ([`super::sigma0::sigma0_fault`]).
pub fn sigma0_fault(space: SpaceMemory, address: VirtAddr) -> Result<bool, OutOfMemory> {
    let _alone = lock();
    spare::or_give_back(|| super::sigma0::sigma0_fault(space, address))
}

/// Frees all spare page tables ([`super::spare`]). Whether there were any.
#[cold]
pub fn give_back() -> bool {
    let _alone = lock();
    spare::give_back()
}

/// Which ports a space has ([`super::ports::held_ports`]).
pub fn held_ports(space: SpaceMemory, word: usize) -> u64 {
    let _alone = lock();
    super::ports::held_ports(space, word)
}
