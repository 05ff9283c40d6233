//! The root task's first thread: runs the tests, pages their threads, and recognises how they end.

use super::{Chapter, Test, arena, failure, fixture, image, leaks};
use l4::ipc::{self, Message, Received};
use l4::{boot_info, mark, print, println, start};
use x2::protocol::{self, exception};
use x2::{Fpage, IpcPhase, MapItem, MessageTag, Rights, ThreadId, Time};

/// Label: the test has passed.
pub(crate) const PASSED: u64 = 0x700;
/// Label: the test has failed; the text says why.
pub(crate) const FAILED: u64 = 0x701;
/// Label: the test cannot run here; the text says why.
pub(crate) const SKIPPED: u64 = 0x702;
/// Label: start thread MR1 at MR2 with stack MR3. The runner is the pager, whose message starts a
/// thread. The answer's label is 1 if the thread was started.
pub(crate) const START: u64 = 0x703;

/// A test that reports nothing for so long has hung.
const SILENCE: Time = Time::period(20_000_000);

enum Outcome {
    Passed,
    Failed,
    /// The test has passed, but the kernel has more objects in use than before.
    Leaked,
    Skipped,
}

/// Runs the chapters and tests that the command line names, all if it names none.
pub(crate) fn run(chapters: &'static [Chapter]) -> ! {
    start::set_panic_hook(failure::on_panic);
    // The arena gets large pages, so that tests can map large blocks of it.
    for block in arena::large_blocks() {
        // SAFETY: sigma0 maps memory at its physical address, where the program already has it.
        let given = unsafe { l4::sigma0::request(Fpage::memory(block, 21)) };
        assert_eq!(given, Ok(true), "sigma0 gives the root task its own memory");
    }
    let ports = l4::sigma0::request_ports(Fpage::COMPLETE_IO);
    assert_eq!(ports, Ok(true), "sigma0 gives the root task all ports");
    for page in image::range().step_by(4096) {
        image::touch(page);
    }
    let mut line = [0; 1024];
    let line = boot_info::command_line(&mut line);
    let names = |name: &str| words(line).any(|word| word == name.as_bytes());
    let (leak_check, regions) = (names("leak-check"), names("regions"));
    if leak_check {
        leaks::enable();
    }
    let is_named = |chapter: &Chapter, test: &Test| names(chapter.name) || names(test.id);
    let everything = !chapters.iter().any(|chapter| chapter.tests.iter().any(|test| is_named(chapter, test)));
    let chosen = |chapter: &'static Chapter| {
        chapter.tests.iter().filter(move |test| everything || is_named(chapter, test))
    };
    println!("1..{}", chapters.iter().flat_map(chosen).count());
    let mut number = 0;
    for chapter in chapters.iter().filter(|chapter| chosen(chapter).next().is_some()) {
        mark::begin();
        for test in chosen(chapter) {
            number += 1;
            report(number, test, run_one(test, leak_check));
        }
        mark::end();
        if regions {
            println!("{{\"region\":\"tests of {}\",\"operations\":{}}}", chapter.name, chapter.tests.len());
        }
    }
    println!("# done");
    start::halt()
}

fn run_one(test: &Test, leak_check: bool) -> Outcome {
    let outcome = run_once(test, leak_check);
    // An object that the kernel makes once and keeps is not a leak. So the test is repeated: a leak
    // occurs again.
    if matches!(outcome, Outcome::Leaked) { run_once(test, leak_check) } else { outcome }
}

fn run_once(test: &Test, leak_check: bool) -> Outcome {
    let before = leak_check.then(leaks::InUse::now);
    failure::begin();
    let outcome = match fixture::start_test(test.run) {
        Ok(()) => supervise(),
        Err(error) => {
            failure::set_text(format_args!("the test's thread could not be started: {error:?}"));
            Outcome::Failed
        }
    };
    failure::has_ended();
    fixture::clean_up();
    arena::reset();
    if let (Some(before), Outcome::Passed) = (before, &outcome)
        && let Some((what, count)) = before.leaked(leaks::InUse::now())
    {
        failure::set_text(format_args!("the kernel lost {count} {what}"));
        return Outcome::Leaked;
    }
    outcome
}

