//! The thread control block: 512 bytes that hold everything the kernel keeps of a thread (K4).
//!
//! TCB memory is type-stable: a TCB is only ever reused as a TCB, so a reference stays usable for
//! ever and code that follows one checks the id again (K12). The fields are grouped by use. Unless
//! marked otherwise a field belongs to the processor where the thread is located, with interrupts
//! off; hence cells. (See `location` for how threads move.)

mod flags;
mod handlers;

use core::cell::Cell;
use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};

use handover::{Identity, Location, Node};
use x2::{ThreadId, Time, utcb};

use super::priority::PriorityCell;
use super::registers::Registers;
use super::send_queue::{SendNode, SendQueue};
use super::transfer_record::TransferRecord;
use super::utcb::Utcb;
use super::{Continuation, IpcKind, Offer};
use crate::arch::ExtendedState;
use crate::interrupt::Interrupt;
use crate::memory::Account;
use crate::scheduler::ready_queue::{ReadyNode, Ring};
use crate::scheduler::timeouts::{Microseconds, NEVER, TimeoutNode};
use crate::space::Space;
use crate::sync::{SharedByte, SharedRef, SharedWord};

pub use flags::{flag, mark, pending};

/// How the kernel refers to a thread. TCBs are never unmapped or used as anything else.
pub type ThreadRef = &'static Tcb;

/// A thread control block.
#[repr(C, align(64))]
pub struct Tcb {
    // Line 0: identity and IPC state, all that a fast path reads of a partner in addition to its
    // registers.
    /// The global id; nil while the TCB is not in use. Any processor may read it.
    pub(crate) id: Identity,
    /// 0 to 255, 255 is the most urgent.
    pub priority: PriorityCell,
    /// 1 = [`mark::NAMED`], 0 = not. Any processor may set it.
    named: AtomicU8,
    /// The processor that may touch the thread. Any may read it.
    pub(crate) location: Location,
    /// What the thread does next or waits for, unless `offer` says that.
    continuation: Cell<Continuation>,
    /// The processor on which the thread runs at user level, and which has its queue of senders and
    /// its pending interrupts. Any processor may read it (K12).
    pub(super) home: AtomicU16,
    /// `Send`: the destination; `Receive`: the source, unless `offer` says that.
    partner: Cell<ThreadId>,
    /// The address space. `None` only while the TCB is not in use. Any processor may read it.
    pub space: SharedRef<Space>,
    /// The user's address of MR0, which is the thread's local id; 0 without UTCB. Any processor may
    /// read it.
    pub local_id: SharedWord,
    /// The kernel's view of the UTCB while the thread is active.
    pub utcb: SharedRef<Utcb>,
    /// Threads waiting to send to this one. The home processor's.
    pub senders: SendQueue,
    /// The sender whose message the thread takes on the fast path. Withdrawn whenever anything
    /// changes that the fast path relies on.
    ///
    /// While there is one it stands for the continuation `Receive` (the field then says
    /// `ReturnToUser`), the partner, and how the thread entered: so a fast path changes one word of
    /// each thread.
    pub(crate) offer: Cell<Offer>,

    // Lines 1 to 3: the user's registers.
    /// Saved registers.
    pub registers: Registers,
    /// Whether the last entry was a SYSCALL, after which SYSRET may be used, since SYSCALL clobbers
    /// the same registers. While there is an offer, `offer` says that instead.
    pub(crate) entered_by_syscall: Cell<bool>,
    /// The [`mark`]s without [`mark::NAMED`]. Any processor may set some.
    marks: AtomicU8,
    /// Which IPC timeout the receive phase has, kept while the send phase waits (X.2 rule 1.10).
    pub receive_timeout: Cell<u16>,
    /// Which ring of the ready queue the thread is in, if it is in one.
    pub(crate) ring: Cell<Ring>,
    /// See [`flag`].
    pub flags: SharedByte,
    /// Where the thread is going to live when it is back at home; [`NOWHERE`] = it stays.
    pub(super) moves_to: Cell<u16>,
    /// The source of the receive phase that follows the present send phase; nil = none.
    pub receive_from: Cell<ThreadId>,
    /// When the receive phase ends: clock value, 0 = immediately, `NEVER`; unless `offer` says that
    /// it does not.
    pub receive_deadline: Cell<Microseconds>,
    /// The originator of a propagated message.
    pub virtual_sender: Cell<ThreadId>,
    /// Interrupts that wait for this thread to receive, lowest line first. The home processor's.
    pub pending_interrupts: Cell<Option<&'static Interrupt>>,

