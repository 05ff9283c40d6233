//! Operations on directories and extended attributes.

use super::node::{Node, buffer};
use super::replies::list;
use super::session::Fid;
use crate::vfs::{
    AttributeCondition, DirectoryEntry, FileType, NewAttributes, NewNode, RenameEnd, Vnode, VnodeRef,
};
use crate::{Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use ninep::{Body, Call};

/// The protocol's flags with which the server makes a file, and opens a directory.
const CREATE: u32 = 0o2 | 0o100 | 0o200;
const DIRECTORY: u32 = 0o200_000;
/// The largest extended attribute (XATTR_SIZE_MAX).
const ATTRIBUTE_MAXIMUM: u64 = 65536;

impl Node {
    fn this(&self) -> Result<Arc<Node>> {
        self.this.upgrade().ok_or(Error::EIO)
    }

    /// The file that has this name now.
    pub(super) async fn find(&self, name: &[u8]) -> Result<Arc<Node>> {
        let fid = self.file_system.session.walk(&self.fid(), &[name]).await?;
        self.file_system.node(fid, Some((self.this()?, name))).await
    }

    /// Makes a file.
    pub(super) async fn make(
        &self,
        name: &[u8],
        node: NewNode<'_>,
        attributes: NewAttributes,
    ) -> Result<Arc<Node>> {
        let (session, directory) = (&self.file_system.session, self.fid());
        let (mode, group) = (u32::from(attributes.mode.bits()), attributes.group);
        let fid = directory.number;
        let call = match node {
            NewNode::Regular => {
                let opened = session.walk(&directory, &[]).await?;
                let call = Call::Create { fid: opened.number, name, flags: CREATE, mode, group };
                session.perform(&call).await?;
                let made = self.find(name).await?;
                made.was_created(opened);
                return Ok(made);
            }
            NewNode::Directory => Call::Mkdir { directory: fid, name, mode, group },
            NewNode::SymbolicLink(target) => Call::Symlink { directory: fid, name, target, group },
            NewNode::Special(file_type, number) => {
                let kind = match file_type {
                    FileType::Fifo => 0o010_000,
                    FileType::CharacterDevice => 0o020_000,
                    FileType::BlockDevice => 0o060_000,
                    FileType::Socket => 0o140_000,
                    _ => return Err(Error::EINVAL),
                };
                let device = (number.major, number.minor);
                Call::Mknod { directory: fid, name, mode: mode | kind, device, group }
            }
        };
        session.perform(&call).await?;
        self.find(name).await
    }

    /// Adds a name of a file.
    pub(super) async fn add_name(&self, name: &[u8], target: &VnodeRef) -> Result<()> {
        let target = Node::of(target)?;
        let (directory, file) = (self.fid(), target.fid());
        let call = Call::Link { directory: directory.number, fid: file.number, name };
        self.file_system.session.perform(&call).await?;
        target.names_changed(true);
        Ok(())
    }

    /// Removes a name. The server removes whatever file has it.
    pub(super) async fn remove_name(&self, name: &[u8], expected: &VnodeRef) -> Result<()> {
        let victim = Node::of(expected)?;
        let directory = victim.file_type() == FileType::Directory;
        let fid = self.fid();
        let call = Call::UnlinkAt { fid: fid.number, name, directory };
        self.file_system.session.perform(&call).await?;
        victim.names_changed(false);
        Ok(())
    }

    /// Renames a file, and replaces the one at the destination.
    pub(super) async fn move_name(from: RenameEnd<'_>, to: RenameEnd<'_>) -> Result<()> {
        let (old, new) = (Node::of(from.directory)?, Node::of(to.directory)?);
        let (old_fid, new_fid) = (old.fid(), new.fid());
        let call = Call::RenameAt { from: old_fid.number, old: from.name, to: new_fid.number, new: to.name };
        old.file_system.session.perform(&call).await?;
        if let Some(moved) = from.expected {
            Node::of(moved)?.is_at(new, to.name);
        }
        if let Some(replaced) = to.expected {
            Node::of(replaced)?.names_changed(false);
        }
        Ok(())
    }

    /// Opens the directory for reading, so that entries are those that there are now.
    pub(super) async fn open_listing(&self) -> Result<Arc<Fid>> {
        let opened = self.file_system.session.open(&self.fid(), DIRECTORY).await?;
        let opened = Arc::new(opened);
        let old = self.listing.lock().replace(opened.clone());
        drop(old);
        Ok(opened)
    }

    /// Calls `accept` with the entries from `position` on.
    pub(super) async fn list(
        &self,
        position: u64,
        accept: &mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> Result<()> {
        if self.file_type() != FileType::Directory {
            return Err(Error::ENOTDIR);
        }
        let opened = self.listing.lock().clone();
        let opened = match opened {
            Some(opened) => opened,
            None => self.open_listing().await?,
        };
        list(&self.file_system.session, opened.number, position, accept).await
    }

    /// The value of an extended attribute, or with an empty name the list of their names.
    pub(super) async fn read_attribute(&self, name: &[u8]) -> Result<Vec<u8>> {
        let session = &self.file_system.session;
        let (file, opened) = (self.fid(), session.fid());
        let call = Call::XattrWalk { fid: file.number, new: opened.number, name };
        let size = session.call(&call).await?.read(Body::size)?;
        if size > ATTRIBUTE_MAXIMUM {
            return Err(Error::E2BIG);
        }
        let mut value = buffer(size as usize)?;
        let mut done = 0;
        while done < value.len() {
            let count = (value.len() - done).min(session.data_size());
            let call = Call::Read { fid: opened.number, offset: done as u64, count: count as u32 };
            let reply = session.call(&call).await?;
            let data = reply.read(|body| body.data(count))?;
            if data.is_empty() {
                break;
            }
            value[done..done + data.len()].copy_from_slice(data);
            done += data.len();
        }
        value.truncate(done);
        Ok(value)
    }

    /// Sets or removes an extended attribute. The protocol cannot set an empty value, which removes
    /// the attribute.
    pub(super) async fn write_attribute(
        &self,
        name: &[u8],
        value: Option<&[u8]>,
        condition: AttributeCondition,
    ) -> Result<()> {
        let value = match value {
            Some(b"") => return Err(Error::EOPNOTSUPP),
            value => value.unwrap_or_default(),
        };
        let flags = match condition {
            AttributeCondition::Any => 0,
            AttributeCondition::Create => 1,
            AttributeCondition::Replace => 2,
        };
        let session = &self.file_system.session;
        let opened = session.walk(&self.fid(), &[]).await?;
        let fid = opened.number;
        let size = value.len() as u64;
        session.perform(&Call::XattrCreate { fid, name, size, flags }).await?;
        let mut done = 0;
        while done < value.len() {
            let data = &value[done..(done + session.data_size()).min(value.len())];
            let reply = session.call(&Call::Write { fid, offset: done as u64, data }).await?;
            match reply.read(|body| body.count(data.len()))? {
                0 => return Err(Error::EIO),
                count => done += count,
            }
        }
        // The server sets the attribute, and says whether it could, when the file is forgotten.
        session.perform(&Call::Clunk { fid }).await
    }
}
