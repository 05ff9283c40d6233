//! One condition each.

use super::*;
use crate::machine::MachineEnd;
use simulation::{Device, MESSAGES};
use x2::protocol::{self, exception};
use x2::{Fpage, Rights};

const TWO: &str =
    "server a\nprogram p\nmemory 128K\nthreads 4\nspaces 3\nrestart yes\nserver b\nprogram p\nmemory 128K\n";
/// Pages that a server has at its start: two of its program, the start page, its stack.
const AT_START: u64 = 2 + 1 + 16;
/// The same with room for `pages` more.
fn one(pages: u64, rest: &str) -> String {
    format!("server a\nprogram p\nmemory {}K\n{rest}", (AT_START + pages) * 4)
}

fn two(pages: u64, rest: &str) -> String {
    format!("{}{}", one(pages, rest), one(pages, "").replace("server a", "server b"))
}

#[test]
fn a_server_starts_at_its_entry_with_its_program_and_nothing_else() {
    let root = Root::start(&one(0, "priority 7\n"));
    let machine = &root.system.resources.machine;
    let thread = machine.thread(root.first(0)).unwrap();
    assert_eq!((thread.start.unwrap().0, thread.priority), (0x100_0010, 7));
    assert_eq!(thread.handler, Some(root_thread(0)));
    let space = machine.space_of(root.first(0)).unwrap();
    assert_eq!(space.owner, Some(root_thread(0)));
    assert_eq!(space.pages.len() as u64, AT_START);
    assert_eq!(space.pages[&0x100_0000].1, Rights::READ_EXECUTE);
}

#[test]
fn a_server_that_does_not_fit_its_quota_is_not_started_and_leaves_nothing() {
    let mut root = Root::start("server a\nprogram p\nmemory 16K\nserver b\nprogram p\n");
    assert_eq!(root.running().collect::<Vec<_>>(), [1]);
    assert!(root.machine().reports[0].contains("cannot be started: its memory does not suffice"));
    let Some(Answer::Server([.., kind, _, _], name)) = root.request(1, request::SERVER, &[0]) else {
        panic!()
    };
    assert_eq!((kind, name.as_str()), (5, "a"));
}

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
        let answer = root.request(0, request::MEMORY_FREE, &[address, size]);
        assert_eq!(answer, refused(Status::InvalidArgument));
    }
    let first = root.first(0);
    assert_eq!(root.send(first, request::MEMORY_FREE, &[ROOM, 4 * PAGE]), None);
    // A second thread asks while the first request is being carried out.
    let again = root.send(first, request::MEMORY_FREE, &[ROOM, 4 * PAGE]);
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
    assert_eq!(root.send(first, request::MEMORY_FREE, &[ROOM, 4 * PAGE]), refused(Status::InvalidArgument));
    root.finish();
    assert_eq!(root.request(0, request::MEMORY_FREE, &[ROOM, 4 * PAGE]), Some(Answer::Done));
}

#[test]
fn the_dead_servers_memory_is_cleared_before_another_server_has_it() {
    // The simulated machine refuses to map what was not cleared.
    let mut root = Root::start(&two(512, "restart yes\n"));
    for (index, label) in [(0, request::MEMORY_POOL), (1, ALLOCATE), (0, ALLOCATE), (1, request::MEMORY_POOL)]
    {
        assert_eq!(root.request(index, label, &[ROOM, 512 * PAGE]), Some(Answer::Done));
        assert_eq!(root.request(index, request::MEMORY_FREE, &[ROOM, 512 * PAGE]), Some(Answer::Done));
    }
    assert_eq!(root.request(0, request::MEMORY_POOL, &[ROOM, 512 * PAGE]), Some(Answer::Done));
    assert_eq!(root.request(0, request::EXIT, &[3]), None);
    assert_eq!(root.request(1, request::MEMORY_POOL, &[ROOM, 512 * PAGE]), Some(Answer::Done));
}

