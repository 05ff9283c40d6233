//! Threads of the root task's space: the controller, and a thread that only answers the supervisor.

use crate::controller;
use crate::layout;
use l4::ipc::{self, Message};
use l4::start::Stack;
use l4::thread::{self, ThreadControl};
use l4::{kip, println, utcb};
use x2::control::UNCHANGED;
use x2::{Time, Timeouts};

static STACKS: [Stack; 2] = [const { Stack::new() }; 2];

/// The priorities of the two threads: above those of attackers, below the supervisor's.
const PRIORITIES: [u64; 2] = [250, 200];
/// How long the supervisor waits for an answer before the thread counts as dead.
const LONG: Time = Time::period(60_000_000);

/// Makes the heartbeat thread and then the controller, on the last processor.
pub(crate) fn make_threads() {
    for (index, (stack, run)) in STACKS.iter().zip([beat as fn() -> !, controller::run]).enumerate() {
        let (id, root) = (layout::own_thread(index as u32), kip().root());
        let utcb = (utcb::pointer() & !(x2::utcb::SIZE - 1)) + (1 + index as u64) * x2::utcb::SIZE;
        let arguments = ThreadControl { space: root, scheduler: root, pager: root, utcb: Some(utcb) };
        thread::control(id, arguments).expect("the root task makes threads");
        let last = u64::from(kip().processor_info().processors) - 1;
        thread::schedule(id, UNCHANGED, last, PRIORITIES[index], UNCHANGED).expect("the thread exists");
        let top = stack.top() - 8;
        let message = Message::with_words(0, &[run as *const () as u64, top]);
        ipc::send(id, message).expect("the thread waits for its start");
    }
}

fn beat() -> ! {
    let supervisor = kip().root();
    let mut answer = None;
    loop {
        let request = match answer.take() {
            None => ipc::receive(supervisor),
            Some(value) => {
                ipc::ipc(supervisor, supervisor, Timeouts::NEVER, Message::with_words(0, &[value]).tag())
            }
        };
        answer = request.ok().map(|request| request.word(0).wrapping_mul(3));
    }
}

/// Whether the heartbeat thread answers. Any other message is printed.
pub(crate) fn beats() -> bool {
    let question = Message::with_words(0, &[14]);
    match ipc::call_timeouts(layout::own_thread(0), question, Timeouts::new(LONG, LONG)) {
        Ok(answer) if answer.words().eq([42]) => return true,
        Ok(answer) => {
            println!("# instead of a beat: {:?} from {:?}", answer.tag, answer.from);
            answer.words().for_each(|word| println!("#   {word:#x}"));
        }
        Err(error) => println!("# instead of a beat: {error:?}"),
    }
    false
}
