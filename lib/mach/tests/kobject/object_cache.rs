//! Memory objects that stay when nothing maps them.

use mach::ipc::{Disposition, Name, PortType};
use mach::machine::PAGE_SIZE;
use mach::machine::simulated::Failures;

use crate::call;
use crate::pair::{DATA_RETURN, INIT, NO_CHANGE, Pair, TERMINATE, poll};
use crate::support::System;

async fn unmap(pair: &Pair) {
    pair.client.task.map().deallocate(pair.address, 4 * PAGE_SIZE).await.unwrap();
}

/// A right of the client to the memory object.
fn object_of(pair: &Pair) -> u64 {
    let right = pair.pager.space().extract_right(pair.port, Disposition::MakeSend).unwrap();
    pair.client.name(right)
}

#[test]
fn an_object_that_may_be_kept_is_mapped_again_without_its_pager() {
    let system = System::new();
    system.run(async {
        let mut pair = Pair::new(&system, 0).await;
        call!(pair.pager, mach, pair.control, memory_object_ready(1, 2)).unwrap();
        let mut write = pair.write(0, 9);
        assert_eq!(poll(&mut write), None);
        pair.request().await;
        pair.supply(0, 1, 7, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        drop(write);
        unmap(&pair).await;
        assert!(!pair.has_message(), "neither ended nor returned");
        let statistics = call!(pair.client, gnumach, pair.client.own(), vm_cache_statistics()).unwrap();
        assert_eq!(statistics[1], 1);
        pair.address = pair.map(object_of(&pair), 0).await;
        assert_eq!(poll(&mut pair.read(0)), Some(Ok(9)));
        assert!(!pair.has_message());
        // The pager can have the pages of an object that nothing maps.
        unmap(&pair).await;
        call!(pair.pager, mach, pair.control, memory_object_lock_request(0, PAGE_SIZE, 1, 0, NO_CHANGE, 0))
            .unwrap();
        assert_eq!(pair.message().await.0, DATA_RETURN);
        // The object ends when the pager changes its mind.
        call!(pair.pager, mach, pair.control, memory_object_change_attributes(0, 2, 0)).unwrap();
        let (id, words) = pair.message().await;
        assert_eq!((id, words[1]), (TERMINATE, pair.control));
        let kind = pair.pager.space().port_type(Name(words[1] as u32)).unwrap();
        assert!(kind.contains(PortType::RECEIVE), "{kind:?}");
    });
}

#[test]
fn a_task_has_few_objects_that_stay() {
    let system = System::new();
    system.run(async {
        let (pager, client) = (system.program().await, system.program().await);
        let mut ended = 0;
        for number in 0..40 {
            let port = pager.port();
            let right = pager.space().extract_right(port, Disposition::MakeSend).unwrap();
            let object = client.name(right);
            let own = client.own();
            let map = call!(client, mach, own, vm_map(0, PAGE_SIZE, 0, 1, object, 0, 0, 7, 7, 1));
            let address = map.unwrap();
            let (id, words) = Pair::message_of(&pager, port).await;
            assert_eq!(id, INIT);
            call!(pager, mach, words[1], memory_object_ready(1, 0)).unwrap();
            client.task.map().deallocate(address, PAGE_SIZE).await.unwrap();
            let statistics = call!(client, gnumach, own, vm_cache_statistics()).unwrap();
            ended += u32::from(number >= 32);
            assert_eq!(statistics[1], number + 1 - ended, "the oldest object goes");
        }
    });
}

#[test]
fn an_object_for_which_memory_is_short_is_not_mapped_and_leaves_nothing() {
    let mut failed = 0;
    for reserve in 0..40 {
        let system = System::new();
        system.run(async {
            let (pager, client) = (system.program().await, system.program().await);
            let port = pager.port();
            let right = pager.space().extract_right(port, Disposition::MakeSend).unwrap();
            let (object, own) = (client.name(right), client.own());
            // The buffer for messages is in memory from here on.
            call!(client, mach, own, vm_statistics()).unwrap();
            let failures = Failures { reserve: Some(reserve), ..Failures::default() };
            system.machine.inject(failures);
            let mapped = call!(client, mach, own, vm_map(0, PAGE_SIZE, 0, 1, object, 0, 0, 7, 7, 1));
            system.machine.inject(Failures::default());
            failed += u32::from(mapped.is_err());
            // A message to end the object comes only after one to begin it.
            let mut begun = false;
            while pager.space().receive_status(port).unwrap().messages > 0 {
                let (id, _) = Pair::message_of(&pager, port).await;
                assert!(id == INIT && !begun || id == TERMINATE && begun, "{id}");
                begun = true;
            }
            // The object can be mapped afterwards.
            let mapped = call!(client, mach, own, vm_map(0, PAGE_SIZE, 0, 1, object, 0, 0, 7, 7, 1));
            mapped.unwrap();
        });
    }
    assert!(failed > 3, "{failed}");
}
