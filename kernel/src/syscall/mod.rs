//! The system calls: one file each. `decode` checks the arguments, which it knows by their names
//! ([`arguments`]), `perform` does what they ask for. What a call takes memory for it takes before
//! its first change (K4): ThreadState as the last step of `decode`, ThreadControl, SpaceControl and
//! SpaceOptions as the first of `perform`, which is where they can still fail.
//!
//! A call that is about a thread looks that thread up once (`object`), goes to where it is, and
//! works on it as [`Here`]. Other threads that it names (pager, scheduler, handler, redirector, a
//! thread of a space) are only [`Found`](crate::thread::Found): the call uses what a
//! [`Found`](crate::thread::Found) says of them, which is the same for all processors.
//!
//! A call is identified by the address to which SYSCALL will return, which is the only thing that
//! the kernel believes about the stub (K9). The stubs of [`Call`] lie [`STUB_SPACING`] bytes apart,
//! in this order.

pub mod arguments;
mod entry;
mod exchange_registers;
mod map_control;
mod memory_control;
mod notify;
mod processor_control;
mod schedule;
mod space_control;
mod space_options;
mod system_clock;
mod thread_control;
mod thread_state;
mod thread_switch;
mod unmap;

pub use entry::Entry;
pub use exchange_registers::{Values as ExchangedValues, find_readable};
pub use map_control::try_one as try_map_control;
pub use schedule::read as read_schedule;
pub use thread_control::{NewThread, try_create as try_create_thread, try_delete as try_delete_thread};
pub use unmap::try_one as try_unmap;
use x2::{ErrorCode, ThreadId, utcb};

use crate::scheduler::Next;
use crate::sync::delay::{self, Point};
use crate::thread::table::threads;
use crate::thread::{Continuation, Here, ThreadRef, Work, ipc, redirect};
use crate::trace::{self, Event};

/// Bytes from the stub of one call to that of the next.
pub const STUB_SPACING: u64 = 16;
/// Bytes of MemoryControl's stub before its SYSCALL instruction.
pub const MEMORY_CONTROL_PREFIX: u64 = 6;
/// Length of the SYSCALL instruction.
const SYSCALL_LENGTH: u64 = 2;

/// How many calls there are.
const CALLS: usize = 14;

/// The calls, in the order of their stubs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Call {
    /// Ipc and Lipc, which have the same stub.
    Ipc,
    /// ExchangeRegisters.
    ExchangeRegisters,
    /// ThreadControl.
    ThreadControl,
    /// SystemClock.
    SystemClock,
    /// ThreadSwitch.
    ThreadSwitch,
    /// Schedule.
    Schedule,
    /// Unmap.
    Unmap,
    /// SpaceControl.
    SpaceControl,
    /// ProcessorControl.
    ProcessorControl,
    /// MemoryControl.
    MemoryControl,
    /// SpaceOptions, an extension like those that follow (K1).
    SpaceOptions,
    /// MapControl.
    MapControl,
    /// ThreadState.
    ThreadState,
    /// Notify.
    Notify,
}

const HANDLERS: [fn(ThreadRef) -> Next; CALLS] = [
    ipc_system_call,
    exchange_registers::system_call,
    thread_control::system_call,
    system_clock::system_call,
    thread_switch::system_call,
    schedule::system_call,
    unmap::system_call,
    space_control::system_call,
    processor_control::system_call,
    memory_control::system_call,
    space_options::system_call,
    map_control::system_call,
    thread_state::system_call,
    notify::system_call,
];

impl Call {
    /// Offset of the call's stub from the beginning of the stub page.
    pub const fn stub_offset(self) -> u64 {
        self as u64 * STUB_SPACING
    }

    /// Offset after the stub's SYSCALL instruction. MemoryControl's moves RCX and R11 out of the
    /// way first.
    pub(crate) const fn return_offset(self) -> u64 {
        let prefix = if matches!(self, Self::MemoryControl) { MEMORY_CONTROL_PREFIX } else { 0 };
        self.stub_offset() + prefix + SYSCALL_LENGTH
    }

    /// What the call does.
    fn handler(self) -> fn(ThreadRef) -> Next {
        HANDLERS[self as usize]
    }

    /// The call whose SYSCALL instruction returns to this offset in the stub page.
    #[inline]
    fn returning_to(offset: u64) -> Option<Self> {
        let index = (offset / STUB_SPACING) as usize;
        let returns = *Self::RETURNS.get(index)?;
        (u64::from(returns) == offset).then(|| Self::ORDER[index])
    }

    /// [`Self::return_offset`] of each call.
    const RETURNS: [u16; CALLS] = {
        let mut offsets = [0; CALLS];
        let mut index = 0;
        while index < CALLS {
            offsets[index] = Self::ORDER[index].return_offset() as u16;
            index += 1;
        }
        offsets
    };

    /// All calls, in the order of their stubs.
    const ORDER: [Self; CALLS] = [
        Self::Ipc,
        Self::ExchangeRegisters,
        Self::ThreadControl,
        Self::SystemClock,
        Self::ThreadSwitch,
        Self::Schedule,
        Self::Unmap,
        Self::SpaceControl,
        Self::ProcessorControl,
        Self::MemoryControl,
        Self::SpaceOptions,
        Self::MapControl,
        Self::ThreadState,
        Self::Notify,
    ];
}

