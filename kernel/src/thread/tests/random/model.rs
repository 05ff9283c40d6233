//! A model of the kernel's answers, which runs next to the kernel: it is told of every action,
//! foretells what a call may answer, and compares.

use std::boxed::Box;
use std::cell::Cell;

use x2::control::ExchangeControl;
use x2::{ErrorCode, Fpage, ThreadId, utcb};

use super::action::{Action, NUMBERS, ROOT};
use super::answers::{self, Caller, Expected};
use super::facts::{Facts, SpaceFacts, Thread, key_of, number_of, thread_of};
use super::messages::{self, Intent};
use super::perform::{NEW_IP, NEW_SP, arguments, other};
use crate::arch;
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::tests::{World, error};
use crate::thread::{Continuation, IpcKind, ThreadRef, Work, ipc};

std::thread_local! {
    /// A fault, put in by hand, for the test of this test: priority 255 becomes 254.
    pub(super) static FORGETFUL: Cell<bool> = const { Cell::new(false) };
}

/// A call that gave way to an interrupt.
struct Unfinished {
    call: Call,
    expected: Expected,
    action: Action,
}

/// What the model remembers.
pub(super) struct Model {
    facts: Facts,
    /// The last Ipc of each thread.
    sent: [Option<Box<Intent>>; NUMBERS as usize],
    /// Whether the thread's IPC is under way.
    in_ipc: [bool; NUMBERS as usize],
    /// The thread that made an Ipc in this step.
    fresh: Option<u32>,
    calls: [Option<Unfinished>; NUMBERS as usize],
    /// How many answers of each system call were compared, good ones and errors.
    pub(super) compared: [[u64; 2]; CALLS],
}

/// How many system calls there are.
pub(super) const CALLS: usize = Call::Notify as usize + 1;

/// What ExchangeRegisters delivers.
fn user_state(thread: ThreadRef) -> [u64; 5] {
    let registers = &thread.registers;
    let word = |word| thread.utcb.get().map_or(0, |block| block.read(word));
    [
        registers.rsp.get(),
        registers.rip.get(),
        registers.rflags.get(),
        word(utcb::USER_DEFINED_HANDLE),
        word(utcb::PAGER),
    ]
}

impl Model {
    /// A model of the world as it is.
    pub(super) fn new() -> Self {
        let mut facts = Facts::default();
        facts.load();
        Self {
            facts,
            sent: [const { None }; NUMBERS as usize],
            in_ipc: [false; NUMBERS as usize],
            fresh: None,
            calls: [const { None }; NUMBERS as usize],
            compared: [[0; 2]; CALLS],
        }
    }

    /// `thread`, which is running, does `action`; what the kernel decides.
    pub(super) fn perform(&mut self, world: &World, thread: ThreadRef, action: Action) -> Next {
        let Some((call, arguments)) = arguments(thread, action) else { return other(thread, action) };
        for (register, value) in arguments {
            register.of(thread).set(value);
        }
        let number = number_of(thread.id());
        if call == Call::Ipc {
            self.sent[number as usize] = messages::begin(&self.facts, thread, action);
            self.in_ipc[number as usize] = true;
            self.fresh = Some(number);
            return world.enter(call, thread, &[]);
        }
        let caller = Caller::new(thread);
        let expected = self.expect(caller, action);
        let subject = self.subject(caller, action);
        let before = subject.and_then(thread_of).map(user_state);
        if expected.succeeds() {
            self.announce(action, subject);
        }
        let next = world.enter(call, thread, &[]);
        if FORGETFUL.get() && call == Call::Schedule {
            subject
                .and_then(thread_of)
                .filter(|it| it.priority.get() == 255)
                .inspect(|it| it.priority.set(254));
        }
        if thread.continuation() == Continuation::ReturnToUser {
            self.answered(thread, call, &expected, action);
            if expected.succeeds() && succeeded(thread, call) {
                self.take_effect(caller, action, subject);
                self.check_results(thread, action, subject, before);
            }
        } else {
            if call == Call::ThreadControl && expected.succeeds() {
                // All steps that can fail are over.
                self.take_effect(caller, action, subject);
            }
            self.calls[number as usize] = Some(Unfinished { call, expected, action });
        }
        next
    }

