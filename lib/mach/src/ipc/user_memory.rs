//! Access to a task's memory for sending and receiving messages.

use core::future::Future;

use crate::machine::{Machine, PAGE_SIZE};
use crate::vm::{MapCopy, Placement, VmMap};
use crate::{KernError, KernResult};

/// A task's memory: its bytes, and pages that move as copy-on-write copies. Each method may wait
/// for a pager.
pub trait UserMemory<M: Machine>: Sync {
    /// Reads `buffer.len()` bytes at `address`.
    ///
    /// # Errors
    /// A part of the range cannot be read.
    fn copyin(&self, address: u64, buffer: &mut [u8]) -> impl Future<Output = KernResult> + Send;

    /// Writes `bytes` at `address`.
    ///
    /// # Errors
    /// A part of the range cannot be written. Bytes before that part may have been written.
    fn copyout(&self, address: u64, bytes: &[u8]) -> impl Future<Output = KernResult> + Send;

    /// Copies pages with the content that they have now. `start` and `size` are multiples of the
    /// page size.
    ///
    /// # Errors
    /// A part of the range cannot be read, or there is no memory.
    fn copy_pages(&self, start: u64, size: u64) -> impl Future<Output = KernResult<MapCopy<M>>> + Send;

    /// Maps a copy of pages where the address space has room, and returns the address.
    ///
    /// # Errors
    /// The copy comes back: the address space has no room, or there is no memory.
    fn insert_pages(
        &self,
        copy: MapCopy<M>,
    ) -> impl Future<Output = Result<u64, (KernError, MapCopy<M>)>> + Send;

    /// Allocates `size` bytes of zeros where the address space has room, and returns the address.
    ///
    /// # Errors
    /// The address space has no room, or there is no memory.
    fn allocate(&self, size: u64) -> impl Future<Output = KernResult<u64>> + Send;

    /// Unmaps the pages of a range that was read before. There is no error: a task that is out of
    /// memory for it keeps the pages.
    fn deallocate(&self, start: u64, size: u64) -> impl Future<Output = ()> + Send;
}

impl<M: Machine> UserMemory<M> for VmMap<M> {
    async fn copyin(&self, address: u64, buffer: &mut [u8]) -> KernResult {
        VmMap::copyin(self, address, buffer).await.map_err(|fault| fault.error)
    }

    async fn copyout(&self, address: u64, bytes: &[u8]) -> KernResult {
        VmMap::copyout(self, address, bytes).await.map_err(|fault| fault.error)
    }

    async fn copy_pages(&self, start: u64, size: u64) -> KernResult<MapCopy<M>> {
        Ok(self.read(start, size).await?.into_fresh())
    }

    async fn insert_pages(&self, copy: MapCopy<M>) -> Result<u64, (KernError, MapCopy<M>)> {
        self.insert(copy, Placement::Above(0)).await
    }

    async fn allocate(&self, size: u64) -> KernResult<u64> {
        VmMap::allocate(self, Placement::Above(0), size).await
    }

    async fn deallocate(&self, start: u64, size: u64) {
        // If there is no memory to split an entry of the map, the task keeps the pages, which harms
        // no other task.
        let _ = VmMap::deallocate(self, start, size).await;
    }
}

/// The pages that a range of bytes touches: the first address, and the size in bytes. `None`: the
/// range extends past the end of the 64-bit addresses.
pub(crate) fn pages_around(address: u64, size: u64) -> Option<(u64, u64)> {
    let start = address & !(PAGE_SIZE - 1);
    let end = address.checked_add(size)?.checked_next_multiple_of(PAGE_SIZE)?;
    Some((start, end - start))
}
