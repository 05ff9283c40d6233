//! Interrupts as threads: each line of the interrupt controllers, and each message-signalled
//! interrupt, is a thread number whose messages go to one handler (X.2 rules 5.19 to 5.21). The
//! lines' numbers come first.
//!
//! A line is masked from its interrupt until the handler acknowledges it, so each has at most one
//! message under way. A device that interrupts by messages cannot be masked: what comes before the
//! acknowledgement is remembered, as one more, and delivered after it. An interrupt without a
//! handler is lost.
//!
//! Each interrupt has a *source*, the processor that it interrupts. For a message-signalled
//! interrupt, number n, it is processor n modulo the number of processors. For a line it is the
//! first processor; whenever a handler opens the line, the source becomes the handler's home, so
//! that a line follows its handler. An interrupt is located at its source until it occurs. Then it
//! goes to its handler's home, like a thread (`lib/handover`), waits there until it is received,
//! and comes back when it is acknowledged.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::eq;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use handover::{Again, Location, Node};
use x2::extension::MessageSource;
use x2::kip::ThreadInfo;
use x2::{IpcErrorKind, ThreadId};

use crate::sync::SharedRef;
use crate::sync::delay::{self, Point};
use crate::thread::{Found, Tcb, ThreadRef, ipc, mark};
use crate::trace::{self, Event};
use crate::{arch, kdb, processor};

/// The processor to which lines interrupt before they have a handler.
const FIRST_PROCESSOR: u16 = 0;

/// The most interrupts that the kernel can serve.
pub const MAX_INTERRUPTS: usize = 256;

/// How many lines there are: the thread number of the first message-signalled interrupt. Fixed at
/// boot, as the next.
static LINES: AtomicU32 = AtomicU32::new(0);
/// How many interrupts there are: the first thread number that is not an interrupt's.
static COUNT: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The interrupt has no handler; a line is masked.
    Free,
    /// The interrupt has a handler and is not masked: the next one is delivered.
    Open,
    /// A line is masked; the message waits for the handler to receive.
    Pending,
    /// A line is masked; the message was delivered and not acknowledged yet.
    Delivered,
}

/// One interrupt. Only the processor where it is located touches it, except for fields that say
/// otherwise.
pub struct Interrupt {
    number: Cell<u32>,
    /// The processor that is interrupted. Any processor may read it.
    source: AtomicU16,
    state: Cell<State>,
    location: Location,
    request: Node,
    /// The message of the device has come again, which the source notes.
    again: Again,
    /// The thread that handles the interrupt. Any processor may read it; it is changed under the
    /// lock of ThreadControl.
    handler: SharedRef<Tcb>,
    /// The handler in whose list of pending interrupts it is.
    waits_for: Cell<Option<ThreadRef>>,
    /// The next in the handler's list of pending interrupts, in order of numbers.
    next: Cell<Option<&'static Interrupt>>,
}

struct Interrupts([Interrupt; MAX_INTERRUPTS]);

// SAFETY: the cells of an interrupt are touched only by the processor where it is located, with
// interrupts off; the number is set at boot.
unsafe impl Sync for Interrupts {}

static INTERRUPTS: Interrupts = Interrupts(
    [const {
        Interrupt {
            number: Cell::new(0),
            source: AtomicU16::new(FIRST_PROCESSOR),
            state: Cell::new(State::Free),
            location: Location::new(FIRST_PROCESSOR),
            request: Node::new(),
            again: Again::new(),
            handler: SharedRef::new(),
            waits_for: Cell::new(None),
            next: Cell::new(None),
        }
    }; MAX_INTERRUPTS],
);

/// Sets the numbers of lines and of message-signalled interrupts. Called once, at boot, before the
/// first thread exists, when the number of processors is known.
pub fn init(lines: u32, messages: u32) {
    let lines = lines.min(MAX_INTERRUPTS as u32);
    LINES.store(lines, Ordering::Relaxed);
    COUNT.store((lines + messages).min(MAX_INTERRUPTS as u32), Ordering::Relaxed);
    for (interrupt, number) in INTERRUPTS.0.iter().zip(0u32..) {
        let source = number.checked_sub(lines).map_or(0, |message| message % arch::cpu_count());
        interrupt.number.set(number);
        interrupt.source.store(source as u16, Ordering::Relaxed);
        interrupt.state.set(State::Free);
        interrupt.location.assign(source as u16);
        interrupt.again.take();
        interrupt.handler.set(None);
        interrupt.waits_for.set(None);
        interrupt.next.set(None);
    }
}

/// SystemBase: thread numbers below are interrupts.
pub fn system_base() -> u32 {
    COUNT.load(Ordering::Relaxed)
}

/// How many message-signalled interrupts there are: they have the last numbers below SystemBase.
pub fn messages() -> u32 {
    system_base() - LINES.load(Ordering::Relaxed)
}

fn interrupts() -> &'static [Interrupt] {
    &INTERRUPTS.0[..system_base() as usize]
}

/// UserBase: thread numbers from here on are users' threads.
pub fn user_base() -> u32 {
    system_base() + ThreadInfo::KERNEL_NUMBERS
}

