//! Programs that send the server arbitrary messages: no other task is affected.

use alloc::boxed::Box;
use alloc::vec::Vec;

use l4::x2::extension::SYSTEM_CALL_LABEL;
use l4::x2::protocol;
use l4::x2::{MessageTag, Rights, Time, Timeouts};
use l4::{kip, utcb};
use mach::KernError;
use mach::machine::{ExecutionContext, PAGE_SIZE, Resume, ThreadState, UserMessage};
use mach::vm::{MapRequest, Placement};
use mach_l4::SpaceLayout;

use crate::code::command;
use crate::report::{TestResult, holds, same, tests};
use crate::servant::{Outcome, Servant};
use crate::system::System;
use crate::tests::pause;

tests! {
    MACH0300 "a program's own message is an event, and its answer arrives" message;
    MACH0301 "forged messages of the kernel harm nobody but their sender" forged;
    MACH0302 "a program that floods the server with messages does not keep it from others" flood;
    MACH0303 "a program that waits in an IPC of its own is recalled" recall_waiting;
    MACH0304 "a program cannot reach root, or other programs" confined;
}

const HERE: u64 = 0x4000_0000;

/// Sets the registers for an IPC of the program: tag, receiver, sender, timeouts, MR1, MR2.
fn ipc(state: &mut ThreadState, tag: MessageTag, to: u64, from: u64, timeouts: Timeouts, words: [u64; 2]) {
    state.r11 = kip().word(l4::x2::kip::IPC);
    state.r9 = tag.raw();
    (state.rsi, state.rdx, state.r8) = (to, from, timeouts.raw());
    // MR1 is passed in RAX, which has the number of the command. So MR2 is the first free word.
    state.rbx = words[1];
    state.r10 = words[0];
    state.rdi = SpaceLayout::default().utcb_area + l4::x2::utcb::MR0_OFFSET;
}

async fn send(servant: &Servant, tag: MessageTag, receive: bool) -> Outcome {
    let me = utcb::my_global_id().raw();
    let from = if receive { me } else { 0 };
    let set = |state: &mut ThreadState| ipc(state, tag, me, from, Timeouts::NEVER, [3, 4]);
    servant.command(command::CALL, set).await
}

/// The outcome of a program's IPC: the tag, without the bit that says whether the answer came from
/// another processor.
fn answered(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done(tag) => Outcome::Done(MessageTag::from_raw(tag).with_cross_processor(false).raw()),
        other => other,
    }
}

async fn message(system: &System) -> TestResult {
    let servant = system.servant().await?;
    same!(send(&servant, MessageTag::new(1234, 2, 0), true).await, Outcome::Message(1234));
    let answer = Box::new(UserMessage { label: 4321, count: 1, words: [5, 0, 0, 0, 0, 0, 0] });
    let tag = MessageTag::new(4321, 1, 0).raw();
    same!(answered(servant.serve(Some(Resume::Reply(answer))).await), Outcome::Done(tag));
    servant.task.terminate().await;
    Ok(())
}

