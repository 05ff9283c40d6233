//! Which pages page-out takes, and which it leaves for now.

use super::super::{CopyStrategy, DefaultPager, MapRequest, Placement, SwapPager, VmObject};
use super::support::{BASE, FilePager, System, load, store};
use crate::machine::PAGE_SIZE;
use crate::machine::simulated::Simulated;
use crate::{KernError, KernResult};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A page that was used after it had become inactive is left once more; those that were used before
/// only are taken, the oldest first.
#[test]
fn a_page_that_is_used_again_has_a_second_chance() {
    const PAGES: u64 = 6;
    let system = System::new(PAGES as u32 + 2);
    let map = system.map();
    system.run(async {
        let pager = FilePager::new(vec![7; (PAGES * PAGE_SIZE) as usize]);
        let file = VmObject::paged(system.vm(), pager.clone(), PAGES * PAGE_SIZE, CopyStrategy::Symmetric);
        let file = file.unwrap();
        let at = map.map(&MapRequest::shared(file.clone(), 0, PAGES * PAGE_SIZE)).await.unwrap();
        load(&map, at, (PAGES * PAGE_SIZE) as usize).await.unwrap();
        map.allocate(Placement::Fixed(BASE), 8 * PAGE_SIZE).await.unwrap();
        // Dirty pages have nowhere to go, so that pages of the file are taken for them, one each.
        let mut written = 0;
        let mut write = async || {
            written += 1;
            store(&map, BASE + (written - 1) * PAGE_SIZE, &[1]).await
        };
        let resident = async |page: u64| {
            let before = pager.requests.lock().unwrap().len();
            load(&map, at + page * PAGE_SIZE, 1).await.unwrap();
            pager.requests.lock().unwrap().len() == before
        };
        write().await.unwrap();
        write().await.unwrap();
        assert_eq!(file.resident_pages() as u64, PAGES);
        write().await.unwrap();
        assert_eq!(file.resident_pages() as u64, PAGES - 1);
        assert!(resident(1).await, "page 0 was taken; this is the next, and used again");
        write().await.unwrap();
        assert_eq!(file.resident_pages() as u64, PAGES - 2);
        assert!(resident(1).await, "page 2 was taken");
        write().await.unwrap();
        assert_eq!(file.resident_pages() as u64, PAGES - 3);
        assert!(resident(5).await, "page 3 was taken");
    });
}

/// Page-out asks once whether a page is used that has nowhere to go. If it asked again and again, a
/// page that can go would cost as much as all of memory.
#[test]
fn pages_that_have_nowhere_to_go_are_not_looked_at_again() {
    const PAGES: u64 = 4096;
    let system = System::new(PAGES as u32);
    let map = system.map();
    system.run(async {
        map.allocate(Placement::Fixed(BASE), 2 * PAGES * PAGE_SIZE).await.unwrap();
        let mut written = 0;
        while store(&map, BASE + written * PAGE_SIZE, &[1]).await.is_ok() {
            written += 1;
        }
        assert!(written > PAGES / 2);
        let pager = FilePager::new(vec![7; PAGE_SIZE as usize]);
        let file = VmObject::paged(system.vm(), pager.clone(), PAGE_SIZE, CopyStrategy::Symmetric).unwrap();
        let at = map.map(&MapRequest::shared(file, 0, PAGE_SIZE)).await.unwrap();
        let before = system.machine.counters().kernel_entries;
        assert!(store(&map, BASE + written * PAGE_SIZE, &[1]).await.is_err(), "there is no memory");
        assert!(load(&map, at, 1).await.is_err());
        let entries = system.machine.counters().kernel_entries - before;
        assert!(entries < 40, "{entries} entries for {written} pages");
    });
}

/// Swap space that says whether it has room, and counts for how many objects it is asked for a
/// pager.
#[derive(Default)]
struct Space {
    has_room: AtomicBool,
    asked: AtomicU32,
}

impl DefaultPager<Simulated> for Space {
    fn has_room(&self) -> bool {
        self.has_room.load(Ordering::Relaxed)
    }

    fn create(&self, _: &Arc<VmObject<Simulated>>) -> KernResult<Arc<dyn SwapPager<Simulated>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Err(KernError::ResourceShortage)
    }
}

#[test]
fn pages_that_had_nowhere_to_go_are_tried_again_when_there_is_room() {
    const PAGES: u64 = 64;
    let system = System::new(PAGES as u32);
    let space = Arc::new(Space::default());
    system.vm().set_default_pager(space.clone());
    let map = system.map();
    system.run(async {
        map.allocate(Placement::Fixed(BASE), 2 * PAGES * PAGE_SIZE).await.unwrap();
        let mut written = 0;
        while store(&map, BASE + written * PAGE_SIZE, &[1]).await.is_ok() {
            written += 1;
        }
        assert_eq!(space.asked.load(Ordering::Relaxed), 0, "a full space is not asked");
        space.has_room.store(true, Ordering::Relaxed);
        assert!(store(&map, BASE + written * PAGE_SIZE, &[1]).await.is_err(), "it gives no pager");
        assert!(space.asked.load(Ordering::Relaxed) >= 32, "the pages are tried");
    });
}