/// The interrupt that `id` names, associated or not. The kernel's own (`kdb=break`) has no name.
pub fn find(id: ThreadId) -> Option<&'static Interrupt> {
    interrupts()
        .get(id.number() as usize)
        .filter(|interrupt| interrupt.id() == id && !kdb::takes_interrupt(interrupt.number.get()))
}

/// The message-signalled interrupt with this thread number.
pub fn find_message(number: u64) -> Option<&'static Interrupt> {
    let interrupt = interrupts().get(usize::try_from(number).ok()?)?;
    interrupt.message().is_some().then_some(interrupt)
}

/// A line has raised an interrupt, which the controller driver has masked and acknowledged.
pub fn occurred(line: u32) {
    if kdb::takes_interrupt(line) {
        return kdb::console_interrupt();
    }
    let Some(interrupt) = find(ThreadId::interrupt(line)) else { return };
    if interrupt.is_open() {
        return interrupt.occur();
    }
    // A message that the controller sent before the line moved away may come after the line was
    // opened elsewhere, and has masked it. Then the interrupt counts there. The mask came before
    // the line was opened, or the new source is seen: the controller's lock orders the two.
    let source = interrupt.source();
    if u32::from(source) != arch::cpu_number() {
        arch::raise_line(line, source.into());
    }
}

/// A device has interrupted this processor by the message of this number.
pub fn message_arrived(message: u32) {
    let Some(interrupt) = interrupts().get((LINES.load(Ordering::Relaxed) + message) as usize) else {
        return;
    };
    if interrupt.is_open() {
        interrupt.occur();
    } else if !interrupt.is_here() || interrupt.state.get() != State::Free {
        delay::at(Point::Again);
        interrupt.again.note();
        // The interrupt's handler may just have acknowledged it, on another processor.
        if interrupt.is_open() && interrupt.again.take() {
            interrupt.occur();
        }
    }
}

/// The interrupt that lies in a request queue with this node.
///
/// # Safety
/// The node is the `request` of an interrupt.
pub unsafe fn of_request(node: &'static Node) -> &'static Interrupt {
    // SAFETY: the caller promises that the node is an interrupt's; interrupts are statics.
    unsafe { &*core::ptr::from_ref(node).byte_sub(offset_of!(Interrupt, request)).cast::<Interrupt>() }
}

/// `handler` is about to live at `processor`, and the interrupts that wait for it go there. At its
/// home so far.
pub fn move_pending(handler: ThreadRef, processor: u16) {
    while let Some(interrupt) = handler.pending_interrupts.get() {
        interrupt.remove_pending(handler);
        interrupt.post(processor);
    }
}

/// Drops the interrupts that wait for `handler`, which is deleted or has another id now. Called at
/// its home processor.
pub fn drop_pending(handler: ThreadRef) {
    while let Some(interrupt) = handler.pending_interrupts.get() {
        interrupt.remove_pending(handler);
        interrupt.become_free();
    }
}

/// The interrupt among those pending for `handler` that its present receive phase takes, removed
/// from the list.
pub fn take_pending(handler: ThreadRef) -> Option<&'static Interrupt> {
    let interrupt = pending_for(handler)?;
    interrupt.remove_pending(handler);
    Some(interrupt)
}

/// Whether [`take_pending`] would find an interrupt.
pub fn is_pending_for(handler: ThreadRef) -> bool {
    pending_for(handler).is_some()
}

fn pending_for(handler: ThreadRef) -> Option<&'static Interrupt> {
    let from = handler.partner();
    pending(handler).find(|interrupt| from.is_any() || from == interrupt.id())
}

fn pending(handler: ThreadRef) -> impl Iterator<Item = &'static Interrupt> {
    core::iter::successors(handler.pending_interrupts.get(), |interrupt| interrupt.next.get())
}

/// Ends every association with `handler`, which is deleted or changes its id, wherever the
/// interrupts are. Their messages end when they arrive, or with [`drop_pending`].
#[inline]
pub fn forget_handler(handler: ThreadRef) {
    if handler.is_marked(mark::HANDLES_INTERRUPTS) {
        end_associations(handler);
    }
}

#[cold]
fn end_associations(handler: ThreadRef) {
    for interrupt in interrupts() {
        if interrupt.handler.get().is_some_and(|other| eq(other, handler)) {
            interrupt.handler.set(None);
            interrupt.mask();
        }
    }
}

impl Interrupt {
    /// The id of the interrupt thread.
    pub fn id(&self) -> ThreadId {
        ThreadId::interrupt(self.number.get())
    }

    /// The number of the message that raises it; `None` for a line.
    fn message(&self) -> Option<u32> {
        self.number.get().checked_sub(LINES.load(Ordering::Relaxed))
    }

    /// The address and the data of the message by which `source` raises the interrupt, which is
    /// message-signalled. From now on no other source can, if a unit remaps messages. The callers
    /// take turns, under the lock of SpaceOptions.
    pub fn tell_message(&self, source: MessageSource) -> [u64; 2] {
        let number = self.message().expect("the interrupt is message-signalled");
        arch::interrupt_message(number, self.source().into(), source)
    }

