//! String items: moving bytes from the sender's memory to the receiver's buffers (X.2 rules 7.11,
//! 7.13, 7.27-7.31).
//!
//! Both page tables are walked in software, page by page (K3); the bytes go through the direct map.
//! Descriptors and pointers are the users' words, which other threads of theirs can change at any
//! time: they are read again at each step, and they decide nothing but where the step looks next,
//! within the message and buffer registers.

use x2::message::{BUFFER_REGISTERS, StringDescriptor, TypedItemKind};
use x2::{IpcErrorKind, Rights, utcb};

use super::Failure;
use super::message::Message;
use super::transfer::{Item, MissingPage};
use crate::arch;
use crate::arch::tlb::Walk;
use crate::mapping;
use crate::memory::{PAGE_SIZE, VirtAddr};
use crate::thread::transfer_record::{Place, StringProgress};
use crate::thread::{IpcKind, ThreadRef, TransferRecord};

/// The number of pieces, of a page at most each, after which a transfer looks for interrupts.
const PIECES_PER_POLL: u32 = 4;
/// The first buffer register that can describe a string buffer.
const FIRST_BUFFER: u8 = 1;

/// Moves the string item at message register `index`, or goes on with it.
///
/// Preemption point, once per few pages.
pub(super) fn transfer(
    record: &'static TransferRecord,
    sender: Message,
    receiver: Message,
    index: usize,
) -> Item {
    let mut progress = record.string.get();
    let item = begin(&mut progress, sender, receiver, index)
        .and_then(|()| copy(&mut progress, sender, receiver, index))
        .unwrap_or_else(|stopped| stopped);
    record.string.set(progress);
    item
}

const OVERFLOW: Item = Item::Failed(Failure::new(IpcErrorKind::MessageOverflow));

/// Delivers the item's descriptors, without the sender's pointers, and finds the receiver's buffer.
fn begin(
    progress: &mut StringProgress,
    sender: Message,
    receiver: Message,
    index: usize,
) -> Result<(), Item> {
    if progress.begun {
        return Ok(());
    }
    let end = sender.tag().end();
    let words = length(sender, index, end);
    let behind = index + words.unwrap_or(1);
    let mut descriptor = index;
    while descriptor < behind {
        let word = StringDescriptor::from_raw(sender.word(descriptor));
        let continues = descriptor == index && behind < end;
        receiver.set_word(descriptor, word.with_continues(continues).raw());
        let next = descriptor + 1 + word.substrings();
        (descriptor + 1..next.min(behind)).for_each(|pointer| receiver.set_word(pointer, 0));
        descriptor = next;
    }
    if words.is_none() || receiver.kind != IpcKind::User || !receiver.acceptor().accepts_strings() {
        return Err(OVERFLOW);
    }
    progress.buffer = next_buffer(progress.buffer, receiver.thread).ok_or(OVERFLOW)?;
    progress.source = Place { descriptor: index as u8, ..Place::default() };
    progress.target = Place { descriptor: progress.buffer, ..Place::default() };
    progress.begun = true;
    Ok(())
}

/// How many words the string at `index` has; `None`: more than the message has left.
fn length(sender: Message, index: usize, end: usize) -> Option<usize> {
    let mut descriptor = index;
    loop {
        let word = sender.word(descriptor);
        let TypedItemKind::String(string) = TypedItemKind::of(word) else { return None };
        let next = descriptor + 1 + string.substrings();
        if next > end {
            return None;
        }
        if !string.compound_continues() {
            return Some(next - index);
        }
        descriptor = Some(next).filter(|&next| next < end)?;
    }
}

/// Word `index` of a thread's buffer registers.
fn buffer_word(thread: ThreadRef, index: usize) -> Option<u64> {
    (index < BUFFER_REGISTERS)
        .then(|| thread.utcb.get().map_or(0, |block| block.read(utcb::buffer_register(index))))
}

fn buffer_descriptor(thread: ThreadRef, index: usize) -> Option<StringDescriptor> {
    match TypedItemKind::of(buffer_word(thread, index)?) {
        TypedItemKind::String(string) => Some(string),
        _ => None,
    }
}

/// The buffer register of the buffer after the one at `buffer` (0: the first). `None`: there is
/// none.
fn next_buffer(buffer: u8, thread: ThreadRef) -> Option<u8> {
    if buffer == 0 {
        return buffer_descriptor(thread, usize::from(FIRST_BUFFER)).map(|_| FIRST_BUFFER);
    }
    let mut at = usize::from(buffer);
    let mut descriptor = buffer_descriptor(thread, at).filter(|first| first.continues())?;
    loop {
        at += 1 + descriptor.substrings();
        let behind = buffer_descriptor(thread, at)?;
        if !descriptor.compound_continues() {
            return Some(at as u8);
        }
        descriptor = behind;
    }
}

