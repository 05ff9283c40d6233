//! Tests of threads: suspension, state, recall, exceptions, creation and end.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use mach::machine::{Event, ExecutionContext, Machine, PAGE_SIZE, Resume, ThreadState};
use mach::thread::{Exception, ExceptionHandler, ExceptionKind, ExceptionState, Handled, Policy};
use mach::vm::{BoxFuture, MapRequest, Placement};
use mach::{KernError, Thread};
use mach_l4::L4Machine;

use crate::code::command;
use crate::report::{TestResult, holds, same, tests};
use crate::servant::{GENERAL_PROTECTION, Outcome, Servant, UNDEFINED_INSTRUCTION};
use crate::system::System;
use crate::tests::{pause, sleep};

tests! {
    MACH0100 "a suspended thread executes nothing, and goes on when it is resumed" suspend;
    MACH0101 "a suspended task's threads execute nothing" suspend_task;
    MACH0102 "the registers of a suspended thread are read and written" state;
    MACH0103 "a state that no program may have is refused, and a running thread's is out of reach" wrong_state;
    MACH0104 "a looping thread is recalled, and goes on" recall;
    MACH0105 "a thread that is recalled before it goes on comes at once" recall_before;
    MACH0106 "an exception is handed to thread, task and host, and the thread goes on with the state that they leave" exceptions;
    MACH0107 "an exception that nobody handles ends the task" unhandled;
    MACH0108 "extended state is a thread's own, can be read and written, and a new thread has the initial one" extended_state;
    MACH0109 "threads of one task run side by side and share memory" side_by_side;
    MACH0110 "a thread that has ended says so, and its operations fail" ended;
    MACH0111 "threads come and go in numbers and leave nothing" many_threads;
    MACH0112 "many threads at a time, then none" crowd;
    MACH0113 "priorities are those of the policy" priorities;
    MACH0114 "a thread that is moved while it runs, faults, is recalled and ends is served by the worker where it lives" moves;
}

const HERE: u64 = 0x4000_0000;

async fn page(servant: &Servant) -> Result<(), KernError> {
    servant.map().map(&MapRequest::anonymous(PAGE_SIZE).at(Placement::Fixed(HERE))).await.map(drop)
}

