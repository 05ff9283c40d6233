//! Files whose contents are in Mach memory objects: read, write and mappings share one page cache.

use super::{PAGE, map_error};
use crate::sync::{SpinLock, Turns};
use crate::vfs::{FileMemory, InitialContents, MemoryProvider, Quota, Store};
use crate::{AttemptError, Error, MaybeReady, Result, UserBuffer};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;
use core::time::Duration;
use mach::machine::Frame;
use mach::vm::{
    CopyStrategy, DataRequest, DataReturn, LockRequest, PageKind, Pager, ReturnPages, Vm, VmObject,
};
use mach::{KernError, KernResult, Machine};

/// Makes memory for files that programs can map.
pub struct ObjectProvider<M: Machine>(pub Arc<Vm<M>>);

impl<M: Machine> MemoryProvider for ObjectProvider<M> {
    fn file_memory(
        &self,
        quota: Arc<dyn Quota>,
        initial: Option<InitialContents>,
    ) -> Result<Arc<dyn FileMemory>> {
        let size = initial.as_ref().map_or(0, |initial| initial.length as u64);
        let object = match &initial {
            Some(contents) => {
                let pager = Arc::new(InitialPager(contents.clone()));
                VmObject::paged(&self.0, pager, size, CopyStrategy::Symmetric)
            }
            None => VmObject::anonymous_of_size(&self.0, 0),
        };
        let object = object.map_err(map_error)?;
        object.note_mapped_writes();
        Ok(Arc::new(ObjectMemory::new(
            object,
            quota,
            State { size, initial: size, written: BTreeSet::new() },
            false,
        )))
    }

    fn stored_memory(&self, store: Arc<dyn Store>, size: u64) -> Result<Arc<dyn FileMemory>> {
        let size = size.next_multiple_of(PAGE);
        let pager = Arc::new(StorePager(store));
        let object = VmObject::paged(&self.0, pager, size, CopyStrategy::Symmetric).map_err(map_error)?;
        object.note_mapped_writes();
        // All pages may have contents in the store, so none is new and charged.
        let state = State { size, initial: u64::MAX, written: BTreeSet::new() };
        Ok(Arc::new(ObjectMemory::new(object, Arc::new(Unlimited), state, true)))
    }
}

/// The pager of a file whose contents are in a store.
struct StorePager(Arc<dyn Store>);

/// The most bytes that a pager reads or writes by one request to the store.
const PIECE: usize = 16 * PAGE as usize;

impl<M: Machine> Pager<M> for StorePager {
    fn data_request<'a>(&'a self, request: DataRequest<'a, M>) -> mach::vm::BoxFuture<'a, KernResult<usize>> {
        alloc::boxed::Box::pin(async move {
            if self.0.has_device() {
                let filled = self.0.read_frames(request.offset, request.frames).await;
                if let Some(count) = filled.map_err(|_| KernError::MemoryError)? {
                    return Ok(count);
                }
            }
            let mut bytes = buffer(request.length().min(PIECE))?;
            let count = self.0.read(request.offset, &mut bytes).await.map_err(|_| KernError::MemoryError)?;
            request.write(0, &bytes[..count.min(bytes.len())]);
            Ok(count)
        })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, M>) -> mach::vm::BoxFuture<'a, KernResult> {
        alloc::boxed::Box::pin(async move {
            let mut done = 0;
            if self.0.has_device() {
                let range = data.offset..data.offset + data.length() as u64;
                self.0.with_end(range, &mut |end| {
                    let (page, at) = (((end - data.offset) / PAGE) as usize, (end % PAGE) as usize);
                    data.machine.write_frame(data.frames[page], at, &[0; PAGE as usize][at..]);
                });
                let written = self.0.write_frames(data.offset, data.frames).await;
                done = written.map_err(|_| KernError::MemoryError)? * PAGE as usize;
            }
            if done == data.length() {
                return Ok(());
            }
            let mut bytes = buffer((data.length() - done).min(PIECE))?;
            while done < data.length() {
                let count = data.read(done, &mut bytes);
                let written = self.0.write(data.offset + done as u64, &bytes[..count]).await;
                written.map_err(|_| KernError::MemoryError)?;
                done += count;
            }
            Ok(())
        })
    }

    fn fills_by_device(&self) -> bool {
        self.0.has_device()
    }
}

