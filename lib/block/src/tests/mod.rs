//! Tests on the host, with a simulated driver and device.

mod hostile;
mod requests;
mod restarts;

use crate::description::{Description, Family};
use crate::request::{Operation, Request, Segments};
use crate::{PAGE, SECTOR};

/// A device of so many sectors that can do everything.
fn description(sectors: u64) -> Description {
    Description {
        family: Family::Virtio,
        sectors,
        logical: 512,
        physical: 4096,
        read_only: false,
        flushes: true,
        discard: 1 << 16,
        geometry: None,
    }
}

/// A request about sectors whose data are in these pages of pool 0.
fn request(operation: Operation, sector: u64, sectors: u32, pages: &[u32]) -> Request {
    let mut segments = Segments::default();
    assert!(pages.iter().all(|&page| segments.push(0, page)), "there is room");
    Request { operation, sector, sectors, offset: 0, segments }
}

/// How many sectors a page has.
const SECTORS: u64 = PAGE / SECTOR;
