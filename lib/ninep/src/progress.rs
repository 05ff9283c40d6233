//! How far a server of a disk has come, which it says after each reply.

use crate::wire::{Reader, Writer};

/// How far a server of a disk has come. It is after the message of the reply, which has the size
/// that it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of the running transaction of the journal, which has the changes of the request
    /// if it made some. All transactions before it are on the disk. In the reply to a mount, the
    /// first transaction that is not on the disk.
    pub transaction: u32,
    /// How many requests were carried out before this one, modulo 2^32.
    pub number: u32,
}

impl Progress {
    /// Appends this to a reply.
    pub fn append(self, reply: &mut alloc::vec::Vec<u8>) {
        let mut to = Writer::default();
        to.word(self.transaction);
        to.word(self.number);
        reply.extend_from_slice(&to.parts());
    }

    /// What a reply says. `None`: the file system has no journal, or the server is of another kind.
    pub fn of(reply: &[u8]) -> Option<Progress> {
        let size = Reader::new(reply).word()?;
        let mut rest = Reader::new(reply.get(usize::try_from(size).ok()?..)?);
        Some(Progress { transaction: rest.word()?, number: rest.word()? })
    }
}
