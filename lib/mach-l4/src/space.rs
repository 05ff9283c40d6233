//! Address spaces: the kernel's space, and the places of threads in it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;

use l4::x2::ThreadId;
use macadamia_sync::SpinLock;
use mach::{KernError, KernResult};

use crate::kernel;

/// Most threads that are kept for the next that is made in their space, instead of being ended.
const MOST_CACHED: usize = 8;

/// Names an address space, to make threads in it. It may outlive the space.
#[derive(Clone)]
pub struct Space(pub(crate) Arc<SpaceRecord>);

/// The translation of an address space.
pub struct Pmap {
    pub(crate) space: Space,
    /// Something may be mapped: until something is entered there is nothing to revoke.
    pub(crate) entered: AtomicBool,
}

pub(crate) struct SpaceRecord {
    /// The name by which root knows the space.
    pub(crate) handle: rt::root::space::Space,
    /// Its first thread, which lives as long as the space and so stands for it.
    pub(crate) anchor: ThreadId,
    threads: SpinLock<Threads>,
}

struct Threads {
    alive: bool,
    /// The space's threads, by their places in the UTCB area.
    places: Vec<Place>,
    /// How many threads the space can have.
    most: usize,
    cached: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    /// The place belongs to a thread that is about to be made.
    Taken,
    Used(ThreadId),
    /// Of a thread that is stopped and cached: no [`UserThread`](crate::UserThread) has it. `used`:
    /// one has had it; `worker`: its messages went there.
    Cached {
        thread: ThreadId,
        used: bool,
        worker: usize,
    },
}

/// A thread for a new [`UserThread`](crate::UserThread).
pub(crate) enum Found {
    /// A cached one, at this place; `used`: its registers hold what its last user left; `worker`:
    /// the one that it sends its messages to.
    Cached { thread: ThreadId, place: u32, used: bool, worker: usize },
    /// There is no cached thread; a free place for a new one.
    Place(u32),
}

impl SpaceRecord {
    /// A new space. Its first thread is cached, and has this worker.
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

    /// A thread, or a place for one.
    ///
    /// # Errors
    /// `Terminated`: the space is gone. `ResourceShortage`: it is full.
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

    /// A thread was made at a place that [`find_thread`](Self::find_thread) gave, or could not be.
    /// False: the space has been ended meanwhile, and the thread with it.
    pub(crate) fn fill(&self, place: u32, thread: Option<ThreadId>) -> bool {
        let mut threads = self.threads.lock();
        threads.places[place as usize] = thread.map_or(Place::Free, Place::Used);
        threads.alive
    }

    /// A thread of this worker is not used any more: stops it. Returns whether it is to be ended,
    /// and its place freed.
    pub(crate) fn leave(&self, place: u32, thread: ThreadId, worker: usize) -> bool {
        let mut threads = self.threads.lock();
        // In a space that is gone, there is nothing to stop.
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

    /// Stops all threads and lets no other be made. False: this was done before.
    pub(crate) fn end(&self) -> bool {
        let mut threads = self.threads.lock();
        for place in &threads.places {
            if let Place::Used(thread) = *place {
                // All of them must stop, because the memory in which they run is about to be
                // unmapped. Only a thread that has ended cannot be stopped.
                let _ = kernel::halt_and_abort(thread);
            }
        }
        core::mem::replace(&mut threads.alive, false)
    }
}
