//! Vnodes of files at a server.

use super::V9fs;
use super::data::Data;
use super::replies::{metadata, type_of};
use super::session::Fid;
use crate::sync::{Mutex, SpinLock};
use crate::vfs::{
    AttributeChange, AttributeCondition, DirectoryEntry, FileMemory, FileSystem, FileType, Hooks, Link,
    Metadata, Mode, NewAttributes, NewNode, OpenContext, OpenFlags, Opened, RenameEnd, SetTime, Vnode,
    VnodeRef, WriteAt,
};
use crate::{AttemptError, Error, MaybeReady, Result, Timestamp, UserBuffer};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use ninep::{Attributes, Body, Call, Time};

const NANOSECONDS: u64 = 1_000_000_000;

/// A file.
pub(super) struct Node {
    pub(super) this: Weak<Node>,
    pub(super) file_system: Arc<V9fs>,
    number: u64,
    file_type: FileType,
    /// The file at the server, by the way on which it was found last.
    fid: SpinLock<Arc<Fid>>,
    attributes: SpinLock<Attributes>,
    /// The directory and name under which it was found last.
    place: SpinLock<Option<(Arc<Node>, Vec<u8>)>>,
    hooks: Hooks,
    /// A directory as it was opened last.
    pub(super) listing: SpinLock<Option<Arc<Fid>>>,
    regular: Option<Regular>,
}

/// What only regular files have.
struct Regular {
    data: Arc<Data>,
    /// The pages, once the file has been mapped.
    memory: SpinLock<Option<Arc<dyn FileMemory>>>,
    /// What the server said about the contents when the pages were valid: version, time, size.
    valid: SpinLock<Option<(u32, Time, u64)>>,
    /// Locked while the size may change.
    writing: Mutex<()>,
    sizing: SpinLock<Sizing>,
}

/// Changes of a file's size.
#[derive(Default)]
struct Sizing {
    /// How many are under way.
    active: u32,
    /// The count of changes in the file system after the last one.
    last: u64,
}

/// A change of a file's size that is under way.
struct Change<'a>(&'a Node, &'a Regular);

impl<'a> Change<'a> {
    fn begin(node: &'a Node, regular: &'a Regular) -> Change<'a> {
        regular.sizing.lock().active += 1;
        Change(node, regular)
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let count = self.0.file_system.changes.fetch_add(1, Ordering::AcqRel) + 1;
        let mut sizing = self.1.sizing.lock();
        sizing.active -= 1;
        sizing.last = count;
    }
}

/// A time of the server's. What cannot be one is the largest that there is.
fn timestamp(time: Time) -> Timestamp {
    Timestamp {
        seconds: i64::try_from(time.seconds).unwrap_or(i64::MAX),
        nanoseconds: time.nanoseconds.min(NANOSECONDS - 1) as u32,
    }
}

/// A time as the server takes it.
fn time(time: Timestamp) -> Time {
    Time { seconds: time.seconds.max(0) as u64, nanoseconds: time.nanoseconds.into() }
}

impl Node {
    /// `EIO` if the server says that the file is of no known type.
    pub(super) fn new(
        file_system: &Arc<V9fs>,
        fid: Fid,
        attributes: Attributes,
        place: Option<(Arc<Node>, &[u8])>,
    ) -> Result<Arc<Node>> {
        let file_type = type_of(attributes.mode).ok_or(Error::EIO)?;
        let regular = (file_type == FileType::Regular).then(|| Regular {
            data: Arc::new(Data::new(&file_system.session, attributes.size)),
            memory: SpinLock::new(None),
            valid: SpinLock::new(None),
            writing: Mutex::new(()),
            sizing: SpinLock::new(Sizing::default()),
        });
        Ok(Arc::new_cyclic(|this| Node {
            this: this.clone(),
            file_system: file_system.clone(),
            number: attributes.qid.path,
            file_type,
            fid: SpinLock::new(Arc::new(fid)),
            attributes: SpinLock::new(attributes),
            place: SpinLock::new(place.map(|(parent, name)| (parent, name.to_vec()))),
            hooks: Hooks::default(),
            listing: SpinLock::new(None),
            regular,
        }))
    }

    /// A vnode as a node of such a file system. `EXDEV` if it is none.
    pub(super) fn of(vnode: &VnodeRef) -> Result<Arc<Node>> {
        let any: Arc<dyn core::any::Any + Send + Sync> = vnode.clone();
        any.downcast().map_err(|_| Error::EXDEV)
    }

    /// Whether attributes are those of this file, and not of another one that has got its number.
    pub(super) fn is_of(&self, attributes: &Attributes) -> bool {
        attributes.qid.path == self.number && type_of(attributes.mode) == Some(self.file_type)
    }