    // Lines 4 and 5: queues and scheduling.
    /// The thread's place in the queue of the thread that it sends to.
    pub senders_node: SendNode,
    /// Place in the ready queue.
    pub ready: ReadyNode,
    /// The running timeout.
    pub timeout: TimeoutNode,
    /// Length of a full timeslice in microseconds; `NEVER` = infinite.
    pub timeslice: Cell<Microseconds>,
    /// The rest of the present timeslice while the thread does not run.
    pub timeslice_left: Cell<Microseconds>,
    /// The account that pays for the TCB and what hangs on it, wherever the thread moves.
    pub account: Cell<Account>,
    /// The scheduler's global id.
    pub scheduler: Cell<ThreadId>,
    /// Longest delay of a preemption in microseconds (X.2 rule 4.4).
    pub maximum_delay: Cell<u16>,
    /// Priority up to which a preemption can be delayed.
    pub sensitive_priority: Cell<u8>,
    /// See [`pending`].
    pub pending: Cell<u8>,
    /// The words of the page fault (address, access) or exception (number, error code) being
    /// reported. Before the thread is activated: see [`Self::keep_location`].
    pub fault: [Cell<u64>; 2],
    /// x87, SSE and AVX registers; `None` until first used (K14).
    pub extended_state: Cell<Option<&'static ExtendedState>>,
    /// Room for what a transfer or long system call keeps while it is interrupted; allocated at
    /// activation.
    pub transfer_record: Cell<Option<&'static TransferRecord>>,
    /// The pager an owner has set (K13); nil: the UTCB word counts.
    pub owned_pager: Cell<ThreadId>,
    /// The exception handler an owner has set (K13).
    pub owned_exception_handler: Cell<ThreadId>,
    /// Pending notification bits (K15). Any processor may set some.
    pub notification: AtomicU64,
    /// Where an interrupted search of the senders goes on; `None` = at the first. The home
    /// processor's.
    pub search: Cell<Option<ThreadRef>>,
    /// The rest of the total quantum in microseconds, as far as it has been counted; `NEVER` =
    /// infinite.
    pub quantum_left: Cell<Microseconds>,
    /// When the total quantum was used up.
    pub quantum_over_at: Cell<Microseconds>,
    /// When the thread lost the processor, for the message about that.
    pub preempted_at: Cell<Microseconds>,
    /// When the send ends that a change of redirectors has interrupted, or that goes from processor
    /// to processor.
    pub send_deadline: Cell<Microseconds>,
    /// The thread's place in a request queue (K6).
    pub(super) request: Node,
    /// Unused.
    room: [u64; ROOM],
}

const ROOM: usize = 3;

/// No processor.
pub(super) const NOWHERE: u16 = u16::MAX;

/// Size of a TCB in bytes (K4).
pub const TCB_SIZE: usize = 512;

const LINE: usize = 64;
const _: () = assert!(size_of::<Tcb>() == TCB_SIZE);
const _: () = assert!(size_of::<Continuation>() <= 2);
const _: () = assert!(offset_of!(Tcb, offer) < LINE);
const _: () = assert!(offset_of!(Tcb, registers) == LINE);
const _: () = assert!(offset_of!(Tcb, registers) + offset_of!(Registers, gs_base) < 3 * LINE);
const _: () = assert!(offset_of!(Tcb, virtual_sender) < 5 * LINE);

impl Tcb {
    /// Offset of a word of 32 bits that entry code looks at as a whole: the priority in bits 0 to
    /// 7, in bits 8 to 15 whether the thread is [`mark::NAMED`], and where it is located.
    pub const WHERE: usize = {
        let word = offset_of!(Self, priority);
        assert!(word.is_multiple_of(4));
        assert!(offset_of!(Self, named) == word + 1 && mark::NAMED == 1 << 0);
        assert!(offset_of!(Self, location) == word + 2 && size_of::<Location>() == 2);
        word
    };

    /// The word at [`Self::WHERE`] of a named thread that is located on processor `number`, but for
    /// the priority.
    pub const fn named_at(number: u32) -> u32 {
        number << 16 | (mark::NAMED as u32) << 8
    }

