//! Requests and their answers.

use crate::failure::{Failure, number, refusal};
use crate::mounted::Mounted;
use alloc::vec;
use alloc::vec::Vec;
use ninep::{Answer, Call, DATA_OVERHEAD, HEADER, Progress, Resume, TAG, WALK_MAXIMUM};
use rsext4::{BlockIo, Clock};

/// The time as programs have it.
pub trait WallClock: Clock + Clone + Send + 'static {
    /// Sets the present time, in nanoseconds since 1970-01-01 00:00:00 UTC.
    fn set(&self, nanoseconds: u64);
}

/// A server of the files of one disk.
pub struct FileServer<D: BlockIo, C> {
    disk: D,
    clock: C,
    /// The largest message.
    message: usize,
    mounted: Option<Mounted<D, C>>,
    /// How many requests were carried out, modulo 2^32.
    number: u32,
}

impl<D: BlockIo + Clone, C: WallClock> FileServer<D, C> {
    /// A server of this disk, whose file system is not mounted yet. A message has at most `message`
    /// bytes.
    pub fn new(disk: D, clock: C, message: usize) -> FileServer<D, C> {
        FileServer { disk, clock, message, mounted: None, number: 0 }
    }

    /// Carries out a request. Returns the reply, whatever the request is, and after it [how
    /// far](Progress) the server has come. [`finish`](Self::finish) is to be called when the client
    /// has the reply.
    pub fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let mut reply = self.reply(request);
        let is_mount = request.get(TAG - 1) == Some(&ninep::kind::MOUNT);
        if let Some(transaction) = self.mounted.as_ref().and_then(|it| it.transaction(is_mount)) {
            Progress { transaction, number: self.number }.append(&mut reply);
            self.number = self.number.wrapping_add(1);
        }
        reply
    }

    /// Whether a file system is mounted, and the server is where the one before it was.
    pub fn is_started(&self) -> bool {
        self.mounted.as_ref().is_some_and(|mounted| !mounted.is_resuming())
    }

    /// Does what the client need not wait for. A transaction is committed here, or before the next
    /// request, and so has no request that is not answered.
    pub fn finish(&mut self) {
        if let Some(mounted) = &mut self.mounted {
            mounted.finish();
        }
    }

    fn reply(&mut self, request: &[u8]) -> Vec<u8> {
        let mut names: [&[u8]; WALK_MAXIMUM] = Default::default();
        let Ok((tag, call)) = Call::decode(request, &mut names) else {
            let tag = request.get(TAG..HEADER).and_then(|tag| tag.try_into().ok());
            let tag = tag.map_or(0, u16::from_le_bytes);
            return Answer::Error(number::EOPNOTSUPP).encode(0, tag);
        };
        let kind = call.kind();
        match call {
            Call::Mount { fid, read_only, resume, time } => {
                self.clock.set(time);
                self.mount(fid, read_only, resume, kind, tag)
            }
            Call::Resume { step: Resume::Time { time } } => {
                self.clock.set(time);
                simple(Ok(()), kind, tag)
            }
            Call::Unmount => {
                // What cannot be brought to the disk is replayed from the journal at the next
                // mount.
                let done = self.mounted.take().map_or(Ok(()), |mut mounted| mounted.unmount());
                simple(done, kind, tag)
            }
            Call::Remount { read_only } => simple(self.remount(read_only), kind, tag),
            Call::Version { size } => {
                self.message = self.message.min(usize::try_from(size).unwrap_or(usize::MAX));
                // The files of an earlier session are forgotten, and so is what it had mounted.
                self.mounted = None;
                Answer::Version(self.message as u32).encode(kind, tag)
            }
            call => {
                let most = self.message.saturating_sub(DATA_OVERHEAD);
                match self.mounted.as_mut() {
                    Some(mounted) => {
                        if let Err(Failure(number)) = prepare(mounted, &call) {
                            return Answer::Error(number).encode(kind, tag);
                        }
                        carry_out(mounted, &call, most, tag)
                    }
                    None => Answer::Error(number::EBADF).encode(kind, tag),
                }
            }
        }
    }

    fn mount(&mut self, fid: u32, read_only: bool, resume: bool, kind: u8, tag: u16) -> Vec<u8> {
        if self.mounted.is_some() {
            return Answer::Error(number::EBUSY).encode(kind, tag);
        }
        let read_only = read_only || self.disk.capabilities().read_only;
        let mounted = Mounted::mount(self.disk.clone(), self.clock.clone(), read_only, resume);
        let mounted = mounted.map_err(refusal);
        let root = mounted.and_then(|mut mounted| match mounted.root(fid) {
            Ok(root) => Ok((mounted, root)),
            Err(Failure(number)) => Err((number, "its root directory cannot be read".into())),
        });
        match root {
            Ok((mounted, root)) => {
                self.mounted = Some(mounted);
                Answer::Mounted(root).encode(kind, tag)
            }
            Err((number, why)) => Answer::NotMounted(number, why.as_bytes()).encode(kind, tag),
        }
    }

    fn remount(&mut self, read_only: bool) -> Result<(), Failure> {
        if self.disk.capabilities().read_only && !read_only {
            return Err(Failure(number::EROFS));
        }
        let mounted = self.mounted.as_mut().ok_or(Failure(number::EBADF))?;
        mounted.remount(&self.disk, read_only)
    }
}

