//! Extended attributes.

use super::node::Node;
use crate::vfs::{AccessList, AttributeCondition, ListKind, Mode};
use crate::{Error, Result};
use alloc::vec::Vec;
use ninep::{Body, Call, Qid};

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

/// The access control lists of a file.
#[derive(Default)]
pub(super) struct Lists {
    loaded: bool,
    access: Option<AccessList>,
    default: Option<AccessList>,
}

impl Lists {
    fn set(&mut self, kind: ListKind, list: Option<AccessList>) {
        match kind {
            ListKind::Access => self.access = list,
            ListKind::Default => self.default = list,
        }
    }
}

/// The list that is the value of an attribute.
fn list_of(value: Option<&[u8]>) -> Result<Option<AccessList>> {
    value.map_or(Ok(None), AccessList::read)
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
        let kind = ListKind::of_attribute(name);
        let list = kind.map_or(Ok(None), |_| list_of(value))?;
        if name.starts_with(INTERPRETED) && kind.is_none() {
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
        self.has_other_blocks();
        if let Some(kind) = kind {
            self.lists.lock().set(kind, list);
        }
        self.status_changed();
        Ok(())
    }

    /// Loads the access control lists of a file that was found, if the file server says that it has
    /// some.
    pub(super) async fn load_lists(&self) -> Result<()> {
        if self.attributes.lock().qid.kind & Qid::LISTS == 0 || self.lists.lock().loaded {
            return Ok(());
        }
        for kind in [ListKind::Access, ListKind::Default] {
            if self.has_attribute(kind.attribute()).await? {
                let value = self.load_attribute(kind.attribute()).await?;
                self.lists.lock().set(kind, list_of(Some(&value)).map_err(|_| Error::EIO)?);
            }
        }
        self.lists.lock().loaded = true;
        Ok(())
    }

    /// An access control list of the file.
    pub(super) fn list_of_kind(&self, kind: ListKind) -> Option<AccessList> {
        let lists = self.lists.lock();
        match kind {
            ListKind::Access => lists.access.clone(),
            ListKind::Default => lists.default.clone(),
        }
    }

    /// Changes the access control list as a new mode says.
    pub(super) async fn change_list(&self, mode: Mode) -> Result<()> {
        let Some(list) = self.list_of_kind(ListKind::Access) else { return Ok(()) };
        let changed = list.with_mode(mode)?;
        if changed == list {
            return Ok(());
        }
        let name = ListKind::Access.attribute();
        self.write_attribute(name, Some(changed.bytes()), AttributeCondition::Any).await
    }
}
