//! Tests of the calls of maps, one for each property that they guarantee.

use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::Ordering;

use super::super::{
    AttributeValue, Behavior, BoxFuture, CopyStrategy, Inheritance, MachineAttribute, MapRequest, OomKiller,
    Placement, VmMap, VmObject, VmStatistics,
};
use super::support::{BASE, FilePager, System, load, store};
use crate::machine::simulated::Simulated;
use crate::machine::{Caching, Machine, PAGE_SIZE, Protection};
use crate::{KernError, KernResult};

const READ: Protection = Protection::READ;

async fn allocate(map: &VmMap<Simulated>, address: u64, pages: u64) -> KernResult<u64> {
    map.allocate(Placement::Fixed(address), pages * PAGE_SIZE).await
}

#[test]
fn futures_may_move_between_workers() {
    fn is_send<T: Send>(_: T) {}
    fn is_shared<T: Send + Sync>() {}
    is_shared::<VmMap<Simulated>>();
    is_shared::<VmObject<Simulated>>();
    let system = System::new(1);
    let map = system.map();
    is_send(map.fault(0, READ));
    is_send(map.copyin(0, &mut []));
    is_send(map.map(&MapRequest::anonymous(1)));
    is_send(map.fork());
}

#[test]
fn fresh_memory_is_zero_and_keeps_what_is_stored() {
    let system = System::new(16);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 3).await.unwrap();
        assert_eq!(load(&map, BASE, 8).await.unwrap(), [0; 8]);
        store(&map, BASE + PAGE_SIZE - 2, b"abcd").await.unwrap();
        assert_eq!(load(&map, BASE + PAGE_SIZE - 3, 6).await.unwrap(), b"\0abcd\0");
        let mut bytes = [0; 4];
        map.copyin(BASE + PAGE_SIZE - 2, &mut bytes).await.unwrap();
        assert_eq!(&bytes, b"abcd");
        map.copyout(BASE + 2 * PAGE_SIZE - 1, b"xy").await.unwrap();
        assert_eq!(load(&map, BASE + 2 * PAGE_SIZE - 1, 2).await.unwrap(), b"xy");
    });
}

#[test]
fn memory_that_comes_and_goes_next_to_other_memory_gets_an_entry_of_its_own() {
    let system = System::new(16);
    let map = system.map();
    system.run(async {
        let place = Placement::Above(BASE);
        allocate(&map, BASE, 2).await.unwrap();
        store(&map, BASE, b"kept").await.unwrap();
        let page = BASE + 2 * PAGE_SIZE;
        assert_eq!(map.allocate(place, PAGE_SIZE).await, Ok(page));
        assert_eq!(map.entry_count().await, 1);
        map.deallocate(page, PAGE_SIZE).await.unwrap();
        for _ in 0..2 {
            assert_eq!(map.allocate(place, PAGE_SIZE).await, Ok(page));
            map.deallocate(page, PAGE_SIZE).await.unwrap();
        }
        assert_eq!(map.allocate(place, PAGE_SIZE).await, Ok(page));
        assert_eq!(map.entry_count().await, 2);
        map.deallocate(page, PAGE_SIZE).await.unwrap();
        // Without a look in between, the entry of its own is used again and again.
        for round in 0..6u8 {
            assert_eq!(map.allocate(place, PAGE_SIZE).await, Ok(page));
            assert_eq!(load(&map, page, 1).await.unwrap(), [0], "round {round}");
            store(&map, page, &[round + 1]).await.unwrap();
            map.deallocate(page, PAGE_SIZE).await.unwrap();
            assert_eq!(load(&map, page, 1).await, Err(KernError::InvalidAddress), "round {round}");
            assert_eq!(load(&map, BASE, 4).await.unwrap(), b"kept");
        }
        // A request of another size may join its neighbour.
        assert_eq!(map.allocate(place, 2 * PAGE_SIZE).await, Ok(page));
        assert_eq!(map.entry_count().await, 1);
    });
}

#[test]
fn bad_addresses_and_ranges_have_their_errors() {
    let system = System::new(4);
    let map = system.map();
    system.run(async {
        assert_eq!(map.fault(BASE, READ).await, Err(KernError::InvalidAddress));
        assert_eq!(allocate(&map, BASE + 1, 1).await, Err(KernError::InvalidArgument));
        assert_eq!(allocate(&map, BASE, 0).await, Err(KernError::InvalidArgument));
        assert_eq!(allocate(&map, 0, 1).await, Err(KernError::InvalidAddress));
        assert_eq!(map.allocate(Placement::Fixed(BASE), u64::MAX).await, Err(KernError::InvalidAddress));
        assert_eq!(
            map.allocate(Placement::Fixed(u64::MAX - 0xfff), 0x2000).await,
            Err(KernError::InvalidAddress)
        );
        assert_eq!(map.allocate(Placement::Above(0), 1 << 47).await, Err(KernError::NoSpace));
        allocate(&map, BASE, 2).await.unwrap();
        assert_eq!(allocate(&map, BASE + PAGE_SIZE, 4).await, Err(KernError::NoSpace));
        assert_eq!(map.protect(BASE, 3 * PAGE_SIZE, READ, false).await, Err(KernError::InvalidAddress));
        assert_eq!(map.deallocate(BASE, u64::MAX - 5).await, Err(KernError::InvalidAddress));
        let request = MapRequest { max_protection: READ, ..MapRequest::anonymous(1) };
        assert_eq!(map.map(&request).await, Err(KernError::InvalidArgument));
        assert_eq!(map.allocate(Placement::Above(BASE), 1).await, Ok(BASE + 2 * PAGE_SIZE));
        assert_eq!(map.allocate(Placement::Below(BASE + PAGE_SIZE), 1).await, Ok(BASE - PAGE_SIZE));
        assert_eq!(map.size().await, 4 * PAGE_SIZE);
    });
}

