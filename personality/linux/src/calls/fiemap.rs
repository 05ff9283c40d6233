//! The request FS_IOC_FIEMAP of ioctl(2): where a file's data are on its disk (linux/fiemap.h).

use crate::call::{Call, Done};
use crate::layout::{Fields, Writer};
use mach::Machine;
use unix::Error;
use unix::sync::Turns;
use unix::vfs::{Extent, FileType, VnodeRef};

/// The request's number.
pub(super) const FIEMAP: u32 = 0xc020_660b;

/// The size of struct fiemap without its extents.
const HEADER: usize = 32;
/// The size of struct fiemap_extent.
const EXTENT: usize = 56;
/// The most extents for which a caller may have room: with the header, less than 4 GiB.
const EXTENTS_MAXIMUM: u32 = (u32::MAX - HEADER as u32) / EXTENT as u32;
/// The file is stored first: here it always is.
const SYNC: u32 = 1;
/// The extents are read before the call: it is only a hint.
const CACHE: u32 = 4;

/// Flags of an extent.
const LAST: u32 = 1;
const UNWRITTEN: u32 = 0x800;

/// Answers the request for the file `vnode`.
pub(super) async fn request<M: Machine>(call: &Call<'_, M>, vnode: &VnodeRef) -> Done {
    let header = call.read::<HEADER>(call.arg(2)).await?;
    let (start, length, flags, room) =
        (header.u64_at(0)?, header.u64_at(8)?, header.u32_at(16)?, header.u32_at(24)?);
    if length == 0 || room > EXTENTS_MAXIMUM {
        return Err(Error::EINVAL.into());
    }
    if start > i64::MAX as u64 {
        return Err(Error::EFBIG.into());
    }
    let others = flags & !(SYNC | CACHE);
    if others != 0 {
        // The caller learns which flags there are not.
        call.write(call.arg(2) + 16, &others.to_le_bytes()).await?;
        return Err(Error::EBADR.into());
    }
    let (_, all) = match vnode.file_type() {
        FileType::Regular => vnode.extents().await?,
        _ => return Err(Error::EOPNOTSUPP.into()),
    };
    let end = start.saturating_add(length);
    let found = all.iter().filter(|it| it.offset < end && start < it.offset + it.length);
    let mut count = 0;
    let mut turns = Turns::every(64);
    for extent in found {
        if room > 0 {
            if count == room {
                break;
            }
            let at = call.arg(2) + (HEADER + count as usize * EXTENT) as u64;
            call.write(at, &encode(extent, all.last() == Some(extent))).await?;
        }
        count += 1;
        turns.step().await;
    }
    call.write(call.arg(2) + 20, &count.to_le_bytes()).await?;
    Ok(0)
}

/// Struct fiemap_extent.
fn encode(extent: &Extent, is_last: bool) -> [u8; EXTENT] {
    let flags = if is_last { LAST } else { 0 } | if extent.is_unwritten { UNWRITTEN } else { 0 };
    Writer::new().u64(0, extent.offset).u64(8, extent.place).u64(16, extent.length).u32(40, flags).done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_encoded_as_in_fiemap_h() {
        let extent = Extent { offset: 0x1000, length: 0x3000, place: 0x50_0000, is_unwritten: true };
        let bytes = encode(&extent, true);
        assert_eq!(bytes.u64_at(0), Ok(0x1000), "fe_logical");
        assert_eq!(bytes.u64_at(8), Ok(0x50_0000), "fe_physical");
        assert_eq!(bytes.u64_at(16), Ok(0x3000), "fe_length");
        assert_eq!(bytes.u32_at(40), Ok(0x801), "fe_flags: UNWRITTEN, LAST");
        assert!(bytes[24..40].iter().chain(&bytes[44..]).all(|byte| *byte == 0), "reserved");
    }
}
