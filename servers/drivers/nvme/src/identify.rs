//! What the controller and a namespace say of themselves (5.15).

use crate::pages::PAGES;
use alloc::vec::Vec;
use block::description::{Description, Family};
use block::work::Limits;
use block::{PAGE, SECTOR};

/// How many bytes a description has.
pub const BYTES: usize = 4096;

/// The most sectors that one command discards: 1 GiB.
const DISCARD: u32 = 1 << 21;
/// The most bytes of a piece of memory.
const PIECE: u64 = 64 << 10;

/// What the driver has to know of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The serial number.
    pub serial: Vec<u8>,
    /// The most memory of a command.
    pub limits: Limits,
    /// Whether there is a cache that is flushed.
    pub flushes: bool,
    /// Whether ranges can be discarded.
    pub discards: bool,
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// What a controller says (figure 109). Pages have 4096 bytes.
pub fn controller(bytes: &[u8; BYTES]) -> Controller {
    let serial = bytes[4..24].trim_ascii();
    // The limit is a power of two in pages; 0: there is none. With one page of data a command may
    // touch two.
    let pages = match bytes[77] {
        0 => PAGES,
        exponent => 1u64.checked_shl(exponent.into()).unwrap_or(PAGES).min(PAGES),
    };
    Controller {
        serial: serial.iter().copied().take_while(|&byte| byte != 0).collect(),
        limits: Limits { piece: PIECE.min((pages - 1) * PAGE).max(SECTOR), pieces: usize::MAX, pages },
        flushes: bytes[525] & 1 != 0,
        discards: bytes[520] & 4 != 0,
    }
}

/// The number of the first namespace in the list of the active ones. `None`: there is none.
pub fn first_namespace(bytes: &[u8; BYTES]) -> Option<u32> {
    match number(bytes, 0, 4) as u32 {
        0 => None,
        namespace => Some(namespace),
    }
}

/// What a namespace of this controller is and can do (figure 114). `None`: its blocks cannot be
/// used.
pub fn namespace(bytes: &[u8; BYTES], controller: &Controller) -> Option<Description> {
    let format = usize::from(bytes[26] & 0xf);
    let format = number(bytes, 128 + 4 * format, 4);
    let (other_data, exponent) = (format & 0xffff, (format >> 16 & 0xff) as u32);
    if other_data != 0 || !(9..=16).contains(&exponent) {
        return None;
    }
    let blocks = number(bytes, 0, 8);
    // If the namespace says which writes are fast: so many blocks, less one.
    let preferred = if bytes[24] & 0x10 != 0 { number(bytes, 64, 2) + 1 } else { 1 };
    let physical = preferred.checked_next_power_of_two().unwrap_or(1) << exponent;
    let description = Description {
        family: Family::Nvme,
        sectors: blocks.checked_mul(1 << (exponent - 9))?,
        logical: 1 << exponent,
        physical: physical.min(65536) as u32,
        read_only: bytes[99] & 1 != 0,
        flushes: controller.flushes,
        discard: if controller.discards { DISCARD } else { 0 },
        geometry: None,
    };
    // The words of a message can hold only possible descriptions.
    Description::from_words(description.words()).filter(|_| blocks > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(parts: &[(usize, &[u8])]) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for (at, part) in parts {
            bytes[*at..*at + part.len()].copy_from_slice(part);
        }
        bytes
    }

    #[test]
    fn a_controller_says_what_it_takes() {
        let said = controller(&page(&[(4, b"  A12               "), (77, &[7]), (520, &[4]), (525, &[1])]));
        assert_eq!((said.serial.as_slice(), said.flushes, said.discards), (&b"A12"[..], true, true));
        assert_eq!(said.limits, Limits { piece: 65536, pieces: usize::MAX, pages: 128 });
        let limits = |exponent| controller(&page(&[(77, &[exponent])])).limits;
        assert_eq!((limits(0).pages, limits(200).pages, limits(1).pages), (128, 128, 2));
        assert_eq!((limits(1).piece, limits(3).piece), (4096, 7 * 4096), "a piece may begin in a page");
        assert!(!controller(&page(&[])).flushes && !controller(&page(&[])).discards);
    }

    #[test]
    fn a_namespace_has_blocks_of_a_format() {
        let cached = controller(&page(&[(520, &[4]), (525, &[1])]));
        // The second format has blocks of 4 KiB.
        let bytes = page(&[(0, &[9]), (24, &[0x10]), (26, &[0x11]), (64, &[3]), (99, &[1]), (134, &[12])]);
        let expected = Description {
            family: Family::Nvme,
            sectors: 72,
            logical: 4096,
            physical: 16384,
            read_only: true,
            flushes: true,
            discard: DISCARD,
            geometry: None,
        };
        assert_eq!(namespace(&bytes, &cached), Some(expected));
        assert_eq!(namespace(&page(&[(0, &[9]), (128, &[8, 0, 9])]), &cached), None, "with other data");
        assert_eq!(namespace(&page(&[(0, &[9]), (130, &[8])]), &cached), None, "blocks of 256 bytes");
        assert_eq!(namespace(&page(&[(0, &[0xff; 8]), (130, &[9])]), &cached), None, "too many");
        assert_eq!(namespace(&page(&[(130, &[9])]), &cached), None, "no blocks");
        assert_eq!((first_namespace(&page(&[])), first_namespace(&page(&[(0, &[7])]))), (None, Some(7)));
    }
}