#[test]
fn copies_stop_at_the_exact_byte() {
    let system = System::new(8);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 2).await.unwrap();
        map.protect(BASE + PAGE_SIZE, PAGE_SIZE, READ, false).await.unwrap();
        let fault = map.copyout(BASE + PAGE_SIZE - 3, b"abcdef").await.unwrap_err();
        assert_eq!((fault.copied, fault.error), (3, KernError::ProtectionFailure));
        assert_eq!(load(&map, BASE + PAGE_SIZE - 3, 4).await.unwrap(), b"abc\0");
        let mut bytes = [1; 10];
        let fault = map.copyin(BASE + 2 * PAGE_SIZE - 4, &mut bytes).await.unwrap_err();
        assert_eq!((fault.copied, fault.error), (4, KernError::InvalidAddress));
        assert_eq!(bytes, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        let fault = map.copyin(u64::MAX, &mut bytes).await.unwrap_err();
        assert_eq!((fault.copied, fault.error), (0, KernError::InvalidAddress));
        map.copyout(BASE + PAGE_SIZE - 2, b"").await.unwrap();
    });
}

#[test]
fn words_are_compared_and_exchanged() {
    let system = System::new(4);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 1).await.unwrap();
        assert_eq!(map.compare_exchange_u32(BASE + 4, 0, 7).await, Ok(Ok(0)));
        assert_eq!(map.compare_exchange_u32(BASE + 4, 0, 8).await, Ok(Err(7)));
        assert_eq!(map.load_u32(BASE + 4).await, Ok(7));
        assert_eq!(map.load_u32(BASE + 2).await, Err(KernError::InvalidArgument));
    });
}

#[test]
fn rights_hold_for_programs_and_for_copies() {
    let system = System::new(8);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 2).await.unwrap();
        store(&map, BASE, b"text").await.unwrap();
        map.protect(BASE, PAGE_SIZE, READ | Protection::EXECUTE, false).await.unwrap();
        assert_eq!(store(&map, BASE, b"x").await, Err(KernError::ProtectionFailure));
        assert_eq!(map.copyout(BASE, b"x").await.unwrap_err().error, KernError::ProtectionFailure);
        map.fault(BASE, Protection::EXECUTE).await.unwrap();
        assert_eq!(map.with_pmap(|pmap| system.machine.user_fetch(pmap, BASE)), Some(Some(())));
        map.protect(BASE, PAGE_SIZE, READ, true).await.unwrap();
        let again = map.protect(BASE, PAGE_SIZE, Protection::DEFAULT, false).await;
        assert_eq!(again, Err(KernError::ProtectionFailure));
        let region = map.region(0).await.unwrap();
        assert_eq!((region.start, region.size), (BASE, PAGE_SIZE));
        assert_eq!((region.protection, region.max_protection), (READ, READ));
        assert_eq!(map.region(BASE + 2 * PAGE_SIZE).await, Err(KernError::NoSpace));
    });
}

#[test]
fn a_child_inherits_as_said() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 3).await.unwrap();
        map.inherit(BASE, PAGE_SIZE, Inheritance::Share).await.unwrap();
        map.inherit(BASE + 2 * PAGE_SIZE, PAGE_SIZE, Inheritance::None).await.unwrap();
        for page in 0..3 {
            store(&map, BASE + page * PAGE_SIZE, b"old").await.unwrap();
        }
        let child = map.fork().await.unwrap();
        for page in 0..2 {
            store(&map, BASE + page * PAGE_SIZE, b"new").await.unwrap();
        }
        assert_eq!(load(&child, BASE, 3).await.unwrap(), b"new");
        assert_eq!(load(&child, BASE + PAGE_SIZE, 3).await.unwrap(), b"old");
        assert_eq!(load(&child, BASE + 2 * PAGE_SIZE, 3).await, Err(KernError::InvalidAddress));
        store(&child, BASE, b"kid").await.unwrap();
        store(&child, BASE + PAGE_SIZE, b"kid").await.unwrap();
        assert_eq!(load(&map, BASE, 3).await.unwrap(), b"kid");
        assert_eq!(load(&map, BASE + PAGE_SIZE, 3).await.unwrap(), b"new");
    });
}