    /// A TCB that is not in use.
    pub const fn new() -> Self {
        Self {
            id: Identity::new(),
            priority: PriorityCell::new(),
            named: AtomicU8::new(0),
            location: Location::new(0),
            continuation: Cell::new(Continuation::Inactive),
            flags: SharedByte::new(0),
            home: AtomicU16::new(0),
            partner: Cell::new(ThreadId::NIL),
            space: SharedRef::new(),
            local_id: SharedWord::new(0),
            utcb: SharedRef::new(),
            senders: SendQueue::new(),
            offer: Cell::new(Offer::NONE),
            registers: Registers::new(),
            entered_by_syscall: Cell::new(false),
            marks: AtomicU8::new(0),
            receive_timeout: Cell::new(0),
            ring: Cell::new(Ring::Priority),
            moves_to: Cell::new(NOWHERE),
            receive_from: Cell::new(ThreadId::NIL),
            receive_deadline: Cell::new(NEVER),
            virtual_sender: Cell::new(ThreadId::NIL),
            pending_interrupts: Cell::new(None),
            senders_node: SendNode::new(),
            ready: ReadyNode::new(),
            timeout: TimeoutNode::new(),
            timeslice: Cell::new(NEVER),
            timeslice_left: Cell::new(NEVER),
            account: Cell::new(Account::KERNEL),
            scheduler: Cell::new(ThreadId::NIL),
            maximum_delay: Cell::new(0),
            sensitive_priority: Cell::new(0),
            pending: Cell::new(0),
            fault: [const { Cell::new(0) }; 2],
            extended_state: Cell::new(None),
            transfer_record: Cell::new(None),
            owned_pager: Cell::new(ThreadId::NIL),
            owned_exception_handler: Cell::new(ThreadId::NIL),
            notification: AtomicU64::new(0),
            search: Cell::new(None),
            quantum_left: Cell::new(NEVER),
            quantum_over_at: Cell::new(0),
            preempted_at: Cell::new(0),
            send_deadline: Cell::new(NEVER),
            request: Node::new(),
            room: [0; ROOM],
        }
    }

    /// Brings the fields of a TCB that is free into the state of [`Tcb::new`], one by one: another
    /// processor may be reading the id. The thread lives and is `here`, on this processor, and will
    /// wait for its start from `pager` (nil: no start). It does not write the fields that have
    /// these values while the TCB is free, in zeroed memory and as
    /// [`lifecycle::remove`](super::lifecycle::remove) leaves them, nor those that
    /// [`lifecycle::install`](super::lifecycle::install) sets.
    #[inline(always)]
    pub fn reset(&self, pager: ThreadId, here: u16) {
        debug_assert!(self.id().is_nil() && self.offer.get() == Offer::NONE && !self.is_active());
        debug_assert!(self.space.get().is_none() && self.utcb.get().is_none() && self.local_id.get() == 0);
        debug_assert!(self.transfer_record.get().is_none() && self.extended_state.get().is_none());
        self.flags.set(0);
        self.location.assign(here);
        self.named.store(0, Ordering::Relaxed);
        self.marks.store(0, Ordering::Relaxed);
        self.moves_to.set(NOWHERE);
        self.partner.set(pager);
        self.pending_interrupts.set(None);
        self.registers.reset();
        self.entered_by_syscall.set(false);
        self.receive_timeout.set(Time::NEVER.raw());
        self.receive_from.set(pager);
        self.receive_deadline.set(NEVER);
        self.virtual_sender.set(ThreadId::NIL);
        self.timeout.reset();
        self.maximum_delay.set(0);
        self.pending.set(0);
        self.quantum_left.set(NEVER);
        self.quantum_over_at.set(0);
        self.preempted_at.set(0);
        self.send_deadline.set(NEVER);
        self.fault.iter().for_each(|word| word.set(0));
        self.owned_pager.set(pager);
        self.owned_exception_handler.set(ThreadId::NIL);
        self.notification.store(0, Ordering::Relaxed);
        self.search.set(None);
    }

    /// Lets a thread that has been made for its pager await its start message.
    #[inline(always)]
    pub(super) fn await_first_start(&self) {
        debug_assert!(self.offer.get() == Offer::NONE && self.receive_deadline.get() == NEVER);
        debug_assert!(self.partner() == self.receive_from.get() && self.partner() == self.owned_pager.get());
        self.continuation.set(Continuation::Receive(IpcKind::Start));
    }

