//! What each system call but Ipc may answer, by the rules of the interface and what the model
//! knows.
//!
//! A call with several faults may name any of them, so an answer is foretold as the set of what is
//! wrong: the call succeeds if and only if that is empty. Memory may run out in any call that needs
//! some.

use std::vec::Vec;

use x2::control::{
    ExchangeControl, MemoryAttribute, PreemptionControl, TimeControl, priority_control,
    processor_control as processor_of,
};
use x2::extension::{MAX_MAP_ITEMS, MapItem, MapOperation, ONE_MAP_ITEM, SpaceOption, SystemCallMode};
use x2::{ErrorCode, Fpage, FpageKind, Region, ThreadId, Time};

use super::facts::{Facts, SpaceKey, key_of, number_of, thread_of};
use super::perform::message_register;
use crate::arch;
use crate::interrupt;
use crate::memory::Account;
use crate::thread::{Continuation, ThreadRef, flag, ipc};

/// The answers that a call may give.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    /// The errors in the call's arguments.
    pub errors: Vec<ErrorCode>,
    /// Errors that may be answered although nothing is wrong.
    pub possible: Vec<ErrorCode>,
    /// The call may succeed although something in `errors` seems wrong: the model does not know.
    pub vague: bool,
}

impl Expected {
    fn wrong_if(&mut self, wrong: bool, error: ErrorCode) -> bool {
        if wrong {
            self.errors.push(error);
        }
        wrong
    }

    fn only(error: ErrorCode) -> Self {
        Self { errors: [error].into(), ..Self::default() }
    }

    /// Allows `NoMemory` in addition, for a call that may need memory.
    fn or_no_memory(mut self) -> Self {
        self.possible.push(ErrorCode::NoMemory);
        self
    }

    /// Whether nothing is wrong.
    pub(super) fn succeeds(&self) -> bool {
        self.errors.is_empty()
    }

    /// Compares with what was answered.
    pub(super) fn check(&self, answer: Result<(), ErrorCode>, what: &dyn core::fmt::Debug) {
        let right = match answer {
            Ok(()) => self.errors.is_empty() || self.vague,
            Err(error) => self.errors.contains(&error) || self.possible.contains(&error),
        };
        assert!(right, "{what:?} answers {answer:?}, where {self:?} was expected");
    }
}

/// The thread that calls, and its space.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub thread: ThreadRef,
    pub space: SpaceKey,
}

impl Caller {
    pub(super) fn new(thread: ThreadRef) -> Self {
        Self { thread, space: thread.space.get().map_or(0, key_of) }
    }

    fn is_privileged(self, facts: &Facts) -> bool {
        facts.spaces.get(&self.space).is_some_and(|space| space.privileged)
    }

    /// Whether a redirector or an owner decides what the caller reaches.
    fn is_restricted(self) -> bool {
        self.thread.space.get().is_none_or(|space| space.is_owned() || space.is_redirected())
    }
}

fn is_interrupt(id: ThreadId) -> bool {
    id.is_global() && id.number() < interrupt::system_base()
}

