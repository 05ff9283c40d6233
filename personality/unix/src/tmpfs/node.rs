//! One file of a tmpfs: attributes, data, extended attributes. (The operations on directories are
//! in `names`.)

use super::directory::Entries;
use super::{FILE_ROOM, Tmpfs};
use crate::account::Charge;
use crate::file::FileObject;
use crate::sync::{Mutex, SpinGuard, SpinLock};
use crate::vfs::{
    AccessList, AttributeChange, AttributeCondition, DeviceNumber, FileMemory, FileType, Hooks, ListKind,
    Metadata, Mode, NewAttributes, NewLists, PAGE_SIZE, SealFlags, SetTime, WriteAt,
};
use crate::{AttemptError, Error, MaybeReady, Result, Timestamp, UserBuffer};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

/// A directory, and a name in it.
type Place = (Weak<Node>, Arc<[u8]>);
/// Extended attributes: values by name.
type ExtendedAttributes = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// A bit for each access control list that the file has.
fn list_bit(kind: ListKind) -> u8 {
    match kind {
        ListKind::Access => 1,
        ListKind::Default => 2,
    }
}

/// A file of a tmpfs.
pub(super) struct Node {
    /// This node, as the places of its children refer to it.
    pub(super) this: Weak<Node>,
    pub(super) file_system: Arc<Tmpfs>,
    pub(super) number: u64,
    pub(super) file_type: FileType,
    pub(super) content: Content,
    pub(super) attributes: SpinLock<Attributes>,
    /// The directory and name under which the node is linked: for a directory the only ones, for
    /// another file the latest ones. Those of a directory change only under the lock `tree`.
    pub(super) place: SpinLock<Option<Place>>,
    pub(super) hooks: Hooks,
    extended: SpinLock<ExtendedAttributes>,
    /// Which access control lists are among the extended attributes ([`list_bit`]). It is written
    /// while these are locked, and accesses are relaxed, as a list may be set at any time.
    lists: AtomicU8,
    /// Locked while the size may change.
    resizing: Mutex<()>,
    /// The charge for the bytes of [`Attributes::held`], to the user that made the file.
    charge: SpinLock<Option<Charge>>,
}

/// The contents of a file, by its type.
pub(super) enum Content {
    Directory(SpinLock<Entries>),
    Regular {
        memory: Arc<dyn FileMemory>,
    },
    /// Reads and writes of the file go to an object.
    Object(Arc<dyn FileObject>),
    Link(Box<[u8]>),
    Special(DeviceNumber),
}

impl Content {
    pub(super) fn directory() -> Content {
        Content::Directory(SpinLock::new(Entries::default()))
    }
}

#[derive(Clone)]
pub(super) struct Attributes {
    pub(super) mode: Mode,
    pub(super) links: u32,
    /// The file was made without a name (O_TMPFILE) and may get a first one.
    pub(super) unnamed: bool,
    user: u32,
    group: u32,
    size: u64,
    /// How many bytes of the file system's room the file takes.
    held: u64,
    accessed: Timestamp,
    modified: Timestamp,
    changed: Timestamp,
    created: Timestamp,
}

/// The most bytes of names and values of extended attributes that one file may have.
const EXTENDED_MAXIMUM: usize = 128 * 1024;
/// Targets of symbolic links up to this many bytes are included in the room of every file.
const SHORT_TARGET: usize = 128;
/// The size that is shown of a file that is an object: about that of its text.
const OBJECT_SIZE: u64 = 80;
/// What a directory entry adds to the size that a directory shows.
pub(super) const ENTRY_SIZE: i64 = 20;