    /// Whether the thread is inactive or awaits its start: then it is in no IPC whose end another
    /// thread could notice.
    #[inline(always)]
    pub fn has_not_started(&self) -> bool {
        let continuation = self.continuation.get();
        // Neither continuation has an offer for the fast path.
        continuation == Continuation::Receive(IpcKind::Start) || continuation == Continuation::Inactive
    }

    /// A thread that has not started becomes inactive. Returns whether it was active.
    #[inline(always)]
    pub(super) fn forget_start(&self) -> bool {
        debug_assert!(self.offer.get() == Offer::NONE);
        self.continuation.replace(Continuation::Inactive) != Continuation::Inactive
    }

    /// The thread's global id.
    #[inline]
    pub fn id(&self) -> ThreadId {
        // A reader on another processor uses the id as a hint that the processor where the thread
        // is checks again (K6).
        ThreadId::from_raw(self.id.get())
    }

    /// The global id with which a look-up finds the thread; nil: there is none, or its end has
    /// begun. Where the thread is located is asked afterwards.
    #[inline]
    pub fn found_id(&self) -> ThreadId {
        ThreadId::from_raw(self.id.find())
    }

    /// Changes the global id. Where the thread is located only.
    pub fn set_id(&self, id: ThreadId) {
        self.id.set(id.raw());
    }

    /// What the thread does next or waits for.
    #[inline]
    pub fn continuation(&self) -> Continuation {
        match self.offer.get().kind() {
            Some(kind) => Continuation::Receive(kind),
            None => self.continuation.get(),
        }
    }

    /// Whether the thread neither waits nor has anything to do in the kernel.
    #[inline]
    pub fn returns_to_user(&self) -> bool {
        self.offer.get() == Offer::NONE && self.continuation.get() == Continuation::ReturnToUser
    }

    /// Whether nothing keeps the thread from running at user level: it is in no IPC or other system
    /// call, and not halted.
    #[inline]
    pub fn runs_at_user_level(&self) -> bool {
        self.returns_to_user() && !self.has(flag::HALTED)
    }

    /// Sets what the thread does next or waits for.
    #[inline]
    pub fn set_continuation(&self, continuation: Continuation) {
        self.withdraw_offer();
        self.continuation.set(continuation);
    }

    /// `Send`: the destination; `Receive`: the source, as given but with local ids made global.
    #[inline]
    pub fn partner(&self) -> ThreadId {
        match self.offer.get() {
            Offer::NONE => self.partner.get(),
            offer => offer.partner(),
        }
    }

    /// Sets the thread that this one sends to or receives from.
    #[inline]
    pub fn set_partner(&self, partner: ThreadId) {
        self.withdraw_offer();
        self.partner.set(partner);
    }

    /// The sender whose message the thread takes on the fast path.
    #[inline]
    pub fn offer(&self) -> Offer {
        self.offer.get()
    }

    /// The thread waits as `offer` says, and others reach it on the fast path: it returns to an
    /// address that is canonical when it has the message, by SYSRET if it does not wait for a
    /// mapping or for registers.
    #[inline]
    pub fn make_offer(&self, offer: Offer) {
        debug_assert!(
            !self.ready.is_queued() && offer.returns_by_sysret() == Some(self.entered_by_syscall.get())
        );
        self.continuation.set(Continuation::ReturnToUser);
        self.offer.set(offer);
    }

    /// Something has changed in a waiting thread that the fast path relies on: it is reached by the
    /// general path.
    #[inline]
    pub fn withdraw_offer(&self) {
        if self.offer.get() != Offer::NONE {
            self.spell_out_offer();
        }
    }

    /// The thread, which waits as its offer of an Ipc says, has got its message: it returns to user
    /// level as it came.
    #[inline]
    pub fn end_offered_wait(&self) {
        debug_assert!(self.offer.get().kind() == Some(IpcKind::User) && self.entered_by_syscall.get());
        debug_assert!(self.continuation.get() == Continuation::ReturnToUser);
        self.offer.set(Offer::NONE);
    }

    #[inline(never)]
    fn spell_out_offer(&self) {
        let offer = self.offer.replace(Offer::NONE);
        let (Some(kind), Some(by_sysret)) = (offer.kind(), offer.returns_by_sysret()) else { return };
        self.continuation.set(Continuation::Receive(kind));
        self.partner.set(offer.partner());
        self.entered_by_syscall.set(by_sysret);
        if !offer.is_timed() {
            self.receive_deadline.set(NEVER);
        }
    }