fn buffer(length: usize) -> KernResult<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| KernError::ResourceShortage)?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// The quota of memory that is charged to no account, since it is freed when memory is short.
struct Unlimited;

impl Quota for Unlimited {
    fn charge(&self, _: u64) -> bool {
        true
    }

    fn release(&self, _: u64) {}
}

/// The pager that provides a file's initial contents. Written pages stay in memory.
struct InitialPager(InitialContents);

impl<M: Machine> Pager<M> for InitialPager {
    fn data_request<'a>(&'a self, request: DataRequest<'a, M>) -> mach::vm::BoxFuture<'a, KernResult<usize>> {
        let bytes = self.0.bytes();
        let start = usize::try_from(request.offset).unwrap_or(usize::MAX).min(bytes.len());
        let piece = &bytes[start..];
        let piece = &piece[..piece.len().min(request.length())];
        request.write(0, piece);
        let length = piece.len();
        alloc::boxed::Box::pin(core::future::ready(Ok(length)))
    }

    fn data_return<'a>(&'a self, _data: DataReturn<'a, M>) -> mach::vm::BoxFuture<'a, KernResult> {
        // The object has no storage to which a page could be written.
        alloc::boxed::Box::pin(core::future::ready(Err(KernError::ResourceShortage)))
    }

    fn kind(&self) -> PageKind {
        PageKind::Memory
    }
}

struct State {
    /// How many bytes the object can have pages for: the file's size, rounded up when the file
    /// grew.
    size: u64,
    /// How many bytes of initial contents truncation has left.
    initial: u64,
    /// Pages beyond the initial contents that were written. They are charged to the quota.
    written: BTreeSet<u64>,
}

/// The contents of a file in a Mach object.
pub struct ObjectMemory<M: Machine> {
    pub(super) object: Arc<VmObject<M>>,
    quota: Arc<dyn Quota>,
    /// The state. Its lock is taken while pages are locked; no other lock of memory is taken under
    /// it.
    state: SpinLock<State>,
    /// Locked while the object's size changes.
    pub(super) resize: macadamia_sync::Mutex<()>,
    /// Whether the pages are a cache of a [`Store`].
    stored: bool,
}

/// After this many pages, charging and clearing let other tasks run.
const TURN: u32 = 256;

impl<M: Machine> ObjectMemory<M> {
    fn new(object: Arc<VmObject<M>>, quota: Arc<dyn Quota>, state: State, stored: bool) -> ObjectMemory<M> {
        let resize = macadamia_sync::Mutex::new(());
        ObjectMemory { object, quota, state: SpinLock::new(state), resize, stored }
    }

    /// Makes the memory of a file of this size in bytes, whose pages a pager has.
    ///
    /// # Errors
    /// `ENOMEM`: memory is short.
    pub fn paged(vm: &Arc<Vm<M>>, pager: Arc<dyn Pager<M>>, size: u64) -> Result<Arc<ObjectMemory<M>>> {
        let object = VmObject::paged(vm, pager, size, CopyStrategy::Symmetric).map_err(map_error)?;
        let state = State { size, initial: size, written: BTreeSet::new() };
        Ok(Arc::new(ObjectMemory::new(object, Arc::new(Unlimited), state, false)))
    }

    /// Sets the end of a file that has a store: its last page, and the pages after the end, are
    /// read from there again when they are used.
    async fn resize_stored(&self, size: u64) {
        // Pages that cannot be written stay, and so does their error.
        let _ = self.write_back(size, u64::MAX, true).await;
        let size = size.next_multiple_of(PAGE);
        // Without a part of a page to clear, this cannot fail.
        let _ = self.object.set_size(size).await;
        self.state.lock().size = size;
    }

    /// A file's memory as an [`ObjectMemory`]. `ENODEV` if programs cannot map it.
    pub(super) fn of(memory: Arc<dyn FileMemory>) -> Result<Arc<ObjectMemory<M>>> {
        let memory: Arc<dyn Any + Send + Sync> = memory;
        memory.downcast().map_err(|_| Error::ENODEV)
    }

    /// The memory object that is mapped to show the file.
    pub fn object(&self) -> &Arc<VmObject<M>> {
        &self.object
    }

    /// How many bytes the object can have pages for at this moment.
    pub(super) fn size(&self) -> u64 {
        self.state.lock().size
    }