impl Node {
    pub(super) fn new(
        file_system: &Arc<Tmpfs>,
        file_type: FileType,
        content: Content,
        attributes: NewAttributes,
    ) -> Result<Arc<Node>> {
        let held = FILE_ROOM
            + match &content {
                Content::Link(target) if target.len() > SHORT_TARGET => target.len() as u64,
                _ => 0,
            };
        let charge = attributes.account.map(|account| account.charge_memory(held).ok_or(Error::ENOSPC));
        let charge = SpinLock::new(charge.transpose()?);
        file_system.take_room(held)?;
        let now = file_system.environment.realtime();
        let size = match &content {
            Content::Link(target) => target.len() as u64,
            Content::Object(_) => OBJECT_SIZE,
            _ => 0,
        };
        let hooks = Hooks::default();
        // Only files that are made for it can be sealed.
        hooks.seals.begin(SealFlags::SEAL);
        let lists = attributes.lists;
        let node = Arc::new_cyclic(|this| Node {
            this: this.clone(),
            file_system: file_system.clone(),
            // Relaxed ordering: the numbers have to be unique, and order nothing else.
            number: file_system.next_number.fetch_add(1, Relaxed),
            file_type,
            content,
            attributes: SpinLock::new(Attributes {
                mode: attributes.mode,
                links: 0,
                unnamed: false,
                user: attributes.user,
                group: attributes.group,
                size,
                held,
                accessed: now,
                modified: now,
                changed: now,
                created: now,
            }),
            place: SpinLock::new(None),
            hooks,
            extended: SpinLock::new(BTreeMap::new()),
            lists: AtomicU8::new(0),
            resizing: Mutex::new(()),
            charge,
        });
        lists.map_or(Ok(()), |lists| node.begin_lists(&lists))?;
        Ok(node)
    }

    pub(super) fn become_root(&self) {
        self.attributes.lock().links = 2;
    }

    /// Marks the file as one that was made with contents of `size` bytes and has no name yet.
    pub(super) fn begin_unnamed(&self, size: u64) {
        let mut attributes = self.attributes.lock();
        attributes.size = size;
        attributes.unnamed = true;
    }

    pub(super) fn entries(&self) -> Result<&SpinLock<Entries>> {
        match &self.content {
            Content::Directory(entries) => Ok(entries),
            _ => Err(Error::ENOTDIR),
        }
    }

    pub(super) fn file_memory(&self) -> Result<&Arc<dyn FileMemory>> {
        match &self.content {
            Content::Regular { memory } => Ok(memory),
            Content::Directory(_) => Err(Error::EISDIR),
            _ => Err(Error::EINVAL),
        }
    }

    /// Records that the directory has `links` subdirectories and `entries` entries more (or fewer).
    pub(super) fn directory_changed(&self, now: Timestamp, links: i32, entries: i64) {
        let mut attributes = self.attributes.lock();
        attributes.modified = now;
        attributes.changed = now;
        attributes.links = attributes.links.wrapping_add_signed(links);
        attributes.size = attributes.size.saturating_add_signed(entries * ENTRY_SIZE);
    }

    /// Records that the file has `links` names more (or fewer).
    pub(super) fn links_changed(&self, now: Timestamp, links: i32) {
        let mut attributes = self.attributes.lock();
        attributes.links = attributes.links.wrapping_add_signed(links);
        attributes.changed = now;
        let loses_name = links < 0 && attributes.links > 0 && self.file_type != FileType::Directory;
        drop(attributes);
        if loses_name {
            self.give_room(FILE_ROOM);
        }
    }

    /// Charges `bytes` of memory to the user and to the file system. `ENOSPC`.
    pub(super) fn take_room(&self, bytes: u64) -> Result<()> {
        self.change_charge(bytes, 0)?;
        if let Err(error) = self.file_system.take_room(bytes) {
            let _ = self.change_charge(0, bytes);
            return Err(error);
        }
        self.attributes.lock().held += bytes;
        Ok(())
    }

    fn change_charge(&self, more: u64, less: u64) -> Result<()> {
        let mut charge = self.charge.lock();
        let Some(charge) = charge.as_mut() else { return Ok(()) };
        let amount = charge.amount() + more - less;
        if charge.change_memory(amount) { Ok(()) } else { Err(Error::ENOSPC) }
    }

