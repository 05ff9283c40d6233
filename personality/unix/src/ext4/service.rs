//! The disk of a file system, as its file server uses it: through the page cache, so that all nodes
//! of the disk show the same, and what was read once need not be read again.

use crate::disk::Device;
use crate::sync::SpinLock;
use crate::{Bytes, Error, Result, UserBuffer};
use alloc::vec::Vec;
use core::ops::Range;

/// What a file server asks of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read into the buffer.
    Read,
    /// Write the buffer.
    Write,
    /// Bring everything that was written to stable storage.
    Flush,
}

/// The disk of one file system.
pub struct DiskService {
    device: Device,
    /// The ranges of the disk that were written since the last flush.
    written: SpinLock<Vec<Range<u64>>>,
}

/// How many ranges are remembered, in order and merged. With more, they become one.
const RANGES: usize = 512;

impl DiskService {
    /// The service for this device.
    pub fn new(device: Device) -> DiskService {
        DiskService { device, written: SpinLock::new(Vec::new()) }
    }

    /// The service for this device after another one: the first flush brings to the disk what that
    /// one has written, too.
    pub fn again(device: Device) -> DiskService {
        let written = SpinLock::new(alloc::vec![device.range()]);
        DiskService { device, written }
    }

    /// The size of the device in bytes.
    pub fn size(&self) -> u64 {
        self.device.size()
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.device.disk.about.read_only
    }

    /// Carries out a request about the bytes of the device from `offset` on.
    ///
    /// # Errors
    /// `EIO`: the disk has an error, or the range is not the device's. `EROFS`, `ENOMEM`.
    pub async fn carry_out(&self, operation: Operation, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if operation == Operation::Flush {
            return self.flush().await;
        }
        let end = offset.checked_add(buffer.len() as u64).filter(|&end| end <= self.size());
        let end = end.ok_or(Error::EIO)?;
        let first = self.device.range().start;
        let memory = self.device.disk.data.memory();
        let mut at = first + offset;
        if operation == Operation::Write {
            if self.is_read_only() {
                return Err(Error::EROFS);
            }
            self.device.disk.touch();
            self.remember(first + offset..first + end);
            let mut bytes = Bytes::of(buffer);
            while bytes.remaining() > 0 {
                let left = bytes.remaining();
                match memory.write(at, left, &mut bytes).await {
                    Ok(0) | Err(_) => return Err(Error::EIO),
                    Ok(count) => at += count as u64,
                }
            }
            return Ok(());
        }
        let mut bytes = Bytes::empty(buffer.len());
        while bytes.remaining() > 0 {
            let left = bytes.remaining();
            match memory.read(at, left, &mut bytes).await {
                Ok(0) | Err(_) => return Err(Error::EIO),
                Ok(count) => at += count as u64,
            }
        }
        buffer.copy_from_slice(bytes.done());
        Ok(())
    }

    fn remember(&self, range: Range<u64>) {
        let mut written = self.written.lock();
        match written.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => written.push(range),
        }
        // Blocks are written again and again.
        if written.len() > 2 * RANGES {
            written.sort_unstable_by_key(|range| range.start);
            written.dedup_by(|next, range| {
                let touches = next.start <= range.end;
                range.end = if touches { range.end.max(next.end) } else { range.end };
                touches
            });
            if let (true, Some(first), Some(last)) = (written.len() > RANGES, written.first(), written.last())
            {
                *written = alloc::vec![first.start..last.end];
            }
        }
    }

    async fn flush(&self) -> Result<()> {
        let data = &self.device.disk.data;
        let before = data.failures();
        let written = core::mem::take(&mut *self.written.lock());
        for range in written {
            data.write_back(range, false).await?;
        }
        data.flush().await?;
        if data.failures() == before { Ok(()) } else { Err(Error::EIO) }
    }
}
