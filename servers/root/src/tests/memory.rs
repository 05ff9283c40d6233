//! Tests of memory, modules and shares.

use super::*;
use x2::Rights;

#[test]
fn memory_is_given_within_the_quota_and_only_where_nothing_is() {
    let mut root = Root::start(&one(4, ""));
    assert_eq!(root.request(0, ALLOCATE, &[ROOM, 4 * PAGE + PAGE]), refused(Status::QuotaExceeded));
    assert_eq!(root.request(0, ALLOCATE, &[room(1), 2 * PAGE]), Some(Answer::Done));
    for (address, size) in [
        (room(0), 2 * PAGE),
        (room(2), PAGE),
        (room(2), 2 * PAGE),
        (room(1), 2 * PAGE),
        (ROOM + 1, PAGE),
        (ROOM, PAGE + 1),
        (ROOM, 0),
        (0, PAGE),
        (u64::MAX - PAGE + 1, PAGE),
        (ROOM, u64::MAX - PAGE + 1),
        (0x100_0000, PAGE),
        (rt::start_page::ADDRESS, PAGE),
    ] {
        let answer = root.request(0, ALLOCATE, &[address, size]);
        assert_eq!(answer, refused(Status::InvalidArgument), "{address:#x} {size:#x}");
    }
    assert_eq!(root.request(0, ALLOCATE, &[room(3), 2 * PAGE]), Some(Answer::Done));
    assert_eq!(root.request(0, ALLOCATE, &[room(0), PAGE]), refused(Status::QuotaExceeded));
}

#[test]
fn memory_is_taken_back_as_it_was_given_and_once() {
    let mut root = Root::start(&one(4, ""));
    let free = root.system.resources.frames.free();
    root.request(0, ALLOCATE, &[ROOM, 4 * PAGE]).unwrap();
    for (address, size) in [(ROOM, PAGE), (room(1), PAGE), (room(1), 3 * PAGE), (ROOM, 5 * PAGE)] {
        let answer = root.request(0, request::ROOT_MEMORY_FREE, &[address, size]);
        assert_eq!(answer, refused(Status::InvalidArgument));
    }
    let first = root.first(0);
    assert_eq!(root.send(first, request::ROOT_MEMORY_FREE, &[ROOM, 4 * PAGE]), None);
    // A second request to free the memory is refused while the first is being carried out.
    let again = root.send(first, request::ROOT_MEMORY_FREE, &[ROOM, 4 * PAGE]);
    assert_eq!(again, refused(Status::InvalidArgument));
    assert_eq!(root.send(first, ALLOCATE, &[room(3), PAGE]), refused(Status::InvalidArgument));
    root.finish();
    assert_eq!(root.answers, [(first, Answer::Done)]);
    assert_eq!(root.system.resources.frames.free(), free);
}

#[test]
fn memory_that_is_being_cleared_cannot_be_given_back_yet() {
    let mut root = Root::start(&one(4, ""));
    let first = root.first(0);
    assert_eq!(root.send(first, ALLOCATE, &[ROOM, 4 * PAGE]), None);
    assert_eq!(
        root.send(first, request::ROOT_MEMORY_FREE, &[ROOM, 4 * PAGE]),
        refused(Status::InvalidArgument)
    );
    root.finish();
    assert_eq!(root.request(0, request::ROOT_MEMORY_FREE, &[ROOM, 4 * PAGE]), Some(Answer::Done));
}

#[test]
fn the_dead_servers_memory_is_cleared_before_another_server_has_it() {
    // The simulated machine fails the test if root maps memory that was not cleared.
    let mut root = Root::start(&two(512, "restart yes\n"));
    for (index, label) in
        [(0, request::ROOT_MEMORY_POOL), (1, ALLOCATE), (0, ALLOCATE), (1, request::ROOT_MEMORY_POOL)]
    {
        assert_eq!(root.request(index, label, &[ROOM, 512 * PAGE]), Some(Answer::Done));
        assert_eq!(root.request(index, request::ROOT_MEMORY_FREE, &[ROOM, 512 * PAGE]), Some(Answer::Done));
    }
    assert_eq!(root.request(0, request::ROOT_MEMORY_POOL, &[ROOM, 512 * PAGE]), Some(Answer::Done));
    assert_eq!(root.request(0, request::ROOT_EXIT, &[3]), None);
    assert_eq!(root.request(1, request::ROOT_MEMORY_POOL, &[ROOM, 512 * PAGE]), Some(Answer::Done));
}

