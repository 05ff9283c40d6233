//! Address spaces: the kernel's space, and the places of its threads.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;

use l4::x2::ThreadId;
use macadamia_sync::SpinLock;
use mach::{KernError, KernResult};

use crate::kernel;

/// The most threads of a space that are cached for reuse when they have ended.
const MOST_CACHED: usize = 8;

/// A reference to an address space, by which threads are made in it. The space may end before it.
#[derive(Clone)]
pub struct Space(pub(crate) Arc<SpaceRecord>);

/// The translation of an address space. The space ends when it is dropped.
pub struct Pmap {
    pub(crate) space: Space,
    /// Whether a page may be mapped. Until the first page is entered there is nothing to revoke.
    pub(crate) entered: AtomicBool,
}

pub(crate) struct SpaceRecord {
    /// The handle by which root knows the space.
    pub(crate) handle: rt::root::space::Space,
    /// The first thread of the space. It exists as long as the space and names it in kernel calls.
    pub(crate) anchor: ThreadId,
    threads: SpinLock<Threads>,
}

struct Threads {
    alive: bool,
    /// The state of each place in the space's UTCB area.
    places: Vec<Place>,
    /// The most threads that the space can have.
    most: usize,
    cached: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    /// The place is reserved for a thread that is being made or destroyed.
    Taken,
    Used(ThreadId),
    /// The place belongs to a thread that is stopped and cached: no
    /// [`UserThread`](crate::UserThread) has it. `used`: one has had it before; `worker`: the one
    /// that receives the thread's messages.
    Cached {
        thread: ThreadId,
        used: bool,
        worker: usize,
    },
}

/// The result of a search for a thread for a new [`UserThread`](crate::UserThread).
pub(crate) enum Found {
    /// A cached thread, at this place. `used`: its registers hold what its last user left;
    /// `worker`: the one that receives the thread's messages.
    Cached { thread: ThreadId, place: u32, used: bool, worker: usize },
    /// A free place for a new thread, since no thread is cached.
    Place(u32),
}

impl SpaceRecord {
    /// A new space. Its first thread is cached, and this worker receives the thread's messages.
    pub(crate) fn new(
        handle: rt::root::space::Space,
        anchor: ThreadId,
        worker: usize,
        most: usize,
    ) -> KernResult<SpaceRecord> {
        let mut places = Vec::new();
        places.try_reserve(1).map_err(|_| KernError::ResourceShortage)?;
        places.push(Place::Cached { thread: anchor, used: false, worker });
        let threads = Threads { alive: true, places, most, cached: 1 };
        Ok(SpaceRecord { handle, anchor, threads: SpinLock::new(threads) })
    }

    /// Finds a cached thread, or a place for a new one.
    ///
    /// # Errors
    /// `Terminated`: the space has ended. `ResourceShortage`: it has no free place.
    pub(crate) fn find_thread(&self) -> KernResult<Found> {
        let threads = &mut *self.threads.lock();
        if !threads.alive {
            return Err(KernError::Terminated);
        }
        if threads.cached > 0 {
            for (index, place) in threads.places.iter_mut().enumerate() {
                if let Place::Cached { thread, used, worker } = *place {
                    *place = Place::Used(thread);
                    threads.cached -= 1;
                    return Ok(Found::Cached { thread, place: index as u32, used, worker });
                }
            }
        }
        if let Some(index) = threads.places.iter().position(|place| *place == Place::Free) {
            threads.places[index] = Place::Taken;
            return Ok(Found::Place(index as u32));
        }
        if threads.places.len() == threads.most {
            return Err(KernError::ResourceShortage);
        }
        threads.places.try_reserve(1).map_err(|_| KernError::ResourceShortage)?;
        threads.places.push(Place::Taken);
        Ok(Found::Place(threads.places.len() as u32 - 1))
    }

    /// Records the thread that was made at a place from [`find_thread`](Self::find_thread); `None`
    /// if it could not be made. Returns false if the space, and the thread with it, has ended
    /// meanwhile.
    pub(crate) fn fill(&self, place: u32, thread: Option<ThreadId>) -> bool {
        let mut threads = self.threads.lock();
        threads.places[place as usize] = thread.map_or(Place::Free, Place::Used);
        threads.alive
    }

    /// Stops a thread that no [`UserThread`](crate::UserThread) has any more. Its messages went to
    /// `worker`. Returns whether the thread has to be ended, and its place freed.
    pub(crate) fn leave(&self, place: u32, thread: ThreadId, worker: usize) -> bool {
        let mut threads = self.threads.lock();
        // In a space that has ended, no thread runs that would have to be stopped.
        let stopped = kernel::halt_and_abort(thread).is_ok();
        if !threads.alive {
            return false;
        }
        let keep = thread == self.anchor || stopped && threads.cached < MOST_CACHED;
        threads.places[place as usize] =
            if keep { Place::Cached { thread, used: true, worker } } else { Place::Taken };
        threads.cached += usize::from(keep);
        !keep
    }

    /// Stops all threads of the space and prevents that new ones are made. Returns false if this
    /// was done before.
    pub(crate) fn end(&self) -> bool {
        let mut threads = self.threads.lock();
        for place in &threads.places {
            if let Place::Used(thread) = *place {
                // All threads must stop, because their memory is about to be unmapped. The call
                // fails only for a thread that has ended.
                let _ = kernel::halt_and_abort(thread);
            }
        }
        core::mem::replace(&mut threads.alive, false)
    }
}