fn report(number: usize, test: &Test, outcome: Outcome) {
    let failed = matches!(outcome, Outcome::Failed | Outcome::Leaked);
    let not = if failed { "not " } else { "" };
    if failed {
        print!("# ");
        print_text();
        println!("");
    }
    print!("{not}ok {number} - {} {}", test.id, test.sentence);
    if let Outcome::Skipped = outcome {
        print!(" # SKIP ");
        print_text();
    }
    println!("");
}

fn print_text() {
    failure::text().for_each(l4::console::print_byte);
}

/// Serves the test's threads until one of them ends the test.
fn supervise() -> Outcome {
    let mut answer = None;
    loop {
        let received = match answer.take() {
            Some((to, message)) => reply_wait(to, message),
            None => ipc::receive_timeout(ThreadId::ANY, SILENCE),
        };
        let request = match received {
            Ok(request) => request,
            Err(error) if error.phase == IpcPhase::Send => continue,
            Err(error) => {
                failure::set_text(format_args!("the test hangs ({error:?})"));
                return Outcome::Failed;
            }
        };
        match serve(request) {
            Ok(message) => answer = Some((request.from, message)),
            Err(outcome) => return outcome,
        }
    }
}

fn reply_wait(to: ThreadId, message: Message) -> ipc::Result<Received> {
    ipc::ipc(to, ThreadId::ANY, x2::Timeouts::new(Time::ZERO, SILENCE), message.tag())
}

/// Returns the answer to a message, or how the test has ended.
fn serve(request: Received) -> Result<Message, Outcome> {
    match request.tag.without_flags() {
        tag if tag == MessageTag::new(START, 3, 0) => {
            let (thread, ip, sp) = (request.word(0), request.word(1), request.word(2));
            let started = ipc::reply(ThreadId::from_raw(thread), Message::with_words(0, &[ip, sp]));
            Ok(Message::new(started.is_ok().into()))
        }
        tag if tag == MessageTag::new(PASSED, 0, 0) => Err(Outcome::Passed),
        tag if tag == MessageTag::new(FAILED, 0, 0) => Err(Outcome::Failed),
        tag if tag == MessageTag::new(SKIPPED, 0, 0) => Err(Outcome::Skipped),
        tag if protocol::of(tag) == protocol::PAGE_FAULT && tag.untyped() == 2 => {
            page_fault(request).ok_or(Outcome::Failed)
        }
        tag if protocol::of(tag) == protocol::ARCHITECTURE_EXCEPTION => {
            let word = |register: usize| request.word(register - 1);
            failure::set_text(format_args!(
                "exception {} in {:?} at {:#x}, stack {:#x}",
                word(exception::NUMBER),
                request.from,
                word(exception::RIP),
                word(exception::RSP)
            ));
            Err(Outcome::Failed)
        }
        tag => {
            failure::set_text(format_args!("the runner got {tag:?} from {:?}", request.from));
            Err(Outcome::Failed)
        }
    }
}

/// Every space of a test sees this program at its place. If a thread of the root task's own space
/// faults (because a test has flushed the page), the runner accesses the page in the same way, so
/// that sigma0 maps it.
fn page_fault(request: Received) -> Option<Message> {
    let (address, ip) = (request.word(0), request.word(1));
    let access = protocol::fault_access(request.tag);
    if !image::range().contains(&address) {
        failure::set_text(format_args!("{:?} faulted ({access:?}) on {address:#x} at {ip:#x}", request.from));
        return None;
    }
    image::touch_for(address, access);
    if request.from.is_local() {
        return Some(Message::new(0));
    }
    let page = Fpage::memory(address, 12).with_rights(Rights::ALL);
    Some(Message::new(0).map_item(MapItem::map(page, address & !0xfff)))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ')
}
