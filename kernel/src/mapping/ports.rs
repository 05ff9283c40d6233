//! I/O ports: a second forest of mappings with the rules of the first (X.2 rules 7.41, 8.9, 8.10).
//!
//! Each port is treated as a page of 4 KiB of its own, at an address that no memory has: port p is
//! the page p of the last GiB of the physical addresses that nodes can name. A space that has ports
//! has a second set of page tables, whose root maps just this GiB, each port at its own address; no
//! processor ever walks them. 512 ports that were mapped together are one page of 2 MiB. So a port
//! costs what a page costs, and is mapped, granted, split and revoked by the same code.
//!
//! What a processor knows of a space's ports ([`arch::ports`](crate::arch::ports)) is made from
//! these tables on demand, and forgotten when one of them is removed.
use core::pin::Pin;

use x2::{Fpage, MapItem, PortRange, Rights};

use super::cursor::{Cursor, Progress};
use super::map::{Kind, Transfer};
use super::space::SpaceMemory;
use super::spare;
use super::table;
use super::unmap::Revocation;
use super::walk::Revoke;
use crate::arch::page_entry::page_bits;
use crate::memory::{OutOfMemory, VirtAddr};

/// Where the ports' pages begin: 1 GiB that is never memory's.
pub(super) const PORT_BASE: u64 = (1 << super::tree::PHYSICAL_BITS) - (1 << 30);
/// The level of the root of a space's port tables, which maps 1 GiB.
pub(super) const PORT_ROOT_LEVEL: u32 = 2;

/// The first and the last address of ports.
fn addresses(ports: PortRange) -> (u64, u64) {
    let start = PORT_BASE + (u64::from(ports.first) << page_bits(1));
    (start, start + (1 << (ports.size_log2 + page_bits(1))) - 1)
}

/// Maps or grants the ports that `item` offers, the window accepts and the sender has, and returns
/// the delivered fpage. Preemption point; [`OutOfMemory`]: the ports so far stay mapped.
pub(super) fn map(
    cursor: Pin<&mut Cursor>,
    from: SpaceMemory,
    to: SpaceMemory,
    item: MapItem,
    window: Fpage,
) -> Progress<Result<Fpage, OutOfMemory>> {
    let cursor = cursor.project();
    let ranges = item.fpage.ports().zip(window.ports());
    let range = ranges.and_then(|(sent, accepted)| sent.intersection(accepted));
    let (Some(range), Some(source)) = (range, from.ports()) else { return cursor.finish(Ok(Fpage::NIL)) };
    if from == to || to.is_sigma0() {
        return cursor.finish(Ok(Fpage::NIL));
    }
    let target = match spare::or_give_back(|| to.make_ports()) {
        Ok(target) => target,
        Err(error) => return cursor.finish(Err(error)),
    };
    let (start, last) = addresses(range);
    // sigma0 cannot lose ports: its grant items act as map items.
    let kind = if item.grant && !from.is_sigma0() { Kind::Grant } else { Kind::Map };
    let transfer = Transfer {
        from: source,
        to: target,
        source: start,
        target: start,
        last: last - start,
        rights: Rights::ALL,
        kind,
    };
    match transfer.run(cursor) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(Ok(done)) if done.rights.is_none() => Progress::Done(Ok(Fpage::NIL)),
        Progress::Done(Ok(_)) => Progress::Done(Ok(Fpage::io(range.first, range.size_log2))),
        Progress::Done(Err(error)) => Progress::Done(Err(error)),
    }
}

/// Takes the ports of `fpage` from all spaces that have them from `space`, and from `space` itself
/// if `flush`. Ports have no status. Preemption point.
pub(super) fn unmap(cursor: &mut Cursor, space: SpaceMemory, fpage: Fpage, flush: bool) -> Progress<()> {
    let (Some(range), Some(space)) = (fpage.ports(), space.ports()) else { return cursor.finish(()) };
    let (start, last) = addresses(range);
    let what = Revoke { flush, ..Revoke::ALL };
    match (Revocation { space, start, last, what, everything: false }).run(cursor) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(_) => Progress::Done(()),
    }
}

/// Removes all ports of `space` with everything derived from them. Preemption point.
pub(super) fn destroy(cursor: &mut Cursor, space: SpaceMemory) -> Progress<()> {
    match unmap(cursor, space, Fpage::COMPLETE_IO, true) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(()) => {
            space.delete_ports();
            Progress::Done(())
        }
    }
}

/// Which of the 64 ports from 64 * `word` on `space` has: one bit each.
pub(super) fn held_ports(space: SpaceMemory, word: usize) -> u64 {
    if space.is_sigma0() {
        return !0;
    }
    let Some(ports) = space.ports() else { return 0 };
    let address = VirtAddr::new(PORT_BASE + ((word as u64 * 64) << page_bits(1)));
    let place = table::find(ports, address, 1);
    if place.level > 1 {
        return if place.entry.is_page(place.level) { !0 } else { 0 };
    }
    (0..64).filter(|&port| place.at.later(port).load().is_present()).fold(0, |held, port| held | 1 << port)
}