/// X.2 rules 5.4 to 5.22.
pub(super) fn thread_control(
    facts: &Facts,
    caller: Caller,
    [dest, space, scheduler, pager]: [ThreadId; 4],
    location: u64,
) -> Expected {
    if !caller.is_privileged(facts) {
        return Expected::only(ErrorCode::NoPrivilege);
    }
    let mut expected = Expected::default();
    if is_interrupt(dest) {
        expected.wrong_if(dest.version() != 1, ErrorCode::InvalidThread);
        expected.wrong_if(space != dest, ErrorCode::InvalidSpace);
        let handler = pager == dest || facts.resolve(caller.space, pager).is_some();
        expected.wrong_if(!handler, ErrorCode::InvalidThread);
        return expected;
    }
    if expected.wrong_if(!ipc::is_user_number(dest), ErrorCode::InvalidThread) {
        return expected;
    }
    let present = facts.threads.get(&number_of(dest)).copied();
    if expected.wrong_if(present.is_some_and(|thread| thread.dying), ErrorCode::InvalidThread) {
        return expected;
    }
    if space.is_nil() {
        let own = present.is_some_and(|thread| thread.id == caller.thread.id());
        expected.wrong_if(own, ErrorCode::InvalidThread);
        return expected;
    }
    let activates = !pager.is_nil() && present.is_none_or(|thread| !thread.active);
    let new_space = present.is_none() && space == dest;
    // The space that the thread will be in.
    let key = match present {
        _ if new_space => None,
        Some(thread) if space == dest => Some(thread.space),
        _ => facts.space_of(space),
    };
    expected.wrong_if(key.is_none() && !new_space, ErrorCode::InvalidSpace);
    let target = key.and_then(|key| facts.spaces.get(&key));
    let moves = present.is_some_and(|thread| Some(thread.space) != key);
    let configured = target.is_some_and(super::facts::SpaceFacts::is_configured);
    let needs_areas = activates || moves;
    expected.wrong_if(needs_areas && !configured && (new_space || key.is_some()), ErrorCode::InvalidSpace);
    let scheduler_exists = facts.resolve(caller.space, scheduler).is_some();
    let needs_scheduler = present.is_none() || !scheduler.is_nil();
    expected.wrong_if(needs_scheduler && !scheduler_exists, ErrorCode::InvalidScheduler);
    // The thread's UTCB.
    let utcb = present.map_or(0, |thread| thread.utcb);
    let given = (location != u64::MAX && (moves || utcb == 0 || location != utcb)).then_some(location);
    let kept = present.and_then(|thread| thread.kept).filter(|_| activates && !moves && utcb == 0);
    let given = given.or(kept);
    let area = target.and_then(|space| space.utcbs);
    let fits = |location: u64| {
        location.is_multiple_of(x2::utcb::ALIGN) && area.is_some_and(|area| area.contains(location))
    };
    let active = present.is_some_and(|thread| thread.active);
    let wrong = match given {
        // The location is kept for later.
        Some(_) if !configured => false,
        Some(location) => {
            let used = |other: &super::facts::Thread| other.utcb == location && Some(other.space) == key;
            !fits(location) || active && !moves || facts.threads.values().any(used)
        }
        None if moves => active || activates,
        None => activates && utcb == 0,
    };
    expected.wrong_if(wrong, ErrorCode::InvalidUtcbArea);
    expected.or_no_memory()
}

/// X.2 rules 6.1 to 6.7.
pub(super) fn space_control(
    facts: &Facts,
    caller: Caller,
    [space, redirector]: [ThreadId; 2],
    kip: u64,
    utcbs: u64,
) -> Expected {
    if !caller.is_privileged(facts) {
        return Expected::only(ErrorCode::NoPrivilege);
    }
    let mut expected = Expected::default();
    let key = facts.space_of(space);
    expected.wrong_if(key.is_none(), ErrorCode::InvalidSpace);
    let names = redirector.is_local() || ipc::is_user_number(redirector);
    let unknown = names && facts.resolve(caller.space, redirector).is_none();
    expected.wrong_if(unknown, ErrorCode::InvalidThread);
    let Some((key, now)) = key.and_then(|key| Some((key, facts.spaces.get(&key)?))) else { return expected };
    if facts.threads.values().any(|thread| thread.space == key && thread.active) {
        return expected;
    }
    let [kip, utcbs] = [kip, utcbs].map(Fpage::from_raw);
    expected.wrong_if(!utcbs.is_nil() && user_area(utcbs).is_none(), ErrorCode::InvalidUtcbArea);
    expected.wrong_if(!kip.is_nil() && user_area(kip).is_none(), ErrorCode::InvalidKipArea);
    let (kip, utcbs) = (user_area(kip).or(now.kip), user_area(utcbs).or(now.utcbs));
    let overlap = kip.is_some_and(|kip| utcbs.is_some_and(|utcbs| kip.overlaps(utcbs)));
    expected.wrong_if(overlap, ErrorCode::InvalidKipArea);
    expected.or_no_memory()
}

/// The memory of an area that a user space can have.
pub(super) fn user_area(fpage: Fpage) -> Option<Region> {
    fpage.region().filter(|region| region.size_log2 >= 12 && region.last() < arch::USER_END)
}

