//! Which pages page-out takes, and which it leaves for now.

use super::super::{CopyStrategy, MapRequest, Placement, VmObject};
use super::support::{BASE, FilePager, System, load, store};
use crate::machine::PAGE_SIZE;

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
