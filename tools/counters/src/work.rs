//! Counts the work of each processor: its instructions, and separately those of polling.
//!
//! A processor that waits in HLT executes nothing. A processor that waits in a loop, for another
//! processor or for work, executes PAUSE in every round. So the instructions between two executions
//! of one PAUSE instruction are polling, if there are so few that no other work can be among them.
//! That holds for every kernel and in programs, and the plugin need not know where their loops are.

use crate::counts::Mode;
use crate::decode::Special;
use crate::profile::Count;
use std::fmt::Write;

/// The most instructions in a round of a polling loop.
const ROUND: u64 = 256;
/// The physical address of the local APIC's end-of-interrupt register.
const END_OF_INTERRUPT: u64 = 0xfee0_00b0;

/// The instructions of one processor in one mode.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    work: u64,
    polling: u64,
    /// Instructions since the last PAUSE. They are included in `work`.
    since: u64,
    /// Bytes that string instructions have written.
    bulk_bytes: u64,
}

/// A block of instructions that are executed one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// The address of the last instruction.
    pub address: u64,
    /// How many instructions there are.
    pub instructions: u64,
    /// The kind of the last instruction: PAUSE and HLT end a block.
    pub special: Option<Special>,
    /// A mark in the block: its kind and its region.
    pub mark: Option<(u8, u8)>,
    /// How often each instruction was executed as work, if a profile is wanted.
    pub counts: &'static [&'static Count],
}

/// The work of one processor.
#[derive(Clone, Debug, Default)]
pub struct Work {
    user: Counts,
    kernel: Counts,
    /// The address of the last PAUSE that was executed.
    pause: u64,
    halts: u64,
    interrupts: u64,
    /// Instructions that may turn out to be polling: at most those of one round.
    undecided: Vec<&'static [&'static Count]>,
}

impl Work {
    /// Records that the processor executes a block. A block that is left early, by a fault, counts
    /// as a whole.
    pub fn block(&mut self, block: &Block) {
        let counts = match Mode::of(block.address) {
            Mode::User => &mut self.user,
            Mode::Kernel => &mut self.kernel,
        };
        counts.work += block.instructions;
        counts.since += block.instructions;
        if !block.counts.is_empty() {
            self.undecided.push(block.counts);
        }
        match block.special {
            Some(Special::Pause) => {
                let again = self.pause == block.address && self.user.since + self.kernel.since <= ROUND;
                for counts in [&mut self.user, &mut self.kernel] {
                    let round = std::mem::take(&mut counts.since);
                    if again {
                        counts.work -= round;
                        counts.polling += round;
                    }
                }
                if again {
                    self.undecided.clear();
                }
                self.decide();
                self.pause = block.address;
            }
            Some(Special::Halt) => self.halts += 1,
            _ => {}
        }
        if self.user.since + self.kernel.since > ROUND {
            self.decide();
        }
    }

    /// Counts the undecided instructions as work, because they have not turned out to be polling.
    pub fn decide(&mut self) {
        for count in self.undecided.drain(..).flatten() {
            count.executed();
        }
    }

    /// Records that a string instruction in this mode has written so many bytes.
    pub fn bulk_store(&mut self, mode: Mode, bytes: u64) {
        match mode {
            Mode::User => self.user.bulk_bytes += bytes,
            Mode::Kernel => self.kernel.bulk_bytes += bytes,
        }
    }

    /// Records that the processor stores to the physical address of a device.
    pub fn device_store(&mut self, address: u64) {
        self.interrupts += u64::from(address == END_OF_INTERRUPT);
    }

    /// A line of JSON for region `region` and processor `processor`, without the newline.
    /// `instructions` are those of work. The bytes of string instructions are in it if there are
    /// any.
    pub fn report(&self, region: u8, processor: usize) -> String {
        let mut line = format!("{{\"region\":{region},\"processor\":{processor}");
        for (name, counts, halts, interrupts) in
            [("user", self.user, 0, 0), ("kernel", self.kernel, self.halts, self.interrupts)]
        {
            let (work, polling) = (counts.work, counts.polling);
            // Writing to a string cannot fail.
            let _ = write!(
                line,
                ",\"{name}\":{{\"instructions\":{work},\"polling\":{polling},\"halt\":{halts},\"interrupts\":{interrupts}"
            );
            if counts.bulk_bytes > 0 {
                let _ = write!(line, ",\"bulk_bytes\":{}", counts.bulk_bytes);
            }
            line.push('}');
        }
        line.push('}');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const KERNEL: u64 = 0xffff_ffff_8080_0000;

    fn block(address: u64, instructions: u64, special: Option<Special>) -> Block {
        Block { address, instructions, special, ..Block::default() }
    }

    fn rounds(work: &mut Work, rounds: u64, instructions: u64) {
        for _ in 0..rounds {
            work.block(&block(KERNEL, 1, None));
            work.block(&block(KERNEL + instructions, instructions, Some(Special::Pause)));
        }
    }

    #[test]
    fn rounds_of_a_loop_with_a_pause_are_polling_but_for_the_first() {
        let mut work = Work::default();
        work.block(&block(0x1000, 1, None));
        rounds(&mut work, 10, 9);
        work.block(&block(KERNEL, 1, Some(Special::Halt)));
        // The store sends an interrupt to another processor; the next one ends an interrupt.
        work.device_store(0xfee0_0300);
        work.device_store(END_OF_INTERRUPT);
        work.bulk_store(Mode::User, 8);
        work.bulk_store(Mode::User, 1);
        assert_eq!(
            work.report(3, 1),
            "{\"region\":3,\"processor\":1,\"user\":{\"instructions\":1,\"polling\":0,\"halt\":0,\"interrupts\":0,\"bulk_bytes\":9},\
             \"kernel\":{\"instructions\":11,\"polling\":90,\"halt\":1,\"interrupts\":1}}"
        );
    }

    #[test]
    fn polling_is_not_in_the_profile() {
        let file = std::env::temp_dir().join(format!("polling-{}", std::process::id()));
        let profile = Profile::new(&file.to_string_lossy()).unwrap();
        std::fs::remove_file(file).unwrap();
        let (before, round) = (profile.count(1, &[0x90]), profile.count(2, &[0xf3, 0x90]));
        let mut work = Work::default();
        work.block(&Block { counts: Box::leak(Box::new([before])), ..block(KERNEL, 1, None) });
        for _ in 0..5 {
            let counts = Box::leak(Box::new([round]));
            work.block(&Block { counts, ..block(KERNEL + 1, 1, Some(Special::Pause)) });
        }
        assert_eq!((before.times(), round.times(), work.kernel.polling), (1, 1, 4));
        work.block(&Block { counts: Box::leak(Box::new([before])), ..block(KERNEL, 1, None) });
        assert_eq!(before.times(), 1);
        work.decide();
        assert_eq!(before.times(), 2);
    }

    #[test]
    fn what_is_done_between_two_pauses_is_work_if_it_is_much_or_they_differ() {
        let mut work = Work::default();
        rounds(&mut work, 10, ROUND);
        assert_eq!((work.kernel.work, work.kernel.polling), (10 * (ROUND + 1), 0));
        let mut work = Work::default();
        (1..5).for_each(|length| rounds(&mut work, 1, length));
        assert_eq!(work.kernel.polling, 0);
    }
}
