//! Messages as servers see them: requests of any words, and what the words of answers are.

use super::simulation::Simulation;
use crate::requests::{self, Outcome};
use crate::system::System;
use crate::work_item::WorkItem;
use direct::Registers;
use rt::root::Status;
use x2::{MessageTag, ThreadId};

/// The message registers of a thread.
pub(super) struct Memory(pub(super) [u64; 64]);

impl Registers for Memory {
    fn register(&self, index: usize) -> u64 {
        self.0[index]
    }

    fn set_register(&mut self, index: usize, word: u64) {
        self.0[index] = word;
    }
}

/// An answer of root's, apart from its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It cannot be carried out, for this reason.
    Refused(Status),
    /// It was carried out; so many words follow the status.
    Done,
    One(u64),
    Two(u64, u64),
    Three(u64, u64, u64),
    Many(Vec<u64>),
}

impl Answer {
    /// What an answer says to the thread that has waited for it.
    pub(super) fn of(answer: requests::Answer) -> Answer {
        let mut memory = Memory([0xdead; 64]);
        let tag = answer.write(&mut memory);
        Answer::read(tag, &memory)
    }

    fn read(tag: MessageTag, memory: &Memory) -> Answer {
        assert_eq!((tag.typed(), tag.without_flags()), (0, tag), "it has words only");
        let [status, words @ ..] = &memory.0[1..=tag.untyped()] else { panic!("there is no status") };
        if *status != 0 {
            assert_eq!(words, [], "nothing follows a refusal");
            return Answer::Refused(direct::Status(*status as i32).into());
        }
        match *words {
            [] => Answer::Done,
            [one] => Answer::One(one),
            [one, two] => Answer::Two(one, two),
            [one, two, three] => Answer::Three(one, two, three),
            ref words => Answer::Many(words.to_vec()),
        }
    }
}

/// Has the system handle a message of these words. Returns what it leads to, and the registers.
pub(super) fn handle(
    system: &mut System<Simulation>,
    from: ThreadId,
    tag: MessageTag,
    words: &[u64],
) -> (Outcome, Memory) {
    let mut memory = Memory([0xdead; 64]);
    memory.0[1..=words.len()].copy_from_slice(words);
    let devices = system.servers.iter().flat_map(|server| server.dma.blocks());
    system.resources.machine.shares = devices.chain(system.resources.shares.blocks()).collect();
    let outcome = system.handle(from, tag, &mut memory);
    (outcome, memory)
}

/// The answer that the sender of a request gets immediately, or the work that there is before it.
pub(super) fn answered(
    (outcome, mut memory): (Outcome, Memory),
    label: u64,
) -> Result<Answer, Option<Box<WorkItem>>> {
    let tag = match outcome {
        Outcome::Answer(tag) => tag,
        Outcome::Print(_) => requests::printed(&mut memory),
        Outcome::Work(item) => return Err(Some(Box::new(item))),
        Outcome::Wait => return Err(None),
    };
    assert_eq!(tag.label(), (label + 100) & (u64::MAX >> 16), "the answer is to the request");
    Ok(Answer::read(tag, &memory))
}
