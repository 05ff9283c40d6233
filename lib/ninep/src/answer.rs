//! Replies as a server writes them.

use crate::body::{Attributes, Entry, FileSystemStatus, Mapped, Qid, Time};
use crate::wire::Writer;
use crate::{VERSION, kind};
use alloc::vec::Vec;

/// The content of a reply.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The request failed, with an error number of Linux.
    Error(u32),
    /// The version, and the largest message.
    Version(u32),
    /// The file that is attached.
    Attached(Qid),
    /// The file that was opened.
    Opened(Qid),
    /// The files to which names lead.
    Walked(&'a [Qid]),
    /// The request was carried out, and there is nothing to say.
    Done,
    /// The attributes of a file.
    Attributes(Attributes),
    /// The text of a symbolic link.
    Text(&'a [u8]),
    /// Data, or the entries of an [`EntryList`].
    Data(&'a [u8]),
    /// How many bytes were written.
    Count(u32),
    /// The size of an extended attribute.
    Size(u64),
    /// The status of the file system.
    Status(FileSystemStatus),
    /// The file system is mounted: its root.
    Mounted(Qid),
    /// The file system cannot be mounted: an error number, and what is wrong.
    NotMounted(u32, &'a [u8]),
    /// Where the first bytes of a range are.
    Mapped(Mapped),
}

impl Answer<'_> {
    /// The message that replies to a request of kind `request` with the tag `tag`.
    pub fn encode(&self, request: u8, tag: u16) -> Vec<u8> {
        let kind = if let Answer::Error(_) = self { kind::ERROR } else { request + 1 };
        let mut to = Writer::new(kind, tag);
        match *self {
            Answer::Error(number) => to.word(number),
            Answer::Version(size) => {
                to.word(size);
                to.string(VERSION);
            }
            Answer::Attached(file) => qid(&mut to, file),
            Answer::Opened(file) => {
                qid(&mut to, file);
                to.word(0);
            }
            Answer::Walked(files) => {
                to.half(files.len() as u16);
                files.iter().for_each(|&file| qid(&mut to, file));
            }
            Answer::Done => {}
            Answer::Attributes(ref attributes) => write_attributes(&mut to, attributes),
            Answer::Text(text) => to.string(text),
            Answer::Data(data) => {
                to.word(data.len() as u32);
                to.raw(data);
            }
            Answer::Count(count) => to.word(count),
            Answer::Size(size) => to.long(size),
            Answer::Status(ref status) => write_status(&mut to, status),
            Answer::Mounted(root) => {
                to.word(0);
                qid(&mut to, root);
                to.string(b"");
            }
            Answer::NotMounted(number, why) => {
                to.word(number);
                qid(&mut to, Qid::default());
                to.string(why);
            }
            Answer::Mapped(mapped) => {
                let (length, place, kind) = match mapped {
                    Mapped::Hole { length } => (length, 0, 0),
                    Mapped::Unwritten { length, place } => (length, place, 1),
                    Mapped::Data { length, place } => (length, place, 2),
                };
                to.long(length);
                to.long(place);
                to.word(kind);
            }
        }
        to.finish()
    }
}

fn qid(to: &mut Writer, qid: Qid) {
    to.byte(qid.kind);
    to.word(qid.version);
    to.long(qid.path);
}

fn write_attributes(to: &mut Writer, attributes: &Attributes) {
    /// All attributes of stat(2) are there.
    const BASIC: u64 = 0x7ff;
    to.long(BASIC);
    qid(to, attributes.qid);
    [attributes.mode, attributes.user, attributes.group].into_iter().for_each(|word| to.word(word));
    let Attributes { links, device, size, block_size, blocks, .. } = *attributes;
    [links, device, size, block_size, blocks].into_iter().for_each(|long| to.long(long));
    let made = Time::default();
    for time in [attributes.accessed, attributes.modified, attributes.changed, made] {
        to.long(time.seconds);
        to.long(time.nanoseconds);
    }
    // Generation and data version.
    [0, 0].into_iter().for_each(|long| to.long(long));
}

fn write_status(to: &mut Writer, status: &FileSystemStatus) {
    // The type is the client's to know.
    to.word(0);
    to.word(status.block_size);
    status.blocks.into_iter().chain(status.files).for_each(|count| to.long(count));
    to.long(status.identifier);
    to.word(status.name_maximum);
}

/// Entries of a directory, of at most so many bytes.
#[derive(Debug)]
pub struct EntryList {
    bytes: Vec<u8>,
    most: usize,
}

impl EntryList {
    /// An empty list of at most `most` bytes.
    pub fn new(most: usize) -> EntryList {
        EntryList { bytes: Vec::new(), most }
    }

    /// Appends an entry. Returns false if there is no room for it.
    pub fn push(&mut self, entry: &Entry<'_>) -> bool {
        let mut to = Writer::default();
        qid(&mut to, entry.qid);
        to.long(entry.next);
        to.byte(entry.file_type);
        to.string(entry.name);
        let bytes = to.parts();
        let fits = self.bytes.len() + bytes.len() <= self.most;
        if fits {
            self.bytes.extend_from_slice(&bytes);
        }
        fits
    }

    /// The entries, to be sent as [`Answer::Data`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
