//! Extended attributes.

use super::node::Node;
use crate::vfs::AttributeCondition;
use crate::{Error, Result};
use alloc::vec::Vec;
use ninep::{Body, Call};

/// The largest extended attribute (XATTR_SIZE_MAX).
const MAXIMUM: u64 = 65536;
/// The namespace of attributes that the file system itself would have to interpret.
const INTERPRETED: &[u8] = b"system.";

/// The names of a file's extended attributes.
#[derive(Default)]
pub(super) struct AttributeNames {
    /// The names, each with a zero after it. `None`: the file server has not been asked.
    pub(super) known: Option<Vec<u8>>,
    /// How often attributes were set and removed.
    changes: u32,
}

impl AttributeNames {
    /// Attributes are set or removed now.
    fn change(&mut self) {
        self.known = None;
        self.changes = self.changes.wrapping_add(1);
    }
}

impl Node {
    /// Whether the file has extended attributes, or may have some.
    pub(super) fn may_have_attributes(&self) -> bool {
        self.attribute_names.lock().known.as_ref().is_none_or(|names| !names.is_empty())
    }

    /// Whether the file has an extended attribute. The file server is asked once.
    async fn has_attribute(&self, name: &[u8]) -> Result<bool> {
        let is_in = |names: &Vec<u8>| names.split(|&byte| byte == 0).any(|other| other == name);
        let before = {
            let names = self.attribute_names.lock();
            if let Some(known) = &names.known {
                return Ok(is_in(known));
            }
            names.changes
        };
        let loaded = self.load_attribute(b"").await?;
        let found = is_in(&loaded);
        let mut names = self.attribute_names.lock();
        // If there was a change meanwhile, the file server may have answered before it.
        if names.changes == before {
            names.known = Some(loaded);
        }
        Ok(found)
    }

    /// The value of an extended attribute, or with an empty name the list of their names.
    pub(super) async fn read_attribute(&self, name: &[u8]) -> Result<Vec<u8>> {
        if name.starts_with(INTERPRETED) {
            return Err(Error::EOPNOTSUPP);
        }
        if !name.is_empty() && !self.has_attribute(name).await? {
            return Err(Error::ENODATA);
        }
        self.load_attribute(name).await
    }

    async fn load_attribute(&self, name: &[u8]) -> Result<Vec<u8>> {
        let session = &self.file_system.session;
        let opened = session.fid();
        let call = Call::XattrWalk { fid: self.fid(), new: opened.number, name };
        let size = session.call(&call).await?.read(Body::size)?;
        if size > MAXIMUM {
            return Err(Error::E2BIG);
        }
        let count = size as usize;
        let reply = session.call(&Call::Read { fid: opened.number, offset: 0, count: count as u32 }).await?;
        reply.read(|body| body.data(count).map(<[u8]>::to_vec))
    }

    /// Sets or removes an extended attribute.
    pub(super) async fn write_attribute(
        &self,
        name: &[u8],
        value: Option<&[u8]>,
        condition: AttributeCondition,
    ) -> Result<()> {
        if name.starts_with(INTERPRETED) {
            return Err(Error::EOPNOTSUPP);
        }
        if value.is_none() && !self.has_attribute(name).await? {
            return Err(Error::ENODATA);
        }
        let flags = match (value, condition) {
            (None, _) => ninep::XATTR_REMOVE,
            (_, AttributeCondition::Any) => 0,
            (_, AttributeCondition::Create) => 1,
            (_, AttributeCondition::Replace) => 2,
        };
        let value = value.unwrap_or_default();
        let session = &self.file_system.session;
        if value.len() > session.data_size() {
            return Err(Error::E2BIG);
        }
        let fid = session.fid();
        session.call(&Call::Walk { fid: self.fid(), new: fid.number, names: &[] }).await?.read(|_| Ok(()))?;
        let call = Call::XattrCreate { fid: fid.number, name, size: value.len() as u64, flags };
        session.perform(&call).await?;
        if !value.is_empty() {
            session.perform(&Call::Write { fid: fid.number, offset: 0, data: value }).await?;
        }
        // The names are asked for again, whether this succeeds or is given up.
        self.attribute_names.lock().change();
        // The attribute is set, and the server says whether it could, when the number is forgotten.
        self.file_system.change(&Call::Clunk { fid: fid.number }).await?;
        self.attribute_names.lock().change();
        self.status_changed();
        Ok(())
    }
}
