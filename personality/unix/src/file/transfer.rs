//! read(2), write(2), their positioned forms, lseek(2), sendfile(2) and copy_file_range(2).

use super::{FileObject, Io, OpenFile, Positions};
use crate::poll::{Readiness, until_ready_or_deadline};
use crate::sync::{give_turn, poll_once};
use crate::vfs::{
    Access, Caller, Changes, FileType, MountFlags, OFFSET_MAXIMUM, OpenFlags, VnodeRef, WriteAt,
};
use crate::{AttemptError, Bytes, Error, Result, UserBuffer};
use alloc::sync::Arc;

/// What an offset is relative to (lseek(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The offset is relative to the start of the file (SEEK_SET).
    Start,
    /// The offset is relative to the current position (SEEK_CUR).
    Current,
    /// The offset is relative to the end of the file (SEEK_END).
    End,
    /// The next data at or after the offset is sought (SEEK_DATA).
    Data,
    /// The next hole at or after the offset is sought (SEEK_HOLE).
    Hole,
}

/// After this many bytes a long transfer lets other tasks run.
const TURN: usize = 256 * 1024;
/// Bytes that sendfile and copy_file_range move at a time.
const CHUNK: usize = 64 * 1024;
/// After this many seconds a read updates the access time even under `relatime`.
const DAY: i64 = 86400;

impl OpenFile {
    /// Reads from the file offset on, and advances it by what was read (read(2)).
    pub async fn read(&self, caller: &Caller<'_>, to: &mut dyn UserBuffer) -> Result<usize> {
        self.check(Access::READ)?;
        match &self.object {
            Some(object) if object.positions() == Positions::Stream => {
                self.read_object(&**object, caller, 0, to).await
            }
            object => {
                let mut position = self.position.lock().await;
                match object {
                    Some(object) => {
                        let count = self.read_object(&**object, caller, position.offset, to).await?;
                        position.offset += count as u64;
                        Ok(count)
                    }
                    None => self.read_data(caller, &mut position.offset, to).await,
                }
            }
        }
    }

    /// Does [`read`](Self::read) without waiting. `None`: what was read is in the buffer, and a
    /// read into the rest of it may wait.
    pub fn read_now(&self, caller: &Caller<'_>, to: &mut dyn UserBuffer) -> Option<Result<usize>> {
        let Some(object) = self.object.as_ref().filter(|object| object.positions() == Positions::Stream)
        else {
            return poll_once(self.read(caller, to));
        };
        if let Err(error) = self.check(Access::READ) {
            return Some(Err(error));
        }
        let (io, start) = (self.io(caller, 0), to.transferred());
        match object.try_read(&io, to) {
            Ok(count) if count > 0 && to.remaining() > 0 && object.reads_all() => None,
            Ok(_) => Some(Ok(to.transferred() - start)),
            not_done => self.not_now(not_done),
        }
    }

    /// Does [`write`](Self::write) without waiting. `None`: what was written was taken from the
    /// buffer, and a write of the rest may wait.
    pub fn write_now(&self, caller: &Caller<'_>, from: &mut dyn UserBuffer) -> Option<Result<usize>> {
        let Some(object) = self.object.as_ref().filter(|object| object.positions() == Positions::Stream)
        else {
            return poll_once(self.write(caller, from));
        };
        if let Err(error) = self.check(Access::WRITE) {
            return Some(Err(error));
        }
        let (io, start) = (self.io(caller, 0), from.transferred());
        match object.try_write(&io, from) {
            Ok(_) if from.remaining() > 0 && object.writes_all() => None,
            Ok(_) => Some(Ok(from.transferred() - start)),
            not_done => self.not_now(not_done),
        }
    }

    /// The result of an attempt on an object that was not done.
    fn not_now(&self, attempt: Result<usize, AttemptError>) -> Option<Result<usize>> {
        match attempt {
            Err(AttemptError::Failed(error)) => Some(Err(error)),
            Err(AttemptError::WouldBlock) if self.flags().contains(OpenFlags::NONBLOCK) => {
                Some(Err(Error::EAGAIN))
            }
            _ => None,
        }
    }