    fn source(&self) -> u16 {
        self.source.load(Ordering::Relaxed)
    }

    fn mask(&self) {
        if self.message().is_none() {
            arch::mask_interrupt(self.number.get());
        }
    }

    /// Whether the interrupt, of which the executing processor is the source, is here and open.
    fn is_open(&self) -> bool {
        self.location.has_come_to(arch::cpu_number() as u16) && self.state.get() == State::Open
    }

    /// The interrupt, which is open, has occurred here.
    fn occur(&'static self) {
        let handler = self.handler.get().map_or(ThreadId::NIL, |handler| handler.id());
        trace::event(Event::Interrupt, u64::from(self.number.get()), handler.raw());
        self.arrive();
    }

    /// Whether the interrupt is located at the executing processor.
    pub fn is_here(&self) -> bool {
        self.location.is_at(arch::cpu_number() as u16)
    }

    /// The processor at which the interrupt is located.
    pub fn processor(&self) -> u16 {
        self.location.processor()
    }

    fn post(&'static self, processor: u16) {
        self.location.hand_over(processor);
        processor::post(processor, |public| &public.interrupts, &[&self.request]);
    }

    /// The interrupt has occurred here, or has come to this processor since. It goes to its
    /// handler, here or on another processor.
    pub fn arrive(&'static self) {
        self.location.arrive(arch::cpu_number() as u16);
        let Some(handler) = self.handler.get() else { return self.become_free() };
        if !handler.is_home() {
            return self.post(handler.home());
        }
        if !handler.is_here() || !ipc::offer_interrupt(handler, self) {
            self.state.set(State::Pending);
            self.insert_pending(handler);
        }
    }

    /// The interrupt has no handler any more: it goes back to its source.
    fn become_free(&self) {
        self.again.take();
        self.state.set(State::Free);
        self.location.assign(self.source());
    }

    /// The thread to which the interrupt is delivered.
    pub fn handler(&self) -> Option<Found> {
        self.handler.get().map(Found::new)
    }

    /// Makes `handler` the thread to which the interrupt, which is here, is delivered, and opens
    /// it. A pending interrupt is lost.
    pub fn associate(&'static self, handler: Found) {
        self.detach();
        handler.mark(mark::HANDLES_INTERRUPTS);
        // An answer to the interrupt goes to the interrupt's home processor. The reference is all
        // that is kept: what is done with the handler is done where it is.
        self.handler.set(Some(handler.anywhere()));
        self.open();
    }

    /// Masks an interrupt that is here and forgets the handler.
    pub fn disassociate(&'static self) {
        self.detach();
        self.become_free();
    }

    fn detach(&'static self) {
        if self.handler.take().is_some() {
            self.mask();
        }
        self.waits_for.get().inspect(|handler| self.remove_pending(handler));
        self.again.take();
    }

    /// Lets the interrupt occur again. It is back at its source, and the caller does not touch it
    /// any more. If it has occurred meanwhile, it goes to its handler immediately.
    fn open(&'static self) {
        if self.again.take() {
            return self.arrive();
        }
        if self.message().is_none()
            && let Some(handler) = self.handler.get()
        {
            self.follow(handler.home());
        }
        self.state.set(State::Open);
        delay::at(Point::Again);
        let source = self.source();
        self.location.assign(source);
        match self.message() {
            None => arch::unmask_interrupt(self.number.get()),
            Some(message) if self.again.take_after_return() => {
                arch::raise_message(message, source.into());
            }
            Some(_) => {}
        }
    }

    /// The line, which is masked, interrupts `processor` from now on.
    fn follow(&self, processor: u16) {
        if self.source() != processor {
            self.source.store(processor, Ordering::Relaxed);
            arch::direct_interrupt(self.number.get(), processor.into());
        }
    }

    /// The handler has received the message.
    pub fn delivered(&self) {
        self.state.set(State::Delivered);
    }

    /// `thread` sends a message to the interrupt: it is opened again if it is the handler's answer.
    pub fn acknowledge(&'static self, thread: ThreadRef) -> Result<(), IpcErrorKind> {
        if !self.handler.get().is_some_and(|handler| eq(handler, thread)) {
            return Err(IpcErrorKind::NonExistingPartner);
        }
        if self.state.get() != State::Delivered {
            return Err(IpcErrorKind::Timeout);
        }
        trace::event(Event::Acknowledge, u64::from(self.number.get()), 0);
        self.open();
        Ok(())
    }

    fn insert_pending(&'static self, handler: ThreadRef) {
        self.waits_for.set(Some(handler));
        let mut link = &handler.pending_interrupts;
        while let Some(other) = link.get().filter(|other| other.number.get() < self.number.get()) {
            link = &other.next;
        }
        self.next.set(link.get());
        link.set(Some(self));
    }

    fn remove_pending(&'static self, handler: ThreadRef) {
        self.waits_for.set(None);
        let mut link = &handler.pending_interrupts;
        while let Some(other) = link.get() {
            if eq(other, self) {
                link.set(self.next.take());
                return;
            }
            link = &other.next;
        }
    }
}
