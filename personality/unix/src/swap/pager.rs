//! The default pager over swap areas: for each anonymous object, where its pages are.

use super::{PAGE, Place, Swap, Swapped};
use crate::sync::SpinLock;
use crate::{BoxFuture, Error, Result};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::any::Any;
use mach::machine::Machine;
use mach::vm::{DataRequest, DataReturn, DefaultPager, Pager, SwapPager, Vm, VmObject};
use mach::{KernError, KernResult};

/// The places of so many pages of an object are kept together.
const CHUNK: usize = 64;
/// The bytes that are reserved for a chunk, with its share of the tree.
const CHUNK_BYTES: usize = size_of::<[Option<Place>; CHUNK]>() + 64;
/// The bytes that are reserved for the pager of an object.
const PAGER_BYTES: usize = 256;

/// The default pager whose pages are in swap areas.
pub struct SwapSpace(pub Arc<Swap>);

/// The pager of an object.
struct ObjectPager<M: Machine> {
    swap: Arc<Swap>,
    /// The number by which the swap space knows it.
    number: u64,
    vm: Arc<Vm<M>>,
    state: SpinLock<State<M>>,
}

struct State<M: Machine> {
    object: Weak<VmObject<M>>,
    /// The byte offset of the object's first page.
    start: u64,
    /// By the number of the first page, divided by the size of a chunk.
    chunks: BTreeMap<u64, Chunk>,
}

struct Chunk {
    places: Box<[Option<Place>; CHUNK]>,
    used: usize,
}

impl<M: Machine> State<M> {
    fn get(&self, page: u64) -> Option<Place> {
        self.chunks.get(&(page / CHUNK as u64))?.places[page as usize % CHUNK]
    }

    /// Makes room for the place of a page. Returns false if memory is short.
    fn make_room(&mut self, vm: &Vm<M>, page: u64) -> bool {
        let number = page / CHUNK as u64;
        if self.chunks.contains_key(&number) {
            return true;
        }
        if !vm.machine().reserve_memory(CHUNK_BYTES) {
            return false;
        }
        self.chunks.insert(number, Chunk { places: Box::new([None; CHUNK]), used: 0 });
        true
    }

    /// Sets the place of a page that has none; there is room for it.
    fn set(&mut self, page: u64, place: Place) {
        if let Some(chunk) = self.chunks.get_mut(&(page / CHUNK as u64)) {
            let old = chunk.places[page as usize % CHUNK].replace(place);
            debug_assert!(old.is_none(), "a page has one place");
            chunk.used += 1;
        }
    }

    fn take(&mut self, vm: &Vm<M>, page: u64) -> Option<Place> {
        let number = page / CHUNK as u64;
        let chunk = self.chunks.get_mut(&number)?;
        let place = chunk.places[page as usize % CHUNK].take();
        chunk.used -= usize::from(place.is_some());
        self.drop_unused(vm, number);
        place
    }

    fn drop_unused(&mut self, vm: &Vm<M>, number: u64) {
        if self.chunks.get(&number).is_some_and(|chunk| chunk.used == 0) {
            self.chunks.remove(&number);
            vm.machine().unreserve_memory(CHUNK_BYTES);
        }
    }

    /// The places from `page` on that are one after the other: the first one, and how many.
    fn run(&self, page: u64, most: usize) -> Option<(Place, usize)> {
        let first = self.get(page)?;
        let goes_on = |&count: &usize| self.get(page + count as u64) == Some(first.after(count as u32));
        Some((first, 1 + (1..most).take_while(goes_on).count()))
    }
}

impl<M: Machine> DefaultPager<M> for SwapSpace {
    fn has_room(&self) -> bool {
        self.0.has_room()
    }

    fn create(&self, object: &Arc<VmObject<M>>) -> KernResult<Arc<dyn SwapPager<M>>> {
        let vm = object.vm().clone();
        if !vm.machine().reserve_memory(PAGER_BYTES) {
            return Err(KernError::ResourceShortage);
        }
        let state = State { object: Arc::downgrade(object), start: 0, chunks: BTreeMap::new() };
        let (swap, number) = (self.0.clone(), self.0.new_pager());
        let pager = Arc::new(ObjectPager { swap, number, vm, state: SpinLock::new(state) });
        let known: Weak<ObjectPager<M>> = Arc::downgrade(&pager);
        self.0.add_pager(number, known);
        Ok(pager)
    }
}

impl<M: Machine> Drop for ObjectPager<M> {
    fn drop(&mut self) {
        self.swap.remove_pager(self.number);
        let chunks = core::mem::take(&mut self.state.get_mut().chunks);
        self.vm.machine().unreserve_memory(PAGER_BYTES + chunks.len() * CHUNK_BYTES);
        let places = chunks.values().flat_map(|chunk| chunk.places.iter().flatten());
        places.for_each(|&place| self.swap.release(place));
    }
}

