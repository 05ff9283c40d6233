//! The memory of a task, as messages need it.

use core::future::Future;

use crate::machine::{Machine, PAGE_SIZE};
use crate::vm::{MapCopy, Placement, VmMap};
use crate::{KernError, KernResult};

/// A task's memory: bytes, and pages that move as copy-on-write copies.
pub trait UserMemory<M: Machine>: Sync {
    /// Reads bytes.
    ///
    /// # Errors
    /// A part of the range cannot be read.
    fn copyin(&self, address: u64, buffer: &mut [u8]) -> impl Future<Output = KernResult> + Send;

    /// Writes bytes.
    ///
    /// # Errors
    /// A part of the range cannot be written; what comes before it has been.
    fn copyout(&self, address: u64, bytes: &[u8]) -> impl Future<Output = KernResult> + Send;

    /// A copy of pages as they are now. `start` and `size` are multiples of the page size.
    ///
    /// # Errors
    /// A part of the range cannot be read, or no memory.
    fn copy_pages(&self, start: u64, size: u64) -> impl Future<Output = KernResult<MapCopy<M>>> + Send;

    /// Puts a copy of pages where there is room: the address.
    ///
    /// # Errors
    /// No room, or no memory; the copy.
    fn insert_pages(
        &self,
        copy: MapCopy<M>,
    ) -> impl Future<Output = Result<u64, (KernError, MapCopy<M>)>> + Send;

    /// Fresh zeros where there is room: the address.
    ///
    /// # Errors
    /// No room, or no memory.
    fn allocate(&self, size: u64) -> impl Future<Output = KernResult<u64>> + Send;

    /// Takes away the pages of a range that was read.
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
        // If an entry cannot be cut for want of memory, the pages stay, which harms only the task
        // itself.
        let _ = VmMap::deallocate(self, start, size).await;
    }
}

/// The pages that a range of bytes touches: first address and size. `None`: it wraps.
pub(super) fn pages_around(address: u64, size: u64) -> Option<(u64, u64)> {
    let start = address & !(PAGE_SIZE - 1);
    let end = address.checked_add(size)?.checked_next_multiple_of(PAGE_SIZE)?;
    Some((start, end - start))
}
