//! Memory objects of programs: requests for several pages, and answers in parts.

use mach::KernError;
use mach::ipc::Name;
use mach::machine::{Machine, PAGE_SIZE};
use message::Memory;

use crate::call;
use crate::pair::{DATA_RETURN, NO_CHANGE, PAGES, Pair, SUPPLY_COMPLETED, poll};
use crate::support::System;

/// A pager that is ready, and is asked for as many pages at a time as it maps.
async fn ready_for_clusters(system: &System) -> Pair {
    let pair = Pair::ready(system, 0).await;
    let size = 4 * PAGE_SIZE;
    call!(pair.pager, mach, pair.control, memory_object_set_cluster_size(size)).unwrap();
    pair
}

#[test]
fn a_cluster_is_one_request_and_its_pages_come_in_any_order() {
    let system = System::new();
    system.run(async {
        let pair = ready_for_clusters(&system).await;
        let mut first = pair.read(0);
        let mut third = pair.read(2);
        assert_eq!(poll(&mut first), None);
        assert_eq!(pair.request_of_pages().await, (0, 4));
        assert_eq!(poll(&mut third), None);
        assert!(!pair.has_message(), "the pager is not asked twice");
        pair.supply(2 * PAGE_SIZE, 2, 5, 0, Name::NULL).await;
        assert_eq!(poll(&mut first), None, "its page is not there");
        assert_eq!(poll(&mut third), Some(Ok(5)));
        pair.supply(0, 1, 6, 0, Name::NULL).await;
        assert_eq!(poll(&mut first), Some(Ok(6)));
        // The access has ended, and page 1 is still being waited for.
        let mut second = pair.read(1);
        assert_eq!(poll(&mut second), None);
        assert!(!pair.has_message(), "the pager is not asked twice");
        pair.supply(PAGE_SIZE, 1, 7, 0, Name::NULL).await;
        assert_eq!(second.await, Ok(7));
        assert_eq!(poll(&mut pair.read(3)), Some(Ok(5)));
        assert!(!pair.has_message());
    });
}

#[test]
fn the_pages_of_a_cluster_have_answers_of_each_kind() {
    let system = System::new();
    system.run(async {
        let pair = ready_for_clusters(&system).await;
        let mut reads: Vec<_> = (0..4).map(|page| pair.read(page)).collect();
        reads.iter_mut().for_each(|read| assert_eq!(poll(read), None));
        assert_eq!(pair.request_of_pages().await, (0, 4));
        let data_error = call!(pair.pager, mach, pair.control, memory_object_data_error(0, PAGE_SIZE, 5));
        data_error.unwrap();
        call!(pair.pager, mach, pair.control, memory_object_data_unavailable(PAGE_SIZE, 2 * PAGE_SIZE))
            .unwrap();
        assert_eq!(poll(&mut reads[0]), Some(Err(KernError::MemoryError)));
        drop(reads.remove(0));
        assert_eq!(reads.remove(0).await, Ok(0));
        assert_eq!(reads.remove(0).await, Ok(0));
        // An error for a page that was requested with another is that of the access that needs it.
        call!(pair.pager, mach, pair.control, memory_object_data_error(3 * PAGE_SIZE, PAGE_SIZE, 5)).unwrap();
        let mut last = reads.remove(0);
        while !pair.has_message() {
            assert_eq!(poll(&mut last), None);
        }
        // Nothing is requested beyond what is mapped.
        assert_eq!(pair.request_of_pages().await, (3, 1));
        call!(pair.pager, mach, pair.control, memory_object_data_error(3 * PAGE_SIZE, PAGE_SIZE, 5)).unwrap();
        assert_eq!(last.await, Err(KernError::MemoryError));
    });
}

#[test]
fn a_reader_that_ends_does_not_end_its_request() {
    let system = System::new();
    system.run(async {
        let pair = ready_for_clusters(&system).await;
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        assert_eq!(pair.request_of_pages().await, (0, 4));
        drop(read);
        let mut again = pair.read(0);
        assert_eq!(poll(&mut again), None);
        assert!(!pair.has_message(), "the pager is not asked twice");
        pair.supply(0, 4, 3, 0, Name::NULL).await;
        assert_eq!(again.await, Ok(3));
    });
}