/// The current thread has executed SYSCALL, and would return to `offset` bytes after the beginning
/// of the stub page.
#[inline]
pub fn entered(current: ThreadRef, offset: u64) -> Next {
    if offset == Call::Ipc.return_offset() {
        return ipc_system_call(current);
    }
    match Call::returning_to(offset) {
        Some(call) => {
            trace::event(Event::SystemCall, call as u64, current.registers.rdi.get());
            call.handler()(current)
        }
        // A SYSCALL outside the stubs: a system call of another operating system (K9).
        None => redirect::system_call(current),
    }
}

/// Carries out Ipc and Lipc: immediately if the thread need not block, else in steps.
fn ipc_system_call(current: ThreadRef) -> Next {
    if let Some(receiver) = ipc::fast::named_receiver(current) {
        if !receiver.is_here() {
            if let Some(next) = ipc::fast::crossing::go(current, receiver) {
                return next;
            }
        } else if ipc::fast::is_possible(current, receiver)
            && let Some(receiver) = ipc::fast::system_call(current, receiver)
        {
            return Next::Switched(receiver);
        } else if !receiver.is_home()
            && let Some(next) = ipc::fast::crossing::answer(current, receiver)
        {
            return next;
        }
    }
    ipc::system_call(current)
}

/// The current thread makes `call` again, here where it has gone for that.
pub fn call_again(current: ThreadRef, call: Call) -> Next {
    call.handler()(current)
}

/// The thread that a call is about.
enum Object<'entry> {
    /// A thread that is here: the handler may touch it.
    Here(Here<'entry>),
    /// No thread has the id.
    None,
    /// A thread that is elsewhere: the current thread is on its way there, and makes the call
    /// again.
    Elsewhere(Next),
}

/// The thread that `id` names for the current thread, which makes `call`. One look-up decides
/// whether it exists, and where it is.
#[inline]
fn object<'entry>(entry: &'entry Entry, current: ThreadRef, id: ThreadId, call: Call) -> Object<'entry> {
    let found = ipc::resolve_thread(current, id);
    delay::between(Point::LookUp);
    let Some(found) = found else { return Object::None };
    match found.here(entry) {
        Some(thread) => Object::Here(thread),
        None => Object::Elsewhere(found.follow(current, Continuation::Call(call))),
    }
}

/// The thread here that `id` names for the current thread, if that is found without a search.
/// `None` does not mean that there is none.
#[inline]
fn find_here<'entry>(entry: &'entry Entry, current: ThreadRef, id: ThreadId) -> Option<Here<'entry>> {
    let thread = if id.has_version() {
        threads().find(id)
    } else {
        Some(id).filter(|id| !id.is_nil()).and(current.space.get())?.remembered_local_id(id)
    };
    thread?.here(entry)
}

/// Goes on with a system call that gave way to an interrupt.
pub fn resume_call(current: ThreadRef) -> Next {
    let work = current.transfer_record.get().map_or(Work::Idle, |record| record.work.take());
    current.set_continuation(Continuation::ReturnToUser);
    match work {
        Work::Unmap(index) => unmap::resume_unmap(current, index),
        Work::MemoryControl(index) => memory_control::resume_memory_control(current, index),
        Work::MapControl(within) => map_control::resume_map_control(current, within),
        Work::DropUtcbs(next) => space_control::resume_space_control(current, next, 0),
        Work::FlushAreas(first) => space_control::resume_space_control(current, 0, first),
        Work::Redirect { inherited: false, .. } => space_control::go_on_redirecting(current, work),
        Work::Redirect { .. } | Work::EndRelations { .. } | Work::DestroySpace(_) => {
            thread_control::resume_thread_control(current, work)
        }
        Work::Idle => Next::Return,
    }
}

/// Writes the ErrorCode TCR of a call that failed.
pub fn set_error(thread: ThreadRef, error: ErrorCode) {
    if let Some(block) = thread.utcb.get() {
        block.write(utcb::ERROR_CODE, error.raw());
    }
}

/// Ends a call whose result is 1, or 0 with an error code, in RAX.
fn return_result(current: ThreadRef, result: Result<(), ErrorCode>) {
    current.registers.rax().set(u64::from(result.is_ok()));
    if let Err(error) = result {
        set_error(current, error);
    }
}

/// Refuses callers outside the privileged spaces.
fn check_privilege(current: ThreadRef) -> Result<(), ErrorCode> {
    if is_privileged(current) { Ok(()) } else { Err(ErrorCode::NoPrivilege) }
}

fn is_privileged(current: ThreadRef) -> bool {
    current.space.get().is_some_and(|space| space.is_privileged())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules: EXT 5.4.
    #[test]
    fn calls_are_found_by_their_return_address_only() {
        let found = (0..4096).filter_map(|offset| Call::returning_to(offset).map(|call| (offset, call)));
        let found: std::vec::Vec<_> = found.collect();
        assert_eq!(found.len(), HANDLERS.len());
        assert_eq!(found[0], (2, Call::Ipc));
        assert_eq!(found[9], (9 * STUB_SPACING + 8, Call::MemoryControl));
        assert_eq!(Call::returning_to(u64::MAX), None);
    }
}
