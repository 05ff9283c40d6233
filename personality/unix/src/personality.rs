//! Unix as a personality of Mach: what it keeps in tasks and threads, and what it makes of their
//! exceptions.

use crate::memory::Memory;
use crate::process::{Control, ExitStatus};
use crate::signal::{Fault, Signal};
use crate::thread::{Resources, Shortage};
use alloc::sync::Arc;
use core::time::Duration;
use mach::machine::{ExceptionCause, ExecutionContext, Machine, Times};
use mach::thread::{Exception, ExceptionState, Handled};
use mach::{KernError, Personality};

/// Unix. An address space of its processes is a Mach task, which vfork's child shares until it
/// executes a program; their threads are Mach threads.
pub struct Unix;

/// A Mach task with a program's memory.
pub type Task<M> = mach::Task<M, Unix>;
/// A Mach thread with what Unix keeps for it.
pub type Thread<M> = mach::Thread<M, Unix>;

impl<M: Machine> Personality<M> for Unix {
    type Task = Memory<M>;
    type Thread = Resources<M>;

    /// Every exception is answered: by memory that grows, or by a signal, whose delivery comes
    /// before the program's next instruction.
    async fn raise(thread: &Arc<Thread<M>>, exception: &Exception) -> Handled {
        match exception.state.cause() {
            ExceptionCause::PageFault => thread.memory_exception(exception).await,
            ExceptionCause::NoExtendedState => thread.out_of_memory(),
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
        ExceptionCause::Step => Fault::Step,
        ExceptionCause::Breakpoint => Fault::Breakpoint,
        ExceptionCause::Overflow => Fault::IntegerOverflow,
        ExceptionCause::UndefinedInstruction => Fault::IllegalInstruction,
        ExceptionCause::Bound | ExceptionCause::Protection => Fault::NotCanonical,
        ExceptionCause::Segment | ExceptionCause::Stack | ExceptionCause::Alignment => Fault::Alignment,
        ExceptionCause::FloatingPoint => Fault::FloatInvalid,
        ExceptionCause::NoExtendedState | ExceptionCause::PageFault | ExceptionCause::Other => return None,
    })
}

impl<M: Machine> Resources<M> {
    /// Before a page fault is served: counts it. False: there is no memory for that, and the
    /// thread's process ends.
    pub fn begin_fault(&self) -> bool {
        let (system, tid) = (self.system(), self.tid());
        system.processes().with(|table| table.account_fault(tid));
        let served = system.host().shortage() != Shortage::Critical;
        if !served {
            self.out_of_memory();
        }
        served
    }

    /// A page fault that mapped memory does not answer: a stack grows, or it becomes a signal.
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

    /// Raises the signal of an exception of its program.
    pub fn force(&self, fault: Fault, state: ExceptionState) {
        let tid = self.note_exception(state);
        self.system().processes().with(|table| table.force(tid, fault.at(state.address)));
    }

    /// The thread's program cannot go on: its process ends.
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
        // A thread that has ended needs no recall.
        let _ = self.machine_thread().recall();
    }

    fn times(&self) -> (Duration, Duration) {
        let Times { program, server } = self.machine_thread().times();
        (Duration::from_micros(program), Duration::from_micros(server))
    }
}
