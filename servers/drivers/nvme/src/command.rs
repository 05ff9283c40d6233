//! Commands as words of a submission queue (4.2), and what the status of a completion means.

use block::Error;

/// The words of a command.
pub const WORDS: usize = 16;

/// A command, whose identifier the queue sets.
pub type Words = [u32; WORDS];

/// The two addresses of a command's memory (PRP entries).
pub type Memory = (u64, u64);

/// The opcodes of I/O commands, which are about a namespace (figure 346).
const FLUSH: u32 = 0;
const WRITE: u32 = 1;
const READ: u32 = 2;
const MANAGE: u32 = 9;
/// Those of admin commands (figure 42).
const CREATE_SUBMISSION: u32 = 1;
const CREATE_COMPLETION: u32 = 5;
const IDENTIFY: u32 = 6;
const SET_FEATURES: u32 = 9;

/// The queue is contiguous; it interrupts.
const CONTIGUOUS: u32 = 1;
const INTERRUPTS: u32 = 2;
/// The feature that is the number of queues.
const QUEUES: u32 = 7;
/// The ranges are not needed any more (dataset management).
const DEALLOCATE: u32 = 4;

/// What [`identify`] asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The namespace of this number.
    Namespace(u32),
    /// The controller.
    Controller,
    /// The numbers of the active namespaces.
    Namespaces,
}

fn words(opcode: u32, namespace: u32, (first, second): Memory) -> Words {
    let mut words = [0; WORDS];
    (words[0], words[1]) = (opcode, namespace);
    (words[6], words[7]) = (first as u32, (first >> 32) as u32);
    (words[8], words[9]) = (second as u32, (second >> 32) as u32);
    words
}

/// Writes 4096 bytes about something to the page at `page`.
pub fn identify(about: About, page: u64) -> Words {
    let (namespace, kind) = match about {
        About::Namespace(namespace) => (namespace, 0),
        About::Controller => (0, 1),
        About::Namespaces => (0, 2),
    };
    let mut words = words(IDENTIFY, namespace, (page, 0));
    words[10] = kind;
    words
}

/// Asks for one I/O submission queue and one I/O completion queue.
pub fn set_queues() -> Words {
    let mut words = words(SET_FEATURES, 0, (0, 0));
    // Both numbers are one less than the count.
    (words[10], words[11]) = (QUEUES, 0);
    words
}

/// Makes the completion queue `number` of `size` entries at `page`, which raises the interrupt
/// message `vector`.
pub fn create_completion(number: u16, size: u16, vector: u16, page: u64) -> Words {
    let mut words = words(CREATE_COMPLETION, 0, (page, 0));
    words[10] = u32::from(number) | u32::from(size - 1) << 16;
    words[11] = CONTIGUOUS | INTERRUPTS | u32::from(vector) << 16;
    words
}

/// Makes the submission queue `number` of `size` entries at `page`, whose commands are completed in
/// the completion queue of the same number.
pub fn create_submission(number: u16, size: u16, page: u64) -> Words {
    let mut words = words(CREATE_SUBMISSION, 0, (page, 0));
    words[10] = u32::from(number) | u32::from(size - 1) << 16;
    words[11] = CONTIGUOUS | u32::from(number) << 16;
    words
}

/// Reads or writes `blocks` blocks, 1 to 65536, of a namespace from `first` on.
pub fn transfer(is_write: bool, namespace: u32, first: u64, blocks: u32, memory: Memory) -> Words {
    let mut words = words(if is_write { WRITE } else { READ }, namespace, memory);
    (words[10], words[11]) = (first as u32, (first >> 32) as u32);
    words[12] = blocks - 1;
    words
}

/// Brings what was written to a namespace to stable storage.
pub fn flush(namespace: u32) -> Words {
    words(FLUSH, namespace, (0, 0))
}

/// Says that a range of a namespace, which is described at `range`, is not needed any more.
pub fn discard(namespace: u32, range: u64) -> Words {
    let mut words = words(MANAGE, namespace, (range, 0));
    words[11] = DEALLOCATE;
    words
}

/// The words of the range of `blocks` blocks from `first` on, for [`discard`].
pub fn range(first: u64, blocks: u32) -> [u32; 4] {
    [0, blocks, first as u32, (first >> 32) as u32]
}

/// The result of an I/O command whose status, without the phase bit, is this (4.6.1).
pub fn result(status: u16) -> Result<(), Error> {
    /// Code and type of the status; what is above says whether to try again.
    const STATUS: u16 = 0x7ff;
    match status & STATUS {
        0 => Ok(()),
        // An invalid opcode.
        1 => Err(Error::Unsupported),
        // The namespace is write-protected, or the range is read-only.
        0x20 | 0x182 => Err(Error::ReadOnly),
        _ => Err(Error::Device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_words_where_the_manual_has_them() {
        let read = transfer(false, 3, 0x1_2345_6789, 65536, (0xa_b000_0200, 0xc_d000_1000));
        assert_eq!(read[..2], [2, 3]);
        assert_eq!(read[6..13], [0xb000_0200, 0xa, 0xd000_1000, 0xc, 0x2345_6789, 1, 0xffff]);
        assert_eq!(transfer(true, 1, 0, 1, (0, 0))[0], 1);
        let made = create_completion(1, 64, 7, 0x5000);
        assert_eq!((made[0], made[6], made[10], made[11]), (5, 0x5000, 0x3f_0001, 0x7_0003));
        let made = create_submission(1, 64, 0x6000);
        assert_eq!((made[0], made[6], made[10], made[11]), (1, 0x6000, 0x3f_0001, 0x1_0001));
        assert_eq!(identify(About::Namespace(2), 0x7000)[..2], [6, 2]);
        assert_eq!(
            [About::Namespace(1), About::Controller, About::Namespaces].map(|it| identify(it, 0)[10]),
            [0, 1, 2]
        );
        assert_eq!((discard(1, 0x9000)[0], discard(1, 0x9000)[11]), (9, 4));
        assert_eq!(range(0x5_0000_0001, 8), [0, 8, 1, 5]);
    }

    #[test]
    fn a_status_is_an_error_of_the_request() {
        assert_eq!(result(0), Ok(()));
        assert_eq!(result(1), Err(Error::Unsupported));
        assert_eq!(result(0x4001), Err(Error::Unsupported), "with the bit that says not to try again");
        assert_eq!(result(0x182), Err(Error::ReadOnly));
        assert_eq!(result(0x281), Err(Error::Device), "an unrecovered read error");
    }
}