#[test]
fn what_ends_a_server_is_reported() {
    for (tag, words, report, kind) in [
        (MessageTag::new(request::EXIT, 1, 0), vec![3], "exit with status 3", [1, 3, 0]),
        (
            MessageTag::new(protocol::label(protocol::PAGE_FAULT, 2), 2, 0),
            vec![0x10, 0x20],
            "fault at 0x10, instruction 0x20",
            [2, 0x10, 0x20],
        ),
        (
            MessageTag::new(protocol::label(protocol::IO_PAGE_FAULT, 6), 2, 0),
            vec![Fpage::io(0x80, 0).raw(), 0x20],
            "use of port 0x80, instruction 0x20",
            [4, 0x80, 0x20],
        ),
    ] {
        let mut root = Root::start(&two(4, ""));
        let from = root.first(0);
        let request = Request::new(from, tag, words.into_iter());
        let Outcome::Work(item) = root.system.handle(&request) else { panic!("{report}") };
        root.queue.push((item, Ok(())));
        root.finish();
        let line = format!("root: server a has ended: {report}");
        assert!(root.machine().reports.contains(&line), "{:?}", root.machine().reports);
        let Some(Answer::Server(words, _)) = root.request(1, request::SERVER, &[0]) else { panic!() };
        assert_eq!((words[2], &words[7..]), (0, &kind[..]));
    }
}

#[test]
fn an_exception_ends_a_server() {
    let mut root = Root::start(TWO);
    let mut words = vec![0; exception::WORDS];
    (words[exception::NUMBER - 1], words[exception::RIP - 1]) = (6, 0x1234);
    let tag = MessageTag::new(protocol::label(protocol::ARCHITECTURE_EXCEPTION, 0), words.len(), 0);
    let request = Request::new(root.first(1), tag, words.into_iter());
    assert!(matches!(root.system.handle(&request), Outcome::Work(_)));
    assert!(root.machine().reports.last().unwrap().ends_with("exception 6, instruction 0x1234"));
}

#[test]
fn a_server_that_ends_in_the_middle_of_its_work_is_taken_down_after_it() {
    let mut root = Root::start(&two(1024, ""));
    let (first, free) = (root.first(0), root.system.resources.frames.free());
    assert_eq!(root.send(first, ALLOCATE, &[ROOM, 1024 * PAGE]), None);
    root.step(0);
    assert_eq!(root.send(first, request::EXIT, &[0]), None);
    // The step that was under way has ended; until then the memory stays the server's.
    root.step(1);
    assert!(root.system.resources.frames.free() < free);
    assert!(root.machine().thread(first).is_some());
    assert_eq!(root.send(first, ALLOCATE, &[room(2000), PAGE]), None, "its requests get no answer");
    root.finish();
    assert_eq!(root.answers, []);
    assert_eq!(root.system.resources.frames.free(), free + AT_START * PAGE);
    assert!(root.machine().thread(first).is_none());
}

#[test]
fn a_server_is_started_again_five_times_with_another_thread_each_time() {
    let mut root = Root::start(TWO);
    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        let first = root.first(0);
        assert!(seen.insert(first.raw()));
        assert_eq!(root.request(0, request::EXIT, &[1]), None);
        // A name of the last life is nothing any more.
        assert_eq!(root.ask(first, ALLOCATE, &[ROOM, PAGE]), None);
        assert_eq!(root.ask(first, request::EXIT, &[1]), None);
    }
    assert_eq!(root.request(0, request::EXIT, &[1]), None);
    assert_eq!(root.running().collect::<Vec<_>>(), [1]);
    assert_eq!(
        root.machine().reports.last().unwrap(),
        "root: server a is not started again: it ended 6 times"
    );
}

#[test]
fn a_stale_or_foreign_sender_gets_no_answer() {
    let mut root = Root::start(TWO);
    let first = root.first(0);
    let other = ThreadId::global(first.number(), first.version() + 1).unwrap();
    for from in [other, ThreadId::interrupt(3), root_thread(0), ThreadId::local(0x1000), ThreadId::NIL] {
        assert_eq!(root.ask(from, request::MEMORY_AVAILABLE, &[]), None, "{from:?}");
        assert_eq!(root.ask(from, request::EXIT, &[0]), None, "{from:?}");
    }
    assert_eq!(root.running().count(), 2);
}