async fn word(servant: &Servant) -> Result<u64, KernError> {
    let mut bytes = [0; 8];
    servant.map().copyin(HERE, &mut bytes).await.map_err(|fault| fault.error)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Waits until the thread has incremented its counter again.
async fn counts(system: &System, servant: &Servant) -> Result<bool, KernError> {
    let before = word(servant).await?;
    for _ in 0..1000 {
        pause(system).await;
        if word(servant).await? > before {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the thread does not increment its counter for some time.
async fn rests(system: &System, servant: &Servant) -> Result<bool, KernError> {
    let before = word(servant).await?;
    for _ in 0..20 {
        pause(system).await;
    }
    Ok(word(servant).await? == before)
}

async fn counting(system: &System) -> Result<Servant, KernError> {
    let servant = system.servant().await?;
    page(&servant).await?;
    servant.store(HERE, 0).await;
    servant.begin(command::COUNT, |state| state.rdi = HERE);
    Ok(servant)
}

async fn suspend(system: &System) -> TestResult {
    let servant = counting(system).await?;
    holds!(counts(system, &servant).await?);
    servant.thread.suspend()?;
    holds!(rests(system, &servant).await?);
    servant.thread.suspend()?;
    servant.thread.resume()?;
    holds!(rests(system, &servant).await?);
    servant.thread.resume()?;
    holds!(counts(system, &servant).await?);
    servant.task.terminate().await;
    Ok(())
}

async fn suspend_task(system: &System) -> TestResult {
    let servant = counting(system).await?;
    let other = Servant::start(&servant.task).await?;
    holds!(counts(system, &servant).await?);
    servant.task.suspend()?;
    holds!(rests(system, &servant).await?);
    // A thread with the server gets its answer, but does not continue.
    other.begin(command::STORE, |state| (state.rdi, state.rsi) = (HERE + 8, 9));
    holds!(rests(system, &servant).await?);
    servant.task.resume()?;
    same!(other.serve(None).await, Outcome::Done(HERE + 8));
    holds!(counts(system, &servant).await?);
    servant.task.terminate().await;
    Ok(())
}

async fn state(system: &System) -> TestResult {
    let servant = counting(system).await?;
    holds!(counts(system, &servant).await?);
    servant.thread.suspend()?;
    let state = servant.thread.state().await?;
    same!((state.rdi, state.gs_base), (HERE, 0));
    holds!((crate::servant::CODE..crate::servant::CODE + PAGE_SIZE).contains(&state.rip));
    let numbers = ThreadState {
        rax: 1,
        rbx: 2,
        rcx: 3,
        rdx: 4,
        rsi: 5,
        rbp: 6,
        r8: 8,
        r9: 9,
        r10: 10,
        r11: 11,
        r12: 12,
        r13: 13,
        r14: 14,
        r15: 15,
        fs_base: 0x1234_5000,
        gs_base: 0x4321_0000,
        ..state
    };
    servant.thread.set_state(&numbers).await?;
    let back = servant.thread.state().await?;
    same!(back, numbers);
    // The thread still counts, since its loop uses only RDI.
    servant.thread.resume()?;
    holds!(counts(system, &servant).await?);
    servant.thread.suspend()?;
    let later = servant.thread.state().await?;
    same!((later.r15, later.fs_base, later.gs_base), (15, 0x1234_5000, 0x4321_0000));
    servant.task.terminate().await;
    Ok(())
}

async fn wrong_state(system: &System) -> TestResult {
    let servant = counting(system).await?;
    holds!(counts(system, &servant).await?);
    same!(servant.user.state(), Err(KernError::InvalidArgument));
    servant.thread.suspend()?;
    let good = servant.thread.state().await?;
    for wrong in [
        ThreadState { rip: 0xffff_8000_0000_0000, ..good },
        ThreadState { fs_base: 1 << 47, ..good },
        ThreadState { gs_base: u64::MAX, ..good },
    ] {
        same!(servant.thread.set_state(&wrong).await, Err(KernError::InvalidArgument));
    }
    // Flags that programs cannot change are masked, not refused: I/O privilege, and interrupts
    // off.
    servant.thread.set_state(&ThreadState { rflags: u64::MAX, ..good }).await?;
    let changeable = 0x25_0dd5;
    same!(servant.thread.state().await?.rflags & !changeable, good.rflags & !changeable);
    servant.task.terminate().await;
    Ok(())
}

/// Whether a thread that spins gets beyond `count`; it is recalled to find out.
async fn spins_on(system: &System, servant: &Servant, count: u64) -> Result<bool, KernError> {
    for attempt in 0..1000 {
        if servant.user.state()?.rbx > count {
            return Ok(true);
        }
        servant.user.answer(Resume::Continue);
        // Each attempt waits longer than the last, since the machine may be slow and other threads
        // have timeslices.
        sleep(system, 500 * (1 + attempt)).await;
        servant.user.recall()?;
        if servant.serve(None).await != Outcome::Recalled {
            return Ok(false);
        }
    }
    Ok(false)
}

async fn recall(system: &System) -> TestResult {
    let servant = system.servant().await?;
    for _ in 0..3 {
        servant.begin(command::SPIN, |_| {});
        pause(system).await;
        servant.user.recall()?;
        servant.user.recall()?;
        same!(servant.serve(None).await, Outcome::Recalled);
        let spun = servant.user.state()?;
        same!(spun.rax, command::SPIN);
        // The thread continues where it was.
        holds!(spins_on(system, &servant, spun.rbx).await?);
        same!(servant.recover().await, Outcome::Done(0));
    }
    servant.task.terminate().await;
    Ok(())
}

async fn recall_before(system: &System) -> TestResult {
    let servant = system.servant().await?;
    servant.user.recall()?;
    same!(servant.load(crate::servant::CODE).await, Outcome::Recalled);
    let state = servant.user.state()?;
    same!(state.rax, command::LOAD);
    holds!(matches!(servant.serve(Some(Resume::Continue)).await, Outcome::Done(_)));
    servant.task.terminate().await;
    Ok(())
}

/// A handler that counts the exceptions that it gets. It skips the instruction and sets RDI, or
/// passes the exception on.
struct Handler {
    answer: Handled,
    raised: AtomicU64,
}

impl ExceptionHandler<L4Machine> for Handler {
    fn raise<'a>(
        &'a self,
        thread: &'a Arc<Thread<L4Machine>>,
        exception: Exception,
    ) -> BoxFuture<'a, Handled> {
        alloc::boxed::Box::pin(async move {
            self.raised.fetch_add(1, Ordering::Relaxed);
            if self.answer == Handled::Resume
                && let Ok(state) = thread.state().await
            {
                let next = ThreadState { rip: state.rip + 2, rdi: exception.code + 100, ..state };
                if thread.set_state(&next).await.is_err() {
                    return Handled::Pass;
                }
            }
            self.answer
        })
    }
}

fn handler(answer: Handled) -> Arc<Handler> {
    Arc::new(Handler { answer, raised: AtomicU64::new(0) })
}

const INSTRUCTION: Exception = Exception {
    kind: ExceptionKind::BadInstruction,
    code: UNDEFINED_INSTRUCTION,
    subcode: 0,
    state: INSTRUCTION_STATE,
};
const INSTRUCTION_STATE: ExceptionState =
    ExceptionState { error: 0, number: UNDEFINED_INSTRUCTION, address: 0 };

async fn exceptions(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let (own, task) = (handler(Handled::Pass), handler(Handled::Resume));
    servant.thread.set_exception_handler(Some(own.clone()));
    servant.task.set_exception_handler(Some(task.clone()));
    for round in 1..=3 {
        same!(servant.command(command::UNDEFINED, |_| {}).await, Outcome::Exception(UNDEFINED_INSTRUCTION));
        servant.thread.raise(&INSTRUCTION).await?;
        same!(servant.serve(Some(Resume::Continue)).await, Outcome::Done(106));
        same!((own.raised.load(Ordering::Relaxed), task.raised.load(Ordering::Relaxed)), (round, round));
    }
    servant.task.terminate().await;
    Ok(())
}

async fn unhandled(system: &System) -> TestResult {
    let servant = system.servant().await?;
    same!(servant.command(99, |_| {}).await, Outcome::Exception(GENERAL_PROTECTION));
    same!(servant.thread.raise(&INSTRUCTION).await, Err(KernError::Terminated));
    holds!(!servant.task.is_alive());
    same!(servant.serve(Some(Resume::Continue)).await, Outcome::Ended);
    Ok(())
}

async fn extended_state(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let other = Servant::start(&servant.task).await?;
    for round in 1..=3 {
        same!(servant.command(command::VECTOR, |_| {}).await, Outcome::Done(round));
        same!(other.command(command::VECTOR, |_| {}).await, Outcome::Done(round));
    }
    let mut image = servant.user.extended_state()?;
    holds!(image.len() >= 576 && image[160] == 3);
    image[160] = 40;
    servant.user.set_extended_state(&image)?;
    same!(servant.command(command::VECTOR, |_| {}).await, Outcome::Done(41));
    let legacy: [u8; 512] = core::array::from_fn(|index| if index == 160 { 50 } else { image[index] });
    servant.user.set_extended_state(&legacy)?;
    same!(servant.command(command::VECTOR, |_| {}).await, Outcome::Done(51));
    same!(servant.user.set_extended_state(&image[..100]), Err(KernError::InvalidArgument));
    // The image claims a component that does not exist, as a program could do in its signal frame.
    image[512 + 7] = 0x80;
    same!(servant.user.set_extended_state(&image), Err(KernError::InvalidArgument));
    servant.user.set_extended_state(&[])?;
    same!(servant.command(command::VECTOR, |_| {}).await, Outcome::Done(1));
    // The next thread of the task has clean registers, although it may be the same L4 thread, used
    // again.
    servant.thread.terminate();
    let next = Servant::start(&other.task).await?;
    let state = next.user.state()?;
    same!((state.rbx, state.r15, state.fs_base), (0, 0, 0));
    same!(next.command(command::VECTOR, |_| {}).await, Outcome::Done(1));
    next.task.terminate().await;
    Ok(())
}

async fn side_by_side(system: &System) -> TestResult {
    let servant = counting(system).await?;
    let other = Servant::start(&servant.task).await?;
    holds!(counts(system, &servant).await?);
    let Outcome::Done(seen) = other.load(HERE).await else { return Err("no result".into()) };
    holds!(seen > 0);
    // Both threads are in loops: the timeslice lets each run.
    other.begin(command::SPIN, |_| {});
    holds!(counts(system, &servant).await?);
    other.user.recall()?;
    same!(other.serve(None).await, Outcome::Recalled);
    holds!(spins_on(system, &other, 0).await?);
    servant.task.terminate().await;
    Ok(())
}

async fn ended(system: &System) -> TestResult {
    let servant = counting(system).await?;
    holds!(counts(system, &servant).await?);
    servant.thread.terminate();
    holds!(rests(system, &servant).await?);
    same!(servant.serve(None).await, Outcome::Ended);
    same!(servant.user.recall(), Err(KernError::Terminated));
    same!(servant.user.stop(), Err(KernError::Terminated));
    same!(servant.thread.suspend(), Err(KernError::Terminated));
    same!(servant.serve(Some(Resume::Continue)).await, Outcome::Ended);
    servant.task.terminate().await;
    Ok(())
}

async fn many_threads(system: &System) -> TestResult {
    let first = system.servant().await?;
    page(&first).await?;
    let space = first.map().space().ok_or(KernError::Terminated)?;
    same!(first.store(HERE, 0).await, Outcome::Done(HERE));
    let mut before = None;
    for round in 0..300u64 {
        let servant = Servant::start(&first.task).await?;
        same!(servant.store(HERE, round).await, Outcome::Done(HERE));
        if round % 3 == 0 {
            // The thread is ended in the midst of a loop.
            servant.begin(command::SPIN, |_| {});
        }
        servant.thread.terminate();
        if round == 10 {
            before = Some(system.machine.kernel_memory(&space)?);
        }
    }
    same!(Some(system.machine.kernel_memory(&space)?), before);
    same!(first.load(HERE).await, Outcome::Done(299));
    first.task.terminate().await;
    Ok(())
}

async fn crowd(system: &System) -> TestResult {
    let first = system.servant().await?;
    page(&first).await?;
    let space = first.map().space().ok_or(KernError::Terminated)?;
    let mut after = Vec::new();
    for _ in 0..3 {
        let mut crowd = Vec::new();
        for _ in 0..100 {
            crowd.push(Servant::start(&first.task).await?);
        }
        for (number, servant) in crowd.iter().enumerate() {
            let place = HERE + 8 * number as u64;
            same!(servant.store(place, number as u64).await, Outcome::Done(place));
        }
        same!(first.task.threads().len(), 101);
        for servant in &crowd {
            servant.thread.terminate();
        }
        drop(crowd);
        // Kernel threads that are not cached are ended by root.
        for _ in 0..20 {
            pause(system).await;
        }
        after.push(system.machine.kernel_memory(&space)?);
    }
    same!(after[1], after[2]);
    first.task.terminate().await;
    Ok(())
}

async fn priorities(system: &System) -> TestResult {
    let busy = counting(system).await?;
    let other = counting(system).await?;
    holds!(counts(system, &busy).await? && counts(system, &other).await?);
    // Where there are several processors, both threads are on the same one.
    let everywhere = system.host.default_set();
    let last = system.machine.processors() - 1;
    let alone = if last > 0 { system.host.create_processor_set() } else { everywhere.clone() };
    system.host.assign_processor(last, &alone)?;
    for servant in [&busy, &other] {
        servant.thread.assign(&alone)?;
    }
    // The more urgent thread does not let the other run.
    busy.thread.set_policy(Policy::FixedPriority { slice: 1000 }, 5)?;
    holds!(counts(system, &busy).await? && rests(system, &other).await?);
    other.thread.set_policy(Policy::FixedPriority { slice: 1000 }, 5)?;
    holds!(counts(system, &other).await? && counts(system, &busy).await?);
    same!(busy.thread.info()?.level, 5);
    if last > 0 {
        // A busy thread does not keep a thread on another processor from running.
        other.thread.set_policy(Policy::FixedPriority { slice: 1000 }, 6)?;
        holds!(counts(system, &busy).await? && rests(system, &other).await?);
        other.thread.assign(everywhere)?;
        holds!(counts(system, &other).await? && counts(system, &busy).await?);
    }
    system.host.assign_processor(last, everywhere)?;
    busy.task.terminate().await;
    other.task.terminate().await;
    Ok(())
}

async fn moves(system: &System) -> TestResult {
    let processors = system.machine.processors();
    let place = |turn: usize| 1 << (turn % processors);
    let servant = counting(system).await?;
    for turn in 1..=4 * processors {
        servant.user.set_affinity(place(turn))?;
        servant.user.recall()?;
        same!(servant.serve(None).await, Outcome::Recalled);
        servant.user.answer(Resume::Continue);
        // The thread has its answer, and with it a new worker.
        holds!(counts(system, &servant).await?);
        same!((servant.user.processor(), servant.user.worker()), (turn % processors, turn % processors));
    }
    // The thread faults at one worker while it is moved to the next.
    const PAGES: u64 = 48;
    const THERE: u64 = HERE + (1 << 20);
    servant.user.recall()?;
    same!(servant.serve(None).await, Outcome::Recalled);
    same!(servant.recover().await, Outcome::Done(0));
    servant.map().map(&MapRequest::anonymous(PAGES * PAGE_SIZE).at(Placement::Fixed(THERE))).await?;
    servant.begin(command::FILL, |state| (state.rdi, state.rcx, state.rsi) = (THERE, PAGES, 5));
    for turn in 0..PAGES as usize {
        servant.user.set_affinity(place(turn))?;
        match servant.user.next_event().await {
            Event::PageFault(fault) => {
                servant.user.set_affinity(place(turn + 1))?;
                servant.map().fault(fault.address, fault.access).await?;
                servant.user.answer(Resume::Continue);
            }
            other => return Err(other.into()),
        }
    }
    holds!(matches!(servant.serve(None).await, Outcome::Done(_)));
    same!(servant.check(THERE, PAGES, 5).await, Outcome::Done(0));
    servant.task.terminate().await;
    // The thread is ended while it faults and is moved.
    for turn in 0..8 {
        let servant = counting(system).await?;
        servant.user.set_affinity(place(turn))?;
        servant.user.recall()?;
        if turn % 3 == 0 {
            same!(servant.serve(None).await, Outcome::Recalled);
            servant.user.answer(Resume::Continue);
        }
        servant.user.set_affinity(place(turn + 1))?;
        if turn % 2 == 0 {
            servant.task.terminate().await;
        } else {
            servant.thread.terminate();
            same!(servant.serve(None).await, Outcome::Ended);
            servant.task.terminate().await;
        }
    }
    Ok(())
}
