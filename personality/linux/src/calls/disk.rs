//! The requests of ioctl(2) to disks and partitions (linux/fs.h, linux/hdreg.h).

use crate::call::{Call, Done};
use alloc::sync::Arc;
use core::any::Any;
use core::ops::Range;
use mach::Machine;
use unix::disk::{BlockNode, Device, SECTOR};
use unix::file::OpenFile;
use unix::vfs::{Access, PAGE_SIZE};
use unix::{Bytes, Error, Privilege, Result, UserBuffer};

const HDIO_GETGEO: u32 = 0x301;
const BLKROGET: u32 = 0x125e;
const BLKRRPART: u32 = 0x125f;
const BLKGETSIZE: u32 = 0x1260;
const BLKFLSBUF: u32 = 0x1261;
const BLKRASET: u32 = 0x1262;
const BLKRAGET: u32 = 0x1263;
const BLKSSZGET: u32 = 0x1268;
const BLKDISCARD: u32 = 0x1277;
const BLKIOMIN: u32 = 0x1278;
const BLKIOOPT: u32 = 0x1279;
const BLKALIGNOFF: u32 = 0x127a;
const BLKPBSZGET: u32 = 0x127b;
const BLKDISCARDZEROES: u32 = 0x127c;
const BLKROTATIONAL: u32 = 0x127e;
const BLKZEROOUT: u32 = 0x127f;
const BLKBSZGET: u32 = 0x8008_1270;
const BLKBSZSET: u32 = 0x4008_1271;
const BLKGETSIZE64: u32 = 0x8008_1272;

/// How many sectors are read ahead, as shown.
pub(crate) const READ_AHEAD: u64 = 64;

/// The disk or partition that a file is; `None` if it is another file.
pub(super) fn node(file: &OpenFile) -> Option<Arc<BlockNode>> {
    let vnode: Arc<dyn Any + Send + Sync> = file.location()?.vnode.clone();
    vnode.downcast().ok()
}

/// Carries out a request to a disk or a partition.
pub(super) async fn request<M: Machine>(
    call: &Call<'_, M>,
    file: &OpenFile,
    node: &BlockNode,
    request: u32,
) -> Done {
    let device = &node.device;
    let about = &device.disk.about;
    match request {
        BLKGETSIZE64 => long(call, device.size()).await?,
        BLKGETSIZE => long(call, device.size() / SECTOR).await?,
        BLKSSZGET => int(call, about.logical).await?,
        BLKPBSZGET | BLKIOMIN => int(call, about.physical).await?,
        BLKIOOPT | BLKALIGNOFF | BLKDISCARDZEROES => int(call, 0).await?,
        BLKBSZGET => int(call, PAGE_SIZE as u32).await?,
        // The page cache has pages, whatever size is wished.
        BLKBSZSET => {
            let size = u32::from_le_bytes(call.read::<4>(call.arg(2)).await?);
            if !size.is_power_of_two() || !(about.logical..=PAGE_SIZE as u32).contains(&size) {
                return Err(Error::EINVAL.into());
            }
        }
        BLKROGET => int(call, about.read_only.into()).await?,
        BLKROTATIONAL => call.write(call.arg(2), &0u16.to_le_bytes()).await?,
        BLKRAGET => long(call, READ_AHEAD).await?,
        BLKRASET => privileged(call, Error::EACCES)?,
        HDIO_GETGEO => call.write(call.arg(2), &geometry(device)).await?,
        BLKFLSBUF => {
            privileged(call, Error::EACCES)?;
            device.disk.data.write_back(0..about.size, true).await?;
            device.disk.synchronize().await?;
        }
        BLKRRPART => {
            privileged(call, Error::EACCES)?;
            if device.partition.is_some() {
                return Err(Error::EINVAL.into());
            }
            call.system().vfs().disks.find_partitions(&device.disk).await?;
        }
        BLKDISCARD | BLKZEROOUT => {
            let range = range(call, device).await?;
            file.check(Access::WRITE)?;
            if request == BLKDISCARD {
                discard(device, range).await?;
            } else {
                clear(device, range).await?;
            }
        }
        _ => return Err(Error::ENOTTY.into()),
    }
    Ok(0)
}

fn privileged<M: Machine>(call: &Call<'_, M>, error: Error) -> Result<()> {
    if call.has(Privilege::Administrator) { Ok(()) } else { Err(error) }
}

async fn int<M: Machine>(call: &Call<'_, M>, value: u32) -> Result<()> {
    call.write(call.arg(2), &value.to_le_bytes()).await
}

async fn long<M: Machine>(call: &Call<'_, M>, value: u64) -> Result<()> {
    call.write(call.arg(2), &value.to_le_bytes()).await
}

/// The structure hd_geometry: heads, sectors of a track, cylinders, and the first sector.
fn geometry(device: &Device) -> [u8; 16] {
    let sectors = device.disk.about.size / SECTOR;
    // Programs that partition disks expect a geometry also of a disk that has none.
    let (cylinders, heads, track) = device
        .disk
        .about
        .geometry
        .unwrap_or_else(|| (u16::try_from(sectors / (64 * 32)).unwrap_or(u16::MAX), 64, 32));
    let mut bytes = [0; 16];
    (bytes[0], bytes[1]) = (heads, track);
    bytes[2..4].copy_from_slice(&cylinders.to_le_bytes());
    bytes[8..].copy_from_slice(&(device.range().start / SECTOR).to_le_bytes());
    bytes
}

/// The bytes of the disk that the program's two words mean: offset and length in the device.
async fn range<M: Machine>(call: &Call<'_, M>, device: &Device) -> Result<Range<u64>> {
    let words = call.read::<16>(call.arg(2)).await?;
    let word =
        |at: usize| words[at..at + 8].iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
    let (start, length) = (word(0), word(8));
    let end = start.checked_add(length).filter(|&end| length > 0 && end <= device.size());
    let end = end.ok_or(Error::EINVAL)?;
    if !(start | end).is_multiple_of(device.disk.about.logical.into()) {
        return Err(Error::EINVAL);
    }
    let first = device.range().start;
    Ok(first + start..first + end)
}

/// Discards the whole pages of a range. What is left at its ends stays, as a disk may leave it.
async fn discard(device: &Device, range: Range<u64>) -> Result<()> {
    let page = PAGE_SIZE as u64;
    let (start, end) = (range.start.next_multiple_of(page), range.end & !(page - 1));
    if device.disk.about.discard == 0 {
        return Err(Error::EOPNOTSUPP);
    }
    if start < end { device.disk.data.discard(start..end).await } else { Ok(()) }
}

/// Writes zeros to a range, and waits until the disk has them.
async fn clear(device: &Device, range: Range<u64>) -> Result<()> {
    let memory = device.disk.data.memory();
    let before = device.disk.data.failures();
    let mut at = range.start;
    while at < range.end {
        let length = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(16 * PAGE_SIZE);
        let mut zeros = Bytes::of(&[0; 16 * PAGE_SIZE][..length]);
        while zeros.remaining() > 0 {
            match memory.write(at, zeros.remaining(), &mut zeros).await {
                Ok(count) if count > 0 => at += count as u64,
                _ => return Err(Error::EIO),
            }
        }
    }
    device.disk.data.write_back(range, false).await?;
    if device.disk.data.failures() == before { Ok(()) } else { Err(Error::EIO) }
}
