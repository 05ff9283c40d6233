//! Vnodes of files on a disk.

use super::Ext4;
use super::data::Data;
use super::extended::{AttributeNames, Lists};
use crate::disk::{Device, SECTOR};
use crate::sync::{Mutex, SpinLock};
use crate::v9fs::{Fid, metadata, type_of};
use crate::vfs::{
    AccessList, AttributeChange, AttributeCondition, DirectoryEntry, Extent, FileMemory, FileSystem,
    FileType, Hooks, Link, ListKind, Metadata, Mode, NewAttributes, NewNode, PAGE_SIZE, RenameEnd, SetTime,
    Vnode, VnodeRef, WriteAt,
};
use crate::{AttemptError, Error, MaybeReady, Result, Timestamp, UserBuffer};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use ninep::{Attributes, Body, Call, Mapped, SpaceChange, Time};

/// A file.
pub(super) struct Node {
    pub(super) this: Weak<Node>,
    pub(super) file_system: Arc<Ext4>,
    pub(super) number: u64,
    file_type: FileType,
    /// The file's number at the file server.
    fid: Arc<Fid>,
    /// The attributes, except for the size of a regular file.
    pub(super) attributes: SpinLock<Attributes>,
    /// Which times the file server does not have.
    late: SpinLock<Late>,
    /// A directory and a name under which it was found.
    place: SpinLock<Option<(Arc<Node>, Vec<u8>)>>,
    hooks: Hooks,
    /// The names of the extended attributes, once they are known.
    pub(super) attribute_names: SpinLock<AttributeNames>,
    pub(super) lists: SpinLock<Lists>,
    /// How many names are kept with this node.
    pub(super) kept: AtomicU32,
    regular: Option<Regular>,
}

/// What only regular files have.
struct Regular {
    data: Arc<Data>,
    /// The pages, once they are used.
    memory: SpinLock<Option<Arc<dyn FileMemory>>>,
    /// Whether the pages were mapped, so that they may change without a write.
    was_mapped: AtomicBool,
    /// Locked while the size or the space may change.
    writing: Mutex<()>,
    /// The bytes that calls have written since the pages were written back.
    written: SpinLock<Range<u64>>,
    /// Locked while pages are written back: a task that then finds nothing written can rely on it.
    storing: Mutex<()>,
}

/// The whole of a file, however long it is.
const WHOLE: Range<u64> = 0..u64::MAX;

/// The bits of a mode that are no type, and those that change the owner or the group of a program
/// that is run.
const PERMISSIONS: u32 = 0o7777;
const SET_ID: u32 = 0o6000;

/// How much is written in one step, for which space is reserved.
const STEP: usize = 256 << 10;

/// Notes that bytes of a file were written when it is dropped, also if the write was given up.
struct Written<'a>(&'a Regular, Range<u64>);

impl Drop for Written<'_> {
    fn drop(&mut self) {
        self.0.note_written(self.1.clone());
    }
}

impl Regular {
    fn note_written(&self, range: Range<u64>) {
        let mut written = self.written.lock();
        *written = match written.is_empty() {
            true => range,
            false => written.start.min(range.start)..written.end.max(range.end),
        };
    }

