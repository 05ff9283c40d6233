//! Tests of threads, spaces and names.

use super::*;
use crate::requests::printable;

#[test]
fn threads_are_the_servers_own_within_its_quota() {
    let mut root = Root::start(TWO);
    let made: Vec<u64> =
        (0..3).map(|_| word(root.request(0, request::ROOT_THREAD_CREATE, &[0x100_0000, 0x5000]))).collect();
    assert_eq!(root.request(0, request::ROOT_THREAD_CREATE, &[0, 0]), refused(Status::QuotaExceeded));
    let thread = root.machine().thread(ThreadId::from_raw(made[0])).unwrap().clone();
    assert_eq!(thread.start, Some((0x100_0000, 0x5000)));
    assert_eq!(root.space(0).used_utcbs.len(), 4);
    // Other threads of a server may send requests, in addition to its first.
    assert!(word(root.ask(ThreadId::from_raw(made[0]), request::ROOT_MEMORY_AVAILABLE, &[])) > 0);
    let foreign = root.first(1).raw();
    for thread in [root.first(0).raw(), foreign, root_thread(0).raw(), made[0] + 1, 0, u64::MAX] {
        assert_eq!(root.request(0, request::ROOT_THREAD_DELETE, &[thread]), refused(Status::InvalidArgument));
    }
    assert_eq!(root.request(0, request::ROOT_THREAD_DELETE, &[made[1]]), Some(Answer::Done));
    assert_eq!(root.request(0, request::ROOT_THREAD_DELETE, &[made[1]]), refused(Status::InvalidArgument));
    // The UTCB of the deleted thread can be used again.
    word(root.request(0, request::ROOT_THREAD_CREATE, &[0, 0]));
}

/// The arguments of a request for a new space.
fn space_words(root: &Root, index: usize) -> [u64; 7] {
    [0x7000_0000, 0x6000_0000, 16, 1, 0, u64::MAX, root.first(index).raw()]
}

#[test]
fn spaces_are_their_owners_only() {
    let mut root = Root::start(TWO);
    let words = space_words(&root, 0);
    let Some(Answer::Two(space, thread)) = root.request(0, request::ROOT_SPACE_CREATE, &words) else {
        panic!()
    };
    let owner = root.machine().space_of(ThreadId::from_raw(thread)).unwrap().owner;
    assert_eq!(owner, Some(root.first(0)));
    let (own, foreign) = (root.first(0).raw(), root.first(1).raw());
    assert_eq!(root.request(1, request::ROOT_SPACE_DELETE, &[space]), refused(Status::InvalidArgument));
    assert_eq!(
        root.request(1, request::ROOT_SPACE_THREAD_CREATE, &[space, 1, foreign]),
        refused(Status::InvalidArgument)
    );
    for handler in [foreign, thread, root_thread(0).raw(), own + 1] {
        let answer = root.request(0, request::ROOT_SPACE_THREAD_CREATE, &[space, 1, handler]);
        assert_eq!(answer, refused(Status::InvalidArgument));
    }
    // Places whose UTCB is in use, or lies outside the UTCB area, are refused.
    for place in [0, 1000, u64::MAX, u64::MAX / x2::utcb::SIZE] {
        let answer = root.request(0, request::ROOT_SPACE_THREAD_CREATE, &[space, place, own]);
        assert_eq!(answer, refused(Status::InvalidArgument), "{place}");
    }
    let second = word(root.request(0, request::ROOT_SPACE_THREAD_CREATE, &[space, 1, own]));
    // A thread in a space that the server owns cannot send requests: it does not live in the
    // server's own space.
    assert_eq!(root.ask(ThreadId::from_raw(second), request::ROOT_EXIT, &[0]), None);
    assert_eq!(root.request(0, request::ROOT_THREAD_DELETE, &[second]), refused(Status::InvalidArgument));
    assert_eq!(root.request(0, request::ROOT_SPACE_THREAD_DELETE, &[second]), Some(Answer::Done));
    assert_eq!(
        root.request(0, request::ROOT_SPACE_THREAD_DELETE, &[second]),
        refused(Status::InvalidArgument)
    );
    assert_eq!(
        root.request(0, request::ROOT_SPACE_THREAD_DELETE, &[thread]),
        refused(Status::InvalidArgument)
    );
    assert_eq!(root.request(0, request::ROOT_SPACE_DELETE, &[space]), Some(Answer::Done));
    assert_eq!(root.request(0, request::ROOT_SPACE_DELETE, &[space]), refused(Status::InvalidArgument));
    assert_eq!(
        root.request(0, request::ROOT_SPACE_THREAD_CREATE, &[space, 2, own]),
        refused(Status::InvalidArgument)
    );
}

#[test]
fn spaces_and_their_threads_count_against_the_quotas() {
    let mut root = Root::start(TWO);
    let words = space_words(&root, 0);
    let create = |root: &mut Root| root.request(0, request::ROOT_SPACE_CREATE, &words);
    let Some(Answer::Two(space, _)) = create(&mut root) else { panic!() };
    let Some(Answer::Two(..)) = create(&mut root) else { panic!() };
    assert_eq!(create(&mut root), refused(Status::QuotaExceeded));
    word(root.request(0, request::ROOT_SPACE_THREAD_CREATE, &[space, 1, words[6]]));
    let thread = root.request(0, request::ROOT_SPACE_THREAD_CREATE, &[space, 2, words[6]]);
    assert_eq!(thread, refused(Status::QuotaExceeded));
    assert_eq!(root.request(0, request::ROOT_SPACE_DELETE, &[space]), Some(Answer::Done));
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
        let answer = root.request(0, request::ROOT_SPACE_CREATE, &words);
        assert_eq!(answer, refused(Status::InvalidArgument), "word {at} {word:#x}");
    }
}

