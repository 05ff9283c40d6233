//! The server's access to a program's memory: copies, strings, words, and the buffers of transfers.

use super::{Memory, PAGE};
use crate::personality::Task;
use crate::{BoxFuture, CopyError, Error, Part, Result, UserBuffer};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use mach::machine::{Frame, Protection};
use mach::{KernError, Machine};

impl<M: Machine> Memory<M> {
    /// Copies from the program's memory to `buffer`. `EFAULT`.
    pub async fn copy_in(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        if self.try_copy_in(address, buffer) {
            return Ok(());
        }
        // Boxed, because nearly all copies end without waiting, and the futures of calls stay
        // small.
        Box::pin(self.copy_in_waiting(address, buffer)).await
    }

    /// Copies `bytes` to the program's memory. `EFAULT`.
    pub async fn copy_out(&self, address: u64, bytes: &[u8]) -> Result<()> {
        if self.try_copy_out(address, bytes) {
            return Ok(());
        }
        Box::pin(self.copy_out_waiting(address, bytes)).await
    }

    /// Does [`copy_in`](Self::copy_in) if nothing has to be waited for. False: a part may have been
    /// copied.
    #[inline(never)]
    fn try_copy_in(&self, address: u64, buffer: &mut [u8]) -> bool {
        self.map.try_copyin(address, buffer)
    }

    /// Does [`copy_out`](Self::copy_out) if nothing has to be waited for. False: a part may have
    /// been copied.
    #[inline(never)]
    fn try_copy_out(&self, address: u64, bytes: &[u8]) -> bool {
        self.map.try_copyout(address, bytes)
    }

    async fn copy_in_waiting(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        let mut done = 0;
        loop {
            match self.map.copyin(address.wrapping_add(done as u64), &mut buffer[done..]).await {
                Ok(()) => return Ok(()),
                Err(fault) => {
                    done += fault.copied;
                    self.after_fault(fault.error, address.wrapping_add(done as u64), Protection::READ)
                        .await?;
                }
            }
        }
    }

    async fn copy_out_waiting(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        loop {
            match self.map.copyout(address.wrapping_add(done as u64), &bytes[done..]).await {
                Ok(()) => return Ok(()),
                Err(fault) => {
                    done += fault.copied;
                    self.after_fault(fault.error, address.wrapping_add(done as u64), Protection::WRITE)
                        .await?;
                }
            }
        }
    }

    /// To be called when a copy failed with `error` at `address`: makes a stack grow there, or
    /// fails with `EFAULT`.
    async fn after_fault(&self, error: KernError, address: u64, access: Protection) -> Result<()> {
        match error {
            KernError::InvalidAddress => self.extend_stack(address, access).await.map_err(|_| Error::EFAULT),
            _ => Err(Error::EFAULT),
        }
    }

    /// Fills the program's memory with zeros. `EFAULT`.
    pub async fn clear(&self, address: u64, length: u64) -> Result<()> {
        let length = usize::try_from(length).map_err(|_| Error::EFAULT)?;
        self.map.clear(address, length).await.map_err(|_| Error::EFAULT)
    }

