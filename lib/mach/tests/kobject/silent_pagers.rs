//! Pagers that take nothing: what their clients have changed goes to the default pager, and others
//! do not wait for them.

use mach::ipc::{Limits, Name};
use mach::machine::{Machine, PAGE_SIZE};
use mach::vm::Placement;

use crate::call;
use crate::pair::{DATA_RETURN, PAGES, Pair, poll};
use crate::support::System;
use crate::swap::Swap;

const FRAMES: u32 = 96;

/// A client has changed four pages of a pager that then receives nothing more, and for which at
/// most `queue` messages wait. Another one has needed all memory since.
async fn squeezed(system: &System, queue: usize) -> Pair {
    let pair = Pair::ready(system, 0).await;
    for page in 0..4 {
        let mut write = pair.write(page, 10 + page as u8);
        assert_eq!(poll(&mut write), None);
        pair.request().await;
        pair.supply(page * PAGE_SIZE, 1, 1, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
    }
    system.kernel().set_pager_queue(queue);
    let innocent = system.program().await;
    let map = innocent.task.map();
    let pages = 2 * u64::from(FRAMES);
    let address = map.allocate(Placement::Above(1 << 30), pages * PAGE_SIZE).await.unwrap();
    let start = system.machine.now();
    for round in 0..2 {
        for page in 0..pages {
            map.copyout(address + page * PAGE_SIZE, &[(page + round) as u8]).await.unwrap();
        }
    }
    for page in 0..pages {
        assert_eq!(innocent.read(address + page * PAGE_SIZE, 1).await, [(page + 1) as u8]);
    }
    // Only swap space was waited for.
    let waited = system.machine.now() - start;
    assert!(waited < 50 * 10 * pages, "{waited}");
    map.deallocate(address, pages * PAGE_SIZE).await.unwrap();
    pair
}

fn system() -> System {
    let system = System::with_frames(FRAMES, Limits::default());
    system.kernel().host().vm().set_default_pager(Swap::new(10, 1 << 12));
    system
}

#[test]
fn what_a_dead_pager_was_to_get_is_not_lost() {
    let system = system();
    system.run(async {
        let pair = squeezed(&system, 0).await;
        assert!(!pair.has_message());
        pair.pager.space().destroy(pair.port).unwrap();
        for page in 0..4 {
            assert_eq!(pair.read(page).await, Ok(10 + page as u8));
        }
    });
}

#[test]
fn a_pager_whose_queue_is_full_gets_its_pages_when_it_calls() {
    let system = system();
    system.run(async {
        let pair = Pair::ready(&system, 0).await;
        let mut write = pair.write(0, 9);
        assert_eq!(poll(&mut write), None);
        pair.request().await;
        pair.supply(0, 1, 1, 0, Name::NULL).await;
        assert_eq!(poll(&mut write), Some(Ok(())));
        drop(write);
        // From here on the pager counts as full.
        system.kernel().set_pager_queue(0);
        let size = 2 * u64::from(FRAMES) * PAGE_SIZE;
        let innocent = system.program().await;
        let map = innocent.task.map();
        let address = map.allocate(Placement::Above(1 << 30), size).await.unwrap();
        for page in 0..2 * u64::from(FRAMES) {
            map.copyout(address + page * PAGE_SIZE, &[1]).await.unwrap();
        }
        map.deallocate(address, size).await.unwrap();
        assert!(!pair.has_message(), "it is full");
        assert_eq!(pair.read(0).await, Ok(9), "the page was held");
        // What the pager gives instead is not taken.
        pair.supply(0, 1, 2, 0, Name::NULL).await;
        assert_eq!(pair.read(0).await, Ok(9));
        system.kernel().set_pager_queue(16);
        pair.client.task.map().deallocate(pair.address, 4 * PAGE_SIZE).await.unwrap();
        let (id, words) = pair.message().await;
        assert_eq!((id, words[3]), (DATA_RETURN, 0));
        assert_eq!(pair.pager.read(words[5], 2).await, [9, 1]);
        assert_ne!(words[5], PAGES);
    });
}

#[test]
fn an_innocent_task_does_not_wait_for_a_pager() {
    let system = system();
    system.run(async {
        let pair = squeezed(&system, 16).await;
        // The pager receives again, and has all that was changed.
        let mut found = [0; 4];
        call!(pair.pager, mach, pair.control, memory_object_change_attributes(0, 2, 0)).unwrap();
        while pair.has_message() {
            let (id, words) = pair.message().await;
            assert_eq!(id, DATA_RETURN);
            for at in (0..words[4] >> 32).step_by(PAGE_SIZE as usize) {
                found[((words[3] + at) / PAGE_SIZE) as usize] = pair.pager.read(words[5] + at, 1).await[0];
            }
        }
        assert_eq!(found, [10, 11, 12, 13]);
    });
}
