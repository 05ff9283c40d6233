//! Operations on directories, and the names that are kept.

use super::node::Node;
use crate::v9fs::list;
use crate::vfs::{
    AttributeCondition, DirectoryEntry, FileType, NewAttributes, NewLists, NewNode, RenameEnd, VnodeRef, same,
};
use crate::{Error, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use ninep::{Body, Call};

/// How many names are kept.
const NAMES: usize = 4096;

/// A name, by the number of its directory.
type Key = (u64, Vec<u8>);

/// Names that were looked up, with their files. The one that was added first is forgotten first.
#[derive(Default)]
pub(super) struct Names {
    /// The files, and the numbers of the names in their order.
    found: BTreeMap<Key, (u64, Arc<Node>)>,
    order: BTreeMap<u64, Key>,
    /// How many names were added so far.
    added: u64,
}

impl Names {
    fn get(&self, key: &Key) -> Option<Arc<Node>> {
        self.found.get(key).map(|(_, node)| node.clone())
    }

    /// Adds a name. Returns a node that is not kept any more.
    fn add(&mut self, key: Key, node: Arc<Node>) -> Option<Arc<Node>> {
        node.kept.fetch_add(1, Ordering::Relaxed);
        let old = match self.found.get_mut(&key) {
            Some((_, place)) => Some(core::mem::replace(place, node)),
            None => {
                self.added += 1;
                self.found.insert(key.clone(), (self.added, node));
                self.order.insert(self.added, key);
                let oldest = (self.order.len() > NAMES).then(|| self.order.pop_first()).flatten();
                oldest.and_then(|(_, oldest)| self.found.remove(&oldest)).map(|(_, node)| node)
            }
        };
        old.inspect(|old| old.is_not_kept())
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Node>> {
        let (number, removed) = self.found.remove(key)?;
        self.order.remove(&number);
        removed.is_not_kept();
        Some(removed)
    }

    /// Forgets all names. Returns their files, to be dropped when this is not locked.
    pub(super) fn clear(&mut self) -> Vec<Arc<Node>> {
        self.order.clear();
        let all: Vec<_> = core::mem::take(&mut self.found).into_values().map(|(_, node)| node).collect();
        all.iter().for_each(|node| node.is_not_kept());
        all
    }
}

impl Node {
    fn is_not_kept(&self) {
        self.kept.fetch_sub(1, Ordering::Relaxed);
    }

    fn this(&self) -> Result<Arc<Node>> {
        self.this.upgrade().ok_or(Error::EIO)
    }

    fn key(&self, name: &[u8]) -> Key {
        (self.number, name.to_vec())
    }

    fn keep(&self, name: &[u8], node: &Arc<Node>) {
        let old = self.file_system.names.lock().add(self.key(name), node.clone());
        drop(old);
    }

    fn forget(&self, name: &[u8]) {
        let old = self.file_system.names.lock().remove(&self.key(name));
        drop(old);
    }

    /// The file that has this name, if that is known without asking.
    pub(super) fn known(&self, name: &[u8]) -> Option<Arc<Node>> {
        self.file_system.names.lock().get(&self.key(name))
    }

    /// The file that has this name.
    pub(super) async fn find(&self, name: &[u8]) -> Result<Arc<Node>> {
        if let Some(node) = self.known(name) {
            return Ok(node);
        }
        let _alone = self.file_system.changing.lock().await;
        self.find_alone(name).await
    }

    /// The file that has this name, while no name changes.
    async fn find_alone(&self, name: &[u8]) -> Result<Arc<Node>> {
        if let Some(node) = self.known(name) {
            return Ok(node);
        }
        let session = &self.file_system.session;
        let fid = session.fid();
        let reply = session.call(&Call::Find { fid: self.fid(), new: fid.number, name }).await?;
        let found = reply.read(Body::attributes);
        if found == Err(Error::ENOENT) {
            session.give_up(fid);
            return Err(Error::ENOENT);
        }
        let node = self.file_system.node(fid, found?, Some((self.this()?, name)))?;
        node.load_lists().await?;
        self.keep(name, &node);
        Ok(node)
    }

    /// Checks that a name still is that of the file which the caller has found. `ESTALE`.
    async fn check(&self, name: &[u8], expected: Option<&VnodeRef>) -> Result<()> {
        let found = match self.find_alone(name).await {
            Ok(found) => Some(found as VnodeRef),
            Err(Error::ENOENT) => None,
            Err(error) => return Err(error),
        };
        match (found, expected) {
            (None, None) => Ok(()),
            (Some(found), Some(expected)) if same(&found, expected) => Ok(()),
            _ => Err(Error::ESTALE),
        }
    }

    /// Makes a file.
    pub(super) async fn make(
        &self,
        name: &[u8],
        node: NewNode<'_>,
        attributes: NewAttributes,
    ) -> Result<Arc<Node>> {
        let (kind, target, device) = match node {
            NewNode::Regular => (0o100_000, &b""[..], (0, 0)),
            NewNode::Directory => (0o040_000, &b""[..], (0, 0)),
            NewNode::SymbolicLink(target) => (0o120_000, target, (0, 0)),
            NewNode::Special(file_type, number) => {
                let kind = match file_type {
                    FileType::Fifo => 0o010_000,
                    FileType::CharacterDevice => 0o020_000,
                    FileType::BlockDevice => 0o060_000,
                    FileType::Socket => 0o140_000,
                    _ => return Err(Error::EINVAL),
                };
                (kind, &b""[..], (number.major, number.minor))
            }
        };
        let mode = kind | u32::from(attributes.mode.bits());
        let owner = (attributes.user, attributes.group);
        let _alone = self.file_system.changing.lock().await;
        if self.has_no_name() {
            return Err(Error::ENOENT);
        }
        let session = &self.file_system.session;
        let fid = session.fid();
        let call = Call::Make { fid: self.fid(), new: fid.number, name, mode, owner, device, target };
        self.file_system.changed();
        let reply = session.call(&call).await?;
        let made = self.file_system.node(fid, reply.read(Body::attributes)?, Some((self.this()?, name)))?;
        // The file server lets files inherit none.
        made.attribute_names.lock().known = Some(Vec::new());
        if let Some(lists) = attributes.lists
            && let Err(error) = made.begin_lists(&lists).await
        {
            let directory = made.is_directory();
            self.file_system.change(&Call::UnlinkAt { fid: self.fid(), name, directory }).await?;
            return Err(error);
        }
        self.keep(name, &made);
        self.entries_changed(i64::from(made.is_directory()));
        Ok(made)
    }

    async fn begin_lists(&self, lists: &NewLists) -> Result<()> {
        for (kind, list) in lists.kept() {
            let value = Some(list.bytes());
            self.write_attribute(kind.attribute(), value, AttributeCondition::Any).await?;
        }
        Ok(())
    }

    /// Adds a name of a file.
    pub(super) async fn add_name(&self, name: &[u8], target: &VnodeRef) -> Result<()> {
        let target = Node::of(target)?;
        let _alone = self.file_system.changing.lock().await;
        if self.has_no_name() {
            return Err(Error::ENOENT);
        }
        let call = Call::Link { directory: self.fid(), fid: target.fid(), name };
        self.file_system.change(&call).await?;
        target.got_a_name();
        self.keep(name, &target);
        self.entries_changed(0);
        Ok(())
    }

    /// Removes the name of a file.
    pub(super) async fn remove_name(&self, name: &[u8], expected: &VnodeRef) -> Result<()> {
        let victim = Node::of(expected)?;
        let directory = victim.is_directory();
        let _alone = self.file_system.changing.lock().await;
        self.check(name, Some(expected)).await?;
        self.file_system.change(&Call::UnlinkAt { fid: self.fid(), name, directory }).await?;
        self.forget(name);
        victim.lost_a_name();
        self.entries_changed(-i64::from(directory));
        Ok(())
    }

    /// Renames a file, and replaces the one at the destination or exchanges the two.
    pub(super) async fn move_name(from: RenameEnd<'_>, to: RenameEnd<'_>, exchange: bool) -> Result<()> {
        let (old, new) = (Node::of(from.directory)?, Node::of(to.directory)?);
        let file_system = old.file_system.clone();
        let _alone = file_system.changing.lock().await;
        old.check(from.name, from.expected).await?;
        new.check(to.name, to.expected).await?;
        let moved = Node::of(from.expected.ok_or(Error::ENOENT)?)?;
        let other = to.expected.map(Node::of).transpose()?;
        if new.has_no_name() {
            return Err(Error::ENOENT);
        }
        if moved.is_directory() {
            new.is_not_below(&moved)?;
        }
        if let Some(other) = other.as_ref().filter(|other| exchange && other.is_directory()) {
            old.is_not_below(other)?;
        }
        let (source, target) = ((old.fid(), from.name), (new.fid(), to.name));
        let call = match exchange {
            false => Call::RenameAt { from: source.0, old: source.1, to: target.0, new: target.1 },
            true => Call::Exchange { from: source.0, old: source.1, to: target.0, new: target.1 },
        };
        file_system.change(&call).await?;
        old.forget(from.name);
        new.forget(to.name);
        let is_directory = |node: &Arc<Node>| i64::from(node.is_directory());
        let (mut more_in_old, mut more_in_new) = (-is_directory(&moved), is_directory(&moved));
        if let Some(other) = other {
            more_in_new -= is_directory(&other);
            if exchange {
                more_in_old += is_directory(&other);
                other.is_at(old.clone(), from.name);
            } else {
                other.lost_a_name();
            }
        }
        moved.is_at(new.clone(), to.name);
        old.entries_changed(more_in_old);
        new.entries_changed(more_in_new);
        Ok(())
    }

    /// Checks that this directory is neither `above` nor below it. `EINVAL`.
    fn is_not_below(self: &Arc<Self>, above: &Arc<Node>) -> Result<()> {
        let mut here = Some(self.clone());
        while let Some(node) = here {
            if Arc::ptr_eq(&node, above) {
                return Err(Error::EINVAL);
            }
            here = node.above();
        }
        Ok(())
    }

    /// Calls `accept` with the entries from `position` on.
    pub(super) async fn list(
        &self,
        position: u64,
        accept: &mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> Result<()> {
        if !self.is_directory() {
            return Err(Error::ENOTDIR);
        }
        list(&self.file_system.session, self.fid(), position, accept).await
    }
}
