//! A file system that is mounted, and the files that the client has numbers for.

use crate::attributes::{self, REGULAR, TYPE};
use crate::directory;
use crate::failure::{Failure, number};
use crate::xattr::{self, Value};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use ninep::{
    AttributeChange, Attributes, Entry, EntryList, Fid, FileSystemStatus, Mapped, Qid, Resume, SpaceChange,
};
use rsext4::{
    BlockIo, Clock, DeviceNumber, DirectoryReader, Ext4, Ext4ErrorKind, Ext4Result, FileExtent,
    FileExtentState, FileExtentTarget, FileName, FilePermissions, InodeInfo, InodeNumber, MountOptions,
    MountServices, MountedServices, MutationContext, NoopObserver, PreallocationOptions, RangeOperation,
    RenameOptions, SpecialInodeKind, UnlinkOutcome,
};

/// How many extents are looked at for one answer.
const EXTENTS: usize = 1;
/// After so many changes the journal is emptied, which bounds the memory that it takes; a request
/// to store everything does that after fewer.
const MOST_CHANGES: u32 = 200;
const SOME_CHANGES: u32 = 64;
/// How many entries of a directory are read at a time.
const ENTRIES: usize = 64;

/// What a number of the client's stands for.
struct File {
    inode: InodeNumber,
    /// What is remembered of a directory between two requests.
    reader: Option<DirectoryReader>,
    /// The extended attribute that the number stands for, if it does.
    value: Option<Value>,
}

/// A file that the client has numbers for.
#[derive(Default)]
struct Held {
    count: u32,
    /// The file has no name any more: it is freed with its last number.
    has_no_name: bool,
}

/// A mounted file system.
pub(crate) struct Mounted<D: BlockIo, C> {
    ext4: Ext4<D, MountedServices<(), NoopObserver>>,
    clock: C,
    files: BTreeMap<Fid, File>,
    held: BTreeMap<u32, Held>,
    /// How many changes there were since the journal was emptied.
    changes: u32,
    read_only: bool,
    /// Files that have lost their names and are used no more.
    unused: Vec<InodeNumber>,
    /// Files in which operations of the running transaction have changed data or space. Such an
    /// operation must not be given again when the client has used a place that it learned
    /// afterwards: the data that are there would be changed, or the space be elsewhere.
    changed: BTreeSet<u32>,
    /// Whether the client gives operations again that are lost.
    resuming: bool,
}

type Done<T> = Result<T, Failure>;

fn name(bytes: &[u8]) -> Done<FileName<'_>> {
    if bytes.len() > 255 {
        return Err(Failure(number::ENAMETOOLONG));
    }
    let name = FileName::new(bytes).map_err(|_| Failure(number::EINVAL))?;
    if name.is_reserved() { Err(Failure(number::EINVAL)) } else { Ok(name) }
}

