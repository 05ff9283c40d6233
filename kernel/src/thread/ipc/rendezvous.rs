//! Which threads may meet: ids of partners, redirection, propagation, and which sender a receiver
//! takes (X.2 rules 6.8-6.17, 7.2-7.7, 7.14).

use x2::ThreadId;

use crate::arch;
use crate::interrupt::{self, Interrupt};
use crate::space::Space;
use crate::sync::delay::{self, Point};
use crate::thread::table::{self, threads};
use crate::thread::{Found, IpcKind, Tcb, ThreadRef, flag};

/// What an id names, as destination of a send or source of a receive.
pub(super) enum Partner {
    /// A thread, wherever it is.
    Thread(Found),
    /// An interrupt line.
    Interrupt(&'static Interrupt),
}

/// The thread that `id`, global or local to `thread`'s space, names for `thread`.
pub fn resolve_thread(thread: &Tcb, id: ThreadId) -> Option<Found> {
    if id.is_global() {
        threads().find(id)
    } else if id.is_local() {
        thread.space.get()?.thread_with_local_id(id)
    } else {
        None
    }
}

/// The global id of `partner`, which `id` has named. A global id is not read again: on another
/// processor the partner can have got another one, for which the message is not.
#[inline]
pub(super) fn name(id: ThreadId, partner: impl Into<Found>) -> ThreadId {
    if id.is_global() { id } else { partner.into().id() }
}

/// Like [`resolve_thread`], for the partner of an IPC: it may be an interrupt.
fn resolve_any(thread: ThreadRef, id: ThreadId) -> Option<Partner> {
    if id.is_global() && id.number() < interrupt::system_base() {
        return interrupt::find(id).map(Partner::Interrupt);
    }
    let found = resolve_thread(thread, id);
    delay::between(Point::LookUp);
    found.map(Partner::Thread)
}

/// Whether `thread`, in an IPC of kind `kind`, may have `partner` (K13): what the kernel does in a
/// thread's name is not the program's doing, and an interrupt is only for its handler.
fn may_meet(thread: ThreadRef, kind: IpcKind, partner: &Partner) -> bool {
    match partner {
        Partner::Thread(partner) => kind != IpcKind::User || reaches(thread, *partner),
        Partner::Interrupt(interrupt) => {
            let confined = thread.space.get().is_none_or(Space::is_owned);
            !confined || interrupt.handler().is_some_and(|handler| handler.is(thread))
        }
    }
}

/// What `id` names as the source of a receive phase.
pub(super) fn source(thread: ThreadRef, kind: IpcKind, id: ThreadId) -> Option<Partner> {
    // A redirector answers in its own name, whichever thread the program reaches (X.2 rule 6.12).
    let is_redirector = |partner: &Partner| match partner {
        Partner::Thread(partner) => {
            let redirector = thread.space.get().and_then(Space::redirector);
            redirector.is_some_and(|redirector| redirector.is(*partner))
        }
        Partner::Interrupt(_) => false,
    };
    resolve_any(thread, id).filter(|partner| may_meet(thread, kind, partner) || is_redirector(partner))
}

/// The destination of a message.
pub(super) enum Destination {
    /// The thread or interrupt that the message names.
    Direct(Partner),
    /// Instead of the thread or interrupt with this id, to the redirector of the sender's space.
    Redirected(ThreadId, Found),
    /// The message is for a redirector that does not exist at present: the sender waits.
    Nowhere(ThreadId),
}

/// Where the message of `sender`, of kind `kind`, for `id` goes. `None`: there is no thread with
/// this id, as far as the sender may know.
pub(super) fn destination(sender: ThreadRef, kind: IpcKind, id: ThreadId) -> Option<Destination> {
    let partner = resolve_any(sender, id)?;
    // The redirector decides first, then confinement (K13).
    match deflected(sender, &partner) {
        None => Some(partner).filter(|partner| may_meet(sender, kind, partner)).map(Destination::Direct),
        Some(redirector) => {
            let id = match partner {
                Partner::Thread(partner) => name(id, partner),
                Partner::Interrupt(interrupt) => interrupt.id(),
            };
            Some(redirector.map_or(Destination::Nowhere(id), |to| Destination::Redirected(id, to)))
        }
    }
}

/// Whether a message of `sender` for `partner` goes to a redirector, and to which, if there is one
/// at present.
#[allow(clippy::option_option, reason = "a redirector that has gone is not the same as none")]
fn deflected(sender: ThreadRef, partner: &Partner) -> Option<Option<Found>> {
    let space = sender.space.get().filter(|space| space.is_redirected())?;
    let redirector = space.redirector();
    if let Partner::Thread(partner) = partner
        && (partner.shares_space_with(sender)
            || redirector.is_some_and(|redirector| partner.shares_space_with(redirector)))
    {
        return None;
    }
    // A redirector that would redirect to itself stops the message.
    Some(redirector.filter(|redirector| !redirector.is(sender)))
}

/// Whether `thread` may send to, or notify, `partner`, and no redirector stands between them.
pub fn reaches_directly(thread: ThreadRef, partner: Found) -> bool {
    deflected(thread, &Partner::Thread(partner)).is_none() && reaches(thread, partner)
}

/// How many redirectors a message can pass, one after the other, and still be passed on in its
/// sender's name.
const LONGEST_CHAIN: usize = 16;

/// Whether `thread` is the redirector of `originator`'s space, or the redirector of that
/// redirector's space, and so on.
fn redirects_for(thread: ThreadRef, originator: Found) -> bool {
    let next = |of: &Found| of.space().and_then(Space::redirector);
    let chain = core::iter::successors(next(&originator), next);
    chain.take(LONGEST_CHAIN).any(|redirector| redirector.is(thread))
}

/// Whether a program in `thread` may send to, or wait for, `partner` (K13).
pub fn reaches(thread: ThreadRef, partner: impl Into<Found>) -> bool {
    match (thread.space.get(), partner.into().space()) {
        (Some(from), Some(to)) => from.reaches(to),
        _ => false,
    }
}

/// The thread whose message `sender` brings to `receiver`: the originator if the propagation is
/// honoured, else the sender itself (X.2 rule 7.14; evaluated again whenever a waiting send is
/// served).
pub(super) fn originator(sender: ThreadRef, receiver: impl Into<Found>) -> Found {
    let this = Found::new(sender);
    if !sender.has(flag::PROPAGATED) {
        return this;
    }
    let receiver = receiver.into();
    resolve_thread(sender, sender.virtual_sender.get())
        .filter(|&originator| {
            originator.shares_space_with(this)
                || this.shares_space_with(receiver)
                || redirects_for(sender, originator)
        })
        .unwrap_or(this)
}

/// Whether `receiver`, which is in a receive phase, takes a message of `originator` (X.2 rules 7.3,
/// 7.15).
#[inline]
pub(super) fn accepts(receiver: ThreadRef, originator: Found) -> bool {
    let from = receiver.partner();
    from == originator.id() || from.is_any() || from.is_any_local() && originator.shares_space_with(receiver)
}

/// What a receiver knows of its queue without a search.
enum Known {
    /// The receiver takes this sender next, or none.
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
        && let Some(partner) = threads().find(from).and_then(Found::if_here)
        && partner.senders_node.receiver().is_some_and(|queue| core::ptr::eq(queue, receiver))
        && originator(partner, receiver).is(partner)
    {
        return Known::Sender(Some(partner));
    }
    if from.is_any_local() || receiver.has(flag::PROPAGATED_SENDERS) {
        return Known::Search;
    }
    Known::Sender(None)
}

/// Whether [`find_sender`] can find a sender, as far as this is known without a search.
pub(super) fn may_find_sender(receiver: ThreadRef) -> bool {
    !matches!(known_sender(receiver), Known::Sender(None))
}

/// An interrupt is pending; the search goes on where it stopped when it is called again.
pub(super) struct Interrupted;

/// The number of senders after which a search looks for interrupts.
const SEARCHED_PER_POLL: u32 = arch::POLL_INTERVAL / 4;

/// The waiting sender that `receiver`, which is current, takes next, if any.
///
/// Preemption point. `receiver.search` is where an interrupted search goes on. A sender that comes
/// meanwhile need not be found: what the receiver accepts is delivered to it immediately, search or
/// not.
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
        if searched == SEARCHED_PER_POLL {
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
pub(super) fn id_seen_by(observer: ThreadRef, thread: impl Into<Found>) -> ThreadId {
    let thread = thread.into();
    if thread.shares_space_with(observer) && thread.local_id() != 0 {
        ThreadId::local(thread.local_id())
    } else {
        thread.id()
    }
}

/// Whether `id` could be a thread's: neither an interrupt's nor one of the kernel's own numbers
/// (X.2 rule 5.22).
#[inline(always)]
pub fn is_user_number(id: ThreadId) -> bool {
    // anythread's number belongs to no thread.
    id.has_version() && id.number() >= interrupt::user_base() && (id.number() as usize) < table::NUMBERS
}
