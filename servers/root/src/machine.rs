//! What root has done by the kernel, by sigma0 and by devices. The program does it on the machine,
//! tests on a simulated one.

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
    /// It is switched off; an emulator ends with this status.
    PowerOff {
        /// At most 127.
        status: u8,
    },
    /// It is started again.
    Reset,
}

/// The calls by which root's decisions become true. An error is the kernel's; root's tables change
/// only as far as the calls went. Nothing here waits for a server, but [`start`](Machine::start)
/// with such a timeout.
pub trait Machine {
    /// The thread of root's that calls.
    fn caller(&self) -> ThreadId;

    /// The number of the processor on which the caller runs.
    fn processor(&self) -> u32;

    /// How many processors there are.
    fn processors(&self) -> u32;

    /// The thread numbers of message-signalled interrupts.
    fn message_interrupts(&self) -> Range<u32>;

    /// Whether root has memory for one more step of any request. When it has not, it refuses
    /// requests: a server must not be able to stop root.
    fn has_headroom(&self) -> bool;

    /// Prints a line on the log.
    fn report(&mut self, line: fmt::Arguments<'_>);

    /// ThreadControl.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn thread_control(&mut self, thread: ThreadId, arguments: ThreadControl) -> Result<()>;

    /// SpaceControl: gives a space without active threads its areas.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn set_areas(&mut self, space: ThreadId, kernel_interface: Fpage, utcbs: Fpage) -> Result<()>;

    /// SpaceOptions. Returns the two answers.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn space_options(&mut self, space: ThreadId, option: SpaceOption, values: [u64; 2]) -> Result<[u64; 2]>;

    /// Makes `handler` the exception handler of an owned thread.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn set_exception_handler(&mut self, thread: ThreadId, handler: ThreadId) -> Result<()>;

    /// Sets a thread's priority and, if it is given, the processor.
    ///
    /// # Errors
    /// The kernel's reason; then nothing has changed.
    fn schedule(&mut self, thread: ThreadId, processor: Option<u64>, priority: u8) -> Result<()>;

    /// Sends a new thread the message by which it starts.
    ///
    /// # Errors
    /// The thread does not wait for it, for so long.
    fn start(
        &mut self,
        thread: ThreadId,
        ip: u64,
        sp: u64,
        timeout: Time,
    ) -> core::result::Result<(), IpcError>;

    /// Answers a thread in the name of `asked`, a thread of root's. A receiver that no longer waits
    /// gets no answer.
    fn reply(&mut self, to: ThreadId, asked: ThreadId, answer: Answer);

    /// Does a step of a work item.
    ///
    /// # Errors
    /// The kernel's reason. Only mapping can fail.
    fn perform(&mut self, step: &Step) -> step::Result;

    /// Writes `bytes` to physical memory from `start` on, which no server has, and zeros up to
    /// `end`.
    fn write_memory(&mut self, memory: Range<u64>, bytes: &[u8]);

    /// Has sigma0 give root the pages of this physical memory. Returns whether it has them now.
    fn request_memory(&mut self, start: u64, size: u64) -> bool;

    /// Has sigma0 give root I/O ports. Returns whether it has them now.
    fn request_ports(&mut self, ports: Fpage) -> bool;

    /// Reads a register of the configuration space of the PCI function at `place`: bus, device and
    /// function in bits 16..24, 11..16 and 8..11.
    fn read_configuration(&self, place: u32, register: u8) -> u32;

    /// Writes such a register.
    fn write_configuration(&mut self, place: u32, register: u8, value: u32);

    /// Writes a register of a device, in memory that root [has](Self::request_memory).
    fn write_register(&mut self, address: u64, value: u32);

    /// Ends the system. Returns if the machine does not do it.
    fn end(&mut self, how: MachineEnd);

    /// Deletes a thread; one that does not exist is no error. The kernel ends what depends on it:
    /// its interrupts and, if it is the last, its space.
    ///
    /// # Errors
    /// None that the kernel has.
    fn delete_thread(&mut self, thread: ThreadId) -> Result<()> {
        let nil = ThreadId::NIL;
        self.thread_control(thread, ThreadControl { space: nil, scheduler: nil, pager: nil, utcb: None })
    }

    /// Makes `handler` the receiver of an interrupt; of the interrupt itself: of nothing, and it is
    /// masked.
    ///
    /// # Errors
    /// There is no such interrupt, or no memory.
    fn set_interrupt_handler(&mut self, interrupt: ThreadId, handler: ThreadId) -> Result<()> {
        let arguments =
            ThreadControl { space: interrupt, scheduler: ThreadId::NIL, pager: handler, utcb: None };
        self.thread_control(interrupt, arguments)
    }
}