#[test]
fn chains_of_forks_collapse_and_free_pages_that_no_map_shows() {
    let system = System::new(64);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 4).await.unwrap();
        for page in 0..4 {
            store(&map, BASE + page * PAGE_SIZE, &[1]).await.unwrap();
        }
        let mut current = map.clone();
        for generation in 2..40u8 {
            let child = current.fork().await.unwrap();
            store(&current, BASE, &[200]).await.unwrap();
            store(&child, BASE, &[generation]).await.unwrap();
            current.terminate().await;
            current = child;
        }
        assert_eq!(load(&current, BASE, 1).await.unwrap(), [39]);
        assert_eq!(load(&current, BASE + PAGE_SIZE, 1).await.unwrap(), [1]);
        // Only the four pages of the last map are in use: those that earlier maps had are free
        // again.
        assert_eq!(system.vm().statistics().free, 64 - 4);
    });
}

#[test]
fn fork_of_a_large_map_is_a_few_kernel_entries() {
    let system = System::new(2000);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 1000).await.unwrap();
        for page in 0..1000 {
            store(&map, BASE + page * PAGE_SIZE, &[1]).await.unwrap();
        }
        let before = system.machine.counters();
        let child = map.fork().await.unwrap();
        let after = system.machine.counters();
        assert!(after.kernel_entries - before.kernel_entries <= 2);
        assert_eq!(after.copied, before.copied);
        let before = system.machine.counters();
        child.terminate().await;
        assert!(system.machine.counters().kernel_entries - before.kernel_entries <= 1);
        // The parent no longer shares the pages: writing copies nothing.
        store(&map, BASE, &[2]).await.unwrap();
        assert_eq!(system.machine.counters().copied, before.copied);
    });
}

#[test]
fn a_file_is_cached_once_however_it_is_reached() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        let pager = FilePager::new((0..3 * PAGE_SIZE + 100).map(|at| at as u8).collect());
        let size = 3 * PAGE_SIZE + 100;
        let file = VmObject::paged(system.vm(), pager.clone(), size, CopyStrategy::Symmetric).unwrap();
        let shared = map.map(&MapRequest::shared(file.clone(), 0, size)).await.unwrap();
        let private = map.map(&MapRequest::private(file.clone(), PAGE_SIZE, PAGE_SIZE)).await.unwrap();
        assert_eq!(load(&map, shared + 5, 2).await.unwrap(), [5, 6]);
        assert_eq!(load(&map, private + 7, 1).await.unwrap(), [7]);
        let mut bytes = [0; 8];
        assert_eq!(file.read(size - 4, &mut bytes).await, Ok(4));
        assert_eq!(pager.requests.lock().unwrap().len(), 1);
        assert_eq!(file.resident_pages(), 4);
        // The part of a page beyond the object's end reads as zeros; the next page is an error.
        assert_eq!(load(&map, shared + size, 4).await.unwrap(), [0; 4]);
        assert_eq!(file.write(0, b"written").await, Ok(7));
        assert_eq!(load(&map, shared, 7).await.unwrap(), b"written");
        store(&map, shared + PAGE_SIZE, b"through").await.unwrap();
        assert_eq!(load(&map, private, 7).await.unwrap(), b"through");
        store(&map, private, b"mine").await.unwrap();
        file.write(PAGE_SIZE, b"theirs").await.unwrap();
        assert_eq!(load(&map, private, 7).await.unwrap(), b"mineugh");
        map.forget(private, PAGE_SIZE).await.unwrap();
        assert_eq!(load(&map, private, 7).await.unwrap(), b"theirsh");
    });
}

#[test]
fn pages_are_counted_by_what_they_are() {
    let system = System::new(64);
    let map = system.map();
    let counts = || {
        let VmStatistics { files, memory_files, disks, .. } = system.vm().statistics();
        (files, memory_files, disks)
    };
    let unwritten = |object: &VmObject<Simulated>, from: u64| {
        let mut pages = Vec::new();
        object.each_unwritten(from, &mut |offset, in_writing| pages.push((offset, in_writing)));
        pages
    };
    system.run(async {
        let pager = FilePager::new(vec![1; 4 * PAGE_SIZE as usize]);
        let size = 4 * PAGE_SIZE;
        let file = VmObject::paged(system.vm(), pager.clone(), size, CopyStrategy::Symmetric).unwrap();
        let memory = VmObject::anonymous_of_size(system.vm(), size).unwrap();
        file.note_mapped_writes();
        let private = map.map(&MapRequest::private(file.clone(), 0, size)).await.unwrap();
        let shared = map.map(&MapRequest::shared(memory.clone(), 0, size)).await.unwrap();
        let both = map.map(&MapRequest::shared(file.clone(), 0, size)).await.unwrap();
        load(&map, private, size as usize).await.unwrap();
        assert_eq!(counts(), (4, 0, 0));
        store(&map, shared, &[2; 3 * PAGE_SIZE as usize]).await.unwrap();
        assert_eq!(counts(), (4, 3, 0));
        // Private copies are memory of the program.
        store(&map, private, &[3; 2 * PAGE_SIZE as usize]).await.unwrap();
        assert_eq!((counts(), unwritten(&file, 0)), ((4, 3, 0), vec![]));
        store(&map, both + PAGE_SIZE, &[4]).await.unwrap();
        file.write(3 * PAGE_SIZE, &[5]).await.unwrap();
        assert_eq!(unwritten(&file, 0), [(PAGE_SIZE, false), (3 * PAGE_SIZE, false)]);
        assert_eq!(unwritten(&file, 2 * PAGE_SIZE), [(3 * PAGE_SIZE, false)]);
        file.clean(0, size).await.unwrap();
        assert_eq!(unwritten(&file, 0), []);
        memory.set_size(PAGE_SIZE).await.unwrap();
        assert_eq!(counts(), (4, 1, 0));
    });
}

