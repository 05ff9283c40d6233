//! Moving a message from a sender to a receiver that have met (X.2 rules 7.26-7.38).

use x2::message::TypedItemKind;
use x2::{Fpage, IpcErrorKind, MapItem, Rights};

use super::Failure;
use super::message::Message;
use super::string;
use crate::arch;
use crate::mapping::{self, Cursor, Progress};
use crate::memory::OutOfMemory;
use crate::thread::transfer_record::StringProgress;
use crate::thread::{ThreadRef, TransferRecord};
use crate::trace::{self, Event};

/// The result of one attempt to move a message's items.
pub(super) enum Transfer {
    /// The message has arrived, whole or (`Some`) up to the item that failed.
    Ended(Option<Failure>),
    /// An interrupt is pending. [`resume_transfer`] goes on.
    Interrupted,
    /// A page is missing. [`resume_transfer`] goes on when its holder's pager has been told.
    Missing(MissingPage),
}

/// A page that a transfer needs and that is not there, or does not allow the access.
#[derive(Clone, Copy)]
pub(super) struct MissingPage {
    /// Whether the page is missing in the receiver's space, and not in the sender's.
    pub of_receiver: bool,
    /// The address.
    pub address: u64,
    /// The one right that the access needs.
    pub access: Rights,
}

/// Moves the message of `sender` to `receiver`.
///
/// Preemption point, every few items, mapped pages and pages of strings. UTCBs are always present,
/// but strings can fault.
pub(super) fn start(sender: Message, receiver: Message) -> Transfer {
    let tag = sender.tag();
    trace::event(Event::IpcTransfer, receiver.thread.id().raw(), tag.raw());
    receiver.receive_untyped(sender, tag);
    if tag.typed() == 0 {
        return Transfer::Ended(None);
    }
    let first = tag.untyped() + 1;
    let Some(record) = sender.thread.transfer_record.get() else {
        return Transfer::Ended(Some(Failure::new(IpcErrorKind::MessageOverflow)));
    };
    record.item.set(first as u8);
    record.string.set(StringProgress::NONE);
    resume_transfer(sender, receiver)
}

/// Goes on with the typed items. Preemption point between items and within them.
pub(super) fn resume_transfer(sender: Message, receiver: Message) -> Transfer {
    let tag = sender.tag();
    let Some(record) = sender.thread.transfer_record.get() else {
        return Transfer::Ended(Some(Failure::new(IpcErrorKind::MessageOverflow)));
    };
    let first = record.item.get();
    while usize::from(record.item.get()) < tag.end() {
        if record.item.get() != first && arch::interrupt_pending() {
            return Transfer::Interrupted;
        }
        match transfer_item(record, sender, receiver, usize::from(record.item.get())) {
            Item::Done(words) => record.item.set(record.item.get() + words),
            Item::Interrupted => return Transfer::Interrupted,
            Item::Missing(page) => return Transfer::Missing(page),
            Item::Failed(failure) => {
                let failure = Failure { offset: record.string.get().moved, ..failure };
                // The item may have been changed while it was under way: nothing of it is left to
                // the next one.
                record.with_cursor(Cursor::cancel);
                return Transfer::Ended(Some(failure));
            }
        }
    }
    Transfer::Ended(None)
}

pub(super) enum Item {
    /// The item has been moved; it took this many words.
    Done(u8),
    /// See [`Transfer::Interrupted`].
    Interrupted,
    /// See [`Transfer::Missing`].
    Missing(MissingPage),
    /// The item has failed; no further item is moved.
    Failed(Failure),
}

fn transfer_item(record: &'static TransferRecord, sender: Message, receiver: Message, index: usize) -> Item {
    let end = sender.tag().end();
    let overflow = Item::Failed(Failure::new(IpcErrorKind::MessageOverflow));
    let words = [sender.word(index), if index + 1 < end { sender.word(index + 1) } else { 0 }];
    match TypedItemKind::of(words[0]) {
        TypedItemKind::Map | TypedItemKind::Grant if index + 1 < end => {
            let Some(item) = MapItem::from_words(words) else { return overflow };
            let continues = index + 2 < end;
            match map(record, sender.thread, receiver, item) {
                Progress::Done(Ok(delivered)) => {
                    let words = MapItem { fpage: delivered, ..item }.to_words(continues);
                    receiver.set_word(index, words[0]);
                    receiver.set_word(index + 1, words[1]);
                    Item::Done(2)
                }
                Progress::Done(Err(_)) => {
                    let words = MapItem { fpage: Fpage::NIL, ..item }.to_words(continues);
                    receiver.set_word(index, words[0]);
                    receiver.set_word(index + 1, words[1]);
                    Item::Failed(Failure {
                        out_of_memory: true,
                        ..Failure::new(IpcErrorKind::MessageOverflow)
                    })
                }
                Progress::Preempted => Item::Interrupted,
            }
        }
        TypedItemKind::String(_) => string::transfer(record, sender, receiver, index),
        _ => overflow,
    }
}

/// Performs one map or grant item, or goes on with it.
fn map(
    record: &'static TransferRecord,
    sender: ThreadRef,
    receiver: Message,
    item: MapItem,
) -> Progress<Result<Fpage, OutOfMemory>> {
    let window = receiver.acceptor().window();
    trace::event(Event::Map, item.fpage.raw(), window.raw());
    let (Some(from), Some(to)) = (sender.space.get(), receiver.thread.space.get()) else {
        return Progress::Done(Ok(Fpage::NIL));
    };
    record.with_cursor(|cursor| mapping::map(cursor, from.memory, to.memory, item, window))
}