/// Makes room in the running transaction for a request that may change something on the disk.
fn prepare<D: BlockIo, C: Clock + Clone + Send + 'static>(
    mounted: &mut Mounted<D, C>,
    call: &Call<'_>,
) -> Result<(), Failure> {
    match *call {
        Call::Make { .. }
        | Call::Link { .. }
        | Call::RenameAt { .. }
        | Call::Exchange { .. }
        | Call::UnlinkAt { .. }
        | Call::SetAttributes { .. }
        | Call::Write { .. }
        | Call::Allocate { .. }
        | Call::Place { .. }
        | Call::Written { .. }
        | Call::Resume { step: Resume::Place { .. } } => mounted.prepare(),
        Call::Clunk { fid } if mounted.sets_attribute(fid) => mounted.prepare(),
        _ => Ok(()),
    }
}

fn simple(done: Result<(), Failure>, kind: u8, tag: u16) -> Vec<u8> {
    match done {
        Ok(()) => Answer::Done.encode(kind, tag),
        Err(Failure(number)) => Answer::Error(number).encode(kind, tag),
    }
}

/// Carries out a request that concerns a mounted file system. Data have at most `most` bytes.
fn carry_out<D: BlockIo, C: Clock + Clone + Send + 'static>(
    mounted: &mut Mounted<D, C>,
    call: &Call<'_>,
    most: usize,
    tag: u16,
) -> Vec<u8> {
    let kind = call.kind();
    let room = |count: u32| usize::try_from(count).unwrap_or(usize::MAX).min(most);
    let done = match *call {
        Call::Clunk { fid } => mounted.forget(fid),
        Call::Link { directory, fid, name } => mounted.link(directory, fid, name),
        Call::RenameAt { from, old, to, new } => mounted.rename((from, old), (to, new), false),
        Call::Exchange { from, old, to, new } => mounted.rename((from, old), (to, new), true),
        Call::UnlinkAt { fid, name, directory } => mounted.unlink(fid, name, directory),
        Call::SetAttributes { fid, ref change } => mounted.change(fid, change),
        Call::Synchronize { .. } => mounted.synchronize(),
        Call::XattrCreate { fid, name, size, flags } => mounted.set_xattr(fid, name, size, flags),
        Call::Allocate { fid, offset, length, change } => mounted.allocate(fid, offset, length, change),
        Call::Resume { step } => mounted.resume(step),
        Call::Walk { fid, new, names: [] } => {
            return match mounted.number_again(fid, new) {
                Ok(()) => Answer::Walked(&[]).encode(kind, tag),
                Err(Failure(number)) => Answer::Error(number).encode(kind, tag),
            };
        }
        _ => return with_result(mounted, call, &room, tag),
    };
    simple(done, kind, tag)
}

/// Carries out a request whose reply has content.
fn with_result<D: BlockIo, C: Clock + Clone + Send + 'static>(
    mounted: &mut Mounted<D, C>,
    call: &Call<'_>,
    room: &dyn Fn(u32) -> usize,
    tag: u16,
) -> Vec<u8> {
    let kind = call.kind();
    let answer = |answer: Answer<'_>| answer.encode(kind, tag);
    let done = match *call {
        Call::Find { fid, new, name } => {
            mounted.find(fid, new, name).map(|it| answer(Answer::Attributes(it)))
        }
        Call::Make { fid, new, name, mode, owner, device, target } => mounted
            .make((fid, new), name, mode, owner, device, target)
            .map(|it| answer(Answer::Attributes(it))),
        Call::GetAttributes { fid } => mounted.attributes(fid).map(|it| answer(Answer::Attributes(it))),
        Call::ReadLink { fid } => mounted.read_link(fid).map(|text| answer(Answer::Text(&text))),
        Call::ReadDirectory { fid, offset, count } => {
            mounted.entries(fid, offset, room(count)).map(|list| answer(Answer::Data(list.bytes())))
        }
        Call::Read { fid, offset, count } => {
            let mut bytes = vec![0; room(count)];
            mounted.read(fid, offset, &mut bytes).map(|count| answer(Answer::Data(&bytes[..count])))
        }
        Call::Write { fid, offset, data } => {
            mounted.write(fid, offset, data).map(|count| answer(Answer::Count(count)))
        }
        Call::Statfs { .. } => Ok(answer(Answer::Status(mounted.status()))),
        Call::XattrWalk { fid, new, name } => {
            mounted.find_xattr(fid, new, name).map(|size| answer(Answer::Size(size)))
        }
        Call::Map { fid, offset, length } => {
            mounted.map(fid, offset, length).map(|mapped| answer(Answer::Mapped(mapped)))
        }
        Call::Place { fid, offset, length } => {
            mounted.place(fid, offset, length).map(|mapped| answer(Answer::Mapped(mapped)))
        }
        Call::Written { fid, offset, length, size } => {
            mounted.written(fid, offset, length, size).map(|blocks| answer(Answer::Size(blocks)))
        }
        _ => Err(Failure(number::EOPNOTSUPP)),
    };
    done.unwrap_or_else(|Failure(number)| answer(Answer::Error(number)))
}