#[test]
fn what_was_changed_returns_in_runs() {
    let system = System::new();
    system.run(async {
        let pair = ready_for_clusters(&system).await;
        let mut write = pair.write(0, 9);
        assert_eq!(poll(&mut write), None);
        assert_eq!(pair.request_of_pages().await, (0, 4));
        pair.supply(0, 4, 1, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        drop(write);
        assert_eq!(poll(&mut pair.write(1, 8)), Some(Ok(())));
        assert_eq!(poll(&mut pair.write(3, 7)), Some(Ok(())));
        let size = 4 * PAGE_SIZE;
        let request =
            call!(pair.pager, mach, pair.control, memory_object_lock_request(0, size, 1, 1, NO_CHANGE, 0));
        request.unwrap();
        for (page, pages, bytes) in [(0, 2, [9, 8]), (3, 1, [7, 0])] {
            let (id, words) = pair.message().await;
            assert_eq!((id, words[3], words[4] >> 32), (DATA_RETURN, page * PAGE_SIZE, pages * PAGE_SIZE));
            // The pages were changed, and the kernel keeps no copy.
            assert_eq!((words[7] as u32, words[9] as u32), (1, 0));
            for number in 0..pages {
                let address = words[5] + number * PAGE_SIZE;
                assert_eq!(pair.pager.read(address, 2).await, [bytes[number as usize], 1]);
            }
        }
        assert!(!pair.has_message(), "page 2 was not changed");
    });
}

#[test]
fn precious_pages_return_although_nothing_has_changed_them() {
    let system = System::new();
    system.run(async {
        let pair = ready_for_clusters(&system).await;
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        assert_eq!(pair.request_of_pages().await, (0, 4));
        pair.supply_precious(0, 2, 4, (0, 1), Name::NULL).await;
        pair.supply(2 * PAGE_SIZE, 2, 4, 0, Name::NULL).await;
        assert_eq!(poll(&mut read), Some(Ok(4)));
        drop(read);
        assert_eq!(poll(&mut pair.write(1, 5)), Some(Ok(())));
        pair.client.task.map().deallocate(pair.address, 4 * PAGE_SIZE).await.unwrap();
        for (page, dirty, byte) in [(0, 0, 4), (1, 1, 5)] {
            let (id, words) = pair.message().await;
            assert_eq!((id, words[3], words[7] as u32), (DATA_RETURN, page * PAGE_SIZE, dirty));
            assert_eq!(pair.pager.read(words[5], 2).await, [byte, 4]);
        }
        assert_eq!(pair.message().await.0, crate::pair::TERMINATE);
    });
}

#[test]
fn what_is_not_requested_is_taken_only_where_nothing_is() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let mut write = pair.write(1, 9);
        assert_eq!(poll(&mut write), None);
        assert_eq!(pair.request_of_pages().await, (1, 1));
        let done = pair.pager.port();
        pair.supply(0, 3, 1, 0, done).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        // The page is there, and what the pager gives now would undo the write.
        for _ in 0..2 {
            let (id, words) = pair.message_at(done).await;
            assert_eq!((id, words[3]), (SUPPLY_COMPLETED, 0));
            if words[7] != 0 {
                assert_eq!(
                    (words[7] as u32, words[9]),
                    (KernError::MemoryPresent.code() as u32, 0),
                    "{words:?}"
                );
                break;
            }
            pair.supply(0, 4, 2, 0, done).await;
        }
        for (page, byte) in [1, 9, 1, 2].into_iter().enumerate() {
            assert_eq!(poll(&mut pair.read(page as u64)), Some(Ok(byte)));
        }
    });
}

#[test]
fn a_silent_pager_costs_its_users_one_patience() {
    let system = System::new();
    system.kernel().set_pager_patience(2_000_000);
    system.run(async {
        let pair = ready_for_clusters(&system).await;
        let start = system.machine.now();
        assert_eq!(pair.read(0).await, Err(KernError::MemoryError));
        let waited = system.machine.now() - start;
        assert!((2_000_000..2_200_000).contains(&waited), "{waited}");
        for page in 1..4 {
            assert_eq!(pair.read(page).await, Err(KernError::MemoryError));
        }
        assert!(system.machine.now() - start < 3_000_000);
        // It is heard again, and has its time.
        call!(pair.pager, mach, pair.control, memory_object_change_attributes(0, 2, 0)).unwrap();
        let start = system.machine.now();
        assert_eq!(pair.read(0).await, Err(KernError::MemoryError));
        assert!(system.machine.now() - start >= 2_000_000);
    });
}

#[test]
fn unaligned_and_misplaced_answers_change_nothing() {
    let system = System::new();
    system.run(async {
        let pair = ready_for_clusters(&system).await;
        let other = Pair::ready(&system, 0).await;
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        pair.request_of_pages().await;
        let supply = async |offset, bytes| {
            let data = Memory { address: PAGES, count: bytes, deallocate: false };
            call!(pair.pager, mach, pair.control, memory_object_data_supply(offset, data, 0, 0, 0))
        };
        let page = PAGE_SIZE as u32;
        for (offset, bytes) in [(1, page), (0, page - 1), (u64::MAX - 4095, page), (PAGE_SIZE / 2, page)] {
            let _ = supply(offset, bytes).await;
        }
        // What the pager of another object supplies is that object's.
        other.supply(0, 4, 8, 0, Name::NULL).await;
        for (offset, size) in [(1, PAGE_SIZE), (0, 1), (PAGE_SIZE, u64::MAX)] {
            let _ = call!(pair.pager, mach, pair.control, memory_object_data_error(offset, size, 5));
            let _ = call!(pair.pager, mach, pair.control, memory_object_data_unavailable(offset, size));
        }
        assert_eq!(poll(&mut read), None);
        pair.supply(0, 4, 3, 0, Name::NULL).await;
        assert_eq!(poll(&mut read), Some(Ok(3)));
    });
}
