//! Tests of redirectors: spaces whose messages go to a thread that may answer, change or pass them
//! on (X.2 rules 6.7-6.19).

use crate::framework::arena;
use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, image_fault_answer, new_id, spawn, spawn_as, state_of};
use crate::framework::{image, tests};
use l4::ipc::{self, Message, Received};
use l4::{kip, space, thread, utcb};
use x2::control::ThreadState;
use x2::{ErrorCode, Fpage, IpcError, IpcErrorKind, IpcPhase, MapItem, Rights, ThreadId, Time, protocol};

tests! {
    RTR0001 [6.8, 6.11] "what leaves a redirected space comes to the redirector, which learns whom it is for" redirected;
    RTR0002 [6.8] "what stays in the space, or goes to the redirector's, is not redirected" not_redirected;
    RTR0003 [6.12] "the redirector answers itself" answers_itself;
    RTR0004 [6.13, 7.14, 7.16] "the redirector passes a message on in the sender's name, and the answer comes back" passes_on;
    RTR0005 [6.10] "a destination that does not exist is an error before the redirector hears of it" no_destination;
    RTR0006 [6.14] "while the redirector does not receive the sender waits, times out and can be aborted" waits;
    RTR0007 [6.15] "without its redirector a space waits for another, or for none" redirector_goes;
    RTR0008 [6.2b, 6.16] "a change of redirector counts for those that wait, and so does the end of the destination" changes;
    RTR0009 [6.7] "which arguments set, remove and leave the redirector" arguments;
    RTR0010 [6.9] "page faults are redirected too, and the redirector can answer them" page_fault;
    RTR0011 [6.17] "a message passes a chain of redirectors, and arrives in its sender's name" chain;
    RTR0012 [6.17, 6.19] "threads that would wait for each other time out, and circles harm no thread" circles;
    RTR0013 [6.18] "answers are redirected too" answers;
    RTR0014 [6.8, EXT 2.2] "the redirector decides before confinement" confined_space;
    RTR0015 [EXT 7.1] "a redirected thread notifies only whom its messages reach" notify;
    RTR0016 [6.9] "interrupts are acknowledged by the redirector's leave only" interrupts;
}

fn set(space: &Space, redirector: ThreadId) {
    space::control(space.first, 0, Fpage::NIL, Fpage::NIL, redirector).expect("the thread exists");
}

/// Makes a space whose redirector is the test's thread.
fn space_redirected_here() -> Space {
    let space = Space::new();
    set(&space, utcb::my_global_id());
    space
}

/// Makes a thread in a space of its own that answers every message with one word more: its sender's
/// id and the flags.
fn destination() -> ThreadId {
    let thread = Space::new().spawn(|| {
        utcb::set_virtual_sender(ThreadId::NIL);
        let mut request = ipc::wait().unwrap();
        loop {
            let flags = u64::from(request.tag.is_propagated()) | u64::from(request.tag.is_redirected()) << 1;
            let words = [request.word(0) + 1, request.from.raw(), flags, utcb::actual_sender().raw()];
            let next = ipc::reply_wait(request.from, Message::with_words(8, &words));
            // Some senders do not wait for the answer.
            request = next.or_else(|_| ipc::wait()).unwrap();
        }
    });
    await_state(thread, ThreadState::Waiting);
    // Others have waited for the redirector from here on, so it is called on the fast path where
    // that is possible.
    let _ = ipc::receive_timeout(thread, Time::ZERO);
    thread
}

/// Makes a thread in `space` that calls `to` with a word and then reports the result to the test.
fn caller(space: &Space, to: ThreadId) -> ThreadId {
    caller_until(space, to, Time::NEVER)
}

/// Makes a caller as [`caller`] does, which waits for a message of the test before it calls; until
/// then its faults go to its pager.
fn caller_on_demand(space: &Space, to: ThreadId, timeout: Time) -> ThreadId {
    let me = utcb::my_global_id();
    let thread = space.spawn(move || {
        ipc::receive(me).expect("the test says when");
        call_and_tell(to, me, timeout);
    });
    await_state(thread, ThreadState::Waiting);
    thread
}