/// X.2 rules 3.5 to 3.14.
pub(super) fn schedule(
    facts: &Facts,
    caller: Caller,
    dest: ThreadId,
    [time, processor, priority, preemption]: [u64; 4],
) -> Expected {
    let mut expected = Expected::default();
    let privileged = caller.is_privileged(facts);
    if is_interrupt(dest) {
        let handled = interrupt::find(dest).is_some_and(|interrupt| interrupt.handler().is_some());
        expected.wrong_if(!handled, ErrorCode::InvalidThread);
        expected.wrong_if(!privileged, ErrorCode::NoPrivilege);
        return expected;
    }
    let Some((_, thread)) = facts.resolve(caller.space, dest) else {
        expected.wrong_if(!ipc::is_user_number(dest), ErrorCode::InvalidThread);
        return expected;
    };
    let scheduler = facts.resolve(caller.space, thread.scheduler);
    let allowed = privileged || scheduler.is_some_and(|(_, scheduler)| scheduler.space == caller.space);
    expected.wrong_if(!allowed, ErrorCode::NoPrivilege);
    let highest = if privileged { 255 } else { caller.thread.priority.get() };
    let above = |wanted: Option<u8>| wanted.is_some_and(|wanted| wanted > highest);
    expected.wrong_if(above(priority_control(priority)), ErrorCode::InvalidParameter);
    let sensitive = PreemptionControl::from_raw(preemption).map(|control| control.sensitive_priority);
    expected.wrong_if(above(sensitive), ErrorCode::InvalidParameter);
    let missing = processor_of(processor).is_some_and(|number| u32::from(number) >= arch::cpu_count());
    expected.wrong_if(missing, ErrorCode::InvalidParameter);
    let control = TimeControl::from_raw(time);
    let lengths = if time == u64::MAX { [None; 2] } else { [control.timeslice(), control.total_quantum()] };
    let is_length = |time: Time| time.is_never() || time.micros().is_some_and(|length| length > 0);
    let no_length = lengths.into_iter().flatten().any(|time| !is_length(time));
    expected.wrong_if(no_length, ErrorCode::InvalidParameter);
    if caller.is_restricted() {
        // For the caller, a thread that is out of its reach does not exist.
        expected.vague = true;
        expected.possible.push(ErrorCode::InvalidThread);
    }
    expected
}

/// X.2 rule 5.23 and the reference: which threads ExchangeRegisters may be about.
pub(super) fn exchange_registers(facts: &Facts, caller: Caller, dest: ThreadId) -> Expected {
    let found = facts.resolve(caller.space, dest).filter(|(_, thread)| thread.active);
    let Some((number, thread)) = found else { return Expected::only(ErrorCode::InvalidThread) };
    let mut expected = Expected::default();
    let owner = |key: SpaceKey| facts.spaces.get(&key).and_then(|space| space.owner);
    let paged = || {
        let pager = thread_of(number).map_or(ThreadId::NIL, |thread| thread.pager());
        let pager = facts.resolve(thread.space, pager);
        owner(caller.space).is_none()
            && owner(thread.space).is_none()
            && pager.is_some_and(|(_, pager)| pager.space == caller.space)
    };
    let allowed = thread.space == caller.space || owner(thread.space) == Some(caller.space) || paged();
    expected.wrong_if(!allowed, ErrorCode::InvalidThread);
    expected
}

/// Whether an ExchangeRegisters with this control ends IPC of the thread it is about.
pub(super) fn cancels(control: u64) -> bool {
    let control = ExchangeControl::from_raw(control);
    control.contains(ExchangeControl::CANCEL_SEND) || control.contains(ExchangeControl::CANCEL_RECEIVE)
}