    /// Writes the pages back that were written since the last time. If programs have mapped the
    /// file, any page may have been.
    async fn store_pages(&self) -> Result<()> {
        let Some(memory) = self.memory.lock().clone() else { return Ok(()) };
        let _alone = self.storing.lock().await;
        let written = core::mem::take(&mut *self.written.lock());
        let range = if self.was_mapped.load(Ordering::Relaxed) { WHOLE } else { written };
        if range.is_empty() {
            return Ok(());
        }
        // What is given up, or refused by the disk, is written the next time.
        let again = Written(self, range.clone());
        memory.write_back(range.start, range.end, false).await?;
        core::mem::forget(again);
        Ok(())
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Late {
    accessed: bool,
    modified: bool,
}

/// Seconds before 1970 are negative numbers, in 64 bits.
fn timestamp(time: Time) -> Timestamp {
    Timestamp { seconds: time.seconds as i64, nanoseconds: time.nanoseconds.min(999_999_999) as u32 }
}

fn time(time: Timestamp) -> Time {
    Time { seconds: time.seconds as u64, nanoseconds: time.nanoseconds.into() }
}

fn to(time: Time) -> ninep::SetTime {
    ninep::SetTime::To(time.seconds, time.nanoseconds)
}

impl Node {
    /// `EIO` if the file server says that the file is of no known type.
    pub(super) fn new(
        file_system: &Arc<Ext4>,
        fid: Fid,
        attributes: Attributes,
        place: Option<(Arc<Node>, &[u8])>,
    ) -> Result<Arc<Node>> {
        let file_type = type_of(attributes.mode).ok_or(Error::EIO)?;
        let fid = Arc::new(fid);
        let regular = (file_type == FileType::Regular).then(|| Regular {
            data: Arc::new(Data::new(file_system, fid.clone(), attributes.size, attributes.blocks)),
            memory: SpinLock::new(None),
            was_mapped: AtomicBool::new(false),
            writing: Mutex::new(()),
            written: SpinLock::new(0..0),
            storing: Mutex::new(()),
        });
        Ok(Arc::new_cyclic(|this| Node {
            this: this.clone(),
            file_system: file_system.clone(),
            number: attributes.qid.path,
            file_type,
            fid,
            attributes: SpinLock::new(attributes),
            late: SpinLock::new(Late::default()),
            place: SpinLock::new(place.map(|(parent, name)| (parent, name.to_vec()))),
            hooks: Hooks::default(),
            attribute_names: SpinLock::new(AttributeNames::default()),
            lists: SpinLock::new(Lists::default()),
            kept: AtomicU32::new(0),
            regular,
        }))
    }

    /// A vnode as a node of such a file system. `EXDEV` if it is none.
    pub(super) fn of(vnode: &VnodeRef) -> Result<Arc<Node>> {
        let any: Arc<dyn core::any::Any + Send + Sync> = vnode.clone();
        any.downcast().map_err(|_| Error::EXDEV)
    }

    pub(super) fn fid(&self) -> u32 {
        self.fid.number
    }

    pub(super) fn is_directory(&self) -> bool {
        self.file_type == FileType::Directory
    }

    /// Whether the file has lost its last name.
    pub(super) fn has_no_name(&self) -> bool {
        self.attributes.lock().links == 0
    }

    /// The directory of this one.
    pub(super) fn above(&self) -> Option<Arc<Node>> {
        self.place.lock().as_ref().map(|(parent, _)| parent.clone())
    }

    /// Records where the file is now.
    pub(super) fn is_at(&self, parent: Arc<Node>, name: &[u8]) {
        let old = self.place.lock().replace((parent, name.to_vec()));
        drop(old);
    }

    fn now(&self) -> Time {
        time(self.file_system.environment.realtime())
    }

    /// Records that the entries of this directory have changed, and that it has so many more
    /// directories.
    pub(super) fn entries_changed(&self, directories: i64) {
        let now = self.now();
        let mut attributes = self.attributes.lock();
        (attributes.modified, attributes.changed) = (now, now);
        attributes.links = attributes.links.saturating_add_signed(directories);
        attributes.qid.version = attributes.qid.version.wrapping_add(1);
    }

    /// Records that the file has so many names more.
    fn links_changed(&self, more: i64) {
        let now = self.now();
        let mut attributes = self.attributes.lock();
        attributes.changed = now;
        attributes.links = attributes.links.saturating_add_signed(more);
    }

    /// Records that the file has a name less; a directory had only one.
    pub(super) fn lost_a_name(&self) {
        self.links_changed(if self.is_directory() { i64::MIN } else { -1 });
        if self.has_no_name() {
            self.file_system.has_lost_its_name(self.number);
        }
    }

    /// Records that the file has a name more, which may be its first.
    pub(super) fn got_a_name(&self) {
        let was_nameless = self.has_no_name();
        self.links_changed(1);
        if was_nameless {
            // It is kept until it is stored, as others are.
            self.is_dirty();
        }
    }

    /// Records that something other than the contents has changed.
    pub(super) fn status_changed(&self) {
        let now = self.now();
        self.attributes.lock().changed = now;
    }

    fn regular(&self) -> Result<&Regular> {
        self.regular.as_ref().ok_or(match self.file_type {
            FileType::Directory => Error::EISDIR,
            _ => Error::EINVAL,
        })
    }

    /// Records that the contents are changed now, which the file server learns later.
    fn modified_now(&self) {
        // Writes through mappings were earlier.
        let _age = self.mapped_write();
        let now = self.now();
        self.modified_at(now, now);
    }

    fn modified_at(&self, modified: Time, changed: Time) {
        {
            let mut attributes = self.attributes.lock();
            (attributes.modified, attributes.changed) = (modified, changed);
        }
        self.late.lock().modified = true;
        self.is_dirty();
    }

    /// How long ago a program has written through a mapping, if that is not known yet.
    fn mapped_write(&self) -> Option<Duration> {
        self.cached()?.take_written()
    }

    /// Takes over the time at which a program has written through a mapping.
    fn note_mapped_write(&self) {
        if let Some(age) = self.mapped_write() {
            let written = self.file_system.environment.realtime().before(age);
            let changed = timestamp(self.attributes.lock().changed).max(written);
            self.modified_at(time(written), time(changed));
        }
    }

    fn is_dirty(&self) {
        if let Some(this) = self.this.upgrade() {
            self.file_system.is_dirty(this);
        }
    }

    /// The pages of a regular file.
    fn pages(&self, regular: &Regular) -> Result<Arc<dyn FileMemory>> {
        if let Some(memory) = &*regular.memory.lock() {
            return Ok(memory.clone());
        }
        let made = self.file_system.memory.stored_memory(regular.data.clone(), regular.data.size())?;
        Ok(regular.memory.lock().get_or_insert(made).clone())
    }

    /// The pages of the contents, if there are any.
    pub(super) fn cached(&self) -> Option<Arc<dyn FileMemory>> {
        self.regular.as_ref()?.memory.lock().clone()
    }

    async fn read_data(&self, offset: u64, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let regular = self.regular()?;
        let rest = regular.data.size().saturating_sub(offset);
        match usize::try_from(rest).unwrap_or(usize::MAX) {
            0 => Ok(0),
            rest => self.pages(regular)?.read(offset, rest, to).await,
        }
    }

    async fn write_data(
        &self,
        at: WriteAt,
        limit: u64,
        from: &mut dyn UserBuffer,
    ) -> Result<(usize, u64), AttemptError> {
        let regular = self.regular()?;
        let _alone = regular.writing.lock().await;
        if self.file_system.is_read_only() {
            return Err(Error::EROFS.into());
        }
        let size = regular.data.size();
        let offset = match at {
            WriteAt::Offset(offset) => offset,
            WriteAt::End => size,
        };
        if offset >= limit {
            return Err(Error::EFBIG.into());
        }
        let mut room = usize::try_from(limit - offset).unwrap_or(usize::MAX).min(from.remaining()).min(STEP);
        let growth = (offset + room as u64).saturating_sub(size.max(offset));
        if growth > 0 {
            // What has no room is left to the next step, which is told.
            room -= (growth - self.file_system.reserve(growth).await?) as usize;
        }
        let pages = self.pages(regular)?;
        let written = Written(regular, offset..offset + room as u64);
        let reach = regular.data.reach(offset + room as u64);
        if growth > 0 {
            // If the write is given up, its pages may have been written back.
            self.is_dirty();
        }
        let count = pages.write(offset, room, from).await?;
        drop(written);
        regular.data.grow(offset + count as u64);
        drop(reach);
        self.modified_now();
        Ok((count, offset + count as u64))
    }

    async fn resize(&self, size: u64) -> Result<()> {
        let regular = self.regular()?;
        let _alone = regular.writing.lock().await;
        let before = regular.data.size();
        let memory = self.pages(regular)?;
        if size < before {
            // Pages after the new end are not written any more, and what is written until the file
            // server knows the new size is cut off there.
            regular.data.set_size(size);
        }
        memory.truncate(size).await;
        let change = ninep::AttributeChange { size: Some(size), ..Default::default() };
        let alone = regular.data.alone().await;
        regular.data.may_be_stored(size);
        let done = self.file_system.change(&Call::SetAttributes { fid: self.fid(), change }).await;
        if let Err(error) = done {
            regular.data.set_size(before);
            return Err(error);
        }
        regular.data.set_size(size);
        regular.data.has_hole(before..size);
        regular.data.is_stored(size);
        drop(alone);
        self.refresh_blocks().await;
        self.modified_now();
        Ok(())
    }

    /// Loads how much space the file has.
    async fn refresh_blocks(&self) {
        let Ok(reply) = self.file_system.session.call(&Call::GetAttributes { fid: self.fid() }).await else {
            return;
        };
        if let Ok(new) = reply.read(Body::attributes) {
            self.attributes.lock().blocks = new.blocks;
            if let Some(regular) = &self.regular {
                regular.data.has_blocks(new.blocks);
            }
        }
    }

    /// An attribute may have got a block of its own, or lost it.
    pub(super) fn has_other_blocks(&self) {
        if let Some(regular) = &self.regular {
            regular.data.forget_blocks();
        }
    }

    /// How many blocks of 512 bytes data will get that are in memory only.
    fn blocks_to_come(&self) -> u64 {
        let (Some(regular), Some(memory)) = (&self.regular, self.cached()) else { return 0 };
        if !self.late.lock().modified {
            return 0;
        }
        let mut pages = 0;
        memory.each_unwritten(0, &mut |offset, _| pages += u64::from(regular.data.lacks_space(offset)));
        pages * (PAGE_SIZE as u64 / SECTOR)
    }

    /// Gives the file server the data and the times that it does not have.
    pub(super) async fn write_back(&self) -> Result<()> {
        self.note_mapped_write();
        let late = *self.late.lock();
        let written = match &self.regular {
            Some(regular) => {
                let stored = regular.store_pages().await;
                stored.and(self.cut(regular).await)
            }
            None => Ok(()),
        };
        if late == Late::default() {
            return written;
        }
        let (accessed, modified) = {
            let attributes = self.attributes.lock();
            (attributes.accessed, attributes.modified)
        };
        let change = ninep::AttributeChange {
            accessed: late.accessed.then_some(to(accessed)),
            modified: late.modified.then_some(to(modified)),
            // A read is no change. If it were one, the change would be later than the access, and
            // the next read after a mount would change the time of the access again.
            changed: late.modified,
            ..Default::default()
        };
        self.file_system.change(&Call::SetAttributes { fid: self.fid(), change }).await?;
        self.were_sent(accessed, modified);
        match self.regular.as_ref().and_then(|regular| regular.data.blocks()) {
            Some(blocks) => self.attributes.lock().blocks = blocks,
            None if late.modified => self.refresh_blocks().await,
            None => {}
        }
        written
    }

    /// Cuts the file at the file server to what it is, if a write was given up after its pages were
    /// written back. No write is under way then.
    async fn cut(&self, regular: &Regular) -> Result<()> {
        if !regular.data.is_too_long() {
            return Ok(());
        }
        let Some(_alone) = regular.writing.try_lock() else { return Ok(()) };
        let alone = regular.data.alone().await;
        let size = regular.data.size();
        let change = ninep::AttributeChange { size: Some(size), ..Default::default() };
        self.file_system.change(&Call::SetAttributes { fid: self.fid(), change }).await?;
        regular.data.may_be_stored(size);
        drop(alone);
        Ok(())
    }

    /// Records that the file server has these times.
    fn were_sent(&self, accessed: Time, modified: Time) {
        let mut late = self.late.lock();
        let attributes = self.attributes.lock();
        late.accessed &= attributes.accessed != accessed;
        late.modified &= attributes.modified != modified;
    }

    /// Forgets where the data are on the disk.
    pub(super) fn forget_places(&self) {
        if let Some(regular) = &self.regular {
            regular.data.forget_places();
        }
    }

    /// Whether the file is open for writing.
    pub(super) fn has_writers(&self) -> bool {
        self.hooks.has_writers()
    }

    /// How many names are kept with this node.
    pub(super) fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed) as usize
    }