async fn forged(system: &System) -> TestResult {
    let bystander = system.servant().await?;
    bystander.map().map(&MapRequest::anonymous(PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    same!(bystander.store(HERE, 88).await, Outcome::Done(HERE));
    let label = |protocol| protocol::label(protocol, 0);
    let tags = [
        protocol::page_fault_tag(Rights::WRITE),
        MessageTag::new(SYSTEM_CALL_LABEL, 7, 0),
        MessageTag::new(SYSTEM_CALL_LABEL, 3, 0),
        protocol::exception::TAG,
        MessageTag::new(label(protocol::INTERRUPT), 0, 0),
        MessageTag::new(label(protocol::PREEMPTION), 2, 0),
        MessageTag::new(l4::x2::extension::NOTIFICATION_LABEL, 1, 0),
        MessageTag::new(4000, 63, 0),
        MessageTag::new(7, 1, 0).with_propagated(true),
        MessageTag::from_raw(u64::MAX),
    ];
    // The messages reach the server. The first is a forged page fault: its sender gets an answer,
    // and it has no other effect.
    let servant = system.servant().await?;
    let fault = Outcome::Fault(command::CALL, KernError::InvalidAddress);
    same!(send(&servant, tags[0], true).await, fault);
    same!(answered(servant.serve(Some(Resume::Continue)).await), Outcome::Done(0));
    holds!(
        matches!(send(&servant, tags[1], true).await, Outcome::Call(call) if call.number == command::CALL)
    );
    let answer = MessageTag::new(0, 1, 0).raw();
    same!(answered(servant.serve(Some(Resume::Return(5))).await), Outcome::Done(answer));
    servant.task.terminate().await;
    for tag in tags {
        for receive in [true, false] {
            let servant = system.servant().await?;
            // Whatever answer the program gets to this message, the server continues and can end
            // the program.
            let me = utcb::my_global_id().raw();
            let from = if receive { me } else { 0 };
            servant.begin(command::CALL, |state| ipc(state, tag, me, from, Timeouts::NEVER, [3, 4]));
            for _ in 0..3 {
                pause(system).await;
            }
            same!(bystander.load(HERE).await, Outcome::Done(88));
            servant.task.terminate().await;
        }
    }
    bystander.task.terminate().await;
    Ok(())
}

async fn flood(system: &System) -> TestResult {
    let bystander = system.servant().await?;
    bystander.map().map(&MapRequest::anonymous(PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    let mut crowd = Vec::new();
    for _ in 0..10 {
        let servant = system.servant().await?;
        // All messages of the program are received by this worker, in order.
        servant.user.set_affinity(1)?;
        holds!(matches!(servant.load(crate::servant::CODE).await, Outcome::Done(_)));
        // The program sends a message to itself by repeating a call that needs no answer.
        let tag = MessageTag::new(99, 1, 0);
        for _ in 0..20 {
            let me = utcb::my_global_id().raw();
            servant.begin(command::CALL, |state| ipc(state, tag, me, 0, Timeouts::NEVER, [1, 2]));
            holds!(matches!(servant.serve(None).await, Outcome::Message(99) | Outcome::Done(_)));
            holds!(matches!(servant.serve(Some(Resume::Continue)).await, Outcome::Done(_)));
        }
        crowd.push(servant);
    }
    same!(bystander.store(HERE, 1).await, Outcome::Done(HERE));
    for servant in &crowd {
        servant.task.terminate().await;
    }
    bystander.task.terminate().await;
    Ok(())
}

/// The size of the instruction SYSCALL, with which the kernel's stub of Ipc begins.
const SYSCALL_SIZE: u64 = 2;

async fn recall_waiting(system: &System) -> TestResult {
    let servant = system.servant().await?;
    // The program waits for a message from itself, for ever.
    let own = servant.user.id().raw();
    let set = |state: &mut ThreadState| {
        ipc(state, MessageTag::EMPTY, 0, own, Timeouts::NEVER, [0, 0]);
    };
    servant.begin(command::CALL, set);
    // Waits until the program's IPC has begun: the program is in the kernel's stub, after SYSCALL.
    // If it were recalled earlier, it would still begin to wait afterwards.
    let waits_at = kip().word(l4::x2::kip::IPC) + SYSCALL_SIZE;
    loop {
        pause(system).await;
        servant.user.stop()?;
        let ip = servant.user.state()?.rip;
        servant.user.unstop()?;
        if ip == waits_at {
            break;
        }
    }
    servant.user.recall()?;
    same!(servant.serve(None).await, Outcome::Recalled);
    holds!(matches!(servant.serve(Some(Resume::Continue)).await, Outcome::Done(_)));
    servant.task.terminate().await;
    Ok(())
}

async fn confined(system: &System) -> TestResult {
    let (servant, other) = (system.servant().await?, system.servant().await?);
    let zero = Timeouts::new(Time::ZERO, Time::ZERO);
    for to in [utcb::pager().raw(), kip().sigma0().raw(), other.user.id().raw()] {
        let tag = MessageTag::new(interfaces::root::id::ROOT_EXIT, 1, 0);
        let set = |state: &mut ThreadState| ipc(state, tag, to, to, zero, [1, 2]);
        let Outcome::Done(tag) = servant.command(command::CALL, set).await else {
            return Err("no result".into());
        };
        holds!(MessageTag::from_raw(tag).is_error());
    }
    servant.task.terminate().await;
    other.task.terminate().await;
    Ok(())
}
