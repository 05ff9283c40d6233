//! Interrupts as threads: each line of the interrupt controllers is a thread number whose messages go to one handler
//! (X.2 rules 5.19 to 5.21).
//!
//! A line is masked from its interrupt until the handler acknowledges it, so each has at most one message under way.
//!
//! All lines interrupt the first processor, and an interrupt is located there until it occurs. Then it goes to its
//! handler's home, like a thread (`lib/handover`), waits there until it is received, and comes back when it is acknowledged.

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::eq;
use core::sync::atomic::{AtomicU32, Ordering};

use handover::{Location, Node};
use x2::kip::ThreadInfo;
use x2::{IpcErrorKind, ThreadId};

use crate::sync::SharedRef;
use crate::thread::{Tcb, ThreadRef, ipc, mark};
use crate::trace::{self, Event};
use crate::{arch, kdb, processor};

/// Where all lines interrupt.
const FIRST_PROCESSOR: u16 = 0;

/// The most lines that the kernel can serve.
pub const MAX_LINES: usize = 256;

/// How many lines there are: the first thread number that is not an interrupt's. Fixed at boot.
static LINES: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No handler; masked.
    Free,
    /// Open: the next interrupt is delivered.
    Open,
    /// Masked; its message waits for the handler to receive.
    Pending,
    /// Masked; its message was delivered and not acknowledged yet.
    Delivered,
}

/// One interrupt line. Touched where it is located only.
pub struct Interrupt {
    line: Cell<u32>,
    state: Cell<State>,
    location: Location,
    mail: Node,
    /// Any processor may read it; changed under the lock of ThreadControl.
    handler: SharedRef<Tcb>,
    /// In whose list of pending interrupts it is.
    waits_for: Cell<Option<ThreadRef>>,
    /// The next in the handler's list of pending interrupts, in order of lines.
    next: Cell<Option<&'static Interrupt>>,
}

struct Interrupts([Interrupt; MAX_LINES]);

// SAFETY: the cells of an interrupt are touched only by the processor where it is located, with interrupts off; the line's
// number is set at boot.
unsafe impl Sync for Interrupts {}

static INTERRUPTS: Interrupts = Interrupts(
    [const {
        Interrupt {
            line: Cell::new(0),
            state: Cell::new(State::Free),
            location: Location::new(FIRST_PROCESSOR),
            mail: Node::new(),
            handler: SharedRef::new(),
            waits_for: Cell::new(None),
            next: Cell::new(None),
        }
    }; MAX_LINES],
);

/// Sets the number of lines. Called once, at boot, before the first thread exists.
pub fn init(lines: u32) {
    let lines = lines.min(MAX_LINES as u32);
    LINES.store(lines, Ordering::Relaxed);
    for (number, interrupt) in INTERRUPTS.0.iter().enumerate() {
        interrupt.line.set(number as u32);
        interrupt.state.set(State::Free);
        interrupt.location.assign(FIRST_PROCESSOR);
        interrupt.handler.set(None);
        interrupt.waits_for.set(None);
        interrupt.next.set(None);
    }
}

/// SystemBase: thread numbers below are interrupts.
pub fn system_base() -> u32 {
    LINES.load(Ordering::Relaxed)
}

/// UserBase: thread numbers from here on are users' threads.
pub fn user_base() -> u32 {
    system_base() + ThreadInfo::KERNEL_NUMBERS
}

/// The interrupt that `id` names, associated or not. The kernel's own (`kdb=break`) has no name.
pub fn find(id: ThreadId) -> Option<&'static Interrupt> {
    INTERRUPTS.0[..system_base() as usize]
        .get(id.number() as usize)
        .filter(|interrupt| interrupt.id() == id && !kdb::takes_interrupt(interrupt.line.get()))
}

/// A line has raised an interrupt, which the controller driver has masked and acknowledged.
pub fn occurred(line: u32) {
    if kdb::takes_interrupt(line) {
        return kdb::console_interrupt();
    }
    let Some(interrupt) = find(ThreadId::interrupt(line)) else { return };
    if !interrupt.is_here() || interrupt.state.get() != State::Open {
        return;
    }
    let handler = interrupt.handler.get().map_or(ThreadId::NIL, |handler| handler.id());
    trace::event(Event::Interrupt, u64::from(line), handler.raw());
    interrupt.arrive();
}

