//! Tests of starts and ends of servers.

use super::*;
use crate::machine::MachineEnd;
use x2::protocol::{self, exception};
use x2::{Fpage, Rights};

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
    let Some(Answer::Many(words)) = root.request(1, request::ROOT_SERVER, &[0]) else { panic!() };
    assert_eq!((words[7], &words[10..]), (5, &words_of(0, "a")[1..]), "why it ended, and its name");
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
fn what_ends_a_server_is_reported() {
    for (tag, words, report, kind) in [
        (MessageTag::new(request::ROOT_EXIT, 1, 0), vec![3], "exit with status 3", [1, 3, 0]),
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
        let (outcome, _) = handle(&mut root.system, from, tag, &words);
        let Outcome::Work(item) = outcome else { panic!("{report}") };
        root.queue.push((item, Ok(())));
        root.finish();
        let line = format!("root: server a has ended: {report}");
        assert!(root.machine().reports.contains(&line), "{:?}", root.machine().reports);
        let Some(Answer::Many(words)) = root.request(1, request::ROOT_SERVER, &[0]) else { panic!() };
        assert_eq!((words[2], &words[7..10]), (0, &kind[..]));
    }
}

#[test]
fn an_exception_ends_a_server() {
    let mut root = Root::start(TWO);
    let mut words = vec![0; exception::WORDS];
    (words[exception::NUMBER - 1], words[exception::RIP - 1]) = (6, 0x1234);
    let tag = MessageTag::new(protocol::label(protocol::ARCHITECTURE_EXCEPTION, 0), words.len(), 0);
    let from = root.first(1);
    assert!(matches!(handle(&mut root.system, from, tag, &words).0, Outcome::Work(_)));
    assert!(root.machine().reports.last().unwrap().ends_with("exception 6, instruction 0x1234"));
}

#[test]
fn a_server_that_ends_in_the_middle_of_its_work_is_taken_down_after_it() {
    let mut root = Root::start(&two(1024, ""));
    let (first, free) = (root.first(0), root.system.resources.frames.free());
    assert_eq!(root.send(first, ALLOCATE, &[ROOM, 1024 * PAGE]), None);
    root.step(0);
    assert_eq!(root.send(first, request::ROOT_EXIT, &[0]), None);
    // The memory stays the server's until the step that was under way has ended.
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
        assert_eq!(root.request(0, request::ROOT_EXIT, &[1]), None);
        // Requests of the thread that the server had before it was started again get no answer.
        assert_eq!(root.ask(first, ALLOCATE, &[ROOM, PAGE]), None);
        assert_eq!(root.ask(first, request::ROOT_EXIT, &[1]), None);
    }
    assert_eq!(root.request(0, request::ROOT_EXIT, &[1]), None);
    assert_eq!(root.running().collect::<Vec<_>>(), [1]);
    assert_eq!(
        root.machine().reports.last().unwrap(),
        "root: server a is not started again: it ended 6 times"
    );
}

#[test]
fn a_server_is_started_again_as_often_as_its_configuration_says() {
    let mut root = Root::start(&two(16, "restart 7\n"));
    for ends in 1..=7 {
        assert_eq!(root.request(0, request::ROOT_EXIT, &[1]), None);
        assert_eq!(root.running().count(), 2, "after {ends} ends");
    }
    assert_eq!(root.request(0, request::ROOT_EXIT, &[1]), None);
    assert_eq!(root.running().collect::<Vec<_>>(), [1]);
    let last = root.machine().reports.last().unwrap();
    assert_eq!(last, "root: server a is not started again: it ended 8 times");
}

#[test]
fn a_server_that_ran_for_a_minute_is_started_again_as_often_as_before() {
    let mut root = Root::start(TWO);
    for ends in 1..=20 {
        root.machine().now += 60_000_000 * u64::from(ends % 5 == 0);
        assert_eq!(root.request(0, request::ROOT_EXIT, &[1]), None);
        assert_eq!(root.running().count(), 2, "after {ends} ends");
    }
    // The last of them was the first after a minute.
    root.machine().now += 59_999_999;
    for _ in 0..5 {
        assert_eq!(root.request(0, request::ROOT_EXIT, &[1]), None);
    }
    assert_eq!(root.running().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_stale_or_foreign_sender_gets_no_answer() {
    let mut root = Root::start(TWO);
    let first = root.first(0);
    let other = ThreadId::global(first.number(), first.version() + 1).unwrap();
    for from in [other, ThreadId::interrupt(3), root_thread(0), ThreadId::local(0x1000), ThreadId::NIL] {
        assert_eq!(root.ask(from, request::ROOT_MEMORY_AVAILABLE, &[]), None, "{from:?}");
        assert_eq!(root.ask(from, request::ROOT_EXIT, &[0]), None, "{from:?}");
    }
    assert_eq!(root.running().count(), 2);
}

#[test]
fn without_memory_of_its_own_root_refuses_but_lets_servers_end() {
    let mut root = Root::start(TWO);
    root.machine().is_out_of_memory = true;
    for label in request::ROOT_PRINT..request::ROOT_PRINT + 100 {
        if label != request::ROOT_EXIT {
            assert_eq!(root.request(0, label, &[]), refused(Status::NoMemory));
        }
    }
    assert_eq!(root.request(0, request::ROOT_EXIT, &[0]), None);
    // Root has no memory to start the server again.
    assert_eq!(root.running().collect::<Vec<_>>(), [1]);
}

#[test]
fn only_a_server_with_power_ends_the_system() {
    let mut root = Root::start(&two(0, "power yes\n"));
    assert_eq!(root.request(1, request::ROOT_SYSTEM_END, &[0, 0]), refused(Status::NotFound));
    for (how, status) in [(0, 128), (0, u64::MAX), (2, 0)] {
        assert_eq!(
            root.request(0, request::ROOT_SYSTEM_END, &[how, status]),
            refused(Status::InvalidArgument)
        );
    }
    assert_eq!(root.machine().end, None);
    assert_eq!(root.request(0, request::ROOT_SYSTEM_END, &[0, 127]), refused(Status::Unsupported));
    assert_eq!(root.machine().end, Some(MachineEnd::PowerOff { status: 127 }));
    root.request(0, request::ROOT_SYSTEM_END, &[1, u64::MAX]);
    assert_eq!(root.machine().end, Some(MachineEnd::Reset));
}
