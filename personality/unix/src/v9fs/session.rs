//! A session with a server of files: requests and their replies, and the numbers of files.

use super::Transport;
use crate::sync::SpinLock;
use crate::{Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use ninep::{Body, Call, DATA_OVERHEAD, Failure, VERSION};

/// The smallest size of messages with which the file system works.
const LEAST_MESSAGE: usize = 4096;

/// A session.
pub(crate) struct Session {
    transport: Arc<dyn Transport>,
    /// The largest message in bytes.
    message: AtomicU32,
    /// The next number for a file. A number is not used again, since a reply to a request that was
    /// given up may still make a file of its number.
    next: AtomicU32,
    /// Numbers of which the server has not been told yet that they are not used any more.
    forgotten: SpinLock<Vec<u32>>,
}

/// A number of a file at the server, which the server forgets after this is dropped.
pub(crate) struct Fid {
    session: Arc<Session>,
    pub(crate) number: u32,
}

impl Drop for Fid {
    fn drop(&mut self) {
        if self.number == ninep::NO_FID {
            return;
        }
        // Without memory for it the server keeps the file until the end of the session.
        let mut forgotten = self.session.forgotten.lock();
        if forgotten.try_reserve(1).is_ok() {
            forgotten.push(self.number);
        }
    }
}

/// The reply to a request.
pub(crate) struct Reply {
    request: u8,
    message: Vec<u8>,
}

impl Reply {
    /// What the reply has, read by `read`. `EIO` if it is malformed, or the server's error.
    pub(crate) fn read<'a, T>(&'a self, read: impl FnOnce(Body<'a>) -> Result<T, Failure>) -> Result<T> {
        ninep::reply(self.request, &self.message).and_then(read).map_err(error_of)
    }
}

impl Session {
    /// Begins a session: agrees on the protocol and on the size of messages. `EPROTONOSUPPORT` if
    /// the server has another protocol.
    pub(crate) async fn begin(transport: Arc<dyn Transport>) -> Result<Arc<Session>> {
        let offered = transport.message_size().min(u32::MAX as usize) as u32;
        let (message, next) = (AtomicU32::new(offered), AtomicU32::new(1));
        let session = Arc::new(Session { transport, message, next, forgotten: SpinLock::new(Vec::new()) });
        let reply = session.call(&Call::Version { size: offered }).await?;
        let (size, version) = reply.read(Body::version)?;
        if version != VERSION || size > offered || (size as usize) < LEAST_MESSAGE {
            return Err(Error::EPROTONOSUPPORT);
        }
        session.message.store(size, Ordering::Relaxed);
        Ok(session)
    }

    /// How many bytes of data one request moves.
    pub(crate) fn data_size(&self) -> usize {
        self.message.load(Ordering::Relaxed) as usize - DATA_OVERHEAD
    }

    /// A new number.
    pub(crate) fn fid(self: &Arc<Self>) -> Fid {
        // Relaxed ordering: the numbers have to be different, and order nothing else.
        let number = self.next.fetch_add(1, Ordering::Relaxed) % ninep::NO_FID;
        Fid { session: self.clone(), number }
    }

    /// Gives a number up that stands for nothing, because the server has refused the request that
    /// was to use it.
    pub(crate) fn give_up(&self, mut fid: Fid) {
        fid.number = ninep::NO_FID;
    }

    /// Sends a request and waits for its reply. `EIO` if the server is gone, `E2BIG` if the request
    /// does not fit into a message.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Reply> {
        loop {
            let Some(number) = self.forgotten.lock().pop() else { break };
            // The server's error means that it does not know the file.
            self.transport.exchange(Call::Clunk { fid: number }.encode()).await?;
        }
        let request = call.encode();
        if request.len() > self.message.load(Ordering::Relaxed) as usize {
            return Err(Error::E2BIG);
        }
        let message = self.transport.exchange(request).await?;
        Ok(Reply { request: call.kind(), message })
    }

    /// Sends a request whose reply has no content of interest.
    pub(crate) async fn perform(&self, call: &Call<'_>) -> Result<()> {
        self.call(call).await?.read(|_| Ok(()))
    }

    /// The file to which names lead from `from`; without names, the same file again.
    pub(crate) async fn walk(self: &Arc<Self>, from: &Fid, names: &[&[u8]]) -> Result<Fid> {
        let fid = self.fid();
        let reply = self.call(&Call::Walk { fid: from.number, new: fid.number, names }).await?;
        reply.read(|body| body.walked(names.len()))?;
        Ok(fid)
    }

    /// The same file, opened with the protocol's flags.
    pub(crate) async fn open(self: &Arc<Self>, file: &Fid, flags: u32) -> Result<Fid> {
        let fid = self.walk(file, &[]).await?;
        self.perform(&Call::Open { fid: fid.number, flags }).await?;
        Ok(fid)
    }
}

/// The error that the program gets.
pub(crate) fn error_of(failure: Failure) -> Error {
    /// The protocol's numbers of errors of file systems.
    const ERRORS: [(u32, Error); 31] = [
        (1, Error::EPERM),
        (2, Error::ENOENT),
        (4, Error::EINTR),
        (5, Error::EIO),
        (6, Error::ENXIO),
        (7, Error::E2BIG),
        (9, Error::EBADF),
        (11, Error::EAGAIN),
        (12, Error::ENOMEM),
        (13, Error::EACCES),
        (16, Error::EBUSY),
        (17, Error::EEXIST),
        (18, Error::EXDEV),
        (19, Error::ENODEV),
        (20, Error::ENOTDIR),
        (21, Error::EISDIR),
        (22, Error::EINVAL),
        (23, Error::ENFILE),
        (24, Error::EMFILE),
        (26, Error::ETXTBSY),
        (27, Error::EFBIG),
        (28, Error::ENOSPC),
        (30, Error::EROFS),
        (31, Error::EMLINK),
        (34, Error::ERANGE),
        (36, Error::ENAMETOOLONG),
        (39, Error::ENOTEMPTY),
        (40, Error::ELOOP),
        (61, Error::ENODATA),
        (95, Error::EOPNOTSUPP),
        (116, Error::ESTALE),
    ];
    match failure {
        Failure::Server(number) => {
            ERRORS.iter().find(|(known, _)| *known == number).map_or(Error::EIO, |(_, error)| *error)
        }
        Failure::Malformed => Error::EIO,
    }
}