/// EXT 2: options of spaces.
pub(super) fn space_options(
    facts: &Facts,
    caller: Caller,
    space: ThreadId,
    option: u64,
    values: [u64; 2],
) -> Expected {
    let mut expected = Expected::default();
    let privileged = caller.is_privileged(facts);
    let option = SpaceOption::from_word(option);
    if matches!(option, Some(SpaceOption::InterruptMessage | SpaceOption::InterruptTable)) {
        return of_interrupts(privileged);
    }
    let key = facts.space_of(space);
    let now = key.and_then(|key| facts.spaces.get(&key));
    let owns = now.is_some_and(|space| space.owner == Some(caller.space));
    expected.wrong_if(!owns && !privileged, ErrorCode::NoPrivilege);
    expected.wrong_if(now.is_none(), ErrorCode::InvalidSpace);
    let for_privileged =
        [SpaceOption::Owner, SpaceOption::Quota, SpaceOption::PhysicalAddresses].map(Some).contains(&option);
    expected.wrong_if(for_privileged && !privileged, ErrorCode::NoPrivilege);
    let account = number_of_space(facts, key).and_then(thread_of).and_then(|thread| thread.space.get());
    match option {
        Some(SpaceOption::Information) => {}
        Some(SpaceOption::Owner) => {
            let owner = ThreadId::from_raw(values[0]);
            let new = facts.space_of(owner);
            expected.wrong_if(!owner.is_nil() && new.is_none(), ErrorCode::InvalidSpace);
            let sigma0 = account.is_some_and(|space| space.memory.is_sigma0());
            expected.wrong_if(sigma0 && !owner.is_nil(), ErrorCode::InvalidSpace);
            // No space owns itself, directly or not. A space that is being destroyed may still be
            // in the chain.
            let mut above = if owner.is_nil() { None } else { new };
            while let Some(one) = above {
                expected.wrong_if(Some(one) == key, ErrorCode::InvalidSpace);
                if Some(one) == key {
                    break;
                }
                if one == 0 {
                    expected.possible.push(ErrorCode::InvalidSpace);
                }
                above = facts.spaces.get(&one).and_then(|space| space.owner);
            }
            // The new owner's quota may be shared.
            expected = expected.or_no_memory();
        }
        Some(SpaceOption::Quota) => {
            let account = account.map(|space| space.account());
            let used = account.map_or(0, |account| account.used());
            let of_the_kernel = account == Some(Account::KERNEL);
            let absurd = (1 << 47..u64::MAX).contains(&values[0]);
            expected.wrong_if(values[0] < used || absurd || of_the_kernel, ErrorCode::InvalidParameter);
            expected = expected.or_no_memory();
        }
        Some(SpaceOption::SystemCallMode) => {
            let mode = SystemCallMode::from_word(values[0]);
            expected.wrong_if(mode.is_none(), ErrorCode::InvalidParameter);
        }
        Some(SpaceOption::EmulationEntry) => {
            expected.wrong_if(values[0] >= arch::USER_END, ErrorCode::InvalidParameter);
        }
        Some(SpaceOption::Open) => {
            let other = facts.space_of(ThreadId::from_raw(values[0]));
            expected.wrong_if(other.is_none(), ErrorCode::InvalidSpace);
            expected.wrong_if(values[1] > 1, ErrorCode::InvalidParameter);
            expected = expected.or_no_memory();
        }
        Some(SpaceOption::PhysicalAddresses) => {
            expected.wrong_if(values[0] > 1, ErrorCode::InvalidParameter);
        }
        Some(SpaceOption::InterruptMessage | SpaceOption::InterruptTable) | None => {
            expected.wrong_if(true, ErrorCode::InvalidParameter);
        }
    }
    expected
}

/// The model cannot foretell the answers of the options about interrupts.
fn of_interrupts(privileged: bool) -> Expected {
    if !privileged {
        return Expected::only(ErrorCode::NoPrivilege);
    }
    Expected { possible: [ErrorCode::InvalidParameter, ErrorCode::NoMemory].into(), ..Expected::default() }
}

fn number_of_space(facts: &Facts, key: Option<SpaceKey>) -> Option<u32> {
    let of_space = |(_, thread): &(&u32, &super::facts::Thread)| Some(thread.space) == key;
    facts.threads.iter().find(of_space).map(|(&number, _)| number)
}

/// EXT 6: whose pages MapControl may arrange, and with what items.
pub(super) fn map_control(
    facts: &Facts,
    caller: Caller,
    space: ThreadId,
    [target, control, source]: [u64; 3],
) -> Expected {
    let mut expected = Expected::default();
    let key = facts.space_of(space);
    expected.wrong_if(key.is_none(), ErrorCode::InvalidSpace);
    let now = key.and_then(|key| facts.spaces.get(&key));
    let own = key == Some(caller.space);
    let owns = now.is_some_and(|space| space.owner == Some(caller.space));
    expected.wrong_if(now.is_some() && !own && !owns, ErrorCode::NoPrivilege);
    if control & ONE_MAP_ITEM == 0 {
        let number = 1..=MAX_MAP_ITEMS;
        let begins = source < control;
        let placed = target.is_multiple_of(size_of::<MapItem>() as u64);
        expected.wrong_if(!number.contains(&control) || !begins || !placed, ErrorCode::InvalidParameter);
        // The model does not know whether the array is there; its items have no contents here.
        expected.possible.push(ErrorCode::InvalidParameter);
        return expected;
    }
    let item = MapItem { target, control: control & !ONE_MAP_ITEM, source, answer: 0 };
    let maps = item.operation() == MapOperation::Map;
    let fpage = Fpage::from_raw(target);
    let mut wrong = !item.is_well_formed() || maps && (own || fpage.rights().is_none() || source % 4096 != 0);
    match fpage.region() {
        Some(Region { base, size_log2 }) if size_log2 <= 30 => {
            let size = u64::from(item.count()) << size_log2;
            let end = base.saturating_add(size);
            wrong |= end > arch::USER_END || maps && source.saturating_add(size) > arch::USER_END;
            let areas = now.into_iter().flat_map(|space| [space.kip, space.utcbs]).flatten();
            for area in areas {
                wrong |= area.base < end && base <= area.last();
            }
        }
        _ => wrong = true,
    }
    expected.wrong_if(wrong, ErrorCode::InvalidParameter);
    expected.or_no_memory()
}