impl<M: Machine> SwapPager<M> for ObjectPager<M> {
    fn reserve(&self, offset: u64, pages: usize) -> usize {
        let page = offset / PAGE;
        let mut state = self.state.lock();
        // Old places of these pages, which an object below this one may have left.
        for at in page..page + pages as u64 {
            if let Some(place) = state.take(&self.vm, at) {
                self.swap.release(place);
            }
        }
        let Some((first, count)) = self.swap.allocate(pages as u32) else { return 0 };
        for index in 0..count {
            let at = page + u64::from(index);
            if !state.make_room(&self.vm, at) {
                (index..count).for_each(|index| self.swap.release(first.after(index)));
                return index as usize;
            }
            state.set(at, first.after(index));
        }
        count as usize
    }

    fn forget(&self, offset: u64) {
        let place = self.state.lock().take(&self.vm, offset / PAGE);
        if let Some(place) = place {
            self.swap.release(place);
        }
    }

    fn moved(&self, object: Weak<VmObject<M>>, offset: u64) {
        let mut state = self.state.lock();
        (state.object, state.start) = (object, offset);
    }

    fn take_over(&self, from: &dyn SwapPager<M>, from_offset: u64, offset: u64) -> bool {
        let from: &dyn Any = from;
        let Some(from) = from.downcast_ref::<ObjectPager<M>>() else { return false };
        let page = offset / PAGE;
        if !self.state.lock().make_room(&self.vm, page) {
            return false;
        }
        let place = from.state.lock().take(&from.vm, from_offset / PAGE);
        let mut state = self.state.lock();
        match place {
            Some(place) => state.set(page, place),
            None => state.drop_unused(&self.vm, page / CHUNK as u64),
        }
        place.is_some()
    }
}

impl<M: Machine> Pager<M> for ObjectPager<M> {
    fn data_request<'a>(&'a self, request: DataRequest<'a, M>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(async move {
            let found = self.state.lock().run(request.offset / PAGE, request.frames.len());
            let (place, count) = found.ok_or(KernError::MemoryError)?;
            let done = match self.swap.read(place, &request.frames[..count]).await {
                // Another page of the run may be the one that cannot be read.
                Err(_) if count > 1 => self.swap.read(place, &request.frames[..1]).await.map(|()| 1),
                done => done.map(|()| count),
            };
            done.map(|count| count * PAGE as usize).map_err(|_| KernError::MemoryError)
        })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, M>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move {
            let (mut page, mut frames) = (data.offset / PAGE, data.frames);
            while !frames.is_empty() {
                let found = self.state.lock().run(page, frames.len());
                let (place, count) = found.ok_or(KernError::MemoryError)?;
                let (now, rest) = frames.split_at(count);
                self.swap.write(place, now).await.map_err(|_| KernError::MemoryError)?;
                (page, frames) = (page + count as u64, rest);
            }
            Ok(())
        })
    }

    fn fills_by_device(&self) -> bool {
        true
    }
}

impl<M: Machine> Swapped for ObjectPager<M> {
    fn next_in(&self, area: u32, from: u64) -> Option<u64> {
        let state = self.state.lock();
        let chunks = state.chunks.range(from / CHUNK as u64..);
        let pages = chunks.flat_map(|(number, chunk)| {
            let first = number * CHUNK as u64;
            (first..).zip(chunk.places.iter())
        });
        let is_in = |place: &Option<Place>| place.is_some_and(|place| place.area() == area);
        pages.filter(|(page, place)| *page >= from && is_in(place)).map(|(page, _)| page).next()
    }

    fn take_back(self: Arc<Self>, page: u64) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let (object, start) = {
                let state = self.state.lock();
                (state.object.upgrade(), state.start / PAGE)
            };
            // A page before the object's first one is hidden from all, and goes by itself.
            let (Some(object), Some(page)) = (object, page.checked_sub(start)) else { return Ok(()) };
            object.take_back(page).await.map_err(|error| match error {
                KernError::MemoryError => Error::EIO,
                _ => Error::ENOMEM,
            })
        })
    }
}

/// The pagers of objects in the order of their numbers.
#[derive(Default)]
pub(super) struct Pagers {
    pub(super) last: u64,
    pub(super) all: BTreeMap<u64, Weak<dyn Swapped>>,
}

impl Pagers {
    /// The first pager after this number.
    pub(super) fn after(&self, number: u64) -> Option<(u64, Arc<dyn Swapped>)> {
        self.all.range(number + 1..).find_map(|(&number, pager)| Some((number, pager.upgrade()?)))
    }

    /// How many there are, for tests.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }
}