    fn expect(&self, caller: Caller, action: Action) -> Expected {
        let facts = &self.facts;
        let id = |name: super::Name| name.resolve(caller.thread);
        match action {
            Action::ThreadControl { dest, space, scheduler, pager, location } => {
                let ids = [dest, space, scheduler, pager].map(id);
                answers::thread_control(facts, caller, ids, location)
            }
            Action::SpaceControl { space, kip, utcbs, redirector, .. } => {
                answers::space_control(facts, caller, [space, redirector].map(id), kip, utcbs)
            }
            Action::Schedule { dest, time, processor, priority, preemption } => {
                let words = [time, processor, priority, preemption];
                answers::schedule(facts, caller, id(dest), words)
            }
            Action::ExchangeRegisters { dest, .. } => answers::exchange_registers(facts, caller, id(dest)),
            Action::SpaceOptions { space, option, other, value } => {
                let names_space = matches!(option, 1 | 5);
                let values = if names_space { [id(other).raw(), value] } else { [value, 0] };
                answers::space_options(facts, caller, id(space), option, values)
            }
            Action::MapControl { space, target, control, source } => {
                answers::map_control(facts, caller, id(space), [target, control, source])
            }
            Action::MemoryControl { control, attributes, .. } => {
                answers::memory_control(facts, caller, control, attributes)
            }
            Action::ProcessorControl { processor } => answers::processor_control(facts, caller, processor),
            Action::ThreadState { thread, control, .. } => {
                answers::thread_state(facts, caller, id(thread), control)
            }
            Action::Notify { thread, .. } => answers::notify(facts, caller, id(thread)),
            _ => Expected::default(),
        }
    }

    /// The number of the thread that the call is about.
    fn subject(&self, caller: Caller, action: Action) -> Option<u32> {
        let name = match action {
            Action::ThreadControl { dest: name, .. }
            | Action::Schedule { dest: name, .. }
            | Action::ExchangeRegisters { dest: name, .. }
            | Action::ThreadState { thread: name, .. } => name,
            _ => return None,
        };
        let id = name.resolve(caller.thread);
        match action {
            Action::ThreadControl { .. } => ipc::is_user_number(id).then(|| number_of(id)),
            _ => self.facts.resolve(caller.space, id).map(|(number, _)| number),
        }
    }

    /// A call that will succeed ends Ipc of its subject.
    fn announce(&mut self, action: Action, subject: Option<u32>) {
        let Some(subject) = subject else { return };
        let ends = match action {
            Action::ExchangeRegisters { control, .. } => answers::cancels(control),
            Action::ThreadControl { .. } => true,
            Action::ThreadState { control, .. } => {
                if control & x2::extension::thread_state::WRITE_REGISTERS != 0 {
                    // The thread's message is another one now.
                    if let Some(intent) = &mut self.sent[subject as usize] {
                        intent.disturb();
                    }
                    self.in_ipc[subject as usize] = false;
                }
                false
            }
            _ => false,
        };
        if ends && let Some(intent) = &mut self.sent[subject as usize] {
            intent.cancel();
        }
    }

    /// Compares an answer.
    fn answered(&mut self, thread: ThreadRef, call: Call, expected: &Expected, action: Action) {
        let good = succeeded(thread, call);
        self.compared[call as usize][usize::from(!good)] += 1;
        let answer = if good {
            Ok(())
        } else {
            let word = error(thread);
            Err(ErrorCode::from_raw(word).unwrap_or_else(|| panic!("{action:?}: {word} is no error")))
        };
        expected.check(answer, &action);
    }

