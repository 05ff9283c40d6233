//! Interrupts as threads: each line of the interrupt controllers is a thread number whose messages go to one handler
//! (X.2 rules 5.19 to 5.21).
//!
//! A line is masked from its interrupt until the handler acknowledges it, so each has at most one message under way.

use core::cell::Cell;
use core::ptr::eq;
use core::sync::atomic::{AtomicU32, Ordering};

use x2::kip::ThreadInfo;
use x2::{IpcErrorKind, ThreadId};

use crate::thread::{ThreadRef, flag, ipc};
use crate::trace::{self, Event};
use crate::{arch, kdb};

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

/// One interrupt line. Home processor of the handler only.
pub struct Interrupt {
    line: Cell<u32>,
    state: Cell<State>,
    handler: Cell<Option<ThreadRef>>,
    /// The next in the handler's list of pending interrupts, in order of lines.
    next: Cell<Option<&'static Interrupt>>,
}

struct Interrupts([Interrupt; MAX_LINES]);

// SAFETY: the cells of an interrupt are touched only by the home processor of its handler, with interrupts off; free
// ones only by the processor on which ThreadControl associates them.
unsafe impl Sync for Interrupts {}

static INTERRUPTS: Interrupts = Interrupts(
    [const {
        Interrupt {
            line: Cell::new(0),
            state: Cell::new(State::Free),
            handler: Cell::new(None),
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
        interrupt.handler.set(None);
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
    let (State::Open, Some(handler)) = (interrupt.state.get(), interrupt.handler.get()) else { return };
    trace::event(Event::Interrupt, u64::from(line), handler.id().raw());
    if !ipc::offer_interrupt(handler, interrupt) {
        interrupt.state.set(State::Pending);
        interrupt.insert_pending(handler);
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

/// Ends every association with `handler`, which is deleted or changes its id.
pub fn forget_handler(handler: ThreadRef) {
    if handler.has(flag::HANDLES_INTERRUPTS) {
        for interrupt in &INTERRUPTS.0[..system_base() as usize] {
            if interrupt.handler.get().is_some_and(|other| eq(other, handler)) {
                interrupt.disassociate();
            }
        }
        handler.set_flag(flag::HANDLES_INTERRUPTS, false);
    }
}

impl Interrupt {
    /// The id of the interrupt thread.
    pub fn id(&self) -> ThreadId {
        ThreadId::interrupt(self.line.get())
    }

    /// The thread to which the interrupt is delivered.
    pub fn handler(&self) -> Option<ThreadRef> {
        self.handler.get()
    }

    /// Makes `handler` the thread to which the interrupt is delivered and opens the line. A pending interrupt is lost.
    pub fn associate(&'static self, handler: ThreadRef) {
        self.disassociate();
        handler.set_flag(flag::HANDLES_INTERRUPTS, true);
        self.handler.set(Some(handler));
        self.state.set(State::Open);
        arch::unmask_interrupt(self.line.get());
    }

    /// Masks the line and forgets the handler.
    pub fn disassociate(&'static self) {
        if let Some(handler) = self.handler.take() {
            arch::mask_interrupt(self.line.get());
            if self.state.get() == State::Pending {
                self.remove_pending(handler);
            }
            self.state.set(State::Free);
        }
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
        self.state.set(State::Open);
        arch::unmask_interrupt(self.line.get());
        Ok(())
    }

    fn insert_pending(&'static self, handler: ThreadRef) {
        let mut link = &handler.pending_interrupts;
        while let Some(other) = link.get().filter(|other| other.line.get() < self.line.get()) {
            link = &other.next;
        }
        self.next.set(link.get());
        link.set(Some(self));
    }

    fn remove_pending(&'static self, handler: ThreadRef) {
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