/// X.2 rules 9.1 to 9.3.
pub(super) fn memory_control(facts: &Facts, caller: Caller, control: u64, attributes: [u64; 4]) -> Expected {
    let mut expected = Expected::default();
    expected.wrong_if(!caller.is_privileged(facts), ErrorCode::NoPrivilege);
    expected.wrong_if(control > 63, ErrorCode::InvalidParameter);
    for index in 0..=control.min(63) as usize {
        let fpage = Fpage::from_raw(message_register(caller.thread, index));
        let wrong = match fpage.kind() {
            FpageKind::Nil => false,
            FpageKind::Memory(_) => {
                MemoryAttribute::from_raw(attributes[(fpage.raw() & 3) as usize]).is_none()
            }
            FpageKind::Io(_) | FpageKind::Unusable => true,
        };
        expected.wrong_if(wrong, ErrorCode::InvalidParameter);
    }
    expected.or_no_memory()
}

/// X.2 rule 9.5.
pub(super) fn processor_control(facts: &Facts, caller: Caller, processor: u64) -> Expected {
    let mut expected = Expected::default();
    expected.wrong_if(!caller.is_privileged(facts), ErrorCode::NoPrivilege);
    expected.wrong_if(processor >= u64::from(arch::cpu_count()), ErrorCode::InvalidParameter);
    expected
}

/// EXT 7: whose registers may be read and written, and when.
pub(super) fn thread_state(facts: &Facts, caller: Caller, of: ThreadId, control: u64) -> Expected {
    use x2::extension::thread_state as bits;
    let mut expected = Expected::default();
    let found = if of.is_global() { facts.resolve(0, of) } else { None };
    let Some((number, thread)) = found else { return Expected::only(ErrorCode::InvalidThread) };
    let owner = facts.spaces.get(&thread.space).and_then(|space| space.owner);
    expected.wrong_if(owner != Some(caller.space), ErrorCode::NoPrivilege);
    expected.wrong_if(!thread.active, ErrorCode::InvalidThread);
    expected.wrong_if(control & !bits::ALL != 0, ErrorCode::InvalidParameter);
    let extended = bits::READ_EXTENDED | bits::WRITE_EXTENDED;
    let breakpoints = bits::READ_BREAKPOINTS | bits::WRITE_BREAKPOINTS;
    let registers = bits::READ_REGISTERS | bits::WRITE_REGISTERS | extended | breakpoints;
    let runs = thread_of(number).is_some_and(|thread| match thread.continuation() {
        Continuation::ReturnToUser => !thread.has(flag::HALTED),
        Continuation::Inactive | Continuation::Send(_) | Continuation::Receive(_) => false,
        Continuation::SendTransfer(_) | Continuation::ReceiveTransfer(_) => false,
        _ => true,
    });
    expected.wrong_if(control & registers != 0 && runs, ErrorCode::InvalidParameter);
    if control & (extended | bits::WRITE_REGISTERS | bits::WRITE_BREAKPOINTS) != 0 {
        // Whether the buffer, the addresses and the breakpoints are right.
        expected.possible.extend([ErrorCode::InvalidParameter, ErrorCode::NoMemory]);
    }
    expected
}

/// EXT 4: which threads Notify reaches.
pub(super) fn notify(facts: &Facts, caller: Caller, of: ThreadId) -> Expected {
    let found = facts.resolve(caller.space, of).filter(|(_, thread)| thread.active);
    let mut expected = Expected::default();
    expected.wrong_if(found.is_none(), ErrorCode::InvalidThread);
    if caller.is_restricted() {
        expected.possible.push(ErrorCode::InvalidThread);
    }
    expected
}
