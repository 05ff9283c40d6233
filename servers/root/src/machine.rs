//! The operations that root has the kernel, sigma0 and devices do. The program uses the machine,
//! tests use a simulation of it.

use crate::requests::Answer;
use crate::step::{self, Step};
use core::fmt;
use core::ops::Range;
use l4::thread::{Result, ThreadControl};
use x2::extension::SpaceOption;
use x2::{Fpage, IpcError, ThreadId, Time};

/// How the machine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineEnd {
    /// The machine is switched off; an emulator ends with this status.
    PowerOff {
        /// At most 127.
        status: u8,
    },
    /// The machine is reset, so that it boots again.
    Reset,
}

/// The calls by which root carries out its decisions. Errors are those of the kernel. After an
/// error root's tables record the calls that have succeeded. No call waits for a server, except
/// [`start`](Machine::start), which has a timeout.
pub trait Machine {
    /// The thread of root's that makes the calls.
    fn caller(&self) -> ThreadId;

    /// The number of the processor on which the caller runs.
    fn processor(&self) -> u32;

    /// How many processors there are.
    fn processors(&self) -> u32;

    /// The time since the kernel's start, in microseconds.
    fn now(&self) -> u64;

    /// The thread numbers of the message-signalled interrupts.
    fn message_interrupts(&self) -> Range<u32>;

    /// Whether root has memory for one more step of any request. If it has not, root refuses
    /// requests: a server must not be able to stop root.
    fn has_headroom(&self) -> bool;

    /// Prints a line on the system's log.
    fn report(&mut self, line: fmt::Arguments<'_>);

    /// Makes, changes or deletes a thread (ThreadControl).
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn thread_control(&mut self, thread: ThreadId, arguments: ThreadControl) -> Result<()>;

    /// SpaceControl: gives a space without active threads its areas.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn set_areas(&mut self, space: ThreadId, kernel_interface: Fpage, utcbs: Fpage) -> Result<()>;

    /// Changes an option of a space (SpaceOptions). Returns the two result words of the call.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn space_options(&mut self, space: ThreadId, option: SpaceOption, values: [u64; 2]) -> Result<[u64; 2]>;

    /// Makes `handler` the exception handler of a thread that lives in an owned space.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn set_exception_handler(&mut self, thread: ThreadId, handler: ThreadId) -> Result<()>;

    /// Sets a thread's priority and, if `processor` is given, its processor.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn schedule(&mut self, thread: ThreadId, processor: Option<u64>, priority: u8) -> Result<()>;

    /// Sends a new thread the message by which it starts. Blocks at most for a timeout.
    ///
    /// # Errors
    /// The thread did not become ready to receive before the timeout.
    fn start(
        &mut self,
        thread: ThreadId,
        ip: u64,
        sp: u64,
        timeout: Time,
    ) -> core::result::Result<(), IpcError>;

    /// Sends an answer to `to` in the name of `asked`, the thread of root's that received the
    /// request. A receiver that no longer waits gets no answer.
    fn reply(&mut self, to: ThreadId, asked: ThreadId, answer: Answer);

    /// Does a step of a work item.
    ///
    /// # Errors
    /// The kernel's reason. Only steps that map memory can fail.
    fn perform(&mut self, step: &Step) -> step::Result;

    /// Writes `bytes` at the start of the physical range `memory`, which no server has, and zeros
    /// into the rest of it.
    fn write_memory(&mut self, memory: Range<u64>, bytes: &[u8]);

    /// Has sigma0 give root the pages of this physical memory. Returns whether root has them.
    fn request_memory(&mut self, start: u64, size: u64) -> bool;

    /// Has sigma0 give root these I/O ports. Returns whether root has them.
    fn request_ports(&mut self, ports: Fpage) -> bool;

    /// Reads a register of the configuration space of the PCI function at `place`: bus, device and
    /// function in bits 16..24, 11..16 and 8..11.
    fn read_configuration(&self, place: u32, register: u8) -> u32;

    /// Writes a register of the configuration space of the PCI function at `place`, which is
    /// encoded as for [`read_configuration`](Machine::read_configuration).
    fn write_configuration(&mut self, place: u32, register: u8, value: u32);

    /// Writes a device register at a physical address that root has got by
    /// [`request_memory`](Self::request_memory).
    fn write_register(&mut self, address: u64, value: u32);

    /// Reads a device register at a physical address that root has got by
    /// [`request_memory`](Self::request_memory).
    fn read_register(&self, address: u64) -> u32;

    /// Reads a word of physical memory that root has and no server. An IOMMU may write there.
    fn read_word(&self, address: u64) -> u64;

    /// Writes a word of physical memory that root has and no server, where an IOMMU reads it.
    fn write_word(&mut self, address: u64, value: u64);

    /// Writes what the processors' caches hold of this physical memory, which root has, back to
    /// memory.
    fn write_back(&mut self, address: u64, size: u64);

    /// Makes the kernel show nothing on the screen any more, unless it panics.
    fn leave_screen(&mut self);

    /// Powers off or resets the machine. Returns if the machine does not do it.
    fn end(&mut self, how: MachineEnd);

    /// Deletes a thread; one that does not exist is no error. The kernel also ends what depends on
    /// the thread: its interrupts and, if it is the last of its space, the space.
    ///
    /// # Errors
    /// The kernel's reason; deleting a thread gives none today.
    fn delete_thread(&mut self, thread: ThreadId) -> Result<()> {
        let nil = ThreadId::NIL;
        self.thread_control(thread, ThreadControl { space: nil, scheduler: nil, pager: nil, utcb: None })
    }

    /// Makes `handler` the receiver of an interrupt. If `handler` is the id of the interrupt
    /// itself, the interrupt has no receiver and is masked.
    ///
    /// # Errors
    /// There is no such interrupt, or no memory.
    fn set_interrupt_handler(&mut self, interrupt: ThreadId, handler: ThreadId) -> Result<()> {
        let arguments =
            ThreadControl { space: interrupt, scheduler: ThreadId::NIL, pager: handler, utcb: None };
        self.thread_control(interrupt, arguments)
    }
}