    /// Changes the model's facts as a successful call does.
    fn take_effect(&mut self, caller: Caller, action: Action, subject: Option<u32>) {
        if matches!(action, Action::SpaceControl { .. } | Action::SpaceOptions { option: 1 | 5, .. }) {
            self.restrict_all();
        }
        let id = |name: super::Name| name.resolve(caller.thread);
        match action {
            Action::ThreadControl { .. } => {
                if let Some(number) = subject {
                    self.thread_control(caller, number);
                }
            }
            Action::SpaceControl { space, kip, utcbs, .. } => {
                let Some(key) = self.facts.space_of(id(space)) else { return };
                let of_space = |thread: &&mut Thread| thread.space == key;
                if self.facts.threads.values().any(|thread| thread.space == key && thread.active) {
                    return;
                }
                let Some(now) = self.facts.spaces.get_mut(&key) else { return };
                let [kip, utcbs] = [kip, utcbs].map(|raw| answers::user_area(Fpage::from_raw(raw)));
                now.kip = kip.or(now.kip);
                if utcbs.is_some() && utcbs != now.utcbs {
                    now.utcbs = utcbs;
                    self.facts.threads.values_mut().filter(of_space).for_each(|thread| thread.utcb = 0);
                }
            }
            Action::SpaceOptions { space, option: 1, other, .. } => {
                let owner = self.facts.space_of(id(other));
                let key = self.facts.space_of(id(space));
                if let Some(space) = key.and_then(|key| self.facts.spaces.get_mut(&key)) {
                    space.owner = owner;
                }
            }
            _ => {}
        }
    }

    /// Owners, openings or redirectors have changed: what is under way may meet other limits now
    /// than when it began.
    fn restrict_all(&mut self) {
        self.sent.iter_mut().flatten().for_each(|intent| intent.restrict());
    }

    /// The effect of a successful ThreadControl on thread `number`. Its arguments are in the
    /// caller's registers, which the call leaves as they are, but for the ids that it has changed.
    fn thread_control(&mut self, caller: Caller, number: u32) {
        let registers = &caller.thread.registers;
        let [dest, space, scheduler, pager] = [&registers.rdi, &registers.r8, &registers.rdx, &registers.rsi]
            .map(|register| ThreadId::from_raw(register.get()));
        let location = registers.r9().get();
        let scheduler = self.facts.resolve(caller.space, scheduler).map(|(_, scheduler)| scheduler.id);
        let location = (location != u64::MAX).then_some(location);
        let Some(before) = self.facts.threads.get(&number).copied() else {
            let Some(key) = thread_of(number).and_then(|thread| thread.space.get()).map(key_of) else {
                assert!(space.is_nil(), "{number} is created, and is not there");
                return;
            };
            if space == dest {
                let old = self.facts.spaces.insert(key, SpaceFacts::NEW);
                assert!(old.is_none(), "a new space where there was one");
            } else {
                assert_eq!(Some(key), self.facts.space_of(space), "the space of a new thread");
            }
            let configured = self.facts.spaces.get(&key).is_some_and(SpaceFacts::is_configured);
            let thread = Thread {
                id: dest,
                space: key,
                active: !pager.is_nil(),
                utcb: location.filter(|_| configured).unwrap_or(0),
                kept: location.filter(|_| !configured),
                scheduler: scheduler.unwrap_or(ThreadId::NIL),
                dying: false,
            };
            self.sent[number as usize] = None;
            self.facts.threads.insert(number, thread);
            self.facts.changes[number as usize] += 1;
            return;
        };
        if space.is_nil() {
            self.facts.condemned[number as usize] = true;
            return;
        }
        let key = if space == dest { before.space } else { self.facts.space_of(space).unwrap_or(0) };
        let moves = key != before.space;
        if dest != before.id {
            self.facts.retire(number);
        } else if moves {
            self.facts.changes[number as usize] += 1;
        }
        let configured = self.facts.spaces.get(&key).is_some_and(SpaceFacts::is_configured);
        let active = before.active || !pager.is_nil();
        let stays = if moves { 0 } else { before.utcb };
        let kept = before.kept.filter(|_| !moves);
        let first = kept.filter(|_| active && stays == 0);
        let utcb = location.or(first).filter(|_| configured).unwrap_or(stays);
        let kept = location.filter(|_| !configured).or(kept).filter(|_| !active);
        let thread = Thread {
            id: dest,
            space: key,
            active,
            utcb,
            kept,
            scheduler: scheduler.unwrap_or(before.scheduler),
            dying: false,
        };
        self.facts.threads.insert(number, thread);
        self.facts.thread_leaves(before.space);
    }