    /// Whether the file server has all times and all data, after they were written. With `unused`
    /// no program has the file open or mapped.
    pub(super) fn is_clean(&self, unused: bool) -> bool {
        let mapped = |regular: &Regular| {
            if unused && regular.was_mapped.swap(false, Ordering::Relaxed) {
                // A program may have written after the pages were looked at.
                regular.note_written(WHOLE);
            }
            regular.was_mapped.load(Ordering::Relaxed)
        };
        *self.late.lock() == Late::default() && !self.regular.as_ref().is_some_and(mapped)
    }

    async fn change_attributes(&self, change: AttributeChange) -> Result<()> {
        self.note_mapped_write();
        let now = self.now();
        let set = |time: Option<SetTime>| {
            time.map(|time| match time {
                SetTime::Now => now,
                SetTime::To(to) => self::time(to),
            })
        };
        let old = Mode::new(self.attributes.lock().mode as u16);
        let mode = match change.mode {
            None if change.remove_mode.is_empty() => None,
            mode => Some(u32::from(mode.unwrap_or(old).difference(change.remove_mode).bits())),
        };
        let (accessed, modified) = (set(change.accessed), set(change.modified));
        let (user, group) = (change.user, change.group);
        let request = ninep::AttributeChange {
            mode,
            user,
            group,
            size: None,
            accessed: accessed.map(to),
            modified: modified.map(to),
            changed: true,
        };
        self.file_system.change(&Call::SetAttributes { fid: self.fid(), change: request }).await?;
        let is_dirty = self.file_system.dirty.lock().contains_key(&self.number);
        {
            let mut attributes = self.attributes.lock();
            attributes.changed = now;
            attributes.user = user.unwrap_or(attributes.user);
            attributes.group = group.unwrap_or(attributes.group);
            attributes.accessed = accessed.unwrap_or(attributes.accessed);
            attributes.modified = modified.unwrap_or(attributes.modified);
        }
        // A page that is written later changes the time at the file server, which then gets this
        // one again.
        if modified.is_some() && is_dirty {
            self.late.lock().modified = true;
        }
        let set_id = (u32::from(old.bits()) | mode.unwrap_or_default()) & SET_ID != 0;
        if !set_id {
            let mut attributes = self.attributes.lock();
            attributes.mode = mode.map_or(attributes.mode, |mode| attributes.mode & !PERMISSIONS | mode);
        } else if mode.is_some() || user.is_some() || group.is_some() {
            // The file server may have taken set-id bits away.
            let reply = self.file_system.session.call(&Call::GetAttributes { fid: self.fid() }).await?;
            self.attributes.lock().mode = reply.read(Body::attributes)?.mode;
        }
        if let Some(mode) = mode {
            self.change_list(Mode::new(mode as u16)).await?;
        }
        Ok(())
    }

