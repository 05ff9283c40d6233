//! The data of a regular file, as its pages are filled from the disk and written to it.

use super::Ext4;
use crate::v9fs::Fid;
use crate::vfs::Store;
use crate::{BoxFuture, Error, Result};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU64, Ordering};
use ninep::Call;

/// The size of a file, and the way to its data.
pub(super) struct Data {
    file_system: Weak<Ext4>,
    fid: Arc<Fid>,
    /// The size in bytes, which the file server may not know yet.
    size: AtomicU64,
}

impl Data {
    pub(super) fn new(file_system: &Arc<Ext4>, fid: Arc<Fid>, size: u64) -> Data {
        Data { file_system: Arc::downgrade(file_system), fid, size: AtomicU64::new(size) }
    }

    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// The file has at least `size` bytes.
    pub(super) fn grow(&self, size: u64) {
        self.size.fetch_max(size, Ordering::AcqRel);
    }

    pub(super) fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    async fn read_all(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        let session = &file_system.session;
        // What is after the end is not the file's, whatever the disk has there.
        let rest = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = bytes.len().min(rest);
        let mut done = 0;
        while done < length {
            let count = (length - done).min(session.data_size());
            let offset = offset + done as u64;
            let reply =
                session.call(&Call::Read { fid: self.fid.number, offset, count: count as u32 }).await?;
            let data = reply.read(|body| body.data(count))?;
            if data.is_empty() {
                break;
            }
            bytes[done..done + data.len()].copy_from_slice(data);
            done += data.len();
        }
        Ok(done)
    }

    async fn write_all(&self, mut offset: u64, bytes: &[u8]) -> Result<()> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        // A page may extend beyond the end of the file.
        let rest = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = &bytes[..bytes.len().min(rest)];
        file_system.changed();
        while !bytes.is_empty() {
            let data = &bytes[..bytes.len().min(file_system.session.data_size())];
            let call = Call::Write { fid: self.fid.number, offset, data };
            let reply = file_system.session.call(&call).await?;
            let count = reply.read(|body| body.count(data.len()))?;
            if count == 0 {
                return Err(Error::EIO);
            }
            offset += count as u64;
            bytes = &bytes[count..];
        }
        Ok(())
    }
}

impl Store for Data {
    fn read<'a>(&'a self, offset: u64, bytes: &'a mut [u8]) -> BoxFuture<'a, Result<usize>> {
        Box::pin(self.read_all(offset, bytes))
    }

    fn write<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.write_all(offset, bytes))
    }
}