/// What a device fills is requested in larger and larger pieces while a file is read on, up to four
/// times as much as at first. A jump begins again.
#[test]
fn more_is_read_ahead_while_a_file_is_read_on() {
    const PAGES: u64 = 100;
    let requests = |has_device: bool| {
        let system = System::new(256);
        let pager = FilePager::new(vec![1; (PAGES * PAGE_SIZE) as usize]);
        pager.has_device.store(has_device, Ordering::Relaxed);
        system.run(async {
            let size = PAGES * PAGE_SIZE;
            let file = VmObject::paged(system.vm(), pager.clone(), size, CopyStrategy::Symmetric).unwrap();
            for page in (0..60).chain(80..PAGES) {
                assert_eq!(file.read(page * PAGE_SIZE, &mut [0]).await, Ok(1));
            }
        });
        let page = |bytes: u64| bytes / PAGE_SIZE;
        let requests = pager.requests.lock().unwrap();
        requests.iter().map(|&(at, length)| (page(at), page(length as u64))).collect::<Vec<_>>()
    };
    assert_eq!(requests(true), [(0, 8), (8, 16), (24, 32), (56, 32), (88, 12)]);
    assert_eq!(requests(false)[..3], [(0, 8), (8, 8), (16, 8)]);
}

#[test]
fn a_file_that_is_not_mapped_costs_no_kernel_entries() {
    let system = System::new(32);
    system.run(async {
        let pager = FilePager::new(vec![1; 8 * PAGE_SIZE as usize]);
        let file = VmObject::paged(system.vm(), pager.clone(), 8 * PAGE_SIZE, CopyStrategy::Delay).unwrap();
        let mut bytes = vec![0; 8 * PAGE_SIZE as usize];
        let before = system.machine.counters().kernel_entries;
        file.read(0, &mut bytes).await.unwrap();
        file.write(PAGE_SIZE + 1, b"new").await.unwrap();
        assert_eq!(system.machine.counters().kernel_entries, before);
        file.clean(0, u64::MAX).await.unwrap();
        assert_eq!(&pager.contents.lock().unwrap()[PAGE_SIZE as usize..][..5], b"\x01new\x01");
        assert_eq!(pager.returns.lock().unwrap().as_slice(), [(PAGE_SIZE, PAGE_SIZE as usize)]);
        let before = system.machine.counters().kernel_entries;
        file.set_size(2 * PAGE_SIZE).await.unwrap();
        assert_eq!((system.machine.counters().kernel_entries, file.resident_pages()), (before, 2));
    });
}

#[test]
fn a_delayed_copy_is_a_snapshot() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        let pager = FilePager::new(vec![1; 2 * PAGE_SIZE as usize]);
        let file = VmObject::paged(system.vm(), pager, 2 * PAGE_SIZE, CopyStrategy::Delay).unwrap();
        let shared = map.map(&MapRequest::shared(file.clone(), 0, 2 * PAGE_SIZE)).await.unwrap();
        store(&map, shared, &[2]).await.unwrap();
        let first = map.map(&MapRequest::private(file.clone(), 0, 2 * PAGE_SIZE)).await.unwrap();
        assert_eq!(load(&map, first, 1).await.unwrap(), [2]);
        store(&map, shared, &[3]).await.unwrap();
        let second = map.map(&MapRequest::private(file.clone(), 0, 2 * PAGE_SIZE)).await.unwrap();
        file.write(0, &[4]).await.unwrap();
        file.write(PAGE_SIZE, &[5]).await.unwrap();
        store(&map, second + 1, &[9]).await.unwrap();
        assert_eq!(load(&map, shared, 1).await.unwrap(), [4]);
        assert_eq!(load(&map, first, 2).await.unwrap(), [2, 1]);
        assert_eq!(load(&map, second, 2).await.unwrap(), [3, 9]);
        assert_eq!(load(&map, first + PAGE_SIZE, 1).await.unwrap(), [1]);
        assert_eq!(load(&map, shared + PAGE_SIZE, 1).await.unwrap(), [5]);
    });
}

