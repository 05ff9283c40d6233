//! Unix as a personality of Mach: the data that it attaches to tasks and threads, and its handling
//! of their exceptions.

use crate::memory::Memory;
use crate::process::{Control, ExitStatus};
use crate::signal::{Fault, Signal};
use crate::thread::{Resources, Shortage};
use alloc::sync::Arc;
use core::time::Duration;
use mach::machine::{ExceptionCause, ExecutionContext, Machine, Times};
use mach::thread::{Exception, ExceptionState, Handled};
use mach::{KernError, Personality};

/// The Unix personality. An address space of its processes is a Mach task, which the child of a
/// vfork shares until it executes a program; threads of processes are Mach threads.
pub struct Unix;

/// A Mach task with a program's memory.
pub type Task<M> = mach::Task<M, Unix>;
/// A Mach thread with the data of its Unix thread.
pub type Thread<M> = mach::Thread<M, Unix>;

impl<M: Machine> Personality<M> for Unix {
    type Task = Memory<M>;
    type Thread = Resources<M>;

    /// Every exception is handled: memory grows, or a signal is raised, which is delivered before
    /// the program's next instruction.
    async fn raise(thread: &Arc<Thread<M>>, exception: &Exception) -> Handled {
        match exception.state.cause() {
            ExceptionCause::PageFault => thread.memory_exception(exception).await,
            ExceptionCause::NoExtendedState => thread.out_of_memory(),
            ExceptionCause::Step => {
                let address = thread.registers().map_or(0, |registers| registers.rip);
                thread.force(thread.debug_exception(), ExceptionState { address, ..exception.state });
            }
            cause => match fault_of(cause) {
                Some(fault) => thread.force(fault, exception.state),
                None => thread.lost(),
            },
        }
        Handled::Resume
    }
}

/// The fault that a signal reports for a processor exception.
fn fault_of(cause: ExceptionCause) -> Option<Fault> {
    Some(match cause {
        ExceptionCause::Divide => Fault::IntegerDivide,
        ExceptionCause::Breakpoint => Fault::Breakpoint,
        ExceptionCause::Overflow => Fault::IntegerOverflow,
        ExceptionCause::UndefinedInstruction => Fault::IllegalInstruction,
        ExceptionCause::Bound | ExceptionCause::Protection => Fault::NotCanonical,
        ExceptionCause::Segment | ExceptionCause::Stack | ExceptionCause::Alignment => Fault::Alignment,
        ExceptionCause::FloatingPoint => Fault::FloatInvalid,
        ExceptionCause::NoExtendedState
        | ExceptionCause::PageFault
        | ExceptionCause::Step
        | ExceptionCause::Other => return None,
    })
}

impl<M: Machine> Resources<M> {
    /// Counts a page fault before it is served. False if there is no memory to serve it; the
    /// thread's process then ends.
    pub fn begin_fault(&self) -> bool {
        let (system, tid) = (self.system(), self.tid());
        system.processes().with(|table| table.account_fault(tid));
        let served = system.host().shortage() != Shortage::Critical;
        if !served {
            self.out_of_memory();
        }
        served
    }

    /// Handles a page fault that mapped memory does not resolve: a stack grows, or a signal is
    /// raised.
    async fn memory_exception(&self, exception: &Exception) {
        let state = exception.state;
        let mut error = KernError::from_code(exception.code);
        if error == Some(KernError::InvalidAddress) {
            error = self.memory().extend_stack(state.address, state.access()).await.err();
        }
        match error {
            None => {}
            Some(KernError::ResourceShortage) => self.out_of_memory(),
            Some(KernError::ProtectionFailure) => self.force(Fault::NotPermitted, state),
            Some(KernError::MemoryFailure | KernError::MemoryError) => self.force(Fault::NoObject, state),
            Some(_) => self.force(Fault::NotMapped, state),
        }
    }

    /// Raises the signal of a processor exception of the thread's program.
    pub fn force(&self, fault: Fault, state: ExceptionState) {
        let tid = self.note_exception(state);
        self.system().processes().with(|table| table.force(tid, fault.at(state.address)));
    }

    /// Ends the process of a thread whose program cannot go on.
    pub fn lost(&self) {
        let tid = self.tid();
        self.system().processes().with(|table| {
            if let Ok(pid) = table.thread(tid).map(|thread| thread.pid()) {
                table.begin_exit(pid, ExitStatus::Killed(Signal::KILL));
            }
        });
    }
}

impl<M: Machine> Control for Thread<M> {
    fn recall(&self) {
        // Recall fails if the thread has ended, which then needs no recall.
        let _ = self.machine_thread().recall();
    }

    fn times(&self) -> (Duration, Duration) {
        let Times { program, server } = self.machine_thread().times();
        (Duration::from_micros(program), Duration::from_micros(server))
    }
}
