//! A Mach task with a thread that carries out commands of a test. Its page faults are served.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use mach::machine::{Event, ExecutionContext, Protection, Resume, SystemCall, ThreadState};
use mach::vm::{Inheritance, MapRequest, Placement, VmMap};
use mach::{KernError, KernResult, Task, Thread};
use mach_l4::{L4Machine, UserThread};

use crate::code::{self, command};

/// The memory of a task.
pub type Map = VmMap<L4Machine>;

/// The address of the code in every program.
pub const CODE: u64 = 0x10_0000;
/// The end of the addresses of programs.
pub const TOP: u64 = 0x7fff_0000_0000;
/// The end of a program's stack, which only calls of stubs use.
const STACK: u64 = 0x20_1000;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command returned this result.
    Done(u64),
    /// The command ended by a fault that its map does not allow.
    Fault(u64, KernError),
    /// The command ended by a processor exception.
    Exception(u64),
    /// The thread was recalled.
    Recalled,
    /// The thread has ended.
    Ended,
    /// The command ended by a message that it sent.
    Message(u64),
    /// The command ended by another system call.
    Call(SystemCall),
}

/// A thread that carries out commands.
pub struct Servant {
    /// The task.
    pub task: Arc<Task<L4Machine>>,
    /// The thread, as the library has it.
    pub thread: Arc<Thread<L4Machine>>,
    /// The thread, as the machine has it.
    pub user: UserThread,
    faults: AtomicU32,
}

/// Maps the servant's code, shared with whatever inherits it, and a stack.
pub async fn load(map: &Map) -> KernResult {
    let fixed =
        |size, at| MapRequest { inheritance: Inheritance::Share, ..MapRequest::anonymous(size) }.at(at);
    map.map(&fixed(4096, Placement::Fixed(CODE))).await?;
    map.map(&fixed(4096, Placement::Fixed(STACK - 4096))).await?;
    map.copyout(CODE, code::servant()).await.map_err(|fault| fault.error)?;
    map.protect(CODE, 4096, Protection::READ | Protection::EXECUTE, false).await
}

impl Servant {
    /// Starts a thread in a task whose memory has the code. It waits for its first command.
    pub async fn start(task: &Arc<Task<L4Machine>>) -> KernResult<Servant> {
        // The page of the stack is entered here, since tests do not always serve faults of calls of
        // stubs.
        task.map().fault(STACK - 8, Protection::WRITE).await?;
        let thread = task.create_thread().await?;
        let state = ThreadState { rip: CODE, rsp: STACK, ..ThreadState::default() };
        thread.set_state(&state).await?;
        thread.resume()?;
        let user = thread.machine_thread().clone();
        let servant = Servant { task: task.clone(), thread, user, faults: AtomicU32::new(0) };
        match servant.serve(None).await {
            Outcome::Done(_) => Ok(servant),
            _ => Err(KernError::Failure),
        }
    }

    /// The task's memory.
    pub fn map(&self) -> &Arc<Map> {
        self.task.map()
    }

    /// Resumes the thread with `resume`, if given, and serves it until a command is done or another
    /// event ends the service.
    pub async fn serve(&self, resume: Option<Resume>) -> Outcome {
        if let Some(resume) = resume {
            self.user.answer(resume);
        }
        loop {
            match self.user.next_event().await {
                Event::PageFault(fault) => {
                    self.faults.fetch_add(1, Ordering::Relaxed);
                    match self.map().fault(fault.address, fault.access).await {
                        Ok(()) => self.user.answer(Resume::Continue),
                        Err(error) => return Outcome::Fault(fault.address, error),
                    }
                }
                Event::SystemCall(call) if call.number == code::NEXT => {
                    return Outcome::Done(call.arguments[0]);
                }
                Event::SystemCall(call) => return Outcome::Call(call),
                Event::Exception(exception) => return Outcome::Exception(exception.vector),
                Event::Recalled => return Outcome::Recalled,
                Event::Message(message) => return Outcome::Message(message.label),
                Event::Ended => return Outcome::Ended,
            }
        }
    }

    /// How many page faults were served.
    pub fn faults(&self) -> u32 {
        self.faults.load(Ordering::Relaxed)
    }

    /// Begins a command.
    pub fn begin(&self, command: u64, set: impl FnOnce(&mut ThreadState)) {
        if let Ok(mut state) = self.user.state() {
            state.rax = command;
            set(&mut state);
            self.user.answer(Resume::Registers(Box::new(state)));
        }
    }

    /// Carries out a command.
    pub async fn command(&self, command: u64, set: impl FnOnce(&mut ThreadState)) -> Outcome {
        self.begin(command, set);
        self.serve(None).await
    }

    /// Loads the word at an address.
    pub async fn load(&self, address: u64) -> Outcome {
        self.command(command::LOAD, |state| state.rdi = address).await
    }

    /// Stores a word at an address.
    pub async fn store(&self, address: u64, word: u64) -> Outcome {
        self.command(command::STORE, |state| (state.rdi, state.rsi) = (address, word)).await
    }

    /// Writes consecutive numbers from `seed` on into the first words of pages.
    pub async fn fill(&self, address: u64, pages: u64, seed: u64) -> Outcome {
        let set = |state: &mut ThreadState| (state.rdi, state.rcx, state.rsi) = (address, pages, seed);
        self.command(command::FILL, set).await
    }

    /// The number of pages that do not contain the numbers that `fill` writes.
    pub async fn check(&self, address: u64, pages: u64, seed: u64) -> Outcome {
        let set = |state: &mut ThreadState| (state.rdi, state.rcx, state.rsi) = (address, pages, seed);
        self.command(command::CHECK, set).await
    }

    /// Makes the thread request its next command again, after a command has failed.
    pub async fn recover(&self) -> Outcome {
        let state = ThreadState { rip: CODE, rsp: STACK, ..ThreadState::default() };
        self.serve(Some(Resume::Registers(Box::new(state)))).await
    }
}

/// The vector of an undefined instruction.
pub const UNDEFINED_INSTRUCTION: u64 = 6;
/// The vector of a general protection fault.
pub const GENERAL_PROTECTION: u64 = 13;
