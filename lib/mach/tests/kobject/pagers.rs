//! Memory objects of programs: one program maps the memory of a port, and another has its pages.

use mach::KernError;
use mach::ipc::{Disposition, Name, PortType};
use mach::machine::PAGE_SIZE;
use message::Memory;

use crate::call;
use crate::pair::{
    CHANGE_COMPLETED, DATA_RETURN, DATA_UNLOCK, LOCK_COMPLETED, NO_CHANGE, PAGES, Pair, READ,
    SUPPLY_COMPLETED, TERMINATE, WRITE, poll,
};
use crate::support::System;

#[test]
fn a_page_is_what_the_pager_supplies() {
    let system = System::new();
    system.run(async {
        let pair = Pair::new(&system, 0).await;
        let mut read = pair.read(1);
        assert_eq!(poll(&mut read), None, "the pager is not ready");
        call!(pair.pager, mach, pair.control, memory_object_ready(0, 0)).unwrap();
        assert_eq!(poll(&mut read), None);
        assert_eq!(pair.request().await, (PAGE_SIZE, READ));
        // The other pages were not asked for, and are taken, too.
        let done = pair.pager.port();
        pair.supply(0, 3, 7, 0, done).await;
        assert_eq!(poll(&mut read), Some(Ok(7)));
        let (id, words) = pair.message_at(done).await;
        assert_eq!((id, words[3], words[5], words[7]), (SUPPLY_COMPLETED, 0, 3 * PAGE_SIZE, 0));
        drop(read);
        assert_eq!(poll(&mut pair.read(0)), Some(Ok(7)));
        assert_eq!(poll(&mut pair.read(2)), Some(Ok(7)));
        let mut read = pair.read(3);
        assert_eq!(poll(&mut read), None);
        assert_eq!(pair.request().await.0, 3 * PAGE_SIZE);
    });
}

#[test]
fn a_page_without_data_is_zeros_and_errors_reach_the_user() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        pair.request().await;
        call!(pair.pager, mach, pair.control, memory_object_data_unavailable(0, PAGE_SIZE)).unwrap();
        assert_eq!(poll(&mut read), Some(Ok(0)));
        let mut read = pair.read(1);
        assert_eq!(poll(&mut read), None);
        pair.request().await;
        call!(pair.pager, mach, pair.control, memory_object_data_error(PAGE_SIZE, PAGE_SIZE, 5)).unwrap();
        assert_eq!(poll(&mut read), Some(Err(KernError::MemoryError)));
        let mut read = pair.read(2);
        assert_eq!(poll(&mut read), None);
        call!(pair.pager, mach, pair.control, memory_object_destroy(5)).unwrap();
        assert_eq!(poll(&mut read), Some(Err(KernError::MemoryError)));
    });
}

#[test]
fn a_pager_that_dies_or_is_silent_gives_errors() {
    for dies in [true, false] {
        let system = System::new();
        system.run(async {
            let pair = Pair::ready(&system, 0).await;
            let mut read = pair.read(0);
            assert_eq!(poll(&mut read), None);
            if dies {
                pair.pager.space().destroy(pair.port).unwrap();
            }
            let before = mach::machine::Machine::now(&system.machine);
            assert_eq!(read.await, Err(KernError::MemoryError));
            assert!(dies == (mach::machine::Machine::now(&system.machine) - before < 1_000_000));
        });
    }
}

#[test]
fn changed_pages_return_to_the_pager() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let mut write = pair.write(0, 9);
        assert_eq!(poll(&mut write), None);
        assert_eq!(pair.request().await, (0, WRITE));
        pair.supply(0, 1, 7, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        let done = pair.pager.port();
        let to = u64::from(done.0);
        call!(pair.pager, mach, pair.control, memory_object_lock_request(0, PAGE_SIZE, 1, 1, NO_CHANGE, to))
            .unwrap();
        let (id, words) = pair.message().await;
        assert_eq!((id, words[3], words[4] >> 32), (DATA_RETURN, 0, PAGE_SIZE));
        let bytes = pair.pager.read(words[5], 4).await;
        assert_eq!(bytes, [9, 7, 7, 7]);
        let (id, words) = pair.message_at(done).await;
        assert_eq!((id, words[3], words[5]), (LOCK_COMPLETED, 0, PAGE_SIZE));
        // The page has left memory, so it is asked for again.
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        assert_eq!(pair.request().await, (0, READ));
        // A write to a page with a lock asks the pager.
        pair.supply(0, 1, 8, WRITE as u32, Name::NULL).await;
        assert_eq!(poll(&mut read), Some(Ok(8)));
        let mut write = pair.write(0, 1);
        assert_eq!(poll(&mut write), None);
        let (id, words) = pair.message().await;
        assert_eq!((id, words[3], words[7] & WRITE), (DATA_UNLOCK, 0, WRITE));
        call!(pair.pager, mach, pair.control, memory_object_lock_request(0, PAGE_SIZE, 0, 0, 0, 0)).unwrap();
        assert_eq!(poll(&mut write), Some(Ok(())));
        call!(pair.pager, mach, pair.control, memory_object_change_attributes(0, 0, to)).unwrap();
        assert_eq!(pair.message_at(done).await.0, CHANGE_COMPLETED);
    });
}

#[test]
fn tasks_that_map_one_object_share_it_and_a_copy_is_private() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let right = pair.pager.space().extract_right(pair.port, Disposition::MakeSend).unwrap();
        let object = pair.client.name(right);
        let copy = pair.map(object, 1).await;
        let mut write = pair.write(0, 9);
        assert_eq!(poll(&mut write), None);
        pair.request().await;
        pair.supply(0, 1, 7, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        drop(write);
        let shared = pair.map(object, 0).await;
        assert_eq!(pair.client.read(shared, 1).await, [9]);
        assert_eq!(pair.client.read(copy, 1).await, [7], "what the object was when it was copied");
    });
}

#[test]
fn the_end_of_the_last_mapping_ends_the_object() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let mut write = pair.write(1, 9);
        assert_eq!(poll(&mut write), None);
        pair.request().await;
        pair.supply(PAGE_SIZE, 1, 7, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        drop(write);
        pair.client.task.map().deallocate(pair.address, 4 * PAGE_SIZE).await.unwrap();
        // What was changed returns first.
        let (id, words) = pair.message().await;
        assert_eq!((id, words[3]), (DATA_RETURN, PAGE_SIZE));
        assert_eq!(pair.pager.read(words[5], 2).await, [9, 7]);
        let (id, words) = pair.message().await;
        assert_eq!(id, TERMINATE);
        for name in [words[1], words[3]] {
            let kind = pair.pager.space().port_type(Name(name as u32)).unwrap();
            assert!(kind.contains(PortType::RECEIVE), "{kind:?}");
        }
        assert_eq!(words[1], pair.control);
    });
}

#[test]
fn what_is_no_pager_cannot_be_mapped_and_only_controls_accept_answers() {
    let system = System::new();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let own = pair.client.own();
        let mapped = call!(pair.client, mach, own, vm_map(0, PAGE_SIZE, 0, 1, own, 0, 0, 7, 7, 1));
        assert!(mapped.is_err());
        // A request with bytes that are no whole page is refused, and nothing is supplied.
        let mut read = pair.read(0);
        assert_eq!(poll(&mut read), None);
        pair.request().await;
        let data = Memory { address: PAGES, count: 100, deallocate: false };
        let _ = call!(pair.pager, mach, pair.control, memory_object_data_supply(0, data, 0, 0, 0));
        assert_eq!(poll(&mut read), None);
    });
}
