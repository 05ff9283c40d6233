//! The kernel above the machine, as a whole: threads make system calls, and the structures must
//! agree.

mod arrival;
mod deletion;
mod donation;
mod exhaustion;
mod fast_path;
mod followers;
mod identity;
mod idle;
mod interrupts;
mod invariants;
mod left_over;
mod migration;
mod preemption;
mod processors;
mod propagation;
mod quotas;
mod races;
mod random;
mod scheduling;
mod successors;

use core::cell::Cell;

use x2::control::{ExchangeControl, UNCHANGED};
use x2::{ThreadId, utcb};

use super::table::threads;
use super::{ThreadRef, breakpoints, initial};
use crate::arch::Machine;
use crate::dispatch::{
    Outcome, after_interrupt, attend_before_requests, dispatch, take_interrupts, timer_interrupt,
};
use crate::scheduler::{Next, quantum};
use crate::syscall::{self, Call, ExchangedValues, NewThread};
use crate::{arch, interrupt, mapping, processor};

/// Interrupt lines of the machine.
const LINES: u32 = 24;
/// Where the first threads have their UTCBs, and new spaces get theirs.
const UTCB_AREA: u64 = 0xbf00_0000;
const UTCB_AREA_LOG2: u32 = 18;
const KIP_AREA: u64 = 0xbff0_0000;

/// The id of a user thread: its number above UserBase, and version.
fn id(number: u32, version: u32) -> ThreadId {
    ThreadId::global(interrupt::user_base() + number, version).expect("a version with low bits")
}

/// A machine with sigma0 and the root task.
pub(crate) struct World {
    machine: Machine,
    /// Whether the last ThreadControl was tried by the short form.
    short: Cell<bool>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_processors(1)
    }

    fn with_processors(count: u32) -> Self {
        Self::with_messages(count, 0)
    }

    /// A machine with message-signalled interrupts, too.
    fn with_messages(count: u32, messages: u32) -> Self {
        let machine = Machine::new(8 << 20);
        arch::reset_processors(count);
        quantum::reset();
        breakpoints::reset();
        processor::allow_fast_path(true);
        mapping::init(&[]);
        interrupt::init(LINES, messages);
        threads().clear();
        initial::create().expect("memory for the first threads");
        Self { machine, short: Cell::new(false) }
    }

    fn root(&self) -> ThreadRef {
        self.thread(id(2, 1))
    }

    fn thread(&self, id: ThreadId) -> ThreadRef {
        threads().find(id).expect("the thread exists").anywhere()
    }

    /// Dispatches until a thread is at user level. `None`: all wait.
    fn run(&self, next: Next) -> Option<ThreadRef> {
        let idle = &processor::this().public.idle;
        // The processor was idle until now: nothing happens to other processors between what woke
        // it and this.
        if idle.claim().is_some() {
            idle.end();
        }
        let mut next = next;
        loop {
            match dispatch(next) {
                Outcome::Resume(thread) => return Some(thread),
                Outcome::Idle => {
                    idle.begin();
                    return None;
                }
                Outcome::TakeInterrupts => next = take_interrupts(|| self.interrupt()),
            }
        }
    }

    /// One of the interrupts that are pending, if there are any.
    fn interrupt(&self) -> Option<Next> {
        if arch::cpu_count() > 1 {
            // Timeouts and timeslices end here, too.
            arch::set_clock(arch::clock() + 1);
        }
        if arch::timer() <= arch::clock() {
            arch::set_timer(u64::MAX);
            return Some(timer_interrupt());
        }
        if let Some(line) = arch::take_line() {
            interrupt::occurred(line);
            return Some(after_interrupt());
        }
        if let Some(message) = arch::take_message() {
            interrupt::message_arrived(message);
            return Some(after_interrupt());
        }
        arch::take_attention().then(attend_before_requests)
    }

    /// Lets whatever is ready go on, until a thread is at user level.
    fn proceed(&self) -> Option<ThreadRef> {
        let current = processor::this().current.get();
        self.run(if current.is_some() { Next::Return } else { Next::Schedule })
    }

    /// Makes `thread` the running one, whatever else is ready.
    fn switch_to(&self, thread: ThreadRef) {
        let this = processor::this();
        if let Some(current) = this.current.take()
            && current.is_runnable()
        {
            this.scheduler.make_ready(current);
        }
        assert!(thread.is_runnable(), "{:?} is {:?}", thread.id(), thread.continuation());
        this.scheduler.ready.remove(thread);
        this.current.set(Some(thread));
    }

    /// `thread`, which is current, makes a system call; the handler's decision.
    fn enter(&self, call: Call, thread: ThreadRef, arguments: &[(Register, u64)]) -> Next {
        for &(register, value) in arguments {
            register.of(thread).set(value);
        }
        thread.entered_by_syscall.set(true);
        if call == Call::ThreadControl && self.try_control(thread) {
            return Next::Unchanged;
        }
        let expected = short_answer(call, thread);
        let next = syscall::entered(thread, call.return_offset());
        if let Some(expected) = expected {
            assert_eq!(results(call, thread), expected, "the short way's answer is the whole call's");
        }
        next
    }

    /// Every second ThreadControl is done by the short form, as entry code does, if it can be.
    /// Returns whether it is done.
    fn try_control(&self, thread: ThreadRef) -> bool {
        let short = !self.short.replace(!self.short.get())
            && processor::this().fast_path.get()
            && thread.space.get().is_some_and(|space| space.is_privileged());
        if !short {
            return false;
        }
        let of = |register: Register| register.of(thread).get();
        let [id, pager, scheduler, specifier] = [Register::Rdi, Register::Rsi, Register::Rdx, Register::R8]
            .map(|register| ThreadId::from_raw(of(register)));
        let result = if specifier.is_nil() {
            syscall::try_delete_thread(thread, id)
        } else {
            let new = NewThread { id, pager, scheduler, specifier, location: of(Register::R9) };
            syscall::try_create_thread(thread, &new)
        };
        let Some(result) = result else { return false };
        thread.registers.rax().set(u64::from(result.is_ok()));
        if let Err(error) = result {
            syscall::set_error(thread, error);
        }
        true
    }

    /// `thread`, made current, makes a system call. Returns the thread that runs then.
    fn call(&self, call: Call, thread: ThreadRef, arguments: &[(Register, u64)]) -> Option<ThreadRef> {
        self.switch_to(thread);
        self.run(self.enter(call, thread, arguments))
    }

    /// Root makes an active thread in `space` (its own id: a new space), running, and returns it.
    fn spawn(&self, id: ThreadId, space: ThreadId) -> ThreadRef {
        use Register::*;
        let root = self.root();
        let root_id = root.id().raw();
        let location = UTCB_AREA + 1024 * u64::from(id.number() - interrupt::user_base());
        let control = |space: u64, pager: u64, location: u64| {
            let arguments = [(Rdi, id.raw()), (R8, space), (Rdx, root_id), (Rsi, pager), (R9, location)];
            self.call(Call::ThreadControl, root, &arguments);
            assert_eq!(root.registers.rax().get(), 1, "ThreadControl fails: {}", error(root));
        };
        if space == id {
            control(id.raw(), 0, u64::MAX);
            let areas = [(Rdi, id.raw()), (Rsi, 0), (Rdx, KIP_AREA | 12 << 4), (R9, 0)];
            let utcbs = UTCB_AREA | u64::from(UTCB_AREA_LOG2) << 4;
            self.call(Call::SpaceControl, root, &[areas[0], areas[1], areas[2], areas[3], (R8, utcbs)]);
            assert_eq!(root.registers.rax().get(), 1, "SpaceControl fails: {}", error(root));
        }
        control(space.raw(), root_id, location);
        let thread = self.thread(id);
        super::ipc::cancel_receive(thread);
        thread
    }
}