    /// Reads `N` bytes of the program's memory without blocking. `None` if they lie in two pages,
    /// or if [`read`](Self::read) would block or fail.
    #[inline]
    pub fn try_read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let (machine, offset) = (self.map.vm().machine(), (address % PAGE) as usize);
        if offset + N > PAGE as usize {
            return None;
        }
        let mut bytes = [0; N];
        let read = |frame| machine.read_frame(frame, offset, &mut bytes);
        self.map.try_with_frame(address, Protection::READ, read)?.ok()?;
        Some(bytes)
    }

    /// Writes the program's memory, if the bytes lie in one page and nothing has to be waited for.
    /// `None`: nothing was written, and [`copy_out`](Self::copy_out) knows why not.
    #[inline]
    pub fn try_write<const N: usize>(&self, address: u64, bytes: &[u8; N]) -> Option<()> {
        let (machine, offset) = (self.map.vm().machine(), (address % PAGE) as usize);
        if offset + N > PAGE as usize {
            return None;
        }
        let write = |frame| machine.write_frame(frame, offset, bytes);
        self.map.try_with_frame(address, Protection::WRITE, write)?.ok()
    }

    /// Reads `N` bytes of the program's memory. `EFAULT`.
    pub async fn read<const N: usize>(&self, address: u64) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.copy_in(address, &mut bytes).await?;
        Ok(bytes)
    }

    /// Reads `length` bytes of the program's memory; the caller has to limit the length. `EFAULT`,
    /// `ENOMEM`.
    pub async fn read_bytes(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| Error::ENOMEM)?;
        bytes.resize(length, 0);
        self.copy_in(address, &mut bytes).await?;
        Ok(bytes)
    }

    /// Reads a string that ends with a zero byte, which is not part of the result. `EFAULT`;
    /// `too_long` if the string with its zero byte is longer than `limit` bytes.
    pub async fn read_string(&self, address: u64, limit: usize, too_long: Error) -> Result<Vec<u8>> {
        let mut string = Vec::new();
        let mut piece = [0; 256];
        while string.len() < limit {
            let at = address.wrapping_add(string.len() as u64);
            // Read up to the end of the page: the next page may not be mapped.
            let to_page_end = (PAGE - at % PAGE) as usize;
            let length = piece.len().min(to_page_end).min(limit - string.len());
            self.copy_in(at, &mut piece[..length]).await?;
            let end = piece[..length].iter().position(|byte| *byte == 0);
            string.try_reserve(length).map_err(|_| Error::ENOMEM)?;
            string.extend_from_slice(&piece[..end.unwrap_or(length)]);
            if end.is_some() {
                return Ok(string);
            }
        }
        Err(too_long)
    }
}

/// The buffer of a transfer that consists of ranges of a program's memory.
pub struct UserRanges<M: Machine> {
    memory: Arc<Task<M>>,
    ranges: Ranges,
    /// The index of the range that is copied next, and how many of its bytes are copied already.
    index: usize,
    within: usize,
    transferred: usize,
    total: usize,
}

/// Address and length of each range: most buffers have one, which needs no allocation.
enum Ranges {
    One((u64, usize)),
    Many(Vec<(u64, usize)>),
}

impl core::ops::Deref for Ranges {
    type Target = [(u64, usize)];

    fn deref(&self) -> &[(u64, usize)] {
        match self {
            Ranges::One(range) => core::slice::from_ref(range),
            Ranges::Many(ranges) => ranges,
        }
    }
}

impl<M: Machine> UserRanges<M> {
    fn new(memory: &Arc<Task<M>>, ranges: Ranges) -> UserRanges<M> {
        let total = ranges.iter().map(|(_, length)| length).sum();
        UserRanges { memory: memory.clone(), ranges, index: 0, within: 0, transferred: 0, total }
    }

    /// Makes a buffer that is one range of the program's memory.
    pub fn one(memory: &Arc<Task<M>>, address: u64, length: usize) -> UserRanges<M> {
        UserRanges::new(memory, Ranges::One((address, length)))
    }

    /// A buffer over several ranges, whose lengths together do not overflow.
    pub fn many(memory: &Arc<Task<M>>, ranges: Vec<(u64, usize)>) -> UserRanges<M> {
        UserRanges::new(memory, Ranges::Many(ranges))
    }

    /// The address of the next byte, and how many bytes follow it in its range and page.
    fn here(&mut self) -> Option<(u64, usize)> {
        while let Some((address, length)) = self.ranges.get(self.index) {
            if self.within < *length {
                let at = address.wrapping_add(self.within as u64);
                return Some((at, (length - self.within).min((PAGE - at % PAGE) as usize)));
            }
            self.index += 1;
            self.within = 0;
        }
        None
    }

    /// The addresses of the next 4096 bytes, one in each page; at least one if the buffer is not at
    /// its end.
    fn next_pages(&mut self) -> Vec<u64> {
        let mut pages: Vec<u64> = Vec::new();
        let mut rest = PAGE as usize;
        let Some((first, _)) = self.here() else { return pages };
        let (mut index, mut at, mut length) = (self.index, first, self.ranges[self.index].1 - self.within);
        while rest > 0 {
            while length > 0 && rest > 0 {
                let step = length.min((PAGE - at % PAGE) as usize).min(rest);
                if pages.last().is_none_or(|last| last / PAGE != at / PAGE) {
                    pages.push(at);
                }
                at = at.wrapping_add(step as u64);
                length -= step;
                rest -= step;
            }
            index += 1;
            let Some(range) = self.ranges.get(index) else { break };
            (at, length) = *range;
        }
        pages
    }