#[test]
fn truncation_unmaps_and_clears() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        let pager = FilePager::new(vec![7; 4 * PAGE_SIZE as usize]);
        let file = VmObject::paged(system.vm(), pager, 4 * PAGE_SIZE, CopyStrategy::Symmetric).unwrap();
        let at = map.map(&MapRequest::shared(file.clone(), 0, 4 * PAGE_SIZE)).await.unwrap();
        assert_eq!(load(&map, at + 3 * PAGE_SIZE, 1).await.unwrap(), [7]);
        assert_eq!(load(&map, at, 1).await.unwrap(), [7]);
        file.set_size(PAGE_SIZE + 10).await.unwrap();
        assert_eq!(load(&map, at + PAGE_SIZE + 9, 2).await.unwrap(), [7, 0]);
        assert_eq!(load(&map, at + 3 * PAGE_SIZE, 1).await, Err(KernError::MemoryFailure));
        assert_eq!(file.resident_pages(), 2);
    });
}

/// A file with a pager and one without, both of which note writes through mappings.
fn files_with_noted_writes(system: &System, size: u64) -> [Arc<VmObject<Simulated>>; 2] {
    let pager = FilePager::new(vec![7; size as usize]);
    let paged = VmObject::paged(system.vm(), pager, size, CopyStrategy::Symmetric).unwrap();
    let anonymous = VmObject::anonymous_of_size(system.vm(), size).unwrap();
    paged.note_mapped_writes();
    anonymous.note_mapped_writes();
    [paged, anonymous]
}

#[test]
fn a_fault_takes_no_right_to_write_from_a_neighbour() {
    let system = System::new(64);
    let map = system.map();
    let size = 2 * PAGE_SIZE;
    system.run(async {
        for file in files_with_noted_writes(&system, size) {
            let at = map.map(&MapRequest::shared(file.clone(), 0, size)).await.unwrap();
            // An instruction that writes to both pages runs only when both may be written.
            store(&map, at + PAGE_SIZE - 2, b"both").await.unwrap();
            let machine = system.vm().machine();
            for page in [0, PAGE_SIZE] {
                let written = map.with_pmap(|pmap| machine.user_write(pmap, at + page, b"1")).unwrap();
                assert!(written.is_some(), "the page at {page}");
            }
            map.deallocate(at, size).await.unwrap();
        }
    });
}

#[test]
fn the_first_write_through_a_mapping_is_noted_until_it_is_asked_for() {
    let system = System::new(2048);
    let map = system.map();
    let size = 1500 * PAGE_SIZE;
    system.run(async {
        for file in files_with_noted_writes(&system, size) {
            file.write(0, b"by a call").await.unwrap();
            let shared = map.map(&MapRequest::shared(file.clone(), 0, size)).await.unwrap();
            let other = map.map(&MapRequest::shared(file.clone(), 0, size)).await.unwrap();
            load(&map, shared, 1).await.unwrap();
            load(&map, shared + PAGE_SIZE, 1).await.unwrap();
            assert_eq!(file.take_mapped_writes(), None);
            // Few pages are known by number. Of many it is only known that there are some.
            for pages in [1, 3, 1500, 2] {
                let begun = Machine::now(system.vm().machine());
                for page in 0..pages {
                    store(&map, shared + page * PAGE_SIZE, b"1").await.unwrap();
                    store(&map, other + page * PAGE_SIZE, b"2").await.unwrap();
                }
                assert!(file.take_mapped_writes().is_some_and(|time| time >= begun), "{pages} pages");
                assert_eq!(file.take_mapped_writes(), None);
                load(&map, shared, 1).await.unwrap();
                file.write(PAGE_SIZE, b"3").await.unwrap();
                assert_eq!(file.take_mapped_writes(), None, "a read, and a write by a call");
            }
            map.deallocate(shared, size).await.unwrap();
            map.deallocate(other, size).await.unwrap();
        }
    });
}

#[test]
fn a_range_moves_whole_or_not_at_all() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 4).await.unwrap();
        store(&map, BASE + PAGE_SIZE, b"moved").await.unwrap();
        let to = BASE + 8 * PAGE_SIZE;
        allocate(&map, to, 2).await.unwrap();
        store(&map, to, b"there").await.unwrap();
        for (start, size, target, error) in [
            (BASE, 2 * PAGE_SIZE, BASE + PAGE_SIZE, KernError::InvalidArgument),
            (BASE + PAGE_SIZE, 2 * PAGE_SIZE, BASE, KernError::InvalidArgument),
            (BASE + 3 * PAGE_SIZE, 2 * PAGE_SIZE, to, KernError::InvalidAddress),
        ] {
            assert_eq!(map.relocate(start, size, target).await, Err(error));
        }
        assert_eq!(load(&map, to, 5).await.unwrap(), b"there");
        map.relocate(BASE + PAGE_SIZE, 2 * PAGE_SIZE, to).await.unwrap();
        assert_eq!(load(&map, to, 5).await.unwrap(), b"moved");
        assert_eq!(load(&map, to + PAGE_SIZE, 1).await.unwrap(), [0]);
        for gone in [1, 2] {
            assert_eq!(load(&map, BASE + gone * PAGE_SIZE, 1).await, Err(KernError::InvalidAddress));
        }
        assert_eq!(load(&map, BASE, 1).await.unwrap(), [0]);
    });
}

