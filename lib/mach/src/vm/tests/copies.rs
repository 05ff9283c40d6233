//! What maps see of pages that are copied on write: in chains of objects, in objects that several
//! maps share, and in files that change.

use alloc::sync::Arc;
use alloc::vec;

use super::super::{CopyStrategy, Inheritance, MapRequest, Placement, VmObject};
use super::support::{BASE, FilePager, System, load, store};
use crate::machine::PAGE_SIZE;
use crate::machine::simulated::Simulated;

const P1: u64 = BASE + PAGE_SIZE;
const P2: u64 = BASE + 2 * PAGE_SIZE;

/// A file of `pages` pages whose private mappings are delayed copies.
fn delayed(system: &System, pages: u64) -> Arc<VmObject<Simulated>> {
    let size = pages * PAGE_SIZE;
    let pager = FilePager::new(vec![1; size as usize]);
    VmObject::paged(system.vm(), pager, size, CopyStrategy::Delay).unwrap()
}

#[test]
fn a_page_of_its_own_hides_the_page_below_from_the_faults_of_its_neighbours() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        map.allocate(Placement::Fixed(BASE), 3 * PAGE_SIZE).await.unwrap();
        for page in [BASE, P1, P2] {
            store(&map, page, b"old").await.unwrap();
        }
        let child = map.fork().await.unwrap();
        store(&child, P1, b"kid").await.unwrap();
        // Nothing of the page is left in the translation.
        let rights = child.region(P1).await.unwrap().protection;
        child.protect(P1, PAGE_SIZE, crate::machine::Protection::NONE, false).await.unwrap();
        child.protect(P1, PAGE_SIZE, rights, false).await.unwrap();
        assert_eq!(load(&child, BASE, 3).await.unwrap(), b"old");
        assert_eq!(load(&child, P1, 3).await.unwrap(), b"kid");
        // The same if an object in between has the page.
        let grandchild = child.fork().await.unwrap();
        store(&grandchild, P2, b"own").await.unwrap();
        assert_eq!(load(&grandchild, BASE, 3).await.unwrap(), b"old");
        assert_eq!(load(&grandchild, P1, 3).await.unwrap(), b"kid");
        assert_eq!(load(&map, P1, 3).await.unwrap(), b"old");
    });
}

#[test]
fn maps_that_share_an_object_lose_the_page_below_when_one_writes() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        map.allocate(Placement::Fixed(BASE), PAGE_SIZE).await.unwrap();
        store(&map, BASE, b"old").await.unwrap();
        let child = map.fork().await.unwrap();
        child.inherit(BASE, PAGE_SIZE, Inheritance::Share).await.unwrap();
        let sharer = child.fork().await.unwrap();
        assert_eq!(load(&sharer, BASE, 3).await.unwrap(), b"old");
        store(&child, BASE, b"new").await.unwrap();
        assert_eq!(load(&sharer, BASE, 3).await.unwrap(), b"new");
        assert_eq!(load(&map, BASE, 3).await.unwrap(), b"old");
    });
}

#[test]
fn a_snapshot_is_kept_whichever_map_writes_to_the_file_and_how() {
    for reads_first in [false, true] {
        let system = System::new(32);
        let (map, other) = (system.map(), system.map());
        system.run(async {
            let file = delayed(&system, 2);
            let shared = map.map(&MapRequest::shared(file.clone(), 0, 2 * PAGE_SIZE)).await.unwrap();
            for page in [0, PAGE_SIZE] {
                store(&map, shared + page, &[2]).await.unwrap();
            }
            let private = map.map(&MapRequest::private(file.clone(), 0, 2 * PAGE_SIZE)).await.unwrap();
            // Another map has none of the pages in its translation yet. A fault may bring in both.
            let theirs = other.map(&MapRequest::shared(file.clone(), 0, 2 * PAGE_SIZE)).await.unwrap();
            for page in [0, PAGE_SIZE] {
                if reads_first {
                    assert_eq!(load(&other, theirs + page, 1).await.unwrap(), [2]);
                }
                store(&other, theirs + page, &[3]).await.unwrap();
            }
            for page in [0, PAGE_SIZE] {
                assert_eq!(load(&map, private + page, 1).await.unwrap(), [2], "page at {page}");
                assert_eq!(load(&map, shared + page, 1).await.unwrap(), [3]);
            }
        });
    }
}

#[test]
fn a_snapshot_that_is_written_itself_keeps_its_other_pages() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        let file = delayed(&system, 2);
        let shared = map.map(&MapRequest::shared(file.clone(), 0, 2 * PAGE_SIZE)).await.unwrap();
        let private = map.map(&MapRequest::private(file.clone(), 0, 2 * PAGE_SIZE)).await.unwrap();
        store(&map, private, &[9]).await.unwrap();
        store(&map, shared + PAGE_SIZE, &[5]).await.unwrap();
        assert_eq!(load(&map, private + PAGE_SIZE, 1).await.unwrap(), [1]);
        assert_eq!(load(&map, private, 1).await.unwrap(), [9]);
        assert_eq!(load(&map, shared, 1).await.unwrap(), [1]);
    });
}