/// Mounts the file system of a disk.
fn open<D: BlockIo>(
    disk: D,
    clock: &(impl Clock + Clone + Send + 'static),
    read_only: bool,
    resume: bool,
) -> Ext4Result<Ext4<D, MountedServices<(), NoopObserver>>> {
    let services = MountServices::new(clock.clone(), (), NoopObserver);
    // A disk that cannot be written cannot have its journal replayed.
    let replay_journal = !disk.capabilities().read_only;
    let options = MountOptions { readonly: read_only, replay_journal, block_validity: true, resume };
    Ext4::mount(disk, services, options)
}

impl<D: BlockIo, C: Clock + Clone + Send + 'static> Mounted<D, C> {
    /// Mounts the file system of a disk: replays its journal, and frees the files that had lost
    /// their names. If it is to resume, [`Resume::End`] frees them.
    pub(crate) fn mount(disk: D, clock: C, read_only: bool, resume: bool) -> Ext4Result<Mounted<D, C>> {
        let ext4 = open(disk, &clock, read_only, resume)?;
        let (files, held) = (BTreeMap::new(), BTreeMap::new());
        let (unused, changed) = (Vec::new(), BTreeSet::new());
        Ok(Mounted { ext4, clock, files, held, changes: 0, read_only, unused, changed, resuming: resume })
    }

    /// The number of the running transaction, or of the first one since the mount. `None`: there is
    /// no journal.
    pub(crate) fn transaction(&self, first: bool) -> Option<u32> {
        let running = self.ext4.transaction()?;
        Some(if first { self.ext4.recovered_transaction() } else { running })
    }

    /// Makes room for a change, and counts it.
    pub(crate) fn prepare(&mut self) -> Done<()> {
        self.changes += 1;
        let before = self.ext4.transaction();
        self.ext4.make_room()?;
        if self.ext4.transaction() != before {
            self.changed.clear();
        }
        Ok(())
    }

    /// Whether an extended attribute is set when this number is forgotten.
    pub(crate) fn sets_attribute(&self, fid: Fid) -> bool {
        let value = self.files.get(&fid).and_then(|file| file.value.as_ref());
        matches!(value, Some(Value::Write { .. } | Value::Remove(_)))
    }

    /// Prepares an operation that may change data or space of a file, and may need several
    /// transactions: what was answered before must be in the first of them.
    fn will_change(&mut self, inode: InodeNumber) -> Done<()> {
        if self.ext4.transaction().is_some() {
            self.ext4.write_caches()?;
            self.changed.insert(inode.raw());
        }
        Ok(())
    }

    /// Commits the operations that have changed data or space of a file, before a place in it is
    /// said.
    fn settle(&mut self, inode: InodeNumber) -> Done<()> {
        if self.changed.contains(&inode.raw()) {
            self.ext4.sync()?;
            self.changed.clear();
        }
        Ok(())
    }

    /// Frees the files that are used no more, and empties the journal if it is time.
    pub(crate) fn finish(&mut self) {
        // An error is one of the disk or the journal, which all further requests meet.
        let _ = self.free_unused();
        if self.changes >= MOST_CHANGES && !self.read_only && !self.resuming {
            self.changes = 0;
            self.changed.clear();
            let _ = self.ext4.checkpoint();
        }
    }

    fn free_unused(&mut self) -> Done<()> {
        while let Some(inode) = self.unused.pop() {
            self.free(inode)?;
        }
        Ok(())
    }

    fn free(&mut self, inode: InodeNumber) -> Done<()> {
        self.prepare()?;
        self.ext4.write_caches()?;
        Ok(self.ext4.reap_unlinked_inode(inode)?)
    }

    /// Whether the server is not yet where the one before it was.
    pub(crate) fn is_resuming(&self) -> bool {
        self.resuming
    }

    /// A step by which the server gets to where the one before was. The client names a file when it
    /// is to be used, in the order of the operations. No file is freed before the number is chosen
    /// for another one.
    pub(crate) fn resume(&mut self, step: Resume) -> Done<()> {
        if !self.resuming {
            return Err(Failure(number::EINVAL));
        }
        let valid = |inode: u64| {
            let number = u32::try_from(inode).ok().and_then(|raw| InodeNumber::new(raw).ok());
            number.ok_or(Failure(number::ENOENT))
        };
        match step {
            Resume::Reserve { place, length } => self.ext4.reserve(place, length),
            Resume::Name { fid, inode } => {
                let inode = valid(inode)?;
                if self.files.get(&fid).is_some_and(|file| file.inode == inode) {
                    return Ok(());
                }
                let has_no_name = self.ext4.inode_state(inode)?.ok_or(Failure(number::ENOENT))?;
                self.hold(fid, inode)?;
                self.held.entry(inode.raw()).or_default().has_no_name = has_no_name;
            }
            Resume::Choose { inode } => {
                let inode = valid(inode)?;
                match self.ext4.inode_state(inode)? {
                    None => {}
                    Some(false) => return Err(Failure(number::EEXIST)),
                    Some(true) => {
                        self.files.retain(|_, file| file.inode != inode);
                        self.held.remove(&inode.raw());
                        self.free(inode)?;
                    }
                }
                self.ext4.choose_inode(Some(inode));
            }
            Resume::Place { fid, offset, length, place } => {
                let inode = self.inode(fid)?;
                self.is_regular(inode)?;
                self.ext4.place_inode_at(inode, offset, length, place)?;
                self.ext4.release_data(place, length)?;
            }
            // The server has the clock.
            Resume::Time { .. } => {}
            Resume::End => {
                self.ext4.unreserve();
                if !self.read_only {
                    self.ext4.write_caches()?;
                    let held = &self.held;
                    self.ext4.free_orphans(|inode| held.contains_key(&inode))?;
                }
                self.resuming = false;
            }
        }
        Ok(())
    }

    /// Mounts the file system again, for writing or only for reading, as it is on the disk then: a
    /// program may have repaired it while it could only be read. Numbers of files stay.
    pub(crate) fn remount(&mut self, disk: &D, read_only: bool) -> Done<()>
    where
        D: Clone,
    {
        if read_only == self.read_only {
            return Ok(());
        }
        let is_written = |file: &File| !matches!(file.value, None | Some(Value::Read(_)));
        if self.held.values().any(|held| held.has_no_name) || self.files.values().any(is_written) {
            return Err(Failure(number::EBUSY));
        }
        self.ext4.unmount()?;
        let opened = open(disk.clone(), &self.clock, read_only, false);
        let done = match opened {
            Ok(ext4) => {
                (self.ext4, self.read_only) = (ext4, read_only);
                Ok(())
            }
            Err(error) => {
                // If it cannot be mounted as before either, all requests fail from now on.
                self.ext4 = open(disk.clone(), &self.clock, self.read_only, false)?;
                Err(error.into())
            }
        };
        self.changes = 0;
        self.changed.clear();
        self.files.values_mut().for_each(|file| file.reader = None);
        done
    }

    /// Brings everything to the disk and marks the file system as clean.
    pub(crate) fn unmount(&mut self) -> Done<()> {
        while let Some((&fid, _)) = self.files.first_key_value() {
            // The value of an extended attribute that is not complete is lost.
            let _ = self.forget(fid);
        }
        self.free_unused()?;
        Ok(self.ext4.unmount()?)
    }

    /// Gives the root directory a number.
    pub(crate) fn root(&mut self, fid: Fid) -> Done<Qid> {
        let root = self.ext4.root_inode();
        let info = self.ext4.inode(root)?;
        self.hold(fid, root)?;
        Ok(attributes::qid(&info))
    }

    fn file(&self, fid: Fid) -> Done<&File> {
        self.files.get(&fid).ok_or(Failure(number::EBADF))
    }

    fn inode(&self, fid: Fid) -> Done<InodeNumber> {
        let file = self.file(fid)?;
        if file.value.is_some() { Err(Failure(number::EBADF)) } else { Ok(file.inode) }
    }

    /// Carries out an operation that allocates. Space that was freed a short time ago can be had
    /// only after the freeing is on the disk, so that comes first if there is no other.
    fn with_space<T>(
        &mut self,
        mut operation: impl FnMut(&mut Ext4<D, MountedServices<(), NoopObserver>>) -> Ext4Result<T>,
    ) -> Done<T> {
        match operation(&mut self.ext4) {
            Err(error) if error.kind() == Ext4ErrorKind::NoSpace => {
                self.ext4.sync()?;
                Ok(operation(&mut self.ext4)?)
            }
            done => Ok(done?),
        }
    }

    fn is_regular(&mut self, inode: InodeNumber) -> Done<()> {
        match u32::from(self.ext4.inode(inode)?.mode) & TYPE {
            REGULAR => Ok(()),
            _ => Err(Failure(number::EINVAL)),
        }
    }

    fn is_free(&self, fid: Fid) -> Done<()> {
        if self.files.contains_key(&fid) { Err(Failure(number::EBUSY)) } else { Ok(()) }
    }

    fn hold(&mut self, fid: Fid, inode: InodeNumber) -> Done<()> {
        self.is_free(fid)?;
        self.files.insert(fid, File { inode, reader: None, value: None });
        self.held.entry(inode.raw()).or_default().count += 1;
        Ok(())
    }

    fn attributes_of(&mut self, info: &InodeInfo) -> Done<Attributes> {
        let mut attributes = attributes::attributes(info, self.ext4.statfs().block_size);
        if self.ext4.list_xattrs(info.number)?.iter().any(|name| xattr::is_list(name.namespace)) {
            attributes.qid.kind |= Qid::LISTS;
        }
        Ok(attributes)
    }

    /// The longest text of a symbolic link: a block, with the zero after it.
    fn link_maximum(&self) -> usize {
        (self.ext4.statfs().block_size as usize).saturating_sub(1)
    }

    /// Forgets a number. An extended attribute is set then, and a file without names is freed with
    /// its last number.
    pub(crate) fn forget(&mut self, fid: Fid) -> Done<()> {
        let file = self.files.remove(&fid).ok_or(Failure(number::EBADF))?;
        let done = match &file.value {
            Some(Value::Write { name, value, size, mode }) if value.len() == *size => {
                let (space, name) = xattr::parse(name)?;
                let value = xattr::to_disk(space, value)?;
                self.ext4.set_xattr(file.inode, space, name, &value, *mode).map_err(xattr_failure)
            }
            Some(Value::Write { .. }) => Err(Failure(number::EINVAL)),
            Some(Value::Remove(name)) => {
                let (space, name) = xattr::parse(name)?;
                self.ext4.remove_xattr(file.inode, space, name).map_err(xattr_failure)
            }
            Some(Value::Read(_)) | None => Ok(()),
        };
        let Some(held) = self.held.get_mut(&file.inode.raw()) else { return done };
        held.count -= 1;
        if held.count == 0 {
            let has_no_name = held.has_no_name;
            self.held.remove(&file.inode.raw());
            if has_no_name {
                self.is_unused(file.inode);
            }
        }
        done
    }

    /// A file has lost its last name, and no number stands for it. It is freed when the request is
    /// answered.
    fn is_unused(&mut self, inode: InodeNumber) {
        if !self.resuming {
            self.unused.push(inode);
        }
    }

    /// Remembers that a file that has lost its last name is to be freed.
    fn lost_a_name(&mut self, outcome: UnlinkOutcome) {
        if !outcome.requires_reap() {
            return;
        }
        match self.held.get_mut(&outcome.inode.raw()) {
            Some(held) => held.has_no_name = true,
            None => self.is_unused(outcome.inode),
        }
    }

    pub(crate) fn find(&mut self, fid: Fid, new: Fid, bytes: &[u8]) -> Done<Attributes> {
        let directory = self.inode(fid)?;
        self.is_free(new)?;
        let found = self.ext4.lookup_child(directory, name(bytes)?)?;
        let info = found.ok_or(Failure(number::ENOENT))?;
        self.hold(new, info.number)?;
        self.attributes_of(&info)
    }

    /// Makes a file in a directory. `mode` has its type.
    pub(crate) fn make(
        &mut self,
        numbers: (Fid, Fid),
        bytes: &[u8],
        mode: u32,
        owner: (u32, u32),
        device: (u32, u32),
        target: &[u8],
    ) -> Done<Attributes> {
        let made = self.make_chosen(numbers, bytes, mode, owner, device, target);
        self.ext4.choose_inode(None);
        made
    }

    fn make_chosen(
        &mut self,
        (fid, new): (Fid, Fid),
        bytes: &[u8],
        mode: u32,
        (user, group): (u32, u32),
        (major, minor): (u32, u32),
        target: &[u8],
    ) -> Done<Attributes> {
        let (directory, name) = (self.inode(fid)?, name(bytes)?);
        self.is_free(new)?;
        let context = MutationContext::new(user, group, 0, 0);
        let permissions = FilePermissions::new((mode & 0o7777) as u16)?;
        let device = || DeviceNumber::new(major, minor);
        let special = match mode & TYPE {
            REGULAR => {
                let made =
                    self.with_space(|ext4| ext4.create_regular_file(context, directory, name, permissions))?;
                return self.made(new, &made);
            }
            attributes::DIRECTORY => {
                let made =
                    self.with_space(|ext4| ext4.create_directory(context, directory, name, permissions))?;
                return self.made(new, &made);
            }
            attributes::SYMBOLIC_LINK => {
                if target.is_empty() || target.len() > self.link_maximum() {
                    return Err(Failure(number::ENAMETOOLONG));
                }
                let made = self.with_space(|ext4| ext4.create_symlink(context, directory, name, target))?;
                return self.made(new, &made);
            }
            attributes::FIFO => SpecialInodeKind::Fifo,
            attributes::SOCKET => SpecialInodeKind::Socket,
            attributes::CHARACTER_DEVICE => SpecialInodeKind::CharacterDevice(device()?),
            attributes::BLOCK_DEVICE => SpecialInodeKind::BlockDevice(device()?),
            _ => return Err(Failure(number::EINVAL)),
        };
        let made = self
            .with_space(|ext4| ext4.create_special_inode(context, directory, name, permissions, special))?;
        self.made(new, &made)
    }

    fn made(&mut self, new: Fid, info: &InodeInfo) -> Done<Attributes> {
        self.hold(new, info.number)?;
        self.attributes_of(info)
    }

    pub(crate) fn link(&mut self, directory: Fid, fid: Fid, bytes: &[u8]) -> Done<()> {
        let (directory, target) = (self.inode(directory)?, self.inode(fid)?);
        // A file that has lost its last name gets none again.
        if self.held.get(&target.raw()).is_some_and(|held| held.has_no_name) {
            return Err(Failure(number::ENOENT));
        }
        let name = name(bytes)?;
        self.with_space(|ext4| ext4.hard_link(target, directory, name))?;
        Ok(())
    }

    pub(crate) fn unlink(&mut self, fid: Fid, bytes: &[u8], directory: bool) -> Done<()> {
        let (parent, name) = (self.inode(fid)?, name(bytes)?);
        let outcome = match directory {
            true => self.ext4.remove_empty_directory(parent, name)?,
            false => self.ext4.unlink(parent, name)?,
        };
        self.lost_a_name(outcome);
        Ok(())
    }

    pub(crate) fn rename(
        &mut self,
        (from, old): (Fid, &[u8]),
        (to, new): (Fid, &[u8]),
        exchange: bool,
    ) -> Done<()> {
        let (from, to) = (self.inode(from)?, self.inode(to)?);
        let options = if exchange { RenameOptions::EXCHANGE } else { RenameOptions::REPLACE };
        let (old, new) = (name(old)?, name(new)?);
        let outcome = self.with_space(|ext4| ext4.rename(from, old, to, new, options))?;
        if let Some(replaced) = outcome.replaced {
            self.lost_a_name(replaced);
        }
        Ok(())
    }

    pub(crate) fn read_link(&mut self, fid: Fid) -> Done<Vec<u8>> {
        let inode = self.inode(fid)?;
        let info = self.ext4.inode(inode)?;
        if u32::from(info.mode) & TYPE != attributes::SYMBOLIC_LINK {
            return Err(Failure(number::EINVAL));
        }
        let length = usize::try_from(info.size).unwrap_or(usize::MAX);
        if length > self.link_maximum() {
            return Err(Failure(number::EIO));
        }
        let mut text = vec![0; length];
        let count = self.ext4.read_inode(inode, 0, &mut text)?;
        text.truncate(count);
        Ok(text)
    }

    pub(crate) fn attributes(&mut self, fid: Fid) -> Done<Attributes> {
        let inode = self.inode(fid)?;
        let info = self.ext4.inode(inode)?;
        self.attributes_of(&info)
    }

    pub(crate) fn change(&mut self, fid: Fid, change: &AttributeChange) -> Done<()> {
        let inode = self.inode(fid)?;
        if let Some(size) = change.size {
            self.is_regular(inode)?;
            let before = self.ext4.inode(inode)?.size;
            if size <= before && size.is_multiple_of(self.ext4.statfs().block_size) {
                // Whole blocks are freed, which the running transaction gives to no file, and no
                // data are changed.
                self.ext4.write_caches()?;
            } else {
                self.will_change(inode)?;
            }
            self.ext4.truncate_inode(inode, size)?;
        }
        let before = self.ext4.inode(inode)?;
        let update = attributes::update(change, &before, &self.clock)?;
        self.ext4.update_inode_metadata(inode, update)?;
        Ok(())
    }

    /// Entries of a directory, of at most `count` bytes.
    pub(crate) fn entries(&mut self, fid: Fid, mut position: u64, count: usize) -> Done<EntryList> {
        let directory = self.inode(fid)?;
        let info = self.ext4.inode(directory)?;
        let indexed = info.flags.contains(rsext4::InodeFlags::DIRECTORY_INDEX);
        let file = self.files.get_mut(&fid).ok_or(Failure(number::EBADF))?;
        let mut reader = match file.reader.take() {
            Some(reader) => reader,
            None => self.ext4.open_directory_reader(directory)?,
        };
        let mut list = EntryList::new(count);
        loop {
            let at = directory::cursor(position, indexed);
            let entries = self.ext4.read_directory_with_reader(&mut reader, at, ENTRIES)?;
            let mut has_room = !entries.is_empty();
            for entry in &entries {
                let qid = Qid { path: entry.inode.as_u64(), ..Qid::default() };
                let next = directory::position(entry.next_cursor);
                let file_type = attributes::entry_type(entry.file_type);
                has_room = list.push(&Entry { qid, next, file_type, name: &entry.name });
                if !has_room {
                    break;
                }
                position = next;
            }
            if !has_room {
                break;
            }
        }
        if let Some(file) = self.files.get_mut(&fid) {
            file.reader = Some(reader);
        }
        Ok(list)
    }

    /// Reads data of a file or of an extended attribute; less at the end.
    pub(crate) fn read(&mut self, fid: Fid, offset: u64, bytes: &mut [u8]) -> Done<usize> {
        let file = self.file(fid)?;
        match &file.value {
            Some(Value::Read(value)) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(value.len());
                let count = bytes.len().min(value.len() - start);
                bytes[..count].copy_from_slice(&value[start..start + count]);
                Ok(count)
            }
            Some(Value::Write { .. } | Value::Remove(_)) => Err(Failure(number::EBADF)),
            None => {
                let inode = file.inode;
                Ok(self.ext4.read_inode(inode, offset, bytes)?)
            }
        }
    }

    pub(crate) fn write(&mut self, fid: Fid, offset: u64, data: &[u8]) -> Done<u32> {
        let file = self.files.get_mut(&fid).ok_or(Failure(number::EBADF))?;
        if let Some(value) = &mut file.value {
            return value.write(offset, data);
        }
        let inode = file.inode;
        self.is_regular(inode)?;
        self.will_change(inode)?;
        self.with_space(|ext4| ext4.write_inode(inode, offset, data))?;
        Ok(data.len() as u32)
    }

    /// Brings everything that was answered so far to stable storage.
    pub(crate) fn synchronize(&mut self) -> Done<()> {
        self.changed.clear();
        if self.changes < SOME_CHANGES {
            return Ok(self.ext4.sync()?);
        }
        self.changes = 0;
        Ok(self.ext4.checkpoint()?)
    }

    pub(crate) fn status(&self) -> FileSystemStatus {
        let status = self.ext4.statfs();
        FileSystemStatus {
            block_size: status.block_size as u32,
            blocks: [status.total_blocks, status.free_blocks, status.free_blocks],
            files: [status.total_inodes.into(), status.free_inodes.into()],
            identifier: 0,
            name_maximum: 255,
        }
    }

    /// Gives an extended attribute, or the list of their names, a number. Returns its size.
    pub(crate) fn find_xattr(&mut self, fid: Fid, new: Fid, name: &[u8]) -> Done<u64> {
        let inode = self.inode(fid)?;
        let value = if name.is_empty() {
            xattr::list(&self.ext4.list_xattrs(inode)?)
        } else {
            let (space, name) = xattr::parse(name)?;
            xattr::from_disk(space, self.ext4.get_xattr(inode, space, name).map_err(xattr_failure)?)?
        };
        let size = value.len() as u64;
        self.hold(new, inode)?;
        if let Some(file) = self.files.get_mut(&new) {
            file.value = Some(Value::Read(value));
        }
        Ok(size)
    }

    /// Begins to set an extended attribute: the number of the file becomes that of the attribute.
    pub(crate) fn set_xattr(&mut self, fid: Fid, name: &[u8], size: u64, flags: u32) -> Done<()> {
        self.inode(fid)?;
        let value = Value::begin(name, size, flags)?;
        let file = self.files.get_mut(&fid).ok_or(Failure(number::EBADF))?;
        file.value = Some(value);
        Ok(())
    }

    /// Gives a file another number in addition.
    pub(crate) fn number_again(&mut self, fid: Fid, new: Fid) -> Done<()> {
        let inode = self.inode(fid)?;
        self.hold(new, inode)
    }

    pub(crate) fn allocate(&mut self, fid: Fid, offset: u64, length: u64, change: SpaceChange) -> Done<()> {
        let inode = self.inode(fid)?;
        let operation = match change {
            SpaceChange::Grow => RangeOperation::Allocate(PreallocationOptions::EXTEND_SIZE),
            SpaceChange::Keep => RangeOperation::Allocate(PreallocationOptions::KEEP_SIZE),
            SpaceChange::Punch => RangeOperation::PunchHole,
        };
        self.will_change(inode)?;
        self.with_space(|ext4| ext4.operate_inode_range(inode, offset, length, operation))
    }

    /// Where the first bytes of a range of a file are, as far as that is the same for them. The
    /// client may read and write them on the disk, as long as it asks for no change of the file's
    /// data or size: the crate has none of them then.
    pub(crate) fn map(&mut self, fid: Fid, offset: u64, length: u64) -> Done<Mapped> {
        let inode = self.inode(fid)?;
        if length == 0 {
            return Err(Failure(number::EINVAL));
        }
        self.settle(inode)?;
        let found = self.ext4.inode_extents(inode, offset, length, FileExtentTarget::Data, EXTENTS)?;
        let Some(extent) = found.extents.first() else { return Ok(Mapped::Hole { length }) };
        if extent.logical_start > offset {
            return Ok(Mapped::Hole { length: (extent.logical_start - offset).min(length) });
        }
        self.mapped(*extent, offset, length)
    }

    /// Gives a range of a file space where it has none, and says where its first bytes are. The new
    /// space reads as zeros until the client has written it and [says](Self::written) so.
    pub(crate) fn place(&mut self, fid: Fid, offset: u64, length: u64) -> Done<Mapped> {
        let inode = self.inode(fid)?;
        self.is_regular(inode)?;
        self.settle(inode)?;
        let extent = self.with_space(|ext4| ext4.place_inode(inode, offset, length))?;
        self.mapped(extent, offset, length)
    }

    /// The client has written a range at its place. The journal flushes the disk before the commit
    /// of this change, so the data are on stable storage when the range is seen as written.
    /// Returns how many blocks of 512 bytes the file has.
    pub(crate) fn written(&mut self, fid: Fid, offset: u64, length: u64, size: u64) -> Done<u64> {
        let inode = self.inode(fid)?;
        self.is_regular(inode)?;
        self.with_space(|ext4| ext4.mark_written(inode, offset, length, size))?;
        Ok(self.ext4.inode(inode)?.blocks)
    }

    /// Says where a range begins, which is in this extent. The crate has none of its data then.
    fn mapped(&mut self, extent: FileExtent, offset: u64, length: u64) -> Done<Mapped> {
        let skip = offset.checked_sub(extent.logical_start).ok_or(Failure(number::EIO))?;
        let length = extent.length.saturating_sub(skip).min(length);
        if length == 0 {
            return Err(Failure(number::EIO));
        }
        let place = extent.physical_start + skip;
        let mapped = match extent.state {
            FileExtentState::Initialized => Mapped::Data { length, place },
            FileExtentState::Unwritten => Mapped::Unwritten { length, place },
            FileExtentState::Inline => return Err(Failure(number::EOPNOTSUPP)),
        };
        self.ext4.release_data(place, length)?;
        Ok(mapped)
    }
}

/// Where a file is not found, an extended attribute is not there.
fn xattr_failure(error: rsext4::Ext4Error) -> Failure {
    match Failure::from(error) {
        Failure(number::ENOENT) => Failure(number::ENODATA),
        failure => failure,
    }
}