    fn advance(&mut self, count: usize) {
        self.within += count;
        self.transferred += count;
    }

    /// Calls `work` with the part of the next `length` bytes that lies in one page: machine, frame,
    /// offset in the frame, bytes. Advances by as many bytes as `work` says that it has used.
    #[inline]
    fn next_part(
        &mut self,
        length: usize,
        access: Protection,
        mut work: impl FnMut(&M, Frame, usize, usize) -> usize,
    ) -> Result<usize, CopyError> {
        let Some((address, here)) = self.here() else { return Ok(0) };
        let (count, offset) = (here.min(length), (address % PAGE) as usize);
        if count == 0 {
            return Ok(0);
        }
        let map = &self.memory.map;
        let machine = map.vm().machine();
        match map.try_with_frame(address, access, |frame| work(machine, frame, offset, count)) {
            Some(Ok(used)) => {
                self.advance(used);
                Ok(used)
            }
            None => Err(CopyError::NotResident),
            Some(Err(KernError::InvalidAddress)) if self.memory.may_grow(address) => {
                Err(CopyError::NotResident)
            }
            Some(Err(_)) => Err(CopyError::Fault),
        }
    }

    /// Copies `length` bytes with `copy`, page by page: machine, frame, offset in the frame, and
    /// which of the bytes are copied there.
    fn copy(
        &mut self,
        length: usize,
        access: Protection,
        mut copy: impl FnMut(&M, Frame, usize, Range<usize>),
    ) -> Result<usize, CopyError> {
        let mut done = 0;
        while done < length {
            let part = self.next_part(length - done, access, |machine, frame, offset, count| {
                copy(machine, frame, offset, done..done + count);
                count
            });
            match part {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

impl<M: Machine> UserBuffer for UserRanges<M> {
    fn remaining(&self) -> usize {
        self.total - self.transferred
    }

    fn transferred(&self) -> usize {
        self.transferred
    }

    fn copy_out(&mut self, bytes: &[u8]) -> Result<usize, CopyError> {
        self.copy(bytes.len(), Protection::WRITE, |machine, frame, offset, part| {
            machine.write_frame(frame, offset, &bytes[part]);
        })
    }

    fn copy_in(&mut self, bytes: &mut [u8]) -> Result<usize, CopyError> {
        self.copy(bytes.len(), Protection::READ, |machine, frame, offset, part| {
            machine.read_frame(frame, offset, &mut bytes[part]);
        })
    }

    fn with_part(
        &mut self,
        length: usize,
        write: bool,
        work: &mut dyn FnMut(Part<'_>) -> usize,
    ) -> Result<usize, CopyError> {
        let access = if write { Protection::WRITE } else { Protection::READ };
        self.next_part(length, access, |_, frame, offset, length| work(Part::Frame { frame, offset, length }))
    }

    fn retreat(&mut self, count: usize) {
        self.transferred -= count;
        let mut back = count;
        while back > self.within {
            back -= self.within;
            self.index -= 1;
            self.within = self.ranges[self.index].1;
        }
        self.within -= back;
    }

    fn skip(&mut self, count: usize) {
        let mut rest = count;
        while let Some((_, here)) = self.here()
            && rest > 0
        {
            let step = here.min(rest);
            self.advance(step);
            rest -= step;
        }
    }

    fn resolve(&mut self, write: bool) -> BoxFuture<'_, Result<()>> {
        let pages = self.next_pages();
        let memory = self.memory.clone();
        Box::pin(async move {
            let access = if write { Protection::WRITE } else { Protection::READ };
            for (index, page) in pages.into_iter().enumerate() {
                let done = memory.resolve(page, access).await;
                // If a later page cannot be made resident, the copy that comes to that page fails.
                if index == 0 && done.is_err() {
                    return Err(Error::EFAULT);
                }
            }
            Ok(())
        })
    }
}
