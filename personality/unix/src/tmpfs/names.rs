//! The operations on a tmpfs' directories, and the vnode interface of its files.

use super::FILE_ROOM;
use super::directory::Entries;
use super::node::{Content, Node};
use crate::file::FileObject;
use crate::sync::SpinLock;
use crate::vfs::{
    AccessList, AttributeChange, AttributeCondition, DirectoryEntry, FileMemory, FileSystem, FileType, Hooks,
    Link, ListKind, Metadata, NewAttributes, NewNode, OpenContext, Opened, RenameEnd, SealFlags, Vnode,
    VnodeRef, WriteAt,
};
use crate::{AttemptError, Error, MaybeReady, Result, UserBuffer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// The tmpfs node of a vnode; an error if the vnode is of another kind of file system.
fn node_of(vnode: &VnodeRef) -> Result<Arc<Node>> {
    let vnode: Arc<dyn Any + Send + Sync> = vnode.clone();
    vnode.downcast().map_err(|_| Error::EXDEV)
}

/// Checks that a name still refers to the file that the caller found (`None`: no file has the
/// name).
fn check_expected(entries: &Entries, name: &[u8], expected: Option<&Arc<Node>>) -> Result<()> {
    let fits = match (entries.get(name), expected) {
        (None, None) => true,
        (Some(now), Some(expected)) => Arc::ptr_eq(now, expected),
        _ => false,
    };
    if fits { Ok(()) } else { Err(Error::ESTALE) }
}

impl Node {
    /// Adds a new node to this directory, with the name `name`.
    fn add(&self, name: &[u8], node: &Arc<Node>) -> Result<()> {
        let name: Arc<[u8]> = name.into();
        let now = self.file_system.environment.realtime();
        let is_directory = node.file_type == FileType::Directory;
        let mut entries = self.entries()?.lock();
        if entries.removed {
            return Err(Error::ENOENT);
        }
        if entries.get(&name).is_some() {
            return Err(Error::EEXIST);
        }
        node.links_changed(now, if is_directory { 2 } else { 1 });
        *node.place.lock() = Some((self.this.clone(), name.clone()));
        entries.insert(name, node.clone());
        drop(entries);
        self.directory_changed(now, i32::from(is_directory), 1);
        Ok(())
    }

    fn make(&self, name: &[u8], new: NewNode<'_>, attributes: NewAttributes) -> Result<Arc<Node>> {
        if self.entries()?.lock().get(name).is_some() {
            return Err(Error::EEXIST);
        }
        let node = match new {
            NewNode::Regular => match &self.file_system.objects {
                Some(make_object) => self.object_node(make_object(&attributes)?, attributes)?,
                None => self.make_file(attributes)?,
            },
            _ if self.file_system.objects.is_some() => return Err(Error::EPERM),
            NewNode::Directory => {
                Node::new(&self.file_system, FileType::Directory, Content::directory(), attributes)?
            }
            NewNode::SymbolicLink(target) => {
                let content = Content::Link(target.into());
                Node::new(&self.file_system, FileType::SymbolicLink, content, attributes)?
            }
            NewNode::Special(file_type, number) => {
                Node::new(&self.file_system, file_type, Content::Special(number), attributes)?
            }
        };
        self.add(name, &node)?;
        Ok(node)
    }

    fn object_node(&self, object: Arc<dyn FileObject>, attributes: NewAttributes) -> Result<Arc<Node>> {
        Node::new(&self.file_system, FileType::Regular, Content::Object(object), attributes)
    }

    /// `EPERM` in a file system of objects, whose files keep the names with which they were made.
    fn check_tree(&self) -> Result<()> {
        if self.file_system.objects.is_some() { Err(Error::EPERM) } else { Ok(()) }
    }

    fn make_file(&self, attributes: NewAttributes) -> Result<Arc<Node>> {
        let fs = &self.file_system;
        let memory = fs.memory.file_memory(fs.quota.clone(), None)?;
        Node::new(fs, FileType::Regular, Content::Regular { memory }, attributes)
    }

    fn remove_file(&self, name: &[u8], victim: &Arc<Node>) -> Result<()> {
        let now = self.file_system.environment.realtime();
        let mut entries = self.entries()?.lock();
        check_expected(&entries, name, Some(victim))?;
        let removed = entries.remove(name);
        victim.links_changed(now, -1);
        drop(entries);
        drop(removed);
        self.directory_changed(now, 0, -1);
        Ok(())
    }

    /// Removes an empty directory. The caller must hold the lock `tree`.
    fn remove_directory(&self, name: &[u8], victim: &Arc<Node>) -> Result<()> {
        let now = self.file_system.environment.realtime();
        let mut entries = self.entries()?.lock();
        check_expected(&entries, name, Some(victim))?;
        close_directory(victim.entries()?)?;
        let removed = entries.remove(name);
        victim.links_changed(now, -2);
        drop(entries);
        *victim.place.lock() = None;
        drop(removed);
        self.directory_changed(now, -1, -1);
        Ok(())
    }

    /// Whether `self` is `node` or below it in the tree. The caller must hold the lock `tree`.
    fn is_below(self: &Arc<Node>, node: &Arc<Node>) -> bool {
        let mut here = self.clone();
        loop {
            if Arc::ptr_eq(&here, node) {
                return true;
            }
            let above = here.place.lock().as_ref().and_then(|(parent, _)| parent.upgrade());
            match above {
                Some(above) => here = above,
                None => return false,
            }
        }
    }
}

/// Marks an empty directory as removed; `ENOTEMPTY` if it is not empty.
fn close_directory(entries: &SpinLock<Entries>) -> Result<()> {
    let mut entries = entries.lock();
    if !entries.is_empty() {
        return Err(Error::ENOTEMPTY);
    }
    entries.removed = true;
    Ok(())
}

/// Renames a file, or exchanges two. The caller must hold the lock `tree`.
fn rename_in_tree(from: RenameEnd<'_>, to: RenameEnd<'_>, exchange: bool) -> Result<()> {
    let (old_directory, new_directory) = (node_of(from.directory)?, node_of(to.directory)?);
    let source = node_of(from.expected.ok_or(Error::ENOENT)?)?;
    let target = to.expected.map(node_of).transpose()?;
    let moves = !Arc::ptr_eq(&old_directory, &new_directory);
    let is_directory = |node: &Arc<Node>| node.file_type == FileType::Directory;
    if is_directory(&source) && new_directory.is_below(&source) {
        return Err(Error::EINVAL);
    }
    if let Some(target) = &target
        && is_directory(target)
        && old_directory.is_below(target)
    {
        return Err(if exchange { Error::EINVAL } else { Error::ENOTEMPTY });
    }
    let now = source.file_system.environment.realtime();
    let mut old_entries = old_directory.entries()?.lock();
    let mut new_entries = match moves {
        true => Some(new_directory.entries()?.lock()),
        false => None,
    };
    check_expected(&old_entries, from.name, Some(&source))?;
    let in_new = new_entries.as_deref().unwrap_or(&old_entries);
    check_expected(in_new, to.name, target.as_ref())?;
    if in_new.removed {
        return Err(Error::ENOENT);
    }
    if let (Some(target), false) = (&target, exchange)
        && is_directory(target)
    {
        close_directory(target.entries()?)?;
    }
    // Point of no return: nothing fails from here on.
    let new_name: Arc<[u8]> = to.name.into();
    let place = |node: &Node, directory: &Arc<Node>, name: Arc<[u8]>| {
        *node.place.lock() = Some((Arc::downgrade(directory), name));
    };
    let source_links = i32::from(is_directory(&source));
    let target_links = i32::from(target.as_ref().is_some_and(is_directory));
    match (&target, exchange) {
        (Some(target), true) => {
            old_entries.replace(from.name, target.clone());
            new_entries.as_deref_mut().unwrap_or(&mut old_entries).replace(to.name, source.clone());
            place(&source, &new_directory, new_name);
            place(target, &old_directory, from.name.into());
            drop((old_entries, new_entries));
            target.links_changed(now, 0);
            old_directory.directory_changed(now, target_links - source_links, 0);
            new_directory.directory_changed(now, source_links - target_links, 0);
        }
        _ => {
            old_entries.remove(from.name);
            let new = new_entries.as_deref_mut().unwrap_or(&mut old_entries);
            let replaced = new.replace(to.name, source.clone());
            if replaced.is_none() {
                new.insert(new_name.clone(), source.clone());
            }
            place(&source, &new_directory, new_name);
            drop((old_entries, new_entries));
            if let Some(target) = &target {
                if is_directory(target) {
                    *target.place.lock() = None;
                }
                target.links_changed(now, -1 - target_links);
            }
            old_directory.directory_changed(now, -source_links, -1);
            new_directory.directory_changed(now, source_links - target_links, i64::from(target.is_none()));
        }
    }
    source.links_changed(now, 0);
    Ok(())
}

impl Vnode for Node {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.file_system.clone()
    }

    fn metadata(&self) -> Metadata {
        self.status()
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
        let parent = self.place.lock().as_ref()?.0.upgrade()?;
        Some(parent)
    }

    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        let place = self.place.lock();
        let (parent, name) = place.as_ref()?;
        let parent: VnodeRef = parent.upgrade()?;
        Some((parent, name.to_vec()))
    }

    fn lookup<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(self.entries().and_then(|entries| {
            let found = entries.lock().get(name).cloned();
            found.map(|node| node as VnodeRef).ok_or(Error::ENOENT)
        }))
    }

    fn create<'a>(
        &'a self,
        name: &'a [u8],
        node: NewNode<'a>,
        attributes: NewAttributes,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(self.make(name, node, attributes).map(|node| node as VnodeRef))
    }

    fn create_object<'a>(
        &'a self,
        name: &'a [u8],
        object: Arc<dyn FileObject>,
        attributes: NewAttributes,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(self.object_node(object, attributes).and_then(|node| {
            self.add(name, &node)?;
            Ok(node as VnodeRef)
        }))
    }

    fn open(&self, _context: &OpenContext<'_>) -> MaybeReady<'_, Result<Opened>> {
        MaybeReady::ready(match &self.content {
            Content::Object(object) => Ok(Opened::Object(object.clone())),
            _ => Opened::of_type(self.file_type),
        })
    }

    fn create_unnamed(&self, attributes: NewAttributes) -> MaybeReady<'_, Result<VnodeRef>> {
        MaybeReady::ready(self.entries().and_then(|_| {
            self.check_tree()?;
            let file = self.make_file(attributes)?;
            file.begin_unnamed(0);
            Ok(file as VnodeRef)
        }))
    }

    fn link<'a>(&'a self, name: &'a [u8], target: &'a VnodeRef) -> MaybeReady<'a, Result<()>> {
        MaybeReady::ready(node_of(target).and_then(|target| {
            self.check_tree()?;
            let first = {
                let mut attributes = target.attributes.lock();
                match attributes.links {
                    // The last name of the file was removed: it cannot get another one.
                    0 if !attributes.unnamed => return Err(Error::ENOENT),
                    LINKS_MAXIMUM.. => return Err(Error::EMLINK),
                    links => {
                        attributes.unnamed = false;
                        links == 0
                    }
                }
            };
            // Each name takes as much room as a file. The first name's room is included in that of
            // the file.
            if first {
                return self.add(name, &target);
            }
            target.take_room(FILE_ROOM)?;
            self.add(name, &target).inspect_err(|_| target.give_room(FILE_ROOM))
        }))
    }

    fn remove<'a>(&'a self, name: &'a [u8], expected: &'a VnodeRef) -> MaybeReady<'a, Result<()>> {
        let victim = match node_of(expected) {
            Ok(victim) => victim,
            Err(error) => return MaybeReady::ready(Err(error)),
        };
        if victim.file_type != FileType::Directory {
            return MaybeReady::ready(self.remove_file(name, &victim));
        }
        match self.file_system.tree.try_lock() {
            Some(_tree) => MaybeReady::ready(self.remove_directory(name, &victim)),
            None => MaybeReady::pending(async move {
                let _tree = self.file_system.tree.lock().await;
                self.remove_directory(name, &victim)
            }),
        }
    }

    fn rename<'a>(
        &'a self,
        from: RenameEnd<'a>,
        to: RenameEnd<'a>,
        exchange: bool,
    ) -> MaybeReady<'a, Result<()>> {
        if let Err(error) = self.check_tree() {
            return MaybeReady::ready(Err(error));
        }
        match self.file_system.tree.try_lock() {
            Some(_tree) => MaybeReady::ready(rename_in_tree(from, to, exchange)),
            None => MaybeReady::pending(async move {
                let _tree = self.file_system.tree.lock().await;
                rename_in_tree(from, to, exchange)
            }),
        }
    }

    fn read_directory<'a>(
        &'a self,
        position: u64,
        accept: &'a mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> MaybeReady<'a, Result<()>> {
        MaybeReady::ready(self.entries().map(|entries| {
            let mut position = position;
            while let Some(next) = entries.lock().list(position, accept) {
                position = next;
            }
        }))
    }

    fn directory_end(&self) -> u64 {
        self.entries().map_or(0, |entries| entries.lock().end())
    }

    fn follow(&self) -> MaybeReady<'_, Result<Link>> {
        MaybeReady::ready(match &self.content {
            Content::Link(target) => Ok(Link::Path(target.to_vec())),
            _ => Err(Error::EINVAL),
        })
    }

    fn link_text(&self) -> MaybeReady<'_, Result<Vec<u8>>> {
        MaybeReady::ready(match &self.content {
            Content::Link(target) => Ok(target.to_vec()),
            _ => Err(Error::EINVAL),
        })
    }

    fn read<'a>(
        &'a self,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        self.read_data(offset, to)
    }

    fn write<'a>(
        &'a self,
        at: WriteAt,
        limit: u64,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<(usize, u64), AttemptError>> {
        MaybeReady::local(self.write_data(at, limit, from))
    }

    fn truncate(&self, size: u64) -> MaybeReady<'_, Result<()>> {
        MaybeReady::local(self.resize(size))
    }

    fn seals(&self) -> Result<SealFlags> {
        self.file_memory().map(|_| self.hooks.seals.flags()).map_err(|_| Error::EINVAL)
    }

    fn seal(&self, seals: SealFlags) -> MaybeReady<'_, Result<()>> {
        MaybeReady::local(self.add_seals(seals))
    }

    fn allocate(&self, offset: u64, length: u64, keep_size: bool, punch: bool) -> MaybeReady<'_, Result<()>> {
        MaybeReady::local(self.allocate_range(offset, length, keep_size, punch))
    }

    fn seek_data(&self, offset: u64, hole: bool) -> MaybeReady<'_, Result<u64>> {
        MaybeReady::ready(self.seek(offset, hole))
    }

    fn change(&self, change: AttributeChange) -> MaybeReady<'_, Result<()>> {
        self.change_attributes(&change);
        MaybeReady::ready(Ok(()))
    }

    fn touch(&self, age: i64) {
        self.was_read(age);
    }

    fn note_mapped_writes(&self) {
        Node::note_mapped_writes(self);
    }

    fn memory(&self) -> Result<Arc<dyn FileMemory>> {
        self.file_memory().cloned().map_err(|_| Error::ENODEV)
    }

    fn keeps_lists(&self) -> bool {
        true
    }

    fn access_list(&self) -> Option<AccessList> {
        self.list(ListKind::Access)
    }

    fn default_list(&self) -> Option<AccessList> {
        self.list(ListKind::Default)
    }

    fn has_attributes(&self) -> bool {
        self.is_extended()
    }

    fn attribute<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<Vec<u8>>> {
        MaybeReady::ready(self.extended(name))
    }

    fn set_attribute<'a>(
        &'a self,
        name: &'a [u8],
        value: Option<&'a [u8]>,
        condition: AttributeCondition,
    ) -> MaybeReady<'a, Result<()>> {
        MaybeReady::ready(self.set_extended(name, value, condition))
    }

    fn attributes(&self) -> MaybeReady<'_, Result<Vec<u8>>> {
        MaybeReady::ready(Ok(self.extended_names()))
    }
}

/// The most names that one file can have.
const LINKS_MAXIMUM: u32 = i32::MAX as u32;