#[test]
fn shared_memory_lives_until_both_servers_have_ended() {
    let mut root = Root::start(&two(16, "restart yes\n"));
    let (a, b) = (root.first(0), root.first(1));
    let free = root.system.resources.frames.free();
    for (size, partner) in
        [(0, b), (3 * PAGE, b), (PAGE / 2, b), (2 << 30, b), (PAGE, a), (PAGE, root_thread(0))]
    {
        let answer = root.request(0, request::ROOT_SHARE_CREATE, &[ROOM, size, partner.raw()]);
        assert_eq!(answer, refused(Status::InvalidArgument));
    }
    assert_eq!(
        root.request(0, request::ROOT_SHARE_CREATE, &[ROOM, 32 * PAGE, b.raw()]),
        refused(Status::QuotaExceeded)
    );
    // The partner cannot map the share until it has been cleared.
    assert_eq!(root.send(a, request::ROOT_SHARE_CREATE, &[ROOM, 4 * PAGE, b.raw()]), None);
    assert_eq!(root.send(b, request::ROOT_SHARE_MAP, &[1, ROOM]), refused(Status::NotFound));
    root.finish();
    assert_eq!(root.answers.pop(), Some((a, Answer::One(1))));
    assert_eq!(root.request(0, request::ROOT_SHARE_MAP, &[1, room(8)]), refused(Status::NotFound), "its own");
    assert_eq!(root.request(1, request::ROOT_SHARE_MAP, &[2, ROOM]), refused(Status::NotFound));
    assert_eq!(root.request(1, request::ROOT_SHARE_MAP, &[1, ROOM]), Some(Answer::One(4 * PAGE)));
    assert_eq!(root.request(1, request::ROOT_SHARE_MAP, &[1, room(3)]), refused(Status::InvalidArgument));
    // The creator of the share ends and is started again. The partner still has the memory; the new
    // incarnation of the creator does not.
    root.request(0, request::ROOT_EXIT, &[0]);
    assert_eq!(root.system.resources.frames.free(), free - 4 * PAGE);
    assert_eq!(root.request(0, request::ROOT_SHARE_MAP, &[1, ROOM]), refused(Status::NotFound));
    root.request(1, request::ROOT_EXIT, &[0]);
    assert_eq!(root.system.resources.frames.free(), free + AT_START * PAGE);
}

#[test]
fn a_server_shares_sixteen_areas_at_most() {
    let mut root = Root::start(&two(32, ""));
    let partner = root.first(1).raw();
    for place in 0..16 {
        word(root.request(0, request::ROOT_SHARE_CREATE, &[room(2 * place), PAGE, partner]));
    }
    let next = root.request(0, request::ROOT_SHARE_CREATE, &[room(64), PAGE, partner]);
    assert_eq!(next, refused(Status::QuotaExceeded));
}

#[test]
fn what_devices_may_write_is_kept_for_the_server_that_had_it() {
    let mut root = Root::start(&two(0, "dma 12K\nrestart yes\n"));
    let with = |root: &mut Root, [address, size, bits]: [u64; 3], kept| {
        root.request(0, request::ROOT_MEMORY_DMA, &[address, size, bits, kept])
    };
    let dma = |root: &mut Root, words| with(root, words, 0);
    for words in
        [[ROOM, 0, 32], [ROOM, 3 * PAGE, 32], [ROOM, PAGE, 11], [ROOM, PAGE, 65], [ROOM + 1, PAGE, 32]]
    {
        assert_eq!(dma(&mut root, words), refused(Status::InvalidArgument));
    }
    assert_eq!(dma(&mut root, [ROOM, PAGE, 20]), refused(Status::NoMemory), "there is none below 1 MiB");
    let first = word(dma(&mut root, [ROOM, 2 * PAGE, 64]));
    assert_eq!(dma(&mut root, [room(4), 2 * PAGE, 32]), refused(Status::QuotaExceeded));
    let second = word(dma(&mut root, [room(4), PAGE, 32]));
    assert_eq!(root.request(1, request::ROOT_MEMORY_DMA, &[ROOM, PAGE, 32, 0]), refused(Status::NotFound));
    let free = root.system.resources.frames.free();
    root.request(0, request::ROOT_EXIT, &[0]);
    assert_eq!(root.system.resources.frames.free(), free);
    assert_eq!(word(dma(&mut root, [ROOM, 2 * PAGE, 32])), first);
    assert_eq!(word(dma(&mut root, [room(4), PAGE, 32])), second);
    // What was in it is cleared, unless it is to be kept.
    for (kept, address) in [(1, room(4)), (0, room(4))] {
        let before = root.system.resources.machine.writer(second);
        root.request(0, request::ROOT_EXIT, &[0]);
        assert_eq!(word(with(&mut root, [address, PAGE, 32], kept)), second);
        let writer = root.system.resources.machine.writer(second);
        assert_eq!(writer == before, kept == 1, "what the server wrote before is there");
    }
}

