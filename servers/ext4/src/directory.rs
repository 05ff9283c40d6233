//! Positions in directories.

use rsext4::DirectoryCursor;

/// The bit of a position that is a place in a directory without an index.
const LINEAR: u64 = 1 << 63;
/// The position after the last entry.
const END: u64 = u64::MAX;

/// The position of a cursor. Two names with the same hash of 63 bits have the same position: an
/// entry may then appear twice.
pub(crate) fn position(cursor: DirectoryCursor) -> u64 {
    match cursor {
        DirectoryCursor::Start => 0,
        DirectoryCursor::Linear { offset } => LINEAR | offset,
        DirectoryCursor::HTree { major, minor, .. } => u64::from(major >> 1) << 32 | u64::from(minor),
        DirectoryCursor::End => END,
    }
}

/// The cursor of a position. A place in a directory that has got an index since then is its start.
pub(crate) fn cursor(position: u64, indexed: bool) -> DirectoryCursor {
    match position {
        0 => DirectoryCursor::Start,
        END => DirectoryCursor::End,
        position if position & LINEAR != 0 && !indexed => {
            DirectoryCursor::Linear { offset: position & !LINEAR }
        }
        position if position & LINEAR == 0 && indexed => DirectoryCursor::HTree {
            major: ((position >> 32) as u32) << 1,
            minor: position as u32,
            collision: 0,
        },
        _ => DirectoryCursor::Start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_lead_back_to_their_cursors() {
        let hash = DirectoryCursor::HTree { major: 0xffff_fffe, minor: u32::MAX - 1, collision: 0 };
        for (at, indexed) in [
            (DirectoryCursor::Start, true),
            (DirectoryCursor::End, true),
            (DirectoryCursor::Linear { offset: 4096 }, false),
            (hash, true),
        ] {
            assert_eq!(cursor(position(at), indexed), at);
        }
        let linear = position(DirectoryCursor::Linear { offset: 24 });
        assert_eq!(cursor(linear, true), DirectoryCursor::Start, "the directory has got an index");
    }
}
