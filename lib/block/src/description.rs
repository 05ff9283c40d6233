//! What a block device is and can do, as the words of the answer to `block_describe`.

/// The most bytes of a device's serial number.
pub const IDENTITY: usize = 64;

/// The numbers by which old programs describe a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The number of cylinders.
    pub cylinders: u16,
    /// The number of heads.
    pub heads: u8,
    /// The number of sectors of a track.
    pub sectors: u8,
}

/// What a device is driven by, after which systems name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A virtio block device.
    Virtio,
    /// An NVMe disk.
    Nvme,
}

/// The description of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// What the device is driven by.
    pub family: Family,
    /// How many sectors of 512 bytes the device has.
    pub sectors: u64,
    /// The size of a logical block in bytes: requests begin and end at multiples of it.
    pub logical: u32,
    /// The size of a physical block in bytes: shorter writes are slower.
    pub physical: u32,
    /// Whether nothing can be written.
    pub read_only: bool,
    /// Whether the device has a cache that flushes bring to stable storage.
    pub flushes: bool,
    /// The most sectors of a request that discards; 0: the device cannot discard.
    pub discard: u32,
    /// The geometry that the device claims.
    pub geometry: Option<Geometry>,
}

const READ_ONLY: u64 = 1;
const FLUSHES: u64 = 2;
/// Where the number of the family is.
const FAMILY: u32 = 8;

impl Description {
    /// The description as words of a message.
    pub fn words(&self) -> [u64; 6] {
        let geometry = self.geometry.map_or(0, |geometry| {
            u64::from(geometry.cylinders) << 16 | u64::from(geometry.heads) << 8 | u64::from(geometry.sectors)
        });
        let family = match self.family {
            Family::Virtio => 0,
            Family::Nvme => 1 << FAMILY,
        };
        let abilities =
            family | (u64::from(self.read_only) * READ_ONLY) | (u64::from(self.flushes) * FLUSHES);
        [self.sectors, self.logical.into(), self.physical.into(), abilities, self.discard.into(), geometry]
    }

    /// The description of these words. `None`: they describe no device.
    pub fn from_words(words: [u64; 6]) -> Option<Description> {
        let [sectors, logical, physical, abilities, discard, geometry] = words;
        let size = |size: u64| {
            u32::try_from(size).ok().filter(|size| size.is_power_of_two() && (512..=65536).contains(size))
        };
        let logical = size(logical)?;
        let is_whole = sectors <= u64::MAX / 512 && sectors.is_multiple_of(u64::from(logical) / 512);
        let geometry = (geometry != 0).then_some(Geometry {
            cylinders: (geometry >> 16) as u16,
            heads: (geometry >> 8) as u8,
            sectors: geometry as u8,
        });
        let family = match abilities >> FAMILY & 0xff {
            0 => Family::Virtio,
            1 => Family::Nvme,
            _ => return None,
        };
        is_whole.then_some(Description {
            family,
            sectors,
            logical,
            physical: size(physical)?.max(logical),
            read_only: abilities & READ_ONLY != 0,
            flushes: abilities & FLUSHES != 0,
            discard: u32::try_from(discard).ok()?,
            geometry,
        })
    }
}