    /// Reads from `offset` on; the file offset stays (pread(2)). `ESPIPE` for streams.
    pub async fn read_at(&self, caller: &Caller<'_>, offset: u64, to: &mut dyn UserBuffer) -> Result<usize> {
        let mut offset = self.check_offset(offset)?;
        self.check(Access::READ)?;
        match &self.object {
            Some(object) => self.read_object(&**object, caller, offset, to).await,
            None => self.read_data(caller, &mut offset, to).await,
        }
    }

    /// Writes at the file offset, or at the end if the file is open with O_APPEND (write(2)).
    pub async fn write(&self, caller: &Caller<'_>, from: &mut dyn UserBuffer) -> Result<usize> {
        self.check(Access::WRITE)?;
        match &self.object {
            Some(object) if object.positions() == Positions::Stream => {
                self.write_object(&**object, caller, 0, from).await
            }
            object => {
                let mut position = self.position.lock().await;
                match object {
                    Some(object) => {
                        let count = self.write_object(&**object, caller, position.offset, from).await?;
                        position.offset += count as u64;
                        Ok(count)
                    }
                    None => self.write_data(caller, &mut position.offset, from).await,
                }
            }
        }
    }

    /// Writes at `offset`, or at the end if the file is open with O_APPEND; the file offset stays
    /// (pwrite(2)).
    pub async fn write_at(
        &self,
        caller: &Caller<'_>,
        offset: u64,
        from: &mut dyn UserBuffer,
    ) -> Result<usize> {
        let mut offset = self.check_offset(offset)?;
        self.check(Access::WRITE)?;
        match &self.object {
            Some(object) => self.write_object(&**object, caller, offset, from).await,
            None => self.write_data(caller, &mut offset, from).await,
        }
    }

    fn check_offset(&self, offset: u64) -> Result<u64> {
        if offset > OFFSET_MAXIMUM {
            return Err(Error::EINVAL);
        }
        match &self.object {
            Some(object) if object.positions() == Positions::Stream => Err(Error::ESPIPE),
            _ => Ok(offset),
        }
    }

    /// Reads a vnode's data until the buffer is full or the file ends. `offset` advances with every
    /// part of the transfer, so that a dropped future has advanced it by exactly what is in the
    /// buffer.
    async fn read_data(
        &self,
        caller: &Caller<'_>,
        offset: &mut u64,
        to: &mut dyn UserBuffer,
    ) -> Result<usize> {
        let vnode = self.vnode().ok_or(Error::EINVAL)?;
        if vnode.file_type() == FileType::Directory {
            return Err(Error::EISDIR);
        }
        let start = to.transferred();
        let mut turn = start;
        let mut event = EventAtEnd { file: self, events: Changes::ACCESS, happened: false };
        while to.remaining() > 0 {
            let stopped = match vnode.read_for(caller.process, *offset, to).await {
                Ok(0) => break,
                Ok(count) => {
                    *offset += count as u64;
                    event.happened = true;
                    None
                }
                Err(AttemptError::WouldBlock) => Some(Error::EIO),
                Err(AttemptError::NotResident) => to.resolve(true).await.err(),
                Err(AttemptError::Failed(error)) => Some(error),
            };
            if let Some(error) = stopped {
                partial(to.transferred() - start, error)?;
                break;
            }
            if to.transferred() - turn >= TURN {
                turn = to.transferred();
                give_turn().await;
            }
        }
        drop(event);
        self.touch();
        Ok(to.transferred() - start)
    }