    /// When the thread's wait ends by itself; `NEVER` if it does not, or it waits for nothing but
    /// the processor.
    pub fn waits_until(&self) -> Microseconds {
        let offer = self.offer.get();
        if offer != Offer::NONE {
            return if offer.is_timed() { self.receive_deadline.get() } else { NEVER };
        }
        match self.continuation.get() {
            _ if self.ready.is_queued() => NEVER,
            Continuation::Receive(_) => self.receive_deadline.get(),
            Continuation::Send(_) => self.timeout.deadline().unwrap_or(NEVER),
            _ => NEVER,
        }
    }

    /// Whether the thread's registers allow that it returns to user level by SYSRET.
    #[inline]
    pub fn returns_by_sysret(&self) -> bool {
        self.offer.get().returns_by_sysret().unwrap_or(self.entered_by_syscall.get())
    }

    /// All of the thread's registers, or its user address, count from now on: it returns to user
    /// level by IRETQ.
    pub fn return_with_all_registers(&self) {
        self.withdraw_offer();
        self.entered_by_syscall.set(false);
    }

    /// The current thread's RCX and R11 are its RIP and flags, as after a SYSCALL: it may return to
    /// user level by SYSRET.
    pub fn return_as_from_system_call(&self) {
        debug_assert!(self.offer.get() == Offer::NONE, "it runs");
        self.entered_by_syscall.set(true);
    }

    /// The IPC in whose receive phase the thread waits or is about to look for senders.
    #[inline]
    pub fn awaits_message(&self) -> Option<IpcKind> {
        match self.continuation() {
            Continuation::Receive(kind) => Some(kind),
            _ => None,
        }
    }

    /// Whether the thread could do something with the processor, were it given it.
    ///
    /// A halted thread carries its kernel activity on, but does not return to user level (X.2 rule
    /// 5.30). So it tells its owner that it was recalled (K15), which is how the owner gets hold of
    /// it.
    pub fn is_runnable(&self) -> bool {
        match self.continuation() {
            Continuation::ReturnToUser => {
                self.has(flag::RECALLED) || !self.has(flag::HALTED) && !self.is_pending(pending::STOPPED)
            }
            Continuation::RaiseException
            | Continuation::RaiseFault
            | Continuation::ResumeTransfer
            | Continuation::SystemCall
            | Continuation::Call(_)
            | Continuation::SendAgain(_) => true,
            _ => false,
        }
    }

    /// GS base as the kernel chooses it: where the thread's UTCB pointer lies (K5).
    pub fn own_gs_base(&self) -> u64 {
        own_gs_base(self.local_id.get())
    }

    /// Whether the thread's space has lost its owner: it does not run any more.
    pub fn is_orphaned(&self) -> bool {
        self.space.get().is_some_and(Space::is_orphaned)
    }

    /// Notes where the UTCB of a thread that is not active is to be, for its activation (X.2 rule
    /// 5.11): its space has no UTCB area yet that the place could be in.
    pub fn keep_location(&self, location: Option<u64>) {
        debug_assert!(!self.is_active());
        // All ones, which means no location to the caller, is the 0 of a new thread.
        self.fault[0].set(!location.unwrap_or(u64::MAX));
    }

    /// The UTCB location that was recorded.
    pub fn kept_location(&self) -> Option<u64> {
        Some(!self.fault[0].get()).filter(|&location| location != u64::MAX && !self.is_active())
    }

    /// Whether both threads live in the same address space.
    #[inline]
    pub fn shares_space_with(&self, other: &Tcb) -> bool {
        match (self.space.get(), other.space.get()) {
            (Some(a), Some(b)) => core::ptr::eq(a, b),
            _ => false,
        }
    }

    /// Whether the thread has been activated (has a UTCB).
    pub fn is_active(&self) -> bool {
        self.continuation() != Continuation::Inactive
    }
}

/// GS base for a thread with this UTCB pointer.
#[inline(always)]
pub(super) fn own_gs_base(pointer: u64) -> u64 {
    pointer - utcb::MR0_OFFSET + utcb::byte_offset(utcb::SELF_POINTER)
}

impl Default for Tcb {
    fn default() -> Self {
        Self::new()
    }
}

/// A TCB for tests of single structures.
#[cfg(test)]
pub(crate) fn test_thread() -> ThreadRef {
    std::boxed::Box::leak(std::boxed::Box::new(Tcb::new()))
}