    pub(super) fn fid(&self) -> Arc<Fid> {
        self.fid.lock().clone()
    }

    /// Takes over what was learned when the file was found once more. `seen` is the count of
    /// changes before the attributes were loaded.
    pub(super) fn found_again(
        &self,
        fid: Fid,
        attributes: Attributes,
        seen: u64,
        place: Option<(Arc<Node>, &[u8])>,
    ) {
        let old = core::mem::replace(&mut *self.fid.lock(), Arc::new(fid));
        drop(old);
        self.attributes_are(attributes, seen);
        if let Some((parent, name)) = place {
            self.is_at(parent, name);
        }
    }

    fn attributes_are(&self, attributes: Attributes, seen: u64) {
        *self.attributes.lock() = attributes;
        if let Some(regular) = &self.regular {
            let sizing = regular.sizing.lock();
            // An own change of the size may be newer than these attributes.
            if sizing.active == 0 && sizing.last <= seen {
                regular.data.set_size(attributes.size);
            }
        }
    }

    /// Loads the attributes.
    async fn refresh(&self) -> Result<Attributes> {
        let seen = self.file_system.changes.load(Ordering::Acquire);
        let fid = self.fid();
        let reply = self.file_system.session.call(&Call::GetAttributes { fid: fid.number }).await?;
        let attributes = reply.read(Body::attributes)?;
        self.attributes_are(attributes, seen);
        Ok(attributes)
    }

    /// Records where the file is now.
    pub(super) fn is_at(&self, parent: Arc<Node>, name: &[u8]) {
        let old = self.place.lock().replace((parent, name.to_vec()));
        drop(old);
    }

    /// Records that the file has one name more or less.
    pub(super) fn names_changed(&self, more: bool) {
        let mut attributes = self.attributes.lock();
        attributes.links = match (more, self.file_type) {
            (true, _) => attributes.links.saturating_add(1),
            (false, FileType::Directory) => 0,
            (false, _) => attributes.links.saturating_sub(1),
        };
    }

    /// Takes over the file as it was opened when it was made.
    pub(super) fn was_created(&self, opened: Fid) {
        if let Some(regular) = &self.regular {
            regular.data.opened(opened, true);
        }
    }

    fn regular(&self) -> Result<&Regular> {
        self.regular.as_ref().ok_or(match self.file_type {
            FileType::Directory => Error::EISDIR,
            _ => Error::EINVAL,
        })
    }

    fn modified_now(&self) {
        let now = time(self.file_system.environment.realtime());
        let mut attributes = self.attributes.lock();
        (attributes.modified, attributes.changed) = (now, now);
    }

    async fn read_data(&self, offset: u64, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let regular = self.regular()?;
        if let Some(memory) = regular.memory() {
            let rest = regular.data.size().saturating_sub(offset);
            return match usize::try_from(rest).unwrap_or(usize::MAX) {
                0 => Ok(0),
                rest => memory.read(offset, rest, to).await,
            };
        }
        let mut bytes = buffer(to.remaining().min(self.file_system.session.data_size()))?;
        let count = regular.data.read_some(offset, &mut bytes).await?;
        if count == 0 {
            return Ok(0);
        }
        Ok(to.copy_out(&bytes[..count])?)
    }

    async fn write_data(
        &self,
        at: WriteAt,
        limit: u64,
        from: &mut dyn UserBuffer,
    ) -> Result<(usize, u64), AttemptError> {
        let regular = self.regular()?;
        let _alone = regular.writing.lock().await;
        let offset = match at {
            WriteAt::Offset(offset) => offset,
            // The server's file may have grown.
            WriteAt::End => {
                // A file that has lost its name has no attributes at the server any more.
                let _ = self.refresh().await;
                regular.data.size()
            }
        };
        if offset >= limit {
            return Err(Error::EFBIG.into());
        }
        let room = usize::try_from(limit - offset).unwrap_or(usize::MAX);
        let _change = Change::begin(self, regular);
        let count = match regular.memory() {
            Some(memory) => {
                let count = memory.write(offset, room, from).await?;
                regular.data.grow(offset + count as u64);
                memory.write_back(offset, offset + count as u64, false).await?;
                count
            }
            None => {
                let most = from.remaining().min(room).min(self.file_system.session.data_size());
                let mut bytes = buffer(most)?;
                let count = from.copy_in(&mut bytes)?;
                if let Err(error) = regular.data.write_all(offset, &bytes[..count]).await {
                    from.retreat(count);
                    return Err(error.into());
                }
                regular.data.grow(offset + count as u64);
                count
            }
        };
        self.modified_now();
        Ok((count, offset + count as u64))
    }