    async fn change_space(&self, offset: u64, length: u64, keep_size: bool, punch: bool) -> Result<()> {
        let regular = self.regular()?;
        let _alone = regular.writing.lock().await;
        let end = offset.checked_add(length).ok_or(Error::EFBIG)?;
        let memory = self.pages(regular)?;
        let change = match (punch, keep_size) {
            (true, _) => SpaceChange::Punch,
            (false, true) => SpaceChange::Keep,
            (false, false) => SpaceChange::Grow,
        };
        // The file server knows all data then, and none of those that it frees are in memory.
        memory.write_back(0, u64::MAX, false).await?;
        if punch {
            memory.write_back(offset, end, true).await?;
        }
        let call = Call::Allocate { fid: self.fid(), offset, length, change };
        let alone = regular.data.alone().await;
        self.file_system.change(&call).await?;
        drop(alone);
        if punch {
            memory.write_back(offset, end, true).await?;
        }
        if change == SpaceChange::Grow {
            regular.data.grow(end);
            regular.data.is_stored(end);
        }
        self.refresh_blocks().await;
        self.modified_now();
        Ok(())
    }

    /// The first offset from `offset` on that is data, or with `hole` is not.
    async fn seek(&self, mut offset: u64, hole: bool) -> Result<u64> {
        let regular = self.regular()?;
        let size = regular.data.size();
        if offset >= size {
            return Err(Error::ENXIO);
        }
        self.write_back().await?;
        while offset < size {
            let call = Call::Map { fid: self.fid(), offset, length: size - offset };
            let reply = self.file_system.session.call(&call).await?;
            let (length, is_data) = match reply.read(Body::mapped)? {
                Mapped::Hole { length } | Mapped::Unwritten { length, .. } => (length, false),
                Mapped::Data { length, .. } => (length, true),
            };
            if is_data != hole {
                return Ok(offset);
            }
            offset = offset.saturating_add(length);
        }
        if hole { Ok(size) } else { Err(Error::ENXIO) }
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

impl Vnode for Node {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.file_system.clone()
    }

    fn metadata(&self) -> Metadata {
        self.note_mapped_write();
        let attributes = *self.attributes.lock();
        let times = [attributes.accessed, attributes.modified, attributes.changed].map(timestamp);
        let size = self.regular.as_ref().map_or(attributes.size, |regular| regular.data.size());
        let attributes = Attributes { blocks: attributes.blocks + self.blocks_to_come(), ..attributes };
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
        if self.has_no_name() {
            return None;
        }
        self.above().map(|parent| parent as VnodeRef)
    }

    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        self.place.lock().as_ref().map(|(parent, name)| (parent.clone() as VnodeRef, name.clone()))
    }

