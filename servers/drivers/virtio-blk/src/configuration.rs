//! The configuration of a virtio block device (Virtual I/O Device Version 1.1, 5.2.4), and the
//! features that it depends on (5.2.3).

use block::SECTOR;
use block::description::{Description, Family, Geometry};
use block::work::Limits;

/// The features of block devices, as bits.
pub mod features {
    /// Each piece of memory has at most so many bytes as the configuration says.
    pub const SIZE_MAX: u64 = 1 << 1;
    /// Each request has at most so many pieces of memory as the configuration says.
    pub const SEG_MAX: u64 = 1 << 2;
    /// The configuration has a geometry.
    pub const GEOMETRY: u64 = 1 << 4;
    /// The device is read-only.
    pub const READ_ONLY: u64 = 1 << 5;
    /// The configuration has the size of a block.
    pub const BLOCK_SIZE: u64 = 1 << 6;
    /// The device has a cache, and flushes it.
    pub const FLUSH: u64 = 1 << 9;
    /// The configuration has the size of a physical block.
    pub const TOPOLOGY: u64 = 1 << 10;
    /// The device has several queues.
    pub const QUEUES: u64 = 1 << 12;
    /// The device discards sectors.
    pub const DISCARD: u64 = 1 << 13;
    /// All features that the driver can use.
    pub const ALL: u64 = SIZE_MAX
        | SEG_MAX
        | GEOMETRY
        | READ_ONLY
        | BLOCK_SIZE
        | FLUSH
        | TOPOLOGY
        | QUEUES
        | DISCARD
        | virtio::features::INDIRECT
        | virtio::features::EVENT_INDEX;
}

/// How many bytes of the configuration the driver reads if the device discards, and if not.
pub const LENGTH: usize = 48;
/// How many bytes each device has at least.
pub const SHORTEST: usize = 36;

/// The description, the limits and the number of queues of a device with the agreed `features` and
/// this configuration. The pieces for header and status of a request are not counted. `None`: no
/// device is like this, or its pieces are shorter than a sector.
pub fn read(features: u64, bytes: &[u8; LENGTH]) -> Option<(Description, Limits, u16)> {
    let has = |feature: u64| features & feature != 0;
    let number = |at: usize, length: usize| {
        bytes[at..at + length].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let logical = if has(features::BLOCK_SIZE) { number(20, 4) as u32 } else { SECTOR as u32 };
    let exponent = if has(features::TOPOLOGY) { number(24, 1).min(7) as u32 } else { 0 };
    let geometry = Geometry { cylinders: number(16, 2) as u16, heads: bytes[18], sectors: bytes[19] };
    let discards = has(features::DISCARD) && number(40, 4) > 0;
    let sectors = number(0, 8);
    let description = Description {
        family: Family::Virtio,
        // A part of a block at the end cannot be used.
        sectors: sectors - sectors % u64::from(logical / SECTOR as u32).max(1),
        logical,
        physical: logical.checked_shl(exponent).unwrap_or(logical).min(65536),
        read_only: has(features::READ_ONLY),
        flushes: has(features::FLUSH),
        discard: if discards { number(36, 4) as u32 } else { 0 },
        geometry: has(features::GEOMETRY).then_some(geometry),
    };
    // The words of a message can hold only possible descriptions.
    let description = Description::from_words(description.words())?;
    let limits = Limits {
        piece: if has(features::SIZE_MAX) {
            number(8, 4) & !(SECTOR - 1)
        } else {
            u32::MAX as u64 & !(SECTOR - 1)
        },
        pieces: if has(features::SEG_MAX) { number(12, 4).max(1) as usize } else { 1 },
        pages: u64::MAX,
    };
    let queues = if has(features::QUEUES) { number(34, 2).max(1) as u16 } else { 1 };
    (limits.piece > 0).then_some((description, limits, queues))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration with these numbers: offset, length, value.
    fn configuration(numbers: &[(usize, usize, u64)]) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        for &(at, length, value) in numbers {
            bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        }
        bytes
    }

    #[test]
    fn without_features_a_device_has_sectors_only() {
        let bytes = configuration(&[(0, 8, 1000), (8, 4, 77), (20, 4, 4096), (36, 4, 9)]);
        let (description, limits, queues) = read(0, &bytes).unwrap();
        let expected = Description {
            family: Family::Virtio,
            sectors: 1000,
            logical: 512,
            physical: 512,
            read_only: false,
            flushes: false,
            discard: 0,
            geometry: None,
        };
        assert_eq!(
            (description, limits, queues),
            (expected, Limits { piece: 0xffff_fe00, pieces: 1, pages: u64::MAX }, 1)
        );
    }

    #[test]
    fn with_features_the_numbers_count() {
        let bytes = configuration(&[
            (0, 8, 1003),
            (8, 4, 0x1234),
            (12, 4, 254),
            (16, 2, 3),
            (18, 1, 4),
            (19, 1, 5),
            (20, 4, 4096),
            (24, 1, 1),
            (34, 2, 2),
            (36, 4, 4194),
            (40, 4, 1),
        ]);
        let (description, limits, queues) = read(features::ALL, &bytes).unwrap();
        let geometry = Some(Geometry { cylinders: 3, heads: 4, sectors: 5 });
        let expected = Description {
            family: Family::Virtio,
            sectors: 1000,
            logical: 4096,
            physical: 8192,
            read_only: true,
            flushes: true,
            discard: 4194,
            geometry,
        };
        assert_eq!(
            (description, limits, queues),
            (expected, Limits { piece: 0x1200, pieces: 254, pages: u64::MAX }, 2)
        );
    }

    #[test]
    fn impossible_devices_are_refused() {
        for (features, numbers) in [
            (features::BLOCK_SIZE, [(0, 8, 8), (20, 4, 0)]),
            (features::BLOCK_SIZE, [(0, 8, 8), (20, 4, 1000)]),
            (features::SIZE_MAX, [(0, 8, 8), (8, 4, 511)]),
            (0, [(0, 8, u64::MAX), (8, 4, 0)]),
        ] {
            assert_eq!(read(features, &configuration(&numbers)), None, "{numbers:?}");
        }
    }
}
