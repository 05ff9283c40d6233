//! Who may meet whom: ids of partners, propagation, and which sender a receiver takes (X.2 rules 7.2-7.7, 7.14).

use core::ptr::eq;

use x2::ThreadId;

use crate::arch;
use crate::interrupt::{self, Interrupt};
use crate::space::Space;
use crate::thread::table::{self, threads};
use crate::thread::{IpcKind, ThreadRef, flag};

/// Whom an id names, as destination of a send or source of a receive.
pub(super) enum Partner {
    /// A thread.
    Thread(ThreadRef),
    /// An interrupt line.
    Interrupt(&'static Interrupt),
}

/// The thread that `id`, global or local to `thread`'s space, names for `thread`.
pub fn resolve_thread(thread: ThreadRef, id: ThreadId) -> Option<ThreadRef> {
    if id.is_global() {
        threads().find(id)
    } else if id.is_local() {
        thread.space.get()?.thread_with_local_id(id)
    } else {
        None
    }
}

/// Like [`resolve_thread`], for the partner of an IPC of kind `kind`: it may be an interrupt, and it must be within
/// reach of a confined program (K13; what the kernel does in a thread's name is not the program's doing): an interrupt is
/// only for its handler.
pub(super) fn resolve(thread: ThreadRef, kind: IpcKind, id: ThreadId) -> Option<Partner> {
    if id.is_global() && id.number() < interrupt::system_base() {
        let confined = thread.space.get().is_none_or(Space::is_owned);
        return interrupt::find(id)
            .filter(|interrupt| !confined || interrupt.handler().is_some_and(|handler| eq(handler, thread)))
            .map(Partner::Interrupt);
    }
    resolve_thread(thread, id)
        .filter(|partner| kind != IpcKind::User || reaches(thread, partner))
        .map(Partner::Thread)
}

/// Whether a program in `thread` may send to, or wait for, `partner` (K13).
pub fn reaches(thread: ThreadRef, partner: ThreadRef) -> bool {
    match (thread.space.get(), partner.space.get()) {
        (Some(from), Some(to)) => from.reaches(to),
        _ => false,
    }
}

/// Whose message `sender` brings to `receiver`: the originator if the propagation is honoured, else the sender itself
/// (X.2 rule 7.14; evaluated anew whenever a waiting send is served).
pub(super) fn originator(sender: ThreadRef, receiver: ThreadRef) -> ThreadRef {
    if !sender.has(flag::PROPAGATED) {
        return sender;
    }
    resolve_thread(sender, sender.virtual_sender.get())
        .filter(|originator| originator.shares_space_with(sender) || sender.shares_space_with(receiver))
        .unwrap_or(sender)
}

/// Whether `receiver`, which is in a receive phase, takes a message of `originator` (X.2 rules 7.3, 7.15).
#[inline]
pub(super) fn accepts(receiver: ThreadRef, originator: ThreadRef) -> bool {
    let from = receiver.partner();
    from == originator.id() || from.is_any() || from.is_any_local() && originator.shares_space_with(receiver)
}

/// What a receiver knows of its queue without a search.
enum Known {
    /// It takes this one next, or none.
    Sender(Option<ThreadRef>),
    /// Senders of the own space, and propagated messages, must be looked for one by one.
    Search,
}

fn known_sender(receiver: ThreadRef) -> Known {
    let from = receiver.partner();
    let Some(first) = receiver.senders.first() else { return Known::Sender(None) };
    if from.is_any() {
        return Known::Sender(Some(first));
    }
    if from.is_global()
        && let Some(partner) = threads().find(from)
        && partner.senders_node.receiver().is_some_and(|queue| core::ptr::eq(queue, receiver))
        && core::ptr::eq(originator(partner, receiver), partner)
    {
        return Known::Sender(Some(partner));
    }
    if from.is_any_local() || receiver.has(flag::PROPAGATED_SENDERS) {
        return Known::Search;
    }
    Known::Sender(None)
}

/// Whether [`find_sender`] could find one: without the search.
pub(super) fn may_find_sender(receiver: ThreadRef) -> bool {
    !matches!(known_sender(receiver), Known::Sender(None))
}

/// An interrupt is pending; the search goes on where it stopped when it is called again.
pub(super) struct Interrupted;

/// After so many senders a search looks for interrupts.
const SEARCHED_AT_ONCE: u32 = arch::POLL_INTERVAL / 4;

/// The waiting sender that `receiver`, which is current, takes next, if any.
///
/// Preemption point. `receiver.search` is where an interrupted search goes on. A sender that comes meanwhile need not
/// be found: what the receiver accepts is delivered to it at once, search or not.
pub(super) fn find_sender(receiver: ThreadRef) -> Result<Option<ThreadRef>, Interrupted> {
    if let Known::Sender(sender) = known_sender(receiver) {
        return Ok(sender);
    }
    let mut searched = 0;
    let mut next = receiver.search.take().or(receiver.senders.first());
    while let Some(sender) = next {
        if accepts(receiver, originator(sender, receiver)) {
            return Ok(Some(sender));
        }
        next = receiver.senders.after(sender);
        searched += 1;
        if searched == SEARCHED_AT_ONCE {
            if next.is_some() && arch::interrupt_pending() {
                receiver.search.set(next);
                return Err(Interrupted);
            }
            searched = 0;
        }
    }
    Ok(None)
}

/// The id by which `observer` sees `thread`: local in its own space, else global (X.2 rule 7.6).
pub(super) fn id_seen_by(observer: ThreadRef, thread: ThreadRef) -> ThreadId {
    if thread.shares_space_with(observer) && thread.local_id.get() != 0 {
        ThreadId::local(thread.local_id.get())
    } else {
        thread.id()
    }
}

/// Whether `id` could be a thread's: neither an interrupt's nor one of the kernel's own numbers (X.2 rule 5.22).
pub fn is_user_number(id: ThreadId) -> bool {
    id.is_global() && id.number() >= interrupt::user_base() && (id.number() as usize) < table::NUMBERS
}
