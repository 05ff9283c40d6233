//! The return from a call to the program: signal frames, restarts, and the return from signal
//! handlers.

use crate::call::{Call, Done, Outcome, Stop};
use crate::layout::registers::TRAP_FLAG;
use crate::layout::signal::{self as layout, SavedContext};
use crate::linux::Linux;
use crate::{errno, names};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use mach::machine::{Resume, ThreadState};
use unix::Error;
use unix::front_end::Next;
use unix::process::{Delivery, ExitStatus};
use unix::signal::{Action, Frame, RestartKind, Resumption, Signal, SignalInformation};
use unix::thread::Thread;

/// All registers of the thread, which are fetched at most once.
pub(crate) fn all<'a, M: Machine>(
    resume: &'a mut Resume,
    thread: &Thread<M>,
) -> unix::Result<&'a mut ThreadState> {
    match *resume {
        Resume::Registers(_) => {}
        Resume::Return(rax) => {
            *resume = Resume::Registers(Box::new(ThreadState { rax, ..thread.registers()? }));
        }
        Resume::Continue | Resume::Reply(_) => *resume = Resume::Registers(Box::new(thread.registers()?)),
    }
    match resume {
        Resume::Registers(state) => Ok(state),
        // This case cannot occur: the registers have just been fetched.
        _ => Err(Error::ESRCH),
    }
}

/// A call that was cut short, with its number.
pub(crate) type Interrupted = Option<(RestartKind, u64)>;

/// Bytes of the SYSCALL instruction.
const INSTRUCTION: u64 = 2;

impl<M: Machine> Linux<M> {
    /// Returns a thread to its program after a call that ended with `outcome`.
    pub async fn finish(&self, thread: &Arc<Thread<M>>, number: u64, outcome: Outcome) -> Next<M> {
        match self.result_of(thread, number, outcome).await {
            Ok((resume, interrupted)) => self.return_from_call(thread, resume, interrupted).await,
            Err(next) => next,
        }
    }

    /// How a thread goes on after a call that ended with `outcome`, as far as no signal changes
    /// that; an error if it does not return to the program that made the call.
    pub(crate) async fn result_of(
        &self,
        thread: &Arc<Thread<M>>,
        number: u64,
        outcome: Outcome,
    ) -> Result<(Resume, Interrupted), Next<M>> {
        match outcome {
            Outcome::Return(value) => Ok((Resume::Return(value), None)),
            Outcome::Interrupted(restart) => Ok((Resume::Continue, Some((restart, number)))),
            Outcome::Registers(state) => Ok((Resume::Registers(state), None)),
            Outcome::Restored => Ok((Resume::Continue, None)),
            Outcome::Executed(state) => Err(match thread.system().thread(thread.pid()) {
                Some(new) => Next::Executed(new, state),
                None => Next::Ended,
            }),
            Outcome::Exit(status) => {
                Box::pin(self.exit(thread, status)).await;
                Err(Next::Ended)
            }
        }
    }

    /// Ends a thread whose underlying thread has ended.
    pub(crate) async fn lost(&self, thread: &Arc<Thread<M>>) -> Next<M> {
        let (pid, killed) = (thread.pid(), ExitStatus::Killed(Signal::KILL));
        thread.system().processes().with(|table| table.begin_exit(pid, killed));
        Box::pin(self.exit(thread, killed)).await;
        Next::Ended
    }