    /// Compares the results of a successful call.
    fn check_results(
        &self,
        thread: ThreadRef,
        action: Action,
        subject: Option<u32>,
        before: Option<[u64; 5]>,
    ) {
        let registers = &thread.registers;
        let subject = subject.and_then(thread_of);
        match action {
            Action::SystemClock => assert_eq!(registers.rax().get(), arch::clock(), "the clock"),
            Action::ExchangeRegisters { dest, control, handle, .. } => {
                let (Some(subject), Some(before)) = (subject, before) else { return };
                let given = dest.resolve(thread);
                let other_form = if given.is_global() { subject.local_id.get() } else { subject.id().raw() };
                assert_eq!(registers.rax().get(), other_form, "the other form of the id");
                assert!(registers.rsi.get() < 8, "the state");
                let values = [&registers.rdx, &registers.r8, registers.r9(), registers.r10(), &registers.rdi];
                assert_eq!(values.map(core::cell::Cell::get), before, "what was before");
                let now = user_state(subject);
                let control = ExchangeControl::from_raw(control);
                let set = |bit, place: usize, value| {
                    if control.contains(bit) {
                        assert_eq!(now[place], value, "what is set");
                    }
                };
                set(ExchangeControl::SP, 0, NEW_SP);
                set(ExchangeControl::IP, 1, NEW_IP);
                set(ExchangeControl::HANDLE, 3, handle);
                if control.contains(ExchangeControl::HALT_VALID) {
                    let halted = subject.has(crate::thread::flag::HALTED);
                    assert_eq!(halted, control.contains(ExchangeControl::HALT), "whether it is halted");
                }
            }
            Action::Schedule { priority, .. } => {
                assert!((1..=7).contains(&registers.rax().get()), "a state");
                let Some(subject) = subject.filter(|_| registers.rax().get() > 1) else { return };
                if let Some(priority) = x2::control::priority_control(priority) {
                    assert_eq!(subject.priority.get(), priority);
                }
            }
            Action::ThreadState { control, .. } => {
                let Some((subject, block)) = subject.zip(thread.utcb.get()) else { return };
                if control & x2::extension::thread_state::READ_REGISTERS != 0 && control & 2 == 0 {
                    let word = block.read(utcb::message_register(x2::protocol::exception::RIP));
                    assert_eq!(word, subject.registers.rip.get(), "RIP as it is");
                }
            }
            _ => {}
        }
    }