/// A contiguous part of a substring.
struct Piece {
    address: u64,
    size: u64,
    /// Register of the substring's pointer.
    pointer: usize,
}

/// The piece of memory at `place`, which moves on to the next substring that is not at its end.
/// `None`: the string ends here. Descriptors and pointers that `word` does not give end it too.
fn piece(place: &mut Place, word: impl Fn(usize) -> Option<u64>) -> Option<Piece> {
    loop {
        let descriptor = StringDescriptor::from_raw(word(usize::from(place.descriptor))?);
        if place.done < descriptor.length() {
            let pointer = usize::from(place.descriptor) + 1 + usize::from(place.substring);
            let address = word(pointer)?.wrapping_add(place.done);
            return Some(Piece { address, size: descriptor.length() - place.done, pointer });
        }
        place.done = 0;
        place.substring += 1;
        if usize::from(place.substring) == descriptor.substrings() {
            if !descriptor.compound_continues() {
                // The place is the end of the whole string.
                (place.substring, place.done) = (place.substring - 1, descriptor.length());
                return None;
            }
            let next = usize::from(place.descriptor) + 1 + descriptor.substrings();
            word(next)?;
            *place = Place { descriptor: next as u8, ..Place::default() };
        }
    }
}

fn copy(
    progress: &mut StringProgress,
    sender: Message,
    receiver: Message,
    index: usize,
) -> Result<Item, Item> {
    let end = sender.tag().end();
    let mut pieces = 0;
    loop {
        let source = piece(&mut progress.source, |index| (index < end).then(|| sender.word(index)));
        let Some(source) = source else {
            progress.begun = false;
            let words = length(sender, index, end).unwrap_or(end - index);
            return Ok(Item::Done(words as u8));
        };
        let target =
            piece(&mut progress.target, |index| buffer_word(receiver.thread, index)).ok_or(OVERFLOW)?;
        let in_page = |address: u64| PAGE_SIZE - address % PAGE_SIZE;
        let size = source.size.min(target.size).min(in_page(source.address)).min(in_page(target.address));
        serve_sigma0(sender.thread, source.address, Rights::READ);
        serve_sigma0(receiver.thread, target.address, Rights::WRITE);
        let _walk = Walk::begin();
        let from = reach(sender.thread, source.address, Rights::READ).map_err(|missing| {
            missing.map_or(OVERFLOW, |page| Item::Missing(MissingPage { of_receiver: false, ..page }))
        })?;
        let to = reach(receiver.thread, target.address, Rights::WRITE).map_err(|missing| {
            missing.map_or(OVERFLOW, |page| Item::Missing(MissingPage { of_receiver: true, ..page }))
        })?;
        // The pointer of a substring that is in one piece in the receiver's buffer says where (X.2
        // rule 7.30).
        if progress.source.done == 0 {
            receiver.set_word(source.pointer, target.address);
        } else if target.address != progress.expected {
            receiver.set_word(source.pointer, 0);
        }
        // SAFETY: both lie within one page of memory that the direct map reaches, which the threads
        // may read and write; no kernel object lies there.
        unsafe { arch::copy_user_memory(to, from, size as usize) };
        progress.expected = target.address + size;
        progress.source.done += size;
        progress.target.done += size;
        progress.moved += size;
        pieces += 1;
        if pieces == PIECES_PER_POLL {
            if arch::interrupt_pending() {
                return Err(Item::Interrupted);
            }
            pieces = 0;
        }
    }
}

/// Where the memory at `address` of the thread's space can be reached, for an access of the user's
/// kind `access`, which is noted in the page's status. `Err(None)`: it is no memory, but a device.
fn reach(thread: ThreadRef, address: u64, access: Rights) -> Result<*mut u8, Option<MissingPage>> {
    let missing = MissingPage { of_receiver: false, address, access };
    let memory = thread.space.get().ok_or(Some(missing))?.memory;
    let translation = memory.access(VirtAddr::new(address), access).ok_or(Some(missing))?;
    arch::user_memory_to_virt(translation.address).ok_or(None)
}

/// Gives sigma0's thread its page at `address`, if sigma0 has not touched the page yet.
fn serve_sigma0(thread: ThreadRef, address: u64, access: Rights) {
    let Some(memory) = thread.space.get().map(|space| space.memory).filter(|memory| memory.is_sigma0())
    else {
        return;
    };
    let place = VirtAddr::new(address);
    let found = {
        let _walk = Walk::begin();
        memory.access(place, access).is_some()
    };
    if !found {
        // A page that sigma0 does not have stays unmapped.
        let _ = mapping::sigma0_fault(memory, place);
    }
}