fn caller_until(space: &Space, to: ThreadId, timeout: Time) -> ThreadId {
    let me = utcb::my_global_id();
    space.spawn(move || call_and_tell(to, me, timeout))
}

fn call_and_tell(to: ThreadId, test: ThreadId, timeout: Time) {
    let timeouts = x2::Timeouts::new(timeout, Time::NEVER);
    let words = match ipc::call_timeouts(to, Message::with_words(7, &[40]), timeouts) {
        Ok(answer) => {
            let word = |index| if index < answer.tag.untyped() { answer.word(index) } else { 0 };
            [0, word(0), word(1), word(2), word(3), answer.from.raw()]
        }
        Err(error) => [error.raw(), 0, 0, 0, 0, 0],
    };
    ipc::send(test, Message::with_words(9, &words)).expect("the test is in the redirector's space");
}

/// Receives from `from` a message that was sent to `to`.
fn take(from: ThreadId, to: ThreadId) -> Received {
    let received = ipc::receive(from).expect("a redirected message");
    assert_eq!((received.from, received.tag.label(), received.word(0)), (from, 7, 40));
    assert!(received.tag.is_redirected());
    assert_eq!(utcb::intended_receiver(), to);
    received
}

/// The result that a caller reports: the error, the answer's words, and the thread that answered.
fn told(caller: ThreadId) -> [u64; 6] {
    let received = ipc::receive(caller).expect("the caller tells");
    assert_eq!(received.tag.label(), 9);
    core::array::from_fn(|index| received.word(index))
}

fn error(kind: IpcErrorKind) -> u64 {
    IpcError::new(IpcPhase::Send, kind).raw()
}

fn pass_on(to: ThreadId, originator: ThreadId) {
    ipc::send(to, Message::with_words(7, &[40]).propagated_for(originator)).expect("it waits");
}

fn redirected() {
    let (to, space) = (destination(), space_redirected_here());
    let from = caller(&space, to);
    let received = take(from, to);
    assert!(!received.tag.is_propagated());
    assert_eq!(state_of(to), ThreadState::Waiting, "it has got nothing");
    ipc::send(from, Message::new(0)).unwrap();
    told(from);
}

fn not_redirected() {
    let space = space_redirected_here();
    let neighbour = space.spawn(|| {
        let request = ipc::wait().unwrap();
        let words = [1, 2, u64::from(request.tag.is_redirected())];
        let _ = ipc::send(request.from, Message::with_words(8, &words));
    });
    await_state(neighbour, ThreadState::Waiting);
    let result = told(caller(&space, neighbour));
    assert_eq!(result[..4], [0, 1, 2, 0]);
    let here = spawn(|| {
        let request = ipc::wait().unwrap();
        let words = [3, 4, u64::from(request.tag.is_redirected())];
        let _ = ipc::send(request.from, Message::with_words(8, &words));
    });
    await_state(here, ThreadState::Waiting);
    let result = told(caller(&space, here));
    assert_eq!((result[0], result[1], result[3], result[5]), (0, 3, 0, here.raw()));
}

fn answers_itself() {
    let (to, space) = (destination(), space_redirected_here());
    let from = caller(&space, to);
    take(from, to);
    ipc::send(from, Message::with_words(8, &[99])).expect("it waits for the redirector now");
    let result = told(from);
    assert_eq!((result[0], result[1], result[5]), (0, 99, utcb::my_global_id().raw()));
}

fn passes_on() {
    let (to, space) = (destination(), space_redirected_here());
    let from = caller(&space, to);
    take(from, to);
    pass_on(to, from);
    let me = utcb::my_global_id().raw();
    assert_eq!(told(from), [0, 41, from.raw(), 1, me, to.raw()], "P, not R, and who passed it on");
}