    /// Returns `thread` to its program: delivers signals, waits while it is stopped, ends it.
    /// `interrupted` is a call that was cut short, with its number; `None` after an event that is
    /// no call (a fault, a recall).
    pub(crate) async fn return_from_call(
        &self,
        thread: &Arc<Thread<M>>,
        mut resume: Resume,
        mut interrupted: Interrupted,
    ) -> Next<M> {
        let system = thread.system().clone();
        loop {
            let done = match system.processes().return_to_user(thread.tid()).await {
                Delivery::Return => match self.next_without_signal(thread, &mut resume, interrupted.take()) {
                    Ok(Some(next)) => return next,
                    Ok(None) => Ok(()),
                    Err(gone) => Err(gone),
                },
                Delivery::Handler(frame) => {
                    // Boxed, because most calls end without a signal, and the thread's future stays
                    // small.
                    let delivering = self.deliver(thread, &mut resume, interrupted.take(), &frame);
                    let delivering = system.processes().killable(thread.tid(), Box::pin(delivering));
                    // A thread that has to end needs no frame.
                    match delivering.await.unwrap_or(Ok(true)) {
                        Ok(true) if thread.is_observed() => {
                            Box::pin(self.stop_at_handler(thread, &mut resume)).await
                        }
                        Ok(true) => Ok(()),
                        Ok(false) => {
                            system.processes().with(|table| table.frame_failed(thread.tid(), &frame));
                            Ok(())
                        }
                        Err(gone) => Err(gone),
                    }
                }
                Delivery::Step => match self.step(thread, &mut resume, interrupted.take()) {
                    Ok(Some(next)) => return next,
                    Ok(None) => Ok(()),
                    Err(gone) => Err(gone),
                },
                Delivery::Trace(stop) => {
                    Box::pin(self.stop_for_tracer(thread, &mut resume, &mut interrupted, stop, None)).await
                }
                Delivery::Executed(before) => {
                    Box::pin(self.report_execution(thread, &mut resume, &mut interrupted, before)).await
                }
                // `Processes::return_to_user` waits while the thread is stopped.
                Delivery::Stopped => Ok(()),
                Delivery::Exit(status) => {
                    Box::pin(self.exit(thread, status)).await;
                    return Next::Ended;
                }
            };
            if done.is_err() {
                return self.lost(thread).await;
            }
            system.log_reports();
        }
    }

    /// How the program goes on if no signal is to be delivered. `None` if its registers are not
    /// valid; it has then got a signal for that.
    fn next_without_signal(
        &self,
        thread: &Arc<Thread<M>>,
        resume: &mut Resume,
        interrupted: Interrupted,
    ) -> unix::Result<Option<Next<M>>> {
        if interrupted.is_some() {
            apply_restart(all(resume, thread)?, interrupted, None);
        }
        let valid = match resume {
            Resume::Registers(state) => self.check_state(thread, state),
            _ => true,
        };
        Ok(valid.then(|| Next::Resume(core::mem::replace(resume, Resume::Continue))))
    }

    /// How the program executes one instruction, as [`Self::next_without_signal`].
    fn step(
        &self,
        thread: &Arc<Thread<M>>,
        resume: &mut Resume,
        interrupted: Interrupted,
    ) -> unix::Result<Option<Next<M>>> {
        all(resume, thread)?;
        Ok(match self.next_without_signal(thread, resume, interrupted)? {
            Some(Next::Resume(Resume::Registers(mut state))) => {
                state.rflags |= TRAP_FLAG;
                Some(Next::Resume(Resume::Registers(state)))
            }
            next => next,
        })
    }

    /// Prepares the thread to enter a handler; false if the signal frame cannot be written.
    async fn deliver(
        &self,
        thread: &Arc<Thread<M>>,
        resume: &mut Resume,
        interrupted: Interrupted,
        frame: &Frame,
    ) -> unix::Result<bool> {
        let (present, extended) = match thread.begin_handler() {
            Err(Error::ENOMEM) => return Ok(false),
            done => done?,
        };
        let mut state = match resume {
            Resume::Registers(state) => **state,
            Resume::Return(rax) => ThreadState { rax: *rax, ..present },
            Resume::Continue | Resume::Reply(_) => present,
        };
        apply_restart(&mut state, interrupted, Some(&frame.action));
        let entered = self.push_frame(thread, frame, &state, &extended).await;
        if entered.is_none() {
            thread.set_extended_state(&extended)?;
        }
        *resume = Resume::Registers(Box::new(entered.unwrap_or(state)));
        Ok(entered.is_some())
    }

    /// Checks the instruction pointer. One that is no address of a program would fault at the
    /// program's first instruction, so that fault is raised here.
    fn check_state(&self, thread: &Thread<M>, state: &ThreadState) -> bool {
        let valid = is_address(state.rip);
        if !valid {
            let tid = thread.tid();
            let processes = thread.system().processes();
            processes.with(|table| {
                table.enter(tid);
                table.force(tid, SignalInformation::system(Signal::SEGV));
            });
        }
        valid
    }

    /// Writes the frame of a handler onto the thread's stack; returns the registers with which the
    /// handler starts, or `None` if the frame cannot be written.
    async fn push_frame(
        &self,
        thread: &Thread<M>,
        frame: &Frame,
        state: &ThreadState,
        extended: &[u8],
    ) -> Option<ThreadState> {
        let trap = thread.trap();
        let built =
            layout::build_frame(frame, state, extended, (trap.error, trap.number, trap.address)).ok()?;
        thread.memory().copy_out(built.address, &built.bytes).await.ok()?;
        Some(built.state)
    }
}