    async fn write_data(
        &self,
        caller: &Caller<'_>,
        offset: &mut u64,
        from: &mut dyn UserBuffer,
    ) -> Result<usize> {
        let vnode = self.vnode().ok_or(Error::EINVAL)?;
        if from.remaining() == 0 {
            return Ok(0);
        }
        let flags = self.flags();
        caller.drop_privileges(vnode).await?;
        let limit = caller.file_size_limit.min(OFFSET_MAXIMUM);
        let start = from.transferred();
        let mut turn = start;
        let mut event = EventAtEnd { file: self, events: Changes::MODIFY, happened: false };
        while from.remaining() > 0 {
            let at = if flags.contains(OpenFlags::APPEND) { WriteAt::End } else { WriteAt::Offset(*offset) };
            let stopped = match vnode.write(at, limit, from).await {
                Ok((0, _)) => break,
                Ok((_, end)) => {
                    *offset = end;
                    event.happened = true;
                    None
                }
                Err(AttemptError::WouldBlock) => Some(Error::EIO),
                Err(AttemptError::NotResident) => from.resolve(false).await.err(),
                Err(AttemptError::Failed(error)) => Some(error),
            };
            if let Some(error) = stopped {
                partial(from.transferred() - start, error)?;
                break;
            }
            if from.transferred() - turn >= TURN {
                turn = from.transferred();
                give_turn().await;
            }
        }
        drop(event);
        if flags.intersects(OpenFlags::SYNCHRONOUS | OpenFlags::DATA_SYNCHRONOUS) {
            vnode.synchronize().await?;
        }
        Ok(from.transferred() - start)
    }

    /// Reads once from the file's object, waiting for it unless the file is open with O_NONBLOCK.
    async fn read_object(
        &self,
        object: &dyn FileObject,
        caller: &Caller<'_>,
        position: u64,
        to: &mut dyn UserBuffer,
    ) -> Result<usize> {
        let mut io = self.io(caller, position);
        let start = to.transferred();
        loop {
            let attempt = object.try_read(&io, to);
            match self.wait(object, caller, &mut io, false, attempt, |io| object.try_read(io, to)).await {
                Ok(count) if count > 0 && to.remaining() > 0 && object.reads_all() => give_turn().await,
                Ok(_) => return Ok(to.transferred() - start),
                Err(AttemptError::Failed(error)) => return partial(to.transferred() - start, error),
                Err(AttemptError::WouldBlock) => return Err(Error::EAGAIN),
                Err(AttemptError::NotResident) => to.resolve(true).await?,
            }
        }
    }

    /// Writes once to the file's object, waiting for it unless the file is open with O_NONBLOCK.
    async fn write_some(
        &self,
        object: &dyn FileObject,
        caller: &Caller<'_>,
        position: u64,
        from: &mut dyn UserBuffer,
    ) -> Result<usize> {
        let mut io = self.io(caller, position);
        loop {
            let attempt = object.try_write(&io, from);
            match self.wait(object, caller, &mut io, true, attempt, |io| object.try_write(io, from)).await {
                Ok(count) => return Ok(count),
                Err(AttemptError::Failed(error)) => return Err(error),
                Err(AttemptError::WouldBlock) => return Err(Error::EAGAIN),
                Err(AttemptError::NotResident) => from.resolve(false).await?,
            }
        }
    }

    async fn write_object(
        &self,
        object: &dyn FileObject,
        caller: &Caller<'_>,
        position: u64,
        from: &mut dyn UserBuffer,
    ) -> Result<usize> {
        let start = from.transferred();
        loop {
            match self.write_some(object, caller, position, from).await {
                Ok(_) => {}
                Err(error) => return partial(from.transferred() - start, error),
            }
            if from.remaining() == 0 || !object.writes_all() {
                return Ok(from.transferred() - start);
            }
            give_turn().await;
        }
    }

    fn io<'a>(&self, caller: &'a Caller<'a>, position: u64) -> Io<'a> {
        let started = caller.vfs.environment.monotonic();
        Io { caller, position, flags: self.flags(), started, expired: false }
    }