#[test]
fn a_share_is_renewed_for_the_server_that_is_started_in_place_of_its_partner() {
    let mut root = Root::start(&two(8, "restart yes\n"));
    let (a, b) = (root.first(1).raw(), root.first(0).raw());
    let renew = |root: &mut Root, by, share, to| root.request(by, request::ROOT_SHARE_RENEW, &[share, to]);
    assert_eq!(root.request(1, request::ROOT_SHARE_CREATE, &[ROOM, PAGE, b]), Some(Answer::One(1)));
    assert_eq!(renew(&mut root, 1, 1, b), refused(Status::InUse));
    assert_eq!(root.request(0, request::ROOT_SHARE_MAP, &[1, ROOM]), Some(Answer::One(PAGE)));
    root.request(0, request::ROOT_EXIT, &[0]);
    let again = root.first(0).raw();
    assert_eq!(root.request(0, request::ROOT_SHARE_MAP, &[1, ROOM]), refused(Status::NotFound));
    for (by, share, to, status) in [
        (1, 2, again, Status::NotFound),
        (0, 1, a, Status::NotFound),
        (1, 1, a, Status::InvalidArgument),
        (1, 1, root_thread(0).raw(), Status::InvalidArgument),
    ] {
        assert_eq!(renew(&mut root, by, share, to), refused(status));
    }
    assert_eq!(renew(&mut root, 1, 1, again), Some(Answer::Done));
    assert_eq!(root.request(0, request::ROOT_SHARE_MAP, &[1, ROOM]), Some(Answer::One(PAGE)));
    let block = root.system.resources.shares.blocks()[0].start;
    assert!(root.system.resources.machine.writer(block).is_some(), "the memory is as it was");
}

#[test]
fn a_module_is_mapped_once_where_large_pages_fit() {
    let mut root = Root::start(&two(0, "module m\n"));
    let map =
        |root: &mut Root, index, room, name| root.request_text(index, request::ROOT_MODULE_MAP, room, name);
    assert_eq!(map(&mut root, 0, 0x20_0000, "n"), refused(Status::NotFound));
    assert_eq!(map(&mut root, 1, 0x20_0000, "m"), refused(Status::NotFound));
    assert_eq!(map(&mut root, 0, 0x20_1000, "m"), refused(Status::InvalidArgument));
    assert_eq!(map(&mut root, 0, u64::MAX << 21, "m"), refused(Status::InvalidArgument));
    let size = program().len() as u64;
    assert_eq!(map(&mut root, 0, 0x4000_0000, "m"), Some(Answer::Two(0x4000_3000, size)));
    assert_eq!(map(&mut root, 0, 0x20_1000, "m"), Some(Answer::Two(0x4000_3000, size)));
    let space = root.system.resources.machine.space_of(root.first(0)).unwrap();
    assert_eq!(space.pages[&0x4000_3000], (0x8000_3000, Rights::READ_EXECUTE));
}

#[test]
fn a_kernel_that_refuses_a_call_leaves_root_as_it_was() {
    let mut root = Root::start(
        "server a\nprogram p\nmemory 128K\nthreads 4\nspaces 2\npriority 50\ninterrupt 3\nmodule m\nserver b\nprogram p\n",
    );
    let own = root.first(0).raw();
    let requests: Vec<(u64, Vec<u64>)> = vec![
        (request::ROOT_THREAD_CREATE, vec![0, 0]),
        (request::ROOT_SPACE_CREATE, vec![0x7000_0000, 0x6000_0000, 16, 1, 8, u64::MAX, own]),
        (ALLOCATE, vec![ROOM, 3 * PAGE]),
        (request::ROOT_SHARE_CREATE, vec![room(8), PAGE, root.first(1).raw()]),
        (request::ROOT_INTERRUPT_ATTACH, vec![3, own]),
        (request::ROOT_MODULE_MAP, words_of(0x8000_0000, "m")),
    ];
    for (label, words) in requests {
        let free = root.system.resources.frames.free();
        let mut calls = 0;
        loop {
            root.machine().calls_left.set(Some(calls));
            let answer = root.request(0, label, &words);
            root.machine().calls_left.set(None);
            if !matches!(answer, Some(Answer::Refused(_))) {
                break;
            }
            assert_eq!(root.system.resources.frames.free(), free, "request {label}, call {calls}");
            calls += 1;
        }
        assert!(calls > 0, "request {label} makes a call");
    }
}

#[test]
fn a_share_can_be_mapped_after_its_creator_has_ended() {
    let mut root = Root::start(&two(8, ""));
    let b = root.first(1).raw();
    assert_eq!(root.request(0, request::ROOT_SHARE_CREATE, &[ROOM, PAGE, b]), Some(Answer::One(1)));
    assert_eq!(root.request(0, request::ROOT_EXIT, &[0]), None);
    assert_eq!(root.request(1, request::ROOT_SHARE_MAP, &[1, ROOM]), Some(Answer::One(PAGE)));
    root.request(1, request::ROOT_EXIT, &[0]);
    assert_eq!(root.system.resources.frames.free(), MEMORY.end - MEMORY.start);
}