    /// Returns `bytes` of memory to the user's and the file system's limits.
    pub(super) fn give_room(&self, bytes: u64) {
        self.attributes.lock().held -= bytes;
        self.file_system.give_room(bytes);
        // A charge can always be made smaller.
        let _ = self.change_charge(0, bytes);
    }

    /// Takes over the time at which a program has written through a mapping.
    pub(super) fn note_mapped_writes(&self) {
        if let Content::Regular { memory } = &self.content
            && let Some(age) = memory.take_written()
        {
            let time = self.file_system.environment.realtime().before(age);
            let mut attributes = self.attributes.lock();
            attributes.modified = time;
            attributes.changed = attributes.changed.max(time);
        }
    }

    pub(super) fn status(&self) -> Metadata {
        self.note_mapped_writes();
        let blocks = match &self.content {
            Content::Regular { memory } => memory.pages() * (PAGE_SIZE as u64 / 512),
            _ => 0,
        };
        let represents = match &self.content {
            Content::Special(number) => *number,
            _ => DeviceNumber::default(),
        };
        let a = self.attributes.lock();
        Metadata {
            device: self.file_system.device,
            number: self.number,
            file_type: self.file_type,
            mode: a.mode,
            links: a.links,
            user: a.user,
            group: a.group,
            represents,
            size: a.size,
            blocks,
            block_size: PAGE_SIZE as u32,
            accessed: a.accessed,
            modified: a.modified,
            changed: a.changed,
            created: a.created,
        }
    }