    async fn resize(&self, size: u64) -> Result<()> {
        let regular = self.regular()?;
        let _alone = regular.writing.lock().await;
        let _change = Change::begin(self, regular);
        let change = ninep::AttributeChange { size: Some(size), ..Default::default() };
        let fid = self.fid();
        self.file_system.session.perform(&Call::SetAttributes { fid: fid.number, change }).await?;
        regular.data.set_size(size);
        if let Some(memory) = regular.memory() {
            memory.truncate(size).await;
        }
        self.modified_now();
        Ok(())
    }

    /// Opens the data, and forgets pages that are not what the server has now.
    async fn open_data(&self, regular: &Regular, write: bool) -> Result<()> {
        let fid = self.fid();
        regular.data.open(&fid, write).await?;
        let Some(memory) = regular.memory() else { return Ok(()) };
        let _alone = regular.writing.lock().await;
        let now = self.contents();
        let changed = *regular.valid.lock() != Some(now);
        if changed {
            memory.write_back(0, u64::MAX, true).await?;
            memory.truncate(regular.data.size()).await;
            *regular.valid.lock() = Some(now);
        }
        Ok(())
    }

    /// What the server said about the contents when the attributes were loaded.
    fn contents(&self) -> (u32, Time, u64) {
        let attributes = self.attributes.lock();
        (attributes.qid.version, attributes.modified, attributes.size)
    }

    /// Writes changed pages to the server.
    pub(super) async fn write_back(&self) -> Result<()> {
        match self.regular.as_ref().and_then(Regular::memory) {
            Some(memory) => memory.write_back(0, u64::MAX, false).await,
            None => Ok(()),
        }
    }

    async fn change_attributes(&self, change: AttributeChange) -> Result<()> {
        let set = |time: Option<SetTime>| {
            time.map(|time| match time {
                SetTime::Now => ninep::SetTime::Now,
                SetTime::To(to) => {
                    let Time { seconds, nanoseconds } = self::time(to);
                    ninep::SetTime::To(seconds, nanoseconds)
                }
            })
        };
        let old = Mode::new(self.attributes.lock().mode as u16);
        let mode = match change.mode {
            None if change.remove_mode.is_empty() => None,
            mode => Some(mode.unwrap_or(old).difference(change.remove_mode).bits().into()),
        };
        let fid = self.fid();
        let session = &self.file_system.session;
        if change.user.is_some() || change.group.is_some() {
            let owner =
                ninep::AttributeChange { user: change.user, group: change.group, ..Default::default() };
            match session.perform(&Call::SetAttributes { fid: fid.number, change: owner }).await {
                // The server's files belong to the user that runs it, and it may not give them
                // away.
                Ok(()) | Err(Error::EPERM) => {}
                Err(error) => return Err(error),
            }
        }
        let (accessed, modified) = (set(change.accessed), set(change.modified));
        if mode.is_some() || accessed.is_some() || modified.is_some() {
            let change = ninep::AttributeChange { mode, accessed, modified, ..Default::default() };
            session.perform(&Call::SetAttributes { fid: fid.number, change }).await?;
        }
        self.refresh().await.map(drop)
    }

    /// The pages, if there are any.
    pub(super) fn cached(&self) -> Option<Arc<dyn FileMemory>> {
        self.regular.as_ref().and_then(Regular::memory)
    }
}

impl Regular {
    fn memory(&self) -> Option<Arc<dyn FileMemory>> {
        self.memory.lock().clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut nodes = self.file_system.nodes.lock();
        if nodes.get(&self.number).is_some_and(|node| node.strong_count() == 0) {
            nodes.remove(&self.number);
        }
    }
}

/// A buffer of zeros. `ENOMEM`.
pub(super) fn buffer(length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| Error::ENOMEM)?;
    bytes.resize(length, 0);
    Ok(bytes)
}