#[test]
fn pieces_move_are_shared_and_are_copied() {
    let system = System::new(32);
    let (map, other) = (system.map(), system.map());
    system.run(async {
        allocate(&map, BASE, 4).await.unwrap();
        store(&map, BASE + PAGE_SIZE, b"moved").await.unwrap();
        let piece = map.take(BASE + PAGE_SIZE, PAGE_SIZE).await.unwrap();
        let Ok(to) = map.insert(piece, Placement::Above(BASE + 16 * PAGE_SIZE)).await else { panic!() };
        assert_eq!(load(&map, to, 5).await.unwrap(), b"moved");
        assert_eq!(load(&map, BASE + PAGE_SIZE, 1).await, Err(KernError::InvalidAddress));

        let piece = map.share(to, PAGE_SIZE).await.unwrap();
        let Ok(window) = other.insert(piece, Placement::Above(0)).await else { panic!() };
        store(&other, window, b"M").await.unwrap();
        assert_eq!(load(&map, to, 5).await.unwrap(), b"Moved");

        let piece = map.read(to, PAGE_SIZE).await.unwrap();
        store(&map, to, b"L").await.unwrap();
        let Ok(copy) = other.insert(piece, Placement::Above(0)).await else { panic!() };
        assert_eq!(load(&other, copy, 5).await.unwrap(), b"Moved");
        assert_eq!(load(&other, window, 5).await.unwrap(), b"Loved");

        store(&map, BASE, b"source").await.unwrap();
        map.copy(BASE, PAGE_SIZE, BASE + 2 * PAGE_SIZE).await.unwrap();
        map.copy(BASE, PAGE_SIZE, to).await.unwrap();
        store(&map, BASE, b"S").await.unwrap();
        assert_eq!(load(&map, BASE + 2 * PAGE_SIZE, 6).await.unwrap(), b"source");
        assert_eq!(load(&other, window, 6).await.unwrap(), b"source");
    });
}

#[test]
fn device_memory_is_shared_and_not_copied() {
    let system = System::new(4);
    let map = system.map();
    system.run(async {
        let device = VmObject::device(system.vm(), 0xfee0_0000, PAGE_SIZE, Caching::Uncached).unwrap();
        let private = map.map(&MapRequest::private(device.clone(), 0, PAGE_SIZE)).await;
        assert_eq!(private, Err(KernError::NotSupported));
        let at = map.map(&MapRequest::shared(device, 0, 2 * PAGE_SIZE)).await.unwrap();
        store(&map, at, b"out").await.unwrap();
        let child = map.fork().await.unwrap();
        assert_eq!(load(&child, at, 3).await.unwrap(), b"out");
        assert_eq!(load(&map, at + PAGE_SIZE, 1).await, Err(KernError::MemoryFailure));
        assert_eq!(map.copyin(at, &mut [0]).await.unwrap_err().error, KernError::NotSupported);
    });
}

#[test]
fn running_out_of_frames_is_an_error_and_passes() {
    let system = System::new(4);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 8).await.unwrap();
        for page in 0..4 {
            store(&map, BASE + page * PAGE_SIZE, &[1]).await.unwrap();
        }
        assert_eq!(store(&map, BASE + 4 * PAGE_SIZE, &[1]).await, Err(KernError::ResourceShortage));
        map.deallocate(BASE, PAGE_SIZE).await.unwrap();
        store(&map, BASE + 4 * PAGE_SIZE, &[1]).await.unwrap();
    });
}

#[test]
fn neighbours_in_memory_are_mapped_with_a_fault() {
    let system = System::new(64);
    let map = system.map();
    system.run(async {
        let pager = FilePager::new(vec![7; 16 * PAGE_SIZE as usize]);
        let file = VmObject::paged(system.vm(), pager, 16 * PAGE_SIZE, CopyStrategy::Symmetric).unwrap();
        file.read(0, &mut vec![0; 16 * PAGE_SIZE as usize]).await.unwrap();
        let request = MapRequest::private(file, 0, 16 * PAGE_SIZE).at(Placement::Fixed(BASE));
        map.map(&request).await.unwrap();
        let before = system.machine.counters().kernel_entries;
        map.fault(BASE + 3 * PAGE_SIZE, READ).await.unwrap();
        assert_eq!(system.machine.counters().kernel_entries - before, 1);
        assert_eq!(map.with_pmap(|pmap| system.machine.mapped_pages(pmap)), Some(16));
        assert_eq!(map.with_pmap(|pmap| system.machine.user_write(pmap, BASE, &[1])), Some(None));
        let _: &Arc<_> = &map;
    });
}

#[test]
fn growing_and_shrinking_one_range_keeps_one_entry_and_shows_no_old_data() {
    let system = System::new(32);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 1).await.unwrap();
        store(&map, BASE, &[1]).await.unwrap();
        for _ in 0..3 {
            allocate(&map, BASE + PAGE_SIZE, 2).await.unwrap();
            assert_eq!(map.entry_count().await, 1);
            assert_eq!(load(&map, BASE + PAGE_SIZE, 1).await.unwrap(), [0]);
            store(&map, BASE + PAGE_SIZE, &[2]).await.unwrap();
            map.deallocate(BASE + PAGE_SIZE, 2 * PAGE_SIZE).await.unwrap();
            assert_eq!(system.vm().statistics().free, 31);
        }
    });
}