#[test]
fn a_name_leads_to_its_server_and_opens_the_two_spaces() {
    let mut root = Root::start(TWO);
    let (a, b) = (root.first(0), root.first(1));
    let lookup = |root: &mut Root, name| root.request_text(1, request::ROOT_NAME_LOOKUP, 0, name);
    assert_eq!(lookup(&mut root, "a"), refused(Status::NotFound), "it has not registered");
    for thread in [b.raw(), root_thread(0).raw(), 0] {
        assert_eq!(root.request(0, request::ROOT_NAME_REGISTER, &[thread]), refused(Status::InvalidArgument));
    }
    assert_eq!(root.request(0, request::ROOT_NAME_REGISTER, &[a.raw()]), Some(Answer::Done));
    for name in ["b", "", "c", "aa"] {
        assert_eq!(lookup(&mut root, name), refused(Status::NotFound), "{name}");
    }
    let number = |root: &Root, id| root.system.resources.machine.thread(id).unwrap().space;
    let (space_a, space_b) = (number(&root, a), number(&root, b));
    assert!(root.machine().spaces[&space_a].opened.is_empty());
    assert_eq!(word(lookup(&mut root, "a")), a.raw());
    assert!(root.machine().spaces[&space_a].opened.contains(&space_b));
    assert!(root.machine().spaces[&space_b].opened.contains(&space_a));
    // The name of a server that has ended is not found.
    root.request(0, request::ROOT_EXIT, &[0]);
    assert_eq!(lookup(&mut root, "a"), refused(Status::NotFound));
}

#[test]
fn a_thread_that_waits_for_a_name_is_answered_in_the_name_of_the_thread_that_it_asked() {
    let mut root = Root::start(TWO);
    root.machine().processor = 1;
    assert_eq!(root.request_text(1, request::ROOT_NAME_LOOKUP, 1, "a"), None);
    root.machine().processor = 0;
    // The server whose name is looked up ends and is started again while the thread waits.
    root.request(0, request::ROOT_EXIT, &[0]);
    assert_eq!(root.machine().replies, []);
    let (a, b) = (root.first(0), root.first(1));
    root.request(0, request::ROOT_NAME_REGISTER, &[a.raw()]);
    assert_eq!(root.machine().replies, [(b, root_thread(1), Answer::One(a.raw()))]);
    root.request(0, request::ROOT_NAME_REGISTER, &[a.raw()]);
    assert_eq!(root.machine().replies.len(), 1, "once");
}

#[test]
fn waiting_ends_when_the_server_will_not_run_again_or_the_waiting_one_has_ended() {
    let mut root = Root::start(TWO);
    let b = root.first(1);
    assert_eq!(root.request_text(1, request::ROOT_NAME_LOOKUP, 1, "a"), None);
    for _ in 0..6 {
        assert_eq!(root.machine().replies, []);
        root.request(0, request::ROOT_EXIT, &[0]);
    }
    assert_eq!(root.machine().replies, [(b, root_thread(0), Answer::Refused(Status::NotFound))]);
    assert_eq!(root.request_text(1, request::ROOT_NAME_LOOKUP, 1, "a"), refused(Status::NotFound));

    let mut root = Root::start(TWO);
    root.request_text(1, request::ROOT_NAME_LOOKUP, 1, "a");
    root.request(1, request::ROOT_EXIT, &[0]);
    let a = root.first(0).raw();
    root.request(0, request::ROOT_NAME_REGISTER, &[a]);
    assert_eq!(root.machine().replies, []);
}

#[test]
fn texts_are_shown_without_control_characters_and_wrong_lengths_are_refused() {
    let mut root = Root::start(TWO);
    let from = root.first(0);
    let mut print = |words: Vec<u64>| {
        let tag = MessageTag::new(request::ROOT_PRINT, words.len(), 0);
        match handle(&mut root.system, from, tag, &words) {
            (Outcome::Print(text), _) => Ok(printable(&text).collect::<String>()),
            other => Err(answered(other, request::ROOT_PRINT).ok()),
        }
    };
    let text = words_of(0, "a\x1b[2J\nb\u{7f}")[1..].to_vec();
    assert_eq!(print(text), Ok("a?[2J\nb?".into()));
    assert_eq!(print(vec![0]), Ok(String::new()));
    for words in [vec![], vec![1], vec![9, 0], vec![489; 63], vec![u64::MAX, 0]] {
        assert_eq!(print(words), Err(refused(Status::InvalidArgument)));
    }
    for words in [vec![], vec![0], vec![0, 1], vec![0, 9, 0], vec![0, u64::MAX, 0]] {
        assert_eq!(root.request(1, request::ROOT_NAME_LOOKUP, &words), refused(Status::InvalidArgument));
    }
}