    /// Writes bytes within one page of the file.
    pub(super) async fn store(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let end = at + bytes.len() as u64;
        self.charge(at / PAGE)?;
        self.grow(end).await?;
        let written = self.object.write(at, bytes).await.map_err(object_error)?;
        if written == bytes.len() { Ok(()) } else { Err(Error::EIO) }
    }

    /// Makes the file longer by a range within one page, which `write` writes to the page's frame.
    /// `None`: that is not possible without waiting, or the file is not one of a [`Store`]. Initial
    /// contents may go on after the end of the file.
    pub(super) fn extend(&self, range: Range<u64>, write: impl FnOnce(Frame)) -> Option<()> {
        if !self.stored {
            return None;
        }
        let _alone = self.resize.try_lock()?;
        self.object.try_extend(range.start, range.end - range.start, write)?;
        self.state.lock().size = range.end;
        Some(())
    }

    /// Allows the memory object to have pages up to `size`.
    pub(super) async fn grow(&self, size: u64) -> Result<()> {
        if self.size() >= size {
            return Ok(());
        }
        let _alone = self.resize.lock().await;
        if self.size() < size {
            self.object.set_size(size).await.map_err(object_error)?;
            let mut state = self.state.lock();
            state.size = size;
        }
        Ok(())
    }

    /// Makes the bytes of a range zeros. However long the range is, only pages that may have other
    /// contents are looked at.
    async fn clear(&self, start: u64, end: u64) -> Result<()> {
        let zeros = [0; PAGE as usize];
        let mut turns = Turns::every(TURN);
        let mut at = start;
        while at < end
            && let Some(page) = self.next_page(at / PAGE).filter(|page| page * PAGE < end)
        {
            at = at.max(page * PAGE);
            let count = ((end - at) as usize).min((PAGE - at % PAGE) as usize);
            self.object.write(at, &zeros[..count]).await.map_err(object_error)?;
            at += count as u64;
            turns.step().await;
        }
        Ok(())
    }

    /// The first page from `page` on that may not be zeros: one with initial contents, or one that
    /// was written by a call or through a mapping.
    pub(super) fn next_page(&self, page: u64) -> Option<u64> {
        let initial = self.state.lock().initial.div_ceil(PAGE);
        if page < initial { Some(page) } else { self.object.next_page(page) }
    }

    pub(super) fn charge(&self, page: u64) -> Result<()> {
        let mut state = self.state.lock();
        let is_new = page >= state.initial.div_ceil(PAGE) && !state.written.contains(&page);
        if is_new {
            if !self.quota.charge(1) {
                return Err(Error::ENOSPC);
            }
            state.written.insert(page);
        }
        Ok(())
    }
}

impl<M: Machine> Drop for ObjectMemory<M> {
    fn drop(&mut self) {
        self.quota.release(self.state.get_mut().written.len() as u64);
    }
}

pub(super) fn object_error(error: KernError) -> Error {
    match error {
        KernError::ResourceShortage => Error::ENOMEM,
        _ => Error::EIO,
    }
}