#[test]
fn wired_pages_stay_and_are_counted() {
    let system = System::new(16);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 4).await.unwrap();
        map.wire(BASE + PAGE_SIZE, 2 * PAGE_SIZE).await.unwrap();
        map.wire(BASE + PAGE_SIZE, PAGE_SIZE).await.unwrap();
        assert_eq!(system.vm().statistics().wired, 2);
        assert_eq!(map.unwire(BASE, PAGE_SIZE).await, Err(KernError::InvalidAddress));
        map.unwire(BASE + PAGE_SIZE, 2 * PAGE_SIZE).await.unwrap();
        assert_eq!(system.vm().statistics().wired, 1);
        // A copy-on-write in a wired entry takes the wiring along.
        let child = map.fork().await.unwrap();
        store(&map, BASE + PAGE_SIZE, &[1]).await.unwrap();
        assert_eq!(system.vm().statistics().wired, 1);
        child.terminate().await;
        map.unwire(BASE + PAGE_SIZE, PAGE_SIZE).await.unwrap();
        assert_eq!(system.vm().statistics().wired, 0);
        assert_eq!(map.wire(BASE, 5 * PAGE_SIZE).await, Err(KernError::InvalidAddress));
        // Unmapping ends the wiring, and so does the end of a map that shares what is wired.
        let sharer = system.map();
        let Ok(at) = sharer.insert(map.share(BASE, PAGE_SIZE).await.unwrap(), Placement::Above(0)).await
        else {
            panic!("no room")
        };
        sharer.wire(at, PAGE_SIZE).await.unwrap();
        assert_eq!(system.vm().statistics().wired, 1);
        sharer.terminate().await;
        assert_eq!(system.vm().statistics().wired, 0);
        map.wire(BASE, 4 * PAGE_SIZE).await.unwrap();
        map.deallocate(BASE, 4 * PAGE_SIZE).await.unwrap();
        assert_eq!(system.vm().statistics().wired, 0);
    });
}

#[test]
fn the_parts_of_a_range_that_can_be_are_wired_once() {
    let system = System::new(16);
    let map = system.map();
    system.run(async {
        let wired = || system.vm().statistics().wired;
        allocate(&map, BASE, 2).await.unwrap();
        allocate(&map, BASE + 3 * PAGE_SIZE, 3).await.unwrap();
        map.protect(BASE + PAGE_SIZE, PAGE_SIZE, Protection::NONE, false).await.unwrap();
        map.wire(BASE + 4 * PAGE_SIZE, PAGE_SIZE).await.unwrap();
        assert_eq!(map.wire_rest(BASE, 6 * PAGE_SIZE).await, Err(KernError::ProtectionFailure));
        assert_eq!(wired(), 4);
        assert_eq!(map.wire_rest(BASE + 3 * PAGE_SIZE, 3 * PAGE_SIZE).await, Ok(()));
        assert_eq!(map.unwire_parts(BASE + PAGE_SIZE, 4 * PAGE_SIZE).await, Ok(()));
        assert_eq!(wired(), 2);
        assert_eq!(map.unwire_parts(BASE, 8 * PAGE_SIZE).await, Ok(()));
        assert_eq!(wired(), 0);
    });
}

#[test]
fn a_map_can_have_very_many_entries() {
    const ENTRIES: u64 = 1 << 16;
    let system = System::new(8);
    let map = system.map();
    system.run(async {
        // Every other page is allocated, so that no two entries can be joined.
        for number in 0..ENTRIES {
            allocate(&map, BASE + 2 * number * PAGE_SIZE, 1).await.unwrap();
        }
        assert_eq!(map.entry_count().await, ENTRIES as usize);
        assert_eq!(map.allocate(Placement::Above(BASE), PAGE_SIZE).await, Ok(BASE + PAGE_SIZE));
        assert_eq!(
            map.allocate(Placement::Above(BASE), 2 * PAGE_SIZE).await,
            Ok(BASE + (2 * ENTRIES - 1) * PAGE_SIZE)
        );
        store(&map, BASE + 40_000 * PAGE_SIZE, &[1]).await.unwrap();
        let child = map.fork().await.unwrap();
        assert_eq!(load(&child, BASE + 40_000 * PAGE_SIZE, 1).await.unwrap(), [1]);
        map.deallocate(BASE, 2 * ENTRIES * PAGE_SIZE).await.unwrap();
        assert_eq!(map.size().await, PAGE_SIZE);
    });
}