    /// Compares the calls that have ended since the last step with the model.
    pub(super) fn observe(&mut self) {
        let mut turned = [false; NUMBERS as usize];
        // A thread's SpaceControl may have done its work, and is not over.
        let mut configured = false;
        self.condemn_again();
        self.facts.reap();
        for number in 0..NUMBERS {
            let place = number as usize;
            let thread = thread_of(number).filter(|thread| !thread.id().is_nil());
            let Some(thread) = thread else {
                self.in_ipc[place] = false;
                let left = self.calls[place].take();
                configured |= left.is_some_and(|left| left.call == Call::SpaceControl);
                continue;
            };
            configured |= has_configured(thread);
            let doing = thread.continuation();
            let at_user_level = doing == Continuation::ReturnToUser;
            if self.in_ipc[place] {
                let kind = doing.sending().or(doing.receiving());
                if at_user_level {
                    self.in_ipc[place] = false;
                    let intent = self.sent[place].as_ref().expect("it is in one");
                    if let Some(other) = intent.check_answer(&self.facts, thread, &self.sent) {
                        turned[other as usize] = true;
                    }
                    let failed = x2::MessageTag::from_raw(thread.registers.message[0].get()).is_error();
                    self.compared[Call::Ipc as usize][usize::from(failed)] += 1;
                } else if kind.is_none_or(|kind| kind != IpcKind::User) {
                    // The IPC was over, and the thread has met something else on its way out.
                    self.in_ipc[place] = false;
                } else if self.fresh == Some(number) {
                    let intent = self.sent[place].as_ref().expect("it is in one");
                    intent.check_wait(thread);
                }
            }
            if at_user_level && let Some(unfinished) = self.calls[place].take() {
                self.finished(thread, unfinished);
            }
        }
        self.fresh = None;
        for (number, _) in turned.into_iter().enumerate().filter(|&(_, turned)| turned) {
            if let Some(intent) = &mut self.sent[number] {
                intent.turn();
            }
        }
        if configured {
            self.restrict_all();
            self.facts.load();
        }
        self.facts.agree();
    }

    /// A deletion may give way to interrupts before it begins with its thread. It then deletes the
    /// thread that has the number when it goes on: another call may have deleted the first thread
    /// meanwhile, and made another.
    fn condemn_again(&mut self) {
        for number in 0..NUMBERS {
            let Some(Unfinished { call: Call::ThreadControl, action, .. }) = &self.calls[number as usize]
            else {
                continue;
            };
            if let Action::ThreadControl { dest, space: super::Name::Nil, .. } = action
                && let Some(dest) = dest.number()
            {
                self.facts.condemned[dest as usize] = true;
            }
        }
    }

    /// A call that gave way to interrupts has ended. What it is about may have changed meanwhile.
    fn finished(&mut self, thread: ThreadRef, unfinished: Unfinished) {
        let Unfinished { call, mut expected, action } = unfinished;
        let possible: &[ErrorCode] = match call {
            Call::ThreadControl
                if matches!(action, Action::ThreadControl { space: super::Name::Nil, .. }) =>
            {
                &[ErrorCode::InvalidThread, ErrorCode::NoPrivilege]
            }
            Call::SpaceControl => &[
                ErrorCode::NoPrivilege,
                ErrorCode::InvalidThread,
                ErrorCode::InvalidSpace,
                ErrorCode::InvalidUtcbArea,
                ErrorCode::InvalidKipArea,
            ],
            Call::MapControl => {
                &[ErrorCode::InvalidSpace, ErrorCode::NoPrivilege, ErrorCode::InvalidParameter]
            }
            _ => &[],
        };
        expected.possible.extend(possible);
        self.answered(thread, call, &expected, action);
        if call == Call::SpaceControl {
            self.restrict_all();
            self.facts.load();
        }
    }

    /// Notes that the root task has done something that the model does not follow.
    pub(super) fn start_over(&mut self) {
        self.in_ipc[ROOT as usize] = false;
        self.calls[ROOT as usize] = None;
        self.facts.load();
    }
}

/// Whether a SpaceControl of `thread` has done something and is not over: it has taken UTCBs and
/// perhaps still flushes, or it has set areas and redirector, and has still to tell threads of
/// that.
fn has_configured(thread: ThreadRef) -> bool {
    let work = thread.transfer_record.get().map(|record| record.work.get());
    matches!(work, Some(Work::DropUtcbs(_) | Work::FlushAreas(_) | Work::Redirect { .. }))
}

/// Whether a call that is over tells of success.
fn succeeded(thread: ThreadRef, call: Call) -> bool {
    let registers = &thread.registers;
    match call {
        Call::Ipc | Call::Unmap | Call::ThreadSwitch | Call::SystemClock => true,
        Call::MemoryControl => registers.rdx.get() == 1,
        Call::Schedule | Call::ExchangeRegisters => registers.rax().get() != 0,
        _ => registers.rax().get() == 1,
    }
}