impl<M: Machine> FileMemory for ObjectMemory<M> {
    fn read<'a>(
        &'a self,
        offset: u64,
        length: usize,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        match self.read_pages(offset, length, to) {
            Some(done) => MaybeReady::ready(done),
            None => MaybeReady::pending(self.read_through_buffer(offset, length, to)),
        }
    }

    fn write<'a>(
        &'a self,
        offset: u64,
        length: usize,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        match self.write_pages(offset, length, from) {
            Some(done) => MaybeReady::ready(done),
            None => MaybeReady::pending(self.write_through_buffer(offset, length, from)),
        }
    }

    fn truncate(&self, size: u64) -> MaybeReady<'_, ()> {
        if self.stored {
            return MaybeReady::pending(async move {
                let _alone = self.resize.lock().await;
                self.resize_stored(size).await
            });
        }
        MaybeReady::local(async move {
            let _alone = self.resize.lock().await;
            // If the page at the new end cannot be read in to clear its end, it keeps these bytes.
            // The pages after it are freed anyway.
            let _ = self.object.set_size(size).await;
            let mut state = self.state.lock();
            state.size = size;
            state.initial = state.initial.min(size);
            let gone = state.written.split_off(&size.div_ceil(PAGE));
            drop(state);
            self.quota.release(gone.len() as u64);
        })
    }

    fn allocate(&self, offset: u64, length: u64, punch: bool) -> MaybeReady<'_, Result<()>> {
        let allocating = async move {
            let end = offset.saturating_add(length);
            if !punch {
                let mut turns = Turns::every(TURN);
                for page in offset / PAGE..end.div_ceil(PAGE) {
                    self.charge(page)?;
                    turns.step().await;
                }
                return self.grow(end).await;
            }
            let size = self.size();
            self.clear(offset, end.min(size)).await
        };
        if self.stored { MaybeReady::pending(allocating) } else { MaybeReady::local(allocating) }
    }

    fn seek(&self, offset: u64, size: u64, hole: bool) -> Option<u64> {
        let state = self.state.lock();
        let is_data = |page: u64| page < state.initial.div_ceil(PAGE) || state.written.contains(&page);
        let mut page = offset / PAGE;
        while page * PAGE < size {
            if is_data(page) != hole {
                return Some((page * PAGE).max(offset));
            }
            page = match hole || page < state.initial / PAGE {
                true => page + 1,
                false => *state.written.range(page..).next()?,
            };
        }
        None
    }

    fn take_written(&self) -> Option<Duration> {
        let first = self.object.take_mapped_writes()?;
        Some(Duration::from_micros(self.object.vm().machine().now().saturating_sub(first)))
    }

    fn write_back(&self, offset: u64, end: u64, forget: bool) -> MaybeReady<'_, Result<()>> {
        if !self.stored || !self.object.has_resident_pages() {
            return MaybeReady::ready(Ok(()));
        }
        MaybeReady::pending(async move {
            let request = LockRequest { returned: ReturnPages::Dirty, flush: forget, prohibited: None };
            self.object.lock_request(offset, end, request).await.map_err(object_error)
        })
    }

    fn each_unwritten(&self, start: u64, with: &mut dyn FnMut(u64, bool)) {
        self.object.each_unwritten(start, with);
    }

    fn pages(&self) -> u64 {
        if self.stored {
            return self.object.resident_pages() as u64;
        }
        let state = self.state.lock();
        state.initial.div_ceil(PAGE) + state.written.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, UserBuffer};
    use alloc::vec::Vec;
    use mach::machine::simulated::Simulated;

    /// A quota without a limit.
    struct Endless;

    impl Quota for Endless {
        fn charge(&self, _: u64) -> bool {
            true
        }
        fn release(&self, _: u64) {}
    }

    #[test]
    fn seek_finds_no_hole_from_the_end_of_the_file_on() {
        let machine = Simulated::new(64);
        let vm = Vm::new(machine.clone()).unwrap();
        let contents: Vec<u8> = vec![7; PAGE as usize + 100];
        let length = contents.len();
        let initial = InitialContents { length, holder: Arc::new(contents), start: 0 };
        let file = ObjectProvider(vm).file_memory(Arc::new(Endless), Some(initial)).unwrap();
        machine.block_on(async {
            for offset in [PAGE + 100, PAGE + 200, 2 * PAGE, u64::MAX - 1] {
                assert_eq!(file.allocate(offset, 50, true).await, Ok(()), "from {offset}");
            }
            let object: Arc<ObjectMemory<Simulated>> = ObjectMemory::of(file.clone()).unwrap();
            let mut bytes = [0; 100];
            assert_eq!(object.object().read(PAGE, &mut bytes).await, Ok(100));
            assert_eq!(bytes, [7; 100], "it has what it had");
        });
    }

    #[test]
    fn a_read_of_a_hole_makes_no_pages() {
        let machine = Simulated::new(64);
        let vm = Vm::new(machine.clone()).unwrap();
        let file = ObjectProvider(vm).file_memory(Arc::new(Endless), None).unwrap();
        let object: Arc<ObjectMemory<Simulated>> = ObjectMemory::of(file.clone()).unwrap();
        machine.block_on(async {
            file.truncate(1000 * PAGE).await;
            file.write(3 * PAGE + 5, 1, &mut Bytes::of(b"x")).await.unwrap();
            let mut bytes = Bytes::empty(1000 * PAGE as usize);
            let mut offset = 0;
            while bytes.remaining() > 0 {
                offset += file.read(offset, bytes.remaining(), &mut bytes).await.unwrap() as u64;
            }
            let read = bytes.done();
            assert_eq!(read.iter().position(|&byte| byte != 0), Some(3 * PAGE as usize + 5));
            assert_eq!(read.iter().filter(|&&byte| byte != 0).count(), 1);
            assert_eq!(object.object().resident_pages(), 1);
        });
    }
}