/// The answer of entry code to a call that changes nothing.
fn short_answer(call: Call, thread: ThreadRef) -> Option<[u64; 7]> {
    let of = |register: Register| register.of(thread).get();
    match call {
        Call::ExchangeRegisters if of(Register::Rsi) & !ExchangeControl::DELIVER.raw() == 0 => {
            let id = ThreadId::from_raw(of(Register::Rax));
            let (found, state) = syscall::find_readable(thread, id)?;
            let block = found.utcb.get().expect("entry code reads the UTCB of the thread that is found");
            let values = ExchangedValues::of(found, block, id, state);
            Some([values.id, values.control, values.sp, values.ip, values.flags, values.handle, values.pager])
        }
        Call::Schedule
            if [Register::Rdx, Register::R8, Register::Rsi, Register::R9].map(of) == [UNCHANGED; 4] =>
        {
            let (state, times) = syscall::read_schedule(thread, ThreadId::from_raw(of(Register::Rdi)))?;
            let mut results = [0; 7];
            results[..2].copy_from_slice(&[state as u64, times]);
            Some(results)
        }
        _ => None,
    }
}

/// The results of one of these calls.
fn results(call: Call, thread: ThreadRef) -> [u64; 7] {
    use Register::*;
    let of = |register: Register| register.of(thread).get();
    match call {
        Call::ExchangeRegisters => [Rax, Rsi, Rdx, R8, R9, R10, Rdi].map(of),
        _ => [of(Rax), of(Rdx), 0, 0, 0, 0, 0],
    }
}

/// ErrorCode of the last failed call.
fn error(thread: ThreadRef) -> u64 {
    thread.utcb.get().map_or(0, |block| block.read(utcb::ERROR_CODE))
}

/// Registers that carry arguments.
#[derive(Clone, Copy)]
enum Register {
    Rax,
    Rdi,
    Rsi,
    Rdx,
    R8,
    R9,
    R10,
}

impl Register {
    fn of(self, thread: ThreadRef) -> &'static Cell<u64> {
        let registers = &thread.registers;
        match self {
            Self::Rax => registers.rax(),
            Self::Rdi => &registers.rdi,
            Self::Rsi => &registers.rsi,
            Self::Rdx => &registers.rdx,
            Self::R8 => &registers.r8,
            Self::R9 => registers.r9(),
            Self::R10 => registers.r10(),
        }
    }
}