    /// Goes on with an operation whose first attempt had `result`: waits for the object if that
    /// would block and waiting is allowed.
    async fn wait(
        &self,
        object: &dyn FileObject,
        caller: &Caller<'_>,
        io: &mut Io<'_>,
        write: bool,
        first: Result<usize, AttemptError>,
        mut attempt: impl FnMut(&Io<'_>) -> Result<usize, AttemptError> + Send,
    ) -> Result<usize, AttemptError> {
        let (Err(AttemptError::WouldBlock), Some(queue)) = (first, object.queue()) else {
            return first;
        };
        if io.flags.contains(OpenFlags::NONBLOCK) {
            return first;
        }
        let interest = if write { Readiness::WRITE } else { Readiness::READ };
        let left: &(dyn Fn() -> bool + Sync) = &|| object.left_for_another(write) == Some(true);
        let exclusive = object.left_for_another(write).is_some();
        until_ready_or_deadline(queue, interest, &*caller.vfs.environment, |expired| {
            io.expired = expired;
            attempt(io).map_err(|not_done| (not_done, object.deadline(io, write)))
        })
        .exclusive(exclusive.then_some(left))
        .await
    }

    /// Sets the file offset, and returns the new one (lseek(2)).
    pub async fn seek(&self, offset: i64, whence: Whence) -> Result<u64> {
        if self.flags().contains(OpenFlags::PATH) {
            return Err(Error::EBADF);
        }
        let size = match &self.object {
            None => self.vnode().map_or(0, |vnode| vnode.size()),
            Some(object) => match object.positions() {
                Positions::Stream => return Err(Error::ESPIPE),
                Positions::Ignored => return Ok(0),
                Positions::Upto(size) => size,
            },
        };
        let mut position = self.position.lock().await;
        let base = match whence {
            Whence::Start => 0,
            Whence::Current => position.offset,
            Whence::End => size,
            Whence::Data | Whence::Hole => {
                let from = u64::try_from(offset).map_err(|_| Error::ENXIO)?;
                let hole = whence == Whence::Hole;
                position.offset = match (self.vnode(), &self.object) {
                    (Some(vnode), None) => vnode.seek_data(from, hole).await?,
                    _ if from >= size => return Err(Error::ENXIO),
                    _ => from,
                };
                return Ok(position.offset);
            }
        };
        let target = base.checked_add_signed(offset).ok_or(Error::EINVAL)?;
        if target > OFFSET_MAXIMUM {
            return Err(if offset < 0 { Error::EINVAL } else { Error::EOVERFLOW });
        }
        position.offset = target;
        Ok(target)
    }

    /// Updates the access time after a read, if the mount's rule says so (relatime by default).
    pub(super) fn touch(&self) {
        let Some(location) = self.location() else { return };
        let mount = location.mount.flags();
        if self.flags().contains(OpenFlags::NO_ACCESS_TIME)
            || mount.intersects(MountFlags::NO_ACCESS_TIME | MountFlags::READ_ONLY)
        {
            return;
        }
        if location.vnode.file_type() == FileType::Directory
            && mount.contains(MountFlags::NO_DIRECTORY_ACCESS_TIME)
        {
            return;
        }
        location.vnode.touch(if mount.contains(MountFlags::STRICT_ACCESS_TIME) { 0 } else { DAY });
    }
}

/// Reports a transfer to the observers of a file when it ends, even if a signal has ended it.
struct EventAtEnd<'a> {
    file: &'a OpenFile,
    events: Changes,
    /// Whether the transfer has moved bytes.
    happened: bool,
}

impl Drop for EventAtEnd<'_> {
    fn drop(&mut self) {
        if self.happened {
            self.file.happened(self.events);
        }
    }
}

/// The result of a transfer that stopped with an error: the count of bytes if it is not 0, else the
/// error.
fn partial(count: usize, error: Error) -> Result<usize> {
    if count > 0 { Ok(count) } else { Err(error) }
}

