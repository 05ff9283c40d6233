//! The data of a regular file.

use super::session::{Fid, Session};
use crate::sync::SpinLock;
use crate::vfs::Store;
use crate::{BoxFuture, Error, Result};
use alloc::sync::Arc;
use ninep::Call;

/// The protocol's flags with which the server opens a file.
const READ_ONLY: u32 = 0;
const WRITE_ONLY: u32 = 1;
const READ_WRITE: u32 = 2;

/// How the server's file is opened, and its size.
pub(super) struct Data {
    session: Arc<Session>,
    state: SpinLock<State>,
}

#[derive(Default)]
struct State {
    /// The file as it was opened for reading, and for writing.
    reader: Option<Arc<Fid>>,
    writer: Option<Arc<Fid>>,
    size: u64,
}

impl Data {
    pub(super) fn new(session: &Arc<Session>, size: u64) -> Data {
        let state = SpinLock::new(State { size, ..State::default() });
        Data { session: session.clone(), state }
    }

    /// The size of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.state.lock().size
    }

    /// The file has at least `size` bytes.
    pub(super) fn grow(&self, size: u64) {
        let mut state = self.state.lock();
        state.size = state.size.max(size);
    }

    pub(super) fn set_size(&self, size: u64) {
        self.state.lock().size = size;
    }

    /// Opens the file for reading or for writing, if it is not open for that. Later uses of the
    /// data need no permission at the server, and go on when the file has lost its name.
    pub(super) async fn open(&self, file: &Fid, write: bool) -> Result<()> {
        let is_open = |state: &State| match write {
            true => state.writer.is_some(),
            false => state.reader.is_some() || state.writer.is_some(),
        };
        if is_open(&self.state.lock()) {
            return Ok(());
        }
        let opened = match write {
            true => match self.session.open(file, READ_WRITE).await {
                Err(Error::EACCES) => self.session.open(file, WRITE_ONLY).await?,
                opened => opened?,
            },
            false => self.session.open(file, READ_ONLY).await?,
        };
        self.opened(opened, write);
        Ok(())
    }

    /// Takes over the file as it was opened.
    pub(super) fn opened(&self, opened: Fid, write: bool) {
        let mut state = self.state.lock();
        let place = if write { &mut state.writer } else { &mut state.reader };
        let old = place.replace(Arc::new(opened));
        drop(state);
        drop(old);
    }

    fn reader(&self) -> Result<Arc<Fid>> {
        let state = self.state.lock();
        state.reader.as_ref().or(state.writer.as_ref()).cloned().ok_or(Error::EBADF)
    }

    fn writer(&self) -> Result<Arc<Fid>> {
        self.state.lock().writer.clone().ok_or(Error::EBADF)
    }

    /// Reads at `offset` by one request; returns how many bytes, 0 at the end.
    pub(super) async fn read_some(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let count = bytes.len().min(self.session.data_size());
        let fid = self.reader()?;
        let call = Call::Read { fid: fid.number, offset, count: count as u32 };
        let reply = self.session.call(&call).await?;
        let data = reply.read(|body| body.data(count))?;
        bytes[..data.len()].copy_from_slice(data);
        Ok(data.len())
    }

    /// Writes all bytes at `offset`.
    pub(super) async fn write_all(&self, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        let fid = self.writer()?;
        while !bytes.is_empty() {
            let data = &bytes[..bytes.len().min(self.session.data_size())];
            let reply = self.session.call(&Call::Write { fid: fid.number, offset, data }).await?;
            let count = reply.read(|body| body.count(data.len()))?;
            if count == 0 {
                return Err(Error::EIO);
            }
            offset += count as u64;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Has the server write the file to its storage.
    pub(super) async fn synchronize(&self) -> Result<()> {
        let Ok(fid) = self.writer() else { return Ok(()) };
        self.session.perform(&Call::Synchronize { fid: fid.number, data_only: false }).await
    }
}

impl Store for Data {
    fn read<'a>(&'a self, offset: u64, bytes: &'a mut [u8]) -> BoxFuture<'a, Result<usize>> {
        alloc::boxed::Box::pin(async move {
            let mut done = 0;
            while done < bytes.len() {
                match self.read_some(offset + done as u64, &mut bytes[done..]).await? {
                    0 => break,
                    count => done += count,
                }
            }
            Ok(done)
        })
    }

    fn write<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        // A page may extend beyond the end of the file.
        let rest = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(rest)];
        alloc::boxed::Box::pin(self.write_all(offset, bytes))
    }
}