fn no_destination() {
    let space = space_redirected_here();
    let from = caller(&space, new_id());
    assert_eq!(told(from)[0], error(IpcErrorKind::NonExistingPartner));
}

fn waits() {
    let (to, space) = (destination(), space_redirected_here());
    let from = caller_until(&space, to, Time::ZERO);
    await_state(from, ThreadState::PendingSend);
    assert_eq!(told(from)[0], error(IpcErrorKind::Timeout), "the test was not receiving from it");
    let from = caller_until(&space, to, Time::period(2000));
    await_state(from, ThreadState::PendingSend);
    ipc::sleep(Time::period(4000));
    assert_eq!(told(from)[0], error(IpcErrorKind::Timeout));
    let from = caller(&space, to);
    await_state(from, ThreadState::PendingSend);
    assert!(thread::abort_ipc(from).expect("its pager is here").state.sending);
    assert_eq!(told(from)[0], error(IpcErrorKind::Cancelled));
}

fn redirector_goes() {
    let (to, space) = (destination(), space_redirected_here());
    let go = |thread| ipc::send(thread, Message::new(0)).expect("it waits for that");
    for becomes_none in [true, false] {
        let [before, after] = [0; 2].map(|_| caller_on_demand(&space, to, Time::NEVER));
        let redirector = spawn(|| l4::start::halt());
        set(&space, redirector);
        go(before);
        await_state(before, ThreadState::PendingSend);
        thread::delete(redirector).unwrap();
        await_state(before, ThreadState::PendingSend);
        // Another thread with the redirector's id is not the redirector: it waits for messages, and
        // gets none.
        spawn_as(redirector, || {
            let _ = ipc::wait();
        });
        await_state(redirector, ThreadState::Waiting);
        go(after);
        await_state(after, ThreadState::PendingSend);
        set(&space, if becomes_none { ThreadId::ANY } else { utcb::my_global_id() });
        for from in [before, after] {
            if becomes_none {
                assert_eq!(told(from)[..4], [0, 41, from.raw(), 0]);
            } else {
                take(from, to);
                ipc::send(from, Message::new(0)).unwrap();
                assert_eq!(told(from)[0], 0);
            }
        }
        thread::delete(redirector).unwrap();
    }
    // A sender that waits for a redirector times out. After some attempts one sends in time. Its
    // next messages, a report and perhaps a page fault, wait for a redirector, too.
    for attempt in 1.. {
        let from = caller_on_demand(&space, to, Time::period(2000));
        let redirector = spawn(|| l4::start::halt());
        set(&space, redirector);
        thread::delete(redirector).unwrap();
        go(from);
        ipc::sleep(Time::period(6000));
        set(&space, ThreadId::ANY);
        let result = told(from)[0];
        if result != 0 || attempt == 20 {
            return assert_eq!(result, error(IpcErrorKind::Timeout));
        }
    }
}

fn changes() {
    let space = Space::new();
    let busy = Space::new().spawn(|| l4::start::halt());
    let from = caller(&space, busy);
    await_state(from, ThreadState::PendingSend);
    set(&space, utcb::my_global_id());
    take(from, busy);
    ipc::send(from, Message::new(0)).unwrap();
    told(from);
    let from = caller(&space, busy);
    await_state(from, ThreadState::PendingSend);
    thread::delete(busy).unwrap();
    assert_eq!(told(from)[0], error(IpcErrorKind::NonExistingPartner));
}

fn arguments() {
    let (to, space) = (destination(), Space::new());
    let is_redirected = || {
        let from = caller(&space, to);
        let received = ipc::receive(from).expect("it, or what it tells");
        let redirected = received.tag.is_redirected();
        if redirected {
            ipc::send(from, Message::new(0)).unwrap();
            told(from);
        }
        redirected
    };
    let control = |redirector| space::control(space.first, 0, Fpage::NIL, Fpage::NIL, redirector);
    assert!(!is_redirected(), "a new space");
    control(utcb::my_local_id()).expect("a local id");
    assert!(is_redirected());
    for unchanged in [
        ThreadId::NIL,
        ThreadId::ANY_LOCAL,
        ThreadId::interrupt(1),
        ThreadId::interrupt(kip().thread_info().system_base),
    ] {
        control(unchanged).expect("no change");
        assert!(is_redirected(), "{unchanged:?}");
    }
    let absent = new_id();
    let results = [absent, ThreadId::local(utcb::pointer() + 0x40)].map(control);
    assert_eq!(results, [Err(Some(ErrorCode::InvalidThread)); 2]);
    assert!(is_redirected());
    control(ThreadId::ANY).unwrap();
    assert!(!is_redirected());
}

