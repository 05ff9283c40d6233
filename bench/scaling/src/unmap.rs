//! Unmap by the number of pages, and of spaces that have them.

use crate::time;
use crate::world::{delete, id, make_space, make_thread};
use bench_framework::{Range, average, test};
use l4::extension;
use l4::{sigma0, space, utcb};
use x2::extension::{MapItem, MapOperation};
use x2::{Fpage, Rights};

const PAGES: Range = Range::geometric(1, 256, 4);
const SPACES: Range = Range::geometric(1, 64, 4);
/// log2 of the memory that is mapped: 256 pages.
const REGION_BITS: u32 = 20;
const ROUNDS: u64 = 4;

pub(crate) fn run() {
    let region = sigma0::request_any(REGION_BITS).ok().flatten().expect("sigma0 has memory");
    // SAFETY: the region belongs to this program and holds nothing.
    (0..256).for_each(|page| unsafe { ((region.base + page * 4096) as *mut u8).write_volatile(1) });
    let spaces = SPACES.upper();
    for number in 0..spaces {
        make_space(id(number), 12);
        extension::set_owner(id(number), utcb::my_global_id()).expect("the root task is privileged");
        make_thread(id(number), id(number), 0);
    }
    let whole = |pages: u32| {
        let bits = 12 + pages.trailing_zeros();
        [Fpage::memory(region.base, bits).with_rights(Rights::ALL)]
    };
    let give = |number: u64, pages: u32| {
        let target = Fpage::memory(region.base, 12).with_rights(Rights::ALL);
        let mut items = [MapItem::new(MapOperation::Map, target, pages, region.base)];
        extension::map_control(id(number), &mut items).expect("the memory is this program's");
    };
    for pages in PAGES.values().map(|pages| pages as u32) {
        time("unmap-pages-that-nobody-has", pages.into(), ROUNDS, || space::unmap(&mut whole(pages)));
        // The benchmark does not measure the mapping, so it has one round.
        give(0, pages);
        time("unmap-pages-of-one-space", pages.into(), 1, || space::unmap(&mut whole(pages)));
    }
    test(
        "unmap-one-page-of-spaces",
        SPACES,
        "instructions",
        |spaces| (0..spaces).for_each(|number| give(number, 1)),
        |_, ()| average(1, || space::unmap(&mut whole(1))),
        |_, ()| (),
    );
    (0..spaces).for_each(|number| delete(id(number)));
}
