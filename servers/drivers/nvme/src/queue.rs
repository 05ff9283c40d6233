//! A queue of commands, with that of their completions (4.1), in memory that the driver shares with
//! the controller.

use crate::Failure;
use crate::command::{WORDS, Words};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

/// The words of a completion.
pub const COMPLETION: usize = 4;

/// A pair of queues of the same size. Every content of their memory is valid, since the controller
/// may write anything.
#[derive(Debug)]
pub struct Queue<'a> {
    commands: &'a [AtomicU32],
    completions: &'a [AtomicU32],
    size: u16,
    tail: u16,
    head: u16,
    /// The phase bit of a completion that is new.
    phase: bool,
    /// The identifiers that no command has, and for each whether a command has it.
    free: Vec<u16>,
    is_given: Vec<bool>,
    has_new_tail: bool,
    has_new_head: bool,
}

/// A command that the controller has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The identifier of the command.
    pub id: u16,
    /// Its status, without the phase bit: 0 is success.
    pub status: u16,
}

impl<'a> Queue<'a> {
    /// Queues in this memory, which must be zero.
    ///
    /// # Panics
    /// If the slices are not of the same number of entries, 2 to 4096.
    pub fn new(commands: &'a [AtomicU32], completions: &'a [AtomicU32]) -> Queue<'a> {
        let size = commands.len() / WORDS;
        let is_pair = commands.len() == size * WORDS && completions.len() == size * COMPLETION;
        assert!(is_pair && (2..=4096).contains(&size), "the queues have the same size");
        let size = size as u16;
        Queue {
            commands,
            completions,
            size,
            tail: 0,
            head: 0,
            phase: true,
            // A queue with as many commands as entries would look empty.
            free: (0..size - 1).rev().collect(),
            is_given: alloc::vec![false; usize::from(size) - 1],
            has_new_tail: false,
            has_new_head: false,
        }
    }

    /// The number of entries.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// The identifier of the next command. `None`: the controller has as many as it can have.
    pub fn next(&self) -> Option<u16> {
        self.free.last().copied()
    }

    /// Gives the controller a command, which gets the [next](Queue::next) identifier. Afterwards
    /// the caller must ask [`new_tail`](Queue::new_tail), once for any number of commands.
    ///
    /// # Panics
    /// If there is no identifier.
    pub fn give(&mut self, command: &Words) -> u16 {
        let id = self.free.pop().expect("there is an identifier");
        self.is_given[usize::from(id)] = true;
        let entry = &self.commands[usize::from(self.tail) * WORDS..][..WORDS];
        for (number, (place, word)) in entry.iter().zip(command).enumerate() {
            let id = if number == 0 { u32::from(id) << 16 } else { 0 };
            place.store(word | id, Ordering::Relaxed);
        }
        self.tail = (self.tail + 1) % self.size;
        self.has_new_tail = true;
        id
    }

    /// The tail to be written to the controller's register, if commands were given since the last
    /// call. All words of the commands are in memory by then.
    pub fn new_tail(&mut self) -> Option<u16> {
        core::sync::atomic::fence(Ordering::Release);
        core::mem::take(&mut self.has_new_tail).then_some(self.tail)
    }

    /// Takes a completion, if there is one. Afterwards the caller must ask
    /// [`new_head`](Queue::new_head), once for any number of completions.
    ///
    /// # Errors
    /// `Broken`: the controller has completed a command that it does not have.
    pub fn take(&mut self) -> Result<Option<Completed>, Failure> {
        let last = self.last_word();
        if !self.is_new(last) {
            return Ok(None);
        }
        let (id, status) = (last as u16, (last >> 16) as u16);
        let given = self.is_given.get_mut(usize::from(id)).filter(|given| **given);
        *given.ok_or(Failure::Broken)? = false;
        self.free.push(id);
        self.head = (self.head + 1) % self.size;
        self.phase ^= self.head == 0;
        self.has_new_head = true;
        Ok(Some(Completed { id, status: status >> 1 }))
    }

    /// Whether there is a completion.
    pub fn is_ready(&self) -> bool {
        self.is_new(self.last_word())
    }

    /// The word of the next completion that says whether it is new, and for which command.
    fn last_word(&self) -> u32 {
        self.completions[usize::from(self.head) * COMPLETION + 3].load(Ordering::Acquire)
    }

    fn is_new(&self, last_word: u32) -> bool {
        (last_word >> 16 & 1 == 1) == self.phase
    }

    /// The head to be written to the controller's register, if completions were taken since the
    /// last call.
    pub fn new_head(&mut self) -> Option<u16> {
        core::mem::take(&mut self.has_new_head).then_some(self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn memory(words: usize) -> Vec<AtomicU32> {
        (0..words).map(|_| AtomicU32::new(0)).collect()
    }

    /// A controller that fetches commands and completes them in any order.
    #[derive(Default)]
    struct Model {
        fetched: u16,
        tail: u16,
        has: Vec<(u16, u32)>,
        at: u16,
        phase: bool,
    }

    proptest! {
        /// Each command is completed once, with its status, whatever the order is.
        #[test]
        fn every_command_is_completed_once(steps in proptest::collection::vec((0u8..4, any::<u16>()), 1..400)) {
            const SIZE: u16 = 5;
            let (commands, completions) = (memory(5 * WORDS), memory(5 * COMPLETION));
            let mut queue = Queue::new(&commands, &completions);
            let mut model = Model { phase: true, ..Model::default() };
            let (mut outstanding, mut next) = (std::collections::BTreeMap::new(), 0u32);
            for (step, choice) in steps {
                match step {
                    0 if queue.next().is_some() => {
                        next += 1;
                        let mut words = [0; WORDS];
                        (words[0], words[10]) = (2, next);
                        let expected = queue.next();
                        let id = queue.give(&words);
                        prop_assert_eq!(Some(id), expected);
                        prop_assert!(outstanding.insert(id, next).is_none());
                    }
                    0 => prop_assert_eq!(outstanding.len(), usize::from(SIZE) - 1),
                    1 => {
                        model.tail = queue.new_tail().unwrap_or(model.tail);
                        while model.fetched != model.tail {
                            let entry = &commands[usize::from(model.fetched) * WORDS..];
                            let first = entry[0].load(Ordering::Relaxed);
                            prop_assert_eq!(first & 0xffff, 2);
                            model.has.push(((first >> 16) as u16, entry[10].load(Ordering::Relaxed)));
                            model.fetched = (model.fetched + 1) % SIZE;
                        }
                    }
                    2 if !model.has.is_empty() => {
                        let (id, tag) = model.has.swap_remove(usize::from(choice) % model.has.len());
                        let status = (tag & 0x3fff) << 17 | u32::from(model.phase) << 16;
                        completions[usize::from(model.at) * COMPLETION + 3]
                            .store(status | u32::from(id), Ordering::Release);
                        model.at = (model.at + 1) % SIZE;
                        model.phase ^= model.at == 0;
                    }
                    _ => {
                        while let Some(Completed { id, status }) = queue.take().unwrap() {
                            prop_assert_eq!(outstanding.remove(&id), Some(u32::from(status)));
                        }
                        if let Some(head) = queue.new_head() {
                            prop_assert_eq!(head, model.at);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_not_given_is_not_completed() {
        for id in [0, 1, 3, 9] {
            let (commands, completions) = (memory(4 * WORDS), memory(4 * COMPLETION));
            let mut queue = Queue::new(&commands, &completions);
            let given = queue.give(&[0; WORDS]);
            completions[3].store(1 << 16 | id, Ordering::Relaxed);
            let expected = if id == u32::from(given) { Ok(Some(given)) } else { Err(Failure::Broken) };
            assert_eq!(queue.take().map(|done| done.map(|done| done.id)), expected);
            // The same completion again is not new, and one for the same command is broken.
            completions[COMPLETION + 3].store(1 << 16 | id, Ordering::Relaxed);
            assert_eq!(queue.take(), Err(Failure::Broken));
        }
    }
}