/// The interrupt that lies in a mailbox with this node.
///
/// # Safety
/// The node is the `mail` of an interrupt.
pub unsafe fn of_mail(node: &'static Node) -> &'static Interrupt {
    // SAFETY: the caller's promise; interrupts are statics.
    unsafe { &*core::ptr::from_ref(node).byte_sub(offset_of!(Interrupt, mail)).cast::<Interrupt>() }
}

/// `handler` is about to live at `processor`, and the interrupts that wait for it go there. At its home so far.
pub fn move_pending(handler: ThreadRef, processor: u16) {
    while let Some(interrupt) = handler.pending_interrupts.get() {
        interrupt.remove_pending(handler);
        interrupt.post(processor);
    }
}

/// What still waited for `handler`, which has gone or has another id now, is lost. At its home.
pub fn drop_pending(handler: ThreadRef) {
    while let Some(interrupt) = handler.pending_interrupts.get() {
        interrupt.remove_pending(handler);
        interrupt.become_free();
    }
}

/// The interrupt among those pending for `handler` that its present receive phase takes, removed from the list.
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

/// Ends every association with `handler`, which is deleted or changes its id, wherever the interrupts are. Their messages
/// end when they arrive, or with [`drop_pending`].
pub fn forget_handler(handler: ThreadRef) {
    if handler.is_marked(mark::HANDLES_INTERRUPTS) {
        for interrupt in &INTERRUPTS.0[..system_base() as usize] {
            if interrupt.handler.get().is_some_and(|other| eq(other, handler)) {
                interrupt.handler.set(None);
                arch::mask_interrupt(interrupt.line.get());
            }
        }
    }
}

impl Interrupt {
    /// The id of the interrupt thread.
    pub fn id(&self) -> ThreadId {
        ThreadId::interrupt(self.line.get())
    }

    /// Whether the interrupt is located here.
    pub fn is_here(&self) -> bool {
        self.location.is_at(arch::cpu_number() as u16)
    }

    /// Where the interrupt is.
    pub fn processor(&self) -> u16 {
        self.location.processor()
    }

    fn post(&'static self, processor: u16) {
        self.location.leave(processor);
        processor::post(processor, |public| &public.interrupts, &[&self.mail]);
    }

    /// The line has interrupted, or its interrupt has come to this processor: it is its handler's, here or elsewhere.
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

    /// Nobody handles the interrupt: it is masked, and is where lines interrupt.
    fn become_free(&self) {
        self.state.set(State::Free);
        self.location.assign(FIRST_PROCESSOR);
    }

    /// The thread to which the interrupt is delivered.
    pub fn handler(&self) -> Option<ThreadRef> {
        self.handler.get()
    }

    /// Makes `handler` the thread to which the interrupt, which is here, is delivered, and opens the line. A pending interrupt
    /// is lost.
    pub fn associate(&'static self, handler: ThreadRef) {
        self.disassociate();
        handler.mark(mark::HANDLES_INTERRUPTS);
        self.handler.set(Some(handler));
        self.open();
    }

    /// Masks the line of an interrupt that is here and forgets the handler.
    pub fn disassociate(&'static self) {
        if self.handler.take().is_some() {
            arch::mask_interrupt(self.line.get());
        }
        self.waits_for.get().inspect(|handler| self.remove_pending(handler));
        self.become_free();
    }

    /// From now on the line can interrupt, and the interrupt is the first processor's.
    fn open(&self) {
        self.state.set(State::Open);
        self.location.assign(FIRST_PROCESSOR);
        arch::unmask_interrupt(self.line.get());
    }

    /// The handler has received the message.
    pub fn delivered(&self) {
        self.state.set(State::Delivered);
    }

    /// `thread` sends a message to the interrupt: the line is opened again if it is the handler's answer.
    pub fn acknowledge(&self, thread: ThreadRef) -> Result<(), IpcErrorKind> {
        if !self.handler.get().is_some_and(|handler| eq(handler, thread)) {
            return Err(IpcErrorKind::NonExistingPartner);
        }
        if self.state.get() != State::Delivered {
            return Err(IpcErrorKind::Timeout);
        }
        trace::event(Event::Acknowledge, u64::from(self.line.get()), 0);
        self.open();
        Ok(())
    }

    fn insert_pending(&'static self, handler: ThreadRef) {
        self.waits_for.set(Some(handler));
        let mut link = &handler.pending_interrupts;
        while let Some(other) = link.get().filter(|other| other.line.get() < self.line.get()) {
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