fn page_fault() {
    const PLACE: u64 = 0x5000_0000_0000;
    let pager = destination();
    let space = space_redirected_here();
    let page = arena::page();
    page.write(3, 0x1234);
    let me = utcb::my_global_id();
    let from = space.spawn(move || {
        ipc::receive(me).expect("the redirector is set");
        utcb::set_pager(pager);
        let word = arena::read_at(PLACE + 24);
        utcb::set_pager(kip().root());
        ipc::send(me, Message::with_words(9, &[word])).unwrap();
    });
    ipc::send(from, Message::new(0)).unwrap();
    let mut fault = ipc::receive(from).expect("its page fault");
    // Until the thread has its pager again, faults on the program itself come here as well.
    loop {
        assert_eq!((protocol::of(fault.tag), fault.tag.is_redirected()), (protocol::PAGE_FAULT, true));
        assert_eq!(utcb::intended_receiver(), pager);
        let answer = image_fault_answer(fault).unwrap_or_else(|| {
            assert_eq!(fault.word(0), PLACE + 24);
            Message::new(0).map_item(MapItem::map(page.fpage(Rights::READ), PLACE))
        });
        fault = ipc::call(from, answer).expect("it goes on");
        if fault.tag.label() == 9 {
            break;
        }
    }
    assert_eq!(fault.word(0), 0x1234);
}

/// Makes a redirector in a space of its own, which passes each message from `from` on to its
/// intended receiver.
fn relay(space: &Space, from: ThreadId) -> ThreadId {
    let me = utcb::my_global_id();
    space.spawn(move || {
        ipc::send(me, Message::new(0)).expect("warm");
        let received = ipc::receive(from).expect("a redirected message");
        let to = utcb::intended_receiver();
        let word = received.word(0);
        ipc::send(to, Message::with_words(7, &[word]).propagated_for(from)).expect("it goes on");
    })
}

fn chain() {
    let me = utcb::my_global_id();
    let to = destination();
    let (first, second) = (Space::new(), Space::new());
    let from = first.spawn(move || {
        image::take_from(me);
        let answer = ipc::call(to, Message::with_words(7, &[40])).unwrap();
        let words = [answer.word(0), answer.word(1), answer.word(2), answer.word(3)];
        let _ = ipc::send(me, Message::with_words(9, &words));
    });
    ipc::receive(from).unwrap();
    let relay = relay(&second, from);
    ipc::receive(relay).unwrap();
    set(&second, me);
    set(&first, relay);
    image::give_to(from);
    // The relay's message in the first thread's name is redirected here.
    let received = take(from, to);
    assert!(received.tag.is_propagated());
    assert_eq!(utcb::actual_sender(), relay);
    pass_on(to, from);
    await_state(to, ThreadState::Waiting);
    set(&first, ThreadId::ANY);
    let answer = ipc::receive(from).expect("it tells");
    assert_eq!([0, 1, 2, 3].map(|index| answer.word(index)), [41, from.raw(), 1, me.raw()]);
}

