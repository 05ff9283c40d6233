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

impl Node {
    /// The value of an extended attribute, or with an empty name the list of their names.
    pub(super) async fn read_attribute(&self, name: &[u8]) -> Result<Vec<u8>> {
        if name.starts_with(INTERPRETED) {
            return Err(Error::EOPNOTSUPP);
        }
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
        // The attribute is set, and the server says whether it could, when the number is forgotten.
        self.file_system.change(&Call::Clunk { fid: fid.number }).await?;
        self.status_changed();
        Ok(())
    }
}