/// Whether an instruction pointer is an address of a program.
fn is_address(rip: u64) -> bool {
    rip < 1 << 47
}

/// Decides whether an interrupted call is restarted, now that it is known which handler runs, if
/// any.
fn apply_restart(state: &mut ThreadState, interrupted: Interrupted, action: Option<&Action>) {
    let Some((restart, number)) = interrupted else { return };
    match restart.decide(action) {
        Resumption::Interrupted => state.rax = errno::result(Err(Error::EINTR)),
        Resumption::Restart => {
            state.rax = number;
            state.rip = state.rip.wrapping_sub(INSTRUCTION);
        }
        Resumption::Continue => {
            state.rax = names::number::restart_syscall;
            state.rip = state.rip.wrapping_sub(INSTRUCTION);
        }
    }
}

/// rt_sigreturn(2): returns from a handler to the code that the signal interrupted. A frame that
/// cannot be read ends the process (SIGSEGV).
pub(crate) async fn rt_sigreturn<M: Machine>(call: &Call<'_, M>) -> Done {
    let current = call.registers()?;
    Err(Stop::Outcome(match restore(call, &current).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let tid = call.tid();
            call.table(|table| table.force(tid, SignalInformation::system(Signal::SEGV)));
            Outcome::Registers(Box::new(current))
        }
    }))
}

async fn restore<M: Machine>(call: &Call<'_, M>, current: &ThreadState) -> unix::Result<Outcome> {
    // The handler's return instruction has taken the first word of the frame off the stack.
    let context = call.read::<{ layout::CONTEXT_SIZE }>(current.rsp).await?;
    let SavedContext { state, mask, stack, extended_at } = layout::read_context(&context, current)?;
    let extended = match extended_at {
        0 => Vec::new(),
        address => read_extended(call, address).await?,
    };
    let outcome = if is_address(state.rip) {
        call.thread.end_handler(&state, &extended)?;
        Outcome::Restored
    } else {
        call.thread.set_extended_state(&extended)?;
        Outcome::Registers(Box::new(state))
    };
    let tid = call.tid();
    call.table(|table| {
        let _ = table.set_mask(tid, mask);
        if let Ok(thread) = table.thread_mut(tid)
            && let Ok(stack) = stack
        {
            // The stack is set as by sigaltstack(2), for the restored stack pointer; if that fails,
            // the present stack stays.
            let _ = thread.stack.replace(stack, state.rsp, layout::MINIMUM_STACK);
        }
    });
    Ok(outcome)
}

/// Reads the extended state in a frame: all of it if its description and its end mark fit the
/// processor, else the legacy part that every processor has. A frame of the size that the server
/// writes is read with one copy; if the memory ends before that, it is read in parts.
async fn read_extended<M: Machine>(call: &Call<'_, M>, address: u64) -> unix::Result<Vec<u8>> {
    const LEGACY: usize = 512;
    const MARK: usize = 4;
    let (memory, expected) = (call.memory(), call.linux.processor.extended_size);
    let mut bytes = match memory.read_bytes(address, expected + MARK).await {
        Err(Error::EFAULT) => memory.read_bytes(address, LEGACY).await?,
        done => done?,
    };
    let legacy = bytes.first_chunk::<LEGACY>().ok_or(Error::EFAULT)?;
    let size = layout::extended_size(legacy, expected);
    let is_whole = bytes.get(size..).and_then(|rest| rest.first_chunk()).is_some_and(layout::has_end_mark);
    bytes.truncate(if size > LEGACY && is_whole { size } else { LEGACY });
    Ok(bytes)
}

/// exit_group(2): ends the process.
pub(crate) fn exit_group<M: Machine>(call: &Call<'_, M>) -> Done {
    let (pid, status) = (call.pid(), ExitStatus::Exited(call.int(0) as u8));
    call.table(|table| table.begin_exit(pid, status));
    Err(Stop::Outcome(Outcome::Exit(status)))
}

/// exit(2): ends only the calling thread.
pub(crate) fn exit<M: Machine>(call: &Call<'_, M>) -> Done {
    Err(Stop::Outcome(Outcome::Exit(ExitStatus::Exited(call.int(0) as u8))))
}