/// Moves up to `count` bytes from a file's data to another file (sendfile(2), copy_file_range(2)).
/// An offset of `None` is the file's own offset; a given one advances by what was written.
/// `progress` has the count of bytes that were moved even if the future is dropped.
pub async fn transfer(
    caller: &Caller<'_>,
    source: &Arc<OpenFile>,
    source_offset: Option<&mut u64>,
    target: &Arc<OpenFile>,
    target_offset: Option<&mut u64>,
    count: usize,
    progress: &mut usize,
) -> Result<()> {
    source.check(Access::READ)?;
    target.check(Access::WRITE)?;
    let (Some(vnode), None) = (source.vnode(), &source.object) else {
        return Err(Error::EINVAL);
    };
    if vnode.file_type() != FileType::Regular {
        return Err(if vnode.file_type() == FileType::Directory { Error::EISDIR } else { Error::EINVAL });
    }
    if target.flags().contains(OpenFlags::APPEND) {
        return Err(Error::EINVAL);
    }
    let same_position = Arc::ptr_eq(source, target) && source_offset.is_none() && target_offset.is_none();
    if same_position {
        return Err(Error::EINVAL);
    }
    match (source_offset, target_offset) {
        (Some(from), Some(to)) => transfer_at(caller, vnode, from, target, Some(to), count, progress).await,
        (Some(from), None) if target.object.is_some() => {
            transfer_at(caller, vnode, from, target, None, count, progress).await
        }
        (Some(from), None) => {
            let mut to = target.position.lock().await;
            transfer_at(caller, vnode, from, target, Some(&mut to.offset), count, progress).await
        }
        (None, Some(to)) => {
            let mut from = source.position.lock().await;
            transfer_at(caller, vnode, &mut from.offset, target, Some(to), count, progress).await
        }
        (None, None) if target.object.is_some() => {
            let mut from = source.position.lock().await;
            transfer_at(caller, vnode, &mut from.offset, target, None, count, progress).await
        }
        (None, None) => {
            // The files' offsets are locked in the order of their addresses: otherwise two
            // transfers in opposite directions could deadlock.
            let source_first = Arc::as_ptr(source) < Arc::as_ptr(target);
            let (first, second) = if source_first { (source, target) } else { (target, source) };
            let (mut first, mut second) = (first.position.lock().await, second.position.lock().await);
            let (from, to) = if source_first {
                (&mut first.offset, &mut second.offset)
            } else {
                (&mut second.offset, &mut first.offset)
            };
            transfer_at(caller, vnode, from, target, Some(to), count, progress).await
        }
    }
}

/// Moves one [`CHUNK`] after the other. After each await everything that was written is in
/// `progress` and the offsets.
async fn transfer_at(
    caller: &Caller<'_>,
    source: &VnodeRef,
    from: &mut u64,
    target: &Arc<OpenFile>,
    mut to: Option<&mut u64>,
    count: usize,
    progress: &mut usize,
) -> Result<()> {
    while *progress < count {
        let mut piece = Bytes::empty(CHUNK.min(count - *progress));
        let read = match source.read(*from, &mut piece).await {
            Ok(read) => read,
            Err(AttemptError::Failed(error)) => return partial(*progress, error).map(drop),
            Err(_) => return partial(*progress, Error::EIO).map(drop),
        };
        if read == 0 {
            return Ok(());
        }
        let mut out = piece.into_supply();
        while out.remaining() > 0 {
            let written = match (&target.object, &mut to) {
                (Some(object), _) => target.write_some(&**object, caller, 0, &mut out).await,
                (None, Some(to)) => target.write_data(caller, to, &mut out).await,
                (None, None) => Err(Error::EINVAL),
            };
            match written {
                Ok(written) => {
                    *from += written as u64;
                    *progress += written;
                    if written == 0 {
                        return Ok(());
                    }
                }
                Err(error) => return partial(*progress, error).map(drop),
            }
        }
        give_turn().await;
    }
    Ok(())
}