    pub(super) fn read_data<'a>(
        &'a self,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        let memory = match self.file_memory() {
            Ok(memory) => memory,
            Err(error) => return MaybeReady::ready(Err(error.into())),
        };
        let rest = self.attributes.lock().size.saturating_sub(offset);
        if rest == 0 {
            return MaybeReady::ready(Ok(0));
        }
        memory.read(offset, usize::try_from(rest).unwrap_or(usize::MAX), to)
    }

    pub(super) async fn write_data(
        &self,
        at: WriteAt,
        limit: u64,
        from: &mut dyn UserBuffer,
    ) -> Result<(usize, u64), AttemptError> {
        let memory = self.file_memory()?;
        let _resizing = self.resizing.lock().await;
        let offset = match at {
            WriteAt::Offset(offset) => offset,
            WriteAt::End => self.attributes.lock().size,
        };
        if offset >= limit {
            return Err(Error::EFBIG.into());
        }
        let seals = self.hooks.seals.flags();
        let mut room = limit - offset;
        if !seals.is_empty() {
            room = room.min(self.sealed_room(seals, offset, from.remaining())?);
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        // If the future is dropped here, bytes that were copied beyond the size are not part of the
        // file.
        let count = memory.write(offset, room, from).await?;
        let end = offset + count as u64;
        let mut attributes = self.modified_now(memory);
        attributes.size = attributes.size.max(end);
        Ok((count, end))
    }

    /// The attributes of the file after it has been changed now: later than by any write through a
    /// mapping before.
    fn modified_now(&self, memory: &Arc<dyn FileMemory>) -> SpinGuard<'_, Attributes> {
        let _earlier = memory.take_written();
        let now = self.file_system.environment.realtime();
        let mut attributes = self.attributes.lock();
        attributes.modified = now;
        attributes.changed = now;
        attributes
    }

    /// How many bytes seals let a write at `offset` write; `EPERM` if none.
    fn sealed_room(&self, seals: SealFlags, offset: u64, length: usize) -> Result<u64> {
        if seals.intersects(SealFlags::NO_WRITE) {
            return Err(Error::EPERM);
        }
        let size = self.attributes.lock().size;
        if !seals.contains(SealFlags::GROW) || offset.saturating_add(length as u64) <= size {
            return Ok(u64::MAX);
        }
        // A write goes from page to page, and the page in which it would leave the file is refused
        // as a whole.
        match (size - size % PAGE_SIZE as u64).saturating_sub(offset) {
            0 => Err(Error::EPERM),
            room => Ok(room),
        }
    }

    /// Adds seals to the file while nothing is being written to it.
    pub(super) async fn add_seals(&self, seals: SealFlags) -> Result<()> {
        self.file_memory().map_err(|_| Error::EINVAL)?;
        let _resizing = self.resizing.lock().await;
        self.hooks.seals.add(seals)
    }

    pub(super) async fn resize(&self, size: u64) -> Result<()> {
        let memory = self.file_memory()?;
        let _resizing = self.resizing.lock().await;
        {
            let attributes = self.attributes.lock();
            let forbidden = match size.cmp(&attributes.size) {
                Ordering::Less => SealFlags::SHRINK,
                Ordering::Equal => SealFlags::empty(),
                Ordering::Greater => SealFlags::GROW,
            };
            if self.hooks.seals.flags().intersects(forbidden) {
                return Err(Error::EPERM);
            }
        }
        self.modified_now(memory).size = size;
        memory.truncate(size).await;
        Ok(())
    }

    pub(super) async fn allocate_range(
        &self,
        offset: u64,
        length: u64,
        keep_size: bool,
        punch: bool,
    ) -> Result<()> {
        let memory = self.file_memory()?;
        let _resizing = self.resizing.lock().await;
        let seals = self.hooks.seals.flags();
        let grows = offset.saturating_add(length) > self.attributes.lock().size;
        let forbidden = match punch {
            true => SealFlags::NO_WRITE,
            false if grows => SealFlags::GROW,
            false => SealFlags::empty(),
        };
        if seals.intersects(forbidden) {
            return Err(Error::EPERM);
        }
        memory.allocate(offset, length, punch).await?;
        let mut attributes = self.modified_now(memory);
        if !keep_size && !punch {
            attributes.size = attributes.size.max(offset + length);
        }
        Ok(())
    }

    pub(super) fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        let memory = self.file_memory()?;
        let size = self.attributes.lock().size;
        if offset >= size {
            return Err(Error::ENXIO);
        }
        // The end of a file counts as a hole.
        let end = hole.then_some(size);
        memory.seek(offset, size, hole).map(|found| found.min(size)).or(end).ok_or(Error::ENXIO)
    }

    pub(super) fn change_attributes(&self, change: &AttributeChange) {
        self.note_mapped_writes();
        if let Some(mode) = change.mode {
            self.change_list(mode);
        }
        let now = self.file_system.environment.realtime();
        let time = |set: SetTime| match set {
            SetTime::Now => now,
            SetTime::To(time) => time,
        };
        let mut attributes = self.attributes.lock();
        if let Some(mode) = change.mode {
            attributes.mode = mode;
        }
        attributes.mode.remove(change.remove_mode);
        if let Some(user) = change.user {
            attributes.user = user;
        }
        if let Some(group) = change.group {
            attributes.group = group;
        }
        if let Some(accessed) = change.accessed {
            attributes.accessed = time(accessed);
        }
        if let Some(modified) = change.modified {
            attributes.modified = time(modified);
        }
        attributes.changed = now;
    }

    pub(super) fn was_read(&self, age: i64) {
        let now = self.file_system.environment.realtime();
        let mut attributes = self.attributes.lock();
        let stale = attributes.accessed <= attributes.modified.max(attributes.changed)
            || now.seconds.saturating_sub(attributes.accessed.seconds) >= age;
        if stale {
            attributes.accessed = now;
        }
    }

    pub(super) fn extended(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.extended.lock().get(name).map(|value| value.to_vec()).ok_or(Error::ENODATA)
    }

    /// An access control list of the file.
    pub(super) fn list(&self, kind: ListKind) -> Option<AccessList> {
        if self.lists.load(Relaxed) & list_bit(kind) == 0 {
            return None;
        }
        // Only well-formed lists are kept.
        self.extended.lock().get(kind.attribute()).and_then(|bytes| AccessList::read(bytes).ok()?)
    }

    /// Gives the file the lists of a new one. `ENOSPC`.
    pub(super) fn begin_lists(&self, lists: &NewLists) -> Result<()> {
        let set = |(kind, list): (ListKind, &AccessList)| {
            self.set_extended(kind.attribute(), Some(list.bytes()), AttributeCondition::Any)
        };
        lists.kept().try_for_each(set)
    }

    /// Changes the access control list as a new mode says.
    fn change_list(&self, mode: Mode) {
        let Some(list) = self.list(ListKind::Access) else { return };
        let mut extended = self.extended.lock();
        let value = extended.get_mut(ListKind::Access.attribute());
        if let (Some(value), Ok(changed)) = (value, list.with_mode(mode)) {
            // The list is as long as before, unless it has been replaced meanwhile.
            if value.len() == changed.bytes().len() {
                value.copy_from_slice(changed.bytes());
            }
        }
    }

    pub(super) fn is_extended(&self) -> bool {
        !self.extended.lock().is_empty()
    }

    pub(super) fn extended_names(&self) -> Vec<u8> {
        let extended = self.extended.lock();
        extended.keys().flat_map(|name| name.iter().copied().chain([0])).collect()
    }

    pub(super) fn set_extended(
        &self,
        name: &[u8],
        value: Option<&[u8]>,
        condition: AttributeCondition,
    ) -> Result<()> {
        {
            let mut extended = self.extended.lock();
            let exists = extended.contains_key(name);
            match (value, condition, exists) {
                (_, AttributeCondition::Create, true) => return Err(Error::EEXIST),
                (_, AttributeCondition::Replace, false) | (None, _, false) => return Err(Error::ENODATA),
                (Some(value), _, _) => {
                    let others = extended.iter().filter(|(other, _)| &***other != name);
                    let used: usize = others.map(|(name, value)| name.len() + value.len()).sum();
                    if used + name.len() + value.len() > EXTENDED_MAXIMUM {
                        return Err(Error::ENOSPC);
                    }
                    self.take_room((name.len() + value.len()) as u64)?;
                    let old = extended.insert(name.into(), value.into());
                    if let Some(kind) = ListKind::of_attribute(name) {
                        self.lists.fetch_or(list_bit(kind), Relaxed);
                    }
                    self.give_room(old.map_or(0, |old| (name.len() + old.len()) as u64));
                }
                (None, _, true) => {
                    let old = extended.remove(name);
                    if let Some(kind) = ListKind::of_attribute(name) {
                        self.lists.fetch_and(!list_bit(kind), Relaxed);
                    }
                    self.give_room(old.map_or(0, |old| (name.len() + old.len()) as u64));
                }
            }
        }
        self.attributes.lock().changed = self.file_system.environment.realtime();
        Ok(())
    }
}

impl Drop for Node {
    /// Drops the tree below a directory without recursion: a program can make a tree that is deeper
    /// than any stack.
    fn drop(&mut self) {
        self.file_system.give_room(self.attributes.get_mut().held);
        let Content::Directory(entries) = &mut self.content else { return };
        let mut remaining = Vec::new();
        while let Some(child) = entries.get_mut().pop() {
            remaining.push(child);
        }
        while let Some(node) = remaining.pop() {
            // `None` if there is another reference to the node (a hard link, an open file): the
            // node is then kept.
            let Some(mut node) = Arc::into_inner(node) else { continue };
            if let Content::Directory(entries) = &mut node.content {
                while let Some(child) = entries.get_mut().pop() {
                    remaining.push(child);
                }
            }
        }
    }
}