#[test]
fn threads_are_the_servers_own_within_its_quota() {
    let mut root = Root::start(TWO);
    let made: Vec<u64> =
        (0..3).map(|_| word(root.request(0, request::THREAD_CREATE, &[0x100_0000, 0x5000]))).collect();
    assert_eq!(root.request(0, request::THREAD_CREATE, &[0, 0]), refused(Status::QuotaExceeded));
    let thread = root.machine().thread(ThreadId::from_raw(made[0])).unwrap().clone();
    assert_eq!(thread.start, Some((0x100_0000, 0x5000)));
    assert_eq!(root.space(0).used_utcbs.len(), 4);
    // Threads of the server may ask, too.
    assert!(word(root.ask(ThreadId::from_raw(made[0]), request::MEMORY_AVAILABLE, &[])) > 0);
    let foreign = root.first(1).raw();
    for thread in [root.first(0).raw(), foreign, root_thread(0).raw(), made[0] + 1, 0, u64::MAX] {
        assert_eq!(root.request(0, request::THREAD_DELETE, &[thread]), refused(Status::InvalidArgument));
    }
    assert_eq!(root.request(0, request::THREAD_DELETE, &[made[1]]), Some(Answer::Done));
    assert_eq!(root.request(0, request::THREAD_DELETE, &[made[1]]), refused(Status::InvalidArgument));
    // The place of its UTCB is free again.
    word(root.request(0, request::THREAD_CREATE, &[0, 0]));
}

/// The words of a request for a space.
fn space_words(root: &Root, index: usize) -> [u64; 7] {
    [0x7000_0000, 0x6000_0000, 16, 1, 0, u64::MAX, root.first(index).raw()]
}

#[test]
fn spaces_are_their_owners_only() {
    let mut root = Root::start(TWO);
    let words = space_words(&root, 0);
    let Some(Answer::Two(space, thread)) = root.request(0, request::SPACE_CREATE, &words) else { panic!() };
    let owner = root.machine().space_of(ThreadId::from_raw(thread)).unwrap().owner;
    assert_eq!(owner, Some(root.first(0)));
    let (own, foreign) = (root.first(0).raw(), root.first(1).raw());
    assert_eq!(root.request(1, request::SPACE_DELETE, &[space]), refused(Status::InvalidArgument));
    assert_eq!(
        root.request(1, request::SPACE_THREAD_CREATE, &[space, 1, foreign]),
        refused(Status::InvalidArgument)
    );
    for handler in [foreign, thread, root_thread(0).raw(), own + 1] {
        let answer = root.request(0, request::SPACE_THREAD_CREATE, &[space, 1, handler]);
        assert_eq!(answer, refused(Status::InvalidArgument));
    }
    // A UTCB that is in use, or outside the area.
    for place in [0, 1000, u64::MAX, u64::MAX / x2::utcb::SIZE] {
        let answer = root.request(0, request::SPACE_THREAD_CREATE, &[space, place, own]);
        assert_eq!(answer, refused(Status::InvalidArgument), "{place}");
    }
    let second = word(root.request(0, request::SPACE_THREAD_CREATE, &[space, 1, own]));
    // A thread of such a space is none of the server's own: it cannot ask.
    assert_eq!(root.ask(ThreadId::from_raw(second), request::EXIT, &[0]), None);
    assert_eq!(root.request(0, request::THREAD_DELETE, &[second]), refused(Status::InvalidArgument));
    assert_eq!(root.request(0, request::SPACE_THREAD_DELETE, &[second]), Some(Answer::Done));
    assert_eq!(root.request(0, request::SPACE_THREAD_DELETE, &[second]), refused(Status::InvalidArgument));
    assert_eq!(root.request(0, request::SPACE_THREAD_DELETE, &[thread]), refused(Status::InvalidArgument));
    assert_eq!(root.request(0, request::SPACE_DELETE, &[space]), Some(Answer::Done));
    assert_eq!(root.request(0, request::SPACE_DELETE, &[space]), refused(Status::InvalidArgument));
    assert_eq!(
        root.request(0, request::SPACE_THREAD_CREATE, &[space, 2, own]),
        refused(Status::InvalidArgument)
    );
}

#[test]
fn spaces_and_their_threads_count_against_the_quotas() {
    let mut root = Root::start(TWO);
    let words = space_words(&root, 0);
    let create = |root: &mut Root| root.request(0, request::SPACE_CREATE, &words);
    let Some(Answer::Two(space, _)) = create(&mut root) else { panic!() };
    let Some(Answer::Two(..)) = create(&mut root) else { panic!() };
    assert_eq!(create(&mut root), refused(Status::QuotaExceeded));
    word(root.request(0, request::SPACE_THREAD_CREATE, &[space, 1, words[6]]));
    let thread = root.request(0, request::SPACE_THREAD_CREATE, &[space, 2, words[6]]);
    assert_eq!(thread, refused(Status::QuotaExceeded));
    assert_eq!(root.request(0, request::SPACE_DELETE, &[space]), Some(Answer::Done));
    assert!(matches!(create(&mut root), Some(Answer::Two(..))));
}