impl Vnode for Node {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.file_system.clone()
    }

    fn metadata(&self) -> Metadata {
        let attributes = *self.attributes.lock();
        let times = [attributes.accessed, attributes.modified, attributes.changed].map(timestamp);
        let size = self.regular.as_ref().map_or(attributes.size, |regular| regular.data.size());
        Metadata {
            device: self.file_system.device,
            number: self.number,
            size,
            ..metadata(&attributes, self.file_type, times)
        }
    }

    fn file_type(&self) -> FileType {
        self.file_type
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn hooks(&self) -> Option<&Hooks> {
        Some(&self.hooks)
    }

    fn parent(&self) -> Option<VnodeRef> {
        if self.attributes.lock().links == 0 {
            return None;
        }
        self.place.lock().as_ref().map(|(parent, _)| parent.clone() as VnodeRef)
    }

    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        self.place.lock().as_ref().map(|(parent, name)| (parent.clone() as VnodeRef, name.clone()))
    }

    fn lookup<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        if self.file_type != FileType::Directory {
            return MaybeReady::ready(Err(Error::ENOTDIR));
        }
        MaybeReady::pending(async move { Ok(self.find(name).await? as VnodeRef) })
    }

    fn create<'a>(
        &'a self,
        name: &'a [u8],
        node: NewNode<'a>,
        attributes: NewAttributes,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::pending(async move { Ok(self.make(name, node, attributes).await? as VnodeRef) })
    }

    fn link<'a>(&'a self, name: &'a [u8], target: &'a VnodeRef) -> MaybeReady<'a, Result<()>> {
        MaybeReady::pending(self.add_name(name, target))
    }

    fn remove<'a>(&'a self, name: &'a [u8], expected: &'a VnodeRef) -> MaybeReady<'a, Result<()>> {
        MaybeReady::pending(self.remove_name(name, expected))
    }

    fn rename<'a>(
        &'a self,
        from: RenameEnd<'a>,
        to: RenameEnd<'a>,
        exchange: bool,
    ) -> MaybeReady<'a, Result<()>> {
        MaybeReady::pending(async move {
            // The protocol has no exchange.
            if exchange { Err(Error::EINVAL) } else { Node::move_name(from, to).await }
        })
    }

    fn read_directory<'a>(
        &'a self,
        position: u64,
        accept: &'a mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> MaybeReady<'a, Result<()>> {
        MaybeReady::pending(self.list(position, accept))
    }

    fn follow(&self) -> MaybeReady<'_, Result<Link>> {
        if self.file_type != FileType::SymbolicLink {
            return MaybeReady::ready(Err(Error::EINVAL));
        }
        MaybeReady::pending(async move {
            let fid = self.fid();
            let reply = self.file_system.session.call(&Call::ReadLink { fid: fid.number }).await?;
            reply.read(|body| Ok(Link::Path(body.text()?.to_vec())))
        })
    }

    fn read<'a>(
        &'a self,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        MaybeReady::pending(self.read_data(offset, to))
    }

    fn write<'a>(
        &'a self,
        at: WriteAt,
        limit: u64,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<(usize, u64), AttemptError>> {
        MaybeReady::pending(self.write_data(at, limit, from))
    }

    fn truncate(&self, size: u64) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(self.resize(size))
    }

    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(async move {
            self.write_back().await?;
            match &self.regular {
                Some(regular) => regular.data.synchronize().await,
                None => Ok(()),
            }
        })
    }

    fn change(&self, change: AttributeChange) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(self.change_attributes(change))
    }

    fn memory(&self) -> Result<Arc<dyn FileMemory>> {
        let regular = self.regular.as_ref().ok_or(Error::ENODEV)?;
        let node = self.this.upgrade().ok_or(Error::EIO)?;
        let memory = match regular.memory() {
            Some(memory) => memory,
            None => {
                let provider = &self.file_system.memory;
                let made = provider.stored_memory(regular.data.clone(), regular.data.size())?;
                *regular.valid.lock() = Some(self.contents());
                regular.memory.lock().get_or_insert(made).clone()
            }
        };
        self.file_system.is_mapped(node);
        Ok(memory)
    }

    fn attribute<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<Vec<u8>>> {
        MaybeReady::pending(self.read_attribute(name))
    }

    fn set_attribute<'a>(
        &'a self,
        name: &'a [u8],
        value: Option<&'a [u8]>,
        condition: AttributeCondition,
    ) -> MaybeReady<'a, Result<()>> {
        MaybeReady::pending(self.write_attribute(name, value, condition))
    }

    fn attributes(&self) -> MaybeReady<'_, Result<Vec<u8>>> {
        MaybeReady::pending(self.read_attribute(b""))
    }

    fn open(&self, context: &OpenContext<'_>) -> MaybeReady<'_, Result<Opened>> {
        match (&self.regular, self.file_type) {
            (Some(regular), _) => {
                let write = context.flags.contains(OpenFlags::WRITE);
                MaybeReady::pending(async move {
                    self.open_data(regular, write).await?;
                    Ok(Opened::Data)
                })
            }
            (None, FileType::Directory) => MaybeReady::pending(async move {
                self.open_listing().await?;
                Ok(Opened::Data)
            }),
            (None, FileType::CharacterDevice | FileType::BlockDevice) => {
                MaybeReady::ready(Ok(Opened::Device))
            }
            _ => MaybeReady::ready(Err(Error::ENXIO)),
        }
    }
}