#[test]
fn large_pages_are_used_where_they_fit() {
    const LARGE: u64 = 2 << 20;
    let system = System::new(2048);
    let map = system.map();
    system.run(async {
        // The region has two large pages and a few pages on either side.
        let start = 4 * LARGE - 3 * PAGE_SIZE;
        allocate(&map, start, 2 * 512 + 6).await.unwrap();
        map.behavior(start, 2 * LARGE + 6 * PAGE_SIZE, Behavior::LargePages).await.unwrap();
        store(&map, 4 * LARGE + 5 * PAGE_SIZE, b"large").await.unwrap();
        store(&map, start, b"small").await.unwrap();
        assert_eq!(system.vm().statistics().free, 2048 - 513);
        map.deallocate(start, 2 * LARGE + 6 * PAGE_SIZE).await.unwrap();
        assert_eq!(system.vm().statistics().free, 2048);

        allocate(&map, 4 * LARGE, 2 * 512).await.unwrap();
        map.behavior(4 * LARGE, 2 * LARGE, Behavior::LargePages).await.unwrap();
        let before = system.machine.counters();
        store(&map, 4 * LARGE + 5 * PAGE_SIZE, b"large").await.unwrap();
        let after = system.machine.counters();
        assert_eq!((after.entered - before.entered, after.kernel_entries - before.kernel_entries), (1, 1));
        assert_eq!(map.with_pmap(|pmap| system.machine.mapped_pages(pmap)), Some(512));
        assert_eq!(load(&map, 5 * LARGE - 2, 2).await.unwrap(), [0; 2]);
        // A part of the region can be deallocated, copied and protected by itself.
        let child = map.fork().await.unwrap();
        store(&map, 4 * LARGE + 5 * PAGE_SIZE, b"L").await.unwrap();
        assert_eq!(load(&child, 4 * LARGE + 5 * PAGE_SIZE, 5).await.unwrap(), b"large");
        map.deallocate(4 * LARGE + 7 * PAGE_SIZE, PAGE_SIZE).await.unwrap();
        assert_eq!(load(&map, 4 * LARGE + 5 * PAGE_SIZE, 5).await.unwrap(), b"Large");
        assert_eq!(load(&map, 4 * LARGE + 7 * PAGE_SIZE, 1).await, Err(KernError::InvalidAddress));
    });
}

#[test]
fn machine_attributes_are_told_and_most_cannot_change() {
    let system = System::new(4);
    let map = system.map();
    system.run(async {
        allocate(&map, BASE, 1).await.unwrap();
        let cache = |value| map.machine_attribute(BASE, PAGE_SIZE, MachineAttribute::Cache, value);
        assert_eq!(cache(AttributeValue::CacheSync).await, Ok(AttributeValue::On));
        assert_eq!(cache(AttributeValue::Off).await, Err(KernError::NotSupported));
        let beyond = map.machine_attribute(BASE, 9999, MachineAttribute::Migrate, AttributeValue::Get).await;
        assert_eq!(beyond, Err(KernError::InvalidAddress));
    });
}

#[test]
fn structures_have_the_sizes_that_the_book_says() {
    // The sizes are published in docs/src/results.md. Reference counts are included, pages beyond
    // the fourth are not.
    assert_eq!(VmObject::<Simulated>::BYTES, 280);
}

/// An OOM killer that ends one address space after the other.
struct Ender(std::sync::Mutex<alloc::vec::Vec<Arc<VmMap<Simulated>>>>);

impl OomKiller for Ender {
    fn make_room(&self) -> BoxFuture<'_, bool> {
        alloc::boxed::Box::pin(async {
            let Some(map) = self.0.lock().unwrap().pop() else { return false };
            let end = map.end();
            assert!(!end.has_come());
            map.terminate().await;
            assert!(end.has_come() && map.end().has_come());
            map.vm().free_or_end(&end, u64::MAX).await;
            true
        })
    }
}

#[test]
fn the_oom_killer_is_asked_when_no_page_can_be_taken() {
    let system = System::new(4);
    let map = system.map();
    let maps = [system.map(), system.map(), system.map()];
    system.run(async {
        allocate(&map, BASE, 8).await.unwrap();
        // The second address space has no pages, so the killer is asked for another.
        for (other, pages) in maps.iter().zip([3, 0, 1]) {
            allocate(other, BASE, 4).await.unwrap();
            for page in 0..pages {
                store(other, BASE + page * PAGE_SIZE, b"x").await.unwrap();
            }
        }
        assert_eq!(store(&map, BASE, b"x").await, Err(KernError::ResourceShortage));
        let ender = Arc::new(Ender(maps.to_vec().into()));
        let killer: Arc<dyn OomKiller> = ender.clone();
        system.vm().set_oom_killer(Arc::downgrade(&killer));
        store(&map, BASE, b"x").await.unwrap();
        assert_eq!(ender.0.lock().unwrap().len(), 2, "the last was enough");
        store(&map, BASE + PAGE_SIZE, b"x").await.unwrap();
        assert_eq!(ender.0.lock().unwrap().len(), 0, "one had nothing");
        map.copyout(BASE + 2 * PAGE_SIZE, &[1; 2 * PAGE_SIZE as usize]).await.unwrap();
        assert_eq!(store(&map, BASE + 4 * PAGE_SIZE, b"x").await, Err(KernError::ResourceShortage));
        let end = maps[0].end();
        drop((ender, killer));
        assert_eq!(store(&map, BASE + 4 * PAGE_SIZE, b"x").await, Err(KernError::ResourceShortage));
        assert!(end.has_come());
        let end = map.end();
        drop(map);
        assert!(end.has_come());
    });
}