#[test]
fn a_space_with_wrong_areas_is_refused_and_leaves_nothing() {
    let mut root = Root::start(TWO);
    for (at, word) in [
        (0, 1),
        (0, 1 << 47),
        (0, 0x6000_0000),
        (1, 0x1000),
        (1, u64::MAX),
        (2, 0),
        (2, 11),
        (2, 47),
        (2, 64),
        (3, 9),
        (6, 0),
    ] {
        let mut words = space_words(&root, 0);
        words[at] = word;
        let answer = root.request(0, request::SPACE_CREATE, &words);
        assert_eq!(answer, refused(Status::InvalidArgument), "word {at} {word:#x}");
    }
}

#[test]
fn a_kernel_that_refuses_a_call_leaves_root_as_it_was() {
    let mut root = Root::start(
        "server a\nprogram p\nmemory 128K\nthreads 4\nspaces 2\npriority 50\ninterrupt 3\nmodule m\nserver b\nprogram p\n",
    );
    let own = root.first(0).raw();
    let requests: Vec<(u64, Vec<u64>)> = vec![
        (request::THREAD_CREATE, vec![0, 0]),
        (request::SPACE_CREATE, vec![0x7000_0000, 0x6000_0000, 16, 1, 8, u64::MAX, own]),
        (ALLOCATE, vec![ROOM, 3 * PAGE]),
        (request::SHARE_CREATE, vec![room(8), PAGE, root.first(1).raw()]),
        (request::INTERRUPT_ATTACH, vec![3, own]),
        (request::MODULE_MAP, words_of(0x8000_0000, "m")),
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
fn a_start_that_the_kernel_refuses_leaves_nothing() {
    for calls in 0..100 {
        let machine = Simulation::default();
        machine.calls_left.set(Some(calls));
        let root = Root::start_on(machine, &one(0, "kernel-memory 1M\n"));
        if root.running().count() == 1 {
            assert!(calls > 8);
            return;
        }
    }
    panic!("it starts when no call is refused");
}

#[test]
fn a_name_leads_to_its_server_and_opens_the_two_spaces() {
    let mut root = Root::start(TWO);
    let (a, b) = (root.first(0), root.first(1));
    let lookup = |root: &mut Root, name| root.request_text(1, request::NAME_LOOKUP, 0, name);
    assert_eq!(lookup(&mut root, "a"), refused(Status::NotFound), "it has not registered");
    for thread in [b.raw(), root_thread(0).raw(), 0] {
        assert_eq!(root.request(0, request::NAME_REGISTER, &[thread]), refused(Status::InvalidArgument));
    }
    assert_eq!(root.request(0, request::NAME_REGISTER, &[a.raw()]), Some(Answer::Done));
    for name in ["b", "", "c", "aa"] {
        assert_eq!(lookup(&mut root, name), refused(Status::NotFound), "{name}");
    }
    let number = |root: &Root, id| root.system.resources.machine.thread(id).unwrap().space;
    let (space_a, space_b) = (number(&root, a), number(&root, b));
    assert!(root.machine().spaces[&space_a].opened.is_empty());
    assert_eq!(word(lookup(&mut root, "a")), a.raw());
    assert!(root.machine().spaces[&space_a].opened.contains(&space_b));
    assert!(root.machine().spaces[&space_b].opened.contains(&space_a));
    // With its server the name ends.
    root.request(0, request::EXIT, &[0]);
    assert_eq!(lookup(&mut root, "a"), refused(Status::NotFound));
}

#[test]
fn a_thread_that_waits_for_a_name_is_answered_in_the_name_of_the_thread_that_it_asked() {
    let mut root = Root::start(TWO);
    root.machine().processor = 1;
    assert_eq!(root.request_text(1, request::NAME_LOOKUP, 1, "a"), None);
    root.machine().processor = 0;
    // Also when the server ends and is started again meanwhile.
    root.request(0, request::EXIT, &[0]);
    assert_eq!(root.machine().replies, []);
    let (a, b) = (root.first(0), root.first(1));
    root.request(0, request::NAME_REGISTER, &[a.raw()]);
    assert_eq!(root.machine().replies, [(b, root_thread(1), Answer::One(a.raw()))]);
    root.request(0, request::NAME_REGISTER, &[a.raw()]);
    assert_eq!(root.machine().replies.len(), 1, "once");
}

#[test]
fn waiting_ends_when_the_server_will_not_run_again_or_the_waiting_one_has_ended() {
    let mut root = Root::start(TWO);
    let b = root.first(1);
    assert_eq!(root.request_text(1, request::NAME_LOOKUP, 1, "a"), None);
    for _ in 0..6 {
        assert_eq!(root.machine().replies, []);
        root.request(0, request::EXIT, &[0]);
    }
    assert_eq!(root.machine().replies, [(b, root_thread(0), Answer::Refused(Status::NotFound))]);
    assert_eq!(root.request_text(1, request::NAME_LOOKUP, 1, "a"), refused(Status::NotFound));

    let mut root = Root::start(TWO);
    root.request_text(1, request::NAME_LOOKUP, 1, "a");
    root.request(1, request::EXIT, &[0]);
    let a = root.first(0).raw();
    root.request(0, request::NAME_REGISTER, &[a]);
    assert_eq!(root.machine().replies, []);
}

#[test]
fn shared_memory_lives_until_both_servers_have_ended() {
    let mut root = Root::start(&two(16, "restart yes\n"));
    let (a, b) = (root.first(0), root.first(1));
    let free = root.system.resources.frames.free();
    for (size, partner) in
        [(0, b), (3 * PAGE, b), (PAGE / 2, b), (2 << 30, b), (PAGE, a), (PAGE, root_thread(0))]
    {
        let answer = root.request(0, request::SHARE_CREATE, &[ROOM, size, partner.raw()]);
        assert_eq!(answer, refused(Status::InvalidArgument));
    }
    assert_eq!(
        root.request(0, request::SHARE_CREATE, &[ROOM, 32 * PAGE, b.raw()]),
        refused(Status::QuotaExceeded)
    );
    // Until it has been cleared the partner cannot have it.
    assert_eq!(root.send(a, request::SHARE_CREATE, &[ROOM, 4 * PAGE, b.raw()]), None);
    assert_eq!(root.send(b, request::SHARE_MAP, &[1, ROOM]), refused(Status::NotFound));
    root.finish();
    assert_eq!(root.answers.pop(), Some((a, Answer::One(1))));
    assert_eq!(root.request(0, request::SHARE_MAP, &[1, room(8)]), refused(Status::NotFound), "its own");
    assert_eq!(root.request(1, request::SHARE_MAP, &[2, ROOM]), refused(Status::NotFound));
    assert_eq!(root.request(1, request::SHARE_MAP, &[1, ROOM]), Some(Answer::One(4 * PAGE)));
    assert_eq!(root.request(1, request::SHARE_MAP, &[1, room(3)]), refused(Status::InvalidArgument));
    // The maker ends and comes again: the partner still has the memory, and the new one does not.
    root.request(0, request::EXIT, &[0]);
    assert_eq!(root.system.resources.frames.free(), free - 4 * PAGE);
    assert_eq!(root.request(0, request::SHARE_MAP, &[1, ROOM]), refused(Status::NotFound));
    root.request(1, request::EXIT, &[0]);
    assert_eq!(root.system.resources.frames.free(), free + AT_START * PAGE);
}

#[test]
fn a_server_shares_sixteen_areas_at_most() {
    let mut root = Root::start(&two(32, ""));
    let partner = root.first(1).raw();
    for place in 0..16 {
        word(root.request(0, request::SHARE_CREATE, &[room(2 * place), PAGE, partner]));
    }
    let next = root.request(0, request::SHARE_CREATE, &[room(64), PAGE, partner]);
    assert_eq!(next, refused(Status::QuotaExceeded));
}

#[test]
fn what_devices_may_write_is_kept_for_the_server_that_had_it() {
    let mut root = Root::start(&two(0, "dma 12K\nrestart yes\n"));
    let dma = |root: &mut Root, words: [u64; 3]| root.request(0, request::MEMORY_DMA, &words);
    for words in
        [[ROOM, 0, 32], [ROOM, 3 * PAGE, 32], [ROOM, PAGE, 11], [ROOM, PAGE, 65], [ROOM + 1, PAGE, 32]]
    {
        assert_eq!(dma(&mut root, words), refused(Status::InvalidArgument));
    }
    assert_eq!(dma(&mut root, [ROOM, PAGE, 20]), refused(Status::NoMemory), "there is none below 1 MiB");
    let first = word(dma(&mut root, [ROOM, 2 * PAGE, 64]));
    assert_eq!(dma(&mut root, [room(4), 2 * PAGE, 32]), refused(Status::QuotaExceeded));
    let second = word(dma(&mut root, [room(4), PAGE, 32]));
    assert_eq!(root.request(1, request::MEMORY_DMA, &[ROOM, PAGE, 32]), refused(Status::NotFound));
    let free = root.system.resources.frames.free();
    root.request(0, request::EXIT, &[0]);
    assert_eq!(root.system.resources.frames.free(), free);
    assert_eq!(word(dma(&mut root, [ROOM, 2 * PAGE, 32])), first);
    assert_eq!(word(dma(&mut root, [room(4), PAGE, 32])), second);
}

#[test]
fn devices_are_those_of_the_configuration() {
    let mut root = Root::start(&two(0, "interrupt 3\nports 0x80..0x8f\ndevice 0x10000000 8K\n"));
    let (a, b) = (root.first(0).raw(), root.first(1).raw());
    let resource = |root: &mut Root, kind, index| root.request(0, request::RESOURCE, &[kind, index]);
    assert_eq!(resource(&mut root, 0, 0), Some(Answer::Two(3, 0)));
    assert_eq!(resource(&mut root, 1, 0), Some(Answer::Two(0x80, 0x8f)));
    assert_eq!(resource(&mut root, 2, 0), Some(Answer::Two(0x1000_0000, 0x2000)));
    for (kind, index) in [(0, 1), (1, u64::MAX), (3, 0), (4, 0), (u64::MAX, 0)] {
        assert_eq!(resource(&mut root, kind, index), refused(Status::NotFound));
    }
    let attach = |root: &mut Root, index, line, thread| {
        root.request(index, request::INTERRUPT_ATTACH, &[line, thread])
    };
    assert_eq!(attach(&mut root, 0, 4, a), refused(Status::NotFound));
    assert_eq!(attach(&mut root, 0, 3 | 1 << 32, a), refused(Status::NotFound));
    assert_eq!(attach(&mut root, 1, 3, b), refused(Status::NotFound));
    assert_eq!(attach(&mut root, 0, 3, b), refused(Status::InvalidArgument));
    assert_eq!(attach(&mut root, 0, 3, a), Some(Answer::Done));
    assert_eq!(attach(&mut root, 0, 3, a), refused(Status::InUse));
    assert_eq!(root.request(1, request::INTERRUPT_DETACH, &[3]), refused(Status::InvalidArgument));
    assert_eq!(root.request(0, request::INTERRUPT_DETACH, &[3]), Some(Answer::Done));
    assert_eq!(root.request(0, request::INTERRUPT_DETACH, &[3]), refused(Status::InvalidArgument));
    let map = |root: &mut Root, words: [u64; 3]| root.request(0, request::DEVICE_MAP, &words);
    for words in [
        [0x1000_0000, 0x3000, ROOM],
        [0xfff_f000, 0x1000, ROOM],
        [0x10_0000, PAGE, ROOM],
        [0x1000_2000, PAGE, ROOM],
    ] {
        assert_eq!(map(&mut root, words), refused(Status::NotFound));
    }
    for words in [
        [0x1000_0001, PAGE, ROOM],
        [0x1000_0000, 1, ROOM],
        [u64::MAX - 4095, 2 * PAGE, ROOM],
        [0x1000_0000, PAGE, 0],
    ] {
        assert_eq!(map(&mut root, words), refused(Status::InvalidArgument));
    }
    assert_eq!(map(&mut root, [0x1000_1000, PAGE, ROOM]), Some(Answer::Done));
    assert_eq!(map(&mut root, [0x1000_0000, PAGE, ROOM]), refused(Status::InvalidArgument));
}

#[test]
fn an_interrupt_is_free_when_its_thread_or_server_has_ended() {
    let mut root = Root::start(&one(0, "interrupt 3\nrestart yes\n"));
    let thread = word(root.request(0, request::THREAD_CREATE, &[0, 0]));
    assert_eq!(root.request(0, request::INTERRUPT_ATTACH, &[3, thread]), Some(Answer::Done));
    root.request(0, request::THREAD_DELETE, &[thread]);
    let first = root.first(0).raw();
    assert_eq!(root.request(0, request::INTERRUPT_ATTACH, &[3, first]), Some(Answer::Done));
    root.request(0, request::EXIT, &[0]);
    let first = root.first(0).raw();
    assert_eq!(root.request(0, request::INTERRUPT_ATTACH, &[3, first]), Some(Answer::Done));
}

#[test]
fn the_first_use_of_a_port_gives_the_whole_range() {
    let mut root = Root::start(&one(0, "ports 0x81..0x86\nrestart yes\n"));
    let fault = |root: &mut Root, fpage: Fpage| {
        let tag = MessageTag::new(protocol::label(protocol::IO_PAGE_FAULT, 6), 2, 0);
        root.system.handle(&Request::new(root.first(0), tag, [fpage.raw(), 0x20].into_iter()))
    };
    let Outcome::Answer(Answer::Ports(ports)) = fault(&mut root, Fpage::io(0x84, 1)) else { panic!() };
    assert_eq!(ports, 0x81..=0x86);
    let asked: Vec<_> = root.machine().ports.iter().map(|fpage| fpage.ports().unwrap()).collect();
    assert_eq!(
        asked.iter().map(|ports| (ports.first, ports.last())).collect::<Vec<_>>(),
        [(0x81, 0x81), (0x82, 0x83), (0x84, 0x85), (0x86, 0x86)]
    );
    for fpage in [
        Fpage::io(0x80, 0),
        Fpage::io(0x86, 1),
        Fpage::io(0, 16),
        Fpage::memory(0x80000, 12),
        Fpage::from_raw(0),
    ] {
        let Outcome::Work(item) = fault(&mut root, fpage) else { panic!("{fpage:?}") };
        root.queue.push((item, Ok(())));
        root.finish();
    }
}

#[test]
fn only_a_server_with_power_ends_the_system() {
    let mut root = Root::start(&two(0, "power yes\n"));
    assert_eq!(root.request(1, request::SYSTEM_END, &[0, 0]), refused(Status::NotFound));
    for (how, status) in [(0, 128), (0, u64::MAX), (2, 0)] {
        assert_eq!(root.request(0, request::SYSTEM_END, &[how, status]), refused(Status::InvalidArgument));
    }
    assert_eq!(root.machine().end, None);
    assert_eq!(root.request(0, request::SYSTEM_END, &[0, 127]), refused(Status::Unsupported));
    assert_eq!(root.machine().end, Some(MachineEnd::PowerOff { status: 127 }));
    root.request(0, request::SYSTEM_END, &[1, u64::MAX]);
    assert_eq!(root.machine().end, Some(MachineEnd::Reset));
}

#[test]
fn a_module_is_mapped_once_where_large_pages_fit() {
    let mut root = Root::start(&two(0, "module m\n"));
    let map = |root: &mut Root, index, room, name| root.request_text(index, request::MODULE_MAP, room, name);
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
fn texts_are_shown_without_control_characters_and_wrong_lengths_are_refused() {
    let mut root = Root::start(TWO);
    let from = root.first(0);
    let print = |words: Vec<u64>| {
        let request = Request::new(from, MessageTag::new(request::PRINT, words.len(), 0), words.into_iter());
        request.printable().map(|text| text.collect::<String>())
    };
    let text = words_of(0, "a\x1b[2J\nb\u{7f}")[1..].to_vec();
    assert_eq!(print(text), Ok("a?[2J\nb?".into()));
    assert_eq!(print(vec![0]), Ok(String::new()));
    for words in [vec![], vec![1], vec![9, 0], vec![u64::MAX, 0]] {
        assert_eq!(print(words), Err(Status::InvalidArgument));
    }
    for words in [vec![], vec![0], vec![0, 1], vec![0, 9, 0], vec![0, u64::MAX, 0]] {
        assert_eq!(root.request(1, request::NAME_LOOKUP, &words), refused(Status::InvalidArgument));
    }
}

#[test]
fn without_memory_of_its_own_root_refuses_but_lets_servers_end() {
    let mut root = Root::start(TWO);
    root.machine().is_out_of_memory = true;
    for label in request::PRINT..request::ANSWER {
        if label != request::EXIT {
            assert_eq!(root.request(0, label, &[]), refused(Status::NoMemory));
        }
    }
    assert_eq!(root.request(0, request::EXIT, &[0]), None);
    // It could not be started again.
    assert_eq!(root.running().collect::<Vec<_>>(), [1]);
}

/// A function with a memory base address of 16 KiB, whose table of four messages is its second
/// page.
fn function_with_table() -> Device {
    let words = [
        (0, 0x10d3_8086),
        (4, 1 << 20 | 3),
        (0x10, 0x2000_0000),
        (0x34, 0x40),
        (0x40, 3 << 16 | 0x11),
        (0x44, 0x1000),
    ];
    let writable = [(4, 0xffff), (0x10, !0x3fff), (0x40, 3 << 30)];
    Device { words: words.into(), writable: writable.into() }
}

const PCI: &str = "pci 8086:10d3\nrestart yes\n";

fn with_function() -> Root {
    let mut machine = Simulation::default();
    machine.devices.insert(3 << 11, function_with_table());
    Root::start_on(machine, &two(0, PCI))
}

#[test]
fn a_function_tells_its_messages_to_its_servers_threads_only() {
    let mut root = with_function();
    let (a, b) = (root.first(0).raw(), root.first(1).raw());
    assert_eq!(root.request(0, request::RESOURCE, &[3, 0]), Some(Answer::Two(3 << 3, 4)));
    assert_eq!(root.request(0, request::PCI_REGION, &[0, 0]), Some(Answer::Three(0, 0x2000_0000, 0x4000)));
    for (function, region) in [(0, 1), (0, 6), (0, u64::MAX), (1, 0), (u64::MAX, 0)] {
        assert_eq!(root.request(0, request::PCI_REGION, &[function, region]), refused(Status::NotFound));
    }
    // Its table of messages is root's.
    let map = |root: &mut Root, at, size| root.request(0, request::DEVICE_MAP, &[at, size, ROOM]);
    assert_eq!(map(&mut root, 0x2000_1000, PAGE), refused(Status::NotFound));
    assert_eq!(map(&mut root, 0x2000_0000, 2 * PAGE), refused(Status::NotFound));
    assert_eq!(map(&mut root, 0x2000_2000, 2 * PAGE), Some(Answer::Done));
    let attach =
        |root: &mut Root, index, words: [u64; 3]| root.request(index, request::MESSAGE_ATTACH, &words);
    assert_eq!(attach(&mut root, 1, [0, 0, b]), refused(Status::NotFound));
    assert_eq!(attach(&mut root, 0, [0, 0, b]), refused(Status::InvalidArgument));
    assert_eq!(attach(&mut root, 0, [0, 4, a]), refused(Status::NotFound));
    let interrupt = word(attach(&mut root, 0, [0, 1, a]));
    assert_eq!(attach(&mut root, 0, [0, 1, a]), refused(Status::InUse));
    assert_eq!(interrupt, u64::from(MESSAGES.start), "one of this processor's");
    assert_eq!(root.machine().registers[&0x2000_1010], 0xfee0_0000);
    assert_eq!(root.machine().registers[&0x2000_101c], 0);
    assert_eq!(root.machine().registers[&0x2000_102c], 1, "the others are masked");
    assert_eq!(root.machine().devices[&(3 << 11)].words[&4] & 0x404, 0x404);
    assert_eq!(root.request(1, request::MESSAGE_DETACH, &[interrupt]), refused(Status::InvalidArgument));
    assert_eq!(root.request(0, request::MESSAGE_DETACH, &[interrupt]), Some(Answer::Done));
    assert_eq!(root.machine().registers[&0x2000_101c], 1);
    assert_eq!(root.request(0, request::MESSAGE_DETACH, &[interrupt]), refused(Status::InvalidArgument));
}

#[test]
fn the_functions_of_a_server_that_has_ended_write_no_memory() {
    let mut root = with_function();
    let first = root.first(0).raw();
    word(root.request(0, request::MESSAGE_ATTACH, &[0, 0, first]));
    let from = root.first(0);
    root.send(from, request::EXIT, &[0]);
    while root.system.servers[0].state == State::Ending {
        root.step(0);
    }
    let words = &root.machine().devices[&(3 << 11)].words;
    assert_eq!((words[&4] & 4, words[&0x40] >> 31), (0, 0));
    root.finish();
    let first = root.first(0).raw();
    word(root.request(0, request::MESSAGE_ATTACH, &[0, 0, first]));
}

#[test]
fn a_message_that_the_kernel_refuses_leaves_the_function_as_it_was() {
    let mut root = with_function();
    let first = root.first(0).raw();
    for calls in 0..2 {
        root.machine().calls_left.set(Some(calls));
        assert!(matches!(root.request(0, request::MESSAGE_ATTACH, &[0, 0, first]), Some(Answer::Refused(_))));
    }
    root.machine().calls_left.set(None);
    assert_eq!(root.machine().devices[&(3 << 11)].words[&4] & 4, 0);
}

#[test]
fn a_configured_function_that_the_machine_lacks_is_reported() {
    let mut root = Root::start(&one(0, PCI));
    assert_eq!(root.machine().reports[0], "root: server a: there is no PCI function 8086:10d3");
    assert_eq!(root.request(0, request::RESOURCE, &[3, 0]), refused(Status::NotFound));
}