fn circles() {
    let me = utcb::my_global_id();
    let spaces = [space_redirected_here(), space_redirected_here()];
    let busy = spaces[1].spawn(|| l4::start::halt());
    let one = caller_until(&spaces[0], busy, Time::period(3000));
    let two = caller_until(&spaces[1], one, Time::period(3000));
    await_state(one, ThreadState::PendingSend);
    await_state(two, ThreadState::PendingSend);
    ipc::sleep(Time::period(8000));
    for caller in [one, two] {
        assert_eq!(told(caller)[0], error(IpcErrorKind::Timeout));
    }
    let to = destination();
    let ring = [Space::new(), Space::new()];
    let threads = [0, 1].map(|index: usize| {
        ring[index].spawn(move || {
            image::take_from(me);
            loop {
                ipc::receive(me).expect("the redirectors are set");
                let sent = ipc::send_timeout(to, Message::with_words(7, &[40]), Time::period(1000));
                ipc::receive(me).expect("the redirectors are gone");
                let word = sent.map_or_else(|error| error.raw(), |()| 0);
                ipc::send(me, Message::with_words(9, &[word])).unwrap();
            }
        })
    });
    for thread in threads {
        ipc::receive(thread).unwrap();
        image::give_to(thread);
    }
    // Threads that are the redirectors of their own spaces; then two of which each is the
    // redirector of the other's space.
    for redirectors in [[0, 1], [1, 0]] {
        for (space, index) in ring.iter().zip(redirectors) {
            set(space, threads[index]);
        }
        threads.iter().for_each(|&thread| ipc::send(thread, Message::new(0)).unwrap());
        // Each thread waits for a redirector that does not receive, until its timeout expires; then
        // it waits for the test.
        threads.iter().for_each(|&thread| await_state(thread, ThreadState::Waiting));
        ring.iter().for_each(|space| set(space, ThreadId::ANY));
        for thread in threads {
            ipc::send(thread, Message::new(0)).unwrap();
            assert_eq!(ipc::receive(thread).unwrap().word(0), error(IpcErrorKind::Timeout));
        }
    }
}

fn answers() {
    let space = space_redirected_here();
    let server = space.spawn(|| {
        let request = ipc::wait().unwrap();
        let _ = ipc::send(request.from, Message::with_words(7, &[40]));
    });
    await_state(server, ThreadState::Waiting);
    let me = utcb::my_global_id();
    let client = Space::new().spawn(move || {
        let answer = ipc::call(server, Message::with_words(7, &[1])).expect("an answer");
        let words = [answer.from.raw(), answer.word(0), utcb::actual_sender().raw()];
        ipc::send(me, Message::with_words(9, &words)).unwrap();
    });
    take(server, client);
    pass_on(client, server);
    let told = ipc::receive(client).unwrap();
    assert_eq!([0, 1, 2].map(|index| told.word(index)), [server.raw(), 40, me.raw()]);
}

fn confined_space() {
    let to = destination();
    let space = confined::space();
    set(&space, utcb::my_global_id());
    let me = utcb::my_global_id();
    let from = confined::spawn(&space, move || {
        let word = ipc::call(to, Message::with_words(7, &[40])).map_or(0, |answer| answer.word(0));
        let _ = ipc::send(me, Message::with_words(9, &[word]));
    });
    take(from, to);
    ipc::send(from, Message::with_words(8, &[99])).expect("it waits for the redirector");
    assert_eq!(ipc::receive(from).unwrap().word(0), 99);
}

fn notify() {
    let (to, space) = (destination(), space_redirected_here());
    let me = utcb::my_global_id();
    let from = space.spawn(move || {
        let results =
            [to, me, utcb::my_global_id()].map(|thread| u64::from(l4::extension::notify(thread, 1).is_ok()));
        ipc::send(me, Message::with_words(9, &results)).unwrap();
    });
    let told = ipc::receive(from).unwrap();
    assert_eq!([0, 1, 2].map(|index| told.word(index)), [0, 1, 1]);
}

fn interrupts() {
    let line = ThreadId::interrupt(13);
    let space = space_redirected_here();
    let from = caller(&space, line);
    thread::associate_interrupt(line, from).expect("the line is free");
    take(from, line);
    ipc::send(from, Message::new(0)).expect("the redirector answers");
    told(from);
    thread::disassociate_interrupt(line).unwrap();
}