    fn lookup<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        if !self.is_directory() {
            return MaybeReady::ready(Err(Error::ENOTDIR));
        }
        match self.known(name) {
            Some(node) => MaybeReady::ready(Ok(node as VnodeRef)),
            None => MaybeReady::pending(async move { Ok(self.find(name).await? as VnodeRef) }),
        }
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
        MaybeReady::pending(Node::move_name(from, to, exchange))
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
            let reply = self.file_system.session.call(&Call::ReadLink { fid: self.fid() }).await?;
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

    fn allocate(&self, offset: u64, length: u64, keep_size: bool, punch: bool) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(self.change_space(offset, length, keep_size, punch))
    }

    fn seek_data(&self, offset: u64, hole: bool) -> MaybeReady<'_, Result<u64>> {
        MaybeReady::pending(self.seek(offset, hole))
    }

    fn extents(&self) -> MaybeReady<'_, Result<(Device, Vec<Extent>)>> {
        MaybeReady::pending(async move {
            self.synchronize().await?;
            self.regular.as_ref().ok_or(Error::EOPNOTSUPP)?.data.extents().await
        })
    }

    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(async move {
            self.write_back().await?;
            let call = Call::Synchronize { fid: self.fid(), data_only: false };
            self.file_system.session.perform(&call).await
        })
    }

    fn change(&self, change: AttributeChange) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(self.change_attributes(change))
    }

    fn touch(&self, age: i64) {
        if self.file_system.is_read_only() {
            return;
        }
        let now = self.now();
        {
            let mut attributes = self.attributes.lock();
            let [accessed, modified, changed] =
                [attributes.accessed, attributes.modified, attributes.changed].map(timestamp);
            let is_old = timestamp(now).seconds.saturating_sub(accessed.seconds) >= age;
            if !is_old && accessed > modified && accessed > changed {
                return;
            }
            attributes.accessed = now;
        }
        self.late.lock().accessed = true;
        self.is_dirty();
    }

    fn memory(&self) -> Result<Arc<dyn FileMemory>> {
        let memory = self.pages(self.regular.as_ref().ok_or(Error::ENODEV)?)?;
        // Pages may be written through a mapping from now on.
        if let Some(regular) = &self.regular {
            regular.was_mapped.store(true, Ordering::Relaxed);
        }
        self.is_dirty();
        Ok(memory)
    }

    fn note_mapped_writes(&self) {
        self.note_mapped_write();
    }

    fn keeps_lists(&self) -> bool {
        true
    }

    fn access_list(&self) -> Option<AccessList> {
        self.list_of_kind(ListKind::Access)
    }

    fn default_list(&self) -> Option<AccessList> {
        self.list_of_kind(ListKind::Default)
    }

    fn has_attributes(&self) -> bool {
        self.may_have_attributes()
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
}
